#!/usr/bin/env python3
"""`pith convert` beside onnx.printer and onnx.parser of the Python package: text that Pith writes parses there to an
equal model, text that onnx.printer writes parses here to one, and what Pith writes it reads back.

usage: compare_text.py PITH NODE_TESTS MODELS [--seed S]

Models are equal if they have the same fields after tensors are brought to one form (raw data), and without what the
syntax has no place for: doc strings and metadata of parts, names of subgraphs and constants that are no identifiers."""
import random
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnx.printer
from onnx import AttributeProto, TensorProto, TypeProto, helper, numpy_helper

PITH, NODES, MODELS = (Path(a).resolve() for a in sys.argv[1:4])
SEED = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 1
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
TYPE_WORDS = set("""float uint8 int8 uint16 int16 int32 int64 string bool float16 double uint32 uint64 complex64 complex128 bfloat16
float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz float8e8m0 uint4 int4 float4e2m1 uint2 int2 seq map optional
sparse_tensor opaque""".split())
SUB_BYTE = {TensorProto.UINT4, TensorProto.INT4, TensorProto.FLOAT4E2M1, TensorProto.UINT2, TensorProto.INT2}
INT32_WIDTH = {TensorProto.FLOAT16: 2, TensorProto.BFLOAT16: 2, TensorProto.INT16: 2, TensorProto.UINT16: 2, TensorProto.INT32: 4}


def plain(name):
    return bool(IDENTIFIER.match(name)) and name not in TYPE_WORDS


def raw_of(t):
    """The tensor's bytes, from whichever field holds them."""
    if t.HasField("raw_data"):
        return t.raw_data
    if t.float_data:
        return np.array(t.float_data, "<f4").tobytes()
    if t.double_data:
        return np.array(t.double_data, "<f8").tobytes()
    if t.int64_data:
        return np.array(t.int64_data, "<i8").tobytes()
    if t.uint64_data:
        return np.array(t.uint64_data, "<u8").astype("<u4" if t.data_type == TensorProto.UINT32 else "<u8").tobytes()
    width = INT32_WIDTH.get(t.data_type, 1)
    return b"".join((x & (256**width - 1)).to_bytes(width, "little") for x in t.int32_data)


def same_nans(raw, dtype):
    """All NaN of one sign are one: the syntax has no payloads."""
    kind = {TensorProto.FLOAT: "<f4", TensorProto.COMPLEX64: "<f4", TensorProto.DOUBLE: "<f8", TensorProto.COMPLEX128: "<f8"}.get(dtype)
    if not kind:
        return raw
    x = np.frombuffer(raw, kind).copy()
    odd = np.isnan(x)
    x[odd] = np.copysign(np.nan, x[odd])
    return x.tobytes()


def clean_tensor(t, in_attribute):
    t.ClearField("doc_string")
    t.ClearField("metadata_props")
    if t.data_location == TensorProto.EXTERNAL or t.data_type == TensorProto.STRING:
        pass
    else:
        raw = same_nans(raw_of(t), t.data_type)
        for field in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "raw_data", "data_location"):
            t.ClearField(field)
        t.raw_data = raw
    if not t.name or (in_attribute and not plain(t.name)):
        t.ClearField("name")


def clean_type(t):
    t.ClearField("denotation")
    kind = t.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        for d in getattr(t, kind).shape.dim:
            d.ClearField("denotation")
    elif kind in ("sequence_type", "optional_type"):
        clean_type(getattr(t, kind).elem_type)
    elif kind == "map_type":
        clean_type(t.map_type.value_type)
    elif kind == "opaque_type" and not t.opaque_type.domain:
        t.opaque_type.ClearField("domain")


def clean_values(values):
    for v in values:
        v.ClearField("doc_string")
        v.ClearField("metadata_props")
        clean_type(v.type)
        kind = v.type.WhichOneof("value")
        if kind is None or (kind in ("tensor_type",) and not v.type.tensor_type.elem_type):
            v.ClearField("type")


def clean_attribute(a):
    a.ClearField("doc_string")
    if a.ref_attr_name:
        return
    fields = {AttributeProto.FLOAT: "f", AttributeProto.INT: "i", AttributeProto.STRING: "s"}
    if a.type in fields:
        setattr(a, fields[a.type], getattr(a, fields[a.type]))
    a.f = float(np.copysign(np.nan, a.f)) if np.isnan(a.f) else a.f
    if a.type != AttributeProto.FLOAT:
        a.ClearField("f")
    for t in (*([a.t] if a.HasField("t") else []), *a.tensors):
        clean_tensor(t, True)
    for g in (*([a.g] if a.HasField("g") else []), *a.graphs):
        if not plain(g.name) or re.match(r"(?i)(nan|inf|infinity)(?![0-9a-z])", g.name):
            g.name = "graph"
        clean_graph(g)
    for t in (*([a.tp] if a.HasField("tp") else []), *a.type_protos):
        clean_type(t)


