"""Colour profile, resolution and alpha of crops and of pictures with boxes. Files are written and read by hand.

usage: pictures.py PITH SOURCE [UNITTEST-ARGUMENT...]
"""
import json
import shutil
import struct
import sys
import unittest
import zlib

import numpy as np

from command import SOURCE, Command

sys.path.insert(0, str(SOURCE / "tests/comparisons"))
from pasted_faces import FACES, YUNET
from pasted_faces import read_png as read_rgb
from picture_files import jpeg_profile, jpeg_segments, png, png_chunks, read_png, tiff, webp_chunks

CASES = SOURCE / "tests/data/cases"
WIDE = CASES / "crop-icc/wide.jpg"
PROFILE = jpeg_profile(WIDE.read_bytes())
GREY = PROFILE[:16] + b"GRAY" + PROFILE[20:]
INK = PROFILE[:12] + b"prtrCMYK" + PROFILE[20:]
DOTS = (300, 150)


class Formats(Command):
    """The same pixels in other files give the same vector, or nearly; a folder's pictures of these formats are read."""
    options = ("-m", SOURCE / "tests/data/vision/vit", "--images")

    def test_vectors(self):
        images = SOURCE / "tests/data/images"
        rows = np.array(self.rows(*(images / n for n in ("rgb.png", "rgb.bmp", "rgb.heic", "rgb.avif"))))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        np.testing.assert_array_equal(rows[0], rows[1])
        self.assertGreater(min(rows[2:] @ rows[0]), 0.999)  # YCbCr of 8 bits loses one in some pixels

    def test_folder(self):
        for name in ("rgb.heic", "rgb.avif", "rgb.gif", "runs8.bmp", "grid.heic"):
            (self.dir / "p").mkdir(exist_ok=True)
            shutil.copy(SOURCE / "tests/data/images" / name, self.dir / "p" / name)
        self.assertEqual(len(self.rows("--jsonl", "p")), 5)

    def test_crop(self):
        """A crop of what is not written is a PNG."""
        self.options = ()
        for name in ("grid.heic", "rgb.gif"):
            (self.dir / "map.csv").write_text(f"file,name,x,y,w,h\n{SOURCE}/tests/data/images/{name},{name},2,2,9,9\n")
            result = self.run_pith("--map", "map.csv", "-o", "out", verb="crop")
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([read_png(p.read_bytes()).shape for p in sorted((self.dir / "out").iterdir())], [(512, 512, 3)] * 2)


