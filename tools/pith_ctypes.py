"""libpith.so through ctypes, as include/api.json describes it: structs, constants and the types of all functions."""
import ctypes
import json
import re
from pathlib import Path

import numpy as np

API = json.loads((Path(__file__).resolve().parent.parent / "include/api.json").read_text())
DECLARED = {d["name"]: d for h in API["headers"] for d in h["declarations"] if d["name"] and d["kind"] != "section"}
CONSTANTS = {v["name"]: v["value"] for h in API["headers"] for d in h["declarations"]
             for v in (d.get("values", ()) if d["kind"] == "enum" else [d] if "value" in d else ())}
globals().update(CONSTANTS)  # PITH_F32 and so on

NUMBER_TYPES = {"char": ctypes.c_char, "int": ctypes.c_int, "float": ctypes.c_float, "double": ctypes.c_double, "size_t": ctypes.c_size_t,
                **{f"{u}int{n}_t": getattr(ctypes, f"c_{u}int{n}") for n in (8, 16, 32, 64) for u in ("", "u")}}


class Sized(ctypes.Structure):
    """A struct that begins with its size, which is set by itself. Members of the call context can be named without "call"."""

    def __init__(self, *values, **members):
        super().__init__(*values, **members)
        getattr(self, "call", self).size = ctypes.sizeof(self)


class WriterBase(ctypes.Structure):
    def __init__(self, take):
        """take: called with the bytes of each piece."""
        super().__init__(write=self.WRITE(lambda _, data, size: take(ctypes.string_at(data, size)) or 0))


STRUCTS = {}


def struct(name):
    """The class of a struct. A member that points to a function has its type as an attribute in capitals: Writer.WRITE."""
    if name in STRUCTS:
        return STRUCTS[name]
    entry = DECLARED[name]
    base = WriterBase if name == "pith_writer" else Sized if entry["sized"] else ctypes.Structure
    members = entry["members"]
    made = STRUCTS[name] = type(name, (base,), {})
    for m in members:
        if "function" in m:
            setattr(made, m["name"].upper(), ctype(m))
    outer = {m["name"] for m in members}
    if members[0]["type"] == "pith_call" and not outer & {m["name"] for m in DECLARED["pith_call"]["members"]}:
        made._anonymous_ = ("call",)
    made._fields_ = [(m["name"], ctype(m)) for m in members]
    if ctypes.sizeof(made) != entry["size"] or any(getattr(made, m["name"]).offset != m["offset"] for m in members):
        raise AssertionError(f"ctypes lays {name} out in another way than include/api.json says")
    return made


def ctype(entry):
    """The type of a member, a parameter or a result: addresses of numbers, handles and pointers are plain addresses."""
    if "function" in entry:
        function = entry["function"]
        return ctypes.CFUNCTYPE(ctype({"type": function["returns"]}), *(ctype(p) for p in function["parameters"]))
    m = re.fullmatch(r"(.*?)((?:\[\d+\])+)", entry["type"])
    if m:
        made = ctype({"type": m.group(1)})
        for count in reversed(re.findall(r"\d+", m.group(2))):
            made *= int(count)
        return made
    name, stars = re.sub(r"\b(const|volatile)\b|[ *]", "", entry["type"]), entry["type"].count("*")
    if not stars:
        if name == "void":
            return None
        kind = DECLARED.get(name, {}).get("kind")
        return struct(name) if kind == "struct" else ctypes.c_int if kind == "enum" else NUMBER_TYPES[name]
    if stars == 1 and name == "char" and "const" in entry["type"]:
        return ctypes.c_char_p
    if stars == 1 and DECLARED.get(name, {}).get("kind") == "struct":
        return ctypes.POINTER(struct(name))
    return ctypes.c_void_p


def parameter(function, name):
    """The type of a parameter of a function: of a callback, what makes one."""
    return ctype(next(p for p in DECLARED[function]["parameters"] if p["name"] == name))


def load(path):
    """The library with the types of its functions. A parameter that is an address takes any: byref, arrays, bytes, None."""
    lib = ctypes.CDLL(str(path))
    for name, entry in DECLARED.items():
        if entry["kind"] != "function" or not hasattr(lib, name):
            continue
        function = getattr(lib, name)
        function.restype = ctype({"type": entry["returns"]})
        function.argtypes = [ctypes.c_void_p if "*" in p["type"] or "function" in p else ctype(p) for p in entry["parameters"]]
    return lib


Str, Error, Tensor, Call, Writer = map(struct, ("pith_str", "pith_error", "pith_tensor", "pith_call", "pith_writer"))
OpenOptions, RunOptions, EmbedOptions, Batching, Stats = map(
    struct, ("pith_open_options", "pith_run_options", "pith_embed_options", "pith_batching", "pith_embed_stats"))
Image, ImageDetails, ImageOptions, ResizeOptions = map(
    struct, ("pith_image", "pith_image_details", "pith_image_options", "pith_image_resize_options"))
