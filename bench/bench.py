#!/usr/bin/env python3
"""Pith beside its peers on all-MiniLM-L6-v2, texts to vectors, in one interleaved run.

Every engine works in a process of its own (peers.py) and sleeps while another one is measured. A round asks each of them
once, after a measurement of the multiply-add peak; vectors are compared before anything is timed. Medians, spread and
ratios taken round by round go into a JSON file, from which report.py makes the tables and the plot of docs/performance.md.
"""
import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import memory
import workloads
from peers import PACKAGES, Worker
from setting import ROOT, Files, Peak, engines, flop, has_flag, installed, token_counts

PARTS = ("throughput", "chunks", "threads", "precision", "start", "memory", "size")
TOLERANCE = 1e-5  # of components of f32 vectors of length 1
COSINE = 0.97  # of vectors in 8 bits or bf16 with those in f32
MAX_LENGTH = 512


def start(chosen, **common):
    """Workers of those that are installed, started side by side; one that does not start is named and left out."""
    workers = {name: Worker(kind, **settings, **common) for name, (kind, settings) in chosen.items() if installed(kind)}
    for name, worker in list(workers.items()):
        try:
            worker.load = worker.answer()["load"]
        except RuntimeError as error:
            print(f"{name} does not start: {error}")
            workers.pop(name).close()
    return workers


def stop(workers):
    for worker in workers.values():
        worker.close()


def check(name, vectors, wanted):
    """Largest difference, or least cosine where less than f32 is computed with; ends the run if it is not good."""
    low = name.endswith(("int8", "bf16"))
    found = float((vectors * wanted).sum(1).min() if low else np.abs(vectors - wanted).max())
    if found < COSINE if low else found > TOLERANCE:
        sys.exit(f"error: {name}: vectors are wrong: {'cosine' if low else 'difference'} {found:.2g}")
    return found


def rest(workers, pause=0.01, limit=3.0):
    """Waits until no worker computes: threads of the one before may spin for a while after its answer."""
    used, end = sum(worker.processor_time() for worker in workers), time.monotonic() + limit
    while time.monotonic() < end:
        time.sleep(pause)
        before, used = used, sum(worker.processor_time() for worker in workers)
        if used - before < 0.02 * pause:
            return


def measure(workers, load, threads, rounds, peak, reference):
    """Runner → seconds, cpu seconds; parity first. A runner is a worker with an order."""
    vectors, rows = {}, []
    for name, worker in workers.items():
        pads = name.startswith(("onnxruntime", "openvino"))
        for order in load.orders if pads else load.orders[:1]:
            vectors[name] = np.array(worker.ask(texts=load.texts, order=order, vectors=True), np.float32)
            rows.append(dict(runner=name, order=order, label=order if pads and len(load.orders) > 1 else "", seconds=[], cpu=[]))
    for row in rows:
        row["parity"] = check(row["runner"], vectors[row["runner"]], vectors[reference])
    peaks = []
    for turn in range(rounds):
        peaks.append(peak.flops(threads))
        first = turn % len(rows)  # nobody always follows the same one
        for row in rows[first:] + rows[:first]:
            rest(workers.values())
            for wall, cpu in workers[row["runner"]].ask(calls=load.calls, order=row["order"]):
                row["seconds"].append(wall)
                row["cpu"].append(cpu)
    return rows, peaks


def say(part, result, reference):
    print(f"\n{part}: {result['title']}; {result['threads']} thread(s), {result['texts']} text(s), {result['tokens']} tokens")
    own = next(row for row in result["rows"] if row["runner"] == reference)
    for row in result["rows"]:
        median = statistics.median(row["seconds"])
        ratio = statistics.median(b / a for a, b in zip(own["seconds"], row["seconds"]))
        name = row["runner"] + (", " if row["label"] else "") + row["label"]
        speed = f"{1e3 * median:8.3f} ms      " if result["texts"] == 1 else f"{result['tokens'] / median:8.0f} tokens/s"
        print(f"  {name:34} {speed}  {min(row['seconds']) / median:.2f}..{max(row['seconds']) / median:.2f}  "
              f"{100 * result['flop'] / median / statistics.median(result['peaks']):5.1f} % of peak  "
              f"cpu {sum(row['cpu']) / sum(row['seconds']):.2f}" + ("" if row is own else f"  {reference} is {ratio:.2f}x"), flush=True)


def asked_for(engines_, args):
    return {name: engine for name, engine in engines_.items() if not args.engines or name.startswith(("pith", *args.engines))}


def run_all(part, files, args, peak, engines_, loads, reference="pith"):
    """All workloads with each number of threads, the workers kept from one to the next."""
    for threads in args.threads:
        workers = start(asked_for(engines_, args), threads=threads, max_length=MAX_LENGTH)
        for key, load in loads.items():
            if args.workload and key not in args.workload:
                continue
            lengths = token_counts(files, load.texts, MAX_LENGTH)
            rows, peaks = measure(workers, load, threads, args.rounds, peak, reference)
            result = dict(key=f"{key} {threads}", workload=key, title=load.title, threads=threads, texts=len(load.texts),
                          tokens=sum(lengths), flop=flop(files, lengths), peaks=peaks, rows=rows)
            say(part, result, reference)
            args.keep(part, [result])
        stop(workers)


