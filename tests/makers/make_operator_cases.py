#!/usr/bin/env python3
"""Writes tests/data/operators: small models of operators that neither the node suite nor ONNX Runtime's kernels can test.

usage: make_operator_cases.py
Results are computed here, in NumPy, from the operators' documentation, but for nchwc*: these files are what ONNX Runtime
saved of plain networks with all optimisations on a machine with AVX-512, and the results are those of the plain networks;
and for ms_*: operators of com.microsoft as ms_cases.py draws them, with ONNX Runtime's results.
"""
import pathlib
import shutil
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "comparisons"))
import blocks_in_bytes
import compare_operators
import ms_cases

OUT = pathlib.Path(__file__).resolve().parents[1] / "data" / "operators"
R = np.random.default_rng(7)


def floats(*shape):
    return R.standard_normal(shape).astype(np.float32)


def proto(name, x):
    return numpy_helper.from_array(np.asarray(x), name)


def save(name, nodes, inputs, outputs, opsets=(("", 21),), constants=(), model=None):
    """inputs and outputs: name → array."""
    folder = OUT / name
    if folder.exists():
        shutil.rmtree(folder)
    (folder / "test_data_set_0").mkdir(parents=True)
    ports = [[helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.shape(x))
              for n, x in side.items()] for side in (inputs, outputs)]
    if model is None:
        graph = helper.make_graph(nodes, name, *ports, [proto(n, x) for n, x in dict(constants).items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets], ir_version=10)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for side, arrays in (("input", inputs), ("output", outputs)):
        for i, (n, x) in enumerate(arrays.items()):
            (folder / "test_data_set_0" / f"{side}_{i}.pb").write_bytes(proto(n, x).SerializeToString())


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def activations():
    a, b = floats(3, 4), floats(3, 4)
    save("swiglu", [helper.make_node("SwiGLU", ["a", "b"], ["y"])], {"a": a, "b": b}, {"y": a * sigmoid(a) * b}, [("", 28)])
    wide = a.astype(np.float16).astype(np.float64)
    gate = (wide * sigmoid(0.5 * wide)).astype(np.float16)
    save("swiglu_f16", [helper.make_node("SwiGLU", ["a", "b"], ["y"], alpha=0.5)],
         {"a": a.astype(np.float16), "b": b.astype(np.float16)}, {"y": gate * b.astype(np.float16)}, [("", 28)])
    for kind in (np.float16, np.float64):
        x = floats(3, 5).astype(kind)
        w = x.astype(np.float64)
        y = np.maximum(w, 0) + np.minimum(0, 2 * (np.exp(w / 2) - 1))
        save(f"celu_{np.dtype(kind).name}", [helper.make_node("Celu", ["x"], ["y"], alpha=2.0)], {"x": x},
             {"y": y.astype(kind)}, [("", 28)])


def attend(q, k, v, heads, mask):
    """[rows, heads * size]; mask [heads, rows, keys] is added."""
    split = lambda x: x.reshape(len(x), heads, -1).transpose(1, 0, 2)
    q, k, v = split(q), split(k), split(v)
    s = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]) + mask
    p = np.exp(s - s.max(-1, keepdims=True))
    return ((p / p.sum(-1, keepdims=True)) @ v).transpose(1, 0, 2).reshape(q.shape[1], -1)


