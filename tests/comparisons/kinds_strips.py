"""Tokenizers whose added tokens take white space, and whose offsets leave it out."""
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

BLANKS = ["\t", "\n", "\x85", "\u2028", "\u00a0", "\u3000", " "]
LETTERS = ["[UNK]", "a", "b", "c", "▁", "▁a", "Ġ", "Ġa", *BLANKS, " a", "a ", "b\t", "\u2028c"]


def letters(unk=True):
    return models.BPE({t: i for i, t in enumerate(LETTERS)}, [], unk_token="[UNK]" if unk else None)


def kind_added_strips_meet():
    t = Tokenizer(letters())
    t.add_tokens([AddedToken("\n", lstrip=True, rstrip=True, normalized=False),
                  AddedToken("<br>", lstrip=True, rstrip=True, normalized=False),
                  AddedToken("a", rstrip=True, normalized=False), AddedToken("  ", lstrip=True, rstrip=True)])
    return t


def kind_metaspace_first_strip():
    t = Tokenizer(letters())
    t.normalizer = normalizers.Strip()
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", "first")
    t.add_tokens([AddedToken("b", rstrip=True)])
    return t


def kind_metaspace_first_replaced():
    t = Tokenizer(letters())
    t.normalizer = normalizers.Sequence([normalizers.Replace("a", ""), normalizers.Prepend(" ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", "first", split=False)
    return t


def blanks(post_processor, normalizer=None):
    t = Tokenizer(models.Unigram([(w, -1.0 - i / 7) for i, w in enumerate(LETTERS)], 0))
    t.normalizer = normalizer
    t.add_tokens([AddedToken("\x85", lstrip=True, normalized=False), AddedToken("\t", lstrip=True, rstrip=True),
                  AddedToken(" c", normalized=False)])
    t.post_processor = post_processor
    return Tokenizer.from_str(t.to_str())


def kind_trim_blanks():
    return blanks(processors.ByteLevel(trim_offsets=True))


def kind_trim_blanks_prepended():
    return blanks(processors.RobertaProcessing(("a", 1), ("b", 2), trim_offsets=True, add_prefix_space=True),
                  normalizers.Sequence([normalizers.Replace("\t", "  "), normalizers.Prepend(" ")]))
