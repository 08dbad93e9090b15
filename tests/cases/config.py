"""config.json: settings that were read over, misread or refused. Values are those of transformers and
sentence-transformers; the folders of tests/data/cases say how they are known.

usage: config.py PITH SOURCE [UNITTEST-ARGUMENT...]
"""
import json
import shutil
import sys
import unittest

from command import SOURCE, Command

DATA = SOURCE / "tests" / "data"
CASES = DATA / "cases"

# Of tests/data/hf, which test_hf_run compares with transformers.
FAMILIES = ("ernie", "llama", "mistral", "gemma", "gemma2", "t5", "t5-gated", "mt5", "umt5", "nomic-native",
            "jina-v3-native", "eurobert", "gte-native", "qwen3-both-ways")


class Config(Command):
    def changed(self, folder, drop=(), **values):
        """A copy of a model whose config.json has other values."""
        copy = self.dir / "model"
        shutil.copytree(folder, copy)
        config = json.loads((copy / "config.json").read_text())
        for key in drop:
            del config[key]
        (copy / "config.json").write_text(json.dumps(config | values))
        return copy

    def near(self, model, text, right, **keywords):
        got = self.rows("-m", model, stdin=text.encode(), **keywords)[0]
        for a, b in zip(got, right):
            self.assertAlmostEqual(a, b, delta=2e-6)
        return got

    def expected(self, case):
        return json.loads((CASES / case / "expected.json").read_text())

    def decided(self, model):
        lines = json.loads(self.good("-m", model, "--json", verb="inspect"))["decisions"]
        return {line["what"]: line["value"] for line in lines}

    def test_right(self):
        for case in "own-code-attention", "gte-rope-parameters", "nomic-native":
            with self.subTest(case):
                self.near(CASES / case, *[self.expected(case)[k] for k in ("text", "right")])

    def test_mpnet_counts_from_one(self):
        self.near(CASES / "mpnet-padding", "hello world", [0.150461, -0.284654, -0.304874])

    def test_whole_numbers(self):
        model = CASES / "config-float-integer"
        as_float = self.good("-m", model, stdin=b"a cat")
        self.assertEqual(self.good("-m", self.changed(model, n_inner=200, n_embd=16.0), stdin=b"a cat"), as_float)

    def test_causal_without_own_code(self):
        case = "own-code-attention"
        text, causal = (self.expected(case)[k] for k in ("text", "causal"))
        self.near(self.changed(CASES / case, drop=["auto_map"]), text, causal)

    def test_is_causal(self):
        case = "own-code-attention"
        model = self.changed(CASES / case, drop=["auto_map"], is_causal=False)
        self.near(model, *[self.expected(case)[k] for k in ("text", "right")])

    def test_code_that_nobody_knows(self):
        model = self.changed(CASES / "own-code-attention", auto_map={"AutoModel": "a/b--other.Qwen2Model"})
        self.bad(1, "-m", model, stdin=b"a", says=("auto_map: AutoModel is 'a/b--other.Qwen2Model'", "not run"))
        self.assertIn(b"auto_map", self.run_pith("-m", model, verb="inspect").stderr)

    def test_inspect_lists_keys(self):
        decided = self.decided(CASES / "own-code-attention")
        self.assertEqual(decided["network's own code"], "modeling_qwen.Qwen2Model")
        self.assertIn("rope_theta", decided["settings read"].split(", "))
        self.assertIn("initializer_range", decided["settings ignored"].split(", "))

    def test_long_lists_are_whole(self):
        """Sections of CLIP have lists of their own, and lists of keys are not cut."""
        model = CASES / "clip-processor-config"
        config = json.loads((model / "config.json").read_text())
        copy = self.changed(model, vision_config=config["vision_config"] | {"twist": 1})
        result = self.run_pith("-m", copy, "--json", verb="inspect")
        decided = {line["what"]: line["value"] for line in json.loads(result.stdout)["decisions"]}
        read = decided["settings read"].split(", ")
        for key in "projection_dim", "text_config.hidden_size", "vision_config.patch_size":
            self.assertIn(key, read)
        self.assertEqual(decided["settings not known"], "vision_config.twist")
        self.assertIn(b"'vision_config.twist' is not known", result.stderr)

    def test_unknown_key_is_said(self):
        model = self.changed(CASES / "own-code-attention", attention_twist=3)
        result = self.run_pith("-m", model, stdin=b"hello abc")
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"'attention_twist' is not known", result.stderr)
        self.assertIn(b"settings not known: attention_twist", self.run_pith("-m", model, verb="inspect").stdout)

    def test_key_that_would_change_the_result(self):
        for key, value in ("is_decoder", True), ("pruned_heads", {"0": [1]}), ("quantization_config", {"bits": 4}):
            with self.subTest(key):
                shutil.rmtree(self.dir / "model", ignore_errors=True)
                model = self.changed(CASES / "own-code-attention", **{key: value})
                self.bad(1, "-m", model, stdin=b"a", says=f"config.json: {key} is")

    def test_defaults_may_be_left_out(self):
        """As to_diff_dict of transformers writes a config."""
        model = CASES / "mpnet-padding"
        right = self.good("-m", model, stdin=b"hello world")
        short = self.changed(model, drop=["hidden_act", "layer_norm_eps", "relative_attention_num_buckets"])
        self.assertEqual(self.good("-m", short, stdin=b"hello world"), right)

    def test_rope_parameters(self):
        """The new form gives what the old one gives."""
        model = CASES / "own-code-attention"
        for old, new in (({"rope_theta": 500.0}, {"rope_parameters": {"rope_theta": 500, "rope_type": "default"}}),
                         ({"rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 4.0}},
                          {"rope_parameters": {"rope_theta": 500.0, "rope_type": "linear", "factor": 4.0}}),
                         ({"rope_theta": 500.0}, {"rope_parameters": {"full_attention": {"rope_theta": 500.0}}})):
            with self.subTest(new):
                rows = []
                for values in old, new:
                    shutil.rmtree(self.dir / "model", ignore_errors=True)
                    rows.append(self.good("-m", self.changed(model, drop=["rope_theta", "rope_scaling"], **values),
                                          stdin=b"hello abc"))
                self.assertEqual(*rows)
        shutil.rmtree(self.dir / "model")
        bad = self.changed(model, drop=["rope_scaling"], rope_parameters={"rope_type": "default", "twist": 2})
        self.bad(1, "-m", bad, stdin=b"a", says="rope_parameters.twist is not supported")

    def test_alone_and_in_a_batch(self):
        """New families run packed or text by text; a text's vector has the same bits either way."""
        texts = ["hello world", "a", "abc abc hello", "hello hello world abc a hello world abc hello world", "world"]
        for name in FAMILIES:
            with self.subTest(name):
                shutil.rmtree(self.dir / "model", ignore_errors=True)
                model = self.changed(DATA / "hf" / name)
                for file in "tokenizer.json", "tokenizer_config.json":
                    shutil.copy(CASES / "mpnet-padding" / file, model)
                together = self.rows("-m", model, stdin="\n".join(texts).encode())
                alone = [self.rows("-m", model, stdin=text.encode())[0] for text in texts]
                self.assertEqual(together, alone)
                self.assertEqual(len({tuple(row) for row in together}), len(texts))

    def test_python_numbers(self):
        model = self.changed(CASES / "own-code-attention", initializer_range=float("nan"))
        self.near(model, *[self.expected("own-code-attention")[k] for k in ("text", "right")])

    def test_labels_of_rerankers(self):
        """num_labels goes before id2label, and a classifier is known by its weights."""
        docs = self.dir / "docs"
        docs.write_text("a cat\nhello world\n")
        forms = CASES / "reranker-label-count"
        plain = self.changed(forms / "two-labels", drop=["num_labels"], id2label={"0": "LABEL_0"})
        right = self.rows("-m", plain, "--query", "a cat", docs, verb="rerank")
        for form in "two-labels", "no-architectures":
            self.assertEqual(self.rows("-m", forms / form, "--query", "a cat", docs, verb="rerank"), right)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
