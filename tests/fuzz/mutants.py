#!/usr/bin/env python3
"""Broken models, tokenizers and model directories for mutants.c: files read as trees (trees.py), changed in one place or
in several, and written again.

usage: mutants.py [--count N] [--seed S] [--only TEXT] KIND...
KIND is graphs, compiled, tokenizers or directories, each followed by = and folders, with : between them, or + where the
files of several make one directory. N mutants of each are written to standard output; one of four has several changes.
"""
import argparse
import copy
import pathlib
import random
import sys

import onnx

import job
from trees import (Bytes, Counted, Fixed32, Inner, Json, Lines, Pairs, Protobuf, Raw, Safetensors, SENTENCEPIECE,
                   Text, U32, compiled_trees, keep, protobuf_of)

ONNX = Protobuf(protobuf_of(onnx.ModelProto.DESCRIPTOR))
EDGES = [s * e + d for e in (2**8, 2**15, 2**16, 2**31, 2**32, 2**48, 2**62, 2**63) for d in (-1, 0, 1) for s in (1, -1)] + [0, 1, -1, 2, -2, 3, 100]
FLOATS = [0.0, -1.0, 1e-45, 3.4e38, -1e308, 0.5]
WORDS = ["", "\0", "\ud800", "x" * 10000, "\u0301", "\U0010ffff", "\u00df\u0130", "a", " ", "##", "\u2581", "../..", "/", "-1",
         str(2**31), str(2**63), "1e400"]
PATTERNS = ["(a+)+$", "(a|aa)*b", "(a*)*b", "((a*)*)*c", "(?=(a+))a*b\\1", "(a{1,1000}){1,1000}b", "(?<=a{1,1000})b", "(.*)*x",
            "^(\\s+)+$", "(?:a?){100}a{100}", "(?:)*", "", "a*", "$*", "(", "[", "(?", "\\", "\\p{Foo}", "(" * 2000 + ")" * 2000,
            "[^\\x{110000}]", "a{2147483648}", "a{4294967297,}", "(?i)" * 1000, "\\G", "\\X", "|" * 5000, ".*a" * 50]
OTHERS = [None, True, 0, -1, 1.5, "", "x", [], Pairs(), [[]], Pairs([["type", None]]), Raw("[" * 2000 + "]" * 2000), Raw("1e400"),
          Raw("NaN"), Raw(str(2**64)), Raw("-0"), Raw("0.1e-400"), Raw("")]
MODEL_MAX_BYTES = 65536
FILE_MAX_BYTES = 4 << 20
ITEMS = 8  # of a list that are changed
MANY = 300, 20000  # more items


# ---- places ----

def places(v, form, draw, path=()):
    """(path, format) of every value, of long lists some."""
    yield path, form
    if isinstance(v, Inner):
        yield from places(v[0], v.form, draw, path + (0,))
    elif isinstance(v, list):
        some = range(len(v)) if len(v) <= ITEMS else sorted({0, 1, len(v) - 1, *draw.sample(range(len(v)), ITEMS - 3)})
        for i in some:
            at = (i, 1) if isinstance(v, Pairs) else (i,)
            yield from places(v[i][1] if isinstance(v, Pairs) else v[i], form, draw, path + at)


def at(tree, path):
    for i in path:
        tree = tree[i]
    return tree


def changed(tree, path, change):
    """The tree with another value at the path; what does not lead there is shared."""
    if not path:
        return change(tree)
    tree = copy.copy(tree)
    tree[path[0]] = changed(tree[path[0]], path[1:], change)
    return tree


# ---- changes of one value: (what, function) ----

def becomes(x):
    return lambda v: x


def claims(n):
    def change(v):
        v = copy.copy(v) if isinstance(v, list) else type(v)(v)
        v.claim = n
        return v
    return change


def of_number(v, form):
    for x in EDGES + [int(v) + 1, int(v) - 1, 2 * int(v)]:
        if not isinstance(v, (U32, Fixed32)) or -2**31 <= x < 2**32:
            yield str(x), becomes(x if form is Json else type(v)(x))