Faces, DetectOptions, Phase = map(struct, ("pith_faces", "pith_detect_options", "pith_phase"))

DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
          10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64}
STRING = CONSTANTS["PITH_STRING"]
NUMBERS = {np.dtype(v): k for k, v in DTYPES.items()}
NO_ARENA, NO_PLAN_REUSE = CONSTANTS["PITH_OPEN_NO_ARENA"], CONSTANTS["PITH_OPEN_NO_PLAN_REUSE"]
NO_OPTIMIZATION = CONSTANTS["PITH_OPTIMIZATION_NONE"]
PRECISIONS = {name: CONSTANTS[f"PITH_PRECISION_{name.upper()}"] for name in ("auto", "f32", "int8", "bf16")}


class PithError(RuntimeError):
    pass


class Model:
    """source: a path or name, or the bytes of an ONNX file. optimization: a level, from 0. more: members of pith_open_options."""

    def __init__(self, library, source, optimization=3, precision="auto", **more):
        self.lib, self.error, self.handle = load(library), Error(), ctypes.c_void_p()
        self.source = source
        options = OpenOptions(optimization=optimization or NO_OPTIMIZATION, precision=PRECISIONS[precision], **more)
        if isinstance(source, bytes):
            self.check(self.lib.pith_model_open_memory(ctypes.byref(self.handle), source, ctypes.c_size_t(len(source)),
                                                       ctypes.byref(options), ctypes.byref(self.error)))
        else:
            self.check(self.lib.pith_model_open(ctypes.byref(self.handle), str(source).encode(), ctypes.byref(options),
                                                ctypes.byref(self.error)))

    def check(self, status):
        if status:
            raise PithError(self.error.message.decode(errors="replace"))

    def close(self):
        self.lib.pith_model_close(self.handle)

    def statistics(self):
        """What the model has counted: the members of pith_statistics."""
        numbers, parts = struct("pith_statistics")(), []
        self.check(self.lib.pith_model_statistics(ctypes.byref(numbers), self.handle, ctypes.byref(self.error)))
        self.check(self.lib.pith_statistics_write(ctypes.byref(numbers), 0, ctypes.byref(Writer(parts.append)), ctypes.byref(self.error)))
        return json.loads(b"".join(parts))

    def session(self):
        session = ctypes.c_void_p()
        self.check(self.lib.pith_session_create(ctypes.byref(session), self.handle, ctypes.byref(self.error)))
        return session

    def run(self, feeds):
        """feeds: name → array; returns the outputs in the model's order."""
        session = self.session()
        try:
            return self.run_session(session, feeds)
        finally:
            self.lib.pith_session_destroy(session)

    def run_session(self, session, feeds, threads=0):
        arrays = [np.array(a, order="C") for a in feeds.values()]
        names = (ctypes.c_char_p * len(arrays))(*[n.encode() for n in feeds])
        inputs = (Tensor * len(arrays))()
        for t, a in zip(inputs, arrays):
            t.data, t.bytes, t.dtype, t.rank = a.ctypes.data, a.nbytes, NUMBERS[a.dtype], a.ndim
            t.dims[: a.ndim] = a.shape
        outputs = (Tensor * self.lib.pith_model_output_count(self.handle))()
        options = RunOptions(threads=threads)
        self.check(self.lib.pith_session_run(session, outputs, names, inputs, ctypes.c_size_t(len(arrays)), ctypes.byref(options),
                                             ctypes.byref(self.error)))
        return [self.array(t) for t in outputs]

    @staticmethod
    def array(t):
        raw = ctypes.string_at(t.data, t.bytes) if t.bytes else b""
        if t.dtype == STRING:
            items = (Str * (t.bytes // ctypes.sizeof(Str))).from_buffer_copy(raw)
            texts = [s.data[: s.size].decode() if s.size else "" for s in items]
            return np.array(texts, object).reshape(t.dims[: t.rank])
        return np.frombuffer(raw, DTYPES[t.dtype]).reshape(t.dims[: t.rank]).copy()

    def embed(self, texts, threads, stats=None, max_length=0, batch_tokens=0, batching=None):
        raw = [t.encode() for t in texts]
        spans = (Str * len(raw))(*[Str(r, len(r)) for r in raw])
        options = EmbedOptions(threads=threads, max_length=max_length, batch_tokens=batch_tokens,
                               stats=ctypes.pointer(stats) if stats is not None else None,
                               batching=ctypes.pointer(batching) if batching is not None else None)
        dim = self.lib.pith_embed_dim(self.handle, ctypes.byref(options))
        out = np.empty((len(texts), dim), np.float32)
        self.check(self.lib.pith_embed(out.ctypes.data_as(ctypes.c_void_p), self.handle, spans, ctypes.c_size_t(len(raw)),
                                       ctypes.byref(options), ctypes.byref(self.error)))
        return out
