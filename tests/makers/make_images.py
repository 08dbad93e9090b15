"""Makes tests/data/images: small pictures in every format and kind, broken ones, and what Pillow and the image processors
of transformers make of them.

    make_images.py tests/data/images

Needs tests/images.txt. cases.txt has a line per case, expected.bin the bytes of all of them in that order:

    decode FILE TOLERANCE CHANNELS HEIGHT WIDTH       bytes; as Pillow has them, turned upright
    resize FILE CHANNELS FILTER HEIGHT WIDTH          bytes, of FILE decoded to CHANNELS and resized
    process FILE HEIGHT WIDTH JSON                    floats, of FILE decoded to RGB; JSON is a preprocessor_config.json
"""

import io
import json
import pathlib
import struct
import sys
import zlib

import numpy as np
import pillow_heif
import transformers
from PIL import Image, ImageOps

pillow_heif.register_heif_opener()


def scene(width, height, channels, seed=0):
    """Smooth waves with a hard-edged box: filters overshoot at its edges."""
    y, x = np.mgrid[0:height, 0:width]
    a = np.stack([127 + 120 * np.sin(x / (7 + 3 * k) + y / (11 - 2 * k) + k) for k in range(channels)], -1)
    a[height // 3 : height // 2 + 1, width // 4 : width // 2 + 1] = np.random.default_rng(seed).integers(0, 256, channels)
    return a.clip(0, 255).astype(np.uint8)


def exif(orientation):
    e = Image.Exif()
    e[0x112] = orientation
    return e


def interlaced_png(image):
    """Adam7, which Pillow reads but does not write."""
    a = np.array(image)
    raw = b""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        part = a[y0::dy, x0::dx]
        if part.size:
            raw += b"".join(b"\0" + row.tobytes() for row in part)
    return png(image.width, image.height, zlib.compress(raw, 9), interlace=1)


def png(width, height, data, bits=8, colour=2, interlace=0):
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlace)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def save(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def part_gif(image):
    """The picture at 3, 2 on a canvas of 30 x 20."""
    data = bytearray(save(image, "GIF", interlace=0))
    at = data.index(b"\x2c\0\0\0\0")
    data[6:10] = struct.pack("<HH", 30, 20)
    data[at + 1 : at + 5] = struct.pack("<HH", 3, 2)
    return bytes(data)


def bmp(width, height, bits, rows, packed=0, palette=b"", more=b"", head=40):
    """more: what follows the first 40 bytes of the header."""
    offset = 14 + head + max(0, len(more) - (head - 40)) + len(palette)
    info = struct.pack("<IiiHHIIiiII", head, width, height, 1, bits, packed, len(rows), 3937, 2000, len(palette) // 4, 0)
    return b"BM" + struct.pack("<IHHI", offset + len(rows), 0, 0, offset) + info + more.ljust(head - 40, b"\0") + palette + rows


def run_lengths(a, bits):
    """Runs, pixels as they are, and moves; what colour 0 is at a row's end is left out."""
    out = b""
    for row in a[::-1]:
        row, x = list(row), 0
        while row and not row[-1]:
            row.pop()
        while x < len(row):
            same = next((i for i in range(x, len(row)) if row[i] != row[x]), len(row)) - x
            if row[x] == 0 and same > 2:
                out += bytes([0, 2, same, 0])
            elif same > 1 or len(row) - x < 3:
                out += bytes([same, row[x] if bits == 8 else row[x] * 17])
            else:
                same = min(5, len(row) - x)
                part = row[x : x + same] + [0] * (-same % (2 if bits == 8 else 4))
                out += bytes([0, same]) + (bytes(part) if bits == 8 else bytes(h * 16 + l for h, l in zip(part[::2], part[1::2])))
            x += same
        out += b"\0\0"
    return out[:-2] + b"\0\1"


def box(name, *parts, full=None):
    body = b"".join(parts)
    if full is not None:
        body = struct.pack(">I", full) + body
    return struct.pack(">I4s", 8 + len(body), name) + body


def boxes_of(data):
    at = 0
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at : at + 8])
        yield name, data[at + 8 : at + size]
        at += size


