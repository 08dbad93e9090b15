#!/usr/bin/env python3
"""pith_selected_library: a project with two of them, from an installed Pith and, with --sources, from its sources.

usage: library.py SOURCE_DIR BUILD_DIR WORK_DIR [--sources]
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE, BUILD, WORK = (Path(a).resolve() for a in sys.argv[1:4])
MODEL, FACES = SOURCE / "tests/data/modules/chain", SOURCE / "tests/data/yunet/yunet-s-640-other-sizes/model.onnx"
PROJECT = SOURCE / "tests/select/project"


def run(*command, fails=None, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=1800, **more)
    if fails is None and done.returncode:
        sys.exit(f"{command}\n{done.stdout}{done.stderr}")
    if fails is not None and (not done.returncode or fails not in " ".join(done.stderr.split())):
        sys.exit(f"{command}: '{fails}' is not what it says\n{done.stderr}")
    return done.stdout


def configure(build, *more, fails=None):
    run("cmake", "-G", "Ninja", "-S", PROJECT, "-B", build, f"-DMODEL={MODEL}", f"-DYAML={SOURCE / 'tests/select/yunet.yaml'}",
        f"-DPROGRAMS={SOURCE / 'tests/select/programs'}", "-DCMAKE_BUILD_TYPE=Release", *more, fails=fails)


def check(build):
    run("cmake", "--build", build, "-j", os.environ.get("JOBS", "2"), "--target", "embed", "detect", "complete")
    text = "Two cafés, 3 dogs!"
    if run(build / "embed", MODEL, text) != run(build / "complete", MODEL, text):
        sys.exit("the small program gives other bits than the complete one")
    run(build / "detect", FACES)
    sizes = {name: (build / name).stat().st_size for name in ("embed", "detect", "complete")}
    if sizes["embed"] > 0.7 * sizes["complete"] or sizes["detect"] > 0.7 * sizes["complete"]:
        sys.exit(f"the small programs are not small: {sizes}")
    lacks = subprocess.run([build / "detect", MODEL], capture_output=True, text=True)
    if lacks.returncode != 1 or "this selective build lacks pieces; add to its list" not in lacks.stdout:
        sys.exit(f"a model of another kind: {lacks.stdout}")
    print(sizes)


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    if "--sources" in sys.argv:
        configure(WORK / "sources", f"-DPITH_SOURCE={SOURCE}", f"-DPITH_HOST_COMMAND={BUILD / 'pith'}")
        return check(WORK / "sources")
    run("cmake", "--install", BUILD, "--prefix", WORK / "prefix")
    moved = WORK / "moved"
    (WORK / "prefix").rename(moved)
    configure(WORK / "installed", f"-DCMAKE_PREFIX_PATH={moved}")
    check(WORK / "installed")
    for wrong, says in (("OPS_LIST;Add", "pith_selected_library needs NAME"), ("NAME;pith::static;OPS_LIST;Add", "there is a target pith::static already"),
                        ("NAME;own;OPS_LIST;Addd", "operators: this Pith has no 'Addd'; the nearest are Add"),
                        ("NAME;own;OPS_FILE;x", "is no option of a selective build"),
                        ("NAME;own;INCLUDE_ALL_OPS;OPS_YAML;x.yaml", "INCLUDE_ALL_OPS and OPS_YAML exclude each other")):
        configure(WORK / "wrong", f"-DCMAKE_PREFIX_PATH={moved}", f"-DWRONG={wrong}", fails=says)


if __name__ == "__main__":
    main()
