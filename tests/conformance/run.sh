#!/bin/bash
# The ONNX project's own test models: the node tests stored here, and simple, pytorch-converted and pytorch-operator from
# the onnx wheel. The node tests are unpacked beside PITH. $PITH_PYTHON is a Python with onnx.
# usage: run.sh PITH [further arguments for `pith verify`]
set -e
here=$(cd "$(dirname "$0")" && pwd)
pith=$1
shift
node=$("$here/node_tests.sh" "$(dirname "$pith")")
data=$("$PITH_PYTHON" -c 'import onnx, pathlib; print(pathlib.Path(onnx.__file__).parent / "backend/test/data")')
exec "$pith" verify --skip-list "$here/skip.txt" "$@" "$node" "$data/simple" "$data/pytorch-converted" "$data/pytorch-operator"
