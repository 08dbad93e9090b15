#!/bin/bash
# The ONNX project's own test models, from the onnx wheel: node, simple, pytorch-converted, pytorch-operator.
# usage: run.sh PITH [further arguments for `pith verify`]. $PITH_PYTHON is a Python with onnx.
here=$(cd "$(dirname "$0")" && pwd)
data=$("$PITH_PYTHON" -c 'import onnx, pathlib; print(pathlib.Path(onnx.__file__).parent / "backend/test/data")')
pith=$1
shift
exec "$pith" verify --skip-list "$here/skip.txt" "$@" "$data/node" "$data/simple" "$data/pytorch-converted" "$data/pytorch-operator"
