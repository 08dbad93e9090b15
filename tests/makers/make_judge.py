#!/usr/bin/env python3
"""Writes tests/data/tasks/judge-qwen3: a tiny language model that judges documents, and its scores.

usage: make_judge.py      (needs torch, transformers 4.57.1, tokenizers; see ORIGIN.md)
The scores are those of the code on the model card of Qwen/Qwen3-Reranker-0.6B: judge.f32 for the pairs of texts.jsonl,
short.f32 with max_length 80, other.f32 with another instruction.
"""
import json
import pathlib
import re
import shutil
import warnings

import numpy as np
import torch
import transformers as tf
from tokenizers import Tokenizer, models, pre_tokenizers

TASKS = pathlib.Path(__file__).resolve().parent.parent / "data" / "tasks"
OUT = TASKS / "judge-qwen3"
INSTRUCT = "Given a web search query, retrieve relevant passages that answer the query"
PREFIX = ("<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
          "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n")
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
warnings.filterwarnings("ignore")


def make_tokenizer(texts):
    words = sorted(set(re.findall(r"\w+|[^\w\s]+", " ".join([PREFIX, SUFFIX, INSTRUCT, *texts])))
                   | {"yes", "no", "Instruct", "Query", "Document"})[:220]
    vocab = {w: i for i, w in enumerate(["[UNK]", "[PAD]", *words])}
    vocab.setdefault("yes", len(vocab))
    vocab.setdefault("no", len(vocab))
    t = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    return tf.PreTrainedTokenizerFast(tokenizer_object=t, unk_token="[UNK]", pad_token="[PAD]", model_max_length=400)


def judge(model, tokenizer, query, document, max_length=400, instruction=INSTRUCT):
    """The model card's format_instruction, process_inputs and compute_logits, for one pair."""
    prefix = tokenizer.encode(PREFIX, add_special_tokens=False)
    suffix = tokenizer.encode(SUFFIX, add_special_tokens=False)
    text = f"<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"
    body = tokenizer([text], padding=False, truncation="longest_first", return_attention_mask=False,
                     max_length=max_length - len(prefix) - len(suffix))["input_ids"][0]
    with torch.no_grad():
        scores = model(input_ids=torch.tensor([prefix + body + suffix])).logits[:, -1, :]
    pair = torch.stack([scores[:, tokenizer.convert_tokens_to_ids("no")], scores[:, tokenizer.convert_tokens_to_ids("yes")]], 1)
    return torch.nn.functional.log_softmax(pair, 1)[0, 1].exp().item()


def main():
    cases = [json.loads(line) for line in (TASKS / "texts.jsonl").read_text().splitlines()]
    tokenizer = make_tokenizer([c["text"] + " " + c["pair"] for c in cases])
    torch.manual_seed(3)
    config = tf.Qwen3Config(vocab_size=len(tokenizer), hidden_size=16, intermediate_size=24, num_hidden_layers=2,
                            num_attention_heads=2, num_key_value_heads=1, head_dim=8, max_position_embeddings=400,
                            pad_token_id=1, tie_word_embeddings=True)
    model = tf.Qwen3ForCausalLM(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape) * 0.4 + (1 if p.ndim == 1 else 0))
    shutil.rmtree(OUT, ignore_errors=True)
    model.save_pretrained(OUT)
    tokenizer.save_pretrained(OUT)
    for extra in ("generation_config.json", "special_tokens_map.json"):
        (OUT / extra).unlink(missing_ok=True)
    model = model.double()
    for name, more in (("judge", {}), ("short", {"max_length": 80}), ("other", {"instruction": "Find what rhymes"})):
        rows = [judge(model, tokenizer, c["text"], c["pair"], **more) for c in cases]
        np.asarray(rows, "<f4").tofile(OUT / f"{name}.f32")
        print(name, min(rows), max(rows))


if __name__ == "__main__":
    main()
