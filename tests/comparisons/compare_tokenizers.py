#!/usr/bin/env python3
"""Compares ids, types, offsets, words, sequences, masks, overflow and decoded text with Hugging Face tokenizers (PyPI), one kind at a time.

usage: compare_tokenizers.py [--build DIR] [--kind NAME]... [--count N] [--seed S] [--all-code-points [--code-points-per-text N]] [FILE.json]...
Kinds are the functions named kind_* in the kinds_*.py beside this file; a FILE.json is a tokenizer.json of its own.
Texts: the golden sentences, those of the STS benchmark (CSV files in the directory PITH_STS, if that is set), then N
random ones: words, marks, every plane, white space, controls, special-token text; with N of 10,000 or more, and
no truncation, two of a megabyte.
Every second pair of texts goes through the tokenizer that was opened out of the image of the first.
Ends with one line a kind; exit status 1 if anything differs. The seed is printed, so that a failure can be repeated.
"""
import argparse
import csv
import glob
import importlib
import json
import os
import pathlib
import random
import sys
import unicodedata

from tokenizers import Tokenizer

import text_probe

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"


def golden_texts():
    with open(DATA / "minilm" / "golden.jsonl", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def sts_texts():
    texts = []
    for name in sorted(pathlib.Path(os.environ.get("PITH_STS", "/nonexistent")).glob("*.csv")):
        with open(name, encoding="utf-8", newline="") as rows:
            texts += [cell for row in csv.reader(rows) for cell in row[:2]]
    return texts


def code_points():
    return [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


RANGES = [(0x20, 0x7E), (0xA0, 0x17F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0xDFF), (0xE00, 0x11FF),
          (0x1AB0, 0x1AFF), (0x1D00, 0x20FF), (0x2100, 0x2BFF), (0x2E80, 0x30FF), (0x3100, 0x9FFF), (0xA000, 0xABFF),
          (0xAC00, 0xD7A3), (0xE000, 0xFFFF), (0x10000, 0x11FFF), (0x16A00, 0x1E9FF), (0x1F000, 0x1FAFF),
          (0x20000, 0x323AF), (0xE0000, 0xE01EF), (0xF0000, 0x10FFFF)]
SPACES = " \t\n\r\v\f\x85\xa0\u1680\u2003\u2028\u202f\u3000\u200b\ufeff"


class RandomTexts:
    def __init__(self, seed, sentences, specials):
        self.random = random.Random(seed)
        self.words = sorted({w for s in sentences for w in s.split()})
        self.specials = specials or ["<s>"]

    def char(self):
        r = self.random
        low, high = r.choice(RANGES)
        return chr(r.randint(low, high))

    def piece(self):
        r = self.random
        kind = r.randrange(12)
        if kind < 4:
            return r.choice(self.words)
        if kind == 4:
            return r.choice(SPACES) * r.randint(1, 3)
        if kind == 5:
            return "".join(self.char() for _ in range(r.randint(1, 8)))
        if kind == 6:
            low, high = r.choice(RANGES)
            return "".join(chr(r.randint(low, high)) for _ in range(r.randint(1, 6)))
        if kind == 7:
            return r.choice("aeiouAEIOUnsكबกd가각") + "".join(chr(r.randint(0x300, 0x36F)) for _ in range(r.randint(1, 4)))
        if kind == 8:
            word = r.choice(self.words)
            at = r.randint(0, len(word))
            return word[:at] + self.char() + word[at:]
        if kind == 9:
            special = r.choice(self.specials)
            return r.choice(["", " ", "  ", "a", "\t"]) + special + r.choice(["", " ", "  ", "b", "."])
        if kind == 10:
            return "".join(r.choice("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~0123456789") for _ in range(r.randint(1, 6)))
        return r.choice(self.words).upper() if r.random() < 0.5 else chr(r.randint(0, 0x20))

    def text(self):
        r = self.random
        joiner = r.choice(["", " ", " ", " "])
        return joiner.join(self.piece() for _ in range(r.choice([1, 1, 2, 3, 5, 8, 13]))).replace("\ud800", "")


COLUMNS = ("ids", "type ids", "offsets", "word ids", "special mask", "sequence ids", "attention mask")


def same(ours, theirs):
    """None, or what differs. Windows without any token leave no trace in ours."""
    theirs = [window for window in theirs if window[0]] or theirs[:1]
    if len(ours) != len(theirs):
        return f"{len(ours)} windows instead of {len(theirs)}"
    for k, (mine, other) in enumerate(zip(ours, theirs)):
        for name, a, b in zip(COLUMNS, mine, other):
            if name == "sequence ids":  # theirs knows only the last place of a text that a template has twice
                b = [x if y == -1 and word != -1 else y for x, y, word in zip(a, b, mine[3])]
            if list(a) != list(b):
                return f"window {k}: {name}\n    ours   {list(a)[:60]}\n    theirs {list(b)[:60]}"
    return None


def same_text(ours, tokenizer, ids, skip):
    """None, or how the decoded texts differ."""
    mine, other = ours.decode(ids, skip), tokenizer.decode(ids, skip_special_tokens=skip)
    return None if mine == other else f"decoded\n    ours   {mine!r}\n    theirs {other!r}"


def check(library, name, tokenizer, texts, pairs=False, show=3):
    """The number of differences."""
    flags = text_probe.CHARACTERS | (text_probe.RAW if tokenizer.truncation or tokenizer.padding else 0)
    try:
        opened = [text_probe.Pith(library, json=tokenizer.to_str(), image=image) for image in (False, True)]
    except ValueError as error:
        print(f"{name}: does not open: {error}")
        return 1
    bad = 0
    for i, text in enumerate(texts):
        ours = opened[i // 2 % 2]
        pair = texts[(i * 7 + 3) % len(texts)] if pairs and i % 4 == 0 else None
        try:
            theirs = text_probe.hugging_face(tokenizer, text, pair)
        except BaseException as error:  # a panic of Rust is no Exception
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            theirs = str(error)
        try:
            windows = ours.encode(text, pair, flags=flags)
            difference = same(windows, theirs) if isinstance(theirs, list) else f"they refuse: {theirs}"
            difference = difference or same_text(ours, tokenizer, theirs[0][0], i % 2 == 0)
        except ValueError as error:
            difference = f"refused: {error}" if isinstance(theirs, list) else None
        if difference:
            bad += 1
            if bad <= show:
                print(f"{name}: text {i}: {text[:200]!r} {pair!r}\n    {difference}", flush=True)
    return bad


def all_kinds():
    kinds = {}
    for path in sorted(glob.glob(str(HERE / "kinds_*.py"))):
        module = importlib.import_module(pathlib.Path(path).stem)
        kinds.update({n[5:]: f for n, f in vars(module).items() if n.startswith("kind_")})
    return kinds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--kind", action="append")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--all-code-points", action="store_true")
    parser.add_argument("--code-points-per-text", type=int, default=1)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    library = text_probe.load_library(options.build)
    sentences = golden_texts()
    print(f"seed {options.seed}")
    kinds = {pathlib.Path(f).stem: (lambda f=f: Tokenizer.from_file(f)) for f in options.files}
    if not options.files or options.kind:
        kinds.update({n: f for n, f in all_kinds().items() if not options.kind or n in options.kind})
    failed = total = 0
    for name, make in kinds.items():
        tokenizer = make()
        if name in {pathlib.Path(f).stem for f in options.files}:
            tokenizer.no_truncation()
            tokenizer.no_padding()
        added = [t.content for t in tokenizer.get_added_tokens_decoder().values()]
        maker = RandomTexts(options.seed, sentences, added)
        texts = sentences + sts_texts() + [maker.text() for _ in range(options.count)]
        if options.count >= 10000 and not tokenizer.truncation:  # a pair has windows of every pair of parts: too many to hold
            texts += [" ".join(texts)[:1 << 20], "".join(maker.char() for _ in range(1 << 18))]
        if options.all_code_points:
            each, n = [f"a{chr(c)}b {chr(c)} {chr(c)}\u0301" for c in code_points()], options.code_points_per_text
            texts += [" ".join(each[i:i + n]) for i in range(0, len(each), n)]
        if getattr(make, "through_pcre2", False):  # Debian's knows Unicode 14, as this Python does; see docs/tokenizers.md
            texts = [t for t in texts if not any(unicodedata.category(c) == "Cn" for c in t)]
        bad = check(library, name, tokenizer, texts, pairs=True)
        print(f"{name}: {len(texts)} texts, {bad} differ", flush=True)
        failed += bad
        total += len(texts)
    print(f"{len(kinds)} kinds, {total} texts, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
