"""Cases of com.microsoft for compare_operators.py: all that ONNX Runtime has kernels for and that is not drawn there.

A case takes a Draw and gives (inputs, attributes, number of outputs or their names), as there.
"""
import numpy as np

F32, F64, F16 = np.float32, np.float64, np.float16


def ints(d, low, high, shape, kind=np.int32):
    return np.asarray(d.n.integers(low, high, shape)).astype(kind)


def scale_of(d, shape=()):
    return np.asarray(np.abs(d.array(shape, F32)) / 9 + 0.02).astype(F32)


def maybe(d, x):
    return x if d.flag() else None


def half(d):
    return d.pick(F32, F32, F16)


# ---- quantised ----

def dynamic_lstm(d):
    steps, batch, inputs, hidden, kind = d.upto(1, 6), d.upto(1, 3), d.pick(1, 5, 17), d.pick(1, 4, 16), d.pick(np.uint8, np.int8)
    direction = d.pick("forward", "reverse", "bidirectional")
    n = 1 + (direction == "bidirectional")
    own = [n] if d.flag() else [n, 4 * hidden]
    zero = lambda: np.zeros(own, kind) if kind == np.int8 or d.flag() else np.full(own, 128, kind)
    lengths = maybe(d, ints(d, 0, steps + 1, [batch]))
    small = lambda *shape: (d.array(shape, F32) / 3).astype(F32)
    scales = lambda: (np.abs(d.array(own, F32)) / 900 + 0.001).astype(F32)
    return [small(steps, batch, inputs), d.full([n, inputs, 4 * hidden], kind), d.full([n, hidden, 4 * hidden], kind),
            maybe(d, small(n, 8 * hidden)), lengths, maybe(d, small(n, batch, hidden)), maybe(d, small(n, batch, hidden)),
            maybe(d, small(n, 3 * hidden)), scales(), zero(), scales(), zero()], \
        {"hidden_size": hidden, "direction": direction, "input_forget": d.pick(0, 0, 1)}, 3


def q_conv(d):
    group, channels, maps, last = d.pick(1, 1, 2), d.upto(1, 3), d.upto(1, 3), d.flag()
    size = [d.upto(3, 7), d.upto(3, 7)]
    x = [1, *size, group * channels] if last else [1, group * channels, *size]
    own, kind = [group * maps] if d.flag() else [], d.pick(np.uint8, np.int8)
    kernel = [d.upto(1, 3), d.upto(1, 3)]
    return [d.full(x, kind), scale_of(d), d.full([], kind), d.full([group * maps, channels, *kernel], np.int8), scale_of(d, own),
            np.zeros(own, np.int8), np.array(9.0, F32), d.full([], kind),
            maybe(d, ints(d, -900, 900, [group * maps]))], \
        {"group": group, "strides": [d.upto(1, 2), 1], "pads": [d.flag() for _ in range(4)], "channels_last": last}, 1


def nhwc_max(d):
    return [d.full([1, d.upto(3, 7), d.upto(3, 7), d.upto(1, 4)], d.pick(np.uint8, np.int8))], \
        {"kernel_shape": [2, 3], "strides": [d.upto(1, 2), 1], "pads": [d.flag() for _ in range(4)], "ceil_mode": d.flag()}, 1


def turned_product(name):
    def case(d):
        kind, batch = d.pick(F32, F32, F64) if name == "FusedMatMul" else F32, d.shape(1, 2, empty=False)
        m, n, k, given = d.pick(1, 3, 9), d.pick(1, 5, 16), d.pick(1, 7, 40), {}
        sides = []
        for i, (rows, columns) in enumerate(((m, k), (k, n))):
            letter, turned, moved = "AB"[i], d.flag(), d.flag() if name == "FusedMatMul" else 0
            given["trans" + letter] = turned
            if moved:
                given["transBatch" + letter] = 1
            rows, columns = (columns, rows) if turned else (rows, columns)
            sides.append(d.array([rows, *batch, columns] if moved else [*batch, rows, columns], kind))
        return sides, {**given, "alpha": d.pick(1.0, 0.5)}, 1
    return case