def packed():
    lengths, width, heads, size = np.array([2, 4, 1]), 4, 2, 4
    hidden, total = heads * size, int(lengths.sum())
    ends = np.concatenate([[0], lengths.cumsum()]).astype(np.int32)
    real = [b * width + i for b, n in enumerate(lengths) for i in range(n)]
    rest = [i for i in range(3 * width) if i not in real]
    places = np.array(real + rest, np.int32).reshape(3, width)
    x, ms = floats(3, width, hidden), [("", 21), ("com.microsoft", 1)]
    rows = x.reshape(-1, hidden)[real]
    save("remove_padding", [helper.make_node("RemovePadding", ["x", "n"], ["y", "p", "c", "m"], domain="com.microsoft")],
         {"x": x, "n": lengths.astype(np.int32)},
         {"y": rows, "p": places, "c": ends, "m": np.array([lengths.max()], np.int32)}, ms)
    back = np.zeros_like(x).reshape(-1, hidden)
    back[real] = rows
    save("restore_padding", [helper.make_node("RestorePadding", ["x", "p"], ["y"], domain="com.microsoft")],
         {"x": rows, "p": places}, {"y": back.reshape(x.shape)}, ms)

    weights, bias, extra = floats(hidden, 3 * hidden) / 3, floats(3 * hidden), floats(1, heads, width, width)
    whole = rows @ weights + bias

    def by_text(q, k, v, added):
        parts = []
        for b, n in enumerate(lengths):
            at = slice(ends[b], ends[b + 1])
            parts.append(attend(q[at], k[at], v[at], heads, added[0, :, :n, :n]))
        return np.concatenate(parts).astype(np.float32)

    q, k, v = np.split(whole, 3, 1)
    save("packed_attention",
         [helper.make_node("PackedAttention", ["x", "w", "b", "p", "c", "e"], ["y"], domain="com.microsoft", num_heads=heads)],
         {"x": rows, "p": places, "c": ends, "e": extra}, {"y": by_text(q, k, v, extra)}, ms, {"w": weights, "b": bias})
    q, k, v = floats(total, hidden), floats(total, hidden), floats(total, hidden)
    parts = np.split(bias, 3)
    want = by_text(q + parts[0], k + parts[1], v + parts[2], np.zeros_like(extra))
    save("packed_heads", [helper.make_node("PackedMultiHeadAttention", ["q", "k", "v", "b", "p", "c"], ["y"],
                                           domain="com.microsoft", num_heads=heads)],
         {"q": q, "k": k, "v": v, "b": bias, "p": places, "c": ends}, {"y": want}, ms)
    one = np.stack([x.reshape(total, heads, size) for x in (q, k, v)], 2)
    save("packed_heads_qkv", [helper.make_node("PackedMultiHeadAttention", ["q", "", "", "b", "p", "c"], ["y"],
                                               domain="com.microsoft", num_heads=heads)],
         {"q": one, "b": bias, "p": places, "c": ends}, {"y": want}, ms)


def double_attention():
    q, k, v = (R.standard_normal((2, 3, 6)) for _ in range(3))
    mask = R.standard_normal((3, 3))
    want = np.stack([attend(q[b], k[b], v[b], 2, mask) for b in range(2)])
    save("attention_f64", [helper.make_node("Attention", ["q", "k", "v", "m"], ["y"], q_num_heads=2, kv_num_heads=2)],
         {"q": q, "k": k, "v": v, "m": mask}, {"y": want}, [("", 23)])


def packed_types():
    for kind in (ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.float4_e2m1fn):
        x = R.integers(0, 2, (3, 5)).astype(kind)
        save(f"transpose_{np.dtype(kind).name}", [helper.make_node("Transpose", ["x"], ["y"])], {"x": x}, {"y": x.T}, [("", 25)])
    x = R.integers(-8, 8, (2, 3)).astype(ml_dtypes.int4)
    save("pad_int4", [helper.make_node("Pad", ["x", "p", "v"], ["y"])],
         {"x": x, "p": np.array([0, 1, 1, 2]), "v": np.array(3).astype(ml_dtypes.int4)},
         {"y": np.pad(x.astype(np.int8), ((0, 1), (1, 2)), constant_values=3).astype(ml_dtypes.int4)}, [("", 25)])


