#!/usr/bin/env python3
"""Reads each of ONNX's node tests, writes it, reads what was written, and runs that on the stored inputs: the results are
the stored ones. What was written twice has the same bytes as what was written once.

usage: round_trip.py PITH NODE_TESTS SKIP_LIST"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PITH, NODES, SKIPS = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), Path(sys.argv[3])
# What has no form in the opsets from 17 on.
REFUSED = {"test_scan_sum": "no opset from 17 on has its form"}
REFUSED.update(dict.fromkeys((
    "test_identity_opt", "test_if_opt", "test_loop16_seq_none", "test_optional_get_element_optional_sequence",
    "test_optional_get_element_optional_tensor", "test_optional_has_element_empty_optional_input",
    "test_optional_has_element_optional_input", "test_optional_has_element_tensor_input"), "is an optional"))


def pith(*arguments):
    return subprocess.run([PITH, *map(str, arguments)], capture_output=True, text=True, timeout=60)


class RoundTrip(unittest.TestCase):
    maxDiff = None

    def test_node_tests(self):
        skipped = {line.lstrip("~").split()[0] for line in SKIPS.read_text().splitlines() if line.strip() and line[0] != "#"}
        refused, failed, written = {}, {}, 0
        with tempfile.TemporaryDirectory() as folder:
            for test in sorted(p for p in NODES.iterdir() if (p / "model.onnx").exists() and p.name not in skipped):
                out = Path(folder) / test.name
                out.mkdir()
                done = pith("optimize", "--level", 1, "--quiet", test / "model.onnx", "-o", out / "model.onnx")
                if done.returncode:
                    refused[test.name] = done.stderr.strip()
                    shutil.rmtree(out)
                    continue
                again = pith("optimize", "--level", 1, "--quiet", out / "model.onnx", "-o", Path(folder) / "again.onnx", "--force")
                if again.returncode or (out / "model.onnx").read_bytes() != (Path(folder) / "again.onnx").read_bytes():
                    failed[test.name] = again.stderr or "other bytes"
                for data in test.glob("test_data_set_*"):
                    os.symlink(data.resolve(), out / data.name)
                written += 1
            os.remove(Path(folder) / "again.onnx")
            done = pith("verify", "--json", folder)
        self.assertEqual(failed, {})
        self.assertEqual(refused.keys(), REFUSED.keys(), refused)
        for name, why in REFUSED.items():
            self.assertIn(why, refused[name])
        said = json.loads(done.stdout)
        self.assertEqual([(r["name"], r["message"]) for r in said["results"] if r["status"] != "passed"], [])
        self.assertEqual(said["passed"], written)
        self.assertGreater(written, 1800)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
