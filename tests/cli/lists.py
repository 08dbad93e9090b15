#!/usr/bin/env python3
"""`pith select`: the lists it writes, reads and unites, and what it says of a list that is wrong.

usage: lists.py PITH SOURCE_DIR [unittest arguments]
"""
import itertools
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PITH, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
sys.path.insert(0, str(SOURCE / "tests/select"))
import small
DATA = SOURCE / "tests/data"


class Lists(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)

    def select(self, *arguments, env=None):
        result = subprocess.run([PITH, "select", *map(str, arguments)], capture_output=True, text=True, timeout=300,
                                env={**os.environ, **(env or {})})
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def refused(self, code, says, *arguments):
        result = subprocess.run([PITH, "select", *map(str, arguments)], capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(says, result.stderr)
        self.assertEqual(result.stdout, "")

    def write(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return path

    def test_encoder(self):
        found = small.read(self.select(DATA / "modules/chain", "--use", "embed"))
        self.assertEqual(found["families"], {"bert": []})
        self.assertEqual(found["readers"], {"safetensors": []})
        self.assertEqual(found["heads"], {"dense": []})
        self.assertEqual(found["tokenizer_models"], {"WordPiece": []})
        self.assertIn("attention", found["passes"])
        self.assertEqual(found["operators"]["pith::Linear"], ["f32"])
        self.assertIn("f32", found["kernels"]["gemm"])
        self.assertNotIn("isas", found)

    def test_unfused(self):
        """Without its passes a model needs more kernels."""
        tight, wide = (small.read(self.select(DATA / "modules/chain", *more)) for more in ((), ("--unfused",)))
        self.assertNotIn("softmax", tight["kernels"])
        self.assertIn("f32", wide["kernels"]["softmax"])
        for kind, names in tight.items():
            self.assertLessEqual(set(names), set(wide[kind]))

    def test_quiet(self):
        for more, said in (((), f"{DATA / 'modules/chain'}\n"), (("--quiet",), "")):
            done = subprocess.run([PITH, "select", DATA / "modules/chain", *more], capture_output=True, text=True, timeout=300)
            self.assertEqual(done.stderr, said)

    def test_old_spellings(self):
        """An operator of an old opset is marked; a fused operator is listed beside what it becomes."""
        found = small.read(self.select(DATA / "models/bert-base-script14-eager-fused"))
        self.assertTrue(any(name.startswith("com.microsoft::") for name in found["operators"]))
        self.assertIn("upgraded", sum(found["operators"].values(), []))

    def test_scores(self):
        found = small.read(self.select(DATA / "tasks/labels-bert"))
        self.assertIn("scores", found["heads"])
        self.assertIn("sequence_classification", found["tasks"])

    def test_same_on_every_processor(self):
        for model, *options in ((DATA / "hf/bert", "--precision", "int8"), (DATA / "hf/bert", "--precision", "bf16"),
                                (DATA / "yunet",)):
            texts = {self.select(model, *options, env={"PITH_ISA": isa})
                     for isa in ("scalar", "avx2", "avx2-vnni", "avx512-amx", "avx512")}
            self.assertEqual(len(texts), 1, model)
        self.assertIn("gemm_vnni", small.read(self.select(DATA / "hf/bert", "--precision", "int8"))["kernels"])

    def test_several_and_merge(self):
        models = [DATA / "hf/bert", DATA / "hf/nomic", DATA / "yunet/yunet-s-640-other-sizes"]
        singly = [self.write(f"{i}.yaml", self.select(m, "-q")) for i, m in enumerate(models)]
        together = self.select(*models)
        for order in itertools.permutations(singly):
            self.assertEqual(self.select("--merge", *order), together)
        self.assertEqual(self.select("--merge", singly[0], singly[0]), singly[0].read_text())
        self.assertEqual(self.select(DATA / "yunet"), self.select(models[2]))  # a directory of models
        self.assertEqual(small.read(together)["families"], {"bert": [], "nomic_bert": []})

    def test_all(self):
        """What the build holds: each entry of the lists, and each piece that a model needs."""
        found = small.read(self.select("--all"))
        for kind, file, macro in (("passes", "passes", "PASS"), ("families", "families", "FAMILY"), ("readers", "readers", "READER"),
                                  ("decoders", "tokenizers", "DECODER"), ("runtimes", "runtimes", "RUNTIME")):
            self.assertEqual(set(found[kind]), set(re.findall(rf"^{macro}\((\w+)", (SOURCE / f"src/select/{file}.def").read_text(), re.M)))
        self.assertEqual(len(found["operators"]), len(re.findall(r"^OP\(", (SOURCE / "src/select/ops.def").read_text(), re.M)))
        for kind, names in small.read(self.select(DATA / "modules/chain")).items():
            for name, words in names.items():
                self.assertIn(name, found[kind])
                self.assertTrue(kind != "kernels" or set(words) <= set(found[kind][name]))
        self.refused(2, "--all lists this build and opens no model", "--all", DATA / "modules/chain")

    def test_isas_and_output(self):
        out = self.dir / "out.yaml"
        self.assertEqual(self.select(DATA / "yunet", "--isas", "scalar,avx2", "-o", out), "")
        self.assertEqual(small.read(out.read_text())["isas"], {"avx2": [], "scalar": []})
        self.refused(2, "--isas 'sse' is unknown", DATA / "yunet", "--isas", "sse")
        self.refused(2, "--use 'sing' is unknown", DATA / "yunet", "--use", "sing")
        self.refused(2, "name a model", "-q")
        self.refused(2, "opens no model", "--merge", out, "--use", "run")
        self.refused(1, "no model in it", self.dir)

    def test_by_hand(self):
        path = self.write("a.yaml", "# mine\n\npith: 1\r\noperators:\n- Gelu\n  - Add i64 f32  # a comment\n"
                                    "- Add bool\n  - ai.onnx::Add\npasses: []\n")
        text = self.select("--merge", path)
        self.assertEqual(text.partition("\n")[2], "pith: 1\noperators:\n  - Add\n  - Gelu\npasses: []\n")
        unlimited = self.write("b.yaml", "pith: 1\npasses:\n  - gelu\n")
        self.assertEqual(small.read(self.select("--merge", path, unlimited)), {"passes": {"gelu": []}})

    def test_wrong_lists(self):
        for text, says in (
                ("", "bad.yaml:1: no piece list: it begins with the line 'pith: 1'"),
                ("operators:\n", "bad.yaml:1: the first line must be 'pith: 1'"),
                ("pith: 2\n", "bad.yaml:1: version '2' of the format is not known"),
                ("pith: 1\npith: 1\n", "bad.yaml:2: 'pith:' is here a second time"),
                ("pith: 1\nops:\n", "bad.yaml:2: 'ops' is no kind of piece; kinds are operators, kernels,"),
                ("pith: 1\n- Add\n", "bad.yaml:2: a piece without a kind; write a line such as 'operators:'"),
                ("pith: 1\noperators: Add\n", "bad.yaml:2: write the pieces on lines of their own"),
                ("pith: 1\noperators: []\n  - Add\n", "bad.yaml:3: 'operators' was said to be empty"),
                ("pith: 1\noperators:\noperators:\n", "bad.yaml:3: 'operators:' is here a second time"),
                ("pith: 1\noperators:\n  - Add float\n", "bad.yaml:3: 'float' is no dtype; write names such as f32"),
                ("pith: 1\npasses:\n  - gelu f32\n", "bad.yaml:3: passes have no dtypes"),
                ("pith: 1\noperators:\n\t- Add\n", "bad.yaml:3: a tab; indent with blanks"),
                ("pith: 1\noperators:\n  -Add\n", "bad.yaml:3: write a blank and a name behind '-'"),
                ("pith: 1\noperators:\n  - \"Add\"\n", "bad.yaml:3: names have letters, digits"),
                ("pith: 1\noperators:\n  Add\n", "bad.yaml:3: a kind begins at the beginning of its line"),
                ("pith: 1\noperators\n", "bad.yaml:2: neither 'kind:' nor '- piece'"),
                ("pith: 1\nkernels:\n  - add f32 upgraded\n", "bad.yaml:3: 'upgraded' is no dtype"),
                ("pith: 1\noperators:\n  - " + "x" * 201 + "\n", "bad.yaml:3: a name has 1 to 200 characters"),
        ):
            self.refused(1, says, "--merge", self.write("bad.yaml", text))
        self.refused(1, "No such file", "--merge", self.dir / "none.yaml")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
