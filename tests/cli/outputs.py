#!/usr/bin/env python3
"""What pith embed makes of vectors and long texts: types of numbers, cut texts, chunks, kept members.

usage: outputs.py PITH SOURCE_DIR [unittest arguments]; needs NumPy (tests/requirements.txt) and the default model.
"""
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

PITH, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
LINES = [f"text number {i} about {w}" for i, w in enumerate("cats dogs boats trains rain snow bread salt".split())]
TEXT = "".join(line + "\n" for line in LINES).encode()


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)

    def run_pith(self, *arguments, stdin=b""):
        return subprocess.run([PITH, "embed", *map(str, arguments)], input=stdin, capture_output=True, timeout=300, cwd=self.dir)

    def good(self, *arguments, stdin=TEXT, says=None):
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

    def bad(self, code, *arguments, says, stdin=TEXT):
        result = self.run_pith(*arguments, stdin=stdin)
        self.assertEqual(result.returncode, code, result.stderr.decode())
        for part in (says,) if isinstance(says, str) else says:
            self.assertIn(part, result.stderr.decode())
        return result

    def rows(self, *arguments, **keywords):
        return [json.loads(line) for line in self.good(*arguments, **keywords).splitlines()]

    def vectors(self, *arguments, stdin=TEXT, **keywords):
        return np.load(io.BytesIO(self.good("--format", "npy", *arguments, stdin=stdin, **keywords)))


def quantized(x, kind, ranges=None):
    """sentence_transformers.quantize_embeddings. Ranges that a vector may leave are not for it."""
    if kind == "f16":
        return x.astype(np.float16)
    if kind in ("binary", "ubinary"):
        bits = np.packbits(x > 0, axis=1)
        return bits if kind == "ubinary" else (bits.astype(np.int16) - 128).astype(np.int8)
    if ranges is None:
        ranges = np.float32([[-1] * x.shape[1], [1] * x.shape[1]])
    steps = (ranges[1] - ranges[0]) / 255
    return ((x - ranges[0]) / steps).astype(np.uint8) if kind == "uint8" else ((x - ranges[0]) / steps - 128).astype(np.int8)


class Types(Command):
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
        plain = np.clip(self.vectors(), -0.01, 0.01)
        got = self.vectors("--dtype", "uint8", "--ranges", "r.npy").astype(int)
        np.testing.assert_array_less(np.abs(got - np.trunc((plain.astype(float) + 0.01) / 0.02 * 255)), 1.5)
        self.assertEqual((got.min(), got.max()), (0, 255))

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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
