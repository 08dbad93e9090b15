#!/usr/bin/env python3
"""Compares ids of tokenizers opened from files beside tokenizer.json with those of transformers' classes.

usage: compare_sources.py [--build DIR] [--count N] [--seed S]
Trains SentencePiece models and byte-level vocabularies, writes the files each class looks for, and opens the directory
with both. Exit status 1 if anything differs.
"""
import argparse
import base64
import importlib
import json
import pathlib
import random
import sys
import tempfile
import types

import sentencepiece
import transformers
from tokenizers import AddedToken, Regex, normalizers

import compare_tokenizers
import kinds_models
import text_probe

convert = importlib.import_module("transformers.convert_slow_tokenizer")  # transformers has a function of that name


def sentencepiece_model(path, kind, **options):
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(kinds_models.corpus()[:3000]), model_prefix=str(path),
                                             hard_vocab_limit=False, minloglevel=2, model_type=kind, **options)
    pathlib.Path(f"{path}.vocab").unlink()


def xlm_roberta(directory):
    sentencepiece_model(directory / "sentencepiece.bpe", "unigram", vocab_size=4000)
    return transformers.XLMRobertaTokenizer


def t5(directory):
    sentencepiece_model(directory / "spiece", "unigram", vocab_size=4000, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    return transformers.T5Tokenizer


def albert(directory):
    sentencepiece_model(directory / "spiece", "unigram", vocab_size=4000, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1,
                        control_symbols="[CLS],[SEP],[MASK]")
    return transformers.AlbertTokenizer


def deberta_v2(directory):
    sentencepiece_model(directory / "spm", "unigram", vocab_size=4000, pad_id=0, bos_id=1, eos_id=2, unk_id=3,
                        pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]",
                        control_symbols="[MASK]")
    theirs = transformers.DebertaV2Tokenizer.from_pretrained(str(directory)).backend_tokenizer
    proto = convert.import_protobuf().ModelProto.FromString((directory / "spm.model").read_bytes())
    theirs.normalizer = normalizers.Sequence([  # of transformers 4.57; 5 leaves the model's own out
        normalizers.Strip(), normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap),
        normalizers.Replace(Regex(" {2,}"), " ")])
    return theirs


def llama(directory):
    sentencepiece_model(directory / "tokenizer", "bpe", vocab_size=600 if kinds_models.SMALL else 3000,
                        byte_fallback=True, character_coverage=0.99, normalization_rule_name="identity",
                        split_digits=True)
    (directory / "tokenizer_config.json").write_text('{"add_bos_token": true, "add_eos_token": true}')
    return transformers.LlamaTokenizer


def gemma(directory):
    sentencepiece_model(directory / "tokenizer", "bpe", vocab_size=3000, byte_fallback=True, character_coverage=0.99,
                        normalization_rule_name="identity", pad_id=0, eos_id=1, bos_id=2, unk_id=3, bos_piece="<bos>",
                        eos_piece="<eos>")
    (directory / "config.json").write_text('{"model_type": "gemma"}')  # without, it is a SentencePiece model alone
    return transformers.GemmaTokenizer


def byte_level(directory, kind, name):
    model = json.loads(kind().to_str())["model"]
    (directory / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
    merges = "".join(f"{a} {b}\n" for a, b in model["merges"])
    (directory / "merges.txt").write_text("#version: 0.2\n" + merges, encoding="utf-8")
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    return getattr(transformers, name)


def gpt2(directory):
    return byte_level(directory, kinds_models.kind_gpt2, "GPT2Tokenizer")


def roberta(directory):
    return byte_level(directory, kinds_models.kind_roberta, "RobertaTokenizer")


def clip(directory):
    return byte_level(directory, kinds_models.kind_clip, "CLIPTokenizer")


def qwen2(directory):
    return byte_level(directory, kinds_models.kind_qwen2, "Qwen2Tokenizer")


def tiktoken(directory):
    """The converter itself: there is no class that opens bare ranks."""
    vocab = json.loads(kinds_models.kind_llama3().to_str())["model"]["vocab"]
    spelled = {c: b for b, c in convert.bytes_to_unicode().items()}
    ranks = {bytes(spelled[c] for c in token): i for token, i in vocab.items() if not token.startswith("<|")}
    ordered = sorted(ranks, key=ranks.get)
    lines = "".join(f"{base64.b64encode(token).decode()} {i}\n" for i, token in enumerate(ordered))
    (directory / "tokenizer.tiktoken").write_text(lines)
    convert.TikTokenConverter.load_tiktoken_bpe = staticmethod(lambda _: {t: i for i, t in enumerate(ordered)})
    return convert.TikTokenConverter("unused").converted()


def name_class(directory, name, **config):
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name, **config}))


