#!/usr/bin/env python3
"""What pith embed makes of vectors and long texts: types of numbers, cut texts, chunks, kept members.

usage: outputs.py PITH SOURCE_DIR [unittest arguments]; needs NumPy (tests/requirements.txt) and the default model.
"""
import io
import json
import os
import sys
import unittest

import numpy as np

from command import PITH, SOURCE, Command

LINES = [f"text number {i} about {w}" for i, w in enumerate("cats dogs boats trains rain snow bread salt".split())]
TEXT = "".join(line + "\n" for line in LINES).encode()


class Embed(Command):
    stdin = TEXT

    def good(self, *arguments, stdin=None, says=None):
        """Standard output. says: parts of the one line on standard error; None: nothing is there."""
        result = self.run_pith(*arguments, stdin=stdin)
        message = result.stderr.decode()
        self.assertEqual(result.returncode, 0, message)
        if says is None:
            self.assertEqual(message, "")
        else:
            self.assertEqual(message.count("\n"), 1, message)
            for part in (says,) if isinstance(says, str) else says:
                self.assertIn(part, message)
        return result.stdout

    def vectors(self, *arguments, **keywords):
        return np.load(io.BytesIO(self.good("--format", "npy", *arguments, **keywords)))


def quantized(x, kind, ranges=None):
    """sentence_transformers.quantize_embeddings, version 5.7."""
    if kind == "f16":
        return x.astype(np.float16)
    if kind in ("binary", "ubinary"):
        bits = np.packbits(x > 0, axis=1)
        return bits if kind == "ubinary" else (bits.astype(np.int16) - 128).astype(np.int8)
    if ranges is None:
        ranges = np.float32([[-1] * x.shape[1], [1] * x.shape[1]])
    steps = (ranges[1] - ranges[0]) / 255
    whole = np.clip(np.floor((x - ranges[0]) / steps), 0, 255)
    return whole.astype(np.uint8) if kind == "uint8" else (whole - 128).astype(np.int8)


