#!/usr/bin/env python3
"""What the compiler does not check: layers, sorted lists, unique names, lengths, banned words, formatting."""
import ast
import functools
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import api as border
import api_pages
import figures
import prose

ROOT = Path(__file__).resolve().parent.parent
faults = []


def fault(path, line, text):
    faults.append(f"{Path(path).relative_to(ROOT)}:{line}: {text}")


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns], cwd=ROOT,
                         check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in out.split("\0") if name and (ROOT / name).exists()]


def layers():
    """A folder includes only headers of its own and of the folders its line in src/LAYERS names."""
    allowed = {}
    for number, line in enumerate((ROOT / "src/LAYERS").read_text().split("\n"), 1):
        if not line or line.startswith("#"):
            continue
        folder, _, uses = line.partition(":")
        for used in uses.split():
            if used not in allowed and used != "pith":
                fault(ROOT / "src/LAYERS", number, f"'{folder}' uses '{used}', which is not above it")
        allowed[folder] = {folder, *uses.split()}
    used_by = {folder: set() for folder in allowed}

    def owner(name):
        """The folder of src/LAYERS that a path belongs to: the nearest one above it."""
        return next((str(f) for f in Path(name).parents if str(f) in allowed), None)

    for path in tracked("src/*.c", "src/*.h", "include/*.h", "cli/*.c", "cli/*.h", "image/*.c", "image/*.h", "examples/*.c", "bench/*.c", "tests/*.c",
                        "tests/*.h"):
        name = str(path.relative_to(ROOT)).removeprefix("src/")
        folder = owner("codecs/" + path.name if name.startswith("image/") else name)
        if not folder:
            fault(path, 1, "its folder is not in src/LAYERS")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+["<]([^">]+/[^">]+)[">]', line)
            used = m and (owner(m.group(1)) or ("pith" if m.group(1).startswith("pith/") else None))
            if not used or m.group(1).endswith(".def"):
                continue
            used_by[folder].add(used)
            if used not in allowed[folder]:
                fault(path, number, f"{folder} may not include {m.group(1)}")
    for folder, uses in allowed.items():
        for name in sorted(uses - used_by[folder] - {folder}):
            fault(ROOT / "src/LAYERS", 1, f"'{folder}' does not use '{name}' any more")


DTYPES = "- f32 u8 i8 u16 i16 i32 i64 string bool f16 f64 u32 u64 - - bf16".split()


def lists():
    """Every list in select/ is sorted but passes.def, isas.def, backends.def and runtimes.def, whose order has meaning."""
    for path in tracked("src/select/*.def"):
        if path.name in ("passes.def", "isas.def", "backends.def", "runtimes.def"):
            continue
        previous = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            m = re.match(r"[A-Z_]+\(([^)]*)\)$", line)
            if not m:
                continue
            key = re.sub(r"\W+", " ", m.group(0)).strip()
            if path.name == "kernels.def":  # KERNEL(family, suffix) and PLAIN(family, suffix), by family, then dtype number
                family, suffix = m.group(1).split(", ")
                key = f"{family} {DTYPES.index(suffix):02}"
            if key < previous:
                fault(path, number, f"'{m.group(1)}' is out of order")
            previous = key


def verbs():
    """Every cmd_<verb>.c is in the list of verbs."""
    listed = re.findall(r"^VERB\((\w+)\)$", (ROOT / "cli/verbs.def").read_text(), re.M)
    for path in tracked("cli/verbs/cmd_*.c"):
        if path.stem[len("cmd_"):] not in listed:
            fault(path, 1, "is not in cli/verbs.def")


def names():
    seen = {}
    for path in tracked("src/*.c", "src/*.h", "cli/*.c", "cli/*.h", "image/*.c", "image/*.h"):
        if path.name in seen:
            fault(path, 1, f"the name is taken by {seen[path.name].relative_to(ROOT)}")
        seen[path.name] = path


