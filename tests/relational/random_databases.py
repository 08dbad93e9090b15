"""Random databases whose leaks are known, beside a computation in Python: PITH SECONDS [FIRST SEED].

Tables have times of their own or none, and name rows of each other, also in circles and through several tables without times. Keys,
times and separators are written in the ways that programs write them. Of each database
- what the file holds (times of rows, keys as rows, numbers, windows and their labels, parts) is what Python computes from the tables;
- what a model is given for a question holds no number that Python does not know before the question is asked;
- a second database, in which all that is known after a moment is another, gives the same answers to questions before that moment, to the
  last bit: model and baselines trained on it, and the first one's with --database.

A row is of the future if it is later than the moment or names, over however many rows without times, a row that is; unless the schema
says that the rows of its table are always there.
"""
import collections
import csv
import datetime
import gzip
import json
import math
import random
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PITH, SECONDS, FIRST = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
DAY, BEGIN, DAYS = 86400, 1704067200, 100
TRAIN, VALIDATION, MOMENT = (BEGIN + days * DAY for days in (50, 65, 80))
CONFIG = {"steps": 2, "batch": 4, "warmup": 1, "cells": 120, "width": 6, "dim": 16, "heads": 1, "ff": 32, "blocks": 1}
ALWAYS = -math.inf

# How times are written: the format that the schema names, whether it may be left out, and the form.
TIMES = [("iso", True, "%Y-%m-%dT%H:%M:%S"), ("iso", True, "%Y-%m-%d %H:%M:%S UTC"), ("compact", True, "%Y%m%dT%H%M%SZ"),
         ("month/day/year", False, "%m/%d/%Y %I:%M:%S %p"), ("day/month/year", False, "%d.%m.%Y %H:%M:%S"), ("month name", True, "%a, %d %b %Y %H:%M:%S GMT"),
         ("epoch_seconds", True, 1), ("epoch_milliseconds", True, 1000)]


def time_text(seconds, form):
    if isinstance(form, int):
        return str(seconds * form)
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(form)


class Table:
    """Columns: (name, stype, more of the schema). Cells: of numbers float, of times int, of texts str, None for a null."""

    def __init__(self, draw, number, rows):
        self.name, self.count = f"t{number}", rows
        self.timed = number == 0 or draw.random() < 0.45
        self.always = not self.timed and draw.random() < 0.2
        self.key = draw.choice(("whole", "decimal", "text", "pair"))
        self.delimiter = draw.choice(",,;\t|")
        self.ending = draw.choice((".csv", ".csv", ".CSV", ".csv.gz"))
        self.forms = collections.defaultdict(lambda: draw.choice(TIMES))  # of each column of times
        kinds = ["boolean", "numerical", *(draw.choice(("numerical", "categorical", "text", "timestamp")) for _ in range(draw.randrange(3)))]
        self.columns = [(f"c{i}", kind, {}) for i, kind in enumerate(kinds)]
        if self.timed and draw.random() < 0.5:
            self.columns[1][2]["known_at"] = {"delay_seconds": draw.randrange(1, 20) * DAY}
        if self.timed and draw.random() < 0.3:
            self.columns.append(("seen", "timestamp", {}))
            self.columns[draw.randrange(2)][2]["known_at"] = {"column": "seen"}
        self.times = [BEGIN + draw.randrange(DAYS * DAY) for _ in range(rows)] if self.timed else None
        self.links = []  # (table, row of it or None or "lost" of each row)
        self.cells = [self.row(draw, r) for r in range(rows)]

    def row(self, draw, row, word="now"):
        def cell(name, kind):
            if name == "seen":
                return self.times[row] + draw.randrange(30 * DAY) if draw.random() < 0.9 else None
            if draw.random() < 0.1:
                return None
            return {"boolean": lambda: draw.random() < 0.5, "numerical": lambda: round(draw.gauss(0, 3), 9),
                    "categorical": lambda: draw.choice("abc") + word[:1], "timestamp": lambda: BEGIN + draw.randrange(2 * DAYS * DAY),
                    "text": lambda: f"{word}, {draw.choice(('big', 'small'))} \"{draw.randrange(9)}\""}[kind]()
        return [cell(name, kind) for name, kind, _ in self.columns]

    def key_cells(self, row, foreign):
        """A key in the columns of its table, or in those of another that names it: perhaps with .0 behind it on one side alone."""
        if row is None:
            return ["", ""] if self.key == "pair" else [""]
        number = 10**6 + self.count if row == "lost" else row
        return {"whole": [f"{number}.0" if foreign else f"{number}"], "decimal": [f"{number}" if foreign else f"{number}.0"],
                "text": [f"K-{number}; \u00e9"], "pair": [f"{number // 7}", f"p{number % 7}"]}[self.key]

    def known(self, column, row, row_time):
        """From when on a cell is known."""
        about = self.columns[column][2].get("known_at") or ({"delay_seconds": 0} if (self.name, column) == ("t0", 0) else None)
        if not about:
            return row_time
        if "column" in about:
            seen = self.cells[row][[name for name, _, _ in self.columns].index(about["column"])]
            return math.inf if seen is None else max(seen, row_time)
        return max(row_time, self.times[row] + about["delay_seconds"])


