"""cuBLAS in NumPy: the functions of `cupy.cuda.cublas` that we call, over addresses as theirs are."""

import ctypes
from functools import partial

import ml_dtypes
import numpy as np

from tests.emulation import capture, driver, launches, queue

TYPES = {0: "f4", 1: "f8", 2: "f2", 4: "c8", 5: "c16", 14: ml_dtypes.bfloat16}  # by cudaDataType_t
COMPUTED = {68: ("f4", "c8"), 77: ("f4", "c8"), 70: ("f8", "c16")}  # by cublasComputeType_t


def matrices(address, kind, rows, columns, step, jump, count):
    """A batch of matrices in memory by columns."""
    if step < max(1, rows):
        raise ValueError(f"cuBLAS refuses a leading dimension of {step} for {rows} rows")
    dtype = np.dtype(TYPES[kind])
    size = dtype.itemsize
    reach = (count - 1) * jump + (columns - 1) * step + rows
    memory = (ctypes.c_char * (reach * size)).from_address(address)
    return np.ndarray((count, rows, columns), dtype, memory, 0, (jump * size, size, step * size))


def scalar(address, dtype):
    """A number in host memory."""
    return np.frombuffer((ctypes.c_char * np.dtype(dtype).itemsize).from_address(address), dtype)[0]


def factor(operand, form, rows, columns, count, computed):
    """A batch of factors, given as (address, type, step, jump), in the form and dtype in which they are multiplied."""
    address, kind, step, jump = operand
    shape = (columns, rows) if form else (rows, columns)
    read = matrices(address, kind, *shape, step, jump, count).astype(computed)
    return read if form == 0 else read.swapaxes(1, 2) if form == 1 else read.swapaxes(1, 2).conj()


def submit(work):
    """Compute a product: recorded if the stream is captured, otherwise in order and at once, since addresses keep
    nothing alive."""
    launches.launched("gemm")
    stream = driver.get_current_stream().ptr
    if not capture.record(work, stream):
        queue.drain(stream)
        work()


def computed_in(compute, kind):
    """The dtype in which matrices of a kind are multiplied."""
    return np.dtype(COMPUTED[compute][kind in (4, 5)])


@np.errstate(all="ignore")
def multiply(forms, sizes, alpha, a, b, beta, c, count):
    """Fill a batch of products, given as its factors; `alpha` and `beta` are in the dtype of computation."""
    rows, columns, inner = sizes
    computed = alpha.dtype
    out = matrices(c[0], c[1], rows, columns, c[2], c[3], count)
    result = np.zeros(out.shape, computed)
    if alpha:
        factors = (a, forms[0], rows, inner), (b, forms[1], inner, columns)
        result = np.matmul(*(factor(*of, count, computed) for of in factors)) * alpha
    if beta:
        result += beta * out.astype(computed)
    out[...] = result


def _multiply(forms, sizes, alpha, a, b, beta, c, count, compute):
    if capture.of(driver.get_current_stream().ptr) is not None:  # CuPy gives the handle its stream in each call
        raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")
    computed = computed_in(compute, c[1])
    submit(partial(multiply, forms, sizes, scalar(alpha, computed), a, b, scalar(beta, computed), c, count))


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
