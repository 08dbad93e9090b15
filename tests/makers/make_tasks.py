#!/usr/bin/env python3
"""Writes tests/data/tasks: tiny checkpoints of classifiers and language models with random weights, and their results.

usage: make_tasks.py      (needs torch, transformers 4.57.1, sentence-transformers 5.7.0, onnx; see ORIGIN.md)
Two kinds of directories. Those of HEADS hold a network and its logits for the token ids beside them, computed in
double, each text alone. Those of MODELS have a tokenizer too, and what CrossEncoder.predict of sentence-transformers
and the text-classification pipeline of transformers give for the texts of texts.jsonl.
"""
import collections
import copy
import json
import math
import pathlib
import re
import shutil
import string
import sys
import tempfile
import warnings

import numpy as np
import onnx
import safetensors.torch
import torch
import transformers as tf
from sentence_transformers import CrossEncoder
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import nn

import make_hf

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "tasks"
VOCAB, WORDS, HIDDEN, INNER, LENGTHS = 96, 140, 16, 24, (12, 5, 1)
PAD, MODEL_LENGTH = 1, 24
warnings.filterwarnings("ignore")
tf.logging.set_verbosity_error()

LONG = "The harbour was still dark when the first boats came in, and gulls were already quarrelling over the nets. "
TEXTS = [
    ("what is the capital of france?", "Paris is the capital and largest city of France."),
    ("what is the capital of france?", "A cat sat on the mat."),
    ("", ""),
    ("a question without an answer", ""),
    ("", "an answer without a question"),
    ("naïve café — “déjà vu”", "Zürich, Århus, Łódź: ß → ss"),
    ("日本語のテキスト", "東京は日本の首都です。"),
    ("mixed \U0001F600 emoji", "👩‍👩‍👧 family\tand\ttabs"),
    (LONG * 2, "short"),
    ("short", LONG * 2),
    (LONG, LONG[::-1]),
    ("UPPER lower 12345", "x" * 120),
]


# ---- networks ----

def like(**more):
    return dict(vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=1, num_attention_heads=2, pad_token_id=PAD,
                intermediate_size=INNER, max_position_embeddings=40) | more


def net(kind, **more):
    model = getattr(tf, kind)
    config = model.config_class(**like(**more))
    config._attn_implementation = "eager"
    return model(config)


def modern(kind, **more):
    return net(kind, bos_token_id=2, cls_token_id=2, eos_token_id=3, sep_token_id=3, reference_compile=False,
               global_attn_every_n_layers=1, **more)


def decoder(kind, **more):
    return net(kind, num_key_value_heads=1, head_dim=8, use_cache=False, **more)


class Beside(nn.Module):
    """A classifier whose code lies beside its weights: the pooler of BERT, or the head of RoBERTa, on first tokens."""

    def __init__(self, name, model, labels, head):
        super().__init__()
        self.name, self.head = name, head
        self.add_module(name, model)
        if head:
            self.classifier = nn.ModuleDict({"dense": nn.Linear(HIDDEN, HIDDEN), "out_proj": nn.Linear(HIDDEN, labels)})
        else:
            model.pooler = nn.ModuleDict({"dense": nn.Linear(HIDDEN, HIDDEN)})
            self.classifier = nn.Linear(HIDDEN, labels)
        self.config = model.config | {"architectures": ["BesideForSequenceClassification"], "pad_token_id": PAD,
                                      "id2label": {str(i): f"LABEL_{i}" for i in range(labels)}}

    def forward(self, ids, types):
        model = getattr(self, self.name)
        first = model(ids, types)[:, 0]
        if self.head:
            return self.classifier["out_proj"](torch.tanh(self.classifier["dense"](first)))
        return self.classifier(torch.tanh(model.pooler["dense"](first)))


class Colbert(nn.Module):
    """stanford-futuredata/ColBERT: HF_ColBERT."""

    def __init__(self):
        super().__init__()
        self.bert = net("BertModel")
        self.linear = nn.Linear(HIDDEN, 8, bias=False)
        self.config = self.bert.config.to_dict() | {"architectures": ["HF_ColBERT"]}

    def forward(self, ids, types):
        return self.linear(self.bert(ids, token_type_ids=types).last_hidden_state)