def grid_heic(left, right):
    """Two pictures of 64 x 64 side by side as tiles, as cameras store large ones: the grid's settings are in idat."""
    parts = []
    for image in (left, right):
        boxes = dict(boxes_of(save(image, "HEIF", quality=-1, chroma=444)))
        properties = list(boxes_of(dict(boxes_of(dict(boxes_of(boxes[b"meta"][4:]))[b"iprp"]))[b"ipco"]))
        parts.append((dict(properties)[b"hvcC"], boxes[b"mdat"]))
    settings = parts[0][0]
    assert settings == parts[1][0]
    items = [box(b"infe", struct.pack(">HH4sB", i, 0, kind, 0), full=2 << 24) for i, kind in ((1, b"grid"), (2, b"hvc1"), (3, b"hvc1"))]

    def meta(first):
        at = [first, first + len(parts[0][1])]
        places = struct.pack(">HH", 0x4400, 3) + struct.pack(">HHHHII", 1, 1, 0, 1, 0, 8)
        for i in (0, 1):
            places += struct.pack(">HHHHII", 2 + i, 0, 0, 1, at[i], len(parts[i][1]))
        return box(
            b"meta", box(b"hdlr", bytes(4), b"pict", bytes(13), full=0), box(b"pitm", struct.pack(">H", 1), full=0),
            box(b"iinf", struct.pack(">H", 3), *items, full=0),
            box(b"iref", box(b"dimg", struct.pack(">HHHH", 1, 2, 2, 3)), full=0),
            box(b"iprp", box(b"ipco", box(b"hvcC", settings), box(b"ispe", struct.pack(">II", 64, 64), full=0),
                             box(b"ispe", struct.pack(">II", 128, 64), full=0)),
                box(b"ipma", struct.pack(">I", 3) + struct.pack(">HBB", 1, 1, 3) + b"".join(
                    struct.pack(">HBBB", i, 2, 0x81, 2) for i in (2, 3)), full=0)),
            box(b"iloc", places, full=1 << 24), box(b"idat", struct.pack(">BBBBHH", 0, 0, 0, 1, 128, 64)), full=0)

    head = box(b"ftyp", b"heic", bytes(4), b"mif1heic")
    first = len(head) + len(meta(0)) + 8
    return head + meta(first) + box(b"mdat", parts[0][1], parts[1][1])


def bitmaps(rgb, rgba):
    yield "bits.bmp", save(rgb.convert("1"), "BMP"), 0
    yield "palette.bmp", save(rgb.quantize(200), "BMP"), 0
    yield "rgba.bmp", save(rgba, "BMP"), 0
    yield "grey.bmp", save(rgb.convert("L"), "BMP"), 0
    few = rgb.quantize(16)
    a, colours = np.array(few), np.array(few.getpalette()[:48], np.uint8).reshape(16, 3)
    palette = np.column_stack([colours[:, ::-1], np.zeros(16, np.uint8)]).tobytes()
    nibbles = b"".join(bytes(int(r[i]) * 16 + int(r[i + 1]) for i in range(0, 24, 2)) for r in a[::-1])
    yield "palette4.bmp", bmp(24, 17, 4, nibbles, palette=palette), 0
    yield "runs4.bmp", bmp(24, 17, 4, run_lengths(a, 4), 2, palette), 0
    yield "runs8.bmp", bmp(24, 17, 8, run_lengths(a, 8), 1, palette), 0
    wide = np.array(rgb).astype(int)
    five = (wide[..., 0] >> 3 << 10 | wide[..., 1] >> 3 << 5 | wide[..., 2] >> 3)[::-1].astype("<u2")
    six = (wide[..., 0] >> 3 << 11 | wide[..., 1] >> 2 << 5 | wide[..., 2] >> 3)[::-1].astype("<u2")
    yield "bits16.bmp", bmp(24, 17, 16, five.tobytes()), 0
    yield "masks16.bmp", bmp(24, 17, 16, six.tobytes(), 3, more=struct.pack("<III", 0xF800, 0x7E0, 0x1F)), 0
    four = np.array(rgba).astype("<u4")
    swapped = four[..., 0] << 24 | four[..., 1] << 16 | four[..., 2] << 8 | four[..., 3]
    yield "masks32.bmp", bmp(24, -17, 32, swapped.tobytes(), 3, more=struct.pack("<IIII", 0xFF000000, 0xFF0000, 0xFF00, 0xFF), head=56), 0
    old = b"BM" + struct.pack("<IHHI", 0, 0, 0, 26 + 48) + struct.pack("<IHHHH", 12, 24, 17, 1, 4) + colours[:, ::-1].tobytes() + nibbles
    yield "os2.bmp", old, 0


