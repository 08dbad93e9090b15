#!/usr/bin/env python3
"""Models of one operator with its inputs, outputs or attributes spoiled, one thing at a time, for mutants.c.

usage: op_mutants.py [--every N] [--seed S] [--only TEXT] FOLDER...
Models are FOLDER/<name>/model.onnx; mutants go to standard output. Inputs and outputs are left out, doubled, emptied and reordered; inputs become another
dtype, empty, or constants at the edges of 32 and 64 bits; attributes are left out, become another kind, extreme numbers,
empty and long lists; then several of that at once, drawn. One of N mutants is written, chosen by the seed.
"""
import argparse
import pathlib
import random
import sys

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

import job

INTS = [-2**63, -2**63 + 1, -2**63 + 40, -2**62 - 1, -2**62, -2**62 + 1, -2**31 - 1, -2**31, -2, -1, 0, 1, 2, 7, 100, 2**31 - 1,
        2**31, 2**32 + 1, 2**40, 2**48, 2**61, 2**62, 2**63 - 1]
FLOATS = [float("nan"), float("inf"), -float("inf"), 0.0, -1.0, 3e38, -3e38, 1e-45, 0.5, 1e9]
STRINGS = [b"", b"x", b"\xff\xfe", b"A" * 1000]
DTYPES = [TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32, TensorProto.INT64, TensorProto.STRING,
          TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.COMPLEX64, TensorProto.BFLOAT16,
          TensorProto.FLOAT8E4M3FN, TensorProto.INT4]
NODES_MAX = 4


def copies(model, names):
    """A copy for each name, to be changed."""
    for name in names:
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        yield name, copy


def with_list(model, path, name, lists):
    """Copies in which the repeated strings `path` finds are each of the lists."""
    for i, items in enumerate(lists):
        for label, copy in copies(model, [f"{name} {i}"]):
            field = path(copy)
            del field[:]
            field.extend(items)
            yield label, copy


def orders(items):
    """Names left out, emptied, doubled, reordered, too many, none."""
    items = list(items)
    for i in range(len(items)):
        yield items[:i] + items[i + 1:]
        yield items[:i] + [""] + items[i + 1:]
        yield items[:i] + [items[i]] + items[i:]
        yield items[:i]
    if len(items) > 1:
        yield items[::-1]
        yield items[1:] + items[:1]
    yield []
    yield items + [""]
    yield [""] * len(items)


def ends(model, k):
    node = model.graph.node[k]
    yield from with_list(model, lambda m: m.graph.node[k].input, f"node {k} inputs", orders(node.input))
    yield from with_list(model, lambda m: m.graph.node[k].input, f"node {k} many inputs", [list(node.input[:1]) * 40])
    outputs = [o for o in orders(node.output) if len(set(o) - {""}) == len([x for x in o if x])]
    outputs += [list(node.output) + [f"more{i}" for i in range(n)] for n in (1, 2, 8)]
    for label, copy in with_list(model, lambda m: m.graph.node[k].output, f"node {k} outputs", outputs):
        made = {o for n in copy.graph.node for o in n.output} | {i.name for i in copy.graph.input}
        kept = [o for o in copy.graph.output if o.name in made]
        if not kept and copy.graph.input:
            kept = [onnx.ValueInfoProto(name=copy.graph.input[0].name)]
        del copy.graph.output[:]
        copy.graph.output.extend(kept)
        yield label, copy
        extra = [o for o in copy.graph.node[k].output if o and o not in {x.name for x in kept}]
        if extra:
            copy.graph.output.extend(onnx.ValueInfoProto(name=o) for o in extra)
            yield label + " used", copy


def values(attribute):
    """Names and changes of one attribute's value."""
    t = attribute.type
    if t == AttributeProto.INT:
        for x in INTS:
            yield x, lambda a, x=x: setattr(a, "i", x)
    if t == AttributeProto.FLOAT:
        for x in FLOATS:
            yield x, lambda a, x=x: setattr(a, "f", x)
    if t == AttributeProto.STRING:
        for x in STRINGS:
            yield x[:4], lambda a, x=x: setattr(a, "s", x)
    lists = {AttributeProto.INTS: ("ints", INTS), AttributeProto.FLOATS: ("floats", FLOATS),
             AttributeProto.STRINGS: ("strings", STRINGS)}
    if t in lists:
        field, edges = lists[t]

        def become(a, items):
            del getattr(a, field)[:]
            getattr(a, field).extend(items)
        old = list(getattr(attribute, field))
        for i in range(min(len(old), 3)):
            for x in edges:
                yield f"[{i}] {str(x)[:12]}", lambda a, i=i, x=x: become(a, old[:i] + [x] + old[i + 1:])
        for x in edges:
            yield f"all {str(x)[:12]}", lambda a, x=x: become(a, [x] * len(old))
        for items in ([], old[:-1], old + old, old * 100, old + edges[:1], old[::-1]):
            yield f"{len(items)} items", lambda a, items=items: become(a, items)
    if t == AttributeProto.TENSOR:
        for dtype in DTYPES:
            yield f"dtype {dtype}", lambda a, dtype=dtype: setattr(a.t, "data_type", dtype)
        for dims in ([], [0], [2], [1, 1, 1], [-1], [2**62, 2], [3] * 13):
            yield f"dims {dims}", lambda a, dims=dims: (a.t.ClearField("dims"), a.t.dims.extend(dims))
        if attribute.t.data_type in (TensorProto.INT64, TensorProto.INT32):
            shape = list(attribute.t.dims)
            kind = np.int64 if attribute.t.data_type == TensorProto.INT64 else np.int32
            for x in INTS:
                if np.iinfo(kind).min <= x <= np.iinfo(kind).max:
                    yield f"filled {x}", lambda a, x=x: a.t.CopyFrom(numpy_helper.from_array(np.full(shape, x, kind)))
    if t == AttributeProto.GRAPH:
        for field in ("input", "output", "node"):
            yield f"no {field}", lambda a, field=field: a.g.ClearField(field)
            yield f"more {field}", lambda a, field=field: getattr(a.g, field).extend(list(getattr(a.g, field))[:1])
            yield f"fewer {field}", lambda a, field=field: getattr(a.g, field) and getattr(a.g, field).pop()


