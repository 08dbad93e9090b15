#!/usr/bin/env python3
"""Builds what some tests need, and runs them: one changed file, one test, a few seconds (make test-one T=regex).

usage: one.py BUILD REGEX [JOBS]; the names of the tests are those of ctest.
"""
import json
import subprocess
import sys
from pathlib import Path

# Programs that get the folder of the build as an argument, and what they load from it.
LOADED = {"compare_tokenizers.py": "text_probe", "compare_random.py": "text_probe", "compare_published.py": "text_probe"}


def tests(build, regex):
    """Those whose names the regular expression matches, and what has to run before them."""
    shown = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1", "-R", regex], check=True, capture_output=True)
    return json.loads(shown.stdout)["tests"]


def targets(build, made, test):
    """What the words of the test's command name. One that gets the folder of the build may use anything in it."""
    found = set()
    for word in test.get("command", []):
        path = Path(word)
        if path.name in LOADED:
            return {LOADED[path.name]}
        if path == build and "node_tests.sh" not in str(test["command"]):  # which only unpacks there
            found.add("all")
        elif build in path.parents and str(path.relative_to(build)) in made:
            found.add(str(path.relative_to(build)))
    return found


def main():
    build, regex, jobs = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "2"
    subprocess.run(["cmake", "--build", build, "--target", "build.ninja"], check=True, stdout=subprocess.DEVNULL)  # for a new file
    chosen = tests(build, regex)
    if not chosen:
        sys.exit(f"no test has a name that '{regex}' matches; 'ctest --test-dir {sys.argv[1]} -N' lists them")
    listed = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], check=True, capture_output=True, text=True).stdout
    made = {line.rsplit(": ", 1)[0] for line in listed.splitlines()}
    wanted = set().union(*(targets(build, made, test) for test in chosen))
    if wanted:
        done = subprocess.run(["cmake", "--build", build, "-j", jobs, "--target", *({"all"} if "all" in wanted else sorted(wanted))])
        if done.returncode:
            return done.returncode
    return subprocess.run(["ctest", "--test-dir", build, "--output-on-failure", "-j", jobs, "-R", regex]).returncode


if __name__ == "__main__":
    sys.exit(main())
