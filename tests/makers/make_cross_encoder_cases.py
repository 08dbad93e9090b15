#!/usr/bin/env python3
"""Writes tests/data/cases/cross-encoder: what CrossEncoder's scores are with settings in different places, and with an adapter.

usage: make_cross_encoder_cases.py [--check]
Needs sentence-transformers and peft: tests/references_5.txt writes, and tests/references_4.txt must find the same with --check.
"""
import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import peft
import sentence_transformers
import torch
from sentence_transformers import CrossEncoder
from transformers import AutoModelForSequenceClassification

CASES = pathlib.Path(__file__).resolve().parent.parent / "data/cases"
NETWORK, OUT = CASES / "reranker-label-count/two-labels", CASES / "cross-encoder"
QUERY, DOCUMENTS = "a cat", ["a cat", "hello world", "the quick brown fox"]
IDENTITY, SIGMOID = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid"
SOFTMAX, FOREIGN = "torch.nn.modules.activation.Softmax", "their.own.Identity"
MODULES = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}]
TRANSFORMER = {"transformer_task": "sequence-classification", "module_output_name": "scores",
               "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}}}
SAVED = {"modules.json": MODULES, "sentence_bert_config.json": TRANSFORMER}
OWN, OLD, KEPT = "sentence_transformers", "sbert_ce_default_activation_function", "config_sentence_transformers.json"
ADAPTER = "adapter"  # the network's weights and config.json are in a folder of their own


def saved(**keys):
    return {**SAVED, KEPT: {"model_type": "CrossEncoder", **keys}}


def config(**keys):
    return {"config.json": keys}


CONFIGURATIONS = {  # name: keys of files
    "nothing": {},
    "config": config(**{OWN: {"activation_fn": IDENTITY}}),
    "config null before the older key": config(**{OWN: {"activation_fn": None}, OLD: IDENTITY}),
    "config without the key": config(**{OWN: {"version": "5.0.0"}, OLD: IDENTITY}),
    "older key": config(**{OLD: IDENTITY}),
    "older key that is null": config(**{OLD: None}),
    "keys of the constructor": config(default_activation_function=IDENTITY, activation_fn=IDENTITY),
    "softmax": config(**{OLD: SOFTMAX}),
    "foreign": config(**{OLD: FOREIGN}),
    "saved": saved(activation_fn=IDENTITY),
    "saved goes before config": {**saved(activation_fn=SIGMOID), **config(**{OWN: {"activation_fn": IDENTITY}})},
    "saved null": {**saved(activation_fn=None), **config(**{OWN: {"activation_fn": IDENTITY}})},
    "saved foreign": {**saved(activation_fn=FOREIGN), **config(**{OLD: IDENTITY})},
    "saved without modules": {KEPT: {"model_type": "CrossEncoder", "activation_fn": IDENTITY}},
    "saved of another model": {**SAVED, KEPT: {"model_type": "SentenceTransformer", "activation_fn": IDENTITY}},
    "saved without a type": {**SAVED, KEPT: {"activation_fn": IDENTITY}},
    "prompt": saved(activation_fn=IDENTITY, prompts={"ask": "find "}, default_prompt_name="ask"),
    ADAPTER: saved(),
    "adapter and the network's activation": {**saved(), **config(**{OLD: IDENTITY})},
}


def write(folder, files):
    """A folder of the network, which has one label, with these keys in its files."""
    shutil.copytree(NETWORK, folder)
    config = json.loads((folder / "config.json").read_text())
    del config["num_labels"]
    (folder / "config.json").write_text(json.dumps(config | {"id2label": {"0": "LABEL_0"}}))
    # The class of the file is one of transformers 5, which gives no types of tokens.
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings |= {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "attention_mask"]}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    for name, keys in files.items():
        path = folder / name
        if isinstance(keys, dict) and path.exists():
            keys = {**json.loads(path.read_text()), **keys}
        path.write_text(json.dumps(keys))


def make_adapter(folder):
    model = AutoModelForSequenceClassification.from_pretrained(NETWORK, num_labels=1)
    settings = peft.LoraConfig(r=2, lora_alpha=5, target_modules=["query", "value"], task_type="SEQ_CLS")
    model = peft.get_peft_model(model, settings)
    torch.manual_seed(1)
    for key, weight in model.named_parameters():
        if "lora" in key:
            weight.data = torch.randn_like(weight) * 0.7
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = "base"
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")


def take_adapter(folder, base):
    base.mkdir()
    for file in ("config.json", "model.safetensors"):
        shutil.move(folder / file, base / file)
    for file in (OUT / ADAPTER).iterdir():
        shutil.copy(file, folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": str(base)}))


def main():
    if sys.argv[1:] != ["--check"]:
        shutil.rmtree(OUT / ADAPTER, ignore_errors=True)
        make_adapter(OUT / ADAPTER)
    expected = []
    for name, files in CONFIGURATIONS.items():
        if name.startswith(ADAPTER) and sentence_transformers.__version__ < "6":
            continue  # 5.7 fails: it takes the adapter's settings for the network's
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / "model"
            write(folder, files)
            if name.startswith(ADAPTER):
                take_adapter(folder, folder.parent / "base")
            model = CrossEncoder(str(folder), device="cpu")
            scores = model.predict([(QUERY, d) for d in DOCUMENTS])
            ranked = model.rank(QUERY, DOCUMENTS)
            assert sorted(scores, reverse=True) == [row["score"] for row in ranked]
            expected.append({"name": name, "files": files, "scores": [round(float(x), 6) for x in scores]})
            print(name, expected[-1]["scores"])
    if sys.argv[1:] != ["--check"]:
        (OUT / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
        return
    written = {case["name"]: case for case in json.loads((OUT / "expected.json").read_text())}
    for new in expected:
        old = written[new["name"]]
        assert old["files"] == new["files"], new["name"]
        np.testing.assert_allclose(new["scores"], old["scores"], atol=2e-6, err_msg=new["name"])


main()