class Details(Command):
    verb = "crop"

    def setUp(self):
        super().setUp()
        self.face = read_rgb(FACES / "face_2.png")
        self.alpha = np.dstack([self.face, np.tile(np.arange(128, dtype=np.uint8) * 2, (128, 1))])

    def crop(self, name, data, ending, *more, says=()):
        """The face of a picture whose box is given, as a file of this ending."""
        (self.dir / name).write_bytes(data)
        (self.dir / "map.csv").write_text(f"file,name,x,y,w,h\n{name},c{ending},32,32,64,64\n")
        result = self.run_pith("--map", "map.csv", "-o", "out", "--size", "40x60", *more)
        self.assertEqual(result.returncode, 0, result.stderr)
        for part in says:
            self.assertIn(part, result.stderr.decode())
        if not says:
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)  # the count
        return (self.dir / f"out/c{ending}").read_bytes()

    def check(self, data, ending, profile, dots):
        """The crop has this profile and this resolution; None: none."""
        if ending == ".jpg":
            found = jpeg_profile(data)
            jfif = next(body for kind, body in jpeg_segments(data) if kind == 0xE0)
            self.assertEqual(struct.unpack(">BHH", jfif[7:12]), (1, *dots) if dots else (0, 1, 1))
        elif ending == ".png":
            chunks = png_chunks(data)
            found = zlib.decompress(chunks[b"iCCP"].split(b"\0", 1)[1][1:]) if b"iCCP" in chunks else b""
            self.assertEqual(chunks.get(b"pHYs"), struct.pack(">IIB", *(round(d / 0.0254) for d in dots), 1) if dots else None)
        else:
            chunks = webp_chunks(data)
            found = chunks.get(b"ICCP", b"")
            self.assertEqual(b"EXIF" in chunks, bool(dots))
            if dots:
                numbers = struct.unpack("<4I", chunks[b"EXIF"][-16:])
                found_dots = numbers[0] / numbers[1], numbers[2] / numbers[3]
                np.testing.assert_allclose(found_dots, dots, atol=0.0127)  # PNG has whole dots per metre
        self.assertEqual(found, profile or b"")

    def test_case(self):
        """A profile of a wide colour space, as phones write it, is in JPEG, PNG and WebP crops and in the picture with boxes."""
        for ending in ("jpeg", "png", "webp"):
            result = self.run_pith("-m", YUNET, "-o", ending, "--format", ending, WIDE)
            self.assertEqual(result.returncode, 0, result.stderr)
            names = sorted((self.dir / ending).iterdir())
            self.assertEqual(len(names), 3)
            for name in names:
                self.check(name.read_bytes(), name.suffix, PROFILE, None)
        self.good("-m", YUNET, "--annotate", "boxes", WIDE, verb="detect")
        self.assertEqual(jpeg_profile((self.dir / "boxes/wide.jpg").read_bytes()), PROFILE)

    def test_formats(self):
        for name, data in (("a.png", png(self.face, PROFILE, DOTS)), ("a.tif", tiff(self.face, PROFILE, DOTS)),
                           ("deep.png", png(self.face.astype(int) * 257, PROFILE, DOTS, depth=16))):
            for ending in (".jpg", ".png", ".webp"):
                self.check(self.crop(name, data, ending), ending, PROFILE, DOTS)
        data = self.crop("a.png", png(self.face, PROFILE, DOTS), ".webp")
        self.check(self.crop("b.webp", data, ".png"), ".png", PROFILE, DOTS)
        data = self.crop("a.png", png(self.face, PROFILE, DOTS), ".jpg")
        self.check(self.crop("b.jpg", data, ".webp"), ".webp", PROFILE, DOTS)
        self.check(self.crop("c.png", png(self.face), ".jpg"), ".jpg", None, None)

    def test_turned(self):
        """Turned upright by EXIF: the resolution's two numbers change places, and the crop has no orientation."""
        turned = np.rot90(self.face)  # orientation 6: turn it clockwise
        exif = b"MM\0*" + struct.pack(">IHHHII", 8, 1, 0x112, 3, 1, 6 << 16) + bytes(4)
        chunk = struct.pack(">I", len(exif)) + b"eXIf" + exif + struct.pack(">I", zlib.crc32(b"eXIf" + exif))
        got = self.crop("t.png", png(turned, PROFILE, DOTS, more=chunk), ".png")
        self.check(got, ".png", PROFILE, DOTS[::-1])
        self.assertNotIn(b"eXIf", png_chunks(got))
        np.testing.assert_array_equal(read_png(got), read_png(self.crop("u.png", png(self.face), ".png")))

    def test_exif_resolution(self):
        """Of a JPEG without JFIF, as cameras write them: 200 by 100 dots per centimetre."""
        data = self.crop("a.png", png(self.face), ".jpg")
        entries = struct.pack("<HHII", 0x11A, 5, 1, 50) + struct.pack("<HHII", 0x11B, 5, 1, 58) + struct.pack("<HHII", 0x128, 3, 1, 3)
        exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 3) + entries + bytes(4) + struct.pack("<4I", 200, 1, 100, 1)
        app1 = b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif
        self.check(self.crop("b.jpg", data[:2] + app1 + data[20:], ".jpg"), ".jpg", None, (508, 254))

    def test_alpha(self):
        """In PNG and WebP; in JPEG the picture is laid over the colour of --fill. Scaled as Pillow scales RGBA."""
        whole = ("--size", "128x128", "--face-height", "50")  # the box is half of the picture: every pixel stays
        for data in (png(self.alpha), tiff(self.alpha, alpha=True)):
            np.testing.assert_array_equal(read_png(self.crop("a.x", data, ".png", *whole)), self.alpha)
        data = self.crop("a.png", png(self.alpha), ".webp", *whole, "--quality", "100")
        back = read_png(self.crop("b.webp", data, ".png", *whole))
        np.testing.assert_array_equal(back[..., 3], self.alpha[..., 3])
        np.testing.assert_array_equal(back[:, 1:], self.alpha[:, 1:])  # WebP does not keep colours that nobody sees
        jpeg = self.crop("a.png", png(self.alpha), ".jpg", *whole, "--fill", "#ff8000", "--quality", "100")
        got = read_png(self.crop("c.jpg", jpeg, ".png", *whole)).astype(float)
        share = self.alpha[..., 3:] / 255
        np.testing.assert_allclose(got, self.alpha[..., :3] * share + np.array([255, 128, 0]) * (1 - share), atol=12)

    def test_alpha_outside(self):
        """Where the picture ends the fill is opaque."""
        got = read_png(self.crop("a.png", png(self.alpha), ".png", "--size", "256x256", "--face-height", "25", "--fill", "#102030"))
        self.assertEqual([tuple(got[y, x]) for y, x in ((0, 0), (255, 255))], [(16, 32, 48, 255)] * 2)
        np.testing.assert_array_equal(got[64:192, 64:192], self.alpha)

    def test_level_alpha(self):
        """Turned crops have alpha between that of their neighbours."""
        (self.dir / "a.png").write_bytes(png(np.dstack([self.face, np.full((128, 128), 200, np.uint8)])))
        result = self.run_pith("-m", YUNET, "-o", "out", "--upright", "--face-height", "100", "a.png")
        self.assertEqual(result.returncode, 0, result.stderr)
        got = read_png((self.dir / "out/a_1.png").read_bytes())
        self.assertEqual(set(np.unique(got[100:400, 100:400, 3])), {200})

    def test_grey(self):
        """A profile for grey goes with a crop that is grey; else it is told."""
        grey = self.face[..., 1:2]
        for ending in (".png", ".jpg"):
            data = self.crop("g.png", png(grey, GREY, DOTS), ending)
            self.check(data, ending, GREY, DOTS)
        self.assertEqual(read_png(self.crop("g.png", png(grey, GREY), ".png")).shape, (60, 40, 1))
        lost = ("g.png: its colour profile is for grey", "convert the picture to sRGB")
        self.check(self.crop("g.png", png(grey, GREY, DOTS), ".webp", says=lost), ".webp", None, DOTS)
        wide = ("--face-height", "10", "--fill", "#ff0000")
        self.check(self.crop("g.png", png(grey, GREY), ".png", *wide, says=lost), ".png", None, None)
        two = np.dstack([grey, self.alpha[..., 3:]])
        self.check(self.crop("g.png", png(two, GREY), ".png", says=lost), ".png", None, None)

    def test_ink(self):
        """The pixels of CMYK become RGB without its profile, which is told."""
        ink = np.dstack([255 - self.face, np.zeros((128, 128), np.uint8)])
        got = self.crop("i.tif", tiff(ink, INK, photometric=5), ".png", says=("i.tif: its colour profile is not for RGB",))
        self.check(got, ".png", None, None)

    def test_damaged(self):
        for bad in (PROFILE[:100], PROFILE[:36] + b"acxx" + PROFILE[40:]):
            for name, data in (("d.png", png(self.face, bad)), ("d.tif", tiff(self.face, bad))):
                got = self.crop(name, data, ".png", says=(f"{name}: its colour profile is damaged",))
                self.check(got, ".png", None, None)

    def test_gamma(self):
        """Colours of PNG that are said by gAMA or cICP are told where they are not those of sRGB."""
        def gamma(n):
            body = b"gAMA" + struct.pack(">I", n)
            return struct.pack(">I", 4) + body + struct.pack(">I", zlib.crc32(body))

        def coded(*numbers):
            body = b"cICP" + bytes(numbers)
            return struct.pack(">I", 4) + body + struct.pack(">I", zlib.crc32(body))

        self.crop("g.png", png(self.face, more=coded(1, 13, 0, 1)), ".png")
        self.crop("g.png", png(self.face, more=coded(9, 16, 0, 1)), ".png", says=("g.png: its colours are not those of sRGB, by cICP",))
        self.crop("g.png", png(self.face, more=gamma(45455)), ".png")
        self.crop("g.png", png(self.face, more=gamma(100000)), ".png", says=("g.png: its colours are not those of sRGB, by gAMA",))

    def test_annotate(self):
        (self.dir / "a.png").write_bytes(png(np.dstack([self.face, np.full((128, 128), 9, np.uint8)]), PROFILE, DOTS))
        shutil.copy(FACES / "face_1.jpg", self.dir / "b.jpg")
        self.good("-m", YUNET, "--annotate", "out", "a.png", verb="detect")
        data = (self.dir / "out/a.png").read_bytes()
        self.check(data, ".png", PROFILE, DOTS)
        got = read_png(data)
        drawn = (got[..., :3] != self.face).any(2)
        self.assertTrue(drawn.any())
        self.assertEqual((set(got[drawn][:, 3]), set(got[~drawn][:, 3]) - {255}), ({255}, {9}))

    def test_faces_stay(self):
        """Faces are looked for without alpha, with and without boxes drawn."""
        (self.dir / "a.png").write_bytes(png(self.alpha))
        (self.dir / "b.png").write_bytes(png(self.face))
        one, two = ([json.loads(line)["faces"] for line in self.good("-m", YUNET, "--json", *more, "a.png", "b.png", verb="detect").splitlines()]
                    for more in ((), ("--annotate", "out")))
        self.assertEqual(one, two)
        self.assertEqual(one[0], one[1])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
