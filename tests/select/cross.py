#!/usr/bin/env python3
"""A selected library for arm64, made here with Debian's cross compiler: tools for this machine, the library for the other one. Its programs
run under qemu-user and give the bits of the complete command here.

usage: cross.py PITH SOURCE_DIR WORK_DIR
"""
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

PITH, SOURCE, WORK = (Path(a).resolve() for a in sys.argv[1:4])
DATA = SOURCE / "tests/data"
# Tokenizers of several kinds, because a char has no sign on arm64.
MODELS = [DATA / m for m in ("modules/chain", "modules/lower", "modules/layers-decoder", "modules/static", "tasks/cross-xlm-roberta")]
TEXTS = ["a cat", "Two CAFÉS, 3 dogs &\u00a0猫!", "ÄÖÜ ﬁre don't I'M \u0130stanbul Ωmega\u0301 caf\u0065\u0301", "word " * 90]


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, timeout=3000, **more)
    if done.returncode:
        sys.exit(f"{command}\n{done.stdout.decode()}{done.stderr.decode()}")
    return done.stdout


def main():
    root = run(SOURCE / "tools/arm64_root.sh").decode().strip()
    env = {**os.environ, "PITH_ARM64_ROOT": root}
    build = WORK / "arm64"
    shutil.rmtree(build, ignore_errors=True)
    run("cmake", "-G", "Ninja", "-S", SOURCE / "tests/select/project", "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={SOURCE / 'tests/select/arm64.cmake'}",
        f"-DPITH_SOURCE={SOURCE}", f"-DPITH_HOST_COMMAND={PITH}", f"-DMODEL={';'.join(map(str, MODELS))}", f"-DYAML={SOURCE / 'tests/select/yunet.yaml'}",
        f"-DPROGRAMS={SOURCE / 'tests/select/programs'}", "-DCMAKE_BUILD_TYPE=Release", "-DISAS=neon;scalar", "-DPITH_WERROR=ON", env=env)
    run("cmake", "--build", build, "-j", os.environ.get("JOBS", "2"), "--target", "embed", "detect", env=env)
    head = (build / "embed").read_bytes()[:20]
    if struct.unpack_from("<H", head, 18)[0] != 183:
        sys.exit("the program is not for arm64")
    count = 0
    for model in MODELS:
        for text in TEXTS:
            own = run("qemu-aarch64", build / "embed", model, text).decode().split()
            here = run(PITH, "embed", "-m", model, "--format", "f32", input=text.encode() + b"\n")
            wanted = [f"{x:.9g}" for x in struct.unpack(f"<{len(here) // 4}f", here)]
            if own != wanted:
                sys.exit(f"{model}: {text!r}: other bits than here\n{own}\n{wanted}")
            count += len(wanted)
    run("qemu-aarch64", build / "detect", DATA / "yunet/yunet-s-640-other-sizes/model.onnx")
    print(f"{count} numbers have the same bits; {(build / 'embed').stat().st_size} bytes")


if __name__ == "__main__":
    main()
