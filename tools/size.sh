#!/bin/bash
# Bytes of the stripped library and command, and what they link with.
set -e
build=${1:-build}
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
for file in libpith-core.so libpith.so libpith-tables.so pith; do
    strip -o "$temporary/$file" "$build/$file"
    printf '%-12s %9d bytes stripped   needs: %s\n' "$file" "$(stat -c %s "$temporary/$file")" \
        "$(objdump -p "$build/$file" | awk '/NEEDED/ {printf "%s ", $2}')"
done
