#!/usr/bin/env python3
"""What the configuration says of the options of selective builds: each wrong combination and each wrong name.

usage: options.py PITH SOURCE_DIR WORK_DIR [unittest arguments]
"""
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
                                  ("families", "berd", "bert"), ("tasks", "colbart", "colbert"), ("modules", "pool", "pooling"),
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
        self.refused("none.yaml: No such file", f"PITH_SELECT_OPS_YAML={WORK / 'none.yaml'}")
        self.refused("PITH_SELECT_OPS_MODEL: pith select: no model 'no-such-model'", "PITH_SELECT_OPS_MODEL=no-such-model")
        y = write("ort.yaml", "pith: 1\nruntimes:\n  - ort\n")
        self.refused("PITH_WITH_RUNTIME_ORT is OFF, but", "PITH_WITH_RUNTIME_ORT=OFF", f"PITH_SELECT_OPS_YAML={y}")
        lists, _ = self.accepted(f"PITH_SELECT_OPS_YAML={y}")
        self.assertIn("RUNTIME(builtin)\nRUNTIME(ort)", lists["runtimes"])
        self.refused("compile", "PITH_HOST_CC=/bin/false", "PITH_SELECT_OPS_LIST=Add") if not (WORK / "pith_select_tool/trim").exists() else None

    def test_calls(self):
        self.refused("'OPS_FILE;x' is no option of a selective build; options are OPS_LIST, OPS_YAML, OPS_MODEL, INCLUDE_ALL_OPS, DTYPE_SELECTIVE, ISAS and EXTRA_OPS",
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
