#!/usr/bin/env python3
"""Reranking and pictures beside ONNX Runtime, interleaved.

usage: rerank.py LIBPITH.so PYTHON_WITH_TORCH      (needs onnxruntime, tokenizers, NumPy, Pillow here; torch, transformers and
                                                  onnx in the other Python, which only makes the networks)
rerank: a cross-encoder of MiniLM-L6's size with random weights, 100 passages of 3 to 200 words (log-normal, in arrival order),
and 100 of the same length; the peer is what sentence-transformers' CrossEncoder does on ONNX Runtime: sort by length, batches
of 32, pad to the longest. pictures: ViT-B/32 of CLIP, 16 pictures of 640 x 480 in memory; the peer is Pillow and ONNX Runtime.
"""
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

THREADS, ROUNDS = 2, 7
MAKE = r"""
import sys, torch, transformers as tf
out = sys.argv[1]
torch.manual_seed(0)
cross = tf.BertForSequenceClassification(tf.BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
                                                       intermediate_size=1536, num_labels=1)).eval()
cross.save_pretrained(out + "/cross")
x = torch.ones(2, 8, dtype=torch.long)
axes = {n: {0: "b", 1: "s"} for n in ("input_ids", "attention_mask", "token_type_ids")} | {"logits": {0: "b"}}
torch.onnx.export(cross, (x, x, x), out + "/cross/model.onnx", dynamo=False, opset_version=17, output_names=["logits"],
                  input_names=["input_ids", "attention_mask", "token_type_ids"], dynamic_axes=axes)
vision = tf.CLIPVisionModelWithProjection(tf.CLIPVisionConfig()).eval()
vision.save_pretrained(out + "/vision")
tf.CLIPImageProcessor().save_pretrained(out + "/vision")
class Only(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.vision = vision
    def forward(self, p):
        return self.vision(p).image_embeds
torch.onnx.export(Only().eval(), (torch.zeros(2, 3, 224, 224),), out + "/vision/model.onnx", dynamo=False, opset_version=17,
                  input_names=["pixel_values"], output_names=["image_embeds"], dynamic_axes={"pixel_values": {0: "b"}})
"""


class Str(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class Image(ctypes.Structure):
    _fields_ = [("pixels", ctypes.c_void_p), ("width", ctypes.c_int32), ("height", ctypes.c_int32),
                ("channels", ctypes.c_int32), ("allocator", ctypes.c_void_p)]


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 1024)]


def check(status, err):
    if status:
        sys.exit(err.message.decode())


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def interleave(name, ours, theirs, agree):
    a, b = ours(), theirs()
    worst = agree(a, b)
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        ours()
        middle = time.perf_counter()
        theirs()
        times.append((middle - begin, time.perf_counter() - middle))
    ratios = [t / o for o, t in times]
    print(f"{name}: pith {1e3 * statistics.median(o for o, _ in times):.0f} ms, the peer takes {statistics.median(ratios):.2f} "
          f"times as long ({min(ratios):.2f} to {max(ratios):.2f}); results differ by {worst:.1g}")


def rerank(lib, model, folder, passages, name, err):
    tokenizer = Tokenizer.from_file(folder + "/tokenizer.json")
    tokenizer.enable_truncation(512)
    net = session(folder + "/model.onnx")
    query = "what is the capital of the country"
    raw = [p.encode() for p in passages]
    texts = (Str * len(raw))(*[Str(r, len(r)) for r in raw])
    scores = np.zeros(len(raw), np.float32)

    def ours():
        q = query.encode()
        check(lib.pith_rerank(scores.ctypes.data_as(ctypes.c_void_p), model, Str(q, len(q)), texts, ctypes.c_size_t(len(raw)),
                              None, ctypes.byref(err)), err)
        return scores.copy()

    def theirs():
        result = np.zeros(len(passages), np.float32)
        order = sorted(range(len(passages)), key=lambda i: -len(passages[i]))
        for start in range(0, len(order), 32):
            batch = order[start:start + 32]
            tokenizer.enable_padding()
            coded = tokenizer.encode_batch([(query, passages[i]) for i in batch])
            feed = {"input_ids": np.array([c.ids for c in coded]), "attention_mask": np.array([c.attention_mask for c in coded]),
                    "token_type_ids": np.array([c.type_ids for c in coded])}
            logits = net.run(None, feed)[0][:, 0]
            result[batch] = 1 / (1 + np.exp(-logits))
        return result

    interleave(name, ours, theirs, lambda a, b: np.abs(a - b).max())


