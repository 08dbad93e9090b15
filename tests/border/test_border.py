#!/usr/bin/env python3
"""The description of the C interface (tools/api.py): it is what the compilers see and the library exports, it does not depend
on how comments are wrapped, and changes that break programs are refused until the version says so.

usage: test_border.py SOURCE_DIR BUILD_DIR [CLASS[.METHOD]]
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE, BUILD = (Path(a).resolve() for a in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "tools"))
import api  # noqa: E402
import api_pages  # noqa: E402

NOW = api.describe(SOURCE)
RELEASE = api.bare(NOW)


def run(*command, good=True):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300)
    if good and done.returncode:
        raise AssertionError(f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done


class Tree:
    """A copy of the headers to change."""

    def __init__(self, folder):
        self.root = Path(folder)
        shutil.copytree(SOURCE / "include", self.root / "include")
        shutil.copy(SOURCE / "CMakeLists.txt", self.root)

    def change(self, name, *pairs):
        """Regular expressions, each of which must be found once."""
        path = self.root / (name if name == "CMakeLists.txt" else f"include/pith/{name}")
        text = path.read_text()
        for old, new in pairs:
            text, count = re.subn(old, new, text, count=1, flags=re.M | re.S)
            if not count:
                raise AssertionError(f"{name} has no {old}")
        path.write_text(text)
        return self

    def version(self, version, soname=None):
        major, minor, patch = version.split(".")
        self.change("CMakeLists.txt", (r"project\(pith VERSION [\d.]+", f"project(pith VERSION {version}"))
        for name, number in (("MAJOR", major), ("MINOR", minor), ("PATCH", patch)):
            self.change("types.h", (rf"(#define PITH_VERSION_{name}) \d+", rf"\g<1> {number}"))
        if soname is not None:
            path = self.root / "CMakeLists.txt"
            path.write_text(re.sub(r"SOVERSION \d+", f"SOVERSION {soname}", path.read_text()))
        return self

    def describe(self):
        return api.describe(self.root)

    def refusals(self):
        return list(api.refusals(RELEASE, self.describe()))

    def tool(self, *options):
        return run(sys.executable, SOURCE / "tools/api.py", "--root", self.root, *options, good=False)


NEXT_MINOR = re.sub(r"^(\d+)\.(\d+)\.\d+$", lambda m: f"{m.group(1)}.{int(m.group(2)) + 1}.0", NOW["version"])
NEXT_PATCH = re.sub(r"\d+$", lambda m: str(int(m.group()) + 1), NOW["version"])
NEXT_SONAME = NOW["soname"] + 1

# (header, what is changed, what the refusal says): each breaks programs.
BREAKS = {
    "a member in the middle": ("embed.h", [(r"^    int32_t batch_tokens;", "    int32_t planted;\n    int32_t batch_tokens;")],
                               "pith_embed_options.batch_tokens is not where it was: planted is there"),
    "a member removed": ("embed.h", [(r"^    double target_ms;.*?(?=^    /\* called)", "")],
                         "pith_batching.target_ms is not where it was"),
    "the last member removed": ("embed.h", [(r"^    const pith_batching \*batching; /\*[^*]*\*/\n", "")], "pith_embed_options.batching is gone"),
    "two members swapped": ("types.h", [(r"(    const char \*data;\n)(    size_t size;\n)", r"\2\1")], "pith_str.data is not where it was: size is there"),
    "a member's type": ("embed.h", [(r"^    int32_t dim; ", "    int64_t dim; ")], "pith_embed_options.dim was int32_t and is int64_t"),
    "a member of a callback's type": ("embed.h", [(r"\(\*done\)\(void \*user, size_t first, size_t count\)", "(*done)(void *user, size_t first, int count)")],
                                      "pith_batching.done was void (*)(void *, size_t, size_t) and is void (*)(void *, size_t, int)"),
    "a plain struct that grew": ("types.h", [(r"(^    const char \*data;\n    size_t size;[^\n]*\n)(?=\} pith_str;)", r"\1    int64_t planted;\n")],
                                 "pith_str.planted is new, and pith_str does not begin with its size"),
    "a parameter's type": ("tensor.h", [(r"pith_shape_count\(const int64_t \*dims, int32_t rank\)", "pith_shape_count(const int64_t *dims, int64_t rank)")],
                           "pith_shape_count was 'int64_t pith_shape_count(const int64_t *dims, int32_t rank)' and is "),
    "a parameter more": ("tensor.h", [(r"pith_shape_count\(const int64_t \*dims", "pith_shape_count(int32_t planted, const int64_t *dims")], "pith_shape_count was "),
    "two parameters swapped": ("tensor.h", [(r"pith_shape_count\(const int64_t \*dims, int32_t rank\)", "pith_shape_count(int32_t rank, const int64_t *dims)")],
                               "pith_shape_count was "),
    "a const that is gone": ("tensor.h", [(r"pith_shape_count\(const int64_t", "pith_shape_count(int64_t")], "pith_shape_count was "),
    "a result's type": ("embed.h", [(r"PITH_API size_t pith_embed_dim", "PITH_API int32_t pith_embed_dim")], "pith_embed_dim was "),
    "a function removed": ("embed.h", [(r"^PITH_API size_t pith_embed_dim\([^;]*;\n", "")], "pith_embed_dim is gone"),
    "a function renamed": ("embed.h", [(r"pith_embed_dim\(const", "pith_embed_planted(const")], "pith_embed_dim is gone"),
    "an enum's value": ("embed.h", [(r"PITH_POOLING_LAST = 4", "PITH_POOLING_LAST = 5")], "PITH_POOLING_LAST was 4 and is 5"),
    "an enum's value removed": ("embed.h", [(r"^    PITH_POOLING_MAX = 3,[^\n]*\n", "")], "PITH_POOLING_MAX is gone"),
    "a value of an enum without a name": ("op.h", [(r"PITH_OPERATOR_RANDOM = 1 << 3", "PITH_OPERATOR_RANDOM = 1 << 4")], "PITH_OPERATOR_RANDOM was 8 and is 16"),
    "a number": ("types.h", [(r"#define PITH_ERROR_MESSAGE_SIZE 1024", "#define PITH_ERROR_MESSAGE_SIZE 512")], "PITH_ERROR_MESSAGE_SIZE was 1024 and is 512"),
    "a struct hidden": ("types.h", [(r"typedef struct pith_log \{.*?\} pith_log;", "typedef struct pith_log pith_log;")], "the members of pith_log are gone"),
    "a handle removed": ("tokens.h", [(r"^typedef struct pith_text_stream pith_text_stream;\n", "struct pith_text_stream;\n#define pith_text_stream struct pith_text_stream\n")],
                         "pith_text_stream was a handle and is a macro"),
    "a module's struct": ("image_module.h", [(r"^    uint32_t encodes;", "    uint64_t encodes;")], "pith_image_codec.encodes was uint32_t and is uint64_t"),
}
ADDS = {
    "a function": ("embed.h", [(r"^PITH_API size_t pith_embed_dim", "PITH_API void pith_planted(void);\nPITH_API size_t pith_embed_dim")], "pith_planted is new"),
    "a member at the end": ("embed.h", [(r"^(    const pith_batching \*batching; /\*[^*]*\*/\n)", r"\1    int32_t planted;\n")], "pith_embed_options.planted is new"),
    "a new value of an enum": ("types.h", [(r"PITH_ERR_DEADLINE = 10 ", "PITH_ERR_PLANTED = 11,\n    PITH_ERR_DEADLINE = 10 ")], "PITH_ERR_PLANTED is new"),
    "a new number": ("types.h", [(r"#define PITH_MAX_RANK 12", "#define PITH_MAX_RANK 12\n#define PITH_PLANTED (1u << 4)")], "PITH_PLANTED is new"),
    "a struct": ("types.h", [(r"(\} pith_str;)", r"\1\ntypedef struct pith_planted {\n    int32_t a;\n} pith_planted;")], "pith_planted is new"),
}
# What abidiff does not report: names and numbers that are gone when a program is compiled, and const.
SOURCE_ONLY = {"a const that is gone", "a number", "a value of an enum without a name", "a module's struct", "a handle removed", "two members swapped"}


class WithTrees(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def tree(self, header=None, pairs=()):
        made = Tree(tempfile.mkdtemp(dir=self.folder) + "/tree")
        return made.change(header, *pairs) if header else made


class Changes(WithTrees):
    changed = {}

    def described(self, name):
        """The description after a change of BREAKS or ADDS."""
        if name not in self.changed:
            header, pairs, _ = name
            self.changed[name] = self.tree(header, pairs).describe()
        return self.changed[name]

    @staticmethod
    def refused(now, version=NOW["version"], soname=NOW["soname"]):
        return list(api.refusals(RELEASE, now | {"version": version, "soname": soname}))

    def each(self, changes):
        for name, (header, pairs, says) in changes.items():
            yield name, header, says, self.described((header, tuple(pairs), says))

    def test_nothing(self):
        self.assertEqual(self.refused(NOW), [])
        self.assertEqual(self.refused(NOW, NEXT_MINOR, NEXT_SONAME), [])

    def test_what_breaks(self):
        """Refused as it is, refused with a new minor version alone or a new soname alone, allowed with both."""
        for name, header, says, now in self.each(BREAKS):
            with self.subTest(name):
                found = self.refused(now)
                self.assertTrue([what for h, what in found if h == header and what.startswith(says)], found)
                self.assertIn("Put it back, or give the libraries a new SOVERSION and raise the minor version", " ".join(w for _, w in found))
                self.assertTrue(self.refused(now, NEXT_MINOR))
                self.assertTrue(self.refused(now, NEXT_PATCH, NEXT_SONAME))
                self.assertEqual(self.refused(now, NEXT_MINOR, NEXT_SONAME), [])

    def test_what_adds(self):
        """Refused as it is and with a new patch version, allowed with a new minor one."""
        for name, header, says, now in self.each(ADDS):
            with self.subTest(name):
                for version in (NOW["version"], NEXT_PATCH):
                    found = self.refused(now, version)
                    self.assertEqual([(h, w.split(" (")[0]) for h, w in found], [(header, says)])
                    self.assertIn("raise the minor version", found[0][1])
                self.assertEqual(self.refused(now, NEXT_MINOR), [])

    def test_abidiff_agrees(self):
        """What abidiff says of two libraries made from the descriptions."""
        self.assertEqual(api.abi_differences(RELEASE, NOW, self.folder), (0, ""))
        for name, _, _, now in self.each(BREAKS | ADDS):
            if name == "a handle removed":  # what is left of its functions is no C
                continue
            with self.subTest(name):
                status, text = api.abi_differences(RELEASE, now, self.folder)
                self.assertEqual(status & 3, 0, text)
                if name in BREAKS and name not in SOURCE_ONLY:
                    self.assertNotEqual(status, 0)

    def test_a_new_member_in_old_padding(self):
        """The size would not tell whether a program has the member."""
        old = {"name": "s", "kind": "struct", "size": 16, "align": 8, "sized": True, "members": [
            {"name": "size", "type": "size_t", "offset": 0, "size": 8}, {"name": "a", "type": "int32_t", "offset": 8, "size": 4}]}
        new = old | {"members": [*old["members"], {"name": "b", "type": "int32_t", "offset": 12, "size": 4}]}
        self.assertEqual([level for level, _ in api.struct_changes(old, new)], [api.BREAKS])
        new = old | {"size": 24, "members": [*old["members"], {"name": "b", "type": "int32_t", "offset": 16, "size": 4}]}
        self.assertEqual(list(api.struct_changes(old, new)), [(api.ADDS, "s.b")])

    def test_a_module_with_a_new_number(self):
        header, pairs, _ = BREAKS["a module's struct"]
        tree = self.tree(header, [*pairs, (r"#define PITH_IMAGE_MODULE_ABI \d+", "#define PITH_IMAGE_MODULE_ABI 99")])
        self.assertTrue(all("raise the minor version" in what and "SOVERSION" not in what for _, what in tree.refusals()))
        self.assertEqual(tree.version(NEXT_MINOR).refusals(), [])

    def test_older_than_the_release(self):
        self.assertIn("the release was", self.tree().version("0.0.1").refusals()[0][1])

    def test_names_of_parameters_and_members_that_moved_files(self):
        """A parameter's name breaks nothing; nor does a declaration in another header of the same library."""
        tree = self.tree("quantize.h", [(r"pith_quantize_row_bytes\(int32_t type, size_t dim", "pith_quantize_row_bytes(int32_t type, size_t width")])
        self.assertEqual(tree.refusals(), [])
        tree = self.tree("embed.h", [(r"^PITH_API size_t pith_embed_dim\([^;]*;\n", "")])
        tree.change("score.h", (r"(^PITH_API )", r"PITH_API size_t pith_embed_dim(const pith_model *model, const struct pith_embed_options *options);\n\1"))
        self.assertEqual(tree.refusals(), [])


