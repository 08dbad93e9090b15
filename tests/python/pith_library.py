"""libpith.so through ctypes: opens an ONNX model from memory and runs it on NumPy arrays of numbers."""
import ctypes as C

import numpy as np

DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
          10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64}
NUMBERS = {np.dtype(t): n for n, t in DTYPES.items()}


class Tensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("bytes", C.c_size_t), ("dtype", C.c_int32), ("rank", C.c_int32),
                ("dims", C.c_int64 * 12)]


class Error(C.Structure):
    _fields_ = [("code", C.c_int), ("message", C.c_char * 1024)]


class OpenOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("flags", C.c_uint32), ("optimization", C.c_int32), ("allocator", C.c_void_p),
                ("log", C.c_void_p), ("memory_limit", C.c_size_t), ("loop_limit", C.c_int64)]


class Failure(Exception):
    """What pith_error says."""


class Library:
    def __init__(self, path):
        self.c = C.CDLL(str(path))
        pointer = C.c_void_p
        self.c.pith_model_open_memory.argtypes = [pointer, C.c_char_p, C.c_size_t, pointer, pointer]
        self.c.pith_model_close.argtypes = [pointer]
        self.c.pith_session_create.argtypes = [pointer, pointer, pointer]
        self.c.pith_session_destroy.argtypes = [pointer]
        self.c.pith_session_run.argtypes = [pointer, pointer, pointer, pointer, C.c_size_t, pointer, pointer]
        self.c.pith_model_output_count.argtypes = [pointer]
        self.c.pith_model_output_count.restype = C.c_size_t

    def run(self, model, inputs, optimization=3):
        """Outputs in the model's order; inputs by name. Raises Failure."""
        error, handle, session = Error(), C.c_void_p(), C.c_void_p()
        options = OpenOptions(C.sizeof(OpenOptions), 0, optimization, None, None, 1 << 30, 0)

        def check(status):
            if status:
                raise Failure(error.message.decode(errors="replace"))

        check(self.c.pith_model_open_memory(C.byref(handle), model, len(model), C.byref(options), C.byref(error)))
        try:
            check(self.c.pith_session_create(C.byref(session), handle, C.byref(error)))
            arrays = {name: np.require(x, requirements="C") for name, x in inputs.items()}
            names = (C.c_char_p * max(1, len(arrays)))(*[name.encode() for name in arrays])
            tensors = (Tensor * max(1, len(arrays)))(*[tensor_of(x) for x in arrays.values()])
            outputs = (Tensor * self.c.pith_model_output_count(handle))()
            check(self.c.pith_session_run(session, outputs, names, tensors, len(arrays), None, C.byref(error)))
            return [array_of(t) for t in outputs]
        finally:
            self.c.pith_session_destroy(session)
            self.c.pith_model_close(handle)


def tensor_of(x):
    return Tensor(x.ctypes.data, x.nbytes, NUMBERS[x.dtype], x.ndim, (C.c_int64 * 12)(*x.shape))


def array_of(t):
    shape = [t.dims[i] for i in range(t.rank)]
    raw = C.string_at(t.data, t.bytes) if t.bytes else b""
    return np.frombuffer(raw, DTYPES[t.dtype]).reshape(shape).copy()
