#!/usr/bin/env python3
"""Writes tests/data/encode/bge-m3: a small XLM-R with random weights, BGE-M3's two heads beside it as torch.save writes
them, and what they give. The formulas are those of FlagEmbedding, inference/embedder/encoder_only/m3.py.

usage: make_bge_m3.py    (needs torch 2.15.0 and transformers 4.57.1)
"""
import json
from pathlib import Path

import torch
from transformers import XLMRobertaConfig, XLMRobertaModel

OUT = Path(__file__).resolve().parent.parent / "data/encode/bge-m3"
WORDS = ["<s>", "<pad>", "</s>", "<unk>", *"abcdef"]
TEXTS = {"a b c": [0, 4, 5, 6, 2], "d d e f a": [0, 7, 7, 8, 9, 4, 2], "": [0, 2]}


def main():
    torch.manual_seed(3)
    config = XLMRobertaConfig(vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                              intermediate_size=24, max_position_embeddings=66, pad_token_id=1)
    model = XLMRobertaModel(config, add_pooling_layer=False).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0, 0.3)
    sparse, colbert = torch.nn.Linear(16, 1), torch.nn.Linear(16, 8)
    torch.nn.init.constant_(sparse.bias, 0.4)
    OUT.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(OUT)
    torch.save(sparse.state_dict(), OUT / "sparse_linear.pt")
    torch.save(colbert.state_dict(), OUT / "colbert_linear.pt")
    special = [{"id": i, "content": WORDS[i], "special": True, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False} for i in range(4)]
    frame = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
             {"SpecialToken": {"id": "</s>", "type_id": 0}}]
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
                 "pre_tokenizer": {"type": "Whitespace"}, "decoder": None,
                 "post_processor": {"type": "TemplateProcessing", "single": frame, "pair": frame,
                                    "special_tokens": {w: {"id": w, "ids": [WORDS.index(w)], "tokens": [w]}
                                                       for w in ("<s>", "</s>")}},
                 "model": {"type": "WordLevel", "vocab": {w: i for i, w in enumerate(WORDS)}, "unk_token": "<unk>"}}
    (OUT / "tokenizer.json").write_text(json.dumps(tokenizer) + "\n")
    expected = []
    with torch.no_grad():
        for text, ids in TEXTS.items():
            hidden = model(torch.tensor([ids])).last_hidden_state[0]
            weights = {}
            for token, weight in zip(ids, torch.relu(sparse(hidden))[:, 0].tolist()):
                if token > 3 and weight > 0:
                    weights[token] = max(weights.get(token, 0), weight)
            vectors = torch.nn.functional.normalize(colbert(hidden[1:]), dim=-1)
            expected.append({"text": text, "dense": hidden[0].tolist(), "multi_vector": vectors.tolist(),
                             "sparse": {"indices": sorted(weights), "values": [weights[i] for i in sorted(weights)]}})
    (OUT / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
