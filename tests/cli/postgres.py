"""pith preprocess from a PostgreSQL server that this test starts: PITH FOLDER.

The server is Debian's, in a directory of its own, reached by a socket alone. The same tables give the same database file as CSV files.
"""
import glob
import json
import os
import pathlib
import pwd
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

PITH, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
SHOP = ROOT / "tests/data/shop"
PROGRAMS = pathlib.Path(max(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[-2])))
SHOP_SQL = """
CREATE TABLE customers(customer_id int PRIMARY KEY, country text, is_business boolean);
CREATE TABLE products(product_id int PRIMARY KEY, category varchar(20), price numeric(10, 2), description text);
CREATE TABLE orders(order_id int PRIMARY KEY, customer_id int REFERENCES customers, product_id int REFERENCES products(product_id),
  ordered_at timestamptz, quantity smallint, returned boolean);
CREATE VIEW recent AS SELECT * FROM orders;
\\copy customers FROM '{shop}/customers.csv' CSV HEADER
\\copy products FROM '{shop}/products.csv' CSV HEADER
\\copy orders FROM '{shop}/orders.csv' CSV HEADER
"""
QUERY = ("SELECT customer_id AS anchor, t AS time, (SELECT count(*) FROM orders o WHERE o.customer_id = c.customer_id AND o.ordered_at > t "
         "AND o.ordered_at <= {later}) AS target, {later} AS known_at FROM customers c CROSS JOIN (SELECT {a} AS t UNION ALL SELECT {b}) d "
         "ORDER BY 2, customer_id")


META, SCHEMA = 1, 13  # PITH_RDB_META and PITH_RDB_SCHEMA of src/tables/database/rdb.h


def sections(data):
    """The sections of a database file (src/tables/database/rdb_file.h): kind, two numbers, and what it holds."""
    count, = struct.unpack_from("<I", data, 32)
    rows = [struct.unpack_from("<IIIIQQ", data, 64 + 32 * i) for i in range(count)]
    return {(kind, a, b): data[offset:offset + size] for kind, a, b, _, offset, size in rows}


