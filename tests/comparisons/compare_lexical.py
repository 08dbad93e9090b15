#!/usr/bin/env python3
"""Compares BM25 with fastembed: every code point, and the stems of a vocabulary in every language.

usage: compare_lexical.py PITH VOCABULARY...     (needs fastembed; VOCABULARY: tokenizer.json files, whose words are taken,
                                                  or LANGUAGE=FILE, a word per line; wordfreq has such lists)
Prints the stems that differ, and fails if there are more than one in a thousand words of a language. The words of a
language are those in its letters; languages that are not in LETTERS get all words.
"""
import json
import subprocess
import sys
import tempfile
import unicodedata

import mmh3
from fastembed.sparse.bm25 import Bm25, supported_languages
from py_rust_stemmers import SnowballStemmer


LETTERS = {"danish": "æøå", "dutch": "áéíóúäëïöüè", "finnish": "åäö", "french": "àâæçéèêëîïôœùûüÿ", "german": "äöüß",
           "hungarian": "áéíóöőúüű", "italian": "àèéìîòù", "norwegian": "æøå", "portuguese": "áâãàçéêíóôõú",
           "romanian": "ăâîșțşţ", "spanish": "áéíñóúü", "swedish": "åäö", "turkish": "çğıöşü"}


def fastembed(language, texts, folder, query=False):
    model = Bm25("Qdrant/bm25", specific_model_path=folder, language=language)
    rows = model.query_embed(texts) if query else model.raw_embed(texts)
    return [dict(zip(r.indices.tolist(), r.values.tolist())) for r in rows]


def pith(command, language, texts):
    out = subprocess.run([command, "embed", "--bm25", language, "-0"], input="\0".join(texts).encode() + b"\0",
                         capture_output=True, check=True).stdout
    return [dict(zip(r["indices"], r["values"])) for r in map(json.loads, out.splitlines())]


def words_of(path):
    with open(path) as f:
        vocabulary = json.load(f)["model"]["vocab"]
    pieces = vocabulary if isinstance(vocabulary, dict) else [p[0] for p in vocabulary]
    words = {p.lstrip("▁Ġ##").lower() for p in pieces}
    return {w for w in words if w.isalpha()}


def main():
    command, vocabularies = sys.argv[1], [v for v in sys.argv[2:] if "=" not in v]
    lists = dict(v.split("=", 1) for v in sys.argv[2:] if "=" in v)
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/config.json", "w") as f:
            f.write("{}")
        points = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
        texts = [f"ab{chr(c)}cd {chr(c)}" for c in points]
        ours, theirs = pith(command, "english", texts), fastembed("english", texts, folder)
        differ = [c for c, a, b in zip(points, ours, theirs) if set(a) != set(b)]
        known = [c for c in differ if unicodedata.category(chr(c)) != "Cn"]
        print(f"{len(points)} code points: {len(differ)} differ, {len(known)} of them known to this Python's Unicode "
              f"{unicodedata.unidata_version}", " ".join(f"{c:04X}" for c in known[:40]))
        bad |= bool(known)
    words = sorted(set().union(*map(words_of, vocabularies)))
    for language in supported_languages:
        stemmer = SnowballStemmer(language)
        letters = set("abcdefghijklmnopqrstuvwxyz" + LETTERS.get(language, ""))
        own = [w for w in words if language not in LETTERS or letters.issuperset(w)]
        if language in lists:
            with open(lists[language]) as f:
                own += f.read().split()
        own = sorted({w for w in own if len(w) <= 40} - {"_"})
        if not own:
            continue
        wanted = [stemmer.stem_word(w) for w in own]
        rows = pith(command, language, own)
        other = [(w, s) for w, s, r in zip(own, wanted, rows) if set(r) != ({abs(mmh3.hash(s))} if s else set())]
        print(f"{language}: {len(other)} of {len(own)} stems differ ({100 * len(other) / len(own):.4f} %)", *other[:12])
        bad |= len(other) > len(own) / 1000
    sys.exit(bad)


if __name__ == "__main__":
    main()
