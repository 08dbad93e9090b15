#!/usr/bin/env python3
"""Random model folders against the library that wrote them. Each seed decides a family, its tokenizer, the settings of both,
the modules behind the network, and in which form the files are; transformers and sentence-transformers write the folder with
small random weights, read it again, and compute ids and vectors of random texts. Pith must have the same ids, and vectors
whose cosine is within 1e-5 of 1. Run it in the environment of tests/references_4.txt and in that of tests/references_5.txt.

usage: random_folders.py PITH [--seconds N] [--seed N] [--only SEED] [--keep FOLDER] [--family NAME]

Seeds are --seed, --seed + 1, and so on, until the time is up. A failing seed is printed with what was drawn; --only runs it
again, and --keep leaves its folder there."""
import argparse
import io
import json
import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

import numpy as np
import sentence_transformers
import sentencepiece
import torch
import transformers as hf
from sentence_transformers import SentenceTransformer, models
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, processors, trainers
from tokenizers import models as token_models

torch.set_num_threads(1)
hf.utils.logging.disable_progress_bar()
FIVE = int(hf.__version__.split(".")[0]) >= 5
CLOSE = 1e-5

CORPUS = ["the quick brown fox jumps over the lazy dog", "Hello World, it's a long text that goes on and on", "spaces and tabs and lines, 0 1 2 3 4 5 6 7 8 9 10 123",
          "we'll don't won't isn't", "naïve café résumé Ünïcode straße ﬁne ＡＢ", "日本語 中文 한국어 русский текст", "query: passage: document: [MASK] <mask>"] * 8
PARTS = ["hello", "Hello World", "the quick brown fox", " ", "  ", "\t", "\n", "it's", "WE'LL", "don't", "123", "4567", ".", ",", "!?", "naïve", "CAFÉ", "cafe\u0301", "ﬁ", "ＡＢ",
         "日本語", "中文 字", "한국어", "русский", "😀", "👩‍👩‍👧", "\u00a0", "\u200b", "[MASK]", "<mask>", "<s>", "</s>", "[SEP]", "<unk>", "<pad>", "Straße", "İstanbul", "query: ", "foo_bar", "a.b", "``x''", "$5", "…",
         "\u3000", "ﷺ", "ǅ", "①", "x" * 30, "<extra_id_0>", "<|endoftext|>", "Ġ", "##ing", "new word"] + (["▁"] if FIVE else [])  # around which the tokenizers that 4.57 makes of SentencePiece's files differ


# ---- tokenizers: folders of raw files, and the class that reads them ----

def wordpieces(out, draw, specials):
    t = Tokenizer(token_models.WordPiece(unk_token=specials["unk_token"]))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(lowercase=draw.random() < 0.5), pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=draw.choice([150, 260]), special_tokens=list(dict.fromkeys(specials.values())), show_progress=False))
    vocab = t.get_vocab()
    (out / "vocab.txt").write_text("".join(f"{token}\n" for token in sorted(vocab, key=vocab.get)), encoding="utf-8")


def bert_words(out, draw):
    specials = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    wordpieces(out, draw, specials)
    return {"do_lower_case": draw.random() < 0.5} | some(draw, strip_accents=[True, False, None], tokenize_chinese_chars=[True, False])


def mpnet_words(out, draw):
    wordpieces(out, draw, {"cls_token": "<s>", "pad_token": "<pad>", "sep_token": "</s>", "x": "<unk>", "unk_token": "[UNK]", "mask_token": "<mask>"})
    return some(draw, do_lower_case=[True, False], strip_accents=[True, False, None])


def byte_pairs(out, specials, size):
    t = Tokenizer(token_models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, special_tokens=specials, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.model.save(str(out))


def roberta_pairs(out, draw):
    byte_pairs(out, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], draw.choice([300, 420]))
    return some(draw, add_prefix_space=[True, False], trim_offsets=[True, False])


