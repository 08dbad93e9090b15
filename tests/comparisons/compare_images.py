"""Compares pictures with Pillow and with the image processors of transformers, on drawn input.

    compare_images.py --library build-test/libpith.so [--count 300] [--seed N]

Needs tests/images.txt. Decoded: every format and mode that Pillow writes, all orientations; lossy JPEG and WebP may differ by
2 of 255, the others by nothing. Resized: the bytes are equal. Processors: within 1e-6, and what they refuse is refused.
"""

import argparse
import ctypes
import io
import json
import pathlib
import random
import struct
import sys
import tempfile
import warnings

import numpy as np
import pillow_heif
import transformers
from PIL import Image, ImageCms, ImageOps

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1] / "makers"), str(HERE.parents[2] / "tools")]
from make_images import exif, save, scene
import pith_ctypes
from pith_ctypes import Error, Image as Picture, ImageDetails, ImageOptions, ResizeOptions

pillow_heif.register_heif_opener()


class PithError(Exception):
    pass


class Pith:
    def __init__(self, path):
        self.library = pith_ctypes.load(path)

    def call(self, name, *args):
        error = Error()
        if getattr(self.library, name)(*args, ctypes.byref(error)):
            raise PithError(error.message.decode())

    def taken(self, picture):
        shape = (picture.height, picture.width, picture.channels)
        a = np.frombuffer(ctypes.string_at(picture.pixels, int(np.prod(shape))), np.uint8).reshape(shape).copy()
        self.library.pith_image_free(ctypes.byref(picture))
        return a

    def decode(self, data, channels):
        picture, options = Picture(), ImageOptions(channels=channels)
        self.call("pith_image_decode", ctypes.byref(picture), data, ctypes.c_size_t(len(data)), ctypes.byref(options))
        return self.taken(picture)

    def details(self, data):
        details = ImageDetails()
        picture, options = Picture(), ImageOptions(details=ctypes.pointer(details))
        self.call("pith_image_decode", ctypes.byref(picture), data, ctypes.c_size_t(len(data)), ctypes.byref(options))
        self.library.pith_image_free(ctypes.byref(picture))
        profile = ctypes.string_at(details.profile, details.profile_size)
        dots, colours = tuple(details.dots), details.colours.decode()
        self.library.pith_image_details_free(ctypes.byref(details))
        return profile, dots, colours

    def resize(self, a, width, height, filter):
        """filter: Pillow's number; the library's is one more."""
        resized, options = Picture(), ResizeOptions(width=width, height=height, filter=filter + 1)
        self.call("pith_image_resize", ctypes.byref(resized), ctypes.byref(given(a)), ctypes.byref(options))
        return self.taken(resized)

    def process(self, folder, a):
        processor, dims = ctypes.c_void_p(), (ctypes.c_int64 * 3)()
        self.call("pith_image_processor_open", ctypes.byref(processor), folder.encode(), None)
        try:
            self.call("pith_image_processor_shape", dims, processor, a.shape[1], a.shape[0])
            out = np.full(tuple(dims), np.nan, np.float32)
            self.call("pith_image_process", out.ctypes.data_as(ctypes.c_void_p), processor, ctypes.byref(given(a)), None)
        finally:
            self.library.pith_image_processor_close(processor)
        return out


def given(a):
    a = np.ascontiguousarray(a)
    picture = Picture(a.ctypes.data, a.shape[1], a.shape[0], a.shape[2])
    picture.kept = a
    return picture


