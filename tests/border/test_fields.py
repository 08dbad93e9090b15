#!/usr/bin/env python3
"""Errors carry the name of the field at fault: each member of each struct of options is given bad values, and a refusal has the
member's name in its message. The members are those of include/api.json, so a new one is tried by itself. Also: the structs of
the ctypes module are laid out as the description says.

usage: test_fields.py SOURCE_DIR BUILD_DIR [CLASS[.METHOD]]
"""
import contextlib
import ctypes
import re
import sys
import unittest
from pathlib import Path

SOURCE, BUILD = (Path(a).resolve() for a in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "tools"))
import pith_ctypes as pith  # noqa: E402

DATA = SOURCE / "tests/data"
ENCODER, CLASSIFIER, DETECTOR, VISION = (str(DATA / name).encode() for name in ("encode/bge-m3", "tasks/labels-bert", "yunet/yunet-s-640-other-sizes/model.onnx", "vision/clip"))
NETWORK = str(DATA / "models/bert-base-script17-sdpa/model.onnx").encode()

# Members of which every value is taken, and why.
SWITCH, ANY, ELSEWHERE = "0 or not", "any value", "of another task, or of a part of the work that is not reached"
ACCEPTED = {
    "pith_open_options.loop_limit": "a number below 0 is the default",
    "pith_open_options.pool_bytes": ANY,
    "pith_open_options.system_root": "for tests: what is not there is not known",
    "pith_runtime_options.strict": SWITCH,
    "pith_runtime_options.ort_profile": "the first part of any file's name",
    "pith_runtime_options.ort_python": "the library is searched in other places too",
    "pith_score_options.instruction": ELSEWHERE,
    **{f"pith_tokenize_options.{name}": SWITCH for name in ("no_specials", "raw", "no_offsets", "characters", "overflow")},
    "pith_bm25_options.no_stemming": SWITCH,
    "pith_bm25_options.stop_words": ANY,
    "pith_queue_options.max_requests": ANY,
    "pith_queue_options.max_bytes": ANY,
    "pith_request.deadline_ns": ANY,
    "pith_request.key": ANY,
    **{f"pith_export_options.{name}": SWITCH for name in ("int32_inputs", "data_always", "contrib")},
    "pith_quantize_model_options.keep": "a name that no node has keeps none",
    "pith_quantize_model_options.data_always": SWITCH,
    "pith_optimize_options.free_shapes": SWITCH,
    "pith_optimize_options.data_always": SWITCH,
    "pith_search_options.exact": SWITCH,
    "pith_image_options.keep_orientation": SWITCH,
}
# Files that are not there: the message has their path, which the caller gave for this member.
PATHS = {"pith_image_options.module_path", "pith_image_encode_options.module_path", "pith_database_options.schema"}
# Other members that a member has an effect with.
WITH = {
    "pith_quantize_model_options.rows": {"scheme": pith.CONSTANTS["PITH_QUANTIZE_BLOCKS8"]},
    "pith_quantize_model_options.reduce_range": {"scheme": pith.CONSTANTS["PITH_QUANTIZE_BLOCKS8"]},
    "pith_quantize_model_options.table_bits": {"scheme": pith.CONSTANTS["PITH_QUANTIZE_INT8"]},
    "pith_optimize_options.standard": {"gpu": 1},
    "pith_optimize_options.gpu": {"standard": 1},
    "pith_optimize_options.contrib": {"standard": 1},
}
# What is tried in place of the values of the type.
VALUES = {
    **{f"pith_{name}_options.data_name": (b"", b"a/b", b".b") for name in ("export", "quantize_model", "optimize")},
    "pith_check_options.runs": (-7, -2**31),  # more would take so many runs
    "pith_check_options.seed": (),
}

NUMBERS = {"int32_t": (-2**31, 2**31 - 1, -7, 1000003), "int64_t": (-2**63, 2**63 - 1), "uint32_t": (2**32 - 1,), "uint64_t": (2**64 - 1, 1), "size_t": (2**64 - 1, 1),
           "float": (float("nan"), -1e30, 1e30), "double": (float("nan"), -1e30, 1e30)}
NO_NAME = b"\x01 no such name"


def text(value):
    made = pith.Str()
    made.data, made.size = value, len(value)
    return made


