#!/bin/bash
# Prints a folder with PCRE2 for arm64, and with the headers of the libraries that are loaded at run time, from Debian's packages,
# for the cross compiler; made once in the cache. The machine's own packages stay as they are.
set -e
cache=${PITH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pith}
root=$cache/arm64-root
packages="libpcre2-dev zlib1g-dev libzstd-dev libsqlite3-dev libpq-dev libstemmer-dev"
complete=$root/complete-${packages// /+}
if [ ! -e "$complete" ]; then
    mkdir -p "$cache"
    exec 9>"$cache/arm64-root.lock"
    flock 9
    if [ ! -e "$complete" ]; then
        rm -rf "$root"
        work=$root/work
        mkdir -p "$work/lists/partial" "$work/archives/partial"
        log=$work/log
        apt=(apt-get -o Dir::State::lists="$work/lists" -o Dir::Cache="$work" -o APT::Architecture=arm64 -o APT::Architectures=arm64
            -o APT::Sandbox::User=root -o Debug::NoLocking=1)
        { "${apt[@]}" update && cd "$work" && "${apt[@]}" download $packages; } >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
        for package in "$work"/*.deb; do
            dpkg-deb -x "$package" "$root"
        done
        find "$root" -name '*.so' -delete # they lead to packages that are not here
        rm -rf "$work"
        touch "$complete"
    fi
fi
echo "$root"
