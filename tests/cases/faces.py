"""Faces of any size, crops of pictures with one name, pictures that are passed over. What is right is known from OpenCV's
FaceDetectorYN; README files of tests/data say how.

usage: faces.py PITH SOURCE [UNITTEST-ARGUMENT...]
"""
import csv
import json
import shutil
import sys
import unittest

import numpy as np

from command import SOURCE, Command

sys.path.insert(0, str(SOURCE / "tests/comparisons"))
from pasted_faces import FACES, YUNET, iou, paste, read_png, write_ppm

CASES = SOURCE / "tests/data/cases"


class Faces(Command):
    options = ("-m", YUNET)

    def faces(self, *arguments):
        return [line["faces"] for line in self.rows("--json", *arguments, verb="detect")]

    def files(self, folder):
        return sorted(str(p.relative_to(self.dir / folder)) for p in (self.dir / folder).rglob("*") if p.is_file())


class AnySize(Faces):
    def test_large(self):
        """12 megapixels with a face of 700 pixels, found by default as at 640x640."""
        picture = CASES / "detect-large/phone2.jpg"
        (found,), (scaled,) = self.faces(picture), self.faces(picture, "--detect-size", "640x640")
        self.assertEqual((len(found), len(scaled)), (1, 1))
        self.assertGreater(iou(np.array(found[0]["box"]), np.array(scaled[0]["box"])), 0.8)
        result = self.run_pith("-o", "out", picture, verb="crop")
        self.assertEqual((result.returncode, self.files("out")), (0, ["phone2_1.jpg"]))

    def test_sizes(self):
        """One face of 40 to 900 pixels in pictures that fit into 640x640, into full HD, and larger ones."""
        face = read_png(FACES / "face_2.png")
        for (width, height), sides in (((640, 480), (60, 200, 600)), ((1600, 1000), (60, 300, 900)), ((3000, 2000), (300, 1200))):
            for side in sides:
                picture = np.full((height, width, 3), (90, 120, 150), np.uint8)
                paste(picture, face, (width / 2, height / 2), side, 0)
                write_ppm(self.dir / "p.ppm", picture)
                (found,) = self.faces("p.ppm")
                self.assertEqual(len(found), 1, (width, side))
                x, y, w, h = (n / side for n in found[0]["box"])
                self.assertLess(max(abs(w - 0.57), abs(h - 0.72)), 0.1, (width, side))

    def test_original(self):
        """A picture in its own size only: the face of 700 pixels is too large for that."""
        self.assertEqual(self.faces(CASES / "detect-large/phone2.jpg", "--detect-size", "original"), [[]])
        result = self.run_pith("-o", "out", "--detect-size", "original", CASES / "detect-large/phone2.jpg", verb="crop")
        self.assertIn(b"0 crops of 1 pictures", result.stderr)

    def test_empty(self):
        random = np.random.default_rng(3)
        for i, (width, height) in enumerate(((500, 400), (900, 700), (2100, 1100), (1000, 40))):
            rough = random.integers(0, 256, (height // 20, width // 20, 3), dtype=np.uint8)
            write_ppm(self.dir / f"{i}.ppm", rough.repeat(20, 0).repeat(20, 1))
        self.assertEqual(self.faces("."), [[]] * 4)

    def test_score(self):
        self.bad(2, "--score", "0.6", "x.jpg", says=("root|product", "--score-threshold"), verb="detect")
        for verb, more in (("detect", ()), ("crop", ("-o", "out"))):
            self.bad(2, *more, "--score-threshold", "90", "x.jpg", says="--score-threshold is from 0 to 1, not 90", verb=verb)
            self.bad(2, *more, "--nms-threshold", "1.5", "x.jpg", says="--nms-threshold is from 0 to 1, not 1.5", verb=verb)
            self.bad(2, *more, "--score-threshold", "high", "x.jpg", says="must be a number that is not negative, not 'high'", verb=verb)


class Names(Faces):
    def crop(self, *arguments):
        result = self.run_pith("-o", "out", "--report", "list.csv", *arguments, verb="crop")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.dir / "list.csv", newline="") as file:
            return list(csv.DictReader(file)), self.files("out")

    def test_files(self):
        """Pictures of one name have crops of their own, and the list says which is whose."""
        pictures = [CASES / f"crop-names/cam{i}/IMG_0001.jpg" for i in (1, 2)]
        rows, files = self.crop(*pictures)
        self.assertEqual(files, ["IMG_0001-2_1.jpg", "IMG_0001_1.jpg", "IMG_0001_2.jpg", "IMG_0001_3.jpg"])
        self.assertEqual(sorted(row["crop"] for row in rows), files)
        self.assertEqual([row["file"] for row in rows], [str(pictures[0])] * 3 + [str(pictures[1])])
        self.assertEqual(rows[3]["crop"], "IMG_0001-2_1.jpg")

    def test_folders(self):
        rows, files = self.crop(CASES / "crop-names/cam1", CASES / "crop-names/cam2")
        self.assertEqual(files, ["cam1/IMG_0001_1.jpg", "cam1/IMG_0001_2.jpg", "cam1/IMG_0001_3.jpg", "cam2/IMG_0001_1.jpg"])

    def test_endings(self):
        """a.png keeps its name; what becomes a PNG of that name gets another."""
        for name in ("a.bmp", "a.png", "a.tif"):
            (self.dir / "in").mkdir(exist_ok=True)
            shutil.copy(FACES / "face_1.png", self.dir / "in" / name)
        _, files = self.crop("in")
        self.assertEqual(files, ["a-2_1.png", "a-3_1.png", "a_1.png"])
        _, files = self.crop("in", "-o", "jpeg", "--format", "jpeg")
        self.assertEqual(self.files("jpeg"), ["a-2_1.jpg", "a-3_1.jpg", "a_1.jpg"])

    def test_numbers(self):
        """{stem}{n}: the second face of a and the first of a2... never share a file."""
        for i in (1, 2):
            shutil.copy(CASES / "crop-names/cam1/IMG_0001.jpg", self.dir / ("a.jpg", "a1.jpg")[i - 1])
        picture = np.full((200, 2000, 3), 128, np.uint8)
        for i in range(12):
            paste(picture, read_png(FACES / "face_2.png"), (80 + 160 * i, 100), 120, 0)
        write_ppm(self.dir / "a.ppm", picture)
        rows, files = self.crop("a1.jpg", "a.ppm", "--name", "{stem}{n}{ext}", "--format", "png")
        self.assertEqual((len(rows), len(files)), (15, 15))

    def test_annotate(self):
        self.good("--annotate", "out", *[CASES / f"crop-names/cam{i}/IMG_0001.jpg" for i in (1, 2)], verb="detect")
        self.assertEqual(self.files("out"), ["IMG_0001-2.jpg", "IMG_0001.jpg"])


class PassedOver(Faces):
    def test_folder(self):
        """Counted by ending in the last line, and in the exit status."""
        (self.dir / "p/below").mkdir(parents=True)
        shutil.copy(FACES / "face_1.png", self.dir / "p/a.png")
        for name in ("IMG_0001.NEF", "c.jxl", "below/d.nef", "notes.txt", ".hidden.nef"):
            (self.dir / "p" / name).write_bytes(b"x")
        for verb, more in (("detect", ()), ("crop", ("-o", "out"))):
            result = self.run_pith(*more, "p", verb=verb)
            self.assertEqual(result.returncode, 1)
            self.assertIn("3 files ignored: 1 .jxl, 2 .nef", result.stderr.decode().splitlines()[-1])
        self.assertEqual(self.files("out"), ["a_1.png"])
        (self.dir / "p/a.png").unlink()
        self.bad(1, "p", says=("ignored", "no picture in this folder"), verb="detect")

    def test_embed(self):
        shutil.copytree(CASES / "clip-processor-config", self.dir / "p")
        (self.dir / "p/b.jxl").write_bytes(b"x")
        self.options = ("-m", CASES / "clip-processor-config")
        result = self.run_pith("--images", "--jsonl", "p", verb="embed")
        self.assertEqual((result.returncode, len(result.stdout.splitlines())), (1, 1))
        self.assertIn(b"1 file ignored: 1 .jxl", result.stderr)

    def test_named(self):
        (self.dir / "a.psd").write_bytes(b"8BPS\0\1")
        (self.dir / "b.mov").write_bytes(b"\0\0\0\x14ftypqt  \0\0\0\0qt  ")
        result = self.run_pith("a.psd", "b.mov", verb="detect")
        self.assertEqual((result.returncode, result.stderr.count(b"is not a format that is decoded")), (1, 2))


class Settings(Command):
    """image_processor of processor_config.json, as transformers 5 writes it."""
    verb = "embed"

    def setUp(self):
        super().setUp()
        self.model = self.dir / "model"
        shutil.copytree(CASES / "clip-processor-config", self.model)
        self.whole = json.loads((self.model / "processor_config.json").read_text())

    def vector(self):
        (line,) = self.rows("-m", self.model, "--images", "--jsonl", self.model / "picture.png")
        return line["embedding"]

    def change(self, name, value):
        (self.model / name).write_text(json.dumps(value))

    def test_section(self):
        """The vectors are those of the same object in preprocessor_config.json; where both are there, the section counts."""
        got, steps = self.vector(), self.whole["image_processor"]
        self.change("preprocessor_config.json", steps | {"image_mean": [0, 0, 0]})
        self.assertEqual(self.vector(), got)
        (self.model / "processor_config.json").unlink()
        self.assertNotEqual(self.vector(), got)
        self.change("preprocessor_config.json", steps)
        self.assertEqual(self.vector(), got)
        self.change("processor_config.json", {"processor_class": "CLIPProcessor"})
        self.assertEqual(self.vector(), got)
        self.change("processor_config.json", {"image_processor": steps | {"image_processor_type": "CLIPImageProcessorPil"}})
        (self.model / "preprocessor_config.json").unlink()
        self.assertEqual(self.vector(), got)

    def test_refused(self):
        self.change("processor_config.json", {"image_processor": self.whole["image_processor"] | {"do_other": True}})
        self.bad(1, "-m", self.model, "--images", self.model / "picture.png", says=("processor_config.json", "do_other"))


class Telemetry(Faces):
    def test_crop(self):
        result = self.run_pith("-o", "out", "--telemetry", "json", "--profile", "p.json", FACES / "face_1.png", verb="crop")
        stages = {json.loads(line)["stage"] for line in result.stderr.decode().splitlines() if line.startswith("{")}
        self.assertLessEqual({"open", "decode", "infer", "write"}, stages)
        self.assertIn("crop", (self.dir / "p.json").read_text())
        self.assertIn("postprocess", stages)

    def test_stats(self):
        picture = CASES / "crop-names/cam1/IMG_0001.jpg"
        (self.dir / "bad.jpg").write_bytes(b"x")
        result = self.run_pith("--stats-file", "d.json", picture, "bad.jpg", verb="detect")
        told = json.loads((self.dir / "d.json").read_text())
        self.assertEqual((result.returncode, told["pictures"], told["faces"], told["failed"]), (1, 2, 3, 1))
        self.assertGreater(told["statistics"]["runs"], 0)
        result = self.run_pith("-o", "out", "--stats", "--sharpness", "1e9", picture, verb="crop")
        told = json.loads(result.stderr.decode().splitlines()[-1])
        self.assertEqual([told[k] for k in ("pictures", "faces", "crops", "not_sharp", "failed")], [1, 3, 0, 3, 0])
        self.assertGreater(told["seconds"], 0)
        (self.dir / "map.csv").write_text(f"file,name,x,y,w,h\n{picture},a.png,10,10,50,50\n")
        self.options = ()
        self.run_pith("-o", "out", "--map", "map.csv", "--stats-file", "m.json", verb="crop")
        told = json.loads((self.dir / "m.json").read_text())
        self.assertEqual((told["crops"], "statistics" in told), (1, False))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
