#!/bin/bash
# Prints the path of a Python that has tests/requirements.txt, or the file named instead; made once in the cache, one per
# content of that file.
set -e
here=$(cd "$(dirname "$0")/.." && pwd)
cache=${PITH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pith}
requirements=${1:-$here/tests/requirements.txt}
home=$cache/python-$(sha256sum "$requirements" | cut -c1-12)
if [ ! -x "$home/bin/python" ] || [ ! -e "$home/complete" ]; then
    echo "making the Python environment of $requirements" >&2
    mkdir -p "$cache"
    exec 9>"$cache/python.lock"
    flock 9
    if [ ! -e "$home/complete" ]; then
        rm -rf "$home"
        python3 -m venv "$home" >&2
        "$home/bin/python" -m pip install -q --disable-pip-version-check -r "$requirements" >&2
        touch "$home/complete"
    fi
fi
echo "$home/bin/python"
