#!/usr/bin/env python3
"""Lists the module classes of the installed sentence-transformers, or compares them with tests/data/cases/module-classes.txt.

usage: list_modules.py [--check]      (needs sentence-transformers: tests/references_5.txt)
A class that is not in the file must get a line in src/select/modules.def, MODULE or REFUSED, and then one in the file.
"""
import importlib
import inspect
import pathlib
import pkgutil
import sys

import sentence_transformers
import torch

FILE = pathlib.Path(__file__).resolve().parent.parent / "data/cases/module-classes.txt"
# Bases of others, models as a whole, and layers inside of modules: modules.json names none of them.
NO_MODULES = {"BaseModel", "BaseTokenPooling", "CrossEncoder", "InputModule", "Module", "MultiVectorEncoder",
              "SentenceTransformer", "SparseEncoder", "TiedTranspose", "_Float32Linear"}


def classes():
    found = set()
    for info in pkgutil.walk_packages(sentence_transformers.__path__, "sentence_transformers."):
        if any(part in info.name for part in ("train", "evaluation", "losses", "datasets", "backend")):
            continue
        for name, item in vars(importlib.import_module(info.name)).items():
            if inspect.isclass(item) and issubclass(item, torch.nn.Module) and "Loss" not in name:
                if item.__module__.startswith("sentence_transformers"):
                    found.add(name)
    return sorted(found - NO_MODULES)


if __name__ == "__main__":
    if sys.argv[1:] != ["--check"]:
        print("\n".join(classes()))
    elif unknown := set(classes()) - set(FILE.read_text().split()):
        sys.exit(f"not in {FILE.name}: {', '.join(sorted(unknown))}")
