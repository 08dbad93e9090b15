"""pith preprocess, train, eval and predict on tests/data/shop: PITH FOLDER [--long].

Without --long: messages, a short run, interruptions. With it: the marks that a model must reach, and ablations, each trained and
measured in the ablated state. Marks and their origin: a model in PyTorch reached AUROC 0.801 and logloss 0.498 in 800 steps,
gradient-boosted trees over hand-made aggregates 0.802 and 0.495.
"""
import csv
import gzip
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PITH, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
SHOP = ROOT / "tests/data/shop"
faults = []


def check(ok, what):
    if not ok:
        faults.append(what)
        print("FAULT", what, flush=True)


def run(*args, code=0, **more):
    done = subprocess.run([PITH, *map(str, args)], capture_output=True, text=True, check=False, **more)
    check(done.returncode == code, f"{args}: exit {done.returncode}, {done.stderr[-400:]}")
    return done


def train(data, place, steps, **config):
    file = place.with_suffix(".config.json")
    file.write_text(json.dumps(config))
    begin = time.monotonic()
    run("train", data, "--task", "returned", "-o", place, "--steps", steps, "--hyperparameters", file, "--evaluate-every", 100000, "--threads", 2, "--no-compare")
    result = json.loads(run("eval", place, "--json", "--threads", 2).stdout)
    print(f"{place.name}: {steps} steps, {time.monotonic() - begin:.0f} s, auroc {result['auroc']:.4f} {result['auroc_interval']}, "
          f"logloss {result['logloss']:.4f}", flush=True)
    return result


def shuffled(folder):
    """The shop with customers and products of the orders permuted."""
    shutil.copytree(SHOP, folder)
    with open(SHOP / "orders.csv", newline="") as f:
        rows = list(csv.reader(f))
    draw = random.Random(1)
    for column in (1, 2):
        keys = [row[column] for row in rows[1:]]
        draw.shuffle(keys)
        for row, key in zip(rows[1:], keys):
            row[column] = key
    with open(folder / "orders.csv", "w", newline="") as f:
        csv.writer(f).writerows(rows)


def long(work):
    data = work / "shop.rdb"
    run("preprocess", SHOP, "-o", data)
    full = train(data, work / "full", 800)
    check(full["auroc"] >= 0.79 and full["logloss"] <= 0.505, f"the model reaches {full}")
    hidden = json.loads(run("eval", work / "full", "--importance", "--json").stdout)["importance"]
    print([(h["table"], h.get("column"), round(h["loss_rise"], 4)) for h in hidden], flush=True)
    rise = {(h["table"], h.get("column")): h["loss_rise"] for h in hidden}
    labels, texts = rise["orders", "returned"], rise["products", "description"]
    check(labels > 0.03 and texts > 0.01 and abs(rise["orders", "quantity"]) < min(labels, texts), f"importance {rise}")
    alone = train(data, work / "alone", 400, hide_children=True)
    check(alone["auroc"] <= 0.69, f"without the children of parents: {alone}")
    silent = train(data, work / "silent", 800, no_text=True)
    check(silent["auroc"] <= full["auroc"] - 0.015, f"without texts: {silent}")
    shuffled(work / "shuffled-shop")
    run("preprocess", work / "shuffled-shop", "-o", work / "shuffled.rdb")
    lost = train(work / "shuffled.rdb", work / "shuffled", 300)
    check(lost["auroc"] <= 0.56, f"with shuffled keys: {lost}")


def interrupted(work, data):
    """A run that is killed again and again ends in the same bytes."""
    words = ["train", data, "--task", "returned", "--steps", 30, "--save-every", 2, "--evaluate-every", 1000, "--threads", 2, "--no-compare"]
    config = work / "small.json"
    config.write_text('{"batch": 8, "cells": 120, "width": 8}')
    words = [*map(str, words), "--hyperparameters", str(config)]
    run(*words, "-o", work / "straight")
    draw, kills = random.Random(3), 0
    for _ in range(12):
        process = subprocess.Popen([PITH, *words, "-o", str(work / "killed")], stderr=subprocess.DEVNULL)
        try:
            process.wait(draw.uniform(0.05, 1.5))
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    print(f"killed {kills} times", flush=True)
    run(*words, "-o", work / "killed")
    check((work / "straight/model.bin").read_bytes() == (work / "killed/model.bin").read_bytes(), "an interrupted run differs")
    check("another" in run(*words, "-o", work / "straight", "--seed", 4, code=1).stderr, "another run in the same directory")


