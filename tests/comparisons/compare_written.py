#!/usr/bin/env python3
"""Every ONNX file that export, optimize and quantize write, for every option that changes it: checked by onnx.checker
(full_check) and ONNX Runtime.

usage: compare_written.py PITH LIBRARY [--nodes FOLDER] [--all | --step N --ways N] [--random N] [--seed S]
    [--only TEXT] [--show N] [--jobs N] FOLDER...
Models are ONNX test folders below the FOLDERs, ONNX's node tests (--nodes), the files of tests/data/cases, and N random
networks (random_networks.py; seed S + i is network i). Each model is written in every way (--all), or in some of them, so
that each way comes with many models; cases come in every way. Of what is written is asked:
  - that onnx.checker passes it, if it passes the original, and that ONNX Runtime opens it, if it opens the original;
  - that inputs and outputs have the names, types and fixed sizes of the original;
  - that the file is not larger, but for the names of a few more nodes;
  - that results are those that ONNX Runtime has of the original, as near as the types of the way allow. What ONNX
    Runtime has no kernels for (bf16) is run by Pith.
A refusal must be one of REFUSALS. Exit status 1 if anything is otherwise.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from pith_ctypes import Model, PithError
from random_networks import network

# How far results may be from the original's, times its largest number: other orders of sums; f16 and bf16 have 11 and 8
# digits; and codes of 8 and 4 bits, whose errors grow from layer to layer.
SAME, HALF, BRAIN, BYTES, NIBBLES = 2e-5, 2e-2, 0.15, 0.15, 0.6
COARSE = 2e-2  # of models that round values themselves

Way = collections.namedtuple("Way", "verb options near")


def ways():
    plain = [["--level", 1], ["--level", 2], ["--level", 3], ["--standard"], ["--gpu"], ["--fuse", "com.microsoft"], ["--external"]]
    for options in plain:
        yield Way("optimize", options, SAME)
    yield Way("optimize", ["--free-shapes"], SAME)
    for opset in range(17, 27):
        yield Way("optimize", ["--opset", opset], SAME)
    for opset in range(17, 26):
        yield Way("export", ["--opset", opset], SAME)
    for options in [[], ["--fuse", "com.microsoft"], ["--external"], ["--int32-inputs"]]:
        yield Way("export", options, SAME)
    for dtype, near in (("f16", HALF), ("bf16", BRAIN)):
        for options in [[], ["--gpu"], ["--fuse", "com.microsoft"], ["--standard"], ["--narrow-ports"], ["--keep-f32", "MatMul"], ["--opset", 17]]:
            yield Way("optimize", ["--dtype", dtype, *options], near)
        for options in [[], ["--fuse", "com.microsoft"], ["--opset", 18]]:
            yield Way("export", ["--dtype", dtype, *options], near)
    for options, near in [([], BYTES), (["--no-per-row"], BYTES), (["--reduce-range"], BYTES), (["--table", "f32"], BYTES),
                          (["--keep-f32", "MatMul"], BYTES), (["--scheme", "q8"], BYTES), (["--scheme", "q8", "--accuracy", 4], BYTES),
                          (["--scheme", "q8", "--asymmetric"], BYTES), (["--scheme", "q4"], NIBBLES),
                          (["--scheme", "q4", "--block", 16], NIBBLES), (["--scheme", "q4", "--asymmetric", "--accuracy", 0], NIBBLES),
                          (["--scheme", "q4", "--table", 4, "--table-block", 16], NIBBLES), (["--external"], BYTES)]:
        yield Way("quantize", [*options, "--calibrate", "none"], near)
    for ranges in ("min-max", "percentile", "entropy"):
        yield Way("quantize", ["--scheme", "static", "--range-method", ranges, "--calibrate", None], 0.3 if ranges == "min-max" else 2)


WAYS = list(ways())
# Options that change what is asked of a file; None: what was calibrated.
CONDITIONS = frozenset(["--dtype", "f16", "bf16", "--free-shapes", "--narrow-ports", "--int32-inputs", "--external", "--fuse", None])

# What may be refused, and why that is right.
REFUSALS = [r"opset \d+, which is asked for, lacks", r"its operator needs opset \d+, and \d+ is asked for",
            r"no opset from 17 on has its form",  # Scan over a batch, of opset 8
            r"the model has no weights of f32 that could get fewer bits",
            r"is an optional or of no known type",  # what an optional holds is not kept
            r"has a default; inputs and outputs have to keep their types",
            r"its mask is neither",  # the file's own attention of com.microsoft, whose mask has no form
            r"constant '.*' has (a NaN|an infinity)",
            r"packed rows",  # the file's own PackedAttention, which has no form
            r"operators or opsets this build does not know", r"dtypes that are not supported", r"is not supported",
            r"calibration.*(is no tensor of|set \d)", r"weights of another size"]
# Small errors of an input change their results by any amount.
JUMPS = {"Floor", "Ceil", "Round", "Mod", "ArgMax", "ArgMin", "TopK", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal", "Sign",
         "NonMaxSuppression", "Unique", "Cast", "IsInf", "IsNaN", "Not", "Where", "NonZero", "QuantizeLinear", "DynamicQuantizeLinear",
         "OneHot", "Hardmax", "Compress", "BitShift", "RandomNormal", "RandomUniform", "Bernoulli", "Multinomial", "RoiAlign", "MaxRoiPool",
         "Resize", "GridSample", "If", "Loop", "Tan", "Reciprocal", "Div", "Pow", "Exp", "Acosh", "Atanh", "Log", "Det", "ReduceLogSum",
         "ReduceProd", "Einsum", "DeformConv", "Normalizer", "ThresholdedRelu", "Shrink", "MaxUnpool", "DFT", "STFT",
         "TreeEnsemble"}
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}
# Operators whose shapes ONNX Runtime or onnx.checker must know.
SHAPED = {"CausalConvWithState", "StringNormalizer"}
COARSE_OPS = {"DynamicQuantizeLinear", "QuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul",
              "QAttention", "QGemm", "MatMulNBits", "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearAveragePool"}


# Models whose results ONNX Runtime does not give in a type: of a row whose keys are all masked, its GroupQueryAttention makes NaN in f16.
NOT_GIVEN = {"operators/group_query_masked_inf": "f16"}
DIGITS = {"f16": 11, "bf16": 8}


def far_from(x, dtype):
    """Whether a caller's numbers leave a type, or lose more than 1 in it, as 10,003 does."""
    if x.dtype.kind != "f":
        return False
    most = np.abs(x[np.isfinite(x)].astype(np.float64)).max(initial=0)
    return (dtype == "f16" and most > 6e4) or most >= 2.0 ** (DIGITS[dtype] + 1)


