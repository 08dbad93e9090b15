"""A small picture costs no more time and memory than its pixels are worth. PITH SOURCE."""
import os
import resource
import struct
import subprocess
import sys
import unittest

from command import PITH, SOURCE, THREAD_SANITIZED, Command

sys.path.insert(0, str(SOURCE / "tests/comparisons"))
import hostile_pictures  # noqa: E402
from pasted_faces import YUNET  # noqa: E402

CASES = SOURCE / "tests/data/cases"
SECONDS, BYTES = 2, (1200 if THREAD_SANITIZED else 400) << 20  # of the processor; of memory, the network's included


class Hostile(Command):
    def detect(self, *pictures):
        def bounds():
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS * max(1, len(pictures)),) * 2)
        with open(self.dir / "told", "w+b") as told:
            child = subprocess.Popen([PITH, "detect", "-m", YUNET, "--detect-size", "640x640", "--json", *pictures], cwd=self.dir,
                                     stdout=subprocess.DEVNULL, stderr=told, preexec_fn=bounds)
            _, state, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(state)
            told.seek(0)
            return child.returncode, told.read().decode(), used.ru_maxrss << 10

    def test_cost(self):
        for name, data, refusal in hostile_pictures.pictures():
            with self.subTest(name):
                self.assertLessEqual(len(data), 1 << 20)
                (self.dir / name).write_bytes(data)
                code, told, peak = self.detect(name)
                self.assertEqual(code, 1 if refusal else 0, told)
                if refusal:
                    self.assertIn(name, told)
                    self.assertIn(refusal, told)
                self.assertLess(peak, BYTES)

    def test_case(self):
        """a2000.j2k: 146 bytes, 2000 x 2000 pixels in precincts of one."""
        code, told, peak = self.detect(CASES / "jpeg2000-precincts/a2000.j2k")
        self.assertEqual(code, 1)
        self.assertIn("4000000 precincts for 4000000 samples", told)
        self.assertLess(peak, BYTES)

    def test_orientation_behind_markers(self):
        """EXIF counts behind other segments and filling bytes, and only in front of the first scan."""
        exif = b"Exif\0\0MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"
        segment = struct.pack(">BBH", 0xFF, 0xE1, len(exif) + 2) + exif
        for name, data, turned in (("a", hostile_pictures.jpeg(40, 80, 2, markers=b"\xFF\xFE\0\4ab\xFF\xFF" + segment[1:]), True),
                                   ("b", hostile_pictures.jpeg(40, 80, 2)[:-2] + segment + b"\xFF\xD9", False)):
            (self.dir / f"{name}.jpg").write_bytes(data)
            line = self.rows("-m", YUNET, "--json", f"{name}.jpg", verb="detect")[0]
            self.assertEqual((line["width"], line["height"]), (80, 40) if turned else (40, 80))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
