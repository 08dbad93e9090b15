#!/bin/bash
# Node models of the onnx wheel, the models of tests/data/operators and drawn ones of operators of all domains, each with
# one byte wrong, for some minutes; the seed is printed. $PITH_PYTHON is a Python with onnx and onnxruntime.
# usage: flip.sh FLIP SECONDS [SEED]
here=$(cd "$(dirname "$0")" && pwd)
seed=${3:-$RANDOM}
data=$("$PITH_PYTHON" -c 'import onnx, pathlib; print(pathlib.Path(onnx.__file__).parent / "backend/test/data")')
drawn=$(mktemp -d)
trap 'rm -rf "$drawn"' EXIT
"$PITH_PYTHON" "$here/../python/compare_operators.py" --write "$drawn" --count 1000 --seed "$seed" >/dev/null
"$1" "$2" "$seed" "$data/node" "$here/../data/operators" "$drawn"
