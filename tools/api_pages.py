"""docs/api: a page per header, from a description of the border (tools/api.py). The same description gives the same bytes."""
import itertools
import re
import textwrap

import api as border

NOTE = "<!-- written by `make api` from include/pith; do not edit -->\n"
LIBRARIES = {"pith": "libpith", "pith-tables": "libpith-tables", "module": "modules of picture decoders"}


def page_of(header):
    return header.replace(".", "_") + ".md"


class Words:
    """Comments as Markdown: names of the border link to where they are described."""

    def __init__(self, api):
        self.where = {}
        self.initialisers = {d["init"]: d["name"] for h in api["headers"] for d in h["declarations"] if "init" in d}  # described with their struct
        for header in api["headers"]:
            for d in header["declarations"]:
                if d["kind"] == "section":
                    continue
                if d["name"]:
                    self.where[d["name"]] = (page_of(header["name"]), self.initialisers.get(d["name"], d["name"]).lower())
                for value in d.get("values", ()):
                    self.where[value["name"]] = (page_of(header["name"]), d["name"].lower())

    def link(self, name, page, here=""):
        target, anchor = self.where.get(name, (None, None))
        if not target or not anchor or anchor == here:
            return f"`{name}`"
        return f"[`{name}`]({'' if target == page else target}#{anchor})"

    def kind(self, m, page, here=""):
        """The type of a member, which links to what it leads to."""
        written = kind(m).replace("|", "\\|")
        target, anchor = self.where.get(border.base(m["type"]), (None, None))
        return f"[`{written}`]({'' if target == page else target}#{anchor})" if target and anchor != here and "function" not in m else f"`{written}`"

    CODE = re.compile(r"`[^`]+`|\bPITH_\w+_\*|\*?\b(?:pith|PITH)_\w+(?:\.\w+|->\w+)+|\b(?:pith|PITH)_\w+|\*\w+\b|"
                      r"\b\w+(?:\[[^\]\s]*(?:, [^\]\s]+)*\])+(?:\.\w+)*|\b\w+->\w+(?:(?:\.|->)\w+)*")

    def line(self, text, page, here=""):
        """One paragraph: names of the border, members, elements and what has backticks are set as code."""
        escaped = lambda plain: re.sub(r"([\\*<|\[\]`])", r"\\\1", plain)
        at, out = 0, []
        for m in self.CODE.finditer(text):
            out.append(escaped(text[at : m.start()]))
            out.append((self.link(m.group(), page, here) if re.fullmatch(r"(pith|PITH)_\w+", m.group()) else f"`{m.group().strip('`')}`").replace("|", "\\|"))
            at = m.end()
        return "".join(out) + escaped(text[at:])

    def block(self, text, page, here=""):
        """A comment: paragraphs, lists, and what is indented as code."""
        out = []
        for verbatim, lines in itertools.groupby(text.split("\n"), lambda line: line.startswith("  ")):
            lines = list(lines)
            if verbatim:
                out += ["", "```c", *textwrap.dedent("\n".join(lines)).split("\n"), "```", ""]
                continue
            for line in lines:
                item = line.startswith("- ")
                if line and out and out[-1] and item != out[-1].startswith("- "):
                    out.append("")
                out.append(("- " if item else "") + self.line(line.removeprefix("- "), page, here))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n") + "\n"


def wrapped(head, pieces):
    """A declaration of at most 100 columns a line."""
    line, out = head, []
    for i, piece in enumerate(pieces):
        piece += "," if i + 1 < len(pieces) else ""
        if len(line) + len(piece) + 1 > 98 and line != head:
            out.append(line.rstrip())
            line = " " * len(head)
        line += piece + " "
    return "\n".join([*out, line.rstrip()])


def code(d):
    kind = d["kind"]
    if kind == "function":
        head = border.c_type(d["returns"], d["name"]) + "("
        return wrapped(head, [border.c_named(p) for p in d["parameters"]] or ["void"]) + ");"
    if kind == "macro":
        return f"#define {d['name']} {d['value']}" if "value" in d else f"#define {d['text']}"
    if kind == "handle":
        return f"typedef struct {d['name']} {d['name']};"
    if kind == "type":
        return f"typedef {border.c_named(d)};"
    return f"extern {border.c_named(d)};"


def since(entry):
    """Of a member or value that came later than what it is part of."""
    return f" *(since {entry['since']})*" if "since" in entry else ""


def kind(m):
    """The type of a member, with the names of a function's parameters."""
    return border.c_named(m | {"name": ""}) if "function" in m else m["type"]


