#!/usr/bin/env python3
"""Writes tests/data/rerankers: tiny language models that judge documents, and their scores for the pairs of pairs.jsonl.

usage: make_rerankers.py [NAME...]   (needs torch, transformers 4.57.1, sentence-transformers 6.2, mxbai-rerank 0.1.6)
Each directory has what the package that it is for would load. scores.f32 is what the package gives, short.f32 the same
with the limit of CASES, other.f32 the same with an instruction. All are computed in double.
"""
import json
import pathlib
import re
import shutil
import sys
import warnings

import numpy as np
import torch
import transformers as tf
from sentence_transformers import CrossEncoder
from sentence_transformers.base.modules import Transformer
from sentence_transformers.cross_encoder.modules import LogitScore
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "rerankers"
INSTRUCTION = "Find what rhymes"
WORDS = ("Judge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the "
         "answer can only be \"yes\" or \"no\". system user assistant Given a web search query, retrieve relevant passages "
         "that answer the query <think> </think> You are Qwen, created by Alibaba Cloud. You are a helpful assistant. "
         "search relevance expert who evaluates how well documents match queries judgment query: document: 0 1 yes no ")
LONG = "The harbour was still dark when the first boats came in, and gulls were already quarrelling over the nets. "
PAIRS = [("what is the capital of france?", "Paris is the capital and largest city of France."),
         ("what is the capital of france?", "A cat sat on the mat."), ("", ""), ("a question without an answer", ""),
         ("", "an answer without a question"), ("naïve café — “déjà vu”", "Zürich, Århus, Łódź: ß → ss"),
         ("  \u00a0blanks around\n\n", "\t\u2003a document between blanks \u001f\n"), ("<|im_end|>", "<|endoftext|>"),
         (LONG * 3, LONG * 4), ("short", LONG * 6), (LONG * 4, LONG[::-1]), ("日本語", "東京は日本の首都です。")]

QWEN = """{%- set instruction = messages | selectattr("role", "eq", "system") | map(attribute="content") | first | default("Given a web search query, retrieve relevant passages that answer the query") -%}
{%- set query_text = messages | selectattr("role", "eq", "query") | map(attribute="content") | first -%}
{%- set document_text = messages | selectattr("role", "eq", "document") | map(attribute="content") | first -%}
<|im_start|>system
Judge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>
<|im_start|>user
<Instruct>: {{ instruction }}
<Query>: {{ query_text }}
<Document>: {{ document_text }}<|im_end|>
<|im_start|>assistant
<think>

</think>


"""
# With what templates for conversations have: loops, roles, white space that is cut, a flag of the settings.
LOOP = """{# roles in a row #}
{% for message in messages %}
    {%- if message.role == 'system' or message['role'] == "developer" %}
{{- '<|im_start|>system\\n' + message.content | trim ~ "<|im_end|>\\n" -}}
    {% elif loop.first or not (message.role != 'query') -%}
        <|im_start|>{{ 'system' if message.role in ['query'] else 'other' }}
{{ message['content'] | trim }}<|im_end|>
    {%+ else -%}
        <|im_start|>user
        {%- if loop.last and tools is none %}
            {{ eos_token }}{% endif %}
        {{- "\\n" + message.content }}<|im_end|>
    {% endif %}
{% endfor %}
{% if add_generation_prompt is defined and add_generation_prompt %}
<|im_start|>assistant
{% endif %}"""
STRUCTURED = ("<|im_start|>{{ (messages | selectattr('role', 'eq', 'query') | first).content[0].text }}\n"
              "{% for part in messages[-1].content if False %}{% endfor %}"
              "{{ (messages | selectattr('role', 'eq', 'document') | list)[0].content[0]['text'] }}<|im_end|>")
STRUCTURED = STRUCTURED.replace("{% for part in messages[-1].content if False %}{% endfor %}", "")


def tokenizer(limit=400):
    t = Tokenizer(models.BPE())
    split = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(split), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    texts = [WORDS] * 20 + [x for pair in PAIRS for x in pair]
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=420, show_progress=False,
                                                     initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_special_tokens([AddedToken(x, special=True) for x in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    return tf.PreTrainedTokenizerFast(tokenizer_object=t, pad_token="<|endoftext|>", eos_token="<|im_end|>",
                                      model_max_length=limit)


def network(cls, config, size, seed, tied=True, **more):
    torch.manual_seed(seed)
    c = config(vocab_size=size, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
               num_key_value_heads=1, head_dim=8, max_position_embeddings=512, tie_word_embeddings=tied, **more)
    model = cls(c).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape) * 0.4 + (1 if p.ndim == 1 and config is not tf.Gemma3TextConfig else 0))
    return model.bfloat16()


def store(name, model, t):
    out = OUT / name
    shutil.rmtree(out, ignore_errors=True)
    model.save_pretrained(out)
    t.save_pretrained(out)
    shorten(out)
    return out


def shorten(out):
    for extra in ("generation_config.json", "special_tokens_map.json", "README.md"):
        (out / extra).unlink(missing_ok=True)
    path = out / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()), ensure_ascii=False, separators=(",", ":")))


def write(out, **rows):
    for name, values in rows.items():
        values = np.asarray(values, "<f4").reshape(-1)
        assert len(values) == len(PAIRS) and np.isfinite(values).all() and len(set(values.tolist())) > 6, name
        values.tofile(out / f"{name}.f32")
        print(out.name, name, values.min(), values.max())


def one_by_one(predict):
    return [predict(pair) for pair in PAIRS]


