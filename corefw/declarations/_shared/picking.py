"""What reductions that pick one element along a dimension share: maximum, median, mode."""

from __future__ import annotations

from corefw.dispatch.declare import ops


def picked_vjp(grad, indices, dim, keepdim, input_shape):
    """The gradient goes to the elements that were picked."""
    return ops.select_backward(grad, dim, indices, keepdim, input_shape)


def picked_tangent(tangent_input, indices, dim, keepdim):
    """The tangent comes from the elements that were picked."""
    if not tangent_input.array.ndim:
        return tangent_input, None
    picked = tangent_input.gather(dim, indices if keepdim else indices.unsqueeze(dim))
    return picked if keepdim else picked.squeeze(dim), None


def along_tangent(tangent_input, indices, dim):
    """The same where as many elements are picked as there are positions, or some."""
    return tangent_input.gather(dim, indices), None