def pictures():
    """name → (bytes, tolerance): other releases of the same libraries may round lossy formats otherwise."""
    rgb, rgba = Image.fromarray(scene(24, 17, 3)), Image.fromarray(scene(24, 17, 4))
    grey, cmyk = rgb.convert("L"), rgb.convert("CMYK")
    yield "rgb.jpg", save(rgb, "JPEG", quality=90), 2
    yield "progressive.jpg", save(rgb, "JPEG", quality=80, progressive=True), 2
    yield "grey.jpg", save(grey, "JPEG", quality=90), 2
    yield "cmyk.jpg", save(cmyk, "JPEG", quality=90), 2
    for o in range(2, 9):
        yield f"turned{o}.jpg", save(rgb, "JPEG", quality=90, exif=exif(o)), 2
    yield "rgb.png", save(rgb, "PNG"), 0
    yield "interlaced.png", interlaced_png(rgb), 0
    yield "rgba.png", save(rgba, "PNG"), 0
    yield "grey_alpha.png", save(rgba.convert("LA"), "PNG"), 0
    yield "bits.png", save(grey.convert("1"), "PNG"), 0
    yield "palette.png", save(rgb.quantize(20), "PNG"), 0
    yield "palette_transparent.png", save(rgb.quantize(20), "PNG", transparency=3), 0
    yield "animated.png", save(rgb, "PNG", save_all=True, append_images=[rgb.rotate(180)]), 0
    yield "turned6.png", save(rgb, "PNG", exif=exif(6)), 0
    yield "pixel.png", save(rgb.crop((0, 0, 1, 1)), "PNG"), 0
    yield "lossy.webp", save(rgb, "WEBP", quality=80), 2
    yield "alpha.webp", save(rgba, "WEBP", lossless=True, exact=True), 0
    yield "animated.webp", save(rgb, "WEBP", save_all=True, append_images=[rgb.rotate(180)], lossless=True), 0
    yield "turned8.webp", save(rgb, "WEBP", lossless=True, exif=exif(8)), 0
    yield "rgb.tif", save(rgb, "TIFF", compression="tiff_lzw"), 0
    yield "rgba.tif", save(rgba, "TIFF", compression="tiff_adobe_deflate"), 0
    yield "fax.tif", save(grey.convert("1"), "TIFF", compression="group4"), 0
    yield "cmyk.tif", save(cmyk, "TIFF"), 0
    yield "palette.tif", save(rgb.quantize(20), "TIFF"), 0
    yield "turned5.tif", save(rgb, "TIFF", exif=exif(5)), 0
    yield "pages.tif", save(rgb, "TIFF", save_all=True, append_images=[rgb.rotate(180)]), 0
    yield "rgb.jp2", save(rgb, "JPEG2000"), 0
    yield "grey_alpha.jp2", save(rgba.convert("LA"), "JPEG2000"), 0
    yield "lossy.j2k", save(rgba, "JPEG2000", no_jp2=True, irreversible=True, quality_mode="rates", quality_layers=[3]), 2
    yield "tiles.jp2", save(rgb, "JPEG2000", tile_size=(8, 8)), 0
    yield "rgb.bmp", save(rgb, "BMP"), 0
    yield "rgb.heic", save(rgb, "HEIF", quality=-1, chroma=444), 0
    yield "alpha.heic", save(rgba, "HEIF", quality=-1, chroma=444), 0
    yield "lossy.heic", save(rgb, "HEIF", quality=60), 2
    yield "turned6.heic", save(rgb, "HEIF", quality=-1, chroma=444, exif=exif(6)), 0
    yield "grid.heic", grid_heic(*(Image.fromarray(scene(64, 64, 3, seed)) for seed in (1, 2))), 0
    yield "rgb.avif", save(rgb, "AVIF", quality=100, subsampling="4:4:4"), 2
    yield "alpha.avif", save(rgba, "AVIF", quality=100, subsampling="4:4:4"), 2
    yield "rgb.gif", save(rgb.quantize(60), "GIF"), 0
    yield "interlaced.gif", save(rgb.quantize(20), "GIF", interlace=1), 0
    yield "transparent.gif", save(rgb.quantize(20), "GIF", transparency=3), 0
    yield "animated.gif", save(rgb.quantize(20), "GIF", save_all=True, append_images=[rgb.rotate(180).quantize(20)]), 0
    yield "part.gif", part_gif(rgb.quantize(20)), 0
    yield from bitmaps(rgb, rgba)
    yield "grey.pgm", save(grey, "PPM"), 0
    yield "rgb.ppm", save(rgb, "PPM"), 0


