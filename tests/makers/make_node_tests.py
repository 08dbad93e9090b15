"""Writes the node tests of the wheel onnx into one archive, made by onnx's own collector.

    make_node_tests.py tests/conformance/node-tests.tar.xz

The wheel holds the programs that make the tests but not the tests. Needs onnx as in tests/requirements.txt, and pillow
for the tests of ImageDecoder. The same versions write the same bytes: NumPy's generator is seeded, and entries are sorted
and have neither times nor owners.
"""

import argparse
import io
import lzma
import pathlib
import random
import tarfile
import tempfile

import numpy as np
import onnx
from onnx.backend.test import cmd_tools

# The collector hands back whatever its modules made when they were imported, so the seed comes first.
random.seed(0)
np.random.seed(0)
from onnx.backend.test.case import node  # noqa: E402

EXPECTED_VERSION = "1.23.2"


def add_file(archive, name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = 0o644
    archive.addfile(entry, io.BytesIO(data))


def pack(folder, out):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            add_file(archive, path.relative_to(folder).as_posix(), path.read_bytes())
    out.write_bytes(lzma.compress(raw.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    out = parser.parse_args().out
    if onnx.__version__ != EXPECTED_VERSION:
        raise SystemExit(f"onnx {EXPECTED_VERSION} is wanted, this is {onnx.__version__}")
    # generate_data writes what this function collects, which by itself are the model tests only.
    cmd_tools.model_test.collect_testcases = node.collect_testcases
    with tempfile.TemporaryDirectory() as folder:
        cmd_tools.generate_data(argparse.Namespace(output=folder))
        pack(pathlib.Path(folder), out)
    print(f"{out}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