class Tool(WithTrees):
    """What `make api` and `make api-release` run."""

    def test_from_change_to_release(self):
        tree = self.tree()
        self.assertEqual(tree.tool("--write", "--release").returncode, 0)
        first = {p: p.read_bytes() for p in tree.root.rglob("*") if p.is_file()}
        self.assertEqual(tree.tool("--write", "--release").returncode, 0)
        self.assertEqual(first, {p: p.read_bytes() for p in tree.root.rglob("*") if p.is_file()})
        tree.change("embed.h", (r"the first token's vector", "the vector of the first token"))
        done = tree.tool()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "include/api.json is not that of the headers: run make api\ndocs/api/embed_h.md is not that of the headers: run make api\n")
        self.assertEqual(tree.tool("--write").returncode, 0)
        tree.change("embed.h", (r"^PITH_API size_t pith_embed_dim\([^;]*;\n", ""))
        done = tree.tool("--write")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"^include/pith/embed.h:\d+: pith_embed_dim is gone \(since")
        tree.version(NEXT_MINOR, NEXT_SONAME)
        self.assertEqual(tree.tool("--write").returncode, 0)
        self.assertEqual(tree.tool("--release").returncode, 0)
        self.assertEqual(json.loads((tree.root / api.RELEASE).read_text())["version"], NEXT_MINOR)
        self.assertLess((tree.root / api.RELEASE).stat().st_size, 1_000_000)

    def test_wrapping_changes_nothing(self):
        tree = self.tree("embed.h", [(r"what the model's modules.json says; mean if it says nothing", "what the model's modules.json\n                                says; mean if it says nothing"),
                                     (r"Writes one vector per text to vectors: ", "Writes one vector\n * per text to vectors: ")])
        self.assertEqual(tree.describe(), NOW)

    def test_pages_of_removed_headers_go(self):
        tree = self.tree()
        tree.tool("--write")
        (tree.root / "docs/api/gone_h.md").write_text("")
        self.assertIn("docs/api/gone_h.md", tree.tool().stdout)
        tree.tool("--write")
        self.assertFalse((tree.root / "docs/api/gone_h.md").exists())

    def test_not_understood(self):
        for header, pairs, says in (
                ("types.h", [(r"(\} pith_str;)", r"\1\ntypedef struct pith_planted {\n    union { int a; float b; } u;\n} pith_planted;")], "pith_planted has a union or a bit-field"),
                ("types.h", [(r"(\} pith_str;)", r"\1\ntypedef struct pith_planted {\n    int a : 3;\n} pith_planted;")], "pith_planted has a union or a bit-field"),
                ("types.h", [(r"pith_version\(void\)", "pith_version(const char *format, ...)")], "pith_version has any number of parameters"),
                ("types.h", [(r"(\} pith_str;)", r"\1\nunion pith_planted { int a; float b; };")], "pith_planted is a UNION_DECL"),
                ("types.h", [(r"pith_version\(void\)", "pith_version(planted)")], "types.h:"),
                ("types.h", [(r"PITH_VERSION_MINOR \d+", "PITH_VERSION_MINOR 77")], "PITH_VERSION_* is not the version of CMakeLists.txt"),
                ("CMakeLists.txt", [(r"SOVERSION \d+", "SOVERSION 77")], "the libraries have more than one SOVERSION")):
            with self.subTest(says):
                done = self.tree(header, pairs).tool()
                self.assertEqual(done.returncode, 1)
                self.assertIn(says, done.stderr)


