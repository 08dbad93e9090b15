#!/bin/bash
# Models, compiled models, tokenizers and model directories with values and parts of their files changed, opened and
# used. $PITH_PYTHON is a Python with onnx.
# usage: [SAVE=FOLDER] mutants.sh MUTANTS PITH [OPTION...], the options those of mutants.py; bad mutants are kept in SAVE,
# where MUTANTS reads them again.
set -eo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=$here/../data
program=$1 pith=$2
shift 2
node=$("$here/../conformance/node_tests.sh" "$(dirname "$program")")
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

directories=
for model in bert bert-bf16 distilbert mpnet roberta; do
    directories+=:$data/hf/$model+$here/bases/directory
done
directories+=:$data/models/bert-base-script14-eager-external+$here/bases/directory
for model in chain dense-residual dense-tokens router-first old-layout torch-shards static model2vec-quantized; do
    directories+=:$data/modules/$model
done

# Compiled: subgraphs and an encoder that are stored, kinds of tokenizers and precisions, some operators.
cp "$here"/corpus/pith/*.pith "$made"
compile() { # NAME MODEL [OPTION...]
    "$pith" compile "${@:2}" -o "$made/$1.pith" >/dev/null 2>&1 || echo "mutants.sh: $2 does not compile" >&2
}
for pair in bert_cased.jsonl:f32 wordlevel.jsonl:bf16 trim_blanks.jsonl:int8 metaspace_first_strip.jsonl:int8; do
    mkdir "$made/$pair"
    cp "$data"/hf/distilbert/{config.json,model.safetensors} "$made/$pair"
    head -1 "$data/tokenizers/${pair%:*}" >"$made/$pair/tokenizer.json"
    compile "$pair" "$made/$pair" --precision "${pair#*:}"
done
for model in encode/splade-sum hybrid/bm42 tasks/judge-qwen3 tasks/labels-bert vision/siglip; do
    compile "$(basename "$model")" "$data/$model"
done
every=10 i=0
for model in "$data"/operators/*/model.onnx; do
    [ $((i++ % every)) -gt 0 ] || compile "$(basename "$(dirname "$model")")" "$model"
done

"$PITH_PYTHON" "$here/mutants.py" "$@" "graphs=$node:$data/operators:$data/control:$data/hostile:$data/models:$data/families" \
    "compiled=$made" "tokenizers=$data/tokenizers:$data/tokenizer_models:$here/bases:$here/corpus/tokenizer" \
    "directories=${directories#:}" | "$program" ${SAVE:+"$SAVE"}
