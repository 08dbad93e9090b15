"""Sentences of the pages, each with the commands that show that it is true.

usage: promises.py PITH SOURCE [UNITTEST-ARGUMENT...]

A row of PROMISES has a verb, a page of docs/, a sentence of it, letter by letter, and a check. A row of EVERY holds for each verb
that it names. The test fails if a sentence is no longer on its page, if a check fails, and if a verb has no row of its own.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

from command import PITH, SANITIZED, SOURCE

TIMEOUT = 1200 if SANITIZED else 120  # training is slow there
DATA = SOURCE / "tests/data"
DENSE, CROSS, LABELS, WORDS = DATA / "modules/dense", DATA / "tasks/cross-bert", DATA / "tasks/labels-bert", DATA / "modules/dense"
YUNET, FACE, NODE = DATA / "yunet/yunet-s-640-other-sizes/model.onnx", DATA / "faces/face_1.png", DATA / "operators/attention_f64"
TEXTS = "one text\nanother text of more words\n\nthe last one\n"


class Place:
    """The folder in which the commands run, with one input of each kind."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.write("texts.txt", TEXTS)
        self.write("ids.txt", "[1, 2, 3]\n[4]\n")
        model = helper.make_model(helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 64])],
            [numpy_helper.from_array(np.linspace(-1, 1, 4096, dtype="f4").reshape(64, 64), "w")]),
            opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        onnx.save(model, self.folder / "m.onnx")
        np.save(self.folder / "x.npy", np.ones((2, 64), "f4"))
        self.good("embed", "-m", DENSE, "--format", "npy", "-o", "v.npy", "texts.txt")
        self.good("preprocess", DATA / "shop", "-o", "shop.rdb")
        self.good("train", "shop.rdb", "--task", "returned", "-o", "run", "--steps", "2", "--threads", "2")
        self.write("keys.txt", "1\n2\n")

    def write(self, name, data):
        (self.folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())

    def read(self, name):
        return (self.folder / name).read_bytes()

    def there(self, name):
        return (self.folder / name).exists()

    def run(self, verb, *arguments, stdin=b"", **keywords):
        return subprocess.run([PITH, verb, *map(str, arguments)], cwd=self.folder, input=stdin, capture_output=True, timeout=TIMEOUT, check=False,
                              **keywords)

    def good(self, verb, *arguments, **keywords):
        return self.ends(0, verb, *arguments, **keywords).stdout

    def ends(self, code, verb, *arguments, says="", **keywords):
        result = self.run(verb, *arguments, **keywords)
        told = result.stderr.decode()
        assert result.returncode == code, f"pith {verb} {' '.join(map(str, arguments))}: exit {result.returncode}, not {code}: {told}"
        assert says in told, f"pith {verb}: {told!r} does not say {says!r}"
        return result

    def same(self, verb, *ways, stdin=b""):
        """Each way gives the same bytes on standard output."""
        first, *others = [self.good(verb, *way, stdin=stdin) for way in ways]
        assert all(o == first for o in others), f"pith {verb}: the results differ"
        assert first
        return first

    def same_file(self, verb, name, *ways):
        made = []
        for way in ways:
            self.good(verb, *way)
            made.append(self.read(name))
        assert all(m == made[0] for m in made), f"pith {verb}: the files differ"


# A call of each verb that does its work; OUT stands for the file that is written, where a verb writes one.
OUT = "OUT"
CALLS = {
    "embed": ("-m", DENSE, "texts.txt", "-o", OUT), "similarity": ("-m", DENSE, "one", "two"),
    "rerank": ("-m", CROSS, "--query", "what", "texts.txt", "-o", OUT), "classify": ("-m", LABELS, "texts.txt", "-o", OUT),
    "search": ("--index", "v.npy", "--query-vectors", "v.npy", "-k", "2", "-o", OUT), "detect": ("-m", YUNET, FACE, "-o", OUT),
    "crop": ("-m", YUNET, FACE, "-o", "crops"), "tokenize": ("-m", DENSE, "texts.txt", "-o", OUT),
    "detokenize": ("-m", DENSE, "ids.txt", "-o", OUT), "run": ("m.onnx", "-i", "x=x.npy"), "verify": (NODE,), "compare": ("m.onnx",),
    "inspect": ("m.onnx",), "info": (), "bench": ("-m", DENSE, "--texts", "texts.txt", "--rounds", "1", "--token-count", "64", "-t", "1"),
    "compile": (DENSE, "-o", OUT), "select": ("m.onnx", "-o", OUT), "export": ("m.onnx", "-o", OUT), "optimize": ("m.onnx", "-o", OUT),
    "quantize": ("m.onnx", "-o", OUT), "convert": ("m.onnx", "-o", OUT), "models": (), "pull": ("all-MiniLM-L6-v2", "--offline"),
    "list": (), "remove": ("no-such-model",),
    "preprocess": (DATA / "shop", "-o", OUT), "train": ("shop.rdb", "--task", "returned", "-o", "new-run", "--steps", "1"),
    "eval": ("run",), "predict": ("run", "--rows", "keys.txt", "-o", OUT),
}
WRITES = [verb for verb, call in CALLS.items() if OUT in call and verb != "compile"]
PRINTS = [verb for verb in WRITES if verb not in ("export", "optimize", "quantize", "preprocess")]


