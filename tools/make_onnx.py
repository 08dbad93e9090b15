#!/usr/bin/env python3
"""A BERT sentence encoder's Hugging Face directory (config.json, model.safetensors) to one ONNX file.

usage: make_onnx.py MODEL_DIR OUT.onnx [--fused]

Plain: opset 17, spelled as torch.onnx's TorchScript exporter spells BertModel with eager attention. --fused: the
com.microsoft operators that ONNX Runtime's own transformer optimizer writes, its fastest form. Used by the golden test
(the same vectors from safetensors and from ONNX) and by the benchmarks (the peer gets its best file).
"""
import argparse
import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file


class Builder:
    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = {k.removeprefix("bert."): v.astype(np.float32) for k, v in load_file(folder / "model.safetensors").items()
                        if v.dtype != np.int64}
        self.nodes, self.initializers, self.known = [], [], set()

    def const(self, name, array):
        if name not in self.known:
            self.known.add(name)
            self.initializers.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def ints(self, *values):
        return self.const("i64_" + "_".join(map(str, values)), np.array(values, np.int64))

    def scalar(self, value):
        return self.const(f"f32_{value}", np.array(value, np.float32))

    def node(self, op, *inputs, name, domain="", outputs=1, **attributes):
        out = [name] + [f"{name}_{i}" for i in range(1, outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), out, name=name, domain=domain, **attributes))
        return name

    def weight(self, name, transpose=False):
        array = self.weights[name + ".weight"]
        return self.const(name + (".weight_t" if transpose else ".weight"), array.T if transpose else array)

    def bias(self, name):
        return self.const(name + ".bias", self.weights[name + ".bias"])

    def linear(self, x, name):
        y = self.node("MatMul", x, self.weight(name, True), name=f"{name}/MatMul")
        return self.node("Add", self.bias(name), y, name=f"{name}/Add")

    def norm(self, x, name):
        return self.node("LayerNormalization", x, self.weight(name), self.bias(name), name=name, axis=-1,
                         epsilon=self.config["layer_norm_eps"])

    def plain(self):
        heads, size = self.config["num_attention_heads"], self.config["hidden_size"] // self.config["num_attention_heads"]
        mask = self.node("Unsqueeze", "attention_mask", self.ints(1), name="mask/Unsqueeze")
        mask = self.node("Unsqueeze", mask, self.ints(2), name="mask/Unsqueeze_1")
        mask = self.node("Cast", mask, name="mask/Cast", to=TensorProto.FLOAT)
        mask = self.node("Sub", self.scalar(1.0), mask, name="mask/Sub")
        mask = self.node("Mul", mask, self.scalar(float(np.finfo(np.float32).min)), name="mask/Mul")

        def dim(x, axis, name):
            d = self.node("Shape", x, name=f"{name}/Shape_{axis}")
            d = self.node("Gather", d, self.const(f"i64s_{axis}", np.array(axis, np.int64)), name=f"{name}/Gather_{axis}", axis=0)
            return self.node("Unsqueeze", d, self.ints(0), name=f"{name}/Unsqueeze_{axis}")

        length = dim("input_ids", 1, "embeddings")
        position = self.node("Slice", self.const("position_ids", np.arange(self.config["max_position_embeddings"])[None]),
                             self.ints(0), length, self.ints(1), name="embeddings/Slice")
        x = self.node("Gather", self.weight("embeddings.word_embeddings"), "input_ids", name="embeddings/word")
        kind = self.node("Gather", self.weight("embeddings.token_type_embeddings"), "token_type_ids", name="embeddings/type")
        x = self.node("Add", x, kind, name="embeddings/Add")
        place = self.node("Gather", self.weight("embeddings.position_embeddings"), position, name="embeddings/position")
        x = self.norm(self.node("Add", x, place, name="embeddings/Add_1"), "embeddings.LayerNorm")
        for i in range(self.config["num_hidden_layers"]):
            base = f"encoder.layer.{i}"
            parts = {}
            for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
                name = f"{base}.attention.self.{part}"
                y = self.linear(x, name)
                shape = self.node("Concat", dim(y, 0, name), dim(y, 1, name), self.ints(heads), self.ints(size),
                                  name=f"{name}/Concat", axis=0)
                y = self.node("Reshape", y, shape, name=f"{name}/Reshape")
                parts[part] = self.node("Transpose", y, name=f"{name}/Transpose", perm=order)
            name = f"{base}.attention.self"
            s = self.node("MatMul", parts["query"], parts["key"], name=f"{name}/scores")
            s = self.node("Div", s, self.scalar(float(size) ** 0.5), name=f"{name}/Div")
            s = self.node("Add", s, mask, name=f"{name}/Add")
            s = self.node("Softmax", s, name=f"{name}/Softmax", axis=-1)
            s = self.node("MatMul", s, parts["value"], name=f"{name}/context")
            s = self.node("Transpose", s, name=f"{name}/Transpose", perm=[0, 2, 1, 3])
            shape = self.node("Concat", dim(s, 0, name), dim(s, 1, name), self.ints(heads * size), name=f"{name}/Concat", axis=0)
            s = self.node("Reshape", s, shape, name=f"{name}/Reshape")
            s = self.linear(s, f"{base}.attention.output.dense")
            x = self.norm(self.node("Add", s, x, name=f"{base}.attention.output/Add"), f"{base}.attention.output.LayerNorm")
            h = self.linear(x, f"{base}.intermediate.dense")
            e = self.node("Div", h, self.scalar(2.0 ** 0.5), name=f"{base}.intermediate/Div")
            e = self.node("Erf", e, name=f"{base}.intermediate/Erf")
            e = self.node("Add", e, self.scalar(1.0), name=f"{base}.intermediate/Add_1")
            h = self.node("Mul", h, e, name=f"{base}.intermediate/Mul")
            h = self.node("Mul", h, self.scalar(0.5), name=f"{base}.intermediate/Mul_1")
            h = self.linear(h, f"{base}.output.dense")
            x = self.norm(self.node("Add", h, x, name=f"{base}.output/Add"), f"{base}.output.LayerNorm")
        return x

    def fused(self):
        eps, ms = self.config["layer_norm_eps"], "com.microsoft"
        w = self.weights
        mask = self.node("Cast", "attention_mask", name="mask/Cast", to=TensorProto.INT32)
        length = self.node("ReduceSum", mask, self.ints(1), name="mask/ReduceSum", keepdims=0)
        ids = self.node("Cast", "input_ids", name="ids/Cast", to=TensorProto.INT32)
        kinds = self.node("Cast", "token_type_ids", name="types/Cast", to=TensorProto.INT32)
        x = self.node("EmbedLayerNormalization", ids, kinds, self.weight("embeddings.word_embeddings"),
                      self.weight("embeddings.position_embeddings"), self.weight("embeddings.token_type_embeddings"),
                      self.weight("embeddings.LayerNorm"), self.bias("embeddings.LayerNorm"), name="embeddings",
                      domain=ms, outputs=2, epsilon=eps)
        for i in range(self.config["num_hidden_layers"]):
            base = f"encoder.layer.{i}"
            qkv = [f"{base}.attention.self.{p}" for p in ("query", "key", "value")]
            a = self.node("Attention", x, self.const(f"{base}.qkv", np.concatenate([w[n + ".weight"].T for n in qkv], 1)),
                          self.const(f"{base}.qkv_bias", np.concatenate([w[n + ".bias"] for n in qkv])), length,
                          name=f"{base}.attention", domain=ms, num_heads=self.config["num_attention_heads"])
            a = self.node("MatMul", a, self.weight(f"{base}.attention.output.dense", True), name=f"{base}.attention/MatMul")
            x = self.node("SkipLayerNormalization", a, x, self.weight(f"{base}.attention.output.LayerNorm"),
                          self.bias(f"{base}.attention.output.LayerNorm"), self.bias(f"{base}.attention.output.dense"),
                          name=f"{base}.attention/norm", domain=ms, epsilon=eps)
            h = self.node("MatMul", x, self.weight(f"{base}.intermediate.dense", True), name=f"{base}.intermediate/MatMul")
            h = self.node("BiasGelu", h, self.bias(f"{base}.intermediate.dense"), name=f"{base}.intermediate/Gelu", domain=ms)
            h = self.node("MatMul", h, self.weight(f"{base}.output.dense", True), name=f"{base}.output/MatMul")
            x = self.node("SkipLayerNormalization", h, x, self.weight(f"{base}.output.LayerNorm"),
                          self.bias(f"{base}.output.LayerNorm"), self.bias(f"{base}.output.dense"),
                          name=f"{base}.output/norm", domain=ms, epsilon=eps)
        return x

    def model(self, fused):
        last = self.fused() if fused else self.plain()
        self.nodes[-1].output[0] = "last_hidden_state"
        assert last != "last_hidden_state"
        free = ["batch", "sequence"]
        inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, free) for n in ("input_ids", "attention_mask", "token_type_ids")]
        output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, free + [self.config["hidden_size"]])
        graph = helper.make_graph(self.nodes, "bert", inputs, [output], self.initializers)
        opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid("com.microsoft", 1)] if fused else [])
        return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="pith")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_dir", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--fused", action="store_true")
    args = parser.parse_args()
    temporary = args.out.with_name(args.out.name + ".part")
    onnx.save(Builder(args.model_dir).model(args.fused), temporary)
    temporary.rename(args.out)


if __name__ == "__main__":
    main()
