#!/usr/bin/env python3
"""Writes cli/hub/known_models.def, the list of `pith models`, from the lists of fastembed and from the rows below.

usage: make_models.py [-o FILE]; needs fastembed 0.9.1 (pip install fastembed==0.9.1). Nothing is downloaded: the lists are
part of the wheel. A fact that no source gives is left empty. fastembed runs an ONNX export
of many models: that is the "export"; the "repository" is the model's own, or that of the export if there is no other. Tokenizers are those of the base models' families.
"""
import argparse
import re
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "cli/hub/known_models.def"

# name, export, files, kind, dim, pooling, prompts, tokenizer, licence, MB, languages
# Models that fastembed-rs (src/models/*.rs of Anush008/fastembed-rs) lists and fastembed does not.
RUST = """
Xenova/all-MiniLM-L6-v2||onnx/model_quantized.onnx|dense|384|mean||WordPiece|apache-2.0||English
sentence-transformers/all-MiniLM-L12-v2|Xenova/all-MiniLM-L12-v2|onnx/model.onnx|dense|384|mean|none|WordPiece|apache-2.0||English
Xenova/all-MiniLM-L12-v2||onnx/model_quantized.onnx|dense|384|mean|none|WordPiece|apache-2.0||English
Xenova/bge-base-en-v1.5||onnx/model.onnx|dense|768|cls|optional|WordPiece|mit||English
Xenova/bge-large-en-v1.5||onnx/model.onnx|dense|1024|cls|optional|WordPiece|mit||English
Xenova/bge-small-en-v1.5||onnx/model.onnx|dense|384|cls|optional|WordPiece|mit||English
Xenova/bge-small-zh-v1.5||onnx/model.onnx|dense|512|cls|optional|WordPiece|mit||Chinese
Xenova/paraphrase-multilingual-MiniLM-L12-v2||onnx/model.onnx|dense|384|mean|none|Unigram|apache-2.0||multilingual
intfloat/multilingual-e5-small||onnx/model.onnx|dense|384|mean|needed|Unigram|mit||multilingual
intfloat/multilingual-e5-base||onnx/model.onnx|dense|768|mean|needed|Unigram|mit||multilingual
Alibaba-NLP/gte-base-en-v1.5||onnx/model.onnx|dense|768|cls|none|WordPiece|apache-2.0||English
Alibaba-NLP/gte-large-en-v1.5||onnx/model.onnx|dense|1024|cls|none|WordPiece|apache-2.0||English
rozgo/bge-reranker-v2-m3||model.onnx model.onnx.data|rerank|0|||Unigram|apache-2.0||multilingual
gpahal/bge-m3-onnx-int8||model_quantized.onnx|multi-vector|1024|cls|none|Unigram|||multilingual
"""
# Common models of sentence-transformers, from their own repositories.
SENTENCE_TRANSFORMERS = """
sentence-transformers/all-mpnet-base-v2||model.safetensors|dense|768|mean|none|WordPiece|apache-2.0|438|English
sentence-transformers/all-distilroberta-v1||model.safetensors|dense|768|mean|none|BPE|apache-2.0||English
sentence-transformers/multi-qa-MiniLM-L6-cos-v1||model.safetensors|dense|384|mean|none|WordPiece||91|English
sentence-transformers/multi-qa-mpnet-base-dot-v1||model.safetensors|dense|768|cls|none|WordPiece||438|English
sentence-transformers/multi-qa-distilbert-cos-v1||model.safetensors|dense|768|mean|none|WordPiece|||English
sentence-transformers/paraphrase-MiniLM-L6-v2||model.safetensors|dense|384|mean|none|WordPiece|apache-2.0|91|English
sentence-transformers/paraphrase-mpnet-base-v2||model.safetensors|dense|768|mean|none|WordPiece|apache-2.0|438|English
sentence-transformers/distiluse-base-multilingual-cased-v2||model.safetensors|dense|512|mean|none|WordPiece|apache-2.0||multilingual
sentence-transformers/LaBSE||model.safetensors|dense|768|cls|none|WordPiece|apache-2.0||multilingual
sentence-transformers/static-retrieval-mrl-en-v1|||dense|1024|static|none|WordPiece|apache-2.0||English
sentence-transformers/static-similarity-mrl-multilingual-v1|||dense|1024|static|none|WordPiece|apache-2.0||multilingual
cross-encoder/ms-marco-MiniLM-L6-v2||model.safetensors|rerank|0|||WordPiece|apache-2.0|91|English
cross-encoder/ms-marco-MiniLM-L12-v2||model.safetensors|rerank|0|||WordPiece|apache-2.0||English
naver/splade-cocondenser-ensembledistil|||sparse|30522|splade|none|WordPiece|cc-by-nc-sa-4.0||English
BAAI/bge-m3|||multi-vector|1024|cls|none|Unigram|mit|2271|multilingual
intfloat/e5-small-v2||model.safetensors|dense|384|mean|needed|WordPiece|mit||English
intfloat/e5-base-v2||model.safetensors|dense|768|mean|needed|WordPiece|mit||English
intfloat/e5-large-v2||model.safetensors|dense|1024|mean|needed|WordPiece|mit||English
thenlper/gte-small||model.safetensors|dense|384|mean|none|WordPiece|mit||English
"""
POOLING = {  # of the classes of fastembed that do the pooling
    "OnnxTextEmbedding": "cls", "PooledNormalizedEmbedding": "mean", "PooledEmbedding": "mean", "JinaEmbeddingV3": "mean",
    "LastTokenNormalizedEmbedding": "last", "StaticTextEmbedding": "static", "CLIPOnnxEmbedding": "output",
    "SiglipOnnxTextEmbedding": "output", "BuiltinSentenceEmbedding": "output",
}
TOKENIZERS = [  # a pattern of the name, the kind of tokenizer; the first that fits
    (r"multilingual-(e5|MiniLM|mpnet)|bge-(m3|reranker)|jina-embeddings-v3|jina-colbert-v2|reranker-v2|potion-multilingual", "Unigram"),
    (r"clip-ViT|siglip|embeddinggemma|Qwen3|granite|LateOn$|v2-base-(de|code|zh|es)", "BPE"),
    (r"bge-\w+-(en|zh)|mxbai|arctic-embed-(xs|s|m|l)|MiniLM|minilm|gte-|nomic-embed-text|Splade|colbertv2|colbert-small|"
     r"v2-(base|small)-en|potion-(base|retrieval)|minicoil", "WordPiece"),
]


