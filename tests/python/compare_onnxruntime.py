#!/usr/bin/env python3
"""Random one-operator graphs, run by Pith and by ONNX Runtime: shapes, dtypes, attributes, broadcasts, zero-size
dimensions, negative axes, infinities and NaN.

usage: compare_onnxruntime.py LIBPITH.so [--cases 3000] [--seed 1] [--only OP]
A case ONNX Runtime refuses is not counted. Left out is what it does not do as the standard says: NonZero of a scalar,
reductions over an empty axis (its shapes), Resize to a size that scale * input does not hit exactly in the modes that use
the output size or with scales f32 rounds, and instance norms of very few elements (its rounding). Every difference is printed with the seed that makes it again; dtype and shape
must be equal, values within 1e-4 relative and 1e-5 absolute (half types: 1e-2).
"""
import argparse
import collections
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from pith_ctypes import Model, PithError

FLOATS, INTS = [np.float32, np.float64], [np.int32, np.int64]
OPSET = 17
ort.set_default_logger_severity(4)


class Case:
    """One random node. Inputs in `constants` become initializers: shapes of results then do not hang on run-time data."""

    def __init__(self, rng):
        self.rng, self.inputs, self.constants, self.attributes, self.outputs = rng, [], set(), {}, 1

    def pick(self, *options):
        return options[self.rng.integers(len(options))]

    def shape(self, least=0, most=4, zero=True):
        return [int(self.pick(0, 1, 2, 3, 5) if zero and self.rng.random() < 0.06 else self.pick(1, 2, 3, 4, 5, 7, 17))
                for _ in range(self.rng.integers(least, most + 1))]

    def array(self, shape, dtype=np.float32, special=True):
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            return self.rng.random(shape) < 0.5
        if dtype.kind in "iu":
            return self.rng.integers(0 if dtype.kind == "u" else -20, 20, shape).astype(dtype)
        x = np.asarray(self.rng.normal(0, 2, shape)).astype(dtype)
        if special and x.size and self.rng.random() < 0.1:
            x.flat[self.rng.integers(x.size)] = self.pick(np.inf, -np.inf, np.nan, 0.0, -0.0)
        return x

    def give(self, array, constant=False):
        if constant:
            self.constants.add(len(self.inputs))
        self.inputs.append(np.asarray(array))
        return self.inputs[-1]

    def axis(self, rank):
        return int(self.rng.integers(-rank, rank)) if rank else 0

    def axes(self, rank):
        count = int(self.rng.integers(1, rank + 1)) if rank else 0
        chosen = self.rng.permutation(rank)[:count]
        return [int(a - rank if self.rng.random() < 0.5 else a) for a in chosen]

    def broadcastable(self, shape):
        other = [1 if self.rng.random() < 0.3 else d for d in shape]
        return other[self.rng.integers(len(other) + 1):] if self.rng.random() < 0.5 else other


def unary(c, dtypes=FLOATS):
    c.give(c.array(c.shape(), c.pick(*dtypes)))


def binary(c, dtypes=FLOATS + INTS):
    a = c.shape()
    b, dtype = c.broadcastable(a), c.pick(*dtypes)
    arrays = [c.array(a, dtype), c.array(b, dtype)]
    for x in arrays if c.rng.random() < 0.5 else arrays[::-1]:
        c.give(x)


def divide(c):
    binary(c)
    if c.inputs[1].dtype.kind in "iu":
        c.inputs[1] = np.where(c.inputs[1] == 0, c.inputs[1].dtype.type(3), c.inputs[1])


def modulo(c):
    divide(c)
    c.attributes["fmod"] = 1 if c.inputs[0].dtype.kind == "f" else c.pick(0, 1)


def power(c):
    binary(c, FLOATS)
    c.inputs[0] = np.abs(c.inputs[0])


def logic(c):
    binary(c, [np.bool_])


def reduce(c, attribute=True, dtypes=FLOATS):
    shape = c.shape(1, 4, zero=False)
    c.give(c.array(shape, c.pick(*dtypes), special=False))
    if c.rng.random() < 0.8:
        if attribute:
            c.attributes["axes"] = c.axes(len(shape))
        else:
            c.give(np.array(c.axes(len(shape)), np.int64), constant=True)
    c.attributes["keepdims"] = c.pick(0, 1)


def reduce_sum(c):
    reduce(c, attribute=False, dtypes=FLOATS + INTS)


def arg(c):
    shape = c.shape(1, 4, zero=False)
    c.give(c.array(shape, c.pick(*FLOATS, np.int32), special=False))
    c.attributes |= dict(axis=c.axis(len(shape)), keepdims=c.pick(0, 1), select_last_index=c.pick(0, 1))


