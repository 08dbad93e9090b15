#!/usr/bin/env python3
"""The border of the library as data: include/api.json, from include/pith/*.h by libclang.

    api.py               says whether include/api.json and docs/api are those of the headers
    api.py --write       writes them (`make api`)
    api.py --release     keeps the border as that of the release, include/api-release.json (`make api-release`)
    api.py --c           prints the border as plain declarations without a preprocessor, such as cffi takes
    api.py --root DIR    works on another tree
    api.py --libclang F  reads the headers with this libclang, 14 to 19, instead of that of tools/requirements.txt

Headers are read for x86-64 Linux with stddef.h and stdint.h of our own, so the result is the same on every machine. Sizes,
offsets and values are those of the compiler; types are spelled as in the headers, without `struct` and `enum`. Facts that are
not in C's types are taken from comments of a fixed form, which docs/release.md lists. Everything that reads the border (the
ctypes module, docs/api, the lint, bindings) reads this file and no header."""
import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import api_facts
from api_facts import base

ROOT = Path(__file__).resolve().parent.parent
FILE, RELEASE, PAGES = "include/api.json", "include/api-release.json", "docs/api"
# Headers that libpith does not export; modules are compiled against them and have a number of their own.
MODULE_HEADERS = {"image_module.h": "PITH_IMAGE_MODULE_ABI"}
STANDARD = {
    "stddef.h": "typedef unsigned long size_t;\n#define NULL ((void *)0)\n",
    "stdint.h": "".join(f"typedef {t} int{n}_t;\ntypedef unsigned {t} uint{n}_t;\n"
                        for t, n in (("char", 8), ("short", 16), ("int", 32), ("long", 64))).replace("typedef char", "typedef signed char"),
}


class NotUnderstood(Exception):
    """The headers have something that the description has no place for."""


# ---- comments ----

def comment_text(raw, flat=False):
    """A comment without its stars. Lines that belong together are joined, so wrapping it in another way changes nothing;
    list items and indented lines stay lines of their own. flat: of a member, all is one line."""
    raw = raw[2:] if raw.startswith("//") else raw[2:-2]
    if flat:
        return " ".join(re.sub(r"\n\s*\* ?", "\n", raw).split())
    lines = [re.sub(r"^\s*\* ?", "", line) if i else line.strip() for i, line in enumerate(raw.split("\n"))]
    result, kind = [], ""
    for line in (line.rstrip() for line in lines):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if not text:
            kind = ""
            result.append("")
        elif text.startswith("- ") and indent <= 4:
            kind = "item"
            result.append(text)
        elif kind == "item" and indent or kind == "text" and indent < 2:
            result[-1] += " " + text
        elif indent >= 2 and result:
            kind = "verbatim"
            result.append(line)
        else:
            kind = "text"
            result.append(text)
    return "\n".join(result).strip("\n")


class Header:
    """The tokens of a header, and the comments that stand above and behind a declaration."""

    def __init__(self, unit, path):
        self.tokens = [t for t in unit.get_tokens(extent=unit.cursor.extent) if not re.match(r"/\*\s*clang-format", t.spelling)]
        self.at = {t.extent.start.offset: i for i, t in enumerate(self.tokens)}
        self.path = path

    @staticmethod
    def is_comment(token):
        return token.kind.name == "COMMENT"

    def first(self, offset):
        i = self.at[offset]
        while i and self.tokens[i - 1].spelling in ("PITH_API", "extern"):
            i -= 1
        if i > 1 and self.tokens[i - 1].spelling == "define":
            i -= 2
        return i

    def above(self, offset, flat=False):
        """The comment directly above, and whether another declaration is directly above instead."""
        i = self.first(offset)
        if not i:
            return "", False
        token, line = self.tokens[i - 1], self.tokens[i].extent.start.line
        near = token.extent.end.line >= line - 1
        if not self.is_comment(token):
            return "", near
        behind = i > 1 and self.tokens[i - 2].extent.end.line == token.extent.start.line
        return ("", near) if behind or not near else (comment_text(token.spelling, flat), False)

    def behind(self, end):
        """The comment on the line that a declaration ends in; end is the offset where it ends."""
        i = next((i for i, t in enumerate(self.tokens) if t.extent.start.offset >= end), len(self.tokens))
        while i < len(self.tokens) and self.tokens[i].spelling in (";", ","):
            i += 1
        if i in (0, len(self.tokens)) or not self.is_comment(self.tokens[i]):
            return ""
        return comment_text(self.tokens[i].spelling, True) if self.tokens[i].extent.start.line == self.tokens[i - 1].extent.end.line else ""

    def sections(self):
        for token in self.tokens:
            m = self.is_comment(token) and re.fullmatch(r"/\* -{4} (.*) -{4} \*/", token.spelling)
            if m:
                yield token.extent.start.offset, {"kind": "section", "name": m.group(1)}


