#!/usr/bin/env python3
"""Runs the commands of README.md, CONTRIBUTING.md and docs/*.md as they are written.

usage: doc_commands.py SOURCE_DIR BUILD_DIR [--long] [--only TEXT]
A block ```sh, ```console or ``` with lines `$ command` is run in a scratch copy of the tree, one for each page, in which the
files and models that the pages name are there under these names. Blocks and lines that are not run are listed below with
the reason; one that is in neither place, or in a list and no longer in a page, is a fault. Of `make` it is asked only
whether it knows the target. In a ```console block the lines after a command are its output, and must be what it prints; a
line that ends in … may go on. --long: those that take minutes too. $PITH_PYTHON is a Python with tests/requirements.txt.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "cli"))
from hub_server import Hub  # noqa: E402

# Plain blocks that hold no command.
NO_COMMANDS = {
    "docs/faces.md": ["file,name,x,y,w,h"],
    "docs/selective-build.md": ["this selective build lacks pieces"],
}
# Lines that are not run, by what they begin with.
NOT_RUN = {
    "README.md": {},
    "docs/building.md": {
        "cmake -S . -B build && cmake --build build": "writes below /usr/local; tests/install/install.sh does it elsewhere",
    },
    "docs/kernels.md": {},
    "docs/relational.md": {
        "cmake --build build-test": "these tests run in make test-long",
        "PITH_PYTHON=": "these tests run in make test-long",
    },
    "docs/runtimes.md": {
        "pith run --runtime ort --ep cuda": "needs a graphics processor",
    },
    "docs/selective-build.md": {
        "PITH_ARM64_ROOT=": "needs a compiler for arm64; tests/select/cross.py does it",
        "cmake --build arm": "the same",
    },
}
# Lines that take minutes, for --long.
LONG = {
    "docs/kernels.md": [""],
    "docs/performance.md": ["build/pith bench"],
    "docs/relational.md": [""],
    "docs/selective-build.md": ["cmake -B small", "cmake --build small"],
}
# Names in the pages, and what of tests/data stands there.
MODELS = {"splade": "encode/splade-max", "bge-m3": "encode/bge-m3", "colbert": "encode/colbert-hidden", "bge-reranker": "tasks/cross-bert",
          "bge-reranker-base": "tasks/cross-bert", "emotion": "tasks/labels-bert", "clip-vit-base-patch32": "vision/clip",
          "vit": "vision/vit", "bm42": "hybrid/bm42", "minicoil": "hybrid/minicoil"}
FILES = {"yunet.onnx": "yunet/yunet-s-640-other-sizes/model.onnx",
         "face_detection_yunet_2023mar.onnx": "yunet/yunet-s-640-other-sizes/model.onnx", "mtcnn": "mtcnn", "shop": "shop", "new": "shop",
         "my-model": "modules/dense",
         "base.bin": "relational/base.bin", "a.jpg": "images/rgb.jpg", "b.png": "images/rgb.png", "group.jpg": "faces/face_1.jpg",
         "crowd.jpg": "faces/face_1.jpg", "photos/1.jpg": "images/rgb.jpg", "photos/2.jpg": "faces/face_1.jpg"}
TEXTS = {"keys.txt": "23000\n23001\n", "texts.txt": "a cat sat on the mat\nthe market fell\n", "many.txt": "a line of text\n" * 50,
         "passages.txt": "".join(f"{text}\n" for text in ("France is a country in Europe.", "A cat.", "Rivers.", "Roads.",
                                                          "Paris is the capital of France."))}


def blocks(page):
    """(line, language, text) of each block that may hold commands."""
    found, begun = [], None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if not line.startswith("```"):
            if begun:
                begun[2].append(line)
        elif begun:
            found.append(begun)
            begun = None
        else:
            begun = (number, line[3:].strip(), [])
    return [(number, kind, lines) for number, kind, lines in found if kind in ("", "sh", "console")]


def commands(kind, lines):
    """(place in the block, command): lines that end with \\ go on. Of a transcript only the lines after $ are commands."""
    made, begun = [], None
    for place, line in enumerate(lines, 1):
        if kind != "sh" and not begun:
            if not line.startswith("$ "):
                continue
            line = line[2:]
        begun = (begun[0], begun[1] + "\n" + line) if begun else (place, line)
        if not line.endswith("\\"):
            made.append(begun)
            begun = None
    return [(place, text) for place, text in made if text.strip() and not text.startswith("#")]


def shown(kind, lines):
    """The output that a ```console block shows after each command, by the command's place."""
    if kind != "console":
        return {}
    places = [place for place, _ in commands(kind, lines)]
    ends = [place - 1 for place in places[1:]] + [len(lines)]
    return {place: [line for line in lines[place:end] if not lines[place - 1].endswith("\\")] for place, end in zip(places, ends)}


def differs(wanted, printed):
    """Whether output is not what a page shows."""
    printed = printed.splitlines()
    return len(wanted) != len(printed) or any(
        not p.startswith(w[:-1]) if w.endswith("…") else p != w for w, p in zip(wanted, printed))


class Scratch:
    """A tree as the pages take it to be: sources, build/, the files and models they name, and pith in PATH."""

    def __init__(self, source, build, folder):
        self.tree, cache = folder / "tree", folder / "cache"
        self.tree.mkdir()
        for entry in source.iterdir():
            if not re.match(r"build|\.git$|docs$", entry.name):
                (self.tree / entry.name).symlink_to(entry)
        for name in ("build", "build-test"):
            (self.tree / name).symlink_to(build)
        data = source / "tests/data"
        for name, content in TEXTS.items():
            (self.tree / name).write_text(content)
        (self.tree / "photos").mkdir()
        for name, stored in FILES.items():
            (self.tree / name).symlink_to(data / stored)
        self.make_model()
        models = cache / "models"
        models.mkdir(parents=True)
        for name, stored in MODELS.items():
            (models / name).symlink_to(data / stored)
        (models / "all-MiniLM-L6-v2").symlink_to(self.default_model())
        (models / "Qdrant/bm25").mkdir(parents=True)
        for language, word in (("english", "the"), ("german", "der")):
            (models / f"Qdrant/bm25/{language}.txt").write_text(f"{word}\n")
        self.lists(source)
        self.python()
        (folder / "bin").mkdir()
        (folder / "bin/pith").symlink_to(build / "pith")
        published = data / "modules/chain"
        self.hub = Hub({str(path.relative_to(published)): path.read_bytes() for path in published.rglob("*") if path.is_file()},
                       repository="BAAI/bge-small-en-v1.5")
        self.environment = {**os.environ, "PITH_CACHE": str(cache), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
                            "HF_ENDPOINT": self.hub.url, "XDG_CONFIG_HOME": str(folder / "config")}
        self.environment.pop("PITH_CONFIG", None)

    @staticmethod
    def default_model():
        given = os.environ.get("PITH_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pith"
        model = Path(given) / "models/all-MiniLM-L6-v2"
        if not (model / "model.safetensors").exists():
            sys.exit(f"doc_commands: no {model}: run make model")
        return model

    def make_model(self):
        import numpy
        from onnx import TensorProto, helper, save
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.tree / "model.onnx")
        numpy.save(self.tree / "x.npy", numpy.array([-1, 2], numpy.float32))

    def lists(self, source):
        """What docs/extending.md compiles: a program, and lists of its own."""
        mine = self.tree / "my_lists"
        shutil.copytree(source / "src/select", mine / "select", ignore=shutil.ignore_patterns("*.[ch]"))
        shutil.copy(source / "src/select/tables.c", mine)
        shutil.copy(source / "examples/embed.c", self.tree / "program.c")

    def python(self):
        """The environment with ONNX Runtime that docs/runtimes.md calls venv."""
        (self.tree / "venv").symlink_to(Path(os.environ["PITH_PYTHON"]).parents[1])

    def run(self, command):
        make = re.match(r"make +(.*?)( *#.*)?$", command)
        if make:  # -n: it says what it would do
            command = f"make -n -f {self.tree / 'Makefile'} {make[1]} >/dev/null"
        return subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=self.tree, env=self.environment, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=3600)


class Pages:
    def __init__(self, source, build, long, only):
        self.source, self.build, self.long, self.only = source, build, long, only
        self.faults, self.ran, self.left, self.used = [], 0, 0, set()

    def kept_out(self, name, command, place):
        """Whether a line is not run, or not now."""
        for begin in NOT_RUN.get(name, {}):
            if command.startswith(begin):
                self.used.add((name, begin))
                return True
        return not self.long and any(command.startswith(begin) for begin in LONG.get(name, []))

    def page(self, page):
        name = str(page.relative_to(self.source))
        with tempfile.TemporaryDirectory(prefix="pith-pages-") as folder:
            scratch = None
            for number, kind, lines in blocks(page):
                listed, output = commands(kind, lines), shown(kind, lines)
                if not listed:
                    known = [begin for begin in NO_COMMANDS.get(name, []) if lines[0].startswith(begin)]
                    self.used.update((name, begin) for begin in known)
                    if not known:
                        self.faults.append(f"{name}:{number}: a block without a command that doc_commands.py does not list")
                for place, command in listed:
                    if self.kept_out(name, command, place):
                        self.left += 1
                        continue
                    scratch = scratch or Scratch(self.source, self.build, Path(folder))
                    done = scratch.run(command)
                    self.ran += 1
                    if done.returncode:
                        self.faults.append(f"{name}:{number + place}: {command}\nends with {done.returncode}:\n{done.stdout[-2000:]}")
                    elif place in output and not command.startswith("make ") and differs(output[place], done.stdout):
                        self.faults.append(f"{name}:{number + place}: {command}\nprints something else:\n{done.stdout[-2000:]}")
            if scratch:
                scratch.hub.close()

    def all(self):
        pages = [self.source / "README.md", self.source / "CONTRIBUTING.md", *sorted((self.source / "docs").glob("*.md"))]
        for page in pages:
            if self.only in str(page):
                self.page(page)
        listed = {(name, begin) for table in (NOT_RUN, NO_COMMANDS) for name in table for begin in table[name]}
        if not self.only:
            self.faults += [f"{name}: doc_commands.py lists '{begin}', which is not there" for name, begin in sorted(listed - self.used)]
        print("\n".join(self.faults))
        print(f"pages: {self.ran} commands ran, {self.left} were left out, {len(self.faults)} faults")
        return bool(self.faults)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("build", type=Path)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    return Pages(a.source.resolve(), a.build.resolve(), a.long, a.only).all()


if __name__ == "__main__":
    sys.exit(main())
