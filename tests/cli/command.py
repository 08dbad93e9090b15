"""What tests of the command share: each test has a folder of its own, in which the command runs."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PITH, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
THREAD_SANITIZED = b"__tsan_init" in PITH.read_bytes()
SANITIZED = THREAD_SANITIZED or b"__asan_init" in PITH.read_bytes()  # clang links sanitizers statically


class Command(unittest.TestCase):
    verb = "embed"  # None: the first argument is
    options = ()  # after the verb
    quiet = True  # a good run writes nothing to standard error
    stdin = b""  # of calls that do not say

    def setUp(self):
        if ".".join(self.id().split(".")[-2:]) in os.environ.get("PITH_TEST_LEAVE_OUT", "").split():  # tests/machines.py
            self.skipTest("on another machine it would show nothing new, and take long")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)

    def run_pith(self, *arguments, stdin=None, verb=None, **keywords):
        verb = verb or self.verb
        return subprocess.run([PITH, *([verb] if verb else []), *self.options, *map(str, arguments)],
                              input=self.stdin if stdin is None else stdin,
                              **{"capture_output": True, "timeout": 300, "cwd": self.dir, **keywords})

    def good(self, *arguments, **keywords):
        """Standard output."""
        result = self.run_pith(*arguments, **keywords)
        self.assertEqual((result.returncode, result.stderr if self.quiet else b""), (0, b""), result.stderr.decode())
        return result.stdout

    def rows(self, *arguments, **keywords):
        """The lines of a good run, each of which is JSON."""
        return [json.loads(line) for line in self.good(*arguments, **keywords).splitlines()]

    def bad(self, code, *arguments, says=(), **keywords):
        result = self.run_pith(*arguments, **keywords)
        self.assertEqual(result.returncode, code, result.stderr.decode())
        for part in (says,) if isinstance(says, str) else says:
            self.assertIn(part, result.stderr.decode())
        return result
