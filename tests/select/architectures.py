#!/usr/bin/env python3
"""What a program weighs that holds one architecture: the table of docs/selective-build.md.

usage: architectures.py PITH SOURCE_DIR BUILD_DIR WORK_DIR [--write]
Each row is a small model of tests/data with a tokenizer of the kind that its architecture has. A program with the pieces of its list is linked,
run, and weighed. --write: the figures go into the page; else they must not be more than 2 % above those there.
"""
import json
import re
import shutil
import sys
from pathlib import Path

import size
import small

PITH, SOURCE, BUILD, WORK = (Path(a).resolve() for a in sys.argv[1:5])
DATA, PAGE = SOURCE / "tests/data", SOURCE / "docs/selective-build.md"
BEGIN, END = "<!-- written by tests/select/architectures.py -->\n", "<!-- end -->\n"
SLACK = 1.02
WORDPIECE, BYTES, UNIGRAM = "modules/chain", "modules/layers-decoder", "tasks/cross-xlm-roberta"
# architecture, such as: a model, small model of it, its tokenizer (None: the model has one), program
ROWS = [
    ("BERT", "all-MiniLM-L6-v2, bge, e5, gte v1", "hf/bert", WORDPIECE, "embed"),
    ("DistilBERT", "multi-qa-distilbert", "hf/distilbert", WORDPIECE, "embed"),
    ("MPNet", "all-mpnet-base-v2", "hf/mpnet", WORDPIECE, "embed"),
    ("RoBERTa", "all-distilroberta-v1", "hf/roberta", BYTES, "embed"),
    ("XLM-RoBERTa", "multilingual-e5, bge-m3", "tasks/cross-xlm-roberta", UNIGRAM, "embed"),
    ("DeBERTa v3", "deberta-v3", "hf/deberta-v3", UNIGRAM, "embed"),
    ("ModernBERT", "gte-modernbert-base", "hf/modernbert", BYTES, "embed"),
    ("Nomic BERT", "nomic-embed-text-v1.5", "hf/nomic", WORDPIECE, "embed"),
    ("GTE (new)", "gte-multilingual-base, snowflake-arctic-embed-m-v2", "hf/gte", UNIGRAM, "embed"),
    ("Jina BERT v2", "jina-embeddings-v2", "hf/jina-v2", WORDPIECE, "embed"),
    ("Jina v3", "jina-embeddings-v3", "hf/jina-v3", UNIGRAM, "embed"),
    ("Qwen2", "gte-Qwen2", "hf/qwen2", BYTES, "embed"),
    ("Qwen3", "Qwen3-Embedding", "hf/qwen3", BYTES, "embed"),
    ("static embeddings", "static-retrieval-mrl, potion", "modules/static", None, "embed"),
    ("CLIP, text", "clip-ViT-B-32", "vision/clip-text", BYTES, "embed"),
    ("CLIP, pictures", "clip-ViT-B-32", "vision/clip-vision", None, "images"),
    ("ViT, pictures", "vit-base-patch16", "vision/vit", None, "images"),
    ("YuNet, faces", "face_detection_yunet", "yunet/yunet-s-640-other-sizes", None, "detect"),
]


def prepare(row):
    """A folder with the model and its tokenizer."""
    _, _, model, tokenizer, _ = row
    folder = WORK / model.replace("/", "-")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DATA / model, folder)
    if tokenizer and tokenizer != model:
        vocabulary = json.loads((folder / "config.json").read_text()).get("vocab_size", 96)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            text = (DATA / tokenizer / name).read_text()
            whole = json.loads(text)
            if name == "tokenizer.json" and isinstance(whole["model"]["vocab"], list):
                whole["model"]["vocab"] = whole["model"]["vocab"][:vocabulary]
                text = json.dumps(whole)
            (folder / name).write_text(text)
    return folder


def weigh(programs, row, model, name):
    use = {"embed": "embed", "images": "images", "detect": "detect"}[row[4]]
    listed = WORK / f"{name}.yaml"
    done = small.run(PITH, "select", "-q", "--use", use, model, "-o", listed)
    assert done.returncode == 0, done.stderr
    done = programs.folder.lists(name, "--list", listed, "--dtypes", "ON", "--isas", "avx2")
    assert done.returncode == 0, done.stderr
    out = programs.link([row[4]], f"{name}.out", True, [programs.folder._compile("src/select/tables.c", WORK / name)])
    done = small.run(out, model, *(["a cat"] if row[4] == "embed" else []))
    assert done.returncode == 0, (row, done.stdout)
    return sum(size.sizes(out)) - programs.empty[True]


def table():
    programs = size.Programs(SOURCE, BUILD, WORK)
    lines = ["| architecture | such as | from its files | from a `.pith` file |", "|---|---|---|---|"]
    for number, row in enumerate(ROWS):
        model = prepare(row)
        network = model / "model.onnx" if row[4] == "detect" else model
        compiled = WORK / f"{model.name}.pith"
        done = small.run(PITH, "compile", network, "-o", compiled)
        assert done.returncode == 0, done.stderr
        found = [weigh(programs, row, m, f"{k}{number}") for k, m in (("files", network), ("compiled", compiled))]
        lines.append(f"| {row[0]} | {row[1]} | {found[0]:,} | {found[1]:,} |")
        print(lines[-1], flush=True)
    return lines


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    page = PAGE.read_text()
    before = page[page.index(BEGIN) + len(BEGIN):page.index(END)]
    lines = table()
    if "--write" in sys.argv:
        PAGE.write_text(page.replace(BEGIN + before, BEGIN + "\n".join(lines) + "\n"))
        return
    old = {m[1]: [int(n.replace(",", "")) for n in m[2].split(" | ")] for m in re.finditer(r"^\| ([^|]+) \| [^|]+ \| ([\d,]+ \| [\d,]+) \|$", before, re.M)}
    faults = 0
    for m in re.finditer(r"^\| ([^|]+) \| [^|]+ \| ([\d,]+ \| [\d,]+) \|$", "\n".join(lines), re.M):
        for now, was in zip([int(n.replace(",", "")) for n in m[2].split(" | ")], old.get(m[1], [0, 0])):
            if now > was * SLACK:
                faults += 1
                print(f"{m[1]}: {now} bytes, and the page has {was}; make sizes writes the table")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