def clean_nodes(nodes):
    for n in nodes:
        for field in ("doc_string", "metadata_props", "device_configurations"):
            n.ClearField(field)
        for field in ("name", "domain", "overload"):
            if not getattr(n, field):
                n.ClearField(field)
        for a in n.attribute:
            clean_attribute(a)


def clean_graph(g):
    for field in ("doc_string", "metadata_props", "quantization_annotation"):
        g.ClearField(field)
    g.name = g.name
    clean_values((*g.input, *g.output, *g.value_info))
    for t in g.initializer:
        clean_tensor(t, False)
        t.name = t.name
    clean_nodes(g.node)


def cleaned(model):
    m = onnx.ModelProto()
    m.CopyFrom(model)
    m.ir_version = m.ir_version
    m.ClearField("training_info")
    m.ClearField("configuration")
    clean_graph(m.graph)
    for o in m.opset_import:
        o.domain, o.version = o.domain, o.version
    for f in m.functions:
        f.ClearField("metadata_props")
        f.domain, f.name = f.domain, f.name
        for o in f.opset_import:
            o.domain, o.version = o.domain, o.version
        if not f.overload:
            f.ClearField("overload")
        clean_values(f.value_info)
        clean_nodes(f.node)
        for a in f.attribute_proto:
            clean_attribute(a)
    return m.SerializeToString(deterministic=True)


def attributes_of(nodes):
    for n in nodes:
        for a in n.attribute:
            yield a
            for g in (*([a.g] if a.HasField("g") else []), *a.graphs):
                yield from attributes_of(g.node)


def lists_beyond_onnx(model):
    """Lists that onnx's parser reads as empty ones."""
    attributes = (*attributes_of((*model.graph.node, *(n for f in model.functions for n in f.node))),
                  *(a for f in model.functions for a in f.attribute_proto))
    return any(a.tensors or a.graphs or a.type_protos for a in attributes)