def older_forms():
    x = floats(2, 3)
    save("tile_opset1", [helper.make_node("Tile", ["x", "t", "a"], ["y"])],
         {"x": x, "t": np.array(3, np.float32), "a": np.array(1, np.float32)}, {"y": np.tile(x, (1, 3))}, [("", 5)])
    info = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, [2])
    body = helper.make_graph([helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Identity", ["t"], ["o"])], "body",
                             [info("s"), info("x")], [info("t"), info("o")])
    x, lengths, first = floats(2, 3, 2), np.array([1, 3]), floats(2, 2)
    sums = first[:, None] + x.cumsum(1)
    last = np.stack([sums[b, n - 1] for b, n in enumerate(lengths)])
    sums[0, 1:] = 0
    save("scan_opset8_lengths", [helper.make_node("Scan", ["n", "s", "x"], ["f", "y"], body=body, num_scan_inputs=1)],
         {"n": lengths, "s": first, "x": x}, {"f": last, "y": sums}, [("", 8)])


def maps():
    x, ml = floats(2, 3), [("", 17), ("ai.onnx.ml", 1)]
    zip_map = lambda **labels: [helper.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", **labels),
                                helper.make_node("SequenceAt", ["z", "i"], ["m"])]
    save("zip_map_vectorizer", zip_map(classlabels_strings=["a", "b", "c"]) +
         [helper.make_node("DictVectorizer", ["m"], ["y"], domain="ai.onnx.ml", string_vocabulary=["c", "q", "a"])],
         {"x": x, "i": np.array(1)}, {"y": np.array([[x[1, 2], 0, x[1, 0]]], np.float32)}, ml)
    save("cast_map_dense", zip_map(classlabels_int64s=[4, 2, 0]) +
         [helper.make_node("CastMap", ["m"], ["y"], domain="ai.onnx.ml")],
         {"x": x, "i": np.array(0)}, {"y": x[:1, ::-1]}, ml)
    sparse = np.zeros((1, 6), np.float32)
    sparse[0, [4, 2, 0]] = x[0]
    save("cast_map_sparse", zip_map(classlabels_int64s=[4, 2, 0]) +
         [helper.make_node("CastMap", ["m"], ["y"], domain="ai.onnx.ml", map_form="SPARSE", max_map=6)],
         {"x": x, "i": np.array(0)}, {"y": sparse}, ml)


def optimized(name, nodes, constants, inputs, outputs):
    """Saves what ONNX Runtime makes of a network with all optimisations, with the results of the network as it is."""
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n, x in inputs.items()],
                              [helper.make_empty_tensor_value_info(n) for n in outputs], [proto(n, w) for n, w in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.optimized_model_filepath = folder + "/blocked.onnx"
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = dict(zip(outputs, session.run(None, inputs)))
        save(name, None, inputs, results, model=onnx.load(options.optimized_model_filepath))
    (OUT / name / "data.json").write_text('{"rtol": 1e-3, "atol": 1e-5}\n')


def blocked():
    weight = lambda *shape: (floats(*shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
    constants = {"w0": weight(20, 3, 3, 3), "b0": floats(20), "w1": weight(20, 1, 3, 3), "w2": weight(32, 20, 1, 1),
                 "w3": weight(32, 32, 3, 3), "w4": weight(32, 16, 1, 1), "w5": weight(20, 64, 1, 1),
                 "s": np.array([1, 1, 2, 2], np.float32)}
    node = helper.make_node
    nodes = [node("Conv", ["x", "w0", "b0"], ["a"], pads=[1] * 4, strides=[2, 2]), node("Relu", ["a"], ["a1"]),
             node("Conv", ["a1", "w1"], ["b"], group=20, pads=[1] * 4), node("Clip", ["b"], ["b1"]),
             node("Conv", ["b1", "w2"], ["c"]), node("MaxPool", ["c"], ["d"], kernel_shape=[2, 2], strides=[2, 2]),
             node("Conv", ["d", "w3"], ["e"], pads=[1] * 4), node("Add", ["e", "d"], ["f"]), node("Relu", ["f"], ["f1"]),
             node("Conv", ["f1", "w4"], ["g"], group=2),
             node("Resize", ["g", "", "s"], ["h"], mode="nearest", coordinate_transformation_mode="asymmetric",
                  nearest_mode="floor"),
             node("AveragePool", ["h"], ["i"], kernel_shape=[2, 2], strides=[2, 2]), node("Concat", ["i", "f1"], ["j"], axis=1),
             node("Conv", ["j", "w5"], ["k"]), node("GlobalAveragePool", ["k"], ["y"]), node("GlobalMaxPool", ["k"], ["z"])]
    optimized("nchwc", nodes, constants, {"x": floats(1, 3, 16, 16)}, ["y", "z"])


def other_types():
    """Complex numbers, strings, mixed floats and 8-bit floats, where the standard lists them."""
    z = np.array([[1 + 2j, 1 - 2j, 0, 1 + 2j], [-1j, 0, 3, 1 - 2j]], np.complex64)
    y, first, inverse, counts = np.unique(z, return_index=True, return_inverse=True, return_counts=True)
    save("unique_complex64", [helper.make_node("Unique", ["x"], ["y", "first", "inverse", "counts"])], {"x": z},
         {"y": y, "first": first, "inverse": inverse.reshape(-1), "counts": counts})
    words = np.array([["a", "", "bc"], ["", "d", ""]], object)
    for name, x in (("string", words), ("complex64", z)):
        found = np.array(np.nonzero(x != ("" if name == "string" else 0)), np.int64)
        save(f"nonzero_{name}", [helper.make_node("NonZero", ["x"], ["y"])], {"x": x}, {"y": found})
    sizes = {"sizes": np.array([1, 2, 6], np.int64)}
    save("resize_string", [helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="nearest", nearest_mode="floor",
                                            coordinate_transformation_mode="asymmetric")],
         {"x": words[None]}, {"y": words[None].repeat(2, axis=2)}, constants=sizes)
    x = (floats(1, 2, 3) + 1j * floats(1, 2, 3)).astype(np.complex128)
    at = (np.arange(6) + 0.5) / 2 - 0.5
    rows = [np.interp(at, range(3), row.real) + 1j * np.interp(at, range(3), row.imag) for row in x[0]]
    save("resize_complex128", [helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear")], {"x": x},
         {"y": np.array(rows)[None]}, constants=sizes)
    grid = np.array([[[[1, -1], [0, -1], [-1, -1]], [[3, 3], [0, 1], [-1, 1]]]], np.float32)
    taken = np.array([[[["bc", "", "a"], ["", "d", ""]]]], object)
    save("grid_sample_string", [helper.make_node("GridSample", ["x", "grid"], ["y"], mode="nearest", align_corners=1)],
         {"x": words[None, None], "grid": grid}, {"y": taken}, [("", 22)])
    blocks = np.array([[[1 + 1j, 2], [10j, 20]]], np.complex64)
    save("col2im_complex64", [helper.make_node("Col2Im", ["x", "image", "block"], ["y"])],
         {"x": blocks}, {"y": np.array([[[[1 + 1j, 2 + 10j, 20]]]], np.complex64)},
         constants={"image": np.array([1, 3], np.int64), "block": np.array([1, 2], np.int64)})
    x, scale = floats(3, 4), floats(4).astype(np.float64)
    y = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-5) * scale
    save("rms_mixed", [helper.make_node("RMSNormalization", ["x", "scale"], ["y"])], {"x": x, "scale": scale}, {"y": y},
         [("", 23)])
    q, k, v = floats(3, 4), floats(5, 4), floats(5, 4).astype(np.float64)
    y = attend(q, k, v, 1, 0).astype(np.float32)
    save("attention_mixed", [helper.make_node("Attention", ["q", "k", "v"], ["y"], q_num_heads=1, kv_num_heads=1)],
         {"q": q[None], "k": k[None], "v": v[None]}, {"y": y[None]}, [("", 23)])
    small = lambda *shape: R.integers(-4, 5, shape).astype(ml_dtypes.float8_e4m3fn)
    a, b = small(2, 3), small(3, 4)
    names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
    inputs = dict(zip(names, [a, np.float32(0.5), a.dtype.type(1), b, np.float32(2), b.dtype.type(0), np.float32(4),
                              a.dtype.type(0)]))
    y = ((a.astype(np.float32) - 1) @ b.astype(np.float32) / 4).astype(a.dtype)
    save("qlinear_matmul_f8", [helper.make_node("QLinearMatMul", names, ["y"])], inputs, {"y": y})


def group_query_norms():
    """Norms of each head's queries and keys, each with an epsilon of its own, which ONNX Runtime's CPU kernel refuses."""
    heads, size, tokens = 2, 8, 3
    norm = lambda x, weight, epsilon: x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + epsilon) * weight
    x = {"q": floats(1, tokens, heads * size), "k": floats(1, tokens, size), "v": floats(1, tokens, size)}
    weights = {"q_norm": floats(size), "k_norm": floats(size)}
    q = norm(x["q"][0].reshape(tokens, heads, size), weights["q_norm"], 0.5)
    k = norm(x["k"][0], weights["k_norm"], 0.25)
    rows = []
    for i in range(tokens):
        scores = q[i] @ k[:i + 1].T / np.sqrt(size)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        rows.append((shares / shares.sum(-1, keepdims=True) @ x["v"][0, :i + 1]).reshape(-1))
    lengths = {"last": np.array([tokens - 1], np.int32), "total": np.array(tokens, np.int32)}
    names = ["q", "k", "v", "", "", "last", "total"] + [""] * 7 + ["q_norm", "k_norm"]
    node = helper.make_node("GroupQueryAttention", names, ["y", "keys", "values"], domain="com.microsoft", num_heads=heads,
                            kv_num_heads=1, q_norm_epsilon=0.5, k_norm_epsilon=0.25, qk_norm_epsilon=9.0)
    save("group_query_norms", [node], {**x, **lengths},
         {"y": np.array(rows, np.float32)[None], "keys": k[None, None].astype(np.float32), "values": x["v"][None]},
         [("", 21), ("com.microsoft", 1)], weights)


def drawn():
    """com.microsoft's operators as compare_operators.py draws them; the results are ONNX Runtime's."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for name in ms_cases.CASES:
        for seed in (0, 1, *ms_cases.SEEDS.get(name, ())):
            raw, inputs, _ = compare_operators.make_model("com.microsoft." + name, compare_operators.Draw(seed))
            session = onnxruntime.InferenceSession(raw, options, providers=["CPUExecutionProvider"])
            outputs = dict(zip((o.name for o in session.get_outputs()), session.run(None, inputs)))
            folder = f"ms_{name.lower()}_{seed}"
            save(folder, None, inputs, outputs, model=onnx.load_from_string(raw))
            tolerance = 1e-2 if any(x.dtype == np.float16 for x in outputs.values()) else 1e-4
            (OUT / folder / "data.json").write_text(f'{{"rtol": 1e-3, "atol": {tolerance}}}\n')


def few_channels():
    """As ONNX Runtime saves a network with all optimisations where AVX-512 makes blocks of 16 channels."""
    weight = lambda *shape: (floats(*shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
    constants = {"w0": weight(8, 3, 3, 3), "w1": weight(8, 1, 3, 3), "w2": weight(12, 8, 1, 1), "w3": weight(20, 12, 3, 3),
                 "w4": weight(16, 20, 1, 1)}
    node = helper.make_node
    nodes = [node("Conv", ["x", "w0"], ["a"], pads=[1] * 4), node("HardSigmoid", ["a"], ["a1"], alpha=0.3, beta=0.4),
             node("Conv", ["a1", "w1"], ["b"], group=8, pads=[1] * 4), node("LeakyRelu", ["b"], ["b1"], alpha=0.3),
             node("Conv", ["b1", "w2"], ["c"]), node("Conv", ["c", "w3"], ["d"], pads=[1] * 4),
             node("Conv", ["d", "w4"], ["y"])]
    optimized("nchwc_few_channels", nodes, constants, {"x": floats(1, 3, 8, 8)}, ["y"])


def added_back(x, w, b, strides, pads):
    """A transposed convolution: each input place adds its weights into the output. pads: before and behind each axis."""
    size = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], strides, w.shape[2:])]
    y = np.zeros([len(x), w.shape[1], *size])
    for place in np.ndindex(*x.shape[2:]):
        at = tuple(slice(i * s, i * s + k) for i, s, k in zip(place, strides, w.shape[2:]))
        y[(..., *at)] += np.tensordot(x[(..., *place)], w, 1)
    inside = tuple(slice(before, n - behind) for n, before, behind in zip(size, pads, pads[len(size):]))
    return (y[(..., *inside)] + b.reshape(-1, *[1] * len(size))).astype(np.float32)


def large():
    """More places and maps than one part of the work has; whole numbers, so that the results are exact."""
    random = np.random.default_rng(8)
    whole = lambda *shape: random.integers(-4, 5, shape).astype(np.float32)
    for name, x, w, strides, pads in (
            ("wide", whole(1, 2, 2, 300), whole(2, 1, 3, 3), [2, 2], [1, 1, 1, 0]),
            ("maps", whole(2, 3, 3, 5), whole(3, 60, 2, 2), [2, 2], [0] * 4),
            ("gaps", whole(1, 2, 300), whole(2, 2, 2), [3], [1, 0]),
            ("rows", whole(1, 2, 40, 9), whole(2, 3, 4, 5), [3, 1], [1, 2, 0, 2])):
        b = whole(w.shape[1])
        save(f"conv_transpose_{name}", [helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], strides=strides, pads=pads)],
             {"x": x}, {"y": added_back(x, w, b, strides, pads)}, constants={"w": w, "b": b})
    x = whole(1, 2, 3, 7)
    save("resize_doubled", [helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest", nearest_mode="floor",
                                             coordinate_transformation_mode="asymmetric")],
         {"x": x}, {"y": x.repeat(2, axis=2).repeat(2, axis=3)}, constants={"scales": np.array([1, 1, 2, 2], np.float32)})
    for name, shape, perm in (("pixels", (2, 3, 5, 7), [0, 2, 3, 1]), ("planes", (2, 5, 7, 3), [0, 3, 1, 2]),
                              ("squares", (2, 22, 37), [0, 2, 1])):
        x = whole(*shape) + np.arange(np.prod(shape)).reshape(shape).astype(np.float32) * 16
        save(f"transpose_{name}", [helper.make_node("Transpose", ["x"], ["y"], perm=perm)], {"x": x}, {"y": x.transpose(perm)})


def levels():
    """MatMulNBits with accuracy_level 4: weights of 4 and 8 bits, zero points or the middle, blocks that k does not fill."""
    random = np.random.default_rng(9)
    for bits, block, k, n, zeros, bias in ((4, 32, 100, 37, False, True), (4, 16, 64, 20, True, False),
                                           (8, 64, 70, 18, True, True), (8, 16, 48, 33, False, False)):
        blocks = -(-k // block)
        whole = lambda *shape: random.integers(0, 256, shape).astype(np.uint8)
        x = random.standard_normal((2, 3, k)).astype(np.float32)
        constants = {"b": whole(n, blocks, block * bits // 8), "s": (random.random((n, blocks)) / 2**bits).astype(np.float32)}
        constants |= {"z": whole(n, -(-blocks * bits // 8))} if zeros else {}
        constants |= {"c": random.standard_normal(n).astype(np.float32)} if bias else {}
        names = ["x", "b", "s", "z" if zeros else "", "", "c" if bias else ""]
        node = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", K=k, N=n, bits=bits, block_size=block,
                                accuracy_level=4)
        y = blocks_in_bytes.matmul(x.reshape(-1, k), *map(constants.get, "bszc"), bits, block).reshape(2, 3, n)
        name = f"nbits_level_4_{bits}{'_zeros' if zeros else ''}"
        save(name, [node], {"x": x}, {"y": y}, [("", 21), ("com.microsoft", 1)], constants)
        (OUT / name / "data.json").write_text('{"rtol": 1e-6, "atol": 1e-6}\n')


def main():
    OUT.mkdir(exist_ok=True)
    for make in (activations, packed, double_attention, packed_types, older_forms, maps, blocked, other_types,
                 group_query_norms, drawn, few_channels, large, levels):
        make()


if __name__ == "__main__":
    main()
