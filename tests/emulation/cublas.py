"""cuBLAS in NumPy: the functions of `cupy.cuda.cublas` that we call, over addresses as theirs are."""

import ctypes

import ml_dtypes
import numpy as np

from tests.emulation import queue

TYPES = {0: "f4", 1: "f8", 2: "f2", 4: "c8", 5: "c16", 14: ml_dtypes.bfloat16}  # by cudaDataType_t
COMPUTED = {68: ("f4", "c8"), 77: ("f4", "c8"), 70: ("f8", "c16")}  # by cublasComputeType_t


def _matrices(address, kind, rows, columns, step, jump, count):
    """A batch of matrices in memory by columns."""
    if step < max(1, rows):
        raise ValueError(f"cuBLAS refuses a leading dimension of {step} for {rows} rows")
    dtype = np.dtype(TYPES[kind])
    size = dtype.itemsize
    reach = (count - 1) * jump + (columns - 1) * step + rows
    memory = (ctypes.c_char * (reach * size)).from_address(address)
    return np.ndarray((count, rows, columns), dtype, memory, 0, (jump * size, size, step * size))


@np.errstate(all="ignore")
def _multiply(forms, sizes, alpha, a, b, beta, c, count, compute):
    queue.drain()  # in order, and at once: the addresses keep nothing alive
    rows, columns, inner = sizes
    complex_numbers = c[1] in (4, 5)
    computed = np.dtype(COMPUTED[compute][complex_numbers])

    def scalar(address):
        return np.frombuffer((ctypes.c_char * computed.itemsize).from_address(address), computed)[0]

    def factor(operand, form, shape):
        address, kind, step, jump = operand
        read = _matrices(address, kind, *(shape if form == 0 else shape[::-1]), step, jump, count).astype(computed)
        return read if form == 0 else read.swapaxes(1, 2) if form == 1 else read.swapaxes(1, 2).conj()

    out = _matrices(c[0], c[1], rows, columns, c[2], c[3], count)
    result = np.zeros(out.shape, computed)
    if scalar(alpha):
        result = np.matmul(factor(a, forms[0], (rows, inner)), factor(b, forms[1], (inner, columns))) * scalar(alpha)
    if scalar(beta):
        result += scalar(beta) * out.astype(computed)
    out[...] = result


def gemmEx(*arguments):
    """As cublasGemmEx: handle, forms, sizes, alpha, A, B, beta, C, type of computation, algorithm."""
    _, transa, transb, m, n, k, alpha, *a, B, Btype, ldb, beta, C, Ctype, ldc, compute, _ = arguments
    b, c = (B, Btype, ldb, 0), (C, Ctype, ldc, 0)
    _multiply((transa, transb), (m, n, k), alpha, (*a, 0), b, beta, c, 1, compute)


def gemmStridedBatchedEx(*arguments):
    """As cublasGemmStridedBatchedEx: with distances between matrices, and their number."""
    _, transa, transb, m, n, k, alpha, *matrices, beta, C, Ctype, ldc, strideC, count, compute, _ = arguments
    c = (C, Ctype, ldc, strideC)
    _multiply((transa, transb), (m, n, k), alpha, matrices[:4], matrices[4:], beta, c, count, compute)
