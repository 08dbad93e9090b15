"""Tokenizers whose files say more than tokenizer.json, or lack it: ids, token types and lengths as transformers has
them. The right values are those of the folders' references: transformers 4.57.6 and 5.24.0, sentence-transformers 5.7.0
and 6.2.0, sentencepiece 0.2.

  python tests/cases/tokens.py PITH SOURCE"""
import json
import shutil
import sys
import unittest

from command import SOURCE, Command

CASES = SOURCE / "tests/data/cases"


class Tokens(Command):
    verb = "tokenize"

    def ids(self, folder, text, *options):
        return self.rows("-m", folder, "-0", *options, stdin=text.encode() + b"\0")[0]

    def copy(self, name):
        shutil.copytree(CASES / name, self.dir / "copy", dirs_exist_ok=True)
        for path in (self.dir / "copy").iterdir():
            path.chmod(0o644)
        return self.dir / "copy"

    def settings(self, folder, drop=(), **more):
        path = folder / "tokenizer_config.json"
        config = {**json.loads(path.read_text()), **more} if path.exists() else more
        path.write_text(json.dumps({key: value for key, value in config.items() if key not in drop}))

    def stored(self, name, *options):
        for case in json.loads((CASES / name / "expected.json").read_text()):
            folder = CASES / name / case.get("folder", "")
            with self.subTest(folder=folder, text=case["text"]):
                self.assertEqual(self.ids(folder, case["text"], "--max-length", 0, *options), case["right"])


class Truncation(Tokens):
    words = " ".join(f"w{i}" for i in range(1, 10))

    def test_side(self):
        folder = CASES / "truncation-side"
        self.assertEqual(self.ids(folder, self.words), [2, 72, 73, 74, 75, 3])
        self.assertEqual(self.ids(folder, self.words, "--max-length", 4), [2, 74, 75, 3])
        self.assertEqual(self.ids(folder, self.words, "--side", "right"), [2, 67, 68, 69, 70, 3])
        self.assertEqual(self.ids(folder, self.words, "--side", "left"), [2, 72, 73, 74, 75, 3])
        self.assertEqual(self.ids(folder, f"{self.words}\t{self.words}", "--pair", "--max-length", 7), [2, 74, 75, 3, 74, 75, 3])

    def test_side_of_scores(self):
        """A pair keeps its ends, and so a text with another beginning has the same score."""
        folder = CASES / "truncation-side"
        scores = [self.rows("-m", folder, "--query", "w5", verb="rerank", stdin=f"{text}\n".encode())[0]["score"]
                  for text in (self.words, f"w4 {self.words}", self.words + " w4")]
        self.assertEqual(scores[0], scores[1])
        self.assertNotEqual(scores[0], scores[2])

    def test_side_of_the_file(self):
        """The direction of tokenizer.json's truncation is that of the tokenizer, unless the settings say otherwise."""
        folder = self.copy("truncation-side")
        path = folder / "tokenizer.json"
        tokenizer = json.loads(path.read_text())
        tokenizer["truncation"] = {"direction": "Left", "max_length": 6, "strategy": "LongestFirst", "stride": 0}
        path.write_text(json.dumps(tokenizer))
        self.settings(folder, drop=["truncation_side"])
        self.assertEqual(self.ids(folder, self.words), [2, 72, 73, 74, 75, 3])
        self.settings(folder, truncation_side="right")
        self.assertEqual(self.ids(folder, self.words), [2, 67, 68, 69, 70, 3])

    def test_static(self):
        """StaticEmbedding keeps the truncation of tokenizer.json."""
        folder = CASES / "static-truncation"
        result = self.run_pith("-m", folder, verb="embed", stdin=b"w1 w2 w3 w4 w5 w6\n")
        self.assertIn("longer than 4 tokens", result.stderr.decode())
        row = json.loads(result.stdout)
        for value, right in zip(row, (-0.003433, 0.299284, 0.288676), strict=True):
            self.assertAlmostEqual(value, right, delta=1e-6)
        self.assertEqual(self.ids(folder, "w1 w2 w3 w4 w5 w6"), [67, 68, 69, 70])
        self.assertEqual(self.ids(folder, "w1 w2 w3 w4 w5 w6", "--max-length", 2), [67, 68])


