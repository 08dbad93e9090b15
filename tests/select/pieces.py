#!/usr/bin/env python3
"""Small commands for single models: the same bits as the complete command, and a named error for each line that is taken out.

usage: pieces.py PITH SOURCE_DIR BUILD_DIR WORK_DIR [unittest arguments]
Short is for make test, Lines and Models are for the long tests.
"""
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

import small

PITH, SOURCE, BUILD, WORK = (Path(a).resolve() for a in sys.argv[1:5])
DATA = SOURCE / "tests/data"
FOLDER = small.Folder(SOURCE, BUILD, WORK)
TEXTS = "a cat\nTwo caf\u00e9s, 3 dogs & \u732b!\n\n" + "word " * 90
PICTURE = DATA / "faces/face_1.png"

# Operators that passes put into a graph.
MADE = {op.removesuffix("_pith") for line in re.findall(r"^MAKES\(passes, \w+,(.*)\)", (SOURCE / "src/select/needs.def").read_text(), re.M)
        for op in line.split()}

# What a user may do with a model. Those that the complete command can do, the small one must do to the bit.
USES = {
    "embed": ("embed", "-m", "MODEL", "--format", "f32"),
    "sparse": ("embed", "-m", "MODEL", "--sparse"),
    "multi-vector": ("embed", "-m", "MODEL", "--multi-vector"),
    "score": ("classify", "-m", "MODEL"),
    "rerank": ("rerank", "-m", "MODEL", "--query", "which animal?"),
    "images": ("embed", "-m", "MODEL", "--images", PICTURE),
    "detect": ("detect", "-m", "MODEL", PICTURE),
    "verify": ("verify", "MODEL"),
    "run": ("run", "MODEL", "-i", "input_ids=IDS", "-i", "attention_mask=ONES", "-o", "OUT"),
    "run segments": ("run", "MODEL", "-i", "input_ids=IDS", "-i", "attention_mask=ONES", "-i", "token_type_ids=ZEROS", "-o", "OUT"),
    "run pixels": ("run", "MODEL", "-i", "pixel_values=PIXELS", "-o", "OUT"),
}
np.save(WORK / "IDS.npy", np.array([[1, 2, 3, 4, 2, 1], [3, 2, 1, 1, 4, 4]], np.int64))
np.save(WORK / "ONES.npy", np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]], np.int64))
np.save(WORK / "ZEROS.npy", np.zeros((2, 6), np.int64))
np.save(WORK / "PIXELS.npy", np.linspace(-1, 1, 3 * 32 * 32, dtype=np.float32).reshape(1, 3, 32, 32))


def use(pith, words, model, *more):
    """Runs the command. What it writes to the folder OUT counts as a part of its output."""
    out = WORK / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [str(model) if w == "MODEL" else str(out) if w == "OUT" else re.sub("=([A-Z]+)$", rf"={WORK}/\1.npy", str(w)) for w in words]
    done = subprocess.run([pith, *command, *more], input=TEXTS.encode(), capture_output=True, timeout=300)
    for path in sorted(out.glob("*")):
        done.stdout += path.name.encode() + path.read_bytes()
    return done


def select(model, name, *options):
    path = FOLDER.work / f"{name}.yaml"
    done = small.run(PITH, "select", "-q", *options, "-o", path, model)
    assert done.returncode == 0, done.stderr
    return path


def small_command(name, path):
    pith = FOLDER.command(name, "--list", path, "--dtypes", "ON")
    beside = pith.parent / "libpith_image.so"  # what decodes pictures is searched beside the command
    if not beside.exists():
        beside.symlink_to(BUILD / "libpith_image.so")
    return pith


