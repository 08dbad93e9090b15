#!/bin/bash
# Prints a folder with the headers and static libraries of PCRE2 for arm64, from Debian's packages, for the
# cross compiler; made once in the cache. The machine's own packages stay as they are.
set -e
cache=${PITH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pith}
root=$cache/arm64-root
if [ ! -e "$root/complete" ]; then
    mkdir -p "$cache"
    exec 9>"$cache/arm64-root.lock"
    flock 9
    if [ ! -e "$root/complete" ]; then
        rm -rf "$root"
        work=$root/work
        mkdir -p "$work/lists/partial" "$work/archives/partial"
        log=$work/log
        apt=(apt-get -o Dir::State::lists="$work/lists" -o Dir::Cache="$work" -o APT::Architecture=arm64 -o APT::Architectures=arm64
            -o APT::Sandbox::User=root -o Debug::NoLocking=1)
        { "${apt[@]}" update && cd "$work" && "${apt[@]}" download libpcre2-dev; } >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
        for package in "$work"/*.deb; do
            dpkg-deb -x "$package" "$root"
        done
        find "$root" -name '*.so' -delete # they lead to packages that are not here
        rm -rf "$work"
        touch "$root/complete"
    fi
fi
echo "$root"
