#!/usr/bin/env python3
"""pith embed --bm25, and --sparse of BM42 and miniCOIL: forms of the result, and what is refused.

usage: bm25.py PITH SOURCE_DIR [unittest arguments]; needs NumPy (tests/requirements.txt).
"""
import json
import os
import sys
import unittest

import numpy as np

from command import PITH, SOURCE, Command

DATA = SOURCE / "tests/data/lexical"
CASES = [c for c in map(json.loads, (DATA / "cases.jsonl").read_text().splitlines())
         if c["language"] == "english" and not set(c) & {"k", "b", "avg_len", "token_max_length", "disable_stemmer", "stopwords"}]


class Bm25(Command):
    def setUp(self):
        super().setUp()
        self.texts = "\0".join(c["text"] for c in CASES).encode() + b"\0"

    def test_json(self):
        rows = list(map(json.loads, self.good("--bm25", "english", "-m", DATA / "stops", "-0", stdin=self.texts).splitlines()))
        for row, c in zip(rows, CASES, strict=True):
            self.assertEqual(row["indices"], c["indices"])
            np.testing.assert_allclose(row["values"], c["values"], rtol=1e-6)
        rows = self.good("--bm25", "english", "-m", DATA / "stops", "-0", "--role", "query", stdin=self.texts).splitlines()
        self.assertEqual([json.loads(r)["indices"] for r in rows], [c["query"] for c in CASES])

    def test_objects_and_arrays(self):
        line = json.dumps({"id": 3, "text": CASES[0]["text"]}).encode()
        row = json.loads(self.good("--bm25", "english", "-m", DATA / "stops", "--jsonl", stdin=line))
        self.assertEqual((row["id"], row["embedding"]["indices"]), (3, CASES[0]["indices"]))
        self.good("--bm25", "english", "-m", DATA / "stops", "-0", "--format", "npy", "-o", "s.npy", stdin=self.texts)
        offsets, indices = np.load(self.dir / "s.offsets.npy"), np.load(self.dir / "s.indices.npy")
        self.assertEqual(offsets.tolist(), np.cumsum([0] + [len(c["indices"]) for c in CASES]).tolist())
        self.assertEqual(indices.tolist(), [i for c in CASES for i in c["indices"]])

    def test_options(self):
        case = next(c for c in map(json.loads, (DATA / "cases.jsonl").read_text().splitlines()) if c.get("avg_len"))
        row = json.loads(self.good("--bm25", "english", "-m", DATA / "stops", "--bm25-k", case["k"], "--bm25-b", case["b"],
                                   "--bm25-avg-len", case["avg_len"], stdin=case["text"].encode()))
        np.testing.assert_allclose(row["values"], case["values"], rtol=1e-6)
        short = json.loads(self.good("--bm25", "english", "--bm25-max-word", 3, stdin=b"one three two"))
        self.assertEqual(len(short["indices"]), 2)
        stemmed, plain = (json.loads(self.good("--bm25", "english", *o, stdin=b"running run")) for o in ((), ("--no-stemming",)))
        self.assertEqual((len(stemmed["indices"]), len(plain["indices"])), (1, 2))

    def test_hybrids(self):
        names = {"alpha": "--bm42-alpha", "k": "--bm25-k", "b": "--bm25-b", "avg_len": "--bm25-avg-len"}
        for name in ("bm42", "minicoil"):
            folder, seen = SOURCE / "tests/data/hybrid" / name, 0
            for case in map(json.loads, (folder / "expected.jsonl").read_text().splitlines()):
                options = [x for key, option in names.items() if key in case for x in (option, case[key])]
                if not options and seen:
                    continue
                seen += 1
                for role in ("document", "query"):
                    row = json.loads(self.good("-m", folder, "--sparse", "--role", role, "--jsonl", *options,
                                               stdin=json.dumps({"text": case["text"]}).encode()))["embedding"]
                    self.assertEqual(row["indices"], case[role]["indices"])
                    np.testing.assert_allclose(row["values"], case[role]["values"], atol=5e-6)
            self.assertGreater(seen, 3)

    def test_no_libstemmer(self):
        for name in ("libstemmer.so.0d", "libstemmer.so.0", "libstemmer.so"):
            (self.dir / name).write_bytes(b"no library")
        for arguments in (("--bm25", "english"), ("-m", SOURCE / "tests/data/hybrid/bm42", "--sparse")):
            result = self.run_pith(*arguments, stdin=b"dog", env={**os.environ, "LD_LIBRARY_PATH": str(self.dir)})
            self.assertEqual(result.returncode, 1)
            self.assertIn("stemming needs libstemmer, which is not installed; install it (Debian: apt-get install "
                          "libstemmer0d)", result.stderr.decode())
        plain = self.run_pith("--bm25", "english", "--no-stemming", stdin=b"dog", env={**os.environ, "LD_LIBRARY_PATH": str(self.dir)})
        self.assertEqual((plain.returncode, len(json.loads(plain.stdout)["indices"])), (0, 1))

    def test_refused(self):
        self.bad(1, "--bm25", "klingon", says="language 'klingon' is not known; known are arabic, ", stdin=b"x")
        self.bad(1, "--bm25", "english", "--bm25-b", 2, says="b is 2; it must be from 0 to 1", stdin=b"x")
        self.bad(1, "--bm25", "english", "-m", "nothing-here", says="nothing-here", stdin=b"x")
        self.bad(1, "--bm25", "english", stdin=b"good\n\xff\n", says="UTF-8")
        self.bad(2, "--bm25", "english", "--dense", says="--bm25 makes sparse vectors", stdin=b"x")
        self.bad(2, "--bm25", "english", "--format", "f32", says="go with dense vectors alone", stdin=b"x")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
