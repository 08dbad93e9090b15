#!/bin/sh
# Builds the kernels for arm64, runs them under qemu-user and compares digests of what they compute with this machine's:
# NEON gives the bits of scalar, AVX2 and AVX-512. Needs aarch64-linux-gnu-gcc and qemu-aarch64.
# Usage: tests/neon/neon.sh SOURCE_DIR WORK_DIR
set -eu
source=$1 work=$2
flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wshadow -Werror -ffp-contract=off -fno-math-errno -ffunction-sections
  -I$source/include -I$source/src"
began=$(date +%s)

# took WHAT  (it ended now; the seconds since the last one)
took() {
    now=$(date +%s)
    echo "$1: $((now - began)) s"
    began=$now
}

# build COMPILER FOLDER LEVEL,FLAG,FLAG…  (a level and its flags per word)
build() {
    compiler=$1 out=$work/$2
    shift 2
    mkdir -p "$out"
    rm -f "$out"/*.o
    for file in "$source"/src/base/os/cpu.c "$source"/src/base/dtype.c "$source"/src/base/half.c "$source"/src/base/optional_part.c \
        "$source"/src/base/piece_listener.c "$source"/src/engine/kernels/*.c "$source"/tests/neon/*.c; do
        case $file in */k_*) continue ;; esac
        # shellcheck disable=SC2086
        $compiler $flags -c "$file" -o "$out/$(basename "$file" .c).o"
    done
    for pair in "$@"; do
        level=${pair%%,*}
        for file in "$source"/src/engine/kernels/k_*.c; do
            # shellcheck disable=SC2046,SC2086
            $compiler $flags $(echo "${pair#"$level"}" | tr , ' ') -DPITH_ISA="$level" -DPITH_LEVEL_"$level"=1 \
                -c "$file" -o "$out/$(basename "$file" .c)_$level.o"
        done
    done
    $compiler -static -Wl,--gc-sections "$out"/*.o -o "$out/digest" -lm -lpthread
}

build cc here scalar,-fno-tree-vectorize avx2,-mavx2,-mfma,-mf16c,-mbmi2 \
    avx512,-mavx2,-mfma,-mf16c,-mbmi2,-mavx512f,-mavx512bw,-mavx512dq,-mavx512vl
took "built here"
build aarch64-linux-gnu-gcc arm64 scalar neon
took "built for arm64"
"$work/here/digest" >"$work/here.txt"
took "ran here"
qemu-aarch64 "$work/arm64/digest" >"$work/arm64.txt"
took "ran under qemu"
for machine in here arm64; do
    grep ' scalar ' "$work/$machine.txt" >"$work/$machine-scalar.txt"
done
diff "$work/here-scalar.txt" "$work/arm64-scalar.txt"
digested=$(grep -c ' neon ' "$work/arm64.txt")
listed=$(grep -c '^KERNEL' "$source/src/select/kernels.def")
if test "$digested" -ne "$listed"; then
    echo "$digested of $listed kernels of src/select/kernels.def ran on NEON" >&2
    exit 1
fi
echo "$digested kernels, the same bits on arm64 and here"
