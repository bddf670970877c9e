"""Attention, tile by tile, without the matrix of scores."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.dispatch.settings import settings
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import FLOATS, HALVES, REALS, STATISTIC, THREADS, argument, blocks, offered
from corefw_cupy.layouts import inverse, merged

MAX_BATCH = 8  # as in attention.cuh
TILE = 64  # rows of a block, as in attention_tiles.cuh
HALF_THREADS = 128  # of a block that uses tensor cores, as in attention_fragments.cuh
PAD = 8  # elements that rows in its shared memory have beyond their columns
COLUMNS = {size: str(size) for size in (16, 32, 64, 96, 128, 256)}  # of a product that a block may have
BACKWARD_COLUMNS = {size: text for size, text in COLUMNS.items() if size <= 128}  # of three, for sums of 32 bits
DOUBLE_COLUMNS = {size: text for size, text in COLUMNS.items() if size <= 64}  # and of 64 bits
DOUBLE = {dtype: name for dtype, name in REALS.items() if dtype.itemsize == 8}
SINGLE = {dtype: name for dtype, name in FLOATS.items() if dtype not in DOUBLE}
FEW_BLOCKS = 264  # of the gradients, where blocks must not add to the same sums: two for each multiprocessor of an H100
_STRIDES = [("row", "i8"), ("column", "i8"), ("batch", "i8", MAX_BATCH)]
_RESULTS = ("grad_query", "grad_key", "grad_value")
_OPERANDS = ("query", "key", "value", "bias", "gradient", "output", *_RESULTS)
_SIZES = [(name, "i8") for name in ("heads", "queries", "keys", "width", "value_width", "dims")]
ATTENTION = np.dtype([*_SIZES, ("sizes", "i8", MAX_BATCH), *((name, _STRIDES) for name in _OPERANDS)])


def columns_of(width: int, sizes: Iterable[int] = COLUMNS) -> int:
    """How many columns a block takes of a matrix of so many, of those that it may have."""
    return next((size for size in sizes if size >= width), max(sizes))


def _shared(rows: int, columns: int) -> int:
    """The bytes of so many rows of a half type in shared memory."""
    return 2 * rows * (columns + PAD)


@lru_cache(maxsize=1 << 12)
def geometry(itemsize: int, *operands: Any) -> tuple[Any, int]:
    """The struct Attention and the number of heads for operands given as (shape, strides in bytes), in the order of the
    struct; those of which there are none may be None or missing. Refuses shapes that do not fit."""
    (*batch, queries, width), (*_, keys, _), (*_, value_width) = (shape for shape, _ in operands[:3])
    result, inputs = (queries, value_width), ((queries, width), (keys, width), (keys, value_width))
    matrices = *inputs, (queries, keys), result, result, *inputs
    strides = []
    for name, operand, matrix in zip(_OPERANDS, operands, matrices):
        wanted = (*batch, *matrix)
        shape, steps = operand or (wanted, (0,) * len(wanted))
        lead = len(wanted) - len(shape)
        broadcasts = name == "bias" and lead >= 0
        fits = all(size == want or size == 1 for size, want in zip(shape, wanted[lead:])) if broadcasts else None
        if not (fits or shape == wanted):
            raise ValueError(f"{name} of shape {shape} where {wanted} is expected")
        strides.append([0] * lead + [step // itemsize if size != 1 else 0 for size, step in zip(shape, steps)])
    sizes, batch_strides = merged(batch, strides)
    if len(sizes) > MAX_BATCH:
        raise ValueError(f"heads along {len(sizes)} dimensions that cannot be joined; at most {MAX_BATCH} are walked")
    found = np.zeros(1, ATTENTION)
    for name, value in zip(ATTENTION.fields or (), (prod(batch), queries, keys, width, value_width, len(sizes))):
        found[name] = value
    found["sizes"][0, : len(sizes)] = sizes
    for name, steps, own in zip(_OPERANDS, strides, batch_strides):
        found[name]["row"], found[name]["column"] = steps[-2:]
        found[name]["batch"][0, : len(sizes)] = own
    return argument(found), prod(batch)


@lru_cache(maxsize=1 << 12)
def arrangement(strides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dimensions of a result from the outermost in memory to the innermost, as those of an array of these strides
    lie, but for rows that have no gaps; and the order that turns them back.

    What was split into heads that are not the first dimension is joined again without a copy.
    """
    *leading, last = range(len(strides))
    order = *sorted(leading, key=lambda d: -strides[d]), last
    return order, inverse(order)