def int16_product(d):
    m, n, k = d.pick(1, 3, 9), d.pick(1, 5, 16), d.pick(1, 7, 40)
    return [d.full([m, k], np.int16), d.full([k, n], np.int16)], {}, 1


def fused_gemm(d):
    m, n, k, ta, tb = d.pick(1, 3, 9), d.pick(1, 5, 16), d.pick(1, 7, 20), d.flag(), d.flag()
    given = d.pick({"activation": "Relu"}, {"activation": "Tanh"}, {"activation": "Sigmoid"}, {"activation": "Softplus"},
                   {"activation": "Softsign"}, {"activation": "LeakyRelu", "activation_alpha": 0.3},
                   {"activation": "Elu", "activation_alpha": 0.7}, {"activation": "ThresholdedRelu", "activation_alpha": 0.6},
                   {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4},
                   {"activation": "Selu", "activation_alpha": 1.5, "activation_gamma": 1.2})
    return [d.array([k, m] if ta else [m, k], F32), d.array([n, k] if tb else [k, n], F32), maybe(d, d.array(d.pick([n], [m, n]), F32))], \
        {"transA": ta, "transB": tb, "alpha": d.pick(1.0, 0.5), "beta": d.pick(1.0, 0.5), **given}, 1


def fused_conv(d):
    maps, channels = d.upto(1, 3), d.upto(1, 3)
    given = d.pick({"activation": "LeakyRelu", "activation_params": [0.3]}, {"activation": "Clip", "activation_params": [-0.5, 0.7]},
                   {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]}, {"activation": "Relu"})
    inputs = [d.array([1, channels, 4, 5], F32), d.array([maps, channels, 3, 3], F32), maybe(d, d.array([maps], F32)),
              maybe(d, d.array([1, maps, 2, 3], F32))]
    return inputs, given, 1


# ---- plain ones under another name ----

def expand_dims(d):
    shape = d.shape(0, 3)
    return [d.array(shape, d.pick(F32, np.int64)), np.array(d.upto(-len(shape) - 1, len(shape)), np.int32)], {}, 1


def gather_nd(d):
    shape = d.shape(1, 3, empty=False)
    n = d.upto(1, len(shape))
    at = np.stack([d.n.integers(0, s, d.shape(1, 2, empty=False)[:1] * 2) for s in shape[:1]] * n, -1)
    at = np.minimum(at, np.array(shape[:n]) - 1)
    return [d.array(shape, d.pick(F32, np.int64)), at.astype(d.pick(np.int32, np.int64))], {}, 1


def grid_sample(d):
    return [d.array([2, d.upto(1, 2), d.upto(2, 5), d.upto(2, 5)], F32), (d.array([2, 3, 4, 2], F32) / 3).astype(F32)], \
        {"mode": d.pick("bilinear", "nearest"), "padding_mode": d.pick("zeros", "border", "reflection"),
         "align_corners": d.flag()}, 1


def pad(d):
    shape, mode = d.shape(1, 3, empty=False), d.pick("constant", "edge", "reflect")
    most = 3 if mode != "reflect" else min(shape) - 1
    pads = ints(d, 0, most + 1, [2 * len(shape)], np.int64)
    value = d.pick(None, d.array([], F32), d.array([1], F32)) if mode == "constant" else None
    return [d.array(shape, F32), pads.reshape(1, -1) if d.flag() else pads, value], {"mode": mode}, 1


def range_of(d):
    kind, shape = d.pick(F32, F64, np.int16, np.int32, np.int64), d.pick([], [1])
    start, limit, delta = (np.full(shape, v, kind) for v in (d.upto(-5, 5), d.upto(-5, 9), d.pick(1, 2, -1, 3)))
    return [start, limit, maybe(d, delta)], {}, 1


def trilu(d):
    shape = d.shape(2, 4, empty=False)
    return [d.array(shape, d.pick(F32, F64, np.int64)), maybe(d, np.array(d.upto(-4, 4), np.int64))], {"upper": d.flag()}, 1


def unique(d):
    return [ints(d, -3, 4, [d.upto(1, 12)]).astype(F32)], {}, 3