def session(source, plain):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def fault_of(check):
    """The message of what a call throws, or None."""
    try:
        check()
        return None
    except Exception as error:  # whatever the packages throw
        return (str(error) or type(error).__name__).strip().replace("\n", " ")[:300]


def all_nodes(graph):
    for n in graph.node:
        yield n
        for a in n.attribute:
            for g in [a.g, *a.graphs]:
                yield from all_nodes(g)


def bytes_of(path):
    data = path.with_name(path.name + ".data")
    return path.stat().st_size + (data.stat().st_size if data.exists() else 0)


def ports(values):
    """name → (type, sizes) of tensors, name → the type's text of others."""
    found = {}
    for v in values:
        t = v.type.tensor_type
        tensor = v.type.HasField("tensor_type")
        dims = [d.dim_value if d.HasField("dim_value") else None for d in t.shape.dim] if tensor and t.HasField("shape") else None
        found[v.name] = (t.elem_type, dims) if tensor else (v.type.WhichOneof("value"), None)
    return found


def breaks_fusion(path):
    """ONNX Runtime 1.32 crashes where it fuses a Transpose into the MatMul behind it with a Cast in between, which it puts
    there itself if the MatMul is of 16 bits."""
    nodes = list(all_nodes(onnx.load(path, load_external_data=False).graph))
    turned = {o for n in nodes if n.op_type == "Transpose" for o in n.output}
    turned |= {o for n in nodes if n.op_type == "Cast" and n.input[0] in turned for o in n.output}
    return any(n.op_type in ("MatMul", "Gemm") and turned & set(n.input) for n in nodes)