def gpt_pairs(out, draw):
    byte_pairs(out, [], draw.choice([300, 420]))
    names = json.loads((out / "vocab.json").read_text())
    names["<|endoftext|>"] = len(names)
    (out / "vocab.json").write_text(json.dumps(names))
    return some(draw, add_prefix_space=[True, False])


def pieces(out, name, draw, **settings):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=model, vocab_size=draw.choice([180, 240]) + 260 * settings.get("byte_fallback", False),
                                             hard_vocab_limit=False, num_threads=1, minloglevel=2, **settings)
    (out / name).write_bytes(model.getvalue())


def fairseq_pieces(out, draw):
    pieces(out, "sentencepiece.bpe.model", draw, model_type="unigram", **some(draw, normalization_rule_name=["nmt_nfkc", "nfkc", "identity"]))
    return {}


def t5_pieces(out, draw):
    pieces(out, "spiece.model", draw, model_type="unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1, **some(draw, normalization_rule_name=["nmt_nfkc", "nfkc"]))
    return {"extra_ids": draw.choice([0, 4, 100])} if draw.random() < 0.5 else {}


def albert_pieces(out, draw):
    pieces(out, "spiece.model", draw, model_type="unigram", pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols=["[CLS]", "[SEP]", "[MASK]"], pad_piece="<pad>")
    return some(draw, do_lower_case=[True, False], keep_accents=[True, False], remove_space=[True])


def deberta_pieces(out, draw):
    pieces(out, "spm.model", draw, model_type="unigram", pad_id=0, unk_id=3, bos_id=1, eos_id=2, pad_piece="[PAD]", unk_piece="[UNK]", bos_piece="[CLS]", eos_piece="[SEP]", user_defined_symbols=["[MASK]"])
    return some(draw, do_lower_case=[True, False], split_by_punct=[False])


def llama_pieces(out, draw):
    pieces(out, "tokenizer.model", draw, model_type="bpe", byte_fallback=True, normalization_rule_name="identity", unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    return {"add_bos_token": draw.random() < 0.8, "add_eos_token": draw.random() < 0.5, "legacy": FIVE and draw.random() < 0.3} | some(draw, add_prefix_space=[False])


def gemma_pieces(out, draw):
    pieces(out, "tokenizer.model", draw, model_type="bpe", byte_fallback=True, normalization_rule_name="identity", pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>",
           bos_piece="<bos>", add_dummy_prefix=False, remove_extra_whitespaces=False, user_defined_symbols=["<mask>", "\n\n"])
    return {"add_bos_token": draw.random() < 0.8, "add_eos_token": draw.random() < 0.5}


def some(draw, **choices):
    """Each with its chance of being said at all."""
    return {key: draw.choice(values) for key, values in choices.items() if draw.random() < 0.5}


# ---- families: configuration class, what is drawn for it, and its tokenizers ----

def sizes(draw, act=("gelu", "relu", "gelu_new", "silu", "gelu_pytorch_tanh", "quick_gelu")):
    heads = draw.choice([1, 2, 4])
    return dict(hidden_size=heads * draw.choice([8, 16, 24]), num_attention_heads=heads, num_hidden_layers=draw.randint(1, 3), intermediate_size=draw.choice([16, 48, 80]),
                max_position_embeddings=draw.choice([40, 64, 514])) | ({"hidden_act": draw.choice(act)} if draw.random() < 0.6 else {})


def norms(draw):
    return some(draw, layer_norm_eps=[1e-5, 1e-12, 1e-6], initializer_range=[0.02])


def bert(draw):
    return sizes(draw) | norms(draw) | {"type_vocab_size": draw.choice([1, 2, 3])} | ({} if FIVE else some(draw, position_embedding_type=["absolute", "relative_key", "relative_key_query"]))


def roberta(draw):
    return bert(draw) | {"pad_token_id": 1}


def distilbert(draw):
    s = sizes(draw, ("gelu", "relu"))
    return dict(dim=s["hidden_size"], n_heads=s["num_attention_heads"], n_layers=s["num_hidden_layers"], hidden_dim=s["intermediate_size"], max_position_embeddings=s["max_position_embeddings"]) | \
        some(draw, activation=["gelu", "relu"], sinusoidal_pos_embds=[True, False])


def albert(draw):
    s = sizes(draw)
    return s | norms(draw) | {"embedding_size": draw.choice([8, 16, s["hidden_size"]]), "type_vocab_size": 2} | \
        some(draw, num_hidden_groups=[1], inner_group_num=[1])


def electra(draw):
    s = bert(draw)
    return s | {"embedding_size": draw.choice([8, 16, s["hidden_size"]])}


def deberta(draw):
    s = sizes(draw)
    relative = draw.random() < 0.8
    return s | norms(draw) | {"type_vocab_size": draw.choice([0, 2]), "relative_attention": relative, "position_biased_input": draw.random() < 0.5,
                              "pos_att_type": draw.choice([["p2c", "c2p"], ["c2p"], ["p2c"]]), "max_relative_positions": draw.choice([-1, 16, 64]),
                              "share_att_key": draw.random() < 0.5} | some(draw, position_buckets=[8, 16, -1], norm_rel_ebd=["layer_norm", "none"])


def mpnet(draw):
    return sizes(draw) | norms(draw) | some(draw, relative_attention_num_buckets=[16, 32]) | {"pad_token_id": 1}


def modernbert(draw):
    s = sizes(draw, ("gelu", "silu"))
    s["hidden_activation"] = s.pop("hidden_act", "gelu")
    more = {"global_attn_every_n_layers": draw.choice([1, 2, 3]), "local_attention": draw.choice([4, 8, 128])}
    return s | more | some(draw, norm_eps=[1e-5, 1e-6], norm_bias=[True, False], mlp_bias=[True, False], attention_bias=[True, False]) | {"pad_token_id": 0, "bos_token_id": None, "eos_token_id": None, "cls_token_id": None, "sep_token_id": None} | \
        ({} if FIVE else some(draw, global_rope_theta=[160000.0, 1000.0], local_rope_theta=[10000.0, 500.0]))


def scalings(draw):
    return draw.choice([{"rope_type": "linear", "factor": 2.0}, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
                        {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}, {"rope_type": "dynamic", "factor": 2.0}])


def rope(draw, theta=(10000.0, 500.0, 1000000.0)):
    base = draw.choice(theta)
    scaling = scalings(draw) if draw.random() < 0.4 else None
    if FIVE:
        return {"rope_parameters": (scaling or {"rope_type": "default"}) | {"rope_theta": base}}
    return {"rope_theta": base} | ({"rope_scaling": scaling} if scaling else {})


def decoder(draw):
    s = sizes(draw, ("silu", "gelu", "gelu_pytorch_tanh"))
    heads = s["num_attention_heads"]
    return s | rope(draw) | {"num_key_value_heads": draw.choice([k for k in (1, 2, 4) if heads % k == 0]), "pad_token_id": None, "bos_token_id": None, "eos_token_id": None} | \
        some(draw, rms_norm_eps=[1e-5, 1e-6], tie_word_embeddings=[True, False])


def qwen2(draw):
    return decoder(draw) | (some(draw, use_sliding_window=[True], sliding_window=[4, 8], max_window_layers=[0, 1]))


def qwen3(draw):
    return qwen2(draw) | {"head_dim": draw.choice([8, 16, 32])} | some(draw, attention_bias=[True, False])


def llama(draw):
    return decoder(draw) | some(draw, attention_bias=[True, False], mlp_bias=[True, False], head_dim=[8, 16])


def mistral(draw):
    return decoder(draw) | some(draw, sliding_window=[4, 8, None], head_dim=[8, 16])


def gemma(draw):
    return decoder(draw) | {"head_dim": draw.choice([8, 16]), "hidden_act": "gelu_pytorch_tanh", "pad_token_id": 0}


def gemma2(draw):
    s = decoder(draw)
    s["hidden_activation"] = s.pop("hidden_act", "gelu_pytorch_tanh")
    return s | {"head_dim": draw.choice([8, 16]), "query_pre_attn_scalar": draw.choice([8, 16, 256]), "sliding_window": draw.choice([4, 8, 4096]), "pad_token_id": 0} | \
        some(draw, attn_logit_softcapping=[None, 20.0, 50.0])


def gemma3(draw):
    s = sizes(draw, ("gelu_pytorch_tanh",))
    s["hidden_activation"] = s.pop("hidden_act", "gelu_pytorch_tanh")
    s["num_hidden_layers"] = draw.randint(1, 4)
    types = [draw.choice(["sliding_attention", "full_attention"]) for _ in range(s["num_hidden_layers"])]
    where = {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1000000.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}} if FIVE else \
        {"rope_theta": 1000000.0, "rope_local_base_freq": 10000.0}
    return s | where | {"head_dim": draw.choice([8, 16]), "num_key_value_heads": 1, "query_pre_attn_scalar": draw.choice([8, 256]), "sliding_window": draw.choice([4, 8, 512]), "layer_types": types,
                        "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None} | some(draw, use_bidirectional_attention=[False, True])


def t5(draw):
    s = sizes(draw)
    return dict(d_model=s["hidden_size"], num_heads=s["num_attention_heads"], num_layers=s["num_hidden_layers"], d_ff=s["intermediate_size"], d_kv=draw.choice([8, 16]), num_decoder_layers=1,
                feed_forward_proj=draw.choice(["relu", "gated-gelu", "gated-silu"]), pad_token_id=0) | some(draw, relative_attention_num_buckets=[16, 32], relative_attention_max_distance=[32, 128], layer_norm_epsilon=[1e-6, 1e-5])


def nomic(draw):
    s = sizes(draw, ("silu",))
    return s | {"type_vocab_size": 2, "rope_parameters": {"rope_type": "default", "rope_theta": draw.choice([1000.0, 10000.0])}} | some(draw, layer_norm_eps=[1e-5, 1e-12])


def eurobert(draw):
    s = decoder(draw) | {"pad_token_id": 0, "classifier_pooling": "mean"}
    return s | some(draw, attention_bias=[True, False], mlp_bias=[True, False])


BERT = ("BertTokenizer", bert_words)
ROBERTA = ("RobertaTokenizer", roberta_pairs)
XLMR = ("XLMRobertaTokenizer", fairseq_pieces)
QWEN = ("Qwen2Tokenizer", gpt_pairs)
LLAMA = ("LlamaTokenizer", llama_pieces)
FAMILIES = {
    "Bert": (bert, [BERT, ROBERTA]), "Roberta": (roberta, [ROBERTA]), "XLMRoberta": (roberta, [XLMR]), "Camembert": (roberta, [("CamembertTokenizer", fairseq_pieces)]),
    "DistilBert": (distilbert, [("DistilBertTokenizer", bert_words), BERT]), "Albert": (albert, [("AlbertTokenizer", albert_pieces)]), "Electra": (electra, [("ElectraTokenizer", bert_words)]),
    "MPNet": (mpnet, [("MPNetTokenizer", mpnet_words)]), "DebertaV2": (deberta, [("DebertaV2Tokenizer", deberta_pieces)]), "Ernie": (bert, [BERT]), "ModernBert": (modernbert, [BERT, ROBERTA]),
    "Qwen2": (qwen2, [QWEN]), "Qwen3": (qwen3, [QWEN]), "Llama": (llama, [LLAMA, QWEN]), "Mistral": (mistral, [LLAMA]), "Gemma": (gemma, [("GemmaTokenizer", gemma_pieces)]),
    "Gemma2": (gemma2, [("GemmaTokenizer", gemma_pieces)]), "Gemma3Text": (gemma3, [("GemmaTokenizer", gemma_pieces)]), "T5": (t5, [("T5Tokenizer", t5_pieces)]), "MT5": (t5, [("T5Tokenizer", t5_pieces)]),
} | ({"NomicBert": (nomic, [BERT]), "EuroBert": (eurobert, [QWEN])} if FIVE else {})
BODIES = {"T5": "T5EncoderModel", "MT5": "MT5EncoderModel", "Gemma3Text": "Gemma3TextModel"}


# ---- one folder ----

class Passed(Exception):
    """The library itself cannot do what was drawn."""


def make_tokenizer(folder, draw, told):
    name, raw = told["tokenizer"]
    settings = raw(folder, draw)
    settings |= some(draw, model_max_length=[12, 20, 40, int(1e30)], truncation_side=["left", "right"], padding_side=["left", "right"], clean_up_tokenization_spaces=[True, False])
    settings["tokenizer_class"] = name
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    fast = FIVE or draw.random() < 0.7
    kind = getattr(hf, name + ("" if FIVE or not fast else "Fast"))
    tokenizer = kind.from_pretrained(str(folder), **settings)
    extra = {}
    if draw.random() < 0.3:
        extra["added"] = draw.sample(["new word", "[X]", "foo_bar", "日本語"], draw.randint(1, 2))
        tokenizer.add_tokens([AddedToken(word, lstrip=draw.random() < 0.3, rstrip=draw.random() < 0.3, single_word=draw.random() < 0.2, normalized=draw.random() < 0.5) if draw.random() < 0.6 else word for word in extra["added"]])
    if draw.random() < 0.2:
        extra["special"] = ["<extra>"]
        tokenizer.add_special_tokens({("extra_special_tokens" if FIVE else "additional_special_tokens"): ["<extra>"]})
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    told["settings"], told["form"] = settings | extra, "fast" if fast else "slow"
    return tokenizer


def make_network(folder, draw, told, vocab):
    values, kinds = FAMILIES[told["family"]]
    config_class = getattr(hf, told["family"] + "Config")
    drawn = values(draw) | {"vocab_size": vocab + draw.choice([0, 0, 3])}
    told["config"] = drawn
    try:
        config = config_class(**drawn)
        model = getattr(hf, BODIES.get(told["family"], told["family"] + "Model"))(config)
    except (ValueError, KeyError, AssertionError) as error:
        raise Passed(repr(error)) from error
    scale = draw.choice([0.1, 0.2, 0.3])
    generator = torch.Generator().manual_seed(told["seed"])
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=generator) * scale)
    if draw.random() < 0.2:
        model = model.to(draw.choice([torch.bfloat16, torch.float16]))
        told["dtype"] = str(model.dtype)
    more = {} if FIVE or draw.random() < 0.7 else {"safe_serialization": False}
    if draw.random() < 0.15:
        more["max_shard_size"] = "20KB"
    told["files"] = more
    model.save_pretrained(folder, **more)
    return config