def draw_database(draw):
    tables = [Table(draw, i, draw.randrange(20, 100) if i else 120) for i in range(draw.randrange(2, 7))]
    for i, table in enumerate(tables):
        for _ in range(draw.randrange(1 if i else 0, 3)):
            parent = draw.choice(tables)
            up = [draw.randrange(parent.count) if draw.random() < 0.85 else draw.choice((None, None, "lost")) for _ in range(table.count)]
            if not all(u in (None, "lost") for u in up):
                table.links.append((parent, up))
    return tables


def draw_window(draw, tables):
    """A question about what the rows of a table hold that name a row of another, in some time; None if there is no such table."""
    pairs = [(child, parent) for child in tables if child.timed for parent, _ in child.links if sum(p is parent for p, _ in child.links) == 1]
    if not pairs:
        return None
    child, parent = draw.choice(pairs)
    aggregate = draw.choice(("count", "sum", "any"))
    column = {"column": "c1"} if aggregate == "sum" or draw.random() < 0.5 else {}  # of which rows without a number do not count
    first = BEGIN + draw.randrange(30) * DAY
    return {"anchor_table": parent.name, "window": {"table": child.name, "aggregate": aggregate, **column,
            "seconds": draw.randrange(3, 30) * DAY, "every_seconds": draw.randrange(4, 20) * DAY, "from": first, "until": BEGIN + (DAYS + 10) * DAY}}


def row_times(tables):
    """When each row came to be: its own time, or that of the newest row that it names, over rows without times."""
    times = {t.name: list(t.times) if t.timed else [ALWAYS] * t.count for t in tables}
    changed = True
    while changed:
        changed = False
        for table in (t for t in tables if not t.timed and not t.always):
            for parent, up in table.links:
                for row, named in enumerate(up):
                    if isinstance(named, int) and times[parent.name][named] > times[table.name][row]:
                        times[table.name][row] = times[parent.name][named]
                        changed = True
    return times


def window_rows(tables, times, task):
    """(anchor row, time, label or None, when it is known) of each question, in the order of time and row. It waits for all numbers, also for
    those that turn out null: that they are would else be told before it is known."""
    by_name, w = {t.name: t for t in tables}, task["window"]
    child = by_name[w["table"]]
    up = next(up for parent, up in child.links if parent.name == task["anchor_table"])
    last, questions = max(times[child.name]), []
    for t in range(w["from"], w["until"], w["every_seconds"]):
        held = collections.defaultdict(list)
        for row, named in enumerate(up):
            if isinstance(named, int) and t < times[child.name][row] <= t + w["seconds"]:
                number, known = child.cells[row][1], child.known(1, row, times[child.name][row])
                if "column" not in w:
                    held[named].append((1, 0))
                elif known < math.inf:
                    held[named].append((0 if number is None else number if w["aggregate"] == "sum" else 1, known))
        for anchor in (a for a, begins in enumerate(times[task["anchor_table"]]) if begins < t):
            label = math.fsum(number for number, _ in held[anchor])
            questions.append((anchor, t, (float(label > 0) if w["aggregate"] == "any" else label) if t + w["seconds"] <= last else None,
                              max([t + w["seconds"], *(known for _, known in held[anchor])])))
    return questions