class Library:
    """What the functions of the table work on; made once."""

    def __init__(self):
        self.lib, self.tables = pith.load(BUILD / "libpith.so"), pith.load(BUILD / "libpith-tables.so")
        self.error = pith.Error()
        self.handles = {}
        self.writer = pith.Writer(lambda data: 0)

    def call(self, name, *arguments):
        """(status, message)"""
        lib = self.tables if pith.DECLARED[name] and any(h["library"] == "pith-tables" and pith.DECLARED[name] in h["declarations"] for h in pith.API["headers"]) else self.lib
        self.error.message = b""
        status = getattr(lib, name)(*(ctypes.byref(a) if isinstance(a, (ctypes.Structure, ctypes._SimpleCData, ctypes.Array)) and not isinstance(a, pith.Str) else a for a in arguments),
                                    ctypes.byref(self.error))
        return status, self.error.message.decode(errors="replace")

    def made(self, name, *arguments, close):
        """As call, of a function that makes a handle, which is closed."""
        handle = ctypes.c_void_p()
        found = self.call(name, handle, *arguments)
        if not found[0]:
            getattr(self.lib, close)(handle)
        return found

    def model(self, path, **options):
        key = (path, *options.items())
        if key not in self.handles:
            self.handles[key] = ctypes.c_void_p()
            status, message = self.call("pith_model_open", self.handles[key], path, pith.OpenOptions(**options))
            if status:
                raise AssertionError(message)
        return self.handles[key].value

    def source(self, path):
        if ("source", path) not in self.handles:
            handle = self.handles["source", path] = ctypes.c_void_p()
            status, message = self.call("pith_source_open", handle, path, None)
            if status:
                raise AssertionError(message)
        return self.handles["source", path].value

    def texts(self, count=2):
        return (pith.Str * count)(*(text(b"a text"),) * count)

    def picture(self):
        made = pith.Image()
        self.pixels = (ctypes.c_uint8 * (64 * 64 * 3))()
        made.pixels, made.width, made.height, made.channels = ctypes.addressof(self.pixels), 64, 64, 3
        return made


PNG = (DATA / "images/rgb.png").read_bytes()
ROWS = (ctypes.c_float * 8)(*range(8))
FLOATS = ctypes.c_float * 4096


def run_model(l, o):
    ids = (ctypes.c_int64 * 4)(1, 2, 3, 4)
    mask = (ctypes.c_int64 * 4)(1, 1, 1, 1)
    names = (ctypes.c_char_p * 2)(b"input_ids", b"attention_mask")
    tensors = (pith.Tensor * 2)()
    for t, data in zip(tensors, (ids, mask)):
        t.data, t.bytes, t.dtype, t.rank = ctypes.addressof(data), 32, pith.CONSTANTS["PITH_I64"], 2
        t.dims[0], t.dims[1] = 1, 4
    outputs = (pith.Tensor * 8)()
    found = l.call("pith_model_run", outputs, l.model(NETWORK), names, tensors, 2, o)
    for t in outputs:
        l.lib.pith_tensor_free(ctypes.byref(t))
    return found


def batched(l, o):
    options = pith.EmbedOptions()
    options.batching = ctypes.pointer(o)
    return l.call("pith_embed", FLOATS(), l.model(ENCODER), l.texts(), 2, options)


def requested(l, o):
    queue, ticket = ctypes.c_void_p(), ctypes.c_uint64()
    if l.call("pith_queue_create", queue, l.model(ENCODER), None)[0]:
        raise AssertionError(l.error.message)
    texts = l.texts()
    if not o.texts and not o.tokens and not o.count:
        o.texts, o.count = texts, 2
    done = pith.struct("pith_request").DONE(lambda user, response: None)
    o.done = done
    found = l.call("pith_queue_submit", ticket, queue.value, o)
    l.lib.pith_queue_destroy(queue)
    return found


def resized(l, o):
    made = pith.Image()
    if not (o.width or o.height or o.shortest_edge or o.longest_edge):
        o.width = o.height = 8
    found = l.call("pith_image_resize", made, l.picture(), o)
    l.lib.pith_image_free(ctypes.byref(made))
    return found


def decoded(l, o):
    made = pith.Image()
    found = l.call("pith_image_decode", made, PNG, len(PNG), o)
    l.lib.pith_image_free(ctypes.byref(made))
    return found


def detected(l, o):
    made = pith.Faces()
    found = l.call("pith_detect", made, l.model(DETECTOR), l.picture(), 1, o)
    l.lib.pith_faces_free(ctypes.byref(made))
    return found


