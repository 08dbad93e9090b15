#!/usr/bin/env python3
"""No option is passed over in silence: in each mode of a command an option changes the result, is refused, or is warned about by name.

usage: options.py PITH SOURCE_DIR [unittest arguments]; needs NumPy, onnxruntime (tests/requirements.txt).
"""
import json
import os
import re
import shutil
import sys
import unittest
from pathlib import Path

import onnxruntime

from command import SOURCE, Command

DATA = SOURCE / "tests/data"
CHAIN, SPARSE, LATE, CROSS = DATA / "modules/chain", DATA / "encode/splade-max", DATA / "encode/colbert-hidden", DATA / "tasks/cross-bert"
TEXT = b"Two dogs, and 3 cats on one mat!\n"

# Values that are not the defaults. What is faster or smaller gives the same bytes; so does what is told elsewhere.
VALUES = {
    "pooling": "max", "no-normalize": None, "dim": "2", "max-length": "100000", "optimization": "0", "precision": "int8", "route": "query",
    "role": "query", "bm25-k": "2", "bm25-b": "0.3", "bm25-avg-len": "9", "bm42-alpha": "0.9", "bm25-max-word": "3", "no-stemming": None,
    "max-pixels": "5", "field": "x", "keep": "x", "chunk-tokens": "8", "overlap": "2", "chunks": "rows", "resume": None, "rows-per-file": "2",
    "dtype": "int8", "ranges": "x.npy", "check": None, "inter-op-threads": "2", "no-arena": None, "no-plan-reuse": None,
    "runtime-strict": None, "ort-library": "x", "ort-python": "x", "ort-level": "none", "ort-config": "a.b=1", "ort-profile": "p",
    "ep": "cpu:arena=1", "model-file": "none.onnx",
}
SAME = {"optimization", "inter-op-threads", "no-arena", "no-plan-reuse", "check"}  # of the builtin runtime: the same bytes
# What a mode gives without a word, and why that is right.
FINE = {
    ("compiled", "no-normalize"): "the model's vectors are not normalised", ("directory", "no-normalize"): "as above",
    ("onnx", "no-normalize"): "as above", ("ort", "no-normalize"): "as above",
    ("sparse", "role"): "the model takes both roles alike", ("ort", "runtime-strict"): "ONNX Runtime runs the model",
    ("ort", "ort-config"): "ONNX Runtime keeps settings of its own", ("ort", "ort-profile"): "it writes a file", ("ort", "ort-level"): "faster",
    ("ort", "ort-python"): "the library is named by its file", ("ort", "ep"): "the CPU in any case",
}


