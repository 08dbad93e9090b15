"""Tables as programs write them: what is known when, how times and keys are written, questions that have no answer yet. PITH SOURCE."""
import datetime
import json
import random
import sys
import unittest

from command import SOURCE, Command

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
        result = self.run_pith(data, "--task", task, "-o", place, *words, verb="train")
        self.assertEqual(result.returncode, 0, result.stderr)

    def asked(self, place, keys):
        result = self.run_pith(place, "--rows", "-", verb="predict", stdin="\n".join(keys).encode())
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