def call(verb, out):
    return [out if word == OUT else word for word in CALLS[verb]] + (["--force"] if verb in ("export", "optimize", "quantize") else [])


def piped(verb):
    """The call without -o."""
    words = list(CALLS[verb])
    if OUT not in words:
        return words
    at = words.index(OUT)
    return words[:at - 1] + words[at + 1:]


# ---- checks that every verb passes ----

def wrong_usage(p, verb):
    result = p.ends(2, verb, "--no-such-option", *call(verb, "unused.out"), says="--no-such-option")
    assert not p.there("unused.out")
    assert not result.stdout


def old_file_stays(p, verb):
    """The input is missing: nothing could be made. Its name looks like that of a file, so it is not taken as a text."""
    p.write("kept.out", "what was there")
    words = ["missing.file" if w in ("texts.txt", "ids.txt", "m.onnx", "v.npy", FACE, DATA / "shop", "keys.txt", DENSE) else w
             for w in call(verb, "kept.out")]
    p.ends(1, verb, *words)
    assert p.read("kept.out") == b"what was there"


def input_is_output(p, verb):
    words = call(verb, "in.out")
    name = next(w for w in words if w in ("texts.txt", "ids.txt", "m.onnx", "v.npy", "keys.txt"))
    data = p.read(name)
    p.write("in.out", data)
    p.ends(2, verb, *["in.out" if w == name else w for w in words], says="is an input too")
    assert p.read("in.out") == data


def full_disk(p, verb):
    p.ends(1, verb, *call(verb, "/dev/full"), says="No space left on device")


def permissions_kept(p, verb):
    p.write("mode.out", "old")
    (p.folder / "mode.out").chmod(0o640)
    p.good(verb, *call(verb, "mode.out"))
    assert (p.folder / "mode.out").stat().st_mode & 0o777 == 0o640
    assert p.read("mode.out") != b"old"


def link_followed(p, verb):
    p.write("real.out", "old")
    (p.folder / "link.out").unlink(missing_ok=True)
    (p.folder / "link.out").symlink_to("real.out")
    p.good(verb, *call(verb, "link.out"))
    assert (p.folder / "link.out").is_symlink() and p.read("real.out") != b"old"