class Original:
    """A model with inputs, and what ONNX Runtime makes of it; results None: it does not run it."""

    def __init__(self, name, path, feeds):
        self.name, self.path, self.feeds = name, pathlib.Path(path), feeds
        self.model = onnx.load(path)
        self.ops = {n.op_type for n in all_nodes(self.model.graph)}
        self.valid = fault_of(lambda: onnx.checker.check_model(self.model, full_check=True)) is None
        self.coarse = bool(self.ops & COARSE_OPS) or self.has_halves()
        given = {t.name for t in self.model.graph.initializer}
        self.inputs = [i for i in self.model.graph.input if i.name not in given]
        self.results = None
        self.opened = fault_of(self.run) is None

    def has_halves(self):
        halves = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
        return any(t.data_type in halves for t in self.model.graph.initializer) or any(
            v.type.tensor_type.elem_type in halves for v in [*self.model.graph.input, *self.model.graph.output]) or any(
            a.name == "to" and a.i in halves for n in all_nodes(self.model.graph) for a in n.attribute)

    def run(self):
        s = session(str(self.path), True)
        if self.feeds is not None and not self.ops & RANDOM:
            self.results = dict(zip([o.name for o in s.get_outputs()], s.run(None, copied(self.feeds))))


def copied(feeds):
    """ONNX Runtime writes the statistics of a BatchNormalization in training into its inputs."""
    return {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in feeds.items()}