class Types(Embed):
    def same(self, got, wanted):
        self.assertEqual(got.dtype, wanted.dtype)
        np.testing.assert_array_equal(got, wanted)

    def test_types(self):
        for more in ((), ("--dim", "13")):  # 13: bits that fill no whole byte
            plain = self.vectors(*more)
            for kind in ("f16", "int8", "uint8", "binary", "ubinary"):
                with self.subTest(kind, more=more):
                    wanted = quantized(plain, kind)
                    self.same(self.vectors("--dtype", kind, *more), wanted)
                    self.good("--dtype", kind, "--format", "npy", "-o", "v.npy", *more)
                    self.same(np.load(self.dir / "v.npy"), wanted)
                    lines = self.good("--dtype", kind, *more)
                    self.same(np.array([json.loads(line) for line in lines.splitlines()]).astype(wanted.dtype), wanted)
                    self.assertEqual(b"." in lines, kind == "f16")
                    csv = np.loadtxt(io.BytesIO(self.good("--dtype", kind, "--format", "csv", *more)), delimiter=",")
                    self.same(csv.astype(wanted.dtype), wanted)
            self.assertEqual(self.good("--dtype", "f32", *more), self.good(*more))

    def test_with_objects(self):
        row, = self.rows("--jsonl", "--dtype", "ubinary", stdin=b'{"id": 1, "text": "one"}')
        self.assertEqual(row["embedding"], self.vectors("--dtype", "ubinary", stdin=b"one")[0].tolist())
        self.assertEqual(row["id"], 1)

    def test_ranges(self):
        plain = self.vectors()
        wide = np.stack([plain.min(0) - np.float32(0.01), plain.max(0) + np.float32(0.02)])
        np.save(self.dir / "two.npy", wide)
        np.save(self.dir / "vectors.npy", np.concatenate([wide, plain]))
        (self.dir / "vectors.jsonl").write_text("".join(json.dumps({"embedding": row}) + "\n" for row in
                                                        np.concatenate([wide, plain]).astype(float).tolist()))
        for kind in ("int8", "uint8"):
            for name in ("two.npy", "vectors.npy", "vectors.jsonl"):
                with self.subTest(kind, ranges=name):
                    self.same(self.vectors("--dtype", kind, "--ranges", name), quantized(plain, kind, wide))

    def test_ranges_that_are_left(self):
        half = np.float32([[-0.01] * 384, [0.01] * 384])
        np.save(self.dir / "r.npy", half)
        plain = self.vectors()
        for kind in ("int8", "uint8"):
            got = self.vectors("--dtype", kind, "--ranges", "r.npy")
            self.same(got, quantized(plain, kind, half))
            self.assertEqual(int(got.max()) - int(got.min()), 255)

    def test_resume_refuses_others(self):
        """A finished part goes on with the same texts and options only; the message says what differs."""
        texts = self.dir / "texts"
        texts.write_text("".join(f"text {i}\n" for i in range(40)))
        whole = self.good(texts)
        for name in ("a", "b"):
            part = self.dir / f"{name}.part"
            part.write_bytes(b"".join(whole.splitlines(keepends=True)[:20]))
            (self.dir / "c").unlink(missing_ok=True)
            # an interrupted call leaves the part and the record: the text after the 20th cannot be read
            bad = texts.read_bytes().splitlines(keepends=True)[:20] + [b"\xff\n"]
            part.unlink()
            self.bad(1, "--resume", "-o", name, stdin=b"".join(bad), says="UTF-8")
            self.assertTrue((self.dir / f"{name}.part.made").exists())
        self.bad(1, "--resume", "-o", "a", "--dim", 64, stdin=texts.read_bytes(),
                 says="a.part: --dim was (not given) when the finished part was made, and is 64 now")
        self.bad(1, "--resume", "-o", "a", "--normalize", stdin=texts.read_bytes(), says="--normalize was (not given)")
        self.bad(1, "--resume", "-o", "a", stdin=texts.read_bytes().replace(b"text 3\n", b"other\n"),
                 says="the texts are others than those that the finished part was made of")
        self.good("--resume", "-o", "a", stdin=texts.read_bytes())
        self.assertEqual((self.dir / "a").read_bytes(), whole)
        self.assertFalse((self.dir / "a.part.made").exists() or (self.dir / "a.part").exists())

    def test_resume(self):
        np.save(self.dir / "r.npy", np.float32([[-0.5] * 384, [0.5] * 384]))
        for kind in ("f16", "int8", "uint8", "binary", "ubinary"):
            for form in ("jsonl", "npy", "csv"):
                with self.subTest(kind, format=form):
                    options = ("--dtype", kind, "--format", form, "--resume", "-o", f"{kind}.{form}")
                    self.good("--dtype", kind, "--format", form, "-o", "whole")
                    whole, part = (self.dir / "whole").read_bytes(), self.dir / f"{kind}.{form}.part"
                    part.write_bytes(whole[: len(whole) * 2 // 3])
                    self.bad(1, *options, says="its last vector is not that of text", stdin=TEXT.replace(b"text", b"tax"))
                    self.good(*options)
                    self.assertEqual((self.dir / f"{kind}.{form}").read_bytes(), whole)
        part = self.dir / "o.part"
        part.write_bytes(self.good("--dtype", "int8"))
        self.bad(1, "--dtype", "int8", "--ranges", "r.npy", "--resume", "-o", "o", says="its last vector")

    def test_refused(self):
        self.bad(2, "--dtype", "int4", says="f32|f16|int8|uint8|binary|ubinary")
        self.bad(2, "--dtype", "int8", "--format", "f32", says=("--format f32", "npy"))
        self.bad(2, "--dtype", "int8", "--dense", "--sparse", says="--dtype goes with dense vectors alone")
        self.bad(2, "--dtype", "binary", "--ranges", "r.npy", says="--ranges goes with --dtype int8 or uint8")
        self.bad(2, "--ranges", "r.npy", says="--ranges goes with --dtype int8 or uint8")
        narrow = ("--dtype", "int8", "--dim", "2", "--ranges")
        self.bad(1, *narrow, "missing.npy", says="missing.npy")
        for array, says in (([[0, 0, 0], [1, 1, 1]], "3 components"), ([[0, 0]], "one vector gives no ranges"),
                            ([[0, 1], [1, 0]], "component 1 is 1 to 0"), ([[0, 0], [1, np.nan]], "component 1 is 0 to nan"),
                            ([[0, 0], [1, 1], [2, np.inf]], "component 1 of vector 2 is not finite")):
            np.save(self.dir / "r.npy", np.float32(array))
            self.bad(1, *narrow, "r.npy", says=("r.npy: ", says))
        (self.dir / "r.npy").write_bytes(b"\x93NUMPY")
        self.bad(1, *narrow, "r.npy", says="r.npy: ")


WORDS = "the cat sat on the mat and looked at birds while rain fell".split()
SHORT, LONG = "a short text", " ".join(WORDS[i * 7 % len(WORDS)] for i in range(900))
CUT = "warning: 1 text was longer than 256 tokens and cut there"


def lines_of(*texts):
    return "".join(text + "\n" for text in texts).encode()


class LongTexts(Embed):
    def test_truncate(self):
        both = lines_of(SHORT, LONG, SHORT)
        plain = self.rows(stdin=both, says=(CUT, "--long chunk", "--long error"))
        self.assertEqual(self.rows("--long", "truncate", stdin=both, says=CUT), plain)
        self.assertEqual(self.rows(stdin=lines_of(LONG), says=CUT)[0], plain[1])
        self.good("--max-length", "3", stdin=lines_of(SHORT, LONG), says="2 texts were longer than 3 tokens and cut there")
        self.good("--tokens", stdin=both, says=CUT)
        result = self.run_pith("--stats", stdin=both)
        first, second = result.stderr.decode().splitlines()
        self.assertIn(CUT, first)
        self.assertEqual(json.loads(second)["truncated"], 1)

    def test_error(self):
        texts = lines_of(SHORT, SHORT, LONG, SHORT)
        for more in ((), ("--dense", "--tokens")):
            result = self.bad(1, "--long", "error", *more, stdin=texts, says=("text 3 is longer than 256 tokens", "--long chunk"))
            self.assertNotIn(b"warning", result.stderr)
            self.bad(1, "--long", "error", "--max-length", "4", *more, stdin=texts, says="text 1 is longer than 4 tokens")
            self.good("--long", "error", *more, stdin=lines_of(SHORT, SHORT))
        # text by text, the texts before it are written
        self.bad(1, "--long", "error", "--resume", "-o", "x", stdin=texts, says=("text 3", "x.part"))
        self.assertFalse((self.dir / "x").exists())

    def chunks(self, *more, **keywords):
        return self.rows("--long", "chunk", "--chunks", "rows", *more, **keywords)

    def test_rows(self):
        texts = [SHORT, LONG, "", "\u00e4\u00f6\u00fc " * 300]
        for more in ((), ("--chunk-tokens", "20"), ("--chunk-tokens", "20", "--overlap", "5"), ("--overlap", "30")):
            with self.subTest(more):
                rows = self.chunks(*more, stdin=lines_of(*texts))
                self.assertEqual(list(rows[0]), ["text", "chunk", "begin", "end", "embedding"])
                parts, last = [], (-1, 0)
                for row in rows:
                    text = texts[row["text"]].encode()
                    parts.append(text[row["begin"]:row["end"]])
                    self.assertEqual((row["text"], row["chunk"]), (last[0] + 1, 0) if row["chunk"] == 0 else (last[0], last[1] + 1))
                    last = row["text"], row["chunk"]
                self.assertEqual(last[0], 3)
                self.assertEqual([r["end"] for r in rows if r["text"] == 0], [len(SHORT)])
                limit = ("--max-length", "20") if "20" in more else ()
                alone = self.rows("-0", *limit, stdin=b"".join(part + b"\0" for part in parts))
                self.assertEqual([row["embedding"] for row in rows], alone)  # the same bits, and no warning
                long = [row for row in rows if row["text"] == 1]
                self.assertGreater(len(long), 3)
                gaps = [b["begin"] - a["end"] for a, b in zip(long, long[1:])]
                if "--overlap" in more:
                    self.assertLess(max(gaps), 0)
                    shared = [len(LONG[b["begin"]:a["end"]].split()) for a, b in zip(long, long[1:])]
                    self.assertEqual(set(shared), {int(more[-1])})
                else:
                    self.assertEqual(set(gaps), {1})
                    self.assertEqual(" ".join(LONG[r["begin"]:r["end"]] for r in long), LONG)
                self.assertEqual(len(LONG[:long[0]["end"]].split()), 18 if limit else 254)

    def mean(self, rows, normalize=True):
        """The formula of docs/cli.md. Words of LONG are one token each."""
        vectors = np.array([row["embedding"] for row in rows])
        weights = np.array([len(LONG[row["begin"]:row["end"]].split()) for row in rows])
        mean = (weights[:, None] * vectors).sum(0) / weights.sum()
        return mean / np.linalg.norm(mean) if normalize else mean

    def test_mean(self):
        both = lines_of(SHORT, LONG, SHORT)
        short = self.rows(stdin=lines_of(SHORT))[0]
        for more in ((), ("--chunk-tokens", "20", "--overlap", "4"), ("--no-normalize",), ("--dim", "40")):
            with self.subTest(more):
                rows = [row for row in self.chunks(*more, stdin=both) if row["text"] == 1]
                got = self.rows("--long", "chunk", *more, stdin=both)
                self.assertEqual(len(got), 3)
                self.assertEqual(got[0], got[2])
                np.testing.assert_allclose(got[1], self.mean(rows, "--no-normalize" not in more), rtol=0, atol=1e-6)
                self.assertEqual(self.rows("--long", "chunk", "--chunks", "mean", *more, stdin=lines_of(LONG))[0], got[1])
                np.testing.assert_array_equal(self.vectors("--long", "chunk", *more, stdin=both), np.float32(got))
        self.assertEqual(self.rows("--long", "chunk", stdin=both)[0], short)

    def test_more_chunks_than_a_call(self):
        text = " ".join([LONG] * 3)
        rows = self.chunks("--chunk-tokens", "5", stdin=lines_of(SHORT, text))
        self.assertEqual(len(rows), 901)  # 2,700 words, three in a chunk, and the short text
        got = self.rows("--long", "chunk", "--chunk-tokens", "5", stdin=lines_of(SHORT, text))
        mean = np.mean([row["embedding"] for row in rows[1:]], axis=0)
        np.testing.assert_allclose(got[1], mean / np.linalg.norm(mean), rtol=0, atol=1e-6)

    def test_resume(self):
        texts, other = lines_of(SHORT, LONG, "two", LONG + " end"), lines_of(SHORT, LONG + " and more", "two", LONG + " end")
        options = ("--long", "chunk", "--chunk-tokens", "100", "--dtype", "int8")
        for form in ("jsonl", "npy"):
            self.good(*options, "--format", form, "-o", "whole", stdin=texts)
            whole, part = (self.dir / "whole").read_bytes(), self.dir / "o.part"
            for size in (0, len(whole) * 3 // 5, len(whole)):
                with self.subTest(form, size=size):
                    part.write_bytes(whole[:size])
                    self.good(*options, "--format", form, "--resume", "-o", "o", stdin=texts)
                    self.assertEqual((self.dir / "o").read_bytes(), whole)
                    self.assertFalse(part.exists())
            for stdin, more in ((other, ()), (texts, ("--overlap", "9")), (lines_of(SHORT), ())):
                part.write_bytes(whole[: len(whole) * 3 // 5])
                self.bad(1, *options, *more, "--format", form, "--resume", "-o", "o", stdin=stdin, says="o.part: its last vector")
                self.assertEqual(part.read_bytes(), whole[: len(whole) * 3 // 5])

    def test_types_of_chunks(self):
        plain = self.vectors("--long", "chunk", stdin=lines_of(LONG, SHORT))
        got = self.vectors("--long", "chunk", "--dtype", "ubinary", stdin=lines_of(LONG, SHORT))
        np.testing.assert_array_equal(got, np.packbits(plain > 0, axis=1))

    def test_objects(self):
        line = json.dumps({"id": 7, "begin": "old", "text": LONG, "embedding": 1}).encode()
        rows = self.chunks("--jsonl", stdin=line)
        self.assertEqual(list(rows[1]), ["id", "text", "chunk", "begin", "end", "embedding"])
        plain = self.chunks(stdin=LONG.encode())
        for key in ("chunk", "begin", "end", "embedding"):
            self.assertEqual([row[key] for row in rows], [row[key] for row in plain])
        row, = self.rows("--jsonl", "--long", "chunk", stdin=line)
        self.assertEqual((list(row), row["begin"]), (["id", "begin", "text", "embedding"], "old"))

    def test_lines_beyond_the_limit(self):
        text = "x" * (1 << 20) + " y"
        self.good("--long", "chunk", stdin=lines_of(text), says="warning: 1 text was longer than 1 MiB and cut there")
        self.good("--long", "chunk", stdin=lines_of(text[2:]))

    def test_refused(self):
        self.bad(2, "--long", "cut", says="truncate|error|chunk")
        self.bad(2, "--long", "chunk", "--chunks", "some", says="mean|rows")
        for option, value in (("--chunk-tokens", "9"), ("--overlap", "9"), ("--chunks", "rows")):
            self.bad(2, option, value, says=f"{option} goes with --long chunk")
        self.bad(2, "--long", "chunk", "--max-length", "9", says="use --chunk-tokens")
        self.bad(2, "--long", "chunk", "--tokens", says="--long chunk goes with dense vectors alone")
        self.bad(2, "--long", "chunk", "--chunks", "rows", "--resume", "-o", "x", says="--resume and --chunks rows do not")
        self.bad(2, "--long", "chunk", "--chunks", "rows", "--format", "npy", says="--chunks rows goes with --format jsonl")
        for value in ("0", "-1", "x"):
            self.bad(2, "--long", "chunk", "--chunk-tokens", value, says="--chunk-tokens")
        self.bad(2, "--long", "chunk", "--overlap", "-1", says="--overlap")
        self.bad(1, "--long", "chunk", "--chunk-tokens", "513", says="the model takes at most 512 tokens")
        self.bad(1, "--long", "chunk", "--overlap", "127", says="chunks hold 254 tokens of a text")
        self.bad(1, "--long", "chunk", "--chunk-tokens", "2", says=("text 1: ", "have no room"))
        self.bad(1, "--long", "chunk", stdin=b"one\n\xff\n", says="line 2")


class Keep(Embed):
    OBJECT = b'{"id": 7, "text": "one", "a b": [1, 2.50], "\\u0069d2": null, "id": 8}'

    def kept(self, *arguments):
        line = self.good("--jsonl", *arguments, stdin=self.OBJECT).decode()
        return line[:line.index('"embedding"')]

    def test_keep(self):
        self.assertEqual(self.kept(), self.OBJECT[:-1].decode() + ",")
        self.assertEqual(self.kept("--keep", "id"), '{"id": 7, "id": 8,')
        self.assertEqual(self.kept("--keep", "a b,nothing"), '{ "a b": [1, 2.50],')
        self.assertEqual(self.kept("--keep", "id2"), '{ "\\u0069d2": null,')
        self.assertEqual(self.kept("--keep", ""), "{")
        self.assertEqual(self.kept("--keep", "text,a b"), '{ "text": "one", "a b": [1, 2.50],')
        self.assertEqual(self.kept("--keep", "embedding"), "{")
        self.assertIn('"tokens"', self.good("--jsonl", "--keep", "id", "--tokens", "--dense", stdin=self.OBJECT).decode())
        row, = self.rows("--jsonl", "--keep", "id", "--long", "chunk", stdin=self.OBJECT)
        self.assertEqual(list(row), ["id", "embedding"])

    def test_resume(self):
        lines = b"".join(b'{"id": %d, "text": "text %d"}\n' % (i, i) for i in range(5))
        whole = self.good("--jsonl", "--keep", "id", stdin=lines)
        (self.dir / "o.part").write_bytes(whole[: len(whole) // 2])
        self.bad(1, "--jsonl", "--resume", "-o", "o", stdin=lines, says="its last vector")
        self.good("--jsonl", "--keep", "id", "--resume", "-o", "o", stdin=lines)
        self.assertEqual((self.dir / "o").read_bytes(), whole)

    def test_refused(self):
        self.bad(2, "--keep", "id", says="--keep goes with --jsonl and --format jsonl")
        self.bad(2, "--keep", "id", "--jsonl", "--format", "npy", says="--keep goes with --jsonl and --format jsonl")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
