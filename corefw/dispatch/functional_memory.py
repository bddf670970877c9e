"""Kernels that move elements, for devices over immutable arrays: they need no more of a library than the runtime."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from corefw import shapes
from corefw.dispatch.backend import Kernel
from corefw.dispatch.functional import FunctionalRuntime, StridedArray
from corefw.dtypes import of_numpy


def memory_kernels(runtime: FunctionalRuntime) -> list[Kernel]:
    """Kernels of a runtime for copies, conversions, new arrays, and the gradients of views."""
    xp, read, array = runtime.xp, runtime.read, runtime.array

    def cast(input: StridedArray, dtype: np.dtype, copy: bool) -> StridedArray:
        if input.dtype == dtype:
            return runtime.clone(input) if copy else input
        return runtime.cast(input, of_numpy(dtype))

    def clone_in_order(input: StridedArray, order: tuple[int, ...]) -> StridedArray:
        if len(order) != input.ndim:
            raise ValueError("the order is one of other dimensions")
        made = array(xp.permute_dims(read(input), tuple(order)), input.storage.index)
        back = [order.index(d) for d in range(input.ndim)]
        strides = tuple(made.strides[d] for d in back)
        return StridedArray(made.storage, input.shape, strides, 0, input.dtype)

    def copy(input: StridedArray, src: StridedArray) -> StridedArray:
        made = runtime.empty(shapes.broadcast(input.shape, src.shape), of_numpy(input.dtype), input.storage.index)
        runtime.copy(made, src)
        return made

    def fill(input: StridedArray, value: StridedArray) -> StridedArray:
        if value.ndim:
            raise ValueError("the value has dimensions")
        return copy(input, value)

    def full_at(size: tuple[int, ...], value: Any, dtype: np.dtype) -> StridedArray:
        return runtime.upload(np.full(size, value, dtype), None)

    def zeros_at(size: tuple[int, ...], dtype: np.dtype) -> StridedArray:
        return runtime.empty(size, of_numpy(dtype), None)

    def unsafe_view(input: StridedArray, size: tuple[int, ...]) -> StridedArray:
        return array(xp.reshape(read(input), size), input.storage.index)

    def placed(grad: StridedArray, shape: tuple[int, ...], where: np.ndarray) -> StridedArray:
        """Zeros with the elements of `grad` at positions in row-major order."""
        made = runtime.empty((prod(shape),), of_numpy(grad.dtype), grad.storage.index)
        values = xp.reshape(xp.broadcast_to(read(grad), where.shape), (-1,))
        return array(xp.reshape(runtime.updated(read(made), where.reshape(-1), values), shape), grad.storage.index)

    def basic_index_backward(grad: StridedArray, shape: tuple[int, ...], key: tuple) -> StridedArray:
        return placed(grad, shape, np.arange(prod(shape)).reshape(shape)[key])

    def diagonal_backward(grad: StridedArray, shape: tuple[int, ...], offset: int, dim1: int, dim2: int):
        return placed(grad, shape, np.arange(prod(shape)).reshape(shape).diagonal(offset, dim1, dim2))

    functions: dict[str, Callable] = {
        "basic_index_backward": basic_index_backward,
        "cast": cast,
        "clone": runtime.clone,
        "clone_in_order": clone_in_order,
        "copy": copy,
        "diagonal_backward": diagonal_backward,
        "fill": fill,
        "full_at": full_at,
        "unsafe_view": unsafe_view,
        "zeros_at": zeros_at,
    }
    return [Kernel(op, function) for op, function in functions.items()]