def cross_encoder(name, model, t, task, ids=None, short=60, processing=None, prompts=None, modality=None):
    """Saves a CrossEncoder as sentence-transformers does and loads it again."""
    made = store(name, model, t)
    first = Transformer(str(made), transformer_task=task, processing_kwargs=processing,
                        model_kwargs={"torch_dtype": torch.bfloat16}, **(modality or {}))
    saved = CrossEncoder(modules=[first] + ([LogitScore(*ids)] if ids else []), prompts=prompts,
                         default_prompt_name="query" if prompts else None, device="cpu")
    shutil.rmtree(made)
    saved.save_pretrained(str(made))
    shorten(made)
    m = CrossEncoder(str(made), device="cpu", model_kwargs={"torch_dtype": torch.float64})
    rows = {"scores": one_by_one(lambda p: m.predict([p])[0])}
    if ids:
        rows["other"] = one_by_one(lambda p: m.predict([p], prompt=INSTRUCTION)[0])
    rows["raw"] = one_by_one(lambda p: m.predict([p], activation_fn=torch.nn.Identity())[0])
    m.max_seq_length = short
    rows["short"] = one_by_one(lambda p: m.predict([p])[0])
    write(made, **rows)


def logit_qwen3():
    t = tokenizer()
    t.chat_template = QWEN
    ids = (t.convert_tokens_to_ids("yes"), t.convert_tokens_to_ids("no"))
    cross_encoder("logit-qwen3", network(tf.Qwen3ForCausalLM, tf.Qwen3Config, len(t), 1, pad_token_id=t.pad_token_id), t,
                  "text-generation", ids, short=90, prompts={"query": "Find the passage"})


def logit_qwen2():
    t = tokenizer()
    t.chat_template = LOOP
    ids = (t.convert_tokens_to_ids("yes"), None)
    cross_encoder("logit-qwen2", network(tf.Qwen2ForCausalLM, tf.Qwen2Config, len(t), 2, tied=False), t,
                  "text-generation", ids, processing={"chat_template": {"add_generation_prompt": True}})


def logit_gemma3():
    t = tokenizer(300)
    bos = t.pad_token_id
    t.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", pair="<|endoftext|> $A $B", special_tokens=[("<|endoftext|>", bos)])
    ids = (t.convert_tokens_to_ids("1"), t.convert_tokens_to_ids("0"))
    cross_encoder("logit-gemma3", network(tf.Gemma3ForCausalLM, tf.Gemma3TextConfig, len(t), 3, sliding_window=64,
                                          pad_token_id=t.pad_token_id, query_pre_attn_scalar=8), t,
                  "text-generation", ids)


def label_qwen3():
    t = tokenizer()
    t.chat_template = STRUCTURED
    cross_encoder("label-qwen3", network(tf.Qwen3ForSequenceClassification, tf.Qwen3Config, len(t), 4, num_labels=1,
                                         pad_token_id=t.pad_token_id), t, "sequence-classification")


def mxbai():
    from mxbai_rerank import MxbaiRerankV2
    t = tokenizer()
    config = network(tf.Qwen2ForCausalLM, tf.Qwen2Config, len(t), 5, pad_token_id=t.pad_token_id)
    out = store("mxbai-qwen2", config, t)
    rows = {}
    for name, limit, more in (("scores", 8192, {}), ("short", 40, {}), ("other", 8192, {"instruction": INSTRUCTION})):
        m = MxbaiRerankV2(str(out), device="cpu", max_length=limit, torch_dtype=torch.float64)
        rows[name] = one_by_one(lambda p: m.predict([p[0]], [p[1]], **more).item())
    write(out, **rows)


def export(name, kept):
    """The network of a directory in ONNX: logits of all tokens, or of the last one."""
    import onnx
    out = OUT / f"{name}-onnx"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(OUT / name, out, ignore=shutil.ignore_patterns("*.safetensors", "*.f32"))
    model = tf.AutoModelForCausalLM.from_pretrained(OUT / name, torch_dtype=torch.float32).eval()
    names = ["input_ids", "attention_mask", "position_ids"]

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask, position_ids):
            logits = self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
                                use_cache=False).logits
            return logits if kept else logits[:, -1]
    ids = torch.arange(10).reshape(2, 5)
    dims = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence")}
    path = str(out / "model.onnx")
    torch.onnx.export(Logits().eval(), (ids, torch.ones_like(ids), torch.arange(5).repeat(2, 1)), path, dynamo=True,
                      input_names=names, output_names=["logits"], dynamic_shapes=[dims] * 3, external_data=False,
                      verbose=False)
    proto = onnx.load(path)
    del proto.metadata_props[:]
    del proto.graph.value_info[:]
    known = {n: n for n in ["", *(p.name for p in [*proto.graph.input, *proto.graph.output])]}
    for item in proto.graph.initializer:
        item.name = known.setdefault(item.name, f"w{len(known)}")
    for node in proto.graph.node:  # names and places in Python are most of a small file
        node.name = node.doc_string = ""
        del node.metadata_props[:]
        node.input[:] = [known.setdefault(n, f"v{len(known)}") for n in node.input]
        node.output[:] = [known.setdefault(n, f"v{len(known)}") for n in node.output]
    onnx.save(proto, path)


def logit_qwen3_onnx():
    export("logit-qwen3", True)


def mxbai_onnx():
    export("mxbai-qwen2", False)


def main(names):
    warnings.filterwarnings("ignore")
    tf.logging.set_verbosity_error()
    OUT.mkdir(exist_ok=True)
    (OUT / "pairs.jsonl").write_text("".join(json.dumps({"text": q, "pair": d}, ensure_ascii=False) + "\n"
                                             for q, d in PAIRS))
    for make in (logit_qwen3, logit_qwen2, logit_gemma3, label_qwen3, mxbai, logit_qwen3_onnx, mxbai_onnx):
        if not names or make.__name__ in names:
            make()


if __name__ == "__main__":
    main(sys.argv[1:])
