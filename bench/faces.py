#!/usr/bin/env python3
"""`pith detect` of a JPEG beside OpenCV's FaceDetectorYN, part by part, and its inference beside ONNX Runtime's.

Pictures are made here: the faces of tests/data/faces on a background with the noise of a camera. First all engines must find
the same faces in the same pixels. Then they take turns in one process. Each part has the least and the median of its times.
  decoding     pith_image_decode; cv2.imdecode
  preparation  scaling into the network's input and laying it out as planes; cv2.resize, copyMakeBorder, blobFromImage
  inference    the network; cv2.dnn.Net.forward of the same file
  boxes        decoding of the outputs, as pith_profile tells it like the two before; what is left of FaceDetectorYN.detect, which
               does blobFromImage and forward itself
  whole        from the bytes of the JPEG to the faces, timed by itself
Pith scales as Pillow does, with a filter over all pixels; OpenCV's default takes four pixels for each. The results of the
whole are thus not the same pixel for pixel, so faces are compared on pixels that were scaled once.
"""
import argparse
import ctypes
import importlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

os.environ["OPENCV_LOG_LEVEL"] = "ERROR"
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/comparisons")]

import pasted_faces  # noqa: E402
import pith_ctypes  # noqa: E402

PAGE = ROOT / "docs" / "performance" / "faces.md"
PAUSE = 0.01  # seconds in which the threads of the other engine come to rest
PICTURES = {"640x480": (640, 480), "1920x1080": (1920, 1080), "4000x3000": (4000, 3000)}
SIZES = (320, 640)
PARTS = ("decoding", "preparation", "inference", "boxes", "whole")
SCORE, OVERLAP, TOP = 0.9, 0.3, 5000  # the defaults of both
BILINEAR = 3  # PITH_IMAGE_BILINEAR


def load(*names):
    """Imports modules into this one: a process that measures how long an engine takes to load has none of the others."""
    for name in names:
        globals()[name] = importlib.import_module(name)


def picture(width, height):
    """Five faces on a slope of grey, with noise: without noise a JPEG would be smaller than those of cameras."""
    random = np.random.Generator(np.random.PCG64([width, height]))
    faces = [pasted_faces.read_png(pasted_faces.FACES / f"face_{i}.png") for i in (1, 2, 3)]
    steps = np.add.outer(np.arange(height), np.arange(width))[..., None] * 160 // (width + height)
    made = (40 + steps + np.array([0, 8, 20])).astype(np.uint8)
    for i, (x, y, side) in enumerate(((0.2, 0.3, 0.4), (0.5, 0.35, 0.35), (0.8, 0.3, 0.4), (0.35, 0.78, 0.3), (0.65, 0.78, 0.3))):
        pasted_faces.paste(made, faces[i % 3], (x * width, y * height), side * height, 0.1 * (i - 2))
    return np.clip(made + random.normal(0, 4, made.shape), 0, 255).astype(np.uint8)


def without_sizes(path):
    """The bytes of the network with symbols where it declares sizes: ONNX Runtime takes no other size than a declared one."""
    model = onnx.load(path)
    for i, dim in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
        if i != 1:
            dim.dim_param = f"d{i}"
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return model.SerializeToString()


