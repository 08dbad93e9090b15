#!/usr/bin/env python3
"""Which files of a model directory count, and what is said of directories that cannot be used.

usage: models.py PITH SOURCE_DIR [unittest arguments], as cli.py beside it.
"""
import io
import json
import os
import pickle
import shutil
import sys
import unittest
import zipfile

import numpy as np

from cli import MODELS, Verbs
from command import SOURCE

DATA = SOURCE / "tests/data/modules"
TEXTS = (DATA / "texts.txt").read_bytes()


class Directory(Verbs):
    def copy(self, name):
        shutil.copytree(DATA / name, self.dir / name, copy_function=shutil.copy)
        return self.dir / name

    def same(self, model, like, *arguments):
        np.testing.assert_array_equal(self.vectors(TEXTS, "-m", model, *arguments), self.vectors(TEXTS, "-m", like))

    def decided(self, model, *arguments):
        return {d["what"]: (d["value"], d["file"])
                for d in json.loads(self.good("inspect", "--json", *arguments, model))["decisions"]}

    def edit(self, path, change):
        data = json.loads(path.read_text())
        change(data)
        path.write_text(json.dumps(data))


class Layouts(Directory):
    def cache(self, revision="abc"):
        """A model in the Hugging Face cache: files are links to blobs."""
        model = self.dir / "models--team--dense"
        snapshot = model / "snapshots" / revision
        (model / "blobs").mkdir(parents=True, exist_ok=True)
        for i, path in enumerate(sorted(p for p in (DATA / "dense").rglob("*") if p.is_file())):
            target = snapshot / path.relative_to(DATA / "dense")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, model / "blobs" / str(i))
            os.symlink(os.path.relpath(model / "blobs" / str(i), target.parent), target)
        return model, snapshot

    def test_cache(self):
        model, snapshot = self.cache()
        for path in (model, f"{model}/", snapshot):
            self.same(path, DATA / "dense")
        self.good("tokenize", "-m", model, stdin=TEXTS)
        self.cache("def")
        self.bad(1, "embed", "-m", model, stdin=TEXTS, says="several snapshots and no refs/main; give the directory of one")
        (model / "refs").mkdir()
        (model / "refs/main").write_text("def\n")
        self.same(model, DATA / "dense")
        (model / "refs/main").write_text("gone")
        self.bad(1, "embed", "-m", model, stdin=TEXTS, says=("snapshots/gone", "it is not there; fetch the model"))
        (model / "refs/main").write_text("../../../..")
        self.bad(1, "embed", "-m", model, stdin=TEXTS, says="outside its folder")
        (model / "refs/main").write_text("abc")
        os.unlink(os.path.realpath(snapshot / "2_Dense/config.json"))
        self.bad(1, "embed", "-m", model, stdin=TEXTS, says=("2_Dense/config.json", "link points to a file that does not exist"))
        shutil.rmtree(model / "snapshots")
        (model / "snapshots").mkdir()
        shutil.rmtree(model / "refs")
        self.bad(1, "embed", "-m", model, stdin=TEXTS, says="there is no snapshot")

    def onnx(self, *names):
        """A directory with the same network under several names."""
        for name in names:
            path = self.dir / name
            path.parent.mkdir(exist_ok=True)
            shutil.copy(MODELS / "bert-base-script17-eager/model.onnx", path)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(SOURCE / "tests/data/minilm" / name, self.dir / name)
        return self.dir

    def test_order(self):
        order = ["model.onnx", "onnx/model.onnx", "own.onnx", "onnx/model_O2.onnx", "model_fp16.onnx", "model_quantized.onnx",
                 "onnx/a_int8.onnx", "decoder_model.onnx"]
        folder = self.onnx(*order)
        for best in order:
            self.assertEqual(self.decided(folder)["model file"], (best, ""))
            warned = b"32 bits" in self.run_pith("embed", "-m", folder, stdin=b"a").stderr
            self.assertEqual(warned, order.index(best) >= order.index("model_fp16.onnx"), best)
            (folder / best).unlink()
        self.bad(1, "embed", "-m", folder, stdin=b"a", says=("no model in this directory; looked for model.onnx", "pytorch_model.bin"))

    def test_chosen(self):
        folder = self.onnx("model.onnx", "onnx/model_int8.onnx")
        for name in ("onnx/model_int8.onnx", "model_int8.onnx"):
            self.assertEqual(self.decided(folder, "--model-file", name)["model file"][0], "onnx/model_int8.onnx")
        self.bad(1, "embed", "-m", folder, "--model-file", "x.onnx", stdin=b"a", says="there is no file 'x.onnx', nor in its folder onnx")
        self.bad(1, "embed", "-m", folder, "--model-file", "../x.onnx", stdin=b"a", says="outside its folder")
        self.bad(1, "embed", "-m", folder / "model.onnx", "--model-file", "x", stdin=b"a", says="--model-file names a file of a directory")

    def test_weights(self):
        """safetensors go before files of torch.save, and both before ONNX files of other names."""
        shards = self.copy("torch-shards")
        like = DATA / "dense"
        shutil.copy(MODELS / "bert-base-script17-eager/model.onnx", shards / "other.onnx")
        self.assertEqual(self.decided(shards)["model file"][0], "pytorch_model.bin.index.json")
        self.same(shards, DATA / "torch-shards")
        shutil.copy(like / "model.safetensors", shards / "model.safetensors")
        self.assertEqual(self.decided(shards)["model file"][0], "model.safetensors")
        self.same(shards, DATA / "torch-shards")
        self.same(shards, DATA / "torch-shards", "--model-file", "pytorch_model.bin.index.json")
        os.rename(shards / "model.safetensors", shards / "best.safetensors")
        self.same(shards, DATA / "torch-shards", "--model-file", "best.safetensors")
        self.edit(shards / "config.json", lambda c: c.update(model_type="odd"))
        self.bad(1, "embed", "-m", shards, stdin=TEXTS,
                 says=('architecture "odd" is not supported', "also has", "other.onnx, which --model-file can choose"))

    def test_tokenizer(self):
        """pith tokenize sees the folder of the tokenizer, and lower case."""
        def tokens(name, text=b"The Cat"):
            return json.loads(self.good("tokenize", "-m", DATA / name, stdin=text))
        self.assertEqual(tokens("old-layout"), tokens("dense"))
        self.assertEqual(tokens("lower"), tokens("dense", b"the cat"))
        self.assertNotEqual(tokens("lower"), tokens("dense"))
        compiled = self.dir / "lower.pith"
        self.good("compile", "-q", "-o", compiled, DATA / "lower")
        self.assertEqual(json.loads(self.good("tokenize", "-m", compiled, stdin=b"The Cat")), tokens("lower"))


