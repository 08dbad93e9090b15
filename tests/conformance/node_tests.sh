#!/bin/bash
# Prints the folder of the ONNX node tests, unpacked from node-tests.tar.xz into BUILD/node-tests once per content.
# usage: node_tests.sh BUILD
set -e
archive=$(cd "$(dirname "$0")" && pwd)/node-tests.tar.xz
home=$1/node-tests
sum=$(sha256sum <"$archive")
mkdir -p "$home"
exec 9>"$home/lock"
flock 9
if [ "$sum" != "$(cat "$home/complete" 2>/dev/null)" ]; then
    rm -rf "$home/complete" "$home/node"
    "$PITH_PYTHON" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$archive" "$home"
    echo "$sum" >"$home/complete"
fi
echo "$home/node"
