"""What a measurement needs: the model in each engine's form, the engines, the peak of multiply-adds, the work in texts."""
import ctypes
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools")]
import get_model
from peers import PACKAGES


class Files:
    """The model in each engine's form, made once in the cache."""

    def __init__(self, build):
        get_model.main()
        self.build, self.library, self.command = build, str(build / "libpith.so"), str(build / "pith")
        self.model = get_model.cache_dir() / "models" / get_model.NAME
        self.folder = folder = get_model.cache_dir() / "bench"
        folder.mkdir(parents=True, exist_ok=True)
        self.onnx = {form: str(folder / f"{get_model.NAME}-{form}.onnx") for form in ("exported", "fused", "int8")}
        for form, flags in (("exported", []), ("fused", ["--fused"])):
            if not Path(self.onnx[form]).exists():
                subprocess.run([sys.executable, str(ROOT / "tools/make_onnx.py"), str(self.model), self.onnx[form], *flags], check=True)
        self.fastembed = folder / "fastembed"
        self.fastembed.mkdir(exist_ok=True)
        for file in [*self.model.glob("*.json"), *self.model.glob("*.txt")]:
            if not (self.fastembed / file.name).exists():
                (self.fastembed / file.name).symlink_to(file)
        if not (self.fastembed / "model.onnx").exists():
            (self.fastembed / "model.onnx").symlink_to(self.onnx["fused"])
        self.compiled = {name: str(folder / f"{get_model.NAME}-{name}.pith") for name in ("f32", "int8")}

    def int8(self):
        """ONNX Runtime's own 8-bit form: weights per channel, activations by tensor and call."""
        if not Path(self.onnx["int8"]).exists():
            from onnxruntime.quantization import QuantType, quantize_dynamic
            quantize_dynamic(self.onnx["exported"], self.onnx["int8"], weight_type=QuantType.QInt8, per_channel=True,
                             reduce_range=not has_flag("vnni"))
        return self.onnx["int8"]

    def knows(self, word):
        return word in subprocess.run([self.command, "embed", "--help"], capture_output=True, text=True).stdout + \
            subprocess.run([self.command, "--help"], capture_output=True, text=True).stdout

    def compile(self, precision):
        file = self.compiled[precision]
        low = [] if precision == "f32" else ["--precision", precision]
        subprocess.run([self.command, "compile", "-q", "-m", str(self.model), "-o", file, *low], check=True)
        return file


def has_flag(name):
    return any(name in line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(("flags", "Features")))


def engines(files):
    """name → (kind, settings) of everything that computes in f32."""
    tokenizer = str(files.model / "tokenizer.json")
    return {
        "pith": ("Pith", dict(source=str(files.model), library=files.library)),
        "onnxruntime, exported": ("OnnxRuntime", dict(tokenizer=tokenizer, file=files.onnx["exported"])),
        "onnxruntime, optimised": ("OnnxRuntime", dict(tokenizer=tokenizer, file=files.onnx["fused"])),
        "openvino": ("OpenVino", dict(tokenizer=tokenizer, file=files.onnx["exported"])),
        "fastembed": ("FastEmbed", dict(folder=str(files.fastembed))),
        "sentence-transformers": ("SentenceTransformers", dict(source=str(files.model))),
    }


def installed(kind):
    return kind not in PACKAGES or importlib.util.find_spec(PACKAGES[kind]) is not None


class Peak:
    def __init__(self, build):
        self.module = ctypes.CDLL(str(build / "libpeak.so"))
        self.module.cpu_peak_flops.restype = self.module.cpu_peak_bandwidth.restype = ctypes.c_double
        self.module.cpu_peak_flops.argtypes = [ctypes.c_int, ctypes.c_double]

    def flops(self, threads):
        return self.module.cpu_peak_flops(threads, 0.02)

    def bandwidth(self, threads):
        return self.module.cpu_peak_bandwidth(threads)


def token_counts(files, texts, limit):
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(files.model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    return [len(e.ids) for e in tokenizer.encode_batch(texts)]


def flop(files, lengths):
    """Dense layers and attention, a multiply-add being two."""
    c = json.loads((files.model / "config.json").read_text())
    h, layers = c["hidden_size"], c["num_hidden_layers"]
    return sum(layers * (2 * n * (4 * h * h + 2 * h * c["intermediate_size"]) + 4 * n * n * h) for n in lengths)
