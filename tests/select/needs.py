#!/usr/bin/env python3
"""The tables of selective builds are complete: each list, each entry and each kernel that a piece asks for is covered.

usage: needs.py PITH SOURCE_DIR BUILD_DIR [unittest arguments]
"""
import re
import subprocess
import sys
import unittest
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import small

PITH, SOURCE, BUILD = (Path(a).resolve() for a in sys.argv[1:4])
LISTS = SOURCE / "src/select"
# Lists that have no kind of piece: needs.def and dropped.def speak about others, isas.def depends on the target, and no build
# works without the one backend that is there. Sources of tables are in every build.
OTHER_LISTS = {"needs", "dropped", "isas", "backends"}
DOMAINS = (("com.microsoft::", "", "_ms"), ("pith::", "", "_pith"), ("ai.onnx.ml::", "ml_", ""), ("ai.onnx.preview::", "preview_", ""),
           ("ai.onnx.preview.training::", "training_", ""), ("com.microsoft.nchwc::", "nchwc_", ""))
MODELS = ("hf", "tasks", "modules", "vision", "models", "hybrid", "sparse_modules", "encode", "yunet", "late_modules", "operators")


def entries(name, *macros):
    return re.findall(r"^(?:%s)\((\w+)" % "|".join(macros), (LISTS / f"{name}.def").read_text(), re.M)


def needs(macro):
    """{kind: {piece: words}} of needs.def."""
    found = defaultdict(dict)
    for kind, piece, words in re.findall(r"^%s\((\w+), (\w+)(?:, ([^)]*))?\)$" % macro, (LISTS / "needs.def").read_text(), re.M):
        assert piece not in found[kind], f"needs.def has {macro}({kind}, {piece}) twice"
        found[kind][piece] = set(words.split())
    return found


def symbol(operator):
    for domain, before, after in DOMAINS:
        if operator.startswith(domain):
            return before + operator[len(domain):] + after
    return operator


