"""Random small networks, one per seed: chains of blocks as exporters write them, in opsets 13 to 23.

    network(seed) → (ModelProto, feeds)

Each block takes a value and gives one of the same shape or another one that the next block can take. Constants are
initializers or Constant nodes; weights are shared, transposed, quantised or f16 now and then. The same seed gives the
same network.
"""
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, F16, I64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64


class Network:
    def __init__(self, seed):
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.opset = self.random.choice([13, 14, 16, 17, 17, 18, 19, 20, 21, 22, 23])
        self.nodes, self.constants, self.inputs, self.outputs, self.feeds = [], [], [], [], {}
        self.weights = {}  # by shape, to be shared
        self.count = 0
        self.domains = {"": self.opset}

    # ---- parts ----

    def name(self, kind="v"):
        self.count += 1
        return f"{kind}{self.count}"

    def flag(self, probability=0.5):
        return self.random.random() < probability

    def one(self, *choices):
        return self.random.choice(choices)

    def const(self, array, kind="c"):
        array, name = np.asarray(array), self.name(kind)
        if self.flag(0.3):
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        else:
            self.constants.append(numpy_helper.from_array(array, name))
        return name

    def ints(self, *numbers):
        return self.const(np.array(numbers, np.int64))

    def number(self, x):
        return self.const(np.float32(x))

    def node(self, op, *inputs, outputs=1, domain="", **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, domain=domain, name=self.name(op), **attributes))
        if domain:
            self.domains[domain] = 1
        return names[0] if outputs == 1 else names

    def drawn(self, *shape, scale=None):
        return (self.numbers.standard_normal(shape) * (scale or 1 / np.sqrt(shape[0] if shape else 1))).astype(np.float32)

    def weight(self, k, n):
        """A matrix [k, n]: stored so, shared, transposed, of f16 or of 8 bits."""
        kind = self.one("own", "own", "own", "shared", "transposed", "half", "bytes", "bytes")
        if kind == "shared" and (k, n) in self.weights:
            return self.weights[k, n]
        w = self.drawn(k, n)
        if kind == "transposed":
            return self.node("Transpose", self.const(w.T.copy(), "w"), perm=[1, 0])
        if kind == "half":
            return self.node("Cast", self.const(w.astype(np.float16), "w"), to=F32)
        if kind == "bytes":
            scale = np.abs(w).max(0) / 127
            codes = np.rint(w / scale).astype(np.int8)
            return self.node("DequantizeLinear", self.const(codes, "w"), self.const(scale), self.const(np.zeros(n, np.int8)), axis=1)
        name = self.const(w, "w")
        self.weights[k, n] = name
        return name

    # ---- blocks on rows [batch, tokens, width] ----

    def dense(self, x, width):
        n = self.one(width, width, 8, 16, 24)
        y = self.node("MatMul", x, self.weight(width, n))
        if self.flag(0.8):
            y = self.node("Add", *self.random.sample([y, self.const(self.drawn(n))], 2))
        return self.activation(y), n

    def activation(self, x):
        kind = self.one("none", "Relu", "Tanh", "Sigmoid", "gelu", "silu", "HardSwish", "Elu", "Softplus", "LeakyRelu", "Clip")
        if kind == "none":
            return x
        if kind == "gelu":
            if self.opset >= 20 and self.flag():
                return self.node("Gelu", x, approximate=self.one("none", "tanh"))
            y = self.node("Erf", self.node("Div", x, self.number(2**0.5)))
            return self.node("Mul", self.node("Mul", x, self.node("Add", y, self.number(1))), self.number(0.5))
        if kind == "silu":
            return self.node("Mul", x, self.node("Sigmoid", x))
        if kind == "HardSwish" and self.opset < 14:
            kind = "Relu"
        return self.node(kind, x, self.number(-1), self.number(1)) if kind == "Clip" else self.node(kind, x)

    def mean(self, x, axes, keep=1):
        if self.opset >= 18:
            return self.node("ReduceMean", x, self.ints(*axes), keepdims=keep)
        return self.node("ReduceMean", x, axes=axes, keepdims=keep)

    def norm(self, x, width):
        if self.opset >= 17 and self.flag():
            return self.node("LayerNormalization", x, self.const(1 + 0.1 * self.drawn(width)), self.const(self.drawn(width)), axis=-1)
        d = self.node("Sub", x, self.mean(x, [-1]))
        var = self.mean(self.node("Pow", d, self.number(2)), [-1])
        y = self.node("Div", d, self.node("Sqrt", self.node("Add", var, self.number(1e-5))))
        return self.node("Add", self.node("Mul", y, self.const(1 + 0.1 * self.drawn(width))), self.const(self.drawn(width)))

    def residual(self, x, width):
        y = self.node("MatMul", x, self.weight(width, width))
        y = self.node("Add", x, self.node("Add", y, self.const(self.drawn(width))))
        return self.norm(y, width)

    def attention(self, x, width):
        heads, size = 2, width // 2
        def split(v):
            v = self.node("Reshape", v, self.ints(0, 0, heads, size))
            return self.node("Transpose", v, perm=[0, 2, 1, 3])
        q, k, v = (split(self.node("Add", self.node("MatMul", x, self.weight(width, width)), self.const(self.drawn(width))))
                   for _ in range(3))
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.node("Mul", scores, self.number(size**-0.5))
        y = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        y = self.node("Reshape", self.node("Transpose", y, perm=[0, 2, 1, 3]), self.ints(0, 0, width))
        return y

    def normalise(self, x, width):
        kind = self.one("max", "clip", "expand")
        length = self.node("ReduceL2", x, *([self.ints(-1)] if self.opset >= 18 else []), keepdims=1,
                           **({} if self.opset >= 18 else {"axes": [-1]}))
        if kind == "max":
            length = self.node("Max", length, self.number(1e-12))
        else:
            length = self.node("Clip", length, self.number(1e-12))
        if kind == "expand":
            length = self.node("Expand", length, self.node("Shape", x))
        return self.node("Div", x, length)

    def sequence(self, x, width):
        parts = self.node("SplitToSequence", x, self.const(np.int64(width // 2)), axis=-1)
        ends = [self.node("Mul", self.node("SequenceAt", parts, self.const(np.int64(i))), self.number(0.5 + i)) for i in range(2)]
        return self.node("Concat", *ends, axis=-1)

    def branch(self, x, width):
        """An If with captured values and a weight of its own."""
        y = self.name()
        then = helper.make_graph([helper.make_node("MatMul", [x, "own_w"], [y + "_t"])], "then", [],
                                 [helper.make_tensor_value_info(y + "_t", F32, None)],
                                 [numpy_helper.from_array(self.drawn(width, width), "own_w")])
        other = helper.make_graph([helper.make_node("Identity", [x], [y + "_e"])], "else", [],
                                  [helper.make_tensor_value_info(y + "_e", F32, None)])
        for graph in (then, other):
            graph.output[0].type.tensor_type.shape.CopyFrom(helper.make_tensor_value_info("s", F32, [None, None, width]).type.tensor_type.shape)
        more = self.node("Greater", self.node("ReduceMax", x, keepdims=0), self.number(0.1))
        self.nodes.append(helper.make_node("If", [more], [y], then_branch=then, else_branch=other))
        return y

    def quantised(self, x, width):
        scale, zero = self.number(0.05), self.const(np.uint8(128))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, scale, zero), scale, zero)

    def recurrent(self, x, width):
        op, gates = self.one(("LSTM", 4), ("GRU", 3))
        y = self.node("Transpose", x, perm=[1, 0, 2])
        y = self.node(op, y, self.const(self.drawn(1, gates * 8, width, scale=0.3)), self.const(self.drawn(1, gates * 8, 8, scale=0.3)),
                      self.const(self.drawn(1, 2 * gates * 8, scale=0.3)), hidden_size=8)
        return self.node("Transpose", self.node("Squeeze", y, self.ints(1)), perm=[1, 0, 2]), 8

    def moved(self, x, width):
        kind = self.one("slice", "split", "pad", "cumsum", "softmax", "where", "topk", "einsum")
        if kind == "slice":
            return self.node("Slice", x, self.ints(0), self.ints(width // 2), self.ints(2)), width // 2
        if kind == "split":
            parts = self.node("Split", x, self.ints(width // 2, width - width // 2), axis=-1, outputs=2)
            return self.node("Concat", parts[1], parts[0], axis=-1), width
        if kind == "pad":
            return self.node("Pad", x, self.ints(0, 0, 1, 0, 0, 1), self.number(0.5)), width + 2
        if kind == "cumsum":
            return self.node("CumSum", x, self.const(np.int64(1))), width
        if kind == "softmax":
            return self.node("Softmax", x, axis=-1), width
        if kind == "where":
            return self.node("Where", self.node("Greater", x, self.number(0)), x, self.node("Mul", x, self.number(0.1))), width
        if kind == "topk":
            return self.node("TopK", x, self.ints(width // 2), axis=-1, outputs=2)[0], width // 2
        return self.node("Einsum", x, self.const(self.drawn(width, 8)), equation="btk,kn->btn"), 8

    # ---- blocks on pictures [1, channels, 8, 8] ----

    def picture_block(self, x, channels):
        kind = self.one("conv", "conv", "conv", "group", "pool", "resize", "pad", "instance", "depth", "qdq")
        if kind in ("conv", "depth", "qdq"):
            n = channels if kind == "depth" else self.one(4, 8)
            group = channels if kind == "depth" else 1
            w = self.drawn(n, channels // group, 3, 3, scale=0.3)
            if kind == "qdq":
                scale = np.abs(w).max((1, 2, 3)) / 127
                codes = np.rint(w / scale.reshape(-1, 1, 1, 1)).astype(np.int8)
                w = self.node("DequantizeLinear", self.const(codes), self.const(scale), self.const(np.zeros(n, np.int8)), axis=0)
                y = self.node("Conv", self.quantised(x, 0), w, pads=[1, 1, 1, 1])
                return (self.quantised(y, 0) if self.flag() else y), n
            y = self.node("Conv", x, self.const(w), *([self.const(self.drawn(n))] if self.flag() else []), pads=[1, 1, 1, 1], group=group)
            if self.flag(0.4):
                y = self.node("BatchNormalization", y, *(self.const(v) for v in (
                    1 + 0.1 * self.drawn(n), self.drawn(n), 0.1 * self.drawn(n), 0.5 + np.abs(self.drawn(n)))))
            return self.activation(y), n
        if kind == "group" and self.opset >= 21:
            return self.node("GroupNormalization", x, self.const(1 + 0.1 * self.drawn(channels)), self.const(self.drawn(channels)),
                             num_groups=2), channels
        if kind == "instance":
            return self.node("InstanceNormalization", x, self.const(1 + 0.1 * self.drawn(channels)), self.const(self.drawn(channels))), channels
        if kind == "pool":
            more = {"dilations": [2, 2], "pads": [1, 1, 1, 1]} if self.opset >= 19 else {"pads": [1, 1, 0, 0]}
            return self.node("AveragePool", x, kernel_shape=[2, 2], **more), channels
        if kind == "resize":
            more = {"antialias": self.one(0, 1), "keep_aspect_ratio_policy": "stretch"} if self.opset >= 18 else {}
            return self.node("Resize", x, "", "", self.ints(1, channels, 8, 8), mode="linear", **more), channels
        if kind == "pad":
            mode = self.one("reflect", "edge", *(["wrap"] if self.opset >= 19 else []))
            return self.node("Resize", self.node("Pad", x, self.ints(0, 0, 1, 1, 0, 0, 1, 1), mode=mode), "", "",
                             self.ints(1, channels, 8, 8), mode="nearest"), channels
        return self.node("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), channels

    # ---- the whole ----

    def rows(self):
        batch, tokens, width = 2, 5, self.one(8, 16)
        fixed = self.flag(0.4)
        if self.flag(0.4):
            x = self.name("ids")
            self.inputs.append(helper.make_tensor_value_info(x, I64, [batch, tokens] if fixed else ["batch", "tokens"]))
            self.feeds[x] = self.numbers.integers(0, 40, (batch, tokens))
            x = self.node("Gather", self.const(self.drawn(40, width, scale=0.5), "table"), x)
        else:
            name = self.name("x")
            self.inputs.append(helper.make_tensor_value_info(name, F32, [batch, tokens, width] if fixed else ["batch", "tokens", width]))
            self.feeds[name] = self.drawn(batch, tokens, width, scale=1)
            self.feeds[name][0, 0] = 0
            x = name
        for _ in range(self.random.randint(2, 6)):
            if width < 4 or width % 2:
                x, width = self.node("MatMul", x, self.weight(width, 8)), 8
            kind = self.one("dense", "dense", "residual", "attention", "normalise", "sequence", "branch", "quantised", "recurrent",
                            "moved", "norm")
            made = getattr(self, kind)(x, width)
            x, width = made if isinstance(made, tuple) else (made, width)
            if self.flag(0.1):
                self.output(x, ["batch", "tokens", width] if not fixed else [batch, tokens, width])
        self.output(x, [batch, tokens, width] if fixed and self.flag() else ["batch", "tokens", width])

    def picture(self):
        channels = self.one(4, 8)
        name = self.name("x")
        self.inputs.append(helper.make_tensor_value_info(name, F32, [1, channels, 8, 8]))
        self.feeds[name] = self.drawn(1, channels, 8, 8, scale=1)
        x = name
        for _ in range(self.random.randint(2, 5)):
            x, channels = self.picture_block(x, channels)
        x = self.node("Flatten", self.node("GlobalAveragePool", x))
        self.output(self.node("Gemm", x, self.weight(channels, 6), self.const(self.drawn(6))), [1, 6])

    def output(self, x, dims):
        if x in {o.name for o in self.outputs} or x in {i.name for i in self.inputs}:
            return
        self.outputs.append(helper.make_tensor_value_info(x, F32, dims))

    def model(self):
        self.picture() if self.flag(0.35) else self.rows()
        if not self.outputs:
            y = self.node("Identity", self.inputs[0].name)
            self.outputs.append(helper.make_tensor_value_info(y, self.inputs[0].type.tensor_type.elem_type, None))
        graph = helper.make_graph(self.nodes, "random", self.inputs, self.outputs, self.constants)
        ir = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}[self.opset]
        return helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in self.domains.items()], ir_version=ir)


def network(seed):
    made = Network(seed)
    model = made.model()
    return model, made.feeds