class Description(unittest.TestCase):
    maxDiff = None

    def test_committed(self):
        self.assertEqual(api.load(SOURCE), NOW)
        self.assertEqual(api_pages.stale(SOURCE, NOW), [])
        self.assertEqual(list(api.refusals(api.load(SOURCE, api.RELEASE), NOW)), [])

    def test_layout(self):
        """gcc and clang lay structs out as described, and take the described functions for those of the headers."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "layout.c"
            source.write_text(api.c_layout(NOW))
            for compiler in ("gcc", "clang"):
                run(compiler, "-std=c11", "-Wall", "-Werror", "-fsyntax-only", f"-I{SOURCE / 'include'}", source)

    def test_layout_can_fail(self):
        broken = json.loads(json.dumps(NOW))
        api.structs(broken)["pith_embed_options"]["members"][3]["offset"] += 4
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "layout.c"
            source.write_text(api.c_layout(broken))
            done = run("gcc", "-std=c11", "-fsyntax-only", f"-I{SOURCE / 'include'}", source, good=False)
        self.assertIn("offset of pith_embed_options.", done.stderr)

    def test_plain_declarations(self):
        """What bindings parse compiles without a header of Pith, as C and as C++."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "plain.c"
            source.write_text("#include <stddef.h>\n#include <stdint.h>\n" + run(sys.executable, SOURCE / "tools/api.py", "--c").stdout)
            run("gcc", "-std=c11", "-Wall", "-Werror", "-fsyntax-only", source)
            run("g++", "-xc++", "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", source)

    def test_exports(self):
        """The libraries export the described functions, and private symbols."""
        for name, library in (("libpith.so", "pith"), ("libpith-tables.so", "pith-tables")):
            out = run("nm", "-D", "--defined-only", BUILD / name).stdout
            found = {line.split()[-1] for line in out.splitlines() if " T " in line}
            self.assertEqual({s for s in found if re.fullmatch("pith_[a-z]\\w*", s)}, set(api.functions(NOW, library)), name)

    def definitions_beside(self, described):
        """What abidiff says of src/api, with debug information, beside a library made from a description: (status, changes).
        Structs that only src knows are handles there; a struct and its typedef are the same."""
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            objects = []
            for path in sorted((SOURCE / "src/api").glob("*.c")):
                if path.name != "api_core.c":
                    objects.append(work / f"{path.stem}.o")
                    run("gcc", "-std=gnu11", "-g", "-fPIC", "-w", f"-I{SOURCE / 'include'}", f"-I{SOURCE / 'src'}", "-c", path, "-o", objects[-1])
            wanted = {line.split()[-1] for line in run("nm", "-u", *objects).stdout.splitlines() if " U pith__" in line}
            (work / "rest.s").write_text("".join(f".globl {name}\n.protected {name}\n{name}:\n" for name in sorted(wanted)))
            soname = f"-Wl,-soname,libpith.so.{NOW['soname']}"
            run("gcc", "-shared", soname, *objects, work / "rest.s", "-o", work / "libpith.so")
            found = []
            for api_of in described:
                (work / "d.c").write_text("#include <stddef.h>\n#include <stdint.h>\n" + api.c_code(api_of, bodies=True))
                run("gcc", "-g", "-shared", "-fPIC", "-w", soname, work / "d.c", "-o", work / "described.so")
                done = run("abidiff", "--no-added-syms", "--drop-private-types", "--headers-dir2", SOURCE / "include/pith",
                           work / "described.so", work / "libpith.so", good=False)
                changes = re.split(r"^  \[C\]", done.stdout + done.stderr, flags=re.M)[1:]
                found.append((done.returncode & ~4, [c for c in changes if "to compatible type" not in c or "type size changed" in c or "offset changed" in c]))
        return found

    def test_definitions(self):
        """The functions of src/api have the described types; a description with another type is noticed. Members of structs
        are not compared here: test_layout does that."""
        wrong = json.loads(json.dumps(NOW))
        api.functions(wrong)["pith_shape_count"]["parameters"][1]["type"] = "int64_t"
        right, other = self.definitions_beside([NOW, wrong])
        self.assertEqual(right, (0, []))
        self.assertIn("pith_shape_count", " ".join(other[1]))

    def test_every_libclang(self):
        """Other versions of libclang give the same bytes; those that are installed are asked."""
        for library in sorted(Path("/usr/lib").glob("llvm-*/lib/libclang-*.so.1")):
            with self.subTest(library.name):
                self.assertEqual(run(sys.executable, SOURCE / "tools/api.py", "--libclang", library).stdout, "the description is that of the headers\n")

    def test_facts(self):
        functions, structs, named = api.functions(NOW), api.structs(NOW), {n: d for n, (_, d) in api.named(NOW).items()}
        of = lambda function: {p["name"]: p for p in functions[function]["parameters"]}
        embed = of("pith_embed")
        self.assertEqual(embed["vectors"]["shape"], ["count", "pith_embed_dim(model, options)"])
        self.assertEqual(embed["vectors"]["direction"], "out")
        self.assertEqual(embed["texts"]["shape"], ["count"])  # the name is in the plural, and count follows
        self.assertTrue(embed["err"]["nullable"] and embed["options"]["nullable"])
        self.assertNotIn("nullable", embed["model"])
        self.assertEqual(of("pith_embed_tokens")["vectors"]["shape"], embed["vectors"]["shape"])  # "The same"
        self.assertEqual(of("pith_session_run")["inputs"]["shape"], ["input_count"])
        self.assertEqual(of("pith_shape_count")["dims"]["shape"], ["rank"])
        self.assertEqual(of("pith_image_processor_shape")["dims"]["shape"], ["3"])
        self.assertEqual(of("pith_model_open_memory")["data"], {"name": "data", "type": "const void *", "shape": ["size"], "kept": True})
        self.assertEqual(of("pith_model_open")["model"], {"name": "model", "type": "pith_model **", "direction": "out", "free": "pith_model_close"})
        self.assertEqual(of("pith_session_pool_borrow")["session"]["free"], "pith_session_pool_return")
        self.assertEqual(of("pith_detokenize")["text"]["free"], "pith_text_free")
        self.assertNotIn("free", of("pith_encode_into")["encoded"])
        self.assertNotIn("free", of("pith_session_run")["outputs"])
        self.assertEqual(of("pith_model_run")["outputs"]["free"], "pith_tensor_free")
        self.assertEqual(of("pith_cpu_report")["info"]["direction"], "inout")  # its size is read
        self.assertEqual(of("pith_bm25_encode")["role"]["enum"], "pith_role")
        self.assertEqual(of("pith_profile_tell")["told"]["user"], "user")
        self.assertEqual(of("pith_source_quantize")["data"].get("nullable"), True)  # "as in pith_source_export"
        self.assertEqual({functions[f]["threads"] for f in ("pith_embed_dim", "pith_embed", "pith_queue_submit", "pith_tensor_free", "pith_model_close")}, {"any"})
        self.assertEqual({functions[f]["threads"] for f in ("pith_session_run", "pith_search_index_add", "pith_search_index_remove", "pith_queue_destroy",
                                                            "pith_model_calibrate", "pith_relational_save")}, {"one"})
        self.assertIn("PITH_ERR_ARGUMENT", functions["pith_embed"]["errors"])
        self.assertTrue(functions["pith_queue_submit"]["error_text"].startswith("Errors: PITH_ERR_BUSY if the queue is full"))
        self.assertEqual(functions["pith_encode"]["errors_of"], ["pith_embed"])
        self.assertTrue(functions["pith_session_destroy"]["parameters"][0]["nullable"])
        self.assertEqual(functions["pith_text_free"]["frees"], "text")
        self.assertEqual(functions["pith_model_route"]["result"], {"lives": "model"})
        self.assertEqual(functions["pith_model_share"]["result"], {"free": "pith_model_close"})
        self.assertEqual(functions["pith_op_ints"]["result"], {"nullable": True, "lives": "model", "shape": ["*count"]})
        self.assertEqual((named["pith_model"]["close"], named["pith_model"]["threads"]), ("pith_model_close", "any"))
        self.assertEqual((named["pith_session"]["close"], named["pith_session"]["threads"]), ("pith_session_destroy", "one"))
        self.assertTrue(structs["pith_call"]["plain"])
        self.assertTrue(structs["pith_embed_options"]["sized"])
        self.assertFalse(structs["pith_tensor"]["sized"])
        self.assertEqual(structs["pith_embed_options"]["init"], "PITH_EMBED_OPTIONS_INIT")
        self.assertEqual(structs["pith_faces"]["free"], "pith_faces_free")
        member = lambda struct, name: next(m for m in structs[struct]["members"] if m["name"] == name)
        self.assertEqual(member("pith_embed_options", "pooling")["enum"], "pith_pooling")
        self.assertEqual(member("pith_open_options", "flags")["flags"], "PITH_OPEN_")
        self.assertEqual(member("pith_score_options", "results")["shape"], ["count"])  # "as in pith_embed_options"
        self.assertEqual(member("pith_sparse_rows", "indices")["shape"], ["offsets[texts]"])
        self.assertEqual(member("pith_call", "stop")["user"], "user")
        self.assertEqual(member("pith_optimize_options", "tell")["user"], "tell_user")
        self.assertTrue(member("pith_search_index_options", "offsets")["kept"])
        self.assertEqual((named["pith_embed"]["since"], named["pith_embed_tokens"]["since"]), ("0.1.0", "0.2.0"))
        self.assertEqual(member("pith_embed_options", "failures")["since"], "0.2.0")
        self.assertEqual(functions["pith_stop_threads"]["section"], "threads of the process")


