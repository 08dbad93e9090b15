#!/usr/bin/env python3
"""Networks with random weights, made once by PyTorch and transformers and kept in the cache as ONNX files.

The functions of torch_networks.py make them and PyTorch's TorchScript exporter writes them (opset 17); ONNX Runtime's quantiser
makes the 8-bit ones from those. The exporter leaves batch normalisation as it is: engines fold it. Weights come from one seed,
so a network is the same whenever it is made. The table can be read without PyTorch: `files()` has the Python of
requirements_networks.txt write what is missing.

usage: make_networks.py FOLDER [FILE ...]
"""
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
SOURCES = [HERE / name for name in ("make_networks.py", "torch_networks.py", "requirements_networks.txt")]
SEED = 11
OPSET = 17


def normal(*shape):
    return np.random.default_rng(SEED).standard_normal(shape, np.float32)


def pixels(side):
    return {"pixel_values": normal(1, 3, side, side)}


def words(lengths, *names):
    """Texts of these lengths, padded to the longest. names: the inputs beside input_ids."""
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int64)
    all_inputs = {"input_ids": np.random.default_rng(SEED).integers(1, 1000, mask.shape) * mask, "attention_mask": mask,
                  "token_type_ids": np.zeros_like(mask)}
    return {name: all_inputs[name] for name in ("input_ids", "attention_mask", *names)}


def step(layers, heads, past):
    """One new token after so many past ones; keys and values of 64 numbers."""
    cache = {f"past.{layer}.{part}": normal(1, heads, past, 64) for layer in range(layers) for part in ("key", "value")}
    return {"input_ids": np.array([[7]], np.int64), "attention_mask": np.ones((1, past + 1), np.int64)} | cache


SHORT, MIXED, LONG = [16] * 8, [5, 9, 12, 17, 23, 31, 44, 64], [128]
# Name, file, how it is made, inputs. How: a function of torch_networks.py and its arguments, or a quantiser of QUANTISERS and
# the file that it reads, which stands above.
NETWORKS = [
    ("ResNet-50, 224", "resnet50", ("resnet50",), pixels(224)),
    ("ResNet-50 int8 QDQ, 224", "resnet50-qdq", ("qdq", "resnet50"), pixels(224)),
    ("ResNet-50 int8 QLinear, 224", "resnet50-qlinear", ("qlinear", "resnet50"), pixels(224)),
    ("MobileNetV2, 224", "mobilenetv2", ("mobilenetv2",), pixels(224)),
    ("MobileNetV2 int8 QDQ, 224", "mobilenetv2-qdq", ("qdq", "mobilenetv2"), pixels(224)),
    ("MobileNetV2 int8 QLinear, 224", "mobilenetv2-qlinear", ("qlinear", "mobilenetv2"), pixels(224)),
    ("ViT-B/16, 224", "vit-b16", ("vit_b16",), pixels(224)),
    ("ViT-B/16 dynamic int8, 224", "vit-b16-dynamic", ("dynamic", "vit-b16"), pixels(224)),
    ("CLIP ViT-B/32 pictures, 224", "clip-vision-b32", ("clip_vision_b32",), pixels(224)),
    ("Swin-T, 224", "swin-t", ("swin_t",), pixels(224)),
    ("ConvNeXt-T, 224", "convnext-t", ("convnext_t",), pixels(224)),
    ("SegFormer-B0, 512", "segformer-b0", ("segformer_b0",), pixels(512)),
    ("U-Net, 256", "unet", ("unet",), {"x": normal(1, 3, 256, 256)}),
    ("ESPCN 3 times, 224", "espcn", ("espcn",), {"x": normal(1, 1, 224, 224)}),
    ("Whisper-tiny encoder, 30 s of sound", "whisper-tiny", ("whisper_tiny",), {"input_features": normal(1, 80, 3000)}),
    ("wav2vec2-base, 1 s of sound", "wav2vec2-base", ("wav2vec2_base",), {"input_values": normal(1, 16000)}),
    ("LSTM 2 layers 2 ways of 256, 200 steps", "bilstm", ("bilstm",), {"x": normal(1, 200, 128)}),
    ("GPT-2, 1 token after 200", "gpt2-step", ("gpt2_step",), step(12, 12, 200)),
    ("Qwen2 of 4 layers, 1 token after 200", "qwen2-step", ("qwen2_step",), step(4, 2, 200)),
    ("T5-small encoder, 128 tokens", "t5-small", ("t5_small",), words(LONG)),
    ("BERT-base, 8 texts of 16 tokens", "bert-base", ("bert", 12, 768), words(SHORT, "token_type_ids")),
    ("BERT-base, 8 texts of 5 to 64 tokens", "bert-base", ("bert", 12, 768), words(MIXED, "token_type_ids")),
    ("BERT-base, 128 tokens", "bert-base", ("bert", 12, 768), words(LONG, "token_type_ids")),
    ("BERT-large, 8 texts of 16 tokens", "bert-large", ("bert", 24, 1024), words(SHORT, "token_type_ids")),
    ("BERT-large, 8 texts of 5 to 64 tokens", "bert-large", ("bert", 24, 1024), words(MIXED, "token_type_ids")),
    ("BERT-large, 128 tokens", "bert-large", ("bert", 24, 1024), words(LONG, "token_type_ids")),
]


