"""The texts that are measured: the same ones in every run."""
import numpy as np

WORDS = ("the of and to in a is that for it as was with be by on not he his but at are this have from or had an they "
         "which one you were her all she there would their we him been has when who will more no if out so said what up "
         "its about into than them can only other new some could time these two may then do first any my now such like "
         "river market engine winter garden signal carbon policy vector window museum planet bridge copper harvest").split()
QUERY = "how do i reset the password of my old account"  # 12 tokens with [CLS] and [SEP]


def sentence(rng, count, words=WORDS):
    return " ".join(words[i] for i in rng.integers(0, len(words), count))


def mixed_length(rng):
    return int(np.clip(rng.lognormal(3.0, 0.7), 3, 60))


def mixed(count, words=WORDS):
    rng = np.random.default_rng(7)
    return [sentence(rng, mixed_length(rng), words) for _ in range(count)]


def whole_words(vocabulary):
    """Words that are one token of a WordPiece vocabulary file, so that texts touch all of its rows."""
    lines = vocabulary.read_text(encoding="utf-8").splitlines()
    return [w for w in lines if w.isascii() and w.isalpha()]


class Workload:
    def __init__(self, title, texts, orders=("arrival",), calls=1):
        self.title, self.texts = title, texts
        self.orders = orders  # those that make a difference to engines that pad
        self.calls = calls  # in a round


def one_text():
    return Workload("one text of 128 tokens", [sentence(np.random.default_rng(13), 126)], calls=20)


def make(quick):
    rng, scale = np.random.default_rng(11), 4 if quick else 1
    return {
        "short": Workload("5 words and a number", [f"user_id of customers variant_{i}" for i in range(256 // scale)]),
        "mixed": Workload("mixed, 3 to 60 words", mixed(128 // scale), ("arrival", "sorted")),
        "words110": Workload("110 words", [sentence(rng, 110) for _ in range(24 // scale)]),
        "tokens512": Workload("512 tokens", [sentence(rng, 600) for _ in range(4 // scale)]),
        "query": Workload("one query of 12 tokens", [QUERY], calls=40 // scale),
    }
