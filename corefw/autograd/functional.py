"""Derivatives of Python functions of tensors: Jacobians, Hessians, and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from corefw.autograd.differentiate import recorded_gradients
from corefw.autograd.grad_mode import enable_grad
from corefw.declarations.memory import without_history
from corefw.dispatch.declare import ops
from corefw.tensor import Tensor


# -- what goes in and what comes out ----------------------------------------------------------------------------------
def _as_tuple(values, what: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether several tensors were given, and they as a tuple."""
    several = isinstance(values, tuple)
    tensors = values if several else (values,)
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            place = f"Value at index {i} of the tuple of {what}" if several else f"The value given as {what}"
            raise TypeError(f"{place} must be a Tensor, but is of type {type(tensor).__name__}")
    return several, tensors


def _prepare(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Inputs to differentiate with respect to: with their history if the result is to be differentiated, else
    without."""
    if create_graph:
        return tuple(t.view_as(t) if t.requires_grad else without_history(t).requires_grad_() for t in inputs)
    return tuple(without_history(t).requires_grad_() for t in inputs)


def _finish(tensors: tuple[Tensor, ...], create_graph: bool, several: bool):
    results = tensors if create_graph else tuple(map(without_history, tensors))
    return results if several else results[0]


def _evaluate(func: Callable, inputs: tuple[Tensor, ...], name: str, strict: bool) -> tuple[bool, tuple[Tensor, ...]]:
    several, outputs = _as_tuple(func(*inputs), f"outputs of the user-provided function of {name}")
    if strict:
        for i, output in enumerate(outputs):
            if not output.requires_grad:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients. The outputs must be "
                    "computed in a differentiable manner from the input when running in strict mode."
                )
    return several, outputs


def _gradients(outputs, inputs, starts, create_graph: bool, strict: bool, retain: bool = True) -> tuple[Tensor, ...]:
    """The vector-Jacobian product; zeros where an output does not depend on an input, unless `strict`."""
    found = recorded_gradients(outputs, inputs, starts, create_graph, retain)
    for i, gradient in enumerate(found):
        if strict and gradient is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. This is not allowed in strict "
                "mode."
            )
        if strict and create_graph and gradient is not None and not gradient.requires_grad:
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {i}. This is not allowed in "
                "strict mode when create_graph=True."
            )
    return tuple(ops.zeros_like(t) if g is None else g for g, t in zip(found, inputs))


def _check_vector(v, like: tuple[Tensor, ...], several: bool, what: str) -> tuple[Tensor, ...]:
    """The vector as one tensor per tensor of `like`; may be left out for a single element."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {what} is a single tensor with a single element.")
        return (ops.ones_like(like[0]),)
    _, vectors = _as_tuple(v, "v")
    if len(vectors) != len(like):
        raise RuntimeError(f"{what} has {len(like)} tensors, but v has {len(vectors)}: v must be one tensor for each.")
    for i, (vector, tensor) in enumerate(zip(vectors, like)):
        if vector.array.shape != tensor.array.shape:
            raise RuntimeError(
                f"v has invalid size at index {i}: {list(vector.array.shape)}; {what} has {list(tensor.array.shape)} "
                "there."
            )
    return vectors


