#!/usr/bin/env python3
"""Compares the keys that families list (src/models/architectures/hf_keys.h) with the configuration classes of transformers.

usage: compare_configs.py     (with the Python of tests/references_4.txt, then of tests/references_5.txt)
Every key of a class must be in a list of its family, and a default that a list states must be the class's. A fixed value
must be the class's default as well. Prints what differs; the exit status is 1 if anything does.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
from transformers import PretrainedConfig, __version__  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent / "src"
# Families of one model_type: the one that is transformers' own.
NATIVE = {"nomic_bert": "nomic_native", "bert": "bert", "xlm-roberta": "xlm_roberta"}
# What an instance says otherwise than its class takes for an absent key.
COMPUTED = {("qwen2", "sliding_window"): "None without use_sliding_window",
            ("qwen3", "sliding_window"): "None without use_sliding_window",
            ("distilbert", "intermediate_size"): "not of the class",
            ("gemma", "hidden_act"): "read as gelu_pytorch_tanh if it is gelu"}


def preprocessed(file):
    return subprocess.run(["cc", "-E", "-P", f"-I{SOURCE}", f"-I{SOURCE.parent / 'include'}", file],
                          capture_output=True, text=True, check=True).stdout


def strings(text):
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))


def words(text):
    """{key: default or None}"""
    return {word.partition("=")[0]: word.partition("=")[2] or None for word in text.split()}


def key_lists():
    """{name of a pith__hf_keys: {list: {key: default}}}"""
    found = {}
    for file in sorted((SOURCE / "models/architectures").glob("*.c")):
        if "pith__hf_keys" not in file.read_text():
            continue
        for name, body in re.findall(r"const pith__hf_keys (\w+) = \{(.*?)\};", preprocessed(file), re.S):
            lists = {n: re.search(rf"\.{n}\s*=((?:\s*\"[^\"]*\")+)", body) for n in ("reads", "fixed", "ignores")}
            found[file.stem, name] = {n: words(strings(m.group(1))) if m else {} for n, m in lists.items()}
    return found


def families():
    """{name: (model_type, {list: {key: default}})}"""
    found, lists = {}, key_lists()
    for file in sorted((SOURCE / "models/architectures").glob("family_*.c")):
        text = preprocessed(file)
        keys = re.search(r"\.keys\s*=\s*&(\w+)", text).group(1)
        own = [value for (stem, name), value in lists.items() if name == keys and stem in (file.stem, keys_file(keys))]
        model_type = re.search(r'\.model_type\s*=\s*"([^"]+)"', text).group(1)
        found[file.stem.removeprefix("family_")] = model_type, own[0]
    return found


def keys_file(keys):
    """Towers share the lists of hf_clip.c and hf_siglip.c."""
    return "_".join(keys.removeprefix("pith__").split("_")[:2])


def common():
    text = preprocessed(SOURCE / "models/architectures/hf_keys.c")
    return [words(strings(re.search(rf"{name}\[\]\s*=((?:\s*\"[^\"]*\")+)", text).group(1)))
            for name in ("hf_keys_common", "hf_keys_common_fixed")]


def same(stated, value):
    if value is None or value == {} or value == []:
        return stated in ("null", "{}", "[]") or stated == "false"
    if isinstance(value, bool):
        return stated == json.dumps(value)
    if isinstance(value, (int, float)):
        return float(stated) == value
    return stated == value


def compare(name, model_type, lists, ignored, fixed):
    everywhere = ignored | fixed | lists["reads"] | lists["fixed"] | lists["ignores"]
    config = CONFIG_MAPPING[model_type]()
    faults = []
    for key, value in config.to_dict().items():
        if key not in everywhere:
            faults.append(f"'{key}' is in no list (default {value!r})")
            continue
        stated = lists["reads"].get(key) or (fixed | lists["fixed"]).get(key)
        if stated and (model_type, key) not in COMPUTED and not same(stated, value):
            faults.append(f"'{key}' has the default {stated}, in the class {value!r}")
    return [f"{name}: {fault}" for fault in faults]


def main():
    ignored, fixed = common()
    faults, count = [], 0
    for name, (model_type, lists) in families().items():
        if model_type not in CONFIG_MAPPING or NATIVE.get(model_type, name) != name:
            continue
        count += 1
        faults += compare(name, model_type, lists, ignored, fixed)
    faults += [f"common: '{key}' is in no list" for key in PretrainedConfig().to_dict() if key not in ignored | fixed]
    print("\n".join(faults + [f"transformers {__version__}: {count} families, {len(faults)} faults"]))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
