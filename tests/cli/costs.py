#!/usr/bin/env python3
"""`pith select --cost` beside programs that are linked with and without a piece, and `pith select --why`.

usage: costs.py PITH SOURCE_DIR [unittest arguments]; PITH lies in its build directory
"""
import re
import sys
import tempfile
import unittest
from pathlib import Path

PITH, SOURCE = (Path(a).resolve() for a in sys.argv[1:3])
BUILD = PITH.parent
sys.path.insert(0, str(SOURCE / "tests/select"))
import size
import small
DATA = SOURCE / "tests/data"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)

    def select(self, *arguments, code=0):
        done = small.run(PITH, "select", "-q", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if not code else done.stderr

    def costs(self, *arguments, library=None):
        """{(kind, piece): (adds, with)}"""
        cost = f"--cost={library}" if library else "--cost"
        return {(m[3], m[4]): (int(m[1]), int(m[2])) for m in re.finditer(r"^ *(\d+) +(\d+)  (\w+): (.+)$", self.select(cost, *arguments), re.M)}


class Costs(Case):
    def test_against_builds(self):
        """What goes of the library when a line is taken out of a list is what --cost says, within 5 % and 400 bytes."""
        programs = size.Programs(SOURCE, BUILD, self.dir)
        path = self.dir / "all.yaml"
        path.write_text(self.select(DATA / "modules/chain"))
        kinds = small.read(path.read_text())
        costs = self.costs("--merge", path, "--isas", "scalar,avx2", "--use", "embed", library=programs.library)

        def build(name, without=None, isas="scalar,avx2"):
            left = {kind: {n: w for n, w in names.items() if (kind, n) != without} for kind, names in kinds.items()}
            (self.dir / "less.yaml").write_text(small.write(left))
            done = programs.folder.lists(name, "--list", self.dir / "less.yaml", "--dtypes", "ON", "--isas", isas)
            self.assertEqual(done.returncode, 0, done.stderr)
            objects = [programs.folder._compile("src/select/tables.c", self.dir / name)]
            programs.link(["embed"], f"{name}.out", True, objects, f"-Wl,-Map={self.dir / name}.map")
            return sum(count for file, count in size.places(self.dir / f"{name}.map").items() if file.removesuffix(".o") in own)
        own = {p.name for p in (SOURCE / "src").rglob("*.c")}  # what the C library adds is not Pith's
        whole = build("whole")
        more = costs["program", "all"][0] - whole  # what the linker merges
        self.assertTrue(0 <= more < 25000, more)
        weighed = 0
        for kind, name in (("kernels", "attention"), ("kernels", "gemm"), ("kernels", "layer_norm"), ("passes", "attention"), ("passes", "fold"),
                           ("operators", "pith::Attention"), ("operators", "Gather"), ("readers", "safetensors"), ("families", "bert"),
                           ("tokenizer_models", "WordPiece"), ("normalizers", "BertNormalizer"), ("modules", "pooling")):
            row = (kind, f"{name} {kinds[kind][name][0]}") if kind == "kernels" else (kind, name)
            with self.subTest(piece=row):
                self.assertIn(name, kinds[kind])
                says, gone = costs[row][0], whole - build("less", (kind, name))
                self.assertLess(abs(says - gone), 0.05 * gone + 400, f"--cost says {says}, the programs {gone}")
                weighed += says
        self.assertGreater(weighed, 50000)
        says, gone = costs["isas", "avx2"][0], whole - build("less", isas="scalar")
        self.assertLess(abs(says - gone), 0.05 * gone + 400)


    def test_table(self):
        """The figures belong together, and the list, the uses and the instruction sets count."""
        every, some = self.costs("--use", "embed"), self.costs(DATA / "modules/chain", "--isas", "scalar", "--use", "embed")
        for rows in (every, some):
            for (kind, _), (adds, _) in rows.items():
                if kind not in ("program", "isas"):
                    self.assertLessEqual(adds, rows["program", "all"][0] - rows["program", "without any piece"][0])
        self.assertLess(some["program", "all"][0], 0.5 * every["program", "all"][0])
        self.assertEqual({name for kind, name in some if kind == "isas"}, {"scalar"})
        self.assertEqual([name for kind, name in some if kind == "families"], ["bert"])
        self.assertNotIn(("operators", "Conv"), some)
        self.assertGreater(every["operators", "Resize"][0], 5000)
        self.assertGreaterEqual(every["kind", "operators"][0], sum(a for (k, _), (a, _) in every.items() if k == "operators"))
        names = small.read(self.select(DATA / "modules/chain"))["operators"]
        self.assertEqual({name for kind, name in some if kind == "operators"}, set(names))
        self.assertGreater(self.costs()["program", "without any piece"][0], every["program", "without any piece"][0])
        self.assertEqual(self.costs("--use", "embed", f"--cost={BUILD / 'libpith.a'}"), every)

    def test_broken_libraries(self):
        """A message, whatever the file is."""
        text = bytearray((BUILD / "libpith.a").read_bytes())
        path = self.dir / "lib.a"
        for broken, says in ((b"", "no static library"), (b"!<arch>\n", "lacks the tables of pieces"), (bytes(text[:300000]), "ends behind the end of the file"),
                             (b"!<arch>\n" + b"a.o/".ljust(48) + b"4".ljust(10) + b"`\nabcd", "a.o: no object of 64 bits")):
            path.write_bytes(broken)
            self.assertIn(says, self.select(f"--cost={path}", code=1))
        self.assertIn("No such file", self.select(f"--cost={self.dir / 'none.a'}", code=1))
        own = (BUILD / "CMakeFiles/pith_objects.dir/src/select/tables.c.o").read_bytes()
        head = b"!<arch>\n" + b"tables.o/".ljust(48) + str(len(own)).encode().ljust(10) + b"`\n"
        for seed in range(150):
            flipped = bytearray(own)
            for i in range(8):
                at = (seed * 7919 + i * 104729) % (len(own) if i % 2 else 4096) if i else len(own) - 1 - seed * 16
                flipped[at] ^= 1 << (seed + i) % 8
            path.write_bytes(head + flipped)
            done = small.run(PITH, "select", f"--cost={path}")
            self.assertEqual(done.returncode, 1, done.stderr)


class Why(Case):
    BERT = DATA / "models/bert-base-dynamo20-sdpa"

    def test_operator(self):
        said = self.select(self.BERT, "--why", "pith::Linear")
        self.assertIn("needed to open it (operators: pith::Linear f32)\n  made by the pass linear\n  run: 9 nodes\n", said)
        self.assertRegex(said, r"    gelu float32\[batch, sequence, 80\] = pith.Linear\(.*\)\n")
        self.assertIn("and 4 more", said)
        said = self.select(self.BERT, "--why", "Gather")
        self.assertIn("in the model: 4 nodes\n  run: 1 nodes\n", said)
        fused = DATA / "models/bert-base-script14-eager-fused"
        said = self.select(fused, self.BERT, "--why", "com.microsoft::Attention")
        self.assertIn(f"{fused}:\n  needed to open it (operators: com.microsoft::Attention, in an older form)\n  in the model: 2 nodes\n"
                      f"  run: 0 nodes; others took their place\n{self.BERT}:\n  not needed\n", said)

    def test_other_pieces(self):
        chain = DATA / "modules/chain"
        self.assertIn("needed to open it (families: bert)", self.select(chain, "--why", "bert"))
        self.assertIn("needed to open it (kernels: gemm f32)", self.select(chain, "--why", "gemm"))
        self.assertIn("needed to use it (kernels: l2_normalize f32)", self.select(chain, "--why", "l2_normalize"))
        self.assertEqual(self.select(chain, "--why", "Conv"), f"{chain}:\n  not needed\n")

    def test_path(self):
        """From the function that a program calls to the piece, each section referring to the next."""
        said = self.select("--why", "Conv", "--cost", "--use", "run").splitlines()
        self.assertIn("a program with all pieces links it", said[0])
        self.assertEqual(said[1], "  api_model.c.o .text.pith_model_open")
        self.assertEqual(said[-2:], ["  tables.c.o .data.rel.ro.pith__op_table", "  op_conv.c.o .data.rel.ro.local.pith__op_Conv"])
        self.assertIn("a program without any piece links it", self.select("--why", "pith__map_get", "--cost"))
        self.assertIn("no such program links it", self.select("--why", "pith_detect", "--cost", "--use", "run"))
        self.assertIn("no piece and no function 'nonsense'", self.select("--why", "nonsense", "--cost", code=1))

    def test_usage(self):
        self.assertIn("name a model", self.select("--why", "Conv", code=2))
        self.assertIn("goes with -o and --cost alone", self.select("--merge", "a.yaml", "--why", "Conv", code=2))
        self.assertIn("which write no lists", self.select("--cost", "--ort-operators", "a.config", code=2))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