def described(*arrays):
    """The arrays as `geometry` takes them."""
    return [None if array is None else (array.shape, array.strides) for array in arrays]


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    forward = cuda.function("attention/attention.cu", "attention", T=FLOATS, D=COLUMNS)
    forward_half = cuda.function("attention/attention_half.cu", "attention", T=HALVES, D=COLUMNS)
    averages_of = cuda.function("attention/attention_averages.cu", "attention_averages", T=FLOATS)
    backward = cuda.function("attention/attention_backward.cu", "attention_backward", T=SINGLE, D=BACKWARD_COLUMNS)
    backward_double = cuda.function("attention/attention_backward.cu", "attention_backward", T=DOUBLE, D=DOUBLE_COLUMNS)
    backward_half = cuda.function(
        "attention/attention_backward_half.cu", "attention_backward", T=HALVES, D=BACKWARD_COLUMNS
    )
    join_splits = cuda.function("reduction/splits.cu", "join_splits", T=FLOATS)

    def with_rows(array):
        """The array, or a copy whose matrices have rows without gaps."""
        return array if array.shape[-1] <= 1 or array.strides[-1] == array.itemsize else cuda.dense(array)

    def readable(query, key, value, bias, *others):
        """The operands as kernels read them."""
        given = (query, key, value, *others) if bias is None else (query, key, value, bias, *others)
        if min(query.ndim, key.ndim, value.ndim) < 2 or any(x.dtype != query.dtype for x in given):
            raise ValueError("matrices of one dtype expected")
        return with_rows(query), with_rows(key), with_rows(value), bias, *map(with_rows, others)

    def result(like, width):
        """New matrices of that many columns, which lie in memory like others."""
        (order, back), shape = arrangement(like.strides), (*like.shape[:-1], width)
        return cuda.empty(tuple([shape[d] for d in order]), like.dtype).transpose(back)

    def attention(query, key, value, bias, is_causal, scale):
        query, key, value, bias = readable(query, key, value, bias)
        shape, width, dtype = query.shape[:-1], value.shape[-1], query.dtype
        output, logsumexp = result(query, width), cuda.empty(shape, STATISTIC[dtype])
        of, heads = geometry(query.itemsize, *described(query, key, value, bias, None, output))
        if logsumexp.size:
            widest, mask = max(query.shape[-1], width), 0 if bias is None else bias
            arguments = query, key, value, mask, of, is_causal, float(scale), output, logsumexp
            if dtype in HALVES and widest <= max(COLUMNS):
                columns = columns_of(widest)
                own, stage = (128, 64) if columns <= 128 else (64, 32)  # OWN and STAGE of attention_half.cu
                shared, grid = _shared(own + 2 * stage, columns), (heads * -(-shape[-1] // own),)
                forward_half[dtype, columns](grid, (HALF_THREADS,), arguments, shared_mem=shared)
            else:
                columns = columns_of(width)
                tiles, parts = -(-shape[-1] // TILE), max(1, -(-width // columns))
                forward[dtype, columns]((heads * tiles, parts), (THREADS,), arguments)
        return output, logsumexp

    def attention_backward(gradient, query, key, value, output, logsumexp, bias, is_causal, scale):
        query, key, value, bias, gradient, output = readable(query, key, value, bias, gradient, output)
        dtype, statistic = query.dtype, STATISTIC[query.dtype]
        grad_query, grad_key, grad_value = results = tuple([result(x, x.shape[-1]) for x in (query, key, value)])
        of, heads = geometry(query.itemsize, *described(query, key, value, bias, gradient, output, *results))
        if logsumexp.shape != query.shape[:-1]:
            raise ValueError("one logarithm per query expected")
        logsumexp = cuda.dense(logsumexp if logsumexp.dtype == statistic else cuda.copying.cast(logsumexp, statistic))
        averages = cuda.empty(logsumexp.shape, statistic)
        if averages.size:
            grid = blocks(averages.size, THREADS // 32)
            averages_of[dtype](grid, (THREADS,), (gradient, output, of, averages))
        turns, buffers = -(-key.shape[-2] // TILE), 1
        if settings.deterministic and heads:
            turns = buffers = min(turns, -(-FEW_BLOCKS // heads))
        joined = dtype == statistic and buffers == 1  # blocks add to the gradient itself
        sums = grad_query if joined else cuda.empty((buffers, grad_query.size), statistic)
        cuda.copying.fill(sums, 0)
        if heads * turns:
            read = gradient, query, key, value, 0 if bias is None else bias, logsumexp, averages
            arguments = *read, of, is_causal, float(scale), sums, buffers, grad_key, grad_value
            launch_backward(max(query.shape[-1], value.shape[-1]), dtype, heads * turns, arguments)
        if grad_query.size and not joined:
            size = grad_query.size
            join_splits[dtype](blocks(size), (THREADS,), (sums, 0, grad_query, size, buffers, 1, 1))
        return results

    def launch_backward(width, dtype, count, arguments):
        """Launch so many blocks of the gradients of matrices of at most `width` columns."""
        if dtype in HALVES and width <= max(BACKWARD_COLUMNS):
            columns = columns_of(width)
            shared = _shared(4 * TILE, columns) + _shared(TILE, 32)  # as in attention_backward_half.cu
            backward_half[dtype, columns]((count,), (HALF_THREADS,), arguments, shared_mem=shared)
        else:
            function = backward_double if dtype in DOUBLE else backward
            columns = columns_of(width, DOUBLE_COLUMNS if dtype in DOUBLE else BACKWARD_COLUMNS)
            function[dtype, columns]((count, max(1, -(-width // columns))), (THREADS,), arguments)

    floats = offered(FLOATS)
    return [
        Kernel("attention", attention, floats),
        Kernel("attention_backward", attention_backward, floats, deterministic="if asked"),
    ]
