#!/bin/bash
# Makes the default model's directory twice more under OUT, with an ONNX file instead of safetensors: `plain` as an
# exporter spells it, `fused` with com.microsoft operators. Keeps what is already there.
# usage: onnx_dirs.sh SOURCE_DIR OUT
set -e
source=$1 out=$2
model=${PITH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pith}/models/all-MiniLM-L6-v2
[ -e "$model/model.safetensors" ] || { echo "no $model: run make model"; exit 1; }
for form in plain fused; do
    [ -e "$out/$form/model.onnx" ] && continue
    mkdir -p "$out/$form"
    cp -r "$model"/{config,tokenizer,tokenizer_config,modules,sentence_bert_config}.json "$model/1_Pooling" "$out/$form/"
    [ $form = fused ] && flags=--fused || flags=
    "${PITH_PYTHON:-python3}" "$source/tools/make_onnx.py" "$model" "$out/$form/part.onnx" $flags
    mv "$out/$form/part.onnx" "$out/$form/model.onnx"
done
