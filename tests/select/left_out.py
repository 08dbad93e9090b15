#!/usr/bin/env python3
"""What a selective build says of each thing that it was made without: an error which names the line to add, never another result.

usage: left_out.py PITH SOURCE_DIR BUILD_DIR WORK_DIR [unittest arguments]
Options is for make test. Pieces takes each small piece out of the complete build in turn; it is for the long tests.
"""
import json
import re
import shutil
import subprocess
import sys
import unittest
from collections import defaultdict
from pathlib import Path

import pieces
import small
from pieces import DATA, FOLDER, PICTURE, PITH, SOURCE, USES, use

LACKS = "this selective build lacks pieces; add to its list, and build again: "
CHAIN = DATA / "modules/chain"
GROUPS = ("modules", "hf", "tasks", "vision", "encode", "hybrid", "sparse_modules", "late_modules", "rerankers", "yunet", "gguf", "tokenizer_models")
# Kinds of which each piece is taken out alone. Operators and kernels are those of pieces.py; passes, ragged rules and instruction
# sets change the speed.
KINDS = ("readers", "families", "tasks", "modules", "heads", "tokenizer_sources", "normalizers", "pre_tokenizers", "tokenizer_models",
         "decoders", "runtimes", "parts")
# Parts without which everything is as it was, but slower, unless an option asks for them.
SPEED = {"branches", "tails", "threads"}


def run(pith, *words, text="a cat\n"):
    return subprocess.run([str(w) for w in (pith, *words)], input=text.encode(), capture_output=True, timeout=300)


def limited(name, **kinds):
    """A command for the chain of modules in f32, with these kinds of its list replaced."""
    done = small.run(PITH, "select", "-q", "--use", "embed", CHAIN)
    assert done.returncode == 0, done.stderr
    path = FOLDER.work / f"{name}.yaml"
    path.write_text(small.write({**small.read(done.stdout), **{kind: dict.fromkeys(names, []) for kind, names in kinds.items()}}))
    return FOLDER.command(name, "--list", path, "--dtypes", "ON")


