#!/usr/bin/env python3
"""Writes tests/data/hybrid: two tiny models in the layouts of BM42 and miniCOIL, with random weights, and what
fastembed's classes make of texts with them.

usage: make_hybrid.py      (needs fastembed 0.9.1 and onnx; see ORIGIN.md)
expected.jsonl has an object per text: its document and its query vector, with ascending indices. fastembed gives a text
that stands alone, so nothing is padded.
"""
import json
import pathlib

import numpy as np
import onnx
from fastembed.sparse.bm42 import Bm42
from fastembed.sparse.minicoil import MiniCOIL
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "hybrid"
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = """the a of and is be being over dog dogs cat runn ##ing ##s ##ed run jump quick ##ly fox ##es bank river money swim
swimm screech word vec ##tor embed ##d x ##x ##y ##9 9 19 ° ##° _ __ . , ! - ' ( ) ½ café lazy ##z naï ##ve ## walk talk""".split()
STOPS = ["the", "a", "of", "and", "is", "be", "over", ""]
VOCAB = ["dog", "cat", "run", "swim", "bank", "be", "quick", "vector"]
STEMS = {"dog": "dog", "cat": "cat", "run": "run", "swim": "swim", "bank": "bank", "be": "be", "quick": "quick", "vector": "vector",
         "lazi": "quick", "money": "bank"}
TEXTS = ["The quick dogs and the cat running over a lazy fox.", "", "dog", "To be being be", "Being is being, the dog is a dog",
         "swimming swims swim swimmed bank money river bank", "9° 9°9 9 19 ½ x9 word-vec (embedding)", "screech screeched screeches screeching",
         "café naïve CAFÉ", "the of and . , ! _ __", "unknown zebra [UNK] [MASK] [CLS]", "##ing ## ##s dog ##s", "vectors vector embedd lazily lazy",
         "dog cat run jump quick fox bank river money swim screech word lazy walk talk walks talks walked dogs cats runs jumps",
         "x" * 50 + " " + "xy" * 22, "un-known 日本run.ly river money it's xs\tcat talk-\t##dymoney dog- x9 ##y19 __ ##ed. ", "run runs running run runs jumped jumping jumps jump"]
OPTIONS = {"bm42": [{"alpha": 0.8}, {"alpha": 1.0}],
           "minicoil": [{"k": 2.0, "b": 0.3, "avg_len": 5.0}, {"b": 0.0}, {"k": 0.0}]}
WIDTH, HEADS, POSITIONS, SIZE = 8, 2, 96, 4


def make_tokenizer(folder):
    vocab = {}
    for piece in SPECIALS + PIECES:
        vocab.setdefault(piece, len(vocab))
    t = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer = normalizers.BertNormalizer(strip_accents=False)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocab["[CLS]"]),
                                                                                              ("[SEP]", vocab["[SEP]"])])
    t.add_special_tokens(SPECIALS)
    t.save(str(folder / "tokenizer.json"))
    names = dict(zip(["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"], SPECIALS))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 64, **names}) + "\n")
    (folder / "special_tokens_map.json").write_text(json.dumps(names) + "\n")
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}) + "\n")
    (folder / "stopwords.txt").write_text("".join(w + "\n" for w in STOPS))
    return len(vocab)


