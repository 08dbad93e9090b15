#!/usr/bin/env python3
"""Writes folders of tests/data/operators: corners of ai.onnx that the node tests of onnx leave out.

usage: make_standard_cases.py
Results are ONNX Runtime's where it follows the standard, else those of onnx's reference evaluator, else written here in
NumPy; each case says which. Other folders there are of make_operator_cases.py.
"""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from make_operator_cases import OUT, proto, save

R = np.random.default_rng(11)


def floats(*shape):
    return R.standard_normal(shape).astype(np.float32)


def one(name, op, inputs, opset, outputs=1, reference=False, **attributes):
    """A node on arrays (None: left out); the result is ONNX Runtime's, or the reference evaluator's."""
    given = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    names = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)], names, **attributes)
    nodes(name, [node], given, names, opset, reference)


def nodes(name, graph_nodes, given, names, opset, reference=False, more=()):
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()]
    graph = helper.make_graph(graph_nodes, name, ports, [helper.make_empty_tensor_value_info(n) for n in names])
    opsets = [("", opset), *more]
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets], ir_version=10)
    if reference:
        results = ReferenceEvaluator(model).run(None, given)
    else:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        results = session.run(None, given)
    save(name, graph_nodes, given, dict(zip(names, results)), opsets)


def grid_samples():
    """Cubic taps meet the padding one by one; the reference evaluator moves far points first and is wrong there."""
    x, grid = floats(1, 2, 4, 3), (R.random((1, 5, 4, 2)) * 5 - 2.5).astype(np.float32)
    for padding in ("zeros", "border", "reflection"):
        for corners in (0, 1):
            one(f"grid_sample_cubic_{padding}_{corners}", "GridSample", [x, grid], 20, mode="cubic", padding_mode=padding,
                align_corners=corners)


def pools():
    """Windows larger than the padded input, with ceil_mode."""
    x, area = floats(1, 2, 3, 2), {"kernel_shape": [5, 3], "strides": [3, 2], "ceil_mode": 1}
    one("pool_beyond_average", "AveragePool", [x], 19, **area, pads=[1, 0, 0, 0])
    one("pool_beyond_average_pads", "AveragePool", [x], 19, **area, pads=[1, 0, 0, 0], count_include_pad=1)
    one("pool_beyond_average_dilated", "AveragePool", [x], 19, kernel_shape=[2, 2], strides=[3, 3], dilations=[3, 2],
        ceil_mode=1)
    one("pool_beyond_max", "MaxPool", [x], 12, outputs=2, **area)
    one("pool_beyond_lp", "LpPool", [x], 18, **area, p=2)
    one("pool_none_left", "MaxPool", [x], 12, kernel_shape=[3, 3], strides=[1, 1], ceil_mode=1)
    # The shape of the pool's output is followed symbolically; its last window is left out for n = 4.
    pool = helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2], strides=[3], pads=[1, 1], ceil_mode=1)
    rest = [helper.make_node("Shape", ["p"], ["s"]), helper.make_node("ConstantOfShape", ["s"], ["y"])]
    nodes("pool_ceil_shape", [pool, *rest], {"x": floats(1, 1, 4)}, ["s", "y"], 22, reference=True)


def empty_sets():
    x = np.zeros((2, 0, 3), bool)
    for op in ("ReduceMax", "ReduceMin"):
        one(f"{op.lower()}_empty_bool", op, [x, np.array([1])], 20, reference=True)


def norms():
    x, scale, bias = floats(2, 6, 2, 2), floats(3), floats(3)
    one("group_norm_18", "GroupNormalization", [x, scale, bias], 18, num_groups=3)


def attention():
    """Rounding to softmax_precision, which ONNX Runtime leaves out and the reference evaluator does at every step; a
    window with past keys and more query heads; masked keys that are NaN."""
    q, k, v = floats(1, 4, 3, 8), floats(1, 2, 3, 8), floats(1, 2, 3, 8)
    past, mask = [floats(1, 2, 2, 8), floats(1, 2, 2, 8)], np.array([[True] * 5, [False] * 5, [True, False] * 2 + [True]])
    half = lambda x: x.astype(np.float16).astype(np.float32)
    scores = half(20 * q @ k.repeat(2, 1).transpose(0, 1, 3, 2) / np.sqrt(8).astype(np.float32))
    p = np.exp(scores - scores.max(-1, keepdims=True))
    y = half(p / p.sum(-1, keepdims=True)) @ v.repeat(2, 1)
    save("attention_precision", [helper.make_node("Attention", ["q", "k", "v"], ["y"], softmax_precision=TensorProto.FLOAT16)],
         {"q": 20 * q, "k": k, "v": v}, {"y": y}, [("", 24)])
    one("attention_window_past", "Attention", [q, k, v, mask, *past], 25, outputs=4, is_causal=1, left_window_size=2,
        qk_matmul_output_mode=3)
    one("attention_nan_masked", "Attention", [q, np.where(k > 1, np.nan, k).astype(np.float32), v,
                                              np.full((3, 3), -np.inf, np.float32)], 24)


