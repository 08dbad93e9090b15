#!/usr/bin/env python3
"""Tokenising beside Hugging Face tokenizers, interleaved in one run: MB/s, ratio, opening, memory, worst cases.

usage: bench_tokenizer.py [--build DIR] [--seconds S] [--json FILE] [PART...] [--kind KIND]...
Parts are speed, scaling, load, worst and stream; without one all are run. Kinds are those of tests/comparisons/kinds_*.py
named in KINDS below, `unigram_250k`, or paths of a tokenizer.json; without one all of KINDS. Both sides get the same
sentences: English, and all five languages, from the golden set, repeated to about 2 MB; where PITH_STS names the
directory of the STS benchmark's CSV files, also all of its sentences, each of them once. ids are compared before
anything is timed. The peer runs encode_batch_fast, its quickest call, which makes no offsets; ours makes none either.
One thread is measured in its CPU time; `scaling` sets two threads against one. Numbers are medians over alternating
rounds. `worst` is the time per byte of a megabyte of one pattern against ordinary text; `stream` sends a gigabyte
through `pith tokenize --total` and reads the most memory it held. --json FILE adds the results to those in FILE;
--table prints the tables of FILE.
"""
import argparse
import collections
import ctypes
import functools
import json
import math
import os
import pathlib
import platform
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "comparisons"))

from tokenizers import Tokenizer

import compare_tokenizers
import kinds_models
import text_probe

KINDS = ["minilm", "bert_cased", "gpt2", "roberta", "modernbert", "llama3", "qwen2", "o200k", "tekken", "deepseek", "clip",
         "llama2", "gemma", "xlm_roberta", "bge_m3", "albert", "deberta_v2", "deberta_v3", "t5"]


@functools.lru_cache
def unigram_250k():
    """As many pieces as XLM-RoBERTa has: parts of words by frequency, then ideographs and Hangul."""
    r = random.Random(1)
    words = collections.Counter("▁" + w for text in kinds_models.corpus() for w in text.split())
    parts = collections.Counter()
    for word, count in words.items():
        for i in range(len(word)):
            for j in range(i + 1, min(len(word), i + 12) + 1):
                parts[word[i:j]] += count
    single = lambda x: struct.unpack("f", struct.pack("f", x))[0]
    best = sorted(parts, key=lambda p: (-parts[p] * len(p), p))[:249_000]
    vocab = [[p, 0.0] for p in ("<s>", "<pad>", "</s>", "<unk>")] + [[p, single(math.log(parts[p] / 5e6))] for p in best]
    seen = {p for p, _ in vocab}
    chars = [chr(c) for c in (*range(0x4E00, 0x9FA0), *range(0xAC00, 0xD7A3))]
    while len(vocab) < 250_002:
        piece = "".join(r.choice(chars) for _ in range(r.randint(1, 4)))
        if piece not in seen:
            seen.add(piece)
            vocab.append([piece, single(-14 - r.random())])
    whole = json.loads(kinds_models.kind_xlm_roberta().to_str())
    whole["model"] = {"type": "Unigram", "unk_id": 3, "vocab": vocab, "byte_fallback": False}
    return Tokenizer.from_str(json.dumps(whole))


class Ours:
    def __init__(self, library, tokenizer_json, texts):
        self.pith = text_probe.Pith(library, json=tokenizer_json)
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
    return (max(times) - min(times)) / statistics.median(times)


def measure(library, name, tokenizer, texts, seconds):
    ours = Ours(library, tokenizer.to_str(), texts)
    theirs = [e.ids for e in tokenizer.encode_batch_fast(texts)]
    assert list(ours.ids()) == theirs, f"{name}: ids differ"
    size = sum(len(t.encode()) for t in texts) / 1e6
    peer, one = [], []
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(peer) < 3:
        peer.append(timed(lambda: tokenizer.encode_batch_fast(texts)))
        one.extend(timed(ours.run) for _ in range(5))
    middle = statistics.median
    return {"peer": size / middle(peer), "peer_spread": spread(peer), "pith": size / middle(one),
            "pith_spread": spread(one), "ratio": middle(peer) / middle(one)}


