#!/usr/bin/env python3
"""tools/figures.py finds a number that differs from docs/numbers.json, from its table or from the sources, one that has gone from
its page, and one without a source.

usage: figures.py SOURCE_DIR [CLASS[.METHOD]]
"""
import json
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv.pop(1)).resolve()
sys.path[0] = str(SOURCE / "tools")
import figures  # noqa: E402

READ = figures.read


class Figures(unittest.TestCase):
    def faults(self, page=None, old=None, new=None):
        """What is found in a tree in which a page has a change, without what is found there now."""
        def changed(name):
            text = READ(name)
            if name != page:
                return text
            self.assertIn(old, text)
            return text.replace(old, new, 1)
        figures.read = changed
        try:
            return list(figures.faults())
        finally:
            figures.read = READ

    def one(self, page, old, new, says, where=None):
        found = self.faults(page, old, new)
        self.assertEqual(len(found), 1, found)
        self.assertEqual(found[0][0], where or page)
        self.assertIn(says, found[0][1])

    def test_the_tree(self):
        self.assertEqual(self.faults(), [])

    def test_a_page_that_differs(self):
        size = figures.shown(figures.known()["library_stripped"]["value"])
        self.one("README.md", f"a library of {size} MB", "a library of 1.9 MB", f"library_stripped is 1.9, and {size} in docs/numbers.json: run")

    def test_a_number_that_has_gone(self):
        self.one("docs/models.md", "`pith models` lists", "`pith models` shows", "known_models is not there")

    def test_a_number_without_a_source(self):
        self.one("README.md", "## What works\n", "## What works\n\nAll of it opens in 7 ms.\n", "'7 ms' has no source")
        self.one("docs/tasks.md", "# ", "Rerankers are 3.5 times as fast as others.\n\n# ", "'3.5 times as' has no source")

    def test_blocks_and_reports_may_have_numbers(self):
        self.assertEqual(self.faults("README.md", "## What works\n", "## What works\n\n```\nit printed 7 ms\n```\n"), [])
        self.assertEqual(self.faults("docs/search.md", "## Speed\n", "## Speed\n\nIt was 7 ms.\n"), [])

    def test_a_table_that_has_changed(self):
        found = self.faults("docs/performance.md", "**1.67**", "**1.87**")
        self.assertIn(("docs/performance.md", "f32_texts is 1.2 to 1.9 now and 1.2 to 1.7 in docs/numbers.json: run tools/figures.py --count"), found)
        self.assertIn("docs/performance/processors.md", [page for page, _ in found])

    def test_a_source_that_has_changed(self):
        self.one("tests/data/shop/orders.csv", "\n", "\n\n", "shop_orders is", figures.FILE)

    def test_a_report_that_does_not_name_its_command(self):
        self.one("docs/search.md", "run `bench/search.py` with", "run it with", "does not name the command")

    def test_the_file(self):
        have = json.loads(READ(figures.FILE))
        self.assertEqual(list(have), [number.name for number in figures.NUMBERS])
        for number in figures.NUMBERS:
            entry = have[number.name]
            self.assertEqual((entry["unit"], entry["command"]), (number.unit, number.source.command), number.name)
            self.assertRegex(entry["date"], r"^\d{4}-\d\d-\d\d$")
            if not isinstance(number.source, figures.Counted):
                self.assertTrue(entry.get("machine"), number.name)
        del have["onnx"]
        self.one(figures.FILE, READ(figures.FILE), json.dumps(have), "there is no onnx: run make numbers")


if __name__ == "__main__":
    unittest.main()
