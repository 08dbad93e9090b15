"""Pictures with faces: the stored ones scaled, turned and pasted on a background, several in one, some over its border.

The pictures of a seed are the same everywhere. Also the network's decoding in plain NumPy, for comparison.
"""
import struct
import zlib
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parent.parent / "data"
FACES = DATA / "faces"
YUNET = DATA / "yunet/yunet-s-640-other-sizes/model.onnx"


def read_png(path):
    """An RGB picture of 8 bits without interlacing, [height, width, 3]."""
    data, at, packed = Path(path).read_bytes(), 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body, at = data[at + 8:at + 8 + size], at + 12 + size
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, colour, interlaced) == (8, 2, 0)
        packed += body if kind == b"IDAT" else b""
    raw = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 3 * width)
    out = np.zeros((height, 3 * width), int)
    for y in range(height):
        above, line = out[y - 1] if y else np.zeros(3 * width, int), raw[y, 1:].astype(int)
        for x in range(3 * width):
            a, b, c = out[y, x - 3] if x >= 3 else 0, above[x], above[x - 3] if x >= 3 else 0
            paeth = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            out[y, x] = line[x] + (0, a, b, (a + b) // 2, paeth)[raw[y, 0]] & 255
    return out.reshape(height, width, 3).astype(np.uint8)


def write_ppm(path, picture):
    Path(path).write_bytes(b"P6 %d %d 255\n" % (picture.shape[1], picture.shape[0]) + picture.tobytes())


def paste(picture, face, centre, side, turn):
    """Bilinear, in whole 1/256 of pixels, so that rounding is the same everywhere."""
    half, size = side * 0.75, face.shape[0]
    x0, x1 = max(0, int(centre[0] - half)), min(picture.shape[1], int(centre[0] + half) + 1)
    y0, y1 = max(0, int(centre[1] - half)), min(picture.shape[0], int(centre[1] + half) + 1)
    if x0 >= x1 or y0 >= y1:
        return
    dx, dy = np.meshgrid(np.arange(x0, x1) - centre[0], np.arange(y0, y1) - centre[1])
    scale = (size - 1) / side
    u = np.round(((dx * np.cos(turn) + dy * np.sin(turn)) * scale + (size - 1) / 2) * 256).astype(int)
    v = np.round(((dy * np.cos(turn) - dx * np.sin(turn)) * scale + (size - 1) / 2) * 256).astype(int)
    inside = (u >= 0) & (v >= 0) & (u < (size - 1) * 256) & (v < (size - 1) * 256)
    u, v = np.where(inside, u, 0), np.where(inside, v, 0)
    i, j, fu, fv = u >> 8, v >> 8, (u & 255)[..., None], (v & 255)[..., None]
    f = face.astype(int)
    top = f[j, i] * (256 - fu) + f[j, i + 1] * fu
    bottom = f[j + 1, i] * (256 - fu) + f[j + 1, i + 1] * fu
    mixed = (top * (256 - fv) + bottom * fv + 32768) >> 16
    picture[y0:y1, x0:x1] = np.where(inside[..., None], mixed, picture[y0:y1, x0:x1])


def pictures(count, seed=1):
    faces = [read_png(FACES / f"face_{i}.png") for i in (1, 2, 3)]
    for n in range(count):
        random = np.random.Generator(np.random.PCG64([seed, n]))
        width, height = (int(x) for x in random.integers(97, 560, 2))
        steps = np.add.outer(np.arange(height), np.arange(width))[..., None] * random.integers(0, 3, 3) // 4
        picture = ((random.integers(0, 256, 3) + steps) % 256).astype(np.uint8)
        for _ in range(int(random.integers(1, 5))):
            side = float(random.integers(24, 8 + min(width, height) * 5 // 4))
            centre = random.random(2) * (width, height)
            paste(picture, faces[int(random.integers(3))], centre, side, float(random.random() - 0.5) * 0.9)
        yield picture


def network_input(picture, fill=32):
    """[1, 3, H, W]: planes of blue, green, red; zeros to the right and below."""
    height, width = (-(-n // fill) * fill for n in picture.shape[:2])
    x = np.zeros((1, 3, height, width), np.float32)
    x[0, :, :picture.shape[0], :picture.shape[1]] = picture[..., ::-1].transpose(2, 0, 1)
    return x


def decode(outputs, shape, threshold, overlap, rule="root", top_k=5000):
    """Rows x, y, w, h, five landmarks, score, as OpenCV's FaceDetectorYN orders them; outputs by name."""
    rows = []
    for stride in (8, 16, 32):
        wide = shape[3] // stride
        cls, obj, box, points = (outputs[f"{k}_{stride}"][0].astype(float) for k in ("cls", "obj", "bbox", "kps"))
        cell = np.arange(len(cls))
        c, r = cell % wide, cell // wide
        product = np.clip(cls, 0, 1)[:, 0] * np.clip(obj, 0, 1)[:, 0]
        score = np.sqrt(product) if rule == "root" else product
        w, h = np.exp(box[:, 2]) * stride, np.exp(box[:, 3]) * stride
        x, y = (c + box[:, 0]) * stride - w / 2, (r + box[:, 1]) * stride - h / 2
        points = (points.reshape(-1, 5, 2) + np.stack([c, r], 1)[:, None]) * stride
        rows.append(np.column_stack([x, y, w, h, points.reshape(-1, 10), score]))
    rows = np.concatenate(rows)
    rows = rows[rows[:, 14] >= threshold]
    rows = rows[np.argsort(-rows[:, 14], kind="stable")][:top_k]
    kept = []
    for row in rows:
        if all(iou(np.trunc(row), np.trunc(k)) <= overlap for k in kept):
            kept.append(row)
    return np.array(kept).reshape(-1, 15)


def iou(a, b):
    w = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    h = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    both = max(w, 0) * max(h, 0)
    either = a[2] * a[3] + b[2] * b[3] - both
    return both / either if either > 0 else 1.0


def rows_of(line):
    """Rows of a line of `pith detect --json`."""
    return np.array([[*f["box"], *np.ravel(f["landmarks"]), f["score"]] for f in line["faces"]]).reshape(-1, 15)


def differences(got, wanted, threshold):
    """Faults between two lists of faces, and how many faces were compared and left out: those whose score is within 2e-3
    of the threshold may be missing."""
    faults, compared, left_out = [], 0, 0
    free = list(got)
    for w in wanted:
        best = max(range(len(free)), key=lambda i: iou(free[i], w), default=None)
        if best is None or iou(free[best], w) < 0.99:
            left_out += w[14] < threshold + 2e-3
            if w[14] >= threshold + 2e-3:
                faults.append(f"no face at {w[:4]}, score {w[14]}")
            continue
        g = free.pop(best)
        compared += 1
        if abs(g[14] - w[14]) > 1e-3:
            faults.append(f"score {g[14]} instead of {w[14]}")
        if np.abs(g[4:14] - w[4:14]).max() > 0.01 * max(w[2:4]):
            faults.append(f"landmarks {g[4:14]} instead of {w[4:14]}")
    for g in free:
        left_out += g[14] < threshold + 2e-3
        if g[14] >= threshold + 2e-3:
            faults.append(f"a face at {g[:4]}, score {g[14]}, that is not expected")
    return faults, compared, left_out
