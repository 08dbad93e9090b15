#!/usr/bin/env python3
"""Quantises the small models in every way. The numbers in the files are decoded here, as the operators' documents say, and
must be at least as near to the weights as plain rounding; ONNX Runtime and Pith must compute the same from the files.

usage: compare_quantized.py PITH DATA"""
import json
import os
import subprocess
import sys
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import blocks_in_bytes
from model_files import DATA, PITH, Files, pith



def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def unpacked(packed, bits, count):
    """The last axis of bytes as `count` codes, the low bits first."""
    codes = packed if bits == 8 else np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)
    return codes[..., :count].astype(np.float64)


def decoded(codes, scales, zeros, bits, block):
    """Rows of codes [n, k] in blocks."""
    blocks = scales.shape[1]
    zeros = np.full((len(codes), blocks), 2.0 ** (bits - 1)) if zeros is None else unpacked(zeros, bits, blocks)
    wide = lambda x: np.repeat(x, block, axis=1)[:, :codes.shape[1]]
    return (codes - wide(zeros)) * wide(scales.astype(np.float64))


def plainly_rounded(rows, bits, block, asymmetric):
    """Each block on the scale that reaches its ends, rounded to nearest."""
    out, most = np.zeros_like(rows, dtype=np.float64), 2 ** bits - 1
    for at in range(0, rows.shape[1], block):
        part = rows[:, at:at + block].astype(np.float64)
        if asymmetric:
            low, high = np.minimum(part.min(1, keepdims=True), 0), np.maximum(part.max(1, keepdims=True), 0)
            scale = np.maximum(high - low, 1e-30) / most
            zero = np.round(-low / scale)
            out[:, at:at + block] = (np.clip(np.round(part / scale) + zero, 0, most) - zero) * scale
        else:
            far = np.take_along_axis(part, np.abs(part).argmax(1)[:, None], axis=1)
            scale = np.where(far == 0, 1, far) / -(2 ** (bits - 1))
            out[:, at:at + block] = np.clip(np.round(part / scale), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1) * scale
    return out


