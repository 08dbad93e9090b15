#!/usr/bin/env python3
"""A whole selective build, as a user makes it: what it holds, and that it gives the bits of the complete one.

usage: build.py PITH SOURCE_DIR WORK_DIR [unittest arguments]
"""
import subprocess
import sys
import unittest
from pathlib import Path

PITH, SOURCE, WORK = (Path(a).resolve() for a in sys.argv[1:4])
DATA = SOURCE / "tests/data"
WORK.mkdir(parents=True, exist_ok=True)


def configure(name, *options):
    return subprocess.run(["cmake", "-G", "Ninja", "-S", SOURCE, "-B", WORK / name, "-DPITH_BUILD_IMAGE=OFF", "-DPITH_BUILD_SHARED=OFF",
                           f"-DPITH_HOST_COMMAND={PITH}", *options], capture_output=True, text=True, timeout=600)


def embed(pith, model):
    done = subprocess.run([pith, "embed", "-m", model, "--format", "f32"], input=b"a cat\nTwo caf\xc3\xa9s, 3 dogs!\n\n" + b"word " * 90,
                          capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Build(unittest.TestCase):
    def test_wrong_options(self):
        """options.py has all of them; here, that the real configuration asks."""
        done = configure("refused", "-DPITH_SELECT_ALL=ON", "-DPITH_SELECT_OPS_LIST=Add")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("PITH_SELECT_ALL and PITH_SELECT_OPS_LIST exclude each other", " ".join(done.stderr.split()))

    def test_one_model_one_instruction_set(self):
        """Without AVX the bits are those of the best instruction set of this machine."""
        model = DATA / "modules/chain"
        done = configure("small", f"-DPITH_SELECT_OPS_MODEL={model}", "-DPITH_DTYPE_SELECTIVE=ON", "-DPITH_SELECT_ISAS=scalar")
        self.assertEqual(done.returncode, 0, done.stderr)
        built = subprocess.run(["cmake", "--build", WORK / "small", "-j", "2", "--target", "pith"], capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stdout)
        pith = WORK / "small/pith"
        self.assertEqual(embed(pith, model), embed(PITH, model))
        self.assertLess(pith.stat().st_size, PITH.stat().st_size * 0.8)
        listed = subprocess.run([pith, "--help", "all"], capture_output=True, text=True).stdout
        for verb, there in (("embed", True), ("detect", False), ("train", False), ("search", False), ("select", False), ("classify", False)):
            self.assertEqual(f"\n  {verb} " in listed, there, f"{verb} in {listed}")
        other = subprocess.run([pith, "inspect", DATA / "models/bert-base-script14-eager"], capture_output=True, text=True, timeout=300)
        self.assertEqual(other.returncode, 1)
        self.assertIn("'- onnx' under 'readers:'", other.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