def large():
    """Files that say they have 40000 x 25000 pixels or as many as the format allows."""
    rgb = Image.fromarray(scene(24, 17, 3))
    yield "large.png", png(40000, 25000, zlib.compress(bytes(1000)))
    jpeg = bytearray(save(rgb, "JPEG"))
    at = jpeg.index(b"\xff\xc0")
    jpeg[at + 5 : at + 9] = struct.pack(">HH", 25000, 40000)
    yield "large.jpg", bytes(jpeg)
    webp = bytearray(save(rgb, "WEBP", lossless=True))
    webp[21:25] = struct.pack("<I", 16383 | 16383 << 14)
    yield "large.webp", bytes(webp)
    tags = [(256, 4, 40000), (257, 4, 25000), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1), (278, 4, 25000),
            (279, 4, 1000)]
    tiff = b"II*\0" + struct.pack("<IH", 8, len(tags))
    tiff += b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags) + struct.pack("<I", 0)
    yield "large.tif", tiff + bytes(100)
    jp2 = bytearray(save(rgb, "JPEG2000", no_jp2=True))
    jp2[8:16] = jp2[24:32] = struct.pack(">II", 40000, 25000)
    yield "large.j2k", bytes(jp2)
    jp2[24:32] = struct.pack(">II", 2, 2)
    jp2[8:16] = struct.pack(">II", 400, 250)
    yield "tiny_tiles.j2k", bytes(jp2)
    jp2 = bytearray(save(rgb, "JPEG2000", no_jp2=True))
    jp2[40:42] = struct.pack(">H", 16384)
    yield "components.j2k", bytes(jp2)
    gif = bytearray(save(rgb.quantize(20), "GIF"))
    gif[6:10] = struct.pack("<HH", 40000, 25000)
    yield "large.gif", bytes(gif)
    for name, kind in (("large.heic", "HEIF"), ("large.avif", "AVIF")):
        boxes = bytearray(save(Image.fromarray(scene(64, 64, 3)), kind))
        at = boxes.index(b"ispe")
        boxes[at + 8 : at + 16] = struct.pack(">II", 40000, 25000)
        yield name, bytes(boxes)
    for name, kind, how in (("stream.heic", "HEIF", {"quality": 10}), ("stream.avif", "AVIF", {"quality": 10, "speed": 10})):
        boxes = bytearray(save(Image.new("RGB", (2000, 2000), (10, 20, 30)), kind, **how))
        at = boxes.index(b"ispe")
        boxes[at + 8 : at + 16] = struct.pack(">II", 16, 16)  # what is compressed is larger
        yield name, bytes(boxes)
    yield "large.bmp", b"BM" + struct.pack("<IIIIiiHHIIIIII", 100, 0, 54, 40, 40000, 25000, 1, 24, 0, 0, 0, 0, 0, 0) + bytes(50)
    yield "large.ppm", b"P6 40000 25000 255\n" + bytes(50)


