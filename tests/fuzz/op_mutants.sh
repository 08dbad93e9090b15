#!/bin/bash
# Node models of ONNX and the models of tests/data/operators, spoiled in every way op_mutants.py knows, opened and run.
# $PITH_PYTHON is a Python with onnx.
# usage: op_mutants.sh MUTANTS [OPTION...]
set -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$1
shift
node=$("$here/../conformance/node_tests.sh" "$(dirname "$program")")
"$PITH_PYTHON" "$here/op_mutants.py" "$@" "$node" "$here/../data/operators" | "$program"
