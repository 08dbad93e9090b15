"""What else an engine costs: time from process start to the first vector, memory, bytes on disk."""
import importlib.metadata
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import workloads
from peers import PACKAGES, Worker
from setting import engines, installed


def commands(files):
    """Pith as a process: from each form of the model there is."""
    forms = {"pith, safetensors": str(files.model)}
    for precision in ("f32", "int8") if files.knows("--precision") else ("f32",):
        forms[f"pith, compiled {precision}"] = files.compile(precision)
    return {name: [files.command, "embed", "--format", "f32", "-m", source] for name, source in forms.items()}


def peers(files):
    return {name: engine for name, engine in engines(files).items() if name != "pith" and installed(engine[0])}


def start(files, args, peak):
    """Process start to first vector, everything in the page cache, one process after the other."""
    seconds = {}
    for _ in range(1 if args.quick else 5):
        for name, command in commands(files).items():
            for _ in range(5):
                begin = time.perf_counter()
                subprocess.run(command, input=b"hello\n", stdout=subprocess.DEVNULL, check=True)
                seconds.setdefault(name, []).append(time.perf_counter() - begin)
        for name, (kind, settings) in peers(files).items():
            begin = time.perf_counter()
            worker = Worker(kind, threads=os.cpu_count(), max_length=256, **settings)
            worker.answer()
            worker.ask(texts=["hello"], order="arrival", vectors=True)
            seconds.setdefault(name, []).append(time.perf_counter() - begin)
            worker.close()
    print()
    for name, values in seconds.items():
        print(f"  {name:34} {1e3 * statistics.median(values):8.1f} ms to the first vector  {min(values) * 1e3:.1f}..{max(values) * 1e3:.1f}")
    args.keep("start", [dict(key=name, runner=name, seconds=values) for name, values in seconds.items()])


def watch(command, file, stderr=None):
    """Most resident bytes, and most of them that no file backs, of a process that reads the file."""
    with open(file, "rb") as texts:
        process = subprocess.Popen(command, stdin=texts, stdout=subprocess.DEVNULL, stderr=stderr)
    most = dict(peak=0, anonymous=0)
    while process.poll() is None:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            for key, field in (("peak", "VmHWM:"), ("anonymous", "RssAnon:")):
                if line.startswith(field):
                    most[key] = max(most[key], int(line.split()[1]) * 1024)
        time.sleep(0.02)
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return most


def memory(files, args, peak):
    """Texts of mixed lengths over the whole vocabulary; the others as Python processes, which is how they come."""
    words = workloads.whole_words(files.model / "vocab.txt")
    found = []
    for count in args.memory_texts or ([500] if args.quick else [2000]):
        texts = workloads.mixed(count, words)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("".join(text + "\n" for text in texts))
            file.flush()
            for name, command in commands(files).items():
                found.append(dict(key=f"{name} {count}", runner=name, texts=count, **watch(command, file.name)))
        for name, (kind, settings) in peers(files).items() if count <= 2000 else ():
            worker = Worker(kind, threads=os.cpu_count(), max_length=256, **settings)
            worker.answer()
            worker.ask(texts=texts, order="arrival")
            worker.ask(calls=1, order="arrival")
            found.append(dict(key=f"{name} {count}", runner=name, texts=count, **worker.ask(memory=True)))
            worker.close()
    print()
    for row in found:
        print(f"  {row['runner']:34} {row['texts']:6} texts  {row['peak'] / 1e6:7.1f} MB resident, {row['anonymous'] / 1e6:7.1f} MB "
              "anonymous")
    args.keep("memory", found)


def size(files, args, peak):
    """Bytes installed: Pith stripped, a Python package without what it needs beside it."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("libpith.so", "pith"):
            subprocess.run(["strip", "-o", f"{folder}/{name}", str(files.build / name)], check=True)
            found.append(dict(key=name, runner=name, bytes=os.path.getsize(f"{folder}/{name}")))
    for package in sorted({*PACKAGES.values(), "torch", "tokenizers"}):
        try:
            parts = importlib.metadata.files(package.replace("_", "-")) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.append(dict(key=package, runner=package, bytes=sum(p.locate().stat().st_size for p in parts if p.locate().is_file())))
    print()
    for row in found:
        print(f"  {row['runner']:34} {row['bytes'] / 1e6:8.1f} MB")
    args.keep("size", found)