# ---- files ----

def schema_of(draw, tables, window):
    def iso(t):
        return time_text(t, "%Y-%m-%dT%H:%M:%S")

    split = {"kind": "time", "train_until": iso(TRAIN), "validation_until": iso(VALIDATION)}
    schema = {"name": "random", "tables": {}, "tasks": {"asked": {"anchor_table": "t0", "target_column": "c0", "split": split}}}
    if window:
        w = {**window["window"], "from": iso(window["window"]["from"]), "until": iso(window["window"]["until"])}
        schema["tasks"]["held"] = {"anchor_table": window["anchor_table"], "window": w, "split": split}
    for table in tables:
        keys = ["id", "id2"] if table.key == "pair" else ["id"]
        columns = {name: {"stype": "identifier"} for name in keys}
        columns.update({name: {"stype": kind, **more} for name, kind, more in table.columns})
        about = {"file": table.name + table.ending, "primary_key": keys if len(keys) > 1 else "id", "columns": columns}
        if table.timed:
            columns["at"] = {"stype": "timestamp"}
            about["temporal_column"] = "at"
        if table.always:
            about["known"] = "always"
        for name, column in columns.items():
            if column["stype"] == "timestamp":
                form, optional, _ = table.forms[name]
                if not optional or draw.random() < 0.5:
                    column["format"] = form
        for i, (parent, _) in enumerate(table.links):
            names = [f"to{i}", f"to{i}b"] if parent.key == "pair" else [f"to{i}"]
            for name in names:
                columns[name] = {"stype": "identifier"}
            if len(names) == 1:
                columns[names[0]]["foreign_key"] = f"{parent.name}.id"
            else:
                about.setdefault("foreign_keys", []).append({"columns": names, "table": parent.name, "references": ["id", "id2"]})
        schema["tables"][table.name] = about
    return schema


def cell_text(table, name, cell):
    if cell is None:
        return ""
    kind = next((kind for n, kind, _ in table.columns if n == name), "timestamp")
    return time_text(cell, table.forms[name][2]) if kind == "timestamp" else str(cell).lower() if kind == "boolean" else repr(cell) if kind == "numerical" else cell


def write(folder, tables, schema):
    folder.mkdir()
    for table in tables:
        path = folder / (table.name + table.ending)
        with (gzip.open if path.suffix == ".gz" else open)(path, "wt", newline="", encoding="utf-8") as f:
            out = csv.writer(f, delimiter=table.delimiter)
            out.writerow(schema["tables"][table.name]["columns"])
            for row in range(table.count):
                cells = table.key_cells(row, False)
                cells += [cell_text(table, name, cell) for (name, _, _), cell in zip(table.columns, table.cells[row])]
                cells += [cell_text(table, "at", table.times[row])] if table.timed else []
                for parent, up in table.links:
                    cells += parent.key_cells(up[row], True)
                out.writerow(cells)
    (folder / "schema.json").write_text(json.dumps(schema))


