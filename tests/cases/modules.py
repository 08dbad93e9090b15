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

    def arguments(self, folder, **keys):
        """Settings of the module Transformer with these arguments."""
        settings = {"max_seq_length": 32, "do_lower_case": False, **keys}
        (folder / "sentence_bert_config.json").write_text(json.dumps(settings))

    def test_arguments_of_from_pretrained(self):
        """What transformers would apply is applied or refused by name; what changes no number is passed over."""
        folder = self.copy("transformer-arguments")
        for key in ("config_args", "config_kwargs", "tokenizer_args", "processor_kwargs", "model_args", "model_kwargs"):
            for value in ({"layer_norm_eps": 0.5}, {"truncation_side": "left"}, {"do_lower_case": True}, {"rope_theta": 3},
                          {"hidden_act": ["relu"]}):
                if not (key.startswith("config") and "layer_norm_eps" in value):
                    self.arguments(folder, **{key: value})
                    self.bad(1, "-m", folder, says=(key, f"'{[*value][0]}'", "config.json"))
            harmless = {"trust_remote_code": True, "revision": "main", "layer_norm_eps": None}
            self.arguments(folder, config_args=harmless, **({} if key == "config_args" else {key: harmless}))
            self.good("-m", folder)

    def test_arguments_before_config(self):
        """The values are those of sentence-transformers 5.7 and 6.2, where config_args counts instead of config_kwargs."""
        folder = self.copy("transformer-arguments")
        narrow = [-0.038514, 0.414664, -0.078634, 0.094864, -0.595268, 0.498136, -0.433475, 0.144927]
        both = [-0.085818, 0.390887, -0.084742, 0.075273, -0.64198, 0.507911, -0.360935, 0.163123]
        plain = [-0.086477, 0.392054, -0.049031, 0.066004, -0.672755, 0.444491, -0.36934, 0.213239]
        for expected, keys in ((narrow, {"config_args": {"layer_norm_eps": 0.5}}),
                               (narrow, {"config_kwargs": {"layer_norm_eps": 0.5}}),
                               (both, {"config_args": {"hidden_act": "relu", "layer_norm_eps": 0.25}}),
                               (plain, {"config_args": {}, "config_kwargs": {"layer_norm_eps": 0.5}}),
                               (plain, {"config_kwargs": {"layer_norm_eps": 0.5}, "config_args": {}})):
            with self.subTest(keys=keys):
                self.arguments(folder, **keys)
                np.testing.assert_allclose(self.rows("-m", folder)[0], expected, atol=2e-6)
        self.arguments(folder, config_args={"rms_norm_eps": 0.5})
        self.bad(1, "-m", folder, says=("config_args", "'rms_norm_eps'", "model_type"))
        self.arguments(folder, config_args={"layer_norm_eps": 0.5})
        self.assertIn(b'before config.json: "layer_norm_eps": 0.5', self.good("-m", folder, verb="inspect"))
        self.assertEqual(self.run_pith(folder, "-o", "x.onnx", verb="export").returncode, 0)
        self.assertEqual(self.run_pith("-m", folder, "-o", "x.pith", verb="compile").returncode, 0)
        np.testing.assert_allclose(self.rows("-m", self.dir / "x.pith")[0], narrow, atol=2e-6)
        shutil.copy(self.dir / "x.onnx", folder / "model.onnx")
        self.bad(1, "-m", folder, says=("config_args", '"layer_norm_eps": 0.5', "cannot be applied"))

    def test_adapter(self):
        """The value is that of sentence-transformers 5.7 with peft 0.21."""
        folder = self.copy("adapter-beside-weights")
        row = self.rows("-m", folder)[0]
        np.testing.assert_allclose(row[:3], [-0.029898, 0.054464, -0.332872], atol=1e-6)
        self.assertIn("added to the weights next to it", self.good("-m", folder, verb="inspect", stdin=b"").decode())
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

    def test_adapter_beside_an_onnx_file(self):
        """The file is run as it is, and that is said; without the file the adapter is added."""
        folder = self.copy("adapter-beside-weights")
        with_adapter = self.rows("-m", folder)
        hidden = [folder / name for name in ("adapter_config.json", "adapter_model.safetensors")]
        kept = [(path, path.read_bytes()) for path in hidden]
        for path in hidden:
            path.unlink()
        without = self.rows("-m", folder)
        self.assertEqual(self.run_pith(folder, "-o", "x.onnx", verb="export").returncode, 0)
        for path, content in kept:
            path.write_bytes(content)
        shutil.copy(self.dir / "x.onnx", folder / "model.onnx")
        for model in folder, folder / "model.onnx":
            with self.subTest(model=model):
                ran = self.run_pith("-m", model)
                self.assertEqual(ran.returncode, 0, ran.stderr.decode())
                np.testing.assert_allclose([json.loads(line) for line in ran.stdout.splitlines()], without, atol=1e-6)
                said = ran.stderr.decode().splitlines()
                self.assertEqual(len(said), 1, said)
                self.assertIn("adapter_config.json: this adapter is left out", said[0])
                self.assertIn("adapter: left out", self.run_pith("-m", model, verb="inspect").stdout.decode())
        (folder / "model.onnx").unlink()
        self.assertEqual(self.rows("-m", folder), with_adapter)

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
                said = self.run_pith("-m", folder, "--query", "a cat", "documents", verb="rerank")
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
            self.bad(1, "-m", folder, "--query", "a", stdin=b"b\n", verb="rerank", says=(file + ": ", "activation.Tanh"))

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

    def edit(self, path, change):
        """The JSON file with what change(its content) makes of it."""
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    def test_unknown_keys(self):
        """A key that nobody knows is said once, with its file, and inspect lists it; the vector is as before."""
        modules = SOURCE / "tests/data/modules"
        shutil.copytree(modules / "dense", self.dir / "m")
        shutil.copytree(modules / "router-first", self.dir / "r")
        before = self.rows("-m", "m")
        dense, pooling = (next(p.name for p in (self.dir / "m").glob("*_" + name)) for name in ("Dense", "Pooling"))
        changes = {
            "m/config_sentence_transformers.json": (lambda c: c.update(query_scale=2), "query_scale"),
            "m/modules.json": (lambda c: c[-1].update(scale=2), "scale"),
            f"m/{dense}/config.json": (lambda c: c.update(dense_scale=2), "dense_scale"),
            f"m/{pooling}/config.json": (lambda c: c.update(pooling_power=2), "pooling_power"),
            "r/router_config.json": (lambda c: c["parameters"].update(second_route="a"), "parameters.second_route"),
            **{f"m/{p.name}": (lambda c: c.update(tokenizer_name_or_path="x"), "tokenizer_name_or_path")
               for p in (self.dir / "m").glob("sentence_*_config.json")}}
        for path, (change, key) in changes.items():
            with self.subTest(path):
                text = (self.dir / path).read_text()
                self.edit(self.dir / path, change)
                folder, file = path.split("/", 1)
                ran = self.run_pith("-m", folder)
                self.assertEqual(ran.returncode, 0, ran.stderr.decode())
                lines = ran.stderr.decode().splitlines()
                self.assertEqual(len(lines), 1, lines)
                self.assertIn(f"{file}: '{key}' is not known", lines[0])
                if folder == "m":
                    self.assertEqual([json.loads(line) for line in ran.stdout.splitlines()], before)
                decided = json.loads(self.run_pith("-m", folder, "--json", verb="inspect").stdout)["decisions"]
                self.assertIn({"what": "module settings not known", "value": key, "file": file}, decided)
                (self.dir / path).write_text(text)
        self.assertEqual(self.rows("-m", "m"), before)

    def test_keys_of_sentence_transformers(self):
        """No key that the pinned versions write is unknown: module-keys.json has those of every class."""
        written = json.loads((CASES / "module-keys.json").read_text())
        seen = set()
        for folder in sorted((SOURCE / "tests/data/modules").iterdir()):
            if not (folder / "modules.json").exists():
                continue
            for module in json.loads((folder / "modules.json").read_text()):
                name = module["type"].split(".")[-1]
                file, keys = written.get(name, ["", []])
                if name in seen or not (folder / module["path"] / file).is_file():
                    continue
                seen.add(name)
                shutil.copytree(folder, self.dir / name)
                path = self.dir / name / module["path"] / file
                for key in keys:
                    text = path.read_text()
                    self.edit(path, lambda content: content.get("parameters", content).setdefault(key, None))
                    self.assertNotIn("is not known", self.run_pith("-m", name).stderr.decode(), (name, key))
                    path.write_text(text)
        self.assertLessEqual({"CNN", "Dense", "Dropout", "LayerNorm", "Normalize", "Pooling", "Router", "Transformer"}, seen)

    def test_keys_of_a_model(self):
        """What the pinned versions write into config_sentence_transformers.json, or read there."""
        shutil.copytree(SOURCE / "tests/data/modules/dense", self.dir / "m")
        keys = {"__version__": {}, "model_type": "SentenceTransformer", "prompts": {}, "default_prompt_name": None,
                "similarity_fn_name": "cosine", "truncate_dim": None, "max_active_dims": None, "requirements": {},
                "activation_fn": None, "keep_in_fp32_modules": []}
        (self.dir / "m/config_sentence_transformers.json").write_text(json.dumps(keys))
        self.good("-m", "m")

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
