"""What small files make of memory, what decides which library is loaded, and how messages are cut. PITH SOURCE."""
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
import unittest
import zipfile
import zlib

from onnx import TensorProto, helper

from command import PITH, SOURCE, THREAD_SANITIZED, Command


class Measured(Command):
    def peak(self, verb, *arguments, **keywords):
        """Exit status, messages and the most memory of a call. The thread sanitizer takes as much again, which does not count."""
        with open(self.dir / "told", "w+b") as told:
            child = subprocess.Popen([PITH, verb, *map(str, arguments)], cwd=self.dir, stdout=subprocess.DEVNULL, stderr=told, **keywords)
            _, state, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(state)
            told.seek(0)
            return child.returncode, told.read().decode(), (used.ru_maxrss << 10) // (2 if THREAD_SANITIZED else 1)


def rows(count):
    """The bytes of a table of `count` equal rows, piece by piece: what this program holds at most counts as its children's."""
    yield b"id,x\n"
    for _ in range(count // 100_000):
        yield b"1,1\n" * 100_000


def gzipped(pieces):
    pack = zlib.compressobj(9, wbits=31)
    return b"".join(pack.compress(piece) for piece in pieces) + pack.flush()


def zipped(path, count):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z, z.open("a.csv", "w") as member:
        for piece in rows(count):
            member.write(piece)


class Packed(Measured):
    """Tables unpack to at most 100 times their size and 16 MiB."""
    verb = "preprocess"

    def refused(self, path, name):
        code, told, peak = self.peak("preprocess", path, "-o", "x.rdb")
        self.assertEqual(code, 1, told)
        self.assertIn(name, told)
        self.assertIn("100 times its size and 16 MiB", told)
        self.assertLess(peak, 700 << 20)
        self.assertFalse((self.dir / "x.rdb").exists())

    def test_gzip(self):
        (self.dir / "t").mkdir()
        many = gzipped(rows(25_000_000))
        (self.dir / "t/a.csv.gz").write_bytes(many)
        self.assertLess(len(many), 600_000)
        self.refused("t", "a.csv.gz")
        (self.dir / "t/a.csv.gz").write_bytes(gzip.compress(b"id,x\n") + gzip.compress(b"1,1\n" * 250_000) * 60)
        self.refused("t", "a.csv.gz")

    def test_zip(self):
        zipped(self.dir / "one.zip", 25_000_000)
        self.refused("one.zip", "one.zip")
        zipped(self.dir / "many.zip", 1_000_000)
        packed = (self.dir / "many.zip").read_bytes()
        at = packed.index(b"PK\1\2")
        entry, end = packed[at:packed.index(b"PK\5\6")], packed[packed.index(b"PK\5\6"):]
        entries = b"".join(entry.replace(b"a.csv", b"%c.csv" % (97 + i)) for i in range(20))
        end = end[:8] + struct.pack("<HHII", 20, 20, len(entries), at) + end[20:]
        (self.dir / "many.zip").write_bytes(packed[:at] + entries + end)
        self.refused("many.zip", "many.zip")

    def test_zstandard(self):
        """RFC 8878: a frame of blocks that repeat one byte; 128 KB each of four."""
        (self.dir / "t").mkdir()
        blocks = b"".join(struct.pack("<I", (131072 << 3 | 1 << 1 | (i == 3999)))[:3] + b"1" for i in range(4000))
        (self.dir / "t/a.csv.zst").write_bytes(b"\x28\xB5\x2F\xFD\x00\x58" + blocks)
        self.refused("t", "a.csv.zst")

    def test_ordinary(self):
        """A table of equal rows that packs to a two-hundredth, within the free 16 MiB."""
        text = b"id,x\n" + b"".join(b"%d,1\n" % (i % 7) for i in range(100_000))
        for name, data in (("a.csv", text), ("a.csv.gz", gzip.compress(text, 9))):
            (self.dir / name.split(".")[-1]).mkdir()
            (self.dir / name.split(".")[-1] / name).write_bytes(data)
        tables = []
        for folder in ("csv", "gz"):
            self.assertEqual(self.run_pith(folder, "-o", f"{folder}.rdb").returncode, 0)
            tables.append([{k: v for k, v in t.items() if k != "name"} for t in json.loads(self.good(f"{folder}.rdb", "--json", verb="inspect"))["tables"]])
        self.assertEqual(*tables)


class Shared(Measured):
    """Bytes that many tensors share are converted once."""

    def test_external(self):
        """400 tensors of the same 4 MB, at a place that is no multiple of eight."""
        size, count = 4_000_000, 400
        (self.dir / "w.bin").write_bytes(b"\0" + bytes(size))
        tensors, nodes = [], []
        for i in range(count):
            t = TensorProto(name=f"w{i}", data_type=TensorProto.INT64, dims=[size // 8], data_location=TensorProto.EXTERNAL)
            for key, value in (("location", "w.bin"), ("offset", "1"), ("length", str(size))):
                t.external_data.add(key=key, value=value)
            tensors.append(t)
            nodes.append(helper.make_node("Add", [f"v{i}" if i else "x", f"w{i}"], [f"v{i + 1}"]))
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.INT64, [1])],
                                  [helper.make_tensor_value_info(f"v{count}", TensorProto.INT64, None)], tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        (self.dir / "m.onnx").write_bytes(model.SerializeToString())
        code, told, peak = self.peak("inspect", "m.onnx")
        self.assertEqual(code, 0, told)
        self.assertLess(peak, 150 << 20)
        code, told, peak = self.peak("run", "m.onnx", "--memory-limit", "1M")
        self.assertEqual(code, 1)
        self.assertIn("--memory-limit", told)

    def test_external_overlapping(self):
        """Spans that lie over each other, each a byte further: no more than the file is copied."""
        size, count = 400_000, 300
        (self.dir / "w.bin").write_bytes(bytes(size + 8 * count + 8))
        tensors = []
        for i in range(count):
            t = TensorProto(name=f"w{i}", data_type=TensorProto.INT64, dims=[size // 8], data_location=TensorProto.EXTERNAL)
            for key, value in (("location", "w.bin"), ("offset", str(8 * i + 1)), ("length", str(size))):
                t.external_data.add(key=key, value=value)
            tensors.append(t)
        graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.INT64, [1])],
                                  [helper.make_tensor_value_info("y", TensorProto.INT64, None)], tensors)
        (self.dir / "m.onnx").write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString())
        code, told, peak = self.peak("inspect", "m.onnx")
        self.assertEqual(code, 1)
        self.assertIn("lie over each other in the external data", told)
        self.assertLess(peak, 130 << 20)

    def test_torch(self):
        """An archive of torch.save whose one storage begins at an odd byte, named by 400 tensors of type float16."""
        size, count = 4_000_000, 400
        pickle = b"\x80\x02}(" + b"".join(
            b"X" + struct.pack("<I", len(name)) + name + b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nHalfStorage\nX\1\0\0\0000X"
            b"\3\0\0\0cpuJ" + struct.pack("<i", size // 2) + b"tQK\0J" + struct.pack("<i", size // 2) + b"\x85K\1\x85\x89ccollections\n"
            b"OrderedDict\n)RtR" for name in (b"w%d" % i for i in range(count))) + b"u."
        (self.dir / "m").mkdir()
        shutil.copy(SOURCE / "tests/data/hf/bert/config.json", self.dir / "m")
        for pad in range(2):
            with zipfile.ZipFile(self.dir / "m/pytorch_model.bin", "w") as z:
                z.writestr("a/data.pkl", pickle + b"." * pad)
                z.writestr("a/data/0", bytes(size))
            code, told, peak = self.peak("inspect", "m")
            self.assertLess(peak, 150 << 20, told)
            self.assertIn("is missing", told)


class Libraries(Command):
    verb = "preprocess"

    def setUp(self):
        super().setUp()
        (self.dir / "t").mkdir()
        (self.dir / "t/a.csv.gz").write_bytes(gzip.compress(b"id,x\n1,2\n2,3\n"))
        (self.dir / "away/rel").mkdir(parents=True)

    def run_in(self, path, place="away"):
        return subprocess.run([PITH, "preprocess", self.dir / "t", "-o", self.dir / "x.rdb"], cwd=self.dir / place, capture_output=True,
                              text=True, env={**os.environ, "LD_LIBRARY_PATH": path}, check=False)

    def test_entries_of_the_current_folder(self):
        """Not used where libraries lie; without such files they decide nothing."""
        for path in ("", ":", "rel", "./rel:/usr/lib", "/nowhere:", ":/nowhere", "/nowhere::/nowhere", "rel;/nowhere", "/nowhere;"):
            self.assertEqual(self.run_in(path).returncode, 0, path)
        for name in ("libz.so.1", "libother.so", "rel/libz.so.1"):
            (self.dir / "away" / name).write_bytes(b"no library")
        for path in (":", "rel", "./rel:/usr/lib", "/nowhere:", ":/nowhere", "/nowhere::/nowhere", "rel;/nowhere", "/nowhere;"):
            result = self.run_in(path)
            self.assertEqual(result.returncode, 1, path)
            self.assertIn("LD_LIBRARY_PATH", result.stderr)
            self.assertNotIn("not installed", result.stderr)
        for path in ("", "/nowhere", "/nowhere:/usr/lib", "$ORIGIN/rel"):
            self.assertEqual(self.run_in(path).returncode, 0, path)

    def test_other_verbs(self):
        (self.dir / "away/libcurl.so.4").write_bytes(b"no library")
        env = {**os.environ, "LD_LIBRARY_PATH": "/nowhere:"}
        for verb, arguments in (("pull", ("some/other-model",)), ("info", ())):
            result = subprocess.run([PITH, verb, *arguments], cwd=self.dir / "away", capture_output=True, text=True, env=env, check=False)
            self.assertIn("LD_LIBRARY_PATH", result.stderr + result.stdout, verb)


class Cut(Command):
    """A message that is too long is cut between two characters, and says so."""

    def cut(self, message):
        self.assertNotIn(b"\\x", message)
        self.assertIn("\u2026", message.decode())

    def test_long_names(self):
        for before in range(4):
            name = "n" * before + "\u20ac" * 250
            for verb, arguments in (("inspect", (name,)), ("pull", (name + "/a/b",)), ("verify", ("--dim", name,)),
                                    ("run", (SOURCE / "tests/data/models/none", "--input", name))):
                result = self.run_pith(*arguments, verb=verb)
                self.assertNotEqual(result.returncode, 0)
                result.stderr.decode()
                self.assertNotIn(b"\\xe2", result.stderr, (verb, before))

    def test_very_long_names(self):
        for before in range(4):
            result = self.run_pith("n" * before + "\u20ac" * 1300, verb="inspect")
            self.cut(result.stderr)


class Twice(Command):
    """A network that a call writes into a model's directory is no part of the model: the second call does as the first."""
    verb = "quantize"

    def test_second_run(self):
        source = SOURCE / "tests/data/modules/dense"
        model = self.dir / "m"
        shutil.copytree(source, model)
        first = self.run_pith("m", "-o", "m/x.onnx", "--force")
        self.assertEqual(first.returncode, 0, first.stderr)
        data = (model / "x.onnx").read_bytes()
        second = self.run_pith("m", "-o", "m/x.onnx", "--force")
        self.assertEqual((second.returncode, second.stderr), (0, first.stderr))
        self.assertEqual((model / "x.onnx").read_bytes(), data)
        before = {p: p.read_bytes() for p in model.rglob("*") if p.is_file()}
        for path in before:
            if path.name == "x.onnx":
                continue
            self.bad(2, "m", "-o", path, "--force", says="is an input too")
            self.assertEqual({p: p.read_bytes() for p in model.rglob("*") if p.is_file()}, before)
        self.bad(2, "m", "--model-file", "x.onnx", "-o", "m/x.onnx", "--force", says="is an input too")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
