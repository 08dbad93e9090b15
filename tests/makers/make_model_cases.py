#!/usr/bin/env python3
"""Writes tests/data/tokenizer_models: small tokenizers of many kinds, and what Hugging Face tokenizers makes of some texts.

usage: make_model_cases.py
Directories hold the files of classes without tokenizer.json, and ids.jsonl with what transformers makes of them.
NAME.json is the tokenizer; NAME.jsonl has a line {"text", "ids", "offsets" (in bytes), "decoded", "skipped"} a text.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "comparisons"))
import compare_sources
import kinds_models as kinds

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent / "data" / "tokenizer_models"
NAMES = ["gpt2_prefix_space", "roberta", "clip", "llama3", "o200k", "llama2", "llama2_metaspace", "deepseek", "gemma",
         "bpe_unk", "xlm_roberta", "albert", "unigram_bytes", "split_merged_with_next", "split_contiguous_invert"]
TEXTS = [
    "", " ", "Hello, world!", "  two  spaces ", "I'll say it's DON'T, we'Ve", "a\r\n\n b\t\tc \n", "12345 67.89 x1y2",
    "Straße, Ärger; naïve café — “quoted”", "Привет, мир", "日本語の文です。", "한국어 문장", "👩‍👩‍👧‍👦🇩🇪 flags", "e\u0301\u0327 ﬁ ² Å",
    "<s> and </s> <mask> <|begin|><|endoftext|> [CLS]", "x\u00a0y\u3000z\u200bw", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "\u0001\u007f\ufffd\U00010ffff", "``quotes''  and  more", "▁ already ▁marked", "ß" * 30, "\U0001d4d7\U0001d4f2 \u0939\u093f\u0928\u094d\u0926\u0940",
]


def small_corpus():
    with open(HERE.parent / "data" / "minilm" / "golden.jsonl", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    return [t for t in texts[:180] if all(ord(c) < 0x180 for c in t)]


def byte_offsets(text, offsets):
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [[at[b], at[e]] for b, e in offsets]


def main():
    texts = small_corpus()
    kinds.corpus = lambda: texts
    kinds.SMALL = True
    OUT.mkdir(exist_ok=True)
    for name in NAMES:
        tokenizer = getattr(kinds, "kind_" + name)()
        (OUT / f"{name}.json").write_text(tokenizer.to_str(), encoding="utf-8")
        with open(OUT / f"{name}.jsonl", "w", encoding="utf-8") as out:
            for text in TEXTS + texts[:20]:
                e = tokenizer.encode(text)
                line = {"text": text, "ids": e.ids, "offsets": byte_offsets(text, e.offsets),
                        "decoded": tokenizer.decode(e.ids, skip_special_tokens=False),
                        "skipped": tokenizer.decode(e.ids, skip_special_tokens=True)}
                out.write(json.dumps(line) + "\n")
    for make in (compare_sources.llama, compare_sources.roberta, compare_sources.tiktoken):
        directory = OUT / make.__name__
        directory.mkdir(exist_ok=True)
        theirs = make(directory)
        if isinstance(theirs, type):
            theirs = theirs.from_pretrained(str(directory)).backend_tokenizer
        with open(directory / "ids.jsonl", "w", encoding="utf-8") as out:
            for text in TEXTS + texts[:20]:
                out.write(json.dumps({"text": text, "ids": theirs.encode(text).ids}) + "\n")


if __name__ == "__main__":
    main()
