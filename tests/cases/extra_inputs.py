#!/usr/bin/env python3
"""ONNX exports with more inputs than a text: the number of a task, and an empty cache of earlier tokens.

usage: extra_inputs.py PITH SOURCE_DIR [unittest arguments]; needs NumPy, onnx, ONNX Runtime and tokenizers
(tests/requirements.txt). The right values are those of ONNX Runtime, which is fed by hand.
"""
import json
import sys
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh
from tokenizers import Tokenizer, models, pre_tokenizers

from command import Command

WORDS = "[PAD] [UNK] hello world a cat sat".split()
TEXTS = ["hello world", "a cat sat", "world"]
HEADS, SIZE, TASKS = 2, 4, ["retrieval.query", "retrieval.passage", "separation"]
HIDDEN = HEADS * SIZE


def value(name, type, *dims):
    return h.make_tensor_value_info(name, type, dims)


class Extra(Command):
    def folder(self, nodes, inputs, weights, **config):
        """A model directory with this network, whose input_ids and attention_mask are given."""
        inputs = [value("input_ids", T.INT64, "batch", "sequence"), *inputs]
        outputs = [value("last_hidden_state", T.FLOAT, "batch", "sequence", HIDDEN)]
        graph = h.make_graph(nodes, "g", inputs, outputs, [nh.from_array(w, n) for n, w in weights.items()])
        model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, self.dir / "model.onnx")
        tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.save(str(self.dir / "tokenizer.json"))
        (self.dir / "config.json").write_text(json.dumps({"model_type": "other", **config}))
        return self.dir

    def reference(self, **more):
        """Means of the rows that ONNX Runtime gives, one text at a time."""
        session = onnxruntime.InferenceSession(self.dir / "model.onnx", providers=["CPUExecutionProvider"])
        rows = []
        for text in TEXTS:
            ids = np.array([[WORDS.index(w) for w in text.split()]], np.int64)
            feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids),
                     "position_ids": np.arange(ids.size, dtype=np.int64)[None], **more}
            names = {i.name for i in session.get_inputs()}
            rows.append(session.run(["last_hidden_state"], {k: v for k, v in feeds.items() if k in names})[0][0].mean(0))
        return rows

    def embed(self, *arguments):
        return self.rows("-m", self.dir, *arguments, stdin="\n".join(TEXTS).encode())

    def tasked(self, shape, type=T.INT64):
        random = np.random.default_rng(3)
        weights = {"words": random.standard_normal((len(WORDS), HIDDEN)).astype(np.float32),
                   "tasks": random.standard_normal((len(TASKS), HIDDEN)).astype(np.float32)}
        nodes = [h.make_node("Gather", ["words", "input_ids"], ["x"]), h.make_node("Gather", ["tasks", "task_id"], ["t"]),
                 h.make_node("Mul", ["x", "t"], ["last_hidden_state"])]
        return nodes, [value("task_id", type, *shape)], weights

    def test_task(self):
        for shape in ((), (1,)):
            for type, dtype in ((T.INT64, np.int64), (T.INT32, np.int32)):
                nodes, inputs, weights = self.tasked(shape, type)
                self.folder(nodes, inputs, weights, lora_adaptations=TASKS)
                for number, task in enumerate(TASKS):
                    with self.subTest(shape=shape, type=type, task=task):
                        wanted = self.reference(task_id=np.full(shape, number, dtype))
                        np.testing.assert_allclose(self.embed("--route", task), wanted, atol=1e-6)

    def test_default_task(self):
        nodes, inputs, weights = self.tasked(())
        self.folder(nodes, inputs, weights, lora_adaptations=TASKS, default_task=TASKS[2])
        np.testing.assert_allclose(self.embed(), self.reference(task_id=np.array(2)), atol=1e-6)
        self.assertIn(TASKS[2], self.good("-m", self.dir, verb="inspect").decode())

    def test_no_task(self):
        nodes, inputs, weights = self.tasked(())
        self.folder(nodes, inputs, weights, lora_adaptations=TASKS)
        self.bad(1, "-m", self.dir, stdin=b"a", says=("task_id", "--route", *TASKS))
        self.bad(1, "-m", self.dir, "--route", "none", stdin=b"a", says=("'none'", *TASKS))
        self.folder(nodes, inputs, weights)
        self.bad(1, "-m", self.dir, stdin=b"a", says=("task_id", "lora_adaptations"))

    def test_compiled(self):
        """A compiled file does not keep the task."""
        nodes, inputs, weights = self.tasked(())
        self.folder(nodes, inputs, weights, lora_adaptations=TASKS)
        self.bad(1, self.dir, "--route", TASKS[1], "-o", "m.pith", verb="compile", says="task_id")

    def cached(self, **changes):
        """One layer of attention as optimum exports decoders: keys and values of earlier tokens go before the new ones."""
        random = np.random.default_rng(5)
        weights = {n: random.standard_normal((HIDDEN, HIDDEN)).astype(np.float32) for n in "qkvo"}
        weights |= {"words": random.standard_normal((len(WORDS), HIDDEN)).astype(np.float32),
                    "places": random.standard_normal((16, HIDDEN)).astype(np.float32),
                    "split": np.array([0, 0, HEADS, SIZE], np.int64), "join": np.array([0, 0, HIDDEN], np.int64),
                    "axes": np.array([1, 2], np.int64), "one": np.array(1, np.float32), "many": np.array(-1e9, np.float32)}
        nodes = [h.make_node("Gather", ["words", "input_ids"], ["w"]), h.make_node("Gather", ["places", "position_ids"], ["p"]),
                 h.make_node("Add", ["w", "p"], ["x"])]
        for n in "qkv":
            nodes += [h.make_node("MatMul", ["x", n], [n + "1"]), h.make_node("Reshape", [n + "1", "split"], [n + "2"]),
                      h.make_node("Transpose", [n + "2"], [n + "3"], perm=[0, 2, 1, 3])]
        nodes += [h.make_node("Concat", ["past_key_values.0.key", "k3"], ["present.0.key"], axis=2),
                  h.make_node("Concat", ["past_key_values.0.value", "v3"], ["present.0.value"], axis=2),
                  h.make_node("Transpose", ["present.0.key"], ["kt"], perm=[0, 1, 3, 2]),
                  h.make_node("MatMul", ["q3", "kt"], ["s"]), h.make_node("Cast", ["attention_mask"], ["m1"], to=T.FLOAT),
                  h.make_node("Sub", ["one", "m1"], ["m2"]), h.make_node("Mul", ["m2", "many"], ["m3"]),
                  h.make_node("Unsqueeze", ["m3", "axes"], ["m4"]), h.make_node("Add", ["s", "m4"], ["s2"]),
                  h.make_node("Softmax", ["s2"], ["s3"], axis=-1), h.make_node("MatMul", ["s3", "present.0.value"], ["a1"]),
                  h.make_node("Transpose", ["a1"], ["a2"], perm=[0, 2, 1, 3]), h.make_node("Reshape", ["a2", "join"], ["a3"]),
                  h.make_node("MatMul", ["a3", "o"], ["last_hidden_state"])]
        past = {f"past_key_values.0.{n}": ("batch", HEADS, "past", SIZE) for n in ("key", "value")} | changes
        inputs = [value("attention_mask", T.INT64, "batch", "total"), value("position_ids", T.INT64, "batch", "sequence")]
        return nodes, inputs + [value(n, T.FLOAT, *dims) for n, dims in past.items()], weights

    def test_empty_cache(self):
        self.folder(*self.cached())
        empty = np.zeros((1, HEADS, 0, SIZE), np.float32)
        wanted = self.reference(**{f"past_key_values.0.{n}": empty for n in ("key", "value")})
        np.testing.assert_allclose(self.embed(), wanted, atol=1e-5)
        rows = self.embed()
        self.assertEqual(rows, self.embed("--batch-tokens", "1"))
        self.assertEqual(self.run_pith(self.dir, "-o", "m.pith", verb="compile").returncode, 0)
        self.assertEqual(rows, self.rows("-m", "m.pith", stdin="\n".join(TEXTS).encode()))

    def test_cache_of_fixed_length(self):
        self.folder(*self.cached(**{"past_key_values.0.key": ("batch", HEADS, 3, SIZE)}))
        self.bad(1, "-m", self.dir, stdin=b"a", says=("past_key_values.0.key", "use_cache=False"))

    def test_branch_without_a_cache(self):
        """A merged decoder: use_cache_branch is false."""
        weights = {"words": np.random.default_rng(7).standard_normal((len(WORDS), HIDDEN)).astype(np.float32)}
        out = [value("y", T.FLOAT, "batch", "sequence", HIDDEN)]
        branches = {f"{name}_branch": h.make_graph([h.make_node(op, ["x"], ["y"])], name, [], out)
                    for name, op in (("then", "Neg"), ("else", "Tanh"))}
        nodes = [h.make_node("Gather", ["words", "input_ids"], ["x"]),
                 h.make_node("If", ["use_cache_branch"], ["last_hidden_state"], **branches)]
        for shape in ((), (1,)):
            self.folder(nodes, [value("use_cache_branch", T.BOOL, *shape)], weights)
            wanted = self.reference(use_cache_branch=np.zeros(shape, bool))
            np.testing.assert_allclose(self.embed(), wanted, atol=1e-6)

    def test_others_are_refused(self):
        weights = {"words": np.ones((len(WORDS), HIDDEN), np.float32)}
        nodes = [h.make_node("Gather", ["words", "input_ids"], ["x"]), h.make_node("Add", ["x", "speaker"], ["last_hidden_state"])]
        self.folder(nodes, [value("speaker", T.FLOAT, 1)], weights)
        self.bad(1, "-m", self.dir, stdin=b"a", says="'speaker' cannot be made from text")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
