#!/bin/bash
# Pith as a part of another CMake project, and what its options leave out.
# usage: subproject.sh SOURCE_DIR WORK_DIR [MODEL_DIR]
set -e
source=$1 work=$2 model=$3
fail() { echo "subproject: $*"; exit 1; }
# The libraries that were built here before stay: only what changed since then is compiled.
find "$work" -mindepth 1 -maxdepth 1 ! -name parent -exec rm -rf {} + 2>/dev/null || true
configure() { cmake -G Ninja -S "$1" -B "$work/$2" "${@:3}" >"$work/$2.log" 2>&1 || { cat "$work/$2.log"; return 1; }; }
# What `all` would build.
all() { ninja -C "$work/$1" -t inputs all; }
mkdir -p "$work"

# ---- options ----
configure "$source" none -DPITH_BUILD_COMMAND=OFF -DPITH_BUILD_SHARED=OFF -DPITH_BUILD_STATIC=OFF >"$work/none.txt" && fail "nothing to build is no error"
grep -q PITH_BUILD_STATIC "$work/none.txt" || fail "the error does not name the options"
configure "$source" shared -DPITH_BUILD_COMMAND=OFF -DPITH_BUILD_STATIC=OFF
all shared >"$work/shared.txt"
grep -q 'libpith\.so' "$work/shared.txt" && ! grep -q 'libpith\.a\|cli/main\.c' "$work/shared.txt" || fail "with the shared library alone more is built"
configure "$source" command -DPITH_BUILD_SHARED=OFF -DPITH_BUILD_STATIC=OFF
all command >"$work/command.txt"
grep -q 'cli/main\.c' "$work/command.txt" && ! grep -q 'libpith\.so' "$work/command.txt" || fail "with the command alone the shared library is built"

# ---- in a project around it: the libraries alone, nothing installed ----
configure "$source/tests/install/parent" plain -DPITH_SOURCE="$source"
all plain >"$work/plain.txt"
grep -q 'libpith\.so' "$work/plain.txt" && ! grep -q 'cli/main\.c' "$work/plain.txt" || fail "a subproject builds more than the libraries"
grep -q 'FLAGS = .*-O2' "$work/plain/build.ninja" || fail "without a build type a subproject is not optimised"
grep -q 'file(INSTALL' "$work/plain/pith/cmake_install.cmake" && fail "a subproject installs files unasked"

# ---- the static library alone, built there, installed, moved and used ----
# Of one instruction set and hardly optimised, which the result does not depend on: it is the compiling that takes long.
configure "$source/tests/install/parent" parent -DPITH_SOURCE="$source" -DPITH_BUILD_SHARED=OFF -DPITH_INSTALL=ON \
    -DPITH_SELECT_ISAS=scalar -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1
cmake --build "$work/parent" -j "$(nproc)" >"$work/build.log" 2>&1 || { tail -50 "$work/build.log"; fail "does not build"; }
cmake --install "$work/parent" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"
export PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name pith.pc)")
gcc -std=c11 "$source/examples/embed.c" -o "$work/embed_pkgconfig" $(pkg-config --cflags --libs pith)
mkdir "$work/uses"
cp "$source"/tests/install/project/* "$source/examples/embed.c" "$work/uses/"
configure "$work/uses" cmake -DCMAKE_PREFIX_PATH="$work/prefix"
cmake --build "$work/cmake" >/dev/null
[ -n "$model" ] || { echo "subproject: built"; exit 0; }
expected=$("$work/parent/embed_pith" "$model")
case $expected in cosine*) ;; *) fail "unexpected output: $expected" ;; esac
for program in parent/embed_static embed_pkgconfig cmake/embed_pith cmake/embed_static; do
    [ "$("$work/$program" "$model")" = "$expected" ] || fail "$program prints something else"
done
echo "subproject: five programs agree: $expected"
