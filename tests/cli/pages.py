#!/usr/bin/env python3
"""Manual pages and shell completion, which the command makes from its tables of options.

usage: pages.py PITH SOURCE_DIR [unittest arguments]; needs mandoc, bash, zsh and fish.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PITH, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
VERBS = re.findall(r"^VERB\((\w+)\)$", (SOURCE / "cli/verbs.def").read_text(), re.M)


def run(*command, **keywords):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, **keywords)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def flags(verb):
    """The options that --help shows."""
    shown = re.findall(r"^  (?:-\w, )?(?:(--[\w-]+), )?(--(?:\[no-\])?[\w-]+)", run(PITH, verb, "--help", "all"), re.M)
    return [flag for names in shown for name in names if name
            for flag in ([name.replace("[no-]", ""), name.replace("[no-]", "no-")] if "[no-]" in name else [name])]


class Manual(unittest.TestCase):
    def test_pages(self):
        for name in ["pith", *VERBS]:
            with self.subTest(name), tempfile.NamedTemporaryFile("w", suffix=".1") as page:
                page.write(run(PITH, "--man", name))
                page.flush()
                lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page.name], capture_output=True, text=True)
                self.assertEqual((lint.returncode, lint.stdout), (0, ""))
                text = run("mandoc", "-T", "ascii", page.name)
                text = re.sub(r".\x08", "", text)
                for part in ("NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"):
                    self.assertRegex(text, rf"(?m)^{part}$")
                self.assertIn(f"pith {run(PITH, '--version').split()[1]}", text)
                for flag in flags(name) if name != "pith" else ["--version", "--completion"]:
                    self.assertRegex(text, rf"(?m)^ +(-\w, )?(--[\w-]+( \S+)?, )?{flag}\b")
                for verb in VERBS if name == "pith" else ["pith"]:
                    self.assertRegex(text, rf"\b{verb}\(1\)")

    def test_what_roff_would_take_for_its_own(self):
        """A dot at the beginning of a line, quotes and minus signs reach the reader."""
        with tempfile.NamedTemporaryFile("w", suffix=".1") as page:
            page.write(run(PITH, "--man", "similarity"))
            page.flush()
            text = run("mandoc", "-T", "utf8", "-O", "width=200", page.name)
        self.assertIn('pith similarity -- "-5 degrees" "cold"', text)


class Mentions(unittest.TestCase):
    def test_commands_in_pages(self):
        """Verbs and options that pages and issue templates name are there."""
        known = {verb: {*flags(verb), "--help"} | set(re.findall(r"^  (-\w), --", run(PITH, verb, "--help", "all"), re.M)) | {"-h"}
                 for verb in VERBS}
        pages = [*SOURCE.glob("*.md"), *SOURCE.glob("docs/*.md"), *SOURCE.glob(".github/**/*.*"), *SOURCE.glob("examples/*.c")]
        found = 0
        for page in pages:
            if page.name in ("extending.md", "CHANGELOG.md"):
                continue
            for line in page.read_text().splitlines():
                for verb, rest in re.findall(r"(?:`|build/|^|\| )pith (\w+)([^`|#]*)", line):
                    if verb in ("help", "version", "COMMAND"):
                        continue
                    with self.subTest(f"{page.name}: {line}"):
                        self.assertIn(verb, known)
                        used = set(re.findall(r"(?<=\s)(--?[a-z0-9][\w-]*)", rest))
                        self.assertLessEqual(used, known[verb])
                        found += 1
        self.assertGreater(found, 40)


class Completion(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        (self.dir / "cache/models/my-model").mkdir(parents=True)
        (self.dir / "my texts.txt").write_text("")
        (self.dir / "my-folder").mkdir()
        self.env = {**os.environ, "PITH_CACHE": str(self.dir / "cache"), "PATH": f"{PITH.parent}:{os.environ['PATH']}"}

    def script(self, shell, name):
        path = self.dir / "functions" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(run(PITH, "--completion", shell))
        return path

    # What every shell completes: the words typed, the last of them to be completed, and what must and must not be offered.
    cases = [
        (["pith", "emb"], {"embed"}, {"bench"}),
        (["pith", "help", "de"], {"detokenize"}, {"embed"}),
        (["pith", "embed", "--form"], {"--format"}, {"--field"}),
        (["pith", "embed", "--no-"], {"--no-normalize"}, {"--null"}),
        (["pith", "embed", "--format", "n"], {"npy"}, {"jsonl"}),
        (["pith", "tokenize", "--side", "l"], {"left"}, {"right"}),
        (["pith", "embed", "-m", "my"], {"my-model"}, set()),
        (["pith", "inspect", "my"], {"my-model"}, set()),
        (["pith", "embed", "-o", "my"], {"my texts.txt"}, {"my-model"}),
        (["pith", "run", "-o", "my"], {"my-folder"}, {"my texts.txt", "my-model"}),
        (["pith", "embed", "my"], {"my texts.txt"}, {"my-model"}),
        (["pith", "embed", "--dim", "my"], set(), {"my texts.txt", "my-model"}),
        (["pith", "run", "--strict", "--pb", "--le"], {"--level"}, {"--json"}),
    ]

    def offered(self, complete):
        for words, wanted, unwanted in self.cases:
            with self.subTest(words):
                got = complete(words)
                self.assertLessEqual(wanted, got)
                self.assertFalse(unwanted & got, got)

    def test_bash(self):
        script = self.script("bash", "pith.bash")

        def complete(words):
            program = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pith; printf "%s\\n" "${COMPREPLY[@]}"'
            out = run("bash", "--norc", "-c", program, script, *words, env=self.env, cwd=self.dir)
            return set(out.splitlines()) - {""}

        self.offered(complete)
        self.assertEqual(complete(["pith", "embed", "--format", "=", "n"]), {"npy"})  # readline splits at =
        self.assertEqual(complete(["pith", "embed", "--invalid", "="]), {"error", "replace"})
        for verb in VERBS:
            self.assertEqual(complete(["pith", verb, "--"]), {*flags(verb), "--help"})
        self.assertEqual(complete(["pith", ""]), {*VERBS, "help", "--help", "--version"})

    def test_fish(self):
        script = self.script("fish", "pith.fish")

        def complete(words):
            line = " ".join(words)
            out = run("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'", env=self.env, cwd=self.dir)
            return {word.split("\t")[0].replace("\\ ", " ").rstrip("/") for word in out.splitlines()}

        self.offered(complete)
        for verb in VERBS:
            self.assertLessEqual(set(flags(verb)), complete(["pith", verb, "--"]))

    def test_zsh(self):
        self.script("zsh", "_pith")
        program = SOURCE / "tests/cli/complete.zsh"

        def complete(words):
            out = run("zsh", "-f", program, self.dir / "functions", " ".join(words), env=self.env, cwd=self.dir)
            return {line.replace("\\ ", " ").rstrip("/") for line in out.splitlines()}

        self.offered(complete)
        for verb in VERBS:
            self.assertLessEqual(set(flags(verb)), complete(["pith", verb, "--"]))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