MODES = ["cls", "lasttoken", "max", "mean", "mean_sqrt_len_tokens", "weightedmean"]


def add_modules(folder, draw, told, config):
    if draw.random() < 0.2:
        told["modules"] = "none"
        return
    length = draw.choice([None, None, 8, 16, 64])
    # Lower case that is written into tokenizer.json is lost where a class makes its tokenizer anew: all of transformers 5.
    lower = draw.random() < 0.15 and not FIVE and not told["tokenizer"][0].startswith(("T5", "Llama", "Gemma"))
    first = models.Transformer(str(folder), max_seq_length=length, do_lower_case=lower, model_kwargs={"dtype": torch.float32})
    width = first.get_embedding_dimension() if hasattr(first, "get_embedding_dimension") else first.get_word_embedding_dimension()
    modes = tuple(sorted(draw.sample(MODES, draw.choice([1, 1, 1, 2, 3]))))
    list_ = [first, models.Pooling(width, pooling_mode=modes if len(modes) > 1 else modes[0], include_prompt=draw.random() < 0.7)]
    width *= len(modes)
    told["modules"] = [length, modes]
    if draw.random() < 0.3:
        out = draw.choice([8, 16, width])
        act = draw.choice([torch.nn.Tanh(), torch.nn.Identity(), torch.nn.GELU(), torch.nn.ReLU(), torch.nn.Sigmoid(), torch.nn.SiLU()])
        list_.append(models.Dense(width, out, bias=draw.random() < 0.5, activation_function=act))
        width = out
        told["modules"].append(str(act))
    if draw.random() < 0.2:
        list_.append(models.LayerNorm(width))
        told["modules"].append("LayerNorm")
    if draw.random() < 0.5:
        list_.append(models.Normalize())
        told["modules"].append("Normalize")
    keywords = {}
    if draw.random() < 0.3:
        keywords["prompts"] = {"query": "query: ", "passage": "The passage "}
        if draw.random() < 0.5:
            keywords["default_prompt_name"] = draw.choice(["query", "passage"])
    if draw.random() < 0.15:
        keywords["truncate_dim"] = max(2, width // 2)
    told["modules"].append(keywords)
    whole = folder.parent / "whole"
    SentenceTransformer(modules=list_, device="cpu", **keywords).save(str(whole), safe_serialization=draw.random() < 0.8)
    shutil.rmtree(folder)
    whole.rename(folder)


def texts_of(draw, told):
    """4.57 makes other tokenizers of SentencePiece's files alone than 5.24, which Pith follows: they differ around white space and
    special tokens."""
    alone = not FIVE and told["form"] == "slow" and told["tokenizer"][1].__name__.endswith("_pieces")
    rebuilt = FIVE and told["settings"].get("legacy")  # 5.24 makes the steps of the file anew, without the space before each piece
    added = told["settings"].get("added", ())
    parts = [part for part in PARTS if part == part.strip() and part[0] not in "\u200b<[" and part not in added] if alone or rebuilt else PARTS
    blank = [] if alone else ["", " "][:draw.randint(0, 2)]
    texts = ["".join(part + draw.choice(["", " ", " ", " "]) for part in (draw.choice(parts) for _ in range(draw.choice([1, 3, 6, 20])))) for _ in range(6)]
    return blank + [text.strip() if alone else text for text in texts]


def right_values(folder, texts):
    """Texts, ids, vectors, the prompt in front of texts, and whether vectors are cut after the last module."""
    how = {"attn_implementation": "eager"}  # others leave out what Gemma 2 does to scores
    model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"torch_dtype" if not FIVE else "dtype": torch.float32} | (how if "gemma2" in (folder / "config.json").read_text() else {}))
    vectors, kept = [], []
    for text in texts:
        try:
            vectors.append(model.encode(text, batch_size=1))
            kept.append(text)
        except Exception:
            if text.strip():  # what has no token is beyond some networks
                raise
    texts = kept
    prompt = model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None
    first = model[0]
    ids = []
    for text in texts:
        features = first.preprocess([text], prompt=prompt) if hasattr(first, "preprocess") else first.tokenize([text])
        ids.append([int(i) for i in features["input_ids"][0]])
    # Where positions count real tokens, a text with padding tokens in it may be longer than the network's positions allow.
    config = json.loads((folder / "config.json").read_text())
    pad = config.get("pad_token_id")
    most = (config.get("max_position_embeddings") or 1 << 30) - (pad or 0) - 1
    fits = [pad not in row or len(row) <= most for row in ids]
    texts, ids, vectors = ([x for x, good in zip(xs, fits) if good] for xs in (texts, ids, vectors))
    return texts, ids, vectors, prompt, model.truncate_dim is not None


