"""Standardisation, ``(x - mean) * scale``: what all normalisations share, with the gradient of them all."""

from __future__ import annotations

from corefw import dtypes
from corefw.dispatch.declare import Statistic, composite, ops
from corefw.dispatch.rules import promoted_real_floats, statistic
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import same_shape
from corefw.tensor import Tensor


# With x̂ = (x - mean) * scale, the gradient maps g to P(g) = scale * (g - <g> - x̂ <g x̂>), <> the mean over `dims`. P is
# symmetric, and linear in g. Without a mean (root-mean-square normalisation) the term <g> is missing.
def _second_shape(gradient, input, *attributes):
    if tuple(gradient) != tuple(input):
        raise ShapeError(f"expected a gradient of shape {list(input)}, got {list(gradient)}")
    return input


@composite(dtype=promoted_real_floats, shape=same_shape, public="")
def standardized(input, scale: Statistic, dims: tuple, mean: Statistic | None = None):
    """``(input - mean) * scale``, where mean and scale are the input's own over `dims`."""
    return (input if mean is None else input - mean) * scale


standardized.gradients(
    input=lambda grad, input, scale, dims, mean: ops.standardized_backward(grad, input, scale, dims, mean),
)


@composite(dtype=promoted_real_floats, shape=_second_shape, public="")
def standardized_backward(
    gradient, input, scale: Statistic, dims: tuple, mean: Statistic | None = None, weight: Statistic | None = None
):
    """The gradient of `standardized`, of ``gradient * weight``."""
    _second_shape(gradient.array.shape, input.array.shape)
    weighted = gradient if weight is None else gradient * weight
    values = ops.standardized(input, scale, dims, mean)
    result = weighted - values * (weighted * values).mean(dims, keepdim=True)
    if mean is not None:
        result = result - weighted.mean(dims, keepdim=True)
    return result * scale


@standardized_backward.gradient("gradient")
def standardized_backward_vjp_gradient(grad, input, scale, dims, mean, weight):
    result = ops.standardized_backward(grad, input, scale, dims, mean)
    return result if weight is None else result * weight


@standardized_backward.gradient("weight")
def standardized_backward_vjp_weight(grad, gradient, input, scale, dims, mean):
    return ops.standardized_backward(grad, input, scale, dims, mean) * gradient


@standardized_backward.gradient("input")
def standardized_backward_vjp_input(grad, gradient, input, scale, dims, mean, weight):
    return _through_input(grad, gradient if weight is None else gradient * weight, input, scale, dims, mean)


def _through_input(grad, weighted, input, scale, dims, mean):
    """The gradient of ``sum(grad * P(weighted))`` for the input, of half types in the precision of the statistics."""
    grad, weighted, input = (tensor.to(scale.dtype) for tensor in (grad, weighted, input))
    values = ops.standardized(input, scale, dims, mean)

    def average(x):
        return x.mean(dims, keepdim=True)

    def map_back(g):
        return ops.standardized_backward(g, input, scale, dims, mean)

    factor = _differentiable_scale(input, scale, dims, mean)
    through_values = map_back(factor * (grad * average(weighted * values) + weighted * average(grad * values)))
    through_scale = factor * values * average(grad * map_back(weighted))
    return -through_values - through_scale


def _differentiable_scale(input, scale, dims, mean):
    """`scale` again, as a function of the input: what was added to the variance is the constant that is missing."""
    centred = input if mean is None else input - input.mean(dims, keepdim=True)
    variance = (centred * centred).mean(dims, keepdim=True)
    return (variance + (scale**-2 - variance).detach()).rsqrt()


def _gradients_shape(gradient, input, weight, *attributes):
    return _second_shape(gradient, input), weight, weight


@composite(
    dtype=promoted_real_floats.giving(promoted_real_floats, statistic, statistic),
    shape=_gradients_shape,
    outputs=("grad_input", "grad_weight", "grad_bias"),
    public="",
)
def standardized_gradients(
    gradient, input, weight: Statistic, scale: Statistic, dims: tuple, mean: Statistic | None = None
):
    """The gradients of ``standardized(input) * weight + bias``, of `gradient`; weight and bias have one shape."""
    grad_bias = gradient.sum_to_size(weight.shape)
    return (
        ops.standardized_backward(gradient, input, scale, dims, mean, weight),
        (gradient * ops.standardized(input, scale, dims, mean)).sum_to_size(weight.shape),
        gradient.clone() if grad_bias is gradient else grad_bias,
    )


@standardized_gradients.gradient("gradient", "input", "weight")
def standardized_gradients_vjp(
    grad_grad_input, grad_grad_weight, grad_grad_bias, gradient, input, weight, scale, dims, mean
):
    """For cotangents A, B, C of the gradients P(g w), sum(g x̂) and sum(g)."""
    a = ops.zeros_like(input) if grad_grad_input is None else grad_grad_input
    b = ops.zeros_like(weight) if grad_grad_weight is None else grad_grad_weight
    c = ops.zeros_like(weight) if grad_grad_bias is None else grad_grad_bias
    mapped = ops.standardized_backward(a, input, scale, dims, mean)
    by_input = _through_input(a, gradient * weight, input, scale, dims, mean)
    return (
        mapped * weight + b * ops.standardized(input, scale, dims, mean) + c,
        by_input + ops.standardized_backward(gradient, input, scale, dims, mean, b),
        mapped * gradient,
    )


def gradients(needs, gradient, input, weight, scale, dims, mean, vector: tuple) -> tuple:
    """The gradients for an input, a weight and a bias of shape `vector`, where they are needed."""
    of_input, of_weight, of_bias = needs
    if of_weight:
        return tuple(ops.standardized_gradients(gradient, input, weight, scale, dims, mean))
    backward = ops.standardized_backward(gradient, input, scale, dims, mean, weight) if of_input else None
    return backward, None, gradient.sum_to_size(vector) if of_bias else None


def scaled(values, weight, bias):
    """``values * weight + bias`` with what there is of both."""
    values = values if weight is None else values * weight
    return values if bias is None else values + bias


def check_parameters(name: str, input, *vectors) -> None:
    """Refuse a weight or bias that has not the input's dtype, unless all have float32 beside a half type."""
    own = input.dispatch_key.dtype
    found = {vector.dispatch_key.dtype for vector in vectors if isinstance(vector, Tensor)}
    if found - {own} and not (own.itemsize == 2 and found == {dtypes.float32}):
        raise DtypeError(
            f"{name}: expected weight and bias to have the input's dtype, or float32 beside a half type, but got: "
            f"{' != '.join(d.title for d in (own, *found - {own}))}. Convert them with .to(dtype)."
        )