# Public functions that keep the host's floating-point mode: they hand out what is there, count, allocate or free.
KEEP_MODE = set("""
pith_baseline_name pith_bm25_close pith_bm25_languages pith_bm25_rows_free pith_clock_now pith_database_close
pith_database_schema pith_element_bits pith_element_dtype pith_element_name pith_embed_dim pith_embed_max_length
pith_encode_can pith_encoded_free pith_faces_free pith_image_details_free pith_image_free pith_image_processor_close
pith_label_count pith_label_name pith_model_bytes pith_model_close pith_model_input pith_model_input_count
pith_model_output pith_model_output_count pith_model_reset_statistics pith_model_route pith_model_route_count
pith_model_route_name pith_model_share pith_model_statistics pith_model_tokenizer pith_model_trim pith_op_float pith_op_floats
pith_op_int pith_op_ints pith_op_output pith_op_parallel pith_op_state pith_op_string pith_op_strings pith_op_tensor
pith_operator_set_create pith_operator_set_destroy
pith_pieces_list pith_pieces_read pith_pieces_record pith_pin_threads pith_profile_create pith_profile_destroy
pith_profile_now pith_profile_phase pith_profile_tell pith_quantize_row_bytes pith_queue_destroy pith_register_op pith_relational_class
pith_relational_destroy pith_relational_get_state pith_search_index_bytes pith_search_index_count
pith_search_index_destroy pith_search_index_dim pith_search_index_metric pith_session_destroy pith_session_pool_destroy pith_session_pool_return
pith_session_pool_trim pith_session_unbind pith_set_executor pith_set_spin pith_set_threads pith_shape_count
pith_shape_format pith_source_close pith_stop_threads pith_text_free pith_text_stream_create pith_text_stream_destroy pith_text_valid pith_tensor_free
pith_token_text pith_tokenizer_close pith_tokenizer_cuts_left pith_tokens_free pith_value_close pith_version
""".split())


@functools.cache
def described():
    """The border as the headers have it, see tools/api.py; the committed description where they are not understood."""
    try:
        return border.describe(ROOT)
    except border.NotUnderstood as e:
        faults.append(str(e).replace(f"{ROOT}/", ""))
        return border.load()


def public_names():
    """Every function that a public header declares."""
    return set(border.functions(described()))


def tables_names():
    """Those of libpith-tables."""
    return set(border.functions(described(), "pith-tables"))


def description():
    """include/api.json and docs/api are those of the headers, and every function has a comment."""
    now, path = described(), ROOT / border.FILE
    if not path.exists() or border.load() != now:
        fault(path, 1, "is not the border of the headers: run make api")
    for name in api_pages.stale(ROOT, now):
        fault(ROOT / name, 1, "is not what the headers say: run make api")
    for header in now["headers"]:
        for d in header["declarations"]:
            if d["kind"] == "function" and "comment" not in d and "joined" not in d:
                fault(ROOT / "include/pith" / header["name"], border.line_of(ROOT, header["name"], d["name"]), f"{d['name']} has no comment")


def release():
    """The border changes only with the version: see docs/release.md. abidiff, where it is installed, is asked too: it may not
    find anything that our own comparison has missed."""
    if not (ROOT / border.RELEASE).exists():
        return
    old, now = border.load(file=border.RELEASE), described()
    for header, what in border.refusals(old, now):
        fault(ROOT / "include/pith" / header, border.line_of(ROOT, header, what), what)
    minor = ".".join(now["version"].split(".")[:2])
    page = ROOT / f"docs/migration-{minor}.md"
    told = page.read_text() if page.exists() else ""
    for header, what, names in border.to_tell(old, now):
        if not any(re.search(rf"\b{name}\b", told) for name in names):
            fault(page, 1, f"{what} (pith/{header}): programs of {old['version']} break, so the page needs a line")
    if old["soname"] != now["soname"] or not shutil.which("abidiff"):
        return
    found = border.changes(old, now)
    with tempfile.TemporaryDirectory() as folder:
        status, report = border.abi_differences(old, now, Path(folder))
    missed = status & 3 or status & 8 and not any(level == border.BREAKS for level, _, _ in found) or status & 4 and not found
    if missed:
        fault(ROOT / border.RELEASE, 1, f"abidiff finds changes since {old['version']} that tools/api.py does not:\n{report}")


def api():
    """Public functions are defined in src/api/ only; one that computes is PITH_ENTRY and nothing else."""
    declared, found = public_names(), set()
    for path in tracked("src/*.c"):
        text = path.read_text()
        for m in re.finditer(r"^(?!static)\w[^;{}()\n]*?\b(pith_\w+)\([^;{}]*\) \{(?:\n(.*?)^\}|([^\n]*)\}$)", text,
                             re.M | re.S):
            name, body, line = m.group(1), m.group(2) or m.group(3), text[: m.start()].count("\n") + 1
            if path.parent.name != "api":
                if name in declared:
                    fault(path, line, f"{name} is public: it is defined in src/api/")
                continue
            found.add(name)
            if name not in declared:
                fault(path, line, f"{name} is not public: it belongs to the folder that does the work")
            elif name not in KEEP_MODE and not re.fullmatch(r"\s*PITH_ENTRY\([^;]*\);\s*", body):
                fault(path, line, f"{name} is not PITH_ENTRY alone (or is missing in KEEP_MODE)")
    for name in sorted(declared - found):
        fault(ROOT / "include/pith/pith.h", 1, f"no definition of {name} is found in src/api/")
    for name in sorted(KEEP_MODE - declared):
        fault(Path(__file__).resolve(), 1, f"{name} is in KEEP_MODE but is not public")


