"""docs/api: a page per header, from a description of the border (tools/api.py). The same description gives the same bytes."""
import re

import api as border

NOTE = "<!-- written by `make api` from include/pith; do not edit -->\n"
LIBRARIES = {"pith": "libpith", "pith-tables": "libpith-tables", "module": "modules of picture decoders"}


def page_of(header):
    return header.replace(".", "_") + ".md"


class Words:
    """Comments as Markdown: names of the border link to where they are described."""

    def __init__(self, api):
        self.where = {}
        for header in api["headers"]:
            for d in header["declarations"]:
                if d["kind"] == "section":
                    continue
                if d["name"]:
                    self.where[d["name"]] = (page_of(header["name"]), d["name"].lower())
                for value in d.get("values", ()):
                    self.where[value["name"]] = (page_of(header["name"]), d["name"].lower())

    def link(self, name, page, here=""):
        target, anchor = self.where.get(name, (None, None))
        if not target or not anchor or anchor == here:
            return f"`{name}`"
        return f"[`{name}`]({'' if target == page else target}#{anchor})"

    def line(self, text, page, here="", names=()):
        """One paragraph. names: parameters, which are set as code where they have a star or brackets."""
        def code(m):
            word = m.group()
            if re.fullmatch(r"(pith|PITH)_\w+", word):
                return self.link(word, page, here)
            return f"`{word}`"
        pattern = r"\*?\b(?:pith|PITH)_\w+(?:\.\w+|->\w+)+|\b(?:pith|PITH)_\w+(?![\w/.*(]*/)|\*\w+\b|\b\w+(?:\[[^\]\s]*(?:, [^\]\s]+)*\])+|\b\w+->[\w.>-]+"
        parts, at, out = re.finditer(pattern, text), 0, []
        for m in parts:
            out += [re.sub(r"([\\*<|\[\]`])", r"\\\1", text[at : m.start()]), code(m).replace("|", "\\|")]
            at = m.end()
        return "".join(out) + re.sub(r"([\\*<|\[\]`])", r"\\\1", text[at:])

    def block(self, text, page, here=""):
        out, verbatim = [], False
        for line in text.split("\n"):
            is_verbatim = line.startswith("  ")
            if is_verbatim != verbatim:
                out += ["```c" if is_verbatim else "```"] if not is_verbatim else ["", "```c"]
                verbatim = is_verbatim
            if is_verbatim:
                out.append(line.removeprefix("    "))
            else:
                if line.startswith("- ") and out and out[-1] and not out[-1].startswith("- "):
                    out.append("")
                out.append(("- " if line.startswith("- ") else "") + self.line(line.removeprefix("- "), page, here) if line else "")
        return "\n".join(out + (["```"] if verbatim else [])) + "\n"


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
        return wrapped(head, [border.c_type(p["type"], p["name"]) for p in d["parameters"]] or ["void"]) + ");"
    if kind == "macro":
        return f"#define {d['name']} {d.get('value', d.get('text'))}"
    if kind == "handle":
        return f"typedef struct {d['name']} {d['name']};"
    if kind == "type":
        return f"typedef {border.c_type(d['type'], d['name'])};"
    return f"extern {border.c_type(d['type'], d['name'])};"


def facts(d):
    """What the description knows beyond C's types."""
    found = []
    for p in d.get("parameters", ()):
        about = [f"`{p['name']}{p['shape']}`" if "shape" in p else "", "may be NULL" if p.get("nullable") else ""]
        if any(about):
            found.append(" ".join(filter(None, [about[0] or f"`{p['name']}`", about[1]])))
    return found


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
            size = "It begins with its size: later versions may add members at its end." if first["sized"] and not first.get("plain") else ""
            out.append(f"{first['size']} bytes on 64-bit machines. {size}".rstrip() + "\n")
            out.append("| member | type | offset | |\n|---|---|---|---|")
            out += [f"| `{m['name']}` | `{m['type']}` | {m['offset']} | {words.line(m.get('comment', ''), page, here)} |".replace("|  |", "| |") for m in first["members"]]
        else:
            out.append("| name | value | |\n|---|---|---|")
            out += [f"| `{v['name']}` | {v['value']} | {words.line(v.get('comment', ''), page, here)} |".replace("|  |", "| |") for v in first["values"]]
        out.append("")
        return out
    out.append("```c\n" + "\n".join(code(d) for d in members) + "\n```\n")
    if comment:
        out.append(words.block(comment, page, here))
    return out


def header_page(words, header):
    page = page_of(header["name"])
    out = [NOTE, f"# pith/{header['name']}\n", f"Library: {LIBRARIES[header['library']]}. [All headers](README.md)\n"]
    if header["comment"]:
        first, _, rest = header["comment"].partition("\n")
        out.append(words.block(first[:1].upper() + first[1:] + ("\n" + rest if rest else ""), page))
    members = []
    for d in [*header["declarations"], {"kind": "section", "name": ""}]:
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
