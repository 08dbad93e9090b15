#!/usr/bin/env python3
"""Writes the model of examples/selective_build/advanced: y = RowRange(SoftThreshold(x + bias, limit=1)).

usage: make_own_operators.py MODEL.onnx
"""
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

nodes = [helper.make_node("Add", ["x", "bias"], ["a"], name="add"),
         helper.make_node("SoftThreshold", ["a"], ["b"], name="threshold", domain="example", limit=1.0),
         helper.make_node("RowRange", ["b"], ["y"], name="range", domain="example")]
graph = helper.make_graph(nodes, "own_operators", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", 4])],
                          [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["rows"])],
                          [numpy_helper.from_array(np.array([0.5, 0, -0.5, 1], np.float32), "bias")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("example", 1)], ir_version=10,
                          producer_name="make_own_operators.py")
with open(sys.argv[1], "wb") as f:
    f.write(model.SerializeToString(deterministic=True))
