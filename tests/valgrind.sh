#!/bin/bash
# Runs the unit tests under valgrind; leaks and invalid accesses fail. Left out are tests that would need hours (they run
# models, or open them, thousands of times; the address sanitizer has them) and those that start themselves anew, which
# valgrind does not allow: precision, and the threads', which also sets a floating point mode that it does not know.
build=${1:-build-test}
failed=0
for test in "$build"/tests/test_*; do
    [ -x "$test" ] && [ -f "$test" ] || continue
    case $(basename "$test") in *hostile* | *golden* | *bits* | *embed_memory* | *precision* | *kernels* | *test_threads) continue ;; esac
    echo "valgrind $(basename "$test")"
    valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite "$test" >/tmp/valgrind.$$ 2>&1 ||
        { cat /tmp/valgrind.$$; failed=1; }
done
rm -f /tmp/valgrind.$$
exit $failed
