#!/usr/bin/env python3
"""Late interaction: prefixes of several tokens, and the module HierarchicalTokenPooling. The right values are those of
sentence-transformers 6.2 (tests/makers/make_late_cases.py).

usage: late.py PITH SOURCE_DIR [unittest arguments]; needs NumPy (tests/requirements.txt).
"""
import json
import shutil
import sys
import unittest

import numpy as np

from command import SOURCE, Command

CASE = SOURCE / "tests/data/cases/late"
PYLATE = SOURCE / "tests/data/encode/colbert-hidden"


class Late(Command):
    def copy(self, source, file, settings):
        """A copy of a folder with some keys of a file changed."""
        folder = self.dir / "m"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        path = folder / file
        path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
        return folder

    def vectors(self, model, role, texts, *more):
        """The ids and vectors of each text."""
        told = self.run_pith("--multi-vector", "-m", model, "--role", role, "--format", "npy", "-o", "v.npy", *more,
                             stdin="\n".join(texts).encode() + b"\n")
        self.assertEqual(told.returncode, 0, told.stderr.decode())
        self.assertRegex(told.stderr.decode(), r"\A(warning: .* and cut there; .*\n)?\Z")
        ends = np.load(self.dir / "v.offsets.npy")
        rows, ids = np.load(self.dir / "v.npy"), np.load(self.dir / "v.ids.npy")
        return [(ids[a:b].tolist(), rows[a:b]) for a, b in zip(ends, ends[1:])]

    def same(self, rows, expected):
        expected = np.array(expected)
        self.assertEqual(rows.shape, expected.shape)
        cosines = (rows * expected).sum(-1) / np.linalg.norm(rows, axis=-1) / np.linalg.norm(expected, axis=-1)
        self.assertLessEqual((1 - cosines).max(), 1e-6)
        np.testing.assert_allclose(rows, expected, atol=1e-5)

    def compare(self, model, lines):
        for role in ("document", "query"):
            wanted = [line for line in lines if line["role"] == role]
            for (ids, rows), line in zip(self.vectors(model, role, [w["text"] for w in wanted]), wanted, strict=True):
                with self.subTest(role=role, text=line["text"]):
                    self.assertEqual(ids, line["ids"])
                    self.same(rows, line["vectors"])

    def compiled(self, model):
        self.assertEqual(self.run_pith("-m", model, "-o", "m.pith", verb="compile").returncode, 0)
        return self.dir / "m.pith"

    def test_prefixes(self):
        """A prefix that is no token of the vocabulary is text in front of the text; so too from a compiled file."""
        for name, case in json.loads((CASE / "prefixes.json").read_text()).items():
            with self.subTest(name=name):
                model = self.copy(PYLATE, "config_sentence_transformers.json", case["settings"])
                path = model / "tokenizer_config.json"
                path.write_text(json.dumps({**json.loads(path.read_text()), **case["tokenizer"]}))
                self.compare(model, case["lines"])
                self.compare(self.compiled(model), case["lines"])

    def test_files_that_name_the_filler(self):
        """A token or an object; special_tokens_map.json counts where tokenizer_config.json has no added_tokens_decoder. The ids
        are those of the words in the vocabulary: house 27, tree 28, [MASK] 4."""
        house, tree = {"content": "house", "lstrip": False, "special": True}, "tree"
        for config, other, filler in (({"mask_token": house}, {}, 27), ({"mask_token": house}, {"mask_token": tree}, 28),
                                      ({"mask_token": house, "added_tokens_decoder": {}}, {"mask_token": tree}, 27),
                                      ({"mask_token": None, "eos_token": tree}, {}, 28)):
            model = self.copy(PYLATE, "tokenizer_config.json", {"added_tokens_decoder": None})
            path = model / "tokenizer_config.json"
            keys = json.loads(path.read_text())
            del keys["added_tokens_decoder"]
            path.write_text(json.dumps({**keys, **config}))
            (model / "special_tokens_map.json").write_text(json.dumps(other))
            (ids, _), = self.vectors(model, "query", ["the"])
            self.assertEqual(ids, [2, 5, 12, 3] + 8 * [filler])

    def test_fillers_in_front(self):
        """Queries of a tokenizer that pads at the front are refused, documents are not; so too from a compiled file."""
        model = self.copy(PYLATE, "tokenizer_config.json", {"padding_side": "left"})
        for made in (model, self.compiled(model)):
            self.bad(1, "--multi-vector", "--role", "query", "-m", made, says="padding_side", stdin=b"a\n")
            self.good("--multi-vector", "-m", made, stdin=b"a\n")

    def test_prefix_is_told(self):
        model = self.copy(PYLATE, "config_sentence_transformers.json", {"query_prefix": "[Q] "})
        said = self.good("-m", model, verb="inspect").decode()
        self.assertIn("'[Q] ' is no token of the vocabulary", said)
        self.assertNotIn("'[unused1]' is no token", said)

    def pooling(self, **settings):
        return self.copy(CASE / "pooling", next((CASE / "pooling").glob("*HierarchicalTokenPooling")).name + "/config.json",
                         settings)

    def test_pooling(self):
        """The clusters, in their order, and their means; so too from a compiled file."""
        for name, case in json.loads((CASE / "poolings.json").read_text()).items():
            with self.subTest(name=name):
                model = self.pooling(**case["settings"])
                self.compare(model, case["lines"])
                self.compare(self.compiled(model), case["lines"])

    def test_pooling_that_is_refused(self):
        for settings, says in (({"pool_factor": 0.5}, "pool_factor is 0.5"), ({"pool_factor": "2"}, "config.json"),
                               ({"num_protected_tokens": -1}, "config.json"), ({"other": 1}, "no setting 'other'")):
            self.bad(1, "--multi-vector", "-m", self.pooling(**settings), says=(says, "HierarchicalTokenPooling"), stdin=b"a\n")
        model = self.pooling()
        modules = json.loads((model / "modules.json").read_text())
        (model / "modules.json").write_text(json.dumps(modules[:3] + modules[4:] + modules[3:4]))
        self.bad(1, "--multi-vector", "-m", model, says="is behind HierarchicalTokenPooling", stdin=b"a\n")
        model = self.pooling()
        file = model / "config_sentence_transformers.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "query_prefix": "[Q] "}))
        self.bad(1, "--multi-vector", "-m", model, says=("HierarchicalTokenPooling", "keys of PyLate"), stdin=b"a\n")

    def test_pooling_any_batch(self):
        """Bits do not depend on threads and the texts beside."""
        texts = [w["text"] for w in json.loads((CASE / "poolings.json").read_text())["half"]["lines"] if w["role"] == "document"]
        model = self.pooling(pool_factor=2.0)
        alone = [self.vectors(model, "document", [text], "--threads", 1)[0] for text in texts]
        for (ids, rows), (same_ids, same_rows) in zip(alone, self.vectors(model, "document", texts, "--threads", 2)):
            self.assertEqual((ids, rows.tobytes()), (same_ids, same_rows.tobytes()))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