def camembert(directory):
    sentencepiece_model(directory / "sentencepiece.bpe", "unigram", vocab_size=4000)
    name_class(directory, "CamembertTokenizer")
    return transformers.CamembertTokenizer


def converted(directory, name, spm, specials, mask=None, **attributes):
    """What the converter of a class makes of a SentencePiece model. Specials are added as the class adds them."""
    name_class(directory, name)
    stub = types.SimpleNamespace(vocab_file=str(directory / f"{spm}.model"), do_lower_case=False,
                                 convert_tokens_to_ids=lambda _: 0, legacy=True, **attributes)
    tokenizer = convert.SLOW_TO_FAST_CONVERTERS[name](stub).converted()
    stub.convert_tokens_to_ids = tokenizer.token_to_id
    if attributes.get("eos_token"):
        stub.eos_token_id = tokenizer.token_to_id(attributes["eos_token"])
    tokenizer = convert.SLOW_TO_FAST_CONVERTERS[name](stub).converted()
    tokenizer.add_special_tokens(specials)
    if mask:
        tokenizer.add_special_tokens([AddedToken(mask, lstrip=True, special=True, normalized=False)])
    return tokenizer


FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>"]


def barthez(directory):
    sentencepiece_model(directory / "sentencepiece.bpe", "unigram", vocab_size=4000, bos_id=0, pad_id=1, eos_id=2,
                        unk_id=3, control_symbols="<mask>")
    return converted(directory, "BarthezTokenizer", "sentencepiece.bpe", FAIRSEQ, "<mask>")


def big_bird(directory):
    sentencepiece_model(directory / "spiece", "unigram", vocab_size=4000, pad_id=0, eos_id=1, bos_id=2, unk_id=3,
                        control_symbols="[CLS],[SEP],[MASK]")
    return converted(directory, "BigBirdTokenizer", "spiece", FAIRSEQ + ["[CLS]", "[SEP]"], "[MASK]")


def mbart(directory):
    sentencepiece_model(directory / "sentencepiece.bpe", "unigram", vocab_size=4000)
    languages = [str(t) for t in transformers.models.mbart.tokenization_mbart.FAIRSEQ_LANGUAGE_CODES]
    return converted(directory, "MBartTokenizer", "sentencepiece.bpe", FAIRSEQ + languages, "<mask>")


def mbart50(directory):
    sentencepiece_model(directory / "sentencepiece.bpe", "unigram", vocab_size=4000)
    languages = [str(t) for t in transformers.models.mbart50.tokenization_mbart50.FAIRSEQ_LANGUAGE_CODES]
    return converted(directory, "MBart50Tokenizer", "sentencepiece.bpe", FAIRSEQ + languages, "<mask>")