class NotClear(WithTrees):
    """What a comment must say and does not is refused, with its place."""

    def test_refused(self):
        for header, pairs, says in (
                ("chunk.h", [(r"mean, float\[pith_embed_dim\]", "mean")],
                 "pith_chunk_mean: the comment does not say how many elements mean has (mean[count]), or that *mean is one"),
                ("model.h", [(r"/\* Does not change once it is open; any number of threads may use it at once. \*/\n", "")],
                 'pith_model: the comment says neither "any number of threads" nor "one thread at a time may use"'),
                ("score.h", [(r"Valid as long as the model\. ", "")], "pith_label_name: the comment does not say how long the result lives"),
                ("tokens.h", [(r"/\* \[count\] \*/", "")], "the comment of pith_tokens.ids does not say how many elements there are"),
                ("cpu.h", [(r"#define PITH_CPU_INFO_INIT [^\n]*\n", "")], "pith_cpu_info: it begins with its size and has no initialiser"),
                ("score.h", [(r"as in pith_embed_options; the scores", "as in pith_call; the scores")], "pith_score_options.results is as in pith_call, which has no such member")):
            with self.subTest(says):
                done = self.tree(header, pairs).tool()
                self.assertEqual(done.returncode, 1)
                self.assertIn(says, done.stderr)
                self.assertRegex(done.stderr, rf"include/pith/{header}:\d+: ")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