class Rdb:
    """A database file, read as src/tables/database/rdb.h describes it."""

    def __init__(self, path):
        self.bytes = path.read_bytes()
        count, = struct.unpack_from("<I", self.bytes, 32)
        self.sections = {}
        for i in range(count):
            kind, a, b, _, offset, size = struct.unpack_from("<IIIIQQ", self.bytes, 64 + 32 * i)
            self.sections[kind, a, b] = self.bytes[offset:offset + size]
        self.meta = json.loads(self.sections[1, 0, 0])
        self.stats = np.frombuffer(self.sections[2, 0, 0], "<f8").reshape(-1, 3)
        self.first = np.cumsum([0, *(len(t["columns"]) for t in self.meta["tables"])])

    def column(self, table, column):
        stype = self.meta["tables"][table]["columns"][column]["stype"]
        return np.frombuffer(self.sections[3, table, column], {"numerical": "<f8", "timestamp": "<i8", "boolean": "u1"}.get(stype, "<u4"))

    def place(self, table, name):
        return [c["name"] for c in self.meta["tables"][table]["columns"]].index(name)

    def scaled(self, table, column, values):
        mean, sd, low = self.stats[self.first[table] + column]
        x = np.asarray(values, float)
        if self.meta["tables"][table]["columns"][column]["log"]:
            x = np.log(np.maximum(x, low))
        return np.clip((x - mean) / sd, -10, 10)


# ---- what is checked ----

def same(seed, what, mine, its):
    if mine != its:
        differ = next((i for i, (a, b) in enumerate(zip(mine, its)) if a != b), min(len(mine), len(its)))
        raise SystemExit(f"seed {seed}: {what}: {mine[differ:differ + 1]} at {differ} of {len(mine)}, and {its[differ:differ + 1]} of {len(its)}")


def check_file(seed, rdb, tables, times, window):
    """Times, links, numbers and windows of a file."""
    link = 0
    for t, table in enumerate(tables):
        mine = times[table.name]
        if table.timed:
            its = rdb.column(t, rdb.place(t, "at")).tolist()
        elif (12, t, 0) in rdb.sections:
            its = [ALWAYS if x < -2**62 else x for x in np.frombuffer(rdb.sections[12, t, 0], "<i8").tolist()]
        else:
            its = [ALWAYS] * table.count
        same(seed, f"times of {table.name}", mine, its)
        for c, (name, kind, _) in enumerate(table.columns):
            if kind in ("numerical", "timestamp", "boolean"):
                null = {"numerical": math.nan, "timestamp": -2**63, "boolean": 2}[kind]
                its = [None if x == null or x != x else x for x in rdb.column(t, rdb.place(t, name)).tolist()]
                same(seed, f"{table.name}.{name}", [row[c] for row in table.cells], its)
        for index in sorted(range(len(table.links)), key=lambda i: (table.links[i][0].key == "pair", i)):  # foreign_keys come last
            mine = [u if isinstance(u, int) else 2**32 - 1 for u in table.links[index][1]]
            same(seed, f"link {index} of {table.name}", mine, np.frombuffer(rdb.sections[6, link, 0], "<u4").tolist())
            link += 1
    if not window:
        return []
    questions, t = window_rows(tables, times, window), len(tables)
    same(seed, "rows of windows", [a for a, _, _, _ in questions], np.frombuffer(rdb.sections[6, link, 0], "<u4").tolist())
    same(seed, "times of windows", [at for _, at, _, _ in questions], rdb.column(t, 0).tolist())
    its = [None if x != x or (rdb.column(t, 1).dtype == np.uint8 and x == 2) else x for x in rdb.column(t, 1).tolist()]
    same(seed, "labels of windows", [label is None for _, _, label, _ in questions], [label is None for label in its])
    if any(label is not None and not math.isclose(label, mine, rel_tol=1e-9, abs_tol=1e-9) for (_, _, mine, _), label in zip(questions, its)):
        same(seed, "labels of windows", [label for _, _, label, _ in questions], its)
    return questions


def parts(pairs):
    """How many rows each part has, of pairs of the time and when the label is known; None: there is no label."""
    found = collections.Counter()
    for asked, known in pairs:
        if known is None:
            found["none"] += 1
        elif asked >= VALIDATION:
            found["test"] += 1
        else:
            limit = TRAIN if asked < TRAIN else VALIDATION
            found[("train" if asked < TRAIN else "validation") if known < limit else "none"] += 1
    return {part: found[part] for part in ("train", "validation", "test", "none")}