class Silence(Command):
    verb = "embed"

    def setUp(self):
        super().setUp()
        self.library = max((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*"))
        self.onnx = self.dir / "onnx"
        shutil.copytree(CHAIN, self.onnx)
        (self.onnx / "model.safetensors").unlink()
        self.good("-q", CHAIN, "-o", self.onnx / "model.onnx", verb="export")
        self.good("-q", CHAIN, "-o", "chain.pith", verb="compile")
        self.modes = {"directory": ("-m", CHAIN), "compiled": ("-m", "chain.pith"), "onnx": ("-m", self.onnx),
                      "ort": ("-m", self.onnx, "--runtime", "ort", "--ort-library", self.library), "sparse": ("-m", SPARSE, "--sparse"),
                      "late": ("-m", LATE, "--multi-vector"), "tokens": ("-m", CHAIN, "--tokens")}

    def embed(self, *words):
        done = self.run_pith(*words, stdin=TEXT)
        return done.returncode, done.stdout, done.stderr.decode()

    def test_every_mode(self):
        faults = []
        for mode, words in self.modes.items():
            code, plain, said = self.embed(*words)
            self.assertEqual((code, said), (0, ""), mode)
            for name, value in VALUES.items():
                if (mode, name) in FINE or name in SAME and mode != "ort":
                    continue
                got = self.embed(*words, f"--{name}", *([value] if value else []))
                named = re.search(rf"--{name}\b|{name.removeprefix('no-').replace('-', '[-_ ]')}|{re.escape(value or name)}", got[2], re.I)
                if got[1] == plain and not named:
                    faults.append((mode, name, got[0], got[2]))
        self.assertEqual(faults, [])

    def test_refused(self):
        """What goes with another kind of result, or with ONNX Runtime."""
        for words, says in ((("--sparse", "--pooling", "max", "-m", SPARSE), "--pooling goes with dense vectors"),
                            (("--multi-vector", "--dim", "2", "-m", LATE), "--dim goes with dense vectors"),
                            (("--tokens", "--normalize", "-m", CHAIN), "--normalize goes with dense vectors"),
                            (("--no-stemming", "-m", CHAIN), "--no-stemming goes with --bm25"),
                            (("--bm25-k", "2", "-m", CHAIN), "--bm25-k goes with --bm25, and with --sparse of miniCOIL"),
                            (("--bm42-alpha", "1", "-m", CHAIN), "--bm42-alpha goes with --sparse of BM42")):
            self.bad(2, *words, says=says)
        for words, says in ((("--sparse", "--bm42-alpha", "0.9", "-m", SPARSE), "--bm42-alpha is of BM42, which the model is not"),
                            (("--sparse", "--bm25-b", "0.5", "-m", SPARSE), "--bm25-k, --bm25-b and --bm25-avg-len are of miniCOIL, which the model is not"),
                            (("--sparse", "--bm25-b", "0.5", "-m", DATA / "hybrid/bm42"), "are of miniCOIL, which the model is not"),
                            (("-m", CHAIN, "--ep", "cpu:a=1"), "the setting 'a=1' has no device before it that has settings"),
                            (("-m", "chain.pith", "--route", "query"), "the file has no route 'query'")):
            self.bad(1, *words, says=says, stdin=TEXT)
        for verb, words in (("embed", ("-m", CHAIN)), ("similarity", ("-m", CHAIN, "a", "b")), ("rerank", ("-m", CROSS, "--query", "a")),
                            ("classify", ("-m", CROSS)), ("run", (self.onnx / "model.onnx", "-i", "input_ids=x.npy")), ("detect", ("-m", DATA / "mtcnn", "x.png")),
                            ("verify", (DATA / "operators",))):
            for name in ("runtime-strict", "ort-library", "ort-python", "ort-level", "ort-config", "ort-profile"):
                value = [VALUES[name]] if VALUES[name] else []
                self.bad(2, *words, f"--{name}", *value, says=f"--{name} goes with --runtime ort or auto", verb=verb)

    def test_elsewhere(self):
        """A configuration for several commands may set what this one has no use for."""
        self.good("-m", CHAIN, stdin=TEXT, env={**os.environ, "PITH_ORT_LEVEL": "none", "PITH_RUNTIME_STRICT": "true"})

    def test_warned(self):
        positions = json.loads((CHAIN / "config.json").read_text())["max_position_embeddings"]
        said = self.embed("-m", CHAIN, "--max-length", "100000")[2]
        self.assertEqual(said, f"warning: --max-length 100000 is above what the model takes; texts are cut at {positions} tokens\n")
        self.assertEqual(self.embed("-m", CHAIN, "--max-length", str(positions))[2], "")
        said = self.embed("-m", "chain.pith", "--optimization", "1")[2]
        self.assertIn("the file keeps the optimization 3 that it was compiled with; 1 changes nothing", said)
        for flag, name in (("--inter-op-threads=2", "inter_op_threads"), ("--no-arena", "--no-arena"), ("--no-plan-reuse", "--no-plan-reuse"),
                           ("--optimization=0", "optimization"), ("--check", "--check")):
            said = self.embed(*self.modes["ort"], flag)[2]
            self.assertRegex(said, rf"^warning: .*{name}.*; ort runs the file as it is\n$", flag)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
