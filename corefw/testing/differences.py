"""Numerical derivatives: recorded gradients against central differences along random directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from corefw import dtypes
from corefw.autograd.differentiate import grad
from corefw.graph.views import node_of
from corefw.tensor import Tensor
from corefw.testing.comparison import host
from corefw.testing.samples import require_gradients, to_tensor

STEP = 1e-6
#: what a correct gradient may differ by: rounding of the difference quotient, about eps / STEP
RTOL, ATOL = 1e-5, 1e-6

Function = Callable[..., Sequence[Tensor]]


def _inner(weights: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> float:
    """The real inner product over all arrays: the sum of ``Re(conj(w) v)``."""
    return float(sum(np.real(np.sum(np.conj(w) * v)) for w, v in zip(weights, values, strict=True)))


def _like(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    values = rng.standard_normal(array.shape)
    if array.dtype.kind == "c":
        values = values + 1j * rng.standard_normal(array.shape)
    return np.asarray(values).astype(array.dtype)


def gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], weights: Sequence[Tensor], create_graph: bool = False
) -> list[Tensor | None]:
    """The gradients of the inputs for the outputs' gradients `weights`; None where nothing flows."""
    paired = [(out, weight) for out, weight in zip(outputs, weights, strict=True) if node_of(out) is not None]
    if not paired:
        return [None] * len(inputs)
    recorded = [x for x in inputs if node_of(x) is not None]
    found = iter(
        grad([out for out, _ in paired], recorded, [w for _, w in paired], create_graph=create_graph, allow_unused=True)
    )
    return [None if node_of(x) is None else next(found) for x in inputs]


def differentiable(outputs: Sequence) -> list[Tensor]:
    """The tensors of floating or complex dtype among the outputs."""
    return [out for out in outputs if isinstance(out, Tensor) and out.dispatch_key.dtype.category >= dtypes.FLOATING]


def check_gradient(
    function: Function, arrays: Sequence[np.ndarray], on="cpu", *, second: bool = False, rtol: float = RTOL,
    atol: float = ATOL,
) -> None:  # fmt: skip
    """Assert that the recorded gradient of `function` is the numerical one along random directions.

    With weights v and a direction u, ``<v, f(x + h u) - f(x - h u)> / 2h`` must be ``<grad, u>``, where ``<a, b>`` is
    ``Re(sum(conj(a) b))``: gradients of complex functions follow PyTorch's convention, the conjugate Wirtinger
    derivative. A wrong entry of the gradient shows with probability one, at the cost of two evaluations.

    Args:
        function: from tensors of double precision to several tensors.
        arrays: where to differentiate.
        on: the device.
        second: check the gradient of the gradient too, with respect to the point and to the weights.
    """
    rng = np.random.default_rng(len(arrays))

    def recorded(*values: Tensor, create_graph: bool = False) -> list[Tensor | None]:
        points = values[: len(arrays)]
        results = differentiable(function(*points))
        return gradients(results, points, values[len(arrays) :], create_graph)

    def values_of(*points: np.ndarray) -> list[np.ndarray]:
        return [host(out) for out in differentiable(function(*(to_tensor(p, on) for p in points)))]

    inputs = [to_tensor(a, on) for a in arrays]
    list(require_gradients(inputs))
    outputs = differentiable(function(*inputs))
    if not outputs:
        return
    if not any(node_of(out) is not None for out in outputs):
        raise AssertionError("the result does not require a gradient although an input does")
    weights = [_like(rng, host(out)) for out in outputs]
    analytic = gradients(outputs, inputs, [to_tensor(w, on) for w in weights])
    _check_shapes(analytic, inputs)
    if not all(np.isfinite(host(out)).all() for out in outputs):
        return  # the mean of nothing, a point at infinity
    _compare(rng, values_of, weights, arrays, analytic, "gradient", rtol, atol)
    if not second:
        return

    everything = [*arrays, *weights]
    inputs = [to_tensor(a, on) for a in everything]
    list(require_gradients(inputs))
    first = recorded(*inputs, create_graph=True)
    again = [_like(rng, a) for a in arrays]
    kept = [(g, w) for g, w in zip(first, again) if g is not None and node_of(g) is not None]
    tensors, kept_weights = [g for g, _ in kept], [to_tensor(w, on) for _, w in kept]
    analytic = gradients(tensors, inputs, kept_weights) if tensors else [None] * len(inputs)
    _check_shapes(analytic, inputs)

    def gradients_of(*points: np.ndarray) -> list[np.ndarray]:
        tensors = [to_tensor(p, on) for p in points]
        list(require_gradients(tensors[: len(arrays)]))
        found = recorded(*tensors)
        return [np.zeros_like(a) if g is None else host(g) for g, a in zip(found, arrays)]

    _compare(rng, gradients_of, again, everything, analytic, "second derivative", rtol, atol)


def _check_shapes(found: Sequence[Tensor | None], inputs: Sequence[Tensor]) -> None:
    for i, (gradient, x) in enumerate(zip(found, inputs)):
        if gradient is not None and (
            tuple(gradient.array.shape) != tuple(x.array.shape) or gradient.dispatch_key is not x.dispatch_key
        ):
            raise AssertionError(
                f"the gradient of input {i} is {gradient.dispatch_key}{list(gradient.array.shape)}, the input "
                f"{x.dispatch_key}{list(x.array.shape)}"
            )


def _compare(rng, function, weights, arrays, analytic, what: str, rtol: float, atol: float) -> None:
    """All arrays are moved at once; where that tells of an error, each alone, so that the message names the one whose
    gradient is wrong."""
    gradients = [np.zeros_like(a) if g is None else host(g) for a, g in zip(arrays, analytic, strict=True)]
    directions = [_like(rng, array) for array in arrays]

    def difference(moved: Sequence[int]) -> str:
        """What is wrong along the directions of some arrays, "" if nothing is."""
        steps = [STEP * directions[i] if i in moved else 0 for i in range(len(arrays))]
        high, low = (_inner(weights, function(*(a + sign * s for a, s in zip(arrays, steps)))) for sign in (1, -1))
        numerical = (high - low) / (2 * STEP)
        recorded = _inner([gradients[i] for i in moved], [directions[i] for i in moved])
        norm = min(float(np.linalg.norm(gradients[i])) for i in moved)
        if abs(numerical - recorded) <= atol + rtol * max(abs(numerical), abs(recorded), norm, 1e-9 * abs(high) / STEP):
            return ""
        return f"along a random direction it is {recorded:.10g}, central differences say {numerical:.10g}"

    moved = [i for i, array in enumerate(arrays) if array.size]
    if not moved or not difference(moved):
        return
    for i in moved:
        if told := difference([i]):
            missing = " (no gradient flows to it)" if analytic[i] is None else ""
            raise AssertionError(f"{what} of input {i}{missing}: {told}")
