#!/usr/bin/env python3
"""Compares drawn tokenizers with Hugging Face tokenizers (PyPI): normalizers, pre-tokenizers, models, post-processors,
decoders and flags of added tokens in any combination, most of which no published tokenizer has.

usage: compare_random.py [--build DIR] [--count N] [--texts N] [--seed S] [--show N]
Tokenizer i of seed S is drawn with the seed S + i: --seed with the number a difference is printed with, and --count 1,
repeat it. A tokenizer that Pith refuses is counted, and so is a text on which the peer panics. Exit status 1 if
anything differs or more than a tenth of the tokenizers is refused.
"""
import argparse
import json
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

import text_probe
from compare_tokenizers import same, same_text

BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
ATOMS = ["a", "b", "ab", "A", "é", "e\u0301", "ß", "İ", "Ġ", "▁", "##", "</w>", " ", "  ", "\t", "\n", "\x85", "\u2028",
         "\u00a0", "\u3000", "\u200b", "\x1c", "\x00", "東", "京", "가", "🙂", "ﬁ", "½", "1", "23", ".", ",", "'s", "<s>", "</s>",
         "[M]", "x", "_", "-", "\u0301", "\ufeff", "\ufffd"]


class Drawn:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def flag(self, probability=0.5):
        return self.random.random() < probability

    def one(self, *makers):
        return self.random.choice(makers)()

    def several(self, make, sequence, most):
        n = self.random.choice([0, 1, 1, 2, most])
        steps = [make() for _ in range(n)]
        return None if not steps else steps[0] if n == 1 else sequence(steps)

    def words(self, low, high):
        return ["".join(self.random.choice(ATOMS) for _ in range(self.random.randint(1, 3)))
                for _ in range(self.random.randint(low, high))]

    def behavior(self):
        return self.random.choice(["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"])

    def regex(self):
        return Regex(self.random.choice([r"\s", r"\s+", r" {2,}", r"\d", r"\w+|[^\w\s]+", r"a|b", r"\p{L}+", r"[\n\t]"]))

    def normalizer(self):
        n, f, r = normalizers, self.flag, self.random
        return self.one(
            lambda: n.BertNormalizer(f(), f(), r.choice([None, True, False]), f()), n.Lowercase, n.NFC, n.NFD, n.NFKC,
            n.NFKD, n.Nmt, n.StripAccents, lambda: n.Strip(f(), f()), lambda: n.Prepend(r.choice(["▁", " ", "a"])),
            lambda: n.Replace(r.choice([" ", "a", "ab", "\t"]), r.choice(["▁", "", " ", "bb"])),
            lambda: n.Replace(self.regex(), r.choice(["▁", "", " "])))

    def pre_tokenizer(self):
        p, f, r = pre_tokenizers, self.flag, self.random
        return self.one(
            p.BertPreTokenizer, lambda: p.ByteLevel(f(), True, f()), lambda: p.CharDelimiterSplit("a"),
            lambda: p.Digits(f()), lambda: p.Metaspace("▁", r.choice(["first", "always", "never"]), f()),
            lambda: p.Punctuation(self.behavior()), lambda: p.Split(self.regex(), self.behavior(), f()),
            lambda: p.Split(r.choice([" ", "a", "ab"]), self.behavior(), f()), p.UnicodeScripts, p.Whitespace,
            p.WhitespaceSplit, lambda: p.FixedLength(r.randint(1, 4)))

    def vocabulary(self, extra=()):
        tokens = dict.fromkeys(["[UNK]", *ATOMS, *BYTES, *self.words(5, 40), *extra])
        return {t: i for i, t in enumerate(tokens)}

    def bpe(self):
        vocab, merges = self.vocabulary([f"<0x{i:02X}>" for i in range(256)] if self.flag() else ()), []
        known = [t for t in vocab if t and t != "[UNK]"]
        for _ in range(self.random.randint(0, 30)):
            a, b = self.random.choice(known), self.random.choice(known)
            if (a, b) in merges or len(a + b) > 8:
                continue
            merges.append((a, b))
            if a + b not in vocab:
                vocab[a + b] = len(vocab)
                known.append(a + b)
        return models.BPE(vocab, merges, unk_token=self.random.choice([None, "[UNK]"]), fuse_unk=self.flag(),
                          byte_fallback=self.flag(0.3), ignore_merges=self.flag(0.3))

    def unigram(self):
        vocab = self.vocabulary([f"<0x{i:02X}>" for i in range(256)])
        return models.Unigram([(t, -self.random.randint(0, 9) - self.random.random()) for t in vocab], 0, self.flag(0.3))

    def model(self):
        return self.one(
            self.bpe, self.unigram, lambda: models.WordLevel(self.vocabulary(), unk_token="[UNK]"),
            lambda: models.WordPiece(self.vocabulary(["##" + w for w in self.words(5, 20)]), unk_token="[UNK]",
                                     max_input_chars_per_word=self.random.choice([3, 100])))

    def post_processor(self, tokenizer):
        p = processors
        special = [(t, tokenizer.token_to_id(t)) for t in ("a", "b")]
        return self.one(
            lambda: None, lambda: p.ByteLevel(trim_offsets=self.flag()),
            lambda: p.BertProcessing(special[0], special[1]),
            lambda: p.RobertaProcessing(special[0], special[1], self.flag(), self.flag()),
            lambda: p.TemplateProcessing("a $A b", "a $A:0 b:1 $B:2 b:2", special))

    def decoder(self):
        d, f = decoders, self.flag
        return self.one(
            d.ByteLevel, lambda: d.BPEDecoder("</w>"), d.ByteFallback, lambda: d.CTC("a", "b", f()), d.Fuse,
            lambda: d.Metaspace("▁", self.random.choice(["first", "always", "never"])),
            lambda: d.Replace(self.random.choice(["▁", "a"]), " "), lambda: d.Strip(" ", self.random.randint(0, 1), 0),
            lambda: d.WordPiece("##", f()))

    def tokenizer(self):
        tokenizer = Tokenizer(self.model())
        tokenizer.normalizer = self.several(self.normalizer, normalizers.Sequence, 3)
        tokenizer.pre_tokenizer = self.several(self.pre_tokenizer, pre_tokenizers.Sequence, 3)
        tokenizer.decoder = self.several(self.decoder, decoders.Sequence, 3)
        tokenizer.post_processor = self.post_processor(tokenizer)
        forms = set()
        for _ in range(self.random.choice([0, 0, 1, 3, 6])):
            content = self.random.choice([self.random.choice(ATOMS), self.random.choice(self.words(1, 1))])
            form = tokenizer.normalizer.normalize_str(content) if tokenizer.normalizer else content
            if form in forms:  # which of two equal ones it finds differs from run to run in the peer
                continue
            forms.add(form)
            tokenizer.add_tokens([AddedToken(content, single_word=self.flag(0.2), lstrip=self.flag(), rstrip=self.flag(),
                                             normalized=self.flag(0.4), special=self.flag(0.3))])
        if self.flag(0.2):
            tokenizer.enable_truncation(self.random.randint(4, 9), stride=self.random.randint(0, 1),
                                        direction=self.random.choice(["left", "right"]))
        return Tokenizer.from_str(tokenizer.to_str())  # scores as a file gives them: the last bit may differ

    def text(self):
        return "".join(self.random.choice(ATOMS) for _ in range(self.random.choice([0, 1, 2, 4, 8, 16])))


