#!/usr/bin/env python3
"""What one engine costs for one network, in a process of its own: seconds from opening the file to the first result on one
thread, and the memory that this adds at most. Prints JSON. Arguments: pith or ort, the library, the file, its inputs as
.npz."""
import ctypes
import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "tools")]


def most_bytes():
    line = next(text for text in Path("/proc/self/status").read_text().splitlines() if text.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def with_pith(library, model, feeds):
    import pith_ctypes
    opened = pith_ctypes.Model(library, model)
    opened.run_session(opened.session(), feeds, threads=1)


def with_ort(_, model, feeds):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def main():
    engine, library, model, inputs = sys.argv[1:]
    feeds = dict(np.load(inputs))
    run = with_pith if engine == "pith" else with_ort
    if engine == "pith":  # the library itself is not counted, as little as Python is
        ctypes.CDLL(library)
        import pith_ctypes  # noqa: F401
    else:
        import onnxruntime  # noqa: F401
    before, start = most_bytes(), time.perf_counter()
    run(library, model, feeds)
    print(json.dumps({"seconds": time.perf_counter() - start, "bytes": most_bytes() - before}))


if __name__ == "__main__":
    main()
