#!/usr/bin/env python3
"""Tokenising beside Hugging Face tokenizers, interleaved in one run: MB/s, ratio, load time, memory.

usage: bench_tokenizer.py [--build DIR] [--seconds S] [--texts FILE] [--worst] [tokenizer.json | kind]...
Without arguments every kind named BENCH in tests/python/kinds_*.py and the MiniLM tokenizer are measured. Both sides get
the same list of sentences (English, and all five languages, from the golden set, repeated to about 2 MB) and one
thread; ids are compared before anything is timed. The peer runs encode_batch_fast, its quickest call, which makes no
offsets; ours makes none either. One thread is measured in its CPU time, which a busy machine disturbs least, two threads
in wall time against one. --worst shows the time per byte of a megabyte of one pattern instead. Numbers are medians over rounds, in brackets the spread (max - min) / median.
"""
import argparse
import ctypes
import os
import pathlib
import statistics
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))

from tokenizers import Tokenizer

import compare_tokenizers
import text_probe


class Ours:
    def __init__(self, library, json, texts):
        self.pith = text_probe.Pith(library, json=json)
        data = [t.encode() for t in texts]
        self.buffer = b"".join(data)
        self.ends = (ctypes.c_size_t * len(data))()
        at = 0
        for i, d in enumerate(data):
            at += len(d)
            self.ends[i] = at
        self.token_ends = (ctypes.c_size_t * len(data))()
        self.tokens = text_probe.Tokens()

    def run(self, threads=1):
        n = self.pith.library.probe_batch(self.pith.handle, self.buffer, self.ends, len(self.ends), threads,
                                          self.token_ends, ctypes.byref(self.tokens))
        assert n >= 0, self.pith.library.probe_error(self.pith.handle)
        return n

    def ids(self):
        self.run()
        begin = 0
        for end in self.token_ends:
            yield self.tokens.ids[begin:end]
            begin = end


def timed(call, clock=time.thread_time):
    begin = clock()
    call()
    return clock() - begin


def spread(times):
    return f"({(max(times) - min(times)) / statistics.median(times):.0%})"


def measure(library, name, tokenizer, texts, label, seconds):
    ours = Ours(library, tokenizer.to_str(), texts)
    theirs = [e.ids for e in tokenizer.encode_batch_fast(texts)]
    assert list(ours.ids()) == theirs, f"{name}: ids differ"
    size = sum(len(t.encode()) for t in texts) / 1e6
    times = [[], [], [], []]
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(times[0]) < 3:
        times[0].append(timed(lambda: tokenizer.encode_batch_fast(texts)))
        for _ in range(5):
            times[1].append(timed(ours.run))
            times[2].append(timed(ours.run, time.perf_counter))
            times[3].append(timed(lambda: ours.run(2), time.perf_counter))
    theirs, one, wall, two = (statistics.median(t) for t in times)
    print(f"{name:24} {label:8} peer {size / theirs:7.2f} MB/s {spread(times[0]):6}  pith {size / one:7.2f} MB/s "
          f"{spread(times[1]):6}  {theirs / one:6.1f}x   2 threads {wall / two:4.2f}x", flush=True)


WORST = {"one letter": "a", "99 letters": "a" * 99 + " ", "marks": "\u0301\u0323", "jamo": "\u1100\u1161", "hangul": "\uac01",
         "emoji": "\U0001f469\u200d", "brackets": "[", "half a special": "[CLS", "specials": "[MASK] ", "spaces": " ",
         "punctuation": "!", "ideographs": "\u6f22"}


def worst_case(library, name, tokenizer, sentences):
    """Time per byte of 1 MB of each pattern, against ordinary text."""
    pith, tokens, ordinary = text_probe.Pith(library, json=tokenizer.to_str()), text_probe.Tokens(), None
    for label, pattern in {"ordinary": " ".join(sentences), **WORST}.items():
        data = (pattern * (1_000_000 // len(pattern.encode()) + 1)).encode()[:1_000_000 // 12 * 12]
        data = data.decode(errors="ignore").encode()
        run = lambda: library.probe_encode(pith.handle, data, len(data), None, 0, text_probe.NO_OFFSETS, 0,
                                           ctypes.byref(tokens))
        per_byte = min(timed(run) for _ in range(5)) / len(data) * 1e9
        ordinary = ordinary or per_byte
        print(f"{name:24} {label:16} {per_byte:8.1f} ns/byte  {per_byte / ordinary:5.1f}x", flush=True)


def load_time(library, name, tokenizer):
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "tokenizer.json")
        tokenizer.save(path)
        times = [[], []]
        for _ in range(9):
            times[0].append(timed(lambda: Tokenizer.from_file(path)))
            times[1].append(timed(lambda: text_probe.Pith(library, path=path)))
        theirs, ours = (statistics.median(t) * 1e3 for t in times)
        pith = text_probe.Pith(library, path=path)
        held = library.probe_bytes(pith.handle) / 1e6
        print(f"{name:24} load     peer {theirs:7.2f} ms {spread(times[0]):6}    pith {ours:7.2f} ms {spread(times[1]):6}"
              f"    {theirs / ours:6.1f}x   tables {held:.2f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--texts")
    parser.add_argument("--worst", action="store_true")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    library = text_probe.load_library(options.build)
    golden = compare_tokenizers.golden_texts()[:270]
    if options.texts:
        corpora = {"file": pathlib.Path(options.texts).read_text(encoding="utf-8").splitlines()}
    else:
        english, mixed = golden[:150], golden[150:]
        corpora = {"english": english * 170, "mixed": mixed * 100}
    kinds = compare_tokenizers.all_kinds()
    for name in options.kinds or [n for n, f in kinds.items() if n == "minilm" or getattr(f, "bench", False)]:
        tokenizer = kinds[name]() if name in kinds else Tokenizer.from_file(name)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        name = pathlib.Path(name).stem
        if options.worst:
            worst_case(library, name, tokenizer, golden[:150])
            continue
        for label, texts in corpora.items():
            measure(library, name, tokenizer, texts, label, options.seconds)
        load_time(library, name, tokenizer)


if __name__ == "__main__":
    main()