def theirs_of(tokenizer, text, pair):
    """The encoding, or None where the peer refuses or panics."""
    try:
        return text_probe.hugging_face(tokenizer, text, pair)
    except BaseException as error:  # a panic of Rust is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        return None


def check(library, seed, texts):
    """None if it was refused, else the differences and the texts on which the peer panicked."""
    drawn = Drawn(seed)
    tokenizer = drawn.tokenizer()
    try:
        ours = text_probe.Pith(library, json=tokenizer.to_str(), image=drawn.flag(0.3))
    except ValueError as error:
        return str(error), [], 0
    flags = text_probe.CHARACTERS | (text_probe.RAW if tokenizer.truncation else 0)
    differences, panics = [], 0
    for _ in range(texts):
        text, pair = drawn.text(), drawn.text() if drawn.flag(0.3) and not tokenizer.truncation else None
        theirs = theirs_of(tokenizer, text, pair)
        if theirs is None:
            panics += 1
            continue
        try:
            difference = same(ours.encode(text, pair, flags=flags), theirs)
            plain = [window[0] for window in ours.encode(text, pair, flags=flags | text_probe.NO_OFFSETS)]
            if not difference and plain != [w[0] for w in ours.encode(text, pair, flags=flags)]:
                difference = f"other ids without offsets: {plain}"
            if not difference:
                try:
                    difference = same_text(ours, tokenizer, theirs[0][0], False)
                except BaseException as error:  # the peer's decoders panic on some tokens
                    if type(error).__name__ != "PanicException":
                        raise
        except ValueError as error:
            difference = f"refused: {error}"
        if difference:
            differences.append(f"{text!r} {pair!r}\n    {difference}")
    difference = check_beginning(ours, drawn)
    return None, differences + ([difference] if difference else []), panics


def check_beginning(ours, drawn):
    """None, or how the first tokens of a long text differ from those of the text cut off at so many."""
    text = "".join(drawn.text() + drawn.random.choice([" ", "", "a b", " a b c "]) for _ in range(4000))
    flags = text_probe.NO_SPECIALS | text_probe.NO_OVERFLOW
    try:
        whole = ours.encode(text, flags=flags)[0]
    except ValueError:
        return None
    for length in (1, 7, 100):
        beginning = ours.encode(text, flags=flags, max_length=length)[0]
        for all_of, some in zip(whole, beginning):
            if list(all_of[:length]) != list(some):
                return f"the first {length} tokens of a long text are others than those of the whole"
    return None


def describe(seed):
    settings = json.loads(Drawn(seed).tokenizer().to_str())
    settings["model"] = {k: v for k, v in settings["model"].items() if k not in ("vocab", "merges")}
    return json.dumps(settings, ensure_ascii=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--count", type=int, default=1000, help="tokenizers")
    parser.add_argument("--texts", type=int, default=40, help="texts for each")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--show", type=int, default=5, help="tokenizers whose differences are printed")
    options = parser.parse_args()
    library = text_probe.load_library(options.build)
    print(f"seed {options.seed}")
    failed, refused, panics = 0, {}, 0
    for seed in range(options.seed, options.seed + options.count):
        refusal, differences, panicked = check(library, seed, options.texts)
        panics += panicked
        if refusal:
            refused.setdefault(refusal[:60], []).append(seed)
        if differences:
            failed += 1
            if failed <= options.show:
                print(f"tokenizer {seed}: {len(differences)} texts differ: {describe(seed)}\n  {differences[0]}", flush=True)
    for reason, seeds in sorted(refused.items(), key=lambda item: -len(item[1]))[:10]:
        print(f"refused {len(seeds)}, such as {seeds[0]}: {reason}")
    count = sum(map(len, refused.values()))
    print(f"{options.count} tokenizers, {failed} differ, {count} refused; the peer panicked on {panics} texts")
    return 1 if failed or count > options.count / 10 else 0


if __name__ == "__main__":
    sys.exit(main())
