#!/bin/bash
# The ONNX node tests and other models on the CPU and on the far backend. The node tests are unpacked beside the build.
# usage: suite.sh FAR_SUITE [further arguments for it]
set -e
suite=$1
shift
exec "$suite" "$@" "$("$(dirname "$0")/../conformance/node_tests.sh" "$(dirname "$suite")/..")"