SEQUENCE, MASKED, TOKEN = "ForSequenceClassification", "ForMaskedLM", "ForTokenClassification"
HEADS = {
    "roberta": lambda: net("Roberta" + SEQUENCE, num_labels=2),
    "camembert": lambda: net("Camembert" + SEQUENCE, num_labels=2, type_vocab_size=1),
    "mpnet": lambda: net("MPNet" + SEQUENCE, num_labels=2),
    "albert": lambda: net("Albert" + SEQUENCE, num_labels=2, embedding_size=8),
    "electra": lambda: net("Electra" + SEQUENCE, num_labels=2, embedding_size=8),
    "deberta": lambda: net("DebertaV2" + SEQUENCE, num_labels=2, pooler_hidden_act="relu", pooler_hidden_size=HIDDEN,
                           position_biased_input=True, type_vocab_size=0),
    "modernbert-cls": lambda: modern("ModernBert" + SEQUENCE, num_labels=2, classifier_pooling="cls",
                                     classifier_bias=True, norm_bias=True, classifier_activation="silu"),
    "qwen2": lambda: decoder("Qwen2" + SEQUENCE, num_labels=2),
    "qwen3": lambda: decoder("Qwen3" + SEQUENCE, num_labels=1),
    "nomic": lambda: Beside("bert", make_hf.Nomic(gated=False, interleaved=False), 2, False),
    "gte": lambda: Beside("new", make_hf.Gte(), 2, False),
    "jina-v2": lambda: Beside("bert", make_hf.JinaBert(), 1, False),
    "jina-xlm": lambda: Beside("roberta", make_hf.JinaXlm(rotary=False), 1, True),
    "bert-masked": lambda: net("Bert" + MASKED, hidden_act="relu"),
    "roberta-masked": lambda: net("Roberta" + MASKED),
    "distilbert-masked": lambda: net("DistilBert" + MASKED, dim=HIDDEN, n_layers=1, n_heads=2, hidden_dim=INNER),
    "mpnet-masked": lambda: net("MPNet" + MASKED),
    "albert-masked": lambda: net("Albert" + MASKED, embedding_size=8),
    "electra-masked": lambda: net("Electra" + MASKED, embedding_size=8),
    "deberta-masked": lambda: net("DebertaV2" + MASKED, type_vocab_size=0),
    "modernbert-masked": lambda: modern("ModernBert" + MASKED, tie_word_embeddings=False),
    "bert-token": lambda: net("Bert" + TOKEN, num_labels=3),
    "modernbert-token": lambda: modern("ModernBert" + TOKEN, num_labels=3),
    "colbert": lambda: Colbert(),
}


def randomize(model, seed=7):
    """Weights that are exact in half precision, large enough that logits differ visibly."""
    g = torch.Generator().manual_seed(seed)
    masked = type(model).__name__.endswith(MASKED)
    table, gain = (0.4, 1.1) if masked else (1.0, 1.6)  # many logits from the table: larger ones lose digits in float32
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=g)
            if p.ndim < 2:
                norm = name.endswith("weight") and float(p.detach().float().mean().abs()) > 0.5
                p.copy_(1.0 + 0.2 * noise if norm else 0.3 * noise)
            else:
                p.copy_(noise * (table if "embed" in name else gain / math.sqrt(p[0].numel())))
            p.copy_(p.half().float())
    return model.eval()


def save(model, out, half):
    """config.json and model.safetensors, as files on the hub are: without what is tied or made again."""
    out.mkdir(parents=True)
    if isinstance(model.config, dict):
        state = {k: v.half().contiguous() for k, v in model.state_dict().items()}
        safetensors.torch.save_file(state, out / "model.safetensors", metadata={"format": "pt"})
        (out / "config.json").write_text(json.dumps(model.config, indent=1) + "\n")
        return
    (copy.deepcopy(model).half() if half else model).save_pretrained(out)  # half: buffers would lose digits
    (out / "generation_config.json").unlink(missing_ok=True)
    config = json.loads((out / "config.json").read_text())
    config.pop("dtype", None)
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")


# ---- networks and their logits ----

def make_inputs():
    rng = np.random.default_rng(11)
    mask = np.arange(LENGTHS[0])[None, :] < np.array(LENGTHS)[:, None]
    ids = np.where(mask, rng.integers(5, VOCAB, mask.shape), PAD)
    types = mask & (np.arange(LENGTHS[0]) > 2)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def compute(model, ids, types):
    """The logits of one text."""
    if isinstance(model.config, dict):
        return model(ids, types)
    typed = model.config.model_type in ("albert", "bert", "electra")
    return model(ids, attention_mask=torch.ones_like(ids), **({"token_type_ids": types} if typed else {})).logits


