"""What lies beside the data runs no code, and hostile data cost bounded time and memory. PITH SOURCE."""
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest
import venv
from contextlib import closing
from pathlib import Path

from command import PITH, SOURCE, Command

CASES = SOURCE / "tests/data/cases"

# Stands for pyarrow in an environment of its own: its "Parquet" is text of CSV.
PYARROW = {
    "__init__.py": """
__version__ = "21.0.0"
class ArrowException(Exception): pass
class types:
    is_dictionary = is_nested = is_binary = staticmethod(lambda kind: False)
class Table:
    from_batches = staticmethod(lambda batches: Table(batches[0]))
    def __init__(self, text): self.text = text
    def cast(self, schema): return self
def schema(fields): return fields
""",
    "csv.py": """
class CSVWriter:
    def __init__(self, path, schema): self.file = open(path, "w")
    def write_table(self, table): self.file.write(table.text)
    def __enter__(self): return self
    def __exit__(self, *fault): self.file.close()
""",
    "parquet.py": """
class ParquetFile:
    schema_arrow = []
    def __init__(self, path): self.path = path
    def iter_batches(self, batch_size):
        text = open(self.path).read()
        yield text * 100000 if text.startswith("dense") else text
""",
}


class Parquet(Command):
    verb = "preprocess"

    @classmethod
    def setUpClass(cls):
        cls.place = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        venv.create(cls.place / "env", with_pip=False)
        packages = next((cls.place / "env/lib").glob("python3*")) / "site-packages/pyarrow"
        packages.mkdir()
        for name, text in PYARROW.items():
            (packages / name).write_text(text)

    def setUp(self):
        super().setUp()
        self.data = self.dir / "shop"
        self.data.mkdir()
        (self.data / "a.parquet").write_text("id,price\n1,2.5\n2,4\n")
        self.env = {**os.environ, "PATH": f"{self.place}/env/bin:{os.environ['PATH']}"}

    def test_foreign_code(self):
        """Neither the current directory, nor the source, nor variables that name them decide what Python imports."""
        code = f"open({str(self.dir / 'ran')!r}, 'w')\n"
        for folder in (self.dir, self.data):
            for name in ("pyarrow", "sitecustomize", "usercustomize", "resource", "os", "encodings", "start"):
                (folder / f"{name}.py").write_text(code)
            (folder / "x.pth").write_text(f"import os; {code}")
            (folder / "python3").write_text(f"#!/bin/sh\ntouch '{self.dir}/ran'\n")
            (folder / "python3").chmod(0o755)
        for place in (self.dir, self.data):
            env = {**self.env, "PYTHONPATH": f".:{place}:{self.data}", "PYTHONSTARTUP": "start.py", "PYTHONHOME": str(place),
                   "PYTHONUSERBASE": str(place), "PATH": f":.:shop:{place}:{self.data}:{self.env['PATH']}"}
            result = subprocess.run([PITH, "preprocess", self.data, "-o", self.dir / "x.rdb"], cwd=place, env=env,
                                    capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertFalse((self.dir / "ran").exists())
        self.bad(1, "shop", "-o", "x.rdb", env={**os.environ, "PATH": f".:{self.data}::shop"}, says="--python")
        self.assertFalse((self.dir / "ran").exists())

    def test_name_and_bytes(self):
        """As of .csv files: the directory's name, however it is written, and the same bytes each time."""
        shutil.copytree(self.data, self.dir / "csv/shop")
        (self.dir / "csv/shop/a.parquet").rename(self.dir / "csv/shop/a.csv")
        self.run_pith("csv/shop", "-o", "csv.rdb")
        want = (self.dir / "csv.rdb").read_bytes()
        self.assertIn(b'"name":"shop"', want.replace(b'": "', b'":"'))
        for source in ("shop", "shop/", "./shop", "shop/.", "csv/shop/", "csv/shop/."):
            self.assertEqual(self.run_pith(source, "-o", "x.rdb", env=self.env).returncode, 0)
            self.assertEqual((self.dir / "x.rdb").read_bytes(), want)
            self.assertEqual(json.loads(self.good(source, "--draft", env=self.env))["name"], "shop")

    def test_messages_and_bounds(self):
        (self.data / "a.parquet").write_text("id\n1\n\"\n")
        message = self.bad(1, "shop", "-o", "x.rdb", env=self.env).stderr.decode()
        self.assertIn("shop/a.csv", message)
        self.assertNotIn("pith-parquet-", message)
        (self.data / "a.parquet").write_text("dense\n" + "1" * 6000 + "\n")
        self.bad(1, "shop", "-o", "x.rdb", env=self.env, says="1000 times its size")

    def test_old_pyarrow(self):
        place = next((self.place / "env/lib").glob("python3*")) / "site-packages/pyarrow/__init__.py"
        self.addCleanup(place.write_text, PYARROW["__init__.py"])
        place.write_text(PYARROW["__init__.py"].replace("21.0.0", "14.0.0"))
        self.bad(1, "shop", "-o", "x.rdb", env=self.env, says="14.0.1 or newer")


class Databases(Command):
    verb = "preprocess"

    def test_tables_without_keys(self):
        """Gaps between sections are zeros, however many there are."""
        for i in range(60):
            (self.dir / f"t{i}.csv").write_text("x\n1\n")
        self.run_pith(".", "-o", "x.rdb")
        data = (self.dir / "x.rdb").read_bytes()
        count = int.from_bytes(data[32:36], "little")
        at = 64 + 32 * count
        for i in range(count):
            offset, size = struct.unpack_from("<QQ", data, 64 + 32 * i + 16)
            self.assertEqual(data[at:offset].strip(b"\0"), b"")
            at = offset + size
        self.run_pith(".", "-o", "y.rdb")
        self.assertEqual(data, (self.dir / "y.rdb").read_bytes())


class Sources(Command):
    verb = "preprocess"

    def test_hostile_database(self):
        """Generated columns call trusted functions only; views, triggers and virtual tables are no tables."""
        with closing(sqlite3.connect(self.dir / "t.db")) as db:
            db.execute("PRAGMA trusted_schema = ON")
            db.executescript("CREATE TABLE t(id INTEGER PRIMARY KEY, a AS (upper(id))); INSERT INTO t(id) VALUES(1), (2);"
                             "CREATE VIRTUAL TABLE v USING fts4(x); CREATE VIEW w AS SELECT fts3_tokenizer('simple') AS x;"
                             "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t; END;")
        self.assertEqual(list(json.loads(self.good("t.db", "--draft"))["tables"]), ["t"])
        for name in ("v", "w", "sqlite_schema"):
            (self.dir / "s.json").write_text(json.dumps({"tables": {"x": {"file": name, "columns": {"x": {"stype": "text"}}}}}))
            self.bad(1, "t.db", "--schema", "s.json", "-o", "x.rdb", says=f"no table '{name}'")
        with closing(sqlite3.connect(self.dir / "t.db")) as db:
            db.execute("PRAGMA writable_schema = ON")
            db.execute("UPDATE sqlite_schema SET sql = replace(sql, 'upper', 'fts3_tokenizer') WHERE name = 't'")
            db.commit()
        self.bad(1, "t.db", "--draft", says="t.db: ")

    def test_long_texts(self):
        """Descriptions, names and categories are kept whole; messages cut them between characters."""
        result = self.run_pith(CASES / "description-cut", "--embedder", SOURCE / "tests/data/modules/dense", "-o", "x.rdb")
        self.assertEqual(result.returncode, 0, result.stderr)
        schema = json.loads((CASES / "description-cut/schema.json").read_text())
        text = next(c["description"] for t in schema["tables"].values() for c in t["columns"].values() if "description" in c)
        self.assertIn((": " + text).encode(), (self.dir / "x.rdb").read_bytes())
        cell, name = "\u20ac" * 3000, "n" + "\u20ac" * 100
        (self.dir / "tables").mkdir()
        (self.dir / "tables/t.csv").write_text(f"id,{name},empty\n" + "".join(f"{i},{cell},\n" for i in range(60)))
        self.good("tables", "-o", "y.rdb")
        self.assertIn(f"{name} is {cell}".encode(), (self.dir / "y.rdb").read_bytes())
        (self.dir / "s.json").write_text(json.dumps({"tables": {"t": {"file": "t.csv", "columns": {name + "x": {"stype": "text"}}}}}))
        self.assertNotIn(b"\\x", self.bad(1, "tables", "--schema", "s.json", "-o", "z.rdb").stderr)


class Queries(Command):
    """SQL of a schema reads the tables of its database, and nothing else."""
    verb = "preprocess"

    def ask(self, query, code=1, says=()):
        schema = json.loads((CASES / "schema-sql-address/schema.json").read_text())
        schema["tasks"] = {"asked": {**schema["tasks"]["z1"], "query": query}}
        shutil.copy(CASES / "schema-sql-address/c.csv", self.dir)
        (self.dir / "schema.json").write_text(json.dumps(schema))
        result = self.run_pith(".", "-o", "x.rdb")
        self.assertEqual(result.returncode, code, result.stderr)
        for part in says:
            self.assertIn(part, result.stderr.decode())

    def test_functions(self):
        self.bad(1, CASES / "schema-sql-address", "-o", "x.rdb", says=("'z1'", "fts3_tokenizer"))
        for name, call in {"fts3_tokenizer": "fts3_tokenizer('simple')", "load_extension": "load_extension('x.so')",
                           "randomblob": "randomblob(9)", "zeroblob": "zeroblob(9)", "readfile": "readfile('c.csv')"}.items():
            self.ask(f"SELECT 1 AS anchor, '2023-01-01' AS time, length({call}) > 3 AS target", says=("'asked'", name))
        for table in ("fts3tokenize WHERE input = 'hello'", "pragma_database_list", "pragma_table_info('c')", "sqlite_master", "sqlite_schema",
                      "pragma_module_list", "dbstat"):
            for what in ("*", "1 AS anchor, '2023-01-01' AS time, count(*) > 1 AS target"):
                self.ask(f"SELECT {what} FROM {table}", says=("'asked'",))
        for statement in ("ATTACH 'y.db' AS y", "PRAGMA writable_schema = 1", "SELECT 1; ATTACH 'y.db' AS y", "DELETE FROM c",
                          "WITH x AS (SELECT 1) DELETE FROM c"):
            self.ask(statement, says=("'asked'",))

    def test_cost(self):
        """Depth, texts and what a statement becomes are bounded."""
        row = "1 AS anchor, '2023-01-01' AS time, length({}) > 3 AS target"
        self.ask("SELECT " + row.format("(" * 300 + "1" + ")" * 300), says=("'asked'",))
        self.ask("SELECT " + row.format("replace(printf('%*d', 20000, 1), ' ', printf('%*d', 20000, 1))"), says=("'asked'", "too big"))
        levels = ", ".join(f"w{i} AS (SELECT a.x FROM w{i - 1} a, w{i - 1} b)" for i in range(1, 40))
        self.ask(f"WITH w0 AS (SELECT 1 AS x), {levels} SELECT {row.format('x')} FROM w39", says=("'asked'",))

    def test_what_is_allowed(self):
        self.ask("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3), w AS (SELECT id, t, count(*) OVER (ORDER BY t) AS k "
                 "FROM C), none AS (SELECT 1) SELECT id AS anchor, datetime(t, '+1 day') AS time, max(k, abs(-1)) > 1 AS target FROM w "
                 "WHERE (SELECT count(*) FROM n) = 3 AND (SELECT count(*) FROM none) = 1 AND json_extract('[1]', '$[0]') = 1 "
                 "AND lower(trim(upper(' a '))) LIKE 'a' AND (SELECT sum(value) FROM json_each('[1,2]')) = 3 LIMIT 5", code=0)


class Passwords(Command):
    """No message holds a part of a password, however an address spells it."""
    verb = "preprocess"

    def test_messages(self):
        for address in ("postgresql://me:SECRET@127.0.0.1:1/shop", "POSTGRESQL://me:SECRET@127.0.0.1:1/shop", "Postgres://me:SECRET@127.0.0.1:1/shop",
                        "postgresql://me:SE?SECRET@127.0.0.1:1/shop", "postgresql://me:SECRET?x@127.0.0.1:1/shop", "postgresql://me:SECRET%zz@127.0.0.1:1/shop",
                        "postgresql://me:a/SECRET@127.0.0.1:1/shop", "postgresql://me:SECRET/a@127.0.0.1:1/shop", "postgresql://me:1/SECRET@127.0.0.1:1/shop",
                        "postgresql://me:a@SECRET@127.0.0.1:1/shop", "postgresql://me:SECRET[@127.0.0.1:1/shop", "postgresql://:SECRET@127.0.0.1:1/shop",
                        "postgresql://127.0.0.1:1/shop?user=me&password=SECRET", "postgresql://127.0.0.1:1/shop?password=a@SECRET",
                        "postgresql://127.0.0.1:1/shop?sslpassword=SECRET&user=a@b", "postgresql://127.0.0.1:1/shop?pass%77ord=SECRET",
                        "postgresql://127.0.0.1:1/shop?password=%53ECRET&SECRET", "postgre://me:SECRET@127.0.0.1:1/shop", "postgresql:/me:x//me:SECRET@h/shop",
                        "host=127.0.0.1 password=SECRET", "host=127.0.0.1 PASSWORD = 'SECRET'"):
            with self.subTest(address):
                for word in ("-o", "x.rdb"), ("--draft",):
                    result = self.bad(1, address, *word)
                    self.assertNotIn(b"SECRET", result.stderr + result.stdout)
                    self.assertFalse((self.dir / "x.rdb").exists())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