def microsoft_masks():
    """com.microsoft.Attention adds a number to the scores of masked keys: a row with no other keys attends to them.
    GroupQueryAttention gives 0 there."""
    x, w, b = floats(2, 3, 8), floats(8, 24), floats(24)
    masks = {"keys": [[0, 0, 0], [1, 1, 0]], "lengths": [0, 2], "spans": [2, 3, 2, 1], "sums": [0, 2, 0, 3, 6, 0, 0, 2]}
    for name, mask in masks.items():
        for causal in (0, 1):
            node = helper.make_node("Attention", ["x", "w", "b", "m"], ["y"], domain="com.microsoft", num_heads=2,
                                    unidirectional=causal)
            given = {"x": x, "w": w, "b": b, "m": np.array(mask, np.int32)}
            nodes(f"ms_attention_{name}_{causal}", [node], given, ["y"], 17, more=[("com.microsoft", 1)])
    given = {"q": floats(1, 3, 16), "k": floats(1, 3, 8), "v": floats(1, 3, 8), "n": np.array([2], np.int32),
             "t": np.array(3, np.int32)}
    node = helper.make_node("GroupQueryAttention", ["q", "k", "v", "", "", "n", "t", "", "", "", "b"], ["y", "pk", "pv"],
                            domain="com.microsoft", num_heads=2, kv_num_heads=1)
    for name, low in (("inf", -np.inf), ("lowest", np.finfo(np.float32).min)):
        bias = np.zeros((1, 1, 3, 3), np.float32)
        bias[:, :, 1] = low
        nodes(f"group_query_masked_{name}", [node], {**given, "b": bias}, ["y", "pk", "pv"], 17,
              more=[("com.microsoft", 1)])


def moduli():
    """Shape arithmetic with a negative dividend: the sign is the divisor's, with fmod the dividend's."""
    for fmod in (0, 1):
        chain = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Sub", ["s", "c"], ["d"]),
                 helper.make_node("Mod", ["d", "m"], ["y"], fmod=fmod)]
        x, numbers = floats(2, 3), {"c": np.array([9, 9]), "m": np.array([4, 5])}
        d = np.array(x.shape) - numbers["c"]
        want = np.fmod(d, numbers["m"]) if fmod else np.mod(d, numbers["m"])
        save(f"mod_of_shape_{fmod}", chain, {"x": x}, {"y": want}, [("", 17)], numbers)


def shifts():
    x = np.array([-2**63, -5, -1, 0, 1, 2**63 - 1])
    y = np.array([0, 1, 62, 63, 64, -1])[:, None]
    for direction in ("LEFT", "RIGHT"):
        one(f"bit_shift_{direction.lower()}", "BitShift", [x, y], 28, reference=True, direction=direction)


def defaults():
    """Initializers that are inputs too are fed other values, of other sizes as well; not fed, they are what they are."""
    info = lambda n, shape: helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)
    constants = {"w": floats(3), "b": np.array([2], np.float32)}
    graph = helper.make_graph(
        [helper.make_node("Mul", ["w", "w"], ["w2"]), helper.make_node("Mul", ["x", "w2"], ["xw"]),
         helper.make_node("Add", ["xw", "b"], ["y"])], "fed_defaults", [info("x", [2, 3]), info("w", [3]), info("b", [4])],
        [info("y", [2, 3])], [proto(n, x) for n, x in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = floats(2, 3)
    fed = [{}, {"w": floats(3)}, {}, {"b": floats(1)}, {"w": floats(1)}, {"w": floats(3), "b": floats(3)}]
    save("fed_defaults", None, {"x": x}, {"y": x * constants["w"] ** 2 + constants["b"]}, model=model)
    for i, more in enumerate(fed[1:], 1):
        now = {**constants, **more}
        folder = OUT / "fed_defaults" / f"test_data_set_{i}"
        folder.mkdir()
        for place, name in enumerate(["x", "w", "b"]):
            value = {"x": x, **more}.get(name)
            if value is not None:
                (folder / f"input_{place}.pb").write_bytes(proto(name, value).SerializeToString())
        (folder / "output_0.pb").write_bytes(proto("y", x * now["w"] ** 2 + now["b"]).SerializeToString())


def main():
    for make in (grid_samples, pools, empty_sets, norms, attention, moduli, shifts, defaults, microsoft_masks):
        make()


if __name__ == "__main__":
    main()