# ---- declarations ----

def spelled(kind):
    """A type as the headers spell it, without struct and enum."""
    return re.sub(r"\b(struct|enum) ", "", kind.spelling)


def typed(cursor, kind, name=None):
    """Name and type; of a pointer to a function also its result and its parameters with their names."""
    from clang.cindex import CursorKind, TypeKind
    entry = {"name": cursor.spelling if name is None else name, "type": spelled(kind)}
    pointed = kind.get_pointee() if kind.kind == TypeKind.POINTER else kind
    pointed = pointed.get_canonical() if pointed.kind == TypeKind.UNEXPOSED else pointed
    if pointed.kind == TypeKind.FUNCTIONPROTO:
        parameters = [c for c in cursor.get_children() if c.kind == CursorKind.PARM_DECL]
        entry["function"] = {"returns": spelled(pointed.get_result()), "parameters": [typed(c, c.type) for c in parameters]}
    return entry


def with_comment(entry, *texts):
    text = " ".join(filter(None, texts))
    if text:
        entry["comment"] = text
    return entry


def struct_entry(header, cursor, name):
    from clang.cindex import CursorKind
    kind = cursor.type
    entry = {"kind": "struct", "name": name, "size": kind.get_size(), "align": kind.get_align(), "members": []}
    fields = [c for c in cursor.get_children() if c.kind == CursorKind.FIELD_DECL]
    if any(c.kind == CursorKind.UNION_DECL or c.is_bitfield() for c in cursor.get_children()):
        raise NotUnderstood(f"{header.path}:{cursor.location.line}: {name} has a union or a bit-field")
    last = {c.extent.start.offset: c.extent.end.offset for c in fields}  # several names of one declaration share its comments
    for c in fields:
        member = typed(c, c.type)
        member |= {"offset": c.get_field_offsetof() // 8, "size": c.type.get_size()}
        with_comment(member, header.above(c.extent.start.offset, True)[0], header.behind(last[c.extent.start.offset]))
        entry["members"].append(member)
    first = entry["members"][0] if entry["members"] else {}
    entry["sized"] = first.get("type") == "pith_call" or (first.get("name"), first.get("type")) == ("size", "size_t")
    return entry


def enum_entry(header, cursor, name):
    entry = {"kind": "enum", "name": name, "values": []}
    for c in cursor.get_children():
        value = {"name": c.spelling, "value": c.enum_value}
        entry["values"].append(with_comment(value, header.above(c.extent.start.offset, True)[0], header.behind(c.extent.end.offset)))
    return entry


def declaration(header, cursor):
    """The entry of a cursor, or None for what others describe."""
    from clang.cindex import CursorKind
    name, kind = cursor.spelling, cursor.kind
    if kind == CursorKind.FUNCTION_DECL:
        entry = {"kind": "function", "name": name, "returns": spelled(cursor.result_type),
                 "parameters": [typed(c, c.type) for c in cursor.get_arguments()]}
        if cursor.type.is_function_variadic():
            raise NotUnderstood(f"{header.path}:{cursor.location.line}: {name} has any number of parameters")
        return entry
    if kind == CursorKind.VAR_DECL:
        return {"kind": "variable"} | typed(cursor, cursor.type)
    if kind == CursorKind.TYPEDEF_DECL:
        of = cursor.underlying_typedef_type.get_declaration()
        if of.kind == CursorKind.STRUCT_DECL:
            return struct_entry(header, of, name) if of.is_definition() else {"kind": "handle", "name": name}
        if of.kind == CursorKind.ENUM_DECL:
            return enum_entry(header, of, name)
        return {"kind": "type"} | typed(cursor, cursor.underlying_typedef_type)
    if kind == CursorKind.ENUM_DECL:
        return None if re.fullmatch(r"\w+", name) else enum_entry(header, cursor, "")
    if kind == CursorKind.STRUCT_DECL:
        return None
    raise NotUnderstood(f"{header.path}:{cursor.location.line}: {name} is a {kind.name}, which tools/api.py does not know")


def macro(cursor, numbers):
    """A number if the macro is one; the text of any other, but for guards of headers and PITH_API."""
    tokens = [t.spelling for t in cursor.get_tokens() if t.kind.name != "COMMENT"]
    name, body = tokens[0], tokens[1:]
    if not body or name == "PITH_API":  # a guard, or what makes a symbol visible
        return None
    expression = " ".join(str(numbers.get(t, re.sub(r"(?<=[0-9a-fA-F])[uUlL]+$", "", t))) for t in body)
    if re.fullmatch(r"[0-9a-fA-FxX.+\-*|~<>() ]+", expression) and re.search(r"\d", expression):
        numbers[name] = eval(expression)  # nothing but digits and operators
        return {"kind": "macro", "name": name, "value": numbers[name]}
    written = Path(cursor.location.file.name).read_bytes()[cursor.extent.start.offset : cursor.extent.end.offset].decode()
    return {"kind": "macro", "name": name, "text": " ".join(written.replace("\\\n", " ").split())}


def describe_header(path, include, index, numbers):
    """The description of one header."""
    from clang.cindex import CursorKind, TranslationUnit
    unit = index.parse(str(path), ["-x", "c", "-std=c11", "-target", "x86_64-unknown-linux-gnu", "-nostdinc", "-fgnuc-version=0", f"-I{include}"],
                       [(str(include / name), text) for name, text in STANDARD.items()], TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    for fault in unit.diagnostics:
        if fault.severity >= 3:
            raise NotUnderstood(f"{fault.location.file or path}:{fault.location.line}: {fault.spelling}")
    header, found = Header(unit, path), []
    for cursor in unit.cursor.get_children():
        if not cursor.location.file or cursor.location.file.name != str(path):
            continue
        start = cursor.extent.start.offset
        if cursor.kind == CursorKind.MACRO_DEFINITION:
            entry = macro(cursor, numbers)
        elif cursor.kind in (CursorKind.MACRO_INSTANTIATION, CursorKind.INCLUSION_DIRECTIVE):
            continue
        else:
            entry = declaration(header, cursor)
        if not entry:
            continue
        above, joined = header.above(start)
        with_comment(entry, above, header.behind(cursor.extent.end.offset))
        if joined:
            entry["joined"] = True
        found.append((start, entry))
    found += header.sections()
    opening = next((t for t in header.tokens if header.is_comment(t)), None)
    return {"name": path.name, "library": "pith-tables" if path.name == "tables.h" else "module" if path.name in MODULE_HEADERS else "pith",
            "comment": re.sub(r"^(pith/)?[\w.]+ - ", "", comment_text(opening.spelling)) if opening else "",
            "declarations": [entry for _, entry in sorted(found, key=lambda f: f[0])]}


def numbers_of_build(root):
    """Version and soname, as CMakeLists.txt has them."""
    text = (root / "CMakeLists.txt").read_text()
    sonames = set(re.findall(r"SOVERSION (\d+)", text))
    if len(sonames) != 1:
        raise NotUnderstood(f"{root / 'CMakeLists.txt'}:1: the libraries have more than one SOVERSION")
    return re.search(r"project\(pith VERSION ([\d.]+)", text).group(1), int(sonames.pop())


def describe(root):
    """The border of a tree."""
    from clang.cindex import Index
    include, index, numbers = root / "include", Index.create(), {}
    version, soname = numbers_of_build(root)
    headers = [describe_header(path, include, index, numbers) for path in sorted((include / "pith").glob("*.h"))]
    result = {"version": version, "soname": soname, "abi": "LP64", "headers": headers}
    found = named(result)
    of_header = [found[f"PITH_VERSION_{part}"][1].get("value") for part in ("MAJOR", "MINOR", "PATCH") if f"PITH_VERSION_{part}" in found]
    if [str(n) for n in of_header] != version.split("."):
        raise NotUnderstood(f"{include / 'pith/types.h'}:1: PITH_VERSION_* is not the version of CMakeLists.txt, {version}")
    unclear = api_facts.annotate(result, load(root, RELEASE) if (root / RELEASE).exists() else None)
    if unclear:
        raise NotUnderstood("\n".join(f"{include / 'pith' / header}:{line_of(root, header, name)}: {what}" for header, name, what in unclear))
    return result


# ---- reading a description ----

def named(api):
    """Each declaration with its header, by its name."""
    return {d["name"]: (h, d) for h in api["headers"] for d in h["declarations"] if d["name"] and d["kind"] != "section"}


def functions(api, *libraries):
    return {d["name"]: d for h in api["headers"] for d in h["declarations"]
            if d["kind"] == "function" and (not libraries or h["library"] in libraries)}


def structs(api):
    return {d["name"]: d for h in api["headers"] for d in h["declarations"] if d["kind"] == "struct"}


def load(root=ROOT, file=FILE):
    return json.loads((root / file).read_text())


def text(value, indent=0, width=140):
    """JSON with what fits on a line on one line: short to read, and a change is a change of one line."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or indent + len(line) <= width:
        return line
    inner = " " * (indent + 1)
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + text(v, indent + 1) for v in value) + "\n" + " " * indent + "]"
    return "{\n" + ",\n".join(f"{inner}{json.dumps(k)}: {text(v, indent + 1)}" for k, v in value.items()) + "\n" + " " * indent + "}"


# What counts for a program that was compiled, of each kind of entry.
BARE = {"version", "soname", "abi", "headers", "name", "library", "declarations", "kind", "size", "align", "members", "type", "function", "returns", "parameters",
        "offset", "sized", "values", "value", "text", "since"}


def bare(value):
    """A description without words: what an older program was compiled with."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if k in BARE}
    return [bare(v) for v in value if not (isinstance(v, dict) and (v.get("kind") == "section" or "text" in v))] if isinstance(value, list) else value


# ---- the border as plain C ----

def c_type(kind, name):
    """The declarator of a name: int32_t[3] becomes `int32_t name[3]`."""
    if "(*" in kind:
        at = kind.index("(*") + 2
        return kind[:at] + name + kind[at:]
    m = re.match(r"([^\[]*)((?:\[\d*\])*)$", kind)
    return f"{m.group(1).rstrip()}{'' if m.group(1).rstrip().endswith('*') else ' '}{name}{m.group(2)}"


def c_named(entry):
    """The declarator of an entry, with the names of the parameters that a pointer to a function takes."""
    if "function" not in entry:
        return c_type(entry["type"], entry["name"])
    return c_type(entry["function"]["returns"], f"(*{entry['name']})({', '.join(map(c_named, entry['function']['parameters'])) or 'void'})")


def c_function(entry):
    return c_type(entry["returns"], f"{entry['name']}({', '.join(map(c_named, entry['parameters'])) or 'void'})")


def c_struct(entry):
    return f"struct {entry['name']} {{\n" + "".join(f"    {c_named(m)};\n" for m in entry["members"]) + "};\n"


def c_code(api, bodies=False, types=False):
    """All declarations, those that others hold by value first. bodies: functions do nothing, for a library that has the
    border and nothing else. types: a variable leads to each type. Without them a compiler leaves out what no function has in
    its signature, such as enums whose values are passed as int32_t."""
    kinds = {kind: [d for h in api["headers"] for d in h["declarations"] if d["kind"] == kind]
             for kind in ("handle", "struct", "enum", "type", "function")}
    out = [f"typedef struct {d['name']} {d['name']};\n" for d in kinds["handle"] + kinds["struct"]]
    for d in kinds["enum"]:
        values = "".join(f"    {v['name']} = {v['value']},\n" for v in d["values"])
        out.append(f"typedef enum {d['name']} {{\n{values}}} {d['name']};\n" if d["name"] else f"enum {{\n{values}}};\n")
    out += [f"typedef {c_named(d)};\n" for d in kinds["type"]]
    waiting = {d["name"]: d for d in kinds["struct"]}
    while waiting:
        ready = [n for n, d in waiting.items() if not any(re.sub(r"const |\[.*", "", m["type"]).strip() in waiting for m in d["members"])]
        for n in ready or sys.exit(f"structs hold each other: {', '.join(waiting)}"):
            out.append(c_struct(waiting.pop(n)))
    for d in kinds["function"]:
        head = c_function(d)
        if not bodies:
            out.append(head + ";\n")
        else:
            back = "" if d["returns"] == "void" else f"static {c_type(d['returns'], 'none')}; return none;"
            out.append(f"{head} {{ {back} }}\n")
    for kind in ("enum", "struct", "type") if types else ():
        out += [f"{d['name']} *pith_type_of_{d['name']};\n" for d in kinds[kind] if d["name"]]
    return "".join(out)


def c_layout(api):
    """A C file that compiles only if the compiler lays everything out as described."""
    out = ["#include <pith/image_module.h>\n#include <pith/detect.h>\n"]
    out += [f"#include <pith/{h['name']}>\n" for h in api["headers"] if h["name"] != "image_module.h"]
    say = lambda condition, what: out.append(f'_Static_assert({condition}, "{what}");\n')
    for h in api["headers"]:
        for d in h["declarations"]:
            if d["kind"] == "struct":
                say(f"sizeof({d['name']}) == {d['size']}", f"size of {d['name']}")
                for m in d["members"]:
                    say(f"offsetof({d['name']}, {m['name']}) == {m['offset']}", f"offset of {d['name']}.{m['name']}")
            for v in d.get("values", ()):
                say(f"{v['name']} == {v['value']}", f"value of {v['name']}")
            if d["kind"] == "macro" and "value" in d:
                say(f"{d['name']} == {d['value']}", f"value of {d['name']}")
            if d["kind"] == "function":
                out.append(c_function(d) + ";\n")
    return "".join(out)


# ---- what changed since a release ----

BREAKS, ADDS = "breaks", "adds"


def shape_of(entry):
    """Types of a function, a variable or a type."""
    return entry.get("returns"), entry.get("type"), [p["type"] for p in entry.get("parameters", ())]


def struct_changes(old, new):
    name = old["name"]
    if new["kind"] == "handle":
        yield BREAKS, f"the members of {name} are gone"
        return
    for a, b in zip(old["members"], new["members"]):
        where = f"{name}.{a['name']}"
        if a["name"] != b["name"]:
            yield BREAKS, f"{where} is not where it was: {b['name']} is there"
            return
        if a["type"] != b["type"]:
            yield BREAKS, f"{where} was {a['type']} and is {b['type']}"
        elif a["offset"] != b["offset"] or a["size"] != b["size"]:
            yield BREAKS, f"{where} was at offset {a['offset']} with {a['size']} bytes and is at {b['offset']} with {b['size']}"
    gone, more = old["members"][len(new["members"]):], new["members"][len(old["members"]):]
    for m in gone:
        yield BREAKS, f"{name}.{m['name']} is gone"
    for m in more:
        if not old["sized"]:
            yield BREAKS, f"{name}.{m['name']} is new, and {name} does not begin with its size"
        elif m["offset"] < old["size"]:
            yield BREAKS, f"{name}.{m['name']} is new at offset {m['offset']}, within the {old['size']} bytes that {name} had: put a reserved member before it"
        else:
            yield ADDS, f"{name}.{m['name']}"
    if not gone and not more and (old["size"], old["align"]) != (new["size"], new["align"]):
        yield BREAKS, f"{name} had {old['size']} bytes and has {new['size']}"


def enum_changes(old, new):
    now = {v["name"]: v["value"] for v in new["values"]}
    for v in old["values"]:
        if v["name"] not in now:
            yield BREAKS, f"{v['name']} is gone"
        elif v["value"] != now[v["name"]] and not v["name"].endswith("_COUNT"):
            yield BREAKS, f"{v['name']} was {v['value']} and is {now[v['name']]}"
    for v in new["values"]:
        if v["name"] not in {v["name"] for v in old["values"]}:
            yield ADDS, v["name"]


def changes(old, new):
    """What differs for programs: (BREAKS or ADDS, header, text). What breaks are programs that were compiled or written for
    the old border."""
    before, now = named(old), named(new)
    unnamed = lambda api: {"name": "", "values": [v for h in api["headers"] for d in h["declarations"] if d["kind"] == "enum" and not d["name"] for v in d["values"]]}
    home = {v["name"]: h["name"] for x in (old, new) for h in x["headers"] for d in h["declarations"] for v in d.get("values", ())}
    found = [(home.get(c[1].split()[0], "types.h"), c) for c in enum_changes(unnamed(old), unnamed(new))]
    for name, (header, a) in before.items():
        b_header, b = now.get(name, (header, None))
        where = b_header["name"]
        if name.startswith("PITH_VERSION_"):
            continue
        if b is None:
            found.append((where, (BREAKS, f"{name} is gone")))
        elif a["kind"] != b["kind"] and not (a["kind"] == "handle" and b["kind"] == "struct") and not (a["kind"] == "struct" and b["kind"] == "handle"):
            found.append((where, (BREAKS, f"{name} was a {a['kind']} and is a {b['kind']}")))
        elif header["library"] != b_header["library"]:
            found.append((where, (BREAKS, f"{name} was in {header['library']} and is in {b_header['library']}")))
        elif a["kind"] == "struct":
            found += [(where, c) for c in struct_changes(a, b)]
        elif a["kind"] == "enum":
            found += [(where, c) for c in enum_changes(a, b)]
        elif a["kind"] == "macro" and a.get("value") != b.get("value"):
            found.append((where, (BREAKS, f"{name} was {a.get('value')} and is {b.get('value')}")))
        elif a["kind"] == "function" and shape_of(a) != shape_of(b):
            found.append((where, (BREAKS, f"{name} was '{c_function(a)}' and is '{c_function(b)}'")))
        elif shape_of(a) != shape_of(b):
            found.append((where, (BREAKS, f"{name} was {a.get('type')} and is {b.get('type')}")))
    found += [(h["name"], (ADDS, name)) for name, (h, d) in now.items() if name not in before and not (d["kind"] == "macro" and "value" not in d)]
    for header, number in MODULE_HEADERS.items():  # modules of another number are not loaded, so nothing breaks
        if number in before and number in now and before[number][1]["value"] < now[number][1].get("value", 0):
            found = [(h, (ADDS, c[1]) if h == header else c) for h, c in found]
    return [(level, header, what) for header, (level, what) in found]


def refusals(release, api):
    """Faults of a border that changed more than its version: (header, text)."""
    number = lambda a: tuple(int(n) for n in a["version"].split("."))
    old, new = number(release), number(api)
    since, page = f"since {release['version']}", "see docs/release.md"
    if new < old or api["soname"] < release["soname"]:
        yield "types.h", f"the release was {release['version']} with soname {release['soname']}, this is {api['version']} with {api['soname']}"
        return
    minor, other = new[:2] > old[:2], api["soname"] > release["soname"]
    for level, header, what in changes(release, api):
        if level == BREAKS and not other:
            yield header, (f"{what} ({since}): programs that use libpith.so.{release['soname']} break. Put it back, or give the libraries a new "
                           f"SOVERSION and raise the minor version; {page}")
        elif level == BREAKS and not minor:
            yield header, f"{what} ({since}): raise the minor version; {page}"
        elif level == ADDS and not minor:
            yield header, f"{what} is new ({since}): raise the minor version; {page}"


def to_tell(old, new):
    """What people who wrote programs for the old border must be told: (header, what, names of which a page has one). Members
    that have moved to the call context are told once, for all."""
    of_call = {m["name"] for m in structs(new).get("pith_call", {"members": ()})["members"]}
    for header, (level, what) in ((h, (level, what)) for level, h, what in changes(old, new)):
        name = re.match(r"\w+", what).group()
        if level == BREAKS and not what.startswith(f"{name}."):
            yield header, what, [name]
    for name, a in structs(old).items():
        header, b = named(new).get(name, (None, None))
        if not b or b["kind"] != "struct":
            continue
        has = {m["name"]: m for m in b["members"]}
        begins = b["members"][0]["type"] == "pith_call"
        for m in a["members"]:
            if m["name"] not in has and not (begins and m["name"] in of_call):
                yield header["name"], f"{name}.{m['name']} is gone", [name]
            elif m["name"] in has and m["type"] != has[m["name"]]["type"]:
                yield header["name"], f"{name}.{m['name']} was {m['type']} and is {has[m['name']]['type']}", [name]
        if not begins and [m["name"] for m in a["members"]] != [m["name"] for m in b["members"]][: len(a["members"])]:
            yield header["name"], f"the members of {name} have moved", [name]


def line_of(root, header, what):
    """The line of a header that has the word which a refusal begins with; 1 if it is gone."""
    word = re.match(r"\w+(?:\.(\w+))?", what)
    path = root / "include/pith" / header
    found = [(word.group(1) or word.group()), word.group().split(".")[0]] if word else []
    for number, line in enumerate(path.read_text().split("\n") if path.exists() else (), 1):
        if found and re.search(rf"\b{found[0]}\b", line):
            return number
    return 1


# ---- a second opinion: abidiff of two libraries that have the border and nothing else ----

def abi_differences(old, new, folder):
    """What abidiff finds between two descriptions, as (status, text): bit 2 of the status says that something changed, bit 3
    that it is sure to break programs. Added functions do not count."""
    libraries = []
    for name, api in (("old", old), ("new", new)):
        source, library = folder / f"{name}.c", folder / name / "libpith.so"
        library.parent.mkdir(exist_ok=True)
        source.write_text("#include <stddef.h>\n#include <stdint.h>\n" + c_code(api, bodies=True, types=True))
        subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-w", f"-Wl,-soname,libpith.so.{api['soname']}", source, "-o", library], check=True)
        libraries.append(library)
    out = subprocess.run(["abidiff", "--no-added-syms", *libraries], capture_output=True, text=True, check=False)
    return out.returncode, (out.stdout + out.stderr).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--libclang", type=Path)
    for action in ("--write", "--release", "--c"):
        parser.add_argument(action, action="store_true")
    args = parser.parse_args()
    root = args.root.resolve()
    if args.libclang:
        from clang.cindex import Config
        Config.set_library_file(str(args.libclang.resolve()))
        Config.set_compatibility_check(False)  # older ones lack functions that are not called here
    if args.c:
        print(c_code(load(root)), end="")
        return
    try:
        api = describe(root)
    except NotUnderstood as e:
        sys.exit(str(e))
    import api_pages
    if args.write or args.release:
        (root / FILE).write_text(text(api) + "\n")
        api_pages.write(root, api)
    if args.release:
        (root / RELEASE).write_text(text(bare(api)) + "\n")
    faults = [f"include/pith/{header}:{line_of(root, header, what)}: {what}" for header, what in refusals(load(root, RELEASE), api)] if (root / RELEASE).exists() else []
    if not (root / FILE).exists() or load(root) != api:
        faults.append(f"{FILE} is not that of the headers: run make api")
    faults += [f"{name} is not that of the headers: run make api" for name in api_pages.stale(root, api)]
    print("\n".join(faults) or "the description is that of the headers")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