class Settings(Tokens):
    def test_win(self):
        self.stored("tokenizer-config-wins")

    def test_extra(self):
        folder = CASES / "tokenizer-extra-special-tokens"
        ids = self.ids(folder / "list", "x <a> <B> <|im|> <img>")
        self.assertEqual(ids[:4], [2, 28, 89, 90])
        self.assertEqual(self.ids(folder / "image-token", "x <img>"), [2, 28, 89, 3])
        copy = self.copy("tokenizer-extra-special-tokens/list")
        for settings in ({"extra_special_tokens": {"one": "<a>", "two": "<B>"}},
                         {"model_specific_special_tokens": {"one": "<a>", "two": "<B>"}},
                         {"extra_special_tokens": ["<a>", {"__type": "AddedToken", "content": "<B>", "lstrip": True,
                                                           "normalized": False, "special": True}]}):
            self.settings(copy, drop=["extra_special_tokens"] if "extra_special_tokens" not in settings else [], **settings)
            with self.subTest(settings=settings):
                self.assertEqual(self.ids(copy, "x <a> <B>"), [2, 28, 89, 90, 3])

    def test_types(self):
        score = self.rows("-m", CASES / "types-not-fed", "--query", "hello", verb="rerank", stdin=b"world\n")[0]["score"]
        self.assertAlmostEqual(score, 0.570455, delta=1e-6)
        rows = self.rows("-m", CASES / "rerank-tokenizersbackend-types/model", "--query", "the cat", verb="rerank",
                         stdin=b"the cat sat on the mat\na dog\n")
        for row, right in zip(rows, (0.6074, 0.7479), strict=True):
            self.assertAlmostEqual(row["score"], right, delta=1e-4)

    def test_types_that_are_named(self):
        """model_input_names and a class with types feed them."""
        folder = self.copy("types-not-fed")
        self.settings(folder, drop=["model_input_names"])
        fed = self.rows("-m", folder, "--query", "hello", verb="rerank", stdin=b"world\n")[0]["score"]
        self.assertAlmostEqual(fed, 0.601413, delta=1e-6)

    def test_split_special_tokens(self):
        folder = self.copy("truncation-side")
        self.settings(folder, split_special_tokens=True)
        self.assertNotIn(4, self.ids(folder, "[MASK]", "--max-length", 0))
        self.assertEqual(self.ids(CASES / "truncation-side", "[MASK]"), [2, 4, 3])

    def test_unknown_key(self):
        folder = self.copy("truncation-side")
        self.settings(folder, reverse_words=True)
        result = self.run_pith("-m", folder, stdin=b"w1\n")
        self.assertEqual(result.returncode, 0)
        self.assertIn('tokenizer_config.json: "reverse_words" is not known', result.stderr.decode())

    def test_compiled(self):
        """A compiled model keeps the side, the types and the tokens."""
        for name, text in (("truncation-side", Truncation.words), ("types-not-fed", "hello world")):
            with self.subTest(name=name):
                self.assertEqual(self.run_pith(CASES / name, "-o", "m.pith", verb="compile").returncode, 0)
                self.assertEqual(self.ids("m.pith", text), self.ids(CASES / name, text))
                both = [self.rows("-m", m, "--query", "hello", verb="rerank", stdin=f"{text}\n".encode()) for m in ("m.pith", CASES / name)]
                self.assertEqual(*both)


class Files(Tokens):
    def test_mask(self):
        self.assertEqual(self.ids(CASES / "mask-flags", "a <mask> b"), [0, 69, 4, 265, 2])

    def test_qwen(self):
        self.assertEqual(self.ids(CASES / "qwen-files", "<|im_start|>hello<|im_end|>"), [262, 259, 263])

    def test_deberta(self):
        self.stored("deberta-spm")

    def test_sentencepiece(self):
        self.stored("sentencepiece-alone", "--no-specials")

    def test_gguf(self):
        self.assertEqual(self.ids(CASES / "gguf-capitals/model.gguf", "Hello World"), [2, 7, 8, 3])