def check_parts(seed, told, tables, times, window, questions):
    t0 = tables[0]
    pairs = {"asked": [(t0.times[r], t0.known(0, r, t0.times[r]) if t0.cells[r][0] is not None else None) for r in range(t0.count)]}
    if window:
        pairs["held"] = [(at, known if label is not None else None) for _, at, label, known in questions]
    for task in told["tasks"]:
        mine = parts(pairs[task["name"]])
        if mine != {part: task[part] for part in mine}:
            raise SystemExit(f"seed {seed}: task {task['name']}: Python has {mine}, Pith {task}")
        left = sum(label is None for _, _, label, _ in questions) if task["name"] == "held" else 0
        same(seed, "left out", [left], [task.get("left_out", 0)])


def known_numbers(rdb, tables, times, window, questions, asked):
    """All numbers, as the model reads them, of rows and cells that are known before the question."""
    numbers = []
    for t, table in enumerate(tables):
        for c, (name, kind, _) in enumerate(table.columns):
            if kind == "numerical":
                cells = [table.cells[r][c] for r in range(table.count)
                         if table.cells[r][c] is not None and times[table.name][r] < asked and table.known(c, r, times[table.name][r]) < asked]
                numbers.append(rdb.scaled(t, rdb.place(t, name), cells))
    if window and window["window"]["aggregate"] != "any":
        numbers.append(rdb.scaled(len(tables), 1, [label for _, _, label, known in questions if label is not None and known < asked]))
    return np.concatenate(numbers)


def check_inputs(seed, place, key, known, own):
    """What the network is given: every number in it is known, or stands in the row that is asked."""
    states, numbers = (np.load(place / f"{name}.npy").ravel() for name in ("state", "number"))
    given = numbers[states == 0].astype(float)
    allowed = np.concatenate([known, own])
    for x in given:
        if not allowed.size or np.abs(allowed - x).min() > 1e-5 * (1 + abs(x)):
            raise SystemExit(f"seed {seed}: question {key}: the number {x} is not known when it is asked")
    return len(given)


def change(draw, tables, times):
    """Draws anew what is known after the moment: rows of the future, which stay there, and single cells."""
    for table in tables:
        for row in range(table.count):
            late, old = times[table.name][row] > MOMENT, table.cells[row]
            unknown = [late or table.known(c, row, times[table.name][row]) > MOMENT for c in range(len(table.columns))]
            if late and table.timed:
                table.times[row] = MOMENT + 1 + draw.randrange(BEGIN + DAYS * DAY - MOMENT)
            new = table.row(draw, row, "later")
            keep = [not u or (name == "seen" and not late) for u, (name, _, _) in zip(unknown, table.columns)]
            table.cells[row] = [a if kept else b for a, b, kept in zip(old, new, keep)]
            for parent, up in table.links if late else ():
                if isinstance(up[row], int) and times[parent.name][up[row]] > MOMENT:
                    # Rows without times may name each other alone, and leave the future with that.
                    up[row] = draw.choice([r for r in range(parent.count) if times[parent.name][r] > MOMENT]) if parent.timed else up[row]
                elif table.timed:
                    up[row] = draw.randrange(parent.count)


