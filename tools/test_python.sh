#!/bin/bash
# Prints the path of a Python that has tests/requirements.txt, made once in the cache (one per content of that file).
set -e
here=$(cd "$(dirname "$0")/.." && pwd)
cache=${PITH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pith}
home=$cache/python-$(sha256sum "$here/tests/requirements.txt" | cut -c1-12)
if [ ! -x "$home/bin/python" ] || [ ! -e "$home/complete" ]; then
    echo "making the Python environment of the tests" >&2
    mkdir -p "$cache"
    exec 9>"$cache/python.lock"
    flock 9
    if [ ! -e "$home/complete" ]; then
        rm -rf "$home"
        python3 -m venv "$home" >&2
        "$home/bin/python" -m pip install -q --disable-pip-version-check -r "$here/tests/requirements.txt" >&2
        touch "$home/complete"
    fi
fi
echo "$home/bin/python"