class Server:
    """As root the server runs as the user postgres, since it refuses root."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.prefix = []
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
            self.prefix = ["runuser", "-u", "postgres", "--"]
        self.run("initdb", "-D", self.folder / "data", "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        with open(self.folder / "data/postgresql.conf", "a", encoding="utf-8") as f:
            f.write(f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\ntimezone = 'Asia/Tokyo'\nfsync = off\n"
                    "datestyle = 'SQL, DMY'\nextra_float_digits = -5\nbytea_output = 'escape'\n")
        self.run("pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log", "-w", "start")

    def run(self, program, *args):
        done = subprocess.run([*self.prefix, str(PROGRAMS / program), *map(str, args)], cwd=self.folder, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout}")

    def stop(self):
        self.run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder)

    def sql(self, database, text):
        done = subprocess.run([str(PROGRAMS / "psql"), "-q", "-X", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-U", "tester", database],
                              input=text, text=True, capture_output=True, check=False, env={**os.environ, "PGTZ": "UTC"})
        if done.returncode:
            raise RuntimeError(done.stderr)

    def address(self, database, more=""):
        return f"postgresql://tester:secret@/{database}?host={self.folder}{more}"


class Postgres(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.count = 0

    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.work)

    def database(self, sql):
        Postgres.count += 1
        name = f"d{Postgres.count}"
        self.server.sql("postgres", f"CREATE DATABASE {name}")
        self.server.sql(name, sql)
        return name

    def pith(self, *args, code=0):
        done = subprocess.run([PITH, "preprocess", *map(str, args)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertNotIn("secret", done.stdout + done.stderr)
        if not code:
            self.assertEqual(done.stderr, "")
        return done.stderr if code else done.stdout

    def made(self, *args):
        self.pith(*args, "-o", self.work / "made.rdb")
        return (self.work / "made.rdb").read_bytes()

    def refused(self, source, *words, schema=None):
        message = self.pith(source, *(["--schema", schema] if schema else []), "-o", self.work / "x.rdb", code=1)
        for word in words:
            self.assertIn(word, message)
        self.assertFalse((self.work / "x.rdb").exists())

    def schema(self, columns, table="t", tasks=None):
        path = self.work / "schema.json"
        kinds = {name: {"stype": stype} for name, stype in columns.items()}
        path.write_text(json.dumps({"tables": {"t": {"file": table, "columns": kinds}}, "tasks": tasks or {}}))
        return path

    def test_shop(self):
        name = self.database(SHOP_SQL.format(shop=SHOP))
        address = self.server.address(name)
        draft = json.loads(self.pith(address, "--draft"))
        given = json.loads((SHOP / "schema.json").read_text())
        self.assertEqual(sorted(draft["tables"]), ["customers", "orders", "products"])
        for table, what in given["tables"].items():
            mine = draft["tables"][table]
            self.assertEqual((mine["primary_key"], mine.get("temporal_column")), (what["primary_key"], what.get("temporal_column")))
            for member in ("stype", "foreign_key"):
                self.assertEqual({c: v.get(member) for c, v in mine["columns"].items()},
                                 {c: v.get(member) for c, v in what["columns"].items()})
        # The same bytes as from CSV files, also of a question that each asks in its own dialect, but for the question's text.
        split = given["tasks"]["returned"]["split"]
        files = []
        for ending, query in (
            (".csv", QUERY.format(later="datetime(t, '+30 days')", a="'2023-01-01 00:00:00'", b="'2023-10-01 00:00:00'")),
            ("", QUERY.format(later="t + interval '30 days'", a="timestamptz '2023-01-01Z'", b="timestamptz '2023-10-01Z'"))):
            given["tasks"]["next"] = {"anchor_table": "customers", "target_stype": "numerical", "query": query, "split": split}
            path = self.work / f"schema{len(files)}.json"
            path.write_text(json.dumps(given).replace(".csv", ending))
            files.append(self.made(address if files else SHOP, "--schema", path))
        first, second = map(sections, files)
        texts = [part.pop((SCHEMA, 0, 0)).rstrip(b"\0") for part in (first, second)]
        schemas = [json.loads(text) for text in texts]
        for schema in schemas:
            self.assertIn("UNION ALL", schema["tasks"]["next"].pop("query"))
        self.assertEqual(*schemas)
        metas = [json.loads(part.pop((META, 0, 0)).rstrip(b"\0")) for part in (first, second)]
        self.assertEqual([meta.pop("schema") for meta in metas], [len(s) for s in texts])
        self.assertEqual(*metas)
        self.assertEqual(first, second)

    def test_declarations(self):
        name = self.database("""
            CREATE TABLE "odd "" name"(a text, b int, zip char(5), flag bool, data bytea, "e.f" float8, PRIMARY KEY(b, a));
            CREATE TABLE child(x int, y text, up int REFERENCES child(id), id int UNIQUE, mood int,
              FOREIGN KEY(x, y) REFERENCES "odd "" name");
            CREATE TABLE parts(at date, n int) PARTITION BY RANGE (at);
            CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
            INSERT INTO "odd "" name" VALUES('k', 1, '01067', true, '\\x00ff', 1e300), ('j', 1, '8001', true, NULL, 0.1), ('j', 0, '1', true, '', NULL);
            INSERT INTO child VALUES(1, 'j', NULL, 5, 3), (0, 'j', 5, 6, NULL), (NULL, 'j', 6, 7, NULL);
            INSERT INTO parts VALUES('2020-02-01', 3);
            CREATE SCHEMA other; CREATE TABLE other.alone(q int); INSERT INTO other.alone VALUES(1);""")
        draft = json.loads(self.pith(self.server.address(name), "--draft"))
        self.assertEqual(sorted(draft["tables"]), ["child", 'odd " name', "parts"])
        odd = draft["tables"]['odd " name']
        self.assertEqual(odd["primary_key"], ["b", "a"])
        self.assertEqual({c: v["stype"] for c, v in odd["columns"].items()},
                         {"a": "categorical", "b": "boolean", "zip": "categorical", "flag": "boolean", "data": "ignored", "e.f": "numerical"})
        self.assertEqual(draft["tables"]["child"]["columns"]["up"], {"stype": "identifier", "foreign_key": "child.id"})
        self.assertEqual(draft["tables"]["child"]["foreign_keys"],
                         [{"columns": ["x", "y"], "table": 'odd " name', "references": ["b", "a"]}])
        (self.work / "draft.json").write_text(json.dumps(draft))
        self.made(self.server.address(name), "--schema", self.work / "draft.json")
        other = json.loads(self.pith(self.server.address(name, "&options=-csearch_path%3Dother"), "--draft"))
        self.assertEqual(list(other["tables"]), ["alone"])

    def test_values(self):
        values = [0.1, 1 / 3, 1e-300, -2.5e17, 123456789012345678, 5e-324]
        name = self.database("CREATE TABLE t(a float8, at timestamptz); INSERT INTO t VALUES"
                             + ",".join(f"({v!r}, '2023-05-30 15:13:52.5+02')" for v in values))
        (self.work / "csv").mkdir()
        (self.work / "csv/t.csv").write_text("a,at\n" + "".join(f"{v!r},2023-05-30T13:13:52\n" for v in values))
        kinds = {"a": "numerical", "at": "timestamp"}
        self.assertEqual(self.made(self.server.address(name), "--schema", self.schema(kinds)),
                         self.made(self.work / "csv", "--schema", self.schema(kinds, "t.csv")))

    def test_many_rows(self):
        name = self.database("CREATE TABLE t(i int, s text); INSERT INTO t SELECT i, 'text ' || i % 100 FROM generate_series(1, 25000) i")
        (self.work / "csv").mkdir()
        (self.work / "csv/t.csv").write_text("i,s\n" + "".join(f"{i},text {i % 100}\n" for i in range(1, 25001)))
        kinds = {"i": "numerical", "s": "categorical"}
        self.assertEqual(self.made(self.server.address(name), "--schema", self.schema(kinds)),
                         self.made(self.work / "csv", "--schema", self.schema(kinds, "t.csv")))

    def test_faults(self):
        name = self.database("CREATE TABLE t(a text, b bytea, c timestamp, d float8); "
                             "INSERT INTO t VALUES('1', NULL, '2020-01-01', 1), ('x', 'z', 'infinity', 'Infinity')")
        address = self.server.address(name)
        shown = f"postgresql://tester@/{name}, table t: "
        self.refused(address, shown + "row 2, column 'a': 'x' is no finite number", schema=self.schema({"a": "numerical"}))
        self.refused(address, shown + "row 2, column 'b': the cell is a blob", schema=self.schema({"b": "text"}))
        self.refused(address, shown + "row 2, column 'c': 'infinity' is no date", schema=self.schema({"c": "timestamp"}))
        self.refused(address, shown + "row 2, column 'd': 'Infinity' is no finite number", schema=self.schema({"d": "numerical"}))
        self.refused(address, "has no table 'u'", schema=self.schema({"a": "text"}, "u"))
        self.refused(address.replace(f"/{name}?", "/nowhere?"), "postgresql://tester@/nowhere: ", "does not exist")
        self.refused(f"postgresql://tester:secret@/x?host={self.work}", "postgresql://tester@/x: ", "No such file")
        self.refused(self.server.address(self.database("CREATE VIEW v AS SELECT 1")), "the current schema holds no table")
        for query, word in (("SELECT 1; DROP TABLE t", "cannot insert multiple commands"), ("SELECT nextval('s')", "read-only transaction"),
                            ("WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x", "DECLARE CURSOR must not contain data-modifying"),
                            ("SELECT 1 AS anchor, 1 / 0 AS time", "division by zero"), ("SELECT 1 AS one", "gives a column 'one'")):
            tasks = {"q": {"anchor_table": "t", "target_stype": "boolean", "query": query, "split": {"kind": "hash"}}}
            self.server.sql(name, "CREATE SEQUENCE IF NOT EXISTS s")
            self.refused(address, "the query of task 'q'", word, schema=self.schema({"a": "text"}, tasks=tasks))


unittest.main(argv=sys.argv[:1] + sys.argv[3:])
