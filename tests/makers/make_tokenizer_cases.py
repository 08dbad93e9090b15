#!/usr/bin/env python3
"""Writes tests/data/tokenizers/<kind>.jsonl from Hugging Face tokenizers: line 1 a tokenizer.json, then a case a line.

usage: make_tokenizer_cases.py [kind]...
A case is {"text", "pair" or null, "raw", "windows": [[id, type, begin, end, word, special], …] per window}, offsets in
bytes. test_tokenizer_cases.c reads them. Kinds whose tokenizer is larger than 64 kB are left out.
"""
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "comparisons"))
import compare_tokenizers
import kinds_steps
import text_probe


def byte_offset(text, chars):
    return len(text[:chars].encode())


def case(tokenizer, text, pair):
    windows = []
    for ids, types, offsets, words, special, sequences, _ in text_probe.hugging_face(tokenizer, text, pair):
        source = [pair if s == 1 else text for s in sequences]
        windows.append([[i, t, byte_offset(s, b), byte_offset(s, e), w, m] for i, t, (b, e), w, m, s in
                        zip(ids, types, offsets, words, special, source)])
    raw = bool(tokenizer.truncation or tokenizer.padding)
    return {"text": text, "pair": pair, "raw": raw, "windows": windows}


def main():
    kinds_steps.VOCABULARY = 300
    sentences = compare_tokenizers.golden_texts()
    folder = compare_tokenizers.DATA / "tokenizers"
    folder.mkdir(exist_ok=True)
    for name, make in compare_tokenizers.all_kinds().items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        tokenizer = make()
        text = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
        if len(text) > 65536:
            continue
        added = [t.content for t in tokenizer.get_added_tokens_decoder().values()]
        maker = compare_tokenizers.RandomTexts(name, sentences, added)
        picked = random.Random(name).sample(sentences[:150], 2) + random.Random(name).sample(sentences[150:270], 3)
        texts = picked + [maker.text() for _ in range(9)] + ["", " "]
        with open(folder / f"{name}.jsonl", "w", encoding="utf-8") as out:
            print(text, file=out)
            for i, t in enumerate(texts):
                try:
                    found = case(tokenizer, t, texts[i - 1] if i % 4 == 3 else None)
                except Exception:
                    continue
                print(json.dumps(found, ensure_ascii=False, separators=(",", ":")), file=out)


if __name__ == "__main__":
    main()
