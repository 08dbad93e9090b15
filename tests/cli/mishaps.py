#!/usr/bin/env python3
"""What goes wrong around the command: kills and signals, odd outputs, limits, wrong lines, mistyped options.

usage: mishaps.py PITH SOURCE_DIR [unittest arguments], as cli.py beside it.
"""
import json
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np

from cli import MODELS, Verbs
from command import PITH, SANITIZED


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


class Interrupted(Verbs):
    def many(self, count):
        random.seed(3)
        words = "the river market of an engine in winter is a garden".split()
        lines = [" ".join(random.choices(words, k=random.randint(1, 60))) for _ in range(count)]
        (self.dir / "many.txt").write_text("\n".join(lines))
        objects = "".join(json.dumps({"n": i, "text": line}) + "\n" * (1 + i % 3) for i, line in enumerate(lines))
        (self.dir / "many.jsonl").write_text(objects)
        return self.dir / "many.txt", self.dir / "many.jsonl"

    def test_slow_model(self):
        """A call that is killed has written what it has done so far, not only whole windows of 1,024 texts."""
        (self.dir / "long.txt").write_text(("many words of a text " * 60 + "\n") * 600)
        out, part = self.dir / "out", self.dir / "out.part"
        with subprocess.Popen([PITH, "embed", "-t", "1", "--format", "f32", "--resume", "-o", out, self.dir / "long.txt"],
                              env={**os.environ, "PITH_ISA": "scalar"}) as process:
            self.assertTrue(wait_until(lambda: part.exists() and part.stat().st_size >= 384 * 4))
            process.kill()
        self.assertLess(part.stat().st_size, 600 * 384 * 4)

    def test_kills(self):
        """Killed again and again, whenever: the file that comes out is the same to the byte."""
        texts, objects = self.many(150)
        out = self.dir / "out"
        for seed, (format, source) in enumerate((("npy", texts), ("csv", texts), ("jsonl", objects))):
            random.seed(seed)
            options = ["embed", "--format", format, *(["--jsonl"] if source == objects else []), source]
            wanted = self.dir / f"wanted.{format}"
            self.good(*options, "-o", wanted)
            seconds = 0.05
            while True:
                process = subprocess.Popen([PITH, *options, "--resume", "-o", out])
                try:
                    self.assertEqual(process.wait(seconds * random.uniform(0.2, 2)), 0)
                    break
                except subprocess.TimeoutExpired:
                    process.send_signal(random.choice([signal.SIGKILL, signal.SIGTERM]))
                    process.wait()
                    seconds *= 1.2
            self.assertEqual(out.read_bytes(), wanted.read_bytes(), format)
            self.assertFalse((self.dir / "out.part").exists())

    def test_signals(self):
        """A signal ends the process as the shell expects it and takes the temporary file with it."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for options in ((), ("--resume",)):
                # under nohup, or in the background, the tests themselves would pass on that they ignore it
                process = subprocess.Popen([PITH, "embed", *options, "-o", self.dir / "out"], stdin=subprocess.PIPE,
                                           preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
                self.assertTrue(wait_until(lambda: any(self.dir.iterdir())))
                process.send_signal(number)
                self.assertEqual(process.wait(), -number)
                process.stdin.close()
                names = {p.name for p in self.dir.iterdir()} - {"out.part.made"}
                self.assertEqual(names, {"out.part"} if options else set())
            (self.dir / "out.part").unlink()
        # what the caller ignores stays ignored, as nohup wants it
        process = subprocess.Popen([PITH, "embed", "-o", self.dir / "out"], stdin=subprocess.PIPE,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertTrue(wait_until(lambda: any(self.dir.iterdir())))
        process.send_signal(signal.SIGHUP)
        process.communicate(b"a cat\n")
        self.assertEqual(process.returncode, 0)

    def test_half_a_line(self):
        """Lines that are there are answered although the next one has begun and its end has not come."""
        for name, count in (("embed", 2), ("tokenize", 2)):
            with subprocess.Popen([PITH, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                for piece in (b"one\n", b"tw"):
                    process.stdin.write(piece)
                    process.stdin.flush()
                    time.sleep(0.2)
                self.assertTrue(process.stdout.readline().startswith(b"["))
                process.stdin.write(b"o\nthr")
                process.stdin.flush()
                self.assertTrue(process.stdout.readline().startswith(b"["))
                process.stdin.close()
                self.assertEqual(process.stdout.read().count(b"\n"), 1)

    def test_next_file_not_there_yet(self):
        """Texts of a file are answered although standard input, which comes after it, has nothing yet."""
        (self.dir / "a").write_text("one\n")
        with subprocess.Popen([PITH, "embed", self.dir / "a", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            self.assertTrue(process.stdout.readline().startswith(b"["))
            process.stdin.close()


class Outputs(Verbs):
    def test_same_as_input(self):
        source = self.dir / "a"
        source.write_text("one\n")
        os.link(source, self.dir / "hard")
        os.symlink("a", self.dir / "soft")
        for verb in ("embed", "tokenize"):
            for name in ("a", "./a", "hard", "soft", f"../{self.dir.name}/a", "/dev/fd/0"):
                with open(source) as stdin:
                    for arguments in ((verb, "a", "-o", name), (verb, "-o", name), (verb, "/dev/stdin", "-o", name)):
                        result = subprocess.run([PITH, *arguments], stdin=stdin, capture_output=True, cwd=self.dir)
                        if name != "/dev/fd/0" or "a" not in arguments:
                            self.assertEqual(result.returncode, 2, arguments)
                            self.assertIn(b"is an input too", result.stderr)
            with open(source, "a") as end:
                result = subprocess.run([PITH, verb, source], stdout=end, stderr=subprocess.PIPE)
            self.assertEqual(result.returncode, 2)
            self.assertIn(b"standard output is an input too", result.stderr)
        self.bad(2, "embed", "--resume", "-o", source, source, says="is an input too")
        (self.dir / "b.part").write_text("one\n")
        self.bad(2, "embed", "--resume", "-o", self.dir / "b", self.dir / "b.part", says="b.part is an input too")
        ids = self.dir / "ids"
        ids.write_text("[101]\n")
        self.bad(2, "detokenize", ids, "-o", ids, says="is an input too")
        self.assertEqual((source.read_text(), ids.read_text()), ("one\n", "[101]\n"))
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["a", "b.part", "hard", "ids", "soft"])

    def test_tensors(self):
        """Outputs of a run do not replace its inputs or its model."""
        from onnx import TensorProto, helper, save
        x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in "xy")
        model = self.dir / "m.onnx"
        save(helper.make_model(helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y]),
                               opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
        np.save(self.dir / "0_y.npy", np.float32([1, 2]))
        self.bad(2, "run", model, "-i", self.dir / "0_y.npy", "-o", self.dir, says="is an input too")
        self.assertEqual(np.load(self.dir / "0_y.npy").tolist(), [1, 2])
        self.bad(1, "run", model, "-i", self.dir / "0_y.npy", "-o", model, says="is a file")
        self.bad(1, "run", model, "-i", f"q={self.dir / '0_y.npy'}", says=("'q=", "it has 'x'"))
        np.save(self.dir / "f.npy", np.asfortranarray(np.zeros((2, 3), np.float32)))
        np.save(self.dir / "big.npy", np.zeros(2, ">f4"))
        np.save(self.dir / "object.npy", np.array([1, "a"], object))
        for name, says in (("f", "Fortran"), ("big", "big-endian"), ("object", "Python objects")):
            self.bad(1, "run", model, "-i", self.dir / f"{name}.npy", says=(f"{name}.npy", says))
        self.bad(2, "run", model, "-m", model, says="once")
        self.assertEqual(self.good("run", "-m", model, "-i", self.dir / "0_y.npy"), b"0 y float32 [2]\n")

    def test_profile(self):
        """A trace that cannot be written is told before the work, and is not written over the texts."""
        result = self.bad(1, "embed", "--profile", self.dir / "none/x", stdin=b"a\n", says="none/x")
        self.assertEqual(result.stdout, b"")
        (self.dir / "a").write_text("a\n")
        self.bad(2, "embed", "--profile", self.dir / "a", self.dir / "a", says="is an input too")
        self.bad(1, "embed", "-m", "nothing", "--profile", self.dir / "trace")
        self.assertEqual([p.name for p in self.dir.iterdir()], ["a"])

    def test_interrupted_compile(self):
        """Nothing of a compiled model is left behind, and what was there stays."""
        old = self.dir / "m.pith"
        old.touch()
        process = subprocess.Popen([PITH, "compile", "--precision", "int8", "-o", old])
        self.assertTrue(wait_until(lambda: len(list(self.dir.iterdir())) > 1))
        process.terminate()
        self.assertEqual(process.wait(), -signal.SIGTERM)
        self.assertEqual([p.name for p in self.dir.iterdir()], ["m.pith"])
        self.assertEqual(old.stat().st_size, 0)

    def test_compile(self):
        source = self.dir / "m.onnx"
        source.write_bytes((MODELS / "bert-base-script17-eager/model.onnx").read_bytes())
        before = source.read_bytes()
        self.bad(2, "compile", source, "-o", source, says="is an input too")
        self.bad(1, "compile", source, "-o", "/dev/null", says="not a file")
        self.good("compile", source, "-q", "-o", self.dir / "m.pith")
        compiled = (self.dir / "m.pith").read_bytes()
        self.bad(2, "compile", self.dir / "m.pith", "-o", self.dir / "m.pith", says="is an input too")
        self.good("compile", source, "-q", "-o", self.dir / "m.pith")
        self.assertEqual((source.read_bytes(), (self.dir / "m.pith").read_bytes()), (before, compiled))
        self.bad(2, "compile", source, "-m", source, "-o", self.dir / "x", says="once")

    def test_links(self):
        """A link is followed: its target is replaced, or made, and keeps its permissions."""
        target, link, new = self.dir / "target", self.dir / "link", self.dir / "new"
        (self.dir / "folder").mkdir()
        target.write_text("old")
        target.chmod(0o600)
        link.symlink_to("target")
        new.symlink_to("folder/made")
        self.good("tokenize", "-o", link, stdin=b"a\n")
        self.good("tokenize", "-o", new, stdin=b"a\n")
        self.assertTrue(link.is_symlink() and new.is_symlink())
        self.assertEqual(target.read_text(), "[101,1037,102]\n")
        self.assertEqual((self.dir / "folder/made").read_text(), "[101,1037,102]\n")
        self.assertEqual(stat.S_IMODE(target.stat().st_mode), 0o600)
        self.good("embed", "--resume", "-o", link, stdin=b"a\n")
        self.assertTrue(link.is_symlink() and target.read_text().startswith("[0."[:1]))
        (self.dir / "circle").symlink_to("circle")
        self.bad(1, "tokenize", "-o", self.dir / "circle", says="symbolic links")
        self.assertEqual(len(list(self.dir.iterdir())), 5)

    def test_places(self):
        self.bad(2, "tokenize", "-o", "", says="name of a file")
        self.bad(1, "tokenize", "-o", self.dir, says="Is a directory")
        self.bad(1, "tokenize", "-o", self.dir / "none/x", says=("none/x", "No such file"))
        name = self.dir / ("n" * 255)
        self.good("tokenize", "-o", name, stdin=b"a\n")
        self.assertEqual(name.read_text(), "[101,1037,102]\n")
        self.assertEqual(self.good("tokenize", "-o", "/dev/stdout", stdin=b"a\n"), b"[101,1037,102]\n")
        with open(self.dir / "kept", "w+b") as kept:  # /dev/stdout is what the shell made of it, not a file to replace
            kept.write(b"before\n")
            kept.flush()
            subprocess.run([PITH, "tokenize", "-o", "/dev/stdout"], input=b"a\n", stdout=kept, check=True)
        self.assertEqual((self.dir / "kept").read_text(), "before\n[101,1037,102]\n")
        os.mkfifo(self.dir / "pipe")
        with subprocess.Popen([PITH, "tokenize", "-o", self.dir / "pipe"], stdin=subprocess.PIPE) as process:
            process.stdin.write(b"a\n")
            process.stdin.close()
            self.assertEqual((self.dir / "pipe").read_bytes(), b"[101,1037,102]\n")

    def test_no_room(self):
        """The disk is full in the middle: an error, the old file is untouched, and a resumed one goes on where it was."""
        texts = self.dir / "texts"
        texts.write_text("".join(f"text {i}\n" for i in range(60)))
        old = self.dir / "out"
        old.write_text("old")

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

        for options in ((), ("--resume",)):
            self.bad(1, "embed", *options, "-o", old, texts, says="File too large", preexec_fn=limit)
            self.assertEqual(old.read_text(), "old")
            self.assertEqual((self.dir / "out.part").exists(), bool(options))
        self.good("embed", "--resume", "-o", old, texts)
        self.assertEqual(old.read_bytes(), self.good("embed", texts))

    def test_closed_streams(self):
        def closed(*descriptors):
            return lambda: [os.close(fd) for fd in descriptors]
        for verb in ("embed", "tokenize"):
            self.bad(1, verb, says="standard input: it is closed", preexec_fn=closed(0))
            self.bad(1, verb, stdin=b"a\n", says="standard output", preexec_fn=closed(1))
            self.good(verb, "-o", self.dir / "out", stdin=b"a\n", preexec_fn=closed(1, 2))
            self.assertTrue((self.dir / "out").read_text().startswith("["))
        self.bad(1, "similarity", "a", "b", says="standard output", preexec_fn=closed(1))
        with open("/dev/full", "wb") as full:
            for arguments in (("inspect", "--json"), ("similarity", "a", "b"), ("verify", MODELS / "bert-base-script17-eager")):
                result = subprocess.run([PITH, *arguments], stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(result.returncode, 1)
                self.assertIn(b"standard output: No space left", result.stderr)
        for arguments in (("inspect", "--json"), ("inspect", "--ops")):
            with subprocess.Popen([PITH, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                process.stdout.close()
                self.assertEqual(process.stderr.read(), b"")
            self.assertEqual(process.returncode, 0)


class Limits(Verbs):
    @unittest.skipIf(SANITIZED, "sanitizers want the address space for themselves")
    def test_address_space(self):
        """Whatever the limit: the same vectors, or an error that names the verb."""
        texts = "".join(f"text {i} of many\n" for i in range(60)).encode()
        wanted, good = self.good("embed", "--format", "f32", stdin=texts), 0
        for megabytes in (20, 60, 100, 130, 140, 150, 160, 180, 220, 300, 400):
            result = self.run_pith("embed", "--format", "f32", "-t", "8", stdin=texts,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20)))
            if result.returncode:
                self.assertEqual(result.returncode, 1, megabytes)
                self.assertRegex(result.stderr.decode(), r"^pith embed: .*(memory|allocate)", megabytes)
            else:
                good += 1
                self.assertEqual(result.stdout, wanted, megabytes)
        self.assertGreater(good, 2)

    @unittest.skipIf(SANITIZED, "sanitizers make threads of their own")
    def test_no_threads(self):
        """Where no thread can be made the caller's does everything."""
        def alone():
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)  # root has no such limit

        self.dir.chmod(0o755)
        command = self.dir / "pith"  # a folder above the build may be root's alone
        shutil.copy(PITH, command)
        command.chmod(0o755)
        model = self.dir / "m.pith"
        self.good("compile", "-q", "-o", model)
        model.chmod(0o644)
        texts = "".join(f"text {i}\n" for i in range(1500)).encode()
        try:
            subprocess.run([command, "--version"], preexec_fn=alone, capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest(f"another user cannot run a command in {self.dir}")
        for arguments in (("embed", "--format", "f32"), ("embed", "--format", "npy"), ("tokenize",)):
            threads = "-t" if arguments[0] == "embed" else "--threads"
            got = subprocess.run([command, *arguments, "-m", model, threads, "4"], input=texts, capture_output=True, preexec_fn=alone)
            self.assertEqual((got.returncode, got.stdout), (0, self.good(*arguments, "-m", model, stdin=texts)), got.stderr)

    def test_long_lines(self):
        """A line of a gigabyte in the memory of a short one; one without a newline too."""
        for arguments in (("embed", "--dim", "2"), ("tokenize", "--count")):
            with subprocess.Popen([PITH, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                for _ in range(128):
                    process.stdin.write(b"some words " * (1 << 17))
                process.stdin.close()
                self.assertEqual(process.stdout.read().count(b"\n"), 1)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            self.assertLess(usage.ru_maxrss, 600 << 10)


class Objects(Verbs):
    def embed(self, lines, *arguments):
        text = "\n".join(lines).encode() if not isinstance(lines, bytes) else lines
        return self.good("embed", "--jsonl", "--dim", "2", *arguments, stdin=text).decode().splitlines()

    def test_kept_as_written(self):
        """Members are copied, not written anew; only an embedding that was there goes."""
        rows = ['{"text":"a","id":18446744073709551615}', '{"text":"a","price":0.1}', '{"x": 1e400, "y":-0 , "z":1.0,"text":"a"}',
                '{"n":' + "9" * 5000 + ',"text":"a"}', '{"text":"a","s":"\\ud800\\u0000\\u00e9"}', '{"text":"b","a":1,"text":"a","a":2}',
                '{"embedding":[1],"text":"a"}', '{"text":"a","embedding":null,"b":[ 1,{"c" : 2} ]}', '{"text":"a","\\u0065mbedding":3}',
                '{"text":"\\u0061"}', '  {  "text" : "a" }  ', '{"a":' + "[" * 200 + "]" * 200 + ',"text":"a"}']
        wanted = rows[:]
        wanted[6] = '{"text":"a"}'
        wanted[7] = '{"text":"a","b":[ 1,{"c" : 2} ]}'
        wanted[8] = '{"text":"a"}'
        wanted[10] = '{  "text" : "a"}'
        vector = self.good("embed", "--dim", "2", stdin=b"a\n").decode().strip()
        self.assertEqual(self.embed(rows), [w[:-1] + f',"embedding":{vector}}}' for w in wanted])
        self.assertEqual(self.embed(['{"embedding":"a"}'], "--field", "embedding"), [f'{{"embedding":{vector}}}'])

    def test_lines(self):
        """Byte order marks and blank lines are passed over, also when a call is resumed."""
        text = b'\xef\xbb\xbf{"text":"a"}\r\n\n  \t\n{"text":"b"}\n\n'
        rows = self.embed(text)
        self.assertEqual([json.loads(r)["text"] for r in rows], ["a", "b"])
        self.assertEqual(self.good("tokenize", "--jsonl", stdin=text), b"[101,1037,102]\n[101,1038,102]\n")
        (self.dir / "out.part").write_text(rows[0] + "\n" + rows[1] + "\n")
        self.good("embed", "--jsonl", "--dim", "2", "--resume", "-o", self.dir / "out", stdin=text + b'{"text":"c"}')
        self.assertEqual([json.loads(r)["text"] for r in (self.dir / "out").read_text().splitlines()], ["a", "b", "c"])
        self.assertEqual(self.good("detokenize", stdin=b'\xef\xbb\xbf[4937]\n\n{"ids":[4937],"n":18446744073709551616}\n'), b"cat\ncat\n")

    def test_surrogates(self):
        text = b'{"text":"a \\ud83d\\ude00 b"}\n{"text":"x\\udc00\\ud800y"}\n{"text":"ok"}\n'
        for verb in ("embed", "tokenize"):
            result = self.bad(1, verb, "--jsonl", stdin=text, says=("line 2", "surrogate", "--invalid replace"))
            self.assertEqual(result.stdout.count(b"\n"), 1)
        self.assertEqual(self.good("tokenize", "--jsonl", "--invalid", "replace", stdin=text),
                         self.good("tokenize", stdin="a 😀 b\nx\ufffd\ufffdy\nok\n".encode()))
        self.assertEqual(json.loads(self.embed(text, "--invalid", "replace")[1])["text"], "x\udc00\ud800y")

    def test_messages(self):
        for line, *says in ((b'{"a":1,"title":"x"}', "no field 'text'", "a, title"), (b'{"text":1}', "holds a number"),
                            (b'{"text":null}', "holds null"), (b'{"text":{"text":"a"}}', "holds an object"), (b"{}", "is empty"),
                            (b'{"a":{"text":"x"}}', "no field 'text'"), (b"[1]", "not a JSON object"), (b"x", "not a JSON object"),
                            (b'{"text":"a"', "the text ends"), (b'{"text":"a"} {}', "there is more text after"), (b'{"text":"a","v":[NaN]}', "v[0]"),
                            (b'{"text":"\\x"}', "bad escape"), (b'{"text":"a","v":' + b"[" * 9999 + b"]" * 9999 + b"}", "256 levels"),
                            (b'{"text":"a\xff"}', "not UTF-8")):
            for verb in ("embed", "tokenize"):
                result = self.bad(1, verb, "--jsonl", stdin=b'{"text":"a"}\n' + line + b"\n", says=("line 2: ", *says))
                self.assertEqual(result.stdout.count(b"\n"), 1)
                self.assertEqual(result.stderr.count(b"\n"), 1)

    def test_large(self):
        """Objects up to 64 MiB, and their texts and members in bounded memory."""
        large = b'{"text":"a","x":"' + b"y" * (63 << 20) + b'"}\n'
        row = self.good("embed", "--jsonl", "--dim", "2", stdin=large)
        self.assertTrue(row.startswith(large[:-2]))
        for verb in ("embed", "tokenize"):
            self.bad(1, verb, "--jsonl", stdin=b'{"text":"a"}\n{"text":"a","x":"' + b"y" * (64 << 20) + b'"}\n',
                     says=("line 2", "longer than 64 MiB"))
        many = b'{"text":"a","x":"' + b"y" * (1 << 20) + b'"}\n'
        with tempfile.TemporaryFile() as file:
            for _ in range(300):
                file.write(many)
            file.seek(0)
            limit = None if SANITIZED else (lambda: resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20)))
            result = subprocess.run([PITH, "embed", "--jsonl", "--dim", "2", "-t", "1"], stdin=file, stdout=subprocess.PIPE, preexec_fn=limit)
        self.assertEqual((result.returncode, result.stdout.count(b"\n")), (0, 300))


class Usage(Verbs):
    def test_near_names(self):
        self.bad(2, "embd", says="did you mean 'embed'?")
        self.bad(2, "embed", "--fromat", "npy", says="did you mean --format?")
        self.bad(2, "embed", "--prec=int8", says="did you mean --precision?")
        self.assertNotIn(b"mean", self.bad(2, "embed", "--xyz").stderr)
        self.bad(1, "inspect", "--after", "foo", says=("no pass 'foo'", "fold"))
        self.bad(2, "bench", "--workload", "foo", says="words110")

    def test_values(self):
        self.bad(2, "compile", "-o", "--json", says=("--output needs a value", "--output=--json"))
        self.bad(2, "embed", "--dim", says="--dim needs a value")
        self.good("tokenize", "--max-length", "9", "--max-length", "2", stdin=b"a\n")  # the last counts
        for verb in ("embed", "tokenize"):
            self.bad(2, verb, "--field", "x", says="--jsonl")
        self.bad(2, "tokenize", "--jsonl", "--pair-field", "x", says="--pair")
        self.bad(2, "inspect", "--runs", "2", says="--time")
        self.assertEqual(self.good("inspect", "-m", "all-MiniLM-L6-v2"), self.good("inspect"))
        self.assertAlmostEqual(float(self.good("similarity", "--", "-a", "-a")), 1)

    def test_json(self):
        """With --json standard output is one JSON value, whatever happens."""
        bad = os.fsencode(self.dir) + b"/\xff"
        os.mkdir(bad)
        (Path(os.fsdecode(bad)) / "model.onnx").write_text("no model")
        os.mkdir(bad + b"/test_data_set_0")
        for code, *arguments in ((1, "inspect", "nothing"), (2, "inspect", "--nonsense"), (2, "inspect", "--ops"), (1, "verify", self.dir / "no"),
                                 (2, "verify"), (2, "verify", "--list", self.dir), (1, "compile", "nothing", "-o", self.dir / "x"),
                                 (2, "compile"), (1, "bench", "-m", "nothing"), (2, "bench", "--rounds", "0"), (2, "similarity", "a"),
                                 (1, "similarity", "a", b"\xff"), (1, "inspect", bad + b"/model.onnx")):
            result = subprocess.run([PITH, *arguments, "--json"], capture_output=True)
            self.assertEqual(result.returncode, code, arguments)
            self.assertEqual(set(json.loads(result.stdout)), {"error"}, arguments)
            self.assertTrue(result.stderr, arguments)
        result = self.run_pith("verify", "--json", self.dir)
        found = json.loads(result.stdout)
        self.assertEqual((result.returncode, found["failed"], found["results"][0]["name"]), (1, 1, "\ufffd"))
        self.good("compile", "-q", "-o", self.dir / "m.pith")
        found = json.loads(self.good("verify", "--json", self.dir / "m.pith"))
        self.assertEqual((found["passed"], found["results"][0]["status"]), (1, "passed"))
        self.bad(1, "verify", MODELS / "bert-base-script17-eager/model.onnx", says="give the folder")

    def test_tolerances(self):
        """A data.json that is there and cannot be read is not passed over."""
        folder = self.dir / "t"
        folder.mkdir()
        for name in ("model.onnx", "test_data_set_0"):
            (folder / name).symlink_to(MODELS / "bert-base-script17-eager" / name)
        (folder / "data.json").write_text('{"rtol": 1,')
        self.assertIn(b"data.json:1", self.bad(1, "verify", folder).stdout)

    def test_linked_models(self):
        """verify follows links, as model caches are made of them."""
        (self.dir / "folder").symlink_to(MODELS / "bert-base-script17-eager")
        self.assertIn(b"1 passed", self.good("verify", self.dir / "folder"))
        (self.dir / "t").mkdir()
        for name in ("model.onnx", "test_data_set_0"):
            (self.dir / "t" / name).symlink_to(MODELS / "bert-base-script17-eager" / name)
        self.assertIn(b"1 passed", self.good("verify", self.dir / "t"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
