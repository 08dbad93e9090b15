#!/usr/bin/env python3
"""Writes tests/data/modules: tiny models of sentence-transformers and Model2Vec with random weights, and their vectors.

usage: make_module_cases.py [NAME...]      (all; needs sentence-transformers, model2vec; see tests/data/modules/ORIGIN.md)
The files of tests/fuzz/corpus/torch are written too, if no name is given.
Each folder is a model directory with expected.f32 (float32, one row for each line of texts.txt), computed in double
precision. Names of further expected files: expected.<what>=<value>.f32, with what one of prompt, route.
"""
import json
import pathlib
import shutil
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import (CNN, Dense, Dropout, LayerNorm, Normalize, Pooling, Router, StaticEmbedding,
                                          Transformer, WeightedLayerPooling, WordWeights)
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, Qwen2Config, Qwen2Model

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "modules"
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] a cat dog sat on the mat and ##s ##ed walk query : find The Cat . , red".split()
TEXTS = ["the cat sat on the mat", "a dog walked", "cats and dogs , walked on the red mat . the dog sat .", "red",
         "The Cat", "find the zebra", "a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a"]
HIDDEN = 8


def tokenizer(lowercase=False):
    t = Tokenizer(models.WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def wrapped(t):
    return PreTrainedTokenizerFast(tokenizer_object=t, model_max_length=30, pad_token="[PAD]", unk_token="[UNK]",
                                   cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")


def base(folder, lowercase=False, **settings):
    """A network in Hugging Face layout, as the files of a Transformer module."""
    torch.manual_seed(7)
    config = BertConfig(**{"vocab_size": len(WORDS), "hidden_size": HIDDEN, "num_hidden_layers": 1, "num_attention_heads": 2,
                           "intermediate_size": 12, "max_position_embeddings": 32, "pad_token_id": 0,
                           "initializer_range": 0.8} | settings)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    wrapped(tokenizer(lowercase)).save_pretrained(folder)


def transformer(folder, settings={}, **more):
    base(folder / "base", **settings)
    module = Transformer(str(folder / "base"), **more)
    return module


def randomize(*modules):
    generator = torch.Generator().manual_seed(11)
    for module in modules:
        for p in module.parameters():
            p.data = torch.randn(p.shape, generator=generator) * 0.5
    return modules[0]


def vectors(model, batch_size=3, **more):
    return np.asarray(model.to(torch.float64).encode(TEXTS, convert_to_numpy=True, batch_size=batch_size, **more), np.float64)


def write(folder, modules, prompts=None, expect=({},), tidy=None, safe=True, batch_size=3, **settings):
    """Saves, loads what was saved, and keeps the vectors; tidy changes the saved files before they are loaded."""
    model = SentenceTransformer(modules=modules, prompts=prompts, device="cpu", **settings)
    model.save(str(folder), safe_serialization=safe, create_model_card=False)
    shutil.rmtree(folder / "base", ignore_errors=True)
    if tidy:
        tidy(folder)
    for how in expect:
        loaded = SentenceTransformer(str(folder), device="cpu")
        name = "expected" + "".join(f".{k}={v}" for k, v in how.items()) + ".f32"
        names = {"prompt": "prompt_name", "route": "task"}
        vectors(loaded, batch_size, **{names[k]: v for k, v in how.items()}).astype("<f4").tofile(folder / name)


def edit(path, **values):
    old = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in (old | values).items() if v is not None}, indent=1))


def dense(i, o, activation, **more):
    return randomize(Dense(i, o, activation_function=activation, **more))


# ---- the cases ----

