#!/usr/bin/env python3
"""Our attribute lists against the schemas of onnx and, for com.microsoft, of ONNX Runtime.

usage: compare_schemas.py --table OP_TABLE --library PATH
OP_TABLE is the program of op_table.c. In every opset an operator must have the attributes of the schema that holds there,
with its types, defaults and which of them must be there; and it must say the newest version that the schemas have. Also
tried: that the library takes the newest opset and refuses the one behind it.
"""
import argparse
import collections
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, defs, helper
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import pith_ctypes as pith

# Attributes that the lists leave out on purpose, and defaults that they have otherwise.
LEFT_OUT = {("", "Constant", "sparse_value"): "sparse tensors are refused when the file is read"}
OTHER_DEFAULT = {("", "GRU", "direction"): "opset 1 has it misspelt: 'foward'"}

Rule = collections.namedtuple("Rule", "name kind required since until own low high allowed default")
Schema = collections.namedtuple("Schema", "since attributes")


def read_table(program):
    """{(domain, operator): (newest, [Rule])}"""
    table = {}
    for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines():
        domain, name, newest, *rest = line.split("\t")
        rules = table.setdefault((domain, name), (int(newest), []))[1]
        if rest:
            attribute, kind, required, since, until, own, low, high, allowed, default = rest
            rules.append(Rule(attribute, kind, required == "1", int(since), int(until), own == "1", int(low), int(high),
                              allowed, default[1:] if default else None))
    return table


def default_of(serialized):
    """As Python values; None if there is none."""
    proto = AttributeProto.FromString(serialized)
    return helper.get_attribute_value(proto) if proto.type else None


def read_schemas():
    """{(domain, operator): [Schema]}, the oldest first; attributes as {name: (kind, required, default)}."""
    found = collections.defaultdict(list)
    for s in defs.get_all_schemas_with_history():
        found[s.domain, s.name].append(Schema(s.since_version, {
            name: (a.type.name.lower(), a.required, default_of(a.default_value.SerializeToString()))
            for name, a in s.attributes.items()}))
    for s in get_all_operator_schema():
        if not defs.has(s.name, s.domain):
            found[s.domain, s.name].append(Schema(s.since_version, {
                name: (a.type.name.lower(), a.required, default_of(a._default_value)) for name, a in s.attributes.items()}))
    return {key: sorted(schemas, key=lambda s: s.since) for key, schemas in found.items()}


def same_default(text, value, kind):
    if text is None or value is None:
        return (text is None) == (value is None or kind == "graph")
    if isinstance(value, bytes):
        return text == value.decode()
    if isinstance(value, int):
        return int(text) == value
    if isinstance(value, float):
        return np.float32(text) == np.float32(value)
    return text == ",".join(v.decode() if isinstance(v, bytes) else str(v) for v in value)


def default_is_allowed(rule):
    if rule.default is None:
        return True
    if rule.kind == "int" and not rule.low <= int(rule.default) <= rule.high:
        return False
    return not rule.allowed or rule.kind.endswith("s") or rule.default in rule.allowed.split("|")


def compare(key, rules, schemas, newest_opset):
    """Faults of one operator."""
    for opset in range(schemas[0].since, newest_opset + 1):
        schema = [s for s in schemas if s.since <= opset][-1]
        ours = {r.name: r for r in rules if r.since <= opset <= r.until and not r.own}
        place = f"{key[0] or 'ai.onnx'}.{key[1]} opset {opset}"
        for name in sorted(ours.keys() | schema.attributes.keys()):
            if key + (name,) in LEFT_OUT:
                continue
            if name not in schema.attributes:
                yield f"{place}: the schema has no '{name}'"
            elif name not in ours:
                yield f"{place}: '{name}' is missing: {schema.attributes[name]}"
            else:
                kind, required, default = schema.attributes[name]
                rule = ours[name]
                if (rule.kind, rule.required) != (kind, required):
                    yield f"{place}: '{name}' is {rule.kind}, required {rule.required}; the schema has {kind}, {required}"
                if not same_default(rule.default, default, kind) and key + (name,) not in OTHER_DEFAULT:
                    yield f"{place}: the default of '{name}' is {rule.default}; the schema has {default}"


def opens(library, opset):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        pith.Model(library, model.SerializeToString())
        return True
    except pith.PithError as failure:
        return f"ai.onnx.Relu opset {opset}" not in str(failure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", required=True)
    parser.add_argument("--library", required=True)
    options = parser.parse_args()
    table, schemas = read_table(options.table), read_schemas()
    newest = {domain: max(s[-1].since for (d, _), s in schemas.items() if d == domain) for domain, _ in schemas}
    faults, compared = [], 0
    for key, (version, rules) in sorted(table.items()):
        faults += [f"{key}: the default of '{r.name}' is not allowed" for r in rules if not default_is_allowed(r)]
        if key[0] == "pith":
            continue
        if key not in schemas:
            faults.append(f"{key}: neither onnx nor ONNX Runtime has it")
            continue
        compared += 1
        faults += compare(key, rules, schemas[key], newest[key[0]])
        if version != schemas[key][-1].since:
            faults.append(f"{key}: follows version {version}, the schemas have {schemas[key][-1].since}")
    if not opens(options.library, newest[""]):
        faults.append(f"opset {newest['']} is refused")
    if opens(options.library, newest[""] + 1):
        faults.append(f"opset {newest[''] + 1} is accepted, which nothing was compared with")
    print("\n".join(faults))
    print(f"{compared} operators compared with onnx {onnx.__version__}, {len(faults)} differences")
    return 1 if faults or compared < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
