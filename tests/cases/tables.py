"""Tables as programs write them: what is known when, how times and keys are written, questions that have no answer yet. PITH SOURCE."""
import csv
import datetime
import json
import math
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from command import PITH, SOURCE, Command

CASES = SOURCE / "tests/data/cases"


class Tables(Command):
    verb = "preprocess"

    def write(self, name, *lines):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")

    def make(self, source, name, *words):
        """Standard error of preprocessing, in which there may be warnings."""
        result = self.run_pith(source, *words, "-o", name)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.decode()

    def told(self, name):
        return json.loads(self.good(name, "--json", verb="inspect"))

    def trained(self, data, place, task, *words):
        compare = () if "--predictor" in words or "--compare" in words else ("--no-compare",)
        result = self.run_pith(data, "--task", task, "-o", place, *words, *compare, verb="train")
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.decode()

    def asked(self, place, keys, *words):
        result = self.run_pith(place, "--rows", "-", *words, verb="predict", stdin="\n".join(keys).encode())
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.decode()


class Known(Tables):
    """Rows without a time of their own."""

    def test_children(self):
        """Order lines are known when their order is: the lines of later orders change no answer."""
        said = []
        for name in ("past", "changed"):
            warned = self.make(CASES / "untimed-children" / name, f"{name}.rdb")
            self.assertIn("items: its rows have no time of their own", warned)
            self.trained(f"{name}.rdb", name, "returned", "--steps", "20")
            said.append(self.asked(name, map(str, range(200, 281))))
        self.assertEqual(*said)
        self.assertIn("items: its rows", " ".join(self.told("past.rdb")["warnings"]))
        self.assertEqual({t["name"]: t.get("time") for t in self.told("past.rdb")["tables"]},
                         {"products": None, "orders": "at", "items": "newest row that it names"})

    def test_always(self):
        """Where the schema says so, such rows are there before."""
        schema = json.loads((CASES / "untimed-children/past/schema.json").read_text())
        schema["tables"]["items"]["known"] = "always"
        self.write("always.json", json.dumps(schema))
        said = []
        for name in ("past", "changed"):
            self.assertEqual(self.make(CASES / "untimed-children" / name, f"{name}.rdb", "--schema", "always.json"), "")
            self.trained(f"{name}.rdb", name, "returned", "--steps", "20")
            said.append(self.asked(name, map(str, range(200, 281))))
        self.assertNotEqual(*said)
        schema["tables"]["orders"]["known"] = "always"
        self.write("twice.json", json.dumps(schema))
        self.bad(1, CASES / "untimed-children/past", "--schema", "twice.json", "-o", "x.rdb", says=("orders", "temporal_column", "known"))

    def refunds(self, between):
        """Whether an order is refunded; its refunds have no time, and name it or another table that names it."""
        day = [(datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=i)).isoformat() for i in range(600)]
        draw = random.Random(4)
        back = [draw.random() < 0.4 for _ in range(600)]
        self.write("shop/orders.csv", "id,at,refunded", *[f"{i},{day[i]},{'yes' if back[i] else 'no'}" for i in range(600)])
        parent = "parcels" if between else "orders"
        if between:
            self.write("shop/parcels.csv", "id,order", *[f"{i},{i}" for i in range(600) if back[i]])
        self.write("shop/refunds.csv", "id,of,amount", *[f"{i},{i},5" for i in range(600) if back[i]])
        key = {"stype": "identifier"}
        schema = {"name": "shop", "tables": {
            "orders": {"file": "orders.csv", "primary_key": "id", "temporal_column": "at", "columns": {
                "id": key, "at": {"stype": "timestamp"}, "refunded": {"stype": "boolean"}}},
            "parcels": {"file": "parcels.csv", "primary_key": "id", "columns": {"id": key, "order": {**key, "foreign_key": "orders.id"}}},
            "refunds": {"file": "refunds.csv", "primary_key": "id", "columns": {
                "id": key, "of": {**key, "foreign_key": f"{parent}.id"}, "amount": {"stype": "numerical"}}}},
            "tasks": {"back": {"anchor_table": "orders", "target_column": "refunded",
                               "split": {"kind": "time", "train_until": day[300], "validation_until": day[400]}}}}
        if not between:
            del schema["tables"]["parcels"]
        self.write("shop/schema.json", json.dumps(schema))
        self.make("shop", "shop.rdb")
        self.trained("shop.rdb", "run", "back", "--steps", "60")
        told = json.loads(self.run_pith("run", "--baseline", "--json", verb="eval").stdout)
        self.assertLess(told["auroc"], 0.8)
        self.assertLess(max(b["auroc"] for b in told["baselines"].values()), 0.8)

    def test_refunds(self):
        self.refunds(False)

    def test_refunds_over_parcels(self):
        self.refunds(True)


