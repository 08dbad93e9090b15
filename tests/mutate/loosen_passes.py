#!/usr/bin/env python3
"""Loosens the passes by one condition at a time and says after how many seconds the graphs of fuzz_fusions.py find it.

usage: loosen_passes.py BUILD [--seconds N] [--seed N] [--check] [PASS...]
BUILD is a build tree with `pith`. Seconds are the processor's, those of the generator and of the command together. It
fails if a condition is not found in N seconds (60), if its text is no longer in the file, and if a pass has none.
With --check only the last two are looked at.
"""
import argparse
import json
import os
import pathlib
import re
import sys
import tempfile

from loosened import CONDITIONS, MARK_ONLY
from mutate import Bench
from quick_tests import ROOT, Build

sys.path.insert(0, str(ROOT / "tests" / "comparisons"))
import fuzz_fusions


def loosened(condition):
    """(file, its text with the condition loosened)."""
    source = ROOT / "src/engine/opt" / condition.file
    words = r"(?<!\w)" + r"\s+".join(re.escape(word) for word in condition.old.split())
    text, count = re.subn(words, lambda _: condition.new, source.read_text())
    if count != 1:
        sys.exit(f"src/engine/opt/{condition.file} has this {count} times, so loosened.py has to follow it:\n{condition.old}")
    return source, text


def check_list():
    """Every pass is in the list or has a reason why not, and every condition is in its file."""
    passes = re.findall(r"^PASS\((\w+)\)", (ROOT / "src/select/passes.def").read_text(), re.M)
    listed = {p for c in CONDITIONS for p in c.passes.split()}
    for name in passes:
        if (name in listed) == (name in MARK_ONLY):
            sys.exit(f"loosened.py: pass {name} needs a condition, or a reason why it has none")
    if unknown := (listed | set(MARK_ONLY)) - set(passes):
        sys.exit(f"loosened.py: there is no pass {', '.join(sorted(unknown))}")
    for condition in CONDITIONS:
        loosened(condition)


def plant(bench, condition):
    """The path of a `pith` with this condition loosened."""
    source, text = loosened(condition)
    made = bench.compile(source, text, "-Wno-error")
    if not made or not bench.runner.link("pith", made, source):
        sys.exit(f"src/engine/opt/{condition.file}: '{condition.what}' does not compile")
    return str(bench.folder / "pith")


def spent():
    return sum(os.times()[:4])


def search(pith, seed, seconds):
    """(seconds, the first finding); None if there is none in so many seconds."""
    begin = spent()
    while (now := spent() - begin) < seconds:
        differ, refused = fuzz_fusions.findings(pith, seed)
        seed += fuzz_fusions.BATCH
        if differ or refused:
            return spent() - begin, (differ + refused)[0]
    return now, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=60, help="of the processor, for each condition (60)")
    parser.add_argument("--seed", type=int, default=0, help="of the first graph")
    parser.add_argument("--check", action="store_true", help="only compare the list with the files")
    parser.add_argument("passes", nargs="*", metavar="pass", help="only conditions of these passes")
    options = parser.parse_intermixed_args()
    check_list()
    if options.check:
        return
    folder = options.build.resolve()
    base = Build(folder, json.loads((folder / "compile_commands.json").read_text()))
    missed = 0
    with tempfile.TemporaryDirectory() as made:
        bench = Bench(base, pathlib.Path(made))
        for condition in CONDITIONS:
            if options.passes and not set(options.passes) & set(condition.passes.split()):
                continue
            seconds, finding = search(plant(bench, condition), options.seed, options.seconds)
            missed += not finding
            print(f"{condition.passes:18} {condition.file:20} {seconds:5.1f} s  {condition.what}\n    "
                  f"{finding or 'NOT FOUND'}", flush=True)
    for name, reason in MARK_ONLY.items():
        print(f"{name:18} nothing to find: it {reason}")
    print(f"{len(CONDITIONS)} conditions, {missed} not found")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
