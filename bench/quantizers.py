#!/usr/bin/env python3
"""Quantised files of a model by `pith quantize`, optimum-onnx and ONNX Runtime's own quantisers, in one table.

Each file is made from the same directory of Hugging Face. A row tells the seconds that took (of optimum and ONNX Runtime: from
the ONNX file that optimum exports), the file's megabytes, and, as run by Pith and by ONNX Runtime: mean of 1 - cosine to the f32
vectors, share of the 10 nearest other texts that both agree on, 100 times Spearman's correlation with the human scores, and
seconds of processor time for all texts, a thread each, batches of 16 in ONNX Runtime.

usage: quantizers.py [--model DIR] [--texts CSV] [--pith PITH] [--count N]; needs bench/requirements_quantizers.txt.
"""
import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_quality import ROOT, read, spearman
from bench_quantized import NEAREST, in_onnxruntime, nearest

SMALL = ("tokenizer.json", "tokenizer_config.json", "config.json", "special_tokens_map.json", "modules.json", "sentence_bert_config.json")


def timed(make, *arguments):
    begin = time.perf_counter()
    make(*arguments)
    return time.perf_counter() - begin


def children_seconds(command, **keywords):
    """Processor time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, **keywords)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def with_tokenizer(folder, model):
    """The small files of the model, so that Pith embeds with what lies in the folder."""
    for name in SMALL:
        if (model / name).exists():
            shutil.copy(model / name, folder)
    if (model / "1_Pooling").exists():
        shutil.copytree(model / "1_Pooling", folder / "1_Pooling", dirs_exist_ok=True)


def by_pith(pith, model, *options):
    return lambda folder: subprocess.run([pith, "quantize", "-m", model, "-o", folder / "model.onnx", "--quiet", *options], check=True)


def by_optimum(exported, config):
    def make(folder):
        from optimum.onnxruntime import ORTQuantizer
        ORTQuantizer.from_pretrained(exported).quantize(save_dir=folder, quantization_config=config)
        (folder / "model_quantized.onnx").rename(folder / "model.onnx")
    return make


def by_onnxruntime(exported, **options):
    def make(folder):
        from onnxruntime.quantization import QuantType, quantize_dynamic
        quantize_dynamic(exported / "model.onnx", folder / "model.onnx", weight_type=QuantType.QInt8, **options)
    return make


def in_four_bits(exported, symmetric):
    def make(folder):
        import onnx
        from onnxruntime.quantization import matmul_nbits_quantizer as four
        config = four.DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=symmetric)
        quantizer = four.MatMulNBitsQuantizer(onnx.load(exported / "model.onnx"), algo_config=config)
        quantizer.process()
        onnx.save(quantizer.model.model, folder / "model.onnx")
    return make


def makers(pith, model, exported):
    from optimum.onnxruntime import AutoQuantizationConfig
    yield "Pith int8", by_pith(pith, model, "--scheme", "int8")
    yield "Pith int8, calibrated with the vocabulary", by_pith(pith, model, "--scheme", "int8", "--calibrate", "vocabulary")
    yield "optimum, avx512_vnni, dynamic, per channel", by_optimum(exported, AutoQuantizationConfig.avx512_vnni(is_static=False, per_channel=True))
    yield "optimum, avx2, dynamic, per channel", by_optimum(exported, AutoQuantizationConfig.avx2(is_static=False, per_channel=True))
    yield "ONNX Runtime, quantize_dynamic", by_onnxruntime(exported)
    yield "ONNX Runtime, quantize_dynamic, per channel, reduced range", by_onnxruntime(exported, per_channel=True, reduce_range=True)
    yield "Pith q8", by_pith(pith, model, "--scheme", "q8")
    yield "Pith q8, --accuracy 4", by_pith(pith, model, "--scheme", "q8", "--accuracy", "4")
    yield "Pith q4", by_pith(pith, model, "--scheme", "q4")
    yield "Pith q4, calibrated with the vocabulary", by_pith(pith, model, "--scheme", "q4", "--calibrate", "vocabulary")
    yield "the same, --accuracy 0", by_pith(pith, model, "--scheme", "q4", "--calibrate", "vocabulary", "--accuracy", "0")
    yield "Pith q4, asymmetric, calibrated with the vocabulary", by_pith(pith, model, "--scheme", "q4", "--asymmetric", "--calibrate", "vocabulary")
    yield "Pith q4, table of 4 bits, calibrated", by_pith(pith, model, "--scheme", "q4", "--table", "4", "--calibrate", "vocabulary")
    yield "ONNX Runtime, MatMulNBits of 4 bits, symmetric", in_four_bits(exported, True)
    yield "ONNX Runtime, MatMulNBits of 4 bits, asymmetric", in_four_bits(exported, False)


def quality(before, after, scores):
    half = len(scores)
    overlap = np.mean([len(set(a) & set(b)) / NEAREST for a, b in zip(nearest(before), nearest(after))])
    return f"{1 - (before * after).sum(1).mean():.2g}, {overlap:.3f}, {100 * spearman((after[:half] * after[half:]).sum(1), scores):.2f}"


class Texts:
    def __init__(self, arguments):
        from tokenizers import Tokenizer
        scores, texts = read(arguments.texts)
        half = min(arguments.count or len(scores), len(scores))
        self.scores, self.texts = scores[:half], texts[:half] + texts[len(scores):len(scores) + half]
        self.lines = "".join(text.replace("\n", " ") + "\n" for text in self.texts).encode()
        self.tokenizer = Tokenizer.from_file(str(arguments.model / "tokenizer.json"))
        self.tokenizer.enable_padding()
        self.tokenizer.enable_truncation(256)

    def in_pith(self, pith, model, folder):
        file = folder / "vectors.npy"
        seconds = children_seconds([pith, "embed", "-m", model, "--normalize", "--format", "npy", "-o", file, "-t", "1"], input=self.lines)
        return np.load(file), seconds

    def in_onnxruntime(self, file):
        begin = time.process_time()
        vectors = in_onnxruntime(file, self.tokenizer, self.texts, 1)
        return vectors, time.process_time() - begin


def row(texts, before, pith, folder, model):
    with_tokenizer(folder, model)
    ours, our_seconds = texts.in_pith(pith, folder, folder)
    theirs, their_seconds = texts.in_onnxruntime(folder / "model.onnx")
    size = sum(f.stat().st_size for f in folder.glob("model.onnx*")) / 1e6
    return f"{size:.1f} | {quality(before, ours, texts.scores)} | {our_seconds:.2f} | {quality(before, theirs, texts.scores)} | {their_seconds:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path.home() / ".cache/pith/models/all-MiniLM-L6-v2")
    parser.add_argument("--texts", type=Path, default=ROOT / "tests/data/sts/stsb-en-dev.csv")
    parser.add_argument("--pith", type=Path, default=ROOT / "build/pith")
    parser.add_argument("--count", type=int, help="pairs of texts (all)")
    a = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    texts = Texts(a)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        from optimum.exporters.onnx import main_export
        seconds = timed(lambda: main_export(str(a.model), work / "exported", task="feature-extraction", opset=17, do_validation=False))
        print(f"optimum exports in {seconds:.1f} s\n", file=sys.stderr)
        before, _ = texts.in_pith(a.pith, a.model, work)
        print("| file | s | MB | in Pith: 1 - cosine, overlap, 100 × Spearman | s | in ONNX Runtime: the same | s |\n|---|---|---|---|---|---|---|")
        for label, make in makers(a.pith, a.model, work / "exported"):
            folder = work / "made"
            folder.mkdir()
            seconds = timed(make, folder)
            print(f"| {label} | {seconds:.1f} | {row(texts, before, a.pith, folder, a.model)} |", flush=True)
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
