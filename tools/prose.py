#!/usr/bin/env python3
"""Words and sentences of pages, headers and help: what docs/style.md asks of them, as far as a program can see it.

usage: prose.py [FILE...]           words that are not used, a line each, and the share of long sentences
       prose.py --long [FILE...]    the long sentences too

Without files these are the pages and messages that `make lint` checks. A page gives its paragraphs, list items and table cells; code is left
out. A C header gives its comments, a .def or .c file its string literals. A word of WORDS is a fault in the sense that its pattern
describes; patterns name the neighbours of a word so that its right uses pass ("takes 3 ms", "takes a directory" is the fault).
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG_WORDS = 30      # a sentence of more words is long
LONG_SHARE = 0.03    # this share of the sentences may be

# Amounts of time, memory and the like, and set phrases: what may follow "take".
TAKEN = (r"(?:about|some|around|nearly|almost|up to|at (?:most|least)|between|only|no|longer|less|more|much|little|as (?:long|much|little|many)|"
         r"twice|several (?:times|seconds|minutes|hours)|half|a (?:few|quarter|third|half|byte|minute|second|while|day|long|millisecond|lot|share)|"
         r"the same (?:short )?time|the (?:\w+ )?time|an hour|hours|minutes|seconds|milliseconds|days|years|time|memory|room|space|place|part|"
         r"care|turns|effect|precedence|advantage|into account|up\b|over\b|off\b|away\b|out\b|apart\b|from\b|hold|over|its name|these lines|"
         r"[\d,.]+|%\.\d+f times|one byte|one pass|two|three|four|five|ten|these times|O\(|CODE (?:bytes|ms|s|kB|MB)|n\b|many|"
         r"(?:on|in) (?:one|two|average)|\w+ (?:bytes?|kB|MB|GB|ms|seconds?|minutes?|hours?|days?|steps?|passes|times))")

# (pattern, what to write instead). The patterns see text in which code is the word CODE and a link is its text.
WORDS = [
    (rf"(?<!each step )(?<!the second )(?<!the query )(?<!Pith )(?<!call )\btakes?\b(?![,.;:)]| {TAKEN})", "'take' in the sense of accept, use, choose or need: say that"),
    (r"\b(?:is|are|was|were|be) taken\b(?! (?:from|into account|by surprise|out|over|apart|off))", "'taken': used, chosen, read"),
    (r"\btaking\b(?! (?:about|more|less|part|turns|care|\d))", "'taking': say using, reading, accepting"),
    (r"\b(?:one|file|value|key|option|line|flag|name|class|form|part|(?<!what )it|that|word|map|itself) counts\b(?! (?:its|the|their|how|what|\d))", "'counts': takes precedence, is used, applies"),
    (r"\bcounts? (?:more|less|all the same|in any case|like|as known|for the)\b", "'counts': takes precedence, is treated as, applies"),
    (r"\bcounts?,? too\b|\b(?:does|do) not count\b(?! (?:towards|against))", "'count': is included, is counted, applies"),
    (r"\b(?:tells|told|telling)\b(?! (?:you|us|them|him|her|apart|it\b|Pith|the (?:caller|user|reader|compiler|linker|loader|system)))",
     "'tells': reports, prints, says, shows"),
    (r"\bpass(?:ed|ing) over\b", "'passed over': ignored, skipped"),
    (r"\banew\b", "'anew': again"),
    (r"\bbut for\b", "'but for': except"),
    (r"\b(?:all|every|each|everything|anything|nothing|none|any)(?: [\w`'-]+){0,5}? but (?:those|the|that|what|this|one|for|kernels|CODE)\b",
     "'all … but': all … except"),
    (r"(?:^|[.!?;:] )Of (?!course\b)", "a sentence that begins with 'Of'"),
    (r"(?:^|[.!?] )What (?:is|are|was|were|comes?|lies|stands?|runs|no|has|have|once|makes|belongs|follows|needs|Pith|a program)\b[^?]*?[.](?: |$)",
     "a sentence whose subject is 'What …': name the thing"),
    (r"\bbeside\b", "'beside': next to, with, in addition to, compared with"),
    (r"\bstands? (?:in|there|under|behind|before|at|on|beside|with|here)\b", "'stands in': is in"),
    (r"(?<!we )(?<!you )(?<!You )(?<!I )\b(?:wants?|wanted)\b", "'want' of a program: needs, asks for, expects"),
    (r"\b(?:nobody|somebody)\b", "'nobody', 'somebody': name the caller, or use the passive"),
    (r"\blesser\b", "'lesser': smaller, lower"),
    (r"\b(?:go|goes|went|going|gone) on\b", "'goes on': continues"),
    (r"\bone an? (?:text|line|token|picture|row|second)\b|\ban? (?:vector|number|score|row|weight|step|word|result) a (?:text|token|line|row|picture)\b", "'one a line': one per line"),
    (r"\brows that come again\b", "duplicate rows"),
    (r"\belements beside 8 bits\b", "outliers"),
    (r"\blaid end to end\b", "packed"),
    (r"\bfinishing sums\b", "epilogue"),
    (r"\bno \w+ any ?more\b", "'no … any more': no longer"),
    (r"\b(?:so|as) (?:do|does|did|is|are|has|have|will) (?:it|they|that|this|those)\b(?=[.,;])", "turn the clause round"),
    (r"\bhow far the work is\b", "progress"),
    (r"\blike it best\b", "prefer"),
    (r"\bin the place of\b", "instead of"),
    (r"\bin (?:turn )?which is to say\b", "that is"),
]
WORDS = [(re.compile(pattern), instead) for pattern, instead in WORDS]

# Uses that are right, and uses that are not: `make lint` asks for both, so that a pattern that no longer works is found.
RIGHT = ["it takes 3 ms", "opening takes seconds", "that takes memory", "no two take place at once", "keys take turns", "the number of tokens counts",
         "it counts the nodes", "tell it apart from others", "as stands for a name", "one vector per text", "an optional part, and the rest",
         "but the file is closed", "of the texts", "What is a tensor?", "two lines, one above the other"]
WRONG = ["it takes a directory", "the name is taken for a path", "the last one counts.", "the key counts all the same", "it tells the progress",
         "the number is told", "pictures are passed over", "it is made anew", "all but for the tails", "Of a text, the end is cut.",
         "What is done to a picture is in a file.", "beside the model", "it stands in a file", "a pass wants a name", "nobody calls it",
         "a lesser loss", "the run goes on", "texts, one a line", "all columns but those of keys", "it is no file any more", "answers in the place of it"]


def wrong_patterns():
    """The uses of RIGHT and WRONG that the patterns see otherwise."""
    for text in RIGHT + WRONG:
        if any(pattern.search(text) for pattern, _ in WORDS) != (text in WRONG):
            yield text


# Pages that report what was, or that are generated from what is checked elsewhere.
LEFT_OUT = ("CHANGELOG.md", "docs/notes/", "docs/api/", "docs/operators.md", "docs/options.md")


def cleaned(text):
    """A line without code, links and marks, each of its characters in place or shorter; positions are those of lines."""
    text = re.sub(r"``.*?``|`[^`]*`", "CODE", text)
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<!--.*?-->", "", text)
    return text.replace("**", "").replace("\u2026", "...")


def blocks(text):
    """(line, kind, text) of each paragraph, list item, heading and table cell of a page; kind is prose, head or cell."""
    found, begun, code = [], None, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            code, begun = not code, None
        elif code or line.startswith("    ") and not begun:
            continue
        elif not line.strip():
            begun = None
        elif line.startswith("#"):
            found.append([number, "head", line.lstrip("# ")])
            begun = None
        elif line.lstrip().startswith("|"):
            begun = None
            found += [[number, "cell", cell.strip()] for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1] if cell.strip(" -:")]
        elif begun and not re.match(r"\s*(?:[-*]|\d+\.) ", line):
            begun[2] += " " + line.strip()
        else:
            begun = [number, "prose", re.sub(r"^\s*(?:[-*]|\d+\.) ", "", line)]
            found.append(begun)
    return [(number, kind, cleaned(part)) for number, kind, part in found]


def comments(text):
    """(line, kind, text) of each paragraph and list item of the comments of a C source; indented code is left out."""
    found = []
    for m in re.finditer(r"/\*(.*?)\*/|//([^\n]*)", text, re.S):
        begun, at = None, text[: m.start()].count("\n") + 1
        outside = text[m.start() - 1 : m.start()] in ("", "\n")  # of a struct, where a comment is indented as a whole
        for place, line in enumerate((m.group(1) or m.group(2) or "").split("\n")):
            line = re.sub(r"^\s*\* ?", "", line) if place else line
            if not line.strip() or outside and re.match(r" {4}", line):
                begun = None
            elif begun and not re.match(r"\s*- ", line):
                begun[2] += " " + line.strip()
            else:
                begun = [at + place, "prose", re.sub(r"^\s*- ", "", line).strip()]
                found.append(begun)
    return [(number, kind, cleaned(part)) for number, kind, part in found]


def strings(text):
    """(line, kind, text) of each string literal, neighbours joined."""
    found = []
    for m in re.finditer(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*', text):
        body = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', m.group()))
        if " " in body:
            found.append((text[: m.start()].count("\n") + 1, "prose", cleaned(re.sub(r"\\[nt]", " ", body))))
    return found


def parts(path):
    text = path.read_text()
    return {".md": blocks, ".h": comments, ".hpp": comments}.get(path.suffix, strings)(text)


def word_faults(path):
    """(line, what) of each word that is not used."""
    for number, kind, text in parts(path):
        for pattern, instead in WORDS:
            for m in pattern.finditer(text):
                near = text[max(0, m.start() - 25): m.end() + 25].strip()
                yield number, f"'{near}': {instead}"


def sentences(path):
    """(line, sentence) of the prose of a file; a colon before a list ends one."""
    for number, kind, text in parts(path):
        if kind == "prose":
            for sentence in re.split(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[)\"']?\s+|:\s*$", text):
                if len(sentence.split()) > 2:
                    yield number, sentence


def length(sentence):
    """Its words; a list of code counts as one."""
    sentence = re.sub(r"CODE(?:(?:,| and| or|, and) CODE)+", "CODE", sentence)
    return len(re.findall(r"[\w'`-]*\w[\w'`,./%-]*", sentence))


def long_sentences(path):
    return [(number, sentence) for number, sentence in sentences(path) if length(sentence) > LONG_WORDS]


def pages():
    return [path for path in [*ROOT.glob("*.md"), *sorted(ROOT.glob("docs/**/*.md"))]
            if not str(path.relative_to(ROOT)).startswith(LEFT_OUT)]


# Shell code of completions, whose variable has such a name.
NO_MESSAGES = ("cli/options/completion.c",)


def messages():
    """Sources whose strings are messages and help."""
    return [path for folder in ("cli", "src") for end in ("c", "def") for path in sorted((ROOT / folder).glob(f"**/*.{end}"))
            if str(path.relative_to(ROOT)) not in NO_MESSAGES]


def share(paths):
    """(long sentences, all sentences)."""
    return sum(len(long_sentences(path)) for path in paths), sum(1 for path in paths for _ in sentences(path))


def main():
    show = "--long" in sys.argv
    paths = [Path(name).resolve() for name in sys.argv[1:] if name != "--long"] or pages() + messages()
    count = 0
    for path in paths:
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        for number, what in word_faults(path):
            print(f"{name}:{number}: {what}")
            count += 1
        for number, sentence in long_sentences(path) if show else ():
            print(f"{name}:{number}: {length(sentence)} words: {sentence}")
    long, every = share(paths)
    print(f"prose: {count} words that are not used; {long} of {every} sentences have more than {LONG_WORDS} words ({100 * long / max(every, 1):.1f} %)")


if __name__ == "__main__":
    main()