def settle(network):
    """Statistics of batch normalisation as after training, so that folding them changes the weights."""
    import torch
    for part in network.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.8, 1.2)


def export(path, how, feeds):
    import torch
    import torch_networks
    torch.manual_seed(SEED)
    network = getattr(torch_networks, how[0])(*how[1:]).eval()
    settle(network)
    free = {name: network.free.get(name, {0: "batch"}) for name in (*feeds, *network.outputs)}
    with torch.no_grad():
        torch.onnx.export(network, tuple(torch.from_numpy(a) for a in feeds.values()), str(path), dynamo=False, opset_version=OPSET,
                          input_names=list(feeds), output_names=list(network.outputs), dynamic_axes=free,
                          training=torch.onnx.TrainingMode.PRESERVE)


class OnePicture:
    """What the static quantiser calibrates with."""

    def __init__(self, feeds):
        self.left = [feeds]

    def get_next(self):
        return self.left.pop() if self.left else None

    def set_range(self, *_):
        pass


def static(form, activations):
    """ONNX Runtime's static quantiser, after its own preparation; weights per channel and of 7 bits, so that no processor
    saturates."""
    def quantise(path, source, feeds):
        from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
        from onnxruntime.quantization.shape_inference import quant_pre_process
        prepared = path.with_suffix(".prepared")
        quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        quantize_static(str(prepared), str(path), OnePicture(feeds), quant_format=QuantFormat[form], per_channel=True, reduce_range=True,
                        activation_type=QuantType[activations], weight_type=QuantType.QInt8)
        prepared.unlink()
    return quantise


def dynamic(path, source, _):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(str(source), str(path), per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)


# Types of activations as ONNX Runtime's documentation advises for each form.
QUANTISERS = {"qdq": static("QDQ", "QInt8"), "qlinear": static("QOperator", "QUInt8"), "dynamic": dynamic}


def needed(names):
    """The files of these names and those that quantisers read for them."""
    return [*names, *(how[1] for _, file, how, _ in NETWORKS if file in names and how[0] in QUANTISERS)]


def make(folder, only=()):
    """Writes the files that are missing, each under its name as soon as it is whole. One process at a time does so."""
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        work = folder / "work"
        for _, file, how, feeds in NETWORKS:
            path, new = folder / f"{file}.onnx", work / f"{file}.onnx"
            if path.exists() or only and file not in only:
                continue
            print(f"making {file}", file=sys.stderr, flush=True)
            shutil.rmtree(work, ignore_errors=True)  # what a process left that was ended
            work.mkdir()
            if how[0] in QUANTISERS:
                QUANTISERS[how[0]](new, folder / f"{how[1]}.onnx", feeds)
            else:
                export(new, how, feeds)
            os.replace(new, path)
        shutil.rmtree(work, ignore_errors=True)


def files(only=()):
    """The folder of the networks, which holds at least the files named, or all. One folder for each content of SOURCES; others
    are removed, since each may take 4 GB."""
    base = Path(os.environ.get("PITH_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pith")
    folder = base / f"networks-{hashlib.sha256(b''.join(s.read_bytes() for s in SOURCES)).hexdigest()[:12]}"
    if (folder / "complete").exists():
        return folder
    wanted = needed(only or [row[1] for row in NETWORKS])
    if not all((folder / f"{file}.onnx").exists() for file in wanted):
        for old in base.glob("networks-*"):
            if old != folder:
                shutil.rmtree(old)
        folder.mkdir(parents=True, exist_ok=True)
        python = subprocess.run([str(HERE.parent / "tools" / "test_python.sh"), str(SOURCES[-1])], check=True, stdout=subprocess.PIPE, text=True)
        subprocess.run([python.stdout.strip(), "-W", "ignore", str(HERE / "make_networks.py"), str(folder), *wanted], check=True)
    if all((folder / f"{row[1]}.onnx").exists() for row in NETWORKS):
        (folder / "complete").touch()
    return folder


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2:])
