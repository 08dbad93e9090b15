"""No file, no message and no statistic of a PostgreSQL source holds the password; a false libpq stands for the server. PITH SOURCE."""
import json
import os
import subprocess
import sys
import unittest

from command import PITH, SOURCE, Command

SECRET = "S3CRETword"
SPLIT = {"kind": "time", "train_until": "2024-08-01", "validation_until": "2024-10-01"}


class Passwords(Command):
    def setUp(self):
        super().setUp()
        library = self.dir.resolve() / "library"
        library.mkdir()
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-w", "-o", library / "libpq.so.5", SOURCE / "tests/cases/false_pq.c"],
                       check=True)
        self.env = {**os.environ, "LD_LIBRARY_PATH": str(library)}
        self.told = b""
        (self.dir / "work").mkdir()

    def call(self, code, verb, *arguments, **variables):
        """Keeps all that is told."""
        result = subprocess.run([PITH, verb, *map(str, arguments)], cwd=self.dir / "work", env={**self.env, **variables}, capture_output=True,
                                check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        self.told += result.stdout + result.stderr
        return result.stdout

    def find(self):
        """Where the password is."""
        places = [path.relative_to(self.dir) for path in (self.dir / "work").rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
        self.assertEqual(places, [])
        self.assertNotIn(SECRET.encode(), self.told)

    def test_all_files(self):
        for address in (f"postgresql://me:{SECRET}@false.host/shop", f"Postgres://me:{SECRET}@false.host:1/shop?sslmode=disable"):
            schema = json.loads(self.call(0, "preprocess", address, "--draft"))
            self.call(0, "preprocess", address, "--draft", "-o", "draft.json")
            schema["tasks"] = {"y": {"anchor_table": "t", "target_column": "y", "observation_time_column": "at", "split": SPLIT}}
            schema["tables"]["t"]["temporal_column"] = "at"
            (self.dir / "work/schema.json").write_text(json.dumps(schema))
            self.call(0, "preprocess", address, "--schema", "schema.json", "-o", "shop.rdb")
            self.assertIn(b'"shop"', (self.dir / "work/shop.rdb").read_bytes().replace(b": ", b":"))
            self.call(0, "inspect", "shop.rdb", "--json")
            self.call(0, "inspect", "shop.rdb", "--svg", "shop.svg")
            self.call(0, "train", "shop.rdb", "--task", "y", "-o", "run", "--steps", "4", "--save-every", "2", "--evaluate-every", "2")
            self.call(0, "eval", "run", "--plots", "--importance", "--json")
            (self.dir / "work/keys.txt").write_text("290\n")
            self.call(0, "predict", "run", "--rows", "keys.txt", "-o", "answers.txt", "--inputs", "in")
            self.call(0, "export", "run", "-o", "rows.onnx", "--card", "--force")
            self.assertTrue({"run.json", "log.jsonl", "model.bin"} <= {p.name for p in (self.dir / "work/run").iterdir()})
            self.find()

    def test_failures(self):
        """The server's messages quote the address; a query and a connection that fail, JSON errors too."""
        address = f"postgresql://me:{SECRET}@false.host/shop"
        self.call(1, "preprocess", address, "-o", "x.rdb", FALSE_PQ_DOWN="1")
        self.assertIn(b"the server says no to", self.told)
        schema = {"tables": {"t": {"file": "t", "columns": {"id": {"stype": "identifier"}}}},
                  "tasks": {"q": {"anchor_table": "t", "target_stype": "boolean", "query": "SELECT broken", "split": SPLIT}}}
        (self.dir / "work/schema.json").write_text(json.dumps(schema))
        self.call(1, "preprocess", address, "--schema", "schema.json", "-o", "x.rdb")
        # An address where a file is wanted: no verb shows it.
        for verb, arguments in (("train", (address, "--task", "y", "-o", "r")), ("inspect", (address,)), ("embed", ("-m", address, "x")),
                                ("inspect", (address, "--json")), ("preprocess", (".", "--schema", address, "-o", "x.rdb")),
                                ("eval", (address,)), ("predict", (address, "--rows", "keys")),
                                ("inspect", ("postgresql://false.host/shop?user=me&password=" + SECRET,))):
            result = subprocess.run([PITH, verb, *arguments], cwd=self.dir / "work", env=self.env, capture_output=True, check=False)
            self.assertNotEqual(result.returncode, 0)
            self.assertNotIn(SECRET.encode(), result.stdout + result.stderr, verb)
            self.assertIn(b"false.host", result.stdout + result.stderr, verb)
        self.find()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
