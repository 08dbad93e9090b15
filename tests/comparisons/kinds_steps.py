"""Kinds for compare_tokenizers.py: WordPiece and WordLevel, every normalizer, pre-tokenizer and post-processor that
needs no regular expression and no byte-level alphabet. Vocabularies are trained on the golden sentences."""
import functools
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
VOCABULARY = 1500
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
FRAME = dict(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])


@functools.lru_cache
def sentences():
    with open(DATA / "minilm" / "golden.jsonl", encoding="utf-8") as lines:
        return tuple(json.loads(line)["text"] for line in lines)


def train(model, normalizer=None, pre_tokenizer=None, size=None):
    tokenizer = Tokenizer(model(unk_token="[UNK]"))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    trainer = {models.WordPiece: trainers.WordPieceTrainer, models.WordLevel: trainers.WordLevelTrainer}[model]
    tokenizer.train_from_iterator(sentences(), trainer(vocab_size=size or VOCABULARY, special_tokens=SPECIALS, show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(**FRAME)
    return tokenizer


def minilm():
    tokenizer = Tokenizer.from_file(str(DATA / "minilm" / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def kind_minilm():
    return minilm()


def kind_minilm_file_sections():
    return Tokenizer.from_file(str(DATA / "minilm" / "tokenizer.json"))


def kind_bert_cased():
    return train(models.WordPiece, normalizers.BertNormalizer(lowercase=False), pre_tokenizers.BertPreTokenizer())


def kind_bert_raw():
    return train(models.WordPiece, normalizers.BertNormalizer(False, False, False, False), pre_tokenizers.BertPreTokenizer())


def kind_bert_accents_only():
    return train(models.WordPiece, normalizers.BertNormalizer(False, True, True, False), pre_tokenizers.BertPreTokenizer())


def kind_bert_keep_accents():
    return train(models.WordPiece, normalizers.BertNormalizer(strip_accents=False), pre_tokenizers.BertPreTokenizer())


def steps(normalizer=None, pre_tokenizer=None):
    """The same steps before WordPiece and WordLevel."""
    return train(models.WordPiece, normalizer, pre_tokenizer)


def kind_nfc():
    return steps(normalizers.NFC(), pre_tokenizers.Whitespace())


def kind_nfd():
    return steps(normalizers.NFD(), pre_tokenizers.Whitespace())


def kind_nfkc():
    return steps(normalizers.NFKC(), pre_tokenizers.WhitespaceSplit())


def kind_nfkd():
    return steps(normalizers.NFKD(), pre_tokenizers.WhitespaceSplit())


def kind_nfd_strip_lower():
    return steps(normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]),
                 pre_tokenizers.Whitespace())


def kind_strip_nmt_nfc():
    return steps(normalizers.Sequence([normalizers.Nmt(), normalizers.Strip(), normalizers.NFC()]),
                 pre_tokenizers.Whitespace())


def kind_strip_left_prepend():
    return steps(normalizers.Sequence([normalizers.Strip(left=True, right=False), normalizers.Prepend("▁x")]),
                 pre_tokenizers.Whitespace())


def kind_replace_string():
    return steps(normalizers.Sequence([normalizers.Replace("e", "ö€"), normalizers.Replace("  ", ""),
                                       normalizers.Lowercase()]), pre_tokenizers.Whitespace())


def kind_byte_level_normalizer():
    return train(models.WordPiece, normalizers.ByteLevel(), None, 600)


def kind_whitespace_split_digits():
    return steps(None, pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(True)]))


def kind_digits_together():
    return steps(None, pre_tokenizers.Sequence([pre_tokenizers.Digits(False), pre_tokenizers.Punctuation("contiguous")]))


def kind_punctuation_previous():
    return steps(None, pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                                pre_tokenizers.Punctuation("merged_with_previous")]))


def kind_punctuation_next():
    return steps(None, pre_tokenizers.Sequence([pre_tokenizers.Punctuation("merged_with_next"),
                                                pre_tokenizers.WhitespaceSplit()]))


def kind_punctuation_removed():
    return steps(None, pre_tokenizers.Sequence([pre_tokenizers.Punctuation("removed"), pre_tokenizers.Whitespace()]))


def kind_char_delimiter():
    return steps(None, pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit("e"), pre_tokenizers.WhitespaceSplit()]))


def kind_fixed_length():
    return steps(None, pre_tokenizers.FixedLength(length=4))


def kind_unicode_scripts():
    return steps(None, pre_tokenizers.Sequence([pre_tokenizers.UnicodeScripts(), pre_tokenizers.WhitespaceSplit()]))


def kind_wordlevel():
    return train(models.WordLevel, normalizers.Lowercase(), pre_tokenizers.Whitespace(), 400)


def kind_wordlevel_no_steps():
    return train(models.WordLevel)


def kind_no_post_processor():
    tokenizer = steps(normalizers.NFC(), pre_tokenizers.Whitespace())
    data = json.loads(tokenizer.to_str())
    data["post_processor"] = None
    return Tokenizer.from_str(json.dumps(data))


def kind_bert_processing():
    tokenizer = kind_bert_cased()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def kind_roberta_processing():
    tokenizer = kind_bert_cased()
    tokenizer.post_processor = processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2), trim_offsets=True)
    return tokenizer


def kind_odd_template():
    tokenizer = kind_bert_cased()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:1 $A:2 [SEP] $A [MASK]:1", pair="$B:1 [SEP] [SEP]:3 $A", special_tokens=[
            ("[CLS]", 2), ("[SEP]", 3), ("[MASK]", 4)])
    return tokenizer


def added_tokens(tokenizer):
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("<r>", rstrip=True), "<both> x"])
    tokenizer.add_tokens([AddedToken("Word", single_word=True), AddedToken("Ärger", normalized=True),
                          AddedToken("RAW", normalized=False), "der", "derzeit", AddedToken("  ", normalized=False),
                          AddedToken("éa", lstrip=True, rstrip=True, normalized=True)])
    return tokenizer


def kind_added_tokens():
    return added_tokens(minilm())


def kind_added_tokens_no_normalizer():
    return added_tokens(steps(None, pre_tokenizers.WhitespaceSplit()))


def truncated(**options):
    tokenizer = kind_bert_cased()
    tokenizer.enable_truncation(**options)
    return tokenizer


def kind_truncate_stride():
    return truncated(max_length=12, stride=3)


def kind_truncate_left():
    return truncated(max_length=11, stride=2, direction="left")


def kind_truncate_only_first():
    return truncated(max_length=40, strategy="only_first")


def kind_truncate_only_second():
    return truncated(max_length=40, stride=1, strategy="only_second")


def kind_pad_fixed_left():
    tokenizer = kind_bert_cased()
    tokenizer.enable_padding(direction="left", pad_id=1, pad_type_id=2, pad_token="[UNK]", length=30)
    return tokenizer


def kind_pad_multiple():
    tokenizer = truncated(max_length=20)
    tokenizer.enable_padding(pad_to_multiple_of=8)
    return tokenizer
