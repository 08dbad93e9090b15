"""Draws networks of quantised pictures for fuzz_fusions.py: convolutions, sums and pools of bytes, written as one
operator or between DequantizeLinear and QuantizeLinear, with near misses of what the passes qdq and channels_last take."""
import numpy as np
from onnx import TensorProto, helper

from fusion_graphs import F32, I64, Graph, per_channel

BYTES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}


class Picture:
    """Bytes [batch, channels, *size]. Scales are powers of two and zero points any number."""

    def __init__(self, g, name, byte, channels, size):
        self.name, self.byte, self.channels, self.size = name, byte, channels, size
        g.kinds[name] = BYTES[byte]


def numbers(g, byte, exponent=-5):
    """A scale and a zero point."""
    low = 0 if byte == np.uint8 else -128
    return [g.const(2.0 ** exponent), g.const(low + g.rng.choice([0, 0, 90, 128, 255]), byte)]


def any_byte(g):
    return np.uint8 if g.chance(0.7) else np.int8


def real(g, x, exponent=-5):
    """A picture dequantised, perhaps with a scale for each channel."""
    if g.chance(0.05):
        scales = g.const(2.0 ** -g.np.integers(4, 7, x.channels).astype(np.float32))
        return g.op("DequantizeLinear", x.name, scales, g.const(np.zeros(x.channels), x.byte), axis=1)
    return g.op("DequantizeLinear", x.name, *numbers(g, x.byte, exponent))


def quantise(g, y, channels, size, exponent=-4):
    byte = any_byte(g)
    return Picture(g, g.op("QuantizeLinear", y, *numbers(g, byte, exponent)), byte, channels, size)


def byte_convolution(g, x):
    """QLinearConv, or the same between DequantizeLinear and QuantizeLinear."""
    kernel, stride = g.rng.choice([1, 3]), g.rng.choice([1, 1, 1, 2])
    out = g.rng.choice([x.channels, x.channels, 4, 8])
    group = g.rng.choice([1, 1, x.channels]) if out % x.channels == 0 else 1
    byte, w_byte = any_byte(g), any_byte(g)
    by_map = g.chance(0.5)
    centre = 0 if w_byte == np.int8 else 128
    w = g.const(centre + g.np.integers(-20, 21, (out, x.channels // group, kernel, kernel)), w_byte)
    w_scale = 2.0 ** -(g.np.integers(5, 8, out) if by_map else np.array(6))
    w_numbers = [g.const(w_scale), g.const(np.full(w_scale.shape, centre), w_byte)]
    bias = g.np.integers(-900, 900, out)
    if g.chance(0.1):  # sums that do not fit 32 bits
        bias[0] = g.rng.choice([2 ** 31 - 1, -2 ** 31])
    places = {"pads": [kernel // 2] * 4, "strides": [stride] * 2, "group": group}
    size = [(n - 1) // stride + 1 for n in x.size]
    if g.chance(0.5):
        bias[0] = min(max(bias[0], -900), 900)
        y = g.op("QLinearConv", x.name, *numbers(g, x.byte), w, *w_numbers, *numbers(g, byte, -3),
                 *([g.const(bias, np.int32)] if g.chance(0.6) else []), **places)
        return Picture(g, y, byte, out, size)
    axis = {"axis": 0} if by_map else {}
    inputs = [real(g, x), g.op("DequantizeLinear", w, *w_numbers, **axis)]
    if g.chance(0.6):
        inputs.append(g.op("DequantizeLinear", g.const(bias, np.int32), g.const(2.0 ** -5 * w_scale), **axis))
    return quantise(g, byte_limits(g, g.op("Conv", *inputs, **places)), out, size, -3)


def byte_limits(g, y):
    kind = g.rng.choice(["none", "none", "Relu", "clip"])
    if kind == "clip":
        return g.op("Clip", y, g.const(0.0 if g.chance(0.5) else -1.0), g.const(g.rng.choice([1.0, 40.0])))
    return g.op("Relu", y) if kind == "Relu" else y


def byte_sum(g, a, b):
    if g.chance(0.3):
        byte = any_byte(g)
        y = g.op("QLinearAdd", a.name, *numbers(g, a.byte), b.name, *numbers(g, b.byte, -6), *numbers(g, byte, -4),
                 domain="com.microsoft")
        return Picture(g, y, byte, a.channels, a.size)
    y = real(g, b, -6)
    if g.chance(0.3):  # a term that is broadcast
        y = g.op("GlobalAveragePool", y)
        y = g.op("QuantizeLinear", y, *numbers(g, np.uint8, -4))
        g.kinds[y] = BYTES[np.uint8]
        y = g.op("DequantizeLinear", y, *numbers(g, np.uint8))
    return quantise(g, byte_limits(g, g.either("Add", real(g, a), y)), a.channels, a.size)


def byte_pool(g, x):
    kernel, stride, pads = g.rng.choice([(2, 2, 0), (3, 1, 1), (3, 2, 1), (1, 1, 0)])
    attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pads] * 4}
    size = [(n + 2 * pads - kernel) // stride + 1 for n in x.size]
    if g.chance(0.2):
        y, places = g.op("MaxPool", x.name, outputs=2, **attributes)
        g.extra.append(places)
        g.kinds[places] = I64
    else:
        y = g.op("MaxPool", x.name, **attributes)
    return Picture(g, y, x.byte, x.channels, size)


def byte_step(g, x):
    """Floats between two quantisations, for each place or for each channel."""
    y = real(g, x)
    kind = g.rng.choice(["Sigmoid", "Mul", "Sub", "per channel", "per channel", "by row"])
    if kind == "Sigmoid":
        y = g.op(kind, y)
    elif kind == "per channel":
        y = per_channel(g, "Mul", y, x.channels, x.size)
    elif kind == "by row":
        y = g.op("Softmax", y, axis=-1)
    else:
        y = g.op(kind, *([g.const(0.75), y] if g.chance(0.5) else [y, g.const(0.75)]))
    return quantise(g, y, x.channels, x.size)


def network(rng):
    g = Graph(rng)
    channels, size = 4, rng.choice([[9, 11], [4, 4], [8, 4]])
    g.inputs = [helper.make_tensor_value_info("pixels", F32, ["batch", channels, *size])]
    pictures = [quantise(g, "pixels", channels, size)]
    for _ in range(rng.choice([2, 3, 5, 7])):
        x = pictures[-1] if g.chance(0.8) else rng.choice(pictures)
        others = [p for p in pictures if (p.channels, p.size) == (x.channels, x.size) and (p is not x or g.chance(0.2))]
        way = rng.choice(["convolution"] * 4 + ["sum"] * 3 + ["pool", "step", "step"])
        if way == "sum" and others:
            y = byte_sum(g, x, rng.choice(others))
        elif way == "pool" and min(x.size) > 2:
            y = byte_pool(g, x)
        elif way == "step":
            between = g.chance(0.7)  # of two convolutions
            y = byte_step(g, byte_convolution(g, x) if between else x)
            y = byte_convolution(g, y) if between else y
        else:
            y = byte_convolution(g, x)
        pictures.append(y)
        if g.chance(0.05):
            g.extra.append(y.name)
    return g.model([real(g, pictures[-1])])