def encoded(l, o):
    made = ctypes.c_void_p()
    found = l.call("pith_encode", made, l.model(ENCODER), l.texts(), 2, o)
    l.lib.pith_encoded_free(made)
    return found


def tokenized(l, o):
    tokens = pith.struct("pith_tokens")()
    found = l.call("pith_tokenize", tokens, l.lib.pith_model_tokenizer(l.model(ENCODER)), text(b"a text"), None, o)
    l.lib.pith_tokens_free(ctypes.byref(tokens))
    return found


def searched(l, o):
    index, hits = ctypes.c_void_p(), (pith.struct("pith_hit") * 8)()
    if l.call("pith_search_index_create", index, ROWS, 4, 2, None)[0]:
        raise AssertionError(l.error.message)
    found = l.call("pith_search", hits, index.value, ROWS, 2, 2, o)
    l.lib.pith_search_index_destroy(index)
    return found


def indexed(l, o):
    return l.made("pith_search_index_create", ROWS, 4, 2, o, close="pith_search_index_destroy")


def of_runtime(l, o):
    """Through a model, since only that makes a session; the package of this Python has the library."""
    options = pith.OpenOptions(runtime=b"ort")
    o.strict = 1
    if not o.ort_library and not o.ort_python:
        o.ort_python = sys.prefix.encode()
    options.runtime_options = ctypes.pointer(o)
    return l.made("pith_model_open", NETWORK, options, close="pith_model_close")


# How the struct reaches the library: (what is called with it).
CALLS = {
    "pith_open_options": lambda l, o: l.made("pith_model_open", ENCODER if o.model_file or o.route else NETWORK, o, close="pith_model_close"),
    "pith_source_options": lambda l, o: l.made("pith_source_open", ENCODER, o, close="pith_source_close"),
    "pith_runtime_options": of_runtime,
    "pith_check_options": lambda l, o: l.call("pith_source_check_fusions", ctypes.c_size_t(), l.source(NETWORK), o),
    "pith_calibrate_options": lambda l, o: l.call("pith_model_calibrate", l.model(ENCODER, precision=pith.PRECISIONS["int8"]), o),
    "pith_embed_options": lambda l, o: l.call("pith_embed", FLOATS(), l.model(ENCODER), l.texts(), 2, o),
    "pith_batching": batched,
    "pith_encode_options": encoded,
    "pith_score_options": lambda l, o: l.call("pith_classify", FLOATS(), l.model(CLASSIFIER), l.texts(), None, 2, o),
    "pith_chunk_options": lambda l, o: l.call("pith_chunk_text", pith.struct("pith_chunk")(), l.model(ENCODER), text(b"a text"), o),
    "pith_tokenize_options": tokenized,
    "pith_bm25_options": lambda l, o: l.made("pith_bm25_open", None, o, close="pith_bm25_close"),
    "pith_queue_options": lambda l, o: l.made("pith_queue_create", l.model(ENCODER), o, close="pith_queue_destroy"),
    "pith_request": requested,
    "pith_session_pool_options": lambda l, o: l.made("pith_session_pool_create", l.model(NETWORK), o, close="pith_session_pool_destroy"),
    "pith_run_options": run_model,
    "pith_export_options": lambda l, o: l.call("pith_source_export", l.source(NETWORK), o, l.writer, l.writer, None),
    "pith_quantize_model_options": lambda l, o: l.call("pith_source_quantize", l.source(NETWORK), o, l.writer, l.writer, None),
    "pith_optimize_options": lambda l, o: l.call("pith_source_optimize", l.source(NETWORK), o, l.writer, l.writer, None),
    "pith_convert_options": lambda l, o: l.call("pith_source_convert", l.source(NETWORK), o, l.writer, None),
    "pith_quantize_options": lambda l, o: l.call("pith_quantize_vectors", (ctypes.c_uint8 * 64)(), ROWS, 4, 2, o),
    "pith_search_index_options": indexed,
    "pith_search_options": searched,
    "pith_detect_options": detected,
    "pith_image_options": decoded,
    "pith_image_encode_options": lambda l, o: l.call("pith_image_encode", l.picture(), o, l.writer),
    "pith_image_resize_options": resized,
    "pith_embed_images_options": lambda l, o: l.call("pith_embed_images", FLOATS(), l.model(VISION), l.picture(), 1, o),
    "pith_database_options": lambda l, o: l.call("pith_database_make", str(DATA / "shop").encode(), o, l.writer),
}


