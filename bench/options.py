#!/usr/bin/env python3
"""What options bring, each step beside the one before: time of one text, throughput of many, memory, allocations.

usage: options.py [--build DIR] [--rounds N] [--threads N] [--write]      (make bench-options)
The baseline runs the graph as written, allocates each activation for its step, plans each run anew, and pads batches of 8 in
the order of arrival. Every setting has a process of its own; rounds are interleaved. --write puts the tables into
docs/performance/options.md.
"""
import argparse
import ctypes
import os
import statistics
import sys
import time
from pathlib import Path

import workloads
from peers import Worker
from setting import ROOT, Files

sys.path[:0] = [str(ROOT / "tools")]
from pith_ctypes import NO_ARENA, NO_PLAN_REUSE, Batching, Model

PAGE = ROOT / "docs/performance/options.md"
ALONE = dict(pool_blocks=-1, sessions=-1)
TARGETS = (25, 75, 250)  # milliseconds of a window
# name, kind, options of opening
SETTINGS = (
    ("baseline", "PithSession", dict(optimization=0, flags=NO_ARENA | NO_PLAN_REUSE, **ALONE)),
    ("+ passes (`--optimization 3`)", "PithSession", dict(flags=NO_ARENA | NO_PLAN_REUSE, **ALONE)),
    ("+ `--plan-reuse`", "PithSession", dict(flags=NO_ARENA, **ALONE)),
    ("+ `--arena`", "PithSession", dict(**ALONE)),
    ("+ pool of freed buffers", "PithSession", {}),
    ("texts by `pith embed`, which pads nothing", "Pith", {}),
)
# The guide's promises for its workloads: lower latency, less memory, times the throughput.
PROMISES = {"one text": ("20-40 %", "15-30 %", "-"), "a batch": ("40-70 %", "30-50 %", "2-3x"),
            "texts one by one": ("25-45 %", "20-35 %", "1.5-2x")}


def works(quick):
    texts = workloads.mixed(64 if quick else 256)
    return {"one text": [[workloads.QUERY]] * 20, "a batch": [texts], "texts one by one": [[text] for text in texts[:64]]}


def measure(worker, calls):
    """Seconds of one call of each kind, and what was allocated in it."""
    seconds = []
    for texts in calls:
        worker.ask(texts=texts, order="arrival")
        seconds += [wall for wall, _ in worker.ask(calls=1, order="arrival")]
    return sum(seconds) / len(seconds)


def run(files, args):
    """(setting, workload) → seconds of rounds, bytes, allocations per call."""
    found, workers = {}, {}
    for name, kind, options in SETTINGS:
        source = dict(source=str(files.model)) if kind == "Pith" else dict(file=files.onnx["exported"])
        workers[name] = Worker(kind, threads=args.threads, max_length=256, library=files.library,
                               tokenizer=str(files.model / "tokenizer.json"), options=options, **source)
        workers[name].answer()
    for work, calls in works(args.rounds < 3).items():
        for worker in workers.values():
            measure(worker, calls)  # warm
            worker.ask(counted=True)
        for _ in range(args.rounds):
            for name, worker in workers.items():
                found.setdefault((name, work), dict(seconds=[]))["seconds"].append(measure(worker, calls))
        for name, worker in workers.items():
            counted = worker.ask(counted=True)
            found[name, work].update(allocations=counted["allocations"] / (args.rounds * len(calls)), bytes=counted["peak_bytes"],
                                     ratios={key: counted[key] for key in ("pool_hit_ratio", "buffer_reuse_ratio", "plan_reuse_ratio")})
    for worker in workers.values():
        worker.close()
    return found


def windows(model, texts, args, **batching):
    """Texts per second of a call, and the seconds that nine of ten windows take at most."""
    times = []
    done = Batching.DONE(lambda *_: times.append(time.perf_counter()))
    begin = time.perf_counter()
    model.embed(texts, args.threads, max_length=256, batching=Batching(size=ctypes.sizeof(Batching), done=done, **batching))
    spans = sorted(b - a for a, b in zip([begin, *times], times))
    return len(texts) / (times[-1] - begin), spans[int(0.9 * (len(spans) - 1))]