# Public functions that the C++ interface leaves out, and why.
NOT_WRAPPED = {}


def wrapper():
    """pith.hpp calls every public function of libpith, tables.hpp every one of libpith-tables, but for NOT_WRAPPED."""
    for path, declared in ((ROOT / "include/pith/pith.hpp", public_names() - tables_names()), (ROOT / "include/pith/tables.hpp", tables_names())):
        called = set(re.findall(r"\bpith_\w+", re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)))
        for name in sorted(declared - called - set(NOT_WRAPPED)):
            fault(path, 1, f"{name} has no place in the C++ interface: wrap it, or give the reason in NOT_WRAPPED of tools/lint.py")
        for name in sorted(called & declared & set(NOT_WRAPPED)):
            fault(path, 1, f"{name} is wrapped, and in NOT_WRAPPED of tools/lint.py too")
    for name in sorted(set(NOT_WRAPPED) - public_names()):
        fault(Path(__file__).resolve(), 1, f"{name} is in NOT_WRAPPED but is not public")


def cpp_page():
    """docs/cpp.md shows examples/semantic_search.cpp, which the tests compile and run."""
    code = (ROOT / "examples/semantic_search.cpp").read_text()
    page = ROOT / "docs/cpp.md"
    if code[code.index("#include"):].rstrip() not in page.read_text():
        fault(page, 1, "the program is not that of examples/semantic_search.cpp")


def ends():
    """Operators reach a node's inputs and outputs through pith__node_input and pith__node_output, which know the counts."""
    for path in tracked("src/engine/ops/*.c"):
        if path.name in ("infer_graph.c", "bind_operators.c"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"(node|producer)->(in|out)puts\[", line):
                fault(path, number, "a node's inputs and outputs are reached through pith__node_input and pith__node_output")


def lengths():
    """Functions of at most 60 lines, files of at most 800."""
    for path in tracked("src/*.c", "src/*.h", "cli/*.c", "cli/*.h", "image/*.c", "image/*.h", "bench/*.c", "examples/*.c"):
        lines = path.read_text().splitlines()
        if len(lines) > 800:
            fault(path, 800, f"{len(lines)} lines; 800 are allowed: split it by meaning")
        start = 1
        for number, line in enumerate(lines, 1):
            if re.match(r"[A-Za-z_](?!\w*:$)", line):
                start = number
            elif line == "}" and number - start >= 60:
                fault(path, start, f"a function of {number - start + 1} lines; 60 are allowed")


def words():
    for path in tracked("*.c", "*.h", "*.py", "*.sh", "*.md", "Makefile", "*.txt", "*.cmake"):
        if "tests/data" in str(path) or path == Path(__file__).resolve():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if path.suffix in (".c", ".h", ".py") and re.search(r"\b(TODO|FIXME|XXX)\b", line):
                fault(path, number, "unfinished work is not committed")
            if re.search(r"(^|[^A-Za-z0-9_.])/(work|home|root)/", line):
                fault(path, number, "a path of one machine")
            if line.rstrip() != line:
                fault(path, number, "white space at the end")
            if path.suffix in (".c", ".h") and len(line) > 100:
                fault(path, number, f"{len(line)} columns; 100 are allowed")
            if path.suffix in (".c", ".h") and "\t" in line:
                fault(path, number, "a tab")


def pages_in_plain_english():
    """Pages and messages avoid the words that tools/prose.py lists, and nearly all of their sentences are short."""
    for text in prose.wrong_patterns():
        fault(ROOT / "tools/prose.py", 1, f"the patterns see '{text}' otherwise than its lists say")
    for path in prose.pages() + prose.messages():
        for number, what in prose.word_faults(path):
            fault(path, number, what)
    long, every = prose.share(prose.pages())
    if long > every * prose.LONG_SHARE:
        fault(ROOT / "tools/prose.py", 1, f"{long} of {every} sentences have more than {prose.LONG_WORDS} words: see tools/prose.py --long")


def page_numbers():
    """Numbers of pages are those of docs/numbers.json, and each has a source: tools/figures.py."""
    for page, what in figures.faults():
        fault(ROOT / page, 1, what)