class Quantized(Files):
    verb = "quantize"

    def quantize(self, model, *arguments, name="model.onnx"):
        path = self.dir / name
        done = pith("quantize", "--force", "--json", model, "-o", path, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        onnx.checker.check_model(str(path), full_check=True)
        return path, json.loads(done.stdout)

    def plain(self, model):
        path = self.dir / "plain.onnx"
        done = pith("export", "--force", "--quiet", model, "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def feeds(self, directory):
        feeds = {p.stem: np.fromfile(p, np.int64).reshape(3, 45) for p in directory.glob("*.i64")}
        feeds.setdefault("token_type_ids", np.zeros((3, 45), np.int64))
        return feeds

    def run_in_onnxruntime(self, path, feeds):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})[0]

    def run_in_pith(self, path, feeds):
        arguments = []
        for entry in onnx.load(path).graph.input:
            np.save(self.dir / f"{entry.name}.npy", feeds[entry.name])
            arguments += ["-i", f"{entry.name}={self.dir / entry.name}.npy"]
        done = pith("run", path, *arguments, "-o", self.dir / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(next((self.dir / "out").glob("0_*.npy")))


class Codes(Quantized):
    """What is in the files."""

    def tensors(self, path):
        graph = onnx.load(path).graph
        return graph, {t.name: numpy_helper.to_array(t) for t in graph.initializer}

    def check_near(self, rows, got, bits, block, asymmetric, name):
        wanted = plainly_rounded(rows, bits, block, asymmetric)
        error, plain = ((x - rows) ** 2 for x in (got, wanted))
        self.assertLessEqual(error.sum(), plain.sum() * 1.0001 + 1e-12, name)
        self.assertLess(np.abs(got - rows).max(), np.abs(rows).max() / (5 if bits == 4 else 100), name)

    def weights(self, model):
        graph, tensors = self.tensors(self.plain(model))
        matmuls = {n.name: tensors[n.input[1]] for n in graph.node if n.op_type == "MatMul" and n.input[1] in tensors}
        tables = {n.name: tensors[n.input[0]] for n in graph.node if n.op_type == "Gather" and n.input[0] in tensors}
        return matmuls, tables

    def test_blocks(self):
        model = DATA / "hf/bert"
        matmuls, tables = self.weights(model)
        for scheme, block, table, more in [("q4", 16, 8, []), ("q4", 32, 4, ["--asymmetric"]), ("q4", 64, 4, []),
                                           ("q8", 16, 4, []), ("q8", 256, 8, ["--asymmetric"]), ("q4", 128, 8, [])]:
            with self.subTest(scheme=scheme, block=block, more=more):
                path, said = self.quantize(model, "--scheme", scheme, "--block", block, "--table", table,
                                           "--table-block", 16, *more)
                graph, tensors = self.tensors(path)
                seen = {"MatMulNBits": 0, "GatherBlockQuantized": 0}
                for node in graph.node:
                    if node.op_type not in seen:
                        continue
                    seen[node.op_type] += 1
                    a, inputs = attributes(node), [tensors.get(i) for i in node.input]
                    if node.op_type == "MatMulNBits":
                        _, b, scales, *zeros = inputs
                        codes = unpacked(b.reshape(a["N"], -1), a["bits"], a["K"])
                        rows = matmuls[node.name.removesuffix("/MatMulNBits")].T
                        self.assertEqual((a["block_size"], a["bits"]), (block, int(scheme[1])))
                    else:
                        b, _, scales, *zeros = inputs
                        rows = tables[node.name.removesuffix("/GatherBlockQuantized")]
                        codes = unpacked(b, a["bits"], rows.shape[1])
                        self.assertEqual((a["block_size"], a["bits"]), (16, table))
                    got = decoded(codes, scales, zeros[0] if zeros else None, a["bits"], a["block_size"])
                    asymmetric = bool(more) and node.op_type == "MatMulNBits"
                    self.assertEqual(bool(zeros), asymmetric)
                    if node.op_type == "MatMulNBits":  # 0 is not written
                        self.assertEqual(a.get("accuracy_level", 0), 4 if scheme == "q4" else 0)
                    self.check_near(rows, got, a["bits"], a["block_size"], asymmetric, node.name)
                self.assertEqual((seen["MatMulNBits"], seen["GatherBlockQuantized"]), (said["matmuls"], said["tables"]))
                self.assertGreater(said["matmuls"], 10)

    def test_int8(self):
        matmuls, tables = self.weights(DATA / "hf/bert")
        for reach, more in [(127, []), (63, ["--reduce-range"])]:
            path, said = self.quantize(DATA / "hf/bert", "--no-per-row", *more)
            graph, tensors = self.tensors(path)
            makers = {o: n for n in graph.node for o in n.output}
            readers = {i: n for n in graph.node for i in n.input}
            products = [n for n in graph.node if n.op_type == "MatMulInteger"]
            self.assertEqual(len(products), said["matmuls"])
            for node in products:
                codes, rows = tensors[node.input[1]], matmuls[node.name.removesuffix("/MatMulInteger")]
                self.assertEqual(codes.dtype, np.int8)
                self.assertLessEqual(np.abs(codes.astype(int)).max(), reach)
                both = makers[readers[readers[node.output[0]].output[0]].input[1]]
                self.assertEqual(makers[both.input[0]].op_type, "DynamicQuantizeLinear")
                scale = tensors[both.input[1]]
                np.testing.assert_allclose(scale, np.abs(rows).max(0) / reach, rtol=1e-5)
                np.testing.assert_allclose(codes * scale, rows, atol=np.abs(rows).max() / reach * 0.51)
            self.assertTrue(all(not n.domain for n in graph.node))


class Results(Quantized):
    """What engines compute."""

    def test_every_family(self):
        near = {"int8": 0.998, "int8 --no-per-row": 0.998, "q8": 0.999, "q4": 0.93, "q4 --accuracy 0": 0.93}
        directories = sorted(p for p in (DATA / "hf").iterdir() if (p / "last_hidden_state.f32").exists())
        self.assertGreater(len(directories), 25)
        for directory in directories:
            feeds = self.feeds(directory)
            seen = feeds["attention_mask"] == 1
            wanted = np.fromfile(directory / "last_hidden_state.f32", np.float32).reshape(3, 45, -1)[seen]
            for scheme, least in near.items():
                with self.subTest(directory.name, scheme=scheme):
                    path, _ = self.quantize(directory, "--scheme", *scheme.split())
                    rows = self.run_in_onnxruntime(path, feeds)[seen]
                    cosines = (rows * wanted).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(wanted, axis=1)
                    self.assertGreater(cosines.mean(), least)
                    if scheme.startswith("q"):  # else Pith gives each text scales of its own
                        off = np.abs(self.run_in_pith(path, feeds)[seen] - rows) / max(1, np.abs(rows).max())
                        if scheme == "q4":  # inputs in 8 bits: a code may be the next one
                            self.assertLess(off.mean(), 3e-3)
                            self.assertLess(off.max(), 0.03)
                        else:
                            self.assertLess(off.max(), 3e-5)

    def test_pith_with_int8(self):
        """One text has the same scales in both engines. A code may be the next one where a product is near the middle."""
        directory = DATA / "hf/bert"
        feeds = {k: v[:1] for k, v in self.feeds(directory).items()}
        path, _ = self.quantize(directory, "--no-per-row")
        theirs, ours = self.run_in_onnxruntime(path, feeds), self.run_in_pith(path, feeds)
        np.testing.assert_allclose(ours, theirs, atol=0.03)
        self.assertLess(np.abs(ours - theirs).mean(), 1e-3)

    def test_rows(self):
        """With scales of rows a text has the same vectors alone and beside others; with one scale it has not."""
        directory, off = DATA / "hf/bert", {}
        feeds = self.feeds(directory)
        seen = feeds["attention_mask"][2].sum()
        for more in ((), ("--no-per-row",)):
            path, _ = self.quantize(directory, *more)
            together = self.run_in_onnxruntime(path, feeds)[2, :seen]
            alone = self.run_in_onnxruntime(path, {k: v[2:, :seen] for k, v in feeds.items()})[0]
            off[more] = np.abs(together - alone).mean()
        self.assertLess(off[()], 1e-5)
        self.assertGreater(off["--no-per-row",], 1e-4)

    @unittest.skipUnless(os.environ.get("PITH_TEST_LONG"), "takes long: make test-long")
    def test_calibrate(self):
        """On texts that were not among those of the calibration, MiniLM of 4 bits comes much nearer."""
        lines = (DATA / "sts/stsb-en-dev.csv").read_text().splitlines()
        (self.dir / "some.txt").write_text("\n".join(line.split(",")[0] for line in lines[:800]))
        (self.dir / "others.txt").write_text("\n".join(line.split(",")[0] for line in lines[-400:]))
        said = {}
        for what in ((), ("--calibrate", "vocabulary"), ("--calibrate", self.dir / "some.txt")):
            path, said[what[1:]] = self.quantize("all-MiniLM-L6-v2", "--scheme", "q4", *what, "--eval",
                                                 self.dir / "others.txt")
            self.assertLess(path.stat().st_size, 20e6)
        plain, made, drawn = (report["mean_difference"] for report in said.values())
        self.assertLess(plain, 0.035)
        self.assertLess(made, 0.8 * plain)
        self.assertLess(drawn, 0.75 * plain)
        self.assertGreater(said[self.dir / "some.txt",]["overlap"], said[()]["overlap"])

    def test_onnx_files(self):
        """Files of exporters, with opsets of their own, Gemm and shared weights."""
        for name in ("bert-base-script11-eager", "bert-rerank-script17-sdpa", "bert-base-dynamo20-eager",
                     "distilbert-base-script17-sdpa", "modernbert-base-dynamo20-sdpa", "qwen3-base-script17-sdpa"):
            model = next((DATA / "models" / name).glob("*.onnx"))
            for scheme in ("int8", "q8", "q4"):
                with self.subTest(name, scheme=scheme):
                    path, said = self.quantize(model, "--scheme", scheme)
                    self.assertGreater(said["matmuls"], 4)
                    self.assertLess(said["bytes"], model.stat().st_size)
                    onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def test_same_bytes(self):
        for scheme in ("int8", "q4"):
            first, second = (self.quantize(DATA / "hf/modernbert", "--scheme", scheme, name=n)[0] for n in ("a.onnx", "b.onnx"))
            self.assertEqual(first.read_bytes(), second.read_bytes())

    def test_keep(self):
        everything, _ = self.quantize(DATA / "hf/bert", "--scheme", "q8")
        path, said = self.quantize(DATA / "hf/bert", "--scheme", "q8", "--keep-f32", "intermediate", "--table", "f32",
                                   name="kept.onnx")
        names = [n.name for n in onnx.load(path).graph.node if n.op_type == "MatMulNBits"]
        self.assertEqual((said["kept"], said["tables"]), (2, 0))
        self.assertEqual([n for n in names if "intermediate" in n], [])
        self.assertEqual(len(names), said["matmuls"])
        self.assertGreater(path.stat().st_size, everything.stat().st_size)

    def test_external(self):
        path, said = self.quantize(DATA / "hf/bert", "--scheme", "q4", "--external")
        self.assertEqual((self.dir / "model.onnx.data").stat().st_size, said["data_bytes"])
        other, _ = self.quantize(DATA / "hf/bert", "--scheme", "q4", name="other.onnx")
        feeds = self.feeds(DATA / "hf/bert")
        np.testing.assert_array_equal(*(self.run_in_onnxruntime(p, feeds) for p in (path, other)))

    def test_eval(self):
        """The figures are those of the vectors that pith embed prints; a file is compared like a directory."""
        model, texts = DATA / "modules/chain", DATA / "modules/texts.txt"
        lines = [line for line in texts.read_text().splitlines() if line]
        said = []
        for name in ("out/", "out.onnx"):
            done = pith("quantize", model, "--scheme", "q4", "--json", "-o", f"{self.dir}/{name}", "--eval", texts)
            self.assertEqual(done.returncode, 0, done.stderr)
            said.append(json.loads(done.stdout))
        vectors = [np.array([json.loads(v) for v in pith("embed", "-m", m, text="\n".join(lines)).stdout.splitlines()])
                   for m in (model, self.dir / "out")]
        off = 1 - (vectors[0] * vectors[1]).sum(1) / np.prod([np.linalg.norm(v, axis=1) for v in vectors], axis=0)
        for report in said:
            self.assertEqual(report["texts"], len(lines))
            np.testing.assert_allclose([report["mean_difference"], report["max_difference"]], [off.mean(), off.max()],
                                       atol=1e-6)
        self.assertGreater(off.mean(), 1e-6)


class Refused(Quantized):
    def test_refused(self):
        bert, out = DATA / "hf/bert", self.dir / "x.onnx"
        (self.dir / "old.onnx").write_bytes(b"precious")
        self.fails("exists; --force replaces it", bert, "-o", self.dir / "old.onnx")
        self.assertEqual((self.dir / "old.onnx").read_bytes(), b"precious")
        self.fails("-o is needed", bert, code=2)
        self.fails("--scheme", bert, "-o", out, "--scheme", "int3", code=2)
        self.fails("--block", bert, "-o", out, "--scheme", "q4", "--block", 48, code=2)
        self.fails("go with --scheme q4", bert, "-o", out, "--block", 64, code=2)
        self.fails("goes with --scheme int8", bert, "-o", out, "--scheme", "q4", "--reduce-range", code=2)
        self.fails("goes with --scheme q4", bert, "-o", out, "--table", 4, code=2)
        self.fails("no weights of f32", DATA / "hf/bert", "-o", out, "--keep-f32", "", "--table", "f32")
        self.fails("missing.txt", bert, "-o", self.dir / "made.txt", "--eval", self.dir / "missing.txt")
        self.fails("missing.txt", bert, "-o", out, "--calibrate", self.dir / "missing.txt")
        self.fails("no text in it", bert, "-o", out, "--calibrate", "/dev/null")
        self.fails("calibration needs a model of texts", bert, "-o", out, "--calibrate", "vocabulary")
        subprocess.run([PITH, "compile", bert, "-o", self.dir / "bert.pith"], check=True, capture_output=True)
        self.fails("a compiled model cannot be exported", self.dir / "bert.pith", "-o", out)

    def test_not_a_number(self):
        for number, says in ((np.nan, "has a NaN"), (np.inf, "has an infinity")):
            directory = self.dir / says.replace(" ", "_")
            subprocess.run(["cp", "-r", DATA / "hf/modernbert", directory], check=True)
            weights = bytearray((directory / "model.safetensors").read_bytes())
            size = int.from_bytes(weights[:8], "little")
            header = json.loads(weights[8:8 + size])
            at = 8 + size + next(v["data_offsets"][1] for k, v in header.items() if k.endswith("Wqkv.weight"))
            weights[at - 4:at] = np.float32(number).tobytes()
            (directory / "model.safetensors").write_bytes(weights)
            self.fails(says, directory, "-o", self.dir / "x.onnx", "--scheme", "q4")

    def test_no_space(self):
        done = pith("quantize", "--force", DATA / "hf/bert", "-o", "/dev/full")
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr)