def files(width, height, seed):
    """(name, bytes, tolerance)"""
    rgba = Image.fromarray(scene(width, height, 4, seed))
    rgb = Image.fromarray(scene(width, height, 3, seed))
    modes = {"L": rgb.convert("L"), "LA": rgba.convert("LA"), "RGB": rgb, "RGBA": rgba, "1": rgb.convert("1"),
             "P": rgb.quantize(64), "CMYK": rgb.convert("CMYK")}

    def each(kind, names, tolerance, *options):
        for mode in names.split():
            for o in options:
                yield f"{kind} {mode} {o}", save(modes[mode], kind, **o), tolerance

    yield from each("JPEG", "L RGB CMYK", 2, {"quality": 90}, {"quality": 30, "progressive": True},
                    {"subsampling": 0}, {"subsampling": 1}, {"restart_marker_blocks": 3})
    yield from each("PNG", "1 L LA P RGB RGBA", 0, {})
    yield from each("PNG", "P", 0, {"transparency": 3})
    yield from each("PNG", "RGB", 0, {"transparency": tuple(int(v) for v in np.array(rgb)[0, 0])},
                    {"save_all": True, "append_images": [rgb.rotate(180)]})
    yield from each("WEBP", "L RGB RGBA", 2, {"quality": 80})
    yield from each("WEBP", "L RGB RGBA", 0, {"lossless": True, "exact": True})
    yield from each("WEBP", "RGBA", 0, {"lossless": True, "exact": True, "save_all": True,
                                        "append_images": [rgba.rotate(180)]})
    yield from each("TIFF", "1 L LA P RGB RGBA CMYK", 0, {}, *({"compression": c} for c in (
        "tiff_lzw", "tiff_adobe_deflate", "packbits", "zstd")))
    yield from each("TIFF", "1", 0, {"compression": "group4"})
    yield from each("TIFF", "L RGB", 2, {"compression": "jpeg"})
    yield from each("JPEG2000", "L LA RGB RGBA", 0, {}, {"no_jp2": True}, {"tile_size": (64, 64)})
    yield from each("JPEG2000", "L RGB", 2, {"irreversible": True, "quality_mode": "rates", "quality_layers": [4]})
    yield from each("BMP", "1 L P RGB RGBA", 0, {})
    yield from each("GIF", "1 L P RGB", 0, {}, {"interlace": 0}, {"save_all": True, "append_images": [rgb.rotate(180)]})
    yield from each("GIF", "P", 0, {"transparency": 3})
    yield from each("HEIF", "RGB RGBA", 0, {"quality": -1, "chroma": 444})
    yield from each("HEIF", "RGB RGBA", 2, {"quality": 60})
    yield from each("AVIF", "RGB RGBA", 2, {"quality": 90, "subsampling": "4:4:4"})
    yield from each("PPM", "L RGB", 0, {})
    for kind, tolerance, o in (("JPEG", 2, {"quality": 95}), ("PNG", 0, {}), ("WEBP", 0, {"lossless": True}), ("TIFF", 0, {})):
        for orientation in range(1, 9):
            yield from each(kind, "RGB", tolerance, o | {"exif": exif(orientation)})