class Options(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pith = limited("f32")
        cls.compiled = FOLDER.work / "chain.pith"
        assert run(PITH, "compile", "-q", CHAIN, "-o", cls.compiled).returncode == 0

    def lacks(self, pith, lines, *words):
        done = run(pith, *words)
        said = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (1, b""), (words, said))
        for line, kind in lines:
            self.assertIn(f"'- {line}' under '{kind}:'", said, words)
        self.assertIn(LACKS, said)
        return said

    def test_precision(self):
        """The bits of f32 would be a wrong answer: int8 gives others."""
        plain = run(self.pith, "embed", "-m", CHAIN)
        self.assertEqual((plain.returncode, plain.stdout), (0, run(PITH, "embed", "-m", CHAIN).stdout))
        for precision, kernel in (("int8", "gemm i8"), ("bf16", "gemm bf16")):
            self.assertNotEqual(run(PITH, "embed", "-m", CHAIN, "--precision", precision).stdout, plain.stdout)
            for verb in (("embed", "-m", CHAIN), ("similarity", "-m", CHAIN, "a", "b"), ("inspect", CHAIN), ("bench", "-m", CHAIN, "--rounds", "1"),
                         ("compile", CHAIN, "-o", FOLDER.work / "other.pith")):
                said = self.lacks(self.pith, (("precision", "passes"), (kernel, "kernels")), *verb, "--precision", precision)
                self.assertIn(f"for precision {precision}", said)
        self.assertFalse((FOLDER.work / "other.pith").exists())
        self.assertEqual(run(self.pith, "embed", "-m", CHAIN, "--precision", "f32").stdout, plain.stdout)

    def test_compiled_for_another_precision(self):
        """The passes of a compiled file have run, so it takes kernels alone."""
        file = FOLDER.work / "int8.pith"
        self.assertEqual(run(PITH, "compile", "-q", CHAIN, "--precision", "int8", "-o", file).returncode, 0)
        pith = limited("reads", readers=("compiled",))
        self.assertEqual(run(pith, "embed", "-m", self.compiled).stdout, run(PITH, "embed", "-m", CHAIN).stdout)
        self.lacks(pith, (("gemm i8", "kernels"),), "embed", "-m", file)

    def test_files(self):
        """A file whose reader was left out is not called damaged, also where the reader of ONNX takes what no other one does."""
        onnx = limited("onnx", readers=("onnx",))
        for pith in (self.pith, onnx):
            said = self.lacks(pith, (("compiled", "readers"),), "embed", "-m", self.compiled)
            self.assertEqual(said.count("under 'readers:'"), 1, said)
            self.lacks(pith, (("gguf", "readers"),), "inspect", DATA / "gguf/kinds.gguf")
            self.assertNotIn("damaged", said)
        said = self.lacks(self.pith, (("onnx", "readers"),), "run", DATA / "cases/selected-union/add.onnx")
        self.assertEqual(said.count("under 'readers:'"), 1, said)
        self.lacks(onnx, (("safetensors", "readers"),), "embed", "-m", CHAIN)

    def test_other_file_of_a_directory(self):
        """Where the complete build would open another file, the numbers may differ."""
        both = FOLDER.work / "both"
        shutil.rmtree(both, ignore_errors=True)
        (FOLDER.work / "chain.onnx").unlink(missing_ok=True)
        shutil.copytree(CHAIN, both)
        self.assertEqual(run(PITH, "export", "-q", CHAIN, "-o", FOLDER.work / "chain.onnx").returncode, 0)
        config = json.loads((CHAIN / "modules.json").read_text())
        network = both / next(m["path"] for m in config if m["type"].endswith("Transformer"))
        shutil.copy(FOLDER.work / "chain.onnx", network / "model.onnx")
        self.assertIn(b"(onnx", run(PITH, "inspect", both).stdout)
        self.assertIn("for model.onnx", self.lacks(self.pith, (("onnx", "readers"),), "embed", "-m", both))
        (network / "model.onnx").rename(network / "other.onnx")
        self.assertIn(b"(safetensors", run(PITH, "inspect", both).stdout)
        onnx = limited("onnx", readers=("onnx",))
        self.assertIn("for model.safetensors", self.lacks(onnx, (("safetensors", "readers"),), "embed", "-m", both))

    def test_other_tokenizer_of_a_directory(self):
        pith = limited("vocab", tokenizer_sources=("vocab_txt",))
        both = FOLDER.work / "tokenizers"
        shutil.copytree(CHAIN, both, dirs_exist_ok=True)
        words = sorted(json.loads((CHAIN / "tokenizer.json").read_text())["model"]["vocab"].items(), key=lambda item: item[1])
        (both / "vocab.txt").write_text("".join(f"{word}\n" for word, _ in words))
        self.assertIn("for tokenizer.json", self.lacks(pith, (("tokenizer_json", "tokenizer_sources"),), "embed", "-m", both))

    def test_runtimes_and_threads(self):
        self.lacks(self.pith, (("ort", "runtimes"),), "embed", "-m", CHAIN, "--runtime", "ort")
        self.assertIn("for inter_op_threads", self.lacks(self.pith, (("branches", "parts"),), "embed", "-m", CHAIN, "--inter-op-threads", "2"))
        alone = limited("alone", parts=("texts", "text_modules"))
        self.assertIn("for threads", self.lacks(alone, (("threads", "parts"),), "embed", "-m", CHAIN, "--threads", "2"))
        for threads in ((), ("--threads", "1")):
            self.assertEqual(run(alone, "embed", "-m", CHAIN, *threads).stdout, run(PITH, "embed", "-m", CHAIN).stdout)
        self.lacks(self.pith, (("checks", "parts"),), "embed", "-m", CHAIN, "--check")
        owned = limited("owned", readers=("onnx",), parts=())
        said = run(owned, "run", "--runtime", "auto", DATA / "control/if.onnx", "-i", "cond=x.npy").stderr.decode()
        self.assertIn("ONNX Runtime, which auto takes, is not in this build: ", said)
        self.assertIn("'- ort' under 'runtimes:'", said)

    def test_passes(self):
        """Passes that an option names; and a file that is written has fewer fusions than the complete build would make."""
        listed = small.read((FOLDER.work / "f32.yaml").read_text())["passes"]
        self.assertNotIn("swish", listed)
        self.lacks(self.pith, (("swish", "passes"),), "inspect", CHAIN, "--after", "swish")
        unfused = limited("unfused", readers=("onnx",), passes=("clean",), operators=("Add",), kernels=("add",))
        (FOLDER.work / "optimized.onnx").unlink(missing_ok=True)
        done = run(unfused, "optimize", DATA / "cases/selected-union/add.onnx", "-o", FOLDER.work / "optimized.onnx")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("this selective build lacks passes, so fewer operators are fused", done.stderr.decode())
        self.assertIn("'- gelu'", done.stderr.decode())
        self.assertNotIn("'- gated'", done.stderr.decode())

    def test_commands(self):
        """Each command is there, or says that it is left out and what brings it back."""
        verbs = re.findall(r"^VERB\((\w+)\)", (SOURCE / "cli/verbs.def").read_text(), re.M)
        trimmed = (FOLDER.work / "f32/cli/verbs.def").read_text()
        left, there = (set(re.findall(rf"^{macro}\((\w+)", trimmed, re.M)) for macro in ("LEFT_OUT", "VERB"))
        self.assertEqual(left | there, set(verbs))
        self.assertEqual(left & there, set())
        self.assertLessEqual({"search", "detect", "rerank", "classify", "train", "predict", "eval", "verify", "select"}, left)
        for verb in sorted(left):
            for words in ((verb,), (verb, "--help"), ("help", verb)):
                done = run(self.pith, *words)
                self.assertEqual((done.returncode, done.stdout), (1, b""))
                self.assertIn(f"this selective build leaves out the command '{verb}'; add to its list, and build again: ", done.stderr.decode())
        self.assertIn("'- mtcnn' under 'heads:' or '- yunet' under 'heads:'", run(self.pith, "detect").stderr.decode())
        self.assertIn("'- scores_dot' under 'kernels:'", run(self.pith, "search").stderr.decode())
        self.assertEqual(run(self.pith, "nothing").returncode, 2)


