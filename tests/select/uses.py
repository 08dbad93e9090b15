#!/usr/bin/env python3
"""pith select --use: a program that embeds and searches, linked with what the words list, does as with the complete library.

usage: uses.py PITH SOURCE_DIR BUILD_DIR WORK_DIR [unittest arguments]
"""
import sys
import unittest
from pathlib import Path

import numpy as np

import small

PITH, SOURCE, BUILD, WORK = (Path(a).resolve() for a in sys.argv[1:5])
MODEL, RERANKER = SOURCE / "tests/data/modules/chain", SOURCE / "tests/data/tasks/cross-bert"
TEXTS = ["a cat sat", "a cat sits on a mat", "two dogs!", "Two caf\u00e9s, 3 dogs", "the mat", "3"]
FOLDER = small.Folder(SOURCE, BUILD, WORK)


def select(name, *words):
    path = FOLDER.work / f"{name}.yaml"
    done = small.run(PITH, "select", "-q", *words, "-o", path)
    assert done.returncode == 0, done.stderr
    return path, done.stderr


def program(name, listed=None):
    """find.c, with the library's own tables or with those of a list."""
    objects = []
    if listed:
        done = FOLDER.lists(name, "--list", listed, "--dtypes", "ON")
        assert done.returncode == 0, done.stderr
        objects = [FOLDER._compile("src/select/tables.c", FOLDER.work / name)]
    out = FOLDER.work / f"{name}.out"
    done = small.run("cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{SOURCE / 'include'}", SOURCE / "tests/select/programs/find.c", *objects,
                     *FOLDER.flags, "-o", out, BUILD / "libpith.a", "-lpcre2-8", "-pthread", "-ldl", "-lm")
    assert done.returncode == 0, done.stderr
    return out


class Uses(unittest.TestCase):
    def test_embed_and_search(self):
        full = small.run(program("full"), MODEL, *TEXTS)
        self.assertEqual(full.returncode, 0, full.stdout)
        path, _ = select("both", MODEL, "--use", "embed,search")
        own = small.run(program("both", path), MODEL, *TEXTS)
        self.assertEqual((own.returncode, own.stdout), (0, full.stdout))
        self.assertLess((FOLDER.work / "both.out").stat().st_size, 0.7 * (FOLDER.work / "full.out").stat().st_size)
        again, _ = select("again", MODEL, "--use", "search", "--use", "embed")
        self.assertEqual(path.read_text(), again.read_text())

    def test_what_is_found_is_nearest(self):
        """The scores are what NumPy computes of the vectors."""
        path, _ = select("both", MODEL, "--use", "embed,search")
        lines = small.run(program("both", path), MODEL, *TEXTS).stdout.splitlines()
        hits = [line.split() for line in lines if " " in line]
        vectors = np.array([float(line) for line in lines if " " not in line]).reshape(len(TEXTS), -1)
        query, rows = vectors[0], vectors[1:]
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
        scores = {"0": rows @ query / lengths, "1": rows @ query, "2": np.linalg.norm(rows - query, axis=1)}
        for metric, want in scores.items():
            order = np.argsort(want if metric == "2" else -want, kind="stable")[:3]
            found = [(int(i), float(s)) for m, p, i, s in hits if m == metric and p == "0"]
            self.assertEqual([i for i, _ in found], list(order))
            np.testing.assert_allclose([s for _, s in found], want[order], rtol=1e-5, atol=1e-6)

    def test_without_the_word(self):
        path, _ = select("embed", MODEL, "--use", "embed")
        done = small.run(program("embed", path), MODEL, *TEXTS)
        self.assertEqual(done.returncode, 1)
        self.assertIn("this selective build lacks pieces; add to its list, and build again: '- scores_dot f32' under 'kernels:'", done.stdout)

    def test_all_types_of_rows(self):
        kernels = small.read(select("both", MODEL, "--use", "search")[0].read_text())["kernels"]
        for name in ("scores_dot", "scores_l2", "scores_sumsq"):
            self.assertEqual(set(kernels[name]), {"f32", "f16", "i8", "u8"}, name)
        for name in ("scores_hamming", "scores_int8", "range", "quantize", "widen"):
            self.assertIn(name, kernels)

    def test_words(self):
        """Words of a program that calls several models; a use that no model can be put to is an error."""
        path, said = select("several", MODEL, RERANKER, "--use", "embed,search,rerank,tokenize,detokenize")
        found = small.read(path.read_text())
        self.assertLessEqual({"dense", "scores"}, set(found["heads"]))
        self.assertIn("pith select: warning: ", said)
        self.assertEqual(select("score", RERANKER, "--use", "score")[0].read_text(), select("classify", RERANKER, "--use", "classify")[0].read_text())
        for words, code, says in (((MODEL, "--use", "embed,rerank"), 1, "no model can be used for 'rerank': "), ((MODEL, "--use", "rerank"), 1, "not a classifier"),
                                  ((MODEL, "--use", "embed,sing"), 2, "--use 'sing' is unknown; it is embed, "), ((MODEL, "--use", "embed,"), 2, "--use '' is unknown"),
                                  ((SOURCE / "tests/data/cases/selected-union/add.onnx", "--use", "tokenize"), 1, "the model has no tokenizer")):
            done = small.run(PITH, "select", "-q", *words)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