class Events(Tables):
    """4,000 events of 200 things: whether one is yes depends on its thing alone, and weakly."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.place = Path(folder.name)
        case = CASES / "relational-default-worse-than-constant"
        cls.schema = case / "schema.json"
        subprocess.run([sys.executable, case / "make.py"], cwd=cls.place, check=True)
        subprocess.run([PITH, "preprocess", "src", "--schema", cls.schema, "-o", "t.rdb"], cwd=cls.place, check=True)
        cls.told_by = {}
        for name, words in (("run", ()), ("chosen", ("--predictor", "auto"))):
            if words:
                shutil.copytree(cls.place / "run", cls.place / name)  # is trained: what answers is chosen
            done = subprocess.run([PITH, "train", "t.rdb", "--task", "yes", "-o", name, *words], cwd=cls.place, check=True, capture_output=True)
            cls.told_by[name] = done.stderr.decode()
        with open(cls.place / "src/events.csv", newline="") as f:
            cls.events = list(csv.DictReader(f))

    def copy(self):
        """The tables in a folder that may be changed."""
        shutil.copytree(self.place / "src", self.dir / "src")
        return self.dir / "src"

    def add(self, *rows):
        with open(self.copy() / "events.csv", "a", newline="") as f:
            csv.writer(f).writerows(rows)
        self.make("src", "new.rdb", "--schema", self.schema)


class Best(Events):
    def test_step(self):
        """The best step is kept, the training ends early, and is better than the constant."""
        log = [json.loads(line) for line in (self.place / "run/log.jsonl").read_text().splitlines()]
        losses = {line["step"]: line["validation"]["logloss"] for line in log}
        self.assertLess(max(losses), 1600)
        told = json.loads(self.run_pith(self.place / "run", "--json", verb="eval").stdout)
        self.assertLess(told["logloss"], told["constant_logloss"])
        # the constant: the share of yes in training, for all
        train = [int(e["yes"]) for e in self.events if e["at"] < "2016"]
        test = [int(e["yes"]) for e in self.events if e["at"] >= "2018"]
        share = sum(train) / len(train)
        wanted = -sum(math.log(share if yes else 1 - share) for yes in test) / len(test)
        self.assertAlmostEqual(told["constant_logloss"], wanted, 4)
        validation = json.loads(self.run_pith(self.place / "run", "--json", "--split", "validation", verb="eval").stdout)
        self.assertAlmostEqual(validation["logloss"], min(losses.values()), 5)

    def test_said(self):
        """Each verb says that the thing's mean does better; the choice is noted, and is what answers."""
        said = [self.told_by["run"], self.run_pith(self.place / "run", verb="eval").stderr.decode(),
                self.run_pith(self.place / "run", "--rows", "-", verb="predict", stdin=b"1").stderr.decode()]
        for one in said:
            self.assertEqual(one.count("'entity mean' does better than the model"), 1)
        self.assertIn("'entity mean' answers", self.told_by["chosen"])
        self.assertEqual(json.loads((self.place / "chosen/run.json").read_text())["answers"], "entity mean")
        one, other = (json.loads(self.run_pith(self.place / name, "--json", verb="eval").stdout) for name in ("run", "chosen"))
        self.assertLess(other["logloss"], one["logloss"])

    def means(self, keys, *words):
        """Answers are (yes + w share) / (number + w) of the thing's earlier events, with one w for all, a power of two."""
        train = [int(e["yes"]) for e in self.events if e["at"] < "2016"]
        said = dict(line.split("\t") for line in self.asked(self.place / "chosen", keys, *words).splitlines())
        found = set()
        for key in keys:
            event = next(e for e in self.events if e["event_id"] == key)
            earlier = [int(e["yes"]) for e in self.events if e["thing_id"] == event["thing_id"] and e["at"] < event["at"] and e["yes"]]
            fits = {w for w in (2.0**k for k in range(-1, 9))
                    if abs((sum(earlier) + w * sum(train) / len(train)) / (len(earlier) + w) - float(said[key])) < 2e-6}
            found = fits if not found else found & fits
        self.assertEqual(len(found), 1)

    def test_means(self):
        self.means([str(k) for k in range(100, 4000, 300)])

    def test_means_of_new_rows(self):
        """The same of events that came later, of a thing that was known and of one that was not."""
        new = [["4000", "2020-06-01 10:00:00", "3", "a", "new", "1"], ["4001", "2020-06-02 10:00:00", "3", "z", "new row", ""],
               ["4002", "2020-06-03 10:00:00", "777", "a", "new row", ""]]
        self.add(*new)
        with open(self.dir / "src/things.csv", "a") as f:
            f.write("777,new thing\n")
        self.make("src", "new.rdb", "--schema", self.schema)
        before, names = self.events, list(self.events[0])
        self.addCleanup(setattr, self, "events", before)
        self.events = before + [dict(zip(names, row)) for row in new]
        self.means([*map(str, range(100, 4000, 600)), "4000", "4001", "4002"], "--database", "new.rdb")


