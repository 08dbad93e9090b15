#!/usr/bin/env python3
"""pith rerank and pith classify on small checkpoints: all forms of input and output, and what is refused.

usage: scores.py PITH SOURCE_DIR [unittest arguments]; needs NumPy (tests/requirements.txt) and, for one test, the default model.
"""
import json
import math
import os
import shutil
import subprocess
import sys
import unittest

import numpy as np

from command import PITH, SOURCE, Command

TASKS = SOURCE / "tests/data/tasks"
CASES = [json.loads(line) for line in (TASKS / "texts.jsonl").read_text().splitlines()]
TEXTS, PAIRS = [c["text"] for c in CASES], [c["pair"] for c in CASES]
CROSS, LABELS = TASKS / "cross-bert", TASKS / "labels-bert"
NAMES = ["negative", "neutral", 'positive "so"']


def reference(model, name):
    return np.fromfile(model / name, "<f4").reshape(len(CASES), -1)


def lines(texts):
    """One text per line: what has newlines of its own is not among the cases."""
    return "".join(t + "\n" for t in texts).encode()


class Scored(Command):
    def write_outputs(self, model, arguments, stdin):
        """To a file, a full disk, an input and a reader that leaves."""
        wanted = self.good("-m", model, *arguments, stdin=stdin)
        self.good("-m", model, *arguments, "-o", "out", stdin=stdin)
        self.assertEqual((self.dir / "out").read_bytes(), wanted)
        self.bad(1, "-m", model, *arguments, "-o", "/dev/full", stdin=stdin, says="No space left")
        self.bad(1, "-m", model, *arguments, "-o", "none/x", stdin=stdin, says="No such file")
        self.bad(2, "-m", model, *arguments, "-o", "", stdin=stdin, says="name of a file")
        (self.dir / "in").write_bytes(stdin)
        self.bad(2, "-m", model, *arguments, "in", "-o", "in", says="is an input too")
        self.assertEqual((self.dir / "in").read_bytes(), stdin)
        self.assertEqual(self.good("-m", model, *arguments, "in"), wanted)
        self.assertEqual(self.good("-m", model, *arguments, "-", stdin=stdin), wanted)
        (self.dir / "much").write_bytes(stdin * 500)
        with subprocess.Popen([PITH, self.verb, "-m", model, *arguments, "much"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=self.dir) as process:
            process.stdout.close()
            self.assertEqual((process.stderr.read(), process.wait()), (b"", 0))
        self.bad(1, "-m", model, *arguments, "missing.txt", says="missing.txt")
        self.bad(1, "-m", "no-such-model", *arguments, stdin=stdin, says="no-such-model")
        self.bad(1, "-m", model, *arguments, "--memory-limit", "10k", stdin=stdin, says="memory limit")
        self.bad(2, "-m", model, *arguments, "--threads", "-1", stdin=stdin, says="--threads")
        self.bad(2, "-m", model, *arguments, "-k", "0", stdin=stdin, says="-k")
        self.bad(2, "-m", model, *arguments, "--nothing", stdin=stdin, says="--nothing")
        self.bad(2, *arguments, stdin=stdin, says="-m MODEL is needed")
        for more in (["--threads", "1"], ["--batch-tokens", "1"], ["--memory-limit", "200M"], ["--check"], ["--precision", "f32"]):
            self.assertEqual(self.good("-m", model, *arguments, *more, stdin=stdin), wanted)
        self.good("-m", model, *arguments, "--profile", "trace.json", stdin=stdin)
        events = json.loads((self.dir / "trace.json").read_text())
        self.assertIn("score", {e.get("name") for e in (events["traceEvents"] if isinstance(events, dict) else events)})
        compiled = self.dir / "m.pith"
        subprocess.run([PITH, "compile", model, "-o", compiled], check=True, capture_output=True)
        self.assertEqual(self.good("-m", compiled, *arguments, stdin=stdin), wanted)


class Rerank(Scored):
    verb = "rerank"

    def check(self, found, wanted, **more):
        for row, (index, score) in zip(found, wanted, strict=True):
            self.assertEqual(row["index"], index)
            self.assertLess(abs(row["score"] - score), 1e-5)
            for key, value in more.items():
                self.assertEqual(row[key], value)

    def test_values(self):
        """A line for each pair: what CrossEncoder.predict gives."""
        questions = "".join(json.dumps({"query": t, "documents": [p, t], "id": 2**70, "x": None}) + "\n"
                            for t, p in zip(TEXTS, PAIRS)).encode()
        for name in ("cross-bert", "cross-bert-onnx", "cross-xlm-roberta", "cross-distilbert", "cross-modernbert"):
            for flags, file in (([], "rerank.f32"), (["--raw"], "logits.f32")):
                rows = self.rows("-m", TASKS / name, *flags, stdin=questions)
                self.assertEqual([(r["query"], r["index"]) for r in rows], [(i // 2, i % 2) for i in range(2 * len(CASES))])
                wanted = reference(TASKS / name, file)[:, 0]
                self.check(rows[::2], [(0, w) for w in wanted])

    def test_one_query(self):
        """The first two cases have the same query."""
        wanted = list(enumerate(reference(CROSS, "rerank.f32")[:2, 0]))
        for flags, stdin in (([], lines(PAIRS[:2])), (["-0"], b"\0".join(p.encode() for p in PAIRS[:2])),
                             (["--jsonl"], b'{"text": "%s"}\n\n{"text": "%s", "n": [1]}' % tuple(p.encode() for p in PAIRS[:2])),
                             (["--jsonl", "--field", "d"], "".join(json.dumps({"d": p}) + "\r\n" for p in PAIRS[:2]).encode()),
                             ([], lines(PAIRS[:2]).replace(b"\n", b"\r\n"))):
            self.check(self.rows("-m", CROSS, "--query", TEXTS[0], *flags, stdin=stdin), wanted)
        best = sorted(wanted, key=lambda w: -w[1])
        flags = ("-m", CROSS, "--query", TEXTS[0])
        self.check(self.rows(*flags, "-k", 1, stdin=lines(PAIRS[:2])), best[:1])
        self.check(self.rows(*flags, "--top-k", 3, stdin=lines(PAIRS[:2])), best)
        self.check(self.rows(*flags, "--top-k", 2147483647, stdin=lines(PAIRS[:2])), best)
        rows = self.rows(*flags, "--return-documents", stdin=lines(PAIRS))
        self.assertEqual([r["document"] for r in rows], PAIRS)
        self.assertEqual([set(r) for r in rows], [{"index", "score", "document"}] * len(PAIRS))
        (self.dir / "a").write_bytes(lines(PAIRS[:1])), (self.dir / "b").write_text(PAIRS[1])
        self.check(self.rows(*flags, "a", "b"), wanted)
        self.check(self.rows(*flags, "a", "-", stdin=lines(PAIRS[1:2])), wanted)
        same = self.rows(*flags, "-k", 4, stdin=b"a\nb\na\na\n")
        self.assertIn([r["index"] for r in same], ([0, 2, 3, 1], [1, 0, 2, 3]))  # equal scores in their order
        short = self.rows(*flags, "--max-length", 5, stdin=lines(PAIRS[:2]))
        self.assertNotEqual(short[0]["score"], wanted[0][1])

    def test_nothing(self):
        self.assertEqual(self.good("-m", CROSS, "--query", "a"), b"")
        self.assertEqual(self.good("-m", CROSS), b"")
        self.assertEqual(self.good("-m", CROSS, stdin=b"\n \n"), b"")
        self.assertEqual(self.good("-m", CROSS, stdin=b'{"query": "a", "documents": []}'), b"")
        self.assertEqual(len(self.rows("-m", CROSS, "--query", "", stdin=b"\n")), 1)
        self.bad(1, "-m", TASKS / "splade-distilbert", "--query", "a", says="not a classifier")
        self.bad(1, "-m", LABELS, "--query", "a", says=("3 scores", "classify"))
        self.bad(1, "-m", "all-MiniLM-L6-v2", "--query", "a", says="not a classifier")

    def test_language_models(self):
        """Rerankers that are language models: scores, instructions, and what is said of those that cannot be run."""
        models = SOURCE / "tests/data/rerankers"
        pairs = [json.loads(line) for line in (models / "pairs.jsonl").read_text().splitlines()]
        questions = "".join(json.dumps({"query": p["text"], "documents": [p["pair"]]}) + "\n" for p in pairs).encode()

        def compare(name, file, *flags):
            found = [r["score"] for r in self.rows("-m", models / name, *flags, stdin=questions)]
            np.testing.assert_allclose(found, np.fromfile(models / name / file, "<f4"), atol=1e-5, rtol=0)
        for name in ("logit-qwen3", "logit-qwen2", "logit-gemma3", "mxbai-qwen2"):
            compare(name, "scores.f32")
            compare(name, "other.f32", "--instruction", "Find what rhymes")
            wanted = self.good("-m", models / name, stdin=questions)
            for isa in ("scalar", "avx2", "avx512"):
                self.assertEqual(self.good("-m", models / name, stdin=questions, env=os.environ | {"PITH_ISA": isa}), wanted)
        compare("logit-qwen3", "raw.f32", "--raw")
        compare("logit-qwen3", "short.f32", "--max-length", "90")
        compare("mxbai-qwen2", "scores.f32", "--raw")
        folder = self.dir / "model"
        shutil.copytree(models / "logit-qwen3", folder, copy_function=shutil.copy)

        def says(message, code=1, *flags):
            result = self.bad(code, "-m", folder, "--query", "a", *flags, stdin=b"b\n")
            self.assertEqual(result.stderr.decode(), f"pith rerank: {message}\n")
        here = "this model cannot read text: modules.json: module Transformer (next to modules.json): "
        (folder / "chat_template.jinja").write_text("{{ messages[0].content }}\n{% macro a() %}{% endmacro %}")
        says(here + "chat_template.jinja: chat template, line 2: 'macro' is not run here")
        (folder / "chat_template.jinja").write_text("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}")
        says(here + "chat_template.jinja: chat template, line 1: a block 'for' is not of the form that is run here: 'for x in list'")
        (folder / "chat_template.jinja").write_text("{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}")
        says(here + "chat_template.jinja: chat template: it leaves the query of a pair out, as templates for conversations do")
        (folder / "chat_template.jinja").unlink()
        says(here + "modality_config.message asks for a chat template, but neither chat_template.jinja nor tokenizer_config.json has one")
        (folder / "modules.json").unlink()
        (folder / "sentence_bert_config.json").unlink()
        config = json.loads((folder / "config.json").read_text())
        self.good("-m", folder, "--query", "a", stdin=b"b\n")  # without its modules it is read as Qwen3-Reranker
        (folder / "model.safetensors").unlink()
        shutil.copy(models / "logit-qwen3-onnx/model.onnx", folder)
        self.good("-m", folder, "--query", "a", stdin=b"b\n")
        (folder / "config.json").write_text(json.dumps(config | {"model_type": "phi3"}))
        says("a causal language model answers with words behind a prompt; those of Qwen3-Reranker and mxbai-rerank-v2 are known, and "
             "what a module LogitScore says; use a conversion to one of these, or to sequence classification")

    def test_lines_that_are_wrong(self):
        first = b'{"query": "a", "documents": ["b"]}\n'
        for line, says in ((b"[1]", "not a JSON object"), (b"{", "line 2"), (b"3", "not a JSON object"), (b"x", "line 2"),
                           (b'{"documents": ["b"]}', 'no string "query"'), (b'{"query": 3, "documents": []}', 'no string "query"'),
                           (b'{"query": "a"}', 'no array "documents"'), (b'{"query": "a", "documents": "b"}', 'no array "documents"'),
                           (b'{"query": "a", "documents": ["b", null]}', "a document is not a string"),
                           (b'{"query": "a", "documents": [{"text": "b"}]}', "a document is not a string"),
                           (b'{"query": "a", "documents": ["\\ud800"]}', "line 2"), (b'{"query": "a"} {}', "line 2"),
                           (b'{"query": "\xff", "documents": []}', ("line 2", "UTF-8"))):
            with self.subTest(line):
                out = self.bad(1, "-m", CROSS, stdin=first + line + b"\n" + first, says=says).stdout
                self.assertEqual(len(out.splitlines()), 1)  # what was before it is written
        (self.dir / "q").write_bytes(first + b"{}\n")
        self.bad(1, "-m", CROSS, "q", says="q:2")
        self.bad(1, "-m", CROSS, "--query", "a", stdin=b"a\n\xff\n", says=("line 2", "UTF-8"))
        self.bad(1, "-m", CROSS, "--query", os.fsdecode(b"a\xff"), stdin=b"a\n", says="query: invalid UTF-8 at byte 1")
        self.bad(1, "-m", CROSS, "--query", "a", "--jsonl", stdin=b'{"text": 3}', says="a number, not a string")
        self.bad(1, "-m", CROSS, "--query", "a", "--jsonl", stdin=b'{"t": "3", "u": "4"}', says=("no field 'text'", "t, u"))
        wanted = self.rows("-m", CROSS, "--query", "a\ufffd", stdin="b\ufffd\n".encode())
        self.assertEqual(self.rows("-m", CROSS, "--query", os.fsdecode(b"a\xff"), "--invalid", "replace", stdin=b"b\xff\n"), wanted)
        self.assertEqual(len(self.rows("-m", CROSS, stdin=b"\xef\xbb\xbf" + first)), 1)

    def test_usage(self):
        for flags in (["--jsonl"], ["-0"], ["--field", "x"]):
            self.bad(2, "-m", CROSS, *flags, says="go with --query")
        self.bad(2, "-m", CROSS, "--query", "a", "--field", "x", says="--column and --id go with --jsonl")
        self.bad(2, "-m", CROSS, "--query", "a", "--jsonl", "-0", says="do not go together")

    def test_outputs(self):
        self.write_outputs(CROSS, ["--query", "a cat"], lines(PAIRS))
        self.write_outputs(CROSS, ["-k", "2"], b'{"query": "a", "documents": ["b", "c"]}\n' * 3)

    def test_dialogue(self):
        """A question is answered before the next one is written."""
        with subprocess.Popen([PITH, "rerank", "-m", CROSS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for i in range(3):
                process.stdin.write(b'{"query": "a", "documents": ["b"]}\n')
                process.stdin.flush()
                self.assertEqual(json.loads(process.stdout.readline())["query"], i)
            process.stdin.close()


class Classify(Scored):
    verb = "classify"

    def check(self, found, wanted):
        for row, scores in zip(found, wanted, strict=True):
            self.assertEqual([r["score"] for r in row], sorted((r["score"] for r in row), reverse=True))
            got = {r["label"]: r["score"] for r in row}
            self.assertEqual(len(got), len(row))
            for label, score in zip(NAMES, scores):
                self.assertLess(abs(got[label] - score), 1e-5)

    def edited(self, **settings):
        """The model with other settings in config.json."""
        folder = self.dir / "edited"
        folder.mkdir(exist_ok=True)
        for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            if not (folder / name).exists():
                os.symlink(LABELS / name, folder / name)
        config = json.loads((LABELS / "config.json").read_text()) | settings
        (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
        return folder

    def test_values(self):
        """What the pipeline of transformers gives."""
        self.check(self.rows("-m", LABELS, stdin=lines(TEXTS)), reference(LABELS, "text.f32"))
        self.check(self.rows("-m", LABELS, "--raw", stdin=lines(TEXTS)), reference(LABELS, "logits.f32"))
        self.check(self.rows("-m", LABELS, "-0", stdin=b"\0".join(t.encode() for t in TEXTS)), reference(LABELS, "text.f32"))
        several = self.edited(problem_type="multi_label_classification")
        self.check(self.rows("-m", several, stdin=lines(TEXTS)), reference(LABELS, "several.f32"))
        rows = self.rows("-m", CROSS, stdin=lines(TEXTS))
        self.assertEqual([[r["label"] for r in row] for row in rows], [["LABEL_0"]] * len(TEXTS))
        np.testing.assert_allclose([row[0]["score"] for row in rows], reference(CROSS, "text.f32")[:, 0], atol=1e-5)

    def test_pairs_and_fields(self):
        rows = self.rows("-m", LABELS, "--jsonl", "--pair-field", "pair", TASKS / "texts.jsonl")
        self.check([r["labels"] for r in rows], reference(LABELS, "pair.f32"))
        self.assertEqual([(r["text"], r["pair"]) for r in rows], list(zip(TEXTS, PAIRS)))
        out = self.good("-m", LABELS, "--jsonl", "--field", "t", "-k", 1, stdin=b'{"t": "a", "n": 1e999, "labels": 3, "z": {}}\n\n')
        self.assertTrue(out.startswith(b'{"t": "a", "n": 1e999, "z": {},"labels":[{"label": "'), out)
        self.assertEqual(out.count(b'"label"'), 1)

    def test_labels(self):
        rows = self.rows("-m", LABELS, "--top-k", 2, stdin=b"a\n")
        self.assertEqual(len(rows[0]), 2)
        self.assertEqual(self.rows("-m", LABELS, "-k", 99, stdin=b"a\n"), self.rows("-m", LABELS, stdin=b"a\n"))
        unnamed = self.edited(id2label=None)
        self.assertEqual({r["label"] for r in self.rows("-m", unnamed, stdin=b"a\n")[0]}, {"LABEL_0", "LABEL_1", "LABEL_2"})
        self.bad(1, "-m", self.edited(id2label={"0": "a", "1": "b"}), stdin=b"a\n", says=("config.json has 2 labels", "3 scores"))
        self.bad(1, "-m", self.edited(id2label={"x": "a"}), stdin=b"a\n", says=("config.json", "'x' is not the number of a label"))
        self.bad(1, "-m", self.edited(sbert_ce_default_activation_function="torch.nn.Tanh"), stdin=b"a\n", says="torch.nn.Tanh")

    def test_what_is_no_number(self):
        """Logits that are NaN are null, behind those that are numbers."""
        folder = self.edited()
        data = bytearray((LABELS / "model.safetensors").read_bytes())
        size = int.from_bytes(data[:8], "little")
        begin = json.loads(data[8:8 + size])["classifier.bias"]["data_offsets"][0] + 8 + size
        data[begin:begin + 4] = np.float32(math.nan).tobytes()
        (folder / "model.safetensors").unlink()
        (folder / "model.safetensors").write_bytes(data)
        row = self.rows("-m", folder, "--raw", stdin=b"a\n")[0]
        self.assertEqual((row[2]["label"], row[2]["score"]), ("negative", None))
        self.assertGreaterEqual(row[0]["score"], row[1]["score"])

    def test_nothing_and_wrong(self):
        self.assertEqual(self.good("-m", LABELS), b"")
        self.assertEqual(len(self.rows("-m", LABELS, stdin=b"\n")), 1)
        self.bad(1, "-m", TASKS / "splade-distilbert", stdin=b"a\n", says="not a classifier")
        self.bad(1, "-m", LABELS, stdin=b"a\n\xff\n", says=("line 2", "UTF-8"))
        self.assertEqual(self.rows("-m", LABELS, "--invalid", "replace", stdin=b"\xff"), self.rows("-m", LABELS, stdin="\ufffd".encode()))
        self.bad(1, "-m", LABELS, "--jsonl", stdin=b"[1]\n", says=("line 1", "not a JSON object"))
        self.bad(1, "-m", LABELS, "--jsonl", stdin=b'{"text": ["a"]}\n', says=("line 1", "an array, not a string"))
        self.bad(1, "-m", LABELS, "--jsonl", "--pair-field", "p", stdin=b'{"text": "a"}\n', says="no field 'p'")
        for flags in (["--field", "x"], ["--pair-field", "x"]):
            self.bad(2, "-m", LABELS, *flags, says="go with --jsonl")
        self.bad(2, "-m", LABELS, "--jsonl", "-0", says="do not go together")

    def test_outputs(self):
        self.write_outputs(LABELS, [], lines(TEXTS))
        self.write_outputs(LABELS, ["--jsonl", "--pair-field", "pair"], (TASKS / "texts.jsonl").read_bytes())

    def test_dialogue(self):
        with subprocess.Popen([PITH, "classify", "-m", LABELS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for _ in range(3):
                process.stdin.write(b"a line\n")
                process.stdin.flush()
                self.assertEqual(len(json.loads(process.stdout.readline())), 3)
            process.stdin.close()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
