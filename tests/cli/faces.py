#!/usr/bin/env python3
"""pith detect: the same faces as OpenCV and as a decoding in NumPy on ONNX Runtime's outputs; sizes, formats, pictures
that are broken, and a model whose declared shapes contradict each other.

usage: faces.py PITH SOURCE_DIR [unittest arguments]; needs NumPy, onnx, onnxruntime (tests/requirements.txt).
"""
import csv
import json
import sys
import unittest

import numpy as np
import onnx
import onnxruntime

from command import PITH, SOURCE, Command

sys.path.insert(0, str(SOURCE / "tests/python"))
from pasted_faces import FACES, YUNET, decode, differences, iou, network_input, paste, pictures, read_png, rows_of, write_ppm

onnxruntime.set_default_logger_severity(3)


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
            lines = self.lines(*paths, "--score-threshold", threshold, "--nms-threshold", overlap, "--score", rule)
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
        lines = self.lines(*paths, "--score-threshold", 0.6)
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
        """ONNX Runtime, which takes the declared size only, gets pictures scaled to it."""
        result = self.run_pith("--json", self.face, "--runtime", "ort", "--ort-library", "absent.so")
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"builtin runtime runs the model instead of ort", result.stderr)
        ort = self.lines(self.face, "--runtime", "ort", "--runtime-strict", "--ort-python", sys.prefix)
        scaled = self.lines(self.face, "--size", "640x640")
        faults, _, _ = differences(rows_of(ort[0]), rows_of(scaled[0]), 0.9)
        self.assertEqual((faults, len(scaled[0]["faces"])), ([], 1))


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
        (line,) = self.lines("large.ppm", "--size", "256", "--score-threshold", "0.6")
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
        lines = self.lines("--raw", "256x256", "--score-threshold", "0.5", stdin=data)
        self.assertEqual([line.pop("file") for line in lines], ["frame:0", "frame:1", "frame:2"])
        files = self.lines(*[f"{i}.ppm" for i in range(3)], "--score-threshold", "0.5")
        self.assertEqual(lines, [{k: v for k, v in line.items() if k != "file"} for line in files])
        self.assertGreater(sum(len(line["faces"]) for line in lines), 1)
        result = self.bad(1, "--raw", "256x256", "--json", stdin=data[:-5], says=("196603 bytes", "has 196608"))
        self.assertEqual(len(result.stdout.splitlines()), 2)
        self.bad(2, "--raw", "256x256", self.face, says="nothing else")
        self.bad(2, "--raw", "256", "--annotate", "x", says="nothing else")

    def test_thresholds(self):
        _, paths = self.write(20)
        few = sum(len(line["faces"]) for line in self.lines(*paths))
        more = sum(len(line["faces"]) for line in self.lines(*paths, "--score-threshold", "0.5"))
        all_of_them = sum(len(line["faces"]) for line in self.lines(*paths, "--score-threshold", "0.5", "--nms-threshold", "1"))
        one = self.lines(*paths, "--score-threshold", "0", "--top-k", "1")
        self.assertTrue(0 < few < more < all_of_them)
        self.assertEqual({len(line["faces"]) for line in one}, {1})

    def test_wrong_usage(self):
        self.bad(2, says="give it pictures")
        for arguments, says in ((("--size", "0x5"), "WIDTHxHEIGHT"), (("--size", "wide"), "WIDTHxHEIGHT"),
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
                (("--preset", "avatar"), (256, 256), 70, (x + w / 2, y + h / 2), (0.5, 0.5))):
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
        self.crop("-o", "out", "--format", "png", "--level", "--size", "256", "p.ppm")
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
        self.bad(1, "-o", "out", "in", "--list", "crops.csv", says=("cut.jpg", "2 crops of 3 pictures"))
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
        self.good("--strict-shapes", "--size", "640", self.face)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