def along(c):
    shape = c.shape(1, 4)
    c.give(c.array(shape, c.pick(*FLOATS), special=False))
    c.attributes["axis"] = c.axis(len(shape))


def cumulative(c):
    shape = c.shape(1, 4)
    c.give(c.array(shape, c.pick(*FLOATS, *INTS), special=False))
    c.give(np.array(c.axis(len(shape)), np.int64))
    c.attributes |= dict(exclusive=c.pick(0, 1), reverse=c.pick(0, 1))


def clip(c):
    dtype = c.pick(*FLOATS, np.int32, np.int64)
    c.give(c.array(c.shape(), dtype))
    c.give(np.array(-1, dtype))
    c.give(np.array(2, dtype))


def cast(c):
    c.give(c.array(c.shape(), c.pick(*FLOATS, *INTS, np.bool_, np.uint8, np.int8, np.float16), special=False))
    c.attributes["to"] = c.pick(1, 3, 6, 7, 9, 10, 11)


def where(c):
    shape, dtype = c.shape(), c.pick(*FLOATS, np.int64, np.uint8)
    c.give(c.array(c.broadcastable(shape), np.bool_))
    c.give(c.array(shape, dtype))
    c.give(c.array(c.broadcastable(shape), dtype))


def transpose(c):
    shape = c.shape(1, 5)
    c.give(c.array(shape, c.pick(*FLOATS, np.int64, np.uint8, np.bool_)))
    if c.rng.random() < 0.9:
        c.attributes["perm"] = [int(i) for i in c.rng.permutation(len(shape))]


def concat(c):
    shape = c.shape(1, 4)
    axis, dtype = c.axis(len(shape)), c.pick(*FLOATS, np.int64)
    for _ in range(c.rng.integers(1, 4)):
        own = list(shape)
        own[axis] = int(c.rng.integers(0, 5))
        c.give(c.array(own, dtype))
    c.attributes["axis"] = axis


def slices(c):
    shape = c.shape(1, 4)
    axes = c.axes(len(shape))
    c.give(c.array(shape, c.pick(*FLOATS, np.int64)))
    bounds = lambda: np.array([c.pick(*range(-9, 10), 2**31, -2**31) for _ in axes], np.int64)
    c.give(bounds(), constant=True)
    c.give(bounds(), constant=True)
    c.give(np.array(axes, np.int64), constant=True)
    c.give(np.array([c.pick(1, 1, 2, 3, -1, -2) for _ in axes], np.int64), constant=True)


def gather(c):
    shape = c.shape(1, 4, zero=False)
    axis = c.axis(len(shape))
    c.give(c.array(shape, c.pick(*FLOATS, np.int64, np.uint8)))
    c.give(c.rng.integers(-shape[axis], shape[axis], c.shape(0, 2)).astype(c.pick(*INTS)))
    c.attributes["axis"] = axis


def gather_elements(c):
    shape = c.shape(1, 4, zero=False)
    axis = c.axis(len(shape))
    c.give(c.array(shape, c.pick(*FLOATS, np.int64)))
    c.give(c.rng.integers(-shape[axis], shape[axis], shape).astype(np.int64))
    c.attributes["axis"] = axis


def scatter_nd(c):
    shape = c.shape(1, 3, zero=False)
    k = int(c.rng.integers(1, len(shape) + 1))
    rows = np.unique(np.stack([c.rng.integers(0, d, 4) for d in shape[:k]], -1), axis=0)
    dtype = c.pick(*FLOATS, np.int64)
    c.give(c.array(shape, dtype))
    c.give(rows.astype(np.int64))
    c.give(c.array([len(rows)] + shape[k:], dtype))


def pad(c):
    shape = c.shape(1, 4, zero=False)
    mode = c.pick("constant", "edge", "reflect")
    limit = 2 if mode != "reflect" else max(0, min(shape) - 1)
    c.give(c.array(shape, c.pick(*FLOATS, np.int64)))
    c.give(c.rng.integers(-1 if mode == "constant" and min(shape) > 2 else 0, limit + 1, 2 * len(shape)).astype(np.int64), constant=True)
    c.attributes["mode"] = mode


def tile(c):
    shape = c.shape(1, 3)
    c.give(c.array(shape, c.pick(*FLOATS, np.int64)))
    c.give(c.rng.integers(0, 4, len(shape)).astype(np.int64), constant=True)


def expand(c):
    shape = c.shape(1, 4)
    c.give(c.array(c.broadcastable(shape), c.pick(*FLOATS, np.int64, np.bool_)))
    c.give(np.array(shape, np.int64), constant=True)