class Tables(unittest.TestCase):
    """What the files say of each other."""

    def test_every_list_has_a_kind(self):
        trimmed = defaultdict(set)
        for file, macro, other in re.findall(r'{ PIECE_\w+, "(\w+)", "(\w+)", (?:NULL|"(\w+)") },', (SOURCE / "tools/trim.c").read_text()):
            trimmed[file] |= {macro, other} - {""}
        for path in LISTS.glob("*.def"):
            if path.stem in OTHER_LISTS:
                continue
            self.assertIn(path.stem, trimmed, f"{path.name} is a list that tools/trim.c does not trim")
            for macro in set(re.findall(r"^([A-Z_]+)\(", path.read_text(), re.M)):
                self.assertIn(macro, trimmed[path.stem], f"tools/trim.c does not know {macro} of {path.name}")
        self.assertEqual(set(trimmed), {p.stem for p in LISTS.glob("*.def")} - OTHER_LISTS)

    def test_every_kind_is_told(self):
        """used_pieces.c knows every list, and the order of kinds is the same everywhere."""
        told = (LISTS / "used_pieces.c").read_text()
        for path in LISTS.glob("*.def"):
            if path.stem not in OTHER_LISTS and path.stem != "extra_ops":  # those tell of themselves, as registered ones do
                self.assertIn(f'"select/{path.name}"', told)
        self.assertIn("pith__custom_first()", told)
        kinds = re.search(r"piece_kind_names\[PIECE_KINDS\] = {(.*?)}", (SOURCE / "cli/select/piece_list.c").read_text(), re.S).group(1)
        enum = re.search(r"typedef enum piece_kind {(.*?)}", (SOURCE / "cli/select/piece_list.h").read_text(), re.S).group(1)
        self.assertEqual([k.upper() for k in re.findall(r'"(\w+)"', kinds)], re.findall(r"PIECE_(\w+)", enum)[:-1])

    def test_needs_names_what_exists(self):
        operators, families = set(entries("ops", "OP")), set(entries("kernels", "KERNEL", "PLAIN"))
        known = {"operators": operators, "passes": set(entries("passes", "PASS")), "ragged": set(entries("ragged", "RAGGED")),
                 "heads": set(entries("heads", "HEAD")), "library": None, "vectors": None,
                 "verbs": set(re.findall(r"^VERB\((\w+)\)", (SOURCE / "cli/verbs.def").read_text(), re.M))}
        for macro, words in (("KERNELS", families), ("MAKES", operators), ("PARTS", set(entries("parts", "PART")))):
            for kind, pieces in needs(macro).items():
                self.assertIn(kind, known)
                for piece, wanted in pieces.items():
                    self.assertTrue(known[kind] is None or piece in known[kind], f"needs.def: there is no {piece} in {kind}")
                    self.assertEqual(wanted - words, set(), f"{macro}({kind}, {piece})")

    def test_every_entry_has_a_line(self):
        made, kernels = needs("MAKES"), needs("KERNELS")
        for kind, macro in (("passes", "PASS"), ("ragged", "RAGGED")):
            self.assertEqual(set(entries(kind, macro)) - set(made[kind]), set(), f"add MAKES({kind}, …) to src/select/needs.def")
        self.assertEqual(set(entries("heads", "HEAD")) - set(kernels["heads"]), set(), "add KERNELS(heads, …) to src/select/needs.def")
        named = set().union(*(words for pieces in kernels.values() for words in pieces.values()))
        self.assertEqual(set(entries("kernels", "KERNEL", "PLAIN")) - named, set(), "say in src/select/needs.def who needs these kernels")
        owners = {name for path in (SOURCE / "src/engine/ops").rglob("op_*.c")
                  for name, body in re.findall(r"^const pith__op pith__op_(\w+) = {(.*?)^}?[^\n]*};", path.read_text(), re.M | re.S)
                  if re.search(r'\.attrs =\s*"(?:[^"]*; )?\w+ graph\b', body)}
        self.assertGreater(len(owners), 5)
        self.assertEqual(owners, set(needs("PARTS")["operators"]), "add PARTS(operators, …, subgraphs) to src/select/needs.def")

    def test_passes_make_what_they_name(self):
        """The operators that a pass writes as text are those of its line."""
        operators = set(entries("ops", "OP"))
        for piece, made in needs("MAKES")["passes"].items():
            text = (SOURCE / f"src/engine/opt/pass_{piece}.c").read_text()
            named = {symbol(f"{d}::{n}" if d else n) for d, n in
                     re.findall(r'pith__graph_add_node\([^"]*"([\w.]*)",\s*"(\w+)"', text)}
            self.assertEqual((named & operators) - made, set(), f"MAKES(passes, {piece}, …)")


class Used(unittest.TestCase):
    """What models ask for is what the tables say. Thousands of models, each opened by a process of its own."""

    def test_kernels(self):
        kernels = needs("KERNELS")
        home = subprocess.run([SOURCE / "tests/conformance/node_tests.sh", BUILD], check=True, capture_output=True, text=True).stdout.strip()
        models = sorted(p for group in MODELS for p in (SOURCE / "tests/data" / group).glob("*/"))
        nodes = sorted(p.parent for p in Path(home).rglob("model.onnx"))
        self.assertGreater(len(models), 150)
        calls = [[m] for m in nodes + models] + [["--precision", p, m] for m in models for p in ("int8", "bf16")]
        calls += [["--level", "0", m] for m in models]
        seen, faults = set(), set()
        with ThreadPoolExecutor(2) as pool:
            for call, done in zip(calls, pool.map(lambda call: small.run(PITH, "select", "-q", *call), calls)):
                self.assertEqual(done.returncode, 0, done.stderr)
                found = small.read(done.stdout)
                operators = {symbol(o) for o in found["operators"]}
                seen |= operators
                said = set().union(*kernels["library"].values(), *kernels["vectors"].values(), *(kernels["operators"].get(o, ()) for o in operators),
                                   *(kernels["heads"].get(h, ()) for h in found["heads"]))
                faults |= {(family, " ".join(sorted(operators)[:4]), str(call[-1])) for family in set(found["kernels"]) - said}
        self.assertEqual(faults, set(), "kernels that no line of src/select/needs.def promises to these operators")
        missing = set(entries("ops", "OP")) - seen - set(kernels["operators"])
        self.assertEqual(missing, set(), "no test model has these operators; add KERNELS(operators, …) to src/select/needs.def, "
                         "empty if they need none")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
