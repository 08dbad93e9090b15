#!/usr/bin/env python3
"""What selective builds weigh, beside the budget in size.budget: text and data of programs beyond those of an empty one.

usage: size.py SOURCE_DIR BUILD_DIR WORK_DIR [--report] [--write]
--report: also the sections, the largest sources and functions, and the bytes of each folder. --write: the figures become the budget.
The programs are linked from the library of BUILD_DIR, whose assertions count too. Its tables for unwinding do not: only builds with tests
have them.
"""
import argparse
import re
import sys
from collections import Counter
from pathlib import Path

import small

# name: source, list, instruction sets, linked statically. Those "-for-size" have all but their kernels compiled again by FOR_SIZE. A list with
# "+ names" is joined by the operators of PITH_SELECT_OPS_LIST; without a list these stand alone.
PROGRAMS = {
    "core": ("core", "core", "scalar", False),
    "core-for-size": ("core", "core", "scalar", False),
    "embed-minilm-safetensors": ("embed", "minilm", "avx2,scalar", False),
    "embed-minilm-safetensors-static": ("embed", "minilm", "avx2,scalar", True),
    "embed-minilm-pith-static": ("embed", "minilm-pith", "avx2", True),
    "embed-minilm-safetensors-static-for-size": ("embed", "minilm", "avx2,scalar", True),
    "embed-minilm-pith-static-for-size": ("embed", "minilm-pith", "avx2", True),
    "detect-yunet": ("detect", "yunet", "avx2", False),
    "detect-yunet-for-size": ("detect", "yunet", "avx2", False),
    "run-three-operators": ("run_model", "selected-union/both", None, False),
    "run-three-operators-united": ("run_model", "selected-union/add + Mul/f32,Sub/f32", None, False),
    "run-three-operators-by-name": ("run_model", "+ Add/f32,Mul/f32,Sub/f32", None, False),
}
FOR_SIZE = ["-Os", "-DNDEBUG", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-flto=1", "-fno-fat-lto-objects", "-Wl,-z,pack-relative-relocs"]
SLACK = 1.02  # of the budget: compilers differ


def sizes(path):
    done = small.run("size", path)
    assert done.returncode == 0, done.stderr
    text, data = done.stdout.splitlines()[1].split()[:2]
    return int(text), int(data)


def sections(path):
    """[(name, bytes)] of those that are loaded or stored, largest first."""
    found = re.findall(r"^(\.\S+)\s+(\d+)\s+\d+$", small.run("size", "-A", path).stdout, re.M)
    return sorted(((name, int(count)) for name, count in found if not re.match(r"\.(debug|comment)", name) and int(count)), key=lambda x: -x[1])


class Programs:
    def __init__(self, source, build, work):
        self.folder = small.Folder(source, build, work)
        self.source, self.work = source, work
        self.library = work / "libpith.a"
        done = small.run("objcopy", "--remove-section", ".eh_frame", "--remove-section", ".rela.eh_frame", self.folder.build / "libpith.a", self.library)
        assert done.returncode == 0, done.stderr
        self.empty = {static: sum(sizes(self.link(["empty"], f"empty{static}", static))) for static in (False, True)}

    def program(self, name):
        return self.source / (f"examples/selective_build/basic/{name}.c" if name == "run_model" else f"tests/select/programs/{name}.c")

    def listing(self, words):
        """The options of tools/trim.c for a list and names of operators."""
        path, _, names = words.partition("+")
        folder = "data/cases" if "/" in path else "select"
        listed = ["--list", self.source / f"tests/{folder}/{path.strip()}.yaml"] if path.strip() else []
        return [*listed, *(["--operators", names.strip()] if names else [])]

    def link(self, sources, name, static, objects=(), *more):
        libraries = ["-lpcre2-8", "-pthread", "-ldl", "-lm"]
        out = self.work / name
        done = small.run("cc", "-O2", "-ffunction-sections", "-fdata-sections", *(["-static"] if static else []), f"-I{self.source / 'include'}",
                         *[self.program(s) for s in sources], *objects, *self.folder.flags, *more, "-o", out,
                         *([self.library, *libraries] if objects else []))
        assert done.returncode == 0, done.stderr
        return out

    def make(self, name):
        program, listed, isas, static = PROGRAMS[name]
        done = self.folder.lists(name, *self.listing(listed), "--dtypes", "ON", *(["--isas", isas] if isas else []))
        assert done.returncode == 0, done.stderr
        objects = [self.folder._compile("src/select/tables.c", self.work / name)]
        if program == "core":
            bytes_file = self.work / "model.c"
            bytes_file.write_text("#include <stddef.h>\nconst unsigned char model_bytes[64] = { 1 };\nconst size_t model_size = 64;\n")
            objects.append(bytes_file)
        made = self.link([program], f"{name}.out", static, objects, f"-Wl,-Map={self.work / name}.map")
        return self.for_size(name, program, static) if name.endswith("-for-size") else made, static

    def for_size(self, name, program, static):
        """The sources that the program is linked from, compiled and optimised together, for size."""
        used = {file for file, count in places(self.work / f"{name}.map", "text|rodata|data|bss|tbss").items() if count}
        sources = [p for p in sorted((self.source / "src").rglob("*.c")) if f"{p.name}.o" in used and p.name != "tables.c" and not p.name.startswith("k_")]
        assert len(sources) > 40, used
        flags = ["-std=c11", "-D_GNU_SOURCE", "-ffp-contract=off", "-fno-math-errno", "-ffunction-sections", "-fdata-sections", *FOR_SIZE]
        out = self.work / f"{name}.out"
        programs = [self.source / "src/select/tables.c", self.source / f"tests/select/programs/{program}.c", *([self.work / "model.c"] if program == "core" else [])]
        done = small.run("cc", *flags, *(["-static"] if static else []), f"-I{self.work / name}", f"-I{self.source / 'include'}", f"-I{self.source / 'src'}",
                         '-DPITH_LIBDIR=""', '-DPITH_LIBDIR_BESIDE=""', *sources, *programs, "-Wl,--gc-sections", "-s", "-o", out, self.library,
                         "-lpcre2-8", "-pthread", "-ldl", "-lm")
        assert done.returncode == 0, done.stderr
        return out

    def bytes_of(self, name):
        path, static = self.make(name)
        return sum(sizes(path)) - self.empty[static]


def places(path, kinds="text|rodata|data|eh_frame"):
    """{source: bytes} of a link map."""
    found, section = Counter(), None
    text = path.read_text()
    for line in text[text.index("Linker script and memory map"):].splitlines():
        whole = re.match(r"^ (\.\S+)\s+0x\w+\s+(0x\w+)\s+(\S.*)$", line)
        name = re.match(r"^ (\.\S+)$", line)
        rest = re.match(r"^\s+0x\w+\s+(0x\w+)\s+(\S.*)$", line)
        if whole or (rest and section):
            kind, size, origin = (whole.group(1), whole.group(2), whole.group(3)) if whole else (section, rest.group(1), rest.group(2))
            if re.match(rf"\.({kinds})", kind):
                found[origin.split("(")[-1].rstrip(")").split("/")[-1]] += int(size, 16)
            section = None
        elif name:
            section = name.group(1)
    return found


def report(programs, source, build, name):
    print(f"\n{name}\n{small.run('size', programs.work / f'{name}.out').stdout}")
    print("sections")
    for section, count in sections(programs.work / f"{name}.out"):
        print(f"{count:9} {section}")
    _, listed, isas, _ = PROGRAMS[name]
    uses = {"core": "run", "embed": "embed", "detect": "detect"}[PROGRAMS[name][0]]
    costs = small.run(build / "pith", "select", f"--cost={build / 'libpith.a'}", "--use", uses, "--isas", isas, "--merge", source / f"tests/select/{listed}.yaml")
    print("bytes of each feature: what goes without it, what it needs beside a program without any, see pith select --cost\n"
          + "\n".join(costs.stdout.splitlines()[2:42]))
    folders = {p.name: p.parent.name for p in (source / "src").rglob("*.c")}
    by_source, by_folder = places(programs.work / f"{name}.map"), Counter()
    for file, count in by_source.items():
        by_folder[folders.get(file.removesuffix(".o"), "the C library and others")] += count
    for title, table in (("bytes by folder", by_folder), ("largest objects", by_source)):
        print(title)
        for what, count in table.most_common(24):
            print(f"{count:9} {what}")


def library(path):
    """Text and data of a shared library, without its tables for unwinding."""
    return sum(sizes(path)) - sum(count for name, count in sections(path) if name.startswith(".eh_frame"))


def compare(source, build):
    """The stripped library beside ONNX Runtime's shared object of the tests' Python."""
    python = Path(small.run(source / "tools/test_python.sh").stdout.strip())
    others = sorted(python.parent.parent.glob("lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so*"))
    for path in [build / "libpith.so", *others]:
        print(f"{library(path):9} bytes of text and data  {path.name}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("build", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    source, build = args.source.resolve(), args.build.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    programs = Programs(source, build, args.work.resolve())
    stored = source / "tests/select/size.budget"
    budget = dict(line.split() for line in stored.read_text().splitlines() if line and not line.startswith("#")) if stored.exists() else {}
    found = {name: programs.bytes_of(name) for name in PROGRAMS}
    found["library"] = library(build / "libpith.so")
    others = {name: int(count) for name, count in budget.items() if name not in found}  # of other tests, such as musl.py
    if args.write:
        found = {**found, **others}
        stored.write_text("# Bytes of text and data, of programs beyond an empty one: what tests/select/size.py found. Written by it.\n"
                          + "".join(f"{name} {count}\n" for name, count in found.items()))
        budget = {name: str(count) for name, count in found.items()}
    faults = 0
    for name, count in found.items():
        most = int(int(budget.get(name, 0)) * SLACK)
        over = count > most
        faults += over
        print(f"{count:9} of {most:9} bytes  {name}{'  OVER the budget of tests/select/size.budget' if over else ''}")
    if args.report:
        compare(source, build)
    for name in PROGRAMS if args.report else ():
        if PROGRAMS[name][0] != "run_model":
            report(programs, source, build, name)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
