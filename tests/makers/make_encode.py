#!/usr/bin/env python3
"""Writes tests/data/encode: tiny models of sparse vectors and late interaction with random weights, and what the
libraries that publish such models compute with them.

usage: make_encode.py [NAME...]      (all; needs onnx, sentence-transformers 5, PyLate 1.6; see tests/data/encode/ORIGIN.md)
Each folder is a model directory. expected.jsonl has one line for each text: the text, its role, and either "indices"
and "values" of its sparse vector, or "ids" and "vectors" of its tokens, computed in double precision.
"""
import json
import pathlib
import shutil
import sys

import numpy as np

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "encode"
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]"]
WORDS = MARKS + "a cat dog sat on the mat and ##s ##ed walk red find where is ? , . ! - house tree".split()
TEXTS = ["the cat sat on the mat", "a dog walked .", "cats and dogs , walked on the red mat . the dog sat !", "red", "",
         "where is the zebra ?", "a cat , a dog - a tree . " * 6]
HIDDEN, WIDTH = 8, 6


def bert_files(folder, head):
    """A network in Hugging Face layout with a tokenizer; head: it has the head of a masked language model."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForMaskedLM, BertModel, PreTrainedTokenizerFast
    torch.manual_seed(7)
    config = BertConfig(vocab_size=len(WORDS), hidden_size=HIDDEN, num_hidden_layers=1, num_attention_heads=2,
                        intermediate_size=12, max_position_embeddings=40, pad_token_id=0, initializer_range=0.8)
    network = BertForMaskedLM(config) if head else BertModel(config)
    with torch.no_grad():
        for name, p in network.named_parameters():
            if "bias" in name:
                p.normal_(0, 0.5)
    network.save_pretrained(folder)
    t = Tokenizer(models.WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    PreTrainedTokenizerFast(tokenizer_object=t, model_max_length=38, pad_token="[PAD]", unk_token="[UNK]",
                            cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]").save_pretrained(folder)


def write_expected(folder, lines):
    with open(folder / "expected.jsonl", "w") as f:
        for line in lines:
            f.write(json.dumps(line) + "\n")


def rounded(x):
    return [float(f"{v:.9g}") for v in x]


def export(network, path):
    """The network as ONNX; its weights are those of all folders of SPLADE."""
    import torch

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, input_ids, attention_mask):
            return self.network(input_ids=input_ids, attention_mask=attention_mask).logits
    ids = torch.tensor([[2, 7, 8, 3]])
    torch.onnx.export(Logits().eval(), (ids, torch.ones_like(ids)), str(path), dynamo=False, opset_version=17,
                      input_names=["input_ids", "attention_mask"], output_names=["logits"],
                      dynamic_axes={n: {0: "batch", 1: "sequence"} for n in ("input_ids", "attention_mask", "logits")})


def splade(folder, strategy, activation):
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.models import MLMTransformer, SpladePooling
    bert_files(folder / "base", True)
    model = SparseEncoder(modules=[MLMTransformer(str(folder / "base")),
                                   SpladePooling(strategy, activation_function=activation)], device="cpu")
    model.save_pretrained(str(folder))
    if (strategy, activation) == ("max", "relu"):
        export(model[0].auto_model, folder / "logits.onnx")
    model.double()
    lines = []
    for text in TEXTS:
        row = model.encode([text], convert_to_sparse_tensor=False)[0].numpy()
        at = np.flatnonzero(row)
        lines.append({"text": text, "role": "document", "indices": at.tolist(), "values": rounded(row[at])})
    write_expected(folder, lines)


def colbert(folder, **settings):
    from pylate import models
    bert_files(folder / "base", False)
    model = models.ColBERT(str(folder / "base"), embedding_size=WIDTH, query_prefix="[unused0]",
                           document_prefix="[unused1]", query_length=12, document_length=24, device="cpu", **settings)
    import torch
    generator = torch.Generator().manual_seed(11)
    for module in list(model)[1:]:
        for p in module.parameters():
            p.data = torch.randn(p.shape, generator=generator) * 0.5
    model.save(str(folder))
    model.double()
    lines = []
    for role in ("document", "query"):
        for text in TEXTS:
            query = role == "query"
            rows = model.encode([text], is_query=query, show_progress_bar=False)[0]
            ids = model.tokenize([text], is_query=query)["input_ids"][0].tolist()
            if not query:
                ids = [i for i in ids if i not in model.skiplist]
            assert len(ids) == len(rows)
            lines.append({"text": text, "role": role, "ids": ids, "vectors": [rounded(r) for r in rows]})
    write_expected(folder, lines)


def logits(folder):
    """A graph without attention: logits and rows of each token. It has no input for a mask."""
    from onnx import TensorProto as T
    from onnx import helper as h
    from onnx import numpy_helper as n
    rng = np.random.default_rng(5)
    table, up = (rng.standard_normal(s).astype(np.float32) for s in ((96, HIDDEN), (HIDDEN, 96)))
    value = h.make_tensor_value_info
    graph = h.make_graph(
        [h.make_node("Gather", ["table", "input_ids"], ["rows"]), h.make_node("MatMul", ["rows", "up"], ["logits"])], "logits",
        [value("input_ids", T.INT64, ["batch", "sequence"])],
        [value("logits", T.FLOAT, ["batch", "sequence", 96]), value("rows", T.FLOAT, ["batch", "sequence", HIDDEN])],
        [n.from_array(table, "table"), n.from_array(up, "up")])
    folder.mkdir(parents=True)
    import onnx
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")


CASES = {
    "logits": logits,
    "splade-max": lambda f: splade(f, "max", "relu"),
    "splade-sum": lambda f: splade(f, "sum", "relu"),
    "splade-twice": lambda f: splade(f, "max", "log1p_relu"),
    "colbert-hidden": colbert,
    "colbert-attended": lambda f: colbert(f, attend_to_expansion_tokens=True, skiplist_words=["the", "!", "##s"]),
    "colbert-short": lambda f: colbert(f, do_query_expansion=False),
}


def main():
    for name in sys.argv[1:] or CASES:
        folder = OUT / name
        shutil.rmtree(folder, ignore_errors=True)
        CASES[name](folder)
        shutil.rmtree(folder / "base", ignore_errors=True)
        for junk in ("README.md", "vocab.txt", "special_tokens_map.json"):
            (folder / junk).unlink(missing_ok=True)
        print(name, sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()), "bytes")


if __name__ == "__main__":
    main()