def corpora():
    golden = compare_tokenizers.golden_texts()[:270]
    found = {"english": golden[:150] * 170, "mixed": golden[150:] * 100,
             "once": list(dict.fromkeys(compare_tokenizers.sts_texts()))}
    return {label: texts for label, texts in found.items() if texts}


def speed(library, name, tokenizer, options):
    return {label: measure(library, name, tokenizer, texts, options.seconds) for label, texts in corpora().items()}


def speed_up(library, tokenizer, texts):
    texts = texts * max(1, 6_000_000 // sum(len(t.encode()) for t in texts))
    ours, other = (Ours(library, tokenizer.to_str(), texts) for _ in range(2))

    def both():
        helper = threading.Thread(target=other.run)
        helper.start()
        ours.run()
        helper.join()

    results = collections.defaultdict(list)
    for call in (ours.run, other.run, lambda: ours.run(2)):
        call()
    for _ in range(5):
        cpu, one = time.thread_time(), timed(ours.run, time.perf_counter)
        cpu, own, all_threads = time.thread_time() - cpu, time.thread_time(), time.process_time()
        results["wall"].append(one / timed(lambda: ours.run(2), time.perf_counter))
        own, all_threads = time.thread_time() - own, time.process_time() - all_threads
        results["cpu"].append(cpu / max(own, all_threads - own))
        results["two_runs"].append(2 * one / timed(both, time.perf_counter))
    return {key: statistics.median(values) for key, values in results.items()}


def scaling(library, name, tokenizer, options):
    """A batch of 6 MB on two threads against one: by the clock, by the processor time of the busier thread (what it would
    be if nobody took a processor away), and what two runs at once that share nothing reach by the clock."""
    return {label: speed_up(library, tokenizer, texts) for label, texts in corpora().items()}


def load(library, name, tokenizer, options):
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "tokenizer.json")
        tokenizer.save(path)
        peer, ours = [], []
        for _ in range(9):
            peer.append(timed(lambda: Tokenizer.from_file(path)))
            ours.append(timed(lambda: text_probe.Pith(library, path=path)))
        pith = text_probe.Pith(library, path=path)
        tables = library.probe_bytes(pith.handle)
        image = [library.probe_image_time(pith.handle) for _ in range(9)]
        middle = statistics.median
        return {"file_mb": os.path.getsize(path) / 1e6, "peer_ms": middle(peer) * 1e3, "pith_ms": middle(ours) * 1e3,
                "ratio": middle(peer) / middle(ours), "image_ms": middle(image), "tables_mb": tables / 1e6}


WORST = {"one letter": "a", "99 letters": "a" * 99 + " ", "no spaces": "", "marks": "\u0301\u0323", "jamo": "\u1100\u1161",
         "hangul": "\uac01", "emoji": "\U0001f469\u200d", "brackets": "[", "half a special": "[CLS", "specials": "[MASK] ",
         "spaces": " ", "punctuation": "!", "ideographs": "\u6f22"}


