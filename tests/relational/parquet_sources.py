"""Directories with .parquet files give the same database as the CSV files of the same tables. PITH SOURCE, run by a Python with pyarrow."""
import csv
import datetime
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import pyarrow
import pyarrow.parquet

PITH, SHOP = sys.argv[1], pathlib.Path(sys.argv[2]) / "tests/data/shop"
KINDS = {"price": float, "quantity": int, "returned": lambda x: x == "true", "is_business": lambda x: x == "true",
         "ordered_at": datetime.datetime.fromisoformat, "customer_id": int, "product_id": int, "order_id": int}


class Parquet(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def run_pith(self, *words):
        before = set(pathlib.Path(tempfile.gettempdir()).glob("pith-parquet-*"))
        result = subprocess.run([PITH, "preprocess", *map(str, words), "--python", sys.executable], capture_output=True, text=True)
        self.assertEqual(set(pathlib.Path(tempfile.gettempdir()).glob("pith-parquet-*")), before)
        return result

    def shop(self):
        """Orders and products as Parquet, as Arrow's own types, one column as a dictionary; customers stay CSV."""
        shutil.copytree(SHOP, self.dir / "shop")
        for name in ("orders", "products"):
            path = self.dir / f"shop/{name}.csv"
            with open(path, newline="", encoding="utf-8") as f:
                rows = list(csv.DictReader(f))
            path.unlink()
            columns = {key: [KINDS.get(key, str)(row[key]) if row[key] else None for row in rows] for key in rows[0]}
            table = pyarrow.table({key: pyarrow.array(cells).dictionary_encode() if key == "category" else cells for key, cells in columns.items()})
            pyarrow.parquet.write_table(table, path.with_suffix(".parquet"), row_group_size=5000)
        return self.dir / "shop"

    def test_same_database(self):
        for source, file in ((SHOP, "csv.rdb"), (self.shop(), "parquet.rdb")):
            result = self.run_pith(source, "-o", self.dir / file)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.dir / "csv.rdb").read_bytes(), (self.dir / "parquet.rdb").read_bytes())

    def test_faults(self):
        folder = self.dir / "faults"
        folder.mkdir()
        (folder / "a.parquet").write_bytes(b"PAR1 and no more")
        result = self.run_pith(folder, "-o", self.dir / "x.rdb")
        self.assertIn("a.parquet", result.stderr)
        self.assertEqual((result.returncode, (self.dir / "x.rdb").exists()), (1, False))
        pyarrow.parquet.write_table(pyarrow.table({"id": [1], "list": [[1, 2]]}), folder / "a.parquet")
        self.assertIn("column 'list'", self.run_pith(folder, "-o", self.dir / "x.rdb").stderr)
        (folder / "a.csv").write_text("id\n1\n")
        self.assertIn("both a.parquet and a.csv", self.run_pith(folder, "-o", self.dir / "x.rdb").stderr)


unittest.main(argv=sys.argv[:1] + sys.argv[3:])
