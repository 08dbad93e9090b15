#!/usr/bin/env python3
"""What selective builds weigh, beside the budget in size.budget: text and data of programs beyond those of an empty one.

usage: size.py SOURCE_DIR BUILD_DIR WORK_DIR [--report] [--write]
--report: also the sections, the largest sources and functions, and the bytes of each folder. --write: the figures become the budget.
The programs are linked from the library of BUILD_DIR, whose assertions count too.
"""
import argparse
import re
import sys
from collections import Counter
from pathlib import Path

import small

# name: source, list, instruction sets, linked statically
PROGRAMS = {
    "core": ("core", "core", "scalar", False),
    "embed-minilm-safetensors": ("embed", "minilm", "avx2,scalar", False),
    "embed-minilm-safetensors-static": ("embed", "minilm", "avx2,scalar", True),
    "detect-yunet": ("detect", "yunet", "avx2", False),
}
SLACK = 1.02  # of the budget: compilers differ


def sizes(path):
    done = small.run("size", path)
    assert done.returncode == 0, done.stderr
    text, data = done.stdout.splitlines()[1].split()[:2]
    return int(text), int(data)


class Programs:
    def __init__(self, source, build, work):
        self.folder = small.Folder(source, build, work)
        self.source, self.work = source, work
        self.empty = {static: sum(sizes(self.link(["empty"], f"empty{static}", static))) for static in (False, True)}

    def link(self, sources, name, static, objects=(), *more):
        libraries = ["-lutf8proc", "-lpcre2-8", "-pthread", "-ldl", "-lm"]
        out = self.work / name
        done = small.run("cc", "-O2", "-ffunction-sections", "-fdata-sections", *(["-static"] if static else []), f"-I{self.source / 'include'}",
                         *[self.source / f"tests/select/programs/{s}.c" for s in sources], *objects, *self.folder.flags, *more, "-o", out,
                         *([self.folder.build / "libpith.a", *libraries] if objects else []))
        assert done.returncode == 0, done.stderr
        return out

    def make(self, name):
        program, listed, isas, static = PROGRAMS[name]
        done = self.folder.lists(name, "--list", self.source / f"tests/select/{listed}.yaml", "--dtypes", "ON", "--isas", isas)
        assert done.returncode == 0, done.stderr
        objects = [self.folder._compile("src/select/tables.c", self.work / name)]
        if program == "core":
            bytes_file = self.work / "model.c"
            bytes_file.write_text("#include <stddef.h>\nconst unsigned char model_bytes[64] = { 1 };\nconst size_t model_size = 64;\n")
            objects.append(bytes_file)
        return self.link([program], f"{name}.out", static, objects, f"-Wl,-Map={self.work / name}.map"), static

    def bytes_of(self, name):
        path, static = self.make(name)
        return sum(sizes(path)) - self.empty[static]


def places(path):
    """{source: bytes} of a link map."""
    found, section = Counter(), None
    text = path.read_text()
    for line in text[text.index("Linker script and memory map"):].splitlines():
        whole = re.match(r"^ (\.\S+)\s+0x\w+\s+(0x\w+)\s+(\S.*)$", line)
        name = re.match(r"^ (\.\S+)$", line)
        rest = re.match(r"^\s+0x\w+\s+(0x\w+)\s+(\S.*)$", line)
        if whole or (rest and section):
            kind, size, origin = (whole.group(1), whole.group(2), whole.group(3)) if whole else (section, rest.group(1), rest.group(2))
            if re.match(r"\.(text|rodata|data|eh_frame)", kind):
                found[origin.split("(")[-1].rstrip(")").split("/")[-1]] += int(size, 16)
            section = None
        elif name:
            section = name.group(1)
    return found


def report(programs, source, build, name):
    print(f"\n{name}\n{small.run('size', programs.work / f'{name}.out').stdout}")
    folders = {p.name: p.parent.name for p in (source / "src").rglob("*.c")}
    by_source, by_folder = places(programs.work / f"{name}.map"), Counter()
    for file, count in by_source.items():
        by_folder[folders.get(file.removesuffix(".o"), "the C library and others")] += count
    for title, table in (("bytes by folder", by_folder), ("largest objects", by_source)):
        print(title)
        for what, count in table.most_common(24):
            print(f"{count:9} {what}")


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
    found["library"] = sum(sizes(build / "libpith.so"))
    if args.write:
        stored.write_text("# Bytes of text and data, of programs beyond an empty one: what tests/select/size.py found. Written by it.\n"
                          + "".join(f"{name} {count}\n" for name, count in found.items()))
        budget = {name: str(count) for name, count in found.items()}
    faults = 0
    for name, count in found.items():
        most = int(int(budget.get(name, 0)) * SLACK)
        over = count > most
        faults += over
        print(f"{count:9} of {most:9} bytes  {name}{'  OVER the budget of tests/select/size.budget' if over else ''}")
    for name in PROGRAMS if args.report else ():
        report(programs, source, build, name)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