def run(pith, verb, folder, texts):
    result = subprocess.run([pith, verb, "-m", str(folder), "-0"], input=b"".join(text.encode() + b"\0" for text in texts), capture_output=True, timeout=120)
    if result.returncode:
        raise AssertionError(f"pith {verb}: {result.stderr.decode()}")
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr.decode()


def compare(pith, folder, right, told):
    texts, ids, vectors, prompt, cut = right
    if prompt is None:
        ours, _ = run(pith, "tokenize", folder, texts)
        for text, right, row in zip(texts, ids, ours, strict=True):
            if row != right:
                raise AssertionError(f"ids of {text!r}:\n  right {right}\n  pith  {row}")
    rows, said = run(pith, "embed", folder, texts)
    told["said"] = said
    if "is not known" in said:
        raise AssertionError(f"a key that the library writes: {said}")
    for text, right, row in zip(texts, vectors, rows, strict=True):
        a, b = np.array(row, np.float64), right.astype(np.float64)
        if len(a) != len(b):
            raise AssertionError(f"{len(a)} components, not {len(b)}")
        lengths = np.linalg.norm(a) * np.linalg.norm(b)
        if not np.isfinite(b).all() or lengths < 1e-20:
            continue
        # Pith makes vectors of length 1 after it has cut them.
        if 1 - a @ b / lengths > CLOSE or (not cut and abs(np.linalg.norm(a) / np.linalg.norm(b) - 1) > 1e-3):
            raise AssertionError(f"vector of {text!r}: cosine {a @ b / lengths:.9f}, lengths {np.linalg.norm(a):.6g} and {np.linalg.norm(b):.6g}")


