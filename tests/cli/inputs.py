#!/usr/bin/env python3
"""What texts are read from, and what results are written as: tables, lines of JSON, arguments; formats by the name of the output.

usage: inputs.py PITH SOURCE_DIR [unittest arguments]; needs NumPy (tests/requirements.txt) and the default model.
"""
import csv
import io
import json
import os
import subprocess
import sys
import time
import unittest

import numpy as np

from command import PITH, SOURCE, Command

TASKS = SOURCE / "tests/data/tasks"
LABELS, CROSS = TASKS / "labels-bert", TASKS / "cross-bert"
SHORT = ("--dim", "4")


class Inputs(Command):
    def write(self, name, data):
        (self.dir / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        return name

    def stored(self, name):
        """What a file has, for the module csv."""
        return io.StringIO((self.dir / name).read_bytes().decode(), newline="")

    def vectors(self, *texts):
        """The vectors of these texts, as lines of JSON."""
        return self.good(*SHORT, "-0", stdin=b"".join(t.encode() + b"\0" for t in texts)).decode().splitlines()

    def objects(self, *arguments, **keywords):
        """Rows without their vectors, and the vectors as they are written."""
        lines = self.good(*SHORT, *arguments, **keywords).decode().split("\n")[:-1]
        rows = [json.loads(line) for line in lines]
        vectors = [line[line.rindex('"embedding":') + 12: -1] for line in lines]
        return [{k: v for k, v in row.items() if k != "embedding"} for row in rows], vectors


class Columns(Inputs):
    def test_named(self):
        self.write("p.csv", 'sku,name,description\nA1,Lamp,"a small, warm lamp"\nB2,Chair,a chair\n')
        rows, vectors = self.objects("--column", "description", "p.csv")
        self.assertEqual(rows, [{"sku": "A1", "name": "Lamp", "description": "a small, warm lamp"},
                                {"sku": "B2", "name": "Chair", "description": "a chair"}])
        self.assertEqual(vectors, self.vectors("a small, warm lamp", "a chair"))
        self.assertEqual(self.objects("--field", "description", "p.csv"), (rows, vectors))
        self.write("p.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        self.assertEqual(self.objects("--column", "description", "p.jsonl"), (rows, vectors))
        self.assertEqual(self.objects("--column", "description", "--jsonl", stdin=(self.dir / "p.jsonl").read_bytes()), (rows, vectors))
        self.write("p.tsv", "sku\tname\tdescription\nA1\tLamp\ta small, warm lamp\nB2\tChair\ta chair\n")
        self.assertEqual(self.objects("--column", "description", "p.tsv"), (rows, vectors))
        self.assertEqual(self.objects("--column", "description", "p.csv", "p.tsv", "p.jsonl"), (rows * 3, vectors * 3))
        self.assertEqual(self.objects("--column", "name", "--keep", "sku", "p.csv")[0], [{"sku": "A1"}, {"sku": "B2"}])

    def test_joined(self):
        self.write("p.csv", "a,b,c\none,two,\n,,three\n")
        _, vectors = self.objects("--column", "a", "--column", "c", "--column", "b", "p.csv")
        self.assertEqual(vectors, self.vectors("one\ntwo", "three"))
        self.bad(2, *["--column", "a"] * 17, "p.csv", says="--column may be given 16 times")

    def test_guessed(self):
        for name, text in (("a.csv", "id,text,title\n1,x,y\n"), ("a.csv", "id,Content,title\n1,x,y\n"), ("a.csv", "body,text\ny,x\n"),
                           ("a.jsonl", '{"id": 1, "document": "x"}\n'), ("a.jsonl", '{"title": "x"}\n'), ("a.csv", "sentence\nx\n")):
            with self.subTest(text=text):
                self.assertEqual(self.objects(self.write(name, text))[1], self.vectors("x"))
        self.write("a.csv", "id,title,price\n1,x,2\n")
        self.bad(1, "a.csv", says=("a.csv, row 1 (line 2): there is no column 'text'", "the table has id, title, price", "--column"))
        self.write("a.csv", "body,content\nx,y\n")
        self.bad(1, "a.csv", says=("the table has body, content", "--column"))
        self.bad(1, "--column", "nmae", self.write("a.csv", "id,name\n1,x\n"), says=("no column 'nmae'", "has id, name"))
        self.bad(1, self.write("a.jsonl", '{"id": 1, "title": "x"}\n'), says=("a.jsonl:1: there is no field 'text'", "id, title", "--column"))
        # the first object decides
        self.bad(1, self.write("a.jsonl", '{"title": "x"}\n{"text": "x"}\n'), says=("a.jsonl:2", "no field 'title'"))

    def test_only_column(self):
        """Without a header the first text would be lost, which is said."""
        self.write("a.csv", "a cat\na dog\n")
        result = self.run_pith(*SHORT, "a.csv")
        self.assertEqual((result.returncode, len(result.stdout.splitlines())), (0, 1))
        self.assertEqual(result.stderr, b"warning: a.csv: the first row is used as the name of the column, 'a cat'\n")
        self.good(*SHORT, "-q", "a.csv")
        self.good(*SHORT, "--column", "a cat", "a.csv")

    def test_cells(self):
        """Quotes, line ends within them, CRLF, byte order marks, empty cells, blank lines, odd delimiters, old line ends."""
        wanted = ["a,b", 'say "x"', "two\nlines", "", "tail"]
        text = 'id,text\n1,"a,b"\n2,"say ""x"""\n3,"two\nlines"\n4,\n5,tail'
        for data in (text, "\ufeff" + text, text.replace("\n", "\r\n").replace("two\r\n", "two\n"), text.replace("\n4", "\n\n\r\n4"),
                     "\n\n" + text, text + "\n\n"):
            rows, vectors = self.objects(self.write("a.csv", data))
            self.assertEqual([row["text"] for row in rows], wanted)
            self.assertEqual(vectors, self.vectors(*wanted))
        for name, data in (("a.csv", "id;text\n1;a,b\n"), ("a.csv", "id|text\n1|a,b\n"), ("a.tsv", "id;text\n1;a,b\n"),
                           ("a.csv", "id\ttext\n1\ta,b\n"), ("A.CSV", "id,text\r1,\"a,b\"\r")):
            self.assertEqual(self.objects(self.write(name, data))[0], [{"id": "1", "text": "a,b"}])
        self.assertEqual(self.objects(self.write("a.csv", "text\nx\n\ny\n"))[1], self.vectors("x", "", "y"))
        self.assertEqual(self.objects(self.write("a.csv", ",text\n0,x\n"))[0], [{"unnamed": "0", "text": "x"}])  # pandas
        self.assertEqual(self.objects(self.write("a.csv", 'text,"a ""b"" \\ \t"\nx,"\x01 \\ \u2028"\n'))[0],
                         [{"text": "x", 'a "b" \\ \t': "\x01 \\ \u2028"}])

    def test_faults(self):
        for data, *says in (("", "a.csv is empty"), ("\ufeff", "a.csv is empty"), ("\n\n", "a.csv is empty"),
                            ("text,id\n\"x,1\ny,2\n", "row 1 (line 2)", "never closed"), ("\"text,id\nx,1\n", "header, column 1", "never closed"),
                            ("text,text\nx,y\n", "header, column 2", "the same name"), ("text,,id\nx,y,z\n", "header, column 2", "no name"),
                            ("text,id\nx\n", "row 1 (line 2): the row has 1 cell, but the header has 2"),
                            ("text,id\nx,1\nx,1,2\n", "row 2 (line 3): the row has 3 cells, but the header has 2"),
                            ("text,id\n\"x\ny\",1\n\nx,y,z,0\n", "row 2 (line 5)"),
                            ("text,id\nx\0y,1\n", "NUL byte"), ("te\0xt,id\nx,1\n", "NUL byte"),
                            (b"text,id\nx\xffy,1\n", "row 1 (line 2): column \"text\": not UTF-8 at byte 2", "--invalid replace"),
                            (b"te\xffxt,id\nx,1\n", "not UTF-8"), ("text,id\nx,1\n".encode("utf-16"), "UTF-16"),
                            ("text,id\nx,1\n".encode("utf-16-be"), "a.csv"), (",".join(f"c{i}" for i in range(20000)) + "\n", "too many")):
            with self.subTest(data=data[:60]):
                self.assertEqual(self.bad(1, self.write("a.csv", data), says=says).stdout.count(b"x\xff"), 0)
        self.assertEqual(self.good(*SHORT, self.write("a.csv", "text,id\n")), b"")
        self.assertEqual(self.objects("--invalid", "replace", self.write("a.csv", b"text,id\nx\xe2\x82y,1\n"))[0],
                         [{"text": "x\ufffdy", "id": "1"}])
        self.bad(1, "none.csv", says="none.csv: No such file or directory; a text, rather than a file, is given with --text")
        self.bad(1, "/", says="Is a directory")

    def test_errors(self):
        """One meaning for every verb, and for every kind of input."""
        self.write("a.csv", b"id,text\n1,x\n2\n3,y\n4,\xff\n")
        self.write("a.jsonl", b'{"id": 1, "text": "x"}\n{"id": 2}\n{"id": 3, "text": "y"}\n\xff\n')
        self.write("a.txt", b"x\n\xfe\ny\n\xff\n")
        for verb, *options in (("embed", *SHORT), ("tokenize",), ("embed", "--bm25", "english"), ("embed", "--long", "chunk", *SHORT),
                               ("classify", "-m", LABELS), ("rerank", "-m", CROSS, "--query", "x")):
            for name in ("a.csv", "a.jsonl", "a.txt"):
                with self.subTest(verb=verb, name=name):
                    result = self.bad(1, "--errors", "skip", *options, name, verb=verb, says="2 lines were left out")
                    self.assertEqual(len(result.stderr.splitlines()), 3)
                    self.assertEqual(len(result.stdout.splitlines()), 2)
                    rows = self.bad(1, "--errors", "report", *options, name, verb=verb, says="2 lines have no result").stdout.splitlines()
                    told = [json.loads(row) for row in rows if b'"error"' in row]
                    self.assertEqual([row["file"] for row in told], [name, name])
                    self.assertEqual([row["line"] for row in told], [3, 5] if name == "a.csv" else [2, 4])
                    if name == "a.csv":
                        self.assertEqual([row["row"] for row in told], [2, 4])
                    self.assertEqual([row for row in rows if b'"error"' not in row], result.stdout.splitlines())
        for name in ("v.npy", "v.f32", "v.csv", "v.tsv"):
            self.bad(1, "--errors", "skip", *SHORT, "-o", name, "a.csv", says="2 lines were left out")
        self.assertEqual(np.load(self.dir / "v.npy").shape, (2, 4))
        self.assertEqual((self.dir / "v.f32").stat().st_size, 32)
        self.assertEqual([row["id"] for row in csv.DictReader(self.stored("v.csv"))], ["1", "3"])
        self.bad(2, "--errors", "skip", "--resume", "-o", "v.npy", "a.csv", says="--errors skip does not go with --resume")
        self.bad(2, "--errors", "report", "-o", "v.npy", "a.csv", says="--errors report goes with --format jsonl")
        self.bad(2, "--errors", "report", "-o", "v.csv", "-m", LABELS, "a.csv", verb="classify", says="--errors report")
        many = self.bad(1, "--errors", "skip", *SHORT, stdin=b"\xff\n" * 3000, says="3000 lines were left out")
        self.assertEqual(len(many.stderr.splitlines()), 6)

    def test_mixed(self):
        self.write("a.csv", "text\nx\n")
        self.write("a.txt", "x\n")
        self.bad(2, "a.csv", "a.txt", says="a.txt has lines and a.csv has columns")
        self.bad(2, "a.csv", "-", says="standard input has lines")
        self.bad(2, "a.csv", "--text", "x", says="a text as an argument has lines")
        self.bad(2, "--jsonl", "a.csv", says="a.csv is a table by its name")
        self.bad(2, "--jsonl", "--text", "x", says="--jsonl and texts as arguments")
        self.bad(2, "-0", "a.csv", says="-0 goes with lines, and a.csv has columns")
        self.bad(2, "--id", "x", "a.txt", says="--column and --id go with --jsonl, and with files that have columns")
        self.bad(2, "--column", "x", stdin=b"x\n", says="go with --jsonl")

    def test_lines_as_before(self):
        """Standard input has lines, whatever a file of the name would hold."""
        self.write("a.csv", "text\nx\n")
        with (self.dir / "a.csv").open("rb") as file:
            result = subprocess.run([PITH, "embed", *SHORT], stdin=file, capture_output=True, cwd=self.dir, timeout=300)
        self.assertEqual(result.stdout.decode().splitlines(), self.vectors("text", "x"))

    def test_verbs(self):
        self.write("a.csv", "id,text,other\n1,a cat,x\n2,a dog,y\n")
        self.assertEqual(self.good("a.csv", verb="tokenize"), self.good(verb="tokenize", stdin=b"a cat\na dog\n"))
        self.assertEqual(self.good("--pair", "--pair-field", "other", "a.csv", verb="tokenize"),
                         self.good("--pair", verb="tokenize", stdin=b"a cat\tx\na dog\ty\n"))
        plain = self.rows("-m", LABELS, stdin=b"a cat\na dog\n", verb="classify")
        rows = self.rows("-m", LABELS, "a.csv", verb="classify")
        self.assertEqual([row["labels"] for row in rows], plain)
        self.assertEqual([row["id"] for row in rows], ["1", "2"])
        scores = [row["score"] for row in self.rows("-m", CROSS, "--query", "pet", stdin=b"a cat\na dog\n", verb="rerank")]
        rows = self.rows("-m", CROSS, "--query", "pet", "a.csv", verb="rerank")
        self.assertEqual(rows, [{"index": i, "id": str(i + 1), "score": score} for i, score in enumerate(scores)])
        self.bad(2, "-m", CROSS, "a.csv", verb="rerank", says="a.csv has documents; give the query with --query")
        for more in (("--long", "chunk"), ("--bm25", "english"), ("--dense", "--tokens")):
            self.assertEqual([row["id"] for row in self.rows(*more, "a.csv")], ["1", "2"])
        sums = self.good("--count", "a.csv", "-o", "counts.csv", verb="tokenize")
        self.assertEqual((sums, (self.dir / "counts.csv").read_bytes()), (b"", b"4\n4\n"))

    def test_resume(self):
        lines = [f"{i},row {i} of the table" for i in range(40)]
        self.write("a.csv", "n,text\n" + "\n".join(lines) + "\n")
        for name in ("v.csv", "v.jsonl", "v.npy"):
            arguments = ("--resume", "--id", "n", *SHORT, "-o", name, "a.csv")
            self.good(*arguments)
            whole = (self.dir / name).read_bytes()
            (self.dir / name).unlink()
            for cut in (0, 3, len(whole) // 2, len(whole) - 1):
                (self.dir / f"{name}.part").write_bytes(whole[:cut])
                self.good(*arguments)
                self.assertEqual((self.dir / name).read_bytes(), whole)
                (self.dir / name).unlink()
        self.good("--rows-per-file", "15", "--id", "n", *SHORT, "-o", "x.csv", "a.csv")
        ids = [row["id"] for i in range(3) for row in csv.DictReader(self.stored(f"x-0000{i}.csv"))]
        self.assertEqual(ids, [str(i) for i in range(40)])

    def test_long_rows(self):
        """A quotation mark that is never closed takes time and memory for the file once."""
        self.write("a.csv", b'text,id\n"' + b'a"" \n' * 1_000_000)
        began = time.monotonic()
        self.bad(1, "a.csv", says="never closed")
        self.assertLess(time.monotonic() - began, 60)
        self.write("a.csv", b"text,id\nx," + b"y" * (65 << 20) + b"\nz,2\n")
        result = self.bad(1, "--errors", "skip", *SHORT, "a.csv", says="longer than 64 MiB")
        self.assertEqual([json.loads(row)["text"] for row in result.stdout.splitlines()], ["z"])

    def test_pipe(self):
        """A table that a program writes row by row, through a pipe with a name."""
        os.mkfifo(self.dir / "a.csv")
        with subprocess.Popen([PITH, "embed", *SHORT, "a.csv"], stdout=subprocess.PIPE, cwd=self.dir) as child, \
                (self.dir / "a.csv").open("wb", buffering=0) as pipe:
            pipe.write(b"id,text\n")
            for i in range(3):
                pipe.write(f'{i},"row\n{i}"\n'.encode())
                self.assertEqual(json.loads(child.stdout.readline())["text"], f"row\n{i}")
            pipe.close()
            self.assertEqual(child.wait(60), 0)


class Ids(Inputs):
    def test_named(self):
        self.write("a.csv", "sku,text,id\nA1,x,7\nB2,y,8\n")
        rows, _ = self.objects("--id", "sku", "a.csv")
        self.assertEqual(rows, [{"id": "A1", "text": "x"}, {"id": "B2", "text": "y"}])
        self.assertEqual(self.objects("--id", "sku", "--keep", "", "a.csv")[0], [{"id": "A1"}, {"id": "B2"}])
        self.assertEqual(self.objects("--keep", "", "a.csv")[0], [{}, {}])
        self.bad(1, "--id", "sku2", "a.csv", says=("row 1", "no column 'sku2'", "sku, text, id"))
        line = b'{"text": "x", "n": {"deep": [1, 2]}, "k": 1e400}\n'
        self.assertEqual(self.good(*SHORT, "--jsonl", "--id", "k", stdin=line).decode(),
                         f'{{"text": "x", "n": {{"deep": [1, 2]}},"id":1e400,"embedding":{self.vectors("x")[0]}}}\n')
        self.bad(1, "--jsonl", "--id", "k", stdin=b'{"text": "x"}\n', says=("line 1", "no field 'k'"))

    def test_csv(self):
        self.write("a.csv", 'sku,text\n"A,1",x\n"B ""2""",y\n')
        vectors = [json.loads(v) for v in self.vectors("x", "y")]
        for name, delimiter in (("v.csv", ","), ("v.tsv", "\t")):
            for more in ((), ("--long", "chunk")):
                self.good(*SHORT, *more, "--id", "sku", "-o", name, "a.csv")
                table = list(csv.reader(self.stored(name), delimiter=delimiter))
                self.assertEqual(table[0], ["id", "v0", "v1", "v2", "v3"])
                self.assertEqual([row[0] for row in table[1:]], ["A,1", 'B "2"'])
                self.assertEqual([[float(x) for x in row[1:]] for row in table[1:]], vectors)
                self.good(*SHORT, *more, "-o", name, "a.csv")  # no id: numbers
                self.assertEqual([row[0] for row in csv.reader(self.stored(name), delimiter=delimiter)], ["id", "0", "1"])
        self.write("a.txt", "x\ny\n")
        self.good(*SHORT, "-o", "v.csv", "a.txt")  # lines have no ids, and no header
        self.assertEqual(np.loadtxt(self.dir / "v.csv", delimiter=",").tolist(), vectors)
        self.good(*SHORT, "--dtype", "int8", "--id", "sku", "-o", "v.csv", "a.csv")
        self.assertEqual(np.loadtxt(self.dir / "v.csv", delimiter="\t", dtype=str).size, 3)

    def test_scores(self):
        self.write("a.jsonl", '{"text": "a cat", "sku": "A\\n1"}\n{"text": "a dog", "sku": null}\n')
        rows = self.rows("-m", CROSS, "--query", "pet", "--id", "sku", "a.jsonl", verb="rerank")
        self.assertEqual([row["id"] for row in rows], ["A\n1", None])
        self.good("-m", CROSS, "--query", "pet", "--id", "sku", "--return-documents", "-k", "2", "-o", "r.csv", "a.jsonl", verb="rerank")
        table = list(csv.DictReader(self.stored("r.csv")))
        self.assertEqual({row["document"]: row["id"] for row in table}, {"a cat": "A\n1", "a dog": ""})


class Formats(Inputs):
    def test_vectors(self):
        vectors = [json.loads(v) for v in self.vectors("x", "y")]
        for name, read in (("v.npy", np.load), ("v.NPY", np.load), ("v.f32", lambda p: np.fromfile(p, np.float32).reshape(2, 4)),
                           ("v.bin", lambda p: np.fromfile(p, np.float32).reshape(2, 4)), ("v.csv", lambda p: np.loadtxt(p, delimiter=",")),
                           ("v.tsv", np.loadtxt), *((n, lambda p: [json.loads(line) for line in p.read_text().splitlines()])
                                                    for n in ("v.jsonl", "v.json", "v.ndjson", "v.txt", "v", "v.x", "csv", ".csv", "a.npy/v"))):
            with self.subTest(name=name):
                (self.dir / name).parent.mkdir(exist_ok=True)
                self.good(*SHORT, "-o", name, stdin=b"x\ny\n")
                np.testing.assert_allclose(read(self.dir / name), vectors, rtol=1e-6)

    def test_contradictions(self):
        self.bad(2, "-o", "v.npy", "--format", "csv", says=("--format csv and the name v.npy contradict each other", "leave out --format"))
        self.bad(2, "-o", "v.csv", "--format", "tsv", says="contradict")
        self.bad(2, "-o", "v.parquet", says=("-o v.parquet", "jsonl, npy, f32, csv or tsv", "another name"))
        self.bad(2, "-o", "v.parquet", "--format", "npy", says="contradict")
        self.bad(2, "--sparse", "-o", "v.csv", says="go with dense vectors alone")
        self.bad(2, "-m", LABELS, "-o", "v.npy", verb="classify", says=("-o v.npy", "jsonl, csv or tsv"))
        self.bad(2, "-m", CROSS, "--query", "x", "-o", "v.f32", verb="rerank", says="jsonl, csv or tsv")
        self.bad(2, "-o", "v.npy", verb="tokenize", says="-o v.npy")
        self.bad(2, "--texts", "x.csv", "-o", "v.npy", verb="search", says="jsonl, csv or tsv")
        for name, form in (("v", "npy"), ("v.x", "npy"), ("v.txt", "csv"), ("v.csv", "csv"), ("v.npy", "npy"), ("v.ndjson", "jsonl")):
            self.good(*SHORT, "--format", form, "-o", name, stdin=b"x\n")
        self.good(*SHORT, "--format", "csv", "-o", "-", stdin=b"x\n")
        self.assertFalse((self.dir / "v.parquet").exists())

    def test_scores(self):
        plain = self.rows("-m", LABELS, stdin=b"a cat\na dog\n", verb="classify")
        for name, delimiter in (("l.csv", ","), ("l.tsv", "\t")):
            self.good("-m", LABELS, "-o", name, stdin=b"a cat\na dog\n", verb="classify")
            table = list(csv.DictReader(self.stored(name), delimiter=delimiter))
            self.assertEqual([(int(r["index"]), r["label"], float(r["score"])) for r in table],
                             [(i, label["label"], label["score"]) for i, row in enumerate(plain) for label in row])
        best = self.good("-m", LABELS, "-k", 1, "--format", "csv", stdin=b"a cat\n", verb="classify").decode()
        self.assertEqual(list(csv.reader(best.splitlines())),
                         [["index", "label", "score"], ["0", plain[0][0]["label"], f"{plain[0][0]['score']:.9g}"]])
        lines = b'{"query": "a", "documents": ["b", "c"]}\n{"query": "x", "documents": []}\n'
        rows = self.rows("-m", CROSS, stdin=lines, verb="rerank")
        table = list(csv.DictReader(self.good("-m", CROSS, "--format", "csv", stdin=lines, verb="rerank").decode().splitlines()))
        self.assertEqual([(int(r["query"]), int(r["index"]), float(r["score"])) for r in table],
                         [(r["query"], r["index"], r["score"]) for r in rows])


class Arguments(Inputs):
    def test_text(self):
        self.assertEqual(self.good(*SHORT, "--text", "a cat", "--text", "a\ndog").decode().splitlines(), self.vectors("a cat", "a\ndog"))
        self.assertEqual(self.good(*SHORT, "--text", "").decode().splitlines(), self.vectors(""))
        self.write("a.txt", "first\n")
        self.assertEqual(self.good(*SHORT, "--text", "a.txt", "a.txt").decode().splitlines(), self.vectors("first", "a.txt"))
        self.assertEqual(self.good("--text", "a cat", verb="tokenize"), b"[101,1037,4937,102]\n")
        self.assertEqual(self.rows("-m", LABELS, "--text", "a cat", verb="classify"), self.rows("-m", LABELS, stdin=b"a cat\n", verb="classify"))
        self.assertEqual(self.rows("-m", CROSS, "--query", "x", "--text", "a", "--text", "b", verb="rerank"),
                         self.rows("-m", CROSS, "--query", "x", stdin=b"a\nb\n", verb="rerank"))
        self.bad(1, "--text", os.fsdecode(b"a\xff"), says="not UTF-8 at byte 2")
        self.assertEqual(self.good(*SHORT, "--invalid", "replace", "--text", os.fsdecode(b"a\xff")).decode().splitlines(), self.vectors("a\ufffd"))
        self.bad(2, "-m", TASKS.parent / "vision/vit", "--images", "--text", "x", says="--text and --id are for texts")

    def test_argument(self):
        """An argument that is no file is a text, which a line says."""
        result = self.run_pith(*SHORT, "hello world")
        self.assertEqual((result.returncode, result.stdout.decode().splitlines()), (0, self.vectors("hello world")))
        self.assertEqual(result.stderr.decode(), "pith embed: there is no file 'hello world', so it is taken as a text; "
                                                 "--text says so without this note\n")
        result = self.run_pith(*SHORT, "hello", "my", "world")
        self.assertEqual((len(result.stdout.splitlines()), len(result.stderr.splitlines())), (3, 1))
        self.assertEqual(self.good(*SHORT, "-q", "hello world").decode().splitlines(), self.vectors("hello world"))
        long = "long text " * 1000  # no file has such a name, and with a slash neither
        texts = (long, "and/or " * 1000, "e.g. this one.", "hello.", "what of v1.2")
        self.assertEqual(self.good("-q", *texts, verb="tokenize"),
                         self.good("-0", stdin=b"".join(text.encode() + b"\0" for text in texts), verb="tokenize"))
        self.write("hello", "from the file\n")
        self.assertEqual(self.good(*SHORT, "hello").decode().splitlines(), self.vectors("from the file"))
        self.write("\1x", "from the file\n")
        self.assertEqual(self.good(*SHORT, "\1x").decode().splitlines(), self.vectors("from the file"))
        self.assertEqual(self.good("-q", "a cat", verb="tokenize"), b"[101,1037,4937,102]\n")

    def test_mistakes(self):
        """What looks like a file and is none stays an error."""
        for name in ("a.txt", "a.csv", "a.JSONL", "a.npy", "dir/a", "./a", "/no/such", "a.parquet", "*.txt", "a.md", "a.gz", "products.cvs", "node.js", ".x.y"):
            with self.subTest(name=name):
                result = self.bad(1, name, says=(name, "No such file", "--text"))
                self.assertEqual(len(result.stderr.splitlines()), 1)
        self.bad(1, "", says="No such file")
        self.bad(1, "a b", "x.txt", says="x.txt")
        self.bad(1, "[1, 2]", verb="detokenize", says="No such file")  # its lines are no texts
        self.bad(1, "-m", CROSS, "what", verb="rerank", says="No such file")  # without --query


class Search(Inputs):
    TABLE = ('sku,name,description,price\nA1,Lamp,"a small lamp, with a warm light",19.5\nB2,Chair,"a wooden chair\nfor the kitchen",49\n'
             "C3,Rug,a thick red carpet,120\n")

    def found(self, *arguments):
        result = self.run_pith(*arguments, verb="search")
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return [json.loads(line)["hits"] for line in result.stdout.splitlines()], result.stderr.decode()

    def test_fields(self):
        """Without vectors the texts are embedded, and the command that keeps them gives the same hits."""
        self.write("products.csv", self.TABLE)
        options = ("--texts", "products.csv", "--column", "description", "--id", "sku", "--fields", "name,price", "-k", "2")
        hits, said = self.found(*options, "--query", "something to sit on", "--query", "light")
        self.assertEqual([list(hit) for hit in hits[0]], [["index", "id", "score", "name", "price", "text"]] * 2)
        self.assertEqual((hits[0][0]["id"], hits[0][0]["name"], hits[0][0]["text"]), ("B2", "Chair", "a wooden chair\nfor the kitchen"))
        self.assertEqual(hits[1][0]["id"], "A1")
        self.assertEqual(said, "pith search: 3 texts are embedded for this call alone; to keep the vectors: pith embed --column description "
                               "-o products.npy products.csv; then add --index products.npy\n")
        words = said.split("pith embed ")[1].split(";")[0].split()
        self.good(*words)
        again, said = self.found("--index", "products.npy", *options, "--query", "something to sit on", "--query", "light")
        self.assertEqual((again, said), (hits, ""))
        quiet, said = self.found("-q", *options, "something to sit on", "light")
        self.assertEqual((quiet, said), (hits, ""))
        table = self.run_pith("-q", *options, "--format", "csv", "light", verb="search").stdout.decode()
        rows = list(csv.DictReader(table.splitlines(keepends=True)))
        self.assertEqual(list(rows[0]), ["query", "index", "id", "score", "name", "price", "text"])
        self.assertEqual([(row["id"], float(row["score"]), row["text"]) for row in rows],
                         [(hit["id"], hit["score"], hit["text"]) for hit in hits[1]])

    def test_lines(self):
        self.write("a.txt", "a cat\na car\n")
        hits, said = self.found("--texts", "a.txt", "--query", "kitten", "-k", "1")
        self.assertEqual([(hit["index"], hit["text"]) for hit in hits[0]], [(0, "a cat")])
        self.assertIn("pith embed -o a.npy a.txt; then add --index a.npy", said)
        self.write("it's a file.txt", "a cat\n")
        self.assertIn("""-o 'it'\\''s a file.npy' 'it'\\''s a file.txt'""", self.found("--texts", "it's a file.txt", "--query", "x", "-k1")[1])
        self.bad(1, "--texts", self.write("b.txt", b"x\n\xff\n"), "--query", "x", verb="search", says="b.txt:2: not UTF-8")
        self.assertEqual(self.found("--texts", self.write("none.txt", ""), "--query", "x")[0], [[]])
        self.bad(1, "--texts", "no.csv", "--query", "x", verb="search", says="no.csv: No such file")

    def test_index_with_ids(self):
        self.write("products.csv", self.TABLE)
        wanted = None
        for name in ("v.jsonl", "v.csv", "v.tsv"):
            self.good("--column", "description", "--id", "sku", "-o", name, "products.csv")
            hits, _ = self.found("--index", name, "--query", "carpet", "-k", "3")
            self.assertEqual(hits[0][0]["id"], "C3")
            wanted = wanted or hits
            self.assertEqual(hits, wanted)
        self.good("--column", "description", "-o", "v.f32", "products.csv")
        hits, _ = self.found("--index", "v.f32", "--dim", "384", "--query", "carpet", "-k", "3")
        self.assertEqual([hit["index"] for hit in hits[0]], [hit["index"] for hit in wanted[0]])
        self.write("some.jsonl", '{"embedding": [1, 0]}\n{"id": {"a": 1}, "embedding": [0, 1]}\n[1, 1]\n')
        self.write("q.csv", "1,0\n")
        hits, _ = self.found("--index", "some.jsonl", "--query-vectors", "q.csv", "-k", "3")
        self.assertEqual([hit.get("id") for hit in sorted(hits[0], key=lambda hit: hit["index"])], [None, {"a": 1}, None])

    def test_vectors_of_csv(self):
        for text, *says in (("A1,1,2\n", "row 1", "ids are a first column"), ("id,x\na,1\nb,1,2\n", "row 2", "another number of components"),
                            ("id,x\na,one\n", "row 1", "something else than numbers"), ("id,x\n", "no vectors"), ("", "no vectors"),
                            ('1,"2\n', "never closed"), ("id\na\n", "no vectors")):
            self.bad(1, "--index", self.write("v.csv", text), "--query-vectors", "v.csv", verb="search", says=("v.csv", *says))
        for text in ("1,2\n3,4\n", "1;2\n3;4\n", "a,b\n1,2\n\n3,4", "id,a,b\nx,1,2\ny,3,4\n", "\ufeff1,2\r\n3,4\r\n", "1, 2\n 3,+4e0\n"):
            hits, _ = self.found("--index", self.write("v.csv", text), "--query-vectors", "v.csv", "-k", "2", "--metric", "dot")
            self.assertEqual([[(hit["index"], hit["score"]) for hit in row] for row in hits], [[(1, 11), (0, 5)], [(1, 25), (0, 11)]])

    def test_queries(self):
        """Queries from tables have the text in a column of their own names."""
        self.write("products.csv", self.TABLE)
        self.write("q.csv", "id,question\n1,carpet\n2,light\n")
        self.write("q.jsonl", '{"query": "carpet"}\n{"query": "light"}\n')
        options = ("-q", "--texts", "products.csv", "--column", "description", "--id", "sku", "-k", "1")
        for name in ("q.csv", "q.jsonl"):
            hits, _ = self.found(*options, name)
            self.assertEqual([row[0]["id"] for row in hits], ["C3", "A1"])
        self.write("q.csv", "id,question\n1,carpet\n2\n3,light\n")
        result = self.bad(1, *options, "--errors", "report", "q.csv", verb="search", says="1 line has no result")
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([(row["query"], "error" in row) for row in rows], [(0, False), (1, True), (2, False)])
        self.good("--column", "description", "-o", "v.npy", "products.csv")
        hits, _ = self.found("--index", "v.npy", "--column", "title", "-k", "1", self.write("t.csv", "title,question\ncarpet,x\n"))
        self.assertEqual(hits[0][0]["index"], 2)

    def test_refused(self):
        self.write("products.csv", self.TABLE)
        search = {"verb": "search"}
        self.bad(2, "--query", "x", **search, says="--index, or texts with --texts")
        self.bad(2, "--texts", "products.csv", "--bits", "--query", "x", **search, says="go with --index")
        self.bad(2, "--texts", self.write("a.txt", "x\n"), "--fields", "x", "--query", "x", **search, says="--id and --fields go with --texts")
        self.bad(1, "--texts", "products.csv", "--query", "x", **search, says=("no column 'text'", "sku, name, description, price"))
        self.bad(1, "--texts", "products.csv", "--column", "name", "--fields", "prize", "--query", "x", **search,
                 says=("--fields", "no column 'prize'", "sku, name"))
        self.bad(1, "--texts", "products.csv", "--column", "name", "--id", "x", "--query", "x", **search, says="no column 'x'")
        self.good(*SHORT, "--column", "name", "-o", "v.npy", "products.csv")
        self.write("two.csv", "text\nx\ny\n")
        self.bad(1, "--index", "v.npy", "--texts", "two.csv", "--dim", 4, "--query", "x", **search,
                 says="two.csv has 2 rows, but v.npy has 3 vectors")
        self.bad(1, "--texts", self.write("bad.csv", "text,id\nx,1\ny\n"), "--query", "x", **search, says="bad.csv, row 2 (line 3)")
        result = self.run_pith("-q", "--texts", "bad.csv", "--errors", "skip", "--query", "x", "-k1", **search)
        self.assertEqual(json.loads(result.stdout)["hits"][0]["text"], "x")


class Progress(Inputs):
    def terminal(self, *arguments, stdin=b""):
        """What a run shows on a terminal."""
        ours, theirs = os.openpty()
        with subprocess.Popen([PITH, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=theirs, cwd=self.dir) as child:
            os.close(theirs)
            for pause, part in stdin:
                child.stdin.write(part)
                child.stdin.flush()
                time.sleep(pause)
            child.stdin.close()
            shown = b""
            try:
                while part := os.read(ours, 1000):
                    shown += part
            except OSError:  # so a terminal ends
                pass
            self.assertEqual(child.wait(), 0)
        os.close(ours)
        return shown

    def test_quiet(self):
        """It is shown after two seconds, on terminals, and not with -q."""
        slow = [(1.5, b"a\n"), (1.5, b"b\n"), (0, b"c\n")]
        for verb, *options in (("embed", *SHORT), ("classify", "-m", LABELS)):
            self.assertIn(b"3 texts", self.terminal(verb, *options, stdin=slow))
            self.assertEqual(self.terminal(verb, *options, "-q", stdin=slow), b"")
        self.assertEqual(self.terminal("embed", *SHORT, stdin=[(0, b"a\n")]), b"")
        self.assertIn(b"1 texts", self.terminal("embed", "--progress", *SHORT, stdin=[(0, b"a\n")]))
        self.assertEqual(self.terminal("embed", "--progress", "-q", *SHORT, stdin=[(0, b"a\n")]), b"")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
