"""Where pith preprocess reads tables from: directories with packed files, zip archives, SQLite files. PITH FOLDER.

The same tables give the same database file whatever they come from. Faults are named with table, row and column. Damaged archives and
files are refused or read, and never crash.
"""
import csv
import ctypes
import gzip
import json
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zipfile

PITH, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
SHOP = ROOT / "tests/data/shop"


def zstd(data):
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
    library.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    library.ZSTD_compress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    room = ctypes.create_string_buffer(library.ZSTD_compressBound(len(data)))
    size = library.ZSTD_compress(room, len(room), data, len(data), 3)
    return room.raw[:size]


def table(name):
    with open(SHOP / f"{name}.csv", newline="", encoding="utf-8") as f:
        return list(csv.reader(f))[1:]


SHOP_SQL = """
CREATE TABLE customers(customer_id INTEGER PRIMARY KEY, country TEXT, is_business BOOLEAN);
CREATE TABLE products(product_id INTEGER PRIMARY KEY, category VARCHAR(20), price REAL, description TEXT);
CREATE TABLE "orders"(order_id INTEGER PRIMARY KEY, customer_id INT REFERENCES Customers, product_id INT REFERENCES products(PRODUCT_ID),
  ordered_at DATETIME, quantity INT, returned BOOLEAN);
CREATE VIEW recent AS SELECT * FROM orders;
"""


def shop_sqlite(path):
    db = sqlite3.connect(path)
    db.executescript(SHOP_SQL)
    yes = {"true": 1, "false": 0, "": None}
    db.executemany("INSERT INTO customers VALUES(?,?,?)", [(a, b, yes[c]) for a, b, c in table("customers")])
    db.executemany("INSERT INTO products VALUES(?,?,?,?)", [(a, b, float(c), d) for a, b, c, d in table("products")])
    db.executemany("INSERT INTO orders VALUES(?,?,?,?,?,?)", [(*row[:5], yes[row[5]]) for row in table("orders")])
    db.commit()
    db.close()