class Smooth(Quantized):
    """With scales of rows and calibration, channels that are much larger than others are brought nearer to them."""

    def model(self):
        """A directory of texts whose hidden states have one large channel."""
        directory = self.dir / "large"
        subprocess.run(["cp", "-r", DATA / "gguf/decoded", directory], check=True)
        weights = bytearray((directory / "model.safetensors").read_bytes())
        size = int.from_bytes(weights[:8], "little")
        header = json.loads(weights[8:8 + size])
        for name in [k for k in header if "LayerNorm" in k or "dense.weight" in k or "self" in k]:
            begin, end = (8 + size + x for x in header[name]["data_offsets"])
            numbers = np.frombuffer(bytes(weights[begin:end]), np.float32).copy().reshape(header[name]["shape"])
            if name.endswith("LayerNorm.weight"):
                numbers[3] *= 40
            elif numbers.ndim == 2 and numbers.shape[1] == 32 and "attention.output" not in name:
                numbers[:, 3] /= 40
            weights[begin:end] = numbers.astype(np.float32).tobytes()
        (directory / "model.safetensors").write_bytes(weights)
        return directory

    def test_default(self):
        """Made-up texts, where the model has a vocabulary."""
        model = self.model()
        files = [self.quantize(model, *more)[0].read_bytes() for more in ([], ["--calibrate", "vocabulary"], ["--calibrate", "none"], ["--no-per-row"],
                                                                          ["--no-per-row", "--calibrate", "none"])]
        self.assertEqual([a == b for a, b in zip(files, files[1:])], [True, False, False, True])

    def test_large_channel(self):
        model, texts = self.model(), self.dir / "texts.txt"
        texts.write_text("".join(f"{' '.join('abc'[(i * j) % 3] for j in range(1, 4 + i % 9))}\n" for i in range(30)))
        said = [self.quantize(model, "--rows", "--eval", texts, *more)[1] for more in (["--calibrate", "none"], ["--calibrate", texts])]
        self.assertLess(said[1]["mean_difference"], said[0]["mean_difference"] / 3)
        path, _ = self.quantize(model, "--rows", "--calibrate", texts)
        feeds = {"input_ids": np.arange(2, 18).reshape(2, 8) % 20 + 2, "attention_mask": np.ones((2, 8), np.int64),
                 "token_type_ids": np.zeros((2, 8), np.int64)}
        ours, theirs = self.run_in_pith(path, feeds), self.run_in_onnxruntime(path, feeds)
        self.assertLess(np.median(np.abs(ours - theirs)) / np.abs(theirs).max(), 1e-5)

    def test_shared_weight(self):
        """A weight that another node reads is dequantised for all its readers, whose inputs are not divided: it is not multiplied either."""
        directory = self.dir / "shared"
        done = pith("export", "--quiet", self.model(), "-o", f"{directory}/")
        self.assertEqual(done.returncode, 0, done.stderr)
        model = onnx.load(directory / "model.onnx")
        graph, weights = model.graph, {t.name for t in model.graph.initializer}
        products = {}
        for node in graph.node:
            if node.op_type == "MatMul" and node.input[1] in weights:
                products.setdefault(node.input[0], []).append(node.input[1])
        x, shared = next((x, w[1]) for x, w in products.items() if len(w) == 3)
        last = graph.output[0].name
        next(n for n in graph.node if last in n.output).output[0] = "inner"
        graph.initializer.append(numpy_helper.from_array(np.float32(1e-3), "small"))
        graph.node.extend([helper.make_node("Einsum", [x, shared], ["read"], equation="bsk,kn->bsn"),
                           helper.make_node("Mul", ["read", "small"], ["little"]),
                           helper.make_node("Add", ["inner", "little"], [last])])
        onnx.save(model, directory / "model.onnx")
        path, _ = self.quantize(directory, "--rows", "--calibrate", "vocabulary")
        tensors = {t.name: numpy_helper.to_array(t).astype(np.float64) for t in onnx.load(path).graph.initializer}
        self.assertTrue(any(name.endswith("_smooth") for name in tensors))
        wanted = numpy_helper.to_array(next(t for t in graph.initializer if t.name == shared))
        got = next(tensors[n.input[0]] * tensors[n.input[1]] for n in onnx.load(path).graph.node
                   if n.op_type == "DequantizeLinear" and tensors[n.input[0]].shape == wanted.shape)
        np.testing.assert_allclose(got, wanted, atol=np.abs(wanted).max() / 250)



