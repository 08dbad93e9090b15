"""Tokenizers with BPE and Unigram models, put together and trained as the well-known models' are."""
import csv
import functools
import io
import json
import os
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
CONTRACTIONS = r"'s|'t|'re|'ve|'m|'ll|'d"
START, CAPITAL, SMALL = r"[^\r\n\p{L}\p{N}]?", r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
END = r" ?[^\s\p{L}\p{N}]+[\r\n%s]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K = rf"(?i:{CONTRACTIONS})|{START}\p{{L}}+|\p{{N}}{{1,3}}|" + END % ""
QWEN2 = rf"(?i:{CONTRACTIONS})|{START}\p{{L}}+|\p{{N}}|" + END % ""
O200K = (rf"{START}{CAPITAL}*{SMALL}+(?i:{CONTRACTIONS})?|{START}{CAPITAL}+{SMALL}*(?i:{CONTRACTIONS})?|\p{{N}}{{1,3}}|"
         + END % "/")
TEKKEN = rf"{START}{CAPITAL}*{SMALL}+|{START}{CAPITAL}+{SMALL}*|\p{{N}}|" + END % "/"
# Line ends are not escaped in DeepSeek's own file.
DEEPSEEK = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""".replace(r"\r\n", "\r\n")
SMALL = False  # vocabularies of a few hundred tokens
ALPHABET = pre_tokenizers.ByteLevel.alphabet()


@functools.lru_cache(None)
def corpus():
    """Sentences to train on: those of the STS benchmark in PITH_STS if that is set, and the golden ones."""
    lines = []
    for name in sorted(pathlib.Path(os.environ.get("PITH_STS", "/nonexistent")).glob("*.csv")):
        with open(name, encoding="utf-8", newline="") as f:
            lines += [cell for row in csv.reader(f) for cell in row[:2]]
    with open(DATA / "minilm" / "golden.jsonl", encoding="utf-8") as f:
        lines += [json.loads(line)["text"] for line in f]
    return lines


def bpe(specials, normalizer=None, pre=None, decoder=None, post=None, size=3000, alphabet=ALPHABET, train=None,
        train_pre=None, **model):
    """train_pre: the pre-tokenizer of training, where that is another one."""
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer:
        tokenizer.normalizer = normalizer
    if train_pre or pre:
        tokenizer.pre_tokenizer = train_pre or pre
    size = min(size, len(specials) + len(alphabet) + 200) if SMALL else size
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=specials, initial_alphabet=alphabet, show_progress=False,
                                  **(train or {}))
    tokenizer.train_from_iterator(corpus(), trainer)
    if train_pre:
        tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoder or decoders.ByteLevel()
    if post:
        tokenizer.post_processor = post
    return tokenizer


def unigram(specials, normalizer=None, pre=None, decoder=None, post=None, size=9000, unk="<unk>"):
    tokenizer = Tokenizer(models.Unigram())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre or pre_tokenizers.Metaspace()
    size = 400 + len(specials) if SMALL else size
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=specials, unk_token=unk, show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.decoder = decoder or decoders.Metaspace()
    if post:
        tokenizer.post_processor = post(tokenizer) if callable(post) else post
    return Tokenizer.from_str(tokenizer.to_str())  # scores as a file gives them: the last bit may differ


def frame(tokenizer, single, pair, names):
    return processors.TemplateProcessing(single=single, pair=pair,
                                         special_tokens=[(n, tokenizer.token_to_id(n)) for n in names])


def bert_frame(tokenizer):
    return frame(tokenizer, "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", ["[CLS]", "[SEP]"])


def charsmap():
    """The character map of SentencePiece's nmt_nfkc rule; None where that package is missing."""
    try:
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2 as pb
    except ImportError:
        return None
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus()[:2000]), model_writer=out, vocab_size=8000,
                                             hard_vocab_limit=False, minloglevel=2)
    model = pb.ModelProto()
    model.ParseFromString(out.getvalue())
    return model.normalizer_spec.precompiled_charsmap


