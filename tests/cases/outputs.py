"""No output is an input or another output: every pair of options of every verb, made from cli/options/options.def; what stays when work fails."""
import os
import re
import subprocess
import sys
import unittest

from command import PITH, SOURCE, Command

sys.path.insert(0, str(SOURCE / "tools"))
import options  # noqa: E402

ROWS = {row["id"]: row for row in options.rows()}
WRITTEN, READ = ("FILE_WRITTEN", "FILE_NETWORK"), ("FILE_READ", "FILE_MODEL")


def table():
    """For each verb: its options that write a file, those that read one, and whether its arguments are files."""
    verbs = {}
    for row, users in options.verbs().items():
        for verb in users:
            verbs.setdefault(verb, []).append(ROWS[row])
    for verb, rows in sorted(verbs.items()):
        if verb == "pith":
            continue
        text = (SOURCE / f"cli/verbs/cmd_{verb}.c").read_text()
        yield (verb, [r for r in rows if r.get("file") in WRITTEN], [r for r in rows if r.get("file") in READ],
               re.search(r"^    \.takes = ", text, re.M) is not None)


class Pairs(Command):
    def setUp(self):
        super().setUp()
        self.count = 0
        for name in ("a", "b"):
            (self.dir / name).write_bytes(b"{}\n")
        (self.dir / "sub").mkdir()
        os.link(self.dir / "a", self.dir / "hard")
        (self.dir / "soft").symlink_to("sub/../a")
        (self.dir / "nowhere").symlink_to("sub/new")

    def refused(self, verb, *arguments, names):
        result = self.run_pith(*arguments, verb=verb)
        told = result.stderr.decode()
        self.assertEqual(result.returncode, 2, (verb, arguments, told))
        for name in names:
            self.assertIn(name, told, (verb, arguments))
        self.assertRegex(told, "is an (input|output) too", (verb, arguments))
        self.assertEqual((self.dir / "a").read_bytes(), b"{}\n")
        self.assertFalse((self.dir / "sub/new").exists())
        self.count += 1

    def test_outputs_and_inputs(self):
        for verb, written, read, files in table():
            for output in written:
                for number, other in enumerate(read):
                    spelling = ("a", "./a", "sub/../a", "hard", "soft")[number % 5]
                    self.refused(verb, f"--{output['name']}={spelling}", f"--{other['name']}=a",
                                 names=(f"--{output['name']} {spelling}", f"--{other['name']} a"))
                    if other["kind"] == "LIST":
                        self.refused(verb, f"--{output['name']}=a", f"--{other['name']}=x=a", names=(f"--{other['name']}",))
                for spelling in ("a", "./a", "sub/../a", "hard", "soft") if files else ():
                    self.refused(verb, f"--{output['name']}={spelling}", "a", names=(f"--{output['name']} {spelling}", "the argument a"))
        self.assertGreater(self.count, 200)

    def test_two_outputs(self):
        for verb, written, _, _ in table():
            for output in written:
                for other in written:
                    if output is other:
                        continue
                    for first, second in (("a", "hard"), ("sub/new", "nowhere"), ("new", "sub/../new"), ("-", "-")):
                        self.refused(verb, f"--{output['name']}={first}", f"--{other['name']}={second}",
                                     names=() if first == "-" else (f"--{output['name']} ", f"--{other['name']} "))
        self.assertGreater(self.count, 50)

    def test_every_option_is_declared(self):
        for row in ROWS.values():
            if re.search(r"FILE|DIR|MODEL|RUN|PREFIX|PROGRAM", row.get("takes", "")):
                self.assertIn("file", row, row["id"])
            if row.get("takes") in ("FILE", "DIR") and re.match(r"(also )?(write|draw)|the file to write", row["help"]):
                self.assertIn(row["file"], (*WRITTEN, "FOLDER_WRITTEN"), row["id"])

    def test_models(self):
        """A model is all files of its directory, and an .onnx file its external data."""
        model = self.dir / "m"
        (model / "onnx").mkdir(parents=True)
        for name in ("m/config.json", "m/onnx/model.onnx"):
            (self.dir / name).write_bytes(b"{}\n")
        for name in ("m/config.json", "m/onnx/model.onnx"):
            self.refused("quantize", "m", "-o", name, "--force", names=(f"--output {name}", "the argument m"))
            self.refused("embed", "-m", "m", "-o", name, names=("--model m",))
            self.assertEqual((self.dir / name).read_bytes(), b"{}\n")
        (self.dir / "x.onnx").write_bytes(b"..\x0a\x08location\x12\x01b..")
        self.refused("run", "x.onnx", "--profile", "b", names=("--profile b", "x.onnx"))
        self.refused("export", "x.onnx", "-o", "x.onnx", "--force", names=("--output x.onnx",))
        (self.dir / "x.onnx.data").write_bytes(b"{}\n")
        self.refused("quantize", "x.onnx.data", "-o", "x.onnx", "--force", names=("--output x.onnx.data",))

    def test_folders(self):
        (self.dir / "shop").mkdir()
        (self.dir / "shop/orders.csv").write_text("id\n1\n")
        self.refused("preprocess", "shop", "-o", "shop/orders.csv", names=("--output shop/orders.csv", "the argument shop"))
        self.assertEqual((self.dir / "shop/orders.csv").read_text(), "id\n1\n")

    def test_configuration(self):
        (self.dir / "c.json").write_text("{}")
        for arguments, env in ((("--config", "c.json"), {}), ((), {"PITH_CONFIG": "c.json"})):
            self.bad(2, "--stats-file", "c.json", *arguments, env={**os.environ, **env}, says="--config c.json")
        self.bad(2, "-o", "a", env={**os.environ, "PITH_PROFILE": "a"}, says=("--output a", "--profile a"))

    def test_what_may_be_named_twice(self):
        (self.dir / "t").write_text("one\n")
        self.good("t", "-o", "/dev/null", "--profile", "/dev/null", "--stats-file", "/dev/null")
        for _ in range(2):
            self.good("t", "-o", "out", "--stats-file", "told", "--profile", "steps")
        subprocess.run(["sh", "-c", '"$1" embed t -o /dev/stdout | grep -q . && "$1" embed <t >out2', "sh", PITH], check=True, cwd=self.dir)
        self.assertEqual((self.dir / "out").read_bytes(), (self.dir / "out2").read_bytes())
        (self.dir / "in").write_text("one\n")
        with open(self.dir / "in", "rb") as file:
            result = subprocess.run([PITH, "embed", "--profile", "in"], stdin=file, capture_output=True, cwd=self.dir, check=False)
        self.assertEqual((result.returncode, (self.dir / "in").read_text()), (2, "one\n"))


