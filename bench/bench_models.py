#!/usr/bin/env python3
"""Pith beside ONNX Runtime: single operators at real shapes and networks, in one interleaved run.

Results are compared before anything is timed. Then both engines take turns in one process: a turn is a few runs with
inputs and outputs in place. The least time of an engine is the one that other work of the machine disturbed least, so the
ratio is the least time of ONNX Runtime divided by that of Pith; the median of the ratios of single rounds stands beside it.
Above 1, Pith is faster. Loading and memory of a network are measured in processes of their own.
"""
import argparse
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools")]

import network_cases  # noqa: E402
import operator_cases  # noqa: E402
import pith_ctypes  # noqa: E402

TOLERANCE = 2e-4  # of the largest number of an output of one operator
PAGE = ROOT / "docs" / "performance" / "networks.md"
LONG_RUN = 0.05  # seconds: a run as long as this warms up itself
PAUSE = 0.002  # seconds in which the other engine comes to rest
THREADS_PAUSE = 0.05  # the same of several threads: those of ONNX Runtime spin on for a while


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
        self.options = pith_ctypes.RunOptions(threads=1)
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
    """A session for a number of threads, bound to its inputs and to outputs that it writes again in every run."""

    def __init__(self, model, feeds, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        self.feeds, self.session = feeds, onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.first = self.session.run(None, feeds)
        # Outputs of another rank than the file declares cannot be bound.
        plain = any(np.ndim(a) != len(p.shape) for p, a in zip(self.session.get_outputs(), self.first))
        self.binding = None if plain else self.bind()

    def bind(self):
        binding = self.session.io_binding()
        for name, array in self.feeds.items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        for port, array in zip(self.session.get_outputs(), self.first):
            if isinstance(array, np.ndarray):
                binding.bind_ortvalue_output(port.name, onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array)))
            else:
                binding.bind_output(port.name)
        return binding

    def run(self):
        if self.binding:
            self.session.run_with_iobinding(self.binding)
        else:
            self.session.run(None, self.feeds)


