#!/usr/bin/env python3
"""Random one-operator models, run by Pith and by ONNX Runtime (PyPI), results compared.

usage: compare_operators.py [--library PATH] [--count N] [--seed S] [--write FOLDER] [OPERATOR...]
Shapes broadcast, have zero sizes and any rank up to 4; attributes are drawn from all that the standard allows; NaN and
infinities are mixed in; about half of the inputs are constants. A case that ONNX Runtime refuses is not judged. The seed
and the case number are printed with every difference, so that it can be repeated; exit status 1 if there is one.
Left out, because ONNX Runtime departs from the standard there: overflow of integer products (of two u8 * i8 already,
where an x86 processor lacks VNNI: i8 has 7 bits there), Resize with align_corners and scales that do not give whole
sizes, QLinearSoftmax of single numbers, softmax of a linear model's only score.
"""
import argparse
import pathlib
import random
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import ms_cases
import operator_cases

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from pith_ctypes import NUMBERS, Model, PithError

FLOATS = [np.float32, np.float64, np.float16]
WIDE = [np.float32, np.float64]
INDICES = [np.int32, np.int64]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
COMMON = WIDE + INDICES
FLAGS = pathlib.Path("/proc/cpuinfo").read_text() if sys.platform == "linux" else ""
SATURATES = "avx2" in FLAGS and "vnni" not in FLAGS  # sums of two u8 * i8 are kept in 16 bits


