"""A model that has learned from many generated databases: make pretrain-relational. PITH GENERATE_DATABASE FOLDER

FOLDER gets the databases and the run; one that was interrupted goes on. The model is tests/data/relational/base.bin, and the same
command makes the same bytes. --compare FILE says whether they are those of FILE.
"""
import json
import pathlib
import resource
import subprocess
import sys

# None of the databases that tests ask about: their seeds begin at 100001.
SEEDS = range(1, 257)
CONFIG = {"dim": 48, "heads": 3, "ff": 144, "blocks": 3, "cells": 256, "width": 24, "latest": 12, "warmup": 300, "steps": 5000}


def database(pith, generate, folder, seed, labels=None):
    """The file of a generated database."""
    name = f"{seed}" if labels is None else f"{seed}-{labels}"
    source, file = folder / name, folder / f"{name}.rdb"
    if not file.exists():
        source.mkdir(exist_ok=True)
        subprocess.run([generate, str(seed), source, *([] if labels is None else [str(labels)])], check=True)
        subprocess.run([pith, "preprocess", source, "-o", file], check=True)
    return file


def main():
    pith, generate, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    files = [database(pith, generate, folder, seed) for seed in SEEDS]
    config = folder / "config.json"
    config.write_text(json.dumps(CONFIG))
    subprocess.run([pith, "train", *files, "--task", "target", "--no-compare", "--hyperparameters", config, "--seed", "1", "-o", folder / "run", "--save-every", "250",
                    "--evaluate-every", "1000000"], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{(used.ru_utime + used.ru_stime) / 60:.1f} minutes of processor time")
    if "--compare" in sys.argv:
        same = (folder / "run/model.bin").read_bytes() == pathlib.Path(sys.argv[sys.argv.index("--compare") + 1]).read_bytes()
        sys.exit("the model differs" if not same else 0)


if __name__ == "__main__":
    main()