def unfold(d):
    shape = [d.upto(2, 6) for _ in range(d.upto(1, 3))]
    axis = d.axis(len(shape))
    return [d.array(shape, d.pick(F32, np.int64, F64))], {"dim": axis, "size": d.upto(1, shape[axis]), "step": d.upto(1, 3)}, 1


def distances(d):
    kind, n = d.pick(F32, F64), d.upto(1, 6)
    return [d.array([d.upto(1, 5), n], kind), d.array([d.upto(1, 5), n], kind)], {"metric": d.pick("euclidean", "sqeuclidean")}, 1


def sample(d):
    return [d.array(d.shape(), F32)], {}, 1


# ---- gates and streams ----

def scaled_silu(d):
    kind, scale = half(d), maybe(d, np.array(0.75, F32))
    return [d.array(d.shape(1, 3), kind), scale], {"alpha": d.pick(1.0, 1.5)}, 1


def gated_add(d):
    kind, shape = half(d), d.shape(1, 3, empty=False)
    return [d.array(shape, kind), d.array(shape, kind), d.array(shape[:-1] + [1], kind)], {}, 1


def gated_norm(d):
    kind, heads, size = half(d), d.upto(1, 3), d.pick(1, 4, 9)
    shape = d.shape(1, 2, empty=False) + [heads * size]
    return [d.array(shape, kind), d.array([size], kind), d.array(shape, kind)], \
        {"activation": d.pick("silu", "swish", "sigmoid"), "epsilon": d.pick(1e-5, 0.01)}, 1


def streams(d, kind):
    """Branches, features, whether flat, leading sizes, the tensor."""
    branches, size, flat, lead = d.upto(1, 4), d.pick(1, 3, 8), d.flag(), d.shape(1, 2, empty=False)
    return branches, size, flat, lead, d.array(lead + ([branches * size] if flat else [branches, size]), kind)


def branch_norm(d):
    kind = half(d)
    branches, size, flat, _, x = streams(d, kind)
    scale = d.pick(None, [branches * size], [branches, size], [size])
    return [x, None if scale is None else d.array(scale, d.pick(F32, kind))], \
        {**({"num_branches": branches} if flat else {}), "epsilon": 1e-5}, 1


def pre_mix(d):
    kind = half(d)
    branches, size, flat, lead, x = streams(d, kind)
    gates = lead + d.pick([branches], [branches, 1], [branches, size], *([[branches * size]] if flat else []))
    return [x, d.array(gates, d.pick(F32, kind))], \
        {**({"num_branches": branches} if flat else {}), "reduction_scale": d.pick(1.0, 0.5)}, 1


def post_mix(d):
    kind = half(d)
    branches, size, flat, lead, x = streams(d, kind)
    gates = lead + d.pick([branches], [branches, 1], [branches, size])
    other = d.pick(F32, kind)
    mix = maybe(d, d.array(lead + [branches, branches], other))
    return [x, d.array(lead + [size], kind), d.array(gates, other), mix], {"num_branches": branches} if flat else {}, 1


def decay(d):
    kind, heads, shape = half(d), d.upto(1, 4), [d.upto(1, 2), d.upto(1, 4)]
    return [d.array(shape + [heads], kind), d.array([heads], F32), -np.abs(d.array([heads], F32)),
            d.array(shape + [heads], kind)], {}, 2


def engram(d):
    kind, shape, size = half(d), [d.upto(1, 2), d.upto(1, 3)], d.pick(2, 8)
    ways = d.upto(1, 3)
    return [d.array(shape + [ways, size], kind), d.array(shape + [ways, size], kind), d.array(shape + [size], kind),
            d.array([ways, size], kind), d.array([ways, size], kind), d.array([ways, size], kind)], {}, 2


# ---- tokens, images ----

def hashes(d):
    kind = d.pick(np.int32, np.uint32, np.int64, np.uint64, F32, F64, str)
    shape = d.shape(0, 2)
    x = np.array([d.pick("", "a", "abc", "abcd", "äöü€ and more") for _ in range(int(np.prod(shape)))], object).reshape(shape) \
        if kind is str else d.array(shape, kind)
    return [x], {"seed": d.pick(0, 7, 2**32 - 1), "positive": d.flag()}, 1