class Pieces(unittest.TestCase):
    """Each piece of the small kinds alone, out of the complete build."""

    @classmethod
    def setUpClass(cls):
        cls.all = small.read(small.run(PITH, "select", "--all").stdout)
        cls.models = defaultdict(list)  # of a piece
        compiled = FOLDER.work / "detectors.pith"
        run(PITH, "compile", "-q", DATA / "mtcnn", "-o", compiled)
        paths = [DATA / "mtcnn", compiled, *(p for group in GROUPS for p in sorted((DATA / group).glob("*")) if p.is_dir() or p.suffix == ".gguf")]
        for path in paths:
            done = small.run(PITH, "select", "-q", path)
            if done.returncode:
                continue
            for kind, names in small.read(done.stdout).items():
                for name in names:
                    cls.models[kind, name].append(path)

    def without(self, kind, name):
        kinds = {k: dict(names) for k, names in self.all.items()}
        del kinds[kind][name]
        path = FOLDER.work / "without.yaml"
        path.write_text(small.write(kinds))
        return pieces.small_command("without", path)

    def faults(self, kind, name):
        """The uses of models that neither give the same bytes nor say what is missing; the number of uses that do say it."""
        pith, found, said = self.without(kind, name), [], 0
        for model in self.models[kind, name][:3]:
            for what, words in USES.items():
                full = use(PITH, words, model)
                if full.returncode:
                    continue
                own = use(pith, words, model)
                named = own.returncode == 1 and f"'- {name}' under '{kind}:'" in own.stderr.decode()
                said += named
                if not named and (own.returncode, own.stdout) != (full.returncode, full.stdout):
                    found.append((kind, name, str(model), what, own.returncode, own.stderr.decode()[-300:]))
        return found, said


def add_kind(kind):
    def test(self):
        found, silent = [], []
        for name in sorted(self.all[kind]):
            if not self.models[kind, name] or kind == "runtimes":
                continue
            with self.subTest(piece=f"{kind}: {name}"):
                faults, said = self.faults(kind, name)
                found += faults
                if not said and name not in SPEED:
                    silent.append(name)
        print(f"{kind}: {len(self.all[kind])} pieces; no model here needs {' '.join(sorted(n for n in self.all[kind] if not self.models[kind, n]))}; "
              f"models do without {' '.join(silent)}", file=sys.stderr)
        self.assertEqual(found, [], "\n".join(map(str, found)))
    setattr(Pieces, f"test_{kind}", test)


for each in KINDS:
    add_kind(each)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
