"""libpith.so through ctypes, as much of it as the benchmarks and the comparisons need."""
import ctypes
import json

import numpy as np

MAX_RANK = 12
DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
          10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64}
STRING = 8
NUMBERS = {np.dtype(v): k for k, v in DTYPES.items()}


class Str(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 1024)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("dims", ctypes.c_int64 * MAX_RANK)]


class Call(ctypes.Structure):
    """pith_call, with which every option struct begins."""
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("reserved", ctypes.c_int32), ("deadline_ns", ctypes.c_uint64),
                ("cancel", ctypes.c_void_p), ("stop", ctypes.c_void_p), ("progress", ctypes.c_void_p), ("user", ctypes.c_void_p),
                ("log", ctypes.c_void_p), ("profile", ctypes.c_void_p), ("allocator", ctypes.c_void_p)]


class Options(ctypes.Structure):
    """The beginning of every option struct. Members of the call context can be named without "call"."""
    _anonymous_ = ("call",)
    _fields_ = [("call", Call)]

    def __init__(self, **members):
        super().__init__(**members)
        self.size = ctypes.sizeof(self)


class Writer(ctypes.Structure):
    WRITE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    _fields_ = [("write", WRITE), ("begin", ctypes.c_void_p), ("user", ctypes.c_void_p)]

    def __init__(self, take):
        """take: called with the bytes of each piece."""
        super().__init__(self.WRITE(lambda _, data, size: take(ctypes.string_at(data, size)) or 0), None, None)


class Stats(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in ("texts", "tokens", "padded_tokens", "truncated", "peak_bytes")]


class OpenOptions(Options):
    _fields_ = [("flags", ctypes.c_uint32), ("optimization", ctypes.c_int32), ("memory_limit", ctypes.c_size_t),
                ("loop_limit", ctypes.c_int64), ("stop_after", ctypes.c_char_p),
                ("input_shapes", ctypes.c_void_p), ("input_shape_count", ctypes.c_size_t), ("precision", ctypes.c_int32),
                ("runtime", ctypes.c_char_p), ("model_file", ctypes.c_char_p), ("route", ctypes.c_char_p),
                ("pool_blocks", ctypes.c_int32), ("pool_bytes", ctypes.c_size_t), ("sessions", ctypes.c_int32)]


class Batching(ctypes.Structure):
    DONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
    _fields_ = [("size", ctypes.c_size_t), ("least", ctypes.c_int32), ("most", ctypes.c_int32), ("prefer", ctypes.c_int32),
                ("target_ms", ctypes.c_double), ("done", DONE), ("user", ctypes.c_void_p)]


class RunOptions(Options):
    pass


class EmbedOptions(Options):
    _fields_ = [("max_length", ctypes.c_int32), ("batch_tokens", ctypes.c_int32), ("pooling", ctypes.c_int32),
                ("normalize", ctypes.c_int32), ("dim", ctypes.c_int32), ("stats", ctypes.POINTER(Stats)),
                ("prompt_name", ctypes.c_char_p), ("batching", ctypes.POINTER(Batching))]


class Image(ctypes.Structure):
    _fields_ = [("pixels", ctypes.c_void_p), ("width", ctypes.c_int32), ("height", ctypes.c_int32), ("channels", ctypes.c_int32),
                ("allocator", ctypes.c_void_p)]


class ImageOptions(Options):
    _fields_ = [("channels", ctypes.c_int32), ("keep_orientation", ctypes.c_int32), ("max_pixels", ctypes.c_uint64),
                ("module_path", ctypes.c_char_p), ("details", ctypes.c_void_p)]


class ResizeOptions(Options):
    _fields_ = [("width", ctypes.c_int32), ("height", ctypes.c_int32), ("shortest_edge", ctypes.c_int32),
                ("longest_edge", ctypes.c_int32), ("filter", ctypes.c_int32), ("max_pixels", ctypes.c_uint64)]


class Faces(ctypes.Structure):
    """faces: [count] of 15 floats: box, landmarks, score."""
    _fields_ = [("faces", ctypes.POINTER(ctypes.c_float)), ("count", ctypes.c_size_t), ("allocator", ctypes.c_void_p)]


class DetectOptions(Options):
    _fields_ = [("score_threshold", ctypes.c_float), ("nms_threshold", ctypes.c_float), ("top_k", ctypes.c_int32),
                ("score", ctypes.c_int32), ("width", ctypes.c_int32), ("height", ctypes.c_int32)]


class Phase(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("begin_ns", ctypes.c_uint64), ("end_ns", ctypes.c_uint64), ("items", ctypes.c_int64)]
    TOLD = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


NO_ARENA, NO_PLAN_REUSE = 1 << 5, 1 << 6  # PITH_OPEN_*
NO_OPTIMIZATION = -1  # PITH_OPTIMIZATION_NONE
PRECISIONS = {"auto": 0, "f32": 1, "int8": 2, "bf16": 3}


class PithError(RuntimeError):
    pass


class Model:
    """source: a path or name, or the bytes of an ONNX file. optimization: a level, from 0. more: members of pith_open_options."""

    def __init__(self, library, source, optimization=3, precision="auto", **more):
        self.lib, self.error, self.handle = ctypes.CDLL(str(library)), Error(), ctypes.c_void_p()
        self.lib.pith_embed_dim.restype = ctypes.c_size_t
        self.lib.pith_model_output_count.restype = ctypes.c_size_t
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
        numbers, parts = (ctypes.c_uint64 * 128)(1024), []
        self.check(self.lib.pith_model_statistics(numbers, self.handle, ctypes.byref(self.error)))
        self.check(self.lib.pith_statistics_write(numbers, 0, ctypes.byref(Writer(parts.append)), ctypes.byref(self.error)))
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