def reader_leaves(p, verb):
    with subprocess.Popen([PITH, verb, *map(str, piped(verb))], cwd=p.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.close()
        told = child.stderr.read()
        assert child.wait() == 0, told


def file_or_output(p, verb):
    p.good(verb, *call(verb, "file.out"))
    assert p.good(verb, *piped(verb)) == p.read("file.out")


EVERY = [
    (list(CALLS), "cli.md", "| 2 | wrong usage |", wrong_usage),
    ([v for v in WRITES if v != "convert"] + ["convert"], "cli.md", "Work that failed before any result was written leaves the file that was\nthere.",
     old_file_stays),
    ([v for v in WRITES if v not in ("detect", "preprocess")], "cli.md", "An\noutput that is also an input, a file of the model, the configuration or "
     "another output, under any name, is refused with exit code 2\nbefore anything is written; devices may be named twice.", input_is_output),
    (PRINTS, "cli.md", "A full disk is an error.", full_disk),
    (WRITES, "cli.md", "A file that was there before\nstays until it is replaced, and its permissions are kept.", permissions_kept),
    (WRITES, "cli.md", "A symbolic link is followed.", link_followed),
    (PRINTS + ["similarity", "verify", "inspect", "info", "models", "list", "eval"], "cli.md", "| 0 | done; also when the reader of a pipe closes it |", reader_leaves),
    (PRINTS, "cli.md", "Results go to standard output or to `-o FILE`.", file_or_output),
]


# ---- checks of one verb ----

def embed_alone(p):
    rows = p.same("embed", *[("-m", DENSE, "texts.txt", *more) for more in ((), ("-t", "1"), ("-t", "2"), ("--batch-tokens", "1"))])
    for text, row in zip(TEXTS.splitlines(), rows.splitlines()):
        assert p.good("embed", "-m", DENSE, stdin=text.encode() + b"\n") == row + b"\n"


def embed_invalid(p):
    result = p.ends(1, "embed", "-m", DENSE, stdin=b"good\n\xff\n", says="line 2")
    assert result.stdout == p.good("embed", "-m", DENSE, stdin=b"good\n")


def embed_empty(p):
    assert len(p.good("embed", "-m", DENSE, stdin=b"\n").splitlines()) == 1


def embed_twice(p):
    p.same("embed", ("-m", DENSE, "texts.txt", "--dim", "2"), ("-m", DENSE, "texts.txt", "--dim", "3", "--dim", "2"))


def embed_too_long(p):
    p.ends(1, "embed", "-m", DENSE, "--long", "error", "--max-length", "4", "texts.txt", says="text")


def similarity_pairs(p):
    assert abs(float(p.good("similarity", "-m", DENSE, "same", "same")) - 1) < 1e-5
    assert len(p.good("similarity", "-m", DENSE, "a", "b", "c").splitlines()) == 3


def rerank_order(p):
    rows = [json.loads(line) for line in p.good("rerank", "-m", CROSS, "--query", "q", "texts.txt").splitlines()]
    assert [r["index"] for r in rows] == [0, 1, 2, 3]
    best = [json.loads(line) for line in p.good("rerank", "-m", CROSS, "--query", "q", "-k", "2", "texts.txt").splitlines()]
    assert best == sorted(rows, key=lambda r: -r["score"])[:2]


def rerank_bad_line(p):
    good = b'{"query": "a", "documents": ["b", "c"]}\n'
    assert p.ends(1, "rerank", "-m", CROSS, stdin=good + b"no\n").stdout == p.good("rerank", "-m", CROSS, stdin=good)


def classify_all(p):
    for line in p.good("classify", "-m", LABELS, "texts.txt").splitlines():
        scores = [label["score"] for label in json.loads(line)]
        assert len(scores) == 3 and scores == sorted(scores, reverse=True)
    assert all(len(json.loads(line)) == 1 for line in p.good("classify", "-m", LABELS, "-k", "1", "texts.txt").splitlines())


def search_few(p):
    result = p.ends(0, "search", "--index", "v.npy", "--query-vectors", "v.npy", "-k", "9")
    assert all(len(json.loads(line)["hits"]) == 4 for line in result.stdout.splitlines()) and result.stderr


def search_ties(p):
    np.save(p.folder / "ties.npy", np.ones((5, 4), "f4"))
    hits = json.loads(p.good("search", "--index", "ties.npy", "--query-vectors", "ties.npy").splitlines()[0])["hits"]
    assert [h["index"] for h in hits] == [0, 1, 2, 3, 4]


def pictures_go_on(verb, *more):
    def check(p):
        p.write("broken.png", b"\x89PNG\r\n\x1a\nbroken")
        result = p.ends(1, verb, "-m", YUNET, *more, "broken.png", FACE, says="broken.png")
        if verb == "detect":
            assert b"face_1.png" in result.stdout and b"broken" not in result.stdout
        else:
            assert any((p.folder / "crops").iterdir())
    return check


def tokenize_count(p):
    ids = [json.loads(line) for line in p.good("tokenize", "-m", DENSE, "texts.txt").splitlines()]
    assert [int(n) for n in p.good("tokenize", "-m", DENSE, "--count", "texts.txt").split()] == [len(i) for i in ids]
    assert int(p.good("tokenize", "-m", DENSE, "--total", "texts.txt")) == sum(map(len, ids))


def detokenize_blank(p):
    assert p.good("detokenize", "-m", DENSE, stdin=b"\n[5]\n\n[6]\n") == p.good("detokenize", "-m", DENSE, stdin=b"[5]\n[6]\n")


def run_missing(p):
    told = p.ends(1, "run", "m.onnx").stderr.decode()
    assert "'x'" in told and "64" in told, told


def run_named(p):
    p.good("run", "m.onnx", "-i", "x=x.npy", "-o", "outs")
    assert [f.name for f in (p.folder / "outs").iterdir()] == ["0_y.npy"]


def verify_last_line(p):
    assert p.good("verify", NODE).decode().splitlines()[-1] == "1 passed, 0 failed, 0 skipped"


def verify_skipped(p):
    name = NODE.name
    p.write("skip.txt", f"{name} because\n")
    p.ends(1, "verify", "--skip-list", "skip.txt", NODE)
    p.write("skip.txt", f"~{name} because\n")
    p.good("verify", "--skip-list", "skip.txt", NODE)


def verify_damage(p):
    p.good("compile", DENSE, "-o", "damage.pith")
    data = bytearray(p.read("damage.pith"))
    data[len(data) // 2] ^= 1
    p.write("damage.pith", bytes(data))
    p.ends(1, "verify", "damage.pith")


def compare_bound(p):
    """Without the library the command says so; with it the two engines agree on a matrix product."""
    result = p.run("compare", "m.onnx", "--json", "--atol", "1e-3")
    if result.returncode:
        assert result.returncode == 1 and "onnxruntime" in result.stderr.decode().lower(), result.stderr
        return
    assert json.loads(result.stdout)["outputs"][0]["max_abs"] <= 1e-3


def failure_is_json(verb, *arguments):
    def check(p):
        result = p.ends(1, verb, *arguments, "--json")
        assert list(json.loads(result.stdout)) == ["error"]
    return check


def inspect_keys(p):
    told = json.loads(p.good("inspect", "m.onnx", "--json"))
    assert told["source"] == "onnx" and told["runtime"] == "builtin" and told["parameters"] == 4096 and told["opsets"] == {"ai.onnx": 18}


def info_json(p):
    told = json.loads(p.good("info", "--json"))
    for key in ("version", "compiler", "processor", "memory", "runtimes", "backends", "extra_operators", "libraries", "cache", "config"):
        assert key in told, key


def bench_json(p):
    told = json.loads(p.good("bench", *CALLS["bench"], "--json"))
    assert {"version", "model", "isa", "threads", "open_seconds", "first_vector_seconds", "memory", "results"} <= set(told)


def compile_same_bits(p):
    p.good("compile", DENSE, "-o", "dense.pith")
    p.same("embed", ("-m", DENSE, "texts.txt"), ("-m", "dense.pith", "texts.txt"))


def compile_replaces(p):
    p.write("mine.txt", "mine")
    p.ends(1, "compile", DENSE, "-o", "mine.txt")
    assert p.read("mine.txt") == b"mine"


def select_merge(p):
    p.good("select", "m.onnx", "-o", "a.yaml")
    p.good("select", DENSE, "-o", "b.yaml")
    p.same("select", ("--merge", "a.yaml", "b.yaml"), ("--merge", "b.yaml", "a.yaml"))


def export_same(p):
    p.same_file("export", "e.onnx", *2 * [(DENSE, "-o", "e.onnx", "--force")])


def optimize_names(p):
    p.good("optimize", "m.onnx", "-o", "o.onnx")
    made = onnx.load(p.folder / "o.onnx").graph
    assert ([i.name for i in made.input], [o.name for o in made.output]) == (["x"], ["y"])


def quantize_bad_weight(p):
    model = onnx.load(p.folder / "m.onnx")
    weight = numpy_helper.to_array(model.graph.initializer[0]).copy()
    weight[0, 0] = np.nan
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, "w"))
    onnx.save(model, p.folder / "nan.onnx")
    p.ends(1, "quantize", "nan.onnx", "-o", "q.onnx", says="w")
    assert not p.there("q.onnx")


