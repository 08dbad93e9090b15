#!/usr/bin/env python3
"""Recall, false boxes and overlap of pith detect beside OpenCV's FaceDetectorYN: portraits scaled and pasted on backgrounds.

usage: measure_faces.py PITH [--portraits FILE...] [--count N] [--ort LIBRARY]; needs NumPy, Pillow and opencv-python-headless
(tests/faces.txt). For each size of picture and height of face: faces found with IoU of at least 0.7, and boxes without a face,
of Pith with default options, of OpenCV at the picture's own size, and of OpenCV with the picture scaled to fit into 640x640.
Then the boxes in pictures without faces. The right boxes are OpenCV's in the portraits at 320x320.
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
from PIL import Image, ImageFilter

from pasted_faces import FACES, YUNET, iou, write_ppm

# Size of the picture, heights of faces.
CASES = (((640, 480), (30, 45, 70, 110, 170, 260, 380, 470)), ((1920, 1080), (30, 45, 70, 150, 300, 600, 900)),
         ((4000, 3000), (90, 110, 130, 160, 200, 400, 700, 1000, 1400, 2000)))


def opencv(picture, side=None):
    height, width = picture.shape[:2]
    scale = min(1, side / max(width, height)) if side else 1
    if scale < 1:
        picture = cv2.resize(picture, (round(width * scale), round(height * scale)), interpolation=cv2.INTER_AREA)
    detector = cv2.FaceDetectorYN.create(str(YUNET), "", (picture.shape[1], picture.shape[0]), 0.9, 0.3, 5000)
    rows = detector.detect(np.ascontiguousarray(picture[..., ::-1]))[1]
    return [r[:4] / scale for r in rows] if rows is not None else []


def background(random, width, height):
    """Soft patches with a little noise."""
    small = random.integers(0, 256, (int(random.integers(2, 12)), int(random.integers(2, 12)), 3)).astype(np.uint8)
    soft = np.asarray(Image.fromarray(small).resize((width, height), Image.BICUBIC)).astype(np.int16)
    noise = random.integers(-12, 13, (height, width, 1), dtype=np.int16)
    return np.clip(soft + noise, 0, 255).astype(np.uint8)


def portraits(paths):
    """Each with the box of its face."""
    for path in paths:
        whole = Image.open(path).convert("RGB")
        small = np.asarray(whole.resize((320, 320), Image.LANCZOS))
        yield whole, opencv(small)[0] * whole.width / 320


def with_face(random, size, face, box, tall):
    """A picture with this face, so many pixels high, whole in it; and its box."""
    picture = background(random, *size)
    scale = tall / box[3]
    side = max(8, round(face.width * scale))
    pasted = face.resize((side, side), Image.LANCZOS)
    where = box * side / face.width
    x, y = (int(random.integers(0, max(1, int(size[i] - where[2 + i])))) - int(where[i]) for i in (0, 1))
    whole = Image.fromarray(picture)
    whole.paste(pasted, (x, y))
    return np.asarray(whole), where + [x, y, 0, 0]


def pith(a, paths):
    more = ["--runtime", "ort", "--ort-library", a.ort] if a.ort else []
    out = subprocess.run([a.pith, "detect", "-m", YUNET, "--json", *more, *paths], check=True, capture_output=True, text=True).stdout
    return [[f["box"] for f in json.loads(line)["faces"]] for line in out.splitlines()]


class Tally:
    def __init__(self):
        self.faces = self.found = self.false = 0
        self.overlaps = []

    def add(self, boxes, right):
        overlaps = [iou(b, right) for b in boxes]
        best = max(overlaps, default=0)
        self.faces += 1
        self.found += best >= 0.7
        self.false += sum(o < 0.3 for o in overlaps)
        if best >= 0.3:
            self.overlaps.append(best)

    def __str__(self):
        low = f"{min(self.overlaps):.2f}" if self.overlaps else "-"
        return f"{self.found:4}/{self.faces:<4} {self.false:3} false, IoU >= {low}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pith")
    parser.add_argument("--portraits", nargs="+", default=[FACES / "face_1.jpg"])
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--ort")
    a = parser.parse_args()
    faces, sums = list(portraits(a.portraits)), [Tally() for _ in range(3)]
    with tempfile.TemporaryDirectory() as folder:
        for size, heights in CASES:
            for tall in heights:
                random, tallies = np.random.default_rng([size[0], tall]), [Tally() for _ in range(3)]
                for i in range(a.count):
                    picture, right = with_face(random, size, *faces[i % len(faces)], tall)
                    path = Path(folder) / "a.ppm"
                    write_ppm(path, picture)
                    for boxes, one, all_ in zip((pith(a, [path])[0], opencv(picture), opencv(picture, 640)), tallies, sums):
                        one.add(boxes, right)
                        all_.add(boxes, right)
                print("%dx%d, %d pixels:" % (*size, tall), " | ".join(map(str, tallies)), flush=True)
        print("all (Pith | OpenCV | OpenCV at 640):", " | ".join(map(str, sums)))
        random, paths = np.random.default_rng(7), []
        for i in range(200):
            width, height = (int(n) for n in random.integers(64, 1400, 2))
            picture = background(random, width, height)
            if i % 2:
                picture = np.asarray(Image.fromarray(picture).filter(ImageFilter.EMBOSS))
            paths.append(Path(folder) / f"{i}.ppm")
            write_ppm(paths[-1], picture)
        empty = sum(map(len, pith(a, paths)))
        print(f"{empty} boxes in {len(paths)} pictures without faces")
    sys.exit(bool(empty or sums[0].found < 0.98 * sums[0].faces or sums[0].false > sums[1].false))


main()
