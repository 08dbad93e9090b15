#!/usr/bin/env python3
"""--errors report: a line that is no text has an object in its place, and every other line the result that it has without it.

usage: errors.py PITH SOURCE_DIR [unittest arguments]; needs the default model.
"""
import json
import select
import subprocess
import sys
import unittest

from command import PITH, SOURCE, Command

TASKS = SOURCE / "tests/data/tasks"
TEXTS = [b"a cat", b"two dogs sat", b"", b"the end of the text"]
BAD = b"\xff\xfe"
REPORT = ("--errors", "report")


class Report(Command):
    def mixed(self, good, bad):
        """The good lines with bad ones at the front, in the middle (two) and at the end, and the numbers of the bad ones."""
        lines = [bad, good[0], bad, bad, *good[1:], bad]
        return b"".join(line + b"\n" for line in lines), [1, 3, 4, len(lines)]

    def compare(self, good, bad, *options, verb, plain=()):
        """Runs good lines alone, then among bad ones."""
        wanted = self.good(*options, stdin=b"".join(line + b"\n" for line in good), verb=verb).splitlines()
        text, numbers = self.mixed(good, bad)
        result = self.bad(1, *options, *REPORT, stdin=text, verb=verb, says="4 lines have no result")
        rows = result.stdout.splitlines()
        found = [(i + 1, row) for i, row in enumerate(rows) if b'"error"' in row]
        self.assertEqual([i for i, _ in found], numbers)
        self.assertEqual([json.loads(row)["line"] for _, row in found], numbers)
        self.assertEqual([row for row in rows if b'"error"' not in row], wanted)
        stopped = self.bad(1, *options, stdin=text, verb=verb, says="line 1")
        self.assertEqual(stopped.stdout, b"")

    def test_texts(self):
        chunk = ("--long", "chunk")
        for verb, options in (("embed", ()), ("embed", chunk), ("embed", ("--bm25", "english")), ("tokenize", ()),
                              ("classify", ("-m", TASKS / "labels-bert")), ("tokenize", ("--count",))):
            with self.subTest(verb=verb, options=options):
                self.compare(TEXTS, BAD, *options, verb=verb)

    def test_objects(self):
        good = [json.dumps({"text": text.decode(), "id": i}).encode() for i, text in enumerate(TEXTS)]
        for bad in (b'{"text": 5}', b'{"id": 1}', b"[]", b'{"text": "a"', b'{"text": "\\ud800"}', BAD):
            for verb, options in (("embed", ()), ("embed", ("--bm25", "english")), ("embed", ("--long", "chunk", "--chunks", "rows")),
                                  ("tokenize", ()), ("classify", ("-m", TASKS / "labels-bert"))):
                with self.subTest(bad=bad, verb=verb, options=options):
                    self.compare(good, bad, "--jsonl", *options, verb=verb)

    def test_pairs(self):
        self.compare([b"a\tb", b"c\td"], b"no tab", "--pair", verb="tokenize")

    def test_ids(self):
        for bad in (b"[1,", b"[99999999]", b"{}", BAD):
            self.compare([b"[101,1037,4937,102]", b"[1037]"], bad, verb="detokenize")

    def test_documents(self):
        """Indices count the lines, the bad ones as well."""
        options = ("-m", TASKS / "cross-bert", "--query", "a cat")
        wanted = self.rows(*options, stdin=b"".join(t + b"\n" for t in TEXTS), verb="rerank")
        text, numbers = self.mixed(TEXTS, BAD)
        rows = [json.loads(row) for row in self.bad(1, *options, *REPORT, stdin=text, verb="rerank").stdout.splitlines()]
        self.assertEqual([row["line"] for row in rows if "error" in row], numbers)
        scores = {row["index"]: row["score"] for row in rows if "error" not in row}
        self.assertEqual(scores, dict(zip((1, 4, 5, 6), (row["score"] for row in wanted), strict=True)))

    def test_questions(self):
        options = ("-m", TASKS / "cross-bert")
        good = json.dumps({"query": "a", "documents": ["b", "c"]}).encode()
        wanted = [row["score"] for row in self.rows(*options, stdin=good, verb="rerank")]
        for bad in (BAD, b"{", b"[]", b'{"query": "a"}', b'{"query": "a", "documents": [1]}'):
            result = self.bad(1, *options, *REPORT, stdin=b"\n".join((good, bad, good)), verb="rerank", says="1 line has no result")
            rows = [json.loads(row) for row in result.stdout.splitlines()]
            self.assertEqual([row["query"] for row in rows], [0, 0, 1, 2, 2])
            self.assertEqual([row.get("score") for row in rows], [*wanted, None, *wanted])
            self.assertEqual((rows[2]["line"], "error" in rows[2]), (2, True))

    def test_queries(self):
        """A bad line has the number of a query."""
        self.good("--format", "npy", "-o", "v.npy", stdin=b"a cat\na dog\n")
        options = ("--index", "v.npy", "-k", "1")
        wanted = [row["hits"] for row in self.rows(*options, stdin=b"".join(t + b"\n" for t in TEXTS), verb="search")]
        text, _ = self.mixed(TEXTS, BAD)
        rows = [json.loads(row) for row in self.bad(1, *options, *REPORT, stdin=text, verb="search").stdout.splitlines()]
        self.assertEqual([row["query"] for row in rows], list(range(8)))
        self.assertEqual([i for i, row in enumerate(rows) if "error" in row], [0, 2, 3, 7])
        self.assertEqual([row["hits"] for row in rows if "error" not in row], wanted)

    def test_pictures(self):
        """Objects that name no picture. A picture that cannot be read has a row of its own, as without the option."""
        model = TASKS.parent / "vision/vit"
        picture = TASKS.parent / "images/rgb.png"
        good = json.dumps({"path": str(picture)}).encode()
        self.compare([good, good], b'{"path": 1}', "-m", model, "--images", "--jsonl", verb="embed")

    def test_files(self):
        (self.dir / "a.txt").write_bytes(b"a\n\xff\n")
        (self.dir / "b.txt").write_bytes(b"\xff\n")
        result = self.bad(1, *REPORT, "-o", "v.jsonl", "a.txt", "b.txt")
        rows = [json.loads(row) for row in (self.dir / "v.jsonl").read_text().splitlines()]
        self.assertEqual([(row["file"], row["line"]) for row in rows[1:]], [("a.txt", 2), ("b.txt", 1)])
        self.assertEqual(result.stdout, b"")

    def test_bad_lines_alone(self):
        for verb in ("embed", "tokenize"):
            self.assertEqual(len(self.bad(1, *REPORT, stdin=b"\xff\n" * 3000, verb=verb).stdout.splitlines()), 3000)

    def test_answers_at_once(self):
        """A program that writes a line and waits for its answer gets it, also for a bad one."""
        for verb in ("embed", "tokenize", "detokenize"):
            with self.subTest(verb=verb), subprocess.Popen([PITH, verb, *REPORT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                           stderr=subprocess.DEVNULL) as child:
                for line in (b"[1037]\n", b"\xff\n", b"[1037]\n"):
                    child.stdin.write(line)
                    child.stdin.flush()
                    self.assertTrue(select.select([child.stdout], [], [], 60)[0])
                    self.assertEqual(b'"error"' in child.stdout.readline(), line == b"\xff\n")
                child.stdin.close()
                self.assertEqual(child.wait(), 1)

    def test_what_does_not_go_together(self):
        for options in (("--format", "npy", "-o", "x.npy"), ("--resume", "-o", "x"), ("--rows-per-file", "2", "-o", "x")):
            self.bad(2, *REPORT, *options, says="--errors report")
        self.bad(2, *REPORT, "--total", verb="tokenize", says="--total")
        self.bad(2, *REPORT, "--stream", verb="detokenize", says="--stream")
        self.assertFalse(any(self.dir.iterdir()))

    def test_files_that_are_not_there(self):
        self.bad(1, *REPORT, "none.txt", says="none.txt")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
