#!/usr/bin/env python3
"""Every dtype that the standard lists for an operator, tried with the ONNX project's own test models.

usage: audit_types.py [--library PATH] [OPERATOR...]
The node tests are unpacked beside the library.
A one-node model of the node suite is taken as it is, one type parameter of the operator's schema after the other is set to
each dtype the schema allows, the stored inputs are converted, and Pith has to run the model. Where both dtypes are
floats, the results are compared, as far as the narrower one's digits go. Prints what is refused or differs; exit status 1
if anything is. Stored inputs that do not fit a type (negative ones, numbers beyond its range) become small ones.
"""
import argparse
import collections
import ctypes
import os
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import pith_ctypes as pith

NAMES = {"tensor(float)": "FLOAT", "tensor(double)": "DOUBLE"}
PACKED = {TensorProto.UINT4: 2, TensorProto.INT4: 2, TensorProto.FLOAT4E2M1: 2, TensorProto.UINT2: 4, TensorProto.INT2: 4}
WIDE = {TensorProto.FLOAT: 1e-4, TensorProto.DOUBLE: 1e-4, TensorProto.FLOAT16: 2e-2, TensorProto.BFLOAT16: 1e-1}
# The result is not a function of the input's numbers, or of so many of them that few digits say nothing.
NOT_COMPARED = {"Bernoulli", "Multinomial", "RandomNormalLike", "RandomUniformLike", "Dropout", "Cast", "CastLike", "BitCast",
                "ImageDecoder", "Det", "SequenceMap", "IsInf", "IsNaN", "QuantizeLinear", "EyeLike", "ConstantOfShape"}
# What the test models themselves fix: the target of a BitCast, dtypes inside of a body, the keys of a table.
BOUND = {("BitCast", "T1"), ("Loop", "V"), ("Scan", "V"), ("TfIdfVectorizer", "T"), ("LabelEncoder", "T1")}


def number_of(text):
    name = text.removeprefix("tensor(").removesuffix(")")
    return getattr(TensorProto, {"float": "FLOAT", "double": "DOUBLE"}.get(name, name.upper()), None)


def convert(x, to):
    """x as an array of TensorProto dtype `to`."""
    if to == TensorProto.STRING:
        return np.array([str(v) for v in x.reshape(-1)], object).reshape(x.shape)
    if x.dtype == object:
        x = np.arange(x.size).reshape(x.shape) % 3
    dtype = helper.tensor_dtype_to_np_dtype(to)
    if to in (TensorProto.COMPLEX64, TensorProto.COMPLEX128) or np.iscomplexobj(x):
        return np.asarray(x).real.astype(dtype)
    x = np.asarray(x).astype(np.float64)
    if to == TensorProto.BOOL:
        return x != 0
    if "int" in dtype.name:
        info = ml_dtypes.iinfo(dtype)
        x = np.where((x < int(info.min)) | (x > int(info.max)) | np.isnan(x), 1, np.trunc(x))
    elif to == TensorProto.FLOAT8E8M0:
        x = np.exp2(np.round(np.log2(np.abs(x) + 1e-3)))
    return x.astype(dtype)


class Runner(pith.Model):
    """Runs with tensors of any dtype, as TensorProto gives and takes them."""

    def run_protos(self, protos):
        session = ctypes.c_void_p()
        self.check(self.lib.pith_session_create(ctypes.byref(session), self.handle, ctypes.byref(self.error)))
        keep = []
        try:
            names = (ctypes.c_char_p * len(protos))(*[p.name.encode() for p in protos])
            inputs = (pith.Tensor * len(protos))()
            for t, p in zip(inputs, protos):
                if p.data_type == TensorProto.STRING:
                    raw = (pith.Str * len(p.string_data))(*[pith.Str(s, len(s)) for s in p.string_data])
                else:
                    raw = ctypes.create_string_buffer(p.raw_data, len(p.raw_data))
                keep.append(raw)
                t.data, t.bytes = ctypes.addressof(raw), len(p.raw_data) or ctypes.sizeof(raw) * bool(p.string_data)
                t.dtype, t.rank = p.data_type, len(p.dims)
                t.dims[: len(p.dims)] = list(p.dims)
            outputs = (pith.Tensor * self.lib.pith_model_output_count(self.handle))()
            self.check(self.lib.pith_session_run(session, outputs, names, inputs, ctypes.c_size_t(len(protos)), None,
                                                 ctypes.byref(self.error)))
            return [(t.dtype, list(t.dims[: t.rank]), ctypes.string_at(t.data, t.bytes) if t.bytes else b"")
                    for t in outputs]
        finally:
            self.lib.pith_session_destroy(session)


def floats(result):
    dtype, dims, raw = result
    if dtype in PACKED or dtype in (TensorProto.STRING, 32, 33):
        return None
    return np.frombuffer(raw, helper.tensor_dtype_to_np_dtype(dtype)).reshape(dims).astype(np.float64)


def proto(name, x, dtype):
    if dtype == TensorProto.STRING:
        return helper.make_tensor(name, dtype, x.shape, [str(v).encode() for v in x.reshape(-1)])
    t = numpy_helper.from_array(np.ascontiguousarray(x).reshape(x.shape), name)
    t.data_type = dtype
    return t