def throughput(files, args, peak):
    run_all("throughput", files, args, peak, engines(files), workloads.make(args.quick))


def chunks(files, args, peak):
    """How the token budget of a chunk changes Pith's speed; nothing but speed."""
    load = workloads.Workload("tokens in a chunk", workloads.mixed(32 if args.quick else 64))
    sizes = (1, 16, 256, 8192) if args.quick else [1 << i for i in range(14)]
    chosen = {f"pith {n}": ("Pith", dict(source=str(files.model), library=files.library, batch_tokens=n)) for n in sizes}
    run_all("chunks", files, args, peak, chosen, {"chunks": load}, "pith 256")


def threads(files, args, peak):
    """One text on one thread and on all, side by side: what more threads are worth where they must share a single text."""
    load, counts = workloads.one_text(), sorted({1, max(args.threads)})
    workers = start({f"{name}, {n}": (kind, dict(settings, threads=n)) for n in counts
                     for name, (kind, settings) in asked_for(engines(files), args).items()}, max_length=MAX_LENGTH)
    lengths = token_counts(files, load.texts, MAX_LENGTH)
    rows, peaks = measure(workers, load, 1, args.rounds, peak, "pith, 1")
    stop(workers)
    result = dict(key=f"text128 {counts[-1]}", title=load.title, threads=1, texts=1, tokens=sum(lengths), flop=flop(files, lengths),
                  peaks=peaks, rows=rows)
    say("threads", result, "pith, 1")
    args.keep("threads", [result])


def precision(files, args, peak):
    """8 bits and bf16, of Pith and of those that have them."""
    every, tokenizer = engines(files), str(files.model / "tokenizer.json")
    own = dict(source=str(files.model), library=files.library)
    chosen = {"pith": every["pith"], "onnxruntime, optimised": every["onnxruntime, optimised"],
              "pith int8": ("Pith", dict(own, precision="int8")),
              "onnxruntime int8": ("OnnxRuntime", dict(tokenizer=tokenizer, file=files.int8()))}
    if has_flag("bf16"):
        chosen["pith bf16"] = ("Pith", dict(own, precision="bf16"))
        chosen["openvino bf16"] = ("OpenVino", dict(tokenizer=tokenizer, file=files.onnx["exported"], precision="bf16"))
    loads = workloads.make(args.quick)
    loads["mixed"].orders = ("sorted",)
    run_all("precision", files, args, peak, chosen, loads)


def machine(files, peak):
    cpu = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    flags = [name for name in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16") if has_flag(name)]
    versions = {package: importlib.metadata.version(package.replace("_", "-")) for package in
                (*PACKAGES.values(), "torch", "tokenizers") if importlib.util.find_spec(package)}
    revision = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return dict(cpu=cpu, cores=os.cpu_count(), flags=flags, system=f"{platform.system()} {platform.release().split('-')[0]}",
                python=platform.python_version(), versions=versions, revision=revision,
                peak={n: statistics.median(peak.flops(n) for _ in range(5)) for n in (1, os.cpu_count())},
                bandwidth={n: peak.bandwidth(n) for n in (1, os.cpu_count())})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (all)")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--threads", type=int, nargs="+", help="(1 and all; all if --quick)")
    parser.add_argument("--workload", nargs="+", help="only these: short, mixed, words110, tokens512, query, chunks")
    parser.add_argument("--engines", nargs="+", help="Pith and only these of throughput, threads and precision, by the beginnings of their names")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="small workloads, few rounds: below two minutes in all")
    parser.add_argument("--memory-texts", type=int, nargs="+", help="with part memory: how many texts")
    parser.add_argument("--json", type=Path, default=ROOT / "build/bench.json", help="results; parts measured before stay in it")
    args = parser.parse_args()
    if set(args.parts) - set(PARTS):
        parser.error(f"the parts are {', '.join(PARTS)}")
    args.rounds = args.rounds or (3 if args.quick else 5)
    args.threads = args.threads or sorted({os.cpu_count() if args.quick else 1, os.cpu_count()})
    files, peak = Files(args.build), Peak(args.build)
    results = json.loads(args.json.read_text()) if args.json.exists() else {}
    if "machine" not in results:
        results["machine"] = machine(files, peak)
    absent = [PACKAGES[kind] for kind, _ in engines(files).values() if not installed(kind)]
    if absent:
        print("not installed:", ", ".join(sorted(set(absent))))
    run = dict(throughput=throughput, chunks=chunks, threads=threads, precision=precision, start=memory.start, memory=memory.memory,
               size=memory.size)

    def keep(part, found):
        rows = {row["key"]: row for row in [*results.get(part, []), *found]}
        results[part] = list(rows.values())
        args.json.write_text(json.dumps(results, indent=1) + "\n")

    args.keep = keep
    for part in args.parts or PARTS:
        begin = time.time()
        run[part](files, args, peak)
        print(f"[{part}: {time.time() - begin:.0f} s]", flush=True)


if __name__ == "__main__":
    main()