class Pieces(Tokens):
    """Settings of tokenizer_config.json beside a SentencePiece model. The ids are those of transformers 5.24.0 and, but for
    the token <s> that it puts in front of Llama's, of 4.57.6."""

    def made(self, model, name, **settings):
        folder = self.dir / "pieces"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copyfile(SOURCE / "tests/data" / model, folder / name)
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        return folder

    def test_extra_ids(self):
        model = "cases/sentencepiece-alone/unigram/tokenizer.model"
        folder = self.made(model, "spiece.model", tokenizer_class="T5Tokenizer", extra_ids=4)
        self.assertEqual(self.ids(folder, "hello <extra_id_0> a <extra_id_3>"), [3, 19, 15, 6, 42, 22, 39, 2])
        folder = self.made(model, "spiece.model", tokenizer_class="T5Tokenizer")
        self.assertEqual(self.ids(folder, "hello <extra_id_0> a"), [3, 19, 15, 6, 138, 22, 2])

    def test_add_prefix_space(self):
        model = "tokenizer_models/llama/tokenizer.model"
        folder = self.made(model, "tokenizer.model", tokenizer_class="LlamaTokenizer", legacy=False, add_prefix_space=False)
        self.assertEqual(self.ids(folder, "hello world"), [264, 576, 470, 267, 315, 515])
        self.assertEqual(self.ids(folder, "a  b"), [569, 565, 268])
        folder = self.made(model, "tokenizer.model", tokenizer_class="LlamaTokenizer", legacy=False)
        self.assertEqual(self.ids(folder, "hello world"), [446, 576, 470, 267, 315, 515])
        self.assertEqual(self.ids(folder, "a  b"), [260, 565, 268])


class Keys(Tokens):
    """The keys of tokenizer.json and tokenizer_config.json: read, known to change no id, or said aloud."""

    def changed(self, change, **settings):
        folder = self.copy("truncation-side")
        path = folder / "tokenizer.json"
        tokenizer = json.loads(path.read_text())
        change(tokenizer)
        path.write_text(json.dumps(tokenizer))
        self.settings(folder, **settings)
        return folder

    def lists(self, folder):
        decisions = json.loads(self.run_pith(folder, "--json", verb="inspect").stdout)["decisions"]
        return {(d["what"], d["file"]): d["value"].split(", ") for d in decisions if d["what"].startswith("tokenizer settings")}

    def test_lists(self):
        lists = self.lists(self.changed(lambda t: t["pre_tokenizer"].update(novelty=1) or t.update(invention=2), padding_side="left", curiosity=3))
        self.assertIn("normalizer", lists["tokenizer settings read", "tokenizer.json"])
        self.assertIn("version", lists["tokenizer settings ignored", "tokenizer.json"])
        self.assertEqual(lists["tokenizer settings not known", "tokenizer.json"], ["pre_tokenizer.novelty", "invention"])
        self.assertIn("truncation_side", lists["tokenizer settings read", "tokenizer_config.json"])
        self.assertIn("padding_side", lists["tokenizer settings ignored", "tokenizer_config.json"])
        self.assertEqual(lists["tokenizer settings not known", "tokenizer_config.json"], ["curiosity"])

    def test_unknown(self):
        for change, place in ((lambda t: t.update(novelty=1), "novelty"), (lambda t: t["model"].update(novelty=True), "model.novelty"),
                              (lambda t: t["pre_tokenizer"].update(novelty="x"), "pre_tokenizer.novelty"), (lambda t: t["added_tokens"][0].update(novelty={}), "added_tokens.novelty"),
                              (lambda t: t["post_processor"].update(novelty=[]), "post_processor.novelty")):
            with self.subTest(place):
                result = self.run_pith("-m", self.changed(change), "-0", stdin=b"w1\0")
                self.assertIn(f"tokenizer.json: '{place}' is not known", result.stderr.decode())
                self.assertEqual(result.returncode, 0)

    def test_null(self):
        """What is null says nothing."""
        self.good("-m", self.changed(lambda t: t["model"].update(novelty=None)), stdin=b"w1\n")

    def test_own_code(self):
        """transformers does not run it either, unless it is told to trust it."""
        folder = self.changed(lambda t: None, auto_map={"AutoTokenizer": ["tokenization_own.OwnTokenizer", None]})
        result = self.run_pith("-m", folder, "-0", stdin=b"w1\0")
        self.assertIn("auto_map names 'tokenization_own.OwnTokenizer', code that comes with the tokenizer, which is not run", result.stderr.decode())
        self.assertEqual(result.returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
