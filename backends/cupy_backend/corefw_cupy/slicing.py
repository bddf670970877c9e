"""The copies behind the gradients of views."""

from __future__ import annotations

from corefw.dispatch.registry import Kernel
from corefw_cupy.cuda import Cuda


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    copying = cuda.copying

    def within_zeros(shape, grad, part):
        """Zeros of `shape`, of which the view that `part` makes is `grad`."""
        result = copying.full(shape, 0, grad.dtype)
        view = part(result)
        if view.shape != grad.shape:
            raise ValueError("the gradient has another shape than the view")
        copying.copy(view, grad)
        return result

    def basic_index_backward(grad, shape, key):
        key = key if ... in key else (*key, ...)
        return within_zeros(shape, grad, lambda whole: whole[key])

    def diagonal_backward(grad, shape, offset, dim1, dim2):
        return within_zeros(shape, grad, lambda whole: whole.diagonal(offset, dim1, dim2))

    return [Kernel("basic_index_backward", basic_index_backward), Kernel("diagonal_backward", diagonal_backward)]
