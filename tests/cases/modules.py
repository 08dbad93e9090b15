#!/usr/bin/env python3
"""Model folders with settings of sentence-transformers that were passed over without a word.

usage: modules.py PITH SOURCE_DIR [unittest arguments]; needs NumPy (tests/requirements.txt).
"""
import json
import shutil
import sys
import unittest

import numpy as np

from command import SOURCE, Command

CASES = SOURCE / "tests/data/cases"


class Modules(Command):
    stdin = b"hello world\n"

    def copy(self, case):
        shutil.copytree(CASES / case, self.dir / case)
        return self.dir / case

    def change(self, folder, file, **keys):
        path = folder / file
        path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))

    def test_arguments_of_from_pretrained(self):
        """What transformers would apply is refused by name; what changes no number is not."""
        folder = self.copy("transformer-arguments")
        self.bad(1, "-m", folder, says=("config_args", "'layer_norm_eps'", "config.json"))
        for key in ("config_kwargs", "tokenizer_args", "processor_kwargs", "model_args", "model_kwargs"):
            for value in ({"layer_norm_eps": 0.5}, {"truncation_side": "left"}, {"do_lower_case": True}):
                self.change(folder, "sentence_bert_config.json", config_args={}, **{key: value})
                self.bad(1, "-m", folder, says=(key, f"'{[*value][0]}'"))
            harmless = {"trust_remote_code": True, "revision": "main", "layer_norm_eps": None}
            self.change(folder, "sentence_bert_config.json", config_args=harmless, **{key: harmless})
            self.good("-m", folder)

    def test_adapter(self):
        """The value is that of sentence-transformers 5.7 with peft 0.21."""
        folder = self.copy("adapter-beside-weights")
        row = self.rows("-m", folder)[0]
        np.testing.assert_allclose(row[:3], [-0.029898, 0.054464, -0.332872], atol=1e-6)
        self.assertIn("added to the weights beside it", self.good("-m", folder, verb="inspect", stdin=b"").decode())
        (folder / "adapter_config.json").unlink()
        row = self.rows("-m", folder)[0]
        np.testing.assert_allclose(row[:3], [-0.086477, 0.392054, -0.049031], atol=1e-6)

    def adapted(self, name, alone):
        """A folder with one of the adapters of make_adapter_cases.py, beside the weights or with them in folder base."""
        folder = self.dir / f"{name}{alone}"
        shutil.copytree(CASES / "adapter-beside-weights", folder)
        for file in (CASES / "lora" / name).iterdir():
            shutil.copy(file, folder)
        if alone:
            base = self.dir / "base"
            base.mkdir(exist_ok=True)
            for file in ("config.json", "model.safetensors"):
                shutil.move(folder / file, base / file)
        return folder

    def test_adapters(self):
        """rslora, tables of vectors, ranks of layers and whole tensors, as peft 0.21 applies them."""
        for name, expected in json.loads((CASES / "lora/expected.json").read_text()).items():
            for alone in (True, False):
                with self.subTest(name=name, alone=alone):
                    row = self.rows("-m", self.adapted(name, alone))[0]
                    np.testing.assert_allclose(row, expected, atol=2e-6)

    def test_adapters_that_are_refused(self):
        folder = self.copy("adapter-beside-weights")
        for key, value in {"use_dora": True, "bias": "all", "alpha_pattern": {"query": 2}, "peft_type": "IA3",
                           "init_lora_weights": "pissa", "lora_bias": True, "fan_in_fan_out": True,
                           "layer_replication": [[0, 1]], "trainable_token_indices": [3], "a_new_key": 1}.items():
            before = (folder / "adapter_config.json").read_text()
            self.change(folder, "adapter_config.json", **{key: value})
            self.bad(1, "-m", folder, says=("adapter_config.json", f"'{key}'", "merge_and_unload"))
            (folder / "adapter_config.json").write_text(before)
        alone = self.adapted("ranks", True)
        shutil.rmtree(self.dir / "base")
        self.bad(1, "-m", alone, says=("adapter_config.json", "base", "base_model_name_or_path"))
        (folder / "adapter_model.safetensors").unlink()
        self.bad(1, "-m", folder, says="adapter_model")

    def test_adapter_of_another_network(self):
        folder = self.copy("adapter-beside-weights")
        other = self.adapted("rslora", False)
        weights = other / "adapter_model.safetensors"
        weights.write_bytes(weights.read_bytes().replace(b"encoder.layer.0", b"encoder.layer.7"))
        self.bad(1, "-m", other, says=("adapter_model.safetensors", "encoder.layer.7", "base_model_name_or_path"))
        self.good("-m", folder)

    def cross_encoder(self, name, files):
        """A folder as make_cross_encoder_cases.py writes it."""
        folder = self.dir / name.replace(" ", "-")
        shutil.copytree(CASES / "reranker-label-count/two-labels", folder)
        config = json.loads((folder / "config.json").read_text())
        del config["num_labels"]
        (folder / "config.json").write_text(json.dumps({**config, "id2label": {"0": "LABEL_0"}, **files.get("config.json", {})}))
        for file, keys in files.items():
            if file != "config.json":
                (folder / file).write_text(json.dumps(keys))
        if name.startswith("adapter"):
            shutil.rmtree(self.dir / "base", ignore_errors=True)
            (self.dir / "base").mkdir()
            for file in ("config.json", "model.safetensors"):
                shutil.move(folder / file, self.dir / "base" / file)
            for file in (CASES / "cross-encoder/adapter").iterdir():
                shutil.copy(file, folder)
        return folder

    def test_cross_encoders(self):
        """The scores of CrossEncoder of sentence-transformers 5.7 and 6.2, wherever the activation stands."""
        (self.dir / "documents").write_text("a cat\nhello world\nthe quick brown fox\n")
        for case in json.loads((CASES / "cross-encoder/expected.json").read_text()):
            with self.subTest(case["name"]):
                folder = self.cross_encoder(case["name"], case["files"])
                said = self.run_pith("-m", folder, "-q", "a cat", "documents", verb="rerank")
                self.assertEqual(said.returncode, 0, said.stderr.decode())
                rows = [json.loads(line) for line in said.stdout.splitlines()]
                scores = {row["index"]: row["score"] for row in rows}
                np.testing.assert_allclose([scores[i] for i in range(3)], case["scores"], atol=2e-6)
                warned = "their.own.Identity" if "foreign" in case["name"] else ""
                self.assertIn(warned, said.stderr.decode())
                if not warned and case["name"] != "keys of the constructor":
                    self.assertEqual(said.stderr, b"")

    def test_activations_that_are_refused(self):
        """One that is torch's and is not computed is named, with the file that has it."""
        for file, files in {
            "config.json": {"config.json": {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh"}}},
            "config_sentence_transformers.json": {
                "config_sentence_transformers.json": {"model_type": "CrossEncoder",
                                                      "activation_fn": "torch.nn.modules.activation.Tanh"},
                "modules.json": [{"idx": 0, "name": "0", "path": "",
                                  "type": "sentence_transformers.base.modules.transformer.Transformer"}],
                "sentence_bert_config.json": {"transformer_task": "sequence-classification"}}}.items():
            folder = self.cross_encoder("refused-" + file, files)
            self.bad(1, "-m", folder, "-q", "a", stdin=b"b\n", verb="rerank", says=(file + ": ", "activation.Tanh"))

    def test_every_module_is_known(self):
        """Each class that the pinned sentence-transformers has is a line of modules.def: it is run, or refused by name."""
        listed = (SOURCE / "tests/data/cases/module-classes.txt").read_text().split()
        shutil.copytree(CASES / "transformer-arguments", self.dir / "m")
        for name in listed:
            modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models." + name}]
            (self.dir / "m/modules.json").write_text(json.dumps(modules))
            said = self.run_pith("-m", "m").stderr.decode()
            self.assertNotIn("supported are", said, name)
        self.assertGreater(len(listed), 20)
        modules[0]["type"] = "sentence_transformers.models.Unheard"
        (self.dir / "m/modules.json").write_text(json.dumps(modules))
        self.bad(1, "-m", "m", says=("Unheard", "supported are"))

    def test_clip_methods(self):
        """A Transformer with get_text_features is the folder without modules.json: text_embeds."""
        folder = self.copy("st6-clip-methods")
        row = self.rows("-m", folder)
        for name in ("modules.json", "sentence_bert_config.json"):
            (folder / name).unlink()
        self.assertEqual(row, self.rows("-m", folder))
        np.testing.assert_allclose(row[0][:3], [-0.781692, 0.274284, 0.153799], atol=2e-6)

    def test_clip_pictures(self):
        """get_image_features of the same folder; sentence-transformers 6.2 resizes with torchvision, which differs by 3e-4."""
        picture = CASES / "clip-processor-config/picture.png"
        row = self.rows("-m", self.copy("st6-clip-methods"), "--images", picture)[0]
        np.testing.assert_allclose(row[:6], [0.7777, -1.32438, 0.79483, -0.13862, 0.04733, -1.15414], atol=1e-3)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