class NewRows(Events):
    """Rows that came after the training."""

    KEYS = [str(k) for k in range(5, 4000, 97)]

    def test_old_rows(self):
        """Old rows have the same answers, whatever came later, also rows that would change means and classes; a new one is answered
        as a model without steps over the new database answers it."""
        old = self.asked(self.place / "run", self.KEYS)
        self.add(["4000", "2020-06-01 10:00:00", "3", "a", "new row", ""])
        new = self.asked(self.place / "run", [*self.KEYS, "4000"], "--database", "new.rdb")
        self.assertEqual(new[:len(old)], old)
        self.trained("new.rdb", "zero", "yes", "--from", self.place / "run", "--steps", "0")
        self.assertEqual(self.asked("zero", [*self.KEYS, "4000"]), new)
        for source in ("src", self.packed()):
            self.assertEqual(self.asked(self.place / "run", [*self.KEYS, "4000"], "--database", source), new)
        shutil.copy(self.dir / "src/events.csv", self.dir / "src/events.tsv")
        self.bad(1, self.place / "run", "--database", "src", "--rows", "-", verb="predict", stdin=b"5", says=("events.csv", "events.tsv"))

    def packed(self):
        """The same tables in an SQLite file."""
        db = sqlite3.connect(self.dir / "new.sqlite")
        for name in ("things", "events"):
            with open(self.dir / f"src/{name}.csv", newline="") as f:
                head, *rows = csv.reader(f)
            db.execute(f"CREATE TABLE {name} ({', '.join(head)})")
            db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(head))})", rows)
        db.commit()
        db.close()
        return "new.sqlite"

    def test_unknown_keys(self):
        """One unknown key is an error in its line, and the exit code; the other answers are there."""
        keys = [*self.KEYS[:3], "nobody", *self.KEYS[3:5], "4.0e9"]
        result = self.bad(1, self.place / "run", "--rows", "-", verb="predict", stdin="\n".join(keys).encode(), says="2 of 7 keys")
        lines = [line.split("\t") for line in result.stdout.decode().splitlines()]
        self.assertEqual([line[0] for line in lines], keys)
        self.assertEqual([line[1].startswith("error: ") for line in lines], [False] * 3 + [True] + [False] * 2 + [True])
        self.assertEqual([line[1] for line in lines if "error" not in line[1]],
                         [line.split("\t")[1] for line in self.asked(self.place / "run", self.KEYS[:5]).splitlines()])
        self.assertEqual(self.asked(self.place / "run", ["5.0"]).split("\t")[1], self.asked(self.place / "run", ["5"]).split("\t")[1])

    def test_frozen(self):
        """Statistics and classes stay those of the training, where an early row with an enormous number is added, and a class that was
        not there, to another thing than that of the question."""
        source = self.copy()
        for place, extra in (("old", ""), ("new", "9000,2010-01-05 10:00:00,199,other,9e9\n")):
            (self.dir / place).mkdir()
            shutil.copy(source / "things.csv", self.dir / place)
            rows = [",".join((e["event_id"], e["at"], str(int(e["thing_id"]) % 199), e["kind"], str(int(e["event_id"]) % 7 + 1))) for e in self.events[:1500]]
            (self.dir / place / "events.csv").write_text("event_id,at,thing_id,kind,amount\n" + "\n".join(rows) + "\n" + extra)
            schema = json.loads(self.schema.read_text())
            columns = schema["tables"]["events"]["columns"]
            del columns["note"], columns["yes"]
            columns["amount"] = {"stype": "numerical"}
            split = {"kind": "time", "train_until": "2012-01-01", "validation_until": "2013-01-01"}
            schema["tasks"] = {n: {"anchor_table": "events", "target_column": c, "observation_time_column": "at", "split": split, **more}
                               for n, c, more in (("amount", "amount", {}), ("kind", "kind", {}), ("place", "amount", {"rank": True}))}
            self.write(f"{place}/schema.json", json.dumps(schema))
            self.make(place, f"{place}.rdb")
        keys = [str(k) for k in range(900, 1500, 50)]
        for task in ("amount", "kind", "place"):
            for words in (("--steps", "3"), ("--steps", "3", "--predictor", "auto")):
                run = task + words[-1]
                self.trained("old.rdb", run, task, *words)
                self.assertEqual(self.asked(run, keys, "--database", "new.rdb"), self.asked(run, keys))
                self.asked(run, ["9000"], "--database", "new.rdb")

    def test_moved(self):
        """A run and its database may be moved together, or the run alone if the database is named; old runs name it in full."""
        old = self.asked(self.place / "run", self.KEYS[:4])
        (self.dir / "far/away").mkdir(parents=True)
        shutil.copytree(self.place / "run", self.dir / "far/away/run")
        self.bad(1, "far/away/run", "--rows", "-", verb="predict", stdin=b"5", says="t.rdb")
        self.assertEqual(self.asked("far/away/run", self.KEYS[:4], "--database", self.place / "t.rdb"), old)
        shutil.copy(self.place / "t.rdb", self.dir / "far/away/t.rdb")
        self.assertEqual(self.asked("far/away/run", self.KEYS[:4]), old)
        self.assertEqual(json.loads((self.dir / "far/away/run/run.json").read_text())["database"], "../t.rdb")
        about = json.loads((self.dir / "far/away/run/run.json").read_text())
        about["database"] = str(self.place / "t.rdb")
        self.write("far/away/run/run.json", json.dumps(about))
        (self.dir / "far/away/t.rdb").unlink()
        self.assertEqual(self.asked("far/away/run", self.KEYS[:4]), old)
        # A run of an earlier version keeps nothing of its database, until it is given to train again.
        (self.dir / "far/away/run/kept.rdb").unlink()
        self.assertEqual(self.asked("far/away/run", self.KEYS[:4], "--database", self.place / "t.rdb"), old)
        self.add(["4000", "2020-06-01 10:00:00", "3", "a", "new row", ""])
        self.bad(1, "far/away/run", "--database", "new.rdb", "--rows", "-", verb="predict", stdin=b"5", says=("kept.rdb", "another database"))
        log = (self.dir / "far/away/run/log.jsonl").read_text()
        self.trained(self.place / "t.rdb", "far/away/run", "yes")  # is done: nothing is trained
        self.assertEqual((self.dir / "far/away/run/log.jsonl").read_text(), log)
        self.assertEqual(self.asked("far/away/run", self.KEYS[:4], "--database", "new.rdb"), old)

    def test_other_schemas(self):
        """A schema that is another one is refused, and the difference is named."""
        self.copy()
        schema = json.loads(self.schema.read_text())

        def refused(change, *says):
            other = json.loads(json.dumps(schema))
            change(other)
            self.write("other.json", json.dumps(other))
            self.make("src", "other.rdb", "--schema", "other.json")
            self.bad(1, self.place / "run", "--database", "other.rdb", "--rows", "-", verb="predict", stdin=b"5", says=("other.rdb", *says))

        def columns(other):
            return other["tables"]["events"]["columns"]

        refused(lambda o: columns(o).pop("note"), "'events'", "'note'", "is missing")
        refused(lambda o: columns(o)["kind"].update(stype="text"), "'kind'", "stype text", "categorical")
        refused(lambda o: columns(o)["thing_id"].pop("foreign_key"), "foreign key 1", "events.thing_id")
        refused(lambda o: columns(o)["note"].update(description="what was said"), "'note'", "description")
        refused(lambda o: columns(o)["note"].update(known_at={"delay_seconds": 5}), "'note'", "known_at")
        refused(lambda o: o["tables"]["things"]["columns"]["name"].update(stype="text"), "'things'", "'name'", "is new")
        refused(lambda o: o["tables"]["things"].pop("primary_key") and columns(o)["thing_id"].pop("foreign_key"), "'things'", "primary key")
        refused(lambda o: o["tasks"]["yes"].update(target_column="kind"), "task 'yes'", "something else")
        refused(lambda o: o["tasks"].update(no=o["tasks"].pop("yes")), "task 'yes'", "is missing")
        schema["tasks"]["yes"]["split"]["validation_until"] = "2019-01-01"  # the split stays that of the run
        self.write("other.json", json.dumps(schema, indent=3))
        self.make("src", "other.rdb", "--schema", "other.json")
        self.assertEqual(self.asked(self.place / "run", self.KEYS, "--database", "other.rdb"), self.asked(self.place / "run", self.KEYS))


