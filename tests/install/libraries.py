#!/usr/bin/env python3
"""Three libraries, each of use without those above it: what programs that link one have in them, and what they do.

usage: libraries.py SOURCE_DIR BUILD_DIR WORK_DIR
"""
import re
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE, BUILD, WORK = (Path(a).resolve() for a in sys.argv[1:4])
NEEDS = ["-lpcre2-8", "-pthread", "-ldl", "-lm"]
MODEL = SOURCE / "tests/data/models/bert-base-script14-eager/model.onnx"
# What only tables need: other libraries, and the models of tables.
TABLES = re.compile(r"sqlite|libpq|PQ[a-z]+[A-Z]|libz\.|libzstd|inflate|relational|pith_(database|baseline)|"
                    r"pith__(rdb|trainer|baseline|schema|source_kind)_")
# What only models of texts and pictures need.
TEXTS = re.compile(r"pith__(tokenizer|hf|hub|modules|processor|encoder|head|text_view|source|chat|weights|gguf)_|pith_(embed|tokenize|encode|search)")
LARGEST = 3_650_000  # bytes of text and data of libpith.so, without its tables for unwinding


def run(*command, good=True):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300)
    if good and done.returncode:
        raise AssertionError(f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def link(name, source, *libraries, static):
    """A program linked with these libraries of the build folder, and nothing else of it."""
    out = WORK / f"{name}-{'static' if static else 'shared'}"
    made = [BUILD / f"lib{library}.a" for library in libraries] + NEEDS if static else [f"-l{library}" for library in libraries]
    run("cc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{SOURCE / 'include'}", source, "-o", out, f"-L{BUILD}",
        f"-Wl,-rpath,{BUILD}", "-Wl,--gc-sections", *made)
    return out


def names(path, *options):
    return {line.split()[-1] for line in run("nm", *options, path).stdout.splitlines() if line.strip() and not line.endswith(":")}


def functions(path):
    return {line.split()[-1] for line in run("nm", path).stdout.splitlines() if re.search(r" [tT] ", line)}


def words(path):
    """Its symbols, and the texts in it."""
    return names(path) | set(run("strings", "-d", "-n", "5", path).stdout.splitlines())


def loads(path):
    return {word for word in re.findall(r"(\S+) =>", run("ldd", path).stdout)}


class Libraries(unittest.TestCase):
    def check_no_tables(self, path):
        self.assertEqual(sorted(word for word in words(path) if TABLES.search(word)), [], path)

    def check_no_texts(self, path):
        self.assertEqual(sorted(name for name in functions(path) if TEXTS.search(name)), [], path)

    def test_libpith_has_no_tables(self):
        self.check_no_tables(BUILD / "libpith.so")
        self.check_no_tables(BUILD / "libpith.a")
        for static in (True, False):
            program = link("embed", SOURCE / "examples/embed.c", "pith", static=static)
            self.check_no_tables(program)
            self.assertFalse({name for name in loads(program) if re.search(r"sqlite|libpq|libz|pith-", name)})

    def test_core_runs_models(self):
        outputs = set()
        for library in ("pith-core", "pith"):
            for static in (True, False):
                program = link(f"run-{library}", SOURCE / "examples/selective_build/basic/run_model.c", library, static=static)
                outputs.add(run(program, MODEL).stdout)
                if library == "pith-core":
                    self.check_no_tables(program)
                    self.check_no_texts(program)
                    self.assertFalse({name for name in loads(program) if re.search(r"libpith\.|pith-tables", name)})
        self.assertEqual(len(outputs), 1, outputs)
        self.assertIn("sum", outputs.pop())
        for path in (BUILD / "libpith-core.so", BUILD / "libpith-core.a"):
            self.check_no_tables(path)
            self.check_no_texts(path)

    def test_core_says_what_it_lacks(self):
        program = WORK / "run-pith-core-shared"
        if not program.exists():
            program = link("run-pith-core", SOURCE / "examples/selective_build/basic/run_model.c", "pith-core", static=False)
        compiled = WORK / "model.pith"
        run(BUILD / "pith", "compile", "-m", MODEL.parent, "-o", compiled)
        for path, says in ((MODEL.parent, "libpith-core opens files; libpith opens directories too"),
                           (compiled, "libpith-core has less than libpith: "), (WORK / "none.onnx", "none.onnx")):
            done = run(program, path, good=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(says, done.stdout)

    def test_core_functions_are_those_of_libpith(self):
        core = names(BUILD / "libpith-core.so", "-D", "--defined-only")
        every = {name.split("@")[0] for name in names(BUILD / "libpith.so", "-D", "--defined-only")}
        self.assertTrue(core and core <= every, core - every)
        self.assertFalse({name for name in core if name.startswith("pith__")})

    def test_tables(self):
        source = SOURCE / "tests/install/project/tables.c"
        shared = link("tables", source, "pith-tables", "pith", static=False)
        static = link("tables", source, "pith-tables", "pith", static=True)
        drafts = {run(program, SOURCE / "tests/data/shop").stdout for program in (shared, static)}
        self.assertEqual(len(drafts), 1)
        self.assertIn('"tables"', drafts.pop())
        self.assertTrue(any("libpith.so" in name for name in loads(shared)), "libpith-tables.so has its own copy of libpith")

    def test_private_symbols(self):
        """libpith.so shows those private symbols that libpith-tables.so takes, and no other one."""
        given = {name for name in names(BUILD / "libpith.so", "-D", "--defined-only", "--with-symbol-versions") if name.startswith("pith__")}
        plain = {name.split("@")[0] for name in given}
        taken = {name.split("@")[0] for name in names(BUILD / "libpith-tables.so", "-D", "-u") if name.startswith("pith__")}
        self.assertEqual(plain, taken)
        version = re.search(r'^project\(pith VERSION (\S+)', (SOURCE / "CMakeLists.txt").read_text(), re.M).group(1)
        self.assertEqual({name.split("@@")[1] for name in given}, {f"PITH_PRIVATE_{version}"})
        shown = names(BUILD / "libpith-tables.so", "-D", "--defined-only")
        self.assertFalse({name for name in shown if name.startswith("pith__")})

    def test_sizes(self):
        for name in ("libpith-core.so", "libpith.so", "libpith-tables.so"):
            text, data = run("size", BUILD / name).stdout.splitlines()[1].split()[:2]
            frames = sum(int(n) for n in re.findall(r"^\.eh_frame\S*\s+(\d+)", run("size", "-A", BUILD / name).stdout, re.M))
            count = int(text) + int(data) - frames
            print(f"{count:9} {name}")
            if name == "libpith.so":
                self.assertLessEqual(count, LARGEST)


if __name__ == "__main__":
    WORK.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1])
