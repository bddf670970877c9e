"""Embeddings: picking rows of a table."""

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.direct import direct
from corefw_c.library import OUT_OF_RANGE, fail
from corefw_c.positions import Blocks, checked


def kernels(lib):
    """The family's kernels."""
    blocks = Blocks(lib)

    def pick_rows(weight, indices, padding_idx, scale_grad_by_freq):
        if weight.ndim != 2:
            raise ValueError("a table of two dimensions expected")
        try:
            return blocks.read("embedding", weight, 0, (indices,), (*indices.shape, weight.shape[1]))
        except IndexError:
            raise IndexError("index out of range in self") from None

    def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
        width = grad_output.shape[-1]
        if grad_output.shape[:-1] != indices.shape:
            raise ValueError("the gradient does not have the shape of what was picked")
        grad = dense(grad_output).reshape(indices.size, width)
        picked = dense(checked(indices)).reshape(-1)
        output = empty((num_weights, width), grad.dtype)
        status = lib.embedding_gradient(id(grad), id(picked), padding_idx, bool(scale_grad_by_freq), id(output))
        if status == OUT_OF_RANGE:
            raise IndexError(f"index out of range for {num_weights} rows: {np.unique(picked)}")
        if status:
            fail("embedding_dense_backward", status)
        return output

    return [
        Kernel("embedding_dense_backward", embedding_dense_backward, FLOATS),
        Kernel("pick_rows", direct(lib, "rows", pick_rows)),
    ]