class Comparison:
    def __init__(self, pith, library, folder, show):
        self.pith, self.library, self.dir, self.show = pith, library, folder, show
        self.faults, self.written, self.refused, self.values = collections.Counter(), 0, collections.Counter(), 0
        self.by_way = collections.Counter()
        self.passed = set()

    def fault(self, original, way, text):
        self.faults[f"{way.verb} {' '.join(map(str, way.options))}"] += 1
        if sum(self.faults.values()) <= self.show:
            print(f"{original.name}: {way.verb} {' '.join(map(str, way.options))}: {text}", flush=True)

    def options_of(self, original, way):
        """With the folder of inputs in place of None; None if there are none."""
        if None not in way.options:
            return way.options
        if not original.feeds:
            return None
        folder = self.dir / "inputs"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for name, array in original.feeds.items():
            if not isinstance(array, np.ndarray) or array.dtype.kind == "O" or "/" in name:
                return None
            np.save(folder / f"{name}.npy", array)
        return [folder if o is None else o for o in way.options]

    def try_model(self, original, chosen):
        self.passed.clear()
        for way in chosen:
            self.try_way(original, way)

    @staticmethod
    def asked_of(way, path):
        """What a file is and what is asked of it: where both were met before, so was the answer."""
        digest = hashlib.sha256()
        for part in sorted(path.parent.glob(f"{path.name}*")):
            digest.update(part.read_bytes())
        return digest.digest(), way.verb, way.near, CONDITIONS & set(way.options)

    def try_way(self, original, way):
        path, options = self.dir / "written.onnx", self.options_of(original, way)
        if options is None:
            return
        for old in self.dir.glob("written.onnx*"):
            old.unlink()
        done = subprocess.run([self.pith, way.verb, original.path, "-o", path, "-q", *map(str, options)], capture_output=True, text=True,
                              timeout=300)
        if done.returncode:
            reason = next((r for r in REFUSALS if re.search(r, done.stderr)), None)
            self.refused[reason] += 1
            if done.returncode != 1 or not reason:
                self.fault(original, way, f"refused: {done.stderr.strip()[-300:]}")
            return
        self.written += 1
        self.by_way[way.verb, *map(str, way.options)] += 1
        asked = self.asked_of(way, path)
        if asked in self.passed:
            return
        faults = sum(self.faults.values())
        model = onnx.load(path)
        fault = original.valid and fault_of(lambda: onnx.checker.check_model(str(path), full_check=True))
        # The name that ONNX Runtime's own optimiser writes in ai.onnx before opset 23.
        known = fault and ("No Op registered for SimplifiedLayerNormalization" in fault and "--fuse" in way.options or
                           "--free-shapes" in way.options and original.ops & SHAPED)
        if fault and not known:
            self.fault(original, way, f"onnx.checker: {fault}")
        self.compare_ports(original, way, model)
        self.compare_size(original, way, model, path)
        self.compare_results(original, way, path)
        if sum(self.faults.values()) == faults:
            self.passed.add(asked)

    def compare_ports(self, original, way, model):
        for what, old, new in (("inputs", ports(original.inputs), ports(model.graph.input)),
                               ("outputs", ports(original.model.graph.output), ports(model.graph.output))):
            given = {t.name for t in model.graph.initializer}
            new = {k: v for k, v in new.items() if what == "outputs" or k not in given}
            if list(old) != list(new):
                self.fault(original, way, f"{what}: {list(new)} instead of {list(old)}")
                continue
            for name, (dtype, dims) in old.items():
                got, sizes = new[name]
                narrowed = "--narrow-ports" in way.options or "--int32-inputs" in way.options
                if got != dtype and not narrowed and dtype:
                    self.fault(original, way, f"{what}: '{name}' has type {got} instead of {dtype}")
                fixed = dims and "--free-shapes" not in way.options
                if fixed and (sizes is None or len(sizes) != len(dims) or any(a is not None and a != b for a, b in zip(dims, sizes))):
                    self.fault(original, way, f"{what}: '{name}' has sizes {sizes} instead of {dims}")

    def compare_size(self, original, way, model, path):
        """Names of nodes, and constants below 4 KB that stand for them, may be more."""
        before, after = bytes_of(original.path), bytes_of(path)
        room = 4096 + 400 * len(model.graph.node) if way.verb != "quantize" else 4096 + 700 * len(model.graph.node)
        if "--external" in way.options:
            room += 4096 * len(model.graph.initializer)
        if after > before + room and after > 1.02 * before + room:
            self.fault(original, way, f"{after} bytes instead of {before}")

    def run_pith(self, original, path):
        model = Model(self.library, str(path))
        try:
            return dict(zip(original.results, model.run(self.feeds_of(original, path))))
        finally:
            model.close()

    @staticmethod
    def feeds_of(original, path):
        """The inputs in the types of the file."""
        types = {i.name: i.type.tensor_type.elem_type for i in onnx.load(path, load_external_data=False).graph.input}
        feeds = {}
        for name, x in original.feeds.items():
            wanted = onnx.helper.tensor_dtype_to_np_dtype(types[name]) if types.get(name) else getattr(x, "dtype", None)
            feeds[name] = x.astype(wanted) if isinstance(x, np.ndarray) and x.dtype != wanted and x.dtype.kind in "fi" else x
        return copied(feeds)

    def compare_results(self, original, way, path):
        if not original.opened or NOT_GIVEN.get(original.name) in way.options:
            return
        plain, got = original.coarse or None in way.options or ("--dtype" in way.options and breaks_fusion(path)), None
        fault = fault_of(lambda: session(str(path), plain))
        if fault and "--free-shapes" in way.options and original.ops & SHAPED:
            return
        lacks = fault and ("NOT_IMPLEMENTED" in fault or "Could not find an implementation" in fault)
        lacks = lacks or (fault and "bf16" in way.options and "Exception during initialization" in fault)
        if "bf16" in way.options and (lacks or (not fault and "--narrow-ports" in way.options)):  # NumPy has no bf16
            if original.results is None:
                return
            try:
                got = self.run_pith(original, path)
            except (PithError, KeyError) as error:
                if not isinstance(error, KeyError):
                    self.fault(original, way, f"Pith: {error}")
                return
        elif lacks and "--opset" in way.options:  # of an opset that was asked for, ONNX Runtime may not have every operator
            return
        elif fault:
            self.fault(original, way, f"ONNX Runtime: {fault}")
            return
        wide = (2**31 <= np.abs(x.astype(np.float64)).max(initial=0) for x in (original.feeds or {}).values()
                if isinstance(x, np.ndarray) and x.dtype == np.int64)
        narrow = next((dtype for dtype in DIGITS if dtype in way.options), None)
        if narrow and any(far_from(x, narrow) for x in (original.feeds or {}).values() if isinstance(x, np.ndarray)):
            return
        if original.results is None or ("--int32-inputs" in way.options and any(wide)):
            return
        if got is None:
            try:
                s = session(str(path), plain)
                got = dict(zip(original.results, s.run(None, self.feeds_of(original, path))))
            except Exception as error:
                if not ("bf16" in way.options and "is not supported" in str(error)):
                    self.fault(original, way, f"ONNX Runtime runs: {str(error)[:300]}")
                return
        self.values += 1
        near = max(way.near, COARSE if original.coarse else 0)
        lossy = way.near != SAME
        if lossy and original.ops & JUMPS:
            near = None
        for name, x in original.results.items():
            difference = self.difference(x, got[name], near, lossy, "--narrow-ports" in way.options)
            if difference:
                self.fault(original, way, f"'{name}': {difference}")

    def difference(self, x, y, near, lossy, narrowed):
        if isinstance(x, list) and isinstance(y, list):
            if len(x) != len(y):
                return None if near is None else f"{len(y)} items instead of {len(x)}"
            return next(filter(None, (self.difference(a, b, near, lossy, narrowed) for a, b in zip(x, y))), None)
        if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
            return None
        if x.shape != y.shape:
            return None if near is None else f"shape {y.shape} instead of {x.shape}"
        if x.dtype.kind not in "f":
            equal = np.array_equal(x, y) or lossy or near == COARSE
            return None if equal else "other numbers"
        if x.dtype != y.dtype and not narrowed:
            return f"{y.dtype} instead of {x.dtype}"
        x, y = x.astype(np.float64), y.astype(np.float64)
        finite = np.abs(x) < 3e38  # ONNX Runtime's Attention of opset 23 has the least number where the standard has minus infinity
        largest = max(1e-3 if not lossy else 1e-2, float(np.abs(x[finite]).max(initial=0)))
        if largest > 6e4 and lossy:
            return None
        if np.isnan(y[~np.isnan(x)]).any():
            return "NaN where the original has numbers"
        if near is None:
            return None
        off = np.abs(y[finite] - x[finite]).max(initial=0) / largest
        return f"{off:.2g} of the largest number off, more than {near}" if not off <= near else None


