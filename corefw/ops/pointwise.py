"""Elementwise arithmetic and mathematics."""

from __future__ import annotations

from corefw.dispatch.declare import composite, ops, primitive
from corefw.dispatch.rules import boolean, floating, promote
from corefw.shapes import broadcast


def same_shape(input, *statics):
    """The result has the input's shape."""
    return input


@primitive(dtype=promote, shape=broadcast, rewrites=("alpha",), inplace=True, out=True)
def add(input, other, *, alpha=1):
    """The sum ``input + alpha * other``.

    Args:
        input: any shape.
        other: a tensor or number that broadcasts with `input`.
        alpha: a factor for `other`.

    >>> import corefw as torch
    >>> torch.add(torch.tensor([1.0, 2.0]), 10)
    tensor([11., 12.])
    """
    return input + other * alpha


@add.gradient("input")
def _(grad):
    return grad


@add.gradient("other")
def _(grad):
    return grad


@primitive(dtype=promote, shape=broadcast, inplace=True, out=True, aliases=("multiply",))
def mul(input, other):
    """The product ``input * other``."""


@mul.gradient("input")
def _(grad, other):
    return grad * other.conj()


@mul.gradient("other")
def _(grad, input):
    return grad * input.conj()


@primitive(dtype=promote, shape=same_shape, inplace=True)
def relu(input):
    """The positive part, ``max(input, 0)``."""


@relu.gradient("input")
def _(grad, out):
    return ops.relu_backward(grad, out)


@primitive(dtype=promote, shape=broadcast, method=False)
def relu_backward(grad, out):
    """The gradient of relu: `grad` where `out` is positive, else 0."""
