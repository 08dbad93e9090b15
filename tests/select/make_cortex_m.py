#!/usr/bin/env python3
"""Writes the network of examples/selective_build/cortex_m: a picture of 8 x 8 to four classes; its weights are drawn.

usage: make_cortex_m.py NETWORK.onnx
"""
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

draw = np.random.default_rng(7)


def weight(name, *shape):
    return numpy_helper.from_array((draw.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32), name)


nodes = [helper.make_node("Conv", ["x", "w1", "b1"], ["c"], name="conv", pads=[1, 1, 1, 1]),
         helper.make_node("Relu", ["c"], ["r"], name="relu"),
         helper.make_node("MaxPool", ["r"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
         helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
         helper.make_node("Gemm", ["f", "w2", "b2"], ["g"], name="dense", transB=1),
         helper.make_node("Softmax", ["g"], ["y"], name="softmax", axis=1)]
value = helper.make_tensor_value_info
graph = helper.make_graph(nodes, "network", [value("x", onnx.TensorProto.FLOAT, [1, 1, 8, 8])], [value("y", onnx.TensorProto.FLOAT, [1, 4])],
                          [weight("w1", 8, 1, 3, 3), weight("b1", 8), weight("w2", 4, 128), weight("b2", 4)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10, producer_name="make_cortex_m.py")
with open(sys.argv[1], "wb") as f:
    f.write(model.SerializeToString(deterministic=True))