def convert_round(p):
    p.good("convert", "m.onnx", "-o", "m.txt")
    p.good("convert", "m.txt", "-o", "back.onnx")
    there, back = onnx.parser.parse_model(p.read("m.txt").decode()), onnx.load(p.folder / "back.onnx")
    for made in there, back:
        assert [n.op_type for n in made.graph.node] == ["MatMul"] and list(made.graph.node[0].input) == ["x", "w"]
        assert np.array_equal(numpy_helper.to_array(made.graph.initializer[0]), numpy_helper.to_array(onnx.load(p.folder / "m.onnx").graph.initializer[0]))


def convert_fault(p):
    p.write("bad.txt", p.good("convert", "m.onnx").replace(b"MatMul", b"MatMul("))
    p.ends(1, "convert", "bad.txt", "-o", "bad.onnx", says="line ")
    assert not p.there("bad.onnx")


def convert_form(p):
    p.ends(1, "convert", "--to", "onnx", "m.onnx")


def models_words(p):
    every, some = (json.loads(p.good("models", *words, "--json"))["models"] for words in ((), ("MINILM", "l6")))
    assert 0 < len(some) < len(every)
    assert all("minilm" in json.dumps(m).lower() and "l6" in json.dumps(m).lower() for m in some)


def pull_offline(p):
    p.ends(1, "pull", "nobody/nothing", "--offline", env={**os.environ, "PITH_CACHE": str(p.folder / "cache")})


