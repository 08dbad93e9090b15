#!/usr/bin/env python3
"""examples/selective_build: built and run as their comments say.

usage: examples.py SOURCE_DIR BUILD_DIR WORK_DIR [unittest arguments]
"""
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE, BUILD, WORK = (Path(a).resolve() for a in sys.argv[1:4])
EXAMPLES, MODEL = SOURCE / "examples/selective_build", SOURCE / "tests/data/modules/chain"


def run(*command, code=0):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=1800)
    assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def build(example, target, *options, name=None):
    folder = WORK / (name or example)
    shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "-G", "Ninja", "-S", EXAMPLES / example, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", *options)
    run("cmake", "--build", folder, "-j", os.environ.get("JOBS", "2"), "--target", target)
    return folder / target


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(WORK, ignore_errors=True)
        run("cmake", "--install", BUILD, "--prefix", WORK / "prefix")
        cls.installed = ("-DPITH_INSTALLED=ON", f"-DCMAKE_PREFIX_PATH={WORK / 'prefix'}")

    def test_one_model(self):
        program = build("one_model", "embed_text", *self.installed, f"-DMODEL={MODEL}", "-DISAS=scalar")
        text = "Two caf\u00e9s, 3 dogs!"
        numbers = [float(n) for n in run(program, MODEL, text).split()]
        whole = run(BUILD / "pith", "similarity", "-m", MODEL, text, text) and subprocess.run(
            [BUILD / "pith", "embed", "-m", MODEL, "--format", "csv"], input=text, capture_output=True, text=True).stdout
        self.assertEqual(numbers, [float(n) for n in whole.split(",")])
        self.assertLess(len((EXAMPLES / "one_model/embed_text.c").read_text().splitlines()), 30)
        self.assertLess(program.stat().st_size, 0.7 * (BUILD / "pith").stat().st_size)

    def test_own_operators(self):
        program = build("advanced", "own_operators", *self.installed)
        model = EXAMPLES / "advanced/model.onnx"
        self.assertEqual(run(program, model), "3.5\n13\n1.5\n")
        self.assertIn("'- Relu' under 'operators:'", run(program, self.other_model(), code=1))
        for source in (EXAMPLES / "advanced").glob("*.c"):
            for line in source.read_text().splitlines():
                self.assertFalse(line.startswith('#include "'), f"{source.name} sees {line}")

    def other_model(self):
        import onnx
        from onnx import helper
        value = helper.make_tensor_value_info
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value("x", onnx.TensorProto.FLOAT, ["n"])],
                                  [value("y", onnx.TensorProto.FLOAT, ["n"])])
        path = WORK / "relu.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
        return path

    def test_options_alone(self):
        """The model's own list, and a list by hand; the other model is refused by both."""
        relu = self.other_model()
        program = build("basic", "run_model", f"-DPITH_SELECT_OPS_MODEL={relu}", "-DPITH_DTYPE_SELECTIVE=ON", "-DPITH_SELECT_ISAS=scalar",
                        f"-DPITH_HOST_COMMAND={BUILD / 'pith'}")
        self.assertEqual(run(program, relu), "y [2] sum 2\n")
        lacks = run(program, SOURCE / "tests/data/yunet/yunet-s-640-other-sizes/model.onnx", code=1)
        self.assertIn("'- Conv' under 'operators:'", lacks)
        self.assertLess(program.stat().st_size, 0.6 * (BUILD / "pith").stat().st_size)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
