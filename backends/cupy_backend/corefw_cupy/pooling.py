"""Pooling: the maximum or the mean of windows."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw.windows import meaningful, window_extent
from corefw_cupy.cuda import Cuda
from corefw_cupy.division import MOST, divisor_type, divisors
from corefw_cupy.launch import FLOATS, NUMBERS, THREADS, argument, blocks, offered
from corefw_cupy.pointwise_function import SIZES

SPATIAL = 3  # as in windows.cuh
ELEMENTS = 4096  # as in pooling_max.cu
FEW_PARTS = 4  # of a plane: each reads all indices; those of more parts know which batches to leave out
LANES = {1: "1", 32: "32", THREADS: str(THREADS)}  # threads for one window


def lanes_of(elements: int, windows: int, stride: int) -> int:
    """How many threads share a window: one where it is small, or where many windows overlap and neighbouring threads
    read neighbouring elements."""
    if elements <= 32 or (windows >= 1 << 16 and stride <= 4):
        return 1
    return 32 if elements <= 2048 else THREADS


def _axes(sizes, counts, kernel_size, stride, padding, dilation, wide: bool) -> list[tuple]:
    """The structs Axis of windows.cuh; missing dimensions in front have one window of one element."""
    more = SPATIAL - len(sizes)
    columns = [divisors((1,) * more + values, wide) for values in (sizes, counts, stride)]
    columns += [(default,) * more + values for default, values in ((0, kernel_size), (0, padding), (1, dilation))]
    return list(zip(*columns, strict=True))


@lru_cache(maxsize=4096)
def plan(op: str, *arguments) -> tuple[tuple[int, ...], int, bool, Any]:
    """The shape of an op's result, the threads for a window, whether positions need 64 bits, and the struct Pooling.

    Raises ShapeError for arguments that do not fit.
    """
    shape = shape_rule(op)(*arguments)
    backward = op.endswith("backward")
    shape = shape[0] if op.endswith("max_pool") else shape
    input, windows = (shape, arguments[0]) if backward else (arguments[0], shape)
    options = arguments[2:] if backward else arguments[1:]
    sizes, counts = input[2:], windows[2:]
    ones = (1,) * len(sizes)
    steps = tuple([size // max(count, 1) for size, count in zip(sizes, counts, strict=True)])
    if op.startswith("adaptive"):
        geometry = (0,) * len(sizes), ones, (0,) * len(sizes), ones
        elements, extents = prod(step + 2 for step in steps), ones
    else:
        kernel_size, stride, padding, *others = options
        steps = meaningful(stride, counts)
        dilation = meaningful(others[0], kernel_size) if op == "max_pool" else ones
        geometry = kernel_size, steps, padding, dilation
        elements, extents = prod(kernel_size), window_extent(kernel_size, dilation)
    n = prod(shape)
    reach = max([n, prod(input), *((size + 1) * (count + 1) for size, count in zip(sizes, counts, strict=True))])
    reach = max([reach, *extents, *steps])
    wide = reach > MOST
    size, divisor = np.dtype("i8" if wide else "i4"), divisor_type(wide)
    axis = [*((name, divisor) for name in ("size", "count", "stride")), ("extent", size), ("padding", size)]
    axes = ("axes", [*axis, ("dilation", size)], SPATIAL)
    fields: list[Any] = [("n", "i8"), axes]
    if "avg_pool" in op:
        fields += [("padding_counts", "i8"), ("divisor", "i8")]
    made = np.zeros(1, np.dtype(fields, align=True))
    made["n"] = n
    if n and 0 not in counts:
        made["axes"][0] = _axes(sizes, counts, *geometry, wide)
    if "avg_pool" in op and not op.startswith("adaptive"):
        made["padding_counts"], made["divisor"] = options[-2], options[-1] or 0
    return shape, 1 if backward else lanes_of(elements, n, steps[-1]), wide, argument(made)


@lru_cache(maxsize=4096)
def shares(planes: int, plane: int, windows: int) -> tuple[int, int, Any]:
    """How blocks share the elements of max_pool's gradient: their number, the parts of a plane, the struct Shares."""
    parts = -(-plane // ELEMENTS)
    part, of_block = -(-plane // parts), 1
    if parts == 1:
        of_block = max(1, min(ELEMENTS // plane, planes // 512))
        part *= of_block
    names = ("planes", "plane", "windows", "planes_of_block", "parts", "part")
    made = np.zeros(1, [(name, "i8") for name in names])
    made[0] = planes, plane, windows, of_block, parts, part
    return -(-planes // of_block) * parts, parts, argument(made)


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    max_pool = cuda.function("pooling/pooling_max.cu", "max_pool", T=NUMBERS, LANES=LANES, SIZE=SIZES)
    bound_indices = cuda.function("pooling/pooling_max.cu", "bound_indices", T=NUMBERS)
    max_backward = cuda.function("pooling/pooling_max.cu", "max_pool_backward", T=NUMBERS)
    avg_pool = cuda.function("pooling/pooling_mean.cu", "avg_pool", T=NUMBERS, LANES=LANES, SIZE=SIZES)
    avg_backward = cuda.function("pooling/pooling_mean.cu", "avg_pool_backward", T=FLOATS, SIZE=SIZES)
    outside = cuda.device_asserts.out_of_bounds("max_pool_backward")

    def maximum(op, offers):
        def kernel(input, *options):
            shape, lanes, wide, pooling = plan(op, input.shape, *options)
            values, indices = cuda.empty(shape, input.dtype), cuda.empty(shape, np.int64)
            if values.size:
                launch, grid = max_pool[input.dtype, lanes, wide], blocks(values.size * lanes)
                launch(grid, (THREADS,), (cuda.dense(input), values, indices, pooling))
            return values, indices

        return Kernel(op, kernel, offers)

    def max_pool_backward(grad, indices, shape):
        if indices.shape != grad.shape or indices.dtype != np.int64 or grad.shape[:2] != tuple(shape[:2]):
            raise ValueError("the indices are not those of the gradient")
        result = cuda.empty(shape, grad.dtype)
        if not result.size:
            return result
        planes, plane, windows = prod(shape[:2]), prod(shape[2:]), prod(grad.shape[2:])
        grad, indices = cuda.dense(grad), cuda.dense(indices)
        grid, parts, shared = shares(planes, plane, windows)
        bounds, fault = 0, (cuda.device_asserts.address, outside)
        if parts > FEW_PARTS and windows:
            batches = -(-windows // THREADS)
            bounds = cuda.empty((planes, batches, 2), np.int64)
            arguments = indices, bounds, plane, windows, batches, *fault
            bound_indices[grad.dtype]((planes * batches,), (THREADS,), arguments)
        max_backward[grad.dtype]((grid,), (THREADS,), (grad, indices, result, shared, bounds, *fault))
        return result

    def mean(op, offers):
        def kernel(input, *options):
            shape, lanes, wide, pooling = plan(op, input.shape, *options)
            result = cuda.empty(shape, input.dtype)
            if result.size:
                launch, grid = avg_pool[input.dtype, lanes, wide], blocks(result.size * lanes)
                launch(grid, (THREADS,), (cuda.dense(input), result, pooling))
            return result

        return Kernel(op, kernel, offers)

    def mean_backward(op):
        def kernel(grad, *options):
            shape, _, wide, pooling = plan(op, grad.shape, *options)
            if not grad.size:
                return cuda.copying.full(shape, 0, grad.dtype)
            result = cuda.empty(shape, grad.dtype)
            if result.size:
                launch = avg_backward[grad.dtype, wide]
                launch(blocks(result.size), (THREADS,), (cuda.dense(grad), result, pooling))
            return result

        return Kernel(op, kernel, offered(FLOATS))

    return [
        Kernel("max_pool_backward", max_pool_backward, offered(NUMBERS)),
        maximum("adaptive_max_pool", offered(FLOATS)),
        maximum("max_pool", offered(NUMBERS)),
        mean("adaptive_avg_pool", offered(FLOATS)),
        mean("avg_pool", offered(NUMBERS)),
        mean_backward("adaptive_avg_pool_backward"),
        mean_backward("avg_pool_backward"),
    ]