def node_tests(build):
    script = pathlib.Path(__file__).resolve().parents[1] / "conformance" / "node_tests.sh"
    return pathlib.Path(subprocess.run([script, build], env=os.environ | {"PITH_PYTHON": sys.executable}, check=True,
                                       capture_output=True, text=True).stdout.strip())


def templates(root, wanted):
    """(op, model, inputs) of suitable one-node models, each operator's smallest first."""
    found = collections.defaultdict(list)
    for folder in sorted(root.iterdir()):
        try:
            model = onnx.load(folder / "model.onnx")
        except FileNotFoundError:
            continue
        nodes = model.graph.node
        if len(nodes) != 1 or (wanted and nodes[0].op_type not in wanted) or "_expanded" in folder.name:
            continue
        paths = sorted(folder.glob("test_data_set_0/input_*.pb"), key=lambda p: int(p.stem[6:]))
        if any(v.type.WhichOneof("value") != "tensor_type" for v in model.graph.input):
            continue
        inputs = [onnx.load_tensor(str(p)) for p in paths]
        found[nodes[0].domain, nodes[0].op_type].append((sum(len(t.SerializeToString()) for t in inputs), folder.name,
                                                          model, inputs))
    for key, models in sorted(found.items()):
        yield key, sorted(models, key=lambda m: m[:2])


def attempt(library, model, inputs, parameter, dtype, schema):
    """Results with the parameter's inputs set to dtype."""
    own, protos = onnx.ModelProto.FromString(model.SerializeToString()), []
    node = own.graph.node[0]
    formal = {}
    for i, name in enumerate(node.input):
        declared = schema.inputs[min(i, len(schema.inputs) - 1)]
        formal[name] = declared.type_str
    for v, t in zip(own.graph.input, inputs):
        x = numpy_helper.to_array(t)
        if formal.get(v.name) == parameter:
            v.type.tensor_type.elem_type = dtype
            x = convert(x, dtype)
        protos.append(proto(v.name, x, v.type.tensor_type.elem_type))
    for o in own.graph.output:
        o.type.tensor_type.elem_type = 0
    for a in node.attribute:  # attributes that repeat the dtype
        if a.name in ("to", "dtype", "output_dtype") and a.type == onnx.AttributeProto.INT and \
                node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            a.i = 0
    runner = Runner(library, own.SerializeToString())
    try:
        return runner.run_protos(protos)
    finally:
        runner.close()


def audit(library, schema, model, inputs):
    """dtype → what went wrong, for every input parameter."""
    faults = {}
    formal = [schema.inputs[min(i, len(schema.inputs) - 1)].type_str for i in range(len(model.graph.node[0].input))]
    names = list(model.graph.node[0].input)
    present = {formal[names.index(v.name)]: v.type.tensor_type.elem_type for v in model.graph.input if v.name in names}
    for constraint in schema.type_constraints:
        parameter = constraint.type_param_str
        if parameter not in present or (schema.name, parameter) in BOUND:
            continue
        for text in constraint.allowed_type_strs:
            dtype = number_of(text) if text.startswith("tensor(") else None
            if dtype is None:
                continue
            try:
                got = attempt(library, model, inputs, parameter, dtype, schema)
                if schema.name in NOT_COMPARED or dtype not in WIDE or present[parameter] not in WIDE:
                    faults[parameter, text] = None
                    continue
                want = attempt(library, model, inputs, parameter, TensorProto.FLOAT, schema)
                fault = None
                for g, w in zip(map(floats, got), map(floats, want)):
                    if g is None or w is None or g.shape != w.shape or not g.size:
                        continue
                    spread = np.nanmax(np.abs(np.where(np.isfinite(w), w, 0))) + 1
                    if not np.allclose(g, w, WIDE[dtype], WIDE[dtype] * spread, equal_nan=True):
                        fault = "differs"
                faults[parameter, text] = fault
            except pith.PithError as failure:
                faults[parameter, text] = str(failure)[:150]
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default=pathlib.Path(__file__).resolve().parents[2] / "build" / "libpith.so")
    parser.add_argument("operators", nargs="*")
    options = parser.parse_args()
    tried = failed = 0
    for (domain, name), models in templates(node_tests(pathlib.Path(options.library).resolve().parent), set(options.operators)):
        best = {}
        for _, _, model, inputs in models[:6]:
            opset = next((o.version for o in model.opset_import if o.domain == domain), 1)
            schema = onnx.defs.get_schema(name, opset, domain)
            for key, fault in audit(options.library, schema, model, inputs).items():
                if key not in best or fault is None or (best[key] and fault == "differs"):
                    best[key] = fault if key not in best or best[key] is not None else None
        bad = {key: fault for key, fault in best.items() if fault}
        tried += len(best)
        failed += len(bad)
        for (parameter, text), fault in sorted(bad.items()):
            print(f"{domain or 'ai.onnx'}.{name} {parameter} {text}: {fault}")
    print(f"{tried} dtypes of operators tried, {failed} refused or different")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