def one(pith, seed, family, keep):
    """None, or why it failed."""
    draw = random.Random(seed)
    told = {"seed": seed, "family": family or draw.choice(sorted(FAMILIES))}
    told["tokenizer"] = draw.choice(FAMILIES[told["family"]][1])
    top = Path(tempfile.mkdtemp(prefix="pith-folder-"))
    folder, raw = top / "model", top / "raw"
    raw.mkdir()
    try:
        try:
            tokenizer = make_tokenizer(raw, draw, told)
            config = make_network(folder, draw, told, len(tokenizer))
            tokenizer.save_pretrained(str(folder))
            if draw.random() < 0.1 and (folder / "tokenizer.json").exists() and told["form"] == "slow":
                (folder / "tokenizer.json").unlink()
            add_modules(folder, draw, told, config)
            texts = texts_of(draw, told)
            right = right_values(folder, texts)
        except Passed:
            raise
        except Exception as error:
            if os.environ.get("SHOW"):
                traceback.print_exc()
            raise Passed(f"{type(error).__name__}: {error}"[:200]) from error
        compare(pith, folder, right, told)
    except Passed as passed:
        return "passed", f"{told['family']} {told['tokenizer'][0]}: {passed}"
    except Exception as error:
        if keep:
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(folder, keep)
        told["tokenizer"] = told["tokenizer"][0]
        return "failed", f"{error}\n  drawn: {told}"
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return "good", ""


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("pith")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep")
    parser.add_argument("--family")
    args = parser.parse_args()
    print(f"transformers {hf.__version__}, sentence-transformers {sentence_transformers.__version__}, first seed {args.only or args.seed}", flush=True)
    counts, passed = {"good": 0, "failed": 0, "passed": 0}, {}
    begin, seed = time.monotonic(), args.only or args.seed
    while True:
        how, why = one(Path(args.pith).resolve(), seed, args.family, args.keep)
        counts[how] += 1
        if how == "failed":
            print(f"seed {seed}: {why}", flush=True)
        if how == "passed":
            passed[why[:110]] = passed.get(why[:110], 0) + 1
        seed += 1
        if args.only or time.monotonic() - begin > args.seconds:
            break
    for why, count in sorted(passed.items(), key=lambda item: -item[1])[:40]:
        print(f"passed over {count}: {why}")
    print(f"seeds {args.only or args.seed} to {seed - 1}: {counts['good']} good, {counts['failed']} failed, {counts['passed']} that the library cannot do")
    if not counts["good"] and not args.only:
        sys.exit("nothing was compared")
    sys.exit(counts["failed"] > 0)


if __name__ == "__main__":
    main()
