#!/usr/bin/env python3
"""Results of bench.py → the tables between the markers of docs/performance.md and docs/performance/*.md, and the plot.

usage: report.py RESULTS.json. Ratios are medians of those of single rounds, each of them best peer over Pith.
"""
import json
import re
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
median = statistics.median


def quantile(values, share):
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


def label(row):
    return row["runner"] + (f", {row['label']}" if row["label"] else "")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def own(result, name="pith"):
    return next((row for row in result["rows"] if row["runner"] == name), None)


def ratio(row, mine):
    return median(b / a for a, b in zip(mine["seconds"], row["seconds"]))


def best(result, match=lambda row: True):
    """The fastest of the peers."""
    peers = [row for row in result["rows"] if not row["runner"].startswith("pith") and match(row)]
    return min(peers, key=lambda row: median(row["seconds"]))


def ordered(results):
    return sorted(results, key=lambda r: (("short", "mixed", "words110", "tokens512", "query").index(r["workload"]), r["threads"]))


def speed(result, row):
    seconds = median(row["seconds"])
    return f"{1e3 * seconds:.2f} ms" if result["texts"] == 1 else f"{result['tokens'] / seconds:,.0f}"


def spread(row):
    m = median(row["seconds"])
    return f"{quantile(row['seconds'], 0.1) / m:.2f} … {quantile(row['seconds'], 0.9) / m:.2f}"


def fraction(result, row):
    return f"{100 * median(result['flop'] / median(row['seconds']) / p for p in result['peaks']):.0f} %"


def throughput(results):
    rows = []
    for r in ordered(results["throughput"]):
        mine, rival = own(r), best(r)
        fast = next((row for row in r["rows"] if row["runner"] == "fastembed"), None)
        rows.append([r["title"], r["threads"], speed(r, mine), spread(mine), fraction(r, mine),
                     f"{sum(mine['cpu']) / sum(mine['seconds']):.2f}", f"{speed(r, rival)} ({label(rival)})",
                     f"**{ratio(rival, mine):.2f}**", f"{ratio(fast, mine):.2f}" if fast else "not installed"])
    return table(["workload", "threads", "Pith, tokens/s", "spread", "of the peak", "CPU/wall", "best peer", "ratio", "to fastembed"], rows)


def engines(results):
    """Everything that was measured; where batches can be sorted by length, the arrival order stands in brackets."""
    found = ordered(results["throughput"])
    rows = []
    for name in dict.fromkeys(row["runner"] for r in found for row in r["rows"]):
        cells = [{row["label"]: speed(r, row) for row in r["rows"] if row["runner"] == name} for r in found]
        rows.append([name, *(f"{c['sorted']} ({c['arrival']})" if "sorted" in c else c.get("", "") for c in cells)])
    return table(["engine", *(f"{r['title']}, {r['threads']} thr." for r in found)], rows)


def latency(results):
    rows = []
    for r in ordered(results["throughput"]):
        if r["workload"] == "query":
            for row in r["rows"]:
                rows.append([r["threads"], label(row), *(f"{1e3 * quantile(row['seconds'], q):.2f}" for q in (0.5, 0.9, 0.99)),
                             "" if row["runner"] == "pith" else f"{median(row['seconds']) / median(own(r)['seconds']):.2f}"])
    return table(["threads", "engine", "p50, ms", "p90", "p99", "p50 over Pith's"], rows)


def chunks(results):
    found = results["chunks"]
    sizes = [row["runner"].split()[1] for row in found[0]["rows"]]
    return table(["tokens in a chunk", *sizes], [[f"{r['threads']} thread{'s' * (r['threads'] > 1)}, tokens/s",
                                                *(speed(r, row) for row in r["rows"])] for r in found])


def threads(results):
    rows = []
    for r in results["threads"]:
        most = r["key"].split()[1]
        for name in dict.fromkeys(row["runner"].rsplit(", ", 1)[0] for row in r["rows"]):
            one, all_ = own(r, f"{name}, 1"), own(r, f"{name}, {most}")
            rows.append([name, speed(r, one), speed(r, all_), spread(all_), f"{ratio(one, all_):.2f}"])
    return table(["engine", "1 thread", "all threads", "spread", "times as fast"], rows)


def precision(results):
    rows = []
    for r in ordered(results["precision"]):
        base = own(r)
        for name, rival in (("pith int8", "onnxruntime int8"), ("pith bf16", "openvino bf16")):
            mine, peer = own(r, name), own(r, rival)
            if mine:
                rows.append([r["title"], r["threads"], name.split()[1], speed(r, mine), f"{ratio(base, mine):.2f}",
                             f"{speed(r, peer)} ({rival.split()[0]})", f"**{ratio(peer, mine):.2f}**", f"{mine['parity']:.4f}",
                             f"{peer['parity']:.4f}"])
    return table(["workload", "threads", "precision", "Pith, tokens/s", "to its f32", "peer", "ratio", "least cosine, Pith",
                  "peer"], rows)


