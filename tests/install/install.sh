#!/bin/bash
# Installs into an empty prefix and builds the README's example against it: pkg-config and CMake, shared and static,
# C11 and C++17 under the strictest flags; runs each and compares what they print.
# usage: install.sh SOURCE_DIR BUILD_DIR WORK_DIR [MODEL_DIR]
set -e
source=$1 build=$2 work=$3 model=$4
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/prefix" >/dev/null
libdir=$(dirname "$(find "$work/prefix" -name libpith.so)")
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
cp "$source/examples/embed.c" "$work/"
flags=$(pkg-config --cflags --libs pith)
[ "$(pkg-config --modversion pith)" = "$("$work/prefix/bin/pith" --version | awk '{print $2}')" ]

strict="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-aliasing -Wundef -Werror -fsyntax-only"
echo '#include <pith/pith.h>' >"$work/header.c"
cp "$work/header.c" "$work/header.cc"
for cc in gcc clang; do
    command -v $cc >/dev/null && $cc -std=c11 -Wmissing-prototypes -Wstrict-prototypes -Wc++-compat $strict $(pkg-config --cflags pith) "$work/header.c"
done
for cxx in g++ clang++; do
    command -v $cxx >/dev/null && $cxx -std=c++17 -Wold-style-cast -Wzero-as-null-pointer-constant $strict $(pkg-config --cflags pith) "$work/header.cc"
done

gcc -std=c11 -Wall -Werror "$work/embed.c" -o "$work/embed_pkgconfig" $flags
gcc -std=c11 -Wall -Werror "$work/embed.c" -o "$work/embed_pkgconfig_static" $(pkg-config --cflags pith) "$libdir/libpith.a" \
    $(pkg-config --static --libs-only-l pith | sed 's/-lpith //')
cp "$source"/tests/install/project/CMakeLists.txt "$work/"
cmake -S "$work" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/cmake" >/dev/null
[ -n "$model" ] || { echo "install: built"; exit 0; }
expected=$("$work/embed_pkgconfig" "$model")
case $expected in cosine*) ;; *) echo "unexpected output: $expected"; exit 1 ;; esac
for program in embed_pkgconfig_static cmake/embed_pith cmake/embed_pith_static; do
    [ "$("$work/$program" "$model")" = "$expected" ] || { echo "$program prints something else"; exit 1; }
done
echo "install: four programs built and agreeing: $expected"
