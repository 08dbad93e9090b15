"""What tests of verbs that write ONNX files share. The arguments of such a test begin with PITH DATA."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PITH, DATA = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()


def pith(*arguments, text=None):
    return subprocess.run([PITH, *map(str, arguments)], capture_output=True, text=True, input=text, timeout=120)


class Files(unittest.TestCase):
    verb = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)

    def fails(self, says, *arguments, code=1):
        """The verb refuses this, and leaves no file but the old one."""
        done = pith(self.verb, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertEqual([p.name for p in self.dir.iterdir() if ".onnx" in p.name and p.name != "old.onnx"], [])
