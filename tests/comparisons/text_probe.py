"""The text probe (tests/comparisons/text_probe.c) from Python, and the same call on Hugging Face's tokenizers."""
import ctypes
import pathlib


class Tokens(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [
        (name, ctypes.POINTER(kind)) for name, kind in (
            ("ids", ctypes.c_int32), ("type_ids", ctypes.c_int32), ("begin", ctypes.c_uint32), ("end", ctypes.c_uint32),
            ("word_ids", ctypes.c_int32), ("windows", ctypes.c_uint32), ("sequence_ids", ctypes.c_int8),
            ("special", ctypes.c_uint8), ("attention", ctypes.c_uint8))] + [
        ("count", ctypes.c_size_t), ("capacity", ctypes.c_size_t), ("truncated", ctypes.c_int32)]


def load_library(build="build"):
    library = ctypes.CDLL(str(pathlib.Path(build).resolve() / "tests" / "libtext_probe.so"))
    library.probe_open.restype = ctypes.c_void_p
    library.probe_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]
    library.probe_close.argtypes = library.probe_image.argtypes = [ctypes.c_void_p]
    library.probe_image_time.restype = ctypes.c_double
    library.probe_image_time.argtypes = [ctypes.c_void_p]
    library.probe_error.restype = ctypes.c_char_p
    library.probe_error.argtypes = [ctypes.c_void_p]
    library.probe_bytes.restype = ctypes.c_size_t
    library.probe_bytes.argtypes = [ctypes.c_void_p]
    library.probe_encode.restype = ctypes.c_long
    library.probe_encode.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
        ctypes.POINTER(Tokens)]
    library.probe_batch.restype = ctypes.c_long
    library.probe_batch.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p,
        ctypes.POINTER(Tokens)]
    library.probe_decode.restype = ctypes.c_void_p
    library.probe_decode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                                     ctypes.POINTER(ctypes.c_size_t)]
    return library


RAW, NO_SPECIALS, NO_OFFSETS, CHARACTERS, NO_OVERFLOW = 1, 2, 4, 8, 16


class Pith:
    """A tokenizer of the library; json is the text of a tokenizer.json; image: it goes through one."""

    def __init__(self, library, path=None, json=None, image=False):
        message = ctypes.create_string_buffer(1024)
        data = json.encode() if json is not None else None
        self.library = library
        self.handle = library.probe_open(path.encode() if path else None, data, len(data or b""), message)
        if not self.handle:
            raise ValueError(message.value.decode())
        if image and not library.probe_image(self.handle):
            raise ValueError(library.probe_error(self.handle).decode())

    def __del__(self):
        if getattr(self, "handle", None):
            self.library.probe_close(self.handle)

    def encode(self, text, pair=None, flags=0, max_length=0):
        """A list of windows, each a tuple (ids, type ids, offsets, word ids, special mask, sequence ids, attention)."""
        data, second = text.encode(), pair.encode() if pair is not None else None
        tokens = Tokens()
        n = self.library.probe_encode(self.handle, data, len(data), second, len(second or b""), flags, max_length,
                                      ctypes.byref(tokens))
        if n < 0:
            raise ValueError(self.library.probe_error(self.handle).decode())
        rows = (tokens.ids[:n], tokens.type_ids[:n], list(zip(tokens.begin[:n], tokens.end[:n])), tokens.word_ids[:n],
                tokens.special[:n], tokens.sequence_ids[:n], tokens.attention[:n])
        numbers = tokens.windows[:n]
        cuts = [i for i in range(1, n) if numbers[i] != numbers[i - 1]]
        return [tuple(row[a:b] for row in rows) for a, b in zip([0] + cuts, cuts + [n])]

    def decode(self, ids, skip_special_tokens):
        array, size = (ctypes.c_int32 * len(ids))(*ids), ctypes.c_size_t()
        text = self.library.probe_decode(self.handle, array, len(ids), skip_special_tokens, ctypes.byref(size))
        if not text:
            raise ValueError(self.library.probe_error(self.handle).decode())
        return ctypes.string_at(text, size.value).decode()


def hugging_face(tokenizer, text, pair=None, add_special_tokens=True):
    """The same tuples."""
    encoding = tokenizer.encode(text, pair, add_special_tokens=add_special_tokens)
    known = lambda numbers: [-1 if n is None else n for n in numbers]
    return [(e.ids, e.type_ids, e.offsets, known(e.word_ids), e.special_tokens_mask, known(e.sequence_ids),
             e.attention_mask) for e in [encoding] + encoding.overflowing]
