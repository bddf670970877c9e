"""Checks of gradients against finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.autograd.differentiate import grad
from corefw.autograd.grad_mode import enable_grad
from corefw.dispatch.declare import ops
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor, wrap


class GradcheckError(RuntimeError):
    """A gradient is wrong, or does not keep the rules for gradients."""


def _as_tuple(values) -> tuple:
    return values if isinstance(values, tuple) else tuple(values) if isinstance(values, list) else (values,)


def _flat(values) -> list[Tensor]:
    """The tensors among the inputs, also those in lists."""
    found = []
    for value in _as_tuple(values):
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += _flat(value)
    return found


def _host(tensor: Tensor) -> np.ndarray:
    """The content as a NumPy array of float64 or complex128."""
    array = tensor.dispatch_key.runtime.download(tensor.array)
    return np.array(array, np.complex128 if tensor.dispatch_key.dtype.is_complex else np.float64)


def _write(tensor: Tensor, values: np.ndarray) -> None:
    runtime, dispatch_key = tensor.dispatch_key.runtime, tensor.dispatch_key
    runtime.copy(tensor.array, runtime.upload(values.astype(dispatch_key.dtype.numpy), dispatch_key.device.index))


def _like(values: np.ndarray, tensor: Tensor) -> Tensor:
    """`values` as a fresh tensor of the dtype and device of `tensor`."""
    dispatch_key = tensor.dispatch_key
    return wrap(
        dispatch_key.runtime.upload(np.array(values, dispatch_key.dtype.numpy), dispatch_key.device.index), dispatch_key
    )


def _outputs(function: Callable, inputs) -> list[Tensor]:
    """The outputs that gradients can flow through."""
    return [
        o
        for o in _as_tuple(function(*_as_tuple(inputs)))
        if isinstance(o, Tensor) and o.dispatch_key.dtype.category >= dtypes.FLOATING
    ]


# -- Jacobians: one array per output and input, of shape (elements of input, elements of output) ----------------------
def _numerical(
    function: Callable, inputs, checked: list[Tensor], eps: float
) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """By central differences, for each output and input: how the output's real and its imaginary part change.

    With a complex input z = x + iy, the gradient of a real s is ds/dx + i ds/dy: twice the conjugate Wirtinger
    derivative of Kreutz-Delgado, "The complex gradient operator and the CR-calculus" (2009).
    """

    def evaluate() -> list[np.ndarray]:
        with no_recording():
            return [_host(o) for o in _outputs(function, inputs)]

    def slopes(tensor: Tensor, direction: np.ndarray) -> list[np.ndarray]:
        values = _host(tensor)
        _write(tensor, values + eps * direction)
        above = evaluate()
        _write(tensor, values - eps * direction)
        below = evaluate()
        _write(tensor, values)
        return [(a - b) / (2 * eps) for a, b in zip(above, below, strict=True)]

    return _by_directions([out.size for out in evaluate()], checked, slopes)


def _by_tangents(function: Callable, inputs, checked: list[Tensor], sizes: list[int]) -> list[list]:
    """The same by forward-mode differentiation."""
    duals = import_module("corefw.autograd.duals.tensors")

    def slopes(tensor: Tensor, direction: np.ndarray) -> list[np.ndarray]:
        scope = duals.begin()
        try:
            dual = duals.make(tensor, _like(direction, tensor), scope)
            outputs = _outputs(function, _with(inputs, tensor, dual))
            tangents = [(o, duals.tangent_of(o, scope)) for o in outputs]
            return [np.zeros(o.array.shape) if t is None else _host(t) for o, t in tangents]
        finally:
            duals.end(scope)

    return _by_directions(sizes, checked, slopes)


def _with(inputs: Any, tensor: Tensor, dual: Tensor) -> Any:
    """The inputs with a dual tensor in the place of one of them."""
    if inputs is tensor:
        return dual
    return type(inputs)(_with(one, tensor, dual) for one in inputs) if isinstance(inputs, (list, tuple)) else inputs


def _by_directions(
    sizes: list[int], checked: list[Tensor], slopes: Callable[[Tensor, np.ndarray], list[np.ndarray]]
) -> list[list]:
    """The Jacobians from what the outputs do when one element of an input moves."""
    result: list[list] = [[] for _ in sizes]
    for j, tensor in enumerate(checked):
        shape, complex_input = tensor.array.shape, tensor.dispatch_key.dtype.is_complex
        kind = np.complex128 if complex_input else np.float64
        for row, size in zip(result, sizes):
            row.append(tuple(np.zeros((tensor.numel(), size), kind) for _ in range(2)))
        for position in range(tensor.numel()):
            for direction in (1, 1j) if complex_input else (1,):
                moved = np.zeros(shape, kind)
                moved[np.unravel_index(position, shape)] = direction
                for i, slope in enumerate(slopes(tensor, moved)):
                    result[i][j][0][position] += slope.reshape(-1).real * direction
                    result[i][j][1][position] += slope.reshape(-1).imag * direction
    return result


def _analytical(output: Tensor, checked: list[Tensor], seed: complex) -> list[np.ndarray]:
    """By one backward per element of `output`, each starting from `seed`."""
    count = output.numel()
    found = [
        np.zeros((t.numel(), count), np.complex128 if t.dispatch_key.dtype.is_complex else np.float64) for t in checked
    ]
    for column in range(count):
        start = np.zeros(count, np.complex128 if output.dispatch_key.dtype.is_complex else np.float64)
        start[column] = seed
        gradients = _gradients(output, checked, start)
        for jacobian, tensor, gradient in zip(found, checked, gradients):
            if gradient is None:
                continue
            if gradient.array.shape != tensor.array.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            if gradient.dispatch_key.dtype is not tensor.dispatch_key.dtype:
                raise GradcheckError("Analytical gradient has dtype mismatch")
            jacobian[:, column] = _host(gradient).reshape(-1)
    return found


def _gradients(output: Tensor, checked: list[Tensor], start: np.ndarray):
    return grad(output, checked, _like(start.reshape(output.array.shape), output), retain_graph=True, allow_unused=True)


# -- checks -----------------------------------------------------------------------------------------------------------
def _mismatch(i: int, j: int, part: str, numerical: np.ndarray, analytical: np.ndarray) -> GradcheckError:
    prefix = f"While considering the {part} part of complex outputs only, " if part else ""
    return GradcheckError(
        f"{prefix}Jacobian mismatch for output {i} with respect to input {j},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )


def _check_inputs(checked: list[Tensor]) -> None:
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for i, tensor in enumerate(checked):
        if tensor.dispatch_key.dtype not in (dtypes.float64, dtypes.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=4,
            )
        if tensor.numel() and any(s == 0 and n > 1 for s, n in zip(tensor.array.strides, tensor.array.shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )


def _check(
    function: Callable, inputs, eps: float, atol: float, rtol: float, nondet_tol: float, forward: bool, backward: bool
) -> None:
    checked = [t for t in _flat(inputs) if t.requires_grad]
    _check_inputs(checked)
    with enable_grad():
        outputs = _outputs(function, inputs)
    numerical = _numerical(function, inputs, checked, eps)
    if not any(o.requires_grad for o in outputs):
        if any(not np.allclose(part, 0, rtol, atol) for row in numerical for parts in row for part in parts):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    if forward:
        _check_tangents(_by_tangents(function, inputs, checked, [o.numel() for o in outputs]), numerical, atol, rtol)
    if not backward:
        return
    for i, output in enumerate(outputs):
        if output.requires_grad:
            _check_output(i, output, checked, numerical[i], atol, rtol, nondet_tol)
    _check_zero_gradients(outputs, checked)


def _check_tangents(found: list[list], numerical: list[list], atol: float, rtol: float) -> None:
    for i, row in enumerate(found):
        for j, parts in enumerate(row):
            for part, forward, wanted in zip(("real", "imaginary"), parts, numerical[i][j]):
                if not np.allclose(forward, wanted, rtol, atol):
                    raise GradcheckError(
                        f"Jacobian computed with forward mode mismatch for output {i} with respect to input {j} (its "
                        f"{part} part),\nnumerical:{wanted}\nanalytical:{forward}\n"
                    )


def _check_output(
    i: int, output: Tensor, checked: list[Tensor], numerical, atol: float, rtol: float, nondet_tol: float
):
    """Compare the Jacobians of one output, and two runs of its backward."""
    parts = (("real", 1.0), ("imaginary", 1j)) if output.dispatch_key.dtype.is_complex else (("", 1.0),)
    for k, (part, seed) in enumerate(parts):
        first = _analytical(output, checked, seed)
        second = _analytical(output, checked, seed)
        for j, jacobian in enumerate(first):
            if not np.allclose(jacobian, numerical[j][k], rtol, atol):
                raise _mismatch(i, j, part, numerical[j][k], jacobian)
        if any(np.abs(a - b).max(initial=0) > nondet_tol for a, b in zip(first, second)):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                "gives different values, although analytical gradient matches numerical gradient. The tolerance for "
                f"nondeterminism was {nondet_tol}."
            )


def _check_zero_gradients(outputs: list[Tensor], checked: list[Tensor]) -> None:
    """A backward must be linear: nothing comes from a gradient of zeros."""
    for output in outputs:
        if not output.requires_grad:
            continue
        for gradient in _gradients(output, checked, np.zeros(output.array.shape)):
            if gradient is not None and _host(gradient).any():
                raise GradcheckError("backward not multiplied by grad_output")


def gradcheck(
    func: Callable, inputs, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
    nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_batched_forward_grad: bool = False, check_forward_ad: bool = False,
    check_backward_ad: bool = True, fast_mode: bool = False, masked: bool | None = None,
) -> bool:  # fmt: skip
    """Compare the gradients of `func` with central differences; for float64 and complex128.

    The gradient of a complex output is checked for its real and its imaginary part.

    Args:
        func: takes `inputs`, returns a tensor or a tuple of tensors; must be deterministic.
        inputs: a tensor or a tuple; those that require a gradient are checked. They are changed in place for a moment.
        eps: the step of the differences.
        atol, rtol: the tolerances.
        raise_exception: raise when a gradient is wrong, instead of returning False.
        nondet_tol: how far two runs of the same backward may differ.
        check_forward_ad: whether forward-mode differentiation is checked.
        check_backward_ad: whether backward differentiation is.
        check_undefined_grad, check_grad_dtypes, check_batched_grad, check_batched_forward_grad, fast_mode, masked:
            accepted for compatibility; the check is always the complete one.

    Returns:
        Whether all gradients are right.

    Raises:
        GradcheckError: (a RuntimeError) with both Jacobians, one row per input element.

    >>> import corefw as torch
    >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(lambda x: (x * x).sum(), (x,))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    try:
        _check(func, inputs, eps, atol, rtol, nondet_tol, check_forward_ad, check_backward_ad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable, inputs, grad_outputs: Sequence[Tensor] | Tensor | None = None, *, eps: float = 1e-6,
    atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True,
    nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
    fast_mode: bool = False, masked: bool = False,
) -> bool:  # fmt: skip
    """Compare the second derivatives of `func` with central differences of its gradients.

    Args:
        func, inputs: as for `gradcheck`.
        grad_outputs: the vectors of the vector-Jacobian products that are differentiated; by default random ones.
        gen_non_contig_grad_outputs: make the random ones non-contiguous.
        eps, atol, rtol, raise_exception, nondet_tol: as for `gradcheck`.
        check_fwd_over_rev: whether the forward-mode derivatives of the gradients are checked.
        check_rev_over_rev: whether their gradients are.
        check_undefined_grad, check_grad_dtypes, check_batched_grad, fast_mode, masked: accepted for compatibility.

    >>> import corefw as torch
    >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(lambda x: x * x * x, (x,))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    inputs = _as_tuple(inputs)
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        with enable_grad():
            outputs = [o for o in _outputs(func, inputs) if o.requires_grad]
        with no_recording():
            seeds = [_random_like(o, rng, gen_non_contig_grad_outputs) for o in outputs]
    else:
        seeds = list(_as_tuple(grad_outputs))
    if not any(t.requires_grad for t in _flat(inputs)):
        _check_inputs([])

    def gradients(*arguments):
        given, starts = arguments[: len(inputs)], arguments[len(inputs) :]
        checked = [t for t in _flat(given) if t.requires_grad]
        with enable_grad():
            outputs = [o for o in _outputs(func, given) if o.requires_grad]
            found = grad(outputs, checked, starts, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        inputs + tuple(seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
    )


def _random_like(output: Tensor, rng: np.random.Generator, strided: bool) -> Tensor:
    shape = output.array.shape
    values = rng.standard_normal(shape)
    if output.dispatch_key.dtype.is_complex:
        values = values + 1j * rng.standard_normal(shape)
    seed = _like(values, output)
    if strided and shape:
        seed = ops.stack([seed, seed], -1)[..., 0]
    return seed.detach().requires_grad_()


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