def changed(attribute, change):
    """Whether protobuf took the change."""
    try:
        change(attribute)
    except (ValueError, TypeError):
        return False
    return True


def attributes(model, k):
    for i, attribute in enumerate(model.graph.node[k].attribute):
        name = f"node {k} {attribute.name}"
        for label, copy in copies(model, [f"{name} left out"]):
            del copy.graph.node[k].attribute[i]
            yield label, copy
        for other in (helper.make_attribute("a", 1), helper.make_attribute("a", [1, 2]), helper.make_attribute("a", 1.5),
                      helper.make_attribute("a", "x")):
            if other.type == attribute.type:
                continue
            for label, copy in copies(model, [f"{name} as kind {other.type}"]):
                copy.graph.node[k].attribute[i].CopyFrom(other)
                copy.graph.node[k].attribute[i].name = attribute.name
                yield label, copy
        for what, change in values(attribute):
            for label, copy in copies(model, [f"{name} {what}"]):
                if changed(copy.graph.node[k].attribute[i], change):
                    yield label, copy


def shape_of(value):
    return [d.dim_value if d.HasField("dim_value") else 2 for d in value.type.tensor_type.shape.dim]


def edges_of(value):
    """The integer type of an input that is small enough to be a constant, and the edges that it holds."""
    kind = {TensorProto.INT64: np.int64, TensorProto.INT32: np.int32}.get(value.type.tensor_type.elem_type)
    if kind is None or np.prod(shape_of(value)) > 4096:
        return None, []
    return kind, [x for x in INTS if np.iinfo(kind).min <= x <= np.iinfo(kind).max]


def inputs(model):
    for i, value in enumerate(model.graph.input):
        if not value.type.HasField("tensor_type"):
            continue
        for dtype in DTYPES:
            for label, copy in copies(model, [f"input {value.name} dtype {dtype}"]):
                copy.graph.input[i].type.tensor_type.elem_type = dtype
                yield label, copy
        for d in range(len(value.type.tensor_type.shape.dim)):
            for label, copy in copies(model, [f"input {value.name} axis {d} empty"]):
                copy.graph.input[i].type.tensor_type.shape.dim[d].dim_value = 0
                yield label, copy
        for rank in (0, 1, 5):
            for label, copy in copies(model, [f"input {value.name} rank {rank}"]):
                shape = copy.graph.input[i].type.tensor_type.shape
                del shape.dim[:]
                shape.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=2) for _ in range(rank))
                yield label, copy
        kind, edges = edges_of(value)
        for x in edges:
            for label, copy in copies(model, [f"input {value.name} is {x}"]):
                copy.graph.initializer.append(numpy_helper.from_array(np.full(shape_of(value), x, kind), value.name))
                del copy.graph.input[i]
                yield label, copy


def opsets(model):
    for version in (1, 6, 8, 10, 12, 17, 20, 23, 99):
        for label, copy in copies(model, [f"opset {version}"]):
            copy.opset_import[0].version = version
            yield label, copy


def several(model, draw):
    """Many things at once: attributes with drawn values, inputs that are drawn constants."""
    for label, copy in copies(model, [f"several {i}" for i in range(30)]):
        for node in copy.graph.node[:NODES_MAX]:
            for attribute in node.attribute:
                changes = [change for _, change in values(attribute)]
                if changes and draw.randrange(2):
                    changed(attribute, draw.choice(changes))
        for value in list(copy.graph.input):
            kind, edges = edges_of(value)
            if not edges or draw.randrange(2):
                continue
            items = np.array([draw.choice(edges) for _ in range(int(np.prod(shape_of(value))))], kind)
            copy.graph.initializer.append(numpy_helper.from_array(items.reshape(shape_of(value)), value.name))
            copy.graph.input.remove(value)
        yield label, copy


def mutants(model, draw):
    for k in range(min(len(model.graph.node), NODES_MAX)):
        yield from ends(model, k)
        yield from attributes(model, k)
    yield from inputs(model)
    yield from opsets(model)
    yield from several(model, draw)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folders", nargs="+", type=pathlib.Path)
    p.add_argument("--every", type=int, default=1)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", default="", help="mutants whose name holds this")
    a = p.parse_args()
    draw = random.Random(a.seed)
    out = sys.stdout.buffer
    for path in sorted(f for folder in a.folders for f in folder.glob("*/model.onnx")):
        if path.stat().st_size > 65536:
            continue
        model = onnx.load_model(path, load_external_data=False)
        for name, mutant in mutants(model, random.Random(a.seed)):
            label = f"{path.parent.name}: {name}"
            if draw.randrange(a.every) or a.only not in label:
                continue
            out.write(job.packed(label, "graph", {"model.onnx": mutant.SerializeToString()}))


if __name__ == "__main__":
    main()