def cache(p, *names):
    """The environment with a cache of its own, in which models of these names are."""
    for name in names:
        (p.folder / "own/models" / name).mkdir(parents=True, exist_ok=True)
        (p.folder / "own/models" / name / "model.onnx").write_bytes(p.read("m.onnx"))
    return {**os.environ, "PITH_CACHE": str(p.folder / "own"), "HF_HUB_CACHE": str(p.folder / "none")}


def list_models(p):
    env = cache(p, "one", "org/two")
    assert [m["name"] for m in json.loads(p.good("list", "--json", env=env))["models"]] == ["one", "org/two"]


def remove_model(p):
    env = cache(p, "one", "org/two")
    p.good("remove", "TWO", env=env)
    assert p.there("own/models/one") and not p.there("own/models/org/two")
    p.ends(2, "remove", str(p.folder / "own/models/one"), env=env)
    assert p.there("own/models/one")


def preprocess_schema(p):
    p.same_file("preprocess", "s.rdb", (DATA / "shop", "-o", "s.rdb"), (DATA / "shop", "--schema", DATA / "shop/schema.json", "-o", "s.rdb"))


def train_same(p):
    p.same_file("train", "r/model.bin", *[("shop.rdb", "--task", "returned", "-o", folder, "--steps", "2", "--threads", threads)
                                          for folder, threads in (("r", "1"),)])
    p.good("train", "shop.rdb", "--task", "returned", "-o", "r2", "--steps", "2", "--threads", "2")
    assert p.read("r/model.bin") == p.read("r2/model.bin")


def eval_plots(p):
    told = json.loads(p.good("eval", "run", "--json"))
    assert 0 <= told["auroc"] <= 1 and not p.there("run/roc.svg")
    p.good("eval", "run", "--plots")
    assert p.there("run/roc.svg") and p.there("run/calibration.svg")


def predict_lines(p):
    keys = (p.folder / "keys.txt").read_text().split()
    lines = p.good("predict", "run", "--rows", "keys.txt").decode().splitlines()
    assert [line.split("\t")[0] for line in lines] == keys and all(0 <= float(line.split("\t")[1]) <= 1 for line in lines)


