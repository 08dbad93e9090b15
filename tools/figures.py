#!/usr/bin/env python3
"""The numbers of the pages: where each comes from, and on which pages it is. docs/numbers.json has the values.

usage: figures.py                    a line for each page that differs
       figures.py --measure BUILD    measures what is cheap, and writes docs/numbers.json and the pages (make numbers)
       figures.py --count            the same without a build: only what is counted or in tables
       figures.py --set NAME=VALUE [MACHINE]    notes the value of a number that another command measures

A number is counted in the sources, measured in BUILD, read from a table of a page that a benchmark writes, or noted by hand from
the command that is named with it. Of numbers with a unit, README.md and docs/*.md have only those of the list, limits that the
code sets, and those of sections that report one run of one command.
"""
import datetime
import functools
import json
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = "docs/numbers.json"
MAKE = "make numbers"
COUNT = "tools/figures.py --count"


# ---- where numbers come from ----

def read(name):
    return (ROOT / name).read_text()


class Counted:
    """Counted in the sources, or written there by the command; `make lint` counts again."""

    def __init__(self, count, command=COUNT):
        self.count, self.command = count, command


class Measured:
    """Measured by `make numbers`; the function gets the build folder, and returns None where something is missing."""
    command = MAKE

    def __init__(self, measure):
        self.measure = measure


class Table:
    """Read from a table of a page, which the command writes or is copied into."""

    def __init__(self, page, command, find, machine=None):
        self.page, self.command, self.find, self.machine = page, command, find, machine

    def count(self):
        return self.find(read(self.page))


class Noted:
    """Noted by hand (--set) from what the command prints."""

    def __init__(self, command):
        self.command = command


def matches(name, pattern):
    return len(re.findall(pattern, read(name), re.M))


@functools.cache
def node_tests():
    with tarfile.open(ROOT / "tests/conformance/node-tests.tar.xz") as archive:
        return sum(name.endswith("/model.onnx") for name in archive.getnames())


def version(package):
    return re.search(rf"^{package}==(\S+)$", read("tests/requirements.txt"), re.M).group(1)


def marked(text, mark):
    """The rows of the table between two markers."""
    inside = re.search(rf"<!-- {mark} -->\n(.*?)<!-- /{mark} -->", text, re.S).group(1)
    return cells(inside)[2:]