@functools.lru_cache(None)
def precompiled():
    data = charsmap()
    return normalizers.Precompiled(data) if data else normalizers.NFKC()


def kind_gpt2():
    return bpe(["<|endoftext|>"], pre=pre_tokenizers.ByteLevel(add_prefix_space=False),
               post=processors.ByteLevel(trim_offsets=False))


def kind_gpt2_prefix_space():
    return bpe(["<|endoftext|>"], pre=pre_tokenizers.ByteLevel(add_prefix_space=True),
               post=processors.ByteLevel(trim_offsets=True))


def kind_roberta():
    t = bpe(["<s>", "<pad>", "</s>", "<unk>"], pre=pre_tokenizers.ByteLevel(add_prefix_space=False))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return t


def kind_clip():
    normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "),
                                       normalizers.Lowercase()])
    pattern = Regex(r"<\|startoftext\|>|<\|endoftext\|>|" + CONTRACTIONS + r"|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")
    pre = pre_tokenizers.Sequence([pre_tokenizers.Split(pattern, "removed", invert=True),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False)])
    suffixed = [c + "</w>" for c in ALPHABET]
    t = bpe(["<|startoftext|>", "<|endoftext|>"], normalizer, pre, end_of_word_suffix="</w>", unk_token="<|endoftext|>",
            train={"end_of_word_suffix": "</w>"}, alphabet=ALPHABET)
    t.add_tokens(suffixed[:3])
    t.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), trim_offsets=False,
                                                    add_prefix_space=False)
    return t


def split_bytes(pattern, **model):
    pre = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return bpe(["<|begin|>", "<|end|>"], pre=pre, **model)


def kind_llama3():
    t = split_bytes(CL100K, ignore_merges=True)
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), frame(
        t, "<|begin|> $A", "<|begin|> $A <|begin|>:1 $B:1", ["<|begin|>"])])
    return t


def kind_qwen2():
    return split_bytes(QWEN2, normalizer=normalizers.NFC())


def kind_o200k():
    return split_bytes(O200K)


def kind_tekken():
    return split_bytes(TEKKEN, ignore_merges=True)


def kind_deepseek():
    pre = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"), pre_tokenizers.Split(Regex(r"[一-龥぀-ゟ゠-ヿ]+"), "isolated"),
        pre_tokenizers.Split(Regex(DEEPSEEK), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    return bpe(["<|begin|>"], pre=pre)


def kind_modernbert():
    t = bpe(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"], normalizers.NFC(), pre_tokenizers.ByteLevel(False))
    t.post_processor = bert_frame(t)
    return t


def llama_decoder():
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                              decoders.Strip(" ", 1, 0)])


BYTES = [f"<0x{b:02X}>" for b in range(256)]
# SentencePiece trains on words, and so did those who made the models: no token goes on behind a space.
WORDS = pre_tokenizers.Split("▁", "merged_with_next")


