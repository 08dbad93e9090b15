#!/usr/bin/env python3
"""pith detect beside OpenCV's FaceDetectorYN, on the same pixels.

usage: compare_faces.py PITH [--count N] [--seed N] [--model FILE] [--store]; needs NumPy and opencv-python-headless
(tests/faces.txt). --store writes OpenCV's faces of the first 40 pictures to tests/data/faces/opencv.json.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

os.environ["OPENCV_LOG_LEVEL"] = "ERROR"
import cv2

from pasted_faces import FACES, YUNET, differences, pictures, rows_of, write_ppm

STORED = 40


def opencv_faces(picture, model, threshold, overlap):
    detector = cv2.FaceDetectorYN.create(str(model), "", (picture.shape[1], picture.shape[0]), threshold, overlap, 5000)
    rows = detector.detect(np.ascontiguousarray(picture[..., ::-1]))[1]
    return np.zeros((0, 15)) if rows is None else rows.astype(float)


def store():
    rows = [opencv_faces(p, YUNET, 0.6, 0.3) for p in pictures(STORED)]
    text = ",\n".join(json.dumps([[round(float(x), 4) for x in r] for r in picture]) for picture in rows)
    (FACES / "opencv.json").write_text(f"[{text}]\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pith")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default=YUNET)
    parser.add_argument("--store", action="store_true")
    a = parser.parse_args()
    if a.store:
        return store()
    total = compared = left_out = 0
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        made = list(pictures(a.count, a.seed))
        paths = [Path(folder) / f"{i:04}.ppm" for i in range(len(made))]
        for path, picture in zip(paths, made):
            write_ppm(path, picture)
        for threshold, overlap in ((0.9, 0.3), (0.6, 0.3), (0.6, 0.6)):
            out = subprocess.run([a.pith, "detect", "-m", a.model, "--json", "--score-threshold", str(threshold),
                                  "--nms-threshold", str(overlap), *paths], check=True, capture_output=True, text=True).stdout
            for i, (line, picture) in enumerate(zip(out.splitlines(), made, strict=True)):
                wanted = opencv_faces(picture, a.model, threshold, overlap)
                said, n, out_of = differences(rows_of(json.loads(line)), wanted, threshold)
                faults += [f"picture {i}, {threshold}, {overlap}: {f}" for f in said]
                total, compared, left_out = total + len(wanted), compared + n, left_out + out_of
    print("\n".join(faults))
    print(f"{total} faces of OpenCV, {compared} the same, {left_out} left out, {len(faults)} faults")
    sys.exit(bool(faults) or not compared or left_out > 0.02 * total)


main()
