"""Random databases, each twice: what comes after a moment is another in the second one. Answers to questions before it must be the
same to the last bit. PITH SECONDS [FIRST SEED].

Tables have times of their own or none, and name rows of each other, also in circles and through several tables without times. A row
is of the future if it is later than the moment or names, over however many rows without times, a row that is. In the second database all
cells of such rows are drawn anew, and what they name is another row of the future.
"""
import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PITH, SECONDS, FIRST = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
DAYS, MOMENT = 100, 80  # days of rows; the day after which all is the future
CONFIG = {"steps": 2, "batch": 4, "warmup": 1, "cells": 120, "width": 6, "dim": 16, "heads": 1, "ff": 32, "blocks": 1}


def when(day):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1704067200 + day * 86400))


class Table:
    def __init__(self, draw, name, rows):
        self.name, self.count = name, rows
        self.timed = name == "t0" or draw.random() < 0.4
        self.kinds = ["boolean", *(draw.choice(("numerical", "categorical", "text", "timestamp")) for _ in range(draw.randrange(1, 4)))]
        self.days = [draw.uniform(0, DAYS) for _ in range(rows)]
        self.links = []  # (table, rows or None of each row)
        self.cells = [[cell(draw, kind) for kind in self.kinds] for _ in range(rows)]


def cell(draw, kind, word="now"):
    if draw.random() < 0.1:
        return ""
    return {"boolean": lambda: draw.choice(("true", "false")), "numerical": lambda: f"{draw.gauss(0, 3):.3f}",
            "categorical": lambda: draw.choice("abc") + word[:1], "text": lambda: f"{word} {draw.choice(('big', 'small'))} {draw.randrange(9)}",
            "timestamp": lambda: when(draw.uniform(0, 2 * DAYS))}[kind]()


def database(draw):
    tables = [Table(draw, f"t{i}", draw.randrange(20, 120) if i else 150) for i in range(draw.randrange(2, 7))]
    for i, table in enumerate(tables):
        for _ in range(draw.randrange(1 if i else 0, 3)):
            parent = draw.choice(tables)
            if draw.random() < 0.7 or not parent.timed or not table.timed:
                table.links.append((parent, [draw.randrange(parent.count) if draw.random() < 0.9 else None for _ in range(table.count)]))
    return tables


def future(tables):
    """For each table whether each row is of the future."""
    late = {t.name: [t.timed and day > MOMENT for day in t.days] for t in tables}
    changed = True
    while changed:
        changed = False
        for table in (t for t in tables if not t.timed):
            for parent, up in table.links:
                for row, named in enumerate(up):
                    if named is not None and late[parent.name][named] and not late[table.name][row]:
                        late[table.name][row] = changed = True
    return late


def change(draw, tables, late):
    """Draws all rows of the future anew; they stay in the future."""
    for table in tables:
        for row in (r for r in range(table.count) if late[table.name][r]):
            table.cells[row] = [cell(draw, kind, "later") for kind in table.kinds]
            table.days[row] = draw.uniform(MOMENT + 1e-3, DAYS)
            for parent, up in table.links:
                if up[row] is not None and late[parent.name][up[row]]:
                    # Rows without times may name each other alone, and leave the future with that.
                    choice = [r for r in range(parent.count) if late[parent.name][r]] if parent.timed else [up[row]]
                    up[row] = draw.choice(choice)
                elif table.timed:
                    up[row] = draw.randrange(parent.count)


def write(folder, tables):
    folder.mkdir()
    schema = {"name": "random", "tables": {}, "tasks": {"asked": {"anchor_table": "t0", "target_column": "c0", "split": {
        "kind": "time", "train_until": when(50), "validation_until": when(MOMENT - 15)}}}}
    for table in tables:
        columns = {"id": {"stype": "identifier"}, **{f"c{i}": {"stype": kind} for i, kind in enumerate(table.kinds)}}
        columns.update({f"to{i}": {"stype": "identifier", "foreign_key": f"{parent.name}.id"} for i, (parent, _) in enumerate(table.links)})
        about = {"file": f"{table.name}.csv", "primary_key": "id", "columns": columns}
        if table.timed:
            columns["at"] = {"stype": "timestamp"}
            about["temporal_column"] = "at"
        schema["tables"][table.name] = about
        with open(folder / f"{table.name}.csv", "w", newline="") as f:
            out = csv.writer(f)
            out.writerow(columns)
            for row in range(table.count):
                names = ["" if up[row] is None else up[row] for _, up in table.links]
                out.writerow([row, *table.cells[row], *names, *([when(table.days[row])] if table.timed else [])])
    (folder / "schema.json").write_text(json.dumps(schema))


def answers(folder, rows):
    """What the model and the baselines say."""
    place = folder.parent

    def run(*words, **more):
        done = subprocess.run([PITH, *map(str, words)], capture_output=True, text=True, check=False, **more)
        if done.returncode:
            raise SystemExit(f"{words}: exit {done.returncode}: {done.stderr}")
        return done.stdout

    (place / "config.json").write_text(json.dumps(CONFIG))
    run("preprocess", folder, "-o", place / f"{folder.name}.rdb")
    run("train", place / f"{folder.name}.rdb", "--task", "asked", "-o", place / f"{folder.name}-run", "--config", place / "config.json")
    return (run("predict", place / f"{folder.name}-run", "--rows", "-", input="\n".join(map(str, rows))),
            run("eval", place / f"{folder.name}-run", "--baseline", "--split", "validation", "--json"))


def check(seed):
    draw = random.Random(seed)
    tables = database(draw)
    late = future(tables)
    rows = [r for r in range(tables[0].count) if tables[0].days[r] <= MOMENT]
    with tempfile.TemporaryDirectory() as name:
        write(Path(name) / "now", tables)
        change(draw, tables, late)
        if late != future(tables):
            raise SystemExit(f"seed {seed}: the second database has another future")
        write(Path(name) / "later", tables)
        first, second = (answers(Path(name) / place, rows) for place in ("now", "later"))
    if first != second:
        kinds = [(t.name, t.timed, [p.name for p, _ in t.links]) for t in tables]
        differ = [(a, b) for a, b in zip(first[0].splitlines(), second[0].splitlines()) if a != b]
        raise SystemExit(f"seed {seed}: the future changes answers: {kinds}; {len(differ)} of {len(rows)}, first {differ[:1]}")
    return sum(map(sum, late.values()))


begin, seed, rows = time.monotonic(), FIRST, 0
while seed == FIRST or time.monotonic() - begin < SECONDS:
    rows += check(seed)
    seed += 1
print(f"{seed - FIRST} databases, {rows} rows of the future: no answer differs")
