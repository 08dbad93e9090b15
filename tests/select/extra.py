#!/usr/bin/env python3
"""PITH_EXTRA_OPS: an operator outside the tree, compiled into the command and selected like the others.

usage: extra.py SOURCE_DIR BUILD_DIR WORK_DIR [unittest arguments]
"""
import json
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

import small

SOURCE, BUILD, WORK = (Path(a).resolve() for a in sys.argv[1:4])
ADVANCED = SOURCE / "examples/selective_build/advanced"
FOLDER = small.Folder(SOURCE, BUILD, WORK)
LIST = ("--extra", ADVANCED / "operators.def")
COMMANDS = {}


def operator():
    """Compiled as a user would: with the public headers alone."""
    made = WORK / "op.o"
    done = small.run("cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{SOURCE / 'include'}", "-c", ADVANCED / "op_soft_threshold.c", "-o", made)
    assert done.returncode == 0, done.stderr
    return made


def command(name, *options):
    if name not in COMMANDS:
        COMMANDS[name] = FOLDER.command(name, *LIST, *options, parts=[operator()])
    return COMMANDS[name]


def model(name, **attributes):
    nodes = [helper.make_node("SoftThreshold", ["x"], ["a"], name="first", domain="example", **attributes), helper.make_node("Add", ["a", "a"], ["y"])]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", onnx.TensorProto.FLOAT, [3, "n"])], [value("y", onnx.TensorProto.FLOAT, [3, "n"])])
    path = WORK / name
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("example", 1)], ir_version=10), path)
    return path


class Extra(unittest.TestCase):
    def runs(self, pith, path, limit):
        x = np.random.default_rng(1).normal(size=(3, 3000)).astype(np.float32)
        np.save(WORK / "x.npy", x)
        done = small.run(pith, "run", path, "-i", f"x={WORK / 'x.npy'}", "-o", WORK / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        y, limit = np.load(WORK / "out/0_y.npy"), np.float32(limit)
        np.testing.assert_array_equal(y, 2 * (np.sign(x) * np.maximum(np.abs(x) - limit, np.float32(0))))

    def test_whole_build(self):
        pith = command("whole")
        self.runs(pith, model("plain.onnx"), 0.5)
        self.runs(pith, model("given.onnx", limit=0.25), 0.25)
        self.assertEqual(json.loads(small.run(pith, "info", "--json").stdout)["extra_operators"], ["example::SoftThreshold"])
        wrong = small.run(pith, "inspect", model("wrong.onnx", limits=1.0))
        self.assertIn("node 0 'first' (SoftThreshold): SoftThreshold of opset 1 has no attribute 'limits'; it has limit", wrong.stderr)
        self.assertEqual(json.loads(small.run(pith, "inspect", "--json", model("plain.onnx")).stdout)["runtime"], "builtin")

    def test_compiled_models(self):
        """A .pith keeps nodes as they are; opening one needs the operator again."""
        pith, path = command("whole"), WORK / "made.pith"
        done = small.run(pith, "compile", model("plain.onnx"), "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.runs(pith, path, 0.5)
        self.assertIn("SoftThreshold", small.run(BUILD / "pith", "run", path, "-i", f"x={WORK / 'x.npy'}", "-o", WORK / "out").stderr)

    def test_selected(self):
        """From the model to its list, to a build for it, and what a build says that lacks the line."""
        listed = WORK / "ops.yaml"
        done = small.run(command("whole"), "select", "--use", "run", "-o", listed, model("plain.onnx"))
        self.assertEqual(done.returncode, 0, done.stderr)
        text = listed.read_text()
        self.assertIn("  - example::SoftThreshold f32\n", text)
        self.runs(command("small", "--list", listed, "--dtypes", "ON"), model("plain.onnx"), 0.5)
        less = WORK / "less.yaml"
        less.write_text(text.replace("  - example::SoftThreshold f32\n", ""))
        lacks = small.run(command("less", "--list", less), "run", model("plain.onnx"), "-i", f"x={WORK / 'x.npy'}", "-o", WORK / "out")
        self.assertEqual(lacks.returncode, 1)
        self.assertIn("'- example::SoftThreshold' under 'operators:' for node 0 'first' (SoftThreshold)", lacks.stderr)

    def test_the_line_must_say_the_operators_name(self):
        other = WORK / "other.def"
        other.write_text("EXTRA_OP(SoftThreshold, example::Other)\n")
        pith = FOLDER.command("other", "--extra", other, parts=[operator()])
        self.assertIn("PITH_EXTRA_OPS: the list says example::Other, but the operator is example::SoftThreshold",
                      small.run(pith, "inspect", model("plain.onnx")).stderr)

    def test_a_build_without_it(self):
        done = small.run(BUILD / "pith", "inspect", model("plain.onnx"))
        self.assertIn("example.SoftThreshold opset 1 (node 0 'first' (SoftThreshold))", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