def repeats(d):
    rows, words = d.upto(1, 3), d.upto(2, 4)
    return [ints(d, 0, words, [rows, d.upto(1, 9)], np.int64), d.array([rows, words], F32)], {"ngram_size": d.upto(1, 4)}, 1


def bifurcation(d):
    few = lambda n: ints(d, 0, 3, [n], np.int64)
    length = d.upto(1, 8)
    at, more = d.upto(0, length), d.flag()
    source = few(length)
    predicted = few(length + 1 - at)
    same = d.upto(0, length - at)
    predicted[:same] = source[at:at + same]
    return [source, few(d.upto(1, 6)), np.array([at], np.int64), predicted if more else None], \
        {"min_ngram_size": d.upto(1, 2), "max_ngram_size": d.upto(2, 4)}, 2


def warping(d):
    shape = [d.upto(1, 6), d.upto(1, 6)]
    return [np.abs(d.array([1] * d.flag() + shape, F32))], {}, 1


def crop(d):
    boxes = d.upto(1, 3)
    rois = d.n.random([boxes, 4]).astype(F32) * np.float32(d.pick(1, 1.3))
    return [d.array([2, d.upto(1, 2), d.upto(2, 6), d.upto(2, 6)], F32), rois, ints(d, 0, 2, [boxes]),
            ints(d, 1, 5, [2])], {"mode": d.pick("bilinear", "nearest"), "extrapolation_value": d.pick(0.0, 2.5)}, 1


def masked_pool(d):
    rank = d.upto(1, 3)
    size = [d.upto(3, 6) for _ in range(rank)]
    shape = [d.upto(1, 2), d.upto(1, 2)] + size
    mask = ints(d, 0, 5, [1, 1] + size) > 0  # of several planes ONNX Runtime reads others than its own
    return [d.array(shape, F32), mask.astype(np.int32)], \
        {"kernel_shape": [d.upto(1, 3) for _ in size], "strides": [d.upto(1, 2) for _ in size], "pads": [0] * (2 * rank)}, 1


def words(d):
    length, window, maps, width, chars = d.upto(3, 6), d.upto(1, 3), d.upto(1, 4), d.upto(1, 5), 7
    ids = ints(d, 1, chars, [d.upto(1, 3), length])
    for word in ids.reshape(-1, length):
        word[d.upto(window, length):] = 0
    return [ids, d.array([maps, 1, window, width], F32) / 3, d.array([maps], F32), d.array([chars, width], F32) / 3], {}, 1


def dynamic_pads(d):
    group, channels, maps, size = d.pick(1, 2), d.upto(1, 2), d.upto(1, 2), [d.upto(2, 5), d.upto(2, 5)]
    inputs = [d.array([1, group * channels, *size], F32), d.array([group * channels, maps, d.upto(2, 3), d.upto(2, 3)], F32),
              ints(d, 0, 2, [4], np.int64), maybe(d, d.array([group * maps], F32))]
    return inputs, {"group": group, "strides": [2, d.upto(1, 2)], "output_padding": [d.flag(), 0],
                    "dilations": [1, d.upto(1, 2)]}, 1


def inverse(d):
    n = d.upto(1, 5)
    x = d.array(d.shape(0, 2, empty=False) + [n, n], d.pick(F32, F64)) / 9
    return [x + np.eye(n, dtype=x.dtype) * 3], {}, 1


# ---- states ----

def unit(x):
    return (x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)).astype(x.dtype)


def causal(d):
    batch, channels, length, taps, dilation = d.upto(1, 2), d.upto(1, 4), d.upto(1, 6), d.upto(1, 4), d.upto(1, 2)
    last = d.flag()
    before = (taps - 1) * dilation
    shape = lambda n: [batch, n, channels] if last else [batch, channels, n]
    past = d.array(shape(before), F32) if before else None
    return [d.array(shape(length), F32), d.array([channels, 1, taps], F32), maybe(d, d.array([channels], F32)), maybe(d, past)], \
        {"activation": d.pick("none", "silu", "swish"), "dilation": dilation, "channels_last": last}, 2


