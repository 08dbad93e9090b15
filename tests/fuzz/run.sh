#!/bin/bash
# Runs each fuzz target for T seconds from its corpus; new inputs go to BUILD/corpus/<target>, findings to BUILD/findings.
# usage: run.sh BUILD T
build=$1
seconds=${2:-60}
here=$(cd "$(dirname "$0")" && pwd)
failed=0
mkdir -p "$build/findings"
for target in "$build"/tests/fuzz_*; do
    [ -x "$target" ] && [ -f "$target" ] || continue
    name=$(basename "$target")
    mkdir -p "$build/corpus/$name"
    echo "$name: $seconds s"
    "$target" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 -artifact_prefix="$build/findings/$name-" \
        -print_final_stats=1 "$build/corpus/$name" "$here/corpus/${name#fuzz_}" >"$build/findings/$name.log" 2>&1 ||
        { tail -40 "$build/findings/$name.log"; failed=1; }
    grep -E "stat::number_of_executed_units|stat::average_exec" "$build/findings/$name.log"
done
exit $failed