class Pith:
    name = "Pith"

    def __init__(self, library, model):
        self.model = pith_ctypes.Model(library, model)
        self.lib, self.error, self.times = self.model.lib, self.model.error, {}
        self.options = pith_ctypes.DetectOptions(score_threshold=SCORE, nms_threshold=OVERLAP, top_k=TOP)
        self.images = pith_ctypes.ImageOptions(channels=3)
        self.profile, self.told = ctypes.c_void_p(), pith_ctypes.parameter("pith_profile_tell", "told")(self.tell)
        self.model.check(self.lib.pith_profile_create(ctypes.byref(self.profile), None, ctypes.byref(self.error)))
        self.lib.pith_profile_tell(self.profile, self.told, None, 1)

    def tell(self, _, phase):
        p = phase.contents
        self.times[p.name.decode()] = (p.end_ns - p.begin_ns) / 1e9

    def settings(self, size, threads):
        self.options.width, self.options.height, self.options.threads = size, size, threads

    def decode(self, data):
        image = pith_ctypes.Image()
        self.model.check(self.lib.pith_image_decode(ctypes.byref(image), data, ctypes.c_size_t(len(data)), ctypes.byref(self.images),
                                                    ctypes.byref(self.error)))
        return image

    def pixels(self, image):
        data = ctypes.string_at(image.pixels, image.width * image.height * image.channels)
        return np.frombuffer(data, np.uint8).reshape(image.height, image.width, image.channels)

    def free(self, image):
        self.lib.pith_image_free(ctypes.byref(image))

    def scaled(self, image, size):
        """The picture at the size that fits into size x size, in a corner of zeros, and the factors back."""
        wide = image.width >= image.height
        width, height = (size, image.height * size // image.width) if wide else (image.width * size // image.height, size)
        result = pith_ctypes.Image()
        options = pith_ctypes.ResizeOptions(width=width, height=height, filter=BILINEAR)
        self.model.check(self.lib.pith_image_resize(ctypes.byref(result), ctypes.byref(image), ctypes.byref(options),
                                                    ctypes.byref(self.error)))
        canvas = np.zeros((size, size, 3), np.uint8)
        canvas[:height, :width] = self.pixels(result)
        self.free(result)
        return canvas, np.array([image.width / width, image.height / height])

    def detect(self, image, profile=None):
        faces, self.options.profile = pith_ctypes.Faces(), profile
        self.model.check(self.lib.pith_detect(ctypes.byref(faces), self.model.handle, ctypes.byref(image), ctypes.c_size_t(1),
                                              ctypes.byref(self.options), ctypes.byref(self.error)))
        return faces

    def rows(self, faces):
        rows = np.ctypeslib.as_array(ctypes.cast(faces.faces, ctypes.POINTER(ctypes.c_float)), (faces.count, 15)).copy() if faces.count else np.zeros((0, 15))
        self.lib.pith_faces_free(ctypes.byref(faces))
        return rows

    def turn(self, data):
        clock, t = time.perf_counter, [time.perf_counter()]
        image = self.decode(data)
        t.append(clock())
        faces = self.detect(image)
        t.append(clock())
        self.lib.pith_faces_free(ctypes.byref(faces))
        faces = self.detect(image, self.profile)
        self.lib.pith_faces_free(ctypes.byref(faces))
        self.free(image)
        return {"decoding": t[1] - t[0], "preparation": self.times["picture"], "inference": self.times["run"],
                "boxes": self.times["faces"], "whole": t[2] - t[0], "without decoding": t[2] - t[1]}


class OpenCV:
    name = "OpenCV"

    def __init__(self, model):
        self.net = cv2.dnn.readNet(str(model))
        self.outputs = [f"{kind}_{stride}" for kind in ("cls", "obj", "bbox", "kps") for stride in (8, 16, 32)]
        self.detector = cv2.FaceDetectorYN.create(str(model), "", (SIZES[0], SIZES[0]), SCORE, OVERLAP, TOP)

    def settings(self, size, threads):
        self.size = size
        cv2.setNumThreads(threads)
        self.detector.setInputSize((size, size))

    def canvas(self, pixels):
        height, width = pixels.shape[:2]
        size = self.size
        fit = (size, height * size // width) if width >= height else (width * size // height, size)
        small = cv2.resize(pixels, fit)
        return cv2.copyMakeBorder(small, 0, size - fit[1], 0, size - fit[0], cv2.BORDER_CONSTANT)

    def detect(self, canvas):
        rows = self.detector.detect(canvas)[1]
        return np.zeros((0, 15)) if rows is None else rows

    def turn(self, data):
        clock, t = time.perf_counter, [time.perf_counter()]
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        t.append(clock())
        canvas = self.canvas(pixels)
        t.append(clock())
        self.detect(canvas)
        t.append(clock())
        blob = cv2.dnn.blobFromImage(canvas)
        t.append(clock())
        self.net.setInput(blob)
        self.net.forward(self.outputs)
        t.append(clock())
        decoding, scaling, detecting, laying, inference = np.diff(t)
        return {"decoding": decoding, "preparation": scaling + laying, "inference": inference,
                "boxes": max(0.0, detecting - laying - inference), "whole": t[3] - t[0], "without decoding": t[3] - t[1]}


class OnnxRuntime:
    name = "ONNX Runtime"

    def __init__(self, model, size, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.feeds = {self.session.get_inputs()[0].name: np.zeros((1, 3, size, size), np.float32)}

    def bind(self, canvas):
        self.feeds = {name: pasted_faces.network_input(canvas) for name in self.feeds}
        self.binding = self.session.io_binding()
        outputs = self.session.run(None, self.feeds)
        for name, array in self.feeds.items():
            self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        for port, array in zip(self.session.get_outputs(), outputs):
            self.binding.bind_ortvalue_output(port.name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        return {port.name: array for port, array in zip(self.session.get_outputs(), outputs)}

    def turn(self, _):
        begin = time.perf_counter()
        self.session.run_with_iobinding(self.binding)
        return {"inference": time.perf_counter() - begin}


# ---- the same faces ----

def check_faces(pith, opencv, ort, data, size):
    """Ends the program unless all three find the same faces in the same pixels; returns how many, and ONNX Runtime's input."""
    image = pith.decode(data)
    canvas, back = pith.scaled(image, size)
    ours = pith.rows(pith.detect(image))
    pith.free(image)
    theirs = opencv.detect(np.ascontiguousarray(canvas[..., ::-1])).astype(float)
    outputs = {name: array.reshape(1, -1, array.shape[-1]) for name, array in ort.bind(canvas).items()}
    decoded = pasted_faces.decode(outputs, (1, 3, size, size), SCORE, OVERLAP)
    faults = [] if len(ours) else ["Pith finds no face"]
    for name, rows in (("OpenCV", theirs), ("ONNX Runtime", decoded)):
        rows[:, :14] *= np.tile(back, 7)
        faults += [f"{name}: {f}" for f in pasted_faces.differences(ours, rows, SCORE)[0]]
    if faults:
        sys.exit("\n".join(["error: the faces are not the same", *faults]))
    return len(ours)


def check_pixels(pith, pixels, jpeg):
    """Both decode a PNG to the same pixels; returns the largest difference of the JPEG's."""
    def differs(data):
        image = pith.decode(data)
        gap = np.abs(pith.pixels(image).astype(int) - cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]).max()
        pith.free(image)
        return int(gap)
    if differs(cv2.imencode(".png", pixels[..., ::-1])[1].tobytes()):
        sys.exit("error: the pixels of a PNG are not the same")
    return differs(jpeg)


# ---- times ----

def measure(engines, data, rounds):
    """Engine → part → (least, median) in seconds, and the same with all seconds."""
    times = {e.name: {} for e in engines}
    for n in range(rounds):
        for e in engines[n % len(engines):] + engines[:n % len(engines)]:
            time.sleep(PAUSE)
            e.turn(data)
            for part, seconds in e.turn(data).items():
                times[e.name].setdefault(part, []).append(seconds)
    return {name: {part: (min(t), statistics.median(t)) for part, t in parts.items()} for name, parts in times.items()}, times


def first(engine, a, size, threads):
    """Seconds that a library takes to load, and seconds from a file that is not open to the first result."""
    pixels = np.load(a.pixels)
    image = pith_ctypes.Image(pixels.ctypes.data, size, size, 3, None)
    begin = time.perf_counter()
    if engine == "Pith":
        ctypes.CDLL(str(a.library))
    else:
        load({"OpenCV": "cv2", "ONNX Runtime": "onnxruntime"}[engine])
    loaded = time.perf_counter()
    if engine == "Pith":
        pith = Pith(a.library, a.model)
        pith.settings(size, threads)
        pith.detect(image)
    elif engine == "OpenCV":
        opencv = OpenCV(a.model)
        opencv.settings(size, threads)
        opencv.detect(pixels)
    else:
        ort = OnnxRuntime(str(a.model), size, threads)
        ort.session.run(None, ort.feeds)
    return loaded - begin, time.perf_counter() - loaded


def load_times(a, size, threads):
    """Engine → (least, median) of loading, of the first result, and of both."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        pixels, sizeless = Path(folder, "pixels.npy"), Path(folder, "model.onnx")
        np.save(pixels, picture(size, size))
        sizeless.write_bytes(without_sizes(a.model))
        for n in range(a.processes):
            for name in ("Pith", "OpenCV", "ONNX Runtime"):
                model = sizeless if name == "ONNX Runtime" else a.model
                out = subprocess.run([sys.executable, __file__, "--library", str(a.library), "--model", str(model), "--first", name,
                                      "--pixels", pixels, "--sizes", str(size), "--threads", str(threads)], check=True,
                                     capture_output=True, text=True).stdout
                loading, result = (float(x) for x in out.split())
                found.setdefault(name, []).append((loading, result, loading + result))
    return {name: [(min(t), statistics.median(t)) for t in zip(*rows)] for name, rows in found.items()}


# ---- tables ----

def pair(seconds):
    return f"{1e3 * seconds[0]:.2f} ({1e3 * seconds[1]:.2f})"


def parts_table(rows):
    lines = ["| picture, input | threads | engine | " + " | ".join(PARTS) + " | times as fast |", "|---" * (len(PARTS) + 4) + "|"]
    for r in rows:
        for name in [n for n in r["times"] if n != "ONNX Runtime"]:
            t = r["times"][name]
            ratio = f"{r['whole'][0]:.2f} ({r['whole'][1]:.2f})" if name == "Pith" else ""
            lines.append(" | ".join([f"| {r['name']}", str(r["threads"]), name, *[pair(t[p]) for p in PARTS], f"{ratio} |"]))
    return "\n".join(lines)


def inference_table(rows):
    lines = ["| picture, input | threads | Pith without decoding | Pith's inference | ONNX Runtime's inference | times as fast, without decoding | "
             "inference alone |", "|---" * 7 + "|"]
    for r in rows:
        ours, theirs = r["times"]["Pith"], r["times"]["ONNX Runtime"]["inference"]
        lines.append(f"| {r['name']} | {r['threads']} | {pair(ours['without decoding'])} | {pair(ours['inference'])} | {pair(theirs)} | "
                     f"{r['inference'][0]:.2f} ({r['inference'][1]:.2f}) | {theirs[0] / ours['inference'][0]:.2f} |")
    return "\n".join(lines)


def first_table(rows):
    lines = ["| input | threads | engine | loading the library | the first result | both | first result, times as fast | both, times as fast |",
             "|---" * 8 + "|"]
    for size, threads, times in rows:
        for name, t in times.items():
            ratios = [f"{t[i][0] / times['Pith'][i][0]:.1f} ({t[i][1] / times['Pith'][i][1]:.1f})" if name != "Pith" else "" for i in (1, 2)]
            lines.append(f"| {size}x{size} | {threads} | {name} | " + " | ".join([*(pair(x) for x in t), *ratios]) + " |")
    return "\n".join(lines)


def machine(rows):
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")),
                 platform.machine())
    gap = max(r["gap"] for r in rows)
    pixels = f"differ by at most {gap} between" if gap else "are the same with"
    files = ", ".join(dict.fromkeys(f"{r['picture']} {r['bytes'] / 1e6:.2f} MB" for r in rows))
    return (f"{len(os.sched_getaffinity(0))} cores of an {model}, {platform.system()} {platform.release()}, OpenCV {cv2.__version__}, "
            f"onnxruntime {onnxruntime.__version__}. JPEG files: {files}. Their pixels {pixels} the two "
            f"decoders. Load of the machine when the run began: {rows[0]['load']:.1f}.")


def write(tables):
    text = PAGE.read_text()
    for mark, content in tables.items():
        head, rest = text.split(f"<!-- {mark} -->\n")
        text = f"{head}<!-- {mark} -->\n{content}\n<!-- /{mark} -->" + rest.split(f"<!-- /{mark} -->")[1]
    PAGE.write_text(text)


def ratios(times, part, peer, peer_part):
    """That of the least times, and the median of those of single rounds."""
    ours, theirs = times["Pith"][part], times[peer][peer_part]
    return min(theirs) / min(ours), statistics.median(t / o for o, t in zip(ours, theirs))


def case(a, picture_name, engines, sessions, size, threads):
    pixels, jpeg, gap = a.made[picture_name]
    ort = sessions[size, threads]
    for e in engines:
        e.settings(size, threads)
    count = check_faces(engines[0], engines[-1], ort, jpeg, size)
    load = os.getloadavg()[0]
    summary, times = measure([*engines, ort], jpeg, a.rounds)
    row = {"name": f"{picture_name}, {size}x{size}", "picture": picture_name, "threads": threads, "times": summary, "bytes": len(jpeg),
           "gap": gap, "faces": count, "load": load, "whole": ratios(times, "whole", "OpenCV", "whole"),
           "inference": ratios(times, "without decoding", "ONNX Runtime", "inference")}
    print(f"{row['name']}, {threads} threads, {count} faces: whole {row['whole'][0]:.2f}, without decoding beside ONNX Runtime's inference "
          f"{row['inference'][0]:.2f}", flush=True)
    return row


def measure_all(a):
    pith, opencv = Pith(a.library, a.model), OpenCV(a.model)
    engines = [pith, opencv]
    if a.before:
        engines.insert(1, Pith(a.before, a.model))
        engines[1].name = "Pith before"
    a.made = {}
    for name in a.pictures:
        pixels = picture(*PICTURES[name])
        jpeg = cv2.imencode(".jpg", pixels[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes()
        a.made[name] = pixels, jpeg, check_pixels(pith, pixels, jpeg)
    source = without_sizes(a.model)
    sessions = {(size, threads): OnnxRuntime(source, size, threads) for size in a.sizes for threads in a.threads}
    return [case(a, name, engines, sessions, size, threads) for threads in a.threads for size in a.sizes for name in a.pictures]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--library", default=ROOT / "build" / "libpith.so")
    parser.add_argument("--before", help="another build of the library, measured in the same rounds")
    parser.add_argument("--model", default=pasted_faces.YUNET)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--pictures", nargs="+", default=list(PICTURES), choices=list(PICTURES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance/faces.md")
    parser.add_argument("--processes", type=int, default=7, help="of each engine that measure loading")
    parser.add_argument("--first", help=argparse.SUPPRESS)  # a process of load_times
    parser.add_argument("--pixels", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.first:
        print(*first(a.first, a, a.sizes[0], a.threads[0]))
        return
    load("cv2", "onnx", "onnxruntime")
    rows = measure_all(a)
    loads = [(size, threads, load_times(a, size, threads)) for threads in a.threads for size in a.sizes]
    tables = {"parts": parts_table(rows), "inference": inference_table(rows), "first": first_table(loads), "machine": machine(rows)}
    print("\n\n".join(tables.values()))
    if a.write:
        write(tables)


if __name__ == "__main__":
    main()