def built(name):
    """The newest library of that name among the builds, or None; and None where there is no nm to look into it."""
    found = [path for folder in ("build", "build-test") if (path := ROOT / folder / name).exists()]
    return max(found, key=lambda path: path.stat().st_mtime) if found and shutil.which("nm") else None


def symbols(library, *flags):
    out = subprocess.run(["nm", "-g", *flags, "--defined-only", str(library)], capture_output=True, text=True, check=True).stdout
    return {line.split()[2] for line in out.splitlines() if len(line.split()) == 3}


def exports():
    """The shared libraries export what the public headers declare and nothing else, but for the private symbols, which
    tests/install/libraries.py looks after."""
    tables = tables_names()
    for name, header, declared in (("libpith.so", "pith.h", public_names() - tables), ("libpith-tables.so", "tables.h", tables)):
        library = built(name)
        if not library:
            continue
        found = {symbol for symbol in symbols(library, "-D") if "PITH_PRIVATE_" not in symbol}
        for symbol in sorted(found - declared):
            fault(ROOT / "include/pith" / header, 1, f"{name} exports {symbol}, which no public header declares")
        for symbol in sorted(declared - found):
            fault(ROOT / "include/pith" / header, 1, f"{symbol} is declared but not in {name}")


def prefixes():
    """A static library defines what the public headers declare (pith_), and beside it only names that begin with pith__: a
    symbol of the library never meets one of a program's own, and a reader sees which calls are promised to programs."""
    public = public_names()
    for name, declared in (("libpith.a", public), ("libpith-core.a", public), ("libpith-tables.a", public),
                           ("libpith_image.a", {"pith_image_codecs"})):
        library = built(name)
        for symbol in sorted(symbols(library) - declared) if library else ():
            if not symbol.startswith("pith__"):
                fault(ROOT / "CMakeLists.txt", 1, f"{name} defines {symbol}: no public header declares it, and it does not "
                      "begin with pith__")


def formatting():
    """Sources and headers are as the pinned clang-format leaves them (`make fmt`)."""
    tool = Path(sys.executable).parent / "clang-format"
    files = [str(path) for path in tracked("*.c", "*.h", "*.hpp", "*.cpp")]
    out = subprocess.run([tool, "--dry-run", *files], capture_output=True, text=True, check=False).stderr
    seen = set()
    for m in re.finditer(r"^(/[^:\n]+):(\d+):\d+: warning: code should be clang-formatted", out, re.M):
        if m.group(1) not in seen:
            seen.add(m.group(1))
            fault(m.group(1), m.group(2), "is not formatted: run make fmt")


def includes():
    """An include names its folder, so that layers() sees it."""
    for path in tracked("src/*.c", "src/*.h"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.match(r'\s*#\s*include\s+"[^"/]+"', line):
                fault(path, number, "an include names its folder")


def changelog():
    """A section for each release, the newest first and that of the version; one line for each change."""
    path, version, found = ROOT / "CHANGELOG.md", described()["version"], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("## "):
            m = re.fullmatch(r"## (\d+)\.(\d+)\.(\d+)(?: \(unreleased\)| - \d{4}-\d\d-\d\d)?", line)
            found.append(tuple(map(int, m.groups())) if m else ())
            if not m or found[1:] and found[-2] <= found[-1]:
                fault(path, number, "a section is '## 0.2.0 (unreleased)' or '## 0.2.0 - 2026-12-01', the newest first")
        elif line and found and not line.startswith(("- ", "#")) and line[0] in " *+":
            fault(path, number, "a change is one line: '- ' and a sentence")
    if not found or ".".join(map(str, found[0])) != version:
        fault(path, 1, f"the first section is not that of {version}")


def workflows():
    """Continuous integration runs verbs of the Makefile and nothing else, so that everybody can run the same."""
    verbs = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M))
    for path in tracked(".github/workflows/*.yml"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            verb = re.match(r"\s*(?:- )?verb: (.*)$", line)
            if verb and verb.group(1) not in verbs:
                fault(path, number, f"'{verb.group(1)}' is no verb of the Makefile")
            command = re.match(r"\s*(?:- )?run: (.*)$", line)
            if command and not re.fullmatch(r"make (\$\{\{ matrix\.verb \}\}|%s)" % "|".join(verbs), command.group(1)):
                fault(path, number, "a workflow runs one verb of the Makefile")


# Pages that tell what was, so that the files they name may be gone.
HISTORY = ("CHANGELOG.md", "docs/notes/")


# Names that pages give to files of their readers.
READERS = {"a.c", "my_ops.def", "op_mine.c", "mine.def"}


def there(name):
    """Whether a path of the tree exists: it may have globs, {alternatives} and <placeholders>, which stand for any name."""
    m = re.match(r"(.*?)\{([^}]*)\}(.*)$", name)
    if m:
        return all(there(m.group(1) + part + m.group(3)) for part in m.group(2).split(","))
    return any(ROOT.glob(re.sub(r"<[^>]*>", "*", name).rstrip("/")))


def headings(page):
    """What links to the headings of a page are called."""
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in re.findall(r"^#+ (.*)$", page.read_text(), re.M)}


