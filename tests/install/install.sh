#!/bin/bash
# Installs into an empty prefix, moves the prefix, and uses it from there as a stranger would: pkg-config and CMake, shared
# and static, C11 and C++17 under the strictest flags, every program of examples/. Programs that should agree are compared.
# usage: install.sh SOURCE_DIR BUILD_DIR WORK_DIR [MODEL_DIR]
set -e
source=$1 build=$2 work=$3 model=$4
fail() { echo "install: $*"; exit 1; }

# ---- the parts, and the whole, moved ----
rm -rf "$work"
mkdir -p "$work"
for part in command runtime development; do
    cmake --install "$build" --prefix "$work/parts" --component $part >/dev/null
done
cmake --install "$build" --prefix "$work/first" >/dev/null
diff -r "$work/parts" "$work/first" || fail "the three components are not all that is installed"
mv "$work/first" "$work/prefix"
prefix=$work/prefix
libdir=$(dirname "$(find "$prefix" -name libpith.so)")
grep -rIl -e "$work/first" -e "$build" -e "$source" "$prefix" && fail "these files name the folder they were made in"
for file in man/man1/pith.1 man/man1/pith-embed.1 bash-completion/completions/pith zsh/site-functions/_pith \
    fish/vendor_completions.d/pith.fish; do
    [ -s "$prefix/share/$file" ] || fail "share/$file is missing or empty"
done
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
[ "$(pkg-config --modversion pith)" = "$("$prefix/bin/pith" --version | awk '{print $2}')" ] || fail "versions differ"

# ---- the header ----
strict="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-aliasing -Wundef -Werror"
printf '#include <pith/%s>\n' image_module.h image.h tables.h pith.h >"$work/header.c"
cp "$work/header.c" "$work/header.cc"
for cc in gcc clang; do
    command -v $cc >/dev/null && $cc -std=c11 -Wmissing-prototypes -Wstrict-prototypes -Wc++-compat $strict -fsyntax-only $(pkg-config --cflags pith) "$work/header.c"
done
for cxx in g++ clang++; do
    command -v $cxx >/dev/null && $cxx -std=c++17 -Wold-style-cast -Wzero-as-null-pointer-constant $strict -fsyntax-only $(pkg-config --cflags pith) "$work/header.cc"
done

# ---- the module: a program anywhere finds it beside libpith.so, the command in ../lib ----
cat >"$work/picture.c" <<'EOF'
#include <pith/image.h>
#include <stdio.h>
int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_image image;
    if (argc < 2 || pith_image_read(&image, argv[1], NULL, &err)) return puts(err.message), 1;
    return image.width != 24;
}
EOF
gcc -std=c11 -Wall -Werror "$work/picture.c" -o "$work/picture" $(pkg-config --cflags --libs pith)
"$work/picture" "$source/tests/data/images/rgb.jpg" || fail "the library does not find the module"
"$work/picture" "$source/tests/data/images/rgb.heic" || fail "the library does not find the module for HEIC"
node=$("$source/tests/conformance/node_tests.sh" "$build")
"$prefix/bin/pith" verify "$node/test_image_decoder_decode_png_rgb" >/dev/null || fail "the command does not find the module"

# ---- pkg-config ----
for file in "$source"/examples/*.c; do
    gcc -std=c11 -O1 -Wall -Wextra -Wshadow -Werror "$file" -o "$work/$(basename "$file" .c)" $(pkg-config --cflags --libs pith) -pthread
done
cp "$source/examples/embed.c" "$work/"
gcc -std=c11 "$work/embed.c" -o "$work/embed_with_needs" $(pkg-config --static --cflags --libs pith)
gcc -std=c11 -static "$work/embed.c" -o "$work/embed_static" $(pkg-config --static --cflags --libs pith) 2>"$work/static.log" ||
    { cat "$work/static.log"; fail "pkg-config --static does not give what a static program needs"; }

# ---- the other libraries ----
cp "$source"/tests/install/project/* "$source/examples/selective_build/basic/run_model.c" "$work/"
model_file=$source/tests/data/models/bert-base-script14-eager/model.onnx
gcc -std=c11 -Wall -Werror "$work/tables.c" -o "$work/tables" $(pkg-config --cflags --libs pith-tables)
gcc -std=c11 -static "$work/tables.c" -o "$work/tables_static" $(pkg-config --static --cflags --libs pith-tables) 2>"$work/static.log" ||
    { cat "$work/static.log"; fail "pkg-config --static does not give what a static program of tables needs"; }
gcc -std=c11 -Wall -Werror "$work/run_model.c" -o "$work/run_core" $(pkg-config --cflags --libs pith-core)
gcc -std=c11 -static "$work/run_model.c" -o "$work/run_core_static" $(pkg-config --static --cflags --libs pith-core) 2>"$work/static.log" ||
    { cat "$work/static.log"; fail "pkg-config --static does not give what a static program of the core needs"; }

# ---- CMake ----
project() { cmake -S "$work" -B "$work/$1" -DCMAKE_PREFIX_PATH="$prefix" "${@:2}"; }
build_project() { project "$@" >/dev/null && cmake --build "$work/$1" >/dev/null; }
build_project cmake
build_project cmake-both "-DPARTS=shared;static"
build_project cmake-static -DPARTS=static
draft=$("$work/tables" "$source/tests/data/shop") sums=$("$work/run_core" "$model_file")
case $draft in *'"tables"'*) ;; *) fail "unexpected schema: $draft" ;; esac
case $sums in *sum*) ;; *) fail "unexpected sums: $sums" ;; esac
for program in tables_static cmake/tables cmake-both/tables cmake-static/tables; do
    [ "$("$work/$program" "$source/tests/data/shop")" = "$draft" ] || fail "$program prints something else"
done
for program in run_core_static cmake/run_core cmake-both/run_core cmake-static/run_core; do
    [ "$("$work/$program" "$model_file")" = "$sums" ] || fail "$program prints something else"
done
project cmake-none -DPARTS=gpu >"$work/none.log" 2>&1 && fail "find_package takes a component that does not exist"
grep -q gpu "$work/none.log" || fail "the error of find_package does not name the component"
ldd "$work/cmake/embed_pith" | grep -q libpith || fail "pith::pith is not the shared library"
ldd "$work/cmake-static/embed_pith" | grep -q libpith && fail "with COMPONENTS static pith::pith is not the static library"

[ -n "$model" ] || { echo "install: built"; exit 0; }

# ---- running ----
expected=$("$work/embed" "$model")
case $expected in cosine*) ;; *) fail "unexpected output: $expected" ;; esac
for program in embed_with_needs embed_static cmake/embed_pith cmake/embed_static cmake-both/embed_pith cmake-static/embed_pith; do
    [ "$("$work/$program" "$model")" = "$expected" ] || fail "$program prints something else"
done

g++ -std=c++17 -Wall -Wextra -Werror "$source/examples/semantic_search.cpp" -o "$work/semantic_search_cpp" $(pkg-config --cflags --libs pith)
"$source/tests/install/examples.sh" "$work" "$prefix/bin/pith" "$source" "$model" >"$work/examples.log" || fail "$(cat "$work/examples.log")"
echo "install: seven programs agree and the examples run: $expected"