def kind_llama2():
    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t = bpe(["<unk>", "<s>", "</s>"] + BYTES, normalizer, decoder=llama_decoder(), alphabet=[], train_pre=WORDS,
            unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    t.post_processor = frame(t, "<s> $A", "<s> $A <s>:1 $B:1", ["<s>"])
    return t


def kind_llama2_metaspace():
    """Trained on whole texts: tokens reach across words."""
    pre = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return bpe(["<unk>", "<s>", "</s>"] + BYTES[:200], pre=pre, decoder=llama_decoder(), alphabet=[], unk_token="<unk>",
               fuse_unk=True, byte_fallback=True)


def kind_gemma():
    decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return bpe(["<pad>", "<eos>", "<bos>", "<unk>"] + BYTES, normalizers.Replace(" ", "▁"),
               pre_tokenizers.Split(" ", "merged_with_previous"), decoder, alphabet=[], train_pre=WORDS, unk_token="<unk>",
               fuse_unk=True, byte_fallback=True)


def kind_bpe_unk():
    """Unknown characters one by one, a prefix and a suffix."""
    return bpe(["<unk>"], pre=pre_tokenizers.Split(" ", "removed"),
               decoder=decoders.BPEDecoder(), alphabet=[], size=1500, unk_token="<unk>", fuse_unk=False,
               continuing_subword_prefix="##", end_of_word_suffix="</w>",
               train={"continuing_subword_prefix": "##", "end_of_word_suffix": "</w>", "limit_alphabet": 60})


def kind_bpe_no_unk():
    """Unknown characters vanish."""
    return bpe(["<pad>"], pre=pre_tokenizers.Split(Regex(r"\w+|[^\w\s]+"), "isolated"), decoder=decoders.Fuse(), alphabet=[],
               size=1500, train={"limit_alphabet": 60})


kind_bpe_no_unk.through_pcre2 = True


def kind_xlm_roberta():
    pre = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    post = lambda t: frame(t, "<s> $A </s>", "<s> $A </s> </s> $B </s>", ["<s>", "</s>"])
    t = unigram(["<s>", "<pad>", "</s>", "<unk>"], precompiled(), pre, post=post)
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    return t


def kind_bge_m3():
    normalizer = normalizers.Sequence([precompiled(), normalizers.Strip(left=False, right=True),
                                       normalizers.Replace(Regex(" {2,}"), "▁")])
    post = lambda t: frame(t, "<s> $A </s>", "<s> $A </s> </s> $B </s>", ["<s>", "</s>"])
    return unigram(["<s>", "<pad>", "</s>", "<unk>"], normalizer, post=post)


def kind_albert():
    normalizer = normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
        normalizers.Lowercase(), precompiled(), normalizers.Replace(Regex(" {2,}"), " ")])
    return unigram(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"], normalizer, post=bert_frame)


def kind_deberta_v2():
    normalizer = normalizers.Sequence([normalizers.Strip(), precompiled(), normalizers.Replace(Regex(" {2,}"), " ")])
    pre = pre_tokenizers.Sequence([pre_tokenizers.Punctuation("isolated"), pre_tokenizers.Metaspace()])
    return unigram(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"], normalizer, pre, post=bert_frame, unk="[UNK]")


def kind_deberta_v3():
    normalizer = normalizers.Sequence([normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "), normalizers.NFC(),
                                       normalizers.Strip(left=False, right=True)])
    return unigram(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"], normalizer, post=bert_frame, unk="[UNK]")


def kind_t5():
    pre = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    post = lambda t: frame(t, "$A </s>", "$A </s> $B </s>", ["</s>"])
    t = unigram(["<pad>", "</s>", "<unk>"], precompiled(), pre, post=post)
    t.add_special_tokens([f"<extra_id_{i}>" for i in range(5)])
    return t


def kind_unigram_bytes():
    """Byte fallback and the two other schemes of Metaspace."""
    t = unigram(["<unk>"] + BYTES, pre=pre_tokenizers.Metaspace(prepend_scheme="first"))
    j = json.loads(t.to_str())
    j["model"]["byte_fallback"] = True
    j["decoder"] = json.loads(Tokenizer.to_str(kind_unigram_never()))["decoder"]
    return Tokenizer.from_str(json.dumps(j))


def kind_unigram_never():
    return unigram(["<unk>"], pre=pre_tokenizers.Metaspace(prepend_scheme="never", split=False),
                   decoder=decoders.Metaspace(prepend_scheme="never"))


def split_kind(behavior, invert):
    pattern = Regex(r"[aeiou]+|\d{2}|(?=ж)") if invert else " "
    pre = pre_tokenizers.Split(pattern, behavior, invert=invert)
    return bpe(["<unk>"], pre=pre, alphabet=[], size=1000, unk_token="<unk>", decoder=decoders.WordPiece())


for name in ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]:
    for flag in (False, True):
        kind = functools.partial(split_kind, name, flag)
        kind.through_pcre2 = flag
        globals()[f"kind_split_{name}{'_invert' if flag else ''}"] = kind
