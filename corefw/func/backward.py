"""Transforms that differentiate backward: gradients, and products of vectors with Jacobians."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from corefw.dispatch.declare import ops
from corefw.func.arguments import Chosen, call, output_leaves
from corefw.func.level import Level, vector_jacobian
from corefw.func.trees import flatten
from corefw.graph.grad_mode import mode
from corefw.tensor import Tensor

_GRAD = "grad_and_value(f)(*args)"
_VJP = "vjp(f, *primals)"


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """The function that gives the gradient of `func`, and its value.

    Args:
        func: returns a tensor with one element and no dimensions; with `has_aux` a tuple of that and of tensors that
            are handed on.
        argnums: the position of the argument to differentiate with respect to, or a tuple of several. An argument is a
            tensor, or tensors in tuples, lists and dictionaries.
        has_aux: whether `func` returns something beside the value.

    Returns:
        A function with `func`'s arguments that returns (gradient, value), or (gradient, (value, aux)). The gradient has
        the form of the argument, or is a tuple of them for several.

    Raises:
        RuntimeError: `func` returned no scalar, or `argnums` does not fit the arguments.

    >>> import corefw as torch
    >>> torch.func.grad_and_value(lambda x: (x * x).sum())(torch.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def gradient_and_value(*args, **kwargs):
        with Level() as level:
            chosen = Chosen(level, args, argnums)
            output, aux = call(_GRAD, func, chosen.args, kwargs, has_aux)
            _require_scalar(output)
            again = level.recorded and level.leads_out([output])
            found = vector_jacobian([output], chosen.leaves, [ops.ones_like(output)], again)
        gradient, value = level.leave(chosen.tree(found)), level.leave(output)
        return gradient, (value, level.leave(aux)) if has_aux else value

    return gradient_and_value


def _require_scalar(output: Any) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(f"{_GRAD}: Expected f(*args) to return a Tensor, got {type(output)}")
    if output.array.shape:
        raise RuntimeError(
            f"{_GRAD}: Expected f(*args) to return a scalar Tensor, got tensor with {len(output.array.shape)} dims. "
            "Maybe you wanted to use the vjp or jacrev APIs instead?"
        )
    if not output.dtype.is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {output.dtype!r}")


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """The function that gives the gradient of `func`; nothing is added to any ``.grad``.

    Args:
        func, argnums, has_aux: as for `grad_and_value`.

    Returns:
        A function with `func`'s arguments that returns the gradient, or (gradient, aux).

    >>> import corefw as torch
    >>> cube = lambda x: x ** 3
    >>> torch.func.grad(torch.func.grad(cube))(torch.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args, **kwargs):
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def vjp(func: Callable, *primals, has_aux: bool = False):
    """The output of `func`, and the function that multiplies a vector with its Jacobian from the left.

    Args:
        func: takes `primals`, returns tensors, in tuples, lists and dictionaries if several; with `has_aux` a tuple of
            them and of tensors that are handed on.
        primals: tensors, in tuples, lists and dictionaries too.
        has_aux: whether `func` returns something beside its output.

    Returns:
        (output, vjp_fn), or (output, vjp_fn, aux). ``vjp_fn(cotangents)`` takes what has the form of the output and
        returns a tuple with what has the form of each of `primals`; it may be called as often as wanted.

    Raises:
        RuntimeError: `func` returned other things than tensors, or cotangents do not have the form of the output.

    >>> import corefw as torch
    >>> output, vjp_fn = torch.func.vjp(lambda x: x * x, torch.tensor([1.0, 2.0]))
    >>> vjp_fn(torch.tensor([1.0, 10.0]))
    (tensor([ 2., 40.]),)
    """
    with Level() as level:
        chosen = Chosen(level, primals, tuple(range(len(primals))))
        output, aux = call(_VJP, func, chosen.args, {}, has_aux)
        outputs, structure = output_leaves(_VJP, output)

    def vjp_fn(cotangents):
        vectors, given = flatten(cotangents)
        if given != structure:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function."
                f" cotangents: {given}, primal output: {structure}"
            )
        level.recorded = mode.recording is not False
        again = level.recorded and (
            level.leads_out(outputs) or any(isinstance(v, Tensor) and v.requires_grad for v in vectors)
        )
        return level.leave(chosen.tree(vector_jacobian(outputs, chosen.leaves, vectors, again)))

    value = level.leave(output)
    return (value, vjp_fn, level.leave(aux)) if has_aux else (value, vjp_fn)
