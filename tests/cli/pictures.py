#!/usr/bin/env python3
"""pith embed --images: where pictures come from, the forms of the result, and what is refused.

usage: pictures.py PITH SOURCE_DIR [unittest arguments]; needs NumPy (tests/requirements.txt).
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

import numpy as np

from command import PITH, SOURCE, Command

VISION, IMAGES = SOURCE / "tests/data/vision", SOURCE / "tests/data/images"
NAMES = ["rgb.png", "palette.png", "rgb.bmp", "grey.pgm", "rgba.png"]
PATHS = [IMAGES / n for n in NAMES]
VIT = VISION / "vit"
EXPECTED = np.fromfile(VIT / "images.f32", "<f4").reshape(len(NAMES), -1)


class Pictures(Command):
    options = ("--images",)

    def close(self, rows, expected=EXPECTED):
        np.testing.assert_allclose(np.array(rows, float), expected, atol=1e-5)

    def test_formats(self):
        self.close([json.loads(line) for line in self.good("-m", VIT, *PATHS).splitlines()])
        self.close(np.frombuffer(self.good("-m", VIT, "--format", "f32", *PATHS), "<f4").reshape(EXPECTED.shape))
        self.good("-m", VIT, "--format", "npy", "-o", "v.npy", *PATHS)
        self.close(np.load(self.dir / "v.npy"))
        self.good("-m", VIT, "--format", "npy", "-o", "h.npy", "--dtype", "f16", *PATHS)
        self.assertEqual(np.load(self.dir / "h.npy").dtype, np.float16)
        rows = [json.loads(line) for line in self.good("-m", VIT, "--jsonl", *PATHS).splitlines()]
        self.assertEqual([r["path"] for r in rows], [str(p) for p in PATHS])
        self.close([r["embedding"] for r in rows])

    def test_options(self):
        short = [json.loads(line) for line in self.good("-m", VIT, "--dim", 4, "--normalize", *PATHS).splitlines()]
        self.close(short, EXPECTED[:, :4] / np.linalg.norm(EXPECTED[:, :4], axis=1, keepdims=True))
        mean = [json.loads(line) for line in self.good("-m", VIT, "--pooling", "mean", *PATHS).splitlines()]
        self.close(mean, np.fromfile(VIT / "rows.f32", "<f4").reshape(len(NAMES), -1))
        one, two = (self.good("-m", VIT, "--threads", n, *PATHS) for n in (1, 2))
        self.assertEqual(one, two)

    def test_folders(self):
        """Pictures of a folder and of those below it, in the order of their paths; other files are passed over."""
        (self.dir / "a/below").mkdir(parents=True)
        for name, to in (("rgb.bmp", "a/2.BMP"), ("rgb.png", "a/1.png"), ("rgba.png", "a/below/0.png")):
            shutil.copy(IMAGES / name, self.dir / to)
        (self.dir / "a/notes.txt").write_text("no picture")
        (self.dir / "a/.hidden.png").write_text("no picture")
        (self.dir / "a/below/up").symlink_to(self.dir / "a")
        rows = [json.loads(line) for line in self.good("-m", VIT, "--jsonl", "a").splitlines()]
        self.assertEqual([r["path"] for r in rows], ["a/1.png", "a/2.BMP", "a/below/0.png"])
        self.close([r["embedding"] for r in rows], EXPECTED[[0, 2, 4]])
        (self.dir / "empty").mkdir()
        self.bad(1, "-m", VIT, "empty", says="empty: there is no picture in this folder")

    def test_paths_from_stdin(self):
        text = "".join(f"{p}\n" for p in PATHS).encode()
        self.close([json.loads(line) for line in self.good("-m", VIT, stdin=text).splitlines()])
        self.close([json.loads(line) for line in self.good("-m", VIT, "-0", stdin=text.replace(b"\n", b"\0")).splitlines()])
        objects = "".join(json.dumps({"id": i, "file": str(p)}) + "\n" for i, p in enumerate(PATHS)).encode()
        rows = [json.loads(line) for line in self.good("-m", VIT, "--jsonl", "--field", "file", stdin=objects).splitlines()]
        self.assertEqual([(r["id"], r["file"]) for r in rows], [(i, str(p)) for i, p in enumerate(PATHS)])
        self.close([r["embedding"] for r in rows])

    def test_bad_pictures(self):
        """A picture that cannot be read has a message and a row that is no vector; the others are there."""
        (self.dir / "broken.jpg").write_bytes((IMAGES / "rgb.jpg").read_bytes()[:200])
        (self.dir / "text.png").write_text("no picture")
        files = [PATHS[0], "broken.jpg", "missing.png", PATHS[1], "text.png", PATHS[2]]
        out = self.bad(1, "-m", VIT, *files, says=["broken.jpg: ", "missing.png: ", "text.png: what the bytes hold"]).stdout
        rows = [json.loads(line) for line in out.splitlines()]
        self.close([rows[0], rows[3], rows[5]], EXPECTED[:3])
        for i in (1, 2, 4):
            self.assertEqual(rows[i], [None] * 16)
        self.bad(1, "-m", VIT, "--format", "npy", "-o", "v.npy", *files)
        self.assertEqual(np.isnan(np.load(self.dir / "v.npy")).all(axis=1).tolist(), [False, True, True, False, True, False])
        self.bad(1, "-m", VIT, "--format", "npy", "--dtype", "int8", "-o", "v.npy", *files)
        rows = np.load(self.dir / "v.npy")  # the others are what zeros become
        self.assertTrue((rows[[1, 2, 4]] == rows[1]).all() and (rows[[0, 3, 5]] != rows[1]).any(axis=1).all())
        self.bad(1, "-m", VIT, "--max-pixels", 100, PATHS[0], says="max_pixels is 100")
        result = self.run_pith("-m", VIT, "--stats", *files)
        stats = json.loads(result.stderr.decode().splitlines()[-1])
        self.assertEqual((stats["pictures"], stats["failed"]), (6, 3))

    def test_many_pixels(self):
        """A picture that claims 10^9 pixels is refused before memory is taken for them."""
        (self.dir / "huge.ppm").write_bytes(b"P6 40000 25000 255\n" + b"\0" * 100)
        self.bad(1, "-m", VIT, "huge.ppm", says=["40000 x 25000", "max_pixels"])

    def test_onnx_directory(self):
        """model.onnx beside preprocessor_config.json: the network's own output of these pixels."""
        (self.dir / "onnx").mkdir()
        shutil.copy(SOURCE / "tests/data/families/clip-vision-script14/model.onnx", self.dir / "onnx")
        (self.dir / "onnx/preprocessor_config.json").write_text(json.dumps(
            {"image_processor_type": "CLIPImageProcessor", "do_resize": False, "do_center_crop": False,
             "do_normalize": False}))
        pixels = np.random.default_rng(3).integers(0, 256, (2, 32, 32, 3), np.uint8)
        for i, picture in enumerate(pixels):
            (self.dir / f"{i}.ppm").write_bytes(b"P6 32 32 255\n" + picture.tobytes())
        np.save(self.dir / "x.npy", (pixels.transpose(0, 3, 1, 2) / 255).astype(np.float32))
        subprocess.run([PITH, "run", "onnx/model.onnx", "-i", "pixel_values=x.npy", "-o", "out"], cwd=self.dir, check=True,
                       capture_output=True, timeout=60)
        expected = np.load(next((self.dir / "out").glob("*.npy")))
        rows = np.array([json.loads(line) for line in self.good("-m", "onnx", "0.ppm", "1.ppm").splitlines()])
        self.assertGreater(np.abs(expected[0] - expected[1]).max(), 1e-3)
        np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-6)
        (self.dir / "wide.ppm").write_bytes(b"P6 40 32 255\n" + bytes(40 * 32 * 3))
        out = self.bad(1, "-m", "onnx", "0.ppm", "wide.ppm", "1.ppm", says="wide.ppm: the model declares pictures of 3x32x32").stdout
        mixed = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(mixed[1], [None] * len(rows[0]))
        np.testing.assert_array_equal([mixed[0], mixed[2]], rows)

    def test_compiled(self):
        """A compiled file says the same as its directory, of which it needs nothing."""
        for name in "clip", "vit", "resnet":
            model, file = VISION / name, self.dir / f"{name}.pith"
            subprocess.run([PITH, "compile", "-q", "-o", file, model], check=True, capture_output=True, timeout=60)
            self.assertEqual(self.good("-m", file, *PATHS), self.good("-m", model, *PATHS))
        text = subprocess.run([PITH, "inspect", self.dir / "clip.pith"], capture_output=True, timeout=60).stdout.decode()
        self.assertIn("one vector of 12 numbers per picture, 24 x 24 pixels, processed as CLIPImageProcessor", text)

    def test_resume(self):
        """What an earlier call wrote is kept; other pictures are refused."""
        self.good("-m", VIT, "-o", "all.jsonl", *PATHS)
        whole = (self.dir / "all.jsonl").read_bytes()
        lines = whole.splitlines(keepends=True)
        (self.dir / "v.jsonl.part").write_bytes(b"".join(lines[:3]) + lines[3][:20])
        self.good("-m", VIT, "--resume", "-o", "v.jsonl", *PATHS)
        self.assertEqual((self.dir / "v.jsonl").read_bytes(), whole)
        (self.dir / "w.jsonl.part").write_bytes(b"".join(lines[:3]))
        self.bad(1, "-m", VIT, "--resume", "-o", "w.jsonl", *PATHS[1:], says="remove it to start over")

    def test_refused(self):
        self.bad(1, "-m", VISION / "clip-text", PATHS[0], says="it has no input of pixels")
        self.bad(2, "-m", VIT, "--sparse", PATHS[0], says="--images makes dense vectors only")
        self.bad(2, "-m", VIT, "--max-length", 5, PATHS[0], says="are for texts")
        self.bad(1, "-m", VIT, "--dim", 17, PATHS[0], says="dim 17 is not between 1 and the model's 16")
        shutil.copytree(VIT, self.dir / "bare")
        (self.dir / "bare/preprocessor_config.json").unlink()
        self.bad(1, "-m", "bare", PATHS[0], says="put the model's preprocessor_config.json next to it")
        shutil.copytree(VIT, self.dir / "unknown")
        config = self.dir / "unknown/preprocessor_config.json"
        config.write_text(config.read_text().replace("ViTImageProcessor", "FooImageProcessor"))
        self.bad(1, "-m", "unknown", PATHS[0], says=["preprocessor_config.json: image_processor_type: "
                                                     "'FooImageProcessor' is not supported; correct the file"])
        result = subprocess.run([PITH, "embed", "-m", VIT], input=b"text\n", capture_output=True, timeout=60)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"its input is a picture; 'pith embed --images'", result.stderr)

    def test_full_disk(self):
        if os.path.exists("/dev/full"):
            self.bad(1, "-m", VIT, "-o", "/dev/full", *PATHS, says="No space left on device")

    def test_inspect(self):
        text = subprocess.run([PITH, "inspect", VISION / "clip"], capture_output=True, timeout=60).stdout.decode()
        self.assertIn("one vector of 12 numbers per picture, 24 x 24 pixels, processed as CLIPImageProcessor", text)
        found = json.loads(subprocess.run([PITH, "inspect", "--json", VIT], capture_output=True, timeout=60).stdout)
        self.assertEqual(found["pictures"], {"embeds": True, "dim": 16, "channels": 3, "height": 24, "width": 24,
                                             "processor": "ViT"})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