def stored_feeds(model, folder):
    """The inputs of a test folder; None if one is missing or no tensor."""
    given, feeds = {t.name for t in model.graph.initializer}, {}
    names = [i.name for i in model.graph.input if i.name not in given] or [i.name for i in model.graph.input]
    for i, name in enumerate(names):
        file, tensor = folder / f"input_{i}.pb", TensorProto()
        if not file.exists():
            return None
        try:
            tensor.ParseFromString(file.read_bytes())
            feeds[tensor.name or name] = numpy_helper.to_array(tensor)
        except Exception:  # a sequence or an optional
            return None
    return feeds


def made_feeds(model):
    """Numbers for the inputs of a case; free sizes are 3."""
    numbers, given, feeds = np.random.default_rng(0), {t.name for t in model.graph.initializer}, {}
    for i in model.graph.input:
        if i.name in given:
            continue
        t = i.type.tensor_type
        dims = [d.dim_value or 3 for d in t.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)
        feeds[i.name] = numbers.standard_normal(dims).astype(dtype) if dtype.kind == "f" else numbers.integers(0, 2, dims).astype(dtype)
    return feeds


def folders(root):
    for path in sorted(root.rglob("*.onnx")):
        if (path.parent / "test_data_set_0").exists():
            yield path


def originals(options, folder):
    """(kind, Original) of every source."""
    for root in options.folders:
        for path in folders(root):
            yield "model", f"{path.parent.parent.name}/{path.parent.name}", path, None
    cases = ROOT / "tests/data/cases"
    for path in sorted(cases.rglob("*.onnx")):
        yield "case", str(path.relative_to(cases)), path, made_feeds
    for seed in range(options.seed, options.seed + options.random):
        model, feeds = network(seed)
        path = folder / "original.onnx"
        path.write_bytes(model.SerializeToString())
        yield "random", f"random {seed}", path, lambda _, feeds=feeds: feeds
    if options.nodes:
        for path in folders(options.nodes):
            yield "node", path.parent.name, path, None