def pictures(lib, model, folder, err):
    from PIL import Image as Pillow
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:480, 0:640]
    frames = [np.stack([127 + 120 * np.sin(x / (20 + i + k) + y / (30 - k)) for k in range(3)], -1).clip(0, 255).astype(np.uint8)
              for i in rng.integers(0, 40, 16)]
    images = (Image * len(frames))(*[Image(f.ctypes.data, 640, 480, 3, None) for f in frames])
    vectors = np.zeros((len(frames), 512), np.float32)
    net = session(folder + "/model.onnx")
    mean, std = np.array([0.48145466, 0.4578275, 0.40821073]), np.array([0.26862954, 0.26130258, 0.27577711])

    def ours():
        check(lib.pith_embed_images(vectors.ctypes.data_as(ctypes.c_void_p), model, images, ctypes.c_size_t(len(frames)), None,
                                    ctypes.byref(err)), err)
        return vectors.copy()

    def theirs():
        pixels = []
        for f in frames:
            p = Pillow.fromarray(f).resize((298, 224), Pillow.BICUBIC).crop((37, 0, 261, 224))
            pixels.append(((np.asarray(p) / 255 - mean) / std).transpose(2, 0, 1).astype(np.float32))
        return net.run(None, {"pixel_values": np.stack(pixels)})[0]

    interleave("16 pictures, ViT-B/32", ours, theirs,
               lambda a, b: np.abs(a / np.linalg.norm(a, axis=1, keepdims=True) - b / np.linalg.norm(b, axis=1, keepdims=True)).max())


def main():
    lib, err = ctypes.CDLL(sys.argv[1]), Error()
    lib.pith_rerank.argtypes = [ctypes.c_void_p, ctypes.c_void_p, Str, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(folder + "/cross")
        subprocess.run([sys.argv[2], "-W", "ignore", "-c", MAKE, folder], check=True, capture_output=True)
        cache = os.environ.get("PITH_CACHE", os.path.expanduser("~/.cache/pith"))
        for name in ("tokenizer.json", "tokenizer_config.json"):
            with open(f"{cache}/models/all-MiniLM-L6-v2/{name}", "rb") as f, open(f"{folder}/cross/{name}", "wb") as g:
                g.write(f.read())
        handles = []
        for part, drop in (("cross", "model.onnx"), ("vision", "model.onnx")):
            os.rename(f"{folder}/{part}/{drop}", f"{folder}/{part}.onnx")
            handle = ctypes.c_void_p()
            check(lib.pith_model_open(ctypes.byref(handle), f"{folder}/{part}".encode(), None, ctypes.byref(err)), err)
            os.rename(f"{folder}/{part}.onnx", f"{folder}/{part}/{drop}")
            handles.append(handle)
        rng = np.random.default_rng(5)
        words = "river market engine winter garden letter bridge doctor window history music harbour village".split()
        lengths = np.clip(rng.lognormal(3.6, 0.9, 100), 3, 200).astype(int)
        mixed = [" ".join(rng.choice(words, n)) for n in lengths]
        equal = [" ".join(rng.choice(words, 50)) for _ in range(100)]
        rerank(lib, handles[0], folder + "/cross", mixed, "100 passages of 3 to 200 words", err)
        rerank(lib, handles[0], folder + "/cross", equal, "100 passages of 50 words", err)
        pictures(lib, handles[1], folder + "/vision", err)


if __name__ == "__main__":
    main()