def start(results):
    sizes = {row["runner"]: row["bytes"] for row in results["size"]}
    packages = {"pith": ["libpith.so"], "onnxruntime": ["onnxruntime", "tokenizers"], "openvino": ["openvino", "tokenizers"],
                "fastembed": ["fastembed", "onnxruntime", "tokenizers"],
                "sentence-transformers": ["sentence_transformers", "torch", "tokenizers"]}
    held = {}
    for row in results["memory"]:
        held.setdefault(row["runner"], {})[row["texts"]] = row
    reference = median(next(row for row in results["start"] if row["runner"] == "fastembed")["seconds"])
    rows = []
    for row in results["start"]:
        parts = packages[row["runner"].split(",")[0]]
        by_texts = held.get(row["runner"], {})
        cells = "; ".join(f"{n:,}: {m['peak'] / 1e6:.0f} ({m['anonymous'] / 1e6:.0f})" for n, m in sorted(by_texts.items()))
        seconds = median(row["seconds"])
        rows.append([row["runner"], f"{1e3 * seconds:.0f}", f"1/{reference / seconds:.0f}" if seconds < reference / 2 else
                     f"{seconds / reference:.2f}", cells, f"{sum(sizes[part] for part in parts) / 1e6:.1f} ({', '.join(parts)})"])
    return table(["process", "first vector, ms", "of fastembed's", "texts: MB resident (anonymous)", "MB installed"], rows)


def machine(results):
    m = results["machine"]
    peaks = "; ".join(f"{n} thread{'s' * (int(n) > 1)}: {m['peak'][n] / 1e9:.0f} GFLOP/s, {m['bandwidth'][n] / 1e9:.0f} GB/s" for n in m["peak"])
    versions = ", ".join(f"{name.replace('_', '-')} {version}" for name, version in m["versions"].items())
    return (f"{m['cores']} cores of an {m['cpu']} ({', '.join(m['flags'])}), {m['system']}, Python {m['python']}. Peak of multiply-adds "
            f"and reading from memory: {peaks}. {versions}.")


def plot(results, path):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "pith", "font.size": 9, "font.family": "sans-serif"})
    import matplotlib.pyplot as plt
    most = max(r["threads"] for r in results["throughput"])
    found = [r for r in ordered(results["throughput"]) if r["threads"] == most and r["workload"] != "query"]
    query = next(r for r in results["throughput"] if r["threads"] == most and r["workload"] == "query")
    names = ["pith", "onnxruntime", "openvino", "fastembed", "sentence-transformers"]
    colours = ["#1b6ca8", "#b0b7bf", "#8d99a6", "#e0a458", "#c9d6df"]
    figure, (left, right, below) = plt.subplots(1, 3, figsize=(13, 3.6), gridspec_kw={"width_ratios": [5, 2, 3]})
    for i, name in enumerate(names):
        for k, r in enumerate(found):
            rows = [row for row in r["rows"] if row["runner"].split(",")[0] == name]
            if rows:
                row = min(rows, key=lambda row: median(row["seconds"]))
                rate = r["tokens"] / median(row["seconds"])
                left.bar(k + 0.16 * (i - 2), rate, 0.15, color=colours[i], label=name if k == 0 else None)
        rows = [row for row in query["rows"] if row["runner"].split(",")[0] == name]
        if rows:
            row = min(rows, key=lambda row: median(row["seconds"]))
            right.bar(i, 1e3 * median(row["seconds"]), 0.7, color=colours[i])
            right.text(i, 1e3 * median(row["seconds"]), f"{1e3 * median(row['seconds']):.1f}", ha="center", va="bottom")
    left.set_xticks(range(len(found)), [r["title"].replace(", ", ",\n") for r in found])
    left.set_title(f"tokens a second, f32, {most} threads (each engine's best form)")
    left.legend(frameon=False, ncols=2, fontsize=8)
    left.set_ylim(0, left.get_ylim()[1] * 1.25)
    right.set_xticks([])
    right.set_title(f"{query['title']}: ms (p50)")
    for r in results["chunks"]:
        sizes = [int(row["runner"].split()[1]) for row in r["rows"]]
        below.plot(sizes, [r["tokens"] / median(row["seconds"]) for row in r["rows"]], "o-", ms=3,
                   color=colours[0] if r["threads"] == most else colours[2], label=f"{r['threads']} thread{'s' * (r['threads'] > 1)}")
    below.set_xscale("log", base=2)
    below.set_xticks([1, 8, 64, 512, 4096], ["1", "8", "64", "512", "4096"])
    below.set_ylim(0, below.get_ylim()[1] * 1.15)
    below.set_title("Pith: tokens a second by tokens in a chunk")
    below.legend(frameon=False, loc="lower right")
    for axes in (left, right, below):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    results = json.loads(Path(sys.argv[1]).read_text())
    needs = {"start": ("start", "memory", "size"), "engines": ("throughput",), "latency": ("throughput",)}
    for page in (ROOT / "docs/performance.md", *sorted((ROOT / "docs/performance").glob("*.md"))):
        text = page.read_text()
        for make in (machine, throughput, engines, latency, chunks, threads, precision, start):
            name = make.__name__
            if all(part in results for part in needs.get(name, (name,))):
                pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
                text = pattern.sub(lambda m: m[1] + make(results) + "\n" + m[2], text)
        page.write_text(text)
    if "throughput" in results and "chunks" in results:
        plot(results, ROOT / "docs/performance.svg")


if __name__ == "__main__":
    main()