def targets(files, args):
    """Windows steered to a latency, beside windows of fixed sizes: (target or size) → rates and p90s of rounds."""
    model, texts = Model(files.library, files.model), workloads.mixed(256 if args.rounds < 3 else 2048)
    found = {}
    windows(model, texts[:64], args)
    for _ in range(max(1, args.rounds // 3)):
        for size in (8, 16, 32, 64, 128, 256):
            found.setdefault(size, []).append(windows(model, texts, args, least=size, most=size))
        for target in TARGETS:
            found.setdefault(f"{target} ms", []).append(windows(model, texts, args, target_ms=target))
    model.close()
    return {key: tuple(statistics.median(values) for values in zip(*rounds)) for key, rounds in found.items()}


def target_table(found):
    lines = ["### `--target-latency`\n", "Windows of mixed texts, steered so that nine of ten end in time, compared with the fixed size that is best "
             "among those that do.\n", "| target | p90 of windows | texts/s | best fixed size | its p90 | its texts/s | ratio |",
             "|---|---|---|---|---|---|---|"]
    for target in TARGETS:
        rate, late = found[f"{target} ms"]
        fixed = [(r, p, size) for size, (r, p) in found.items() if isinstance(size, int) and 1e3 * p <= target]
        r, p, size = max(fixed, default=(0, 0, 0))
        best = f"{size} | {1e3 * p:.1f} ms | {r:.0f} | {rate / r:.2f}" if fixed else "none | - | - | -"
        lines.append(f"| {target} ms | {1e3 * late:.1f} ms | {rate:.0f} | {best} |")
    return "\n".join(lines)


def change(old, new):
    return f"{100 * (new / old - 1):+.0f} %"


def tables(found):
    lines = []
    for work in PROMISES:
        base = found[SETTINGS[0][0], work]
        lines += [f"### {work}\n", "| setting | ms per call | spread | to the baseline | MB held | allocations per call | of the baseline |",
                  "|---|---|---|---|---|---|---|"]
        for name, *_ in SETTINGS:
            row = found[name, work]
            ratios = sorted(a / b for a, b in zip(row["seconds"], base["seconds"]))
            lines.append(f"| {name} | {1e3 * statistics.median(row['seconds']):.2f} | {ratios[0]:.2f} … {ratios[-1]:.2f} | "
                         f"{change(1, statistics.median(ratios))} | {row['bytes'] / 1e6:.0f} | {row['allocations']:.1f} | "
                         f"{change(base['allocations'], row['allocations'])} |")
        lines.append("")
    lines += ["### Compared with what a guide for such options promised\n", "| workload | promised: latency, memory, throughput | found: latency, "
              "memory, throughput |", "|---|---|---|"]
    for work, promise in PROMISES.items():
        base, last = found[SETTINGS[0][0], work], found[SETTINGS[-1][0], work]
        ratio = statistics.median(a / b for a, b in zip(last["seconds"], base["seconds"]))
        lines.append(f"| {work} | {', '.join(promise)} | {100 * (1 - ratio):.0f} %, {100 * (1 - last['bytes'] / base['bytes']):.0f} %, "
                     f"{1 / ratio:.1f}x |")
    best = found[SETTINGS[-1][0], "a batch"]["ratios"]
    lines += ["", "In a batch, by the last setting: " + ", ".join(f"{key} {value:.3f}" if value is not None else f"{key} -"
                                                                 for key, value in best.items()) + "."]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance/options.md")
    args = parser.parse_args()
    files = Files(args.build.resolve())
    text = tables(run(files, args)) + "\n\n" + target_table(targets(files, args))
    print(text)
    if args.write:
        head, tail = PAGE.read_text().split("<!-- options -->\n")[0], PAGE.read_text().split("<!-- /options -->")[1]
        PAGE.write_text(f"{head}<!-- options -->\n{text}\n<!-- /options -->{tail}")


if __name__ == "__main__":
    main()