def make_network(path, vocabulary, seed, attention):
    """A layer of attention with a mask; its probabilities are an output, or not."""
    rng = np.random.default_rng(seed)
    f = lambda name, *shape: numpy_helper.from_array(rng.normal(0, 0.7, shape).astype(np.float32), name)
    i = lambda name, *items: numpy_helper.from_array(np.array(items, np.int64), name)
    weights = [f("table", vocabulary, WIDTH), f("places", POSITIONS, WIDTH), f("q", WIDTH, WIDTH), f("k", WIDTH, WIDTH),
               f("v", WIDTH, WIDTH), f("o", WIDTH, WIDTH), i("heads", 0, 0, HEADS, WIDTH // HEADS), i("flat", 0, 0, WIDTH),
               i("zero", 0), i("axes", 1, 2), numpy_helper.from_array(np.float32(1), "unit"),
               numpy_helper.from_array(np.float32(-10000), "low"), numpy_helper.from_array(np.float32(0.5), "scale")]
    nodes = []

    def put(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    put("Shape", ["input_ids"], "length", start=1, end=2)
    put("Slice", ["places", "zero", "length", "zero"], "position")
    put("Gather", ["table", "input_ids"], "word")
    put("Add", ["word", "position"], "x")
    for n, order in [("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])]:
        put("MatMul", ["x", n], n + "1")
        put("Reshape", [n + "1", "heads"], n + "2")
        put("Transpose", [n + "2"], n + "3", perm=order)
    put("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)
    put("Sub", ["unit", "mask"], "off")
    put("Mul", ["off", "low"], "bias1")
    put("Unsqueeze", ["bias1", "axes"], "bias")
    put("MatMul", ["q3", "k3"], "scores")
    put("Mul", ["scores", "scale"], "scaled")
    put("Add", ["scaled", "bias"], "biased")
    put("Softmax", ["biased"], "attention_6", axis=-1)
    put("MatMul", ["attention_6", "v3"], "mixed")
    put("Transpose", ["mixed"], "turned", perm=[0, 2, 1, 3])
    put("Reshape", ["turned", "flat"], "joined")
    put("MatMul", ["joined", "o"], "out")
    put("Add", ["x", "out"], "last_hidden_state")
    text = lambda name: helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", WIDTH])]
    if attention:
        outputs.append(helper.make_tensor_value_info("attention_6", TensorProto.FLOAT, ["batch", HEADS, "sequence", "sequence"]))
    graph = helper.make_graph(nodes, "tiny", [text("input_ids"), text("attention_mask")], outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.parent.mkdir(exist_ok=True)
    onnx.save(model, path)


def keep_attention(folder):
    """attention.onnx: the network with no other output than the attention."""
    model = onnx.load(folder / "model.onnx")
    del model.graph.output[0]
    onnx.checker.check_model(model)
    onnx.save(model, folder / "attention.onnx")


def pairs(embedding):
    items = sorted(zip(embedding.indices.tolist(), embedding.values.tolist()))
    return {"indices": [i for i, _ in items], "values": [v for _, v in items]}


def write_expected(folder, make):
    lines = []
    for options, texts in [({}, TEXTS)] + [(o, TEXTS[:1] + TEXTS[-1:]) for o in OPTIONS[folder.name]]:
        model = make(specific_model_path=str(folder), threads=1, **options)
        lines += [{**options, "text": t, "document": pairs(list(model.embed([t]))[0]),
                   "query": pairs(list(model.query_embed(t))[0])} for t in texts]
    (folder / "expected.jsonl").write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def main():
    bm42, coil = OUT / "bm42", OUT / "minicoil"
    for folder in (bm42, coil):
        folder.mkdir(parents=True, exist_ok=True)
    make_network(bm42 / "model.onnx", make_tokenizer(bm42), 42, True)
    keep_attention(bm42)
    make_network(coil / "onnx/model.onnx", make_tokenizer(coil), 43, False)
    matrices = np.random.default_rng(44).normal(0, 0.5, (len(VOCAB) + 1, WIDTH, SIZE)).astype(np.float32)
    np.save(str(coil / "minicoil.triplet.model.npy"), matrices)
    (coil / "minicoil.triplet.model.vocab").write_text(json.dumps({"vocab": VOCAB, "stem_mapping": STEMS}) + "\n")
    write_expected(bm42, lambda **options: Bm42("Qdrant/bm42-all-minilm-l6-v2-attentions", **options))
    write_expected(coil, lambda **options: MiniCOIL("Qdrant/minicoil-v1", **options))


if __name__ == "__main__":
    main()