def short(work):
    data = work / "shop.rdb"
    run("preprocess", SHOP, "-o", data)
    draft = json.loads(run("preprocess", SHOP, "--draft").stdout)
    given = json.loads((SHOP / "schema.json").read_text())
    for name, table in given["tables"].items():
        mine = draft["tables"][name]
        check(mine.get("primary_key") == table["primary_key"], f"{name}: primary key {mine}")
        check(mine.get("temporal_column") == table.get("temporal_column"), f"{name}: temporal column {mine}")
        for column, what in table["columns"].items():
            for member in ("stype", "foreign_key"):
                check(mine["columns"][column].get(member) == what.get(member), f"{name}.{column}: {mine['columns'][column]}")
    packed = work / "packed"
    shutil.copytree(SHOP, packed)
    (packed / "orders.csv.gz").write_bytes(gzip.compress((packed / "orders.csv").read_bytes()))
    (packed / "orders.csv").unlink()
    schema = packed / "schema.json"
    schema.write_text(schema.read_text().replace("orders.csv", "orders.csv.gz"))
    run("preprocess", packed, "-o", work / "packed.rdb")
    check(data.read_bytes() == (work / "packed.rdb").read_bytes(), "a gzip file gives another database")
    run("preprocess", work / "nowhere", "-o", work / "x.rdb", code=1)
    check(not (work / "x.rdb").exists(), "a failed call leaves a file")
    check("no task" in run("train", data, "--task", "sold", "-o", work / "x", code=1).stderr, "an unknown task")
    interrupted(work, data)
    keys = work / "keys.txt"
    keys.write_text("23000\n5\n23999\n")
    lines = [line.split("\t") for line in run("predict", work / "straight", "--rows", keys).stdout.splitlines()]
    check([k for k, _ in lines] == ["23000", "5", "23999"] and all(0 < float(p) < 1 for _, p in lines), f"answers {lines}")
    beside = json.loads(run("eval", work / "straight", "--baseline", "--json", "--threads", 2).stdout)
    names = ["constant", "entity mean", "trees: row", "trees: row, parents", "trees: row, parents, children"]
    check(list(beside["baselines"]) == names, f"baselines {list(beside['baselines'])}")
    check(0.77 < beside["baselines"][names[-1]]["auroc"] < 0.79 and beside["rows"] == 3600, f"baselines {beside}")
    schema = json.loads((SHOP / "schema.json").read_text())
    schema["tasks"]["active"] = {
        "anchor_table": "customers", "target_stype": "categorical", "known_delay_seconds": 30 * 86400,
        "query": "SELECT customer_id AS anchor, t AS time, CASE WHEN EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id "
                 "AND o.ordered_at > t AND o.ordered_at <= datetime(t, '+30 days')) THEN 'busy' ELSE 'gone' END AS target FROM customers c "
                 "JOIN (SELECT '2023-01-01 00:00:00' AS t UNION ALL SELECT '2023-06-01 00:00:00' UNION ALL SELECT '2023-10-01')",
        "split": schema["tasks"]["returned"]["split"]}
    (work / "tasks.json").write_text(json.dumps(schema))
    run("preprocess", SHOP, "--schema", work / "tasks.json", "-o", work / "tasks.rdb")
    run("train", work / "tasks.rdb", "--task", "active", "--steps", 20, "-o", work / "active", "--no-compare")
    said = run("predict", work / "active", "--rows", "-", input="5\t2023-10-01T00:00:00\n").stdout.split("\t")
    check(said[:2] == ["5", "2023-10-01T00:00:00"] and said[2] in ("busy", "gone") and 0.5 <= float(said[3]) <= 1, f"answer {said}")
    counts = json.loads(run("eval", work / "active", "--json").stdout)
    check(counts["rows"] == 1000 and 0 < counts["logloss"] < 1 and "auroc" not in counts, f"classes {counts}")
    check("macro f1" in run("eval", work / "active", "--baseline").stdout, "the table of classes")
    hidden = json.loads(run("eval", work / "straight", "--importance", "--json").stdout)["importance"]
    check(len(hidden) == 8 + 3 and [h["loss_rise"] for h in hidden] == sorted((h["loss_rise"] for h in hidden), reverse=True), f"{hidden}")
    check("loss rises" in run("eval", work / "straight", "--importance").stdout, "the table of importance")
    table = run("eval", work / "straight", "--baseline", "--split", "validation").stdout.splitlines()
    check([line[:30].strip() for line in table[2:]] == ["model", *names], f"table {table}")
    check("no row 'none'" in run("predict", work / "straight", "--rows", "-", code=1, input="none\n").stderr, "an unknown row")


with tempfile.TemporaryDirectory() as folder:
    (long if "--long" in sys.argv else short)(pathlib.Path(folder))
sys.exit(1 if faults else 0)