def worst(library, name, tokenizer, options):
    """Time per byte of 1 MB of each pattern, against ordinary text."""
    pith, tokens = text_probe.Pith(library, json=tokenizer.to_str()), text_probe.Tokens()
    golden = compare_tokenizers.golden_texts()[:150]
    patterns = {"ordinary": " ".join(golden), **WORST, "no spaces": "".join(golden).replace(" ", "")}
    times = collections.defaultdict(list)
    for _ in range(5):
        for label, pattern in patterns.items():
            data = (pattern * (1_000_000 // len(pattern.encode()) + 1)).encode()[:1_000_000 // 12 * 12]
            data = data.decode(errors="ignore").encode()
            run = lambda: library.probe_encode(pith.handle, data, len(data), None, 0, text_probe.NO_OFFSETS, 0,
                                               ctypes.byref(tokens))
            times[label].append(timed(run) / len(data) * 1e9)
    per_byte = {label: min(t) for label, t in times.items()}
    return {"ordinary_ns": per_byte["ordinary"], **{k: v / per_byte["ordinary"] for k, v in per_byte.items() if k in WORST}}


def stream(options):
    """Peak memory of the command over 10 MB and over 1 GB of lines, and its speed."""
    lines = "".join(t + "\n" for t in compare_tokenizers.golden_texts()).encode()
    block = lines * (10_000_000 // len(lines))
    results = {}
    for megabytes in (10, 1000):
        command = [f"{options.build}/pith", "tokenize", "--total", "--max-length", "0", "--threads", "2",
                   "-m", str(kinds_models.DATA / "minilm")]
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(megabytes // 10):
            process.stdin.write(block)
        process.stdin.close()
        tokens = int(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0
        results[f"{megabytes}_mb"] = {"peak_mb": usage.ru_maxrss * 1024 / 1e6, "tokens": tokens,
                                      "mb_per_s": len(block) * (megabytes // 10) / 1e6 / (time.perf_counter() - begin)}
    return results


def machine():
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return f"{line.split(':')[1].strip()}, {os.cpu_count()} CPUs"
    return platform.processor()


def print_by_text(rows, head, cell):
    """A row a kind, and for each of the texts the three columns of head."""
    if not rows:
        return
    labels = list(next(iter(rows.values())))
    print(f"\n| kind | {' | '.join(f'{label}: {head}' for label in labels)} |\n|" + "---|" * (1 + 3 * len(labels)))
    for name, texts in rows.items():
        print(f"| {name} | {' | '.join(cell(c) for c in texts.values())} |")


def print_tables(results):
    print_by_text(results.get("speed", {}), "peer | Pith | ratio",
                  lambda c: f"{c['peer']:.2f} | {c['pith']:.1f} | {c['ratio']:.1f}")
    print_by_text(results.get("scaling", {}), "2 threads | by CPU time | two runs",
                  lambda c: f"{c['wall']:.2f} | {c['cpu']:.2f} | {c['two_runs']:.2f}")
    rows = results.get("load", {})
    if rows:
        print("\n| kind | file MB | peer ms | Pith ms | ratio | image ms | tables MB |\n|" + "---|" * 7)
    for name, r in rows.items():
        print(f"| {name} | {r['file_mb']:.1f} | {r['peer_ms']:.1f} | {r['pith_ms']:.2f} | {r['ratio']:.1f} | "
              f"{r['image_ms']:.2f} | {r['tables_mb']:.2f} |")
    rows = results.get("worst", {})
    if rows:
        print("\n| kind | ns/byte | " + " | ".join(WORST) + " |\n|" + "---|" * (len(WORST) + 2))
    for name, r in rows.items():
        print(f"| {name} | {r['ordinary_ns']:.1f} | " + " | ".join(f"{r[label]:.1f}" for label in WORST) + " |")
    for size, r in results.get("stream", {}).items():
        print(f"\n{size.replace('_', ' ')} through the command: {r['peak_mb']:.1f} MB at most, {r['mb_per_s']:.0f} MB/s")
    print()


def save(results, options):
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--seconds", type=float, default=2, help="for each text and kind")
    parser.add_argument("--json", help="file the results are added to")
    parser.add_argument("--table", action="store_true", help="only print what --json has")
    parser.add_argument("--kind", action="append", dest="kinds")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    results = {}
    if options.json and os.path.exists(options.json):
        results = json.loads(pathlib.Path(options.json).read_text(encoding="utf-8"))
    if not options.table:
        results["machine"] = machine()
        library = text_probe.load_library(options.build)
        made = {**compare_tokenizers.all_kinds(), "unigram_250k": unigram_250k}
        parts = options.parts or ["speed", "scaling", "load", "worst", "stream"]
        for name in options.kinds or KINDS:
            tokenizer = made[name]() if name in made else Tokenizer.from_file(name)
            tokenizer.no_truncation()
            tokenizer.no_padding()
            name = pathlib.Path(name).stem
            for part in (p for p in (speed, scaling, load, worst) if p.__name__ in parts):
                results.setdefault(part.__name__, {})[name] = part(library, name, tokenizer, options)
            save(results, options)
        if "stream" in parts:
            results["stream"] = stream(options)
        save(results, options)
    print(results.get("machine", ""))
    print_tables(results)


if __name__ == "__main__":
    main()