def pooling(modes, **more):
    def make(folder):
        def tidy(f):
            (f / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": HIDDEN} | modes))
        write(folder, [transformer(folder), Pooling(HIDDEN)], tidy=tidy, **more)
    return make


def after(*make_modules, pooled="mean", **more):
    def make(folder):
        write(folder, [transformer(folder), Pooling(HIDDEN, pooled)] + [m() for m in make_modules], **more)
    return make


def tokens(folder):
    write(folder, [transformer(folder), dense(HIDDEN, 6, torch.nn.GELU(), module_input_name="token_embeddings"),
                   dense(6, 6, torch.nn.SiLU(), module_input_name="token_embeddings", use_residual=True),
                   Normalize(module_input_name="token_embeddings"), Pooling(6), Normalize()])


def cnn(folder):
    write(folder, [transformer(folder), randomize(CNN(HIDDEN, 3, [1, 3, 5])), Pooling(9, ("mean", "max"))], batch_size=1)


def static(folder, dtype=torch.float32):
    module = StaticEmbedding(tokenizer(), embedding_dim=5)
    randomize(module)
    write(folder, [module.to(dtype), Normalize()])


def router_first(folder):
    query = randomize(StaticEmbedding(tokenizer(), embedding_dim=HIDDEN))
    write(folder, [Router.for_query_document([query, dense(HIDDEN, HIDDEN, torch.nn.Tanh())],
                                             [transformer(folder), Pooling(HIDDEN, "cls")]), Normalize()],
          expect=({}, {"route": "query"}, {"route": "document"}))


def router_last(folder):
    routes = {"query": [dense(HIDDEN, 4, torch.nn.Tanh())], "doc": [dense(HIDDEN, 4, torch.nn.Identity()), Normalize()]}
    write(folder, [transformer(folder), Pooling(HIDDEN), Router(routes)],
          expect=({}, {"route": "query"}, {"route": "doc"}))


def asym(folder):
    """As saved before Router: the file is config.json, the class Asym."""
    routes = {"query": [dense(HIDDEN, 4, torch.nn.Tanh())], "doc": [dense(HIDDEN, 4, torch.nn.ReLU())]}

    def tidy(f):
        path = next(f.glob("2_*"))
        (path / "router_config.json").rename(path / "config.json")
        edit(path / "config.json", parameters={"allow_empty_key": True})
        text = (f / "modules.json").read_text()
        (f / "modules.json").write_text(text.replace("sentence_transformers.base.modules.router.Router", "sentence_transformers.models.Asym")
                                        .replace("sentence_transformers.models.Router", "sentence_transformers.models.Asym"))
    write(folder, [transformer(folder), Pooling(HIDDEN), Router(routes, allow_empty_key=True)], tidy=tidy,
          expect=({}, {"route": "doc"}))


def lower(folder):
    def tidy(f):
        edit(f / "sentence_bert_config.json", do_lower_case=True, max_seq_length=12)
    write(folder, [transformer(folder), Pooling(HIDDEN)], tidy=tidy)


def old_layout(folder):
    """As the first versions wrote it: everything in numbered folders, weights of torch.save."""
    def tidy(f):
        (f / "0_BERT").mkdir()
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                     "sentence_bert_config.json"):
            if (f / name).exists():
                (f / name).rename(f / "0_BERT" / name)
        model = BertModel.from_pretrained
        weights = __import__("safetensors.torch", fromlist=["load_file"]).load_file(str(f / "model.safetensors"))
        (f / "model.safetensors").unlink()
        torch.save(weights, f / "0_BERT/pytorch_model.bin", _use_new_zipfile_serialization=False)
        listed = json.loads((f / "modules.json").read_text())
        listed[0]["path"] = "0_BERT"
        (f / "modules.json").write_text(json.dumps(listed))
        assert model
    write(folder, [transformer(folder), Pooling(HIDDEN), dense(HIDDEN, 5, torch.nn.Tanh())], tidy=tidy, safe=True)


