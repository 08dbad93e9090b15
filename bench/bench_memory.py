#!/usr/bin/env python3
"""What Pith holds and what a token costs as work grows: a thousand to a million texts, texts of 512 to 8,192 tokens,
and at rest after work.

Every line is a process of `pith embed` of its own. Memory is the kernel's account of the process (VmHWM, RssAnon) or, where
it says so, the library's (--stats). Costs are processor time, which a shared machine disturbs less than wall time, without
what opening takes. docs/performance.md holds the figures and what they should be.
"""
import argparse
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]
import get_model
import memory
from workloads import WORDS

MB = 1e6


def pith(command, file):
    """Memory, statistics and processor seconds of one run over a file of texts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile("w+") as errors:
        most = memory.watch([*command, "--stats"], file, stderr=errors)
        errors.seek(0)
        stats = json.loads(errors.read().splitlines()[-1])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return dict(most, cpu=seconds, **stats)


def write(texts, folder):
    file = Path(folder) / "texts.txt"
    file.write_text("".join(text + "\n" for text in texts))
    return file


def vocabulary(model):
    """Every entry of the vocabulary as a word, so that texts touch nearly all rows of the embedding table."""
    lines = (model / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("##") for line in lines if not line.startswith("[")]


def sentences(rng, count, words, short):
    """Of 2 to 6 words, or of the lengths of workloads.mixed."""
    lengths = rng.integers(2, 7, count) if short else np.clip(rng.lognormal(3.0, 0.7, count), 3, 60).astype(int)
    pool, at = np.array(words)[rng.integers(0, len(words), int(lengths.sum()))], np.concatenate([[0], np.cumsum(lengths)])
    return [" ".join(pool[at[i]:at[i + 1]]) for i in range(count)]


def grow(command, words, counts, folder, title, short=False):
    rng = np.random.default_rng(3)
    opening = pith(command, write([], folder))["cpu"]
    print(f"\n{title}")
    for count in counts:
        run = pith(command, write(sentences(rng, count, words, short), folder))
        print(f"  {count:8} texts {run['tokens']:9} tokens  {run['peak'] / MB:6.1f} MB resident, {run['anonymous'] / MB:5.1f} MB"
              f" anonymous  {1e6 * (run['cpu'] - opening) / run['tokens']:7.3f} us of processor a token", flush=True)


def random_model(model, folder, positions=8192, layers=2, width=384, inner=1536, heads=12):
    """A BERT of random weights with the default model's tokenizer, as safetensors."""
    folder = Path(folder) / f"random-{layers}-{width}"
    folder.mkdir()
    rng = np.random.default_rng(1)
    tokens = json.loads((model / "config.json").read_text())["vocab_size"]
    shapes = {"embeddings.word_embeddings.weight": (tokens, width), "embeddings.position_embeddings.weight": (positions, width),
              "embeddings.token_type_embeddings.weight": (2, width), "embeddings.LayerNorm.weight": (width,),
              "embeddings.LayerNorm.bias": (width,)}
    for layer in range(layers):
        for name, (rows, columns) in {"attention.self.query": (width, width), "attention.self.key": (width, width),
                                      "attention.self.value": (width, width), "attention.output.dense": (width, width),
                                      "intermediate.dense": (inner, width), "output.dense": (width, inner)}.items():
            shapes[f"encoder.layer.{layer}.{name}.weight"] = (rows, columns)
            shapes[f"encoder.layer.{layer}.{name}.bias"] = (rows,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"encoder.layer.{layer}.{name}.weight"] = shapes[f"encoder.layer.{layer}.{name}.bias"] = (width,)
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 4 * int(np.prod(shape))
        header[name] = dict(dtype="F32", shape=shape, data_offsets=[at, at + size])
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            values = np.ones(shape) if name.endswith("LayerNorm.weight") else 0.02 * rng.standard_normal(shape)
            file.write(values.astype("<f4").tobytes())
    config = dict(model_type="bert", architectures=["BertModel"], hidden_size=width, num_hidden_layers=layers,
                  num_attention_heads=heads, intermediate_size=inner, vocab_size=tokens, max_position_embeddings=positions,
                  type_vocab_size=2, hidden_act="gelu", layer_norm_eps=1e-12, pad_token_id=0)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    return folder


def lengths(command, model, folder):
    random = random_model(model, folder)
    print("\none text, a random BERT of two layers; activations as the library counts them")
    for length in (512, 1024, 2048, 4096, 8192):
        text = " ".join(WORDS[i % len(WORDS)] for i in range(length))
        run = pith([*command, "-m", str(random), "--max-length", str(length)], write([text], folder))
        print(f"  {run['tokens']:6} tokens  {run['peak_bytes'] / MB:7.2f} MB  {run['peak_bytes'] / run['tokens']:8.0f} bytes a token"
              f"  {run['cpu']:6.2f} s of processor", flush=True)


def rest(command, model, folder):
    """A process that talks through pipes: anonymous memory after the first text, while busy, and at rest again."""
    texts = sentences(np.random.default_rng(5), 3000, vocabulary(model), False)

    def anonymous():
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        return 0

    with open(write(texts, folder), "rb") as file, subprocess.Popen(
            [*command, "--format", "csv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"hello\n")
        process.stdin.flush()
        process.stdout.readline()
        first, busy = anonymous(), 0
        writer = subprocess.Popen(["cat"], stdin=file, stdout=process.stdin)
        for i in range(len(texts)):
            process.stdout.readline()
            busy = max(busy, anonymous()) if i % 16 == 0 else busy
        writer.wait()
        time.sleep(1)
        print(f"\nanonymous memory of one process: {first / MB:.1f} MB after the first text, {busy / MB:.1f} MB at most in"
              f" {len(texts)} more, {anonymous() / MB:.1f} MB at rest", flush=True)
        process.stdin.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--model", type=Path, help="a directory or file; the default model")
    parser.add_argument("--parts", nargs="+", default=["mixed", "cost", "length", "rest"],
                        help="of mixed, short, cost, length, rest; all but short, which takes a million texts through the model")
    parser.add_argument("--counts", type=int, nargs="+", help="how many texts; 1,000 to 100,000 mixed, to 1,000,000 for cost")
    args = parser.parse_args()
    get_model.main()
    default = get_model.cache_dir() / "models" / get_model.NAME
    base = [str(args.build / "pith"), "embed", "-t", str(args.threads)]
    command = [*base, "-m", str(args.model or default), "--format", "f32"]
    with tempfile.TemporaryDirectory() as folder:
        words = vocabulary(default)
        if "mixed" in args.parts:
            grow(command, words, args.counts or (1000, 10000, 100000), folder, "3 to 60 words of the whole vocabulary")
        if "short" in args.parts:
            grow(command, words, args.counts or (1000, 10000, 100000, 1000000), folder, "2 to 6 words of the whole vocabulary", short=True)
        if "cost" in args.parts:
            tiny = random_model(default, folder, positions=512, layers=1, width=32, inner=64, heads=2)
            grow([*base, "-m", str(tiny), "--format", "f32"], words, args.counts or (1000, 10000, 100000, 1000000), folder,
                 "2 to 6 words, a network so small that the rest is seen", short=True)
        if "length" in args.parts:
            lengths([*base, "--format", "f32"], default, folder)
        if "rest" in args.parts:
            rest([*base, "-m", str(args.model or default)], default, folder)


if __name__ == "__main__":
    main()