class Draw:
    """One case's random choices."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.n = np.random.default_rng(seed)

    def pick(self, *items):
        return self.r.choice(items)

    def one_of(self, items):
        return self.r.choice(items)

    def upto(self, low, high):
        return self.r.randint(low, high)

    def flag(self):
        return self.r.randrange(2)

    def shape(self, low=0, high=4, empty=True):
        rank = self.upto(low, high)
        return [0 if empty and self.r.random() < 0.05 else self.pick(1, 2, 3, 4, 5) for _ in range(rank)]

    def part(self, shape):
        """A shape that broadcasts to this one."""
        dims = [d if self.r.random() < 0.6 else 1 for d in shape]
        return dims[self.upto(0, len(dims)):] if self.r.random() < 0.4 else dims

    def array(self, shape, dtype, special=False):
        if dtype in FLOATS:
            x = np.asarray(self.n.standard_normal(shape) * 3).astype(dtype)
            if special and x.size and self.r.random() < 0.3:
                for v in (np.nan, np.inf, -np.inf, 0.0, -0.0):
                    x.reshape(-1)[self.r.randrange(x.size)] = v
            return x
        if dtype == np.bool_:
            return np.asarray(self.n.integers(0, 2, shape)).astype(bool)
        info = np.iinfo(dtype)
        return np.asarray(self.n.integers(max(info.min, -20), min(info.max, 20) + 1, shape)).astype(dtype)

    def full(self, shape, dtype):
        info, low = np.iinfo(dtype), 2 if dtype == np.int8 and SATURATES else 1
        return np.asarray(self.n.integers(info.min // low, info.max // low + 1, shape)).astype(dtype)

    def axis(self, rank):
        return self.upto(-rank, rank - 1)


def unary(dtypes, **attributes):
    return lambda d: ([d.array(d.shape(), d.one_of(dtypes), True)], {k: v(d) for k, v in attributes.items()}, 1)


def binary(dtypes, zero=True):
    def case(d):
        dtype, shape = d.one_of(dtypes), d.shape()
        a, b = d.array(d.part(shape), dtype, True), d.array(d.part(shape), dtype, True)
        return [a, b if zero or dtype in FLOATS else np.where(b == 0, 3, b).astype(dtype)], {}, 1
    return case


def modulo(d):
    inputs, _, count = binary([np.float32, np.int32, np.int64, np.int8, np.uint8], zero=False)(d)
    return inputs, {"fmod": 1 if inputs[0].dtype in FLOATS else d.flag()}, count


def reduction(dtypes, special=False, positive=False):
    def case(d):
        shape = d.shape(1, 4, empty=False)
        rank = len(shape)
        axes = [a - (rank if d.flag() else 0) for a in d.r.sample(range(rank), d.upto(0, rank))]
        x = d.array(shape, d.one_of(dtypes), special)
        attributes = {"keepdims": d.flag()}
        if d.r.random() < 0.2:
            attributes["noop_with_empty_axes"] = d.flag()
        return [np.abs(x) if positive else x, np.array(axes, np.int64)][: 2 if d.r.random() < 0.8 else 1], attributes, 1
    return case


def along_axis(dtypes, outputs=1, **attributes):
    def case(d):
        shape = d.shape(1, 4, empty=False)
        given = {k: v(d) for k, v in attributes.items()}
        return [d.array(shape, d.one_of(dtypes))], {"axis": d.axis(len(shape)), **given}, outputs
    return case


def transpose(d):
    shape = d.shape(1)
    perm = list(range(len(shape)))
    d.r.shuffle(perm)
    return [d.array(shape, d.one_of(FLOATS + INTEGERS + [np.bool_]))], {"perm": perm} if d.flag() else {}, 1


def slices(d):
    shape = d.shape(1)
    axes = d.r.sample(range(len(shape)), d.upto(1, len(shape)))
    steps = [d.pick(1, 1, 2, -1, -2, 3, -3) for _ in axes]
    starts = [d.pick(d.upto(-7, 7), -2**31, 2**31 - 1, 0) for _ in axes]
    ends = [d.pick(d.upto(-7, 7), -2**63, 2**63 - 1 if s > 0 else 2, 0) for s in steps]
    return [d.array(shape, d.one_of(COMMON))] + [np.array(x, np.int64) for x in (starts, ends, axes, steps)], {}, 1


def concat(d):
    shape, dtype = d.shape(1, 3), d.one_of(COMMON)
    axis = d.axis(len(shape))
    parts = []
    for _ in range(d.upto(1, 3)):
        own = list(shape)
        own[axis] = d.upto(0, 3)
        parts.append(d.array(own, dtype))
    return parts, {"axis": axis}, 1


def split(d):
    shape, count = d.shape(1, 3), d.upto(1, 3)
    axis, parts = d.axis(len(shape)), [d.upto(0, 2) for _ in range(count)]
    shape[axis] = sum(parts)
    return [d.array(shape, d.pick(np.float32, np.int64)), np.array(parts, np.int64)], {"axis": axis}, count


def gather(d):
    shape = d.shape(1, 3, empty=False)
    axis = d.axis(len(shape))
    indices = np.asarray(d.n.integers(-shape[axis], shape[axis], d.shape(0, 2))).astype(d.one_of(INDICES))
    return [d.array(shape, d.one_of(COMMON + [np.bool_])), indices], {"axis": axis}, 1


def gather_elements(d):
    shape = d.shape(1, 3, empty=False)
    axis = d.upto(0, len(shape) - 1)
    own = [d.upto(1, n) for n in shape]
    own[axis] = d.upto(0, 4)
    return [d.array(shape, d.one_of(COMMON)), d.n.integers(-shape[axis], shape[axis], own)], {"axis": axis}, 1


def gather_nd(d):
    shape = d.shape(2, 4, empty=False)
    batch = d.upto(0, len(shape) - 2)
    length = d.upto(1, len(shape) - batch)
    place = shape[:batch] + d.shape(1, 2, empty=False)
    indices = np.stack([d.n.integers(-n, n, place) for n in shape[batch:batch + length]], -1)
    return [d.array(shape, d.one_of(COMMON)), indices], {"batch_dims": batch}, 1


def scatter_elements(d):
    shape, dtype = d.shape(1, 3, empty=False), d.pick(np.float32, np.int64, np.float64)
    axis, own = d.upto(0, len(shape) - 1), [d.upto(1, n) for n in shape]
    reduction_name = d.pick("none", "add", "mul", "max", "min")
    indices = d.n.integers(-shape[axis], shape[axis], own)
    if reduction_name == "none":  # no two updates of one place
        indices = np.argsort(d.n.random(shape), axis=axis)[tuple(slice(0, n) for n in own)]
    return ([d.array(shape, dtype), indices.astype(np.int64), d.array(own, dtype)],
            {"axis": axis, "reduction": reduction_name}, 1)


def matmul(d):
    dtype = d.pick(np.float32, np.float32, np.float64, np.int32, np.int64)
    m, n, k = d.pick(0, 1, 2, 7, 40), d.pick(0, 1, 3, 17, 40), d.pick(1, 3, 17, 40)
    batch = d.shape(0, 2)
    a, b = d.part(batch) + [m, k], d.part(batch) + [k, n]
    if d.r.random() < 0.15:
        a = [k]
    if d.r.random() < 0.15:
        b = [k]
    return [d.array(a, dtype), d.array(b, dtype)], {}, 1


def gemm(d):
    m, n, k = d.pick(1, 2, 7, 40), d.pick(1, 3, 17, 40), d.pick(1, 3, 17, 40)
    ta, tb, dtype = d.flag(), d.flag(), d.one_of(WIDE)
    inputs = [d.array([k, m] if ta else [m, k], dtype), d.array([n, k] if tb else [k, n], dtype)]
    bias = d.pick(None, [n], [1], [], [m, 1], [1, n], [m, n])
    if bias is not None:
        inputs.append(d.array(bias, dtype))
    return inputs, {"transA": ta, "transB": tb, "alpha": d.pick(1.0, 0.5), "beta": d.pick(1.0, 2.0, 0.0)}, 1


def matmul_integer(d):
    m, n, k = d.pick(1, 3, 17), d.pick(1, 3, 17), d.pick(1, 17, 300, 600)
    right = d.pick(np.uint8, np.int8)
    zero = d.full([n] if d.flag() else [], right)
    return [d.full([m, k], np.uint8), d.full([k, n], right), d.full([], np.uint8), zero], {}, 1


def where(d):
    shape, dtype = d.shape(), d.one_of(COMMON + [np.float16, np.uint8])
    return [d.array(d.part(shape), np.bool_)] + [d.array(d.part(shape), dtype, True) for _ in range(2)], {}, 1


def cast(d):
    source, target = d.one_of(FLOATS + INTEGERS + [np.bool_]), d.one_of(FLOATS + INTEGERS + [np.bool_])
    x = d.array(d.shape(), source, target in FLOATS)
    if source in FLOATS and target not in FLOATS:
        x = np.abs(x)  # negative numbers have no unsigned value
    return [x], {"to": NUMBERS[np.dtype(target)]}, 1


def pad(d):
    shape, mode = d.shape(1, 3, empty=False), d.pick("constant", "edge", "reflect", "wrap")
    limit = {"constant": lambda n: 2, "edge": lambda n: 2, "reflect": lambda n: min(2, n - 1), "wrap": lambda n: min(2, n)}
    pads = [d.upto(-1 if mode == "constant" else 0, limit[mode](n)) for n in shape + shape]
    x = d.array(shape, d.one_of(COMMON))
    value = [d.array([], x.dtype.type)] if d.flag() else []
    return [x, np.array(pads, np.int64)] + value, {"mode": mode}, 1


def convolution(d):
    rank, group = d.pick(1, 2, 2, 3), d.pick(1, 1, 2, 3)
    kernel, dilations = [d.upto(1, 3) for _ in range(rank)], [d.upto(1, 2) for _ in range(rank)]
    attributes = {"group": group, "kernel_shape": kernel, "dilations": dilations,
                  "strides": [d.upto(1, 3) for _ in range(rank)]}
    if d.r.random() < 0.7:
        attributes["pads"] = [d.upto(0, 2) for _ in range(2 * rank)]
    else:
        attributes["auto_pad"] = d.pick("SAME_UPPER", "SAME_LOWER", "VALID")
        attributes["dilations"] = [1] * rank
    channels, maps = d.upto(1, 3), d.upto(1, 3)
    size = [d.upto(k * e, 11) for k, e in zip(kernel, dilations)]
    inputs = [d.array([d.upto(1, 2), group * channels] + size, np.float32),
              d.array([group * maps, channels] + kernel, np.float32)]
    return inputs + ([d.array([group * maps], np.float32)] if d.flag() else []), attributes, 1


def transposed_convolution(d):
    rank, group, channels, maps = d.pick(1, 2, 2), d.pick(1, 1, 2), d.upto(1, 3), d.upto(1, 3)
    kernel, strides = [d.upto(1, 3) for _ in range(rank)], [d.upto(1, 3) for _ in range(rank)]
    attributes = {"group": group, "kernel_shape": kernel, "strides": strides,
                  "output_padding": [d.upto(0, s - 1) for s in strides]}
    if d.flag():
        attributes["pads"] = [d.upto(0, 1) if k > 1 else 0 for k in kernel] * 2
    inputs = [d.array([d.upto(1, 2), group * channels] + [d.upto(2, 6) for _ in range(rank)], np.float32),
              d.array([group * channels, maps] + kernel, np.float32)]
    return inputs + ([d.array([group * maps], np.float32)] if d.flag() else []), attributes, 1


def pool(outputs=1, **attributes):
    def case(d):
        rank = d.pick(1, 2, 2, 3)
        kernel = [d.upto(1, 3) for _ in range(rank)]
        given = {"kernel_shape": kernel, "strides": [d.upto(1, 3) for _ in range(rank)], "ceil_mode": d.flag()}
        if d.flag():
            given["pads"] = [d.upto(0, k - 1) for k in kernel] * 2
        given.update({k: v(d) for k, v in attributes.items()})
        return [d.array([d.upto(1, 2), d.upto(1, 3)] + [d.upto(4, 9) for _ in range(rank)], np.float32)], given, outputs
    return case


def top_k(d):
    shape = d.shape(1, 3, empty=False)
    axis = d.axis(len(shape))
    x = d.array(shape, d.one_of(COMMON))
    return [x, np.array([d.upto(0, shape[axis])], np.int64)], {"axis": axis, "largest": d.flag()}, 2


def cumulative(d):
    shape = d.shape(1, 3)
    axis = np.array(d.axis(len(shape)), np.int64)
    return [d.array(shape, d.one_of(COMMON)), axis], {"exclusive": d.flag(), "reverse": d.flag()}, 1


def layer_norm(d):
    shape = d.shape(1, 3, empty=False)
    axis = d.upto(0, len(shape) - 1)
    inputs = [d.array(own, np.float32) for own in (shape, shape[axis:], shape[axis:])]
    return inputs[: d.upto(2, 3)], {"axis": axis}, d.pick(1, 3)


def quantized(quantize):
    def case(d):
        shape = d.shape(1, 3, empty=False)
        axis, per_axis, dtype = d.upto(0, len(shape) - 1), d.flag(), d.pick(np.uint8, np.int8, np.int16, np.uint16)
        own = [shape[axis]] if per_axis else []
        x = d.array(shape, np.float32 if quantize else dtype)
        scale = (np.abs(d.array(own, np.float32)) + 0.05).astype(np.float32)
        return [x, scale, d.array(own, dtype)], {"axis": axis} if per_axis else {}, 1
    return case


def max_roi_pool(d):
    rois = [[d.upto(0, 1)] + sorted([d.upto(0, 9), d.upto(0, 9)]) + sorted([d.upto(0, 9), d.upto(0, 9)])
            for _ in range(d.upto(1, 4))]
    rois = np.array(rois, np.float32)[:, [0, 1, 3, 2, 4]]
    return [d.array([2, d.upto(1, 3), 8, 9], np.float32), rois], {"pooled_shape": [d.upto(1, 4), d.upto(1, 4)],
                                                                  "spatial_scale": d.pick(1.0, 0.5)}, 1


def tile(d):
    shape = d.shape(1, 3)
    return [d.array(shape, d.pick(np.float32, np.int64)), np.array([d.upto(0, 3) for _ in shape], np.int64)], {}, 1


def expand(d):
    shape = d.shape()
    return [d.array(d.part(shape), d.pick(np.float32, np.int64, np.bool_)), np.array(shape, np.int64)], {}, 1


def trilu(d):
    return [d.array(d.shape(2), d.pick(np.float32, np.int64)), np.array(d.upto(-6, 5), np.int64)], {"upper": d.flag()}, 1


def unique(d):
    shape = d.shape(1, 2, empty=False)
    x = d.n.integers(0, 3, shape).astype(d.pick(np.float32, np.int64))
    return [x], {"sorted": d.flag(), **({"axis": d.axis(len(shape))} if d.flag() else {})}, 4


def compress(d):
    shape = d.shape(1, 3, empty=False)
    attributes = {"axis": d.upto(0, len(shape) - 1)} if d.flag() else {}
    size = shape[attributes["axis"]] if attributes else int(np.prod(shape))
    return [d.array(shape, np.float32), d.array([d.upto(1, size)], np.bool_)], attributes, 1


def recurrent(gates, outputs, **attributes):
    def case(d):
        steps, batch, size, hidden = (d.upto(1, 3) for _ in range(4))
        direction = d.pick("forward", "reverse", "bidirectional")
        count = 2 if direction == "bidirectional" else 1
        inputs = [d.array(own, np.float32) for own in ([steps, batch, size], [count, gates * hidden, size],
                                                       [count, gates * hidden, hidden], [count, 2 * gates * hidden])]
        given = {k: v(d) for k, v in attributes.items()}
        return inputs[: d.upto(3, 4)], {"hidden_size": hidden, "direction": direction, **given}, outputs
    return case


def heads_of(d):
    return d.upto(1, 2), d.upto(1, 4), d.pick(1, 2, 3), d.pick(4, 8)  # batch, tokens, heads, size of a head


def some_mask(d, batch, queries, keys, ranks):
    """A mask of keys in one of the forms; every query is left a key."""
    rank = d.one_of(ranks)
    lengths = d.n.integers(1, keys + 1, batch)
    if rank == 1:
        return lengths.astype(np.int32)
    if rank == "3B+2":
        sums = [np.zeros(1, np.int64), np.full(batch, queries).cumsum(), np.zeros(1, np.int64), lengths.cumsum()]
        return np.concatenate([lengths, *sums]).astype(np.int32)
    if rank == "2B":
        starts = np.array([d.upto(0, n - 1) for n in lengths])
        return np.concatenate([lengths, starts]).astype(np.int32)
    mask = d.n.integers(0, 2, (batch, keys) if rank == 2 else (batch, queries, keys)).astype(np.int32)
    mask[..., 0] = 1
    return mask


def attention(d):
    batch, tokens, heads, size = heads_of(d)
    hidden, past = heads * size, d.pick(None, None, 0, 3)
    keys = tokens + (past or 0)
    causal = d.flag()
    inputs = [d.array([batch, tokens, 6], np.float32), d.array([6, 3 * hidden], np.float32),
              d.array([3 * hidden], np.float32),
              some_mask(d, batch, tokens, keys, [1, 2, 3] if past is None else [2, 3]) if d.flag() else None,
              None if past is None else d.array([2, batch, heads, past, size], np.float32),
              d.array([d.pick(1, batch), d.pick(1, heads), tokens, keys], np.float32) if d.flag() else None]
    return inputs, {"num_heads": heads, "unidirectional": causal}, 1 if past is None else 2


def multi_head_attention(d):
    batch, tokens, heads, size = heads_of(d)
    hidden, keys, form = heads * size, d.upto(1, 5), d.pick("plain", "plain", "qkv", "kv", "cross", "past")
    array = lambda *shape: d.array(shape, np.float32)
    past = d.upto(0, 3) if form == "past" else 0
    if form in ("qkv", "past"):
        keys = tokens
    total, bias, causal = keys + past, None, 0
    if form == "qkv":
        inputs = [array(batch, tokens, heads, 3, size), None, None]
    elif form == "kv":
        inputs = [array(batch, tokens, hidden), array(batch, keys, heads, 2, size), None]
    elif form == "cross":
        inputs = [array(batch, tokens, hidden)] + [array(batch, heads, keys, size) for _ in "kv"]
    else:
        inputs = [array(batch, n, hidden) for n in (tokens, keys, keys)]
        causal = d.flag() if keys == tokens else 0
    if form in ("plain", "past", "qkv") and d.flag():
        bias = array(3 * hidden)
    mask = some_mask(d, batch, tokens, total, [1, 2, 3, "3B+2"] if form == "plain" else [2]) if d.flag() else None
    inputs += [bias, mask, array(d.pick(1, batch), d.pick(1, heads), tokens, total) if d.flag() else None]
    if form == "past":
        inputs += [array(batch, heads, past, size) for _ in "kv"]
    return inputs, {"num_heads": heads, "unidirectional": causal, **({"scale": 0.3} if d.flag() else {})}, \
        3 if form == "past" else 1


def group_query_attention(d):
    batch, groups, size = d.upto(1, 2), d.pick(1, 2), d.pick(8, 16)
    heads, prompt = groups * d.upto(1, 3), d.flag()
    past = 0 if prompt else d.upto(1, 6)
    tokens = d.upto(1, 5) if prompt or batch == 1 else 1
    kind = d.pick(np.float32, np.float32, np.float16)
    packed, rotary = d.flag(), d.flag()
    array = lambda *shape: (d.array(shape, np.float32) / 3).astype(kind)
    lengths = np.array([past + tokens if i == 0 or prompt or tokens > 1 else d.upto(1, past + tokens)
                        for i in range(batch)], np.int32)
    if packed:
        inputs = [array(batch, tokens, (heads + 2 * groups) * size), None, None]
    else:
        inputs = [array(batch, tokens, n * size) for n in (heads, groups, groups)]
    inputs += [array(batch, groups, past, size) if past else None for _ in "kv"]
    inputs += [lengths - 1, np.array(past + tokens, np.int32)]
    inputs += [array(20, size // 2) for _ in "cs"] if rotary else [None, None]
    attributes = {"num_heads": heads, "kv_num_heads": groups, "do_rotary": rotary, "rotary_interleaved": d.flag()}
    if d.flag():
        attributes["local_window_size"] = d.upto(1, 4)
    if d.flag():
        attributes["softcap"] = 2.0
    if d.flag():
        attributes["scale"] = 0.4
    inputs += [None, array(d.pick(1, batch), d.pick(1, heads), tokens, past + tokens) if d.flag() else None]
    if d.flag():
        inputs.append(array(heads))
    elif d.flag():
        attributes["smooth_softmax"] = 1
    return inputs, attributes, 3


def quantised_cache(d):
    inputs, attributes, outputs = group_query_attention(d)
    groups, size, bits = attributes["kv_num_heads"], 16, d.pick(4, 8)
    while inputs[3] is None or inputs[3].shape[3] != size or inputs[0].dtype != np.float32:
        inputs, attributes, outputs = group_query_attention(d)
        groups = attributes["kv_num_heads"]
    channels = d.flag()
    shape = list(inputs[3].shape[:3]) + [size * bits // 8]
    inputs[3:5] = [d.n.integers(0, 256, shape).astype(np.uint8).view(np.int8 if bits == 8 else np.uint8) for _ in "kv"]
    inputs += [None] * (12 - len(inputs))
    inputs += [(d.n.random([1, groups, 1, size] if channels else [1]) / 20 + 0.01).astype(np.float32) for _ in "kv"]
    kind = "PER_CHANNEL" if channels else "PER_TENSOR"
    return inputs, {**attributes, "k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": bits}, outputs


def window_cache(d):
    """One sequence; what a cache that is not full holds behind its last row is nobody's."""
    heads, size, tokens, past = 2, 8, d.upto(1, 9), d.upto(0, 20)
    room = d.upto(2, 8)
    window = d.upto(1, room)
    array = lambda *shape: d.array(shape, np.float32) / 3
    inputs = [array(1, tokens, n * size) for n in (heads, 1, 1)] + [array(1, 1, room, size) for _ in "kv"]
    inputs += [np.array([past + tokens - 1], np.int32), np.array(past + tokens, np.int32)]
    rotary = d.flag()
    inputs += [array(40, size // 2) if rotary else None for _ in "cs"]
    inputs += [None, array(1, d.pick(1, heads), tokens, past + tokens) if d.flag() else None]
    return inputs, {"num_heads": heads, "kv_num_heads": 1, "do_rotary": rotary, "sliding_window_cache": 1,
                    "local_window_size": window}, 3 if window == room and past + tokens >= room else 1


def any_group_query(d):
    return d.pick(group_query_attention, group_query_attention, quantised_cache, window_cache)(d)


def rotary(d):
    batch, tokens, heads, size = heads_of(d)
    own = [batch, tokens, heads * size] if d.flag() else [batch, heads, tokens, size]
    places = d.n.integers(0, 10 - tokens, [1]) if d.flag() else d.n.integers(0, 10, [batch, tokens])
    caches = [d.array([10, size // 2], np.float32) for _ in "cs"]
    return [d.array(own, np.float32), places, *caches], {"interleaved": d.flag()}, 1


def skip_norm(rms):
    def case(d):
        batch, tokens, size = d.upto(1, 3), d.upto(1, 4), d.pick(4, 24)
        array = lambda *shape: d.array(shape, np.float32)
        bias = [array(size) if d.flag() else None]
        return [array(batch, tokens, size), array(batch, tokens, size), array(size)] + \
            ([] if rms else [array(size) if d.flag() else None]) + bias, {"epsilon": 1e-5}, 1
    return case


def embed_norm(d):
    batch, tokens, size = d.upto(1, 3), d.upto(1, 4), 8
    ids = lambda n: d.n.integers(0, n, (batch, tokens)).astype(np.int32)
    array = lambda *shape: d.array(shape, np.float32)
    types = d.flag()
    return [ids(9), ids(2) if types else None, array(9, size), array(6, size), array(2, size) if types else None,
            array(size), array(size), d.n.integers(0, 2, (batch, tokens)).astype(np.int32) if d.flag() else None,
            ids(6) if d.flag() else None], {"epsilon": 1e-5}, 2


def q_embed_norm(d):
    batch, tokens, size, kind = d.upto(1, 3), d.upto(1, 4), 8, np.uint8
    ids = lambda n: d.n.integers(0, n, (batch, tokens)).astype(np.int32)
    tables = [d.full(own, kind) for own in ([9, size], [6, size], [2, size], [size], [size])]
    scales = [np.array(d.r.random() / 50 + 0.01, np.float32) for _ in tables]
    return [ids(9), ids(2), *tables, d.n.integers(0, 2, (batch, tokens)).astype(np.int32) if d.flag() else None,
            *scales, *[d.full([], kind) for _ in tables]], {"epsilon": 1e-5}, 2


def nbits(d):
    bits, block, n, k = d.pick(2, 4, 4, 8), d.pick(16, 32), d.pick(1, 7, 24), d.pick(16, 40, 64)
    blocks = -(-k // block)
    zeros = d.pick(None, "packed", "plain")
    inputs = [d.array([d.upto(1, 3), k], np.float32), d.full([n, blocks, block * bits // 8], np.uint8),
              np.abs(d.array([n, blocks], np.float32)) / 8]
    if zeros:
        inputs.append(d.full([n, -(-blocks * bits // 8)], np.uint8) if zeros == "packed"
                      else d.array([n, blocks], np.float32))
    return inputs, {"K": k, "N": n, "bits": bits, "block_size": block}, 1


def bnb4(d):
    block, n, k = d.pick(16, 32), d.pick(1, 7, 24), d.pick(16, 40, 64)
    return [d.array([d.upto(1, 3), k], np.float32), d.full([(n * k + 1) // 2], np.uint8),
            np.abs(d.array([-(-n * k // block)], np.float32))], {"K": k, "N": n, "block_size": block,
                                                                  "quant_type": d.flag()}, 1


def gather_block(d):
    rows, width, block = d.upto(1, 5), d.pick(32, 64, 96), d.pick(16, 32)
    bits = d.pick(4, 8)
    blocks = width // block
    inputs = [d.full([rows, width * bits // 8], np.uint8), d.n.integers(0, rows, d.shape(1, 2, empty=False)),
              np.abs(d.array([rows, blocks], np.float32))]
    if d.flag():
        inputs.append(d.full([rows, -(-blocks * bits // 8)], np.uint8))
    return inputs, {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1}, 1


def scale_of(d):
    return np.array(d.r.random() / 4 + 0.02, np.float32)


def q_linear(count, **attributes):
    """`count` quantised operands, then the result's scale and zero point."""
    def case(d):
        kind, shape = d.pick(np.uint8, np.int8), d.shape(2, 4, empty=False)
        inputs = []
        for _ in range(count):
            inputs += [d.full(d.part(shape) if count > 1 else shape, kind), scale_of(d), d.full([], kind)]
        given = {k: v(d) for k, v in attributes.items()}
        return inputs + [scale_of(d), d.full([], kind)], given, 1
    return case


def q_linear_where(d):
    kind, shape = d.pick(np.uint8, np.int8), d.shape(1, 3, empty=False)
    inputs = [d.array(d.part(shape), np.bool_)]
    for _ in range(2):
        inputs += [d.full(d.part(shape), kind), scale_of(d), d.full([], kind)]
    return inputs + [scale_of(d), d.full([], kind)], {}, 1


def q_linear_concat(d):
    kind, shape = d.pick(np.uint8, np.int8), d.shape(2, 3, empty=False)
    axis, inputs = d.axis(len(shape)), [scale_of(d), d.full([], kind)]
    for _ in range(d.upto(1, 3)):
        own = list(shape)
        own[axis] = d.upto(1, 3)
        inputs += [d.full(own, kind), scale_of(d), d.full([], kind)]
    return inputs, {"axis": axis}, 1


def q_linear_pool(whole):
    def case(d):
        kind, last = np.uint8, d.flag()
        channels, size = d.upto(1, 3), [d.upto(3, 7), d.upto(3, 7)]
        shape = [d.upto(1, 2)] + (size + [channels] if last else [channels] + size)
        given = {"channels_last": last}
        if not whole:
            given.update(kernel_shape=[2, 3], strides=[d.upto(1, 2), 1], count_include_pad=d.flag(),
                         pads=[d.flag() for _ in range(4)])
        return [d.full(shape, kind), scale_of(d), d.full([], kind), scale_of(d), d.full([], kind)], given, 1
    return case


def q_linear_softmax(d):
    shape, kind = d.shape(1, 3, empty=False) + [d.upto(2, 5)], d.pick(np.uint8, np.int8)
    zero = np.array(0 if kind == np.uint8 else -128, kind)
    return [d.full(shape, kind), scale_of(d), d.full([], kind), np.array(1 / 256, np.float32), zero], \
        {"axis": -1, "opset": 13}, 1


def q_gemm(d):
    m, n, k = d.pick(1, 3, 9), d.pick(1, 5, 16), d.pick(1, 7, 40)
    ta, tb, kind = d.flag(), d.flag(), d.pick(np.uint8, np.int8)
    own = [n] if d.flag() else []
    inputs = [d.full([k, m] if ta else [m, k], np.uint8), scale_of(d), d.full([], np.uint8),
              d.full([n, k] if tb else [k, n], kind), np.asarray(np.abs(d.array(own, np.float32)) / 9 + 0.01), d.full(own, kind),
              d.n.integers(-900, 900, [n]).astype(np.int32) if d.flag() else None]
    if d.flag():
        inputs += [np.array(20, np.float32), d.full([], np.uint8)]
    return inputs, {"transA": ta, "transB": tb, "alpha": d.pick(1.0, 0.5)}, 1


def q_attention(d):
    batch, tokens, heads, size = heads_of(d)
    hidden = heads * size
    return [d.full([batch, tokens, 8], np.uint8), d.full([8, 3 * hidden], np.int8), d.array([3 * hidden], np.float32),
            np.array(0.01, np.float32), np.array(0.02, np.float32), d.n.integers(1, tokens + 1, [batch]).astype(np.int32),
            d.full([], np.uint8), np.array(0, np.int8)], {"num_heads": heads, "unidirectional": d.flag()}, 1


def ms_product(d):
    ta, tb, batch = d.flag(), d.flag(), d.shape(0, 1, empty=False)
    m, n, k = d.pick(1, 3, 9), d.pick(1, 5, 16), d.pick(1, 7, 40)
    return [d.array(batch + ([k, m] if ta else [m, k]), np.float32), d.array(batch + ([n, k] if tb else [k, n]), np.float32)], \
        {"transA": ta, "transB": tb, "alpha": d.pick(1.0, 0.5)}, 1


def dynamic_product(integer):
    def case(d):
        m, n, k, kind = d.pick(1, 3, 9), d.pick(1, 5, 16), d.pick(1, 7, 40), d.pick(np.uint8, np.int8)
        scale = np.asarray(np.abs(d.array([n] if d.flag() else [], np.float32)) / 9 + 0.01)
        zero = d.full(list(scale.shape), kind) if d.flag() else None
        bias = d.array([n], np.float32) if d.flag() else None
        a = d.full([m, k], np.uint8) if integer else d.array([m, k], np.float32)
        if not integer:
            return [a, d.full([k, n], kind), scale, zero, bias], {}, 1
        return [a, d.full([k, n], kind), scale_of(d), scale, d.full([], np.uint8), zero, bias], {}, 1
    return case


def fused_conv(d):
    inputs, attributes, _ = convolution(d)
    return inputs, {**attributes, "activation": d.pick("Relu", "Tanh", "Sigmoid")}, 1


def floats(d, *shape):
    return [float(v) for v in d.array(shape, np.float32).reshape(-1)]


POSTS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")


def linear_model(classifier):
    def case(d):
        rows, width, classes = d.upto(1, 4), d.upto(1, 5), d.pick(1, 2, 3)
        attributes = {"coefficients": floats(d, classes, width), "post_transform": d.one_of(POSTS),
                      "intercepts": floats(d, classes)}
        if classifier:
            labels = [5, 3, 9][: max(2, classes)]
            if classes == 1:
                attributes["post_transform"] = d.pick("NONE", "LOGISTIC")
            attributes.update({"classlabels_ints": labels} if d.flag() else {"classlabels_strings": list(map(str, labels))})
        else:
            attributes["targets"] = classes
            if classes == 1:
                attributes["post_transform"] = "NONE"
        x = d.array([rows, width], d.pick(np.float32, np.float64, np.int64))
        return [x], attributes, 2 if classifier else 1
    return case


def machine(classifier):
    def case(d):
        rows, width, classes = d.upto(1, 4), d.upto(1, 5), d.pick(2, 2, 3, 4) if classifier else 1
        per_class = [d.upto(1, 3) for _ in range(classes)]
        vectors, pairs = sum(per_class), max(1, classes * (classes - 1) // 2)
        attributes = {"kernel_type": d.pick("LINEAR", "POLY", "RBF", "SIGMOID"), "kernel_params": [0.1, 0.5, 2.0],
                      "rho": floats(d, pairs), "support_vectors": floats(d, vectors, width),
                      "coefficients": floats(d, max(1, classes - 1), vectors)}
        if classifier:
            attributes.update(vectors_per_class=per_class, classlabels_ints=list(range(3, 3 + classes)))
            if d.flag():
                attributes.update(prob_a=[-abs(v) for v in floats(d, pairs)], prob_b=floats(d, pairs))
        else:
            attributes.update(n_supports=vectors, one_class=d.flag())
        return [d.array([rows, width], np.float32)], attributes, 2 if classifier else 1
    return case


FLAG = Draw.flag
ML = "ai.onnx.ml."
MS = "com.microsoft."
CASES = {
    **{name: unary([np.float32, np.float64, np.float16, np.int32, np.int64, np.int8]) for name in ("Abs", "Neg")},
    **{name: unary(WIDE) for name in ("Ceil", "Floor", "Exp", "Sqrt", "Round", "Reciprocal", "Relu", "Log")},
    **{name: unary([np.float32]) for name in (
        "Sigmoid", "Tanh", "Erf", "Sin", "Cos", "Softplus", "Softsign", "Elu", "Selu", "LeakyRelu", "HardSigmoid", "HardSwish",
        "Atan", "Sinh", "Cosh", "Asinh", "Tan", "ThresholdedRelu", "Celu", "Mish", "Gelu", "Identity")},
    "Sign": unary(COMMON), "Not": unary([np.bool_]), "BitwiseNot": unary(INTEGERS), "IsNaN": unary(FLOATS),
    "IsInf": unary(WIDE, detect_positive=FLAG, detect_negative=FLAG),
    **{name: binary(COMMON + [np.float16], zero=name != "Div") for name in ("Add", "Sub", "Mul", "Div")},
    **{name: binary(COMMON) for name in ("Min", "Max", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")},
    "Equal": binary(COMMON + [np.bool_]), "Pow": binary(WIDE), "Mod": modulo,
    **{name: binary([np.bool_]) for name in ("And", "Or", "Xor")},
    **{name: binary(INTEGERS) for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    **{name: reduction(WIDE + [np.int32], special=name != "ReduceSumSquare") for name in (
        "ReduceSum", "ReduceL1", "ReduceSumSquare")},
    **{name: reduction(WIDE + [np.int32]) for name in ("ReduceMax", "ReduceMin")},
    **{name: reduction(WIDE) for name in ("ReduceMean", "ReduceProd", "ReduceL2", "ReduceLogSumExp")},
    "ReduceLogSum": reduction(WIDE, positive=True),
    "Transpose": transpose, "Slice": slices, "Concat": concat, "Split": split, "Gather": gather,
    "GatherElements": gather_elements, "GatherND": gather_nd, "ScatterElements": scatter_elements, "MatMul": matmul,
    "Gemm": gemm, "MatMulInteger": matmul_integer, "Where": where, "Cast": cast, "Pad": pad, "Conv": convolution,
    "ConvTranspose": transposed_convolution, "MaxPool": lambda d: pool(d.pick(1, 2))(d), "AveragePool": pool(count_include_pad=FLAG),
    "LpPool": pool(p=lambda d: d.upto(1, 3)), "TopK": top_k, "CumSum": cumulative, "LayerNormalization": layer_norm,
    "Softmax": along_axis(WIDE), "LogSoftmax": along_axis(WIDE), "Hardmax": along_axis([np.float32]),
    "ArgMax": along_axis(COMMON, keepdims=FLAG, select_last_index=FLAG),
    "ArgMin": along_axis(COMMON, keepdims=FLAG, select_last_index=FLAG),
    "QuantizeLinear": quantized(True), "DequantizeLinear": quantized(False), "MaxRoiPool": max_roi_pool, "Tile": tile, "Expand": expand,
    "Trilu": trilu, "Unique": unique, "Compress": compress, "LSTM": recurrent(4, 3), "RNN": recurrent(1, 2),
    "GRU": recurrent(3, 2, linear_before_reset=FLAG),
    MS + "Attention": attention, MS + "MultiHeadAttention": multi_head_attention,
    MS + "GroupQueryAttention": any_group_query, MS + "RotaryEmbedding": rotary,
    MS + "SkipLayerNormalization": skip_norm(False), MS + "SkipSimplifiedLayerNormalization": skip_norm(True),
    MS + "EmbedLayerNormalization": embed_norm, MS + "QEmbedLayerNormalization": q_embed_norm,
    MS + "MatMulNBits": nbits, MS + "MatMulBnb4": bnb4, MS + "GatherBlockQuantized": gather_block,
    **{MS + name: q_linear(2) for name in ("QLinearAdd", "QLinearMul")}, MS + "QLinearSigmoid": q_linear(1),
    MS + "QLinearLeakyRelu": q_linear(1, alpha=lambda d: 0.1), MS + "QLinearWhere": q_linear_where,
    MS + "QLinearConcat": q_linear_concat, MS + "QLinearAveragePool": q_linear_pool(False),
    MS + "QLinearGlobalAveragePool": q_linear_pool(True), MS + "QLinearSoftmax": q_linear_softmax,
    MS + "QLinearReduceMean": q_linear(1, axes=lambda d: [d.upto(-2, 1)], keepdims=FLAG),
    MS + "QGemm": q_gemm, MS + "QAttention": q_attention, MS + "FusedMatMul": ms_product,
    MS + "DynamicQuantizeMatMul": dynamic_product(False), MS + "MatMulIntegerToFloat": dynamic_product(True),
    MS + "FusedConv": fused_conv, MS + "QuickGelu": unary([np.float32], alpha=lambda d: 1.7),
    **{MS + name: unary([np.float32]) for name in ("Gelu", "FastGelu")},
    ML + "LinearClassifier": linear_model(True), ML + "LinearRegressor": linear_model(False),
    ML + "SVMClassifier": machine(True), ML + "SVMRegressor": machine(False),
    MS + "QuantizeLinear": quantized(True), MS + "DequantizeLinear": quantized(False),
}
MORE = {**operator_cases.CASES, **{MS + name: case for name, case in ms_cases.CASES.items()}}
for more, case in MORE.items():  # an operator that is drawn here as well gets both
    own = CASES.get(more)
    CASES[more] = (lambda d, own=own, case=case: d.pick(own, case)(d)) if own else case
# Inputs that ONNX Runtime or Pith knows as constants only.
CONSTANT = {MS + "MatMulBnb4": {1, 2}, MS + "GatherBlockQuantized": {0, 2, 3}, MS + "QAttention": {1, 2, 3, 4, 6, 7}, MS + "Attention": {1},
            MS + "QLinearWhere": {2, 3, 5, 6, 7, 8},
            MS + "QEmbedLayerNormalization": set(range(2, 18)) - {7}, **{MS + n: c for n, c in ms_cases.CONSTANT.items()}}
NEAREST = {"QuantizeLinear"} | operator_cases.NEAREST | {MS + n for n in (
    "QuantizeLinear", "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearWhere", "QLinearConcat",
    "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearSoftmax", "QLinearReduceMean", "QGemm", *ms_cases.NEAREST)}


def make_model(name, draw):
    """Bytes of the model, and the inputs that are not constants."""
    inputs, attributes, outputs = CASES[name](draw)
    domain, _, op = name.rpartition(".")
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    constant = {n for i, n in enumerate(names) if i in CONSTANT.get(name, ()) or (i and draw.flag())} - {""}
    constant |= {n for n, x in zip(names, inputs) if n and x.dtype == object}
    values, free = {n: x for n, x in zip(names, inputs) if n}, draw.flag()
    outs = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
    graph = helper.make_graph(
        [helper.make_node(op, names, outs, domain=domain, **attributes)], "case",
        [helper.make_tensor_value_info(n, NUMBERS[x.dtype], [None] * x.ndim if free else x.shape)
         for n, x in values.items() if n not in constant],
        [helper.make_empty_tensor_value_info(n) for n in outs if n],
        [numpy_helper.from_array(values[n], n) for n in sorted(constant)])
    opset = 21 if domain or draw.r.random() < 0.6 else draw.pick(7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22)
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    text = f"{name} opset {opset} {attributes} {[(str(x.dtype), list(x.shape), n in constant) for n, x in values.items()]}"
    return model.SerializeToString(), {n: x for n, x in values.items() if n not in constant}, text


def difference(name, got, want):
    """What differs, or None."""
    for i, (g, w) in enumerate(zip(got, want)):
        if g.dtype != w.dtype or g.shape != w.shape:
            return f"output {i} is {g.dtype} {g.shape}, not {w.dtype} {w.shape}"
        if g.dtype.kind in "OSU":
            if g.tolist() != w.tolist():
                return f"output {i} differs"
            continue
        if g.dtype.kind != "f":
            step = 1 if name in NEAREST else 0  # a quotient that lies between two numbers
            if g.size and np.abs(g.astype(np.float64) - w.astype(np.float64)).max() > step:
                return f"output {i} differs"
            continue
        tolerance = 1e-2 if g.dtype == np.float16 else 1e-4
        if not np.allclose(g.astype(np.float64), w.astype(np.float64), tolerance, tolerance, equal_nan=True):
            return f"output {i} differs by {np.nanmax(np.abs(g.astype(np.float64) - w.astype(np.float64)))}"
    return None


def run(library, raw, inputs):
    model = Model(library, raw)
    try:
        return model.run(inputs)
    finally:
        model.close()


def main():
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default=root / "build" / "libpith.so")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--write", type=pathlib.Path, help="only write the models there, as FOLDER/<case>/model.onnx")
    parser.add_argument("--refusals", action="store_true", help="print what ONNX Runtime says of cases that it refuses")
    parser.add_argument("operators", nargs="*")
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = 1
    session_options.log_severity_level = 4
    names, faults, judged = options.operators or sorted(CASES), 0, 0
    for i in range(options.count):
        name = names[i % len(names)]
        model, inputs, text = make_model(name, Draw(options.seed * 1000003 + i))
        if options.write:
            (options.write / str(i)).mkdir()
            (options.write / str(i) / "model.onnx").write_bytes(model)
            continue
        try:
            session = onnxruntime.InferenceSession(model, session_options, providers=["CPUExecutionProvider"])
            want = session.run(None, inputs)
        except Exception as refusal:  # its own exceptions have no common base
            want = None
            if options.refusals:
                print(f"case {i}: {text}: {refusal}")
        try:
            fault = None if want is None else difference(name, run(options.library, model, inputs), want)
        except PithError as failure:  # ONNX Runtime takes attributes of later opsets
            fault = None if "attribute '" in str(failure) and "opset 21" not in text else str(failure)
        judged += want is not None
        if fault:
            faults += 1
            print(f"seed {options.seed} case {i}: {text}: {fault}")
    print(f"seed {options.seed}: {options.count} cases, {judged} judged, {faults} different")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
