"""Facts of the border that C's types do not have, from comments of a fixed form and from names; docs/release.md lists the forms.

annotate() adds them to a description (tools/api.py) and returns what is not clear, so that `make lint` refuses it. Rules come
first (pith/pith.h states them: outputs before inputs, NULL only where a comment allows it, an array is a name in the plural
before its count), and a comment says what the rules do not give."""
import re

NUMBERS = {"char", "int", "float", "double", "size_t", *(f"{u}int{n}_t" for n in (8, 16, 32, 64) for u in ("", "u"))}
NAME = r"[a-z]\w*"
ANY = re.compile(r"\bThread-safe|\b[Aa]ny number of threads|\bby several threads at once|\bpassed to any number of calls")
ONE = re.compile(r"\b[Oo]ne thread (?:at a time )?may use|\bNot thread-safe|\b[Nn]o (?:other )?(?:call|search|model)[^.]*? may be (?:running|there)|"
                 r"\bwhich must all have been returned")
LIVES = (  # how long a result lives that the caller does not free
    (re.compile(r"\b(?:lives?|[Vv]alid) as long as (?:the )?(process|library|[a-z]+)\b"), 1),
    (re.compile(r"\bbelongs? to (?:the )?([a-z]+)\b"), 1),
    (re.compile(r"\b[Vv]alid until the ([a-z]+) is closed"), 1),
    (re.compile(r"\breturns (text)\b"), 1),
)


def base(kind):
    """int64_t of `const int64_t *const *` and of int64_t[3]."""
    return re.sub(r"\b(const|volatile)\b|[ *]|\[\w*\]", "", kind)


def sentences(text, word):
    """The sentences of a text that have a word, as one text."""
    flat = re.sub(r"\s+", " ", re.sub(r"(?m)^- ", "", text))
    return " ".join(s for s in re.split(r"(?<=[.])\s(?=[A-Z*\"])", flat) if re.search(word, s))


def nullable_member(comment):
    return bool(re.search(r"\bNULL(, |: | is allowed| if )|\b(?:may be|else) NULL\b", comment))


def shape_at(text, at):
    """["a", "b"] of `[a][b]` and of `[a, b]` at a place of a text; brackets and parentheses within a size belong to it. None: no
    bracket is there."""
    found = []
    while text[at : at + 1] == "[":
        depth, begin = 0, at + 1
        while at < len(text):
            depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(text[at], 0)
            if depth == 0 or depth == 1 and text[at : at + 2] == ", ":
                found.append(text[begin:at].strip())
                begin = at + 1
            at += 1
            if depth == 0:
                break
    return found or None


def shape_in(comment, name):
    """The sizes of `name: float[count][dim]`, `name[count][dim]`, `name, float[count, dim],`."""
    for m in re.finditer(rf"(?<![\w.>]){re.escape(name)}(?:: |, | is )?(?:(?:pith_)?{NAME}(?: \*)?)?(?=\[)", comment):
        if (found := shape_at(comment, m.end())) != ["i"]:  # texts[i] is one of them
            return found
    return None


def nearest(comment, at, names):
    """The name that a comment mentions last before a place; None: it mentions none."""
    found = [(m.start(), m.group()) for m in re.finditer(rf"(?<![\w.>])({'|'.join(map(re.escape, names)) or '(?!)'})\b", comment[:at])]
    return max(found)[1] if found else None


