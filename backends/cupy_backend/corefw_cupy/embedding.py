"""Embeddings: picking rows of a table, and the gradient of a table."""

from __future__ import annotations

from corefw.dispatch.backend import Kernel
from corefw_cupy.combining import FLOAT32, combining
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import COMPLEX, FLOATS, HALVES, offered
from corefw_cupy.positions import INT64, along_slices, positions


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    at, sums, copying = positions(cuda), combining(cuda), cuda.copying
    picked_bounds = cuda.device_asserts.kind("index out of range in self")
    row_bounds = cuda.device_asserts.kind("index {0} is out of range for {2} rows")

    def pick_rows(weight, indices, padding_idx, scale_grad_by_freq):
        if weight.ndim != 2:
            raise ValueError("a table of two dimensions expected")
        return at.read_slices(weight, 0, indices, False, picked_bounds)

    def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
        if grad_output.shape[:-1] != indices.shape:
            raise ValueError("the gradient does not have the shape of what was picked")
        dtype = grad_output.dtype
        table = copying.full((num_weights, grad_output.shape[-1]), 0, FLOAT32 if dtype in HALVES else dtype)
        sums.combine(table, along_slices(table, 0, indices), indices, grad_output, row_bounds)
        if 0 <= padding_idx < num_weights:
            copying.fill(table[padding_idx], 0)
        if scale_grad_by_freq:
            counts = copying.full((num_weights,), 0, INT64)
            ones = copying.full((), 1, INT64)
            sums.combine(counts, along_slices(counts, 0, indices), indices, ones, row_bounds)
            sums.average(table, counts.reshape(num_weights, 1))
        return table if table.dtype == dtype else copying.cast(table, dtype)

    return [
        Kernel(
            "embedding_dense_backward",
            embedding_dense_backward,
            offered({**FLOATS, **COMPLEX}),
            deterministic="if asked",
        ),
        Kernel("pick_rows", pick_rows),
    ]
