#!/usr/bin/env python3
"""Lets `pith verify --fusions` compare every optimisation level with the graph as written, on the graphs that
fusion_graphs.py and byte_graphs.py draw.

usage: fuzz_fusions.py PITH [--seconds N] [--seed N] [--count N] [--keep DIR]
Models that differ are kept in DIR. Ends with 'N graphs, N findings'; exit status 1 if there is a finding."""
import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import byte_graphs
import fusion_graphs

BATCH = 20


def draw(seed):
    rng = random.Random(seed)
    kind = rng.random()
    network = fusion_graphs.transformer if kind < 0.8 else fusion_graphs.convolutional if kind < 0.9 else byte_graphs.network
    return network(rng)


def findings(pith, seed, keep=None):
    """What `pith verify --fusions` says of the BATCH graphs from this seed on: (lines on results that differ, lines on
    graphs that could not be run)."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {str(Path(folder, f"{n}.onnx")): n for n in range(seed, seed + BATCH)}
        for path, n in paths.items():
            Path(path).write_bytes(draw(n).SerializeToString())
        done = subprocess.run([pith, "verify", "--fusions", "--json", "--runs", "6", *paths], capture_output=True, text=True)
        if done.returncode < 0:
            return [f"seeds {seed} to {seed + BATCH - 1}: ended by signal {-done.returncode}"], []
        result, differ = json.loads(done.stdout), []
        for found in result["findings"]:
            differ.append(f"seed {paths[found['model']]}: level {found['level']}, pass {found['pass']}, {found['node']}: "
                          f"{found['difference']}; {found['inputs']}")
            if keep:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / Path(found["model"]).name).write_bytes(Path(found["model"]).read_bytes())
        return differ, [f"seed {paths[e['model']]}: {e['error']}" for e in result["errors"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("pith")
    parser.add_argument("--seconds", type=float, help="go on for so long")
    parser.add_argument("--count", type=int, default=200, help="graphs, unless --seconds is given (200)")
    parser.add_argument("--seed", type=int, default=0, help="of the first graph; the others count on from it")
    parser.add_argument("--keep", type=Path, help="folder for models that differ")
    options = parser.parse_args()
    begin, graphs, differ, unrun = time.monotonic(), 0, 0, 0
    while time.monotonic() - begin < options.seconds if options.seconds else graphs < options.count:
        found, refused = findings(options.pith, options.seed + graphs, options.keep)
        graphs += BATCH
        differ += len(found)
        unrun += len(refused)
        for line in found + refused:
            print(line, flush=True)
    print(f"{graphs} graphs, {differ} findings" + (f", {unrun} could not be run" if unrun else ""))
    sys.exit(1 if differ or unrun else 0)


if __name__ == "__main__":
    main()
