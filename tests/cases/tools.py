#!/usr/bin/env python3
"""Small tools around models: info, made-up inputs, tree ensembles.

usage: tools.py PITH SOURCE_DIR [unittest arguments]; needs NumPy, onnx, onnxruntime (tests/requirements.txt).
"""
import json
import os
import random
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from command import SOURCE, Command

CASES = SOURCE / "tests/data/cases"
LIBRARY = max((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*"))


def environment(**variables):
    """The environment without the variables that name a library, and with these."""
    kept = {k: v for k, v in os.environ.items() if k not in ("ORT_DYLIB_PATH", "VIRTUAL_ENV")}
    return {**kept, **{k: str(v) for k, v in variables.items()}}


class Info(Command):
    verb = "info"

    def library(self, **variables):
        return json.loads(self.good("--json", env=environment(**variables)))["libraries"]["onnxruntime"]

    def test_library_is_found(self):
        found = {"found": True, "version": onnxruntime.__version__}
        self.assertEqual(self.library(ORT_DYLIB_PATH=LIBRARY), {**found, "path": str(LIBRARY)})
        package = self.library(VIRTUAL_ENV=sys.prefix)
        self.assertTrue(os.path.samefile(package.pop("path"), LIBRARY))
        self.assertEqual(package, found)

    def test_library_is_missing(self):
        library = self.library(ORT_DYLIB_PATH=self.dir / "none.so")
        self.assertEqual(library["found"], False)
        self.assertIn("none.so", library["why"])


class Names(Command):
    verb = "verify"

    def test_one_size_per_name(self):
        """Inputs [t, b, 3] and [b, 4]: b has one size in each run."""
        for name, runs in (("time-major", 4), ("pyramid", 12)):
            result = self.run_pith("--fusions", "--runs", runs, CASES / f"check-inputs-symbols/{name}.onnx")
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_made_up_inputs(self):
        """`pith compare` makes up inputs that fit each other, and those that are given."""
        model = CASES / "check-inputs-symbols/time-major.onnx"
        np.save(self.dir / "h.npy", np.ones((5, 4), np.float32))
        for given in ((), ("-i", "h=h.npy")):
            result = self.run_pith(model, *given, verb="compare", env=environment(ORT_DYLIB_PATH=LIBRARY))
            self.assertEqual(result.returncode, 0, result.stderr)


class Trees(Command):
    verb = "run"

    def ensemble(self, depth, order, **more):
        """A regressor of complete trees; order: (tree, node) as the file lists them."""
        inner, rnd = 2 ** depth - 1, random.Random(7)
        self.split = {at: (rnd.randrange(3), rnd.gauss(0, 1)) for at in sorted(order)}
        leaves = [at for at in sorted(order) if at[1] >= inner]
        self.weight = {at: rnd.gauss(0, 1) for at in leaves}
        branch = [i < inner for _, i in order]
        node = helper.make_node(
            "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1,
            nodes_treeids=[t for t, _ in order], nodes_nodeids=[i for _, i in order],
            nodes_featureids=[self.split[at][0] for at in order], nodes_values=[self.split[at][1] for at in order],
            nodes_modes=["BRANCH_LEQ" if b else "LEAF" for b in branch],
            nodes_truenodeids=[2 * i + 1 if b else 0 for (_, i), b in zip(order, branch)],
            nodes_falsenodeids=[2 * i + 2 if b else 0 for (_, i), b in zip(order, branch)],
            target_treeids=[t for t, _ in leaves], target_nodeids=[i for _, i in leaves], target_ids=[0] * len(leaves),
            target_weights=[self.weight[at] for at in leaves], **more)
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])])
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[
            helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]), self.dir / "trees.onnx")

    def walk(self, x, trees, depth):
        total = 0.0
        for t in range(trees):
            i = 0
            while i < 2 ** depth - 1:
                feature, value = self.split[t, i]
                i = 2 * i + (1 if x[feature] <= np.float32(value) else 2)
            total += np.float32(self.weight[t, i])
        return total

    def check(self, trees, depth, order, base=0.0, **more):
        self.ensemble(depth, order, **more)
        x = np.random.default_rng(3).normal(size=(8, 3)).astype(np.float32)
        np.save(self.dir / "x.npy", x)
        self.good("trees.onnx", "-i", "x=x.npy", "-o", "out")
        want = [self.walk(row, trees, depth) + base for row in x]
        np.testing.assert_allclose(np.load(self.dir / "out/0_y.npy")[:, 0], want, rtol=1e-5, atol=1e-5)

    def test_nodes_in_any_order(self):
        order = [(t, i) for t in range(3) for i in range(15)]
        shuffled = [at for t in range(3)
                    for at in [(t, 0), *random.Random(t).sample([(t, i) for i in range(1, 15)], 14)]]
        self.check(3, 3, order)
        self.check(3, 3, shuffled)

    def test_base_values(self):
        order = [(t, i) for t in range(2) for i in range(7)]
        self.check(2, 2, order, base=1.5, base_values=[1.5])
        self.check(2, 2, order, base=2.5, base_values_as_tensor=helper.make_tensor("b", TensorProto.FLOAT, [1], [2.5]))

    def test_a_node_twice(self):
        self.ensemble(1, [(0, 0), (0, 1), (0, 2)])
        model = onnx.load(self.dir / "trees.onnx")
        next(a for a in model.graph.node[0].attribute if a.name == "nodes_nodeids").ints[:] = [0, 1, 1]
        onnx.save(model, self.dir / "trees.onnx")
        self.bad(1, "trees.onnx", verb="inspect", says="node 1 of tree 0 is there twice")

    def test_many_nodes(self):
        """160 trees of 1,023 nodes. A search through all nodes for each leaf would take more than a minute."""
        subprocess.run([sys.executable, CASES / "tree-quadratic/make.py", "160"], cwd=self.dir, check=True)
        self.good("trees-160.onnx", verb="inspect")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