def ends_of(d, batch):
    return np.concatenate([[0], np.cumsum([d.upto(1, 4) for _ in range(batch)])]).astype(np.int32)


def varlen_causal(d):
    batch, channels, taps, dilation, kind, capacity = d.upto(1, 3), d.upto(1, 4), d.upto(2, 4), d.upto(1, 2), half(d), d.pick(0, 2)
    ends = ends_of(d, batch)
    return [d.array([ends[-1], channels], kind), d.array([channels, 1, taps], kind), ends, maybe(d, d.array([channels], kind)),
            d.array([batch, channels, (taps - 1) * dilation], kind), ints(d, 0, 4, [batch]) if capacity else None], \
        {"activation": d.pick("none", "silu"), "dilation": dilation, "state_update_capacity": capacity}, 3 if capacity else 2


def linear_attention(d):
    rule, batch, steps = d.pick("linear", "gated", "delta", "gated_delta"), d.upto(1, 2), d.upto(1, 4)
    q_heads, kv_heads = d.pick((1, 1), (2, 1), (2, 2), (1, 2), (2, 4))
    dk, dv = d.pick(2, 4), d.pick(2, 3)
    key = unit(d.array([batch, steps, kv_heads, dk], F32)).reshape(batch, steps, -1)
    return [d.array([batch, steps, q_heads * dk], F32), key, d.array([batch, steps, kv_heads * dv], F32),
            maybe(d, d.array([batch, kv_heads, dk, dv], F32)),
            -np.abs(d.array([batch, steps, kv_heads * d.pick(1, dk)], F32)) if "gated" in rule else None,
            d.n.random([batch, steps, d.pick(1, kv_heads)]).astype(F32) if "delta" in rule else None], \
        {"update_rule": rule, "q_num_heads": q_heads, "kv_num_heads": kv_heads,
         "scale": d.pick(0.0, 0.5)}, 2


def delta_net(d):
    kind, rule, batch = half(d), d.pick("linear", "gated", "delta", "gated_delta"), d.upto(1, 3)
    heads, group, dk, dv = d.upto(1, 2), d.upto(1, 2), d.pick(2, 4), d.pick(2, 3)
    ragged, capacity, gate = d.flag(), d.pick(0, 0, 2), d.pick("none", "softplus", "sigmoid")
    ends = ends_of(d, batch)
    steps = d.upto(1, 3)
    total, values = int(ends[-1]) if ragged else batch * steps, heads * group
    lead = [total] if ragged or d.flag() else [batch, steps]
    by_key, norm = d.flag(), d.flag()
    key = d.array(lead + [heads, dk], kind)
    sides = [d.array(lead + [heads, dk], kind), key if norm else unit(key), d.array(lead + [values, dv], kind)]
    if d.flag():
        sides = [np.concatenate([x.reshape(*lead, -1) for x in sides], -1), None, None]
    gated, retrieves = "gated" in rule, "delta" in rule
    decay = d.array(lead + [values] + [dk] * by_key, d.pick(F32, kind))
    if gate == "none":
        decay = -np.abs(decay)
    return sides + [ends if ragged else None, decay if gated else None,
                    d.n.random(lead + [values]).astype(decay.dtype) if retrieves else None,
                    d.array([batch, values, dv, dk], F32),
                    (d.array([values], F32) / 3).astype(F32) if gated and gate != "none" else None,
                    d.array([values] + [dk] * (by_key and d.flag()), F32) if gated and gate != "none" else None,
                    ints(d, 0, 4, [batch]) if capacity else None], \
        {"update_rule": rule, "gate_activation": gate if gated else "none", "beta_activation": d.pick("none", "sigmoid"),
         "qk_l2_norm": norm, "scale": d.pick(0.0, 0.5), "state_update_capacity": capacity}, 2


# ---- experts ----