def run(seed, *words, code=0, **more):
    done = subprocess.run([PITH, *map(str, words)], capture_output=True, text=True, check=False, **more)
    if done.returncode != code:
        raise SystemExit(f"seed {seed}: {words}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def measured(seed, run_of):
    """What model and baselines reach on the validation rows, without what is said of all parts."""
    told = json.loads(run(seed, "eval", run_of, "--baseline", "--split", "validation", "--json"))
    told.pop("left_out", None)
    return sorted((f"{name}: {key}", value) for name, one in {"model": told, **told.pop("baselines")}.items() for key, value in one.items())


def answers(seed, place, name, task, keys):
    """What the model and the baselines say."""
    run(seed, "train", place / f"{name}.rdb", "--task", task, "-o", place / f"{name}-run", "--hyperparameters", place / "config.json", "--no-compare")
    return run(seed, "predict", place / f"{name}-run", "--rows", "-", input=keys).splitlines(), measured(seed, place / f"{name}-run")


def questions_of(tables, window, questions):
    """Keys and times of what is asked, and the numbers in the rows that are asked."""
    if window:
        anchor = next(t for t in tables if t.name == window["anchor_table"])
        return [("\t".join([*anchor.key_cells(a, False), time_text(at, "%Y-%m-%dT%H:%M:%S")]), at, None) for a, at, _, _ in questions if at <= MOMENT]
    t0 = tables[0]
    return [("\t".join(t0.key_cells(r, False)), t0.times[r], r) for r in range(t0.count) if t0.times[r] <= MOMENT]


def check(seed):
    draw = random.Random(seed)
    tables = draw_database(draw)
    window = draw_window(draw, tables) if draw.random() < 0.7 else None
    schema, times = schema_of(draw, tables, window), row_times(tables)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "config.json").write_text(json.dumps(CONFIG))
        write(place / "now", tables, schema)
        run(seed, "preprocess", place / "now", "-o", place / "now.rdb")
        rdb = Rdb(place / "now.rdb")
        questions = check_file(seed, rdb, tables, times, window)
        told = json.loads(run(seed, "inspect", place / "now.rdb", "--json"))
        check_parts(seed, told, tables, times, window, questions)
        able = [t["name"] for t in told["tasks"] if t["train"] > 4 and t["validation"] > 4]
        task = draw.choice(able) if able else None
        if not task:
            return 0, 0
        asked = questions_of(tables, window if task == "held" else None, questions)
        draw.shuffle(asked)
        keys = "".join(f"{key}\n" for key, _, _ in asked[:100])
        first = answers(seed, place, "now", task, keys)
        numbers = 0
        for key, at, row in asked[:3]:
            run(seed, "predict", place / "now-run", "--rows", "-", "--inputs", place / "in", "-o", place / "said", input=f"{key}\n")
            own = [rdb.scaled(0, rdb.place(0, n), [tables[0].cells[row][c]]) for c, (n, kind, _) in enumerate(tables[0].columns)
                   if kind == "numerical" and tables[0].cells[row][c] is not None and "known_at" not in tables[0].columns[c][2]] if row is not None else []
            numbers += check_inputs(seed, place / "in", key, known_numbers(rdb, tables, times, window, questions, at), np.concatenate([*own, []]))
        change(draw, tables, times)
        again = row_times(tables)
        for table in tables:
            same(seed, "the future", [t > MOMENT for t in times[table.name]], [t > MOMENT for t in again[table.name]])
        write(place / "later", tables, schema)
        run(seed, "preprocess", place / "later", "-o", place / "later.rdb")
        check_file(seed, Rdb(place / "later.rdb"), tables, again, window)
        kinds = [(t.name, t.timed, t.always, [p.name for p, _ in t.links]) for t in tables]
        second = answers(seed, place, "later", task, keys)
        for mine, its in zip(first, second):
            same(seed, f"the future changes answers to {task}: {kinds}", mine, its)
        other = run(seed, "predict", place / "now-run", "--database", place / "later.rdb", "--rows", "-", input=keys).splitlines()
        same(seed, "--database", first[0], other)
        return len(asked[:100]), numbers


begin, seed, sums = time.monotonic(), FIRST, (0, 0)
while seed == FIRST or time.monotonic() - begin < SECONDS:
    sums = tuple(a + b for a, b in zip(sums, check(seed)))
    seed += 1
print(f"{seed - FIRST} databases, {sums[0]} questions, {sums[1]} numbers in contexts: no answer knows the future")