class Case(unittest.TestCase):
    def same(self, model, name, *options):
        """The small command does what the complete one can do, with the same bytes; the names of these uses. What sessions
        run is another graph than what embeds texts, so it has a list of its own."""
        done = []
        for sessions in (False, True):
            full = {what: use(PITH, words, model) for what, words in USES.items() if (words[0] in ("run", "verify")) == sessions}
            full = {what: result for what, result in full.items() if result.returncode == 0}
            if not full:
                continue
            pith = small_command(name, select(model, name, *options, *(("--use", "run") if sessions else ())))
            for what, result in full.items():
                own = use(pith, USES[what], model)
                self.assertEqual((own.returncode, own.stderr.decode()), (0, result.stderr.decode()), f"{model} {what}")
                self.assertEqual(own.stdout, result.stdout, f"{model} {what}")
                done.append(what)
        self.assertGreater(len(done), 0, model)
        return done

    def without(self, kinds, kind, name, word=None):
        """The list without one line, or without one dtype of the line."""
        left = copy.deepcopy(kinds)
        if word and len(kinds[kind][name]) > 1:
            left[kind][name].remove(word)
        else:
            del left[kind][name]
        if kind == "tokenizer_models":
            left[kind]["BPE" if name != "BPE" else "Unigram"] = []  # without any, verbs are left out of the command
        if kind == "heads":
            left[kind]["tokens" if name != "tokens" else "dense"] = []
        (FOLDER.work / "less.yaml").write_text(small.write(left))
        return small_command("less", FOLDER.work / "less.yaml")

    def names_it(self, pith, words, model, kind, line):
        """The run fails with one message that names the line."""
        done = use(pith, words, model)
        self.assertEqual(done.returncode, 1, (kind, line, done.stderr))
        self.assertIn(f"'- {line}' under '{kind}:'", done.stderr.decode())
        self.assertIn("this selective build lacks pieces; add to its list, and build again: ", done.stderr.decode())

    def close(self, pith, words, model, want, line):
        done = use(pith, words, model)
        self.assertEqual(done.returncode, 0, (line, done.stderr))
        rows, wanted = ([json.loads(r) for r in out.splitlines()] for out in (done.stdout, want))
        self.assertEqual(len(rows), len(wanted))
        for row, other in zip(rows, wanted):
            self.assertLess(max(abs(a - b) for a, b in zip(row, other)), 1e-5, line)

    def drop(self, model, words, options=(), kinds_of_lines=None, first_only=False, but=()):
        """Takes each line of the model's list out in turn, but those names; how many were."""
        kinds = small.read(select(model, "lines", *options).read_text())
        want = use(PITH, words, model)
        self.assertEqual(want.returncode, 0, want.stderr)
        want = want.stdout
        count = 0
        for kind in kinds_of_lines or kinds:
            if kind in ("runtimes", "ragged", "tasks") or kind == "passes" and "--unfused" not in options:
                continue
            for name in list(kinds[kind])[:1 if first_only else None]:
                if name in but or kind == "operators" and name in MADE:  # the build does without the pass
                    continue
                for word in kinds[kind][name] if kind == "kernels" else (None,):
                    pith = self.without(kinds, kind, name, word)
                    if kind == "passes":
                        self.close(pith, words, model, want, name)
                    elif use(pith, words, model).stdout != want:  # else this use of the model does without it
                        self.names_it(pith, words, model, kind, f"{name} {word}" if word else name)
                        count += 1
        return count


