#!/usr/bin/env python3
"""examples/selective_build/cortex_m: built with Debian's gcc-arm-none-eabi and run on the board mps2-an500 of qemu.

usage: cortex_m.py PITH SOURCE_DIR WORK_DIR [unittest arguments]
"""
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

PITH, SOURCE, WORK = (Path(a).resolve() for a in sys.argv[1:4])
EXAMPLE = SOURCE / "examples/selective_build/cortex_m"


def run(*command, code=0, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=1200, **more)
    assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(name, *options):
    """What the build printed."""
    folder = WORK / name
    run("cmake", "-G", "Ninja", "-S", EXAMPLE, "-B", folder, f"-DPITH_HOST_COMMAND={PITH}",
        f"-DCMAKE_TOOLCHAIN_FILE={EXAMPLE / 'arm-none-eabi.cmake'}", *options)
    return run("cmake", "--build", folder, "-j", "2")


def emulate(name, code=0):
    return run("qemu-system-arm", "-M", "mps2-an500", "-nographic", "-semihosting", "-kernel", WORK / name / "network.elf", code=code)


class CortexM(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir(parents=True)
        cls.printed = build("m7")

    def test_the_bits_of_this_machine(self):
        x = ((np.arange(64) % 7) / 8 - 0.25).astype(np.float32).reshape(1, 1, 8, 8)
        np.save(WORK / "x.npy", x)
        run(PITH, "run", EXAMPLE / "network.onnx", "-i", f"x={WORK / 'x.npy'}", "-o", WORK / "out")
        wanted = [f"{n:08x}" for n in np.load(WORK / "out/0_y.npy").view(np.uint32).ravel()]
        *found, arena = emulate("m7").split("\n")[:-1]
        self.assertEqual(found, wanted)
        most, size, left = map(int, re.fullmatch(r"arena: (\d+) of (\d+) bytes, (\d+) left in use", arena.strip()).groups())
        self.assertEqual(left, 0)
        self.assertLessEqual(most, size)
        self.assertGreater(most, size // 2)
        self.assertIn(f"the arena of the network has {size} bytes", self.printed)

    def test_no_malloc_files_or_threads(self):
        names = {line.split()[-1] for line in run("arm-none-eabi-nm", WORK / "m7/network.elf").splitlines()}
        self.assertIn("pith_session_run", names)
        for name in ("malloc", "_malloc_r", "free", "_sbrk", "fopen", "open", "_open", "read", "pthread_create", "vfprintf", "mmap"):
            self.assertNotIn(name, names)

    def test_too_little_memory_is_an_error(self):
        build("m7", "-DARENA_BYTES=16384")
        self.assertIn("error 1: out of memory", emulate("m7", code=1))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
