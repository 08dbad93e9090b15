#!/usr/bin/env python3
"""Writes tests/data/decoders/cases.jsonl: what Hugging Face tokenizers make of drawn tokens with every decoder.

Line 1 is the vocabulary; every other line is a decoder with lists of ids and the texts they give."""
import json
import pathlib
import random

from tokenizers import Tokenizer, decoders, models

PATH = pathlib.Path(__file__).resolve().parents[1] / "data/decoders/cases.jsonl"


def byte_characters():
    """The character GPT-2 spells each byte with."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return {b: chr(b) if b in plain else chr(next(others)) for b in range(256)}


def vocabulary():
    spelled = byte_characters()
    bytes_ = [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xA9, 0xBF, 0xC1, 0xC2, 0xC3, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF1, 0xF4,
              0xF5, 0xFF]
    words = ["a", "##b", "##", "c</w>", "</w>", "</w", "▁d", "▁", "▁▁e▁", "|", "||", "<pad>", "pad", "f|g<pad>", "h", " .", " ?", " n't",
             " ' ", " do not", " 's", "xx", "x", "xxxy", " z ", "é", "日本", "_", "_i", "<0x4a>", "<0x4A>", "<0x+a>", "<0xg0>", "<0x4>",
             "[X]j"]
    return words + [f"<0x{b:02X}>" for b in bytes_] + [spelled[b] for b in bytes_ if spelled[b] not in words]


def kinds():
    d = decoders
    return [None, d.ByteLevel(), d.ByteFallback(), d.Fuse(),
            d.WordPiece(), d.WordPiece(prefix="x", cleanup=False), d.WordPiece(prefix="", cleanup=True),
            d.BPEDecoder(), d.BPEDecoder(suffix="x"), d.CTC(), d.CTC(pad_token="x", word_delimiter_token="||", cleanup=True),
            d.CTC(pad_token="[X]", word_delimiter_token="_", cleanup=False),
            d.Metaspace(), d.Metaspace(replacement="_", prepend_scheme="never"), d.Metaspace(replacement="x", prepend_scheme="first"),
            d.Strip(content="x", left=1, right=0), d.Strip(content="x", left=0, right=2), d.Strip(content="▁", left=2, right=1),
            d.Replace("x", ""), d.Replace("▁", " "), d.Replace("a", "bcd"),
            d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(content=" ", left=1, right=0)])]


# As files may have them: what is not said has a usual value.
BARE = [{"type": "WordPiece"}, {"type": "BPEDecoder"}, {"type": "CTC"}, {"type": "Metaspace"},
        {"type": "Metaspace", "replacement": "_", "add_prefix_space": False}, {"type": "Metaspace", "replacement": "_", "add_prefix_space": True},
        {"type": "Metaspace", "replacement": "_", "add_prefix_space": True, "prepend_scheme": "never"},
        {"type": "Metaspace", "replacement": "_", "prepend_scheme": "always", "add_prefix_space": True}]


def decoded(tokenizer, ids):
    """None where the peer panics (Strip on a token of nothing else)."""
    try:
        return tokenizer.decode(ids, skip_special_tokens=False)
    except BaseException as e:
        if type(e).__name__ != "PanicException":
            raise
        return None


def main():
    rng = random.Random(1)
    tokens = vocabulary()
    base = json.loads(Tokenizer(models.WordLevel({t: i for i, t in enumerate(tokens)}, unk_token="a")).to_str())
    lines = [{"vocab": tokens}]
    configs = [json.loads(Tokenizer.from_str(json.dumps(base)).to_str())["decoder"] if k is None else json.loads(k.__getstate__())
               for k in kinds()]
    for config in configs + BARE:
        try:
            tokenizer = Tokenizer.from_str(json.dumps(base | {"decoder": config}))
        except Exception as e:  # the peer wants more than we do
            print(f"{config}: {e}")
            continue
        ids = [[i] for i in range(len(tokens))] + [[rng.randrange(len(tokens)) for _ in range(rng.randrange(2, 9))] for _ in range(40)]
        ids += [[i, i, rng.randrange(len(tokens)), i] for i in range(len(tokens))]
        if config and config["type"].startswith("Byte"):  # every byte after every other
            first = tokens.index("<0x00>" if config["type"] == "ByteFallback" else byte_characters()[0])
            ids += [[i, j] for i in range(first, first + 22) for j in range(first, first + 22)]
        known = [(x, text) for x in ids if (text := decoded(tokenizer, x)) is not None]
        lines.append({"decoder": config, "ids": [x for x, _ in known], "texts": [text for _, text in known]})
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text("".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines))


main()
