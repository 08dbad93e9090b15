#!/bin/bash
# Node models of ONNX, the models of tests/data/operators and drawn ones of operators of all domains, each with
# one byte wrong, for some minutes; the seed is printed. $PITH_PYTHON is a Python with onnx and onnxruntime.
# usage: flip.sh FLIP SECONDS [SEED]
here=$(cd "$(dirname "$0")" && pwd)
seed=${3:-$RANDOM}
node=$("$here/../conformance/node_tests.sh" "$(dirname "$1")")
drawn=$(mktemp -d)
trap 'rm -rf "$drawn"' EXIT
"$PITH_PYTHON" "$here/../comparisons/compare_operators.py" --write "$drawn" --count 1000 --seed "$seed" >/dev/null
"$1" "$2" "$seed" "$node" "$here/../data/operators" "$drawn"
