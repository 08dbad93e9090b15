#!/usr/bin/env python3
"""Recall, false boxes and work of pith detect beside OpenCV's FaceDetectorYN: portraits scaled and pasted on backgrounds.

usage: measure_faces.py PITH [--portraits FILE...] [--count N] [--workers N] [--ort-python FOLDER]; needs
NumPy, Pillow and opencv-python-headless (tests/faces.txt). Prints the table of docs/faces.md. Heights of faces are drawn so that every factor
is as likely; a face is found if a box has an IoU of at least 0.7 with it, and a box is false if no face has 0.3 with it.
Pith has default options; OpenCV looks at the picture's own size, and at the picture scaled to fit into 640x640. The right
boxes are OpenCV's in the portraits at 320x320. With --ort-python, the folder of a Python that has onnxruntime, ONNX Runtime
must find the same faces.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

os.environ["OPENCV_LOG_LEVEL"] = "ERROR"
import cv2
from PIL import Image, ImageFilter

from pasted_faces import FACES, YUNET, iou, write_ppm

# Size of the picture, borders between ranges of heights; whether the page says that faces of the first range are found.
CASES = (((640, 480), (30, 60, 150, 470), True), ((1920, 1080), (30, 60, 150, 400, 1000), True),
         ((4000, 3000), (30, 130, 400, 1000, 2000), False))
RUN = 640 * 640  # pixels of a run at the declared size
SIZES = ((4000, 3000), (3000, 4000), (4600, 2600), (12000, 1000))


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


# cv2 adds an empty entry to LD_LIBRARY_PATH, with which Pith loads no library from a folder that has some.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}


def pith(a, paths, *more):
    done = subprocess.run([a.pith, "detect", "-m", YUNET, "--json", *more, *paths], capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode:
        sys.exit(f"measure_faces: pith detect ends with {done.returncode}: {done.stderr}")
    return [[f["box"] for f in json.loads(line)["faces"]] for line in done.stdout.splitlines()]


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
        return f"{self.found} of {self.faces}, {self.false}, {low}"


def ort_faults(a, path, boxes):
    """Faces that ONNX Runtime does not find, or finds elsewhere, and those that it finds alone."""
    found = pith(a, [path], "--runtime", "ort", "--runtime-strict", "--ort-python", a.ort_python)[0]
    return abs(len(found) - len(boxes)) + sum(max((iou(b, o) for o in found), default=0) < 0.7 for b in boxes)


def look(a, folder, faces, size, borders, says_first, i):
    """Picture i of a size: the face's height and box, the boxes of the three, and the faces that differ with ONNX Runtime."""
    random = np.random.default_rng([size[0], i])
    least = borders[0] if says_first or i % 8 == 0 else borders[1]
    most = borders[1] if least == borders[0] and not says_first else borders[-1]
    tall = float(np.exp(random.uniform(np.log(least), np.log(most))))
    picture, right = with_face(random, size, *faces[i % len(faces)], tall)
    path = Path(folder) / f"{size[0]}_{i}.ppm"
    write_ppm(path, picture)
    own = pith(a, [path])[0]
    faults = ort_faults(a, path, own) if a.ort_python else 0
    path.unlink()
    return tall, right, (own, opencv(picture), opencv(picture, 640)), faults


def recall(a, folder):
    """Pith and OpenCV at the two sizes, over all that the page says; and the faces that differ with ONNX Runtime."""
    faces, sums, faults = list(portraits(a.portraits)), [Tally() for _ in range(3)], 0
    print("| picture | face | Pith | OpenCV, own size | OpenCV, 640x640 |\n|---|---|---|---|---|")
    for size, borders, says_first in CASES:
        ranges = list(zip(borders, borders[1:]))
        tallies = [[Tally() for _ in range(3)] for _ in ranges]
        with ThreadPoolExecutor(a.workers) as pool:
            looked = pool.map(lambda i: look(a, folder, faces, size, borders, says_first, i), range(a.count))
            for tall, right, found, other in looked:
                faults += other
                where = max(k for k, (low, _) in enumerate(ranges) if tall >= low)
                for k, boxes in enumerate(found):
                    tallies[where][k].add(boxes, right)
                    if says_first or where:
                        sums[k].add(boxes, right)
        for (low, high), rows in zip(ranges, tallies):
            said = "" if says_first or low != borders[0] else ", smaller than said above"
            print(f"| {size[0]}x{size[1]} | {low} to {high}{said} |", " | ".join(map(str, rows)), "|", flush=True)
    print("| all except those | |", " | ".join(map(str, sums)), "|")
    return sums, faults


def pixels_of_runs(a, folder, picture):
    """How many pixels the network was run on."""
    path, profile = Path(folder) / "runs.ppm", Path(folder) / "runs.json"
    write_ppm(path, picture)
    subprocess.run([a.pith, "detect", "-m", YUNET, "--profile", profile, path], check=True, capture_output=True)
    steps = [e["args"] for e in json.loads(profile.read_text())["traceEvents"] if e.get("cat") == "step"]
    firsts = [re.match(r"float32 \[1, 3, (\d+), (\d+)\]", s["shapes"]) for s in steps]
    return sum(int(m[1]) * int(m[2]) for m in firsts if m)


def work(a, folder):
    """The most that pictures of 12 megapixels cost, and those of 640x480, in runs of 640x640."""
    face, box = next(portraits(a.portraits))
    large, small = [], []
    for size in SIZES:
        large.append(pixels_of_runs(a, folder, with_face(np.random.default_rng(5), size, face, box, size[1] / 3)[0]))
    for tall in (40, 200, 470):
        small.append(pixels_of_runs(a, folder, with_face(np.random.default_rng(6), (640, 480), face, box, tall)[0]))
    return max(large) / RUN, max(small) / RUN


def false_boxes(a, folder):
    """Of Pith and of OpenCV in pictures without faces."""
    random, paths, theirs = np.random.default_rng(7), [], 0
    for i in range(200):
        width, height = (int(n) for n in random.integers(64, 1400, 2))
        picture = background(random, width, height)
        if i % 2:
            picture = np.asarray(Image.fromarray(picture).filter(ImageFilter.EMBOSS))
        paths.append(Path(folder) / f"{i}.ppm")
        write_ppm(paths[-1], picture)
        theirs += len(opencv(picture))
    return sum(map(len, pith(a, paths))), theirs, len(paths)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pith")
    parser.add_argument("--portraits", nargs="+", default=sorted(FACES.glob("portrait_*.jpg")))
    parser.add_argument("--count", type=int, default=48)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--ort-python")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sums, faults = recall(a, folder)
        large, small = work(a, folder)
        empty, theirs, pictures = false_boxes(a, folder)
    print(f"\n{pictures} pictures without faces: {empty} boxes, OpenCV {theirs}")
    print(f"the most work, in runs of 640x640: 12 megapixels {large:.2f}, 640x480 {small:.2f}")
    print(f"faces that differ with ONNX Runtime: {faults}" if a.ort_python else "ONNX Runtime: not asked for")
    said = {"recall below 0.98": sums[0].found < 0.98 * sums[0].faces, "more false boxes than OpenCV": sums[0].false > sums[1].false,
            "boxes in pictures without faces": empty, "more than three runs for 12 megapixels": large > 3,
            "more than one run for 640x480": small > 1, "other faces with ONNX Runtime": faults}
    for what, fault in said.items():
        if fault:
            print("FAULT:", what)
    sys.exit(any(said.values()))


main()
