#!/usr/bin/env python3
"""pith embed --rows-per-file, alone and with --resume: whatever interrupts it, the files are those of one call.

usage: splits.py PITH SOURCE_DIR [unittest arguments]; needs NumPy (tests/requirements.txt). PITH_TEST_LONG=1: more kills.
"""
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

import numpy as np

from command import PITH, SOURCE, Command

MODEL = SOURCE / "tests/data/modules/chain"
KILLS = 200 if os.environ.get("PITH_TEST_LONG") else 10


class Splits(Command):
    options = ("-m", MODEL)

    def setUp(self):
        super().setUp()
        random.seed(1)
        words = "a b c d the cat sat".split()
        self.lines = [" ".join(random.choices(words, k=random.randint(0, 8))) for _ in range(100)]
        self.put(self.lines)

    def put(self, lines):
        (self.dir / "texts").write_text("".join(line + "\n" for line in lines))

    def contents(self, name):
        """What follows the name in names of files, and what these hold."""
        return {p.name[len(name):]: p.read_bytes() for p in self.dir.iterdir() if p.name.startswith(name)}

    def begun(self, name, files, rows):
        """What a call that was killed has left: finished files, and a part of the next with so many rows."""
        self.good("--format", "f32", "--rows-per-file", 10, "-o", f"{name}.f32", "texts")
        whole = self.contents(name)
        for suffix, data in whole.items():
            number = int(suffix[1:6])
            if number >= files:
                (self.dir / (name + suffix)).unlink()
            if number == files and rows is not None:
                (self.dir / f"{name}{suffix}.part").write_bytes(data[:len(data) // 10 * rows])
        return whole

    def record(self, name, files, done=False):
        """The record of such a call; its options are those of a real one."""
        out, limit = self.dir / f"{name}-00000.f32.part", time.monotonic() + 100
        for p in self.dir.glob(f"{name}[.-]*"):
            p.unlink()
        with subprocess.Popen([PITH, "embed", *self.options, "--format", "f32", "--rows-per-file", "10", "--resume", "-o",
                               f"{name}.f32"], cwd=self.dir, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            process.stdin.write(b"x\n" * 3)
            process.stdin.flush()
            path = self.dir / f"{name}.f32.part.made"
            while not path.exists() or b"\nfile 0\n" not in path.read_bytes():
                self.assertLess(time.monotonic(), limit)
            process.kill()
        out.unlink(missing_ok=True)
        head = path.read_bytes().split(b"\nfile 0\n")[0]
        path.write_bytes(head + b"\nfile %d\n" % files + (b"done %d\n" % files if done else b""))

    def test_files(self):
        texts = "".join(f"a {i}\n" for i in range(25)).encode()
        whole = self.good(stdin=texts)
        self.good("--rows-per-file", 10, "-o", "x.jsonl", stdin=texts)
        self.assertEqual(sorted(self.contents("x")), ["-00000.jsonl", "-00001.jsonl", "-00002.jsonl"])
        self.assertEqual(b"".join(data for _, data in sorted(self.contents("x").items())), whole)
        self.good("--rows-per-file", 5, "--format", "npy", "-o", "y.v.npy", stdin=texts)
        parts = [np.load(p) for p in sorted(self.dir.glob("y*"))]
        self.assertEqual([p.shape for p in parts], [(5, parts[0].shape[1])] * 5)
        np.testing.assert_array_equal(np.concatenate(parts), np.array([json.loads(r) for r in whole.splitlines()], "f4"))
        self.bad(2, "--rows-per-file", 5, stdin=texts, says="--rows-per-file needs -o FILE")
        (self.dir / "locked").mkdir(mode=0o500)
        if os.geteuid():
            self.bad(1, "--rows-per-file", 5, "-o", "locked/x", stdin=texts, says="locked")
            self.bad(1, "--rows-per-file", 5, "--resume", "-o", "locked/x", stdin=texts, says="locked")

    def test_later_file(self):
        """A file that cannot be opened ends the call, with what was finished before it."""
        for more in (), ("--resume",):
            name = f"x{len(more)}"
            (self.dir / f"{name}-00003.f32").mkdir()
            self.bad(1, "--format", "f32", "--rows-per-file", 10, *more, "-o", f"{name}.f32", "texts", says=f"{name}-00003.f32")
            finished = {f"-{i:05}.f32" for i in range(3)}
            self.assertEqual(set(self.contents_of_files(name)) - {".f32.part.made"}, finished)
            (self.dir / f"{name}-00003.f32").rmdir()
            self.good("--format", "f32", "--rows-per-file", 10, *more, "-o", f"{name}.f32", "texts")
        self.assertEqual(self.contents("x0"), self.contents("x1"))

    def contents_of_files(self, name):
        return [p.name[len(name):] for p in self.dir.iterdir() if p.name.startswith(name) and p.is_file()]

    def test_states(self):
        """Every place at which a call can be killed: between two files, before a name is given, within rows."""
        for case, (files, rows, done) in enumerate([(0, 0, False), (0, 7, False), (3, 4, False), (3, 10, False), (3, 10, True),
                                                    (9, 10, True), (4, None, False), (2, 0, False)]):
            with self.subTest(files=files, rows=rows, done=done):
                name = f"c{case}"
                self.record(name, files, done)
                made = (self.dir / f"{name}.f32.part.made").read_bytes()
                whole = self.begun(name, files, rows)
                (self.dir / f"{name}.f32.part.made").write_bytes(made)
                self.good("--format", "f32", "--rows-per-file", 10, "--resume", "-o", f"{name}.f32", "texts")
                self.assertEqual(self.contents(name), whole)

    def test_between(self):
        """The file is finished and has its name; of the next there is nothing, or what an older call has left."""
        for case, left in enumerate((None, b"", b"old" * 1000)):
            for files in (3, 10):  # 10: all of them
                with self.subTest(left=left and len(left), files=files):
                    name = f"b{case}{files}"
                    self.record(name, files - 1, True)
                    made = (self.dir / f"{name}.f32.part.made").read_bytes()
                    whole = self.begun(name, files, None)
                    (self.dir / f"{name}.f32.part.made").write_bytes(made)
                    if left is not None:
                        (self.dir / f"{name}-{files:05}.f32.part").write_bytes(left)
                    self.good("--format", "f32", "--rows-per-file", 10, "--resume", "-o", f"{name}.f32", "texts")
                    self.assertEqual(self.contents(name), whole)

    def test_end(self):
        """All is written, and the last file, which is not full, has its name; texts may have come in addition."""
        for count in 95, 97, 100:
            with self.subTest(count):
                name = f"e{count}"
                self.put(self.lines[:95])
                self.record(name, 9)
                made = (self.dir / f"{name}.f32.part.made").read_bytes()
                self.begun(name, 10, None)
                (self.dir / f"{name}.f32.part.made").write_bytes(made)
                self.put(self.lines[:count])
                self.good("--format", "f32", "--rows-per-file", 10, "--resume", "-o", f"{name}.f32", "texts")
                self.good("--format", "f32", "--rows-per-file", 10, "-o", f"w{count}.f32", "texts")
                self.assertEqual(self.contents(name), self.contents(f"w{count}"))

    def test_torn(self):
        """A kill may cut a line of the record in two; what is whole counts."""
        for torn in b"fil", b"file 1", b"12", b"30 00ab", b"done":
            with self.subTest(torn):
                name = "q"
                self.record(name, 3)
                made = (self.dir / f"{name}.f32.part.made").read_bytes()
                whole = self.begun(name, 3, 5)
                (self.dir / f"{name}.f32.part.made").write_bytes(made + torn)
                self.good("--format", "f32", "--rows-per-file", 10, "--resume", "-o", f"{name}.f32", "texts")
                self.assertEqual(self.contents(name), whole)

    def test_refused(self):
        """Other options and other texts are refused, and nothing is changed."""
        arguments = ["--format", "f32", "--rows-per-file", 10, "--resume", "-o", "x.f32", "texts"]
        good = self.lines[:37]
        (self.dir / "texts").write_bytes("".join(line + "\n" for line in good).encode() + b"\xff\n")
        self.bad(1, *arguments, says=["UTF-8", "x-00003.f32.part"])
        before = self.contents("x")
        self.assertEqual(sorted(before)[:3], ["-00000.f32", "-00001.f32", "-00002.f32"])
        self.put(self.lines)
        self.bad(1, *arguments[:3], 11, *arguments[4:], says="x.f32.part.made: --rows-per-file was 10 when")
        self.bad(1, *arguments, "--dim", 4, says="--dim was (not given)")
        self.put(self.lines[1:])
        self.bad(1, *arguments, says="the texts are others than those that the finished part was made of")
        self.put(self.lines[:20])
        self.bad(1, *arguments, says="x-00003.f32.part")
        self.assertEqual(self.contents("x"), before)
        self.put(self.lines)
        self.good(*arguments)
        self.good("--format", "f32", "--rows-per-file", 10, "-o", "w.f32", "texts")
        self.assertEqual(self.contents("x"), self.contents("w"))

    def test_fewer(self):
        """Fewer texts than the finished files were made of."""
        self.record("x", 4, True)
        made = (self.dir / "x.f32.part.made").read_bytes()
        self.begun("x", 5, None)
        (self.dir / "x.f32.part.made").write_bytes(made)
        self.put(self.lines[:49])
        self.bad(1, "--format", "f32", "--rows-per-file", 10, "--resume", "-o", "x.f32", "texts", says="the texts are fewer than")

    def test_two_at_once(self):
        command = [PITH, "embed", *self.options, "--rows-per-file", "10", "--resume", "-o", "x.jsonl"]
        with subprocess.Popen(command, cwd=self.dir, stdin=subprocess.PIPE) as process:
            while not (self.dir / "x.jsonl.part.made").exists() or not (self.dir / "x-00000.jsonl.part").exists():
                pass
            self.bad(1, "--rows-per-file", 10, "--resume", "-o", "x.jsonl", "texts", says="another process is writing")
            process.stdin.close()
            self.assertEqual(process.wait(), 0)

    def test_again(self):
        """A call without --resume writes all files anew, and a record of an earlier one does not outlive it."""
        self.record("x", 3)
        self.good("--format", "f32", "--rows-per-file", 10, "-o", "x.f32", "texts")
        self.assertEqual(len(self.contents("x")), 10)

    def kill(self, name, options, source, kills):
        """The same call again and again, killed at random moments, until it ends by itself; returns how often."""
        command = [PITH, "embed", *self.options, *options, "--resume", "-o", name, source]
        seconds, killed = 0.02, 0
        while True:
            with open(self.dir / "said", "wb") as said:
                process = subprocess.Popen(command, cwd=self.dir, stderr=said)
            try:
                code = process.wait(seconds * random.uniform(0, 2))
                self.assertEqual((code, (self.dir / "said").read_text()), (0, ""))
                return killed
            except subprocess.TimeoutExpired:
                process.send_signal(random.choice([signal.SIGKILL, signal.SIGTERM]))
                process.wait()
                killed += 1
                seconds *= 1.1 if killed > kills else 1

    def test_kills(self):
        for seed, (form, per, count) in enumerate((("npy", 7, 4000), ("jsonl", 150, 4000), ("csv", 1000, 4000))):
            with self.subTest(form, rows_per_file=per):
                random.seed(seed)
                for p in [*self.dir.glob("o[.-]*"), *self.dir.glob("w-*")]:
                    p.unlink()
                self.put([" ".join(random.choices("a b c d the cat sat".split(), k=random.randint(0, 8))) for _ in range(count)])
                options = ["--format", form, "--rows-per-file", str(per), "-t", "1"]
                self.good(*options, "-o", f"w.{form}", "texts")
                killed = 0
                while killed < KILLS:
                    for p in self.dir.glob("o-*"):
                        p.unlink()
                    killed += self.kill(f"o.{form}", options, "texts", KILLS)
                    self.assertEqual(self.contents("o"), self.contents("w"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=0)