def torch_weights(folder):
    """Two shards, in which weights are parameters, transposed views, views of one storage, bfloat16 and double."""
    def tidy(f):
        weights = __import__("safetensors.torch", fromlist=["load_file"]).load_file(str(f / "model.safetensors"))
        (f / "model.safetensors").unlink()
        names = sorted(weights)
        half = {n: weights[n] for n in names[:9]}
        rest = {n: weights[n] for n in names[9:]}
        for shard in (half, rest):
            both = torch.cat([t.flatten() for t in shard.values()])  # all tensors in one storage
            at = 0
            for i, (n, t) in enumerate(list(shard.items())):
                view = both[at:at + t.numel()].view(t.shape)
                at += t.numel()
                shard[n] = torch.nn.Parameter(view) if i % 3 == 0 else view
                if t.dim() == 2 and i % 2:
                    shard[n] = t.t().contiguous().t()
        files = {"pytorch_model-00001-of-00002.bin": half, "pytorch_model-00002-of-00002.bin": rest}
        for name, shard in files.items():
            torch.save(shard, f / name)
        index = {"metadata": {}, "weight_map": {n: file for file, shard in files.items() for n in shard}}
        (f / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    write(folder, [transformer(folder), Pooling(HIDDEN)], tidy=tidy)


def half(dtype):
    def make(folder):
        def tidy(f):
            st = __import__("safetensors.torch", fromlist=["load_file"])
            for path in f.rglob("model.safetensors"):
                st.save_file({n: t.to(dtype) for n, t in st.load_file(str(path)).items()}, str(path), {"format": "pt"})
        write(folder, [transformer(folder), Pooling(HIDDEN), dense(HIDDEN, 4, torch.nn.Tanh())], tidy=tidy)
    return make


def model2vec(folder, quantized=False):
    from model2vec import StaticModel
    rng = np.random.default_rng(5)
    t = tokenizer(True)
    rows = len(WORDS) if not quantized else 9
    table = rng.standard_normal((rows, 6)).astype(np.float32)
    more = {"weights": rng.random(len(WORDS)).astype(np.float32),
            "token_mapping": rng.integers(0, rows, len(WORDS))} if quantized else {}
    model = StaticModel(table, t, normalize=quantized, max_length=12, **more)
    folder.mkdir(parents=True)
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    for name in ("modules.json",):  # Model2Vec's own layout
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "1_Normalize", ignore_errors=True)
    edit(folder / "config.json", model_type="model2vec")
    loaded = StaticModel.from_pretrained(folder)
    loaded.encode(TEXTS).astype("<f4").tofile(folder / "expected.f32")


def layers(**settings):
    """The mean of a network's layers; without output_hidden_states, of which the module does nothing."""
    def make(folder):
        network = transformer(folder, {"num_hidden_layers": 3} | settings)
        write(folder, [network, randomize(WeightedLayerPooling(HIDDEN, num_hidden_layers=3, layer_start=1)),
                       Pooling(HIDDEN, ("mean", "lasttoken"))])
    return make


def decoder_layers(folder):
    """A decoder, whose last layer is behind a norm."""
    config = Qwen2Config(vocab_size=len(WORDS), hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=1, intermediate_size=12, max_position_embeddings=32, pad_token_id=0,
                         initializer_range=0.8, output_hidden_states=True)
    torch.manual_seed(8)
    Qwen2Model(config).save_pretrained(folder / "base")
    wrapped(tokenizer()).save_pretrained(folder / "base")
    write(folder, [Transformer(str(folder / "base")), randomize(WeightedLayerPooling(HIDDEN, num_hidden_layers=2, layer_start=0)),
                   Pooling(HIDDEN, "mean")])


def word_weights(folder):
    weights = {w: 0.25 + 0.125 * (i * 7 % 11) for i, w in enumerate(WORDS[5:15])} | {"the": 0.0, "the cat": 3.0}
    write(folder, [transformer(folder), WordWeights(WORDS, weights, unknown_word_weight=0.75), Normalize(module_input_name="token_embeddings"),
                   Pooling(HIDDEN, ALL)])


def truncated(folder):
    write(folder, [transformer(folder), Pooling(HIDDEN)], truncate_dim=3, tidy=lambda f: edit(
        f / "config_sentence_transformers.json", truncate_dim=3))


