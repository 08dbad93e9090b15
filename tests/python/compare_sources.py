#!/usr/bin/env python3
"""Compares ids of tokenizers opened from files beside tokenizer.json with those of transformers' classes.

usage: compare_sources.py [--build DIR] [--count N] [--seed S]
Trains SentencePiece models and byte-level vocabularies, writes the files each class looks for, and opens the directory
with both. Exit status 1 if anything differs.
"""
import argparse
import base64
import json
import pathlib
import random
import sys
import tempfile

import sentencepiece
import transformers

import compare_tokenizers
import kinds_models
import text_probe


def sentencepiece_model(path, kind, **options):
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(kinds_models.corpus()[:3000]), model_prefix=str(path),
                                             hard_vocab_limit=False, minloglevel=2, model_type=kind, **options)
    pathlib.Path(f"{path}.vocab").unlink()


def xlm_roberta(directory):
    sentencepiece_model(directory / "sentencepiece.bpe", "unigram", vocab_size=4000)
    return transformers.XLMRobertaTokenizer


def t5(directory):
    sentencepiece_model(directory / "spiece", "unigram", vocab_size=4000, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    return transformers.T5Tokenizer


def albert(directory):
    sentencepiece_model(directory / "spiece", "unigram", vocab_size=4000, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1,
                        control_symbols="[CLS],[SEP],[MASK]")
    return transformers.AlbertTokenizer


def deberta_v2(directory):
    sentencepiece_model(directory / "spm", "unigram", vocab_size=4000, pad_id=0, bos_id=1, eos_id=2, unk_id=3,
                        pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]",
                        control_symbols="[MASK]")
    return transformers.DebertaV2Tokenizer


def llama(directory):
    sentencepiece_model(directory / "tokenizer", "bpe", vocab_size=600 if kinds_models.SMALL else 3000,
                        byte_fallback=True, character_coverage=0.99, normalization_rule_name="identity",
                        split_digits=True)
    (directory / "tokenizer_config.json").write_text('{"add_bos_token": true, "add_eos_token": true}')
    return transformers.LlamaTokenizer


def gemma(directory):
    sentencepiece_model(directory / "tokenizer", "bpe", vocab_size=3000, byte_fallback=True, character_coverage=0.99,
                        normalization_rule_name="identity", pad_id=0, eos_id=1, bos_id=2, unk_id=3, bos_piece="<bos>",
                        eos_piece="<eos>")
    return transformers.GemmaTokenizer


def byte_level(directory, kind, name):
    model = json.loads(kind().to_str())["model"]
    (directory / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
    merges = "".join(f"{a} {b}\n" for a, b in model["merges"])
    (directory / "merges.txt").write_text("#version: 0.2\n" + merges, encoding="utf-8")
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    return getattr(transformers, name)


def gpt2(directory):
    return byte_level(directory, kinds_models.kind_gpt2, "GPT2Tokenizer")


def roberta(directory):
    return byte_level(directory, kinds_models.kind_roberta, "RobertaTokenizer")


def clip(directory):
    return byte_level(directory, kinds_models.kind_clip, "CLIPTokenizer")


def qwen2(directory):
    return byte_level(directory, kinds_models.kind_qwen2, "Qwen2Tokenizer")


def tiktoken(directory):
    """The converter itself: there is no class that opens bare ranks."""
    from transformers import convert_slow_tokenizer as convert
    vocab = json.loads(kinds_models.kind_llama3().to_str())["model"]["vocab"]
    spelled = {c: b for b, c in convert.bytes_to_unicode().items()}
    ranks = {bytes(spelled[c] for c in token): i for token, i in vocab.items() if not token.startswith("<|")}
    ordered = sorted(ranks, key=ranks.get)
    lines = "".join(f"{base64.b64encode(token).decode()} {i}\n" for i, token in enumerate(ordered))
    (directory / "tokenizer.tiktoken").write_text(lines)
    convert.TikTokenConverter.load_tiktoken_bpe = staticmethod(lambda _: {t: i for i, t in enumerate(ordered)})
    return convert.TikTokenConverter("unused").converted()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    library = text_probe.load_library(options.build)
    sentences = compare_tokenizers.golden_texts()
    maker = compare_tokenizers.RandomTexts(options.seed, sentences, ["<s>", "</s>", "[SEP]", "<mask>", "<|endoftext|>"])
    texts = sentences + [maker.text() for _ in range(options.count)]
    failed = 0
    for make in (xlm_roberta, t5, albert, deberta_v2, llama, gemma, gpt2, roberta, clip, qwen2, tiktoken):
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            theirs = make(directory)
            if isinstance(theirs, type):
                theirs = theirs.from_pretrained(name).backend_tokenizer
            theirs.no_truncation()
            theirs.no_padding()
            try:
                ours = text_probe.Pith(library, path=name)
            except ValueError as error:
                print(f"{make.__name__}: does not open: {error}")
                failed += 1
                continue
            bad = 0
            for text in texts:
                a, b = ours.encode(text)[0][0], theirs.encode(text).ids
                if a != b:
                    bad += 1
                    if bad <= 2:
                        print(f"{make.__name__}: {text[:120]!r}\n    ours   {a[:40]}\n    theirs {b[:40]}")
            print(f"{make.__name__}: {len(texts)} texts, {bad} differ", flush=True)
            failed += bad
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
