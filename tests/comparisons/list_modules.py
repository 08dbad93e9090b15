#!/usr/bin/env python3
"""Lists the module classes of the installed sentence-transformers and the keys that they write, or compares both with
tests/data/cases/module-classes.txt and module-keys.json.

usage: list_modules.py [--check | --keys]      (needs sentence-transformers: tests/references_5.txt, tests/references_4.txt)
A class that is not in the file must get a line in src/select/modules.def, MODULE or REFUSED, and then one in the file. A key
that is not in the file must get into the keys of the class (src/models/modules/module_*.c), and then into the file. --keys adds the keys of
the installed version to the file.
"""
import importlib
import inspect
import json
import pathlib
import pkgutil
import sys

import sentence_transformers
import torch

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data/cases"
FILE, KEYS = FOLDER / "module-classes.txt", FOLDER / "module-keys.json"
# Bases of others, models as a whole, and layers inside of modules: modules.json names none of them.
NO_MODULES = {"BaseModel", "BaseTokenPooling", "CrossEncoder", "InputModule", "Module", "MultiVectorEncoder",
              "SentenceTransformer", "SparseEncoder", "TiedTranspose", "_Float32Linear"}


def classes():
    found = {}
    for info in pkgutil.walk_packages(sentence_transformers.__path__, "sentence_transformers."):
        if any(part in info.name for part in ("train", "evaluation", "losses", "datasets", "backend")):
            continue
        for name, item in vars(importlib.import_module(info.name)).items():
            if inspect.isclass(item) and issubclass(item, torch.nn.Module) and "Loss" not in name:
                if item.__module__.startswith("sentence_transformers"):
                    found[name] = item
    return {name: found[name] for name in sorted(set(found) - NO_MODULES)}


def keys():
    """The file of each class and the keys that it writes there, with their older names."""
    return {name: [item.config_file_name, sorted({*item.config_keys, *getattr(item, "config_key_renames", {})})]
            for name, item in classes().items()}


def check():
    unknown = set(classes()) - set(FILE.read_text().split())
    if unknown:
        sys.exit(f"not in {FILE.name}: {', '.join(sorted(unknown))}")
    written = json.loads(KEYS.read_text())
    for name, (file, names) in keys().items():
        if file != written[name][0] or set(names) - set(written[name][1]):
            sys.exit(f"not in {KEYS.name}: {name}, {file}: {', '.join(sorted(set(names) - set(written[name][1])))}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--keys"]:
        table = json.loads(KEYS.read_text()) if KEYS.exists() else {}
        for name, (file, names) in keys().items():
            table[name] = [file, sorted({*names, *table.get(name, [file, []])[1]})]
        KEYS.write_text("{\n" + ",\n".join(f" {json.dumps(n)}: {json.dumps(table[n])}" for n in sorted(table)) + "\n}\n")
    elif sys.argv[1:] == ["--check"]:
        check()
    else:
        print("\n".join(classes()))