def make_head(name, build, inputs):
    torch.manual_seed(0)
    model = randomize(build())
    out = OUT / name
    shutil.rmtree(out, ignore_errors=True)
    save(model, out, half=True)
    model.double()
    with torch.no_grad():
        rows = [compute(model, torch.from_numpy(inputs["input_ids"][i:i + 1, :n]).long(),
                        torch.from_numpy(inputs["token_type_ids"][i:i + 1, :n]).long())[0].numpy()
                for i, n in enumerate(LENGTHS)]
    if rows[0].ndim == 2:  # a row for each token, padded with zeros
        rows = [np.pad(r, ((0, LENGTHS[0] - len(r)), (0, 0))) for r in rows]
    logits = np.stack(rows).astype("<f4")
    (out / "logits.f32").write_bytes(logits.tobytes())
    print(f"{name}: {logits.shape}, deviation {logits.std():.2f}")


# ---- models with tokenizers ----

def wordpiece():
    words = collections.Counter(re.findall(r"[a-z]{2,}", " ".join(a + " " + b for a, b in TEXTS).lower()))
    letters = string.ascii_lowercase + string.digits + ".?é日本東"
    vocab = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + c for c in letters),
             *sorted(words, key=lambda w: (-words[w], w))]
    t = Tokenizer(models.WordPiece({w: i for i, w in enumerate(vocab[:WORDS])}, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=False)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t, dict(unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")


def unigram():
    text = " ".join(a + " " + b for a, b in TEXTS[:8]) + LONG
    pieces = collections.Counter(text.replace(" ", "\u2581"))
    pieces.update(p for w in text.split() for p in ("\u2581" + w[:3], w[-3:], w[1:3], w))
    del pieces[""]
    ordered = sorted(pieces, key=lambda p: (len(p) > 1, -pieces[p], p))
    vocab = [(p, 0.0) for p in ("<s>", "<pad>", "</s>", "<unk>")]
    vocab += [(p, -2.0 - 0.125 * i / len(p)) for i, p in enumerate(ordered[:WORDS - 5])] + [("<mask>", 0.0)]
    t = Tokenizer(models.Unigram(vocab, unk_id=3))
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return t, dict(unk_token="<unk>", pad_token="<pad>", cls_token="<s>", sep_token="</s>", mask_token="<mask>",
                   bos_token="<s>", eos_token="</s>")


LABELS = {"id2label": {0: "negative", 1: "neutral", 2: "positive \"so\""}}
MODELS = {  # name: (network, tokenizer, its inputs)
    "cross-bert": (lambda n: net("Bert" + SEQUENCE, vocab_size=n, num_labels=1), wordpiece),
    "cross-xlm-roberta": (lambda n: net("XLMRoberta" + SEQUENCE, vocab_size=n, num_labels=1, type_vocab_size=1),
                          unigram),
    "cross-distilbert": (lambda n: net("DistilBert" + SEQUENCE, vocab_size=n, num_labels=1, dim=HIDDEN, n_layers=1,
                                       n_heads=2, hidden_dim=INNER), wordpiece),
    "cross-modernbert": (lambda n: modern("ModernBert" + SEQUENCE, vocab_size=n, num_labels=1,
                                          classifier_pooling="mean"), wordpiece),
    "labels-bert": (lambda n: net("Bert" + SEQUENCE, vocab_size=n, **LABELS), wordpiece),
    "splade-distilbert": (lambda n: net("DistilBert" + MASKED, vocab_size=n, dim=HIDDEN, n_layers=1, n_heads=2,
                                        hidden_dim=INNER), wordpiece),
}


def edited(folder, scratch, **settings):
    """The directory with other settings in config.json."""
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(folder, scratch)
    config = json.loads((folder / "config.json").read_text())
    (scratch / "config.json").write_text(json.dumps(config | settings))
    return str(scratch)


def predict(folder):
    encoder = CrossEncoder(str(folder), device="cpu", model_kwargs={"dtype": torch.float32})
    return encoder.predict(TEXTS, batch_size=1)


def classify_pairs(folder):
    """As the pipeline scores pairs, but for an empty second text, of which it makes no pair."""
    model = tf.AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return [model(**tokenizer([a], [b], truncation=True, return_tensors="pt")).logits[0].softmax(-1).numpy()
                for a, b in TEXTS]


def classify(folder):
    """Rows in the order of the labels."""
    pipe = tf.pipeline("text-classification", model=str(folder), device="cpu", dtype=torch.float32)
    order = [pipe.model.config.id2label[i] for i in range(pipe.model.config.num_labels)]
    rows = []
    for a, _ in TEXTS:
        found = pipe(a, top_k=None, truncation=True)
        scores = {f["label"]: f["score"] for f in found}
        rows.append([scores[label] for label in order])
    return rows


def store(folder, name, rows):
    values = np.asarray(rows, "<f4")
    (folder / name).write_bytes(values.tobytes())
    print(f"  {name}: {values.shape}, from {values.min():.3f} to {values.max():.3f}")


def export(folder, model, names):
    """The same network as an ONNX file."""
    out = OUT / (folder.name + "-onnx")
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(folder, out)
    (out / "model.safetensors").unlink()
    inputs = tuple(torch.ones(2, 7, dtype=torch.long) for _ in names)
    axes = {n: {0: "batch", 1: "sequence"} for n in names} | {"logits": {0: "batch"}}
    path = str(out / "model.onnx")
    torch.onnx.export(model, inputs, path, dynamo=False, opset_version=17, input_names=names, output_names=["logits"],
                      dynamic_axes=axes)
    proto = onnx.load(path)
    for item in proto.graph.node:
        item.doc_string = ""
    onnx.save(proto, path)


def make_model(name, build, tokenizer):
    torch.manual_seed(0)
    fast, special = tokenizer()
    model = randomize(build(fast.get_vocab_size()))
    model.config.pad_token_id = PAD
    out = OUT / name
    shutil.rmtree(out, ignore_errors=True)
    print(name, fast.get_vocab_size())
    save(model, out, half=False)
    names = ["input_ids", "attention_mask"] + (["token_type_ids"] if "bert" == model.config.model_type else [])
    wrapped = tf.PreTrainedTokenizerFast(tokenizer_object=fast, model_max_length=MODEL_LENGTH, model_input_names=names,
                                         **special)
    wrapped.save_pretrained(out)
    (out / "special_tokens_map.json").unlink()
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (out / file).write_text(json.dumps(json.loads((out / file).read_text()), ensure_ascii=False) + "\n")
    with tempfile.TemporaryDirectory() as t:
        scratch = pathlib.Path(t) / "model"
        if name.startswith("cross"):
            store(out, "rerank.f32", predict(out))
            identity = "torch.nn.modules.linear.Identity"
            new = predict(edited(out, scratch, sentence_transformers={"activation_fn": identity, "version": "5.0.0"}))
            old = predict(edited(out, scratch, sbert_ce_default_activation_function=identity))
            assert np.array_equal(new, old) and abs(np.log(1 / predict(out) - 1) + new).max() < 1e-3
            store(out, "logits.f32", new)
        if name == "labels-bert":
            store(out, "text.f32", classify(out))
            store(out, "pair.f32", classify_pairs(out))
            store(out, "several.f32", classify(edited(out, scratch, problem_type="multi_label_classification")))
            store(out, "logits.f32", classify(edited(out, scratch, problem_type="regression")))
        if name == "splade-distilbert":
            store(out, "splade.f32", splade(model, wrapped))
        if name == "cross-bert":
            store(out, "text.f32", classify(out))
            model.config.return_dict = False
            export(out, model, names)


def splade(model, tokenizer):
    """max over tokens of log(1 + relu(logits)): Formal et al. 2021."""
    model = copy.deepcopy(model).double()
    rows = []
    for a, _ in TEXTS:
        x = tokenizer(a, truncation=True, return_tensors="pt")
        with torch.no_grad():
            logits = model(x["input_ids"], attention_mask=x["attention_mask"]).logits[0]
        rows.append(torch.log1p(torch.relu(logits)).max(dim=0).values.numpy())
    return rows


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    with open(OUT / "texts.jsonl", "w") as f:
        for a, b in TEXTS:
            f.write(json.dumps({"text": a, "pair": b}, ensure_ascii=False) + "\n")
    inputs = make_inputs()
    for name, values in inputs.items():
        (OUT / f"{name}.i64").write_bytes(values.astype("<i8").tobytes())
    for name, build in HEADS.items():
        make_head(name, build, inputs)
    for name, row in MODELS.items():
        make_model(name, *row)


if __name__ == "__main__":
    sys.exit(main())
