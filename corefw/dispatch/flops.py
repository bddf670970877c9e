"""How many additions and multiplications calls of products and convolutions make."""

from __future__ import annotations

from collections.abc import Callable
from math import prod


def _product(at: int) -> Callable[..., int]:
    """A product's: twice the elements of the result times what argument `at` has in the summed dimension, its last."""
    return lambda result, *arguments: 2 * result.size * arguments[at].shape[-1]


def _convolution(result, input, weight, *others) -> int:
    """A convolution's: twice the weights of a channel for each element of the result, if transposed of the input."""
    transposed = others[4]
    return 2 * (input if transposed else result).size * prod(weight.shape[1:])


#: {op: the additions and multiplications of a call, from its result and arguments}
FLOPS: dict[str, Callable[..., int]] = {
    **dict.fromkeys(("dot", "linear", "matmul", "matmul_adjoint", "mm", "bmm", "mv"), _product(0)),
    **dict.fromkeys(("addmm", "baddbmm"), _product(1)),
    "adjoint_matmul": lambda result, a, b: 2 * result.size * a.shape[-2],
    "linear_gradients": lambda result, gradient, input: 2 * gradient.size * input.shape[-1],
    "convolution": _convolution,
    "convolution_weight": lambda result, input, gradient, *others: 2 * gradient.size * prod(result.shape[1:]),
    # two products, and five for the gradients
    "attention": lambda result, query, key, *others: 4 * query.size * key.shape[-2],
    "attention_backward": lambda result, gradient, query, key, *others: 10 * query.size * key.shape[-2],
}
