"""The definition of com.microsoft's MatMulNBits with accuracy_level 4 as Pith computes it (src/engine/kernels/gemm_blocks.h), in NumPy."""
import numpy as np


def unpacked(codes, bits, count):
    """[rows, bytes], low bits first -> [rows, count]."""
    if bits == 4:
        codes = np.stack([codes & 15, codes >> 4], -1).reshape(len(codes), -1)
    return codes[:, :count].astype(np.int64)


def rows_in_bytes(x, block):
    """x [m, k] -> codes [m, blocks, block], scales [m, blocks]: max |x| / 127 of a block; ties go to even."""
    m, k = x.shape
    blocks = -(-k // block)
    padded = np.zeros((m, blocks * block), np.float32)
    padded[:, :k] = x
    padded = padded.reshape(m, blocks, block)
    most = np.abs(padded).max(-1)
    inverse = np.divide(np.float32(127), most, out=np.zeros_like(most), where=most > 0)
    return np.rint(padded * inverse[..., None]).astype(np.int64), most / np.float32(127)


def matmul(x, b, scales, zeros, bias, bits, block):
    """x [m, k] f32; b [n, blocks, block * bits / 8]; scales [n, blocks]; zeros [n, packed blocks] or None; bias [n] or None."""
    n, blocks = scales.shape
    codes, own = rows_in_bytes(x, block)
    weights = unpacked(b.reshape(n, -1), bits, blocks * block).reshape(n, blocks, block)
    weights = weights - (unpacked(zeros, bits, blocks)[..., None] if zeros is not None else 1 << (bits - 1))
    sums = np.einsum("mtk,ntk->tmn", codes, weights)
    y = np.zeros((len(x), n), np.float32)
    for t in range(blocks):  # in double, so that sum and product are rounded once
        product = (sums[t].astype(np.float32) * own[:, t, None]).astype(np.float64) * scales[:, t]
        y = (y + product).astype(np.float32)
    return y if bias is None else y + bias
