"""Attention, tile by tile, without the matrix of scores."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from corefw.dispatch.registry import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import FLOATS, HALVES, STATISTIC, THREADS, argument, blocks, offered
from corefw_cupy.layouts import merged

MAX_BATCH = 8  # as in attention.cuh
TILE = 64  # rows of a block, as in attention_tiles.cuh and attention_fragments.cuh
HALF_THREADS = 128  # of a block that uses tensor cores, as in attention_fragments.cuh
COLUMNS = {size: str(size) for size in (16, 32, 64, 96, 128, 256)}  # of a product that a block may have
HALF_COLUMNS = {size: text for size, text in COLUMNS.items() if size <= 128}  # what tensor cores take backwards
_STRIDES = [("row", "i8"), ("column", "i8"), ("batch", "i8", MAX_BATCH)]
_OPERANDS = ("query", "key", "value", "bias", "gradient", "output")
_SIZES = [(name, "i8") for name in ("heads", "queries", "keys", "width", "value_width", "dims")]
ATTENTION = np.dtype([*_SIZES, ("sizes", "i8", MAX_BATCH), *((name, _STRIDES) for name in _OPERANDS)])


def columns_of(width: int) -> int:
    """How many columns a block takes of a matrix of so many."""
    return next((size for size in COLUMNS if size >= width), max(COLUMNS))


@lru_cache(maxsize=1 << 12)
def geometry(itemsize: int, *operands: Any) -> tuple[Any, int]:
    """The struct Attention and the number of heads for operands given as (shape, strides in bytes), in the order of the
    struct; those of which there are none may be None or missing. Refuses shapes that do not fit."""
    (*batch, queries, width), (*_, keys, _), (*_, value_width) = (shape for shape, _ in operands[:3])
    result = (queries, value_width)
    matrices = ((queries, width), (keys, width), (keys, value_width), (queries, keys), result, result)
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


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    forward = cuda.function("attention.cu", "attention", T=FLOATS, D=COLUMNS)
    forward_half = cuda.function("attention_half.cu", "attention", T=HALVES, D=COLUMNS)
    averages_of = cuda.function("attention_averages.cu", "attention_averages", T=FLOATS)
    backward = cuda.function("attention_backward.cu", "attention_backward", T=FLOATS, D=COLUMNS)
    backward_half = cuda.function("attention_backward_half.cu", "attention_backward", T=HALVES, D=HALF_COLUMNS)

    def with_rows(array):
        """The array, or a copy whose matrices have rows without gaps."""
        return array if array.shape[-1] <= 1 or array.strides[-1] == array.itemsize else cuda.dense(array)

    def arranged(query, key, value, bias, *others):
        """The operands as kernels read them, the struct Attention, and the number of heads."""
        given = (query, key, value, *others) if bias is None else (query, key, value, bias, *others)
        if min(query.ndim, key.ndim, value.ndim) < 2 or any(x.dtype != query.dtype for x in given):
            raise ValueError("matrices of one dtype expected")
        operands = [with_rows(query), with_rows(key), with_rows(value), bias, *map(with_rows, others)]
        return operands, *geometry(query.itemsize, *[None if x is None else (x.shape, x.strides) for x in operands])

    def attention(query, key, value, bias, is_causal, scale):
        (query, key, value, bias), of, heads = arranged(query, key, value, bias)
        shape, width, dtype = query.shape[:-1], value.shape[-1], query.dtype
        output = cuda.empty((*shape, width), dtype)
        logsumexp = cuda.empty(shape, STATISTIC[dtype])
        if logsumexp.size:
            widest, mask = max(query.shape[-1], width), 0 if bias is None else bias
            arguments = query, key, value, mask, of, is_causal, float(scale), output, logsumexp
            if dtype in HALVES and widest <= max(COLUMNS):
                rows = TILE if widest > 64 else 2 * TILE  # as in attention_half.cu
                forward_half[dtype, columns_of(widest)]((heads * -(-shape[-1] // rows),), (HALF_THREADS,), arguments)
            else:
                columns = columns_of(width)
                grid = heads * -(-shape[-1] // TILE), max(1, -(-width // columns))
                forward[dtype, columns](grid, (THREADS,), arguments)
        return output, logsumexp

    def attention_backward(gradient, query, key, value, output, logsumexp, bias, is_causal, scale):
        operands, of, heads = arranged(query, key, value, bias, gradient, output)
        query, key, value, bias, gradient, output = operands
        dtype, statistic = query.dtype, STATISTIC[query.dtype]
        if logsumexp.shape != query.shape[:-1]:
            raise ValueError("one logarithm per query expected")
        logsumexp = cuda.dense(logsumexp if logsumexp.dtype == statistic else cuda.copying.cast(logsumexp, statistic))
        gradients = tuple([cuda.empty(array.shape, dtype) for array in (query, key, value)])
        queries, keys = query.shape[-2], key.shape[-2]
        if not heads * max(queries, keys):
            return gradients
        averages = cuda.empty(logsumexp.shape, statistic)
        if averages.size:
            arguments = gradient, output, of, averages
            averages_of[dtype](blocks(averages.size, THREADS // 32), (THREADS,), arguments)
        (_, width), value_width = query.shape[-2:], value.shape[-1]
        widest, tiles = max(width, value_width), heads * -(-max(queries, keys) // TILE)
        read = gradient, query, key, value, 0 if bias is None else bias, logsumexp, averages
        arguments = *read, of, is_causal, float(scale), *gradients
        if dtype in HALVES and widest <= max(HALF_COLUMNS):
            backward_half[dtype, columns_of(widest)]((tiles, 3), (HALF_THREADS,), arguments)
        else:
            columns = columns_of(widest)
            parts = 2 * -(-width // columns) + -(-value_width // columns)
            backward[dtype, columns]((tiles, max(1, parts)), (THREADS,), arguments)
        return gradients

    floats = offered(FLOATS)
    return [Kernel("attention", attention, floats), Kernel("attention_backward", attention_backward, floats)]
