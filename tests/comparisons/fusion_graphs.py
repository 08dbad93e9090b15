"""Draws graphs that look like what the passes fuse, and near misses of it, for fuzz_fusions.py. A near miss is a graph
in which one condition of a pattern does not hold."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, F16, F64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE
I64, BOOL = TensorProto.INT64, TensorProto.BOOL


class Graph:
    """Nodes and constants under construction. A method makes one node and returns the name of its output."""

    def __init__(self, rng):
        self.rng, self.nodes, self.constants, self.inputs, self.extra, self.count = rng, [], [], [], [], 0
        self.np = np.random.default_rng(rng.getrandbits(32))
        self.opset = rng.choice([13, 14, 17, 18, 20, 21, 23])
        self.half = rng.random() < 0.1  # some weights are stored in half precision; differences are judged coarsely then
        self.kinds = {}  # types of values that are not f32, where it is known
        self.large = False  # a norm was drawn whose result has no bound: scores may differ by more than 10,000

    def name(self, hint):
        self.count += 1
        return f"{hint}_{self.count}"

    def const(self, value, dtype=np.float32):
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *values):
        return self.const(np.array(values, np.int64), np.int64)

    def weight(self, *shape, scale=0.3):
        return self.const(self.np.normal(0, scale, shape))

    def stored(self, value):
        """A constant f32 value, perhaps stored in another type and cast."""
        if self.half and self.chance(0.5):
            return self.op("Cast", self.const(value, np.float16), to=F32)
        return self.op("Cast", self.const(value, np.float64), to=F32) if self.chance(0.02) else self.const(value)

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        names = [self.name(kind.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=self.name("n"), domain=domain, **attributes))
        if outputs == 1 and self.rng.random() < 0.02:
            self.extra.append(names[0])
        return names[0] if outputs == 1 else names

    def chance(self, p):
        return self.rng.random() < p

    def either(self, kind, a, b):
        """Both operand orders of a commutative operator."""
        return self.op(kind, a, b) if self.chance(0.5) else self.op(kind, b, a)

    def reduce(self, kind, x, axis, keepdims=1):
        if self.opset >= (13 if kind == "ReduceSum" else 18):
            return self.op(kind, x, self.ints(axis), keepdims=keepdims)
        return self.op(kind, x, axes=[axis], keepdims=keepdims)

    def softmax(self, x):
        return self.op("Softmax", x, axis=self.rng.choice([-1, -1, -1, -1, 3, 2]))

    def model(self, outputs):
        names = list(dict.fromkeys(outputs + self.extra))
        graph = helper.make_graph(self.nodes, "drawn", self.inputs,
                                  [helper.make_tensor_value_info(n, self.kinds.get(n, F32), None) for n in names],
                                  self.constants)
        domains = sorted({("com.microsoft", 1) for n in self.nodes if n.domain} | {("", self.opset)})
        return helper.make_model(graph, opset_imports=[helper.make_opsetid(*d) for d in domains], ir_version=8)


# ---- parts of transformers ----

def gemm(g, x, n_in, n_out):
    """Rows of x through Gemm, with the attributes that a plain product does not have."""
    rows = g.op("Reshape", x, g.ints(-1, n_in))
    attributes = {}
    if g.chance(0.2):
        rows, attributes["transA"] = g.op("Transpose", rows, perm=[1, 0]), 1
    if g.chance(0.5):
        attributes["transB"] = 1
    for name in ("alpha", "beta"):
        if g.chance(0.15):
            attributes[name] = g.rng.choice([0.5, 2.0])
    w = g.weight(n_out, n_in) if "transB" in attributes else g.weight(n_in, n_out)
    bias = [g.weight(*g.rng.choice([(n_out,), (1, n_out), (1,)]))] if g.chance(0.7) else []
    y = g.op("Gemm", rows, w, *bias, **attributes)
    leading = g.op("Slice", g.op("Shape", x), g.ints(0), g.ints(-1))
    return g.op("Reshape", y, g.op("Concat", leading, g.ints(n_out), axis=0))


def linear(g, x, n_in, n_out):
    if g.chance(0.1):
        return gemm(g, x, n_in, n_out)
    if g.chance(0.15):
        y = g.op("MatMul", x, g.op("Transpose", g.stored(g.np.normal(0, 0.3, (n_out, n_in))), perm=[1, 0]))
    else:
        y = g.op("MatMul", x, g.stored(g.np.normal(0, 0.3, (n_in, n_out))))
    if g.chance(0.03):  # a bias with axes of its own
        return g.op("Reshape", g.either("Add", y, g.weight(1, 1, 1, 1, n_out)), g.op("Shape", y))
    if g.chance(0.7):
        y = g.either("Add", y, g.weight(n_out) if g.chance(0.9) else g.weight(1))
    return y


def layer_norm(g, x, width, scale=None):
    """scale: the shape of the scale, if it is not one vector for all rows."""
    epsilon = g.rng.choice([1e-5, 1e-6, 1e-12, 1e-3, 0.1])
    kind = g.rng.choice(["layer", "layer", "layer", "rms", "rms", "node", "node", "wrong axis", "no sqrt", "other mean",
                         "other square", "fourth power"])
    if kind == "node" and g.opset >= 17 and not scale:
        return g.op("LayerNormalization", x, g.weight(width), g.weight(width), axis=-1, epsilon=epsilon)
    axis = 1 if kind == "wrong axis" else -1
    mean = lambda v: g.reduce("ReduceMean", v, axis)
    average = g.reduce("ReduceMean", x, 1) if g.chance(0.05) else \
        mean(g.op("Abs", x) if kind == "other mean" else x)
    centred = x if kind == "rms" else g.op("Sub", x, average)
    g.large |= kind in ("no sqrt", "fourth power")
    if kind == "other square":
        square = g.either("Mul", centred, g.op("Mul", centred, g.const(1.5)))
    elif kind == "fourth power":
        square = g.op("Pow", centred, g.const(4.0))
    else:
        square = g.op("Pow", centred, g.const(2.0)) if g.chance(0.5) else g.op("Mul", centred, centred)
    variance = g.either("Add", mean(square), g.const(epsilon))
    root = variance if kind == "no sqrt" else g.op("Sqrt", variance)
    above = x if epsilon >= 1e-3 and g.chance(0.2) else centred
    y = g.op("Div", above, root) if g.chance(0.6) else g.either("Mul", above, g.op("Reciprocal", root))
    if g.chance(0.8):
        y = g.either("Mul", y, g.weight(*(scale or (width,))))
    return g.either("Add", y, g.weight(width)) if g.chance(0.7) else y


def activation(g, x):
    kind = g.rng.choice(["erf", "erf", "tanh", "tanh", "quick", "silu", "relu", "near", "moved", "exact20"])
    if kind == "exact20" and g.opset >= 20:
        return g.op("Gelu", x, approximate=g.rng.choice(["none", "tanh"]))
    if kind in ("erf", "near", "moved"):
        root = g.const(g.rng.choice([1.5, 1.41]) if kind == "near" else 1.4142135)
        argument = g.op("Div", x, root)
        if kind == "moved":
            argument = g.either("Add", argument, g.const(0.3))
        e = g.either("Add", g.op("Erf", argument), g.const(1.0 if g.chance(0.9) else 1.1))
        y = g.either("Mul", x, e)
        return g.either("Mul", y, g.const(0.5 if g.chance(0.9) else 0.6))
    if kind == "tanh":
        cube = g.op("Pow", x, g.const(3.0 if g.chance(0.9) else 2.0))
        inner = g.either("Add", x, g.either("Mul", cube, g.const(0.044715 if g.chance(0.9) else 0.05)))
        t = g.op("Tanh", g.either("Mul", inner, g.const(0.7978845608)))
        return g.either("Mul", g.either("Mul", x, g.const(0.5)), g.either("Add", t, g.const(1.0)))
    if kind == "quick":
        return g.either("Mul", x, g.op("Sigmoid", g.either("Mul", x, g.const(g.rng.choice([1.702, 1.702, 1.5])))))
    if kind == "silu":
        return g.either("Mul", x, g.op("Sigmoid", x))
    return g.op("Relu", x)


def halves(g, x, width, wide):
    """What is activated and what it is multiplied with."""
    way = g.rng.choice(["split", "split", "slices", "same", "overlap", "two rows", "apart", "apart"])
    if way == "apart":
        return linear(g, x, width, wide), linear(g, x, width, wide)
    both = linear(g, x, width, 2 * wide)
    a, b = g.op("Split", both, g.ints(wide, wide), outputs=2, axis=-1)
    if way in ("slices", "same", "overlap"):
        begin = {"slices": 0, "same": wide, "overlap": wide // 2}[way]
        a = g.op("Slice", both, g.ints(begin), g.ints(begin + wide), g.ints(-1))
    elif way == "two rows":
        b = g.op("Split", linear(g, x, width, 2 * wide), g.ints(wide, wide), outputs=2, axis=-1)[1]
    return (b, a) if g.chance(0.5) else (a, b)


def feed_forward(g, x, width):
    wide = g.rng.choice([width, 2 * width, 24])
    if g.chance(0.5):
        return linear(g, activation(g, linear(g, x, width, wide)), wide, width)
    a, b = halves(g, x, width, wide)
    return linear(g, g.either("Mul", activation(g, a), b), wide, width)


def split_heads(g, x, heads, size):
    shape = g.op("Reshape", x, g.ints(0, 0, heads, size))
    if heads == size and g.chance(0.3):  # heads and their elements change places
        shape = g.op("Transpose", shape, perm=[0, 1, 3, 2])
    return g.op("Transpose", shape, perm=[0, 2, 1, 3])


def rotate(g, x, heads, size, positions):
    """Rotary positions of [batch, heads, sequence, size]; the part turned may be smaller than a head."""
    turned = g.rng.choice([size, size, size // 2]) if size % 4 == 0 else size
    rest = None
    if turned != size:
        begin = turned if g.chance(0.85) else turned // 2  # not what is behind the part
        rest = g.op("Slice", x, g.ints(begin), g.ints(begin + size - turned), g.ints(3))
        x = g.op("Slice", x, g.ints(0), g.ints(turned), g.ints(3))
    half = turned // 2
    frequencies = (1.0 / 100 ** (np.arange(half) / half)).reshape(1, half)
    columns = g.op("Unsqueeze", g.op("Cast", positions, to=F32), g.ints(-1))
    angles = g.op(g.rng.choice(["Mul", "MatMul"]), columns, g.const(frequencies))
    if heads > 1 and g.chance(0.1):  # other angles in every head
        angles = g.op("Mul", g.const(np.linspace(0.5, 1, heads).reshape(heads, 1, 1)), angles)
    interleaved = g.chance(0.3)
    if g.opset >= 23 and g.chance(0.2):
        tables = [g.op("Unsqueeze", g.op(kind, g.op("Mul", columns, g.const(frequencies))), g.ints(0))
                  for kind in ("Cos", "Sin")]
        shape = g.op("Concat", g.op("Slice", g.op("Shape", x), g.ints(0), g.ints(1)), g.ints(1, 1), axis=0)
        y = g.op("RotaryEmbedding", x, *(g.op("Expand", t, shape) for t in tables), interleaved=int(interleaved))
        return g.op("Concat", y, rest, axis=-1) if rest else y
    if interleaved:
        pairs = g.op("Concat", g.op("Unsqueeze", angles, g.ints(-1)), g.op("Unsqueeze", angles, g.ints(-1)), axis=-1)
        table = g.op("Reshape", pairs, g.op("Concat", g.op("Slice", g.op("Shape", angles), g.ints(0), g.ints(-1)),
                                            g.ints(turned), axis=0))
    else:
        table = g.op("Concat", angles, angles, axis=-1)
    cos, sin = g.op("Cos", table), g.op("Sin", table)
    negate = (lambda v: v) if g.chance(0.05) else lambda v: g.op("Neg", v)
    swapped = g.chance(0.95)  # or each part stays in its place
    if interleaved:
        even = g.op("Slice", x, g.ints(0), g.ints(turned), g.ints(3), g.ints(2))
        odd = g.op("Slice", x, g.ints(1), g.ints(turned), g.ints(3), g.ints(2))
        even, odd = (even, odd) if swapped else (odd, even)
        pair = g.op("Concat", g.op("Unsqueeze", negate(odd), g.ints(-1)), g.op("Unsqueeze", even, g.ints(-1)), axis=-1)
        other = g.op("Reshape", pair, g.op("Shape", x))
    else:
        first = g.op("Slice", x, g.ints(0), g.ints(half), g.ints(3))
        second = g.op("Slice", x, g.ints(half), g.ints(turned), g.ints(3))
        first, second = (first, second) if swapped else (second, first)
        if g.chance(0.1):
            other = g.op("Concat", second, negate(first), axis=-1)  # turned the other way
        else:
            other = g.op("Concat", negate(second), first, axis=-1)
    y = g.either("Add", g.either("Mul", x, cos), g.either("Mul", other, sin))
    return g.op("Concat", y, rest, axis=-1) if rest else y


def project(g, x, width, heads, kv_heads, size, v_size):
    """Query, key and value as [batch, heads, sequence, size]: apart, merged, or merged by head."""
    way = g.rng.choice(["apart", "apart", "apart", "merged", "by head", "stacked", "shared", "crossed", "activated",
                        "of heads"])
    if way == "of heads" and heads == kv_heads and width % heads == 0:  # one projection for all heads
        x = split_heads(g, x, heads, width // heads)
        return tuple(linear(g, x, width // heads, n) for n in (size, size, v_size))
    if way == "by head" and heads == kv_heads:
        rows = 2 * size + v_size
        whole = g.op("Transpose", g.op("Reshape", linear(g, x, width, heads * rows), g.ints(0, 0, heads, rows)),
                     perm=[0, 2, 1, 3])
        whole = g.op("Tanh", whole) if g.chance(0.3) else whole
        return g.op("Split", whole, g.ints(size, size, v_size), outputs=3, axis=-1)
    if way == "stacked" and heads == kv_heads and size == v_size:
        whole = split_heads(g, linear(g, x, width, 3 * heads * size), 3 * heads, size)
        whole = g.op("Tanh", whole) if g.chance(0.5) else whole
        return g.op("Split", whole, g.ints(heads, heads, heads), outputs=3, axis=1)
    if way == "merged":
        sizes = [heads * size, kv_heads * size, kv_heads * v_size]
        q, k, v = g.op("Split", linear(g, x, width, sum(sizes)), g.ints(*sizes), outputs=3, axis=-1)
    elif way == "shared" and heads == kv_heads and size == v_size:
        q = k = v = linear(g, x, width, heads * size)
    else:
        y = g.op("Tanh", x) if way == "crossed" else x
        q, k, v = linear(g, x, width, heads * size), linear(g, y, width, kv_heads * size), linear(g, y, width, kv_heads * v_size)
        if way == "activated":
            q = g.op(g.rng.choice(["Relu", "Tanh", "Sigmoid"]), q)
    return split_heads(g, q, heads, size), split_heads(g, k, kv_heads, size), split_heads(g, v, kv_heads, v_size)


def norm_of_heads(g, x, heads, size):
    """Heads [batch, heads, sequence, size] normalised after they were split."""
    if g.opset < 17 or g.chance(0.3):
        return layer_norm(g, x, size, (heads, 1, size) if g.chance(0.2) else None)
    kind = "RMSNormalization" if g.opset >= 23 and g.chance(0.5) else "LayerNormalization"
    if heads == size and g.chance(0.3):  # over the heads
        turned = g.op(kind, g.op("Transpose", x, perm=[0, 2, 3, 1]), g.weight(heads))
        return g.op("Transpose", turned, perm=[0, 3, 1, 2])
    return g.op(kind, x, g.weight(size))


def repeat(g, x, heads, kv_heads, size):
    if heads == kv_heads:
        return x
    shape = g.op("Shape", x)
    b, s = (g.op("Gather", shape, g.ints(i), axis=0) for i in (0, 2))
    wide = g.op("Unsqueeze", x, g.ints(2))
    wide = g.op("Expand", wide, g.op("Concat", b, g.ints(kv_heads, heads // kv_heads), s, g.ints(size), axis=0))
    return g.op("Reshape", wide, g.op("Concat", b, g.ints(heads), s, g.ints(size), axis=0))


def skipping(g, *numbers):
    """One of these numbers of a mask. -10,000 hides a key only from scores that differ by less, which the passes rely on
    (docs/architecture.md), so larger scores get a lower number."""
    number = g.rng.choice(numbers)
    return g.const(-1e9 if g.large and number == -10000.0 else number)


def hide(g, scores, seen, low):
    """Scores that are not seen are low, or have low added."""
    if g.chance(0.6):
        return g.op("Where", seen, scores, low)
    return g.either("Add", scores, g.op("Where", seen, g.const(0.0), low))


def masks(g, scores, mask, positions, heads):
    """Scores with padding, causal, window, bias masks in several spellings."""
    low = skipping(g, -np.inf, -np.inf, -3.4028235e38, -1e9, -10000.0, -10000.0, -3.0)
    if g.chance(0.7):
        m = g.op("Unsqueeze", mask, g.ints(1, 2))
        way = g.rng.choice(["added", "where", "shifted", "multiplied"])
        if way == "added":
            m = g.op("Mul", g.op("Sub", g.const(1.0), g.op("Cast", m, to=F32)),
                     skipping(g, -3.4028235e38, -10000.0, -2.0))
            if g.chance(0.2):  # every key by a number of its own; nothing that replaces scores may be as low
                m = g.either("Mul", m, g.op("Add", g.op("Cast", positions, to=F32), g.const(1.0)))
                return g.either("Add", scores, m)
            scores = g.either("Add", scores, m)
        elif way == "where":
            scores = g.op("Where", g.op("Cast", m, to=BOOL), scores, low)
        elif way == "shifted":
            zero = g.op("Where", g.op("Equal", m, g.ints(0)), low, g.const(0.0))
            scores = g.either("Add", scores, zero)
        else:
            scores = g.either("Mul", scores, g.op("Cast", m, to=F32))
    if g.chance(0.4):
        rows, columns = g.op("Unsqueeze", positions, g.ints(1)), g.op("Unsqueeze", positions, g.ints(0))
        seen = g.op("LessOrEqual", columns, rows)
        if g.chance(0.4):
            near = g.op("Less", g.op("Sub", rows, columns), g.ints(g.rng.choice([2, 3, 6])))
            if g.chance(0.2):  # the first key is always seen
                near = g.either("Or", near, g.op("Equal", columns, g.ints(0)))
            if g.chance(0.5):  # two windows
                scores = hide(g, scores, near, low if g.chance(0.5) else skipping(g, -np.inf, -1e9, -10000.0))
            else:
                seen = g.op("And", seen, near)
        scores = hide(g, scores, seen, low)
    if g.chance(0.25):
        distance = g.op("Cast", g.op("Sub", g.op("Unsqueeze", positions, g.ints(0)), g.op("Unsqueeze", positions, g.ints(1))),
                        to=F32)
        slopes = g.const(np.linspace(0.1, 0.4, heads).reshape(heads, 1, 1) if g.chance(0.5) else 0.2)
        scores = g.either("Add", scores, g.op("Mul", distance, slopes))
    return scores


def attention_node(g, q, k, v, mask, scale):
    """The operator of opset 23 on q, k and v [batch, heads, sequence, size]."""
    attributes = {"is_causal": int(g.chance(0.4))}
    if g.chance(0.5):
        attributes["scale"] = scale
    if g.chance(0.15):
        attributes["softcap"] = 2.0
    m = g.op("Unsqueeze", mask, g.ints(1, 2))
    way = g.rng.choice(["none", "keeps", "added"])
    if way == "added":
        m = g.op("Mul", g.op("Sub", g.const(1.0), g.op("Cast", m, to=F32)), skipping(g, -10000.0, -1.0))
    extra = {"none": [], "keeps": [g.op("Cast", m, to=BOOL)], "added": [m]}[way]
    if extra:  # the mask has the shape of the scores
        s = g.op("Slice", g.op("Shape", q), g.ints(2), g.ints(3))
        b = g.op("Slice", g.op("Shape", q), g.ints(0), g.ints(1))
        extra = [g.op("Expand", extra[0], g.op("Concat", b, g.ints(1), s, s, axis=0))]
    return g.op("Attention", q, k, v, *extra, **attributes)


def scaled_scores(g, q, k, heads, size):
    """q k^T times a scale that is found on the scores, on q, k or both."""
    scale = float(size) ** -0.5
    where = g.rng.choice(["scores", "scores", "q", "both", "none", "k", "per head"])
    if where == "q":
        q = g.either("Mul", q, g.const(scale))
    elif where == "k":
        k = g.op("Div", k, g.const(1 / scale))
    elif where == "both":
        q, k = g.op("Mul", q, g.const(scale ** 0.5)), g.op("Mul", k, g.const(scale ** 0.5))
    elif where == "per head":
        q = g.op("Mul", q, g.const(np.linspace(0.2, 0.5, heads).reshape(heads, 1, 1)))
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    if where != "scores":
        return scores
    if g.chance(0.3):  # from the shape of a head
        size = g.op("Shape", q)
        pick, cast = (lambda v: g.op("Gather", v, g.const(3, np.int64), axis=0)), lambda v: g.op("Cast", v, to=F32)
        return g.op("Div", scores, g.op("Sqrt", pick(cast(size)) if g.chance(0.5) else cast(pick(size))))
    return g.either("Mul", scores, g.const(scale)) if g.chance(0.5) else g.op("Div", scores, g.const(1 / scale))


def attention(g, x, width, mask, positions):
    heads = g.rng.choice([1, 2, 3, 4])
    kv_heads = g.rng.choice([h for h in (1, heads) if heads % h == 0])
    size = g.rng.choice([2, 4, 8, 8, 16, 5])
    v_size = size if g.chance(0.8) else g.rng.choice([3, 6])
    q, k, v = project(g, x, width, heads, kv_heads, size, v_size)
    if g.chance(0.2):
        q, k = norm_of_heads(g, q, heads, size), norm_of_heads(g, k, kv_heads, size)
    if size % 2 == 0 and g.chance(0.5):
        q, k = rotate(g, q, heads, size, positions), rotate(g, k, kv_heads, size, positions)
    if g.opset >= 23 and g.chance(0.3):
        y = attention_node(g, q, k, v, mask, 0.3)
    else:
        k, v = repeat(g, k, heads, kv_heads, size), repeat(g, v, heads, kv_heads, v_size)
        scores = masks(g, scaled_scores(g, q, k, heads, size), mask, positions, heads)
        if g.chance(0.05):  # scaled with its masks
            scores = g.either("Mul", scores, g.const(0.5))
        weights = g.softmax(scores)
        if g.chance(0.2):
            weights = g.op("Where", g.op("IsNaN", weights), g.const(0.0 if g.chance(0.6) else 0.5), weights)
        y = g.op("MatMul", weights, v)
    if heads == v_size and g.chance(0.3):  # heads and their elements change places
        y = g.op("Transpose", y, perm=[0, 3, 2, 1])
    if g.chance(0.05):
        y = g.op("Transpose", y, perm=[0, 1, 2, 3])
    joined = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, heads * v_size))
    return linear(g, joined, heads * v_size, width)


# ---- steps on looked-up rows: they have the same bits at every level, so that rounding decides nothing ----

def moved(g, x):
    """x, moved there and back."""
    there, back = ([0, 2, 1], [0, 2, 1]) if g.chance(0.5) else ([1, 2, 0], [2, 0, 1])
    return g.op("Transpose", g.op("Transpose", x, perm=there), perm=back) if g.chance(0.5) else x


def quantised(g, x):
    """Quantised, and once more with the same or other numbers."""
    first = (0.02, 128)
    second = first if g.chance(0.4) else g.rng.choice([(0.002, 128), (0.02, 60), (0.3, 128)])
    for scale, zero in (first, second):
        numbers = g.const(scale), g.const(zero, np.uint8)
        x = g.op("DequantizeLinear", g.op("QuantizeLinear", x, *numbers), *numbers)
        x = g.op("Reshape", g.op("Unsqueeze", x, g.ints(0)), g.op("Shape", x))
    return x


def branches(g, x, width, length):
    """An If whose condition is known from the file or from sizes, or only in the run."""
    kind = g.rng.choice(["constant", "known", "length", "mask"])
    if kind == "constant":
        condition = g.const(g.chance(0.5), np.bool_)
    elif kind == "known":
        size = g.op("Gather", g.op("Shape", x), g.const(2, np.int64), axis=0)
        condition = g.op("Equal", size, g.const(width if g.chance(0.5) else 1, np.int64))
    elif kind == "length":
        condition = g.op("Equal", length, g.const(g.rng.choice([1, 7, 16]), np.int64))
    else:
        least = g.op("ReduceMin", g.op("Reshape", g.op("Cast", "attention_mask", to=F32), g.ints(-1)), keepdims=0)
        condition = g.op("Cast", least, to=BOOL)
    bodies = []
    for kind in ("Neg", "Tanh"):
        out = g.name("branch")
        bodies.append(helper.make_graph([helper.make_node(kind, [x], [out])], "branch", [],
                                        [helper.make_tensor_value_info(out, F32, None)]))
    return g.op("If", condition, then_branch=bodies[0], else_branch=bodies[1])


def twins(g, x):
    """Two nodes that differ in an attribute at most."""
    kind, name, values = g.rng.choice([("LeakyRelu", "alpha", [0.1, 0.5]), ("Elu", "alpha", [1.0, 3.0]),
                                       ("Softmax", "axis", [-1, 1]), ("CumSum", "reverse", [0, 1])])
    more = [g.const(1, np.int64)] if kind == "CumSum" else []
    a, b = (g.op(kind, x, *more, **{name: g.rng.choice(values)}) for _ in range(2))
    return g.op("Sub", a, g.op("Mul", b, g.const(0.5)))


def looked_up(g, ids, positions):
    """GatherElements: from one row, from one row repeated, from rows that differ; [batch, sequence, 1]."""
    kind = g.rng.choice(["one", "repeated", "differ", "column"])
    if kind == "column":
        return g.op("GatherElements", g.weight(40, 1, scale=1.0), g.op("Unsqueeze", positions, g.ints(1)), axis=0)
    table = g.weight(3 if kind == "differ" else 1, 40, scale=1.0)
    if kind == "repeated" or (kind == "differ" and g.chance(0.5)):
        table = g.op("Expand", table, g.ints(3, 40))
    if kind == "one":
        ids = g.op("Unsqueeze", positions, g.ints(0))
    return g.op("Unsqueeze", g.op("GatherElements", table, ids, axis=1), g.ints(-1))


def row_step(g, x, width, length, positions):
    kind = g.rng.choice(["reversed", "there and back", "quantised", "branches", "twins", "looked up", "sequence first",
                         "flags", "outer"])
    if kind == "reversed":
        return g.either("Add", x, g.op("Slice", x, g.ints(-1), g.ints(-2**62), g.ints(2), g.ints(-1)))
    if kind == "there and back":
        y = g.op("Cast", moved(g, g.op("Cast", x, to=g.rng.choice([I64, BOOL, F64, F16]))), to=F32)
        return g.either("Add", x, y)  # rows stay different, since a norm of equal numbers is noise
    if kind == "quantised":
        return quantised(g, x)
    if kind == "branches":
        return branches(g, x, width, length)
    if kind == "twins":
        return g.either("Add", x, twins(g, x))
    if kind == "looked up":
        return g.either("Add", x, looked_up(g, "input_ids", positions))
    if kind == "sequence first":  # the same numbers as rows of another shape
        b, s = (g.op("Slice", g.op("Shape", x), g.ints(i), g.ints(i + 1)) for i in (0, 1))
        y = g.op("Reshape", x, g.op("Concat", s, b, g.ints(width), axis=0))
        return g.op("Reshape", g.op("CumSum", y, g.const(1, np.int64)), g.op("Shape", x))
    if kind == "flags":  # booleans that follow from sizes
        sizes = g.op("Gather", g.op("Shape", x), g.ints(2, 2), axis=0)
        flags = g.op("Equal", sizes, g.ints(width + g.rng.choice([0, 1]), width))
        return g.either("Mul", x, g.reduce("ReduceSum", g.op("Where", flags, g.const([0.5, 1.0]), g.const([2.0, 3.0])), 0))
    total = g.op("Reshape", g.op("ReduceSum", g.op("Sin", x), keepdims=0), g.ints(1))
    g.extra.append(g.op("MatMul", total, g.weight(1, width)))
    return x


def embedded(g, ids, positions, width):
    """Rows of tables and their sum, which may be normalised."""
    def rows(of, scale):
        table, stored = g.np.normal(0, scale, (40, width)), np.float32
        if g.half and g.chance(0.5):
            stored = np.float16
        elif g.chance(0.03):
            stored = np.float64
        y = g.op("Gather", g.const(table, stored), of, axis=0)
        return y if stored == np.float32 else g.op("Cast", y, to=F32)
    x = rows(ids, 1.0)
    for _ in range(g.rng.choice([0, 0, 1, 1, 2, 3])):
        x = g.either("Add", x, rows(positions if g.chance(0.6) else ids, 0.3))
    if g.chance(0.03):  # looked up along the other axis
        g.inputs.append(helper.make_tensor_value_info("columns", I64, [width]))
        x = g.either("Add", x, g.op("Gather", g.weight(1, 40), "columns", axis=1))
    return x


def residual(g, x, y, width, positions):
    """x + y, in which one of them may be broadcast; the sum may be read before it is normalised."""
    if g.chance(0.05):
        y = g.op("Tanh", g.op("Gather", g.weight(40, width), positions, axis=0))
    total = g.either("Add", x, y)
    if g.chance(0.05):
        g.extra.append(g.op("Relu", total))
    return total


def transformer(rng):
    g = Graph(rng)
    width = rng.choice([8, 12, 16])
    g.inputs = [helper.make_tensor_value_info(n, I64, ["batch", "sequence"]) for n in ("input_ids", "attention_mask")]
    shape = g.op("Shape", "input_ids")
    length = g.op("Squeeze", g.op("Gather", shape, g.ints(1), axis=0), g.ints(0))
    positions = g.op("Range", g.const(0, np.int64), length, g.const(1, np.int64))
    x = embedded(g, "input_ids", positions, width)
    if g.chance(0.4):
        x = row_step(g, x, width, length, positions)
    if g.chance(0.5):
        x = layer_norm(g, x, width)
    for _ in range(rng.choice([1, 1, 2])):
        way = rng.choice(["post", "pre", "parallel"])
        inner = layer_norm(g, x, width) if way != "post" else x
        a = attention(g, inner, width, "attention_mask", positions)
        if way == "parallel":
            x = g.either("Add", g.either("Add", x, a), feed_forward(g, inner, width))
            continue
        x = residual(g, x, a, width, positions)
        x = layer_norm(g, x, width) if way == "post" else x
        f = feed_forward(g, layer_norm(g, x, width) if way == "pre" else x, width)
        x = residual(g, x, f, width, positions)
        x = layer_norm(g, x, width) if way == "post" else x
    if g.chance(0.2):
        m = g.op("Unsqueeze", g.op("Cast", "attention_mask", to=F32), g.ints(-1))
        total = g.op("ReduceSum", g.op("Mul", x, m), g.ints(1), keepdims=0)
        x = g.op("Div", total, g.op("Clip", g.op("ReduceSum", m, g.ints(1), keepdims=0), g.const(1e-9)))
    return g.model([x])


# ---- convolutional networks ----

def per_channel(g, kind, y, out, size):
    """y with numbers added or multiplied: one, one per channel, or, not to be mistaken for those, one per row or column."""
    shapes = [(1, out, 1, 1), (out, 1, 1), (1,), ()]
    if size[1] == out and g.chance(0.7):
        shapes = [(1, 1, 1, out), (out,)]
    elif size[0] == out and g.chance(0.7):
        shapes = [(1, 1, out, 1), (out, 1)]
    return g.either(kind, y, g.weight(*g.rng.choice(shapes)))


def convolution(g, x, channels, size):
    """(output, its channels, its height and width)"""
    kernel, stride = g.rng.choice([1, 3]), g.rng.choice([1, 1, 2])
    if g.chance(0.2):
        x = g.op("Pad", x, g.ints(0, 0, 1, 1, 0, 0, 1, 1), g.const(0.0 if g.chance(0.7) else 1.0))
        size = [n + 2 for n in size]
    size = [(n - 1) // stride + 1 for n in size]
    out = g.rng.choice([channels, 4, 6, size[1]])
    group = g.rng.choice([1, 1, channels]) if out % channels == 0 else 1
    inputs = [x, g.weight(out, channels // group, kernel, kernel)] + ([g.weight(out)] if g.chance(0.5) else [])
    y = g.op("Conv", *inputs, kernel_shape=[kernel, kernel], pads=[kernel // 2] * 4, group=group, strides=[stride] * 2)
    raw = y
    if g.chance(0.6):
        y = g.op("BatchNormalization", y, g.weight(out), g.weight(out), g.weight(out),
                 g.const(g.np.uniform(0.01 if g.chance(0.5) else 0.5, 2, out)), epsilon=g.rng.choice([1e-5, 1e-3, 0.1]))
    for kind in ("Mul", "Add"):
        if g.chance(0.2):
            y = per_channel(g, kind, y, out, size)
    if y != raw and g.chance(0.1):
        y = g.either("Add", y, raw)
    return y, out, size


def written_activation(g, x, kind):
    """SiLU, HardSwish and Mish from their parts, and what only looks like them."""
    near = g.chance(0.3)
    if kind == "silu":
        y = g.either("Mul", x, g.const(g.rng.choice([1.702, 1.5, -1.0]))) if g.chance(0.4) else x
        return g.either("Mul", x, g.op("Sigmoid", y))
    if kind == "mish":
        return g.either("Mul", x, g.op("Tanh", g.op("Softplus" if not near else "Relu", x)))
    if g.chance(0.4):
        alpha, beta = g.rng.choice([(0.2, 0.5), (1 / 6, 0.4)]) if near else (1 / 6, 0.5)
        return g.either("Mul", x, g.op("HardSigmoid", x, alpha=alpha, beta=beta))
    three, six, by = g.rng.choice([(2.5, 6.0, 6.0), (3.0, 5.0, 6.0), (3.0, 6.0, 5.0)]) if near else (3.0, 6.0, 6.0)
    y = g.op("Clip", g.either("Add", x, g.const(three)), g.const(0.0), g.const(six))

    def divide(v):
        return g.op("Div", v, g.const(by)) if g.chance(0.5) else g.either("Mul", v, g.const(1 / by))
    return g.either("Mul", x, divide(y)) if g.chance(0.5) else divide(g.either("Mul", x, y))


def quantised_convolution(g, x, channels, size):
    """Between DequantizeLinear and QuantizeLinear; scales are powers of two, so that sums of floats are exact too."""
    out, byte = 4, g.rng.choice([np.uint8, np.int8])
    low = 0 if byte == np.uint8 else -128
    by_map = g.opset >= 13 and g.chance(0.6)
    w_scale = 2.0 ** -g.np.integers(5, 8, out) if by_map else 2.0 ** -6
    axis = {"axis": 0} if by_map else {}
    pair = g.const(2.0 ** -5), g.const(low + g.rng.choice([0, 120]), byte)
    x = g.op("DequantizeLinear", g.op("QuantizeLinear", x, *pair), *pair)
    w = g.op("DequantizeLinear", g.const(g.np.integers(-20, 21, (out, channels, 3, 3)), np.int8), g.const(w_scale), **axis)
    inputs = [x, w]
    if g.chance(0.6):
        wrong = g.rng.choice([1.0, 1.0, 8.0])
        inputs.append(g.op("DequantizeLinear", g.const(g.np.integers(-900, 900, out), np.int32), g.const(wrong * 2.0 ** -5 * w_scale), **axis))
    y = g.op("Conv", *inputs, pads=[1] * 4)
    if g.chance(0.6):
        y = g.op("Relu", y) if g.chance(0.5) else g.op("Clip", y, g.const(0.0), g.const(g.rng.choice([1.0, 40.0])))
    pair = g.const(2.0 ** -3), g.const(low + g.rng.choice([0, 90]), byte)
    return g.op("DequantizeLinear", g.op("QuantizeLinear", y, *pair), *pair), out, size


def convolutional(rng):
    g = Graph(rng)
    g.inputs = [helper.make_tensor_value_info("pixels", F32, ["batch", 3, 9, 11])]
    x, channels, size = "pixels", 3, [9, 11]
    if g.chance(0.4):
        x, channels, size = quantised_convolution(g, x, channels, size)
        if g.chance(0.5):
            return g.model([x])
    for _ in range(rng.choice([2, 3, 4])):
        y, out, size = convolution(g, x, channels, size)
        kind = rng.choice(["Relu", "HardSwish", "Sigmoid", "LeakyRelu", "clip", "silu", "hard", "mish", "none"])
        if kind == "clip":
            y = g.op("Clip", y, g.const(0.0), g.const(6.0))
        elif kind in ("silu", "hard", "mish"):
            y = written_activation(g, y, kind)
        elif kind != "none" and (kind != "HardSwish" or g.opset >= 14):
            y = g.op(kind, y)
        if g.chance(0.4):
            z = g.op("Conv", y, g.weight(out, out, 1, 1))
            y = g.either("Add", y, z)
            y = g.op("Relu", y) if g.chance(0.5) else y
        if g.chance(0.2):
            y = g.op("Transpose", g.op("Transpose", y, perm=[0, 2, 3, 1]), perm=[0, 3, 1, 2])
        x, channels = y, out
    if g.chance(0.5):
        x = g.op("Flatten", g.op("GlobalAveragePool", x))
        x = linear(g, x, channels, 5)
    return g.model([x])
