#!/usr/bin/env python3
"""What the command promises: formats, text input rules, errors, exit codes, JSON keys. docs/cli.md says the same in words.

usage: cli.py PITH SOURCE_DIR [unittest arguments]; needs NumPy and onnx (tests/requirements.txt) and the default model.
"""
import fcntl
import io
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

from command import PITH, SANITIZED, SOURCE, Command

DATA = SOURCE / "tests/data"
MODELS = DATA / "models"
VERBS = re.findall(r"^VERB\((\w+)\)$", (SOURCE / "cli/verbs.def").read_text(), re.M)
STATS = {"texts", "tokens", "padded_tokens", "truncated", "seconds", "tokens_per_second", "peak_bytes", "statistics"}


class Verbs(Command):
    """Calls name their verb, and may write to standard error."""
    verb, quiet = None, False

    def run_pith(self, *arguments, env=None, **keywords):
        return super().run_pith(*arguments, env={**os.environ, **(env or {})}, **keywords)

    def vectors(self, text, *arguments):
        lines = self.good("embed", *arguments, stdin=text).decode().splitlines()
        return np.array([json.loads(line) for line in lines], np.float32)


class General(Verbs):
    def test_help(self):
        listed = self.good("--help", "all").decode()
        for name in VERBS:
            self.assertIn(f"\n  {name} ", listed)
            shown = self.good(name, "--help").decode()
            self.assertTrue(shown.startswith(f"usage: pith {name}"))
            self.assertGreater(shown.count(f"pith {name}"), 1)  # an example
            self.assertEqual(self.good("help", name).decode(), shown)

    def test_version(self):
        self.assertRegex(self.good("--version").decode(), r"^pith \d+\.\d+\.\d+\n$")

    def test_usage(self):
        self.bad(2)
        self.bad(2, "nonsense", says="nonsense")
        self.bad(2, "tokenise", says="did you mean 'tokenize'?")
        self.bad(2, "--nonsense", says="pith: unknown option '--nonsense'")
        self.bad(2, "--version", "embed", says="pith embed ...")
        self.bad(2, "--completion", "tcsh", says="bash|zsh|fish")
        self.bad(2, "--man", "nonsense", says="nonsense")
        self.bad(2, "embed", "--=3", says="unknown option '--=3'")
        self.bad(2, "embed", "--nonsense", says="--nonsense")
        self.bad(2, "embed", "--dim", says="--dim needs a value")
        self.bad(2, "embed", "--dim", "x", says="'x'")
        self.bad(2, "embed", "--format", "xml", says="jsonl|npy|f32|csv")
        self.bad(2, "run", says="one model")
        self.bad(2, "similarity", "one", says="two texts")

    def test_unknown_model(self):
        cache = {"PITH_CACHE": str(self.dir)}
        self.bad(1, "embed", "-m", "no-such-model", says=("no-such-model", str(self.dir)), env=cache)
        self.bad(1, "embed", says=("all-MiniLM-L6-v2", "make model"), env=cache)
        self.bad(1, "embed", "-m", "/no/such/model", says="/no/such/model")
        self.bad(1, "embed", "-m", self.dir, says=("model.onnx", "model.safetensors"))
        (self.dir / "config.json").write_text('{"model_type": "abacus"}')
        (self.dir / "model.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
        self.bad(1, "embed", "-m", self.dir, says=("abacus", "bert"))

    def test_no_text(self):
        self.bad(1, "embed", "-m", MODELS / "bert-base-script17-eager/model.onnx", says="tokenizer")


class Embed(Verbs):
    def test_lines(self):
        plain = self.vectors(b"one\ntwo\n\nfour\n")
        self.assertEqual(plain.shape, (4, 384))
        np.testing.assert_array_equal(self.vectors(b"one\r\ntwo\r\n\r\nfour"), plain)
        np.testing.assert_array_equal(self.vectors(b"one\0two\0\0four", "-0"), plain)
        self.assertEqual(self.good("embed", stdin=b""), b"")
        # NUL bytes and newlines inside texts
        one = self.vectors(b"a\nb\0", "-0")
        self.assertEqual(one.shape, (1, 384))

    def test_files(self):
        (self.dir / "a.txt").write_text("one\ntwo")
        (self.dir / "b.txt").write_text("four\n")
        together = self.good("embed", self.dir / "a.txt", "-", self.dir / "b.txt", stdin=b"three\n")
        self.assertEqual(together, self.good("embed", stdin=b"one\ntwo\nthree\nfour\n"))
        self.bad(1, "embed", self.dir / "a.txt", self.dir / "missing.txt", says="missing.txt")

    def test_formats(self):
        text = b"one\ntwo\nthree\n"
        plain = self.vectors(text)
        raw = np.frombuffer(self.good("embed", "--format", "f32", stdin=text), "<f4").reshape(-1, 384)
        np.testing.assert_array_equal(raw, plain)
        csv = np.loadtxt(io.BytesIO(self.good("embed", "--format", "csv", stdin=text)), delimiter=",", dtype=np.float32)
        np.testing.assert_array_equal(csv, plain)
        piped = np.load(io.BytesIO(self.good("embed", "--format", "npy", stdin=text)))
        np.testing.assert_array_equal(piped, plain)
        self.good("embed", "--format", "npy", "-o", self.dir / "v.npy", stdin=text)
        np.testing.assert_array_equal(np.load(self.dir / "v.npy"), plain)
        self.good("embed", "--format", "npy", "-o", self.dir / "none.npy", stdin=b"")
        self.assertEqual(np.load(self.dir / "none.npy").shape, (0, 384))
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["none.npy", "v.npy"])

    def test_jsonl(self):
        rows = [{"id": 7, "text": "one", "more": {"a": [1, None]}}, {"text": "two\nlines", "embedding": "old"}]
        out = self.good("embed", "--jsonl", stdin="".join(json.dumps(r) + "\n" for r in rows).encode()).decode().splitlines()
        first, second = map(json.loads, out)
        self.assertEqual(list(first), ["id", "text", "more", "embedding"])
        self.assertEqual(first["more"], {"a": [1, None]})
        self.assertEqual(list(second), ["text", "embedding"])
        np.testing.assert_array_equal(np.float32(first["embedding"]), self.vectors(b"one")[0])
        other = json.loads(self.good("embed", "--jsonl", "--field", "t", stdin=b'{"t": "one"}'))
        self.assertEqual(other["embedding"], first["embedding"])
        self.bad(1, "embed", "--jsonl", stdin=b'{"text": "one"}\n{"no": 1}\n', says=("line 2", "text"))
        self.bad(1, "embed", "--jsonl", stdin=b"[1]\n", says="line 1")
        self.bad(1, "embed", "--jsonl", stdin=b"{", says="line 1")

    def test_options(self):
        text = b"a cat sat on the mat\nanother one\n"
        plain = self.vectors(text)
        np.testing.assert_allclose(np.linalg.norm(plain, axis=1), 1, rtol=1e-6)
        loose = self.vectors(text, "--no-normalize")
        self.assertGreater(np.abs(np.linalg.norm(loose, axis=1) - 1).min(), 0.1)
        short = self.vectors(text, "--dim", "64")
        expected = loose[:, :64] / np.linalg.norm(loose[:, :64], axis=1, keepdims=True)
        np.testing.assert_allclose(short, expected, atol=1e-6)
        self.bad(1, "embed", "--dim", "385", stdin=text, says="384")
        kinds = {how: self.vectors(text, "--pooling", how) for how in ("cls", "mean", "max", "last")}
        np.testing.assert_array_equal(kinds["mean"], plain)
        self.assertGreater(np.abs(kinds["cls"] - kinds["last"]).max(), 0.01)
        two = self.vectors(b"cat dog", "--max-length", "3")
        np.testing.assert_array_equal(two, self.vectors(b"cat"))
        self.bad(1, "embed", "--prompt-name", "query", stdin=text, says=("query", "none"))

    def test_stats(self):
        long = b"word " * 1000
        result = self.run_pith("embed", "--stats", stdin=b"one\n\n" + long)
        stats = json.loads(result.stderr.splitlines()[-1])  # behind the warning of a text that was cut
        self.assertEqual(set(stats), STATS)
        self.assertEqual((stats["texts"], stats["tokens"], stats["truncated"], stats["padded_tokens"]), (3, 3 + 2 + 256, 1, 0))
        self.assertGreater(stats["peak_bytes"], 0)
        self.assertEqual(self.run_pith("embed", "--progress", stdin=b"one\n").stderr, b"")  # not a terminal

    def test_memory_limit(self):
        text = b"".join(b"word %d of a longer line\n" % i * (1 + i % 9) for i in range(300))
        plain = self.vectors(text)
        np.testing.assert_array_equal(self.vectors(text, "--memory-limit", "1G"), plain)
        np.testing.assert_array_equal(self.vectors(text, "--memory-limit", "49M", "-t", "2"), plain)
        self.bad(1, "embed", "--memory-limit", "20000k", stdin=text, says="the memory limit is 20480000 bytes")
        for wrong in ("", "x", "0", "-1", "1T", "5MB", "nan"):
            self.bad(2, "embed", "--memory-limit", wrong, stdin=text, says="--memory-limit must be bytes")

    def test_profile(self):
        self.good("embed", "--profile", self.dir / "trace.json", stdin=b"a cat\na dog\n")
        events = json.loads((self.dir / "trace.json").read_text())["traceEvents"]
        steps = [e for e in events if e.get("cat") == "step"]
        self.assertEqual({e["name"] for e in events if e.get("cat") == "phase"},
                         {"open", "read", "optimise", "tokenizer and plan", "read texts", "tokenise", "bind", "run", "pool", "write"})
        self.assertEqual(set(steps[0]), {"name", "cat", "ph", "pid", "tid", "ts", "dur", "args"})
        self.assertEqual(set(steps[0]["args"]), {"step", "depth", "node", "shapes", "kernel", "flop", "bytes", "threads"})
        self.bad(1, "embed", "--profile", self.dir / "nowhere/trace.json", stdin=b"x", says="nowhere")

    def test_invalid(self):
        result = self.bad(1, "embed", stdin=b"good\nb\xff\xe2\x82d\nnever\n", says=("line 2", "byte 2"))
        self.assertEqual(len(result.stdout.splitlines()), 1)  # what came before is written
        replaced = self.good("embed", "--invalid", "replace", stdin=b"b\xff\xe2\x82d\n")
        self.assertEqual(replaced, self.good("embed", stdin="b\ufffd\ufffdd\n".encode()))
        for raw in (b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f\x98", b"\xe4\xf0\x9f\x98\x80\x80"):
            self.assertEqual(self.good("tokenize", "--invalid", "replace", stdin=raw),
                             self.good("tokenize", stdin=raw.decode(errors="replace").encode()), raw)

    def test_long_line(self):
        (self.dir / "long.txt").write_bytes(b"a few words " * (50 * 1024 * 1024 // 12) + b"\nshort\n")
        self.good("tokenize", "--count", "-o", self.dir / "count", self.dir / "long.txt")
        self.assertEqual((self.dir / "count").read_text(), "256\n3\n")
        limit = ["bash", "-c", 'ulimit -v 600000; exec "$0" "$@"', PITH, "embed", "--format", "f32", "-t", "1", self.dir / "long.txt"]
        if SANITIZED:
            limit = limit[3:]  # sanitizers want the address space for themselves
        result = subprocess.run(limit, capture_output=True)
        self.assertEqual((result.returncode, len(result.stdout)), (0, 2 * 384 * 4), result.stderr)

    def test_full_disk(self):
        for arguments in (["embed"], ["embed", "--format", "npy"], ["tokenize"]):
            self.bad(1, *arguments, "-o", "/dev/full", stdin=b"one\n", says="No space left")
            with open("/dev/full", "wb") as full:
                result = subprocess.run([PITH, *arguments], input=b"one\n", stdout=full, stderr=subprocess.PIPE)
            self.assertEqual(result.returncode, 1)
            self.assertIn(b"No space left", result.stderr)
        self.bad(1, "embed", "-o", self.dir / "no/such/x", stdin=b"one\n", says="No such file")

    def test_resume(self):
        """What an interrupted call left is gone on with, whatever the place it was cut at; what others left is not touched."""
        texts, out = self.dir / "many.txt", self.dir / "out"
        part = self.dir / "out.part"
        texts.write_bytes(b"".join(b"text %d\n" % i for i in range(40)))
        for format in ("jsonl", "csv", "f32", "npy"):
            arguments = ("embed", "--format", format, "--resume", "-o", out)
            self.good(*arguments, texts)
            whole = out.read_bytes()
            self.assertFalse(part.exists())
            for size in (0, 50, len(whole) // 3, len(whole) // 2, len(whole) - 1, len(whole)):
                part.write_bytes(whole[:size])
                result = self.run_pith(*arguments, "--stats", texts)
                self.assertEqual(out.read_bytes(), whole, (format, size))
                self.assertEqual(json.loads(result.stderr)["texts"] < 40, size > 10000, (format, size))
            left = whole[:len(whole) // 2]
            part.write_bytes(left)
            self.bad(1, *arguments, "--no-normalize", texts, says=("out.part", "last vector"))
            self.bad(1, *arguments, stdin=b"text 0\ntext 1\n", says=("out.part", "last vector"))
            self.bad(1, "embed", "--resume", "-o", out, "--format", "csv" if format == "jsonl" else "jsonl", texts, says="out.part")
            self.assertEqual(part.read_bytes(), left)
            out.unlink()
            self.bad(1, *arguments, stdin=texts.read_bytes() + b"\xff\n", says=("line 41", "out.part"))
            self.assertFalse(out.exists())
            self.good(*arguments, texts)
            self.assertEqual(out.read_bytes(), whole)
        self.bad(2, "embed", "--resume", texts, says="-o FILE")
        with open(part, "wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.bad(1, *arguments, texts, says="another process")
        self.bad(1, "embed", "--resume", "-o", "/dev/null", texts, says="/dev/null")

    def test_closed_pipe(self):
        for name in ("embed", "tokenize"):
            process = subprocess.Popen([PITH, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdout.close()
            try:
                process.stdin.write(b"some words\n" * 3000)
                process.stdin.close()
            except BrokenPipeError:
                pass
            self.assertEqual(process.stderr.read(), b"")
            self.assertEqual(process.wait(), 0)
            process.stderr.close()

    def test_dialogue(self):
        """A line is answered before the next one is written."""
        with subprocess.Popen([PITH, "embed"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for text in (b"one\n", b"two\n", b"three\n"):
                process.stdin.write(text)
                process.stdin.flush()
                self.assertEqual(len(json.loads(process.stdout.readline())), 384)
            process.stdin.close()
        self.assertEqual(process.returncode, 0)

    def test_windows(self):
        """More texts than the ring of windows holds, order kept."""
        texts = [f"{i % 50}" for i in range(3500)]
        raw = np.frombuffer(self.good("embed", "--format", "f32", stdin="\n".join(texts).encode()), "<f4").reshape(-1, 384)
        self.assertEqual(len(raw), len(texts))
        np.testing.assert_array_equal(raw, np.tile(raw[:50], (70, 1)))

    def test_similarity(self):
        near, far = (float(self.good("similarity", "a cat sat on the mat", other))
                     for other in ("a kitten rested on the rug", "interest rates rose"))
        self.assertGreater(near, far + 0.3)
        matrix = np.array(json.loads(self.good("similarity", "--json", "one", "two", "three"))["similarities"])
        np.testing.assert_allclose(np.diag(matrix), 1, atol=1e-6)
        np.testing.assert_array_equal(matrix, matrix.T)


class Tokenize(Verbs):
    def test_ids(self):
        self.assertEqual(self.good("tokenize", stdin=b"a cat sat on the mat\n\n"),
                         b"[101,1037,4937,2938,2006,1996,13523,102]\n[101,102]\n")
        self.assertEqual(self.good("tokenize", "--no-specials", stdin=b"a cat"), b"[1037,4937]\n")
        self.assertEqual(self.good("tokenize", "--jsonl", stdin=b'{"text": "a cat"}'), b"[101,1037,4937,102]\n")
        full = json.loads(self.good("tokenize", "--full", stdin=b"a cat"))
        self.assertEqual(full, {"ids": [101, 1037, 4937, 102], "tokens": ["[CLS]", "a", "cat", "[SEP]"],
                                "offsets": [[0, 0], [0, 1], [2, 5], [0, 0]], "word_ids": [None, 0, 1, None],
                                "sequence_ids": [None, 0, 0, None], "type_ids": [0] * 4, "special": [1, 0, 0, 1],
                                "attention": [1] * 4})

    def test_pairs(self):
        pair = json.loads(self.good("tokenize", "--pair", "--full", "--characters", stdin="né\tna cat".encode()))
        self.assertEqual(pair["ids"], [101, 11265, 102, 6583, 4937, 102])
        self.assertEqual(pair["offsets"], [[0, 0], [0, 2], [0, 0], [0, 2], [3, 6], [0, 0]])
        self.assertEqual(pair["sequence_ids"], [None, 0, None, 1, 1, None])
        self.assertEqual(pair["type_ids"], [0, 0, 0, 1, 1, 1])
        objects = b'{"text": "a", "other": "cat"}\n{"text": "a b c d", "other": "cat"}\n'
        options = ("tokenize", "--jsonl", "--pair", "--pair-field", "other", "--max-length", "5")
        self.assertEqual(self.good(*options, stdin=objects), b"[101,1037,102,4937,102]\n[101,1037,102,4937,102]\n")
        self.assertEqual(self.good(*options, "--side", "left", stdin=objects[30:]), b"[101,1040,102,4937,102]\n")
        self.bad(1, "tokenize", "--pair", stdin=b"a\tb\nno tab\n", says="line 2")
        self.bad(1, "tokenize", "--jsonl", "--pair", stdin=objects, says="line 1")

    def test_tables(self):
        """Models that are tables of vectors get no special tokens, and Model2Vec leaves unknown words out: the vectors are
        means of just these rows. --file-settings shows what tokenizer.json alone gives."""
        data, text = SOURCE / "tests/data/modules", "the cat sat ☃ on the mat".encode()
        for name, ids in (("static", [10, 6, 8, 1, 9, 10, 11]), ("model2vec", [10, 6, 8, 9, 10, 11])):
            model = data / name
            self.assertEqual(json.loads(self.good("tokenize", "-m", model, stdin=text)), ids)
            full = json.loads(self.good("tokenize", "-m", model, "--full", stdin=text))
            self.assertEqual((full["ids"], full["special"], len(full["offsets"])), (ids, [0] * len(ids), len(ids)))
            self.assertEqual(full["tokens"][-1], "mat")
            self.assertEqual(full["offsets"][-1], [len(text) - 3, len(text)])
            self.assertEqual(json.loads(self.good("tokenize", "-m", model, "--file-settings", stdin=text)), [2, 10, 6, 8, 1, 9, 10, 11, 3])
            rows = [np.array(json.loads(line)) for line in
                    self.good("embed", "-m", model, "--no-normalize", stdin=b"the\ncat\nsat\n\xe2\x98\x83\non\nmat\n").splitlines()]
            table = dict(zip([10, 6, 8, 1, 9, 11], rows))
            vector = np.array(json.loads(self.good("embed", "-m", model, "--no-normalize", stdin=text)))
            np.testing.assert_allclose(vector, np.mean([table[i] for i in ids], axis=0), atol=1e-5)
            self.good("compile", "-m", model, "-o", f"{name}.pith")
            self.assertEqual(json.loads(self.good("tokenize", "-m", f"{name}.pith", stdin=text)), ids)

    def test_windows(self):
        options = ("tokenize", "--overflow", "--max-length", "5", "--stride", "1")
        self.assertEqual(self.good(*options, stdin=b"a b c d e f g\na\n\n"),
                         b"[[101,1037,1038,1039,102],[101,1039,1040,1041,102],[101,1041,1042,1043,102]]\n[[101,1037,102]]\n[[101,102]]\n")
        self.assertEqual(self.good(*options, "--count", stdin=b"a b c d e f g\na\n"), b"15\n3\n")
        full = json.loads(self.good(*options, "--full", stdin=b"a b c d"))
        self.assertEqual([w["offsets"][1:-1] for w in full], [[[0, 1], [2, 3], [4, 5]], [[4, 5], [6, 7]]])
        self.bad(1, "tokenize", "--max-length", "5", "--stride", "3", stdin=b"a b c d e f", says=("line 1", "stride"))

    def test_batches(self):
        """Many lines: order and results do not depend on threads; a bad line stops after those before it."""
        lines = [f"text {i} of many, {i * i}" for i in range(10000)]
        text = "\n".join(lines).encode()
        one = self.good("tokenize", "--threads", "1", stdin=text)
        self.assertEqual(one, self.good("tokenize", "--threads", "3", stdin=text))
        self.assertEqual(one.count(b"\n"), len(lines))
        total = int(self.good("tokenize", "--total", stdin=text))
        self.assertEqual(total, sum(map(int, self.good("tokenize", "--count", stdin=text).split())))
        bad = "\n".join(lines[:5000]).encode() + b"\n\xff\n" + text
        result = subprocess.run([PITH, "tokenize"], input=bad, capture_output=True)
        self.assertEqual((result.returncode, result.stdout.count(b"\n")), (1, 5000))
        self.assertIn(b"line 5001", result.stderr)

    def test_back(self):
        ids = self.good("tokenize", stdin="a cat sat.\n\nNaïve cafés!\n".encode())
        self.assertEqual(self.good("detokenize", stdin=ids), b"a cat sat.\n\nnaive cafes!\n")
        full = self.good("tokenize", "--full", stdin=b"a cat")
        self.assertEqual(self.good("detokenize", stdin=full), b"a cat\n")
        self.assertEqual(self.good("detokenize", "--keep-specials", stdin=full), b"[CLS] a cat [SEP]\n")
        self.bad(1, "detokenize", stdin=b"[101]\n[99999999]\n", says=("line 2", "99999999"))
        self.bad(1, "detokenize", stdin=b"[-1]\n", says="line 1")
        self.bad(1, "detokenize", stdin=b"{}\n", says="line 1")
        self.assertEqual(self.good("detokenize", "--stream", stdin=b"101\n1037\n[4937,2938]\n102\n"), b"a cat sat\n")
        self.bad(1, "detokenize", "--stream", stdin=b"101\nx\n", says="line 2")

    def test_length(self):
        text = b"word " * 600
        counts = [int(self.good("tokenize", "--count", *a, stdin=text)) for a in ((), ("--max-length", "0"), ("--max-length", "9"))]
        self.assertEqual(counts, [256, 602, 9])
        lone = SOURCE / "tests/data/minilm/tokenizer.json"
        self.assertEqual(self.good("tokenize", "-m", lone, stdin=b"a cat"), b"[101,1037,4937,102]\n")
        self.assertEqual(len(json.loads(self.good("tokenize", "-m", lone, "--file-settings", stdin=b"a cat"))), 128)
        self.bad(1, "tokenize", "-m", self.dir, stdin=b"x", says="tokenizer.json")


class Models(Verbs):
    def test_run(self):
        model = MODELS / "bert-base-script17-eager/model.onnx"
        data = MODELS / "bert-base-script17-eager/test_data_set_0"
        self.bad(1, "run", model, says=("missing inputs", "input_ids", "int64", "attention_mask"))
        self.bad(1, "run", model, "-i", "nonsense=" + str(data / "input_0.pb"), says=("nonsense", "input_ids"))
        description = json.loads(self.good("inspect", "--json", model))
        inputs = [f"-i{port['name']}={data / f'input_{i}.pb'}" for i, port in enumerate(description["inputs"])]
        self.good("run", model, *inputs, "-o", self.dir)
        import onnx.numpy_helper
        for i, port in enumerate(description["outputs"]):
            got = np.load(self.dir / f"{i}_{port['name']}.npy")
            wanted = onnx.numpy_helper.to_array(onnx.load_tensor(data / f"output_{i}.pb"))
            np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-5)
        self.bad(1, "run", model, *inputs, "--memory-limit", "100k", says="the memory limit is 102400 bytes")
        self.good("run", model, *inputs, "--memory-limit", "16M")
        self.good("run", model, *inputs, "--profile", self.dir / "trace.json")
        names = {e["name"] for e in json.loads((self.dir / "trace.json").read_text())["traceEvents"]}
        self.assertLessEqual({"open", "read inputs", "bind", "run", "Linear", "Attention", "write"}, names)
        # .npy in gives the same out
        arrays = []
        for i, port in enumerate(description["inputs"]):
            np.save(self.dir / f"in{i}.npy", onnx.numpy_helper.to_array(onnx.load_tensor(data / f"input_{i}.pb")))
            arrays.append(f"-i{port['name']}={self.dir / f'in{i}.npy'}")
        self.good("run", model, *arrays, "-o", self.dir / "again")
        for path in (self.dir / "again").iterdir():
            self.assertEqual(path.read_bytes(), (self.dir / path.name).read_bytes())
        np.save(self.dir / "wrong.npy", np.zeros((1, 4), np.float32))
        self.bad(1, "run", model, "-i", f"input_ids={self.dir / 'wrong.npy'}", says=("input_ids", "float32", "int64"))
        self.bad(1, "run", model, "-i", f"input_ids={__file__}", says="not a .npy file")

    def test_loop_limit(self):
        from onnx import TensorProto, helper, save, numpy_helper
        scalar = lambda name, dtype: helper.make_tensor_value_info(name, dtype, [])
        integer, truth = TensorProto.INT64, TensorProto.BOOL
        body = helper.make_graph(
            [helper.make_node("Identity", ["going"], ["goes"]), helper.make_node("Add", ["sum", "one"], ["more"])], "body",
            [scalar("i", integer), scalar("going", truth), scalar("sum", integer)], [scalar("goes", truth), scalar("more", integer)])
        graph = helper.make_graph(
            [helper.make_node("Loop", ["n", "", "one"], ["total"], "counts", body=body)], "g", [scalar("n", integer)],
            [scalar("total", integer)], [numpy_helper.from_array(np.array(1, np.int64), "one")])
        model = self.dir / "test" / "model.onnx"
        data = model.parent / "test_data_set_0"
        data.mkdir(parents=True)
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), model)

        def times(n):
            for name, value in (("input_0", n), ("output_0", n + 1)):
                (data / f"{name}.pb").write_bytes(numpy_helper.from_array(np.array(value, np.int64)).SerializeToString())
            return "-i", f"n={data / 'input_0.pb'}"

        given = times(1000)
        ended = "node 0 'counts' (Loop): has not ended after 999 iterations, the limit"
        runs = (("run", model, *given), ("inspect", "--time", "--runs", "1", model, *given))
        for arguments in (*runs, ("verify", model.parent)):
            self.good(*arguments)
            self.good(*arguments, "--loop-limit", "1000")
            result = self.bad(1, *arguments, "--loop-limit", "999")
            told = (result.stdout + result.stderr).decode()
            self.assertIn(ended, told)
            self.assertIn("--loop-limit", told)
            for wrong in ("0", "-1", "many", "2147483648"):
                self.bad(2, *arguments, f"--loop-limit={wrong}", says="--loop-limit must be a number from 1 to 2147483647")
        given = times(10**6 + 1)  # beyond the default
        self.bad(1, "run", model, *given, says=("has not ended after 1000000 iterations", "--loop-limit"))
        self.good("run", model, *given, "--loop-limit", "1000001")

    def types_model(self, dtype):
        from onnx import TensorProto, checker, helper, save
        x, y = (helper.make_tensor_value_info(n, dtype, ["n"]) for n in "xy")
        model = helper.make_model(helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [y]),
                                  opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        save(model, self.dir / "model.onnx")

    def test_types(self):
        from onnx import TensorProto
        rows = [(TensorProto.FLOAT, "<f4"), (TensorProto.DOUBLE, "<f8"), (TensorProto.FLOAT16, "<f2"), (TensorProto.INT8, "i1"),
                (TensorProto.UINT16, "<u2"), (TensorProto.INT64, "<i8"), (TensorProto.UINT64, "<u8"), (TensorProto.BOOL, "?"),
                (TensorProto.BFLOAT16, "<u2"), (TensorProto.FLOAT8E5M2, "u1"), (TensorProto.COMPLEX64, "<c8")]
        for dtype, numpy in rows:
            self.types_model(dtype)
            x = np.array([0, 1, 1, 0, 1]).astype(numpy)
            np.save(self.dir / "x.npy", x)
            self.good("run", self.dir / "model.onnx", "-i", f"x={self.dir / 'x.npy'}", "-o", self.dir / "out")
            y = np.load(self.dir / "out/0_y.npy")
            self.assertEqual((y.dtype, y.tolist()), (x.dtype, x.tolist()))
        self.types_model(TensorProto.STRING)
        np.save(self.dir / "x.npy", np.array(["", "a", "ß日本😀"]))
        self.good("run", self.dir / "model.onnx", "-i", f"x={self.dir / 'x.npy'}", "-o", self.dir / "out")
        self.assertEqual(np.load(self.dir / "out/0_y.npy").tolist(), ["", "a", "ß日本😀"])
        np.save(self.dir / "x.npy", np.zeros((2, 3), np.float32))
        self.types_model(TensorProto.FLOAT)
        self.bad(1, "run", self.dir / "model.onnx", "-i", f"x={self.dir / 'x.npy'}", says="x")
        self.good("run", self.dir / "model.onnx", "-i", f"x={self.dir / 'x.npy'}", "--input-shape", "x=6", "-o", self.dir / "out")
        self.assertEqual(np.load(self.dir / "out/0_y.npy").shape, (6,))

    def test_packed_types(self):
        """4-bit and 2-bit elements are bytes in .npy files, whole in .pb files."""
        from onnx import TensorProto, load_tensor, numpy_helper
        rows = [(TensorProto.INT4, "i1", [-8, 7, 0, -1, 3]), (TensorProto.UINT4, "u1", [0, 15, 7, 8, 1])]
        for dtype, numpy, values in rows:
            self.types_model(dtype)
            np.save(self.dir / "x.npy", np.array(values, numpy))
            self.good("run", self.dir / "model.onnx", "-i", f"x={self.dir / 'x.npy'}", "-o", self.dir / "out")
            self.assertEqual(np.load(self.dir / "out/0_y.npy").tolist(), values)
            self.good("run", self.dir / "model.onnx", "-i", f"x={self.dir / 'x.npy'}", "--pb", "-o", self.dir / "out")
            got = load_tensor(str(self.dir / "out/0_y.pb"))
            self.assertEqual((got.data_type, got.name, numpy_helper.to_array(got).astype(np.int64).tolist()), (dtype, "y", values))
            self.good("run", self.dir / "model.onnx", "-i", f"x={self.dir / 'out/0_y.pb'}", "-o", self.dir / "again")
            self.assertEqual(np.load(self.dir / "again/0_y.npy").tolist(), values)

    def test_values_in_pb(self):
        """Strings, sequences and optionals, out of a run and into the next."""
        from onnx import OptionalProto, SequenceProto, TensorProto, helper, load_tensor, numpy_helper, save
        self.types_model(TensorProto.STRING)
        np.save(self.dir / "x.npy", np.array(["", "a", "ß日本😀"]))
        self.good("run", self.dir / "model.onnx", "-i", f"x={self.dir / 'x.npy'}", "--pb", "-o", self.dir / "out")
        self.assertEqual(load_tensor(str(self.dir / "out/0_y.pb")).string_data[2].decode(), "ß日本😀")
        self.good("run", self.dir / "model.onnx", "-i", f"x={self.dir / 'out/0_y.pb'}", "-o", self.dir / "again")
        self.assertEqual(np.load(self.dir / "again/0_y.npy").tolist(), ["", "a", "ß日本😀"])

        tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
        sequence = helper.make_sequence_type_proto(tensor)
        kinds = {"sequence": sequence, "optional": helper.make_optional_type_proto(tensor),
                 "optional_sequence": helper.make_optional_type_proto(sequence)}
        a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([7])
        values = {"sequence": numpy_helper.from_list([a, b], "x"), "optional": OptionalProto(), "optional_sequence": OptionalProto()}
        values["optional"].elem_type = OptionalProto.TENSOR
        values["optional"].tensor_value.CopyFrom(numpy_helper.from_array(a))
        values["optional_sequence"].elem_type = OptionalProto.SEQUENCE
        values["optional_sequence"].sequence_value.CopyFrom(numpy_helper.from_list([a, b]))
        for kind, proto in kinds.items():
            x, y = (helper.make_value_info(n, proto) for n in "xy")
            save(helper.make_model(helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [y]),
                                   opset_imports=[helper.make_opsetid("", 21)], ir_version=10), self.dir / "model.onnx")
            (self.dir / "x.pb").write_bytes(values[kind].SerializeToString())
            self.good("run", self.dir / "model.onnx", "-i", f"x={self.dir / 'x.pb'}", "--pb", "-o", self.dir / "out")
            got = type(values[kind])()
            got.ParseFromString((self.dir / "out/0_y.pb").read_bytes())
            if isinstance(got, SequenceProto):
                items = numpy_helper.to_list(got)
            else:
                self.assertEqual(got.elem_type, values[kind].elem_type)
                items = [numpy_helper.to_array(got.tensor_value)] if kind == "optional" else numpy_helper.to_list(got.sequence_value)
            for i, want in enumerate([a, b][:len(items)]):
                np.testing.assert_array_equal(items[i], want)
            self.assertEqual(len(items), 1 if kind == "optional" else 2)

    def test_shapes(self):
        """A static file at another size: a warning, an error if shapes are strict, silence if the caller says so."""
        import onnx
        import onnxruntime
        model = DATA / "yunet/yunet-s-640-other-sizes/model.onnx"
        x = np.random.default_rng(1).uniform(0, 255, (1, 3, 480, 640)).astype(np.float32)
        np.save(self.dir / "x.npy", x)
        run = ("run", model, "-i", self.dir / "x.npy", "-o", self.dir / "out")
        result = subprocess.run([PITH, *map(str, run)], capture_output=True)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr.decode().count("warning"), 1)
        self.assertIn("'input' is declared as [1, 3, 640, 640] but is [1, 3, 480, 640]", result.stderr.decode())
        free = onnx.load(model)
        for port in [*free.graph.input, *free.graph.output]:
            port.type.tensor_type.ClearField("shape")
        del free.graph.value_info[:]
        wanted = onnxruntime.InferenceSession(free.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"input": x})
        for i, want in enumerate(wanted):
            got = np.load(next((self.dir / "out").glob(f"{i}_*.npy")))
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
        self.bad(1, *run, "--strict-shapes", says=("'input'", "[1, 3, 640, 640]", "[1, 3, 480, 640]"))
        for more in ((), ("--strict-shapes",)):
            result = subprocess.run([PITH, *map(str, run), "--input-shape", "input=1x3x480x640", *more], capture_output=True)
            self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.bad(1, *run, "--input-shape", "input=1x3x480x480", says="921600")
        self.bad(1, *run, "--input-shape", "other=1x3", says="other")
        self.bad(1, *run, "--input-shape", "input=1,3", says="name=1x3x480x640")
        self.bad(1, *run, "--input-shape", "input=1x3", says="rank 4")
        d = json.loads(self.good("inspect", model, "--json", "--input-shape", "input=1x3x480x640"))
        self.assertEqual((d["inputs"][0]["shape"], d["outputs"][0]["shape"]), ("[1, 3, 480, 640]", "[1, 4800, 1]"))
        self.assertEqual(json.loads(self.good("inspect", model, "--json"))["inputs"][0]["shape"], "[1, 3, 640, 640]")
        self.bad(1, "run", model, says=("'input'", "float32", "[1, 3, 640, 640]"))
        self.assertIn(b"FAILED", self.bad(1, "verify", "--strict-shapes", model.parent).stdout)
        self.good("verify", model.parent)

    def test_damaged_npy(self):
        from onnx import TensorProto
        self.types_model(TensorProto.FLOAT)
        np.save(self.dir / "x.npy", np.arange(5, dtype=np.float32))
        whole = (self.dir / "x.npy").read_bytes()
        for n in list(range(0, 130)) + [len(whole) - 1]:
            (self.dir / "cut.npy").write_bytes(whole[:n])
            self.bad(1, "run", self.dir / "model.onnx", "-i", f"x={self.dir / 'cut.npy'}", says="cut.npy")
        for old, new in ((b"(5,)", b"(9,)"), (b"<f4", b">f4"), (b"(5,)", b"(-5)"), (b"<f4", b"|O ")):
            (self.dir / "odd.npy").write_bytes(whole.replace(old, new))
            self.bad(1, "run", self.dir / "model.onnx", "-i", f"x={self.dir / 'odd.npy'}", says="odd.npy")

    def test_compile(self):
        file = self.dir / "m.pith"
        sizes = json.loads(self.good("compile", "-o", file, "--json"))
        self.assertEqual(set(sizes), {"writer", "bytes", "sections"})
        self.assertEqual([s["name"] for s in sizes["sections"]], ["model", "graph", "text graph", "weights", "tokenizer"])
        self.assertEqual((sizes["bytes"], sizes["writer"]), (file.stat().st_size, self.good("--version").decode().split()[1]))
        texts = b"a cat\nein Hund auf der Stra\xc3\x9fe\n"
        for arguments in (("embed",), ("tokenize",), ("tokenize", "--full"), ("tokenize", "--max-length", "3")):
            self.assertEqual(self.good(*arguments, stdin=texts), self.good(*arguments, "-m", file, stdin=texts))
        plain, compiled = (json.loads(self.good("inspect", "--json", m)) for m in ("all-MiniLM-L6-v2", file))
        self.assertEqual(compiled.pop("compiled"), sizes)
        self.assertIsNone(plain.pop("compiled"))
        for d in (plain, compiled):
            del d["path"], d["memory"]
        self.assertEqual(plain, compiled)
        self.assertIn("as it was written", self.good("verify", file).decode())
        self.bad(1, "inspect", "--after", "fold", file, says="passes")
        with open(file, "r+b") as f:
            f.seek(file.stat().st_size - 1000)
            byte = f.read(1)
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte[0] ^ 16]))
        self.bad(1, "verify", file, says=("m.pith", "weights"))
        before = file.read_bytes()
        self.bad(1, "compile", self.dir / "nothing", "-o", file, says="nothing")
        self.assertEqual(file.read_bytes(), before)
        self.bad(2, "compile", says="-o")
        small = self.dir / "small.pith"
        self.good("compile", "--precision", "int8", "--calibrate", "none", "-o", small, "--quiet")
        self.assertLess(small.stat().st_size, 0.45 * file.stat().st_size)
        wanted = self.good("embed", "--precision", "int8", stdin=texts)
        self.assertEqual(self.good("embed", "-m", small, stdin=texts), wanted)
        self.assertEqual(self.good("embed", "--precision", "int8", "-m", small, stdin=texts), wanted)
        self.bad(1, "embed", "--precision", "f32", "-m", small, stdin=texts, says="compile it again")
        self.bad(1, "compile", "-o", "/dev/full")
        model = MODELS / "bert-base-script17-sdpa"
        self.assertIn("1 passed", self.good("verify", "--compiled", model).decode())

    def test_calibrate(self):
        """Made-up texts by default, others from a file; what is asked for and cannot be had is an error."""
        plain, made, own = (self.dir / f"{name}.pith" for name in ("plain", "made", "own"))
        texts = self.dir / "texts.txt"
        texts.write_text("".join(f"the cat number {i} sat on mat {i * i}\n\n" for i in range(1500)), encoding="utf-8")
        self.good("compile", "--precision", "int8", "--calibrate", "none", "-q", "-o", plain)
        self.good("compile", "--precision", "int8", "-q", "-o", made)
        self.good("compile", "--precision", "int8", "--calibrate", texts, "-q", "-o", own)
        self.assertEqual(len({f.read_bytes() for f in (plain, made, own)}), 3)
        self.assertEqual(len({f.stat().st_size for f in (plain, made, own)}), 1)
        sentence = b"the cat number 7 sat on mat 49\n"
        wanted, *others = (np.array(json.loads(self.good("embed", *m, stdin=sentence)))
                           for m in ((), ("-m", plain), ("-m", own)))
        near = [float(v @ wanted) for v in others]
        self.assertGreater(near[1], near[0])
        self.bad(2, "compile", "--calibrate", texts, "-o", own, says="--precision int8")
        self.bad(1, "compile", "--precision", "int8", "--calibrate", self.dir / "nothing", "-o", own, says="nothing")
        (self.dir / "empty.txt").write_text("\n\n")
        self.bad(1, "compile", "--precision", "int8", "--calibrate", self.dir / "empty.txt", "-o", own, says="no text")
        graph = next((DATA / "yunet").rglob("*.onnx"))
        self.good("compile", "--precision", "int8", "-q", "-o", own, graph)
        self.bad(1, "compile", "--precision", "int8", "--calibrate", "vocabulary", "-o", own, graph, says="embed")

    def test_narrow_weights(self):
        """Weights and tables of 16 bits give the bits that their widened copies give."""
        for name, dtype in (("bert-f16", "F16"), ("bert-bf16", "BF16")):
            source, wide = DATA / "hf" / name, self.dir / name
            wide.mkdir()
            (wide / "config.json").write_bytes((source / "config.json").read_bytes())
            raw = (source / "model.safetensors").read_bytes()
            start = 8 + int.from_bytes(raw[:8], "little")
            header, data, narrow = json.loads(raw[8:start]), b"", 0
            for key, entry in header.items():
                if key == "__metadata__":
                    continue
                begin, end = entry["data_offsets"]
                values = np.frombuffer(raw[start + begin:start + end], np.uint16 if entry["dtype"] == dtype else np.uint8)
                if entry["dtype"] == dtype:
                    values = values.view(np.float16).astype("<f4") if dtype == "F16" else values.astype("<u4") << 16
                    entry["dtype"], narrow = "F32", narrow + 1
                entry["data_offsets"] = [len(data), len(data) + values.nbytes]
                data += values.tobytes()
            self.assertGreater(narrow, 30)
            text = json.dumps(header).encode()
            (wide / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
            inputs = []
            for port in ("input_ids", "attention_mask", "token_type_ids"):
                np.save(self.dir / f"{port}.npy", np.fromfile(source / f"{port}.i64", np.int64).reshape(3, 45))
                inputs.append(f"-i{port}={self.dir / port}.npy")
            for level in ("scalar", "avx2", "avx512"):
                found = set()
                for model in (source, wide):
                    self.good("run", model, *inputs, "-o", self.dir / "out", env={"PITH_ISA": level})
                    found.add((self.dir / "out/0_last_hidden_state.npy").read_bytes())
                self.assertEqual(len(found), 1, (name, level))

    def test_precision(self):
        texts = b"a cat sits on the mat\nuser_id of customers variant_17\n\n" + b"words " * 40 + b"\n"

        def rows(*arguments, **env):
            raw = self.good("embed", "--format", "f32", *arguments, stdin=texts, env=env)
            return raw, np.frombuffer(raw, np.float32).reshape(4, -1).astype(np.float64)

        same, wanted = rows()
        self.assertEqual(rows("--precision", "auto")[0], same)
        self.assertEqual(rows("--precision", "f32")[0], same)
        for precision, least in (("int8", 0.99), ("bf16", 0.999)):
            raw, vectors = rows("--precision", precision)
            self.assertNotEqual(raw, same)
            self.assertGreater((vectors * wanted).sum(1).min(), least)
            # Levels above the machine's own are the machine's own; without products of its own bf16 is f32 arithmetic.
            levels = ("scalar", "avx2", "avx2-vnni", "avx512-amx-vnni", "avx512-amx", "avx512") if precision == "int8" else (
                "scalar", "avx2", "avx512-bf16")
            found = {rows("--precision", precision, PITH_ISA=level)[0] for level in levels}
            self.assertEqual(len(found), 1, precision)
            if precision == "int8":
                self.assertEqual(found, {raw})
            cosine = float(self.good("similarity", "--precision", precision, "a cat", "a dog"))
            self.assertAlmostEqual(cosine, float(self.good("similarity", "a cat", "a dog")), delta=0.02)
        for command in (["embed"], ["similarity", "a", "b"], ["inspect"], ["bench"], ["run", "m.onnx"], ["compile", "-o", "m.pith"]):
            self.bad(2, *command, "--precision", "int4", says="auto|f32|int8|bf16")
        self.bad(1, "embed", "--precision", "int8", "--level", "1", stdin=texts, says="precision")

    def test_bge_m3(self):
        """Three results of one pass, from weights that lie beside the network; all sizes of batches give the same."""
        folder = DATA / "encode/bge-m3"
        wanted = json.loads((folder / "expected.json").read_text())
        command = ["embed", "-m", folder, "--pooling", "cls", "--dense", "--sparse", "--multi-vector"]
        texts = "".join(w["text"] + "\n" for w in wanted).encode()
        lines = self.good(*command, stdin=texts).splitlines()
        self.assertEqual(len(lines), len(wanted))
        for line, w in zip(lines, wanted):
            got = json.loads(line)
            self.assertEqual(got["sparse"]["indices"], w["sparse"]["indices"])
            for a, b in ((got["dense"], w["dense"]), (got["sparse"]["values"], w["sparse"]["values"]),
                         (sum(got["multi_vector"], []), sum(w["multi_vector"], []))):
                self.assertEqual(len(a), len(b))
                for x, y in zip(a, b):
                    self.assertAlmostEqual(x, y, delta=1e-5)
            self.assertEqual(self.good(*command, "-t", "1", stdin=w["text"].encode() + b"\n").splitlines(), [line])
        self.assertGreater(sum(len(w["sparse"]["indices"]) for w in wanted), 4)

    def test_inspect(self):
        model = MODELS / "bert-base-script17-sdpa/model.onnx"
        d = json.loads(self.good("inspect", "--json", model))
        self.assertEqual(set(d), {"path", "source", "runtime", "runtime_requested", "runtime_reason", "producer", "ir_version", "opsets", "compiled", "inputs", "outputs", "ops",
                                  "parameters", "parameter_bytes", "level", "fused", "not_fused", "left_out", "ragged", "ragged_reason", "embedding", "decisions",
                                  "steps", "step_backends", "memory"})
        self.assertEqual(d["opsets"], {"ai.onnx": 17})
        self.assertEqual(set(d["inputs"][0]), {"name", "dtype", "shape", "optional"})
        self.assertEqual(set(d["ops"][0]), {"domain", "op", "count"})
        self.assertIn("Attention", d["steps"])
        self.assertEqual(d["step_backends"], ["cpu"] * len(d["steps"]))
        text = self.good("inspect", model).decode()
        for word in ("inputs", "outputs", "ops", "parameters", "fused", "steps", "memory"):
            self.assertIn(word, text)
        self.assertIn("Attention", self.good("inspect", "--ops", model).decode())
        self.assertTrue(self.good("inspect", "--dot", model).decode().startswith("digraph"))
        written = self.good("inspect", "--ops", "--level", "0", model).decode()
        self.assertIn("Softmax", written)
        self.assertIn("Softmax", self.good("inspect", "--ops", "--after", "fold", model).decode())
        default = json.loads(self.good("inspect", "--json"))
        self.assertEqual((default["ragged"], default["source"]), (True, "safetensors"))
        plans = {plan["tokens"]: plan["bytes"] for plan in default["memory"]["activations"]}
        stats = json.loads(self.run_pith("embed", "-t", "1", "--stats", stdin=b"the " * 126).stderr)
        self.assertEqual((stats["tokens"], stats["peak_bytes"]), (128, plans[128]))
        self.assertEqual(set(plans), {16, 128, 512})
        self.assertEqual([plan["tokens"] for plan in d["memory"]["activations"]], [0])
        self.assertEqual(default["embedding"], {"possible": True, "dim": 384, "max_length": 256, "pooling": ["mean"],
                                                "normalize": True, "prompts": {}, "default_prompt": "", "truncate_dim": 0,
                                                "similarity": "", "route": ""})
        self.bad(1, "inspect", __file__, says=Path(__file__).name)

    def test_inspect_time(self):
        d = json.loads(self.good("inspect", "--time", "--json", "--runs", "2", "--text", "a cat on the mat"))
        self.assertEqual(set(d), {"runs", "threads", "seconds", "steps_seconds", "peak_flop_per_second", "flop", "steps"})
        self.assertEqual(set(d["steps"][0]), {"step", "op", "node", "shapes", "kernel", "seconds", "share", "flop", "bytes",
                                              "flop_per_second", "peak_fraction", "bytes_per_second"})
        self.assertAlmostEqual(sum(s["share"] for s in d["steps"]), 1)
        # 7 tokens of 21.2 million operations, nearly all in products
        self.assertAlmostEqual(sum(s["flop"] for s in d["steps"] if s["op"] == "Linear") / (7 * 12 * 1769472), 1)
        self.assertIn("GFLOP/s", self.good("inspect", "--time", "--runs", "1").decode())
        model = MODELS / "bert-base-script17-sdpa/model.onnx"
        shapes = [f"--input-shape={port['name']}=2x5" for port in json.loads(self.good("inspect", "--json", model))["inputs"]]
        d = json.loads(self.good("inspect", "--time", "--json", model, *shapes))
        self.assertTrue(any("[2, 5, 96]" in s["shapes"] for s in d["steps"]))
        self.assertEqual(d["runs"], 20)
        self.bad(1, "inspect", "--time", model, "-i", "nonsense=x.npy", says="x.npy")
        self.bad(2, "inspect", "--time", "--ops", model, says="--time")

    def test_bench(self):
        (self.dir / "texts").write_text("a cat\na dog on a mat\n")
        d = json.loads(self.good("bench", "--json", "--rounds", "2", "--texts", self.dir / "texts", "--profile", self.dir / "t.json"))
        self.assertEqual(set(d), {"version", "model", "isa", "threads", "read_bytes_per_second", "open_seconds",
                                  "first_vector_seconds", "memory", "results"})
        self.assertEqual(set(d["memory"]), {"opened_bytes", "opened_anonymous_bytes", "peak_bytes", "anonymous_bytes"})
        result = d["results"][0]
        self.assertEqual(set(result), {"workload", "threads", "chunk", "texts", "tokens", "flop", "calls", "seconds", "seconds_min",
                                       "seconds_max", "seconds_p90", "seconds_p99", "cpu_seconds", "tokens_per_second",
                                       "peak_flop_per_second", "peak_fraction"})
        self.assertEqual((result["workload"], result["threads"], result["texts"], result["tokens"]), ("texts", 1, 2, 11))
        self.assertIn("Linear", {e["name"] for e in json.loads((self.dir / "t.json").read_text())["traceEvents"]})
        text = self.good("bench", "--rounds", "1", "--token-count", "100", "--workload", "query", "--workload", "short", "-t", "1").decode()
        for word in ("opening", "memory", "query", "short", "p99", "% peak"):
            self.assertIn(word, text)
        self.assertNotIn("mixed", text)
        self.bad(2, "bench", "--workload", "nonsense", says="nonsense")
        self.bad(1, "bench", "-m", MODELS / "bert-base-script17-sdpa/model.onnx", says="cannot embed")

    def test_directory_of_a_file(self):
        (self.dir / "onnx").mkdir()
        os.symlink(MODELS / "bert-base-script17-eager/model.onnx", self.dir / "onnx/model.onnx")
        for name in ("tokenizer.json", "tokenizer_config.json"):
            os.symlink(SOURCE / "tests/data/minilm" / name, self.dir / name)
        for folder, path in ((self.dir, "onnx/model.onnx"), (self.dir, "./onnx/model.onnx"), ("/", self.dir / "onnx/model.onnx")):
            described = json.loads(self.good("inspect", "--json", path, cwd=folder))
            self.assertTrue(described["embedding"]["possible"], path)

    def test_verify(self):
        import shutil
        name = "bert-base-script17-eager"
        shutil.copytree(MODELS / name, self.dir / "t" / name)
        self.assertEqual(self.good("verify", self.dir).decode().splitlines()[-1], "1 passed, 0 failed, 0 skipped")
        self.assertEqual(self.good("verify", "--list", self.dir).decode(), name + "\n")
        d = json.loads(self.good("verify", "--json", self.dir))
        self.assertEqual(set(d), {"passed", "failed", "skipped", "results"})
        self.assertEqual(set(d["results"][0]), {"name", "path", "status", "message", "max_difference"})
        result = self.bad(1, "verify", "--rtol", "0", "--atol", "0", self.dir)
        self.assertRegex(result.stdout.decode(), r"FAILED .*: .*output 0 .* elements differ, most at element \d+: .*\n0 passed, 1 failed")
        d = json.loads(self.bad(1, "verify", "--fusions", "--json", MODELS / name / "model.onnx", "absent.onnx").stdout)
        self.assertEqual((d["passed"], d["failed"], d["findings"]), (1, 1, []))
        self.assertEqual([e["model"] for e in d["errors"]], ["absent.onnx"])
        listed = self.dir / "skip.txt"
        listed.write_text(f"# comment\n{name}  some reason\n")
        result = self.bad(1, "verify", "--skip-list", listed, self.dir)
        self.assertIn("passes, but is in the skip list", result.stdout.decode())
        listed.write_text(f"~{name}  drawn\n")
        self.assertEqual(self.good("verify", "--skip-list", listed, self.dir).decode().splitlines()[-1],
                         "0 passed, 0 failed, 1 skipped")
        listed.write_text(f"{name}  some reason\n")
        for output in (self.dir / "t" / name).glob("test_data_set_*/output_0.pb"):
            shutil.copy(output.with_name("input_0.pb"), output)
        self.assertEqual(self.good("verify", "--skip-list", listed, self.dir).decode().splitlines()[-1],
                         "0 passed, 0 failed, 1 skipped")
        result = self.bad(1, "verify", self.dir)
        self.assertIn("instead of int64", result.stdout.decode())
        self.bad(1, "verify", self.dir / "missing", says="missing")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