class Windows(Tables):
    def test_beyond_the_data(self):
        """Windows that end after the last row have no answer, and are counted."""
        warned = self.make(SOURCE / "tests/data/shop", "a.rdb", "--schema", CASES / "window-beyond-data/schema.json")
        self.assertIn("24000 of 46000 questions are left out", warned)
        (task,) = self.told("a.rdb")["tasks"]
        self.assertEqual((task["test"], task["left_out"]), (5000, 24000))
        self.trained("a.rdb", "run", "cens", "--steps", "1")
        told = json.loads(self.run_pith("run", "--json", verb="eval").stdout)
        self.assertEqual((told["rows"], told["left_out"]), (5000, 24000))
        self.assertAlmostEqual(told["base_rate"], 0.5758, 4)


    def late(self, column, nulls=False, aggregate="sum"):
        """Nine shops whose parcels cost something that is known late; only what is known after day 60 differs, which may be nulls then."""
        said = []
        for place, word in (("past", 0), ("changed", 1)):
            draw = random.Random(3)
            rows = []
            for i in range(400):
                day = i // 4
                seen, other, cost = day + draw.randrange(1, 20), 61 + draw.randrange(40), draw.randrange(50)
                if word and (seen > 60 or i % 10 == 3):  # the others are never known
                    seen, cost = other, "" if nulls else 1000 - cost
                rows.append(f"{i},{i % 9},{self.day(day)},{'' if i % 10 == 3 else self.day(seen)},{cost}")
            self.write(f"{place}/shops.csv", "id,size", *[f"{i},{i * i}" for i in range(9)])
            self.write(f"{place}/parcels.csv", "id,shop,at,seen,cost", *rows)
            key, stamp = {"stype": "identifier"}, {"stype": "timestamp"}
            schema = {"name": "late", "tables": {
                "shops": {"file": "shops.csv", "primary_key": "id", "columns": {"id": key, "size": {"stype": "numerical"}}},
                "parcels": {"file": "parcels.csv", "primary_key": "id", "temporal_column": "at", "columns": {
                    "id": key, "shop": {**key, "foreign_key": "shops.id"}, "at": stamp, "seen": {**stamp, **column},
                    "cost": {"stype": "numerical", "known_at": {"column": "seen"}}}}},
                "tasks": {"costs": {"anchor_table": "shops", "window": {
                    "table": "parcels", "aggregate": aggregate, "column": "cost", "seconds": 5 * 86400, "every_seconds": 2 * 86400,
                    "from": self.day(5), "until": self.day(90)}, "split": {"kind": "time", "train_until": self.day(40), "validation_until": self.day(55)}}}}
            self.write(f"{place}/schema.json", json.dumps(schema))
            self.warned = self.make(place, f"{place}.rdb")
            shutil.rmtree(self.dir / f"{place}-run", ignore_errors=True)
            self.trained(f"{place}.rdb", f"{place}-run", "costs", "--steps", "10")
            said.append(self.asked(f"{place}-run", [f"{shop}\t{self.day(59)}T00:00:00" for shop in range(9)]))
        return said

    @staticmethod
    def day(n):
        return (datetime.date(2024, 1, 1) + datetime.timedelta(days=n)).isoformat()

    def test_late_numbers(self):
        """A sum is known when all its numbers are; those that are never known are in no sum and no mean."""
        self.assertEqual(*self.late({"known_at": {"column": "seen"}}))
        self.assertNotIn("'seen'", self.warned)

    def test_late_nulls(self):
        """That a number is null is known no earlier than a number would be, so a sum or a count waits for it as well."""
        for aggregate in ("sum", "count", "any"):
            self.assertEqual(*self.late({"known_at": {"column": "seen"}}, True, aggregate))
        # One window, of the days 2 to 7, holds a number that is known on day 6 and a null that is known on day 30.
        self.write("past/shops.csv", "id,size", "0,1")
        self.write("past/parcels.csv", "id,shop,at,seen,cost", f"0,0,{self.day(4)},{self.day(6)},5", f"1,0,{self.day(5)},{self.day(30)},",
                   f"2,0,{self.day(9)},{self.day(9)},7")
        schema = json.loads((self.dir / "past/schema.json").read_text())
        schema["tasks"]["costs"]["window"].update({"aggregate": "sum", "from": self.day(2), "until": self.day(3)})
        self.write("past/schema.json", json.dumps(schema))
        self.make("past", "one.rdb")
        _, target, known = next(t for t in self.told("one.rdb")["tables"] if t["name"] == "costs")["columns"]
        self.assertEqual((target["least"], target["greatest"]), (5, 5))
        thirty = int(datetime.datetime(2024, 1, 31, tzinfo=datetime.timezone.utc).timestamp())
        self.assertEqual((known["least"], known["greatest"]), (thirty, thirty))

    def test_late_answers(self):
        """When the answer of a query is known is itself known no earlier."""
        said = []
        for place, later in (("past", 0), ("changed", 25)):
            rows = []
            for i in range(400):
                paid = i // 4 + i * 7 % 23
                rows.append(f"{i},{i % 9},{self.day(i // 4)},{self.day(paid + later if paid > 60 else paid)},{'yes' if paid % 3 else 'no'}")
            self.write(f"{place}/orders.csv", "id,shop,at,paid,late", *rows)
            self.write(f"{place}/shops.csv", "id,size", *[f"{i},{i * i}" for i in range(9)])
            key, stamp = {"stype": "identifier"}, {"stype": "timestamp"}
            paid = {"known_at": {"column": "paid"}}
            self.write(f"{place}/schema.json", json.dumps({"name": "paid", "tables": {
                "shops": {"file": "shops.csv", "primary_key": "id", "columns": {"id": key, "size": {"stype": "numerical"}}},
                "orders": {"file": "orders.csv", "primary_key": "id", "temporal_column": "at", "columns": {
                    "id": key, "shop": {**key, "foreign_key": "shops.id"}, "at": stamp, "paid": {**stamp, **paid}, "late": {"stype": "boolean", **paid}}}},
                "tasks": {"late": {"anchor_table": "orders", "target_stype": "boolean", "query": "SELECT id AS anchor, at AS time, late AS target, paid AS known_at FROM orders",
                                   "split": {"kind": "time", "train_until": self.day(40), "validation_until": self.day(55)}}}}))
            self.make(place, f"{place}.rdb")
            self.trained(f"{place}.rdb", f"{place}-run", "late", "--steps", "10")
            said.append(self.asked(f"{place}-run", [f"{i}\t{self.day(i // 4)}T00:00:00" for i in range(200, 244)]))
        self.assertEqual(*said)

    def test_early_times(self):
        """A time that says when a number is known tells what comes, unless it is known no earlier: that is a warning."""
        self.late({})
        self.assertIn("parcels: column 'seen' says when 'cost' is known", self.warned)
        self.late({"known_at": {"delay_seconds": 0}})
        self.assertNotIn("'seen'", self.warned)


