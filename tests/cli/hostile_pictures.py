"""Pictures of at most 1 MB that ask a decoder for far more work or memory than their pixels are worth.

pictures() gives the name, the bytes, and the words of the refusal, or None for a picture that is decoded as any other."""
import struct
import zlib

SPLIT = [0x00] + [0x11] * 5  # precincts of a sample or two at each resolution


def _segment(marker, body):
    return struct.pack(">HH", marker, len(body) + 2) + body


def _style(levels, precincts, block):
    return struct.pack(">BBBBB", levels, block[0] - 2, block[1] - 2, 0, 1) + bytes(precincts or ())


def cod(levels=5, precincts=None, layers=1, block=(6, 6), order=0):
    """The marker COD: blocks and precincts (height, then width) by their powers of two."""
    return _segment(0xFF52, struct.pack(">BBHB", 1 if precincts else 0, order, layers, 0) + _style(levels, precincts, block))


def coc(component, levels=5, precincts=None, block=(6, 6)):
    return _segment(0xFF53, bytes([component, 1 if precincts else 0]) + _style(levels, precincts, block))


def j2k(width, height, coding, tile=b"", components=3, tiles=None, levels=5):
    """A codestream whose tiles hold a few zeros."""
    across, down = tiles or (width, height)
    out = b"\xFF\x4F" + _segment(0xFF51, struct.pack(">HIIIIIIIIH", 0, width, height, 0, 0, across, down, 0, 0, components) +
                                 b"\7\1\1" * components)
    out += coding + _segment(0xFF5C, bytes([0x40]) + bytes([8 << 3] * (3 * levels + 1)))
    for number in range(-(-width // across) * -(-height // down)):
        body = tile + b"\xFF\x93" + b"\0" * 32
        out += struct.pack(">HHHIBB", 0xFF90, 10, number, 12 + len(body), 0, 1) + body
    return out + b"\xFF\xD9"


def jp2(stream):
    """A file of boxes around a grey or RGB codestream, whose length is left open."""
    height, width, count = (*struct.unpack(">II", stream[12:16] + stream[8:12]), stream[41])
    header = struct.pack(">I4sIIHBBBB", 22, b"ihdr", height, width, count, 7, 7, 0, 0)
    header += struct.pack(">I4sBBBI", 15, b"colr", 1, 0, 0, 17 if count == 1 else 16)
    return (b"\0\0\0\x0CjP  \r\n\x87\n" + b"\0\0\0\x14ftypjp2 \0\0\0\0jp2 " + struct.pack(">I4s", 8 + len(header), b"jp2h") + header +
            struct.pack(">I4s", 0, b"jp2c") + stream)


def _chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(chunks):
    """One black pixel behind the chunks."""
    return (b"\x89PNG\r\n\x1A\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + b"".join(_chunk(*c) for c in chunks) +
            _chunk(b"IDAT", zlib.compress(bytes(4))) + _chunk(b"IEND", b""))


def tiff(width, height, tags, blob, compression):
    """An RGB picture; tags are lists of 32-bit numbers, blob lies at byte 8."""
    short = {258: [8, 8, 8], 259: [compression], 262: [2], 277: [3]}
    at = 8 + len(blob) + len(blob) % 2
    rows = sorted({**short, 256: [width], 257: [height], **tags}.items())
    entries, more, behind = b"", b"", at + 2 + 12 * len(rows) + 4
    for tag, values in rows:
        packed = struct.pack(f"<{len(values)}{'H' if tag in short else 'I'}", *values)
        place = struct.pack("<I", behind + len(more)) if len(packed) > 4 else packed.ljust(4, b"\0")
        more += packed + b"\0" * (len(packed) % 2) if len(packed) > 4 else b""
        entries += struct.pack("<HHI", tag, 3 if tag in short else 4, len(values)) + place
    return (struct.pack("<2sHI", b"II", 42, at) + blob).ljust(at, b"\0") + struct.pack("<H", len(rows)) + entries + b"\0" * 4 + more


def slow_deflate(size, out):
    """A zlib stream of blocks that hold nothing, then `out` zeros."""
    return b"\x78\x01" + b"\0\0\0\xFF\xFF" * (size // 5) + zlib.compress(bytes(out), 9)[2:]


def jpeg(width, height, scans, markers=b""):
    """A grey progressive picture whose scans after the first hold long runs of blocks without a coefficient."""
    def segment(marker, body):
        return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body
    blocks = -(-width // 8) * -(-height // 8)
    out = b"\xFF\xD8" + markers + segment(0xDB, b"\0" + b"\1" * 64) + segment(0xC2, struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0")
    out += segment(0xC4, b"\0" + bytes([1] + [0] * 15) + b"\0") + segment(0xC4, b"\x10" + bytes([0, 2] + [0] * 14) + b"\xE0\0")
    out += segment(0xDA, b"\1\1\0\0\0\0") + bytes(blocks // 8 + 1)
    return out + (segment(0xDA, b"\1\1\0\1\x3F\0") + bytes(2 * -(-blocks // 16384))) * (scans - 1) + b"\xFF\xD9"


def pictures():
    plain = cod()
    yield "precincts.j2k", j2k(2000, 2000, cod(precincts=SPLIT)), "precincts"
    yield "precincts.jp2", jp2(j2k(2000, 2000, cod(precincts=SPLIT))), "precincts"
    yield "precincts-tile.j2k", j2k(2000, 2000, plain, tile=cod(precincts=SPLIT)), "precincts"
    yield "precincts-component.j2k", j2k(2000, 2000, plain + coc(2, precincts=SPLIT)), "precincts"
    yield "precincts-both.j2k", j2k(2000, 2000, plain, tile=coc(2, precincts=SPLIT)), "precincts"
    yield "blocks.j2k", j2k(2000, 2000, cod(block=(2, 2))), "code blocks"
    yield "levels.j2k", j2k(2000, 2000, cod(levels=32), tiles=(40, 40), levels=32), "code blocks"
    yield "layers.j2k", j2k(2000, 2000, cod(layers=65535)), "packets"
    yield "layers-tile.j2k", j2k(2000, 2000, plain, tile=cod(layers=65535)), "packets"
    yield "grid.j2k", j2k(9000, 9000, cod(precincts=[0xFF] * 4 + [0xF1, 0x1F], order=2)), "places of packets"
    yield "tiles.j2k", j2k(1000, 1000, plain, tiles=(10, 10)), "tiles are smaller"
    yield "ordinary.j2k", j2k(1000, 1000, cod(precincts=[0x77] * 6, layers=12), tiles=(256, 256)), None
    packed = zlib.compress(b"a" * 7_900_000, 9)
    for kind, start in (b"zTXt", b"k\0\0"), (b"iTXt", b"k\0\1\0\0\0"):
        yield f"{kind.decode()}.png", png([(kind, start + packed)] * (1_000_000 // (len(packed) + 18))), None
    yield "iCCP.png", png([(b"iCCP", b"k\0\0" + zlib.compress(bytes(900_000_000), 1)[:1_000_000])]), None
    yield "sPLT.png", png([(b"sPLT", b"k%d\0\x08" % i + bytes(600)) for i in range(1500)]), None
    for name, height in ("slow", 400), ("slower", 40000):
        blob = slow_deflate(600_000, 300)
        yield f"{name}.tif", tiff(100, height, {278: [1], 273: [8] * height, 279: [len(blob)] * height}, blob, 8), "over each other"
    blob = zlib.compress(bytes(600_000_000), 1)[:1_000_000]
    yield "tile.tif", tiff(1, 1, {322: [20000], 323: [10000], 324: [8], 325: [len(blob)]}, blob, 8), "larger than the picture"
    yield "shared.tif", tiff(64, 64, {322: [16], 323: [16], 324: [8] * 16, 325: [768] * 16}, bytes(768), 1), None
    chain = b"".join(struct.pack("<HHHIII", 1, 256, 4, 1, 1, 8 + 18 * i) for i in range(1, 58000))
    yield "chain.tif", struct.pack("<2sHI", b"II", 42, 8) + chain[:-4] + bytes(4), "damaged"
    yield "scans.jpg", jpeg(2000, 2000, 1000), "more than 100 scans"
    yield "scans-large.jpg", jpeg(9900, 9900, 99), "more than 30 scans"
    yield "scans-few.jpg", jpeg(600, 600, 99), None
    yield "markers.jpg", jpeg(8, 8, 2, markers=b"\xFF\xE1\0\2" * 240_000), None