def of_string(v, form, more):
    kind = type(v)
    other = [w.encode("utf-8", "surrogatepass") for w in WORDS] + [b"\xff\xfe\xc0"] if isinstance(v, bytes) else WORDS + PATTERNS
    for x in [*other, v + v, v[:len(v) // 2], v[:-1], *more]:
        yield ascii(x[:20]), becomes(kind(x))
    if isinstance(v, Text):
        for n in (len(v) + 1, len(v) - 1, 0, 2**31, 2**32 - 1):
            yield f"claims {n}", claims(n)


def of_items(v):
    def items(f):
        return lambda old: type(old)(f(list(old)))
    for i in range(len(v)) if len(v) <= ITEMS else (0, 1, len(v) // 2, len(v) - 1):
        yield f"without {i}", items(lambda o, i=i: o[:i] + o[i + 1:])
        yield f"{i} twice", items(lambda o, i=i: o[:i + 1] + o[i:])
        yield f"{i} swapped", items(lambda o, i=i: o[:i] + o[i:i + 2][::-1] + o[i + 2:])
        if isinstance(v, Pairs):
            j = (i + 1) % len(v)
            yield f"{i} has the value of {j}", items(lambda o, i=i, j=j: o[:i] + [[o[i][0], o[j][1]]] + o[i + 1:])
            yield f"{i} has the key of {j}", items(lambda o, i=i, j=j: o[:i] + [[o[j][0], o[i][1]]] + o[i + 1:])
            for key in other_keys(v[i][0]):
                yield f"{i} has the key {key}", items(lambda o, i=i, key=key: o[:i] + [[key, o[i][1]]] + o[i + 1:])
    yield "empty", items(lambda o: [])
    yield "reversed", items(lambda o: o[::-1])
    for n in MANY:
        yield f"{n} more", items(lambda o, n=n: o[:1] * n + o)
    if isinstance(v, Counted):
        for n in (len(v) + 1, len(v) - 1, 0, 2**31, 2**32 - 1):
            yield f"claims {n}", claims(n)


def other_keys(key):
    if isinstance(key, str):
        return key + "x", ""
    if isinstance(key, bytes):
        return key[:3], b""
    return key + 1, key + 2, 0, 2**28


def changes(v, form, more):
    """more: strings that others of this key have."""
    if isinstance(v, Inner):
        return
    if isinstance(v, bool) or v is None:
        yield "other", becomes(not v)
    elif isinstance(v, int):
        yield from of_number(v, form)
    elif isinstance(v, float):
        for x in FLOATS:
            yield str(x), becomes(x)
    elif isinstance(v, (str, bytes)):
        yield from of_string(v, form, more)
    else:
        yield from of_items(v)
    if form is Json:
        for x in OTHERS:
            yield f"becomes {ascii(x)[:20]}", becomes(x)
        yield "in a list", lambda old: [old]
    elif isinstance(form, Protobuf):
        for x in (0, b"", b"\x08\x01", Fixed32(1), Pairs()):
            yield f"becomes {x!r}", becomes(x)
    elif isinstance(v, list):
        yield "is nothing", becomes(b"")


# ---- bases: a use, a name, files, and the trees of those that are changed ----

class Base:
    def __init__(self, use, name, files):
        self.use, self.name, self.files = use, name, files
        self.trees = [(path, form, tree) for path, data in files.items() for form, tree in trees_of(path, data)]
        for _, form, tree in self.trees:
            keep(form, tree)


def trees_of(path, data):
    end = path.rsplit(".", 1)[-1]
    if end == "pith":
        return compiled_trees(data)
    form = {"json": Json, "onnx": ONNX, "safetensors": Safetensors, "txt": Lines, "tiktoken": Lines,
            "model": SENTENCEPIECE}.get(end)
    return [(form, form.read(data))] if form else []


def files_of(folder):
    wanted = (".json", ".onnx", ".safetensors", ".txt", ".tiktoken", ".model", ".data")
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.name.endswith(wanted)}


def bases_of(kind, folders):
    for names in folders:
        folder = pathlib.Path(names.split("+")[0])
        if kind == "graphs":
            for f in sorted(folder.glob("**/*.onnx")):
                if f.stat().st_size <= MODEL_MAX_BYTES:
                    yield Base("graph", f"{f.parent.name}/{f.name}", {"model.onnx": f.read_bytes()})
        elif kind == "compiled":
            for f in sorted(folder.glob("*.pith")):
                yield Base("compiled", f.name, {"model.pith": f.read_bytes()})
        elif kind == "directories":
            parts = [files_of(pathlib.Path(name)) for name in names.split("+")]
            yield Base("directory", folder.name, {path: data for part in parts for path, data in part.items()})
        else:
            for f in sorted(folder.glob("*.json*")):
                text = f.read_bytes().split(b"\n")[0] if f.suffix == ".jsonl" else f.read_bytes()
                if text.startswith(b'{"version"') or b'"added_tokens"' in text[:1000]:
                    yield Base("tokenizer", f.name, {"tokenizer.json": text})
            for f in sorted(folder.iterdir()):
                if f.is_dir():
                    yield Base("tokenizer", f.name, files_of(f))


def strings_by_key(bases):
    """Of JSON: what kinds of steps, classes and modes there are."""
    known = {}

    def walk(v):
        for key, x in v if isinstance(v, Pairs) else [("", x) for x in v] if isinstance(v, list) else []:
            if isinstance(x, str) and len(x) < 40 and key and len(known.setdefault(key, [])) < 30 and x not in known[key]:
                known[key].append(x)
            walk(x)
    for base in bases:
        for _, form, tree in base.trees:
            if form is Json:
                walk(tree)
    return known


# ---- mutants ----

def of_file(base, path):
    """Changes of a whole file: (what, files)."""
    rest = {p: d for p, d in base.files.items() if p != path}
    data = base.files[path]
    yield "is not there", rest
    yield "is empty", {**rest, path: b""}
    yield "is a directory", {**rest, path + "/": b""}
    yield "is a link to nothing", {**rest, path + "@": b"nowhere"}
    yield "is a link to itself", {**rest, path + "@": path.rsplit("/", 1)[-1].encode()}
    yield "is a link to zeros", {**rest, path + "@": b"/dev/zero"}
    for end in (1, len(data) // 2, len(data) - 1):
        yield f"ends after {end} bytes", {**rest, path: data[:end]}
    for other, contents in rest.items():
        yield f"is {other}", {**rest, path: contents}


class Maker:
    def __init__(self, bases, draw):
        self.bases, self.draw, self.known = bases, draw, strings_by_key(bases)

    def more(self, form, tree, path):
        """Strings of the key that the path ends at."""
        if form is not Json or len(path) < 2 or path[-1] != 1:
            return []
        parent = at(tree, path[:-2])
        return self.known.get(parent[path[-2]][0], []) if isinstance(parent, Pairs) else []

    def spots(self):
        """All that can be changed: (base, file), or (base, number of a tree, path, format)."""
        for base in self.bases:
            if base.use in ("directory", "tokenizer"):
                yield from ((base, path) for path in base.files)
            for t, (_, form, tree) in enumerate(base.trees):
                yield from ((base, t, path, inner) for path, inner in places(tree, form, self.draw))

    def one(self, spot):
        """A change of the spot: (what, files)."""
        if len(spot) == 2:
            what, files = self.draw.choice(list(of_file(*spot)))
            return f"{spot[1]} {what}", files
        base, t, path, inner = spot
        file, form, tree = base.trees[t]
        options = list(changes(at(tree, path), inner, self.more(inner, tree, path)))
        if not options:
            return "", None
        label, change = self.draw.choice(options)
        return f"{file} {place(tree, path)} {label}", self.with_file(base, file, form, changed(tree, path, change))

    def several(self, base):
        """Some changes one after the other, and values in the places of others."""
        t = self.draw.randrange(len(base.trees))
        file, form, tree = base.trees[t]
        for _ in range(self.draw.randrange(2, 7)):
            spots = list(places(tree, form, self.draw))
            path, inner = self.draw.choice(spots)
            options = list(changes(at(tree, path), inner, self.more(inner, tree, path)))
            others = [p for p, f in spots if f is inner and p[:len(path)] != path]
            if others and not self.draw.randrange(3):
                options = [("", becomes(at(tree, self.draw.choice(others))))]
            if options and path:
                tree = changed(tree, path, self.draw.choice(options)[1])
        return f"{file} several", self.with_file(base, file, form, tree)

    @staticmethod
    def with_file(base, file, form, tree):
        try:
            data = Bytes.write(Inner([tree], form))
        except (TypeError, AttributeError, ValueError):
            return None  # a tree that this format cannot hold
        return {**base.files, file: data} if len(data) <= FILE_MAX_BYTES else None


def place(tree, path):
    """The path with keys by name."""
    out = []
    for i in path:
        if isinstance(tree, list) and len(tree) == 2 and out and out[-1].startswith(">"):
            out[-1] = f"{tree[0]}"
        else:
            out.append(f">{i}" if isinstance(tree, Pairs) else str(i))
        tree = tree[i]
    return "/".join(out)


def mutants(kind, folders, count, seed):
    draw = random.Random(f"{kind} {seed}")
    bases = list(bases_of(kind, folders))
    maker = Maker(bases, draw)
    spots, seen, k = list(maker.spots()), set(), 0
    with_trees = [b for b in bases if b.trees]
    while k < count:
        if k % 4 == 3:
            base = draw.choice(with_trees)
            label, files = maker.several(base)
        else:
            spot = draw.choice(spots)
            base = spot[0]
            label, files = maker.one(spot)
            if (base.name, label) in seen:
                continue
            seen.add((base.name, label))
        if files is not None:
            yield f"{kind} {k} {base.name}: {label}", base.use, files
            k += 1


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("kinds", nargs="+")
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", default="", help="mutants whose name holds this")
    a = p.parse_args()
    for kind, folders in (k.split("=", 1) for k in a.kinds):
        for name, use, files in mutants(kind, folders.split(":"), a.count, a.seed):
            if a.only in name:
                sys.stdout.buffer.write(job.packed(name, use, files))


if __name__ == "__main__":
    main()