class Gguf(Quantized):
    """A directory with GGUF weights (tests/data/gguf), written as an ONNX file."""

    def test_written_back(self):
        """Blocks of Q4_0 are blocks of MatMulNBits: the same numbers, no rounding in between."""
        source = DATA / "gguf/blocks"
        path, said = self.quantize(source, "--scheme", "q4", "--table", "f32")
        self.assertEqual((said["matmuls"], said["kept"]), (12, 0))
        graph = onnx.load(path).graph
        tensors = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        matmuls = {n.name: numpy_helper.to_array(t) for g in [onnx.load(self.plain(DATA / "gguf/decoded")).graph]
                   for n in g.node for t in g.initializer if n.op_type == "MatMul" and t.name == n.input[1]}
        seen = 0
        for node in graph.node:
            if node.op_type != "MatMulNBits":
                continue
            a = attributes(node)
            codes = unpacked(tensors[node.input[1]].reshape(a["N"], -1), 4, a["K"])
            got = decoded(codes, tensors[node.input[2]].reshape(a["N"], -1), None, 4, a["block_size"])
            wanted = matmuls[node.name.removesuffix("/MatMulNBits")]
            np.testing.assert_array_equal(got.T.astype(np.float32), wanted)
            seen += 1
        self.assertEqual(seen, 12)

    def test_exported(self):
        a, b = (self.plain(DATA / "gguf" / name).read_bytes() for name in ("blocks", "decoded"))
        feeds = {"input_ids": np.arange(2, 14).reshape(2, 6), "attention_mask": np.ones((2, 6), np.int64),
                 "token_type_ids": np.zeros((2, 6), np.int64)}
        rows = []
        for data in (a, b):
            (self.dir / "g.onnx").write_bytes(data)
            rows.append(self.run_in_onnxruntime(self.dir / "g.onnx", feeds))
        np.testing.assert_allclose(*rows, atol=1e-6)


