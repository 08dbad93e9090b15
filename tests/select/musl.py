#!/usr/bin/env python3
"""One static program with musl: all-MiniLM-L6-v2 from a .pith file, text in, vector out. It gives the bits of the complete command, and
its size is in size.budget.

usage: musl.py PITH SOURCE_DIR WORK_DIR MODEL
"""
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

PITH, SOURCE, WORK = (Path(a).resolve() for a in sys.argv[1:4])
MODEL = sys.argv[4]
NAME = "musl-embed-minilm-pith"
SLACK = 1.02


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, timeout=3000, **more)
    if done.returncode:
        sys.exit(f"{command}\n{done.stdout.decode()}{done.stderr.decode()}")
    return done.stdout


# What the headers of the libraries that are loaded at run time consist of.
LOADED = ("zlib.h", "zconf.h", "zstd.h", "sqlite3.h", "libstemmer.h", "postgresql/libpq-fe.h", "postgresql/postgres_ext.h",
          "postgresql/pg_config_ext.h")


def make_root(root):
    """The headers and static libraries of this machine, apart from those of its C library."""
    for header in LOADED:
        (root / "usr/include" / header).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path("/usr/include") / header, root / "usr/include" / header)
    for package, header in (("libpcre2-8", "pcre2.h"),):
        include, lib = (Path(run("pkg-config", f"--variable={d}", package).decode().strip()) for d in ("includedir", "libdir"))
        for folder in ("usr/include", "usr/lib/pkgconfig"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(include / header, root / "usr/include")
        shutil.copy(lib / f"{package}.a", root / "usr/lib")
        text = (lib / f"pkgconfig/{package}.pc").read_text()
        text = re.sub(r"^libdir=.*", "libdir=/usr/lib", re.sub(r"^includedir=.*", "includedir=/usr/include", text, flags=re.M), flags=re.M)
        (root / f"usr/lib/pkgconfig/{package}.pc").write_text(text)


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    root, build, model = WORK / "root", WORK / "build", WORK / "model.pith"
    make_root(root)
    run(PITH, "compile", MODEL, "-o", model)
    env = {**os.environ, "PITH_MUSL_ROOT": str(root)}
    run("cmake", "-G", "Ninja", "-S", SOURCE / "tests/select/project", "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={SOURCE / 'tests/select/musl.cmake'}",
        f"-DPITH_SOURCE={SOURCE}", f"-DPITH_HOST_COMMAND={PITH}", f"-DMODEL={model}", f"-DYAML={SOURCE / 'tests/select/yunet.yaml'}",
        f"-DPROGRAMS={SOURCE / 'tests/select/programs'}", f"-DLIST={SOURCE / 'tests/select/minilm-pith.yaml'}", "-DCMAKE_BUILD_TYPE=Release",
        "-DISAS=avx2", "-DPITH_WERROR=ON", env=env)
    run("cmake", "--build", build, "-j", os.environ.get("JOBS", "2"), "--target", "listed", env=env)
    program = build / "listed"
    run("strip", program)
    for text in ("a cat", "Two CAFÉS, 3 dogs & 猫!", "word " * 90):
        own = run(program, model, text).decode().split()
        here = run(PITH, "embed", "-m", MODEL, "--format", "f32", input=text.encode() + b"\n")
        if own != [f"{x:.9g}" for x in struct.unpack(f"<{len(here) // 4}f", here)]:
            sys.exit(f"{text!r}: other bits than those of the complete command")
    size = program.stat().st_size
    budget = int(re.search(rf"^{NAME} (\d+)$", (SOURCE / "tests/select/size.budget").read_text(), re.M).group(1))
    print(f"{size} bytes, the whole file; the budget has {budget}")
    if size > budget * SLACK:
        sys.exit("OVER the budget of tests/select/size.budget")


if __name__ == "__main__":
    main()