def upright(data, channels):
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    return np.array(image.convert({1: "L", 3: "RGB", 4: "RGBA"}[channels])).reshape(image.height, image.width, channels)


CLASSES = "Beit Bit Blip CLIP ConvNext DeiT EfficientNet Levit MobileNetV1 MobileNetV2 MobileViT Pvt Siglip ViT".split()


def settings():
    small = {"height": 12, "width": 9}
    for name in CLASSES:
        both = name in ("Beit", "Blip", "DeiT", "EfficientNet", "Pvt", "Siglip", "ViT")
        base = {"image_processor_type": name + "ImageProcessor", "size": small if both else {"shortest_edge": 11}}
        yield base | {"crop_size": {"height": 13, "width": 10}}
        yield base | {"resample": 1, "do_center_crop": False, "image_mean": [0.1, 0.2, 0.3], "image_std": 0.25}
    yield {"image_processor_type": "CLIPImageProcessorFast", "size": {"height": 7, "width": 8}, "crop_size": 9, "do_pad": None}
    yield {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 384}, "do_normalize": False,
           "do_resize": False}
    yield {"image_processor_type": "ConvNextImageProcessor", "size": 10, "crop_pct": 0.95}
    yield {"feature_extractor_type": "ViTFeatureExtractor", "size": 6, "resample": 2}
    yield {"image_processor_type": "EfficientNetImageProcessor", "size": [5, 6], "rescale_offset": True,
           "rescale_factor": 1 / 127.5, "include_top": False}
    yield {"image_processor_type": "ViTImageProcessor", "size": {"height": 3, "width": 4}, "do_rescale": False}


def process(config, image):
    name = config.get("image_processor_type") or config["feature_extractor_type"]
    name = name.replace("FeatureExtractor", "ImageProcessor").removesuffix("Fast")
    processor = getattr(transformers, name).from_dict(dict(config))
    return np.asarray(processor(image, return_tensors="np")["pixel_values"][0], np.float32)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    lines, expected, files = [], b"", {}

    def case(line, values):
        nonlocal expected
        lines.append(line)
        expected += values.tobytes()

    for name, data, tolerance in pictures():
        files[name] = data
        for channels in (1, 3, 4):
            a = upright(data, channels)
            case(f"decode {name} {tolerance} {channels} {a.shape[0]} {a.shape[1]}", a)
    for channels, name in ((1, "grey.pgm"), (3, "rgb.ppm"), (4, "rgba.png")):
        image = Image.open(io.BytesIO(files[name]))
        for filter in range(6):
            for width, height in ((7, 5), (31, 22), (24, 9), (5, 17), (23, 3), (1, 1), (40, 2)):
                a = np.array(image.resize((width, height), filter))
                case(f"resize {name} {channels} {filter} {height} {width}", a)
    for config in settings():
        a = process(config, Image.open(io.BytesIO(files["rgb.ppm"])))
        case(f"process rgb.ppm {a.shape[1]} {a.shape[2]} {json.dumps(config)}", a)
    files |= dict(large())
    files["film.jpg"] = struct.pack(">I4s4sI4s", 20, b"ftyp", b"qt  ", 0, b"qt  ") + bytes(20)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    (folder / "cases.txt").write_text("\n".join(lines) + "\n")
    (folder / "expected.bin").write_bytes(expected)


if __name__ == "__main__":
    main()