class Static(Quantized):
    """Inputs with fixed ranges: the file's limits, and the same numbers from Pith and from ONNX Runtime."""

    def test_static(self):
        model = DATA / "modules/dense-plain"
        draw = np.random.default_rng(3)
        feeds = {"input_ids": draw.integers(2, 20, (3, 9)), "attention_mask": np.ones((3, 9), np.int64),
                 "token_type_ids": np.zeros((3, 9), np.int64)}
        feeds["attention_mask"][1, 6:] = 0
        feeds = {k: v.astype(np.int64) for k, v in feeds.items()}
        wanted = self.run_in_onnxruntime(self.plain(model), feeds)
        seen = feeds["attention_mask"] == 1
        widths = {}
        for ranges in ("min-max", "percentile", "entropy"):
            with self.subTest(ranges):
                path, said = self.quantize(model, "--scheme", "static", "--calibrate", "vocabulary", "--range-method", ranges)
                graph = onnx.load(path).graph
                tensors = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
                pairs = [n for n in graph.node if n.op_type == "QuantizeLinear"]
                matmuls = [n for n in graph.node if n.op_type == "MatMul" and any(
                    m.op_type == "DequantizeLinear" and m.output[0] == n.input[1] for m in graph.node)]
                self.assertEqual(len(matmuls), said["matmuls"])
                self.assertLess(len(pairs), len(matmuls))  # query, key and value share theirs
                widths[ranges] = [float(tensors[n.input[1]]) for n in pairs]
                ours, theirs = self.run_in_pith(path, feeds), self.run_in_onnxruntime(path, feeds)
                # A number on the border of two codes may be rounded the other way: rarely, and by one code.
                off = np.abs(ours - theirs)[seen]
                self.assertLess(np.median(off), 1e-5)
                self.assertLess(off.max(), 0.1)
                self.assertLess(np.abs(theirs - wanted)[seen].mean(), 0.1)
        self.assertTrue(all(a >= b for a, b in zip(widths["min-max"], widths["percentile"])))
        self.assertTrue(all(a >= b for a, b in zip(widths["min-max"], widths["entropy"])))
        self.assertGreater(sum(widths["min-max"]), sum(widths["percentile"]))


