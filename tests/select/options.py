#!/usr/bin/env python3
"""What the configuration says of the options of selective builds: each wrong combination and each wrong name.

usage: options.py PITH SOURCE_DIR WORK_DIR [unittest arguments]
"""
import itertools
import re
import subprocess
import sys
import unittest
from pathlib import Path

PITH, SOURCE, WORK = (Path(a).resolve() for a in sys.argv[1:4])
WORK.mkdir(parents=True, exist_ok=True)


def configure(*options):
    return subprocess.run(["cmake", *[f"-D{o}" for o in options], f"-DPITH_SELECT_ROOT={SOURCE}", "-DPITH_HOST_CC=cc", f"-DPITH_HOST_COMMAND={PITH}",
                           "-P", SOURCE / "tests/select/options.cmake"], cwd=WORK, capture_output=True, text=True, timeout=600)


def write(name, text):
    (WORK / name).write_text(text)
    return WORK / name


class Options(unittest.TestCase):
    def refused(self, says, *options):
        done = configure(*options)
        self.assertNotEqual(done.returncode, 0, options)
        self.assertIn(says, " ".join(done.stderr.split()))

    def accepted(self, *options, name="pith"):
        done = configure(*options)
        self.assertEqual(done.returncode, 0, done.stderr)
        folder = WORK / f"pith_select_{name}/select"
        return {p.stem: p.read_text() for p in folder.glob("*.def")}, done.stdout

    def test_exclusive(self):
        y = write("a.yaml", "pith: 1\noperators:\n  - Add\n")
        given = {"PITH_SELECT_OPS_LIST": "Add", "PITH_SELECT_OPS_YAML": y, "PITH_SELECT_OPS_MODEL": "x.onnx"}
        for name, value in given.items():
            self.refused(f"PITH_SELECT_ALL and {name} exclude each other; leave one out", "PITH_SELECT_ALL=ON", f"{name}={value}")
        for name in ("PITH_SELECT_OPS_LIST", "PITH_SELECT_OPS_YAML"):
            self.refused(f"PITH_SELECT_OPS_MODEL and {name} exclude each other; leave one out, or unite lists with 'pith select --merge'",
                         f"{name}={given[name]}", "PITH_SELECT_OPS_MODEL=x.onnx")
        self.refused("PITH_DTYPE_SELECTIVE and PITH_SELECT_ALL exclude each other", "PITH_SELECT_ALL=ON", "PITH_DTYPE_SELECTIVE=ON")

    def test_dtypes(self):
        says = "PITH_DTYPE_SELECTIVE needs dtypes: those of PITH_SELECT_OPS_MODEL, of PITH_SELECT_OPS_YAML, or of a PITH_SELECT_OPS_LIST such as 'Add/f32/i64"
        self.refused(says, "PITH_DTYPE_SELECTIVE=ON")
        self.refused(says, "PITH_DTYPE_SELECTIVE=ON", "PITH_SELECT_OPS_LIST=Add,Mul")
        self.refused("operators: 'float' behind Add is no dtype; write names such as f32", "PITH_DTYPE_SELECTIVE=ON", "PITH_SELECT_OPS_LIST=Add/float")
        lists, _ = self.accepted("PITH_DTYPE_SELECTIVE=ON", "PITH_SELECT_OPS_LIST=Add/i64,Mul/f32")
        self.assertIn("map_add, i64", lists["kernels"])
        self.assertNotIn("map_add, i32", lists["kernels"])
        self.assertIn("(mul, f32", lists["kernels"])
        self.assertNotIn("map_mul, i64", lists["kernels"])
        y = write("a.yaml", "pith: 1\noperators:\n  - Add i64\n")
        lists, _ = self.accepted("PITH_DTYPE_SELECTIVE=ON", f"PITH_SELECT_OPS_YAML={y}", "PITH_SELECT_OPS_LIST=Gelu")
        self.assertNotIn("map_add, i32", lists["kernels"])
        self.assertEqual(lists["ops"].count("\nOP("), 2)

    def test_complete_builds(self):
        for complete in ("PITH_TESTS", "PITH_FUZZ"):
            self.refused(f"{complete} needs a complete library", f"{complete}=ON", "PITH_SELECT_OPS_LIST=Add")
            self.refused("make the smaller build in another folder", f"{complete}=ON", "PITH_SELECT_ISAS=avx2")
        self.accepted("PITH_TESTS=ON", "PITH_SELECT_ALL=ON")

    def test_names(self):
        self.refused("operators: this Pith has no 'Gelux'; the nearest are Gelu", "PITH_SELECT_OPS_LIST=Gelux,Add")
        self.refused("nearest are com.microsoft::BiasGelu", "PITH_SELECT_OPS_LIST=BiasGelu")
        self.refused("operators: this Pith has no 'MatMull'; the nearest are MatMul", "PITH_SELECT_OPS_LIST=MatMull")
        self.refused("the list of operators is empty; name some, or leave it out", "PITH_SELECT_OPS_LIST= ")
        for kind, wrong, near in (("passes", "gelo", "gelu"), ("kernels", "gem", "gemm"), ("ragged", "slices", "slice"), ("readers", "onx", "onnx"),
                                  ("families", "berd", "bert"), ("tasks", "colbart", "colbert"), ("modules", "poling", "pooling"),
                                  ("heads", "densest", "dense"), ("tokenizer_sources", "tokenizer.json", "tokenizer_json"), ("normalizers", "NFCC", "NFC"),
                                  ("pre_tokenizers", "Digit", "Digits"), ("tokenizer_models", "Wordpiece", "WordPiece"), ("decoders", "Fuze", "Fuse"),
                                  ("runtimes", "orts", "ort")):
            self.refused(f"{kind}: this Pith has no '{wrong}'; the nearest are {near}",
                         f"PITH_SELECT_OPS_YAML={write('b.yaml', f'pith: 1{chr(10)}{kind}:{chr(10)}  - {wrong}{chr(10)}')}")

    def test_isas(self):
        self.refused("isas: this target has no 'sse'; it has scalar avx2 avx512", "PITH_SELECT_ISAS=sse")
        self.refused("isas: this target has no 'neon'", "PITH_SELECT_ISAS=neon,scalar")
        lists, said = self.accepted("PITH_SELECT_ISAS=avx2,scalar")
        self.assertIn("levels: scalar;avx2", said)
        self.assertNotIn("avx512", lists["isas"])
        _, said = self.accepted(f"PITH_SELECT_OPS_YAML={write('i.yaml', 'pith: 1' + chr(10) + 'isas:' + chr(10) + '  - avx2' + chr(10))}",
                                "PITH_SELECT_ISAS=scalar")
        self.assertIn("levels: scalar;avx2", said)

    def test_files(self):
        self.refused("c.yaml:1: the first line must be 'pith: 1'", f"PITH_SELECT_OPS_YAML={write('c.yaml', 'operators:' + chr(10))}")
        self.refused(f"PITH_SELECT_OPS_YAML: there is no file '{WORK / 'none.yaml'}'; 'pith select MODEL -o FILE' writes one",
                     f"PITH_SELECT_OPS_YAML={WORK / 'none.yaml'}")
        self.refused("PITH_SELECT_OPS_YAML: there is no file", f"PITH_SELECT_OPS_YAML={WORK}")
        self.refused("the list names no kind of piece, so it would leave nothing out", f"PITH_SELECT_OPS_YAML={write('empty.yaml', 'pith: 1' + chr(10))}")
        self.refused("PITH_SELECT_OPS_YAML takes one list; unite several with 'pith select --merge'", "PITH_SELECT_OPS_YAML=a.yaml;b.yaml")
        self.refused("PITH_SELECT_OPS_MODEL: pith select: no model 'no-such-model'", "PITH_SELECT_OPS_MODEL=no-such-model")
        y = write("ort.yaml", "pith: 1\nruntimes:\n  - ort\n")
        self.refused("PITH_WITH_RUNTIME_ORT is OFF, but", "PITH_WITH_RUNTIME_ORT=OFF", f"PITH_SELECT_OPS_YAML={y}")
        lists, _ = self.accepted(f"PITH_SELECT_OPS_YAML={y}")
        self.assertIn("RUNTIME(builtin)\nRUNTIME(ort)", lists["runtimes"])
        self.refused("compile", "PITH_HOST_CC=/bin/false", "PITH_SELECT_OPS_LIST=Add") if not (WORK / "pith_select_tool/trim").exists() else None

    def test_paths(self):
        """Absolute, relative to where cmake is started, and with blanks; of a list and of models."""
        folder = WORK / "a folder"
        folder.mkdir(exist_ok=True)
        onnx = (SOURCE / "tests/data/cases/selected-union/add.onnx").read_bytes()
        for name in ("add model.onnx", "add.onnx"):
            (folder / name).write_bytes(onnx)
        (WORK / "add.onnx").write_bytes(onnx)
        listed = write("a folder/my ops.yaml", "pith: 1\noperators:\n  - Add f32\n")
        for option in (f"PITH_SELECT_OPS_YAML={listed}", "PITH_SELECT_OPS_YAML=a folder/my ops.yaml", f"PITH_SELECT_OPS_MODEL={folder / 'add model.onnx'}",
                       "PITH_SELECT_OPS_MODEL=a folder/add model.onnx", "PITH_SELECT_OPS_MODEL=add.onnx", f"PITH_SELECT_OPS_MODEL=add.onnx;{folder / 'add.onnx'}"):
            lists, _ = self.accepted(option)
            self.assertEqual(re.findall(r"^OP\((\w+)\)", lists["ops"], re.M), ["Add"], option)
        self.refused("PITH_SELECT_OPS_MODEL: pith select: no model 'none.onnx'", "PITH_SELECT_OPS_MODEL=none.onnx")
        self.refused("PITH_SELECT_OPS_MODEL: pith select: no model 'none.onnx'", "PITH_SELECT_OPS_MODEL=add.onnx;none.onnx")

    def test_each_option_alone_and_in_pairs(self):
        """Nothing else is set: each option either makes lists, or says what it needs or excludes."""
        y = write("pair.yaml", "pith: 1\noperators:\n  - Add f32\nparts: []\n")
        c, d = (SOURCE / "examples/selective_build/advanced" / name for name in ("op_soft_threshold.c", "operators.def"))
        given = {"ALL": "PITH_SELECT_ALL=ON", "LIST": "PITH_SELECT_OPS_LIST=Mul/f32", "YAML": f"PITH_SELECT_OPS_YAML={y}",
                 "MODEL": f"PITH_SELECT_OPS_MODEL={SOURCE / 'tests/data/cases/selected-union/mulsub.onnx'}", "USE": "PITH_SELECT_USE=run",
                 "DTYPE": "PITH_DTYPE_SELECTIVE=ON", "ISAS": "PITH_SELECT_ISAS=avx2,scalar", "EXTRA": f"PITH_EXTRA_OPS={c};{d}"}
        excluded = {frozenset(pair.split()) for pair in ("ALL LIST", "ALL YAML", "ALL MODEL", "LIST MODEL", "YAML MODEL", "ALL DTYPE")}
        needs = {"USE": {"MODEL"}, "DTYPE": {"LIST", "YAML", "MODEL"}}
        operators = {"LIST": {"Mul"}, "YAML": {"Add"}, "MODEL": {"Mul", "Sub"}}
        every = set(re.findall(r"^OP\((\w+)\)", (SOURCE / "src/select/ops.def").read_text(), re.M))
        for names in [{a} for a in given] + [{a, b} for a, b in itertools.combinations(given, 2)]:
            done = configure(*(given[n] for n in names))
            said = " ".join(done.stderr.split())
            if names in excluded:
                self.assertIn("exclude each other", said, names)
            elif any(n in names and not wanted & names for n, wanted in needs.items()):
                self.assertRegex(said, "needs dtypes|USE says what programs do", names)
            else:
                self.assertEqual((done.returncode, done.stderr), (0, ""), names)
                folder = WORK / "pith_select_pith/select"
                found = set(re.findall(r"^OP\((\w+)\)", (folder / "ops.def").read_text(), re.M))
                want = set().union(*(operators.get(n, set()) for n in names)) or every
                self.assertEqual(found, want, names)
                self.assertEqual("SoftThreshold" in (folder / "extra_ops.def").read_text(), names in ({"EXTRA"}, {"EXTRA", "ALL"}, {"EXTRA", "ISAS"}))
                self.assertEqual("levels: scalar;avx2\n" in done.stdout, "ISAS" in names)

    def test_operators_by_name(self):
        """A build holds what the lists name, their kernels and parts, and what opens ONNX files; no texts, and no search."""
        lists, _ = self.accepted("PITH_SELECT_OPS_LIST=Add/f32,If", "PITH_DTYPE_SELECTIVE=ON")
        entries = {name: re.findall(r"^(?!DROPPED)[A-Z_]+\((.*)\)$", text, re.M) for name, text in lists.items()}
        self.assertEqual(entries["kernels"], ["add, f32", "narrow, f16", "widen, f16"])
        self.assertEqual(entries["readers"], ["compiled", "onnx"])
        self.assertEqual(entries["runtimes"], ["builtin"])
        self.assertEqual(entries["parts"], ["subgraphs", "tails", "threads"])
        for name in ("families", "tasks", "modules", "heads", "tokenizers", "ragged"):
            self.assertEqual(entries[name], [], name)
        lists, _ = self.accepted("PITH_SELECT_OPS_LIST=Add/f32,parts:branches,kernels:scores_dot/f32,readers:gguf", "PITH_DTYPE_SELECTIVE=ON")
        self.assertIn("PART(branches)", lists["parts"])
        self.assertIn("READER(gguf)", lists["readers"])
        self.assertIn("KERNEL(scores_dot, f32)", lists["kernels"])
        self.assertNotIn("scores_l2", lists["kernels"])
        for wrong, says in (("Add,part:branches", "'part:branches': 'part' is no kind of piece; write an operator, or a kind and a piece such as parts:branches"),
                            ("Add,parts:branch", "parts: this Pith has no 'branch'; the nearest are branches"),
                            ("parts:branches", "the list of operators is empty; name some, or leave it out")):
            self.refused(says, f"PITH_SELECT_OPS_LIST={wrong}")
        union = SOURCE / "tests/data/cases/selected-union"
        lists, _ = self.accepted("PITH_SELECT_OPS_LIST=Mul/f32,Sub/f32", f"PITH_SELECT_OPS_YAML={union / 'add.yaml'}", "PITH_DTYPE_SELECTIVE=ON")
        alone, _ = self.accepted(f"PITH_SELECT_OPS_YAML={union / 'both.yaml'}", "PITH_DTYPE_SELECTIVE=ON")
        self.assertEqual(lists, alone)
        names = write("kinds.yaml", "pith: 1\noperators:\n  - Add f32\nheads: []\n")
        lists, _ = self.accepted("PITH_SELECT_OPS_LIST=Mul/f32", f"PITH_SELECT_OPS_YAML={names}")
        self.assertNotIn("KERNEL(scores_", lists["kernels"])
        self.assertIn("FAMILY(bert)", lists["families"])  # a kind that the list does not name is not limited

    def test_use(self):
        model = f"PITH_SELECT_OPS_MODEL={SOURCE / 'tests/data/modules/chain'}"
        lists, _ = self.accepted(model, "PITH_SELECT_USE=embed,search")
        self.assertIn("KERNEL(scores_dot, f32)", lists["kernels"])
        self.assertIn("HEAD(dense)", lists["heads"])
        lists, _ = self.accepted(model)
        self.assertNotIn("KERNEL(scores_dot", lists["kernels"])
        self.accepted("CALL=OPS_MODEL;" + str(SOURCE / "tests/data/modules/chain") + ";USE;embed;search", name="own")
        self.refused("PITH_SELECT_OPS_MODEL: pith select: --use 'sing' is unknown", model, "PITH_SELECT_USE=embed,sing")
        self.refused("no model can be used for 'rerank'", model, "PITH_SELECT_USE=embed,rerank")

    def test_calls(self):
        for option in ("OPS_LIST", "OPS_YAML", "OPS_MODEL", "USE", "ISAS", "EXTRA_OPS"):
            self.refused(f"{option} has no value, perhaps because a variable is empty", f"CALL={option};INCLUDE_ALL_OPS")
        self.refused("'OPS_FILE;x' is no option of a selective build; options are OPS_LIST, OPS_YAML, OPS_MODEL, USE, INCLUDE_ALL_OPS, DTYPE_SELECTIVE, ISAS and EXTRA_OPS",
                     "CALL=OPS_FILE;x")
        self.refused("INCLUDE_ALL_OPS and OPS_LIST exclude each other", "CALL=INCLUDE_ALL_OPS;OPS_LIST;Add")
        self.refused("OPS_MODEL and OPS_YAML exclude each other", "CALL=OPS_MODEL;a.onnx;OPS_YAML;a.yaml")
        self.refused("DTYPE_SELECTIVE needs dtypes: those of OPS_MODEL, of OPS_YAML, or of a OPS_LIST", "CALL=DTYPE_SELECTIVE;ON;OPS_LIST;Add")

    def test_extra_operators(self):
        """Operators outside the tree: the real ones are compiled and run by extra.py."""
        c, d = (SOURCE / "examples/selective_build/advanced" / name for name in ("op_soft_threshold.c", "operators.def"))
        self.refused(f"PITH_EXTRA_OPS: there is no file {WORK / 'no.c'}", f"PITH_EXTRA_OPS={WORK / 'no.c'}")
        self.refused("is neither a C source (.c) nor a list (.def)", f"PITH_EXTRA_OPS={write('op.txt', '')};{d}")
        self.refused("PITH_EXTRA_OPS has sources but no list; add a file.def with a line EXTRA_OP(symbol, domain::Name)", f"PITH_EXTRA_OPS={c}")
        self.refused("lists SoftThreshold, but no source of PITH_EXTRA_OPS defines 'const pith_operator pith_operator_SoftThreshold'", f"PITH_EXTRA_OPS={d}")
        self.refused("no source of PITH_EXTRA_OPS defines 'const pith_operator pith_operator_Soft'",
                     f"PITH_EXTRA_OPS={c};{write('short.def', 'EXTRA_OP(Soft, example::Soft)' + chr(10))}")
        for line, says in (("EXTRA_OP(SoftThreshold)", "is no entry; write EXTRA_OP(symbol, domain::Name)"), ("OP(SoftThreshold)", "is no entry"),
                           ("EXTRA_OP(SoftThreshold, Add)", "Pith has an operator 'Add'; choose another domain or name"),
                           ("EXTRA_OP(SoftThreshold, com.microsoft::BiasGelu)", "Pith has an operator 'com.microsoft::BiasGelu'"),
                           ("EXTRA_OP(SoftThreshold, a::B)\nEXTRA_OP(SoftThreshold, a::B)", "'a::B' is listed twice")):
            self.refused(says, f"PITH_EXTRA_OPS={c};{write('wrong.def', line + chr(10))}")
        lists, _ = self.accepted(f"PITH_EXTRA_OPS={c};{d}")
        self.assertIn("EXTRA_OP(SoftThreshold, example::SoftThreshold)", lists["extra_ops"])
        self.assertIn("\nOP(Add)", lists["ops"])
        lists, _ = self.accepted(f"PITH_EXTRA_OPS={c};{d}", "PITH_SELECT_OPS_LIST=Add,example::SoftThreshold")
        self.assertIn("EXTRA_OP(SoftThreshold, example::SoftThreshold)", lists["extra_ops"])
        self.assertEqual(lists["ops"].count("\nOP("), 1)
        lists, _ = self.accepted(f"PITH_EXTRA_OPS={c};{d}", "PITH_SELECT_OPS_LIST=Add")
        self.assertNotIn("EXTRA_OP(SoftThreshold", lists["extra_ops"])
        self.assertIn("operators example::SoftThreshold */", lists["dropped"])
        self.refused("operators: this Pith has no 'example::SoftThresh'; the nearest are example::SoftThreshold", f"PITH_EXTRA_OPS={c};{d}",
                     "PITH_SELECT_OPS_LIST=example::SoftThresh")
        self.refused("operators: this Pith has no 'example::SoftThreshold'", "PITH_SELECT_OPS_LIST=example::SoftThreshold")
        self.accepted(f"CALL=OPS_LIST;Add;example::SoftThreshold;EXTRA_OPS;{c};{d}", name="own")
        self.refused("EXTRA_OPS: there is no file", f"CALL=OPS_LIST;Add;EXTRA_OPS;{WORK / 'no.c'}")

    def test_good(self):
        self.assertEqual(configure().returncode, 0)
        model = SOURCE / "tests/data/modules/chain"
        for options in (["PITH_SELECT_ALL=ON"], ["PITH_SELECT_OPS_LIST=Add,ai.onnx::MatMul,com.microsoft::BiasGelu"],
                        [f"PITH_SELECT_OPS_MODEL={model}", "PITH_DTYPE_SELECTIVE=ON", "PITH_SELECT_ISAS=avx2"]):
            self.accepted(*options)
        lists, _ = self.accepted(f"PITH_SELECT_OPS_MODEL={model};{SOURCE / 'tests/data/yunet'}")
        self.assertIn("OP(Conv)", lists["ops"])
        self.assertIn("FAMILY(bert)", lists["families"])
        self.assertIn("DROPPED_NAME(\"families albert\")", lists["dropped"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