def pegasus(directory):
    sentencepiece_model(directory / "spiece", "unigram", vocab_size=4000, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    specials = ["<pad>", "</s>", "<unk>", "<mask_1>", "<mask_2>"] + [f"<unk_{i}>" for i in range(2, 103)]
    return converted(directory, "PegasusTokenizer", "spiece", specials, pad_token="<pad>", eos_token="</s>",
                     mask_token="<mask_2>", mask_token_sent="<mask_1>", mask_token_id=3, eos_token_id=1, offset=103)


def rembert(directory):
    sentencepiece_model(directory / "sentencepiece", "unigram", vocab_size=4000, pad_id=0, unk_id=1, bos_id=-1,
                        eos_id=-1, control_symbols="[CLS],[SEP],[MASK]")
    return converted(directory, "RemBertTokenizer", "sentencepiece", ["<pad>", "<unk>", "[CLS]", "[SEP]"], "[MASK]",
                     keep_accents=True)


def xglm(directory):
    sentencepiece_model(directory / "sentencepiece.bpe", "unigram", vocab_size=4000)
    return converted(directory, "XGLMTokenizer", "sentencepiece.bpe",
                     FAIRSEQ + [f"<madeupword{i}>" for i in range(7)])


def xlnet(directory):
    sentencepiece_model(directory / "spiece", "unigram", vocab_size=4000, unk_id=0, bos_id=1, eos_id=2, pad_id=5,
                        control_symbols="<cls>,<sep>,<mask>,<eod>,<eop>")
    return converted(directory, "XLNetTokenizer", "spiece",
                     ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<eod>", "<eop>"], "<mask>", keep_accents=False)


def deberta(directory):
    cls = byte_level(directory, kinds_models.kind_gpt2, "DebertaTokenizer")
    vocab = json.loads((directory / "vocab.json").read_text(encoding="utf-8"))
    for token in ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"):
        vocab[token] = len(vocab)
    (directory / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    return cls


def herbert(directory):
    tokenizer = kinds_models.bpe(["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
                                 normalizer=kinds_models.normalizers.BertNormalizer(lowercase=False, strip_accents=False),
                                 pre=kinds_models.pre_tokenizers.BertPreTokenizer(), alphabet=[], unk_token="<unk>",
                                 end_of_word_suffix="</w>", train={"end_of_word_suffix": "</w>"})
    model = json.loads(tokenizer.to_str())["model"]
    # The ids HerBERT has; the class counts on them.
    order = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] + sorted(model["vocab"], key=model["vocab"].get)
    vocab = {t: i for i, t in enumerate(dict.fromkeys(order))}
    (directory / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    merges = "".join(f"{a} {b}\n" for a, b in model["merges"])
    (directory / "merges.txt").write_text("#version: 0.2\n" + merges, encoding="utf-8")
    name_class(directory, "HerbertTokenizer")
    return transformers.HerbertTokenizer


def wordpiece(directory, name, specials):
    words = ["".join(c) for c in map(chr, range(33, 127))]
    words += ["##" + w for w in words] + sorted({w.lower() for s in kinds_models.corpus() for w in s.split()})[:3000]
    (directory / "vocab.txt").write_text("\n".join(dict.fromkeys(specials + words)) + "\n", encoding="utf-8")
    name_class(directory, name, do_lower_case=True)
    return getattr(transformers, name)


def bert(directory):
    return wordpiece(directory, "BertTokenizer", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])


def funnel(directory):
    return wordpiece(directory, "FunnelTokenizer", ["<pad>", "<unk>", "<cls>", "<sep>", "<mask>", "<s>", "</s>"])


def mpnet(directory):
    return wordpiece(directory, "MPNetTokenizer", ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>"])


def bert_with_listed_tokens(directory):
    cls = bert(directory)
    count = len((directory / "vocab.txt").read_text(encoding="utf-8").splitlines())
    flags = {"lstrip": False, "rstrip": False, "single_word": False}
    listed = {"4": {"content": "[MASK]", **flags, "lstrip": True, "normalized": False, "special": True},
              str(count): {"content": "[one]", **flags, "normalized": True, "special": False},
              str(count + 1): {"content": "<two>", **flags, "rstrip": True, "normalized": False, "special": True}}
    name_class(directory, "BertTokenizer", added_tokens_decoder=listed)
    return cls


def bert_with_added_tokens_file(directory):
    cls = bert(directory)
    count = len((directory / "vocab.txt").read_text(encoding="utf-8").splitlines())
    (directory / "added_tokens.json").write_text(json.dumps({"<two>": count + 1, "[one]": count}))
    return cls


MAKERS = (xlm_roberta, t5, albert, deberta_v2, llama, gemma, gpt2, roberta, clip, qwen2, tiktoken, camembert, barthez,
          big_bird, mbart, mbart50, pegasus, rembert, xglm, xlnet, deberta, herbert, bert, funnel, mpnet,
          bert_with_listed_tokens, bert_with_added_tokens_file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", action="append", help="a class; may be given more than once")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    library = text_probe.load_library(options.build)
    sentences = compare_tokenizers.golden_texts()
    maker = compare_tokenizers.RandomTexts(options.seed, sentences, ["<s>", "</s>", "[SEP]", "<mask>", "[MASK]", "<|endoftext|>", "[one]",
                                                                "<two>", "<unk_2>", "en_XX", "<sep>", "``", "2,"])
    texts = sentences + [maker.text() for _ in range(options.count)]
    failed = 0
    for make in (m for m in MAKERS if not options.only or m.__name__ in options.only):
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            theirs = make(directory)
            if isinstance(theirs, type):
                theirs = theirs.from_pretrained(name).backend_tokenizer
            theirs.no_truncation()
            theirs.no_padding()
            try:
                ours = text_probe.Pith(library, path=name)
            except ValueError as error:
                print(f"{make.__name__}: does not open: {error}")
                failed += 1
                continue
            bad = 0
            for text in texts:
                a, b = ours.encode(text)[0][0], theirs.encode(text).ids
                if a != b:
                    bad += 1
                    if bad <= 2:
                        print(f"{make.__name__}: {text[:120]!r}\n    ours   {a[:40]}\n    theirs {b[:40]}")
            print(f"{make.__name__}: {len(texts)} texts, {bad} differ", flush=True)
            failed += bad
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
