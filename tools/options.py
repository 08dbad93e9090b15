#!/usr/bin/env python3
"""Reads cli/options/options.def and cli/options/presets.def, and writes docs/options.md from them (`make docs`)."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/options.md"
KINDS = {"FLAG": "flag", "SWITCH": "flag", "WHETHER": "flag", "INT": "whole number", "MOST": "whole number",
         "THREADS": "whole number, `cores`, `max`", "SHARE": "number", "FLOAT": "number", "AMOUNT": "number", "BYTES": "bytes",
         "STRING": "text", "LIST": "text, many times", "CHOICE": "one of"}
STRING = r'"((?:[^"\\]|\\.)*)"'


def joined(text):
    """The value of C string literals one after the other."""
    return "".join(re.findall(STRING, text)).replace('\\"', '"').replace("\\\\", "\\")


def calls(path, name):
    """The arguments of each NAME(...) of a file, as text, and its line."""
    text = path.read_text()
    for m in re.finditer(rf"^{name}\(", text, re.M):
        at, depth = m.end(), 1
        while depth:
            quoted = re.compile(STRING).match(text, at)
            at = quoted.end() if quoted else at + 1
            depth += 0 if quoted else {"(": 1, ")": -1}.get(text[at - 1], 0)
        yield text[m.end():at - 1], text[: m.start()].count("\n") + 1


def rows():
    """The rows of options.def as dictionaries."""
    found = []
    for body, line in calls(ROOT / "cli/options/options.def", "OPTION"):
        head = re.match(rf"(\w+), {STRING}, {STRING},", body)
        row = {"id": head.group(1), "field": head.group(2), "test": head.group(3), "line": line}
        for member, text, plain in re.findall(r'\.(\w+) =\s*(?:((?:"(?:[^"\\]|\\.)*"\s*)+)|([^,\n]+))', body[head.end():]):
            row[member] = joined(text) if text else plain.strip()
        row["kind"] = row["kind"].removeprefix("OPTION_")
        found.append(row)
    return found


def presets():
    """(name, help, values) of each preset."""
    for body, _ in calls(ROOT / "cli/options/presets.def", "PRESET"):
        name, rest = body.split(",", 1)
        aim, *values = re.findall(STRING, rest)
        yield name, aim, values


def verbs():
    """The verbs that have each row, in the order of verbs.def."""
    users = {}
    groups = {name: re.findall(r"OPTION_PLACE\((\w+),", body) for name, body in
              re.findall(r"#define (OPTIONS_\w+)\(settings(?:, member)?\)((?:.*\\\n)+.*)",
                         "".join((ROOT / f"cli/{file}").read_text() for file in ("options/work_options.h", "options/runtime_choice.h",
                                                                                 "input/row_options.h")))}
    groups["OPTIONS_RUNTIME"] += groups["OPTIONS_ORT"]
    names = re.findall(r"^VERB\((\w+)\)$", (ROOT / "cli/verbs.def").read_text(), re.M)
    for verb in [*names, "pith"]:
        path = ROOT / ("cli/main.c" if verb == "pith" else f"cli/verbs/cmd_{verb}.c")
        table = re.search(r"static const option options\[\] = \{(.*?)\n\};", path.read_text(), re.S).group(1)
        used = re.findall(r"(?:\bAT|OPTION_PLACE)\((\w+),", table)
        for group in re.findall(r"(OPTIONS_\w+)\(", table):
            used += groups[group]
        if "OPTION_SOURCES" in table:
            used += ["config", "preset"]
        if "OPTION_CONFIG" in table:
            used += ["config"]
        for row in used:
            users.setdefault(row, []).append(verb)
    return users


def variable(row):
    return "PITH_" + row["name"].upper().replace("-", "_")


def key(row):
    return row["name"].replace("-", "_")


def flags(row):
    names = [f"`-{row['letter'].strip(chr(39))}`"] if "letter" in row else []
    value = f"[={row['takes']}]" if "implied" in row else f" {row['takes']}" if "takes" in row else ""
    names.append(f"`--{row['name']}{value}`")
    if row["kind"] in ("SWITCH", "WHETHER") or (row["kind"] == "FLAG" and "anywhere" in row):
        names.append(f"`--no-{row['name']}`")
    return names + ([f"`--{row['alias']}`"] if "alias" in row else [])


def limits(row):
    if row["kind"] == "CHOICE":
        return "one of " + ", ".join(f"`{c}`" for c in row["choices"].split("|"))
    number = {"INT32_MAX": "2147483647", "1 << 24": "16777216"}
    most = row.get("max")
    span = {"SHARE": " from 0 to 1", "FLOAT": ", not negative", "AMOUNT": ", not negative"}.get(row["kind"], "")
    return KINDS[row["kind"]] + (f" from {row.get('min', 0)} to {number.get(most, most)}" if most else span)


def cell(text):
    return text.replace("|", "\\|")


HEAD = """# Options

This page is made from `cli/options/options.def` and `cli/options/presets.def` by `make docs`.

A value is looked for in this order; the first that is there counts:

1. the flag;
2. the environment variable. An empty one counts as not set;
3. the configuration, one JSON object: `{"threads": 4, "precision": "int8"}`. It is the file of `--config FILE`, else of
   `$PITH_CONFIG`, else `$XDG_CONFIG_HOME/pith/config.json`, else `~/.config/pith/config.json`. `--config ""` reads none;
4. what the model says, for the options whose default says so;
5. the default.

A key that is no option is an error that names the key, the file and the known key that is spelled most like it. A key of an option that
the command in question does not have is passed over. A value that is wrong is an error that names where it comes from, the value and what
there is to choose from. Flags are `true` or `false` there. libpith reads none of this: it has the fields that the tables name.

The values of a preset stand just below those of the source that names it: `--preset latency` overrides the environment, and any other flag
overrides the preset. What options bring in time and memory is measured in [performance/options.md](performance/options.md).
"""


def page():
    users = verbs()
    out = [HEAD, "## Presets\n", "| preset | aim | values |", "|---|---|---|"]
    for name, aim, values in presets():
        out.append(f"| `{name}` | {aim} | {', '.join(f'`{v}`' for v in values)} |")
    out.append("\nA command takes the values of the options that it has.\n")
    for title, everywhere in (("Options with a variable and a key", True), ("Flags alone", False)):
        out.append(f"## {title}\n")
        columns = ["flag", "variable, key", "value", "default", "what it does", "field of libpith", "commands", "test"]
        if not everywhere:
            columns.remove("variable, key")
        out += ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
        for row in sorted((r for r in rows() if ("anywhere" in r) == everywhere), key=lambda r: (r["name"], r["id"])):
            usual = row.get("otherwise") or (f"`{row['initial']}`" if "initial" in row else "off" if row["kind"] == "FLAG" else "none")
            cells = [", ".join(flags(row)), f"`{variable(row)}`, `{key(row)}`", limits(row), usual, row["help"],
                     ", ".join(f"`{f}`" for f in row["field"].split(", ")) if row["field"] else "",
                     ", ".join(users.get(row["id"], [])), "`{0}.py` {1}".format(*row["test"].split(" "))]
            if not everywhere:
                cells.pop(1)
            out.append("| " + " | ".join(cell(c) for c in cells) + " |")
        out.append("")
    return "\n".join(out).rstrip() + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page())
    else:
        print(page(), end="")