def compare_decoding(pith, draw, count):
    wrong = checked = 0
    worst = {0: 0, 2: 0}
    sizes = [(1, 1)] + [(draw.randint(2, 300), draw.randint(2, 200)) for _ in range(max(1, count // 100))]
    for width, height in sizes:
        for name, data, tolerance in files(width, height, draw.randint(0, 1 << 30)):
            for channels, mode in ((1, "L"), (3, "RGB"), (4, "RGBA")):
                image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
                expected = np.array(image.convert(mode)).reshape(image.height, image.width, channels)
                got = pith.decode(data, channels)
                checked += 1
                difference = np.abs(expected.astype(int) - got).max() if expected.shape == got.shape else 256
                worst[tolerance] = max(worst[tolerance], int(difference))
                if difference > tolerance:
                    wrong += 1
                    print(f"decode {name}: {width} x {height}, {channels} channels: differs by {difference}")
    print(f"decoding: {checked} pictures, lossless ones differ by {worst[0]} at most, lossy ones by {worst[2]}")
    return wrong


def jp2_with(data, profile):
    """A JP2 file with a profile in place of its colour space, and 300 by 150 dots per inch (ISO/IEC 15444-1, annex I)."""
    head, colour = data.index(b"jp2h") - 4, data.index(b"colr") - 4
    size, old = (struct.unpack(">I", data[at:at + 4])[0] for at in (head, colour))
    box = struct.pack(">I", 11 + len(profile)) + b"colr\2\0\0" + profile
    box += struct.pack(">I4sI4s4H2B", 26, b"res ", 18, b"resc", 5906, 1, 11811, 1, 0, 0)
    return (data[:head] + struct.pack(">I", size - old + len(box)) + data[head + 4:colour] + box + data[colour + old:])


def compare_details(pith, draw, count):
    """Colour profile and resolution, where Pillow writes them."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    rgb, wrong = Image.fromarray(scene(64, 48, 3, draw.randint(0, 1 << 30))), 0
    for kind, icc, dots in (("JPEG", True, True), ("PNG", True, True), ("TIFF", True, True), ("WEBP", True, False), ("HEIF", True, False),
                            ("AVIF", True, False), ("JPEG2000", False, False), ("BMP", False, True), ("GIF", False, False)):
        for with_icc in {False, icc}:
            for dpi in {None, (300, 150) if dots else None}:
                more = ({"icc_profile": profile} if with_icc else {}) | ({"dpi": dpi} if dpi else {})
                got, found, colours = pith.details(save(rgb, kind, **more))
                # BMP from Pillow states 96 per inch unless something else is asked for.
                wanted = dpi or ((96, 96) if kind == "BMP" else (0, 0))
                if got != (profile if with_icc else b"") or np.abs(np.array(found) - wanted).max() > 0.02 or colours:
                    wrong += 1
                    print(f"details {kind} {more.keys()}: profile of {len(got)} bytes, {found} per inch, {colours!r}")
    data = jp2_with(save(rgb, "JPEG2000"), profile)
    got, found, colours = pith.details(data)
    if got != profile or np.abs(np.array(found) - (300, 150)).max() > 0.02 or colours:
        wrong += 1
        print(f"details JPEG2000: profile of {len(got)} bytes, {found} per inch, {colours!r}")
    print(f"details: {wrong} differ")
    return wrong


def compare_resizing(pith, draw, count):
    wrong = 0
    for i in range(count):
        width, height, new_width, new_height = (draw.choice([1, 2, 3, 5, 17, 64, 255, draw.randint(1, 400)]) for _ in range(4))
        channels, filter, seed = draw.choice([1, 3, 4]), i % 6, draw.randint(0, 1 << 30)
        random_pixels = np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)
        a = random_pixels if draw.random() < 0.5 else scene(width, height, channels, seed)
        expected = np.array(Image.fromarray(a[:, :, 0] if channels == 1 else a).resize((new_width, new_height), filter))
        got = pith.resize(a, new_width, new_height, filter)
        if not np.array_equal(expected.reshape(got.shape), got):
            wrong += 1
            print(f"resize {width} x {height} to {new_width} x {new_height}, {channels} channels, filter {filter}: differs")
    print(f"resizing: {count} pictures, {wrong} differ")
    return wrong


CLASSES = ("Beit Bit Blip CLIP ChineseCLIP ConvNext DeiT EfficientNet Levit MobileNetV1 MobileNetV2 MobileViT Pvt Siglip "
           "ViT").split()
SETTINGS = {
    "size": (8, 31, 64, {"shortest_edge": 16}, {"shortest_edge": 33}, {"shortest_edge": 224}, {"shortest_edge": 384},
             {"shortest_edge": 400}, {"height": 5, "width": 77}, {"height": 40, "width": 40}, [30, 41], None),
    "crop_size": (8, 31, {"height": 5, "width": 77}, {"height": 224, "width": 40}, None),
    "resample": (0, 1, 2, 3, 4, 5),
    "do_resize": (True, False), "do_center_crop": (True, False), "do_rescale": (True, False), "do_normalize": (True, False),
    "rescale_factor": (1 / 255, 1 / 127.5, 0.5),
    "image_mean": ([0.1, 0.2, 0.3], 0.4), "image_std": ([0.3, 0.2, 0.1], 0.7),
    "crop_pct": (0.875, 0.95, None), "rescale_offset": (True, False), "include_top": (True, False),
    "do_flip_channel_order": (True, False), "do_convert_rgb": (True, False, None), "do_reduce_labels": (False,),
    "do_pad": (False, None),
}


def compare_processors(pith, draw, count):
    wrong = refused = 0
    worst = 0.0
    for i in range(count):
        name = CLASSES[i % len(CLASSES)]
        config = {"image_processor_type": name + draw.choice(["ImageProcessor", "ImageProcessorFast"])}
        config |= {key: draw.choice(values) for key, values in SETTINGS.items() if draw.random() < 0.35}
        a = np.random.default_rng(draw.randint(0, 1 << 30)).integers(
            0, 256, (draw.randint(4, 400), draw.randint(4, 400), 3), dtype=np.uint8)
        expected = got = None
        try:
            processor = getattr(transformers, name + "ImageProcessor").from_dict(dict(config))
            expected = np.asarray(processor(Image.fromarray(a), return_tensors="np")["pixel_values"][0])
        except (ValueError, KeyError) as error:
            refused, why = refused + 1, repr(error)
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/preprocessor_config.json", "w", encoding="utf-8") as f:
                json.dump(config, f)
            try:
                got = pith.process(folder, a)
            except PithError as error:
                why = error
        if (expected is None) != (got is None):
            print(f"process {config}: {'only Pith' if got is None else 'only transformers'} refuses: {why}")
        elif expected is not None and expected.shape != got.shape:
            print(f"process {config}: shape {got.shape}, not {expected.shape}")
        elif expected is not None and not np.abs(expected.astype(np.float64) - got).max() <= 1e-6:
            print(f"process {config}: differs by {np.abs(expected.astype(np.float64) - got).max()}")
        else:
            if expected is not None:
                worst = max(worst, float(np.abs(expected.astype(np.float64) - got).max()))
            continue
        wrong += 1
    print(f"processors: {count} settings, {refused} refused by both, the others differ by {worst:g} at most")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    print(f"seed {args.seed}")
    pith, draw = Pith(args.library), random.Random(args.seed)
    wrong = sum(compare(pith, draw, args.count) for compare in (compare_decoding, compare_details, compare_resizing, compare_processors))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
