#!/usr/bin/env python3
"""Selective builds with one option and nothing else set, from the configuration to the right numbers.

usage: alone.py PITH SOURCE_DIR WORK_DIR [unittest arguments]
Model is for make test-select, Others for the long tests. One build folder serves all, configured again for each option, as a user would who tries them.
"""
import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

PITH, SOURCE, WORK = (Path(a).resolve() for a in sys.argv[1:4])
DATA = SOURCE / "tests/data"
UNION = DATA / "cases/selected-union"
CHAIN = Path("tests/data/modules/chain")  # relative to the source tree
SMALL = WORK / "small build"
VARIABLES = ("OPS_LIST", "OPS_YAML", "OPS_MODEL", "USE", "ISAS", "ALL")


def run(*command, code=0, **more):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PITH_")}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=3000, env=environment, **more)
    assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout if not code else done.stderr


def build(*options, cwd=SOURCE):
    """The documented line, in a source tree, then the build. Options of earlier calls are taken back."""
    back = [f"-UPITH_SELECT_{v}" for v in VARIABLES] + ["-UPITH_DTYPE_SELECTIVE"] if (SMALL / "CMakeCache.txt").exists() else []
    run("cmake", "-S", SOURCE, "-B", SMALL, *back, *[f"-D{o}" for o in options], cwd=cwd)
    run("cmake", "--build", SMALL, "-j", os.environ.get("JOBS", "2"), "--target", "pith")
    return SMALL / "pith"


def numbers(pith, model, texts=(DATA / "modules/texts.txt").read_text()):
    return np.array([[float(n) for n in line.split(",")] for line in run(pith, "embed", "-m", model, "--format", "csv", input=texts, cwd=SOURCE).splitlines()])


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(SMALL, ignore_errors=True)
        WORK.mkdir(parents=True, exist_ok=True)
        for name, value in (("a", [1, 2, 3]), ("b", [4, 5, 7])):
            np.save(WORK / f"{name}.npy", np.array(value, np.float32))

    def runs(self, pith, model, want):
        shutil.rmtree(WORK / "out", ignore_errors=True)
        run(pith, "run", UNION / model, "-i", f"a={WORK / 'a.npy'}", "-i", f"b={WORK / 'b.npy'}", "-o", WORK / "out")
        (file,) = (WORK / "out").glob("*.npy")
        np.testing.assert_array_equal(np.load(file), np.array(want, np.float32))

    def lacks(self, pith, model, operator):
        said = run(pith, "run", UNION / model, "-i", f"a={WORK / 'a.npy'}", "-i", f"b={WORK / 'b.npy'}", "-o", WORK / "out", code=1)
        self.assertIn(f"'- {operator}' under 'operators:'", said)


class Model(Case):
    def test_model(self):
        """No complete command is named, so one is built; the vectors are those of sentence-transformers."""
        pith = build(f"PITH_SELECT_OPS_MODEL={CHAIN}")
        self.assertTrue((SMALL / "pith_select_host/pith").exists())
        found = numbers(pith, CHAIN)
        want = np.fromfile(SOURCE / CHAIN / "expected.f32", np.float32).reshape(len(found), -1)
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-5)
        np.testing.assert_array_equal(found, numbers(PITH, CHAIN))
        self.assertIn("'search'; add to its list", run(pith, "search", code=1))


class Others(Case):
    def test_2_model_and_uses(self):
        pith = build(f"PITH_SELECT_OPS_MODEL={CHAIN}", "PITH_SELECT_USE=embed,search")
        run(PITH, "embed", "-m", CHAIN, "--format", "npy", "-o", WORK / "index.npy", input="a cat\na dog\ntwo\n", cwd=SOURCE)
        words = ("search", "-m", CHAIN, "--query", "a dog", "--index", WORK / "index.npy")
        self.assertEqual(run(pith, *words, cwd=SOURCE), run(PITH, *words, cwd=SOURCE))

    def test_3_operators(self):
        pith = build("PITH_SELECT_OPS_LIST=Mul,Sub")
        self.runs(pith, "mulsub.onnx", [0, 5, 14])
        self.lacks(pith, "add.onnx", "Add")

    def test_4_list(self):
        """From another folder than the source tree, with a path relative to it."""
        folder = WORK / "lists of mine"
        folder.mkdir(exist_ok=True)
        shutil.copy(UNION / "add.yaml", folder / "my ops.yaml")
        pith = build("PITH_SELECT_OPS_YAML=my ops.yaml", cwd=folder)
        self.runs(pith, "add.onnx", [5, 7, 10])
        self.lacks(pith, "mulsub.onnx", "Mul")

    def test_5_list_and_operators(self):
        pith = build(f"PITH_SELECT_OPS_YAML={UNION / 'add.yaml'}", "PITH_SELECT_OPS_LIST=Mul/f32,Sub/f32", "PITH_DTYPE_SELECTIVE=ON")
        self.runs(pith, "add.onnx", [5, 7, 10])
        self.runs(pith, "mulsub.onnx", [0, 5, 14])

    def test_6_model_of_another_folder(self):
        """Relative to where cmake is started; the build configures itself again from its own folder."""
        folder = WORK / "models of mine"
        folder.mkdir(exist_ok=True)
        shutil.copy(UNION / "mulsub.onnx", folder / "my model.onnx")
        build("PITH_SELECT_OPS_MODEL=my model.onnx", cwd=folder)
        shutil.copy(UNION / "add.onnx", folder / "my model.onnx")  # the model changed: its list does, too
        os.utime(folder / "my model.onnx")
        run("cmake", "--build", SMALL, "-j", os.environ.get("JOBS", "2"), "--target", "pith", cwd=WORK)
        self.runs(SMALL / "pith", "add.onnx", [5, 7, 10])
        self.lacks(SMALL / "pith", "mulsub.onnx", "Mul")

    def test_7_all(self):
        self.runs(build("PITH_SELECT_ALL=ON"), "mulsub.onnx", [0, 5, 14])

    def test_8_instruction_sets(self):
        """Fewer of them, and every operator: the same bits."""
        pith = build("PITH_SELECT_ISAS=scalar")
        np.testing.assert_array_equal(numbers(pith, CHAIN), numbers(PITH, CHAIN))
        left = json.loads(run(pith, "inspect", CHAIN, "--json", cwd=SOURCE))["left_out"]
        self.assertEqual({p["name"] for p in left}, {"avx2", "avx512"})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
