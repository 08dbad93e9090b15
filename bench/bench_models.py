#!/usr/bin/env python3
"""Pith beside ONNX Runtime, single operators at real shapes, in one interleaved run of one process.

Results are compared before anything is timed. Then both engines take turns: a turn is a few runs with inputs and outputs
in place, and a ratio is the time of ONNX Runtime divided by that of Pith in the same round. The median over the rounds is
printed. Above 1, Pith is faster.
"""
import argparse
import ctypes
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools")]

import operator_cases  # noqa: E402
import pith_ctypes  # noqa: E402

TOLERANCE = 2e-4  # of the largest number of an output
PAUSE = 0.002  # seconds in which the threads of the other engine come to rest


class RunOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("cancel", ctypes.c_void_p),
                ("profile", ctypes.c_void_p)]


class Pith:
    """A session whose inputs stay where they are; run() takes no time of its own beyond one call."""

    def __init__(self, library, model, feeds):
        self.model = pith_ctypes.Model(library, model)
        lib, self.session = self.model.lib, ctypes.c_void_p()
        self.model.check(lib.pith_session_create(ctypes.byref(self.session), self.model.handle, ctypes.byref(self.model.error)))
        self.arrays = [np.array(a, order="C") for a in feeds.values()]
        names = (ctypes.c_char_p * len(feeds))(*[n.encode() for n in feeds])
        inputs = (pith_ctypes.Tensor * len(feeds))()
        for t, a in zip(inputs, self.arrays):
            t.data, t.bytes, t.dtype, t.rank = a.ctypes.data, a.nbytes, pith_ctypes.NUMBERS[a.dtype], a.ndim
            t.dims[: a.ndim] = a.shape
        self.outputs = (pith_ctypes.Tensor * lib.pith_model_output_count(self.model.handle))()
        self.options = RunOptions(ctypes.sizeof(RunOptions), 1, None, None)
        self.call = (self.session, self.outputs, names, inputs, ctypes.c_size_t(len(feeds)), ctypes.byref(self.options),
                     ctypes.byref(self.model.error))

    def threads(self, count):
        self.options.threads = count

    def run(self):
        self.model.check(self.model.lib.pith_session_run(*self.call))

    def results(self):
        return [self.model.array(t) for t in self.outputs]

    def close(self):
        self.model.lib.pith_session_destroy(self.session)
        self.model.close()


class OnnxRuntime:
    """A session per number of threads, bound to its inputs and to outputs that it writes again in every run."""

    def __init__(self, model, feeds, counts):
        self.model, self.feeds, self.bound = model, feeds, {}
        for count in counts:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads, options.log_severity_level = count, 3
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            binding = session.io_binding()
            for name, array in feeds.items():
                binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
            self.first = session.run(None, feeds)
            for port, array in zip(session.get_outputs(), self.first):
                if isinstance(array, np.ndarray):
                    binding.bind_ortvalue_output(port.name, onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array)))
                else:
                    binding.bind_output(port.name)
            self.bound[count] = (session, binding)

    def threads(self, count):
        self.session, self.binding = self.bound[count]

    def run(self):
        self.session.run_with_iobinding(self.binding)


def difference(found, wanted, low):
    """The largest difference of an output, divided by its largest number; of 8-bit results, whether a step is exceeded."""
    most = 0.0
    for a, b in zip(found, wanted):
        if a.shape != b.shape or a.dtype != b.dtype:
            return float("inf")
        a, b = a.astype(np.float64), b.astype(np.float64)
        same = np.isnan(a) == np.isnan(b)
        gap = np.abs(np.nan_to_num(a) - np.nan_to_num(b)).max(initial=0)
        most = max(most, float("inf") if not same.all() else 0 if low and gap <= 1 else gap / max(np.abs(b).max(initial=0), 1e-30))
    return most


def turn(engine, seconds):
    """Seconds per run, over about so many seconds."""
    engine.run()
    start = time.perf_counter()
    engine.run()
    once = time.perf_counter() - start
    runs = max(1, min(1000, round(seconds / max(once, 1e-7))))
    start = time.perf_counter()
    for _ in range(runs):
        engine.run()
    return (time.perf_counter() - start) / runs


def compare(pith, ort, threads, rounds, seconds):
    """Medians: seconds of Pith, of ONNX Runtime, and the ratio."""
    pith.threads(threads), ort.threads(threads)
    times = []
    for _ in range(rounds):
        pair = []
        for engine in (pith, ort):
            time.sleep(PAUSE)
            pair.append(turn(engine, seconds))
        times.append(pair)
    return (statistics.median(p for p, _ in times), statistics.median(o for _, o in times),
            statistics.median(o / p for p, o in times))


def measure(case, arguments):
    ort = OnnxRuntime(case.model, case.feeds, arguments.threads)
    pith = Pith(arguments.library, case.model, case.feeds)
    try:
        pith.run()
        found = difference(pith.results(), ort.first, case.low)
        row = {"name": case.name, "difference": float(found), "good": bool(found <= TOLERANCE)}
        for count in arguments.threads:
            row[f"pith{count}"], row[f"ort{count}"], row[f"ratio{count}"] = compare(
                pith, ort, count, arguments.rounds, arguments.seconds)
        return row
    finally:
        pith.close()


def show(row, counts, before):
    cells = []
    for count in counts:
        then = before.get(row["name"], {}).get(f"ratio{count}")
        was = f" (before {then:5.2f})" if then else ""
        cells.append(f"{row[f'pith{count}'] * 1e3:9.3f} {row[f'ort{count}'] * 1e3:9.3f} {row[f'ratio{count}']:6.2f}{was}")
    wrong = "" if row["good"] else f"   WRONG by {row['difference']:.2g}"
    print(f"{row['name'][:44]:44}", *cells, wrong, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("words", nargs="*", help="only cases or groups whose name contains one of these")
    parser.add_argument("--library", default=ROOT / "build" / "libpith.so")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.004, help="of a turn")
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("--before", help="show the ratios of such a file beside")
    arguments = parser.parse_args()
    before = {r["name"]: r for r in json.loads(Path(arguments.before).read_text())} if arguments.before else {}
    words, rows = [w.lower() for w in arguments.words], []
    print(f"{'ms of Pith, of ONNX Runtime, ratio':44}", *[f"{n} thread{'s' * (n > 1)}".rjust(26) for n in arguments.threads])
    for group, cases in operator_cases.GROUPS.items():
        for case in cases():
            if words and not any(w in group or w in case.name.lower() for w in words):
                continue
            rows.append(measure(case, arguments))
            show(rows[-1], arguments.threads, before)
    for count in arguments.threads:
        ratios = sorted(r[f"ratio{count}"] for r in rows)
        if ratios:
            print(f"{count} threads: {len(ratios)} operators, median {statistics.median(ratios):.2f}, least {ratios[0]:.2f}, "
                  f"{sum(r < 0.8 for r in ratios)} below 0.8")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))
    sys.exit(0 if all(r["good"] for r in rows) else "error: results differ from those of ONNX Runtime")


if __name__ == "__main__":
    main()