def experts(quantized):
    def case(d):
        kind, hidden, inner, count = half(d) if quantized else F32, 32, d.pick(32, 64), d.upto(1, 4)
        name = d.pick("relu", "gelu", "silu", "identity", "swiglu")
        fused, tokens = 1 + (name == "swiglu"), d.pick([3], [1], [2, 2])
        total, bits, block = int(np.prod(tokens)), d.pick(4, 8), d.pick(0, 0, 32)
        block = block if bits == 4 else 0  # ONNX Runtime rounds the tokens, too, for blocks of 8 bits

        def matrix(rows, columns):
            if not quantized:
                return [d.array([count, rows, columns], F32) / 6]
            blocks = [columns // block] if block else []
            scales = (np.abs(d.array([count, rows] + blocks, F32)) / 900 + 0.0005).astype(kind)
            return [d.full([count, rows, columns * bits // 8], np.uint8), scales]

        def zeros(rows, columns):
            own = [rows, -(-(columns // block) * bits // 8)] if block else [-(-rows * bits // 8)]
            return d.full([count] + own, np.uint8)

        bias = lambda n: maybe(d, d.array([count, n], kind))
        inputs = [d.array(tokens + [hidden], kind), d.array([total, count], kind), *matrix(fused * inner, hidden),
                  bias(fused * inner), *matrix(hidden, inner), bias(hidden)]
        given = {"k": d.upto(1, count), "activation_type": name, "normalize_routing_weights": d.flag(),
                 "swiglu_fusion": 1 if name == "swiglu" else 0}
        if name == "swiglu" and d.flag():
            given.update(activation_alpha=1.7, activation_beta=1.0, swiglu_limit=2.0)
        if quantized:
            given.update(expert_weight_bits=bits, **({"block_size": block} if block else {}))
            inputs += [None] * 3 + ([zeros(fused * inner, hidden), zeros(hidden, inner), None] if d.flag() else [None] * 3)
            inputs += [maybe(d, d.n.random([total, count]).astype(kind))]
        return inputs, given, 1
    return case


def ngram_hash(packed):
    def case(d):
        kind, batch, most, heads = d.pick(np.int32, np.int64), d.upto(1, 3), d.upto(2, 4), d.upto(1, 3)
        ends = ends_of(d, batch)
        shape, all_heads = [ends[-1]] if packed else [batch, d.upto(1, 5)], (most - 1) * heads
        few = lambda *sizes: ints(d, 0, 5, sizes, kind)
        eos, segments = maybe(d, np.array(d.pick(1, 2), kind)), maybe(d, np.sort(ints(d, 0, 3, shape)))
        inputs = [few(*shape), d.array([most + d.flag()], kind) * 1000003, ints(d, 1, 50, [all_heads], kind)]
        past, offsets = maybe(d, few(batch, most - 1)), maybe(d, few(all_heads))
        given = {"max_ngram_size": most, "n_head_per_ngram": heads, "pad_id": 3, "reset_on_eos": d.flag()}
        if not packed:
            return inputs + [past, offsets, eos, segments], given, 2
        old = ints(d, 0, 2, [batch, most - 1]) if segments is not None and past is not None else None
        capacity = d.pick(0, 2)
        return inputs + [ends, past, offsets, eos, segments, old, ints(d, 0, 4, [batch]) if capacity else None], \
            {**given, "state_update_capacity": capacity}, ["y", "ids", "" if segments is None else "segmented"] + ["states"] * bool(capacity)
    return case


def group_router(d):
    kind, groups = half(d), d.upto(1, 3)
    count = groups * d.upto(2, 4)
    active = d.upto(1, groups)
    return [d.array([d.upto(1, 3), count], kind), (d.array([count], F32) / 5).astype(F32)], \
        {"n_group": groups, "topk_group": active, "group_topk": d.upto(1, 3),
         "top_k": d.upto(1, count // groups * active)}, 1


def tokenizer(d):
    texts = ["Hello World", "I love  computer science !", "", "   ", "äöü ß ää", "aab abaab", "a,b;c"]
    shape = d.pick([d.upto(1, 3)], [1, 2], [0])
    x = np.array([d.one_of(texts) for _ in range(int(np.prod(shape)))], object).reshape(shape)
    how = d.pick({"separators": [" "]}, {"separators": [""]}, {"tokenexp": "[a-zä]+"}, {"tokenexp": "."}, {"separators": ["o", "ll"]},
                 {"separators": ["[,;]", " +"]}, {"tokenexp": "a|aa|aab"})
    return [x], {"mark": d.flag(), "mincharnum": d.pick(1, 1, 2) if "." not in how.get("tokenexp", "") and [""] != how.get(
        "separators") else 1, "pad_value": "#", **how}, 1


def packed_rows(d):
    kind, numbers, size = d.pick((0, 1, 4), (1, 1, 2), (2, 32, 18), (6, 32, 22), (8, 32, 34), (13, 256, 176), (14, 256, 210), (20, 32, 18))
    blocks, rows = d.pick(1, 2) * (32 if numbers == 1 else 1), d.upto(1, 3)
    data = ints(d, 0, 256, [rows, blocks, size], np.uint8)
    for at in {0: [2], 1: [0], 14: [208], 13: [0, 2]}.get(kind, [0]):  # scales that are numbers
        data[:, :, at:at + 2] = d.array([rows, blocks, 1], F16).view(np.uint8)
    return [data.reshape(rows, -1), ints(d, -1, rows + 1, d.shape(0, 2), d.pick(np.int32, np.int64))], \
        {"packed_type": kind, "K": blocks * numbers, "output_dtype": d.pick(1, 10)}, 1


def mrotary(d):
    kind, batch, heads, steps, size, layout = half(d), d.upto(1, 2), d.upto(1, 3), d.upto(1, 4), d.pick(8, 12), d.flag()
    part = d.pick(0, size - 4)
    columns = (part or size) // 2
    third = columns // 3
    section = [columns - 2 * third, third, third]
    flat = d.flag() or part
    x = d.array([batch, steps, heads * size] if flat else [batch, heads, steps, size], kind)
    return [x, ints(d, 0, 9, [3, batch, steps], np.int64), d.array([9, columns], kind), d.array([9, columns], kind)], \
        {"mrope_section": section, "mrope_layout": layout, "interleaved": d.flag(), "rotary_embedding_dim": part,
         "num_heads": heads if flat else 0, "scale": d.pick(1.0, 1.5)}, 1


CASES = {
    "DynamicQuantizeLSTM": dynamic_lstm, "QLinearConv": q_conv, "NhwcMaxPool": nhwc_max,
    "FusedMatMul": turned_product("FusedMatMul"), "TransposeMatMul": turned_product("TransposeMatMul"),
    "MatMulInteger16": int16_product, "FusedGemm": fused_gemm, "FusedConv": fused_conv, "ExpandDims": expand_dims, "GatherND": gather_nd, "GridSample": grid_sample, "Pad": pad,
    "Range": range_of, "Trilu": trilu, "Unique": unique, "UnfoldTensor": unfold, "CDist": distances, "SampleOp": sample,
    "ScaledSiLU": scaled_silu, "GatedAdd": gated_add, "GatedRMSNorm": gated_norm, "BranchwiseRMSNorm": branch_norm,
    "HyperConnectionPreMix": pre_mix, "HyperConnectionPostMix": post_mix, "LinearAttentionGate": decay, "EngramGate": engram,
    "MurmurHash3": hashes, "NGramRepeatBlock": repeats, "BifurcationDetector": bifurcation, "DynamicTimeWarping": warping,
    "CropAndResize": crop, "MaxpoolWithMask": masked_pool, "WordConvEmbedding": words,
    "ConvTransposeWithDynamicPads": dynamic_pads, "Inverse": inverse,
    "CausalConvWithState": causal, "VarlenCausalConvWithState": varlen_causal, "LinearAttention": linear_attention,
    "GatedDeltaNet": delta_net, "MoE": experts(False), "QMoE": experts(True),
    "NGramHashMapping": ngram_hash(False), "VarlenNGramHashMapping": ngram_hash(True), "MoEGroupRouter": group_router,
    "Tokenizer": tokenizer, "GatherPacked": packed_rows, "MRotaryEmbedding": mrotary,
}
CONSTANT = {"DynamicQuantizeLSTM": {1, 2, 8, 9, 10, 11}, "QLinearConv": {1, 2, 4, 5, 6, 7}}
SEEDS = {"DynamicQuantizeLSTM": [3]}  # more that are kept: two directions with the usual functions
NEAREST = {"QLinearConv"}