class Short(Case):
    def test_same_bits(self):
        self.assertIn("embed", self.same(DATA / "modules/chain", "chain"))
        self.assertIn("score", self.same(DATA / "tasks/labels-bert", "labels"))
        yunet = DATA / "yunet/yunet-s-640-other-sizes"
        self.assertEqual(self.same(yunet, "yunet"), ["detect", "verify"])

    def test_a_line_of_each_kind(self):
        model, words = DATA / "modules/chain", ("embed", "-m", "MODEL")
        self.assertGreaterEqual(self.drop(model, words, first_only=True), 9)

    def test_parts(self):
        """What belongs to no other kind: each is listed for the model that needs it, and named where it is missing."""
        compiled = FOLDER.work / "mtcnn.pith"
        subprocess.run([PITH, "compile", "--quiet", DATA / "mtcnn", "-o", compiled], check=True)
        for part, path, use_name in (("texts", "modules/chain", "embed"), ("text_modules", "modules/chain", "embed"), ("chat", "tasks/labels-bert", "score"),
                                     ("torch", "modules/torch-shards", "embed"), ("cascades", "mtcnn", "detect"), ("cascades", compiled, "detect")):
            kinds = small.read(select(DATA / path, "parts").read_text())
            self.assertIn(part, kinds["parts"], path)
            self.assertIn("threads", kinds["parts"], path)
            self.names_it(self.without(kinds, "parts", part), USES[use_name], DATA / path, "parts", part)
        kinds = small.read(select(DATA / "modules/chain", "parts").read_text())
        self.assertEqual(set(kinds["parts"]), {"text_modules", "texts", "threads"})
        alone = use(self.without(kinds, "parts", "threads"), USES["embed"], DATA / "modules/chain")
        self.assertEqual(alone.stdout, use(PITH, USES["embed"], DATA / "modules/chain").stdout)
        checked = use(small_command("parts", FOLDER.work / "parts.yaml"), ("embed", "-m", "MODEL", "--check"), DATA / "modules/chain")
        self.assertIn("'- checks' under 'parts:'", checked.stderr.decode())

    def test_parts_of_runs(self):
        """Graphs that nodes own need a part. Branches and tails are only faster."""
        np.save(WORK / "YES.npy", np.array(True))
        words, model = ("run", "MODEL", "-i", "cond=YES", "-o", "OUT"), DATA / "control/if.onnx"
        kinds = small.read(select(model, "owned", "--use", "run").read_text())
        self.assertEqual(set(kinds["parts"]), {"subgraphs", "threads"})
        self.assertEqual(use(small_command("owned", FOLDER.work / "owned.yaml"), words, model).stdout, use(PITH, words, model).stdout)
        without = self.without(kinds, "parts", "subgraphs")
        self.names_it(without, words, model, "parts", "subgraphs")
        self.assertIn("(If): ", use(without, words, model).stderr.decode())
        yunet = DATA / "yunet/yunet-s-640-other-sizes"
        kinds = small.read(select(yunet, "tails", "--inter-op-threads", "2").read_text())
        self.assertEqual(set(kinds["parts"]), {"branches", "tails", "threads"})
        want = use(PITH, USES["detect"], yunet).stdout
        for parts in ({"threads": []}, {"threads": [], "tails": []}, {"threads": [], "branches": []}):
            path = FOLDER.work / "run_parts.yaml"
            path.write_text(small.write({**kinds, "parts": parts}))
            pith = small_command("run_parts", path)
            self.assertEqual(use(pith, USES["detect"], yunet).stdout, want, parts)
        chain = DATA / "modules/chain"
        kinds = small.read(select(chain, "beside", "--inter-op-threads", "2").read_text())
        self.assertIn("branches", kinds["parts"])
        without = self.without(kinds, "parts", "branches")
        self.names_it(without, (*USES["embed"], "--inter-op-threads", "2"), chain, "parts", "branches")
        self.assertEqual(use(without, USES["embed"], chain).stdout, use(PITH, USES["embed"], chain).stdout)

    def test_expressions(self):
        """PCRE2 is there for expressions that have no scanner of their own, and not for those that have."""
        known, chain = DATA / "modules/layers-decoder", DATA / "modules/chain"
        self.assertNotIn("regex", small.read(select(known, "known").read_text())["parts"])
        self.assertEqual(self.same(known, "known")[0], "embed")
        self.assertNotIn(b"pcre2_compile", (FOLDER.work / "known/pith").read_bytes())
        other = WORK / "expression"
        shutil.copytree(chain, other, dirs_exist_ok=True)
        tokenizer = json.loads((chain / "tokenizer.json").read_text())
        split = {"type": "Split", "pattern": {"Regex": "[a-c]+|."}, "behavior": "Isolated", "invert": False}
        (other / "tokenizer.json").write_text(json.dumps({**tokenizer, "pre_tokenizer": split}))
        self.assertNotEqual(use(PITH, USES["embed"], other).stdout, use(PITH, USES["embed"], chain).stdout)
        kinds = small.read(select(other, "other").read_text())
        self.assertIn("regex", kinds["parts"])
        self.same(other, "other")
        self.assertIn(b"pcre2_compile", (FOLDER.work / "other/pith").read_bytes())
        without = self.without(kinds, "parts", "regex")
        self.names_it(without, USES["embed"], other, "parts", "regex")
        self.assertIn("for the expression '[a-c]+|.'", use(without, USES["embed"], other).stderr.decode())

    def test_instruction_sets(self):
        """A build for fewer of them gives the same bits; on a processor that has none of its own it says so."""
        model, path = DATA / "modules/chain", select(DATA / "modules/chain", "isas")
        want = use(PITH, USES["embed"], model).stdout
        scalar = FOLDER.command("scalar", "--list", path, "--isas", "scalar")
        self.assertEqual(use(scalar, USES["embed"], model).stdout, want)
        avx2 = FOLDER.command("avx2", "--list", path, "--isas", "avx2")
        self.assertEqual(use(avx2, USES["embed"], model).stdout, want)
        done = subprocess.run([avx2, "embed", "-m", model], input=b"a cat\n", capture_output=True, env={**os.environ, "PITH_ISA": "scalar"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("'- scalar' under 'isas:' for this processor", done.stderr.decode())

    def test_inspect_names_what_makes_it_slower(self):
        model = DATA / "modules/chain"
        kinds = small.read(select(model, "slower", "--unfused").read_text())
        del kinds["passes"]["attention"]
        (FOLDER.work / "few.yaml").write_text(small.write(kinds))
        pith = FOLDER.command("slower", "--list", FOLDER.work / "few.yaml", "--isas", "scalar")
        done = small.run(pith, "inspect", model)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\nleft out   passes: attention( \w+)*\n")
        self.assertIn("\n           isas: avx2 avx512\n", done.stdout)
        left = json.loads(small.run(pith, "inspect", model, "--json").stdout)["left_out"]
        self.assertIn({"kind": "passes", "name": "attention"}, left)
        self.assertNotIn({"kind": "passes", "name": "linear"}, left)
        self.assertEqual([p["name"] for p in left if p["kind"] == "isas"], ["avx2", "avx512"])
        self.assertIn("ragged", {p["kind"] for p in left})
        self.assertNotIn("left out", small.run(PITH, "inspect", model).stdout)

    def test_all_kernels_in_one_message(self):
        kinds = small.read(select(DATA / "modules/chain", "kernels").read_text())
        kinds["kernels"] = {"l2_normalize": ["f32"]}
        (FOLDER.work / "few.yaml").write_text(small.write(kinds))
        done = use(small_command("few", FOLDER.work / "few.yaml"), ("embed", "-m", "MODEL"), DATA / "modules/chain")
        for line in ("attention f32", "gemm f32", "gemm_pack f32", "layer_norm f32"):
            self.assertIn(f"'- {line}' under 'kernels:' for node '", done.stderr.decode())

    def test_all_operators_in_one_message(self):
        kinds = small.read(select(DATA / "modules/chain", "operators").read_text())
        for name in ("Softmax", "Sub", "MatMul"):
            del kinds["operators"][name]
        (FOLDER.work / "few.yaml").write_text(small.write(kinds))
        done = use(small_command("few", FOLDER.work / "few.yaml"), ("embed", "-m", "MODEL"), DATA / "modules/chain")
        for line in ("Softmax", "Sub", "MatMul"):
            self.assertIn(f"'- {line}' under 'operators:' for node '", done.stderr.decode())

    def test_old_messages_stay(self):
        """What no build has is not said to be missing from the list."""
        path = FOLDER.work / "unknown"
        path.mkdir(exist_ok=True)
        (path / "config.json").write_text('{"model_type": "unheard-of"}')
        (path / "model.safetensors").write_bytes(bytes([2, 0, 0, 0, 0, 0, 0, 0]) + b"{}")
        pith = small_command("chain", select(DATA / "modules/chain", "chain"))
        done = use(pith, ("inspect", "MODEL"), path)
        self.assertIn('architecture "unheard-of" is not supported', done.stderr.decode())


class Lines(Case):
    """Every line of the lists of some models."""

    def test_encoder(self):
        self.assertGreater(self.drop(DATA / "modules/chain", ("embed", "-m", "MODEL"), ("--unfused",)), 30)

    def test_int8(self):
        words = (*USES["run segments"], "--precision", "int8")
        self.assertGreater(self.drop(DATA / "hf/bert", words, ("--precision", "int8", "--use", "run"), ("operators", "kernels")), 5)

    def test_onnx_int8(self):
        words = next(USES[u] for u in ("embed", "run segments", "run") if use(PITH, USES[u], DATA / "models/bert-base-script14-eager-int8").returncode == 0)
        self.assertGreater(self.drop(DATA / "models/bert-base-script14-eager-int8", words, (), ("operators", "kernels")), 10)

    def test_scores(self):
        self.assertGreater(self.drop(DATA / "tasks/labels-bert", ("classify", "-m", "MODEL"), (), ("kernels", "families")), 5)

    def test_sparse(self):
        words = ("embed", "-m", "MODEL", "--sparse")
        self.assertGreater(self.drop(DATA / "encode/splade-max", words, (), ("kernels", "heads", "modules")), 5)

    def test_search(self):
        index = WORK / "index.npy"
        subprocess.run([PITH, "embed", "-m", DATA / "modules/chain", "--format", "npy", "-o", index], input=b"a cat\na dog\n", check=True)
        words = ("search", "-m", "MODEL", "--query", "kitten", "--index", index)
        own = re.search(r"^KERNELS\(verbs, search, (.*)\)", (SOURCE / "src/select/needs.def").read_text(), re.M).group(1).split()
        self.assertGreater(self.drop(DATA / "modules/chain", words, ("--use", "embed", "--use", "search"), ("kernels",), but=own), 3)

    def test_families_of_one_model_type(self):
        """bert without jina_bert must not read a Jina model as a BERT."""
        kinds = small.read(select(DATA / "hf/jina-v2", "jina").read_text())
        del kinds["families"]["jina_bert"]
        kinds["families"]["bert"] = []
        (FOLDER.work / "few.yaml").write_text(small.write(kinds))
        done = use(small_command("few", FOLDER.work / "few.yaml"), ("inspect", "MODEL"), DATA / "hf/jina-v2")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn('position_embedding_type "alibi" is not supported', done.stderr.decode())


class Models(Case):
    """Every model folder, built for itself."""

    def test_same_bits(self):
        count = 0
        for group in ("hf", "tasks", "modules", "vision", "models", "hybrid", "sparse_modules", "encode", "late_modules", "yunet"):
            for model in sorted((DATA / group).glob("*/")):
                with self.subTest(model=model.name):
                    self.same(model, "each")
                    count += 1
        self.assertGreater(count, 100)

    def test_precisions(self):
        for precision in ("int8", "bf16"):
            for name in ("hf/bert", "hf/nomic", "hf/qwen3", "models/bert-base-script14-sdpa"):
                with self.subTest(model=name, precision=precision):
                    model = DATA / name
                    path = select(model, "each", "--precision", precision)
                    pith, same = small_command("each", path), 0
                    for words in USES.values():
                        full = use(PITH, words, model, "--precision", precision)
                        if full.returncode == 0:
                            own = use(pith, words, model, "--precision", precision)
                            self.assertEqual((own.returncode, own.stdout), (0, full.stdout), own.stderr)
                            same += 1
                    self.assertGreater(same, 0, model)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