def reshape(c):
    shape = c.shape(1, 4, zero=False)
    x = c.give(c.array(shape, c.pick(*FLOATS, np.int64)))
    target = [int(d) for d in c.rng.permutation(shape)]
    if c.rng.random() < 0.5:
        target[c.rng.integers(len(target))] = -1
    c.give(np.array(target if x.size else shape, np.int64), constant=True)


def squeeze(c):
    shape = c.shape(1, 4)
    c.give(c.array([1, *shape, 1]))
    c.give(np.array([c.pick(0, -len(shape) - 2), c.pick(-1, len(shape) + 1)], np.int64), constant=True)


def split(c):
    shape = c.shape(1, 3)
    axis = c.axis(len(shape))
    parts = [int(p) for p in c.rng.integers(0, 4, 3)]
    shape[axis] = sum(parts)
    c.give(c.array(shape, c.pick(*FLOATS, np.int64)))
    c.give(np.array(parts, np.int64), constant=True)
    c.attributes["axis"], c.outputs = axis, 3


def top_k(c):
    shape = c.shape(1, 3, zero=False)
    axis = c.axis(len(shape))
    size = int(np.prod(shape))
    c.give(c.rng.permutation(size).reshape(shape).astype(c.pick(np.float32, np.float64, np.int64)))
    c.give(np.array([c.rng.integers(0, shape[axis] + 1)], np.int64), constant=True)
    c.attributes |= dict(axis=axis, largest=c.pick(0, 1), sorted=1)
    c.outputs = 2


def matmul(c):
    m, k, n = (int(c.pick(1, 2, 3, 16, 17, 33, 0 if c.rng.random() < 0.05 else 5)) for _ in range(3))
    batch, dtype = c.shape(0, 2), c.pick(np.float32, np.float32, np.float64, np.int32)
    a, b = batch + [m, k], c.broadcastable(batch) + [k, n]
    if c.rng.random() < 0.15:
        a = [k]
    elif c.rng.random() < 0.15:
        b = [k]
    c.give(c.array(a, dtype, special=False))
    c.give(c.array(b, dtype, special=False), constant=bool(c.rng.random() < 0.5))


def gemm(c):
    m, k, n = (int(c.pick(1, 2, 5, 16, 33)) for _ in range(3))
    c.attributes |= dict(transA=c.pick(0, 1), transB=c.pick(0, 1), alpha=c.pick(1.0, 0.5), beta=c.pick(1.0, 2.0, 0.0))
    c.give(c.array([k, m] if c.attributes["transA"] else [m, k], special=False))
    c.give(c.array([n, k] if c.attributes["transB"] else [k, n], special=False), constant=bool(c.rng.random() < 0.5))
    c.give(c.array(c.pick([n], [m, 1], [m, n], [1], [1, n]), special=False))


def windows(c, axes):
    kernel = [int(c.pick(1, 2, 3)) for _ in range(axes)]
    c.attributes |= dict(kernel_shape=kernel, strides=[int(c.pick(1, 1, 2)) for _ in range(axes)])
    if c.rng.random() < 0.3:
        c.attributes["auto_pad"] = c.pick("SAME_UPPER", "SAME_LOWER", "VALID")
    else:
        c.attributes["pads"] = [int(c.rng.integers(0, k)) for k in kernel * 2]
    return kernel


