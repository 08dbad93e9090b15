#!/usr/bin/env python3
"""Each row of cli/options/options.def names a test that fails when the option has no effect: it is run with and without that.

usage: deaf.py PITH_DEAF SOURCE_DIR [ID...]
PITH_DEAF is the command with options that have no effect when $PITH_DEAF_TO names them (see option_heeded).
"""
import os
import subprocess
import sys
from pathlib import Path

PITH, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
sys.path.insert(0, str(SOURCE / "tools"))
import options as table


def passes(test, **env):
    file, name = test.split(" ")
    run = subprocess.run([sys.executable, SOURCE / f"tests/cli/{file}.py", PITH, SOURCE, name], capture_output=True,
                         env={**os.environ, **env}, timeout=900)
    return run.returncode == 0


def main():
    rows = [row for row in table.rows() if not sys.argv[3:] or row["id"] in sys.argv[3:]]
    faults, good = [], {}
    for row in rows:
        test = row["test"]
        if test not in good:
            good[test] = passes(test)
        if not good[test]:
            faults.append(f"{row['id']}: the test '{test}' fails")
        elif passes(test, PITH_DEAF_TO=row["id"]):
            faults.append(f"{row['id']}: the test '{test}' does not notice that the option has no effect")
    for line in faults:
        print(line)
    print(f"{len(rows)} options, {len(faults)} faults")
    sys.exit(1 if faults or not rows else 0)


if __name__ == "__main__":
    main()
