"""Small faults in a C file formatted by clang-format: each is one change to the text of one function."""
import bisect
import collections
import hashlib
import re

Fault = collections.namedtuple("Fault", "kind start end new first last function old_text new_text")
Token = collections.namedtuple("Token", "kind text start end")

TOKEN = re.compile(r"""(?P<name>[A-Za-z_]\w*)|(?P<number>(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)\w*)
    |(?P<literal>"[^"]*"|'[^']*')|(?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s\w])""", re.X)
NOISE = re.compile(r"""(/\*.*?\*/|//[^\n]*)|("(?:\\.|[^"\\\n])*")|('(?:\\.|[^'\\\n])*')|(^[ \t]*\#(?:\\\n|[^\n])*)""",
                   re.S | re.M)
HEADER = re.compile(r"^[A-Za-z_][^;{}=#]*?\b(\w+)\([^;{}]*\)\s*\{", re.M)

CHANGED = {
    "relation": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "logic": {"&&": "||", "||": "&&"},
    "arithmetic": {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|"},
    "assignment": {"+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=", "*=": "/=", "/=": "*="},
    "step": {"++": "--", "--": "++"},
    "constant": {"true": "false", "false": "true"},
}
CONTROL = {"if", "for", "while", "switch"}
NO_STATEMENT = {"return", "goto", "case", "default", "typedef", "static", "const", "struct", "enum", "else", "do"}


def blanked(text):
    """The text with comments, directives and the insides of literals as spaces; every offset stays."""
    def blank(match):
        kept = match.group(0)
        inside = re.sub(r"[^\n]", " ", kept)
        return kept[0] + inside[1:-1] + kept[-1] if match.group(2) or match.group(3) else inside
    return NOISE.sub(blank, text)


def closing(tokens, i):
    """Index of the bracket that closes the one at i."""
    depth = 0
    for k in range(i, len(tokens)):
        depth += tokens[k].text in "([{" if len(tokens[k].text) == 1 else 0
        depth -= tokens[k].text in ")]}" if len(tokens[k].text) == 1 else 0
        if depth == 0:
            return k
    raise ValueError("a bracket is not closed")


def functions(text):
    """(name, tokens of the body) for every function."""
    clean = blanked(text)
    tokens = [Token(m.lastgroup, m.group(0), m.start(), m.end()) for m in TOKEN.finditer(clean)]
    starts = [t.start for t in tokens]
    for m in HEADER.finditer(clean):
        first = bisect.bisect_left(starts, m.end() - 1)
        yield m.group(1), tokens[first + 1 : closing(tokens, first)]


def signs(text, tokens):
    for i, t in enumerate(tokens):
        spaced = text[t.start - 1].isspace() and t.end < len(text) and text[t.end].isspace()
        for kind, changes in CHANGED.items():
            loops = kind == "step" and text[t.end] == ")"  # a loop that never ends is noticed by any test
            if t.text in changes and (spaced or kind in ("step", "constant")) and not loops:
                yield kind, t.start, t.end, changes[t.text]
        if t.kind == "number":
            yield "constant", t.start, t.end, f"({t.text} + 1)"
            if not re.fullmatch(r"0[.0]*\w*", t.text):
                yield "constant", t.start, t.end, f"({t.text} - 1)"
        unary = t.text in "!-" and not spaced and t.kind == "sign"
        if unary and not (t.text == "-" and i and tokens[i - 1].kind in ("name", "number") and tokens[i - 1].text != "return"):
            yield "negation", t.start, t.end, ""


def checks(text, tokens):
    for i, t in enumerate(tokens):
        if t.text == "if" and tokens[i + 1].text == "(":
            begin, end = tokens[i + 1].end, tokens[closing(tokens, i + 1)].start
            yield "check", begin, end, f"({text[begin:end]}) && false"
            yield "check", begin, end, f"({text[begin:end]}) || true"


def arguments(tokens, i):
    """(start, end) of each argument of the call whose bracket is at i."""
    close = closing(tokens, i)
    spans, depth, start = [], 0, tokens[i].end
    for t in tokens[i + 1 : close]:
        depth += (t.text in ("(", "[", "{")) - (t.text in (")", "]", "}"))
        if t.text == "," and depth == 0:
            spans.append((start, t.start))
            start = t.end
    return spans + [(start, tokens[close].start)]


def swaps(text, tokens):
    for i, t in enumerate(tokens[:-1]):
        if t.kind != "name" or t.text in CONTROL or t.text in ("sizeof", "return") or tokens[i + 1].text != "(":
            continue
        spans = arguments(tokens, i + 1)
        for a, b in zip(spans, spans[1:]):
            left, right = text[a[0] : a[1]].lstrip(), text[b[0] : b[1]].strip()
            if left != right and '"' not in left + right:
                yield "swap", a[1] - len(left), b[1], f"{right}, {left}"


def is_statement(tokens):
    """Whether these tokens, up to a semicolon, are an expression or a jump and not a declaration or a return."""
    if not tokens or tokens[0].kind != "name" and tokens[0].text not in ("*", "(", "++", "--"):
        return False
    if tokens[0].text in NO_STATEMENT:
        return False
    if len(tokens) > 1 and tokens[0].kind == "name" and tokens[1].kind == "name":
        return False
    return not (len(tokens) > 2 and tokens[0].kind == "name" and tokens[1].text == "*" and tokens[1].end == tokens[2].start)


def statements(text, tokens):
    begin, i = 0, 0
    while i < len(tokens):
        t = tokens[i]
        if t.text in CONTROL:
            i = closing(tokens, i + 1)
            begin = i + 1
        elif t.text in ("else", "do", "{", "}") and (t.text != "{" or i == begin):
            begin = i + 1
        elif t.text in ("(", "[", "{"):
            i = closing(tokens, i)
        elif t.text == ";":
            if is_statement(tokens[begin:i]):
                yield "statement", tokens[begin].start, t.end, ";"
            begin = i + 1
        i += 1


def faults(text):
    """Every fault, in the order of the text."""
    lines = [0] + [m.end() for m in re.finditer("\n", text)] + [len(text) + 1]
    for function, tokens in functions(text):
        for make in (signs, checks, swaps, statements):
            for kind, start, end, new in make(text, tokens):
                first, last = bisect.bisect_right(lines, start), bisect.bisect_right(lines, max(start, end - 1))
                head, tail = text[lines[first - 1] : start], text[end : lines[last] - 1]
                old_text, new_text = (" ".join(s.split()) for s in (head + text[start:end] + tail, head + new + tail))
                yield Fault(kind, start, end, new, first, last, function, old_text, new_text)


def drawn(text, seed):
    """The faults in an order that seed decides and edits elsewhere do not disturb, the kinds taking turns."""
    turns, ordered = collections.Counter(), []
    def lot(f):
        return hashlib.sha256(f"{seed}:{f.function}:{f.old_text}:{f.new_text}".encode()).hexdigest()
    for f in sorted(faults(text), key=lot):
        ordered.append((turns[f.kind], lot(f), f))
        turns[f.kind] += 1
    return [f for _, _, f in sorted(ordered, key=lambda item: item[:2])]
