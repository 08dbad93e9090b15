#!/usr/bin/env python3
"""Writes tests/data/cases/lora: adapters of peft for the network of adapter-beside-weights, and the vectors they give.

usage: make_adapter_cases.py      (needs sentence-transformers and peft: tests/references_5.txt)
"""
import json
import pathlib
import shutil
import tempfile

import peft
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

CASES = pathlib.Path(__file__).resolve().parent.parent / "data/cases"
BASE, OUT = CASES / "adapter-beside-weights", CASES / "lora"
SETTINGS = {
    "rslora": dict(r=4, lora_alpha=3, use_rslora=True, target_modules=["query", "key", "dense"]),
    "table": dict(r=2, lora_alpha=5, target_modules=["word_embeddings", "value"]),
    "ranks": dict(r=2, lora_alpha=4, target_modules=["query", "value"], rank_pattern={"query": 3}),
    "saved": dict(r=2, lora_alpha=4, target_modules=["query"], modules_to_save=["position_embeddings"]),
}


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    expected = {}
    for number, (name, settings) in enumerate(SETTINGS.items()):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder) / "model"
            shutil.copytree(BASE, folder, ignore=shutil.ignore_patterns("adapter*"))
            model = peft.get_peft_model(AutoModel.from_pretrained(folder), peft.LoraConfig(**settings))
            torch.manual_seed(number)
            for key, weight in model.named_parameters():
                if "lora" in key or "modules_to_save" in key:
                    weight.data = torch.randn_like(weight) * 0.7
            model.save_pretrained(OUT / name)
            (OUT / name / "README.md").unlink(missing_ok=True)
            config = json.loads((OUT / name / "adapter_config.json").read_text())
            # The network stands in a folder of its own; the model's folder has the adapter only.
            base = folder.parent / "base"
            base.mkdir()
            for file in ("config.json", "model.safetensors"):
                shutil.move(folder / file, base / file)
            config["base_model_name_or_path"] = "base"
            (OUT / name / "adapter_config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")
            for file in (OUT / name).iterdir():
                shutil.copy(file, folder)
            (folder / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": str(base)}))
            vector = SentenceTransformer(str(folder), device="cpu").encode("hello world")
            expected[name] = [round(float(x), 6) for x in vector]
            print(name, expected[name][:3], sorted(load_file(OUT / name / "adapter_model.safetensors"))[:3])
    (OUT / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


main()