ALL = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
PROMPTS = {"find": "find : ", "query": "query : the "}
CASES = {
    "pool-named": pooling({"pooling_mode": ["lasttoken", "mean", "cls", "weightedmean", "max", "mean_sqrt_len_tokens"]}),
    "pool-flags": pooling({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": True,
                           "pooling_mode_mean_sqrt_len_tokens": True, "pooling_mode_weightedmean_tokens": True,
                           "pooling_mode_lasttoken": True}),
    "pool-prompt": pooling({"pooling_mode": ALL, "include_prompt": False}, prompts=PROMPTS,
                           expect=({}, {"prompt": "find"}, {"prompt": "query"})),
    "prompt-default": pooling({"pooling_mode": "mean"}, prompts=PROMPTS, default_prompt_name="find",
                              expect=({}, {"prompt": "query"})),
    "dense": after(lambda: dense(HIDDEN, 5, torch.nn.Tanh())),
    "dense-plain": after(lambda: dense(HIDDEN, 20, torch.nn.Identity(), bias=False),
                         lambda: dense(20, 7, torch.nn.GELU()), Normalize),
    "dense-residual": after(lambda: dense(HIDDEN, HIDDEN, torch.nn.ReLU(), use_residual=True),
                            lambda: dense(HIDDEN, 5, torch.nn.Sigmoid(), use_residual=True),
                            lambda: dense(5, 5, torch.nn.SiLU())),
    "dense-tokens": tokens,
    "chain": after(lambda: randomize(LayerNorm(2 * HIDDEN)), lambda: Dropout(0.4), Normalize,
                   lambda: dense(2 * HIDDEN, 4, torch.nn.Tanh()), lambda: randomize(LayerNorm(4)), Dropout,
                   pooled=("mean", "max")),
    "cnn": cnn,
    "static": static,
    "router-first": router_first,
    "router-last": router_last,
    "asym": asym,
    "lower": lower,
    "old-layout": old_layout,
    "torch-shards": torch_weights,
    "half": half(torch.float16),
    "brain": half(torch.bfloat16),
    "model2vec": model2vec,
    "model2vec-quantized": lambda f: model2vec(f, True),
    "truncated": truncated,
    "layers": layers(output_hidden_states=True),
    "layers-unused": layers(),
    "layers-decoder": decoder_layers,
    "word-weights": word_weights,
}


def corpus(folder):
    """Files of torch.save for tests/fuzz."""
    kinds = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
             torch.bool, torch.complex64, torch.uint16, torch.float8_e4m3fn, torch.float8_e5m2]
    every = {str(k): torch.ones(3, 2).to(k) for k in kinds}
    shared = torch.arange(12.0)
    files = {"dtypes.bin": every, "views.bin": {"a": shared[2:8].view(2, 3).t(), "b": shared[::3], "c": torch.tensor(1.5)},
             "parameter.bin": {"state_dict": torch.nn.Linear(3, 2).state_dict(), "epoch": 3},
             "module.bin": torch.nn.LayerNorm(4).state_dict()}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, value in files.items():
        torch.save(value, folder / name)
    torch.save({"w": torch.nn.Parameter(torch.ones(2, 2)), "v": shared.half()[1:4]}, folder / "old.bin",
               _use_new_zipfile_serialization=False)


def main():
    if not sys.argv[1:]:
        corpus(OUT.parent.parent / "fuzz" / "corpus" / "torch")
    for name in sys.argv[1:] or CASES:
        shutil.rmtree(OUT / name, ignore_errors=True)
        CASES[name](OUT / name)
        for path in (OUT / name).rglob("*"):
            if path.name in (".gitattributes", "README.md", "special_tokens_map.json") or path.name == "base":
                path.unlink() if path.is_file() else shutil.rmtree(path)
        print(name, sum(p.stat().st_size for p in (OUT / name).rglob("*") if p.is_file()), flush=True)
    (OUT / "texts.txt").write_text("".join(t + "\n" for t in TEXTS))


if __name__ == "__main__":
    main()
