"""What reductions that pick one element along a dimension share: maximum, median, mode."""

from __future__ import annotations

from corefw.dispatch.declare import ops


def picked_vjp(grad, indices, dim, keepdim, input_shape):
    """The gradient goes to the elements that were picked."""
    return ops.select_backward(grad, dim, indices, keepdim, input_shape)
