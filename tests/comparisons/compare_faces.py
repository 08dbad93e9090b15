#!/usr/bin/env python3
"""pith detect beside OpenCV's FaceDetectorYN, on the same pixels: pictures of any size, and scaled to fit into --detect-size.

usage: compare_faces.py PITH [--count N] [--seed N] [--model FILE] [--store]; needs NumPy, Pillow and opencv-python-headless
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
from PIL import Image

from pasted_faces import FACES, YUNET, differences, pictures, rows_of, write_ppm

STORED = 40
THRESHOLDS = ((0.9, 0.3), (0.6, 0.3), (0.6, 0.6))
# Multiples of 32 and others, wide and high; every fourth picture.
SIZES = ((320, 320), (333, 257), (190, 251), (97, 61), (640, 480), (1000, 1000))


def opencv_faces(picture, model, threshold, overlap):
    detector = cv2.FaceDetectorYN.create(str(model), "", (picture.shape[1], picture.shape[0]), threshold, overlap, 5000)
    rows = detector.detect(np.ascontiguousarray(picture[..., ::-1]))[1]
    return np.zeros((0, 15)) if rows is None else rows.astype(float)


def store():
    rows = [opencv_faces(p, YUNET, 0.6, 0.3) for p in pictures(STORED)]
    text = ",\n".join(json.dumps([[round(float(x), 4) for x in r] for r in picture]) for picture in rows)
    (FACES / "opencv.json").write_text(f"[{text}]\n")


def fitted(picture, size):
    """The picture in a corner of zeros of this size, as large as fits, with Pillow's scaling; and the factors back."""
    (height, width), (wide, high) = picture.shape[:2], size
    if width * high > height * wide:
        scaled = (wide, max(1, height * wide // width))
    else:
        scaled = (max(1, width * high // height), high)
    canvas = np.zeros((high, wide, 3), np.uint8)
    canvas[:scaled[1], :scaled[0]] = np.asarray(Image.fromarray(picture).resize(scaled, Image.BILINEAR))
    return canvas, np.array([width / scaled[0], height / scaled[1]])


class Comparison:
    def __init__(self, pith, model):
        self.pith, self.model, self.faults = pith, model, []
        self.total = self.compared = self.left_out = 0

    def lines(self, paths, threshold, overlap, *more):
        out = subprocess.run([self.pith, "detect", "-m", self.model, "--json", "--score-threshold", str(threshold), "--nms-threshold",
                              str(overlap), *more, *paths], check=True, capture_output=True, text=True).stdout
        return [json.loads(line) for line in out.splitlines()]

    def add(self, what, line, wanted, threshold):
        said, n, out_of = differences(rows_of(line), wanted, threshold)
        self.faults += [f"{what}: {f}" for f in said]
        self.total, self.compared, self.left_out = self.total + len(wanted), self.compared + n, self.left_out + out_of

    def own_size(self, paths, made):
        for threshold, overlap in THRESHOLDS:
            for i, (line, picture) in enumerate(zip(self.lines(paths, threshold, overlap, "--detect-size", "original"), made, strict=True)):
                self.add(f"picture {i}, {threshold}, {overlap}", line, opencv_faces(picture, self.model, threshold, overlap), threshold)

    def fitted(self, paths, made):
        for size in SIZES:
            lines = self.lines(paths, 0.6, 0.3, "--detect-size", "%dx%d" % size)
            for i, (line, picture) in enumerate(zip(lines, made, strict=True)):
                canvas, back = fitted(picture, size)
                wanted = opencv_faces(canvas, self.model, 0.6, 0.3)
                wanted[:, :14] *= np.tile(back, 7)
                self.add(f"picture {i}, size {size}", line, wanted, 0.6)


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
    c = Comparison(a.pith, a.model)
    with tempfile.TemporaryDirectory() as folder:
        made = list(pictures(a.count, a.seed))
        paths = [Path(folder) / f"{i:04}.ppm" for i in range(len(made))]
        for path, picture in zip(paths, made):
            write_ppm(path, picture)
        c.own_size(paths, made)
        own = c.compared
        c.fitted(paths[::4], made[::4])
    print("\n".join(c.faults))
    print(f"{c.total} faces of OpenCV, {c.compared} the same ({own} without --detect-size), {c.left_out} left out, {len(c.faults)} faults")
    sys.exit(bool(c.faults) or not own or c.compared == own or c.left_out > 0.02 * c.total)


main()
