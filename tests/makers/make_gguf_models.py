#!/usr/bin/env python3
"""Makes tests/data/gguf/models: small models with random weights, written by transformers, turned into GGUF by llama.cpp's own
converter, with the ids and vectors that transformers computes from what it wrote. Run by hand, in the environment of
tests/references_4.txt with the package gguf:

usage: make_gguf_models.py LLAMA_CPP OUT [NAME...]   LLAMA_CPP: a checkout of llama.cpp of September 2026 or later
                                                     KEEP=FOLDER in the environment keeps what transformers wrote there
       make_gguf_models.py --nomic OUT KEPT          then, with tests/references_5.txt: the vectors of NomicBERT, which is
                                                     transformers' own from version 5 on; KEPT: FOLDER/nomic
EuroBERT is made in that environment too, where the first form must be run with its name.
"""
import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"

import numpy as np
import sentencepiece
import torch
import transformers as hf
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

if sys.argv[1] != "--nomic":
    sys.path[:0] = [sys.argv[1], sys.argv[1] + "/gguf-py"]
    import conversion
    import gguf
    from conversion.base import ModelBase, TextModel

TEXTS = ["Hello World", "hello, world! 123 4567", "  spaces   and\ttabs\nand lines ", "fi \uff21\uff22 na\u00efve caf\u00e9", "", "it's We'LL don't",
         "a long text that goes on and on until the window of the attention is far behind, and on, and on again", "\u4f60\u597d \U0001f600 <mask> [MASK]"]
CORPUS = ["the quick brown fox jumps over the lazy dog", "hello world, it's a long text that goes on and on", "spaces and tabs and lines",
          "we'll don't won't isn't 0 1 2 3 4 5 6 7 8 9 10 123", "window of the attention is far behind", "naive cafe fi ABCDEFG HELLO World We"] * 20
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def randomise(model, seed):
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn(p.shape, generator=draw) * (0.3 if p.ndim > 1 else 0.2) + (1 if "norm" in name.lower() and name.endswith("weight") and "Gemma" not in type(model).__name__ else 0))
    return model.eval()


def wordpiece(out, lower):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(lowercase=lower), pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    t.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)])
    t.decoder = decoders.WordPiece()
    done = hf.BertTokenizerFast(tokenizer_object=t, do_lower_case=lower)
    done.save_pretrained(out)
    return done


def pieces(out, name, **settings):
    rules = Path(out) / "rules.tsv"
    rows = {"\uff21": "A", "\uff22": "B", "\t": " ", "\n": " ", "\u3000": " ", "\ufb01": "fi"}
    rules.write_text("".join("\t".join(" ".join(f"{ord(c):X}" for c in s) for s in row) + "\n" for row in rows.items()), encoding="utf-8")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=model, vocab_size=settings.pop("vocab_size", 200), hard_vocab_limit=False,
                                             num_threads=1, minloglevel=2, **({"normalization_rule_tsv": str(rules)} if settings.pop("rules", True) else {}), **settings)
    rules.unlink()
    (Path(out) / name).write_bytes(model.getvalue())
    return str(Path(out) / name)


def xlmr(out):
    file = pieces(out, "sentencepiece.bpe.model", model_type="unigram")
    done = hf.XLMRobertaTokenizerFast(vocab_file=file)
    done.save_pretrained(out)
    return done


