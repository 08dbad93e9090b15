#!/usr/bin/env python3
"""Writes src/formats/export/opset_rules.def: which numbers of inputs and outputs, and which types, an operator takes in which opset.

usage: make_standard.py [--check]; needs onnx and onnxruntime (tests/requirements.txt).
Rows of ai.onnx are those of onnx.defs from opset 17 on, with the last one before it; rows of com.microsoft those of
ONNX Runtime. --check writes nothing: exit status 1 if the file is not what the packages say.
"""
import argparse
import collections
import pathlib
import re
import sys

import onnx
import onnxruntime
from onnx import TensorProto, defs
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

TARGET = pathlib.Path(__file__).resolve().parents[1] / "src/formats/export/opset_rules.def"
LEAST, TYPES = 17, 27  # PITH_EXPORT_OPSET_LEAST, PITH_DTYPE_COUNT
SLOTS = 12  # OPSET_RULE_SLOTS
NUMBERS = {("tensor(%s)" % name.lower()): number for name, number in TensorProto.DataType.items() if number < TYPES}
NUMBERS.update({"tensor(float8e4m3fn)": 17, "tensor(float8e4m3fnuz)": 18, "tensor(float8e5m2)": 19, "tensor(float8e5m2fnuz)": 20})

Port = collections.namedtuple("Port", "type optional variadic")
Form = collections.namedtuple("Form", "domain name since deprecated low high outputs ins outs constraints")


def mask(names):
    """Bits of tensors' element types, and of sequences'. Optionals are left out: nothing is known of what they hold."""
    tensors = items = 0
    for name in names:
        item = re.sub(r"^seq\((.*)\)$", r"\1", name)
        bit = 1 << NUMBERS[item] if item in NUMBERS else 0
        if item == name:
            tensors |= bit
        else:
            items |= bit
    return tensors, items


def ports(of, name):
    return [Port(getattr(p, name), "Optional" in str(p.option), "Variadic" in str(p.option)) for p in of]


def count(number):
    return -1 if number > 1000 else number


def forms():
    history = collections.defaultdict(list)
    for s in defs.get_all_schemas_with_history():
        if s.domain == "":
            history[s.name].append(s)
    for name, found in sorted(history.items()):
        found.sort(key=lambda s: s.since_version)
        old = [s for s in found if s.since_version <= LEAST][-1:]
        for s in old + [s for s in found if s.since_version > LEAST]:
            constraints = {c.type_param_str: c.allowed_type_strs for c in s.type_constraints}
            yield Form("", name, s.since_version, s.deprecated, s.min_input, count(s.max_input), count(s.max_output),
                       ports(s.inputs, "type_str"), ports(s.outputs, "type_str"), constraints)
    for s in sorted(get_all_operator_schema(), key=lambda s: (s.name, s.since_version)):
        if s.domain == "com.microsoft":
            constraints = {c.type_param_str: c.allowed_type_strs for c in s.type_constraints}
            yield Form(s.domain, s.name, s.since_version, s.deprecated, s.min_input, count(s.max_input), count(s.max_output),
                       ports(s.inputs, "typeStr"), ports(s.outputs, "typeStr"), constraints)


def text():
    sets, rows = {}, []
    for f in forms():
        slots, own = [], {}

        def letter(port):
            variable = port.type in f.constraints
            if port.type not in own:
                own[port.type] = len(slots)
                types = mask(f.constraints[port.type] if variable else [port.type])
                slots.append(sets.setdefault(types, len(sets)))
            return chr(own[port.type] + ord("a" if variable else "A"))

        ins, outs = "".join(map(letter, f.ins)), "".join(map(letter, f.outs))
        assert len(slots) <= SLOTS, f.name
        if f.deprecated:
            f, ins, outs = f._replace(low=1, high=0), "", ""
        listed = ", ".join(map(str, slots or [0]))
        rows.append(f'FORM("{f.domain}", "{f.name}", {f.since}, {f.low}, {f.high}, {f.outputs}, "{ins}", "{outs}", {listed})')
    lines = [f"/* standard.def - made by tools/make_standard.py from onnx {onnx.__version__} and onnxruntime "
             f"{onnxruntime.__version__}; see standard.h.", " *",
             " * SET(types of tensors, types of items of sequences), by number", " * FORM(domain, operator, first opset, "
             "least and most inputs, most outputs, inputs, outputs, sets); -1: any number */"]
    lines += [f"SET(0x{t:08x}, 0x{i:08x}) /* {n} */" for (t, i), n in sets.items()]
    return "\n".join(lines + rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    made = text()
    if not options.check:
        TARGET.write_text(made)
        return 0
    # Versions of the packages stand in the first line only.
    old, new = (t.splitlines()[1:] for t in (TARGET.read_text(), made))
    for line in sorted(set(old) ^ set(new)):
        print(f"{TARGET.name}: {'stale' if line in old else 'missing'}: {line}")
    return int(old != new)


if __name__ == "__main__":
    sys.exit(main())