def places():
    """Files that pages name are there: words in backticks that are paths of the tree, paths of includes (base/log.h), of operators
    (onnx/op_clip.c) or names of sources (log.h), all words of NOTICE, and targets of links. A page may name a file that it
    tells how to write ("file=")."""
    folders = {p.relative_to(ROOT).parts[0] for p in tracked("*/*")}
    names = {p.name for p in tracked()}
    for path in tracked("*.md", "NOTICE"):
        if str(path.relative_to(ROOT)).startswith(HISTORY):
            continue
        text = path.read_text()
        written = set(re.findall(r"^```\w+ file=(\S+)$", text, re.M))
        blocks = re.sub(r"^```.*?^```$", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.M | re.S)
        spans = [(0, text)] if path.name == "NOTICE" else [(m.start(1), m.group(1)) for m in re.finditer(r"`([^`\n]+)`", blocks)]
        for start, span in spans:
            line = text[:start].count("\n")
            for m in re.finditer(r"(?<![\w/.…$}-])[\w./*{},<>-]*[\w/*}>]", span):
                name, source = m.group(), re.search(r"[\w>*]\.(c|h|hpp|cpp|def|py|sh|cmake)$", m.group())
                if name.split("/")[0] in folders and "/" in name:
                    found = there(name) or name in written
                elif source and "/" in name:
                    found = any(there(folder + name) for folder in ("src/", "include/", "cli/", "src/engine/ops/"))
                elif source:
                    pattern = re.sub(r"<[^>]*>|\*", r"[^/]*", re.escape(name).replace(r"\*", "*"))
                    found = name in READERS or any(re.fullmatch(pattern, known) for known in names | {w.split("/")[-1] for w in written})
                else:
                    continue
                if not found:
                    fault(path, line + span[: m.start()].count("\n") + 1, f"there is no {name}")
        for name in sorted(written):
            if not (ROOT / name).parent.is_dir():
                fault(path, text[: text.index(name)].count("\n") + 1, f"there is no folder of {name}")
        for m in re.finditer(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)", blocks):
            target = path.parent / m.group(1) if m.group(1) else path
            if not target.exists() or m.group(2) and m.group(2) not in headings(target):
                fault(path, text[: m.start()].count("\n") + 1, f"a link leads to {m.group()[2:-1]}, which is not there")