def conv(c):
    axes, group = int(c.pick(1, 2, 2, 3)), int(c.pick(1, 1, 2))
    kernel = windows(c, axes)
    if "auto_pad" not in c.attributes:
        c.attributes["dilations"] = [int(c.pick(1, 1, 2)) for _ in range(axes)]
    ins, outs = int(c.pick(1, 2, 3)) * group, int(c.pick(1, 2, 17)) * group
    c.attributes["group"] = group
    c.give(c.array([int(c.pick(1, 2)), ins] + [int(c.pick(5, 7, 9)) for _ in range(axes)], special=False))
    c.give(c.array([outs, ins // group, *kernel], special=False), constant=bool(c.rng.random() < 0.5))
    if c.rng.random() < 0.5:
        c.give(c.array([outs], special=False))


def conv_transpose(c):
    axes, group = int(c.pick(1, 2)), int(c.pick(1, 1, 2))
    kernel = windows(c, axes)
    c.attributes.pop("auto_pad", None)
    ins, outs = int(c.pick(1, 2)) * group, int(c.pick(1, 3))
    c.attributes["group"] = group
    c.give(c.array([int(c.pick(1, 2)), ins] + [int(c.pick(3, 5)) for _ in range(axes)], special=False))
    c.give(c.array([ins, outs, *kernel], special=False), constant=True)


def pool(c):
    axes = int(c.pick(1, 2, 2, 3))
    windows(c, axes)
    c.attributes["ceil_mode"] = c.pick(0, 1) if "auto_pad" not in c.attributes else 0
    c.give(c.array([int(c.pick(1, 2)), int(c.pick(1, 3))] + [int(c.pick(5, 6, 9)) for _ in range(axes)], special=False))


def average_pool(c):
    pool(c)
    c.attributes["ceil_mode"] = 0  # implementations differ on what a partial window counts
    c.attributes["count_include_pad"] = c.pick(0, 1)


def global_pool(c):
    c.give(c.array(c.shape(3, 5, zero=False), special=False))


def layer_norm(c):
    shape = c.shape(1, 4, zero=False)
    axis = c.axis(len(shape))
    tail = shape[axis:]
    c.give(c.array(shape, special=False))
    c.give(c.array(tail, special=False))
    if c.rng.random() < 0.7:
        c.give(c.array(tail, special=False))
    c.attributes["axis"] = axis


def batch_norm(c):
    shape = c.shape(2, 4, zero=False)
    c.give(c.array(shape, special=False))
    for k in range(4):
        x = c.array([shape[1]], special=False)
        c.give(np.abs(x) + 0.1 if k == 3 else x)


def instance_norm(c):
    shape = c.shape(3, 4, zero=False)
    shape[-1] += 8
    c.give(c.array(shape, special=False))
    for _ in range(2):
        c.give(c.array([shape[1]], special=False))


def recurrent(gates, states):
    def make(c):
        seq, batch, ins, hidden, dirs = (int(c.pick(1, 2, 3)) for _ in range(5))
        dirs = 2 if dirs == 2 else 1
        c.give(c.array([seq, batch, ins], special=False))
        c.give(c.array([dirs, gates * hidden, ins], special=False))
        c.give(c.array([dirs, gates * hidden, hidden], special=False))
        if c.rng.random() < 0.7:
            c.give(c.array([dirs, 2 * gates * hidden], special=False))
        c.attributes |= dict(hidden_size=hidden, direction="bidirectional" if dirs == 2 else c.pick("forward", "reverse"))
        if gates == 3:
            c.attributes["linear_before_reset"] = c.pick(0, 1)
        c.outputs = 1 + states
    return make


def non_zero(c):
    c.give(c.array(c.shape(1, 4), c.pick(*FLOATS, np.int64, np.bool_)))


def resize(c):
    shape = [1, int(c.pick(1, 2)), int(c.pick(2, 3, 5)), int(c.pick(2, 3, 4))]
    mode = c.pick("nearest", "linear", "cubic")
    c.give(c.array(shape, special=False))
    c.give(np.array([], np.float32), constant=True)
    c.give(np.array([1, 1, c.pick(0.75, 1.0, 2.0, 2.5), c.pick(0.5, 1.0, 2.0, 3.0)], np.float32), constant=True)
    exact = all(float(s * d).is_integer() for s, d in zip(c.inputs[2], shape))
    places = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel") if exact else ("half_pixel", "asymmetric")
    c.attributes |= dict(mode=mode, coordinate_transformation_mode=c.pick(*places))
    if mode == "nearest":
        c.attributes["nearest_mode"] = c.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def one_hot(c):
    c.give(c.rng.integers(-4, 4, c.shape(0, 2)).astype(np.int64))
    c.give(np.array(4, np.int64), constant=True)
    c.give(np.array([0, 1], c.pick(np.float32, np.int64)))


def quantize(c):
    shape = c.shape(1, 3)
    dtype = c.pick(np.uint8, np.int8)
    c.give(c.array(shape, special=False))
    c.give(np.float32(0.07))
    c.give(dtype(3))


def dequantize(c):
    dtype = c.pick(np.uint8, np.int8)
    c.give(c.array(c.shape(1, 3), dtype))
    c.give(np.float32(0.07))
    c.give(dtype(3))


def einsum(c):
    equation = c.pick("ij,jk->ik", "bij,bjk->bik", "ij->ji", "ii->i", "ij,ij->", "...ij,...jk->...ik", "abc,cd->abd")
    sizes = collections.defaultdict(lambda: int(c.pick(1, 2, 3, 5)))
    for term in equation.split("->")[0].split(","):
        lead = [2] if "..." in term else []
        c.give(c.array(lead + [sizes[x] for x in term.replace("...", "")], special=False))
    c.attributes["equation"] = equation


OPS = {name: unary for name in """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor HardSigmoid HardSwish
    IsInf IsNaN LeakyRelu Log Neg Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh
    ThresholdedRelu Identity Shape Size""".split()}
OPS |= {name: binary for name in "Add Sub Mul Min Max Equal Less Greater LessOrEqual GreaterOrEqual".split()}
OPS |= {name: logic for name in "And Or Xor".split()} | {"Not": lambda c: unary(c, [np.bool_])}
OPS |= {f"Reduce{k}": reduce for k in "Max Min Mean Prod L1 L2 LogSum LogSumExp SumSquare".split()}
OPS |= {name: along for name in "Softmax LogSoftmax Hardmax Flatten".split()}
OPS |= dict(Div=divide, Mod=modulo, Pow=power, ReduceSum=reduce_sum, ArgMax=arg, ArgMin=arg, CumSum=cumulative, Clip=clip,
            Cast=cast, Where=where, Transpose=transpose, Concat=concat, Slice=slices, Gather=gather,
            GatherElements=gather_elements, ScatterND=scatter_nd, Pad=pad, Tile=tile, Expand=expand, Reshape=reshape,
            Squeeze=squeeze, Split=split, TopK=top_k, MatMul=matmul, Gemm=gemm, Conv=conv, ConvTranspose=conv_transpose,
            MaxPool=pool, AveragePool=average_pool, GlobalAveragePool=global_pool, GlobalMaxPool=global_pool,
            LayerNormalization=layer_norm, BatchNormalization=batch_norm, InstanceNormalization=instance_norm,
            RNN=recurrent(1, 1), GRU=recurrent(3, 1), LSTM=recurrent(4, 2), Resize=resize, OneHot=one_hot,
            QuantizeLinear=quantize, DequantizeLinear=dequantize, Einsum=einsum, NonZero=non_zero)


def build(op, seed):
    c = Case(np.random.default_rng(seed))
    OPS[op](c)
    names = [f"x{i}" for i in range(len(c.inputs))]
    outputs = [f"y{i}" for i in range(c.outputs)]
    node = helper.make_node(op, [n if a.size or a.ndim != 1 or op != "Resize" else "" for n, a in zip(names, c.inputs)],
                            outputs, **c.attributes)
    dtype = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype)
    fed = [(n, a) for i, (n, a) in enumerate(zip(names, c.inputs)) if i not in c.constants]
    free = bool(c.rng.random() < 0.5)
    ports = [helper.make_tensor_value_info(n, dtype(a), [f"{n}_{d}" if free else s for d, s in enumerate(a.shape)]) for n, a in fed]
    constants = [numpy_helper.from_array(a, n) for i, (n, a) in enumerate(zip(names, c.inputs)) if i in c.constants]
    graph = helper.make_graph([node], "case", ports, [helper.make_empty_tensor_value_info(n) for n in outputs], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    return model.SerializeToString(), dict(fed), c


def difference(mine, theirs):
    if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
        return f"{mine.dtype}{list(mine.shape)} instead of {theirs.dtype}{list(theirs.shape)}"
    if mine.dtype.kind != "f":
        return None if np.array_equal(mine, theirs) else "values differ"
    loose = 1e-2 if mine.dtype == np.float16 else 1e-4
    if np.allclose(mine.astype(np.float64), theirs.astype(np.float64), loose, loose / 10, equal_nan=True):
        return None
    with np.errstate(all="ignore"):
        return f"values differ by {np.nanmax(np.abs(mine.astype(np.float64) - theirs.astype(np.float64)))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    compared, refused, faults = 0, 0, collections.Counter()
    names = [n for n in OPS if not args.only or n == args.only]
    for number in range(args.cases):
        op, seed = names[number % len(names)], args.seed * 1000003 + number
        raw, feeds, case = build(op, seed)
        try:
            theirs = ort.InferenceSession(raw, options, providers=["CPUExecutionProvider"]).run(None, feeds)
        except Exception:
            refused += 1
            continue
        compared += 1
        try:
            model = Model(args.library, raw)
            mine = model.run(feeds)
            model.close()
            fault = next((d for d in map(difference, mine, theirs) if d), None)
        except PithError as e:
            fault = str(e)
        if fault:
            faults[op] += 1
            if faults[op] <= 3:
                shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in case.inputs)
                print(f"{op} seed {seed} ({shapes}) {case.attributes}: {fault}")
    print(f"{compared} compared with ONNX Runtime, {refused} it refused, {sum(faults.values())} differ"
          + (f": {dict(faults)}" if faults else ""))
    sys.exit(1 if faults or not compared else 0)


if __name__ == "__main__":
    main()
