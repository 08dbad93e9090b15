#!/usr/bin/env python3
"""QLinearConv and ConvInteger of random shapes, types and zero points against their definition in integers. LIBRARY [--cases N] [--seed S]

Zero points of the weights are those at which the weights less their zero point need 8, 9 or more bits; they are constants or
inputs, one or one per map. Every result must be the same number.
"""
import argparse
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools")]

import pith_ctypes  # noqa: E402

KINDS = {np.uint8: (TensorProto.UINT8, 0, 255), np.int8: (TensorProto.INT8, -128, 127)}
X_SCALE, Y_SCALE = np.float32(0.02), np.float32(0.05)
ZEROS = {np.uint8: [0, 1, 120, 128, 254, 255], np.int8: [0, -128, -127, 5, 127]}


def draw(rng):
    """The tensors of a case and its attributes."""
    axes, size, step = int(rng.integers(1, 3)), int(rng.choice([1, 2, 3, 5])), int(rng.integers(1, 3))
    channels = int(rng.choice([1, 3, 8, 16, 24, 33, 64, 70, 96, 130]))
    group = channels if rng.random() < 0.7 else 1
    maps = channels if group > 1 else int(rng.choice([1, 5, 16, 40]))
    x_type, w_type = (rng.choice([np.uint8, np.int8]) for _ in range(2))
    sides = [int(rng.integers(size, 12)) for _ in range(axes - 1)] + [int(rng.integers(size, 90))]

    def of(kind, shape):
        return rng.integers(KINDS[kind][1], KINDS[kind][2] + 1, shape).astype(kind)

    return {"x": of(x_type, [2, channels, *sides]), "xz": of(x_type, []), "w": of(w_type, [maps, channels // group, *[size] * axes]),
            "wz": rng.choice(ZEROS[w_type], maps if rng.random() < 0.5 else None).astype(w_type),
            "ws": (0.0005 + 0.001 * rng.random(maps if rng.random() < 0.5 else ())).astype(np.float32),
            "b": rng.integers(-2000, 2000, maps).astype(np.int32)}, {"group": group, "strides": [step] * axes, "pads": [size // 2] * 2 * axes}


def sums_of(t, group, strides, pads):
    """The exact sums [batch, maps, …]."""
    axes = len(strides)
    w = t["w"].astype(np.int64) - t["wz"].astype(np.int64).reshape(-1, *[1] * (axes + 1))
    x = np.pad(t["x"].astype(np.int64) - int(t["xz"]), [(0, 0)] * 2 + [(p, p) for p in pads[:axes]])
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=tuple(range(2, 2 + axes)))
    windows = windows[(slice(None), slice(None), *[slice(None, None, s) for s in strides])]
    maps, channels = len(w) // group, w.shape[1]
    last = tuple(range(windows.ndim - axes, windows.ndim))
    return np.concatenate([np.moveaxis(np.tensordot(windows[:, g * channels:(g + 1) * channels], w[g * maps:(g + 1) * maps],
                                                    ((1, *last), tuple(range(1, 2 + axes)))), -1, 1) for g in range(group)], 1)


def wanted(t, attributes, integer):
    sums = sums_of(t, **attributes)
    if integer:
        return sums
    each = [1, -1] + [1] * (sums.ndim - 2)
    _, low, high = KINDS[t["x"].dtype.type]
    scale = (X_SCALE * np.broadcast_to(t["ws"], len(t["w"])) / Y_SCALE).reshape(each)
    scaled = np.rint((sums + t["b"].reshape(each)).astype(np.float32) * scale)
    return np.clip(scaled, low - int(t["xz"]), high - int(t["xz"])).astype(np.int64) + int(t["xz"])


def model_of(t, attributes, integer, fixed):
    """The model and its feeds; the weights' zero point is a constant or an input."""
    values = t | {"xs": X_SCALE, "ys": Y_SCALE}
    names = ["x", "w", "xz", "wz"] if integer else ["x", "xs", "xz", "w", "ws", "wz", "ys", "xz", "b"]
    fed = ["x"] if fixed else ["x", "wz"]
    kind = KINDS[t["x"].dtype.type][0]
    node = helper.make_node("ConvInteger" if integer else "QLinearConv", names, ["y"], **attributes)
    graph = helper.make_graph(
        [node], "convolved", [helper.make_tensor_value_info(n, KINDS[t[n].dtype.type][0], t[n].shape) for n in fed],
        [helper.make_tensor_value_info("y", TensorProto.INT32 if integer else kind, None)],
        [numpy_helper.from_array(np.asarray(values[n]), n) for n in sorted(set(names) - set(fed))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), {n: t[n] for n in fed}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("library")
    parser.add_argument("--cases", type=int, default=250)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for number in range(arguments.cases):
        rng = np.random.default_rng([arguments.seed, number])
        t, attributes = draw(rng)
        integer, fixed = rng.random() < 0.3, rng.random() < 0.7
        content, feeds = model_of(t, attributes, integer, fixed)
        model = pith_ctypes.Model(arguments.library, content)
        found = model.run(feeds)[0]
        model.close()
        right = wanted(t, attributes, integer)
        if found.shape != right.shape or (found != right).any():
            sys.exit(f"error: seed {arguments.seed}, case {number}: {attributes}, {'ConvInteger' if integer else 'QLinearConv'} of "
                     f"{[(n, a.dtype.name, a.shape) for n, a in t.items()]} gives {found.shape}, not {right.shape}, or other numbers")
    print(f"{arguments.cases} convolutions are those of the definition")


if __name__ == "__main__":
    main()
