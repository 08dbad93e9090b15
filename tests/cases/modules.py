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
        """sentence-transformers 5.7 with peft 0.21 applies the adapter; it is refused by name here."""
        folder = self.copy("adapter-beside-weights")
        self.bad(1, "-m", folder, says=("adapter_config.json", "merge_and_unload"))
        (folder / "adapter_config.json").unlink()
        row = self.rows("-m", folder)[0]
        np.testing.assert_allclose(row[:3], [-0.086477, 0.392054, -0.049031], atol=1e-6)

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
