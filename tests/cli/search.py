#!/usr/bin/env python3
"""pith search beside NumPy: what it finds in every kind of file, what it refuses and what it says then.

usage: search.py PITH SOURCE_DIR [unittest arguments]; needs NumPy (tests/requirements.txt) and, for texts, the default model.
"""
import json
import os
import subprocess
import sys
import unittest

import numpy as np

from command import PITH, Command

RNG = np.random.default_rng(7)


def scores(rows, queries, metric):
    rows, queries = rows.astype(np.float64), queries.astype(np.float64)
    if metric == "l2":
        return np.linalg.norm(queries[:, None] - rows[None], axis=2)
    dots = queries @ rows.T
    if metric == "dot":
        return dots
    lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(rows, axis=1)[None]
    return np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)


class Search(Command):
    verb = "search"

    def good(self, *arguments, **keywords):
        result = self.run_pith(*arguments, **keywords)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return result.stdout

    def save(self, name, array):
        np.save(self.dir / name, array)
        return name

    def check(self, found, wanted, largest=True, tolerance=2e-6):
        """The hits of each query have NumPy's scores, and no other row has a better one than they have."""
        self.assertEqual([line["query"] for line in found], list(range(len(wanted))))
        for line, row in zip(found, wanted):
            indexes = [hit["index"] for hit in line["hits"]]
            self.assertEqual(len(set(indexes)), len(indexes))
            got = np.array([hit["score"] for hit in line["hits"]])
            margin = tolerance * max(1, np.abs(row).max())
            np.testing.assert_allclose(got, row[indexes], atol=margin, rtol=0)
            ordered = np.sort(row)[::-1] if largest else np.sort(row)
            np.testing.assert_allclose(got, ordered[: len(got)], atol=margin, rtol=0)

    def test_types_and_metrics(self):
        base = RNG.standard_normal((500, 70)).astype(np.float32)
        queries = RNG.standard_normal((9, 70)).astype(np.float32)
        self.save("q.npy", queries)
        for rows in (base, base.astype(np.float16), (base * 40).astype(np.int8), np.abs(base * 60).astype(np.uint8)):
            self.save("v.npy", rows)
            for metric in ("cosine", "dot", "l2"):
                found = self.rows("--index", "v.npy", "--query-vectors", "q.npy", "--metric", metric, "-k", 7)
                self.assertEqual({len(line["hits"]) for line in found}, {7})
                self.check(found, scores(rows, queries, metric), metric != "l2")

    def test_forms(self):
        rows, queries = (RNG.standard_normal((n, 12)).astype(np.float32) for n in (40, 3))
        self.save("v.npy", rows), self.save("q.npy", queries), self.save("one.npy", queries[0])
        rows.tofile(self.dir / "v.f32"), queries.tofile(self.dir / "q.f32")
        for name, array, field in (("v.jsonl", rows, "embedding"), ("q.jsonl", queries, "embedding"), ("w.jsonl", rows, "w")):
            (self.dir / name).write_text("".join(json.dumps({"n": i, field: [float(x) for x in row]}) + "\n\n"
                                                 for i, row in enumerate(array)))
        (self.dir / "plain.jsonl").write_text("".join(json.dumps([float(x) for x in row]) + "\n" for row in rows))
        plain = self.good("--index", "v.npy", "--query-vectors", "q.npy")
        for arguments in (("v.f32", "q.f32", "--dim", 12), ("v.jsonl", "q.jsonl"), ("plain.jsonl", "q.npy"),
                          ("v.npy", "q.f32", "--dim", 12), ("v.npy", "q.npy", "--threads", 1), ("v.npy", "q.npy", "-k", 10)):
            self.assertEqual(self.good("--index", arguments[0], "--query-vectors", arguments[1], *arguments[2:]), plain)
        self.assertEqual(self.good("--index", "w.jsonl", "--vector-field", "w", "--query-vectors", "q.npy"), plain)
        self.good("--index", "v.npy", "--query-vectors", "q.npy", "-o", "out.jsonl")
        self.assertEqual((self.dir / "out.jsonl").read_bytes(), plain)
        one = self.good("--index", "v.npy", "--query-vectors", "one.npy")
        self.assertEqual(one, plain.splitlines(keepends=True)[0])

    def test_first_pass(self):
        centres = RNG.standard_normal((40, 256))
        rows = (centres[RNG.integers(40, size=4000)] + RNG.standard_normal((4000, 256)) * 0.6).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        queries = (rows[:20] + RNG.standard_normal((20, 256)).astype(np.float32) * 0.02)
        self.save("v.npy", rows), self.save("q.npy", queries)
        exact = self.rows("--index", "v.npy", "--query-vectors", "q.npy")
        for how, least in (("int8", 0.99), ("binary", 0.6)):
            found = self.rows("--index", "v.npy", "--query-vectors", "q.npy", "--first-pass", how)
            all_scores = [dict(map(dict.values, line["hits"])) for line in exact]
            same = 0
            for line, wanted in zip(found, all_scores):
                for hit in line["hits"]:
                    same += hit["index"] in wanted
                    if hit["index"] in wanted:
                        self.assertEqual(hit["score"], wanted[hit["index"]])  # to the bit
            self.assertGreaterEqual(same / 200, least)
            every = self.rows("--index", "v.npy", "--query-vectors", "q.npy", "--first-pass", how, "--rescore", 500)
            self.assertEqual(every, exact)

    def test_bits(self):
        for dim in (64, 100):
            rows, queries = (RNG.standard_normal((n, dim)) > 0 for n in (300, 5))
            self.save("v.npy", np.packbits(rows, axis=1)), self.save("q.npy", np.packbits(queries, axis=1))
            self.save("f.npy", (queries * 2 - 1).astype(np.float32))
            for metric in ("cosine", "dot", "l2"):
                wanted = scores(rows * 2 - 1, queries * 2 - 1, metric)
                flags = ("--index", "v.npy", "--bits", "--dim", dim, "--metric", metric)
                found = self.rows(*flags, "--query-vectors", "q.npy")
                self.check(found, wanted, metric != "l2")
                self.assertEqual(self.rows(*flags, "--query-vectors", "f.npy"), found)

    def test_maxsim(self):
        rows, queries = RNG.standard_normal((200, 16)).astype(np.float32), RNG.standard_normal((4, 6, 16)).astype(np.float32)
        ends = np.sort(np.concatenate([[0, 200], RNG.integers(200, size=48)]))
        self.save("v.npy", rows), self.save("q.npy", queries), self.save("one.npy", queries[0]), self.save("o.npy", ends)
        self.save("o32.npy", ends.astype(np.int32))
        wanted = np.array([[sum((rows[a:b] @ row).max() for row in query) if b > a else -np.inf
                            for a, b in zip(ends, ends[1:])] for query in queries])
        (self.dir / "t.txt").write_text("".join(f"document {i}\n" for i in range(49)))
        flags = ("--index", "v.npy", "--metric", "maxsim", "--texts", "t.txt", "-k", 5)
        found = self.rows(*flags, "--offsets", "o.npy", "--query-vectors", "q.npy")
        for line in found:
            self.assertTrue(all(hit["text"] == f"document {hit['index']}" for hit in line["hits"]))
        self.check(found, np.where(np.isfinite(wanted), wanted, -1e3), tolerance=1e-5)
        self.assertEqual(self.rows(*flags, "--offsets", "o32.npy", "--query-vectors", "one.npy"), found[:1])
        self.bad(2, "--index", "v.npy", "--metric", "maxsim", "--query-vectors", "q.npy", says="needs --offsets")
        self.bad(2, "--index", "v.npy", "--offsets", "o.npy", says="goes with --metric maxsim")
        self.bad(2, *flags, "--offsets", "o.npy", "--query", "x", says="needs --query-vectors")
        self.bad(1, "--index", "v.npy", "--query-vectors", "q.npy", says="three axes")
        for name, array, says in (("float", ends * 0.5, "float64 [50]; offsets are int64"), ("last", ends[:-1], "the last one, is 198"),
                                  ("fall", ends[::-1].copy(), "offsets[0] is 200"), ("none", ends[:0], "is empty"),
                                  ("two", ends.reshape(5, 10), "int64 [5, 10]")):
            self.save(f"{name}.npy", array)
            self.bad(1, "--index", "v.npy", "--metric", "maxsim", "--offsets", f"{name}.npy", "--query-vectors", "q.npy",
                     says=(name, says))

    def test_odd_numbers(self):
        rows = np.float32([[1, 0], [np.nan, 0], [0, 0], [np.inf, 1], [-0.0, 0], [1, 0]])
        self.save("v.npy", rows), self.save("q.npy", np.float32([[2, 0]]))
        hits = self.rows("--index", "v.npy", "--query-vectors", "q.npy", "--metric", "dot")[0]["hits"]
        self.assertEqual([(hit["index"], hit["score"]) for hit in hits], [(3, None), (0, 2), (5, 2), (2, 0), (4, 0), (1, None)])
        hits = self.rows("--index", "v.npy", "--query-vectors", "q.npy")[0]["hits"]
        self.assertEqual([(hit["index"], hit["score"]) for hit in hits], [(0, 1), (5, 1), (2, 0), (4, 0), (1, None), (3, None)])

    def test_files_that_are_wrong(self):
        rows = np.float32([[1, 0], [0, 1], [1, 1]])
        self.save("v.npy", rows), self.save("wide.npy", np.zeros((2, 3), np.float32)), self.save("f64.npy", rows.astype(float))
        self.save("fortran.npy", np.asfortranarray(rows)), self.save("big.npy", rows.astype(">f4"))
        self.save("flat.npy", rows[0]), self.save("deep.npy", rows[None]), self.save("text.npy", np.array(["a"]))
        self.save("none.npy", rows[:, :0]), self.save("empty.npy", rows[:0]), self.save("u8.npy", rows.astype(np.uint8))
        whole = (self.dir / "v.npy").read_bytes()
        (self.dir / "cut.npy").write_bytes(whole[:-1])
        (self.dir / "head.npy").write_bytes(whole[:40])
        for name, shape in (("huge.npy", (2**61, 2)), ("vast.npy", (2**62, 2**62)), ("long.npy", (2**64, 1)), ("minus.npy", (-3, -2))):
            with (self.dir / name).open("wb") as file:
                np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
                file.write(bytes(24))
        (self.dir / "zero.npy").write_bytes(b"")
        rows.tofile(self.dir / "v.f32")
        for name, text in (("no.jsonl", '{"id": 1}\n'), ("word.jsonl", '{"embedding": "x"}\n'), ("mixed.jsonl", "[1, 2]\n[1]\n"),
                           ("bad.jsonl", "[1, 2\n"), ("item.jsonl", '[1, "x"]\n'), ("hollow.jsonl", "[]\n"), ("blank.jsonl", "\n")):
            (self.dir / name).write_text(text)
        for index, says in (("fortran.npy", ("Fortran order", "ascontiguousarray")), ("f64.npy", ("float64 [3, 2]", "astype")),
                            ("big.npy", "big-endian"), ("cut.npy", "shorter than the shape"), ("head.npy", "cut off"),
                            ("huge.npy", "shorter than the shape"), ("vast.npy", "too large"),
                            ("long.npy", "long.npy"), ("minus.npy", "header cannot be read"), ("flat.npy", "1 axes"), ("deep.npy", "3 axes"), ("text.npy", "strings"),
                            ("none.npy", "at least one component"), ("zero.npy", "not a .npy file"), ("missing.npy", "missing.npy"),
                            (".", "regular file"), ("no.jsonl", ("no.jsonl:1", "no such field")), ("word.jsonl", "no array"),
                            ("mixed.jsonl", ("mixed.jsonl:2", "another number of components")), ("bad.jsonl", "bad.jsonl:1"),
                            ("item.jsonl", "something else than numbers"), ("hollow.jsonl", "empty"), ("blank.jsonl", "no vectors"),
                            ("v.f32", "needs --dim"), ("wide.npy", ("v.npy have 2 components", "wide.npy have 3"))):
            self.bad(1, "--index", index, "--query-vectors", "v.npy", says=says)
        self.bad(1, "--index", "v.f32", "--dim", 4, "--query-vectors", "v.npy", says=("24 bytes", "4 floats"))
        self.bad(1, "--index", "v.npy", "--dim", 3, "--query-vectors", "v.npy", says="2 components, not 3")
        self.bad(1, "--index", "v.npy", "--bits", "--query-vectors", "v.npy", says="packbits")
        self.bad(1, "--index", "u8.npy", "--bits", "--dim", 25, "--query-vectors", "u8.npy", says="not 25 bits")
        self.bad(1, "--index", "u8.npy", "--first-pass", "int8", "--query-vectors", "v.npy", says="--first-pass is for rows")
        empty = self.rows("--index", "empty.npy", "--query-vectors", "v.npy")
        self.assertEqual([line["hits"] for line in empty], [[], [], []])
        self.assertEqual(self.good("--index", "v.npy", "--query-vectors", "empty.npy"), b"")

    def test_numbers_of_hits_and_lines(self):
        rows = np.float32([[1, 0], [0, 1], [1, 1]])
        self.save("v.npy", rows)
        result = self.run_pith("--index", "v.npy", "--query-vectors", "v.npy", "-k", 5)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr, b"warning: v.npy has 3 vectors, so a query has 3 hits and not 5\n")
        self.assertEqual(self.run_pith("--index", "v.npy", "--query-vectors", "v.npy").stderr, b"")
        (self.dir / "t.txt").write_bytes(b'one "1"\r\ntwo\xff\nthree')
        hits = self.rows("--index", "v.npy", "--query-vectors", "v.npy", "--texts", "t.txt")[0]["hits"]
        self.assertEqual({hit["index"]: hit["text"] for hit in hits}, {0: 'one "1"', 1: "two\ufffd", 2: "three"})
        (self.dir / "zero.txt").write_bytes(b"a\nb\0c\0d\0")
        hits = self.rows("--index", "v.npy", "--query-vectors", "v.npy", "--texts", "zero.txt", "-0")[0]["hits"]
        self.assertEqual({hit["index"]: hit["text"] for hit in hits}, {0: "a\nb", 1: "c", 2: "d"})
        (self.dir / "few.txt").write_text("one\ntwo\n")
        self.bad(1, "--index", "v.npy", "--query-vectors", "v.npy", "--texts", "few.txt", says="few.txt has 2 lines, but v.npy has 3 vectors")
        self.bad(1, "--index", "v.npy", "--query-vectors", "v.npy", "--texts", "nothing.txt", says="nothing.txt")
        self.bad(2, "--index", "v.npy", "--query-vectors", "v.npy", "-o", "v.npy", says="is an input too")

    def test_usage(self):
        self.save("v.npy", np.float32([[1, 0]]))
        self.bad(2, says="--index")
        self.bad(2, "--index", "v.npy", "--query", "a", "--query-vectors", "v.npy", says="one of --query")
        self.bad(2, "--index", "v.npy", "--query", "a", "file", says="one of --query")
        self.bad(2, "--index", "v.npy", "--metric", "angle", says="cosine|dot|l2|maxsim")
        self.bad(2, "--index", "v.npy", "-k", 0, says="--top-k")
        self.bad(2, "--index", "v.npy", "--rescore", 2, "--query-vectors", "v.npy", says="--first-pass")

    def test_texts(self):
        texts = ["a cat sat on the mat", "interest rates rose", "a dog barked", "stock markets fell", "rain in spring"]
        (self.dir / "t.txt").write_text("".join(text + "\n" for text in texts))
        self.good("--format", "npy", "-o", "v.npy", "t.txt", verb="embed")
        found = self.rows("--index", "v.npy", "--texts", "t.txt", "t.txt", "-k", 2)
        self.assertEqual([line["hits"][0]["text"] for line in found], texts)
        hits = self.rows("--index", "v.npy", "--texts", "t.txt", "--query", "kitten", "--query", "share prices went down", "-k", 1)
        self.assertEqual([line["hits"][0]["text"] for line in hits], [texts[0], texts[3]])
        self.assertEqual(self.rows("--index", "v.npy", stdin=(self.dir / "t.txt").read_bytes()),
                         self.rows("--index", "v.npy", "--query-vectors", "v.npy"))
        self.good("--format", "npy", "-o", "small.npy", "--dim", 64, "t.txt", verb="embed")
        self.bad(1, "--index", "small.npy", "t.txt", says=("64 components", "384", "--dim"))
        for metric in ("dot", "l2"):  # queries have the length of the vectors
            found = self.rows("--index", "small.npy", "--dim", 64, "t.txt", "--metric", metric, "-k", 1)
            for i, line in enumerate(found):
                self.assertEqual(line["hits"][0]["index"], i)
                self.assertAlmostEqual(line["hits"][0]["score"], metric == "dot", delta=1e-5)
        self.bad(1, "--index", "v.npy", stdin=b"ok\n\xff\n", says="line 2: not UTF-8")
        self.bad(1, "--index", "v.npy", "--query", "x", "-m", "no-such-model", says="no-such-model",
                 env={**os.environ, "PITH_CACHE": str(self.dir)})

    def test_line_by_line(self):
        self.good("--format", "npy", "-o", "v.npy", stdin=b"one\ntwo\n", verb="embed")
        with subprocess.Popen([PITH, "search", "--index", self.dir / "v.npy", "-k1"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as talk:
            for i, word in enumerate((b"two\n", b"one\n", b"two\n")):
                talk.stdin.write(word)
                talk.stdin.flush()
                line = json.loads(talk.stdout.readline())
                self.assertEqual((line["query"], line["hits"][0]["index"]), (i, int(word == b"two\n")))
            talk.stdin.close()
            self.assertEqual(talk.wait(60), 0)

    def test_lost_reader(self):
        self.save("v.npy", RNG.standard_normal((2000, 8)).astype(np.float32))
        self.assertEqual(subprocess.run(["sh", "-c", '"$1" search --index v.npy --query-vectors v.npy -k 100 | head -n 1 | wc -l',
                                         "sh", PITH], cwd=self.dir, capture_output=True, check=True).stdout.split()[0], b"1")
        result = self.run_pith("--index", "v.npy", "--query-vectors", "v.npy", "-o", "/dev/full")
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left", result.stderr.decode())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
