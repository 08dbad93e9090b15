#!/usr/bin/env python3
"""Numbers that several pages give: each has one value, and the headlines are those of the tables that `make bench` writes.

usage: figures.py    a line for each difference"""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# (what, pattern whose group is the value, pages that give it)
SAME = [
    ("size of the library", r"(?:library of|has|library of Pith has) (\d\.\d) MB", ["README.md", "docs/runtimes.md", "docs/performance.md"]),
    ("texts per second, to the fastest peer", r"([\d.]+ to [\d.]+) times as many texts per second as the fastest", ["README.md", "docs/performance.md"]),
    ("first vector of a compiled model", r"(?:first vector|model opens in) (\d) ms", ["README.md", "docs/operating.md"]),
    ("memory in int8", r"(\d+) MB (?:in int8|instead of)", ["docs/performance.md", "docs/own-model.md"]),
    ("memory after many texts", r"(107) MB after 100,000", ["docs/performance.md", "docs/operating.md"]),
    ("speed of tokenizers", r"(\d+ to \d+)\s+times as fast", ["docs/tokenizers.md", "docs/performance/tokenizers.md"]),
    ("distance to sentence-transformers", r"within (2e-6) of sentence-transformers", ["docs/performance.md", "docs/testing.md"]),
    ("correlation of f32 on STS-B", r"correlation of (86\.72)", ["docs/own-model.md", "docs/performance/quality.md"]),
    ("orders of the shop", r"([\d,]+) orders", ["docs/relational.md"]),
    ("known models", r"lists (?:about )?(a hundred)", ["README.md", "docs/models.md"]),
    ("version of onnx", r"ONNX (1\.\d+) except", ["README.md"]),
    ("search of a million vectors", r"(55) (?:to 80 ms)", ["docs/search.md"]),
]


def plain(name):
    return re.sub(r"\s+", " ", (ROOT / name).read_text())


def table(name, mark):
    """The rows of a table between markers."""
    inside = re.search(rf"<!-- {mark} -->\n(.*?)<!-- /{mark} -->", (ROOT / name).read_text(), re.S).group(1)
    return [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in inside.splitlines() if line.startswith("|")][2:]


def faults():
    """(page, what) of each number that differs or is not there."""
    for what, pattern, pages in SAME:
        found = {page: set(re.findall(pattern, plain(page))) for page in pages}
        for page in pages:
            if not found[page]:
                yield page, f"the {what} is not there: {pattern}"
        values = set().union(*found.values())
        if len(values) > 1:
            yield pages[0], f"the {what} is {' and '.join(sorted(values))} in {', '.join(pages)}"
    ratios = [float(row[7]) for row in table("docs/performance.md", "throughput") if "query" not in row[0]]
    headline = f"{min(ratios):.1f} to {max(ratios):.1f} times as many texts per second"
    for page in ("README.md", "docs/performance.md"):
        if headline not in plain(page):
            yield page, f"the table of docs/performance.md says: {headline}"


if __name__ == "__main__":
    for page, what in faults():
        print(f"{page}: {what}")