def cells(text):
    return [[cell.strip(" *`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines() if line.startswith("|")]


def span(values, digits=1):
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def ratios(column):
    """The span of a column of the table of throughput, without the queries."""
    def find(text):
        return span([float(row[column]) for row in marked(text, "throughput") if "query" not in row[0]])
    return Table("docs/performance.md", "make bench", find)


def start(row, column, pattern):
    def find(text):
        found = next(line for line in marked(text, "start") if line[0] == row)
        return int(re.search(pattern, found[column]).group(1))
    return Table("docs/performance.md", "make bench", find)


def first_vectors(text):
    return span([float(row[1]) for row in marked(text, "start") if row[0].startswith("pith")], 0)


def int8_to_f32(text):
    """Of one thread."""
    return span([float(row[4]) for row in marked(text, "precision") if row[1:3] == ["1", "int8"]])


WORKLOADS = {"5 words and a number": "5 words and a number", "mixed": "mixed, 3 to 60 words", "110 words": "110 words", "512 tokens": "512 tokens",
             "one query": "one query of 12 tokens"}  # on the page of processors, and in the table of throughput


def processor(column, machine, row=None):
    """What the page on processors has in a row of a column; without a row, the span of the f32 ratios."""
    def find(text):
        rows = {row[0]: row[column] for row in cells(text[:text.index("\n## ")])}
        return rows[row] if row else span([float(x) for workload in WORKLOADS for x in rows[workload].split(", ")], 2)
    return Table("docs/performance/processors.md", "make bench", find, machine)


def target_minutes(target):
    """The table of CONTRIBUTING.md has what targets cost."""
    def find(text):
        return int(next(row[-1] for row in cells(text) if row[0] == f"make {target}").split()[0])
    return Table("CONTRIBUTING.md", f"time make {target}", find, "two processors")


def quantized(options, column):
    """A cell of the table of files that `pith quantize` writes."""
    def find(text):
        return float(next(row[column] for row in cells(text[text.index("## What `pith quantize` costs"):]) if row[0] == options))
    return Table("docs/performance/quality.md", "pith quantize --eval tests/data/sts/stsb-en-dev.csv", find, "any")


def budget(name):
    return Counted(lambda: int(re.search(rf"^{name} (\d+)$", read("tests/select/size.budget"), re.M).group(1)), "tests/select/size.py --write")


def searched(row):
    return Table("docs/search.md", "bench/search.py", lambda text: round(float(next(line[1] for line in cells(text) if line[0] == row and "." in line[1]))), "AMD EPYC (Zen 4)")


# ---- what is measured in a build ----

def run(*command, **settings):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **settings).stdout


def stripped(build, name):
    with tempfile.TemporaryDirectory() as folder:
        run("strip", "-o", f"{folder}/{name}", build / name)
        return os.path.getsize(f"{folder}/{name}")


def text_and_data(build, name):
    return sum(int(x) for x in run("size", build / name).splitlines()[1].split()[:2])


def to_ten_thousand(size):
    return round(size, -4)


def watched(build, model, texts):
    """Processor milliseconds, and the most resident MB, of a process that embeds the texts on one thread."""
    with tempfile.TemporaryFile() as file:
        file.write(texts.encode())
        file.seek(0)
        process = subprocess.Popen([str(build / "pith"), "embed", "--format", "f32", "-t", "1", "-m", str(model)], stdin=file, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"pith embed ended with {process.returncode}")
    return 1e3 * (used.ru_utime + used.ru_stime), used.ru_maxrss * 1024 / 1e6


def compiled(build, precision, texts, runs, which):
    with tempfile.TemporaryDirectory() as folder:
        run(build / "pith", "compile", "-q", "--precision", precision, "-o", f"{folder}/minilm.pith")
        return round(statistics.median(watched(build, f"{folder}/minilm.pith", texts)[which] for _ in range(runs)))


def written(build, verb):
    """The size of what a command writes of the default model."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / ("minilm.pith" if verb.startswith("compile") else "minilm.onnx")
        run(build / "pith", *verb.split(), "-q", "-o", file)
        return round(file.stat().st_size / 1e6, 1)


def many_texts():
    """2,000 lines: the sentences of examples/data, of which every other is joined by the one before."""
    lines = read("examples/data/sentences.txt").splitlines()
    lines += [f"{a} {b}" for a, b in zip(lines, lines[1:] + lines[:1])]
    return "".join(line + "\n" for line in lines * 5)


def onnxruntime(build):
    """The library in the Python package of the tests."""
    found = [path for path in Path(sys.executable).parent.parent.glob("lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.*")]
    return round(max(path.stat().st_size for path in found) / 1e6) if found else None


def rebuilt(build):
    """Steps of a build with tests that an edit of include/pith/types.h needs, to the hundred. It counts in a build that is complete."""
    tests = build.parent / "build-test"
    if not (tests / ".ninja_deps").exists():
        return None
    stale, out = set(), None
    for line in run("ninja", "-C", tests, "-t", "deps").splitlines():
        if ": #deps" in line:
            out = line.split(":")[0]
        elif line.endswith("include/pith/types.h"):
            stale.add(out)
    text = (tests / "build.ninja").read_text().replace("$\n", "")
    steps = [(m[1].replace("|", " ").split(), m[2], m[3].partition("||")[0].split()) for m in re.finditer(r"^build (.*?): (\S+)(.*)$", text, re.M)]
    needed, more = set(), True
    while more:
        new = {i for i, (outs, _, uses) in enumerate(steps) if i not in needed and not stale.isdisjoint(outs + uses)}
        stale.update(out for i in new for out in steps[i][0])
        needed, more = needed | new, bool(new)
    return round(sum(steps[i][1] != "phony" for i in needed), -2)


# ---- the list ----

class Number:
    """pages: patterns by page, in which {} is the number as text; a blank is any white space, ~ any number."""

    def __init__(self, name, unit, source, pages):
        self.name, self.unit, self.source, self.pages = name, unit, source, pages

    def patterns(self):
        """(page, pattern, the same compiled: its group is the number)."""
        for page, patterns in self.pages.items():
            for pattern in [patterns] if isinstance(patterns, str) else patterns:
                before, after = (re.escape(part).replace(r"\ ", r"\s+").replace(r"\~", "~").replace("~", r"[\d,.]+") for part in pattern.split("{}"))
                yield page, pattern, re.compile(rf"(?<![\w.,]){before}({VALUE}){after}" if pattern[0].isalnum() or pattern[0] == "{" else f"{before}({VALUE}){after}")


VALUE = r"\d[\d,]*(?:\.\d+)*(?:e-\d+)?(?:\s+to\s+\d[\d,]*(?:\.\d+)?)?"
EVAL = "docs/own-model.md"
PROCESSORS = [("zen5", "Zen 5"), ("zen4", "Zen 4"), ("zen3", "Zen 3, AVX2"), ("granite_rapids", "Granite Rapids, AMX"), ("emerald_rapids", "Emerald Rapids")]
PERFORMANCE = "docs/performance.md"
SELECTED = {
    "core": "no operators, files or threads | scalar",
    "embed-minilm-safetensors": "one text in, one vector out; shared C library | scalar, AVX2",
    "embed-minilm-safetensors-static": "the same as a static program, with the C library's parts | scalar, AVX2",
    "embed-minilm-pith-static": "from a `.pith` file, as a static program | AVX2",
    "musl-embed-minilm-pith": "the same with musl: the whole stripped file | AVX2",
    "detect-yunet": "one picture in, faces out | AVX2",
    "library": "the complete library | all",
}

NUMBERS = [
    # sizes
    Number("library_stripped", "MB", Measured(lambda build: round(stripped(build, "libpith.so") / 1e6, 1)),
           {"README.md": "a library of {} MB", "docs/runtimes.md": ["one library of {} MB", "library of Pith has {} MB"],
            PERFORMANCE: "libpith.so now has {} MB", "docs/building.md": "`cmake --install build --strip`, it has {} MB"}),
    Number("library_installed", "MB", Measured(lambda build: round((build / "libpith.so").stat().st_size / 1e6, 1)),
           {"docs/building.md": "so `libpith.so` has {} MB"}),
    Number("libpith", "bytes", Measured(lambda build: to_ten_thousand(text_and_data(build, "libpith.so"))),
           {"docs/libraries.md": "`pith::pith`, `pith::static` | {} |"}),
    Number("libpith_core", "bytes", Measured(lambda build: to_ten_thousand(text_and_data(build, "libpith-core.so"))),
           {"docs/libraries.md": "`pith::core`, `pith::core_static` | {} |"}),
    Number("libpith_tables", "bytes", Measured(lambda build: to_ten_thousand(text_and_data(build, "libpith-tables.so"))),
           {"docs/libraries.md": "`pith::tables_static` | {} more |"}),
    Number("onnxruntime_library", "MB", Measured(onnxruntime),
           {"docs/runtimes.md": ["its library: {} MB for the CPU", "a library of {} MB to several hundred", "is the user's own, {} MB for the CPU"]}),
    # selective builds: a row has the size as usual, and compiled for size.
    *(Number(f"size_{name.replace('-', '_')}", "bytes", budget(name), {"docs/selective-build.md": f"{words} | {{}} |"}) for name, words in SELECTED.items()),
    *(Number(f"size_{name.replace('-', '_')}_for_size", "bytes", budget(f"{name}-for-size"), {"docs/selective-build.md": f"{SELECTED[name]} | ~ | {{}} |"})
      for name in ("core", "embed-minilm-safetensors-static", "embed-minilm-pith-static", "detect-yunet")),
    *(Number(f"own_{key}", "MB", Measured(lambda build, verb=verb: written(build, verb)), {EVAL: f"`{verb}` | {{}} |"})
      for key, verb in (("export", "export"), ("export_f16", "export --dtype f16"), ("compile_int8", "compile --precision int8"))),
    # this machine
    Number("first_vector", "ms of processor time", Measured(lambda build: compiled(build, "f32", "hello\n", 21, 0)),
           {PERFORMANCE: "model needs {} ms of processor time to its first vector"}),
    Number("memory_of_2000_texts", "MB", Measured(lambda build: compiled(build, "f32", many_texts(), 3, 1)), {PERFORMANCE: "It holds {} MB after 2,000 texts"}),
    Number("memory_of_2000_texts_int8", "MB", Measured(lambda build: compiled(build, "int8", many_texts(), 3, 1)), {PERFORMANCE: "and the int8 model {} MB"}),
    # what there is
    Number("known_models", "models", Counted(lambda: matches("cli/hub/known_models.def", r"^MODEL\(")),
           {"README.md": "`pith models` lists {}", "docs/models.md": "`pith models` lists {} models"}),
    Number("default_model", "MB", Counted(lambda: int(re.search(r'^MODEL\("sentence-transformers/all-MiniLM-L6-v2".*?"apache-2.0", "(\d+)"', read("cli/hub/known_models.def"), re.M).group(1))),
           {"README.md": "all-MiniLM-L6-v2 ({} MB)"}),
    Number("onnx", "version", Counted(lambda: version("onnx").rpartition(".")[0]), {"README.md": "all node tests of ONNX {} except"}),
    Number("onnx_package", "version", Counted(lambda: version("onnx")), {"docs/testing.md": "the collector of onnx {}"}),
    Number("tokenizers_package", "version", Counted(lambda: version("tokenizers")), {"docs/tokenizers.md": "The reference is version {},"}),
    Number("node_tests", "models", Counted(node_tests),
           {"docs/testing.md": "the {} ONNX node tests"}),
    Number("sample_sentences", "sentences", Counted(lambda: len(read("examples/data/sentences.txt").splitlines())),
           {"README.md": "Search {} sentences", "examples/data/README.md": "{} English sentences"}),
    Number("shop_orders", "orders", Counted(lambda: len(read("tests/data/shop/orders.csv").splitlines()) - 1),
           {"docs/relational.md": "{} orders", "tests/data/shop/ORIGIN.md": "{} orders drawn"}),
    Number("base_parameters", "parameters", Counted(lambda: (ROOT / "tests/data/relational/base.bin").stat().st_size // 4 // 1000 * 1000),
           {"docs/relational.md": "base.bin`, {} parameters"}),
    Number("distance", "largest difference of a component", Counted(lambda: re.search(r"assert_true\(worst <= ([\de-]+)\)", read("tests/unit/models/texts/test_embed_golden.c")).group(1)),
           {PERFORMANCE: "within {} of sentence-transformers", "docs/testing.md": "vectors are within {} of sentence-transformers"}),
    Number("types_h", "steps", Measured(rebuilt), {"CONTRIBUTING.md": "about {} steps"}),
    # benchmarks with tables
    Number("f32_texts", "times the best peer's texts per second", ratios(7),
           {"README.md": "Pith embeds {} times as many texts per second as the fastest peer", PERFORMANCE: "embeds {} times as many texts per second as the fastest"}),
    Number("f32_to_fastembed", "times fastembed's texts per second", ratios(8), {PERFORMANCE: "and {} times as many as fastembed"}),
    Number("first_vectors", "ms", Table(PERFORMANCE, "make bench", first_vectors), {PERFORMANCE: "gives its first vector {} ms after"}),
    Number("first_vector_compiled", "ms", start("pith, compiled f32", 1, r"(\d+)"),
           {"README.md": "gives its first vector {} ms after", "docs/operating.md": "A compiled model opens in {} ms"}),
    Number("memory_f32", "MB", start("pith, safetensors", 3, r": (\d+)"), {PERFORMANCE: "holds {} MB, or", EVAL: "MB instead of {} MB"}),
    Number("memory_int8", "MB", start("pith, compiled int8", 3, r": (\d+)"), {PERFORMANCE: "MB, or {} MB in int8", EVAL: "the process holds {} MB instead"}),
    Number("int8_to_f32", "times f32's texts per second", Table("docs/performance/precision.md", "make bench", int8_to_f32), {EVAL: "it embeds {} times as many texts per second as f32"}),
    *(Number(f"{key}_f32", "times the best peer's speed", processor(column, name), {PERFORMANCE: f"| {name} | {{}} |"})
      for column, (key, name) in enumerate(PROCESSORS, 1)),
    *(Number(f"{key}_{precision}", f"times the speed of {peer}", processor(column, name, f"{precision} to {peer}"),
             {PERFORMANCE: f"| {name} | ~ to ~ | {'~ to ~ | ' if precision == 'bf16' else ''}{{}} |"})
      for precision, peer in (("int8", "ONNX Runtime int8"), ("bf16", "OpenVINO bf16")) for column, (key, name) in enumerate(PROCESSORS, 1)
      if precision == "int8" or key in ("zen5", "zen4", "granite_rapids")),
    Number("search_dot", "ms", searched("dot"), {"docs/search.md": "are searched in {} ms (dot)"}),
    Number("search_cosine", "ms", searched("cosine"), {"docs/search.md": "or {} ms (cosine)"}),
    Number("search_int8", "ms", searched("dot, first pass int8"), {"docs/search.md": "and in {} ms with a first pass of int8"}),
    *(Number(f"quantized_{key}", "MB", quantized(options, 1), {EVAL: f"| `quantize {options}` | {{}} |"})
      for key, options in (("int8", "--scheme int8"), ("q8", "--scheme q8"), ("q4", "--scheme q4 --calibrate vocabulary"))),
    # how long the targets need
    *(Number(f"make_{target.replace('-', '_')}", "minutes", target_minutes(target), pages) for target, pages in (
        ("test", {"Makefile": "run every quick test ({} minutes", "docs/testing.md": "runs everything quick ({} minutes"}),
        ("test-build", {"Makefile": "in another project, extended ({} minutes)", "docs/testing.md": "as the selective build of one option ({} minutes)"}),
        ("test-machines", {"Makefile": "umask, paths \u2026 ({} minutes)", "docs/testing.md": "on other machines ({} minutes)"}),
        ("test-references", {"Makefile": "written files beside onnx ({} minutes)", "docs/testing.md": "compared with onnx ({} minutes)"}),
        ("test-relational", {"Makefile": "what they reach on tests/data/shop ({} minutes)"}))),
    Number("quantized_q4_table", "MB", Table("docs/performance/quality.md", "make bench-quantizers",
           lambda text: float(next(row[2] for row in cells(text) if row[0] == "Pith q4, table of 4 bits, calibrated")), "any"), {EVAL: "`quantize --scheme q4 --table 4` ({} MB)"}),
    # noted by hand
    Number("memory_after_1000", "MB", Noted("bench/bench_memory.py"), {PERFORMANCE: "{} MB after 1,000 texts", "docs/operating.md": "{} MB after 1,000 texts"}),
    Number("memory_after_10000", "MB", Noted("bench/bench_memory.py"), {PERFORMANCE: "{} MB after 10,000 "}),
    Number("memory_after_100000", "MB", Noted("bench/bench_memory.py"), {PERFORMANCE: "{} MB after 100,000 (", "docs/operating.md": "{} MB after 100,000"}),
    Number("amx_openvino", "s", Noted("make bench PARTS=precision"), {PERFORMANCE: "OpenVINO needed {} s"}),
    Number("amx_f32", "s", Noted("make bench PARTS=precision"), {PERFORMANCE: "and Pith {} s in f32"}),
    Number("amx_bf16", "s", Noted("make bench PARTS=precision"), {PERFORMANCE: "and {} s in bf16"}),
    Number("sts_f32", "100 × Spearman", Noted("pith quantize --eval tests/data/sts/stsb-en-dev.csv"),
           {EVAL: "f32 has a correlation of {}", "docs/performance/quality.md": "has a correlation of {}."}),
    Number("tokenizer_speed", "times the peer's", Noted("bench/bench_tokenizer.py"), {"docs/tokenizers.md": "Pith is {} times as fast", "docs/performance/tokenizers.md": "Pith tokenizes {} times as fast"}),
    Number("yunet", "kB", Noted("pith pull yunet"), {"docs/faces.md": "face_detection_yunet_2023mar.onnx` ({} kB"}),
    Number("shop_training", "s of processor time", Noted("pith train shop.rdb --task returned -o run"), {"docs/relational.md": "1,600 steps need {} seconds of processor time"}),
    Number("shop_baselines", "s of processor time", Noted("pith train shop.rdb --task returned -o run"), {"docs/relational.md": "On the shop this needs about {} seconds"}),
    Number("pretraining", "minutes of processor time", Noted("make pretrain-relational"),
           {"docs/relational.md": "184,000 parameters, {} minutes of processor time", "Makefile": "base.bin ({} minutes of processor time)"}),
    Number("make_bench", "minutes", Noted("time make bench"), {PERFORMANCE: "make bench           # {} minutes", "CONTRIBUTING.md": "compared with its peers | {} minutes"}),
    Number("bm25_speed", "times fastembed's", Noted("bench/bm25.py"), {"docs/sparse-and-multi-vector.md": "BM25 of one thread is {} times as fast"}),
]


# Limits that the code sets, and what a number of a unit is not a measurement of.
LIMITS = [
    ("docs/cli.md", "100,000 times the number of the branch"),
    ("docs/cli.md", "more than 2 GB"),
    ("docs/relational.md", "interrupted after 60 seconds"),
    ("docs/relational.md", "after 10 minutes"),
    ("docs/search.md", "within 50 ms"),
    ("docs/search.md", "64 MB at most"),
    ("docs/sparse-and-multi-vector.md", "4 MB for 1,024 tokens"),
    ("docs/style.md", "takes 3 ms"),
    ("docs/testing.md", "at most 1 MB"),
    ("docs/testing.md", "2 seconds of the processor and 400 MB"),
    ("docs/testing.md", "within 10 seconds"),
    ("docs/testing.md", "10 seconds of CPU time"),
    ("docs/tokenizers.md", "lengths of 2 GB"),
]

# Sections that report one run of one command, which they name.
REPORTS = {
    ("CONTRIBUTING.md", "What the targets cost"): "make test",
    (PERFORMANCE, "What is slow"): "make bench-models",
    ("docs/relational.md", "Real databases"): "make test-relational-real",
    ("docs/relational.md", "How it works"): "make bench-relational",
    ("docs/runtimes.md", "Measurements"): "pith bench --runtime builtin,ort",
    ("docs/search.md", "Speed"): "bench/search.py",
    ("docs/selective-build.md", "What pieces weigh, and why they are there"): "pith select --cost",
    ("docs/selective-build.md", "Sizes"): "make size",
    ("docs/selective-build.md", "On a microcontroller"): "examples/selective_build/cortex_m",
}

UNITS = re.compile(r"(?<![\w.,=])\d[\d,]*(?:\.\d+)?(?: (?:to|and|or) \d[\d,]*(?:\.\d+)?)? (?:MB|kB|GB|GB/s|ms|s|seconds?|minutes?|hours?|microseconds|times (?:as|the))\b")
LEFT_OUT = {"docs/operators.md", "docs/options.md"}  # generated


# ---- comparing ----

def shown(value):
    return f"{value:,}" if isinstance(value, int) else str(value)


def known():
    return json.loads(read(FILE)) if (ROOT / FILE).exists() else {}


def sections(text):
    """(the place where it ends, all headings above it) of each part between headings, code left out: [(begin, end, headings)]."""
    above, begin, code = [], 0, False
    for line in re.finditer(r"[^\n]*\n?", text):
        if line.group().startswith("```"):
            code = not code
        depth = 0 if code else len(re.match(r"#*", line.group()).group())
        if depth or not line.group():
            yield begin, line.start(), [heading for _, heading in above]
            begin = line.start()
        if depth:
            above = [part for part in above if part[0] < depth] + [(depth, line.group().lstrip("# ").strip())]


def without_source(places):
    """(page, what) of each number with a unit that is none of the list, no limit, and in no report."""
    for path in [*ROOT.glob("*.md"), *sorted(ROOT.glob("docs/*.md"))]:
        page = str(path.relative_to(ROOT))
        if page in LEFT_OUT or page == "CHANGELOG.md":
            continue
        text = read(page)
        allowed = [*places.get(page, []), *(m.span() for name, pattern in LIMITS if name == page for m in re.finditer(pattern.replace(" ", r"\s+"), text))]
        plain = re.sub(r"^```.*?^```$|<!-- (\w+) -->\n.*?<!-- /?(?:\1|end) -->", lambda m: " " * len(m.group()), text, flags=re.M | re.S)
        for begin, end, headings in sections(text):
            report = next((command for heading in headings if (command := REPORTS.get((page, heading)))), None)
            for m in () if report else UNITS.finditer(plain, begin, end):
                if not any(m.start() < last and first < m.end() for first, last in allowed):
                    yield page, f"'{m.group()}' has no source: name the command in tools/figures.py, or leave it out"


def own_processor():
    """The first column of the page on processors is that of the tables."""
    page = "docs/performance/processors.md"
    rows = {row[0]: row[1] for row in cells(read(page)[: read(page).index("\n## ")])}
    for name, title in WORKLOADS.items():
        measured = ", ".join(row[7] for row in marked(read(PERFORMANCE), "throughput") if row[0] == title)
        if rows[name] != measured:
            yield page, f"'{name}' is {rows[name]}, and {measured} in the table of {PERFORMANCE}"


def stale_reports():
    for (page, heading), command in REPORTS.items():
        found = [(begin, end) for begin, end, headings in sections(read(page)) if heading in headings]
        if not found:
            yield page, f"there is no section '{heading}', which tools/figures.py names"
        elif not any(command in read(page)[begin:end] for begin, end in found):
            yield page, f"the section '{heading}' does not name the command of its numbers: {command}"
    for page, pattern in LIMITS:
        if not re.search(pattern.replace(" ", r"\s+"), read(page)):
            yield page, f"there is no '{pattern}', which tools/figures.py names"


def faults():
    """(page, what) of each number that differs, is not there, or has no source."""
    have, places = known(), {}
    for number in NUMBERS:
        if number.name not in have:
            yield FILE, f"there is no {number.name}: run {MAKE}"
            continue
        value, command = have[number.name]["value"], number.source.command
        if isinstance(number.source, (Counted, Table)) and (now := number.source.count()) != value:
            yield getattr(number.source, "page", FILE), f"{number.name} is {shown(now)} now and {shown(value)} in {FILE}: run {COUNT}"
        for page, pattern, compiled_pattern in number.patterns():
            found = list(compiled_pattern.finditer(read(page)))
            places.setdefault(page, []).extend(m.span() for m in found)
            if not found:
                yield page, f"{number.name} is not there: '{pattern.replace('{}', shown(value))}'"
            for m in found:
                if " ".join(m.group(1).split()) != shown(value):
                    yield page, f"{number.name} is {m.group(1)}, and {shown(value)} in {FILE}: run {COUNT} to write it, or {command} to measure it"
    for name in sorted(have.keys() - {number.name for number in NUMBERS}):
        yield FILE, f"{name} is not in tools/figures.py: run {MAKE}"
    yield from own_processor()
    yield from stale_reports()
    yield from without_source(places)


# ---- writing ----

def bench_machine():
    return re.search(r"<!-- machine -->\n(.*?)\(", read(PERFORMANCE)).group(1).strip() + " (Zen 5)"


def since(number, value):
    """The day of the commit that brought a value to its page."""
    page = getattr(number.source, "page", None) or next(iter(number.pages))
    return run("git", "log", "-1", "--format=%as", f"-S{shown(value).split(' to ')[0]}", "--", page, cwd=ROOT).strip()


def entry(number, value, machine, date):
    facts = {"value": value, "unit": number.unit, "command": number.source.command, "machine": machine, "date": date}
    return {key: fact for key, fact in facts.items() if fact}


def write(have):
    """The file, and each number of it on its pages."""
    (ROOT / FILE).write_text(json.dumps({number.name: have[number.name] for number in NUMBERS if number.name in have}, indent=1, ensure_ascii=False) + "\n")
    for number in NUMBERS:
        for page, _, pattern in number.patterns() if number.name in have else ():
            text, value = read(page), shown(have[number.name]["value"])
            for m in reversed(list(pattern.finditer(text))):
                if " ".join(m.group(1).split()) != value:
                    text = text[: m.start(1)] + value + text[m.end(1):]
                    print(f"{page}: {number.name} is {value}")
            (ROOT / page).write_text(text)


def measure(build):
    """Everything, or without a build what needs none."""
    have, today = known(), str(datetime.date.today())
    info = json.loads(run(build / "pith", "info", "--json")) if build else None
    for number in NUMBERS:
        old, source = have.get(number.name), number.source
        if isinstance(source, Noted) or isinstance(source, Measured) and not build:
            continue
        value = source.measure(build) if isinstance(source, Measured) else source.count()
        if value is None:
            print(f"{number.name}: cannot be measured here")
        elif isinstance(source, Measured):
            have[number.name] = entry(number, value, f"{info['processor']['model']}, {info['compiler']}", today)
        elif not old or old["value"] != value:
            have[number.name] = entry(number, value, (source.machine or bench_machine()) if isinstance(source, Table) else None, since(number, value) or today)
        if value is not None and old and old["value"] != value:
            print(f"{number.name}: {shown(old['value'])}, now {shown(value)}")
    write(have)


def note(assignment, machine):
    name, _, text = assignment.partition("=")
    number = next((number for number in NUMBERS if number.name == name and isinstance(number.source, Noted)), None)
    if not number:
        sys.exit(f"{name} is not noted by hand; these are: {', '.join(n.name for n in NUMBERS if isinstance(n.source, Noted))}")
    have = known()
    value = json.loads(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text
    have[name] = entry(number, value, machine, since(number, value) if not have.get(name) else str(datetime.date.today()))
    write(have)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--measure":
        measure(Path(sys.argv[2]).resolve())
    elif sys.argv[1:] == ["--count"]:
        measure(None)
    elif len(sys.argv) > 2 and sys.argv[1] == "--set":
        note(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        for page, what in faults():
            print(f"{page}: {what}")


if __name__ == "__main__":
    main()