def _require_scalar(outputs: tuple[Tensor, ...], several: bool) -> None:
    if several or len(outputs) != 1:
        raise RuntimeError("The function given should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError("The Tensor returned by the function given should contain a single element")
    if outputs[0].array.ndim > 1:
        raise RuntimeError("The Tensor returned by the function given should be 0-dimensional or have one dimension")


# -- products with vectors --------------------------------------------------------------------------------------------
def vjp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The product of a vector `v` and the Jacobian of `func` at `inputs`.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple.
        v: like the outputs; may be left out for a single element.
        create_graph: whether the result can be differentiated.
        strict: raise where an output does not depend on an input, instead of giving zeros.

    Returns:
        The outputs, and the product: like `inputs`.

    >>> import corefw as torch
    >>> torch.autograd.functional.vjp(lambda x: x * x, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        several, inputs = _as_tuple(inputs, "inputs")
        inputs = _prepare(inputs, create_graph)
        several_outputs, outputs = _evaluate(func, inputs, "vjp", strict)
        vectors = _check_vector(v, outputs, several_outputs, "the output of the function")
        products = _gradients(outputs, inputs, vectors, create_graph, strict)
    return _finish(outputs, create_graph, several_outputs), _finish(products, create_graph, several)


def jvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The product of the Jacobian of `func` at `inputs` and a vector `v`, by differentiating backward twice.

    Args:
        func, inputs, create_graph, strict: as for `vjp`.
        v: like the inputs; may be left out for a single element.

    Returns:
        The outputs, and the product: like them.

    >>> import corefw as torch
    >>> torch.autograd.functional.jvp(lambda x: x * x, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        several, inputs = _as_tuple(inputs, "inputs")
        vectors = _check_vector(v, inputs, several, "the input")
        inputs = _prepare(inputs, create_graph)
        several_outputs, outputs = _evaluate(func, inputs, "jvp", strict)
        starts = tuple(ops.zeros_like(o).requires_grad_() for o in outputs)  # the product is linear in them
        products = _gradients(outputs, inputs, starts, True, strict)
        result = _gradients(products, starts, vectors, create_graph, strict)
    return _finish(outputs, create_graph, several_outputs), _finish(result, create_graph, several_outputs)


def vhp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The product of a vector `v` and the Hessian of a scalar `func` at `inputs`.

    Args:
        func: takes tensors, returns a tensor with one element.
        inputs, create_graph, strict: as for `vjp`.
        v: like the inputs; may be left out for a single element.

    Returns:
        The output, and the product: like `inputs`.

    >>> import corefw as torch
    >>> torch.autograd.functional.vhp(lambda x: (x * x * x).sum(), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        several, inputs = _as_tuple(inputs, "inputs")
        vectors = _check_vector(v, inputs, several, "the input")
        inputs = _prepare(inputs, create_graph)
        several_outputs, outputs = _evaluate(func, inputs, "vhp", strict)
        _require_scalar(outputs, several_outputs)
        first = _gradients(outputs, inputs, (ops.ones_like(outputs[0]),), True, strict)
        products = _gradients(first, inputs, vectors, create_graph, strict)
    return _finish(outputs, create_graph, False), _finish(products, create_graph, several)


def hvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The product of the Hessian of a scalar `func` at `inputs` and a vector `v`; as the Hessian is symmetric, `vhp`
    gives the same sooner.

    Args:
        func, inputs, v, create_graph, strict: as for `vhp`.

    >>> import corefw as torch
    >>> torch.autograd.functional.hvp(lambda x: (x * x * x).sum(), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        several, inputs = _as_tuple(inputs, "inputs")
        vectors = _check_vector(v, inputs, several, "the input")
        inputs = _prepare(inputs, create_graph)
        several_outputs, outputs = _evaluate(func, inputs, "hvp", strict)
        _require_scalar(outputs, several_outputs)
        start = ops.ones_like(outputs[0]).requires_grad_()
        first = _gradients(outputs, inputs, (start,), True, strict)
        starts = tuple(ops.zeros_like(t).requires_grad_() for t in inputs)
        double = _gradients(first, inputs, starts, True, strict)
        products = _gradients(double, starts, vectors, create_graph, strict)
    return _finish(outputs, create_graph, False), _finish(products, create_graph, several)


# -- whole matrices ---------------------------------------------------------------------------------------------------
def _is_forward(strategy: str, vectorize: bool, create_graph: bool, strict: bool) -> bool:
    """Whether the strategy is the forward one; refuses what does not go with it."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise ValueError(f'Expected strategy to be either "forward-mode" or "reverse-mode", but got "{strategy}"')
    if strategy == "reverse-mode":
        return False
    if not vectorize:
        raise NotImplementedError(
            'Computing Jacobian with strategy="forward-mode" or a forward-over-reverse Hessian is only implemented for '
            '`vectorize=True`: pass it, or use strategy="reverse-mode"'
        )
    for name, wanted in (("create_graph", create_graph), ("strict", strict)):
        if wanted:
            raise (NotImplementedError if name == "create_graph" else RuntimeError)(
                f'`{name}=True` and `strategy="forward-mode"` are not supported together: pass `{name}=False` or '
                '`strategy="reverse-mode"`'
            )
    return True


def _forward_jacobian(func: Callable, inputs):
    """The Jacobian by columns: `func` is called once, with tangents that are all unit vectors."""
    duals, by_columns = (import_module(f"corefw.autograd.duals.{name}") for name in ("tensors", "columns"))
    several, inputs = _as_tuple(inputs, "inputs")
    form: list[bool] = []

    def push(tangents):
        scope = duals.begin()
        try:
            found = func(*(duals.make(t, tangent, scope) for t, tangent in zip(inputs, tangents)))
            several_outputs, outputs = _as_tuple(found, "outputs of the user-provided function of jacobian")
            form.append(several_outputs)
            return duals.tangents_of(outputs, scope)
        finally:
            duals.end(scope)

    pushed = by_columns.columns(push, by_columns.unit_vectors(inputs), "error")
    blocks = tuple(_finish(tuple(by_columns.jacobian_blocks(one, inputs)), False, several) for one in pushed)
    return blocks if form[0] else blocks[0]


def jacobian(
    func: Callable,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
):
    """The Jacobian of `func` at `inputs`.

    Args:
        func, inputs, create_graph, strict: as for `vjp`.
        vectorize: must be True for the forward mode, which calls `func` for all columns at once; rows are computed one
            at a time.
        strategy: "reverse-mode", or "forward-mode" for a Jacobian by columns, without `create_graph` and `strict`.

    Returns:
        A tensor of the output's shape followed by the input's; a tuple of them for several inputs, or outputs; a tuple
        of tuples, one per output, for both.

    >>> import corefw as torch
    >>> torch.autograd.functional.jacobian(lambda x: x * x, torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if _is_forward(strategy, vectorize, create_graph, strict):
        return _forward_jacobian(func, inputs)
    with enable_grad():
        several, inputs = _as_tuple(inputs, "inputs")
        inputs = _prepare(inputs, create_graph)
        several_outputs, outputs = _evaluate(func, inputs, "jacobian", strict)
        rows = tuple(_jacobian_of(output, inputs, create_graph, strict) for output in outputs)
    blocks = tuple(_finish(row, create_graph, several) for row in rows)
    return blocks if several_outputs else blocks[0]


def _jacobian_of(output: Tensor, inputs: tuple[Tensor, ...], create_graph: bool, strict: bool) -> tuple[Tensor, ...]:
    """The derivatives of one output with respect to each input."""
    count = output.numel()
    elements = output.reshape(-1)
    rows = [
        _gradients((elements[i],), inputs, (ops.ones_like(elements[i]),), create_graph, strict) for i in range(count)
    ]
    shape = tuple(output.array.shape)
    return tuple(
        (ops.stack([row[j] for row in rows]) if rows else ops.zeros_like(t).new_zeros((0,))).reshape(
            shape + tuple(t.array.shape)
        )
        for j, t in enumerate(inputs)
    )


def hessian(
    func: Callable,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
):
    """The Hessian of a scalar `func` at `inputs`.

    Args:
        func: takes tensors, returns a tensor with one element.
        inputs, create_graph, strict: as for `vjp`.
        vectorize: must be True for the forward mode.
        outer_jacobian_strategy: "reverse-mode", or "forward-mode" for the Jacobian, by columns, of the gradient.

    Returns:
        A tensor of the input's shape twice; for several inputs a tuple of tuples.

    >>> import corefw as torch
    >>> torch.autograd.functional.hessian(lambda x: (x * x * x).sum(), torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    forward = _is_forward(outer_jacobian_strategy, vectorize, create_graph, strict)
    several, inputs = _as_tuple(inputs, "inputs")

    def first(*arguments):
        if forward:
            with enable_grad():
                return gradient(*_prepare(arguments, False))
        return gradient(*arguments)

    def gradient(*arguments):
        several_outputs, outputs = _evaluate(func, arguments, "hessian", strict)
        _require_scalar(outputs, several_outputs)
        found = _gradients(outputs, arguments, (ops.ones_like(outputs[0]),), True, strict)
        return found if several else found[0]

    return jacobian(first, inputs if several else inputs[0], create_graph, strict, vectorize, outer_jacobian_strategy)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
