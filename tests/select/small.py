"""Small commands: what a build folder holds already, linked with the trimmed lists of a selective build.

A whole selective build compiles everything again. Its result differs from that of a complete build only in
select/tables.c and in the table of verbs, so the tests that need many small builds compile these two and link them.
tests/select/build.py makes whole builds.
"""
import json
import re
import shlex
import subprocess
from pathlib import Path

LEVELS = "scalar avx2 avx512"


def run(*command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, **more)


class Folder:
    """A build folder, and a place for what is made of it."""

    def __init__(self, source, build, work):
        self.source, self.build, self.work = source, build, work
        work.mkdir(parents=True, exist_ok=True)
        self.commands = {c["file"]: c for c in json.loads((build / "compile_commands.json").read_text())
                         if "far" not in c["command"].split(" -c ")[0]}
        self.trim = work / "trim"
        done = run("cc", "-std=c11", "-O1", "-Wall", "-Wextra", f"-I{source}", f"-I{source}/src", source / "tools/trim.c", source / "cli/select/piece_list.c",
                   source / "cli/select/piece_file.c", source / "src/base/text_out.c", "-o", self.trim)
        assert done.returncode == 0, done.stderr
        ninja = (build / "build.ninja").read_text()
        at = ninja.index("\nbuild pith: ")
        self.objects = [build / word for word in ninja[at:ninja.index("|", at)].split() if word.endswith(".o") and "/main.c.o" not in word]
        self.flags = re.search(r"LINK_FLAGS = (.*)", ninja[at:]).group(1).split()
        self.libraries = re.search(r"LINK_LIBRARIES = (.*)", ninja[at:]).group(1).split()

    def lists(self, name, *options, levels=LEVELS):
        """Trims the lists to work/name; the process that did."""
        out = self.work / name
        for part in ("select", "cli"):
            (out / part).mkdir(parents=True, exist_ok=True)
        return run(self.trim, "--source", self.source / "src/select", "--output", out / "select", "--levels", levels,
                   "--verbs", self.source / "cli", "--verbs-output", out / "cli", *options)

    def _compile(self, file, out):
        """The includes of the lists stand in front of those of the source tree."""
        command = self.commands[str(self.source / file)]
        words = shlex.split(command["command"])
        words = [w for w in words[:words.index("-o")] if w != "-Werror"]
        made = out / (Path(file).name + ".o")
        done = run(*words[:1], f"-I{out}", *words[1:], "-o", made, "-c", self.source / file, cwd=command["directory"])
        assert done.returncode == 0, done.stderr
        return made

    def command(self, name, *options, parts=()):
        """A pith that holds what the lists keep, and more parts."""
        done = self.lists(name, *options)
        assert done.returncode == 0, done.stderr
        out = self.work / name
        parts = [*parts, self._compile("cli/main.c", out), self._compile("src/select/tables.c", out), self._compile("src/select/used_pieces.c", out)]
        pith = out / "pith"
        done = run("cc", *self.flags, *self.objects, *parts, "-o", pith, *self.libraries, cwd=self.build)
        assert done.returncode == 0, done.stderr
        return pith


def read(text):
    """A list as {kind: {name: [words behind it]}}."""
    kinds, kind = {}, None
    for line in text.splitlines():
        if line.startswith("  - "):
            name, *rest = line[4:].split()
            kinds[kind][name] = rest
        elif line and not line.startswith("#") and line != "pith: 1":
            kind, _, rest = line.partition(":")
            assert rest in ("", " []"), line
            kinds[kind] = {}
    return kinds


def write(kinds):
    lines = ["pith: 1"]
    for kind, names in kinds.items():
        lines.append(f"{kind}:" if names else f"{kind}: []")
        lines += [" ".join(["  -", name, *words]) for name, words in names.items()]
    return "\n".join(lines) + "\n"