class Times(Tables):
    """Forms of times."""

    FORMS = {"iso": "%Y-%m-%dT%H:%M:%S", "utc": "%Y-%m-%d %H:%M:%S UTC", "zone": "%Y-%m-%d %H:%M:%S +00:00", "american": "%m/%d/%Y %I:%M:%S %p",
             "european": "%d.%m.%Y %H:%M:%S", "compact": "%Y%m%dT%H%M%SZ", "digits": "%Y%m%d%H%M%S", "mail": "%a, %d %b %Y %H:%M:%S GMT",
             "slashes": "%Y/%m/%d %H:%M:%S", "oracle": "%d-%b-%y %H:%M:%S"}

    def times(self):
        return [datetime.datetime(2024, 1, 1 + 5 * i % 28, 7 * i % 24, i, 7, tzinfo=datetime.timezone.utc) for i in range(60)]

    def test_forms(self):
        """Each form is recognised and means the same; the draft names it, and is read back."""
        texts = {name: [t.strftime(form) for t in self.times()] for name, form in self.FORMS.items()}
        for name, factor in (("epoch", 1), ("epoch_ms", 1000), ("epoch_us", 10**6), ("epoch_ns", 10**9)):
            texts[name] = [str(int(t.timestamp()) * factor) for t in self.times()]
        texts["float_time"] = [str(t.timestamp()) for t in self.times()]
        self.write("in/a.csv", "id," + ",".join(texts), *[f"{i}," + ",".join(f'"{cells[i]}"' for cells in texts.values()) for i in range(60)])
        (self.dir / "draft.json").write_bytes(self.good("in", "--draft"))
        draft = json.loads((self.dir / "draft.json").read_text())["tables"]["a"]["columns"]
        self.assertEqual({name: c["stype"] for name, c in draft.items() if name != "id"}, dict.fromkeys(texts, "timestamp"))
        self.assertEqual((draft["american"]["format"], draft["european"]["format"], draft["epoch_ms"]["format"]),
                         ("month/day/year", "day/month/year", "epoch_milliseconds"))
        for schema in ((), ("--schema", "draft.json")):
            self.make("in", "a.rdb", *schema)
            (table,) = self.told("a.rdb")["tables"]
            stamps = sorted(int(t.timestamp()) for t in self.times())
            self.assertEqual({c["name"]: (c["least"], c["greatest"], c["distinct"]) for c in table["columns"]},
                             dict.fromkeys(texts, (stamps[0], stamps[-1], 60)))

    def test_ambiguous(self):
        """Days and months that no cell tells apart are asked about."""
        self.write("in/a.csv", "id,on,x", *[f"{i},0{1 + i % 9}/0{1 + i * 2 % 9}/2024,{i}.5" for i in range(9)])
        self.bad(1, "in", "-o", "a.rdb", says=("a.csv", "'on'", '"format": "month/day/year" or "format": "day/month/year"'))
        columns = {"id": {"stype": "identifier"}, "on": {"stype": "timestamp"}, "x": {"stype": "numerical"}}
        for form, first in (("month/day/year", "2024-01-01"), ("day/month/year", "2024-01-01")):
            columns["on"]["format"] = form
            self.write("s.json", json.dumps({"name": "a", "tables": {"a": {"file": "a.csv", "columns": columns}}}))
            self.make("in", "a.rdb", "--schema", "s.json")
            found = next(c for c in self.told("a.rdb")["tables"][0]["columns"] if c["name"] == "on")
            self.assertEqual(datetime.datetime.fromtimestamp(found["least"], datetime.timezone.utc).date().isoformat(), first)
        columns["on"]["format"] = "roman"
        self.write("s.json", json.dumps({"name": "a", "tables": {"a": {"file": "a.csv", "columns": columns}}}))
        self.bad(1, "in", "--schema", "s.json", "-o", "a.rdb", says=("'roman' is no format of times", "epoch_seconds"))

    def test_no_times(self):
        """Numbers that keys and amounts may be stay numbers; a cell of another form than the others is named."""
        self.write("in/a.csv", "id,amount,phone,code", *[f"{i},{i * 37},{1700000000 + i * 7919 % 60},{20240101 + i % 28}" for i in range(60)])
        draft = json.loads(self.good("in", "--draft"))["tables"]["a"]["columns"]
        self.assertEqual({name: c["stype"] for name, c in draft.items()},
                         {"id": "identifier", "amount": "numerical", "phone": "numerical", "code": "numerical"})
        self.write("one/a.csv", "id,at", "1,31/01/2024", "2,2024-01-31")
        self.write("s.json", json.dumps({"name": "a", "tables": {"a": {"file": "a.csv", "columns": {"at": {"stype": "timestamp"}}}}}))
        self.bad(1, "one", "--schema", "s.json", "-o", "a.rdb", says=("row 2, column 'at'", "day/month/year"))


