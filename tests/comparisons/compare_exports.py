#!/usr/bin/env python3
"""Exports the small model directories in every way and runs the files in ONNX Runtime. Results are compared with those
of transformers and sentence-transformers, which lie in the directories.

usage: compare_exports.py PITH DATA"""
import json
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from model_files import DATA, PITH, Files, pith

# Other engines add numbers in another order, and their exp and erf are other polynomials.
NEAR = {"f32": 2e-5, "f16": 2e-2}


class Exports(Files):
    verb = "export"

    def export(self, model, *arguments, name="model.onnx"):
        """The file, checked by ONNX, and what the command says of it."""
        path = self.dir / name
        done = pith("export", "--force", "--json", model, "-o", path, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        if "--fuse" not in arguments:  # the checker does not know SimplifiedLayerNormalization
            onnx.checker.check_model(str(path), full_check=True)
        return path, json.loads(done.stdout)

    def run_file(self, path, feeds):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        types = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
        inputs = {i.name: feeds[i.name].astype(types[i.type]) for i in session.get_inputs()}
        return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


class Networks(Exports):
    """Directories of one network each, with the output that transformers computes."""

    def feeds(self, directory):
        feeds = {p.stem: np.fromfile(p, np.int64).reshape(3, 45) for p in directory.glob("*.i64")}
        feeds.setdefault("token_type_ids", np.zeros((3, 45), np.int64))
        return feeds

    def compare(self, directory, near, *arguments):
        path, said = self.export(directory, *arguments)
        feeds = self.feeds(directory)
        rows = self.run_file(path, feeds)["last_hidden_state"]
        wanted = np.fromfile(directory / "last_hidden_state.f32", np.float32).reshape(3, 45, -1)
        seen = feeds["attention_mask"] == 1
        np.testing.assert_allclose(rows[seen], wanted[seen], atol=near * max(1, np.abs(wanted).max()), rtol=0,
                                   err_msg=f"{directory.name} {arguments}")
        return said

    def test_every_family(self):
        directories = sorted(p for p in (DATA / "hf").iterdir() if (p / "last_hidden_state.f32").exists())
        self.assertGreater(len(directories), 25)
        for directory in directories:
            with self.subTest(directory.name):
                self.assertEqual(self.compare(directory, NEAR["f32"])["opset"], 17)
                self.assertEqual(self.compare(directory, NEAR["f32"], "--opset", 23)["opset"], 23)
                said = self.compare(directory, NEAR["f16"], "--dtype", "f16", "--int32-inputs", "--opset", 20)
                self.assertEqual(said["clamped"], 0)
                self.assertLess(said["max_difference"] or 0, 0.1)

    def test_fused(self):
        """Every architecture with operators of com.microsoft: the same rows, and one attention per layer."""
        fused = ("--fuse", "com.microsoft")
        directories = sorted(p for p in (DATA / "hf").iterdir() if (p / "last_hidden_state.f32").exists())
        for directory in directories:
            with self.subTest(directory.name):
                self.compare(directory, NEAR["f32"], *fused)
                ops = [n.op_type for n in onnx.load(self.dir / "model.onnx").graph.node]
                layers = json.loads((directory / "config.json").read_text())
                layers = next(layers[k] for k in ("num_hidden_layers", "n_layers", "n_layer", "num_layers") if k in layers)
                attention = sum(op in ("Attention", "MultiHeadAttention", "GroupQueryAttention") for op in ops)
                if not directory.name.startswith(("bert-relative", "deberta", "gemma2", "t5", "mt5", "umt5")):  # their scores have more terms
                    self.assertEqual(attention, layers, ops)
                self.compare(directory, NEAR["f32"], *fused, "--opset", 23)
                self.compare(directory, NEAR["f16"], *fused, "--dtype", "f16", "--int32-inputs")

    def test_external(self):
        path, said = self.export(DATA / "hf/bert", "--external")
        self.assertTrue((self.dir / "model.onnx.data").stat().st_size == said["data_bytes"] > 0)
        plain, _ = self.export(DATA / "hf/bert", name="plain.onnx")
        feeds = self.feeds(DATA / "hf/bert")
        np.testing.assert_array_equal(*(self.run_file(p, feeds)["last_hidden_state"] for p in (path, plain)))
        self.assertEqual(path.stat().st_size, said["bytes"])

    def test_same_bytes(self):
        first, _ = self.export(DATA / "hf/modernbert", "--dtype", "f16", name="a.onnx")
        second, _ = self.export(DATA / "hf/modernbert", "--dtype", "f16", name="b.onnx")
        self.assertEqual(first.read_bytes(), second.read_bytes())

    def test_bf16(self):
        """ONNX Runtime has no such kernels for the CPU, so that Pith runs the file and says how far it is off."""
        path, said = self.export(DATA / "hf/qwen3", "--dtype", "bf16")
        self.assertLess(said["max_difference"] or 0, 0.2)
        types = {t.data_type for t in onnx.load(path).graph.initializer}
        self.assertIn(onnx.TensorProto.BFLOAT16, types)


class Pooled(Exports):
    """Directories of sentence-transformers, with the vectors that it gives."""

    def ids(self, directory, texts):
        """Padded to one length. A static model is fed no special tokens, which the tokenizer alone does not know."""
        lines = pith("tokenize", "-m", directory, *["--no-specials"] * (directory.name == "static"),
                     text="".join(t + "\n" for t in texts)).stdout.splitlines()
        ids = [json.loads(line) for line in lines]
        length = max(map(len, ids))
        padded = np.array([row + [0] * (length - len(row)) for row in ids])
        mask = np.array([[1] * len(row) + [0] * (length - len(row)) for row in ids])
        return {"input_ids": padded, "attention_mask": mask, "token_type_ids": np.zeros_like(padded)}

    def test_every_directory(self):
        texts = (DATA / "modules/texts.txt").read_text().splitlines()
        directories = sorted(p for p in (DATA / "modules").iterdir() if (p / "expected.f32").exists())
        self.assertGreater(len(directories), 15)
        for directory in directories:
            with self.subTest(directory.name):
                wanted = np.fromfile(directory / "expected.f32", np.float32).reshape(len(texts), -1)
                if directory.name == "word-weights":  # its sums are divided by weights, which no node of the file does
                    refused = pith("export", "--pool", directory, "-o", self.dir / "refused.onnx")
                    self.assertEqual(refused.returncode, 1)
                    self.assertIn("cannot be exported", refused.stderr)
                    continue
                path, said = self.export(directory, "--pool", "--fuse", "com.microsoft")
                self.assertLess(said["max_difference"], 1e-5)
                path, said = self.export(directory, "--pool")
                self.assertLess(said["max_difference"], 1e-5)
                if directory.name.startswith("model2vec"):
                    continue  # its texts are cut by characters, and tokens are left out: the command's own check knows how
                prompt = json.loads((directory / "config_sentence_transformers.json").read_text()).get("default_prompt_name") \
                    if (directory / "config_sentence_transformers.json").exists() else None
                if prompt:
                    continue  # expected.f32 is with the prompt, which is a matter of the tokenizer
                calls = [[t] for t in texts] if directory.name == "cnn" else [texts]  # a convolution sees the padding
                results = [self.run_file(path, self.ids(directory, call)) for call in calls]
                self.assertEqual(list(results[0]), ["sentence_embedding"])
                vectors = np.concatenate([r["sentence_embedding"] for r in results])
                self.assertEqual(vectors.dtype, np.float32)
                np.testing.assert_allclose(vectors, wanted, atol=2e-5, rtol=2e-5)

    def test_poolings(self):
        directory, texts = DATA / "modules/dense-plain", ["a b c", "b", "c a b b"]
        for pooling in ("cls", "mean", "max", "last"):
            for more in ([], ["--no-normalize"]):
                with self.subTest(pooling=pooling, more=more):
                    path, said = self.export(directory, "--pool", "--pooling", pooling, *more)
                    self.assertLess(said["max_difference"], 1e-5)

    def test_pooled_in_f32(self):
        """Only the network is narrowed: nothing of the pooling and the modules behind it is."""
        path, said = self.export(DATA / "modules/dense-residual", "--pool", "--dtype", "f16")
        self.assertLess(said["max_difference"], 1e-2)
        graph = onnx.load(path).graph
        types = {t.name: t.data_type for t in graph.initializer}
        pooling = [n for n in graph.node if n.name.startswith("/pooling")]
        self.assertGreater(len(pooling), 5)
        self.assertIn(onnx.TensorProto.FLOAT16, types.values())
        for node in pooling:
            self.assertNotIn(onnx.TensorProto.FLOAT16, [types.get(i) for i in node.input] + [a.i for a in node.attribute])

    def test_directory(self):
        """The files beside the network make it a directory that Pith opens, with the same vectors."""
        texts = (DATA / "modules/texts.txt").read_text()
        for model in ("chain", "dense", "prompt-default", "lower", "cnn"):
            for more in ([], ["--pool"]):
                with self.subTest(model, more=more):
                    out = self.dir / f"{model}{len(more)}"
                    done = pith("export", DATA / "modules" / model, "-o", f"{out}/", *more)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn("largest difference", done.stderr)
                    rows = [[json.loads(line) for line in pith("embed", "-m", m, text=texts).stdout.splitlines()]
                            for m in (DATA / "modules" / model, out)]
                    np.testing.assert_allclose(*rows, atol=1e-6)


class Refused(Exports):
    def test_refused(self):
        bert, out = DATA / "hf/bert", self.dir / "x.onnx"
        (self.dir / "old.onnx").write_bytes(b"precious")
        self.fails("exists; --force replaces it", bert, "-o", self.dir / "old.onnx")
        self.assertEqual((self.dir / "old.onnx").read_bytes(), b"precious")
        self.fails("-o is needed", bert, code=2)
        self.fails("--opset", bert, "-o", out, "--opset", 12, code=2)
        self.fails("go with --pool", bert, "-o", out, "--dim", 8, code=2)
        self.fails("dim 100 is not between 1 and", DATA / "modules/chain", "-o", out, "--pool", "--dim", 100)
        self.fails("cannot be written", bert, "-o", self.dir / "missing/x.onnx")
        subprocess.run([PITH, "compile", bert, "-o", self.dir / "bert.pith"], check=True, capture_output=True)
        self.fails("a compiled model cannot be exported", self.dir / "bert.pith", "-o", out)

    def test_no_space(self):
        if Path("/dev/full").exists():
            done = pith("export", "--force", DATA / "hf/bert", "-o", "/dev/full")
            self.assertEqual(done.returncode, 1)
            self.assertIn("No space left", done.stderr)

    def test_not_a_number(self):
        """A weight that is NaN is named when it is narrowed."""
        directory = self.dir / "bad"
        subprocess.run(["cp", "-r", DATA / "hf/bert", directory], check=True)
        weights = bytearray((directory / "model.safetensors").read_bytes())
        weights[-4:] = np.float32(np.nan).tobytes()
        (directory / "model.safetensors").write_bytes(weights)
        self.fails("has a NaN", directory, "-o", self.dir / "x.onnx", "--dtype", "f16")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