def chosen_models(options, folder):
    """(kind, name, file, feeds, ways) of every model that is written. A sample takes a few ways of each model and some of the
    models; the steps have no factor in common with WAYS."""
    step = {"model": (11, 2), "random": (1, 6), "node": (14, 1)}
    for kind, (every_nth, count) in step.items():
        step[kind] = (options.step or every_nth if kind != "random" else 1, options.ways or count)
    met, turn = collections.Counter(), options.seed
    for kind, name, path, feeds in originals(options, folder):
        met[kind] += 1
        every = options.all or kind == "case" or options.only
        if options.only not in name or (not every and met[kind] % step[kind][0]):
            continue
        yield kind, name, path, feeds, WAYS if every else [WAYS[(turn + 7 * k) % len(WAYS)] for k in range(step[kind][1])]
        turn += 1 if kind == "node" else 5


def compare_part(options, part):
    """Each model whose number is `part` modulo options.jobs. Returns what was counted, and the comparison's counts."""
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        compared = Comparison(options.pith, options.library, folder, options.show)
        for number, (kind, name, path, feeds, chosen) in enumerate(chosen_models(options, folder)):
            if number % options.jobs != part:
                continue
            try:
                model = onnx.load(path, load_external_data=False)
                given = feeds(model) if feeds else stored_feeds(model, path.parent / "test_data_set_0")
                original = Original(name, path, given)
            except Exception as error:
                if kind in ("case", "random"):
                    raise
                counts[f"unreadable {type(error).__name__}"] += 1
                continue
            counts[kind] += 1
            compared.try_model(original, chosen)
    return counts, compared.by_way, compared.faults, compared.refused, compared.written, compared.values


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pith", type=pathlib.Path)
    parser.add_argument("library")
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--nodes", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="every model in every way")
    parser.add_argument("--step", type=int, help="without --all: each so many-th model of a folder")
    parser.add_argument("--ways", type=int, help="and so many ways of each")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="models whose names contain this")
    parser.add_argument("--show", type=int, default=40)
    parser.add_argument("--jobs", type=int, help="processes that share the models; with --all as many as there are processors")
    options = parser.parse_intermixed_args()
    options.pith = options.pith.resolve()
    options.jobs = options.jobs or (len(os.sched_getaffinity(0)) if options.all else 1)
    with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        parts = list(pool.map(compare_part, [options] * options.jobs, range(options.jobs)))
    counts, by_way, faults, refused = (sum((part[i] for part in parts), collections.Counter()) for i in range(4))
    written, values = (sum(part[i] for part in parts) for i in (4, 5))
    unused = [w for w in WAYS if not by_way[w.verb, *map(str, w.options)]]
    for way in unused if not options.only else []:
        print(f"nothing was written by: {way.verb} {' '.join(map(str, way.options))}")
    for way, count in faults.most_common():
        print(f"{count} faults: {way}")
    print(f"{dict(counts)} models in {len(WAYS)} ways: {written} files, {values} runs compared; "
          f"{sum(refused.values())} refused: {dict(refused)}; {sum(faults.values())} faults")
    return int(bool(faults) or bool(unused and not options.only) or not written)


if __name__ == "__main__":
    sys.exit(main())