class Graphs(Directory):
    """ONNX files with modules around them."""
    def network(self, name, *modules):
        folder = self.dir / name
        folder.mkdir()
        shutil.copy(MODELS / name / "model.onnx", folder)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(DATA / "dense" / file, folder)
        listed = [{"type": "sentence_transformers.models.Transformer", "path": ""}]
        for i, (kind, config, weights) in enumerate(modules):
            path = folder / f"{i + 1}_{kind}"
            path.mkdir()
            (path / "config.json").write_text(json.dumps(config))
            if weights:
                header, data = {}, b""
                for key, value in weights.items():
                    header[key] = {"dtype": "F32", "shape": value.shape, "data_offsets": [len(data), len(data) + value.nbytes]}
                    data += value.tobytes()
                text = json.dumps(header).encode()
                (path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
            listed.append({"type": f"sentence_transformers.models.{kind}", "path": path.name})
        (folder / "modules.json").write_text(json.dumps(listed))
        return folder

    def dense(self, size, rows):
        rng = np.random.default_rng(1)
        weights = {"linear.weight": rng.standard_normal((5, size)).astype("f4"), "linear.bias": rng.standard_normal(5).astype("f4")}
        config = {"in_features": size, "out_features": 5, "activation_function": "torch.nn.modules.linear.Identity",
                  "module_input_name": "token_embeddings" if rows else "sentence_embedding"}
        return ("Dense", config, weights)

    def test_modules(self):
        """Of an affine layer the mean over tokens is the layer of the mean, so both places give the same vectors."""
        name, texts = "bert-base-script17-eager", b"a cat sat\nthe dog\n"
        pooling = ("Pooling", {"pooling_mode": "mean"}, None)
        mean = self.vectors(texts, "-m", self.network(name, pooling))
        size = mean.shape[1]
        for rows in (False, True):
            shutil.rmtree(self.dir / name)
            dense = self.dense(size, rows)
            model = self.network(name, *((dense, pooling) if rows else (pooling, dense)))
            want = mean.astype("f8") @ dense[2]["linear.weight"].T.astype("f8") + dense[2]["linear.bias"]
            np.testing.assert_allclose(self.vectors(texts, "-m", model), want, rtol=0, atol=2e-5)
            np.testing.assert_array_equal(self.vectors(texts[:10], "-m", model, "-t", "1"), self.vectors(texts, "-m", model)[:1])
            outputs = [port["name"] for port in json.loads(self.good("inspect", "--json", model))["outputs"]]
            self.assertEqual("pith.rows" in outputs, rows)

    def test_pooled(self):
        """A graph that pools has all modules in it but Normalize."""
        name, texts = "bert-pool-script17-sdpa", b"a cat sat\nthe dog\n"
        plain = self.network(name, ("Pooling", {"pooling_mode": "cls"}, None))
        want = self.vectors(texts, "-m", plain)
        shutil.rmtree(plain)
        model = self.network(name, self.dense(want.shape[1], True), ("Pooling", {}, None), self.dense(5, False), ("Normalize", {}, None))
        np.testing.assert_allclose(self.vectors(texts, "-m", model), want / np.linalg.norm(want, axis=1, keepdims=True), rtol=0, atol=1e-6)

    def test_instruction_sets(self):
        """Every module gives the same bits on every level."""
        for model in sorted(p for p in DATA.iterdir() if p.is_dir()):
            def run(isa):
                return self.run_pith("embed", "-m", model, "--format", "f32", stdin=TEXTS, env={"PITH_ISA": isa})
            wanted = run("scalar")
            self.assertRegex(wanted.stderr, rb"^(warning: \d+ texts? (was|were) longer than \d+ tokens and cut there; [^\n]*\n)?$")
            self.assertEqual(wanted.returncode, 0)
            for isa in ("avx2", "avx512"):
                got = run(isa)
                if got.returncode == 0:  # this machine has it
                    self.assertEqual(got.stdout, wanted.stdout, (model.name, isa))


class Said(Directory):
    def embed(self, model, says, *arguments):
        self.bad(1, "embed", "-m", model, *arguments, stdin=TEXTS, says=says)

    def test_modules(self):
        model = self.copy("dense")
        for change, says in (
                (lambda m: m[2].update(type="sentence_transformers.models.BoW"),
                 "module 'sentence_transformers.models.BoW' is not supported: its vectors are counts of words"),
                (lambda m: m[2].update(type="sentence_transformers.models.Odd"), "module 'sentence_transformers.models.Odd' is not supported; supported are"),
                (lambda m: m[2].update(type="modeling_own.Dense"), "module 'modeling_own.Dense' is code that comes with the model, which is not run"),
                (lambda m: m[2].update(path="3_Dense"), "modules.json: module Dense (folder '3_Dense'): modules.json names the folder '3_Dense', "
                                                        "but 3_Dense/config.json is not there; fetch the model with its folders"),
                (lambda m: m.pop(1), "module Dense (folder '2_Dense'): it is a module of a text's vector, but stands where there are tokens' vectors"),
                (lambda m: m.__delitem__(slice(1, 3)), "modules.json lists no Pooling, so the model gives a vector for each token; name a pooling (--pooling)"),
        ):
            shutil.copy(DATA / "dense/modules.json", model / "modules.json")
            self.edit(model / "modules.json", change)
            self.embed(model, says)
        self.assertEqual(self.vectors(TEXTS, "-m", model, "--pooling", "mean").shape[1], 8)

    def test_weights(self):
        model = self.copy("dense")
        self.edit(model / "2_Dense/config.json", lambda c: c.update(in_features=9))
        self.embed(model, "model.safetensors: tensor 'linear.weight' has shape [5, 8]; the config asks for [5, 9]")
        (model / "2_Dense/model.safetensors").unlink()
        self.embed(model, ("module Dense (folder '2_Dense')", "2_Dense: no weights; looked for model.safetensors and pytorch_model.bin"))
        wide = self.copy("chain")
        self.edit(wide / "1_Pooling/config.json", lambda c: c.update(pooling_mode="mean"))
        self.embed(wide, "the pooled vectors have 8 numbers, but a module behind the pooling needs 16; use the model's own pooling")
        self.embed(DATA / "chain", "the pooled vectors have 8 numbers", "--pooling", "cls")
        tokens = self.copy("dense-tokens")
        path = next(tokens.glob("1_Dense"))
        shutil.copy(next(tokens.glob("2_Dense")) / "config.json", path / "config.json")
        shutil.copy(next(tokens.glob("2_Dense")) / "model.safetensors", path / "model.safetensors")
        self.embed(tokens, "module Dense needs vectors of 6 numbers, but those of tokens have 8")

    def test_arguments(self):
        self.embed(DATA / "pool-prompt", "the model has no prompt 'x' (it has: document", "--prompt-name", "x")
        self.embed(DATA / "router-last", "there is no route 'x'; the model has: query, doc", "--route", "x")
        self.embed(DATA / "dense", "the model has no routes, so there is none of the name 'query'", "--route", "query")
        self.embed(DATA / "truncated", "dim 9 is not between 1 and the model's 8", "--dim", "9")
        self.assertEqual(self.vectors(TEXTS, "-m", DATA / "truncated").shape[1], 3)
        self.assertEqual(self.vectors(TEXTS, "-m", DATA / "truncated", "--dim", "8").shape[1], 8)
        compiled = self.dir / "doc.pith"
        self.good("compile", "-q", "--route", "doc", "-o", compiled, DATA / "router-last")
        np.testing.assert_array_equal(self.vectors(TEXTS, "-m", compiled), self.vectors(TEXTS, "-m", DATA / "router-last", "--route", "doc"))
        self.embed(compiled, "there is no route 'query'; the file has: doc", "--route", "query")
        both = self.dir / "both.pith"
        self.good("compile", "-q", "-o", both, DATA / "router-last")
        for route in [], ["--route", "doc"], ["--route", "query"]:
            np.testing.assert_array_equal(self.vectors(TEXTS, "-m", both, *route),
                                          self.vectors(TEXTS, "-m", DATA / "router-last", *route))
        self.embed(both, "there is no route 'x'; the file has: query, doc", "--route", "x")
        again = self.dir / "again.pith"
        self.good("compile", "-q", "-o", again, both)
        self.assertEqual(again.read_bytes(), both.read_bytes())

    def test_pickle(self):
        """A pickle that would run a program is named, and nothing runs."""
        class Evil:
            def __reduce__(self):
                return os.system, (f"touch {mark}",)
        mark, model = self.dir / "mark", self.copy("old-layout")
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as z:
            z.writestr("archive/data.pkl", pickle.dumps({"a": Evil()}, protocol=2))
            z.writestr("archive/version", "3\n")
        (model / "0_BERT/pytorch_model.bin").write_bytes(out.getvalue())
        self.embed(model, ("pytorch_model.bin: the pickle asks for 'posix.system' at byte", "nothing is executed. Convert the file to safetensors"))
        self.assertFalse(mark.exists())

    def test_inspect(self):
        want = {"route": ("document", "router_config.json"), "pooling": ("cls", "document_1_Pooling/config.json"),
                "normalize": ("yes", "modules.json"), "model file": ("document_0_Transformer/model.safetensors", ""),
                "max length": ("30 tokens", "document_0_Transformer/tokenizer_config.json"),
                "tokenizer": ("document_0_Transformer/tokenizer.json", "")}
        model = DATA / "router-first"
        got = self.decided(model)
        self.assertEqual({k: got[k] for k in want}, want)
        compiled = self.dir / "m.pith"
        self.good("compile", "-q", "-o", compiled, model)
        self.assertEqual(self.decided(compiled), got)
        got = self.decided(DATA / "pool-prompt")
        self.assertEqual(got["pooling"][0], "cls + max + mean + mean_sqrt_len_tokens + weightedmean + lasttoken, without the prompt's tokens")
        got = self.decided(DATA / "lower")
        self.assertEqual((got["lower case"], got["max length"]), (("yes", "sentence_bert_config.json"), ("12 tokens", "sentence_bert_config.json")))
        self.assertEqual(self.decided(DATA / "truncated")["truncate_dim"], ("3", "config_sentence_transformers.json"))
        text = self.good("inspect", DATA / "dense").decode()
        self.assertIn("decided    pooling: mean (1_Pooling/config.json)\n           module: Dense, 8 to 5, Tanh (2_Dense/model.safetensors)\n", text)
        self.assertIn("any number of tokens", self.good("inspect", DATA / "static").decode())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