class OpenVino:
    """A request whose inputs stay where they are."""

    def __init__(self, model, feeds, threads):
        import openvino
        compiled = openvino.Core().compile_model(model, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
        self.request = compiled.create_infer_request()
        for name, array in feeds.items():
            self.request.set_tensor(name, openvino.Tensor(array))
        self.run()
        self.first = [self.request.get_tensor(port).data.copy() for port in compiled.outputs]

    def run(self):
        self.request.infer()


PEERS = {"ort": OnnxRuntime, "openvino": OpenVino}  # those of a case are its `peers`


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
    """Seconds per run, over about so many seconds; of a network that takes long, over one run."""
    for _ in range(2):  # the first is to warm up
        start = time.perf_counter()
        engine.run()
        once = time.perf_counter() - start
        if once >= LONG_RUN:
            return once
    runs = max(1, min(1000, round(seconds / max(once, 1e-7))))
    start = time.perf_counter()
    for _ in range(runs):
        engine.run()
    return (time.perf_counter() - start) / runs


def compare(engines, rounds, seconds, pause):
    """The least seconds of each engine, and the median over the rounds of its seconds divided by those of the first."""
    times = []
    for _ in range(rounds):
        times.append([])
        for engine in engines:
            time.sleep(pause)
            times[-1].append(turn(engine, seconds))
    return [(min(column), statistics.median(t / first[0] for t, first in zip(column, times))) for column in zip(*times)]


def probe(case, arguments):
    """Milliseconds until the first result and MB that it takes, of both engines: the least of three processes each."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        model, inputs = Path(folder, "model.onnx"), Path(folder, "inputs.npz")
        if isinstance(case.model, bytes):
            model.write_bytes(case.model)
        else:
            model = case.model
        np.savez(inputs, **case.feeds)
        for _ in range(3):
            for engine in ("pith", "ort"):
                command = [sys.executable, str(ROOT / "bench" / "probe_model.py"), engine, str(arguments.library), str(model), str(inputs)]
                row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                found.setdefault(f"{engine}_load", []).append(row["seconds"])
                found.setdefault(f"{engine}_bytes", []).append(row["bytes"])
    return {key: min(values) for key, values in found.items()}


def measure(case, arguments, tolerance):
    """A session of each peer lives at a time, so that memory holds each engine's weights once."""
    pith, row = Pith(arguments.library, case.model, case.feeds), {"name": case.name, "difference": 0.0}
    try:
        pith.run()
        for count in arguments.threads:
            pith.threads(count)
            peers = {name: PEERS[name](case.model, case.feeds, count) for name in case.peers}
            if count == arguments.threads[0]:
                row["difference"] = max(float(difference(pith.results(), peer.first, case.low)) for peer in peers.values())
            (ours, _), *others = compare([pith, *peers.values()], arguments.rounds, arguments.seconds,
                                            PAUSE if count == 1 else THREADS_PAUSE)
            row[f"pith{count}"] = ours
            for name, (least, median) in zip(peers, others):
                row[f"{name}{count}"] = least
                row |= {f"{word(name, 'ratio')}{count}": least / ours, f"{word(name, 'median')}{count}": median}
            del peers
        return row | {"good": row["difference"] <= tolerance}
    finally:
        pith.close()


def word(peer, what):
    """The key of a row for what is told of a peer; of ONNX Runtime, beside which all are measured, it is the word alone."""
    return what if peer == "ort" else f"{peer}_{what}"


def show(row, counts, before):
    cells = []
    for count in counts:
        then = before.get(row["name"], {}).get(f"ratio{count}")
        was = f" (before {then:5.2f})" if then else ""
        also = f", OpenVINO {row[f'openvino{count}'] * 1e3:.3f} {row[f'openvino_ratio{count}']:.2f}" if f"openvino{count}" in row else ""
        cells.append(f"{row[f'pith{count}'] * 1e3:9.3f} {row[f'ort{count}'] * 1e3:9.3f} {row[f'ratio{count}']:6.2f} ({row[f'median{count}']:.2f}){was}{also}")
    wrong = "" if row["good"] else f"   WRONG by {row['difference']:.2g}"
    print(f"{row['name'][:44]:44}", *cells, wrong, flush=True)


def summary(rows, counts, peer="ort"):
    for count in counts:
        ratios = sorted(r[f"{word(peer, 'ratio')}{count}"] for r in rows)
        if ratios:
            yield (f"{count} thread{'s' * (count > 1)}: {len(ratios)} rows, median {statistics.median(ratios):.2f}, least {ratios[0]:.2f}, "
                   f"{sum(r < 0.8 for r in ratios)} below 0.8")


def table(rows, counts, probed, peer="ort", called="ONNX Runtime"):
    titles = [f"{t} thr.: {n}" for t in counts for n in ("Pith, ms", f"{called}, ms", "ratio (median)")]
    titles += ["first result, ms", "memory, MB"] if probed else []
    lines = ["| " + " | ".join(["", *titles]) + " |", "|---" * (len(titles) + 1) + "|"]
    for r in rows:
        cells = [r["name"]]
        for t in counts:
            cells += [f"{r[f'pith{t}'] * 1e3:.3f}", f"{r[f'{peer}{t}'] * 1e3:.3f}",
                      f"{r[word(peer, 'ratio') + str(t)]:.2f} ({r[word(peer, 'median') + str(t)]:.2f})"]
        if probed:
            cells += [f"{r['pith_load'] * 1e3:.0f} and {r['ort_load'] * 1e3:.0f}",
                      f"{r['pith_bytes'] / 1e6:.0f} and {r['ort_bytes'] / 1e6:.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *(f"- {line}" for line in summary(rows, counts, peer))])


def machine():
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")),
                 platform.machine())
    return f"{len(os.sched_getaffinity(0))} cores of an {model}, {platform.system()} {platform.release()}, " \
           f"onnxruntime {onnxruntime.__version__}, openvino {version('openvino')}. Load of the machine when the run began: {os.getloadavg()[0]:.1f}."


def write(networks, operators, counts, where):
    text = PAGE.read_text()
    others = table([r for r in networks if f"openvino{counts[0]}" in r], counts, False, "openvino", "OpenVINO")
    for mark, content in (("networks", table(networks, counts, True)), ("openvino", others),
                          ("operators", table(operators, counts, False)), ("machine", where)):
        head, rest = text.split(f"<!-- {mark} -->\n")
        text = f"{head}<!-- {mark} -->\n{content}\n<!-- /{mark} -->" + rest.split(f"<!-- /{mark} -->")[1]
    PAGE.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("words", nargs="*", help="only cases or groups whose name contains one of these")
    parser.add_argument("--library", default=ROOT / "build" / "libpith.so")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.004, help="of a turn")
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("--before", help="show the ratios of such a file beside")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance/networks.md")
    arguments = parser.parse_args()
    if arguments.write and arguments.words:
        parser.error("--write needs all cases")
    before = {r["name"]: r for r in json.loads(Path(arguments.before).read_text())} if arguments.before else {}
    words, networks, operators, where = [w.lower() for w in arguments.words], [], [], machine()
    print(f"{'ms of Pith, of ONNX Runtime, ratio (median)':44}", *[f"{n} thread{'s' * (n > 1)}".rjust(33) for n in arguments.threads])
    for case in network_cases.networks(words):
        networks.append(measure(case, arguments, case.tolerance) | probe(case, arguments))
        show(networks[-1], arguments.threads, before)
    for group, cases in operator_cases.GROUPS.items():
        for case in cases():
            if not words or any(w in group or w in case.name.lower() for w in words):
                operators.append(measure(case, arguments, TOLERANCE))
                show(operators[-1], arguments.threads, before)
    for what, rows in (("networks", networks), ("operators", operators)):
        for line in summary(rows, arguments.threads):
            print(f"{what}, {line}")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(networks + operators, indent=1))
    if arguments.write:
        write(networks, operators, arguments.threads, where)
    sys.exit(0 if all(r["good"] for r in networks + operators) else "error: results differ from those of ONNX Runtime")


if __name__ == "__main__":
    main()
