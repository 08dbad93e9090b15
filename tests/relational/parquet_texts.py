"""Texts from .parquet files are those of the same table as CSV. PITH SOURCE, run by a Python with pyarrow."""
import datetime
import decimal
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import pyarrow
import pyarrow.parquet

PITH = pathlib.Path(sys.argv[1]).resolve()
LABELS = pathlib.Path(sys.argv[2]).resolve() / "tests/data/tasks/labels-bert"


class Texts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def pith(self, code, *words, python=sys.executable):
        result = subprocess.run([PITH, *map(str, words), "--python", python], capture_output=True, cwd=self.dir)
        self.assertEqual(result.returncode, code, result.stderr.decode())
        return result.stdout.decode(), result.stderr.decode()

    def table(self, columns, name="a.parquet", **options):
        pyarrow.parquet.write_table(pyarrow.table(columns), self.dir / name, **options)
        return name

    def test_same_results(self):
        texts = ["a cat", "two\nlines", 'a "quote", and more', "", "\u00e9\u2028 \\", "last"] * 700
        ids = list(range(len(texts)))
        when = [datetime.datetime(2020, 1, 2, 3, 4, 5)] * len(texts)
        self.table({"id": ids, "text": pyarrow.array(texts).dictionary_encode(), "when": when,
                    "money": [decimal.Decimal("1.50")] * len(texts), "a.b": [None] * len(texts)}, row_group_size=500)
        (self.dir / "a.jsonl").write_text("".join(json.dumps({"id": str(i), "text": t}) + "\n" for i, t in zip(ids, texts)))
        out, said = self.pith(0, "classify", "-m", LABELS, "a.parquet")
        self.assertEqual(said, "")
        rows = [json.loads(line) for line in out.split("\n")[:-1]]
        plain = [json.loads(line) for line in self.pith(0, "classify", "-m", LABELS, "a.jsonl")[0].split("\n")[:-1]]
        self.assertEqual([(r["id"], r["text"], r["labels"]) for r in rows], [(r["id"], r["text"], r["labels"]) for r in plain])
        self.assertEqual((rows[0]["money"], rows[0]["when"][:10], rows[0]["a.b"]), ("1.50", "2020-01-02", ""))

    def test_columns_that_are_left_out(self):
        self.table({"text": ["x"], "list": [[1, 2]], "raw": [b"\xff"], "struct": [{"a": 1}]})
        out, said = self.pith(0, "classify", "-m", LABELS, "-k", 1, "a.parquet")
        self.assertEqual((list(json.loads(out)), said.count("is left out")), (["text", "labels"], 3))
        self.table({"list": [[1, 2]]})
        self.assertIn("no column holds", self.pith(1, "classify", "-m", LABELS, "a.parquet")[1])

    def test_faults(self):
        (self.dir / "a.parquet").write_bytes(b"PAR1 and no more")
        self.assertIn("a.parquet could not be read", self.pith(1, "classify", "-m", LABELS, "a.parquet")[1])
        (self.dir / "a.parquet").write_bytes(b"")
        self.assertIn("a.parquet", self.pith(1, "classify", "-m", LABELS, "a.parquet")[1])
        self.assertIn("none.parquet: No such file", self.pith(1, "classify", "-m", LABELS, "none.parquet")[1])
        self.table({"id": [1], "title": ["x"]})
        self.assertIn("a.parquet, row 1: there is no column 'text'; the table has id, title", self.pith(1, "classify", "-m", LABELS, "a.parquet")[1])
        self.assertIn("no-such-python", self.pith(1, "classify", "-m", LABELS, "a.parquet", python="no-such-python")[1])
        self.table({"text": ["word " * 50] * 200000})  # a reader that stops early ends the program
        whole = (self.dir / "a.parquet").read_bytes()
        (self.dir / "a.parquet").write_bytes(whole[: len(whole) // 2] + bytes(1000) + whole[len(whole) // 2 + 1000:])
        result = subprocess.run(["sh", "-c", '"$1" classify -m "$2" --python "$3" a.parquet | head -n 1', "sh", PITH, LABELS, sys.executable],
                                capture_output=True, cwd=self.dir)
        self.assertNotIn(b"Traceback", result.stderr)

    def test_search(self):
        self.table({"sku": ["A1", "B2"], "description": ["a small lamp", "a chair"], "price": [1.5, 2]})
        (self.dir / "v.csv").write_text("1,0\n0,1\n")
        out, _ = self.pith(0, "search", "--index", "v.csv", "--query-vectors", "v.csv", "--texts", "a.parquet", "--column", "description",
                           "--id", "sku", "--fields", "price", "-k", "1")
        self.assertEqual([json.loads(line)["hits"][0]["id"] for line in out.splitlines()], ["A1", "B2"])
        self.assertEqual(json.loads(out.splitlines()[0])["hits"][0]["price"], "1.5")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
