"""Which quick tests run which lines of the library, by gcov; kept per test until its programs change."""
import json
import pathlib
import subprocess
import sys
import time

from quick_tests import ROOT, Runner, build, quick_tests


def counted(folder):
    """{file: {line: whether it was run}} of all that was counted since the counters were removed."""
    found = {}
    data = sorted(str(p) for p in folder.glob("CMakeFiles/pith_*.dir/src/**/*.gcda"))
    if not data:  # a program that uses nothing of the library
        return found
    shown = subprocess.run(["gcov", "--json-format", "--stdout", *data], cwd=folder, capture_output=True, check=True)
    for document in shown.stdout.decode().splitlines():
        read = json.loads(document)
        for entry in read["files"]:
            path = pathlib.Path(read["current_working_directory"], entry["file"]).resolve()
            if path.suffix != ".c" or not path.is_relative_to(ROOT / "src"):
                continue
            lines = found.setdefault(str(path.relative_to(ROOT)), {})
            for line in entry["lines"]:
                lines[line["line_number"]] = lines.get(line["line_number"], False) or line["count"] > 0
    return found


def measure(made, test, kept):
    for path in made.folder.rglob("*.gcda"):
        path.unlink()
    begin = time.time()
    wrong = Runner(made, made.folder).run(test, 3600)
    if wrong:
        sys.exit(f"{test.name} fails with no fault planted: {wrong}")
    seconds = time.time() - begin
    lines = {file: [sorted(n for n, run in found.items() if run), sorted(found)]
             for file, found in counted(made.folder).items()}
    kept.write_text(json.dumps({"seconds": seconds, "lines": lines}))


def make(folder, tests):
    """{file: {line: names of the tests that run it}}; sets the seconds of each test."""
    made = build(folder, "-DCMAKE_C_FLAGS=--coverage")
    covered, here = {}, {t.name: t for t in quick_tests(made)}
    (folder / "lines").mkdir(exist_ok=True)
    for test in tests:
        kept, needs = folder / "lines" / f"{test.name}.json", [folder / n for n in test.needs]
        if not kept.exists() or any(n.stat().st_mtime > kept.stat().st_mtime for n in needs):
            print(f"counting the lines that {test.name} runs", file=sys.stderr, flush=True)
            measure(made, here[test.name], kept)
        read = json.loads(kept.read_text())
        test.seconds = read["seconds"]
        for file, (run, known) in read["lines"].items():
            lines = covered.setdefault(file, {})
            for n in known:
                lines.setdefault(n, set())
            for n in run:
                lines[n].add(test.name)
    return covered