class Kept(Command):
    """Work that failed as a whole leaves the file that was there."""

    def kept(self, verb, *arguments, **keywords):
        (self.dir / "old").write_bytes(b"OLD\n")
        self.bad(1, *arguments, "-o", "old", verb=verb, **keywords)
        self.assertEqual((self.dir / "old").read_bytes(), b"OLD\n", (verb, arguments))
        self.assertEqual([p.name for p in self.dir.iterdir() if p.name.startswith("old")], ["old"])

    def test_nothing_could_be_read(self):
        (self.dir / "sub").mkdir()
        for none in ("missing.txt", "sub"):
            for form in ("jsonl", "npy", "f32", "csv"):
                self.kept("embed", "--format", form, none)
            self.kept("embed", "--long", "chunk", none)
            self.kept("tokenize", none)
            self.kept("detokenize", none)
            self.kept("convert", none)
        self.good("--format", "npy", "-o", "v.npy", stdin=b"a\n")
        self.kept("search", "--index", "v.npy", "missing.txt")

    def test_what_was_read_is_written(self):
        (self.dir / "t").write_bytes(b"one\ntwo\n")
        self.bad(1, "t", "missing.txt", "-o", "new", verb="tokenize")
        self.assertEqual(len((self.dir / "new").read_bytes().splitlines()), 2)
        self.good("-o", "none", stdin=b"")
        self.assertEqual((self.dir / "none").read_bytes(), b"")


class Names(Command):
    def test_no_control_characters(self):
        for name in ("a\x1b[31mb", "a\nb", "a\x7fb", "a\u009bb"):
            for arguments in (("embed", name), ("embed", "./" + name), ("run", name), ("tokenize", "-o", name + "/x", "t"),
                              ("compile", "-m", name, "-o", "x"), (name,), ("embed", "--" + name), ("search", "--index", name, "--query", "x")):
                result = subprocess.run([PITH, *arguments], capture_output=True, cwd=self.dir, input=b"", check=False)
                is_text = arguments == ("embed", name)  # no file has this name, so a note says that it is a text
                self.assertEqual(result.returncode == 0, is_text, arguments)
                told = result.stderr.decode()
                self.assertIn("\\x", told, arguments)
                self.assertNotRegex(told, "[\x00-\x09\x0b-\x1f\x7f-\x9f]", arguments)
                self.assertNotIn("a\nb", told)

    def test_folders_as_files(self):
        (self.dir / "sub").mkdir()
        for verb, _, read, _ in table():
            for row in read:
                if row["file"] == "FILE_READ" and re.fullmatch("FILE|NAME=FILE", row["takes"]) and row["name"] != "ort-library":
                    result = self.run_pith(f"--{row['name']}=sub", *(() if verb in ("bench", "info") else ("x",)), verb=verb)
                    self.assertNotEqual(result.returncode, 0, (verb, row["name"]))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
