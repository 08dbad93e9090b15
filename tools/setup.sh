#!/bin/bash
# Installs the Debian packages that are missing for the named purposes: build, test, long (the tests of `make test-long`),
# relational (those of `make test-relational` that need a server), images (those of `make test-images` that need a browser).
set -e
packages=""
for purpose in "$@"; do
    case $purpose in
    build) packages+=" gcc libc6-dev cmake ninja-build pkg-config libpcre2-dev libjansson-dev libmd-dev libjpeg-dev libpng-dev libwebp-dev libtiff-dev libopenjp2-7-dev libgif-dev libheif-dev zlib1g-dev libzstd-dev libsqlite3-dev libpq-dev libstemmer-dev libcurl4-openssl-dev python3-pip" ;;
    test) packages+=" g++ libcurl4 libstemmer0d zlib1g libzstd1 libsqlite3-0 libcmocka-dev libutf8proc-dev python3-venv mandoc zsh fish clang libclang-rt-14-dev valgrind openssl locales abigail-tools" ;;
    long) packages+=" gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user musl-tools gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm debootstrap" ;;
    relational) packages+=" libpq5 postgresql" ;;
    images) packages+=" chromium-headless-shell" ;;
    *) echo "usage: tools/setup.sh build|test|long|relational|images ..." >&2; exit 2 ;;
    esac
done
command -v dpkg-query >/dev/null || { echo "not a Debian system; make sure these are installed:$packages" >&2; exit 0; }
missing=""
for package in $packages; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=" $package"
done
[ -z "$missing" ] && exit 0
echo "installing$missing" >&2
as_root=""
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "run as root: apt-get install$missing" >&2; exit 1; }
    as_root=sudo
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# The package list may be absent or old: try, refresh it, try again.
$as_root apt-get install -y --no-install-recommends $missing >"$log" 2>&1 ||
    { $as_root apt-get update >"$log" 2>&1 && $as_root apt-get install -y --no-install-recommends $missing >"$log" 2>&1; } ||
    { cat "$log" >&2; exit 1; }