class Facts:
    def __init__(self, api, release):
        self.api, self.faults = api, []
        self.entries = [(h, d) for h in api["headers"] for d in h["declarations"] if d["kind"] != "section"]
        self.named = {d["name"]: d for _, d in self.entries if d["name"]}
        self.kinds = {kind: {d["name"]: d for _, d in self.entries if d["kind"] == kind and d["name"]} for kind in ("handle", "struct", "enum", "macro", "function")}
        self.before = {}  # declarations, values and members of the last release, with the version that brought them
        for header in release["headers"] if release else ():
            for d in header["declarations"]:
                if d["kind"] == "section":
                    continue
                since = d.get("since", release["version"])
                if d["name"]:
                    self.before[d["name"]] = since
                for v in d.get("values", ()):
                    self.before[v["name"]] = v.get("since", since)
                for m in d.get("members", ()):
                    self.before[d["name"], m["name"]] = m.get("since", since)
        self.closers = {}
        for name, d in self.kinds["function"].items():
            if re.search(r"_(close|destroy|free|return)$", name):
                freed = [p for p in d["parameters"] if not p["type"].startswith("const ")][-1]
                d["frees"] = freed["name"]
                kind = base(freed["type"])
                if not name.endswith("_return") and (kind in self.kinds["handle"] or kind in self.kinds["struct"]):  # _return: what was borrowed
                    self.closers.setdefault(kind, name)

    def unclear(self, header, name, what):
        self.faults.append((header["name"], name, f"{name}: {what}"))

    # ---- types ----

    def handle(self, header, d):
        d["close"] = self.closers.get(d["name"])
        comment = d.get("comment", "") + "\n" + header["comment"]
        if not d["close"]:
            del d["close"]  # the library's own, which callbacks are given
        if not d["name"].startswith("pith_op_"):
            d["threads"] = "any" if ANY.search(d.get("comment", "")) or not ONE.search(d.get("comment", "")) and ANY.search(comment) else "one"
        if "close" in d and not ANY.search(comment) and not ONE.search(comment):
            self.unclear(header, d["name"], 'the comment says neither "any number of threads" nor "one thread at a time may use"')

    def member(self, header, d, m):
        comment, where = m.get("comment", ""), f"{d['name']}.{m['name']}"
        if ("*" in m["type"] or "function" in m) and nullable_member(comment):
            m["nullable"] = True
        shape = shape_at(comment, 0)
        if shape and "*" in m["type"]:
            m["shape"] = shape
        self.enumerated(m, comment)
        if "function" in m:
            users = [o for o in d["members"] if o["type"] == "void *"]
            users = [o["name"] for o in users if len(users) == 1 and o["name"] == "user" or re.search(rf"\bpassed to \b{m['name']}\b", o.get("comment", ""))]
            if users or re.search(r"\buser is call\.user\b", comment):
                m["user"] = users[0] if users else "call.user"
        if as_in := re.match(r"as in (pith_\w+)", comment):
            same = next((o for o in self.kinds["struct"].get(as_in.group(1), {}).get("members", ()) if o["name"] == m["name"]), None)
            if not same:
                self.unclear(header, d["name"], f"{where} is as in {as_in.group(1)}, which has no such member")
            for fact in ("nullable", "shape", "enum"):
                if same and fact in same:
                    m.setdefault(fact, same[fact])
        if re.search(r"\b(?:must stay|must outlive|[Nn]ot copied)\b", comment):
            m["kept"] = True
        many = base(m["type"]) in NUMBERS and "*" in m["type"] and m["type"] not in ("const char *", "const volatile int *")
        if many and "shape" not in m and header["library"] != "module":
            self.unclear(header, d["name"], f"the comment of {where} does not say how many elements there are: [count], or [1]")

    def enumerated(self, entry, comment, name=None):
        """The enum of a number: `a pith_dtype` in its comment, its own type, or the PITH_X_* it is made of."""
        kind = base(entry["type"])
        if kind in self.kinds["enum"]:
            entry["enum"] = kind
            return
        if kind not in NUMBERS or "*" in entry["type"]:
            return
        near = rf"\b{name}\b[^.;]{{0,60}}?" if name else ""
        m = re.search(near + r"\ba (pith_\w+)\b", comment) or not name and re.match(r"(pith_\w+)$", comment)
        called = [e for e in self.kinds["enum"] if e == "pith_" + entry["name"] or name and e.endswith("_" + entry["name"])]
        if m and m.group(1) in self.kinds["enum"]:
            entry["enum"] = m.group(1)
        elif kind == "int32_t" and ("pith_" + entry["name"] in called or len(called) == 1):
            entry["enum"] = "pith_" + entry["name"] if "pith_" + entry["name"] in called else called[0]
        elif not name and (flags := re.match(r"(PITH_\w+_)\*", comment)):
            entry["flags"] = flags.group(1)

    def struct(self, header, d):
        if "PITH_" + d["name"].removeprefix("pith_").upper() + "_INIT" in self.kinds["macro"]:
            d["init"] = "PITH_" + d["name"].removeprefix("pith_").upper() + "_INIT"
        if d["name"] in self.closers:
            d["free"] = self.closers[d["name"]]
        if re.search(r"\bplain value", d.get("comment", "")):
            d["plain"] = True
        for m in d["members"]:
            self.member(header, d, m)
        if d["sized"] and "plain" not in d and "init" not in d and d["name"] not in self.given:
            self.unclear(header, d["name"], "it begins with its size and has no initialiser")

    def shared(self, kind):
        """A struct that callbacks get to read and fill."""
        return kind in self.kinds["struct"] and any(base(p["type"]) == kind and not p["type"].startswith("const") and kind != "pith_error" for d in self.kinds["struct"].values()
                   for m in d["members"] for p in m.get("function", {}).get("parameters", ()) if "*" in p["type"])

    @property
    def given(self):
        """Structs that only the library makes: results and parameters of callbacks that are pointers to const."""
        found = {base(d["returns"]) for d in self.kinds["function"].values()}
        for d in self.named.values():
            for m in d.get("members", ()):
                for p in m.get("function", {}).get("parameters", ()):
                    found.add(base(p["type"]))
        return found

    # ---- functions ----

    def parameter(self, header, d, i, comment, like):
        p = d["parameters"][i]
        later = d["parameters"][i + 1:]
        kind, stars, name = base(p["type"]), p["type"].count("*"), p["name"]
        out = re.search(r"[*\[]", p["type"]) and not p["type"].startswith("const ")
        if "function" in p:
            if later and later[0]["type"] == "void *":
                p["user"] = later[0]["name"]
            return
        self.enumerated(p, comment, name)
        if "*" not in p["type"] and "[" not in p["type"]:
            return
        if name in ("user", "context") and kind == "void":
            return
        self.array(d, p, later, comment)
        if stars == 1 and (kind in self.kinds["handle"] or self.shared(kind)) or d.get("frees") == name and kind == "char":
            pass
        elif kind == "pith_error" and name == "err":
            p["direction"] = "out"
        elif out or p["type"] == "const char **":
            read = stars == 1 and kind in self.kinds["struct"] and ("init" in self.kinds["struct"][kind] or self.closers.get(kind) == d["name"])
            p["direction"] = "inout" if read and "shape" not in p and not d["name"].startswith("pith_op_") else "out"
            self.owner(p, comment, like)
        if kind == "pith_allocator":
            p["kept"] = True

    def owner(self, p, comment, like):
        """What frees what a parameter points to afterwards: `*text with pith_text_free`, or what frees all of its type."""
        kind = base(p["type"])
        explicit = re.search(rf"\*{p['name']} with (pith_\w+)", comment)
        if explicit:
            p["free"] = explicit.group(1)
        elif p["type"].count("*") == 2 and kind in self.closers and not p["type"].startswith("const"):
            p["free"] = self.closers[kind]
        elif p["direction"] == "out" and kind in self.closers and not re.search(r"is not freed|[Tt]heir data belongs to|are valid until", comment) and (not like or "free" in like):
            p["free"] = self.closers[kind]

    def array(self, d, p, later, comment):
        kind, name, stars = base(p["type"]), p["name"], p["type"].count("*")
        if kind == "pith_error" or re.search(r"_(options|call|writer|allocator)$", kind):
            return
        shape = shape_in(comment, name)
        if "[" in p["type"]:
            p["shape"] = re.findall(r"\[(\w+)\]", p["type"])
        elif shape or "shape" in p:
            p["shape"] = shape or p["shape"]
        elif (kind == "void" or kind == "char" and not p["type"].startswith("const")) and later and later[0]["name"] == "size":
            p["shape"] = ["size"]
        elif name == "dims" and any(o["name"] == "rank" and "*" not in o["type"] for o in d["parameters"]):
            p["shape"] = ["rank"]
        elif name.endswith("s") and not kind.endswith(name) and not (kind in self.kinds["handle"] and stars == 1):
            counts = [o["name"] for o in later if o["name"] == "count" or o["name"] in (name[:-1] + "_count", "input_count")]
            if counts and "*" not in next(o["type"] for o in later if o["name"] == counts[0]):
                p["shape"] = [counts[0]]

    def clear(self, header, d, p, comment):
        """Whether it is known how many elements a pointer leads to."""
        kind, name, stars = base(p["type"]), p["name"], p["type"].count("*")
        if "*" not in p["type"] or "shape" in p or "function" in p or name in ("user", "context"):
            return
        if kind in self.kinds["handle"] or kind in self.kinds["struct"] and stars == 1 and (not name.endswith("s") or kind.endswith(name)):
            return
        if p["type"] == "const char *" or "free" in p or re.search(rf"\*{name}\b", comment):
            return
        if kind in NUMBERS or kind == "void" or kind in self.kinds["struct"] or stars > 1 and p["type"].startswith("const"):
            self.unclear(header, d["name"], f"the comment does not say how many elements {name} has ({name}[count]), or that *{name} is one")

    def function(self, header, d, comment, like, wholly):
        parameters = d["parameters"]
        same = lambda p, of=like: next((o for o in of["parameters"] if o["name"] == p["name"] and ("*" in o["type"]) == ("*" in p["type"])), None) if of else None
        for p in parameters if wholly else ():
            self.copy(p, same(p))
        for m in re.finditer(r"([\w, ]+?) (?:is|are) as in (pith_\w+)", comment):
            for p in parameters:
                if p["name"] in re.findall(r"\w+", m.group(1)) and m.group(2) in self.kinds["function"]:
                    self.copy(p, same(p, self.kinds["function"][m.group(2)]))
        self.nulls(d, comment)
        self.keeps(d, comment)
        for i, p in enumerate(parameters):
            if p["type"] == "pith_error *" or re.fullmatch(r"const pith_(\w+_options|call|allocator) \*", p["type"]):
                p["nullable"] = True
            self.parameter(header, d, i, comment, same(p))
            if header["library"] != "module":
                self.clear(header, d, p, comment)
        self.threads(header, d, comment, like)
        errors = sorted(set(re.findall(r"\bPITH_ERR_\w+", comment)))
        if errors:
            d["errors"] = errors
        said = sentences(comment, r"\bPITH_ERR_|^Errors?\b")
        if said:
            d["error_text"] = said
        of = set(re.findall(r"\bErrors (?:are|beside) those of (pith_\w+)|\bthose of (pith_\w+)\.$", comment))
        of = sorted({name for names in of for name in names if name} | ({like["name"]} if like else set()))
        if of:
            d["errors_of"] = of
        self.result(header, d, comment)

    @staticmethod
    def copy(p, other):
        for fact in ("shape", "nullable", "enum", "kept"):
            if other and fact in other:
                p[fact] = other[fact]

    @staticmethod
    def nulls(d, comment):
        """Which parameters may be NULL: `x may be NULL`, `x and y may be NULL`, or the one mentioned before `NULL:`, `NULL is
        allowed`, `or NULL`, `is not NULL`, `NULL if`, `NULL ends`; of a function that frees, what it frees."""
        pointers = {p["name"]: p for p in d["parameters"] if ("*" in p["type"] or "function" in p) and p["name"] not in ("err", "user")}
        for m in re.finditer(r"([\w, ]+?):? may (?:each |both |then )?be NULL", comment):
            for word in re.findall(r"\w+", m.group(1)):
                if word in pointers:
                    pointers[word]["nullable"] = True
        for m in re.finditer(r"\bNULL (?:is|and zeros are) allowed", comment):
            name = d.get("frees") or nearest(comment, m.start(), pointers)
            if name:
                pointers[name]["nullable"] = True
        direct = "|".join(pointers) or "(?!)"
        for m in re.finditer(rf"\bNULL: |\bNULL or a\b|, or NULL\.|\b(?:{direct}) is (?:not )?NULL\b|, if it is not NULL\b|\bNULL if \w+ is NULL|\bNULL (?:ends|gives)\b", comment):
            name = nearest(comment, m.end(), pointers) or (next(iter(pointers)) if len(pointers) == 1 else None)
            if name and not re.search(r"PITH_ERR_\w+(?::| if) $", comment[: m.start()]):
                pointers[name]["nullable"] = True

    @staticmethod
    def keeps(d, comment):
        """Which parameters the library goes on to use: the one mentioned before `must stay`, `must outlive`, `must live`."""
        pointers = {p["name"]: p for p in d["parameters"] if p["type"].startswith("const ") and not re.search(r"_options|_call|_writer|const char \*$", p["type"])}
        for m in re.finditer(r"\b(?:(?:must|and) (?:then )?(?:stay|outlive|live)\b|stays the caller's)", comment):
            name = nearest(comment, m.start(), pointers) or (next(iter(pointers)) if len(pointers) == 1 else None)
            if name:
                pointers[name]["kept"] = True

    def threads(self, header, d, comment, like):
        used = [(p, self.kinds["handle"][base(p["type"])]) for p in d["parameters"] if base(p["type"]) in self.kinds["handle"] and p["type"].count("*") == 1]
        closes = "frees" in d
        if ONE.search(comment) and not re.search(r"\bThread-safe", comment):
            d["threads"] = "one"
        elif ANY.search(comment):
            d["threads"] = "any"
        elif like:
            d["threads"] = like["threads"]
        elif ANY.search(header["comment"]) and not closes:
            d["threads"] = "any"
        else:
            d["threads"] = "one" if used and closes or any(h["threads"] == "one" for p, h in used) else "any"

    def result(self, header, d, comment):
        kind = d["returns"]
        if "*" not in kind and kind != "pith_str":
            named = re.search(r"\b(?:a|the) (pith_\w+)", comment) if kind == "int32_t" else None
            if named and named.group(1) in self.kinds["enum"] and comment.startswith("Return"):
                d["result"] = {"enum": named.group(1)}
            elif flags := re.match(r"Returns the (PITH_\w+_)\*", comment):
                d["result"] = {"flags": flags.group(1)}
            return
        fact = d["result"] = {}
        if re.search(r"\bNULL\b", comment):
            fact["nullable"] = True
        if base(kind) in self.closers and not kind.startswith("const"):
            fact["free"] = self.closers[base(kind)]
            return
        for form, group in LIVES:
            if m := form.search(comment):
                fact["lives"] = m.group(group)
                break
        else:
            if header["library"] != "module":
                self.unclear(header, d["name"], 'the comment does not say how long the result lives: "Valid as long as the model", "lives as long as the process"')
        counted = next((p["name"] for p in d["parameters"] if p["name"] == "count" and "*" in p["type"]), None)
        if counted:
            fact["shape"] = ["*" + counted]

    # ---- all ----

    def since(self, d):
        version = self.api["version"]
        d["since"] = self.before.get(d["name"], version) if d["name"] else None
        for v in d.get("values", ()):
            since = self.before.get(v["name"], version)
            if since != d["since"]:
                v["since"] = since
        for m in d.get("members", ()):
            since = self.before.get((d["name"], m["name"]), version)
            if since != d["since"]:
                m["since"] = since
        if d["since"] is None:
            del d["since"]

    def all(self):
        for header, d in self.entries:
            self.since(d)
        for kind in ("handle", "struct"):
            for header, d in self.entries:
                if d["kind"] == kind:
                    getattr(self, kind)(header, d)
        for header in self.api["headers"]:
            section, previous, shared, place = None, None, "", 0
            for d in header["declarations"]:
                if d["kind"] == "section":
                    section = d["name"]
                    continue
                if section:
                    d["section"] = section
                if d["kind"] != "function":
                    continue
                shared = d.get("comment", "") if "comment" in d or "joined" not in d else shared
                place = place + 1 if "joined" in d and "comment" not in d else 0  # among those that share the comment
                as_other = re.match(r"(?:As|The same as) (pith_\w+)(?: and (pith_\w+))?", shared) or re.search(r"\bOtherwise as (pith_\w+)(?: and (pith_\w+))?", shared)
                others = [self.kinds["function"][n] for n in as_other.groups() if n in self.kinds["function"]] if as_other else []
                like = others[min(place, len(others) - 1)] if others else previous if re.match(r"The same\b", shared) else None
                self.function(header, d, shared, like if like is not d else None, not shared.endswith(f"therwise as {like['name']}.") if like else False)
                previous = d
        return self.faults


def annotate(api, release):
    return Facts(api, release).all()