class Levels(Quantized):
    """MatMulNBits with accuracy_level 4 by itself."""

    def node(self, level, tensors, x, free=(), **attributes):
        """y for x. tensors: the other inputs in order, None where there is none; free: those that are inputs of the graph."""
        feeds = {"x": x, **{f"t{i}": t for i, t in enumerate(tensors) if i in free}}
        names = ["x"] + ["" if t is None else f"t{i}" for i, t in enumerate(tensors)]
        node = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", accuracy_level=level, **attributes)
        info = lambda n, a: helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), [None] * a.ndim)
        graph = helper.make_graph([node], "level", [info(n, a) for n, a in feeds.items()], [info("y", x)],
                                  [numpy_helper.from_array(t, f"t{i}") for i, t in enumerate(tensors)
                                   if t is not None and i not in free])
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        path = self.dir / "level.onnx"
        path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())
        return path, feeds

    def in_pith(self, path, feeds, *arguments):
        for name, array in feeds.items():
            np.save(self.dir / f"{name}.npy", array)
            arguments += ("-i", f"{name}={self.dir / name}.npy")
        done = pith("run", path, *arguments, "-o", self.dir / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(next((self.dir / "out").glob("0_*.npy")))

    def drawn(self, random, bits, block, k, n, zeros=True):
        blocks = -(-k // block)
        b = random.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
        scales = (random.random((n, blocks)) / 2 ** bits).astype(np.float32)
        return b, scales, random.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8) if zeros else None

    def test_definition(self):
        """Pith computes the definition; ONNX Runtime is as near to it as the order of its sums allows; f32 is not near."""
        random, draw = np.random.default_rng(3), lambda *options: options[random.integers(len(options))]
        for case in range(24):
            bits, block, zeros = 4 + case % 2 * 4, draw(16, 32, 64, 128, 256), bool(case // 2 % 2)
            k, n, m = draw(16, 40, 100, 384, 1000), draw(1, 7, 33, 130), draw(1, 3, 30, 200)
            with self.subTest(bits=bits, block=block, zeros=zeros, k=k, n=n, m=m):
                b, scales, z = self.drawn(random, bits, block, k, n, zeros)
                bias = random.standard_normal(n).astype(np.float32) if draw(0, 1) else None
                x = random.standard_normal((m, k)).astype(np.float32)
                path, feeds = self.node(4, [b, scales, z, None, bias], x, K=k, N=n, bits=bits, block_size=block)
                wanted = blocks_in_bytes.matmul(x, b, scales, z, bias, bits, block)
                size = np.sqrt(np.square(wanted).mean())
                ours = self.in_pith(path, feeds, "-t", 2)
                np.testing.assert_allclose(ours, wanted, rtol=0, atol=2e-7 * size)
                np.testing.assert_array_equal(ours[-1:], self.in_pith(path, {"x": x[-1:]}, "-t", 1))
                np.testing.assert_allclose(self.run_in_onnxruntime(path, feeds), wanted, rtol=0, atol=1e-5 * size)
                if m * n < 50:
                    continue
                path, feeds = self.node(0, [b, scales, z, None, bias], x, K=k, N=n, bits=bits, block_size=block)
                self.assertGreater(np.abs(self.in_pith(path, feeds) - wanted).max(), 1e-3 * size)

    def test_types(self):
        """Inputs in f16 are widened, the result is rounded; a number that is not finite makes its row NaN."""
        random = np.random.default_rng(4)
        b, scales, z = self.drawn(random, 4, 32, 96, 20)
        scales = scales.astype(np.float16)
        x = random.standard_normal((4, 96)).astype(np.float16)
        x[1, 50], x[2, 95] = np.inf, np.nan
        path, feeds = self.node(4, [b, scales, z], x, K=96, N=20, bits=4, block_size=32)
        ours, real = self.in_pith(path, feeds), [0, 3]
        wanted = blocks_in_bytes.matmul(x[real].astype(np.float32), b, scales.astype(np.float32), z, None, 4, 32)
        np.testing.assert_array_equal(ours[real], wanted.astype(np.float16))
        self.assertTrue(np.isnan(ours[1:3]).all())

    def test_bits(self):
        """A text's vector has the same bits alone, in any order, on any threads and instruction set, and from a compiled file."""
        lines = [line.split(",")[0] for line in (DATA / "sts/stsb-en-dev.csv").read_text().splitlines()[:90]]

        def vectors(model, texts, *arguments, isa=None):
            (self.dir / "texts.txt").write_text("\n".join(texts))
            done = subprocess.run([PITH, "embed", "-m", model, "--format", "npy", "-o", self.dir / "v.npy", *map(str, arguments),
                                   self.dir / "texts.txt"], capture_output=True, env={**os.environ, **({"PITH_ISA": isa} if isa else {})})
            self.assertEqual(done.returncode, 0, done.stderr)
            return np.load(self.dir / "v.npy")

        for more in (("--scheme", "q4"), ("--scheme", "q4", "--asymmetric", "--block", "16"), ("--scheme", "q8", "--accuracy", "4")):
            with self.subTest(more=more):
                model = self.dir / "levels"
                done = pith("quantize", "--force", "--quiet", "all-MiniLM-L6-v2", "-o", f"{model}/", *more)
                self.assertEqual(done.returncode, 0, done.stderr)
                done = pith("compile", "--quiet", model, "-o", self.dir / "levels.pith")
                self.assertEqual(done.returncode, 0, done.stderr)
                wanted = vectors(model, lines, "-t", 1)
                for threads in (2, 3):
                    np.testing.assert_array_equal(vectors(model, lines[::-1], "-t", threads)[::-1], wanted)
                np.testing.assert_array_equal(vectors(model, lines[7:8], "-t", 1), wanted[7:8])
                np.testing.assert_array_equal(vectors(model, lines[7:8], "-t", 2), wanted[7:8])
                np.testing.assert_array_equal(vectors(self.dir / "levels.pith", lines), wanted)
                for isa in ("scalar", "avx2", "avx512-vnni"):
                    np.testing.assert_array_equal(vectors(model, lines[:5], isa=isa), wanted[:5])

    def test_f32(self):
        """What cannot be taken in 8 bits has the bits of level 0: see engine/ops/shared/nbits_int8.h. Levels 1 to 3 always have."""
        random = np.random.default_rng(5)
        x = random.standard_normal((5, 96)).astype(np.float32)
        b, scales, z = self.drawn(random, 4, 32, 96, 20)
        groups = (np.arange(96, dtype=np.int32) // 32)[::-1].copy()
        wide = self.drawn(random, 4, 512, 96, 20)
        cases = {"floats": ([b, scales, scales], (), 4, 32), "groups": ([b, scales, z, groups], (), 4, 32),
                 "2 bits": (list(self.drawn(random, 2, 32, 96, 20)), (), 2, 32), "no constant": ([b, scales, z], {0}, 4, 32),
                 "no constant scales": ([b, scales, z], {1}, 4, 32), "wide": (list(wide), (), 4, 512)}
        for name, (tensors, free, bits, block) in cases.items():
            with self.subTest(name):
                level = lambda n: self.in_pith(*self.node(n, tensors, x, free, K=96, N=20, bits=bits, block_size=block))
                np.testing.assert_array_equal(level(4), level(0))
        level = lambda n: self.in_pith(*self.node(n, [b, scales, z], x, K=96, N=20, bits=4, block_size=32))
        for n in (1, 2, 3):
            np.testing.assert_array_equal(level(n), level(0))
        self.assertGreater(np.abs(level(4) - level(0)).max(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