def byte_level(out, roberta=False, regex=QWEN):
    t = Tokenizer(models.BPE(ignore_merges=regex != QWEN))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False) if roberta else pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if roberta else ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    if not roberta and regex == QWEN:
        t.normalizer = normalizers.NFC()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=420, special_tokens=specials if roberta else [], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.decoder = decoders.ByteLevel()
    if roberta:
        t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
        done = hf.RobertaTokenizerFast(tokenizer_object=t)
    else:
        t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in specials])
        t.add_tokens([AddedToken("<think>", special=False, normalized=False)])
        end = t.token_to_id("<|endoftext|>")
        t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing("$A <|endoftext|>", "$A $B <|endoftext|>", [("<|endoftext|>", end)])])
        done = (hf.Qwen2TokenizerFast if regex == QWEN else hf.PreTrainedTokenizerFast)(tokenizer_object=t, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    done.save_pretrained(out)
    return done


def gemma_pieces(out):
    file = pieces(out, "tokenizer.model", model_type="bpe", rules=False, normalization_rule_name="identity", byte_fallback=True, vocab_size=420, pad_id=0, eos_id=1, bos_id=2, unk_id=3,
                  add_dummy_prefix=False, remove_extra_whitespaces=False, user_defined_symbols=["<mask>", "<start_of_turn>", "\n\n"], split_digits=True)
    done = hf.GemmaTokenizerFast(vocab_file=file, add_bos_token=True, add_eos_token=True)
    done.save_pretrained(out)
    return done


def pooling(out, mode, width):
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}, {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
    (out / "1_Pooling").mkdir()
    (out / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": width, f"pooling_mode_{mode}": True} | {f"pooling_mode_{m}": False for m in ("mean_tokens", "cls_token", "lasttoken") if m != mode}))
    (out / "modules.json").write_text(json.dumps(modules))
    return modules


def dense(out, modules, sizes):
    for i, (into, outof) in enumerate(sizes, 2):
        folder = out / f"{i}_Dense"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"in_features": into, "out_features": outof, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"}))
        save_file({"linear.weight": torch.randn(outof, into, generator=torch.Generator().manual_seed(i)) * 0.2}, folder / "model.safetensors")
        modules.append({"idx": i, "name": str(i), "path": f"{i}_Dense", "type": "sentence_transformers.models.Dense"})
    (out / "modules.json").write_text(json.dumps(modules))


def encoder(vocab, **more):
    return dict(vocab_size=vocab, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=64) | more


def make_bge_m3(out):
    t = xlmr(out)
    randomise(hf.XLMRobertaModel(hf.XLMRobertaConfig(**encoder(len(t), max_position_embeddings=66, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1))), 1).save_pretrained(out)
    pooling(out, "cls_token", 32)


def make_bge_m3_json(out):
    make_bge_m3(out)
    (out / "sentencepiece.bpe.model").unlink()
    settings = json.loads((out / "tokenizer.json").read_text())
    settings["normalizer"] = next(step for step in settings["normalizer"]["normalizers"] if step["type"] == "Precompiled")  # as the real one
    settings["pre_tokenizer"] = {"type": "Sequence"}
    settings["pre_tokenizer"]["pretokenizers"] = [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True}]
    (out / "tokenizer.json").write_text(json.dumps(settings))


def make_roberta(out):
    t = byte_level(out, roberta=True)
    randomise(hf.RobertaModel(hf.RobertaConfig(**encoder(len(t), max_position_embeddings=66, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1))), 2).save_pretrained(out)
    pooling(out, "mean_tokens", 32)


def make_bert_cased(out):
    t = wordpiece(out, False)
    randomise(hf.BertModel(hf.BertConfig(**encoder(len(t)))), 3).save_pretrained(out)
    pooling(out, "mean_tokens", 32)


def make_qwen3(out):
    t = byte_level(out)
    randomise(hf.Qwen3Model(hf.Qwen3Config(**encoder(len(t), num_key_value_heads=2, head_dim=16, rope_theta=1000000, tie_word_embeddings=True, rms_norm_eps=1e-6))), 4).save_pretrained(out)
    pooling(out, "lasttoken", 32)


def make_qwen3_fused(out):
    make_qwen3(out)


def make_qwen3_yarn(out):
    t = byte_level(out)
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
    randomise(hf.Qwen3Model(hf.Qwen3Config(**encoder(len(t), num_key_value_heads=2, head_dim=32, rope_theta=10000, rope_scaling=scaling))), 5).save_pretrained(out)
    pooling(out, "lasttoken", 32)


def make_qwen2(out):
    t = byte_level(out)
    scaling = {"rope_type": "linear", "factor": 2.0}
    randomise(hf.Qwen2Model(hf.Qwen2Config(**encoder(len(t), num_key_value_heads=2, rope_theta=10000, rope_scaling=scaling))), 6).save_pretrained(out)
    pooling(out, "mean_tokens", 32)


def make_eurobert(out):
    t = byte_level(out, regex=QWEN.replace("|\\p{N}|", "|\\p{N}{1,3}|"))
    config = hf.EuroBertConfig(**encoder(len(t), num_key_value_heads=2, max_position_embeddings=128, rms_norm_eps=1e-5, pad_token_id=0, bos_token_id=None, eos_token_id=None, classifier_pooling="mean", rope_parameters={"rope_type": "default", "rope_theta": 250000.0}))
    randomise(hf.EuroBertModel(config), 9).save_pretrained(out)
    pooling(out, "mean_tokens", 32)


def make_gemma(out):
    t = gemma_pieces(out)
    config = hf.Gemma3TextConfig(**encoder(len(t), num_hidden_layers=3, num_key_value_heads=1, head_dim=16, query_pre_attn_scalar=16, sliding_window=16, sliding_window_pattern=2,
                                           rope_theta=1000000, rope_local_base_freq=10000, use_bidirectional_attention=True, rms_norm_eps=1e-6, max_position_embeddings=128))
    config.layer_types = ["sliding_attention"] * 5 + ["full_attention"]
    config.num_hidden_layers = 6
    randomise(hf.Gemma3TextModel(config), 7).save_pretrained(out)
    settings = json.loads((out / "config.json").read_text())
    settings.update(sliding_window=16)  # what the class reads, and halves
    (out / "config.json").write_text(json.dumps(settings))
    dense(out, pooling(out, "mean_tokens", 32), [(32, 64), (64, 32)])


def tensors_of_nomic(config):
    draw = torch.Generator().manual_seed(8)
    n, inner = config["n_embd"], config["n_inner"]
    some = lambda *shape: torch.randn(*shape, generator=draw) * (0.3 if len(shape) > 1 else 0.2)
    yield "embeddings.word_embeddings.weight", some(config["vocab_size"], n)
    yield "embeddings.token_type_embeddings.weight", some(2, n)
    norms = ["emb_ln"] + [f"encoder.layers.{i}.norm{k}" for i in range(config["n_layer"]) for k in (1, 2)]
    for name in norms:
        yield f"{name}.weight", 1 + some(n)
        yield f"{name}.bias", some(n)
    for i in range(config["n_layer"]):
        for name, shape in (("attn.Wqkv", (3 * n, n)), ("attn.out_proj", (n, n)), ("mlp.fc11", (inner, n)), ("mlp.fc12", (inner, n)), ("mlp.fc2", (n, inner))):
            yield f"encoder.layers.{i}.{name}.weight", some(*shape)


def make_nomic(out):
    """The code beside NomicBERT's weights is not here; its vectors are those of a folder in Hugging Face's form, which other
    tests compare with transformers."""
    t = wordpiece(out, True)
    config = {"architectures": ["NomicBertModel"], "model_type": "nomic_bert", "activation_function": "swiglu", "n_embd": 32, "n_head": 4, "n_inner": 256, "n_layer": 2, "n_positions": 8192,
              "vocab_size": len(t), "type_vocab_size": 2, "layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "rotary_emb_scale_base": None,
              "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "prenorm": False, "causal": False, "max_trained_positions": 2048}
    (out / "config.json").write_text(json.dumps(config))
    save_file(dict(tensors_of_nomic(config)), out / "model.safetensors", metadata={"format": "pt"})
    pooling(out, "mean_tokens", 32)


PRE = {"eurobert": "llama-bpe", "qwen3-fused": "qwen2", "qwen3": "qwen2", "qwen3-yarn": "qwen2", "qwen2": "qwen2", "roberta": "roberta-bpe", "bert-cased": "jina-v2-en", "nomic": "nomic-bert"}


def convert(name, folder, file):
    TextModel.get_vocab_base_pre = lambda self, tokenizer: PRE.get(name, "default")
    config = ModelBase.load_hparams(folder, False)
    kind = conversion.get_model_class(config["architectures"][0])
    if hasattr(kind, "module_paths"):
        kind.module_paths, kind.dense_features_dims = [], {}
    with torch.inference_mode():
        made = kind(folder, gguf.LlamaFileType.ALL_F32, file, sentence_transformers_dense_modules=True, fuse_qkv=name.endswith("-fused"))
        made.write()


def nomic(out):
    """Adds the vectors of transformers' own NomicBERT."""
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(sys.argv[3], folder, dirs_exist_ok=True)
    old = json.loads((folder / "config.json").read_text())
    config = hf.NomicBertConfig(vocab_size=old["vocab_size"], hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, max_position_embeddings=2048,
                                type_vocab_size=2, layer_norm_eps=1e-12, rope_parameters={"rope_type": "default", "rope_theta": 1000.0})
    config.architectures = ["NomicBertModel"]
    config.save_pretrained(folder)
    values = json.loads((out / "nomic/values.json").read_text())
    values["vectors"] = rounded(vectors(folder))
    (out / "nomic/values.json").write_text(json.dumps(values) + "\n")


def rounded(rows):
    return [[float(f"{x:.9g}") for x in row] for row in rows]


def vectors(folder):
    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer(str(folder), device="cpu")
    return model.encode(TEXTS, normalize_embeddings=True, batch_size=1).astype(np.float64)


def main():
    if sys.argv[1] == "--nomic":
        return nomic(Path(sys.argv[2]))
    wanted = sys.argv[3:]
    for name, make in [(k[5:].replace("_", "-"), v) for k, v in globals().items() if k.startswith("make_")]:
        if (wanted and name not in wanted) or (name == "eurobert" and not hasattr(hf, "EuroBertConfig")):
            continue
        out = Path(sys.argv[2]) / name
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        folder = Path(tempfile.mkdtemp()) / "model"
        folder.mkdir()
        make(folder)
        convert(name, folder, out / "model.gguf")
        ids = hf.AutoTokenizer.from_pretrained(folder)(TEXTS)["input_ids"]
        values = {"texts": TEXTS, "ids": ids}
        if name != "nomic":
            values["vectors"] = rounded(vectors(folder))
        (out / "values.json").write_text(json.dumps(values) + "\n")
        if "KEEP" in os.environ:
            shutil.rmtree(Path(os.environ["KEEP"]) / name, ignore_errors=True)
            shutil.copytree(folder, Path(os.environ["KEEP"]) / name)
        print(name, (out / "model.gguf").stat().st_size, flush=True)


if __name__ == "__main__":
    main()