def is_input(d):
    """Structs that a caller fills: options, and what begins with its size and that the library does not fill."""
    members = d.get("members")
    return members and d["kind"] == "struct" and d["name"] != "pith_call" and (members[0]["type"] == "pith_call" or d["name"] in ("pith_runtime_options", "pith_batching", "pith_request"))


def tries(d, m):
    """Settings that may be wrong: dictionaries of the member, and of the number of its elements."""
    kind = m["type"]
    if any(re.search(rf"\b{m['name']}\b", size) for o in d["members"] for size in o.get("shape", ())):
        return  # a number of elements: it goes with the array
    for value in VALUES.get(f"{d['name']}.{m['name']}", (NO_NAME,) if kind == "const char *" else NUMBERS.get(kind, ())):
        yield {m["name"]: value}
    if kind == "const char *const *" and "shape" in m:
        yield {m["name"]: (ctypes.c_char_p * 1)(NO_NAME), m["shape"][0]: 1}


class Fields(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = Library()

    def refusals(self, d, m):
        """The messages that settings of a member meet with."""
        made = pith.struct(d["name"])
        for settings in tries(d, m):
            o = made()
            for name, value in {**WITH.get(f"{d['name']}.{m['name']}", {}), **settings}.items():
                setattr(o, name, ctypes.cast(value, ctypes.c_void_p).value if isinstance(value, ctypes.Array) else value)
            status, message = CALLS[d["name"]](self.library, o)
            if status:
                yield settings, message

    def test_all_structs(self):
        """Every struct that a caller fills is in the table."""
        self.assertEqual({d["name"] for d in pith.DECLARED.values() if is_input(d)}, set(CALLS))

    def test_accepted_members_exist(self):
        members = {f"{d['name']}.{m['name']}" for d in pith.DECLARED.values() if d["kind"] == "struct" for m in d["members"]}
        self.assertEqual((set(ACCEPTED) | set(WITH) | set(VALUES) | PATHS) - members, set())

    def test_threads(self):
        """Of the call context: a number of threads that cannot be, where threads have an effect."""
        for name, call in CALLS.items():
            if pith.DECLARED[name]["members"][0]["type"] != "pith_call":
                continue
            for value in (-1, 2**31 - 1):
                o = pith.struct(name)()
                o.call.threads = value
                status, message = call(self.library, o)
                with self.subTest(struct=name, value=value):
                    if status:
                        self.assertRegex(message, r"\bthreads\b")


def add_tests():
    """A test per struct, so that each fault has a line."""
    for name in CALLS:
        def test(self, d=pith.DECLARED[name]):
            for m in d["members"]:
                where = f"{d['name']}.{m['name']}"
                if m["name"] in ("call", "size", "reserved") or not any(True for _ in tries(d, m)):
                    continue
                with self.subTest(where):
                    found = list(self.refusals(d, m))
                    for settings, message in found:
                        if where in PATHS and NO_NAME.decode().strip("\x01 ") in message:
                            continue
                        self.assertRegex(message, rf"\b{m['name']}\b|\bPITH_{m.get('flags', 'PITH_NONE_')[5:]}", str(settings))
                    if where in ACCEPTED:
                        self.assertEqual(found, [], f"is refused, and in ACCEPTED: {ACCEPTED[where]}")
                    else:
                        self.assertTrue(found, "nothing that was tried is refused: give a bad value in VALUES, or the reason in ACCEPTED")
        setattr(Fields, f"test_{name.removeprefix('pith_')}", test)


class Layout(unittest.TestCase):
    def test_ctypes(self):
        """Structs of the ctypes module are laid out as described; test_border.py compares that with gcc and clang."""
        for name, d in pith.DECLARED.items():
            if d["kind"] == "struct":
                made = pith.struct(name)
                self.assertEqual(ctypes.sizeof(made), d["size"], name)
                for m in d["members"]:
                    place = getattr(made, m["name"])
                    self.assertEqual((place.offset, place.size), (m["offset"], m["size"]), f"{name}.{m['name']}")
            elif d["kind"] == "function":
                pith.ctype({"type": d["returns"]})
                for p in d["parameters"]:
                    pith.parameter(name, p["name"])


add_tests()
if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