class Sources(unittest.TestCase):
    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.work)

    def pith(self, *args, code=0):
        done = subprocess.run([PITH, "preprocess", *map(str, args)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else done.stdout

    def made(self, *args):
        out = self.work / "made.rdb"
        self.pith(*args, "-o", out)
        return out.read_bytes()

    def refused(self, source, *words, schema=None):
        message = self.pith(source, *(["--schema", schema] if schema else []), "-o", self.work / "x.rdb", code=1)
        for word in words:
            self.assertIn(word, message)
        self.assertFalse((self.work / "x.rdb").exists())

    def sqlite(self, sql, *rows):
        path = self.work / "t.db"
        path.unlink(missing_ok=True)
        db = sqlite3.connect(path)
        db.executescript(sql)
        for statement, values in rows:
            db.execute(statement, values)
        db.commit()
        db.close()
        return path

    def schema(self, columns, table_name="t"):
        path = self.work / "schema.json"
        kinds = {name: {"stype": stype} for name, stype in columns.items()}
        path.write_text(json.dumps({"tables": {"t": {"file": table_name, "columns": kinds}}}))
        return path

    def test_same_bytes(self):
        want = self.made(SHOP)
        with zipfile.ZipFile(self.work / "shop.zip", "w") as archive:
            archive.write(SHOP / "schema.json", "schema.json")
            archive.write(SHOP / "orders.csv", "orders.csv", zipfile.ZIP_DEFLATED)
            archive.write(SHOP / "customers.csv", "customers.csv", zipfile.ZIP_STORED)
            archive.writestr("products.csv", (SHOP / "products.csv").read_bytes(), zipfile.ZIP_DEFLATED, 9)
            archive.writestr("notes.txt", "no table")
        self.assertEqual(want, self.made(self.work / "shop.zip"))
        with unittest.mock.patch.object(zipfile, "ZIP64_LIMIT", 10):  # larger sizes and offsets take fields of zip64
            with zipfile.ZipFile(self.work / "wide.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for name in ("schema.json", "orders.csv", "customers.csv", "products.csv"):
                    archive.write(SHOP / name, name)
        self.assertIn(b"PK\6\7", (self.work / "wide.zip").read_bytes())
        self.assertEqual(want, self.made(self.work / "wide.zip"))
        folder = self.work / "packed"
        shutil.copytree(SHOP, folder)
        schema = (folder / "schema.json").read_text()
        for name, ending, pack in (("orders", "zst", zstd), ("products", "gz", gzip.compress)):
            (folder / f"{name}.csv.{ending}").write_bytes(pack((folder / f"{name}.csv").read_bytes()))
            (folder / f"{name}.csv").unlink()
            schema = schema.replace(f"{name}.csv", f"{name}.csv.{ending}")
        (folder / "schema.json").write_text(schema)
        self.assertEqual(want, self.made(folder))
        shop_sqlite(self.work / "shop.db")
        schema = self.work / "tables.json"
        schema.write_text((SHOP / "schema.json").read_text().replace(".csv", ""))
        before = (self.work / "shop.db").read_bytes()
        self.assertEqual(want, self.made(self.work / "shop.db", "--schema", schema))
        self.assertEqual(before, (self.work / "shop.db").read_bytes())
        self.assertEqual([p.name for p in self.work.glob("shop.db*")], ["shop.db"])

    def test_draft_of_sqlite(self):
        shop_sqlite(self.work / "shop.db")
        draft = json.loads(self.pith(self.work / "shop.db", "--draft"))
        self.assertEqual(sorted(draft["tables"]), ["customers", "orders", "products"])  # the view is none
        given = json.loads((SHOP / "schema.json").read_text())
        for name, what in given["tables"].items():
            mine = draft["tables"][name]
            self.assertEqual(mine["file"], name)
            self.assertEqual(mine.get("temporal_column"), what.get("temporal_column"))
            for member in ("stype", "foreign_key"):
                self.assertEqual({c: v.get(member) for c, v in mine["columns"].items()},
                                 {c: v.get(member) for c, v in what["columns"].items()})
        path = self.sqlite("""
            CREATE TABLE "odd "" name"(a TEXT, b INT, zip TEXT, flag BOOL, data BLOB, "e.f" REAL, PRIMARY KEY(b, a)) WITHOUT ROWID;
            CREATE TABLE child(x INT, y TEXT, up INT REFERENCES child(rowid_), rowid_ INT UNIQUE, lost INT REFERENCES nowhere,
              FOREIGN KEY(x, y) REFERENCES "odd "" name");
            CREATE VIRTUAL TABLE words USING fts5(t);
            INSERT INTO "odd "" name" VALUES('k', 1, '01067', 1, x'00ff', 1e300), ('j', 1, '8001', 1, NULL, 0.1), ('j', 0, '1', 1, x'', NULL);
            INSERT INTO child VALUES(1, 'j', NULL, 5, 3), (0, 'j', 5, 6, NULL), (9, 'j', 6, 7, NULL);""")
        draft = json.loads(self.pith(path, "--draft"))
        self.assertEqual(sorted(draft["tables"]), ["child", 'odd " name'])
        odd = draft["tables"]['odd " name']
        self.assertEqual(odd["primary_key"], ["b", "a"])
        self.assertEqual({c: v["stype"] for c, v in odd["columns"].items()},
                         {"a": "categorical", "b": "boolean", "zip": "categorical", "flag": "boolean", "data": "ignored", "e.f": "numerical"})
        self.assertEqual(draft["tables"]["child"]["columns"]["up"], {"stype": "identifier", "foreign_key": "child.rowid_"})
        self.assertEqual(draft["tables"]["child"]["foreign_keys"],
                         [{"columns": ["x", "y"], "table": 'odd " name', "references": ["b", "a"]}])
        schema = self.work / "draft.json"
        schema.write_text(json.dumps(draft))
        self.made(path, "--schema", schema)  # a draft is read back
        self.made(path)

    def test_faults_of_sqlite(self):
        path = self.sqlite("CREATE TABLE t(a, b)", ("INSERT INTO t VALUES(?, ?)", (1, "x")), ("INSERT INTO t VALUES(?, ?)", (b"\0", "y")))
        self.refused(path, "t.db, table t: row 2, column 'a': the cell is a blob", schema=self.schema({"a": "numerical", "b": "text"}))
        self.refused(path, "t.db, table t: row 1, column 'b': 'x' is no finite number", schema=self.schema({"b": "numerical"}))
        self.refused(path, "has no column 'c'", schema=self.schema({"c": "text"}))
        self.refused(path, "t.db has no table 'u'", schema=self.schema({"a": "text"}, "u"))
        path = self.sqlite("CREATE TABLE t(a); INSERT INTO t VALUES('good'), (CAST(x'61ff' AS TEXT))")
        self.refused(path, "table t: row 2, column 'a': the text is not UTF-8")
        path = self.sqlite("CREATE TABLE t(a TEXT PRIMARY KEY); INSERT INTO t VALUES('k'), (NULL)")
        self.refused(path, "table t: row 2, column 'a': the key is empty")
        self.refused(self.sqlite("CREATE VIEW v AS SELECT 1"), "holds no table")
        path.write_bytes(b"SQLite format 3\0" + bytes(100))
        self.refused(path, "t.db: file is not a database")
        path.write_bytes(b"something else")
        self.refused(path, "no source of tables: no directory, zip archive, SQLite file or postgresql:// address")

    def test_numbers_of_sqlite(self):
        values = [0.1, 1 / 3, 1e-300, -2.5e17, 123456789012345678, 5e-324]
        path = self.sqlite("CREATE TABLE t(a)", *[("INSERT INTO t VALUES(?)", (v,)) for v in values])
        (self.work / "csv").mkdir()
        (self.work / "csv/t.csv").write_text("a\n" + "\n".join(map(repr, values)) + "\n")
        self.assertEqual(self.made(path, "--schema", self.schema({"a": "numerical"})),
                         self.made(self.work / "csv", "--schema", self.schema({"a": "numerical"}, "t.csv")))

    def test_faults_of_archives(self):
        path = self.work / "a.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("in/a.csv", "x,y\n1,2\n3\n")
        self.refused(path, "a.zip/in/a.csv: row 2 has 1 cells")
        good = self.work / "good.zip"
        with zipfile.ZipFile(good, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", "x\n" + "1\n" * 50)
        data = good.read_bytes()
        central = data.index(b"PK\1\2")

        def changed(at, new):
            path.write_bytes(data[:at] + new + data[at + len(new):])
            return path

        self.refused(changed(central + 8, b"\1"), "is encrypted")
        self.refused(changed(central + 10, b"\x0e"), "packed by method 14")
        self.refused(changed(central + 16, b"abcd"), "its CRC-32 is wrong")
        self.refused(changed(central + 24, b"\5\0\0\0"), "holds more than it says")
        self.refused(changed(central + 24, b"\xff\xff\xff\x7f"), "size cannot be")
        self.refused(changed(central + 24, b"\xff\xff\xff\xff"), "zip64")
        self.refused(changed(central + 42, b"\xff\xff\xff\x0f"), "outside the file")
        self.refused(changed(len(data) - 6, b"\xff\xff\xff\x0f"), "outside the file")
        path.write_bytes(data[:-1])
        self.refused(path, "no directory at its end")
        path.write_bytes(data + b"more")
        self.refused(path, "no directory at its end")
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.txt", "x")
        self.refused(path, "holds no .csv or .tsv file")
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.csv", "x\n1\n")
            archive.writestr("b/a.csv", "x\n1\n")
        self.refused(path, "two tables 'a'")
        folder = self.work / "z"
        folder.mkdir()
        packed = zstd(b"x\n" + b"12345\n" * 1000)
        for damage, word in ((packed[:-5], "is not a whole Zstandard file"), (packed + b"more", "damaged Zstandard file"),
                             (packed[:9] + b"\xff\xff\xff" + packed[12:], "a.csv.zst is")):
            (folder / "a.csv.zst").write_bytes(damage)
            self.refused(folder, word)
        (folder / "a.csv.zst").write_bytes(packed + zstd(b"77\n"))  # two frames
        want = self.work / "plain"
        want.mkdir()
        (want / "a.csv").write_bytes(b"x\n" + b"12345\n" * 1000 + b"77\n")
        self.assertEqual(self.made(folder, "--schema", self.schema({"x": "numerical"}, "a.csv.zst")),
                         self.made(want, "--schema", self.schema({"x": "numerical"}, "a.csv")))

    def test_damage_never_crashes(self):
        draw = random.Random(5)
        with zipfile.ZipFile(self.work / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", "id,t\n" + "".join(f"{i},word {i % 7}\n" for i in range(40)))
            archive.writestr("b.csv.zst", zstd(b"k,a_id\n" + b"".join(b"%d,%d\n" % (i, i % 40) for i in range(60))))
        base = self.sqlite("CREATE TABLE a(id INTEGER PRIMARY KEY, t TEXT); CREATE TABLE b(k INT, a_id INT REFERENCES a)",
                           *[("INSERT INTO a VALUES(?, ?)", (i, f"word {i % 7}")) for i in range(40)],
                           *[("INSERT INTO b VALUES(?, ?)", (i, i % 40)) for i in range(60)])
        fates = {0: 0, 1: 0}
        for original in (self.work / "a.zip", base):
            data = original.read_bytes()
            used = [i for i, byte in enumerate(data) if byte] if original == base else range(len(data))
            for _ in range(150):
                bad = bytearray(data)
                for _ in range(draw.choice((1, 1, 2, 5))):
                    bad[draw.choice(used)] = draw.randrange(256)
                target = self.work / "bad"
                target.write_bytes(bytes(bad[: draw.randrange(len(bad))] if draw.random() < 0.1 else bad))
                done = subprocess.run([PITH, "preprocess", target, "-o", self.work / "x.rdb"], capture_output=True, check=False, timeout=60)
                self.assertIn(done.returncode, fates, done.stderr[-300:])
                fates[done.returncode] += 1
        self.assertGreater(min(fates.values()), 20, fates)


unittest.main(argv=sys.argv[:1] + sys.argv[3:])
