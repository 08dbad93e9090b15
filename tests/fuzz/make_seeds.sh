#!/bin/bash
# Makes the seeds in corpus/pith and corpus/rdb again. To be run when the format of compiled models or of databases has changed.
# usage: make_seeds.sh PITH
set -e
pith=$1 here=$(cd "$(dirname "$0")" && pwd)
for name in if loop13_seq optional_get_element_optional_sequence scan9_sum; do
    "$pith" compile "$here/../data/control/$name.onnx" -o "$here/corpus/pith/$name.pith"
done
"$pith" compile "$here/../data/modules/chain" -o "$here/corpus/pith/encoder.pith"
for name in encode/bge-m3 hybrid/minicoil modules/asym vision/clip; do
    "$pith" compile "$here/../data/$name" -o "$here/corpus/pith/$(basename "$name").pith"
done
"$pith" preprocess "$here/bases/tables" -o "$here/corpus/rdb/tables.rdb"