class Text(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)

    def convert(self, data, *flags):
        (self.dir / "in").write_bytes(data)
        done = subprocess.run([PITH, "convert", self.dir / "in", *flags], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        return done.stdout

    def check(self, model):
        want = cleaned(model)
        text = self.convert(model.SerializeToString(), "--to", "text")
        self.assertEqual(cleaned(onnx.load_from_string(self.convert(text, "--to", "onnx"))), want, "read back")
        if not lists_beyond_onnx(model):
            self.assertEqual(cleaned(onnx.parser.parse_model(text.decode())), want, "parsed by onnx")
        if lists_beyond_onnx(model):
            return False
        theirs = onnx.printer.to_text(model)
        try:
            there = cleaned(onnx.parser.parse_model(theirs))
        except (onnx.parser.ParseError, IndexError):
            return False  # what onnx itself cannot read back, such as "..." for numbers, and quoted names of subgraphs
        self.assertEqual(cleaned(onnx.load_from_string(self.convert(theirs.encode(), "--to", "onnx"))), there, "their text")
        return True

    def check_folder(self, paths):
        both = 0
        for path in paths:
            with self.subTest(str(path)):
                try:
                    both += self.check(onnx.load(path, load_external_data=False))
                except UnicodeDecodeError:
                    pass
        return both

    def test_node_tests(self):
        paths = sorted(NODES.glob("*/model.onnx"))
        self.assertGreater(len(paths), 1500)
        self.assertGreater(self.check_folder(paths), 1400)

    def test_stored_models(self):
        paths = sorted(MODELS.glob("*/model.onnx"))
        self.assertGreater(len(paths), 30)
        self.assertGreater(self.check_folder(paths), 25)

    def test_every_kind(self):
        """All kinds of attributes, types and tensors, and names of all sorts."""
        draw = random.Random(SEED)
        both = sum(self.check(Drawn(draw).model()) for _ in range(150))
        self.assertGreater(both, 20)


ODD_NAMES = ["x", "float", "seq", "inf", "nan1", "a b", "/layer.0/Add_output_0", "1", "é", "q\"uo\\te", "x\ny", "#", "_", "if"]


class Drawn:
    """A random model: valid as a message, not as a network."""

    def __init__(self, draw):
        self.draw = draw
        self.count = 0

    def name(self):
        self.count += 1
        return self.draw.choice(ODD_NAMES) + self.draw.choice(["", str(self.count)])

    def identifier(self):
        self.count += 1
        return f"n{self.count}"

    def some(self, make, most=3):
        return [make() for _ in range(self.draw.randint(0, most))]

    def float(self):
        return self.draw.choice([0.0, -0.0, 1.0, -2.5, 1e-45, -3.4028234663852886e38, float("inf"), float("-inf"), float("nan"),
                                 float(np.float32(self.draw.gauss(0, 1))), float(np.float32(10 ** self.draw.uniform(-44, 38)))])

    def integer(self):
        return self.draw.choice([0, 1, -1, 2**63 - 1, -2**63, self.draw.randint(-1000, 1000)])

    def string(self):
        return self.draw.choice(ODD_NAMES + ["", "\\", "\"", "\t"])

    def dim(self):
        d = onnx.TensorShapeProto.Dimension()
        kind = self.draw.randrange(4)
        if kind == 0:
            d.dim_value = self.draw.choice([0, 1, 7, -1, 2**40])
        elif kind == 1:
            d.dim_param = self.draw.choice(["N", "batch_size", "a + b", "2*n", "float", ""])
        elif kind == 2:
            d.dim_param = "T"
        return d

    def tensor_type(self, t):
        t.elem_type = self.draw.randint(1, 26)
        if self.draw.random() < 0.8:
            t.shape.SetInParent()
            t.shape.dim.extend(self.some(self.dim))

    def type(self, depth=0):
        t = TypeProto()
        kind = self.draw.randrange(4 if depth > 2 else 10)
        if kind < 4:
            self.tensor_type(t.tensor_type)
        elif kind < 6:
            t.sequence_type.elem_type.CopyFrom(self.type(depth + 1))
        elif kind == 6:
            t.optional_type.elem_type.CopyFrom(self.type(depth + 1))
        elif kind == 7:
            t.map_type.key_type = TensorProto.INT64
            t.map_type.value_type.CopyFrom(self.type(depth + 1))
        elif kind == 8:
            self.tensor_type(t.sparse_tensor_type)
        else:
            t.opaque_type.name = "thing"
            if self.draw.random() < 0.5:
                t.opaque_type.domain = "org"
        return t

    def tensor(self, name):
        dtype = self.draw.randint(1, 26)
        dims = self.some(lambda: self.draw.randint(0, 3))
        count = int(np.prod(dims, dtype=int))
        t = TensorProto(data_type=dtype, dims=dims)
        if name:
            t.name = name
        if self.draw.random() < 0.1:
            t.data_location = TensorProto.EXTERNAL
            for key, value in (("location", "w \"1\".bin"), ("offset", "0")):
                t.external_data.add(key=key, value=value)
        elif dtype == TensorProto.STRING:
            t.string_data.extend(self.string().encode() for _ in range(count))
        else:
            width = 1 if dtype in SUB_BYTE else helper.tensor_dtype_to_np_dtype(dtype).itemsize
            per = {TensorProto.UINT2: 4, TensorProto.INT2: 4}.get(dtype, 2 if dtype in SUB_BYTE else 1)
            raw = bytes(self.draw.choice([0, 1, 0x7F, 0x80, 0xFF, self.draw.randrange(256)]) for _ in range((count + per - 1) // per * width))
            t.raw_data = raw
            if self.draw.random() < 0.5:
                self.typed(t, raw)
        return t

    def typed(self, t, raw):
        """The same numbers in the field of their dtype."""
        t.ClearField("raw_data")
        if t.data_type in (TensorProto.FLOAT, TensorProto.COMPLEX64):
            t.float_data.extend(np.frombuffer(raw, "<f4"))
        elif t.data_type in (TensorProto.DOUBLE, TensorProto.COMPLEX128):
            t.double_data.extend(np.frombuffer(raw, "<f8"))
        elif t.data_type == TensorProto.INT64:
            t.int64_data.extend(np.frombuffer(raw, "<i8"))
        elif t.data_type in (TensorProto.UINT32, TensorProto.UINT64):
            t.uint64_data.extend(np.frombuffer(raw, "<u4" if t.data_type == TensorProto.UINT32 else "<u8"))
        else:
            signed = t.data_type in (TensorProto.INT8, TensorProto.INT16, TensorProto.INT32)
            t.int32_data.extend(np.frombuffer(raw, ("<i" if signed else "<u") + str(INT32_WIDTH.get(t.data_type, 1))))

    def attribute(self, depth):
        a = AttributeProto(name=self.identifier())
        kind = self.draw.randrange(14 if depth < 2 else 10)
        if kind == 0:
            a.type, a.f = AttributeProto.FLOAT, self.float()
        elif kind == 1:
            a.type, a.i = AttributeProto.INT, self.integer()
        elif kind == 2:
            a.type, a.s = AttributeProto.STRING, self.string().encode()
        elif kind == 3:
            a.type = AttributeProto.TENSOR
            a.t.CopyFrom(self.tensor(self.draw.choice(["", "", self.name()])))
        elif kind == 4:
            a.type = AttributeProto.FLOATS
            a.floats.extend(x for x in self.some(self.float, 5))
        elif kind == 5:
            a.type = AttributeProto.INTS
            a.ints.extend(self.some(self.integer, 5))
        elif kind == 6:
            a.type = AttributeProto.STRINGS
            a.strings.extend(s.encode() for s in self.some(self.string))
        elif kind == 7:
            a.type, a.ref_attr_name = self.draw.randint(1, 10), self.name()
        elif kind == 8:
            a.type = AttributeProto.TYPE_PROTO
            a.tp.CopyFrom(self.type())
        elif kind == 9:
            a.type = AttributeProto.TENSORS
            a.tensors.extend(self.tensor(self.identifier()) for _ in range(2))
        elif kind == 10:
            a.type = AttributeProto.GRAPHS
            a.graphs.extend(self.graph(depth + 1) for _ in range(2))
        elif kind == 11:
            a.type = AttributeProto.TYPE_PROTOS
            a.type_protos.extend(self.some(self.type))
        else:
            a.type = AttributeProto.GRAPH
            a.g.CopyFrom(self.graph(depth + 1))
        return a

    def node(self, depth):
        n = helper.make_node(self.draw.choice(["Add", "If", "float", "X_1"]), [], [])
        n.input.extend(self.some(lambda: self.draw.choice(["", self.name()])))
        n.output.extend(self.some(lambda: self.draw.choice(["", self.name()])))
        n.ClearField("domain")
        n.ClearField("name")
        if self.draw.random() < 0.5:
            n.name = self.name()
        if self.draw.random() < 0.3:
            n.domain = self.draw.choice(["com.microsoft", "ai.onnx", "x", "ai.onnx.ml"])
        if self.draw.random() < 0.1:
            n.overload = "second"
        n.attribute.extend(self.attribute(depth) for _ in range(self.draw.randint(0, 2)))
        return n

    def value(self):
        v = onnx.ValueInfoProto(name=self.name())
        if self.draw.random() < 0.9:
            v.type.CopyFrom(self.type())
        return v

    def graph(self, depth=0):
        g = onnx.GraphProto(name=self.draw.choice([self.name(), self.identifier()]))
        g.input.extend(self.some(self.value))
        g.output.extend(self.some(self.value))
        g.value_info.extend(self.some(self.value, 2))
        g.initializer.extend(self.tensor(self.name()) for _ in range(self.draw.randint(0, 2)))
        g.node.extend(self.node(depth) for _ in range(self.draw.randint(0, 3)))
        return g

    def function(self):
        f = onnx.FunctionProto(name=self.name(), domain=self.draw.choice(["local", "a b"]))
        f.opset_import.add(domain="", version=18)
        f.attribute.extend(self.some(self.name))
        f.input.extend(self.some(self.name))
        f.output.extend(self.some(self.name))
        f.node.extend(self.node(1) for _ in range(self.draw.randint(0, 2)))
        if self.draw.random() < 0.5:
            f.doc_string = self.string()
        f.attribute_proto.extend(a for a in (self.attribute(3) for _ in range(self.draw.randint(0, 1))) if a.type <= 8 and not a.ref_attr_name)
        if f.attribute_proto and f.attribute_proto[0].type == 0:
            f.ClearField("attribute_proto")
        f.value_info.extend(self.some(self.value, 2))
        return f

    def model(self):
        m = onnx.ModelProto(ir_version=self.draw.choice([3, 8, 13]), graph=self.graph())
        for domain in ("", "com.microsoft")[:self.draw.randint(0, 2)]:
            m.opset_import.add(domain=domain, version=self.draw.choice([1, 17, 23]))
        for field in ("producer_name", "producer_version", "domain", "doc_string"):
            if self.draw.random() < 0.4:
                setattr(m, field, self.string())
        if self.draw.random() < 0.3:
            m.model_version = self.integer()
        for key in self.some(self.string):
            m.metadata_props.add(key=key, value=self.string())
        m.functions.extend(self.some(self.function, 2))
        return m


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(a for a in sys.argv[4:] if a not in ("--seed", str(SEED)))])