def named_sources():
    """Each source that CMake code or a Python tool names is there. CMake code may leave out its own folder, src and cli, or, of
    the name alone, every folder; and in the list of a foreach the ending."""
    kinds, roots = r"\.(?:c|cpp|py|sh)", r"\$\{(?:CMAKE_CURRENT_SOURCE_DIR|(?:CMAKE|PROJECT)_SOURCE_DIR|PITH_SELECT_ROOT)\}/"
    there = tracked()
    alone = {path.name for path in there}
    for path in (path for path in there if path.name == "CMakeLists.txt" or path.suffix == ".cmake"):
        text = re.sub(r"#[^\n]*", lambda m: " " * len(m.group()), path.read_text())
        named = [(m.start(), m.group()) for m in re.finditer(rf'(?<![^\s"(;])(?:{roots})?[\w./-]+{kinds}(?![^\s");])', text)]
        named += [(m.start(1) + w.start(), w.group() + ".c") for m in re.finditer(r"foreach\(\w+((?:\s+[\w./]+)+)\)", text)
                  for w in re.finditer(r"\w[\w.]*/[\w/]+", m.group(1))]
        for start, name in named:
            name = re.sub(roots, "", name)
            if name not in alone and not any((folder / name).exists() for folder in (path.parent, ROOT, ROOT / "src", ROOT / "cli")):
                fault(path, text[:start].count("\n") + 1, f"there is no {name}")
    folders = "|".join({str(path.relative_to(ROOT)).split("/")[0] for path in there if path.parent != ROOT})
    for path in tracked("tools/*.py", "tests/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if re.fullmatch(rf"(?:{folders})/[\w./-]+\.(?:c|h|cpp|hpp|def|py|sh)", name) and not (ROOT / name).exists():
                fault(path, node.lineno, f"there is no {name}")


def mirrored():
    """Unit tests lie where what they test lies: tests/unit/<folder> for src/<folder>, tests/unit/cli/<folder> for cli/<folder>."""
    for path in tracked("tests/unit/*.c", "tests/unit/*.h"):
        folder = path.parent.relative_to(ROOT / "tests/unit")
        if str(folder) == "." or str(folder) != "support" and not (ROOT / "src" / folder).is_dir() and not (folder.parts[:1] == ("cli",) and (ROOT / folder).is_dir()):
            fault(path, 1, f"there is no src/{folder}; what several tests share is in tests/unit/support")


def equivalent_changes():
    """Every change that tests/mutate/equivalent.txt says cannot matter is one of today's sources."""
    sys.path.insert(0, str(ROOT / "tests/mutate"))
    import equivalents
    for line, text in equivalents.read(ROOT)[1]:
        fault(equivalents.LIST, line, text)


def readme():
    """The README's C program is examples/embed.c, which the tests compile and run."""
    block = re.search(r"^```c\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    if not block or block.group(1) != (ROOT / "examples/embed.c").read_text():
        fault(ROOT / "README.md", 1, "the C program is not examples/embed.c")


def option_table():
    """Each option has a verb and a test that is there; fields are those of public headers; docs/options.md is up to date."""
    sys.path.insert(0, str(ROOT / "tools"))
    import options
    path = ROOT / "cli/options/options.def"
    users, rows = options.verbs(), options.rows()
    declared = {name: {m["name"] for m in struct["members"]} for name, struct in border.structs(described()).items()}
    tests = {}
    for row in rows:
        if row["id"] not in users:
            fault(path, row["line"], f"no verb has '{row['id']}'")
        test = re.fullmatch(r"(\w+) (\w+)\.(test_\w+)", row["test"])
        file = ROOT / f"tests/cli/{test.group(1)}.py" if test else None
        if not file or not file.exists():
            fault(path, row["line"], f"'{row['id']}' names no test: 'FILE CLASS.METHOD' in tests/cli")
            continue
        if file not in tests:
            tests[file] = {(c.name, m.name) for c in ast.parse(file.read_text()).body if isinstance(c, ast.ClassDef)
                           for m in c.body if isinstance(m, ast.FunctionDef)}
        if test.groups()[1:] not in tests[file]:
            fault(path, row["line"], f"there is no test {test.group(2)}.{test.group(3)} in tests/cli/{file.name}")
        if re.search(r"FILE|DIR|MODEL|RUN|PREFIX|PROGRAM", row.get("takes", "")) and "file" not in row:
            fault(path, row["line"], f"'{row['id']}' does not say what the file is for: .file = FILE_READ, FILE_WRITTEN, ...")
        for struct, member, inner in re.findall(r"(pith_\w+)\.(\w+)(?:\.(\w+))?", row["field"]):
            if member not in declared.get(struct, ()) or (inner and inner not in declared.get(f"pith_{member}", ())):
                fault(path, row["line"], f"'{row['id']}': {struct} has no member {'.'.join(filter(None, (member, inner)))}")
    for row in sorted(set(users) - {row["id"] for row in rows}):
        fault(path, 1, f"there is no row '{row}'")
    if any(line.startswith('cli/options/options.def') for line in faults):
        return
    if not options.PAGE.exists() or options.PAGE.read_text() != options.page():
        fault(options.PAGE, 1, "is not what cli/options/options.def and cli/options/presets.def say: run make docs")


def field_flags():
    """Messages of the library name fields that are there, for which the command has flags: those of cli/options/field_flags.c."""
    import options
    listed = set(re.findall(r'\{ "(pith_\w+\.\w+)", ROW_', (ROOT / "cli/options/field_flags.c").read_text()))
    settable = {field for row in options.rows() for field in row["field"].split(", ")}
    members = {f"{name}.{m['name']}" for name, d in border.structs(described()).items() for m in d["members"]}
    path = ROOT / "cli/options/field_flags.c"
    rows = {row["id"]: row["field"].split(", ") for row in options.rows()}
    for m in re.finditer(r'\{ "([\w.]+)", ROW_(\w+) \}', path.read_text()):
        if m.group(1) not in rows[m.group(2)]:
            fault(path, path.read_text()[: m.start()].count("\n") + 1, f"options.def does not say that '{m.group(2)}' sets {m.group(1)}")
    for path in tracked("src/*.c", "src/*.h"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r'"[^"]*((?<![\w"-])--[a-z]|[\'`]pith [a-z])', line) and not re.search("llama-gguf-split|'pith pull'", line):
                fault(path, number, "a message names a flag or a verb of the command; name the field or the function, and the flag in cli/options/field_flags.c")
            for text in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
                for field in re.findall(r"\bpith_\w+_options\.\w+", text):
                    if field not in members:
                        fault(path, number, f"a message names {field}, which is not there")
                    elif field in settable and field not in listed:
                        fault(path, number, f"a message names {field}, which options.def has a flag for: put it into cli/options/field_flags.c")


# What may open a file for writing: outputs and their temporary files, the record beside a part, and the model cache.
WRITERS = {"output.c", "temporary_file.c", "resume_record.c", "pull_file.c", "pull_pin.c", "pull_place.c"}


def writers():
    """A verb writes files through cli/output/output.h alone, which knows all inputs of the call; the library writes none by path."""
    writes = re.compile(r'\bf(?:re)?open\([^;]*,\s*"[wa]|\bfopen\([^;]*"r[be]*\+|\bopen(?:at)?\([^;]*\bO_(?:WRONLY|RDWR|CREAT)\b|\bcreat\(|'
                        r'\bmko?stemps?\(')
    for path in tracked("cli/*.c", "src/*.c", "image/*.c"):
        if path.name in WRITERS and path.is_relative_to(ROOT / "cli"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if writes.search(line):
                fault(path, number, "opens a file for writing; use cli/output/output.h")


TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[A-Za-z_]\w*|\d[\w.]*|->|\+\+|--|<<=|>>=|&&|\|\||[-+*/%&|^<>=!]=|\S')
CLOSES = {"(": ")", "[": "]", "{": "}"}
ASSIGNS = set("= += -= *= /= %= &= |= ^= <<= >>=".split())


def c_tokens(path):
    """The file's tokens in streams of (token, line): its code without preprocessor lines, then the body of each macro."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()), path.read_text(), flags=re.S)
    code, bodies, lines, at = [], [], text.split("\n"), 0
    while at < len(lines):
        if not re.match(r"\s*#", lines[at]):
            code += [(t, at + 1) for t in TOKEN.findall(lines[at])]
            at += 1
            continue
        macro, start = [], at
        while True:
            macro += [(t, at + 1) for t in TOKEN.findall(lines[at].rstrip("\\"))]
            at += 1
            if at >= len(lines) or not lines[at - 1].endswith("\\"):
                break
        head = re.match(r"\s*#\s*define\s+\w+(\()?", lines[start])
        if head:
            skip = next((i for i, t in enumerate(macro) if t[0] == ")"), 2) + 1 if head.group(1) else 3
            bodies.append(macro[skip:])
    return [code, *bodies]


def bracket_pairs(tokens):
    """The index of the bracket that closes each opening one."""
    pairs, open_at = {}, []
    for i, (token, _) in enumerate(tokens):
        if token in CLOSES:
            open_at.append(i)
        elif open_at and token == CLOSES[tokens[open_at[-1]][0]]:
            pairs[open_at.pop()] = i
    return pairs


def nested_choices(tokens):
    """Lines of a `?:` that has a second `?:` in one of its operands, brackets in them included. Tables of constants may: an
    initialiser in braces of what is both static and const."""
    pairs, found = bracket_pairs(tokens), []

    def walk(start, end, table):
        """The number of `?` from start to end. A segment is what one comma, semicolon or statement head sets apart."""
        total, own, inner, first, at = 0, 0, 0, start, start

        def close(line):
            nonlocal total, own, inner
            if own and own + inner > 1 and not table:
                found.append(line)
            total, own, inner = total + own + inner, 0, 0

        while at < end:
            token, line = tokens[at]
            if token == "?":
                own += 1
            elif token in (",", ";"):
                close(tokens[first][1])
                first = at + 1
            elif at in pairs and pairs[at] < end:
                words = {t for t, _ in tokens[first:at]}
                inner += walk(at + 1, pairs[at], table or (token == "{" and {"static", "const", "="} <= words))
                head = token == "(" and at and tokens[at - 1][0] in ("if", "for", "while", "switch")
                statement = token == "{" and "=" not in words and tokens[at - 1][0] != "return"
                at = pairs[at]
                if head or statement:
                    close(line)
                    first = at + 1
            at += 1
        if first < len(tokens):
            close(tokens[first][1])
        return total

    walk(0, len(tokens), False)
    return found


def statement_end(tokens, pairs, at):
    """The index behind the statement that starts at `at`."""
    if at >= len(tokens):
        return at
    token = tokens[at][0]
    if token == "{":
        return pairs.get(at, len(tokens) - 1) + 1
    if token in ("if", "for", "while", "switch"):
        end = statement_end(tokens, pairs, pairs.get(at + 1, len(tokens)) + 1)
        if token == "if" and end < len(tokens) and tokens[end][0] == "else":
            end = statement_end(tokens, pairs, end + 1)
        return end
    if token == "do":
        at = statement_end(tokens, pairs, at + 1)
    while at < len(tokens) and tokens[at][0] != ";":
        at = pairs.get(at, at) + 1
    return at + 1


def lvalue_paths(tokens):
    """Each name with its members, `a->b[i].c` as (a, b, [], c); with the places before and behind it."""
    pairs, at = bracket_pairs(tokens), 0
    while at < len(tokens):
        if not re.match(r"[A-Za-z_]", tokens[at][0]) or (at and tokens[at - 1][0] in (".", "->")):
            at += 1
            continue
        path, end = [tokens[at][0]], at + 1
        while end < len(tokens):
            if tokens[end][0] == "[" and end in pairs:
                path.append("[]")
                end = pairs[end] + 1
            elif tokens[end][0] in (".", "->") and end + 1 < len(tokens):
                path.append(tokens[end + 1][0])
                end += 2
            else:
                break
        yield tuple(path), at - 1, end
        at += 1


def assigned_paths(tokens):
    """What the tokens assign, count up or down, declare with a value, or pass on by address."""
    for path, before, behind in lvalue_paths(tokens):
        while before > 0 and tokens[before][0] == "*" and tokens[before - 1][0] in ("*", "++", "--"):
            before -= 1
        left = tokens[before][0] if before >= 0 else ""
        right = tokens[behind][0] if behind < len(tokens) else ""
        address = left == "&" and (before == 0 or re.match(r"[(,=&|!?:;{]$|&&$|\|\|$|return$", tokens[before - 1][0]))
        if right in ASSIGNS or {left, right} & {"++", "--"} or address:
            yield path


def head_guards(tokens):
    """Lines of for loops with a guard in the head: an operand of the condition's `&&` that names nothing which the head or
    the body assigns. It is the same in every turn, or another function changes it out of sight: an `if` says so."""
    pairs, found = bracket_pairs(tokens), []
    for at, (token, line) in enumerate(tokens):
        if token != "for" or at + 1 not in pairs:
            continue
        head_end = pairs[at + 1]
        parts, start = [], at + 2
        i = start
        while i <= head_end:
            if tokens[i][0] == ";" or i == head_end:
                parts.append((start, i))
                start = i + 1
            i = pairs.get(i, i) + 1
        if len(parts) != 3:
            continue
        changed = set(assigned_paths(tokens[at + 1 : statement_end(tokens, pairs, head_end + 1)]))
        (start, end), operands = parts[1], []
        i = start
        while i <= end:
            if i == end or tokens[i][0] == "&&":
                operands.append(tokens[start:i])
                start = i + 1
            i = pairs.get(i, i) + 1
        for operand in operands if len(operands) > 1 else ():
            paths = [path for path, _, _ in lvalue_paths(operand)]
            if not any(path[: len(made)] == made for path in paths for made in changed):
                found.append(line)
                break
    return found


def density():
    """No `?:` within a `?:` outside tables of constants, and no guard in the head of a for loop."""
    for path in tracked("src/*.c", "src/*.h", "include/*.h", "cli/*.c", "cli/*.h", "image/*.c", "image/*.h", "bench/*.c", "bench/*.h", "examples/*.c",
                        "tools/*.c"):
        for tokens in c_tokens(path):
            for line in nested_choices(tokens):
                fault(path, line, "a ?: within a ?:; write an if, or name the inner one")
            for line in head_guards(tokens):
                fault(path, line, "a guard in the head of a for loop; write an if before the loop or in its body")


def main():
    for check in (layers, lists, verbs, names, ends, description, release, api, wrapper, cpp_page, lengths, words, pages_in_plain_english, page_numbers, changelog, exports, prefixes, readme, formatting, includes, workflows,
                  places, named_sources, mirrored, equivalent_changes, option_table, field_flags, writers, density):
        check()
    for line in faults:
        print(line)
    print(f"lint: {len(faults)} faults" if faults else "lint: clean")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
