#!/bin/bash
# Runs every program of examples/, built in PROGRAMS_DIR by the test that calls this: with the installed library (install.sh), and
# in the build folder under whatever sanitizer it has.
# usage: examples.sh PROGRAMS_DIR PITH SOURCE_DIR MODEL
set -e
programs=$1 pith=$2 source=$3 model=$4
fail() { echo "examples: $*"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in "$source"/examples/*.{c,cpp}; do
    name=$(basename "$file" .c) name=${name/./_}
    grep -q "\$programs/$name\"" "$0" || fail "$name is run by nobody: add it here"
done

cosine=$("$programs/embed" "$model")
case $cosine in cosine*) ;; *) fail "unexpected output: $cosine" ;; esac
out=$("$programs/threads" "$model")
[ "$(echo "$out" | wc -l)" = 4 ] && [ "$(echo "$out" | sed -n 1p)" = "$(echo "$out" | sed -n 4p)" ] ||
    fail "threads: equal texts differ: $out"
# More lines than a batch; the first of the second batch is compared with the last of the first one.
out=$(for ((i = 0; i < 300; i++)); do echo "a cat sat"; done | "$programs/streaming" "$model" | awk '{print $2}' | LC_ALL=C sort | uniq -c | xargs)
[ "$out" = "1 0.0000 299 1.0000" ] || fail "streaming: $out"
out=$("$programs/allocator" "$model")
[ "$(echo "$out" | grep -c '^0 blocks after')" = 2 ] && echo "$out" | grep -q '^limit: ' || fail "allocator: $out"
"$programs/profile" "$model" 2>&1 >"$work/trace.json" | grep -q "^$cosine$" || fail "profile: another cosine"
"${PITH_PYTHON:-python3}" -c '
import json, sys
names = {event["name"] for event in json.load(open(sys.argv[1]))["traceEvents"]}
sys.exit(not {"open", "tokenise", "Linear", "compare"} <= names)' "$work/trace.json" || fail "profile: steps or phases are missing"
out=$("$programs/hybrid_search" "$model" "$source/tests/data/encode/splade-max")
[ "$(echo "$out" | grep -c '^0\.03[0-9]* *dense *[0-9.]* *sparse *[0-9.]* ')" = 5 ] || fail "hybrid_search: $out"
"$programs/hybrid_search" "$model" >"$work/hybrid.log" && fail "hybrid_search: a dense model has no sparse vectors"
grep -q "no sparse output" "$work/hybrid.log" || fail "hybrid_search: $(cat "$work/hybrid.log")"
out=$("$programs/tokenizer" "$model" "A cat, unbelievably")
[ "$(echo "$out" | tail -n 1)" = "a cat, unbelievably" ] && echo "$out" | grep -q "1010 .*bytes 5 to 6: ','" || fail "tokenizer: $out"
out=$("$programs/semantic_search" "$model" "how is the economy doing" "where do animals sleep")
[ "$(echo "$out" | wc -l)" = 8 ] && echo "$out" | sed -n 2p | grep -q "interest rates\|stock market" &&
    echo "$out" | sed -n 6p | grep -q "cat\|dog" || fail "semantic_search: $out"
out=$("$programs/semantic_search_cpp" "$model" "where do animals sleep")
[ "$(echo "$out" | wc -l)" = 3 ] && echo "$out" | sed -n 1p | grep -q "cat\|dog" || fail "semantic_search.cpp: $out"
"$programs/semantic_search_cpp" nothing 2>"$work/cpp.log" && fail "semantic_search.cpp: opens a model that is not there"
grep -q "no model 'nothing'" "$work/cpp.log" || fail "semantic_search.cpp: $(cat "$work/cpp.log")"
out=$("$programs/rerank" "$source/tests/data/tasks/cross-bert" "what is the capital of france?" "A cat sat on the mat." \
    "Paris is the capital and largest city of France.")
wanted=$(printf 'Paris is the capital and largest city of France.\nA cat sat on the mat.\n' | "$pith" rerank \
    -m "$source/tests/data/tasks/cross-bert" --query "what is the capital of france?" -k 2 --return-documents |
    sed 's/.*"score": \([0-9.]*\), "document": "\(.*\)"}/\1 \2/' | LC_ALL=C awk '{ $1 = sprintf("%.6f", $1); print }')
[ "$out" = "$wanted" ] || fail "rerank: $out"
out=$("$programs/image_search" "$source/tests/data/vision/clip" "w5 w6" "$source"/tests/data/images/rgb.{png,bmp} nothing.png 2>"$work/image.log")
[ "$(echo "$out" | grep -c '^-*[01]\.[0-9]* .*/rgb\.')" = 2 ] && grep -q "^nothing.png: " "$work/image.log" || fail "image_search: $out"
out=$(printf 'A cat sat.\nrates rose\nA cat sat.\n' | "$programs/queue" "$model" 2>"$work/queue.log" | LC_ALL=C sort)
[ "$(echo "$out" | uniq | wc -l)" = 2 ] && [ "$(echo "$out" | grep -c '^A cat sat\.: 6 tokens, first number ')" = 2 ] &&
    grep -q '^3 requests in [1-3] chunks$' "$work/queue.log" || fail "queue: $out"
out=$(printf 'A cat sat.\na  CAT sat.\nrates rose\n' | "$programs/token_cache" "$model")
[ "$(echo "$out" | grep -c '^the same tokens as those of text 0$')" = 1 ] && [ "$(echo "$out" | wc -l)" = 3 ] || fail "token_cache: $out"
if [ -x "$programs/run_model" ]; then # which the installed library is tested with elsewhere
    "$programs/run_model" "$source/tests/data/models/bert-base-script14-eager/model.onnx" | grep -q sum || fail "run_model"
fi
echo "examples: $cosine"
