"""What lies beside the data runs no code, and hostile data cost bounded time and memory. PITH SOURCE."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import venv
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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
