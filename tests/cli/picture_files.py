"""Files of pictures written and read by hand, so that what is in them is known without a library of pictures.

Writers take [height, width, channels] of bytes; `profile` is an ICC profile, `dots` a resolution per inch.
"""
import struct
import zlib

import numpy as np


def png(pixels, profile=None, dots=None, more=b"", depth=8):
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    height, width, channels = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, depth, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    rows = pixels.astype(">u2" if depth == 16 else np.uint8)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
    if profile:
        data += chunk(b"iCCP", b"p\0\0" + zlib.compress(profile))
    if dots:
        data += chunk(b"pHYs", struct.pack(">IIB", *(round(d / 0.0254) for d in dots), 1))
    return data + more + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r.tobytes() for r in rows))) + chunk(b"IEND", b"")


def png_chunks(data):
    at, found = 8, {}
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        found[name] = found.get(name, b"") + data[at + 8:at + 8 + size]
        at += 12 + size
    return found


def read_png(data):
    """Pixels of 8 bits without interlacing, [height, width, channels]."""
    chunks = png_chunks(data)
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert depth == 8
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    raw = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + channels * width)
    out = np.zeros((height + 1, channels * width), int)
    for y in range(height):
        line, above = out[y + 1], out[y]
        for x in range(channels * width):
            a, b, c = (line[x - channels] if x >= channels else 0), above[x], (above[x - channels] if x >= channels else 0)
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[x] = raw[y, 1 + x] + (0, a, b, (a + b) // 2, paeth)[raw[y, 0]] & 255
    return out[1:].reshape(height, width, channels).astype(np.uint8)


def tiff(pixels, profile=None, dots=None, photometric=2, alpha=False):
    """Uncompressed, little-endian, one strip."""
    height, width, channels = pixels.shape
    bits = struct.pack("<%dH" % channels, *[8] * channels)
    values = {256: (4, width), 257: (4, height), 259: (3, 1), 262: (3, photometric), 277: (3, channels), 278: (4, height),
              279: (4, pixels.size)}
    blocks = {258: (3, channels, bits)}
    if alpha:
        values[338] = (3, 2)
    if dots:
        blocks |= {282 + i: (5, 1, struct.pack("<II", round(dots[i] * 100), 100)) for i in (0, 1)}
        values[296] = (3, 2)
    if profile:
        blocks[34675] = (7, len(profile), profile)
    tags = sorted([*values, *blocks, 273])
    at = 8 + 2 + 12 * len(tags) + 4
    places = {}
    for tag, (_, _, body) in blocks.items():
        if len(body) > 4:
            places[tag], at = at, at + len(body) + len(body) % 2
    out = b"II*\0" + struct.pack("<IH", 8, len(tags))
    for tag in tags:
        if tag == 273:
            out += struct.pack("<HHII", tag, 4, 1, at)
        elif tag in values:
            out += struct.pack("<HHII", tag, values[tag][0], 1, values[tag][1])
        else:
            kind, count, body = blocks[tag]
            out += struct.pack("<HHI", tag, kind, count) + (struct.pack("<I", places[tag]) if tag in places else body.ljust(4, b"\0"))
    out += struct.pack("<I", 0)
    for tag in sorted(places, key=places.get):
        body = blocks[tag][2]
        out += body + b"\0" * (len(body) % 2)
    return out + pixels.astype(np.uint8).tobytes()


def jpeg_profile(data):
    """The ICC profile of a JPEG file; b"" if it has none."""
    return b"".join(body[14:] for kind, body in jpeg_segments(data) if kind == 0xE2 and body[:12] == b"ICC_PROFILE\0")


def jpeg_segments(data):
    at = 2
    while data[at] == 0xFF and data[at + 1] != 0xDA:
        size = struct.unpack(">H", data[at + 2:at + 4])[0]
        yield data[at + 1], data[at + 4:at + 2 + size]
        at += 2 + size


def webp_chunks(data):
    at, found = 12, {}
    while at < len(data):
        name, size = struct.unpack("<4sI", data[at:at + 8])
        found[name] = data[at + 8:at + 8 + size]
        at += 8 + size + size % 2
    return found