class Files(Tables):
    """Keys and files as spreadsheets and data frames write them."""

    def test_decimal_keys(self):
        """Keys of a column that has nulls become floating-point numbers."""
        for child, parent in (("{}.0", "{}"), ("{}", "{}.0"), ("{}.00", "{}.0"), ("{}", "{}")):
            with self.subTest(child=child, parent=parent):
                self.write("in/customers.csv", "customer_id,note", *[f"{parent.format(i)},of {i}" for i in range(9)])
                self.write("in/orders.csv", "order_id,customer_id", *[f"{i},{child.format(i % 9) if i % 5 else ''}" for i in range(40)])
                self.assertEqual(self.make("in", "a.rdb"), "")
                (link,) = self.told("a.rdb")["links"]
                self.assertEqual((link["name"], link["nulls"], link["dangling"]), ("orders.customer_id", 8, 0))

    def test_lost_keys(self):
        """A foreign key that joins nothing is a warning that names file, column and a key."""
        self.write("in/customers.csv", "id,note", "C-1,a b", "C-2,c d")
        self.write("in/orders.csv", "id,customer", "1,1", "2,2", "3,")
        key = {"stype": "identifier"}
        self.write("in/schema.json", json.dumps({"name": "in", "tables": {
            "customers": {"file": "customers.csv", "primary_key": "id", "columns": {"id": key, "note": {"stype": "text"}}},
            "orders": {"file": "orders.csv", "primary_key": "id", "columns": {"id": key, "customer": {**key, "foreign_key": "customers.id"}}}}}))
        warned = self.make("in", "a.rdb")
        for part in ("orders.csv", "'customer'", "none of the 2 keys", "'1'", "'customers'"):
            self.assertIn(part, warned)

    def test_delimiters(self):
        """Semicolons, tabs and bars in .csv files; capitals of the suffix; commas stay in quotation marks."""
        for delimiter in ",;\t|":
            self.write("in/T.CSV", delimiter.join(("id", '"a, b"', "x")), *[delimiter.join((str(i), f'"p; q{i % 3}"', f"{i}.5")) for i in range(30)])
            tables = json.loads(self.good("in", "--draft"))["tables"]
            self.assertEqual({name: c["stype"] for name, c in tables["T"]["columns"].items()},
                             {"id": "identifier", "a, b": "categorical", "x": "numerical"})

    def test_index(self):
        """The first column of pandas has no name; it is no key and no number."""
        self.write("in/a.csv", ",customer,v", *[f"{i},c{i % 4},{i}.5" for i in range(30)])
        table = json.loads(self.good("in", "--draft"))["tables"]["a"]
        self.assertEqual({name: c["stype"] for name, c in table["columns"].items()},
                         {"unnamed": "ignored", "customer": "categorical", "v": "numerical"})
        self.assertNotIn("primary_key", table)
        self.write("in/a.csv", "a,,v", "1,2,3")
        self.bad(1, "in", "--draft", says="column 2 has no name")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