PROMISES = [
    ("embed", "cli.md", "The vector of a text does not depend on the other texts, `--threads`, `--batch-tokens` or the CPU.", embed_alone),
    ("embed", "cli.md", "Bytes that are not UTF-8 are an error that names file, line and byte; the texts before it are written.", embed_invalid),
    ("embed", "cli.md", "An empty line is the empty text,\n  which has a vector.", embed_empty),
    ("embed", "cli.md", "If an option is given twice, the last one applies.", embed_twice),
    ("embed", "cli.md", "the first one that is too long is an error that gives its number; texts before it may be written", embed_too_long),
    ("similarity", "cli.md", "Two texts give their cosine. More texts give one line for each pair.", similarity_pairs),
    ("rerank", "cli.md", "Documents come in their own order; with `-k N`, the best N of each query, the best first,", rerank_order),
    ("rerank", "cli.md", "A line that is wrong ends the work with\nexit code 1; what was before it is written.", rerank_bad_line),
    ("classify", "cli.md", "Gives each text the labels of the model with their scores, the best first", classify_all),
    ("search", "cli.md", "If there are fewer vectors than `-k`, a query has fewer hits, and a warning says so.", search_few),
    ("search", "cli.md", "equal scores are ordered by `index`", search_ties),
    ("detect", "cli.md", "A picture that\ncannot be read gets a message and no line; the others continue, and the exit code is 1.", pictures_go_on("detect", "--json")),
    ("crop", "cli.md", "A picture that cannot be read gets a message; the others continue, and the exit code is 1.", pictures_go_on("crop", "-o", "crops")),
    ("tokenize", "cli.md", "`--count` writes their number instead, and `--total` only\nthe number of all tokens, at the end.", tokenize_count),
    ("detokenize", "cli.md", "Blank lines are skipped.", detokenize_blank),
    ("run", "cli.md", "If\ninputs are missing, the error lists them with dtype and shape.", run_missing),
    ("run", "cli.md", "written to `DIR/<number>_<name>.npy`", run_named),
    ("verify", "cli.md", "The last line is `N passed, N failed, N skipped`.", verify_last_line),
    ("verify", "cli.md", "A listed test that passes is a failure, unless its name begins with `~`: a random\nresult may be right by chance.", verify_skipped),
    ("verify", "cli.md", "Damage is\nan error that names the section, and the exit code is 1.", verify_damage),
    ("compare", "cli.md", "With `--atol` or `--rtol` a larger difference is exit code 1.", compare_bound),
    ("inspect", "cli.md", "When the command fails, it is `{\"error\": message}`.", failure_is_json("inspect", "missing.onnx")),
    ("inspect", "cli.md", "`opsets` maps domain to version, and `ai.onnx` is the standard one", inspect_keys),
    ("info", "cli.md", "prints what Pith finds out about the machine, a line for each fact, or one object with `--json`:", info_json),
    ("bench", "cli.md", "opening with the file in the page cache; from there to the first vector", bench_json),
    ("compile", "cli.md", "Vectors from it equal those from its sources bit for bit, on every CPU.", compile_same_bits),
    ("compile", "cli.md", "`compile` replaces only compiled models.", compile_replaces),
    ("select", "selective-build.md", "`pith select --merge a.yaml b.yaml` unites lists, in any order with the same bytes.", select_merge),
    ("export", "cli.md", "The same model and options give the same bytes.", export_same),
    ("optimize", "cli.md", "Names of inputs and outputs stay.", optimize_names),
    ("quantize", "cli.md", "A weight with a NaN or an infinity is an error that names it.", quantize_bad_weight),
    ("convert", "cli.md", "`onnx.parser` (1.23) reads what Pith writes as the same\nmodel", convert_round),
    ("convert", "cli.md", "in a text are reported with line and column, and no file is written.", convert_fault),
    ("convert", "cli.md", "with `--to onnx` or `--to text` a file that has the form already is an error.", convert_form),
    ("models", "cli.md", "Words after the verb\nkeep the models that have all of them in some column, whatever their capitals.", models_words),
    ("list", "cli.md", "Prints the models on this machine", list_models),
    ("remove", "cli.md", "Removes models from the model cache, without a question, and says how much that frees.", remove_model),
    ("pull", "cli.md", "| 1 | the work or a part of it failed; good results are written |", pull_offline),
    ("preprocess", "relational.md", "an inferred one. `tests/data/shop/schema.json` is an example.", preprocess_schema),
    ("train", "relational.md", "`model.bin` has the same bytes whatever the number of threads and of interruptions.", train_same),
    ("eval", "relational.md", "`pith eval --plots` adds `roc.svg` and `calibration.svg`", eval_plots),
    ("predict", "relational.md", "the key of a row, a tab, the probability", predict_lines),
]


def plain(text):
    return re.sub(r"\s+", " ", text)


class Promises(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Place(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.pages = {name: plain((SOURCE / "docs" / name).read_text()) for name in {row[1] for row in EVERY + PROMISES}}

    def check(self, verb, page, sentence, check):
        with self.subTest(verb=verb, sentence=sentence):
            self.assertTrue(plain(sentence) in self.pages[page], f"docs/{page} no longer says it")
            check()

    def test_every_verb_has_rows(self):
        verbs = re.findall(r"VERB\((\w+)\)", (SOURCE / "cli/verbs.def").read_text())
        self.assertEqual(sorted(verbs), sorted(CALLS))
        self.assertEqual(sorted(set(verbs)), sorted({row[0] for row in PROMISES}))

    def test_every(self):
        for verbs, page, sentence, check in EVERY:
            for verb in verbs:
                self.check(verb, page, sentence, lambda verb=verb, check=check: check(self.place, verb))

    def test_each(self):
        for verb, page, sentence, check in PROMISES:
            self.check(verb, page, sentence, lambda check=check: check(self.place))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