def facts(words, d, page):
    """What the description knows of a function beyond its comment, in a line. Errors and options may always be NULL."""
    link = lambda name: words.link(name, page, d["name"].lower())
    out = []
    for p in d["parameters"]:
        if "free" in p:
            many = "each of " if "shape" in p and p["type"].count("*") < 2 else ""
            out.append(f"Free {many}`{'*' if p['type'].count('*') == 2 else ''}{p['name']}` with {link(p['free'])}.")
    if "free" in d.get("result", {}):
        out.append(f"Free the result with {link(d['result']['free'])}.")
    nulls = [f"`{p['name']}`" for p in d["parameters"] if p.get("nullable") and p["name"] != "err" and not re.search(r"_options \*$", p["type"])]
    if nulls:
        out.append(f"May be NULL: {', '.join(nulls)}.")
    out.append("Any number of threads may call it at once." if d["threads"] == "any" else "One thread at a time may use the handle.")
    return f"*{' '.join(out)} Since {d['since']}.*\n"


def group(words, members, page):
    """Declarations that share a comment."""
    first, out = members[0], []
    for d in members:
        out.append(f"### {d['name']}\n" if d["name"] else "### Constants\n")
    here = first["name"].lower()
    comment = "\n\n".join(d["comment"] for d in members if d.get("comment"))
    if first["kind"] in ("struct", "enum"):
        if comment:
            out.append(words.block(comment, page, here))
        if first["kind"] == "struct":
            about = [f"Initialise it with `{first['init']}`."] if "init" in first else []
            about += [f"Free it with {words.link(first['free'], page, here)}."] if "free" in first else []
            out.append(" ".join([f"*{first['size']} bytes on 64-bit machines.", *about, f"Since {first['since']}.*\n"]))
            out.append("| member | type | |\n|---|---|---|")
            out += [f"| `{m['name']}` | {words.kind(m, page, here)} | {(words.line(m.get('comment', ''), page, here) + since(m)).strip()} |".replace("|  |", "| |") for m in first["members"]]
        else:
            out.append("| name | value | |\n|---|---|---|")
            out += [f"| `{v['name']}` | {v['value']} | {(words.line(v.get('comment', ''), page, here) + since(v)).strip()} |".replace("|  |", "| |") for v in first["values"]]
        out.append("")
        return out
    out.append("```c\n" + "\n".join(code(d) for d in members) + "\n```\n")
    if comment:
        out.append(words.block(comment, page, here))
    if first["kind"] == "handle" and "close" in first:
        out.append(f"*Close it with {words.link(first['close'], page, here)}. Since {first['since']}.*\n")
    if first["kind"] == "function":
        said = [facts(words, d, page) for d in members]
        same = len(set(said)) == 1
        out += said[:1] if same else [f"`{d['name']}`: {line}" for d, line in zip(members, said)]
    return out


def header_page(words, header):
    page = page_of(header["name"])
    out = [NOTE, f"# pith/{header['name']}\n", f"Library: {LIBRARIES[header['library']]}. [All headers](README.md)\n"]
    if header["comment"]:
        first, _, rest = header["comment"].partition("\n")
        out.append(words.block(first[:1].upper() + first[1:] + ("\n" + rest if rest else ""), page))
    members = []
    for d in [*header["declarations"], {"kind": "section", "name": ""}]:
        if d["name"] in words.initialisers:
            continue
        simple = d["kind"] not in ("struct", "enum", "section")
        if members and not (simple and d.get("joined") and members[-1]["kind"] == d["kind"] and not (d.get("comment") and members[-1].get("comment"))):
            out += group(words, members, page)
            members = []
        if d["kind"] != "section":
            members.append(d)
        elif d["name"]:
            out.append(f"## {d['name'][:1].upper() + d['name'][1:]}\n")
    return "\n".join(out).rstrip() + "\n"


def index_page(words, api):
    out = [NOTE, "# The C interface\n", f"Version {api['version']}, `libpith.so.{api['soname']}`. A page per header; `pith/pith.h` includes most of them.",
           "[include/api.json](../../include/api.json) says the same for programs, and [releasing](../release.md) which changes a version may make.\n",
           "| header | library | functions | |", "|---|---|---|---|"]
    for h in api["headers"]:
        count = sum(d["kind"] == "function" for d in h["declarations"])
        about = words.line(re.split(r"\n|(?<=[.:]) ", h["comment"])[0].rstrip(".:"), "")
        out.append(f"| [pith/{h['name']}]({page_of(h['name'])}) | {LIBRARIES[h['library']]} | {count} | {about} |")
    for title, kinds in (("Functions", ("function",)), ("Types", ("struct", "enum", "handle", "type"))):
        names = sorted(d["name"] for h in api["headers"] for d in h["declarations"] if d["kind"] in kinds and d["name"])
        out += ["", f"## {title}", "", *(f"- {words.link(n, '')}" for n in names)]
    return "\n".join(out) + "\n"


def pages(api):
    words = Words(api)
    return {"README.md": index_page(words, api)} | {page_of(h["name"]): header_page(words, h) for h in api["headers"]}


def write(root, api):
    folder, made = root / border.PAGES, pages(api)
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, content in made.items():
        (folder / name).write_text(content)


def stale(root, api):
    folder, made = root / border.PAGES, pages(api)
    there = {p.name: p.read_text() for p in folder.glob("*.md")}
    return [f"{border.PAGES}/{name}" for name in sorted(made | there) if made.get(name) != there.get(name)]
