#!/usr/bin/env python3
"""Plants small faults in C files of the library, one at a time, and lists those that no quick test notices.

usage: mutate.py [--count N] [--seed S] [--jobs J] [--build DIR] FILE...

Only the changed file is compiled, and only the tests that run the changed lines are linked with it and run, the fastest
first. Which tests run which lines comes from one run of all of them under gcov. Results are kept in DIR/results.tsv, so
a run that was stopped goes on where it was; survivors are tried again when a test has changed. equivalent.txt lists
changes that cannot matter. $PITH_PYTHON is a Python with tests/requirements.txt.
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import queue
import shlex
import subprocess
import sys
import threading

import coverage_map
import equivalents
import faults
from quick_tests import ROOT, Runner, build, quick_tests


def digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def equivalent_changes():
    known, wrong = equivalents.read(ROOT)
    if wrong:
        sys.exit("\n\n".join(f"tests/mutate/equivalent.txt:{line}: {text}" for line, text in wrong))
    return known


class Results:
    """What became of each fault: a line of file, digest, outcome and detail each."""

    def __init__(self, path):
        self.path, self.lock, self.known = path, threading.Lock(), {}
        if path.exists():
            for line in path.read_text().splitlines():
                key, *outcome = line.split("\t")
                self.known[key] = outcome

    def get(self, key, tests_key):
        """The outcome and its detail, or None. What survived counts as long as no test has changed."""
        outcome = self.known.get(key)
        return None if not outcome or outcome[0] == "survived" and outcome[2] != tests_key else outcome[:2]

    def put(self, key, outcome, detail, tests_key):
        with self.lock:
            self.known[key] = [outcome, detail, tests_key]
            with self.path.open("a") as f:
                f.write("\t".join((key, outcome, detail, tests_key)) + "\n")


class Bench:
    """A folder in which faults are compiled, linked and tried, one at a time."""

    def __init__(self, base, folder):
        self.base, self.folder = base, folder
        self.runner = Runner(base, folder)
        (folder / "tests").mkdir(parents=True, exist_ok=True)

    def compile(self, source, text, *flags):
        """The object's path, or None if the compiler refuses."""
        command = next(c["command"] for c in self.base.commands if c["file"] == str(source))
        changed, made = self.folder / source.name, self.folder / (source.stem + ".o")
        changed.write_text(text)
        words = [w for w in shlex.split(command) if w != "-g1"]
        words[words.index("-o") + 1], words[words.index("-c") + 1] = str(made), str(changed)
        words = [w for w in words if w != "ccache" and not w.endswith("/ccache")]
        done = subprocess.run([*words, *flags, "-iquote", str(source.parent)], cwd=self.base.folder, capture_output=True)
        return None if done.returncode else made

    def notices(self, made, source, tests):
        """The name of the first test that fails with this object in the library's place, or None."""
        linked = set()
        for test in tests:
            for artefact in test.needs:
                if artefact not in linked and not self.runner.link(artefact, made, source):
                    return "the linker"
                linked.add(artefact)
            outcome = self.runner.run(test, max(10, 5 * test.seconds))
            if outcome:
                return f"{test.name} ({outcome})"
        return None


def lines_of(fault, covered):
    """The lines gcov counts that belong to the fault: its own, or the nearest above."""
    own = [n for n in range(fault.first, fault.last + 1) if n in covered]
    return own or [max((n for n in covered if n < fault.first), default=0)]


def attempt(bench, source, text, fault, tests, covered):
    """(outcome, detail) of one fault."""
    plain = bench.compile(source, text)
    if plain is None:
        sys.exit(f"{source}: does not compile as it is")
    original = plain.read_bytes()
    made = bench.compile(source, text[: fault.start] + fault.new + text[fault.end :])
    if made is None:
        return "refused", "the compiler"
    if made.read_bytes() == original:
        return "same", "the same machine code"
    lines = lines_of(fault, covered)
    names = set().union(*(covered.get(n, ()) for n in lines))
    chosen = sorted((t for t in tests if t.name in names), key=lambda t: t.seconds)
    if not chosen:
        return "survived", "no test runs this line"
    by = bench.notices(made, source, chosen)
    return ("noticed", by) if by else ("survived", f"{len(chosen)} tests run this line")


class Campaign:
    def __init__(self, options):
        self.known = equivalent_changes()
        self.base = build(options.build / "base", "-DPITH_WERROR=ON")
        self.tests = quick_tests(self.base)
        self.map = coverage_map.make(options.build / "cover", self.tests)
        self.tests_key = digest(*(f"{p.name}{p.stat().st_mtime_ns}" for p in sorted((ROOT / "tests").rglob("*"))
                                  if p.suffix in (".c", ".h", ".py") and p.parent.name != "mutate"))
        self.results = Results(options.build / "results.tsv")
        self.benches = queue.Queue()
        for i in range(options.jobs):
            self.benches.put(Bench(self.base, options.build / f"job{i}"))
        self.options = options

    def judge(self, name, text, fault):
        key = digest(name, text, fault.old_text, fault.new_text, str(fault.start))
        outcome = self.results.get(key, self.tests_key)
        if not outcome:
            bench = self.benches.get()
            try:
                outcome = attempt(bench, ROOT / name, text, fault, self.tests, self.map.get(name, {}))
            finally:
                self.benches.put(bench)
            self.results.put(key, *outcome, self.tests_key)
        return outcome

    def file(self, pool, name):
        """Survivors among the first --count faults that the compiler takes and that change the machine code."""
        text = (ROOT / name).read_text()
        order, tried, noticed, survivors = faults.drawn(text, self.options.seed), 0, 0, []
        at = 0
        while tried < self.options.count and at < len(order):
            some = order[at : at + self.options.count - tried]
            at += len(some)
            for fault, (outcome, detail) in zip(some, pool.map(lambda f: self.judge(name, text, f), some)):
                tried += outcome in ("noticed", "survived")
                noticed += outcome == "noticed"
                if outcome == "survived" and (name, fault.function, fault.old_text, fault.new_text) not in self.known:
                    survivors.append((fault, detail))
        print(f"{name}: {tried} faults, {noticed} noticed, {len(survivors)} survivors", flush=True)
        for fault, detail in sorted(survivors, key=lambda s: s[0].start):
            print(f"{name}:{fault.first}: {fault.function}: {detail}\n  - {fault.old_text}\n  + {fault.new_text}", flush=True)
        return len(survivors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=10, help="faults for each file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-mutate")
    parser.add_argument("files", nargs="+", help="C files or folders, from the root of the tree")
    options = parser.parse_args()
    options.build = options.build.resolve()
    names = []
    for name in options.files:
        path = (ROOT / name).resolve()
        names += [str(p.relative_to(ROOT)) for p in (sorted(path.glob("*.c")) if path.is_dir() else [path])]
    campaign = Campaign(options)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        survivors = sum(campaign.file(pool, name) for name in names)
    print(f"{survivors} faults survive in {len(names)} files, seed {options.seed}")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