def languages(text):
    for word in ("ultilingual", "ulti-lingual"):
        if word in text:
            return "multilingual"
    if "Chinese-English" in text:
        return "Chinese, English"
    if "Spanish-English" in text:
        return "Spanish, English"
    return next((name for name in ("Chinese", "English") if name in text), "")


def prompts(text):
    m = re.search(r"Prefixes for queries/documents: (.*?), (?:requires|int8|embeddings|\d{4})", text)
    if not m:
        return ""
    words = {"necessary": "needed", "not necessary": "none", "not so necessary": "optional"}
    return words.get(m.group(1), m.group(1) if "{" not in m.group(1) else "needed")


def row(m, kind, pooling):
    name, source, text = m["model"], m["sources"]["hf"], m["description"]
    tokenizer = next((kind_of for pattern, kind_of in TOKENIZERS if re.search(pattern, name)), "") if kind != "image" else ""
    files = " ".join([m["model_file"], *m["additional_files"]])
    dim = m.get("dim") or m.get("vocab_size") or 0
    original = name if not name.endswith(("-Q", "-int8")) and name.split("/")[0] not in ("Qdrant", "prithvida") else source
    return [name, original, source if source != original else "", files, kind, dim, pooling, prompts(text), tokenizer, m["license"],
            round(m["size_in_GB"] * 1000), languages(text), "fastembed"]


def fastembed_rows():
    import fastembed
    from fastembed.rerank.cross_encoder import TextCrossEncoder
    pooled = {d["model"] if isinstance(d, dict) else d.model: POOLING[c.__name__] for c in fastembed.TextEmbedding.EMBEDDINGS_REGISTRY
              for d in c._list_supported_models()}
    for of, kind in ((fastembed.TextEmbedding, "dense"), (fastembed.SparseTextEmbedding, "sparse"),
                     (fastembed.LateInteractionTextEmbedding, "multi-vector"), (TextCrossEncoder, "rerank"),
                     (fastembed.ImageEmbedding, "image"), (fastembed.LateInteractionMultimodalEmbedding, "image")):
        for m in of.list_supported_models():
            yield row(m, kind, pooled[m["model"]] if kind == "dense" else "splade" if "plade" in m["model"] else "")


def own_rows(text, source):
    for line in text.strip().splitlines():
        name, export, files, kind, dim, *rest, size, language = line.split("|")
        yield [name, name, export, files, kind, int(dim), *rest, int(size or 0), language, source]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=OUT)
    rows = [*fastembed_rows(), *own_rows(RUST, "fastembed-rs"), *own_rows(SENTENCE_TRANSFORMERS, "sentence-transformers")]
    lines = ["/* Written by tools/make_models.py: name, repository, export, files, kind, dim, pooling, prompts, tokenizer, licence,",
             " * MB, languages, the list it is from. Empty or 0: not known. */"]
    for r in rows:
        values = [f'"{v}"' for v in r]
        assert not any(c in str(v) for v in r for c in '\t\n"\\'), r
        lines.append(f"MODEL({', '.join(values)})")
    parser.parse_args().output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
