#!/bin/bash
# Node models of the onnx wheel with one byte wrong, for some minutes; the seed is printed. $PITH_PYTHON is a Python with
# onnx.
# usage: flip.sh FLIP SECONDS [SEED]
data=$("$PITH_PYTHON" -c 'import onnx, pathlib; print(pathlib.Path(onnx.__file__).parent / "backend/test/data")')
exec "$1" "$2" "${3:-$RANDOM}" "$data/node"
