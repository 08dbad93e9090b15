"""Single operators and short chains at the shapes that networks use them with: a name, an ONNX model, and its inputs."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Case:
    """name: what is printed; model: the bytes of an ONNX file; feeds: name → array; low: results are 8-bit numbers, which
    may differ by one; peers: the engines beside Pith."""

    peers = ("ort",)

    def __init__(self, name, op, inputs, outputs=1, constants=None, opset=21, domain="", low=False, **attributes):
        constants = constants or {}
        order = attributes.pop("order", [*inputs, *constants])
        node = helper.make_node(op, order, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
        self.model = model_of([node], inputs, [f"y{i}" for i in range(outputs)], constants, opset, domain)
        self.name, self.feeds, self.low = name, inputs, low


class Chain(Case):
    """Several nodes, each (operator, inputs, output, attributes); the last output is the result."""

    def __init__(self, name, nodes, inputs, constants=None, opset=17, low=False):
        made = [helper.make_node(op, names, [out], **attributes) for op, names, out, attributes in nodes]
        self.model = model_of(made, inputs, [nodes[-1][2]], constants or {}, opset, "")
        self.name, self.feeds, self.low = name, inputs, low


def model_of(nodes, inputs, outputs, constants, opset, domain):
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()]
    graph = helper.make_graph(nodes, "one", ports, [helper.make_empty_tensor_value_info(n) for n in outputs],
                              [numpy_helper.from_array(a, n) for n, a in constants.items()])
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def floats(*shape, seed=1, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def integers(low, high, *shape, dtype=np.uint8, seed=1):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def weights(*shape):
    return (floats(*shape, seed=2) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def convolutions():
    def conv(name, x, w, op="Conv", bias=True, **attributes):
        maps = w[1] * attributes.get("group", 1) if op == "ConvTranspose" else w[0]
        constants = {"w": weights(*w)} | ({"b": floats(maps, seed=3)} if bias else {})
        return Case(name, op, {"x": floats(*x)}, constants=constants, **attributes)

    yield conv("Conv 3x3, 64 to 64, 56", (1, 64, 56, 56), (64, 64, 3, 3), pads=[1] * 4)
    yield conv("Conv 3x3 step 2, 128 to 128, 56", (1, 128, 56, 56), (128, 128, 3, 3), pads=[1] * 4, strides=[2, 2])
    yield conv("Conv 1x1, 64 to 256, 56", (1, 64, 56, 56), (256, 64, 1, 1))
    yield conv("Conv 7x7 step 2, 3 to 64, 224", (1, 3, 224, 224), (64, 3, 7, 7), pads=[3] * 4, strides=[2, 2])
    yield conv("Conv depthwise 3x3, 32, 112", (1, 32, 112, 112), (32, 1, 3, 3), pads=[1] * 4, group=32)
    yield conv("Conv depthwise 3x3 step 2, 96, 112", (1, 96, 112, 112), (96, 1, 3, 3), pads=[1] * 4, strides=[2, 2], group=96)
    yield conv("Conv 3x3 of 8 groups, 128, 28", (1, 128, 28, 28), (128, 16, 3, 3), pads=[1] * 4, group=8)
    yield conv("Conv 3x3 dilated, 64, 56", (1, 64, 56, 56), (64, 64, 3, 3), pads=[2] * 4, dilations=[2, 2])
    yield conv("Conv 1-D of 3, 80 to 384, 1000", (1, 80, 1000), (384, 80, 3), pads=[1, 1])
    yield conv("ConvTranspose 2x2 step 2, 32 to 32, 112", (1, 32, 112, 112), (32, 32, 2, 2), "ConvTranspose", strides=[2, 2])
    yield conv("ConvTranspose 4x4 step 2, 64 to 32, 32", (1, 64, 32, 32), (64, 32, 4, 4), "ConvTranspose", strides=[2, 2],
               pads=[1] * 4)

    def quantised(name, x, w, w_dtype=np.int8, **attributes):
        n = w[0]
        low = -127 if w_dtype == np.int8 else 0
        constants = {"xs": np.float32(0.02), "xz": np.uint8(110), "w": integers(low, low + 255, *w, dtype=w_dtype, seed=2),
                     "ws": (np.abs(floats(n, seed=4)) * 0.001 + 0.001).astype(np.float32), "wz": np.zeros(n, w_dtype),
                     "ys": np.float32(0.05), "yz": np.uint8(120), "b": integers(-500, 500, n, dtype=np.int32)}
        if w_dtype == np.uint8:
            constants["ws"], constants["wz"] = np.float32(0.002), np.uint8(127)
        return Case(name, "QLinearConv", {"x": integers(0, 256, *x)}, constants=constants, low=True, **attributes)

    yield quantised("QLinearConv 3x3, 32 to 32, 56", (1, 32, 56, 56), (32, 32, 3, 3), pads=[1] * 4)
    yield quantised("QLinearConv 1x1, 64 to 128, 28", (1, 64, 28, 28), (128, 64, 1, 1))
    yield quantised("QLinearConv depthwise 3x3, 64, 56", (1, 64, 56, 56), (64, 1, 3, 3), pads=[1] * 4, group=64)
    yield quantised("QLinearConv 7x7 step 2, 3 to 64, 224, u8", (1, 3, 224, 224), (64, 3, 7, 7), np.uint8, pads=[3] * 4,
                    strides=[2, 2])
    yield Case("ConvInteger 3x3, 32 to 32, 56", "ConvInteger", {"x": integers(0, 256, 1, 32, 56, 56)},
               constants={"w": integers(0, 256, 32, 32, 3, 3, seed=2), "xz": np.uint8(100), "wz": np.uint8(127)},
               pads=[1] * 4)


def products():
    yield Case("MatMul 256 x 256 x 256", "MatMul", {"a": floats(256, 256)}, constants={"b": floats(256, 256, seed=2)})
    yield Case("MatMul of two inputs, 8 of 128 x 64 x 128", "MatMul",
               {"a": floats(8, 128, 64), "b": floats(8, 64, 128, seed=2)})
    yield Case("MatMul f64, 256", "MatMul",
               {"a": floats(256, 256, dtype=np.float64), "b": floats(256, 256, seed=2, dtype=np.float64)})
    yield Case("Gemm 1 x 2048 x 1000", "Gemm", {"a": floats(1, 2048)},
               constants={"b": floats(1000, 2048, seed=2), "c": floats(1000, seed=3)}, transB=1)
    yield Case("MatMulInteger 128 x 384 x 384", "MatMulInteger", {"a": integers(0, 256, 128, 384)},
               constants={"b": integers(-127, 128, 384, 384, dtype=np.int8, seed=2), "az": np.uint8(120)})
    yield Case("QLinearMatMul 128 x 384 x 384", "QLinearMatMul", {"a": integers(0, 256, 128, 384)}, low=True, constants={
        "as": np.float32(0.02), "az": np.uint8(120), "b": integers(-127, 128, 384, 384, dtype=np.int8, seed=2),
        "bs": np.float32(0.005), "bz": np.int8(0), "ys": np.float32(0.4), "yz": np.uint8(128)})
    for equation, a, b in (("bhid,bhjd->bhij", (2, 4, 128, 32), (2, 4, 128, 32)), ("nct,ncs->nts", (2, 32, 1024), (2, 32, 1024)),
                           ("nts,ncs->nct", (2, 1024, 1024), (2, 32, 1024)), ("bhij,bhjd->bihd", (2, 4, 128, 128), (2, 4, 128, 32))):
        yield Case(f"Einsum {equation}", "Einsum", {"a": floats(*a), "b": floats(*b, seed=2)}, equation=equation)


def recurrent():
    for name, op, gates, size, steps, width, ways in (
            ("LSTM 128, 50 steps", "LSTM", 4, 128, 50, 128, 1), ("LSTM 2 ways of 256, 50 steps", "LSTM", 4, 256, 50, 256, 2),
            ("GRU 2 ways of 128, 24 steps", "GRU", 3, 128, 24, 256, 2), ("RNN 128, 50 steps", "RNN", 1, 128, 50, 128, 1)):
        attributes = {"linear_before_reset": 1} if op == "GRU" else {}
        yield Case(name, op, {"x": floats(steps, 1, width)}, hidden_size=size, opset=14,
                   direction="bidirectional" if ways == 2 else "forward", **attributes,
                   constants={"w": weights(ways, gates * size, width) * 16, "r": weights(ways, gates * size, size) * 16,
                              "b": floats(ways, 2 * gates * size, seed=5) * np.float32(0.1)})


def normalisations():
    x = {"x": floats(1, 32, 112, 112)}
    channel = {n: np.abs(floats(32, seed=i)) + np.float32(0.5) for i, n in enumerate("sbmv")}
    yield Case("BatchNormalization, 32, 112", "BatchNormalization", x, constants=channel)
    yield Case("InstanceNormalization, 32, 112", "InstanceNormalization", x, constants={k: channel[k] for k in "sb"})
    yield Case("GroupNormalization of 8, 32, 112", "GroupNormalization", x, constants={k: channel[k] for k in "sb"}, num_groups=8)
    yield Case("LayerNormalization 197 x 768", "LayerNormalization", {"x": floats(197, 768)},
               constants={"s": floats(768), "b": floats(768, seed=2)})
    yield Case("LRN of 5, 64, 55", "LRN", {"x": floats(1, 64, 55, 55)}, size=5)
    yield Case("LpNormalization 512 x 768", "LpNormalization", {"x": floats(512, 768)}, opset=17)
    yield Case("Softmax 12 x 197 x 197", "Softmax", {"x": floats(12, 197, 197)})
    yield Case("Softmax over channels, 21, 128", "Softmax", {"x": floats(1, 21, 128, 128)}, axis=1)
    yield Case("LogSoftmax 128 x 1000", "LogSoftmax", {"x": floats(128, 1000)})


def pools():
    x = {"x": floats(1, 32, 112, 112)}
    yield Case("MaxPool 3x3 step 2, 64, 112", "MaxPool", {"x": floats(1, 64, 112, 112)}, kernel_shape=[3, 3], strides=[2, 2],
               pads=[1] * 4)
    yield Case("MaxPool 2x2 step 2, 32, 112", "MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    yield Case("MaxPool 5x5, 128, 20", "MaxPool", {"x": floats(1, 128, 20, 20)}, kernel_shape=[5, 5], pads=[2] * 4)
    yield Case("AveragePool 3x3, 32, 112", "AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4)
    yield Case("AveragePool 2x2 step 2, 32, 112", "AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    yield Case("GlobalAveragePool, 32, 112", "GlobalAveragePool", x)
    yield Case("GlobalAveragePool, 1280, 7", "GlobalAveragePool", {"x": floats(1, 1280, 7, 7)})
    yield Case("GlobalMaxPool, 32, 112", "GlobalMaxPool", x)


def resizes():
    x = {"x": floats(1, 32, 112, 112)}
    scales = {"r": np.array([], np.float32), "s": np.array([1, 1, 2, 2], np.float32)}
    yield Case("Resize nearest, 2 times, 32, 112", "Resize", x, constants=scales, mode="nearest",
               coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    yield Case("Resize linear, 2 times, 32, 112", "Resize", x, constants=scales, mode="linear")
    yield Case("Resize linear, corners, 21, 32", "Resize", {"x": floats(1, 21, 32, 32)}, mode="linear",
               constants={"r": np.array([], np.float32), "s": np.array([1, 1, 4, 4], np.float32)},
               coordinate_transformation_mode="align_corners")
    yield Case("Resize linear, half, 32, 112", "Resize", x, mode="linear",
               constants={"r": np.array([], np.float32), "s": np.array([1, 1, 0.5, 0.5], np.float32)})
    yield Case("Resize cubic, 2 times, 3, 112", "Resize", {"x": floats(1, 3, 112, 112)}, constants=scales, mode="cubic")
    yield Case("GridSample linear, 32, 56", "GridSample",
               {"x": floats(1, 32, 56, 56), "g": (floats(1, 56, 56, 2) * np.float32(0.4))}, opset=20)


def elementwise():
    x = {"x": floats(1, 32, 112, 112)}
    for op, attributes in (("Relu", {}), ("Elu", {}), ("LeakyRelu", {"alpha": 0.1}), ("HardSwish", {}), ("HardSigmoid", {}),
                           ("Sigmoid", {}), ("Tanh", {}), ("Exp", {}), ("Erf", {}), ("Softplus", {}), ("Gelu", {}), ("Abs", {}),
                           ("Floor", {}), ("Round", {}), ("Mish", {})):
        yield Case(f"{op}, 32, 112", op, x, **attributes)
    yield Case("Sqrt, 32, 112", "Sqrt", {"x": np.abs(floats(1, 32, 112, 112))})
    yield Case("Log, 32, 112", "Log", {"x": np.abs(floats(1, 32, 112, 112)) + np.float32(1e-3)})
    yield Case("Clip 0 to 6, 32, 112", "Clip", x, constants={"l": np.float32(0), "h": np.float32(6)})
    yield Case("PRelu, 32, 112", "PRelu", x, constants={"s": floats(32, 1, 1)})
    for op in ("Add", "Mul", "Div", "Max"):
        yield Case(f"{op}, 32, 112", op, {"x": floats(1, 32, 112, 112), "z": floats(1, 32, 112, 112, seed=2)})
    yield Case("Mul by a number per channel, 32, 112", "Mul", {"x": floats(1, 32, 112, 112), "z": floats(1, 32, 1, 1, seed=2)})
    yield Case("Pow 2, 32, 112", "Pow", x, constants={"z": np.float32(2)})
    yield Case("Greater, 32, 112", "Greater", {"x": floats(1, 32, 112, 112), "z": floats(1, 32, 112, 112, seed=2)})
    yield Case("Where, 32, 112", "Where", {"c": floats(1, 32, 112, 112) > 0, "x": floats(1, 32, 112, 112),
                                           "z": floats(1, 32, 112, 112, seed=2)})
    yield Case("Cast f32 to i64, 32, 112", "Cast", x, to=TensorProto.INT64)
    yield Case("QuantizeLinear, 32, 112", "QuantizeLinear", x, constants={"s": np.float32(0.03), "z": np.uint8(128)}, low=True)
    yield Case("DequantizeLinear, 32, 112", "DequantizeLinear", {"x": integers(0, 256, 1, 32, 112, 112)},
               constants={"s": np.float32(0.03), "z": np.uint8(128)})
    yield Case("QLinearAdd, 32, 112", "QLinearAdd", {"a": integers(0, 256, 1, 32, 112, 112)}, domain="com.microsoft", low=True,
               constants={"as": np.float32(0.03), "az": np.uint8(128), "b": integers(0, 256, 1, 32, 112, 112, seed=2),
                          "bs": np.float32(0.02), "bz": np.uint8(120), "ys": np.float32(0.04), "yz": np.uint8(125)})


def moves():
    x = {"x": floats(1, 32, 112, 112)}
    yield Case("Transpose NCHW to NHWC, 32, 112", "Transpose", x, perm=[0, 2, 3, 1])
    yield Case("Transpose NHWC to NCHW, 32, 112", "Transpose", {"x": floats(1, 112, 112, 32)}, perm=[0, 3, 1, 2])
    yield Case("Transpose heads, 197 x 12 x 64", "Transpose", {"x": floats(1, 197, 12, 64)}, perm=[0, 2, 1, 3])
    yield Case("Concat of channels, 2 x 32, 56", "Concat", {"a": floats(1, 32, 56, 56), "b": floats(1, 32, 56, 56, seed=2)}, axis=1)
    yield Case("Split of channels, 64, 56", "Split", {"x": floats(1, 64, 56, 56)}, outputs=2, axis=1, num_outputs=2)
    yield Case("Slice step 2, 32, 112", "Slice", x, constants={n: np.array(v, np.int64) for n, v in
                                                               (("b", [0, 0]), ("e", [112, 112]), ("a", [2, 3]), ("s", [2, 2]))})
    yield Case("Pad reflect, 32, 112", "Pad", x, constants={"p": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)}, mode="reflect")
    yield Case("Gather 1000 of 30000 x 128", "Gather", {"i": integers(0, 30000, 1000, dtype=np.int64)},
               constants={"t": floats(30000, 128)}, order=["t", "i"])
    yield Case("Tile 2 x 2, 32, 56", "Tile", {"x": floats(1, 32, 56, 56)}, constants={"r": np.array([1, 1, 2, 2], np.int64)})
    yield Case("DepthToSpace 2, 64, 56", "DepthToSpace", {"x": floats(1, 64, 56, 56)}, blocksize=2)


def reductions():
    x = {"x": floats(1, 32, 112, 112)}
    yield Case("ReduceMean of pictures, 32, 112", "ReduceMean", x, constants={"a": np.array([2, 3], np.int64)})
    yield Case("ReduceSum of channels, 32, 112", "ReduceSum", x, constants={"a": np.array([1], np.int64)})
    yield Case("ReduceMax of rows, 32, 112", "ReduceMax", x, constants={"a": np.array([3], np.int64)})
    yield Case("ReduceL2 512 x 768", "ReduceL2", {"x": floats(512, 768)}, constants={"a": np.array([1], np.int64)})
    yield Case("ArgMax of channels, 21, 128", "ArgMax", {"x": floats(1, 21, 128, 128)}, axis=1)
    yield Case("ArgMax 128 x 1000", "ArgMax", {"x": floats(128, 1000)}, axis=1)
    yield Case("CumSum 64 x 1000", "CumSum", {"x": floats(64, 1000)}, constants={"a": np.array(1, np.int64)})
    yield Case("TopK 50 of 100000", "TopK", {"x": floats(1, 100000)}, outputs=2, constants={"k": np.array([50], np.int64)})
    yield Case("TopK 5 of 1000, 32 rows", "TopK", {"x": floats(32, 1000)}, outputs=2, constants={"k": np.array([5], np.int64)})
    yield Case("NonZero 64 x 1000", "NonZero", {"x": (floats(64, 1000) > 1).astype(np.float32)})


def chains():
    x, weight = {"x": floats(1, 32, 80, 80)}, {"w": weights(32, 32, 3, 3), "b": floats(32, seed=3)}
    conv = ("Conv", ["x", "w", "b"], "c", {"pads": [1] * 4})
    yield Chain("Conv 3x3, x * Sigmoid(x), 32, 80", [conv, ("Sigmoid", ["c"], "g", {}), ("Mul", ["c", "g"], "y", {})], x, weight)
    yield Chain("Conv 3x3, x * HardSigmoid(x), 32, 80",
                [conv, ("HardSigmoid", ["c"], "g", {"alpha": 1 / 6}), ("Mul", ["c", "g"], "y", {})], x, weight)
    yield Chain("Conv 3x3, Mish in parts, 32, 80", [conv, ("Softplus", ["c"], "s", {}), ("Tanh", ["s"], "t", {}),
                                                   ("Mul", ["c", "t"], "y", {})], x, weight)
    yield Chain("Conv 3x3, BatchNormalization, Relu, 32, 80",
                [("Conv", ["x", "w"], "c", {"pads": [1] * 4}), ("BatchNormalization", ["c", "s", "b", "m", "v"], "n", {}),
                 ("Relu", ["n"], "y", {})], x,
                {"w": weight["w"]} | {n: np.abs(floats(32, seed=4)) + np.float32(0.1) for n in "sbmv"})
    scale, zero = {"s": np.float32(0.05)}, {"z": np.uint8(128)}
    yield Chain("DequantizeLinear, Relu, QuantizeLinear, 32, 112",
                [("DequantizeLinear", ["x", "s", "z"], "d", {}), ("Relu", ["d"], "r", {}),
                 ("QuantizeLinear", ["r", "s", "z"], "y", {})], {"x": integers(0, 256, 1, 32, 112, 112)}, scale | zero, low=True)
    yield Chain("QDQ Conv 3x3, 32, 56",
                [("DequantizeLinear", ["x", "s", "z"], "d", {}), ("DequantizeLinear", ["w", "ws", "wz"], "e", {}),
                 ("Conv", ["d", "e"], "c", {"pads": [1] * 4}), ("QuantizeLinear", ["c", "s", "z"], "y", {})],
                {"x": integers(0, 256, 1, 32, 56, 56)},
                {"w": integers(-127, 128, 32, 32, 3, 3, dtype=np.int8, seed=2), "ws": np.float32(0.002),
                 "wz": np.int8(0)} | scale | zero, low=True)
    yield Chain("LayerNormalization in parts, 197 x 768",
                [("ReduceMean", ["x"], "m", {"axes": [-1]}), ("Sub", ["x", "m"], "d", {}), ("Mul", ["d", "d"], "q", {}),
                 ("ReduceMean", ["q"], "v", {"axes": [-1]}), ("Add", ["v", "e"], "a", {}), ("Sqrt", ["a"], "r", {}),
                 ("Div", ["d", "r"], "n", {}), ("Mul", ["n", "g"], "y", {})], {"x": floats(1, 197, 768)},
                {"e": np.float32(1e-5), "g": floats(768, seed=2)})
    yield Chain("Add, Mul, Sigmoid, Mul, 32, 112", [("Add", ["x", "z"], "a", {}), ("Mul", ["a", "k"], "m", {}),
                                                    ("Sigmoid", ["m"], "s", {}), ("Mul", ["s", "z"], "y", {})],
                {"x": floats(1, 32, 112, 112), "z": floats(1, 32, 112, 112, seed=2)}, {"k": np.float32(0.7)})


GROUPS = {"convolutions": convolutions, "products": products, "recurrent": recurrent, "normalisations": normalisations,
          "pools": pools, "resizes": resizes, "elementwise": elementwise, "moves": moves, "reductions": reductions,
          "chains": chains}
