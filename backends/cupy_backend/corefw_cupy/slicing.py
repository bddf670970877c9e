"""The copies behind the gradients of views."""

from __future__ import annotations

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.moving import Move


def place(shape: tuple[int, ...], key: tuple) -> tuple[list[int], list[int], list] | None:
    """Where the view `whole[key]` of an array of `shape` lies: its first positions, its sizes, and the key that gives
    an array of the view's shape all dimensions of the whole. None for slices with steps."""
    if ... not in key:
        key = (*key, ...)
    missing = len(shape) - sum(part is not None and part is not ... for part in key)
    firsts: list[int] = []
    sizes: list[int] = []
    restored: list = []
    for part in key:
        if part is None:
            restored.append(0)
        elif part is ...:
            sizes += shape[len(firsts) : len(firsts) + missing]
            firsts += [0] * missing
            restored += [slice(None)] * missing
        elif isinstance(part, slice):
            first, end, step = part.indices(shape[len(firsts)])
            if step != 1:
                return None
            firsts.append(first)
            sizes.append(max(end - first, 0))
            restored.append(slice(None))
        else:
            firsts.append(part % shape[len(firsts)])
            sizes.append(1)
            restored.append(None)
    return firsts, sizes, restored


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    copying = cuda.copying
    pad = Move(cuda, "constant_pad")

    def within_zeros(shape, grad, part):
        """Zeros of `shape`, of which the view that `part` makes is `grad`."""
        result = copying.full(shape, 0, grad.dtype)
        view = part(result)
        if view.shape != grad.shape:
            raise ValueError("the gradient has another shape than the view")
        copying.copy(view, grad)
        return result

    def basic_index_backward(grad, shape, key):
        if (placed := place(shape, key)) is None:
            return within_zeros(shape, grad, lambda whole: whole[key])
        firsts, sizes, restored = placed
        part = grad[tuple(restored)]
        if part.shape != tuple(sizes):
            raise ValueError("the gradient has another shape than the view")
        return pad(part, shape, tuple([-first for first in firsts]), 0, 0)

    def diagonal_backward(grad, shape, offset, dim1, dim2):
        return within_zeros(shape, grad, lambda whole: whole.diagonal(offset, dim1, dim2))

    return [Kernel("basic_index_backward", basic_index_backward), Kernel("diagonal_backward", diagonal_backward)]
