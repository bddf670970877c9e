"""Activation functions, elementwise or along one dimension."""

from __future__ import annotations

from math import pi, sqrt

from corefw import dtypes
from corefw.declarations._shared.batching import along, example_dims, from_the_end_together, full
from corefw.dispatch.batching.calls import elementwise
from corefw.dispatch.batching.tensors import is_batched
from corefw.dispatch.declare import Dim, composite, ops
from corefw.dispatch.expressions import hardtanh_bounds, is_approximated, softshrink_limit
from corefw.dispatch.rules import floats, real_floats, real_numbers
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import broadcast, canonical_dim, same_shape

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def joint_shape(grad, input, *attributes):
    """A gradient's step has the shape that gradient and input broadcast to."""
    return broadcast(grad, input)


# -- piecewise linear -------------------------------------------------------------------------------------------------
@composite(
    dtype=real_numbers,
    shape=same_shape,
    inplace=True,
    public="corefw corefw.relu_ Tensor nn.functional nn.functional.relu_",
)
def relu(input, inplace: bool = False):
    """The positive part, ``max(input, 0)``; NaN stays.

    Args:
        input: any shape.
        inplace: overwrite `input`.

    >>> import corefw as torch
    >>> torch.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return input.clamp_min(0)


relu.batching(elementwise)
relu.gradients(input=lambda grad, out: ops.relu_backward(grad, out))


@composite(dtype=real_numbers, shape=joint_shape, public="")
def relu_backward(grad, output):
    """The gradient of relu: 0 where `output` is 0, also of an infinite `grad`."""
    return grad.masked_fill(output <= 0, 0)


relu_backward.batching(from_the_end_together)
relu_backward.gradients(grad=lambda grad, output: ops.relu_backward(grad, output))


@composite(public="nn.functional")
def relu6(input, inplace: bool = False):
    """The input clamped to the interval from 0 to 6.

    >>> import corefw as torch
    >>> torch.nn.functional.relu6(torch.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """
    return ops.hardtanh(input, 0.0, 6.0, inplace)


@composite(dtype=real_numbers, shape=same_shape, inplace=True, public="nn.functional nn.functional.hardtanh_")
def hardtanh(input, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
    """The input clamped to the interval from `min_val` to `max_val`.

    Args:
        input: any shape.
        min_val: the least value.
        max_val: the greatest value.
        inplace: overwrite `input`.

    >>> import corefw as torch
    >>> torch.nn.functional.hardtanh(torch.tensor([-3.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    min_val, max_val = hardtanh_bounds(min_val, max_val)
    if not input.dtype.is_floating_point:
        min_val, max_val = int(min_val), int(max_val)
    return input.clamp(min_val, max_val)


hardtanh.batching(elementwise)
hardtanh.gradients(
    input=lambda grad, input, min_val, max_val: grad.masked_fill((input <= min_val) | (input >= max_val), 0),
)


@composite(
    dtype=real_numbers,
    shape=same_shape,
    inplace=True,
    public="corefw corefw.threshold_ nn.functional nn.functional.threshold_",
)
def threshold(input, threshold: float, value: float, inplace: bool = False):
    """The input where it exceeds `threshold` (or is NaN), else `value`.

    Args:
        input: any shape.
        threshold: the limit.
        value: what takes the place of elements up to the limit.
        inplace: overwrite `input`.

    >>> import corefw as torch
    >>> torch.threshold(torch.tensor([0.5, 2.0]), 1.0, 9.0)
    tensor([9., 2.])
    """
    return input.masked_fill(input <= threshold, value)


threshold.batching(elementwise)
threshold.gradients(input=lambda grad, input, threshold: grad.masked_fill(input <= threshold, 0))


@composite(dtype=real_floats, shape=same_shape, inplace=True, public="nn.functional nn.functional.leaky_relu_")
def leaky_relu(input, negative_slope: float = 0.01, inplace: bool = False):
    """The input where it is positive, else ``negative_slope * input``.

    Args:
        input: any shape.
        negative_slope: the slope below zero.
        inplace: overwrite `input`.

    >>> import corefw as torch
    >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    return ops.where(input > 0, input, input * negative_slope)


leaky_relu.batching(elementwise)
leaky_relu.gradients(input=lambda grad, input, negative_slope: ops.leaky_relu_backward(grad, input, negative_slope))


@composite(dtype=real_floats, shape=joint_shape, public="")
def leaky_relu_backward(grad, input, negative_slope: float):
    """The gradient of leaky_relu: `grad` where `input` is positive, else ``negative_slope * grad``."""
    return ops.where(input > 0, grad, grad * negative_slope)


leaky_relu_backward.batching(from_the_end_together)
leaky_relu_backward.gradients(
    grad=lambda grad, input, negative_slope: ops.leaky_relu_backward(grad, input, negative_slope),
)


@composite(public="corefw Tensor nn.functional")
def prelu(input, weight):
    """The input where it is positive, else ``weight * input``, with a learnable weight per channel or one for all.

    Args:
        input: any shape; channels are dimension 1.
        weight: shape (channels,) or one element.

    >>> import corefw as torch
    >>> torch.prelu(torch.tensor([[-1.0, 2.0]]), torch.tensor([0.5, 1.0]))
    tensor([[-0.5000,  2.0000]])
    """
    if weight.numel() != 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if input.ndim == 0:
            raise ShapeError("prelu: Not allow zero-dim input tensor for a weight per channel")
        if weight.ndim != 1 or channels != weight.numel():
            raise ShapeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and "
                f"channel size = {channels}."
            )
        weight = weight.reshape(-1, *(1,) * (input.ndim - 2))
    elif weight.ndim > 1:
        raise ShapeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if input.dtype is not weight.dtype:
        raise DtypeError(f"prelu: Type promoting not supported. Got {input.dtype} and {weight.dtype}")
    return ops.prelu_elements(input, weight.reshape(()) if weight.numel() == 1 else weight)


@composite(dtype=real_floats, shape=joint_shape, public="", grad_name="PreluKernel")
def prelu_elements(input, weight):
    """The input where it is positive, else ``weight * input``, for a weight that broadcasts."""
    return ops.where(input > 0, input, weight * input)


prelu_elements.gradients(
    input=lambda grad, input, weight: ops.where(input > 0, grad, weight * grad),
    weight=lambda grad, input: ops.where(input > 0, 0, input * grad),
)


@composite(dtype=real_floats, shape=same_shape, inplace=True, public="nn.functional")
def hardsigmoid(input, inplace: bool = False):
    """A piecewise linear sigmoid, ``clamp(input / 6 + 1 / 2, 0, 1)``.

    >>> import corefw as torch
    >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """
    return (input + 3).clamp(0, 6) / 6


hardsigmoid.batching(elementwise)
hardsigmoid.gradients(input=lambda grad, input: ops.where((input > -3) & (input < 3), grad / 6, 0))


@composite(dtype=real_floats, shape=same_shape, inplace=True, public="nn.functional")
def hardswish(input, inplace: bool = False):
    """The input times its piecewise linear sigmoid, ``input * hardsigmoid(input)`` (Howard et al. 2019, MobileNetV3).

    >>> import corefw as torch
    >>> torch.nn.functional.hardswish(torch.tensor([-4.0, 3.0]))
    tensor([-0.,  3.])
    """
    return input * (input + 3).clamp(0, 6) / 6


hardswish.batching(elementwise)


@hardswish.gradient("input")
def hardswish_vjp(grad, input):
    inside = grad * (input / 3 + 0.5)
    return ops.where(input < 3, inside, grad).masked_fill(input <= -3, 0)


# -- shrinking --------------------------------------------------------------------------------------------------------
@composite(dtype=real_floats, shape=same_shape, public="corefw Tensor nn.functional")
def hardshrink(input, lambd: float = 0.5):
    """The input where its modulus exceeds `lambd` (or it is NaN), else 0.

    >>> import corefw as torch
    >>> torch.hardshrink(torch.tensor([-1.0, 0.2, 0.7]))
    tensor([-1.0000,  0.0000,  0.7000])
    """
    return input.masked_fill(input.abs() <= lambd, 0)


hardshrink.batching(elementwise)
hardshrink.gradients(input=lambda grad, input, lambd: grad.masked_fill(input.abs() <= lambd, 0))


@composite(dtype=real_floats, shape=same_shape, public="nn.functional")
def softshrink(input, lambd: float = 0.5):
    """The input moved towards zero by `lambd`, and 0 where it would pass it.

    >>> import corefw as torch
    >>> torch.nn.functional.softshrink(torch.tensor([-1.0, 0.2, 0.7]))
    tensor([-0.5000,  0.0000,  0.2000])
    """
    softshrink_limit(lambd)
    return (input - input.sign() * lambd).masked_fill(input.abs() <= lambd, 0)


softshrink.batching(elementwise)
softshrink.gradients(input=lambda grad, input, lambd: grad.masked_fill(input.abs() <= lambd, 0))


@composite(public="nn.functional")
def tanhshrink(input):
    """The input minus its hyperbolic tangent.

    >>> import corefw as torch
    >>> torch.nn.functional.tanhshrink(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """
    return input - input.tanh()


@composite(public="nn.functional")
def softsign(input):
    """The input over one plus its modulus, ``x / (1 + |x|)``.

    >>> import corefw as torch
    >>> torch.nn.functional.softsign(torch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


# -- exponential ------------------------------------------------------------------------------------------------------
@composite(dtype=real_floats, shape=same_shape, inplace=True, public="nn.functional nn.functional.elu_")
def elu(input, alpha: float = 1.0, inplace: bool = False, *, scale: float = 1.0, input_scale: float = 1.0):
    """The exponential linear unit, ``scale * (x if x > 0 else alpha * expm1(input_scale * x))`` (Clevert et al. 2016).

    Args:
        input: any shape.
        alpha: the limit for very negative inputs is ``-alpha * scale``.
        inplace: overwrite `input`.
        scale: a factor for the result.
        input_scale: a factor for negative inputs.

    >>> import corefw as torch
    >>> torch.nn.functional.elu(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return ops.where(input > 0, input * scale, (input * input_scale).expm1() * (alpha * scale))


elu.batching(elementwise)
elu.gradients(
    input=lambda grad, input, alpha, scale, input_scale: ops.elu_backward(grad, input, alpha, scale, input_scale),
)


@composite(dtype=real_floats, shape=joint_shape, public="")
def elu_backward(grad, input, alpha: float, scale: float, input_scale: float):
    """The gradient of elu."""
    negative = (input.clamp_max(0) * input_scale).exp() * (grad * (alpha * scale * input_scale))
    return ops.where(input <= 0, negative, grad * scale)


elu_backward.batching(from_the_end_together)


@composite(inplace=True, public="corefw corefw.selu_ nn.functional nn.functional.selu_")
def selu(input, inplace: bool = False):
    """The self-normalising exponential linear unit (Klambauer et al. 2017): `elu` with the constants that keep mean 0
    and variance 1.

    >>> import corefw as torch
    >>> torch.selu(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return ops.elu(input, SELU_ALPHA, inplace, scale=SELU_SCALE)


@composite(inplace=True, public="corefw corefw.celu_ nn.functional nn.functional.celu_")
def celu(input, alpha: float = 1.0, inplace: bool = False):
    """The continuously differentiable exponential linear unit, ``max(x, 0) + min(0, alpha * expm1(x / alpha))``
    (Barron 2017).

    >>> import corefw as torch
    >>> torch.celu(torch.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return ops.elu(input, alpha, inplace, input_scale=1 / alpha)


@composite(dtype=real_floats, shape=same_shape, public="nn.functional")
def softplus(input, beta: float = 1.0, threshold: float = 20.0):
    """A smooth positive part, ``log(1 + exp(beta * x)) / beta``.

    Args:
        input: any shape.
        beta: how sharp the bend at zero is.
        threshold: where ``beta * x`` exceeds it, the input itself is the result.

    >>> import corefw as torch
    >>> torch.nn.functional.softplus(torch.tensor([0.0, 50.0]))
    tensor([ 0.6931, 50.0000])
    """
    scaled = input * beta
    return ops.where(scaled > threshold, input, scaled.exp().log1p() / beta)


softplus.batching(elementwise)


@softplus.gradient("input")
def softplus_vjp(grad, input, beta, threshold):
    scaled = input * beta
    return ops.where(scaled > threshold, grad, grad * scaled.sigmoid())


@composite(dtype=real_floats, shape=same_shape, public="nn.functional", grad_name="LogSigmoid")
def logsigmoid(input):
    """The logarithm of the sigmoid, ``-log(1 + exp(-x))``.

    >>> import corefw as torch
    >>> torch.nn.functional.logsigmoid(torch.tensor([0.0, -100.0]))
    tensor([  -0.6931, -100.0000])
    """
    return input.clamp_max(0) - (-input.abs()).exp().log1p()


logsigmoid.batching(elementwise)
logsigmoid.gradients(input=lambda grad, input: grad * (-input).sigmoid())


@composite(dtype=floats, shape=same_shape, inplace=True, public="nn.functional")
def silu(input, inplace: bool = False):
    """The input times its sigmoid, also called swish (Elfwing et al. 2018).

    >>> import corefw as torch
    >>> torch.nn.functional.silu(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return input * input.sigmoid()


silu.batching(elementwise)
silu.gradients(input=lambda grad, input: ops.silu_backward(grad, input))


@composite(dtype=floats, shape=joint_shape, public="")
def silu_backward(grad, input):
    """The gradient of silu, ``grad * conj(s * (1 + x * (1 - s)))`` where s is the sigmoid of x."""
    s = input.sigmoid()
    return grad * (s * (1 + input * (1 - s))).conj()


silu_backward.batching(from_the_end_together)


@composite(dtype=real_floats, shape=same_shape, inplace=True, public="nn.functional")
def mish(input, inplace: bool = False):
    """The input times the hyperbolic tangent of its softplus (Misra 2020).

    >>> import corefw as torch
    >>> torch.nn.functional.mish(torch.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    return input * ops.softplus(input).tanh()


mish.batching(elementwise)
mish.gradients(input=lambda grad, input: ops.mish_backward(grad, input))


@composite(dtype=real_floats, shape=joint_shape, public="")
def mish_backward(grad, input):
    """The gradient of mish, ``grad * (t + x * s * (1 - t * t))`` where t is tanh of x's softplus and s its sigmoid."""
    t = ops.softplus(input).tanh()
    return grad * (t + input * input.sigmoid() * (1 - t * t))


mish_backward.batching(from_the_end_together)


def _gelu_probability(input):
    """What approximates the normal distribution function: ``(1 + tanh(a)) / 2`` as a sigmoid, which keeps digits."""
    return ((input + 0.044715 * input * input * input) * (2 * sqrt(2 / pi))).sigmoid()


@composite(dtype=real_floats, shape=same_shape, public="nn.functional")
def gelu(input, approximate: str = "none"):
    """The Gaussian error linear unit, ``x * Φ(x)`` with the normal distribution function Φ (Hendrycks, Gimpel 2016).

    Args:
        input: any shape.
        approximate: "none", or "tanh" for ``x / 2 * (1 + tanh(sqrt(2 / π) * (x + 0.044715 x³)))``.

    >>> import corefw as torch
    >>> torch.nn.functional.gelu(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """
    if is_approximated(approximate):
        return input * _gelu_probability(input)
    return 0.5 * input * (input * -sqrt(0.5)).erfc()


gelu.batching(elementwise)
gelu.gradients(input=lambda grad, input, approximate: ops.gelu_backward(grad, input, approximate))


@composite(dtype=real_floats, shape=joint_shape, public="")
def gelu_backward(grad, input, approximate: str):
    """The gradient of gelu: ``grad * (Φ(x) + x * φ(x))``."""
    if not is_approximated(approximate):
        density = (-0.5 * input * input).exp() / sqrt(2 * pi)
        return grad * (0.5 * (input * -sqrt(0.5)).erfc() + input * density)
    p = _gelu_probability(input)
    slope = 2 * sqrt(2 / pi) * (1 + 3 * 0.044715 * input * input)
    return grad * (p + input * (p * (1 - p)) * slope)


gelu_backward.batching(from_the_end_together)


@composite(public="nn.functional")
def glu(input, dim: int = -1):
    """The gated linear unit: the first half along `dim` times the sigmoid of the second (Dauphin et al. 2017).

    >>> import corefw as torch
    >>> torch.nn.functional.glu(torch.tensor([3.0, 0.0]))
    tensor([1.5000])
    """
    if input.ndim == 0:
        raise ShapeError("glu does not support 0-dimensional tensors")
    dim = canonical_dim(dim, input.ndim)
    size = input.shape[dim]
    if size % 2:
        raise ShapeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    return input.narrow(dim, 0, size // 2) * input.narrow(dim, size // 2, size // 2).sigmoid()


# -- along a dimension ------------------------------------------------------------------------------------------------
@composite(dtype=real_floats, shape=same_shape, rewrites=("dtype",), out=True, public="corefw Tensor special")
def softmax(input, dim: Dim, dtype: dtypes.dtype | None = None):
    """Exponentials of the elements, scaled so that they sum to one along `dim`.

    Args:
        input: any shape.
        dim: the dimension to scale along.
        dtype: convert the elements to this dtype first.

    Computed as ``exp(x - max) / sum(exp(x - max))``, which does not overflow; a slice of -inf alone gives NaN.

    >>> import corefw as torch
    >>> torch.softmax(torch.tensor([0.0, 0.0, 1000.0]), dim=0)
    tensor([0., 0., 1.])
    """
    if dtype is not None:
        return ops.softmax(input.to(dtype), dim)
    if input.numel() == 0:
        return input.clone()
    e = (input - input.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


softmax.batching(along(0))
softmax.gradients(input=lambda grad, out, dim: ops.softmax_backward(grad, out, dim))
softmax.tangent(lambda tangent_input, out, dim: ops.softmax_backward(tangent_input, out, dim))


@composite(dtype=real_floats, shape=joint_shape, public="")
def softmax_backward(grad, output, dim: Dim):
    """The gradient of softmax, ``output * (grad - sum(grad * output))``."""
    weighted = grad * output
    return weighted - output * weighted.sum(dim, keepdim=True)


@softmax_backward.batching
def softmax_backward_batching(call, examples, grad, output, dim):
    if not example_dims(output):
        return call(grad.unsqueeze(1), output.unsqueeze(1), 1).squeeze(1)
    return call(full(grad, examples), full(output, examples), dim + 1)


@composite(dtype=real_floats, shape=same_shape, rewrites=("dtype",), out=True, public="corefw Tensor special")
def log_softmax(input, dim: Dim, dtype: dtypes.dtype | None = None):
    """The logarithm of `softmax`, ``x - log(sum(exp(x)))``, computed without overflow or loss of small probabilities.
    Arguments as for `softmax`.

    >>> import corefw as torch
    >>> torch.log_softmax(torch.tensor([0.0, 1000.0]), dim=0)
    tensor([-1000.,     0.])
    """
    if dtype is not None:
        return ops.log_softmax(input.to(dtype), dim)
    if input.numel() == 0:
        return input.clone()
    shifted = input - input.amax(dim, keepdim=True)
    return shifted - shifted.exp().sum(dim, keepdim=True).log()


log_softmax.batching(along(0))
log_softmax.gradients(input=lambda grad, out, dim: ops.log_softmax_backward(grad, out, dim))
log_softmax.tangent(lambda tangent_input, out, dim: tangent_input - (out.exp() * tangent_input).sum(dim, keepdim=True))


@composite(dtype=real_floats, shape=joint_shape, public="")
def log_softmax_backward(grad, output, dim: Dim):
    """The gradient of log_softmax, ``grad - exp(output) * sum(grad)``."""
    return grad - output.exp() * grad.sum(dim, keepdim=True)


log_softmax_backward.batching(softmax_backward_batching)


@composite(public="")
def softmin(input, dim: int, dtype: dtypes.dtype | None = None):
    """The softmax of the negated input: the smallest element gets the greatest share.

    >>> import corefw as torch
    >>> torch.nn.functional.softmin(torch.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return ops.softmax(-input, dim, dtype)


@composite(public="nn.functional", out=True)
def normalize(input, p: float = 2.0, dim: int = 1, eps: float = 1e-12):
    """Vectors along `dim` divided by their p-norm, ``x / max(‖x‖, eps)``.

    >>> import corefw as torch
    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / ops.vector_norm(input, p, dim, True).clamp_min(eps)


@composite(public="nn.functional", other_names=True)
def one_hot(tensor, num_classes: int = -1):
    """A new last dimension with a 1 at the position that each element names and 0 elsewhere.

    Args:
        tensor: int64, any shape.
        num_classes: the size of the new dimension; -1 for one more than the greatest element.

    >>> import corefw as torch
    >>> torch.nn.functional.one_hot(torch.tensor([1, 0]), 3)
    tensor([[0, 1, 0],
            [1, 0, 0]])
    """
    if tensor.dtype is not dtypes.int64:
        raise DtypeError(f"one_hot is only applicable to index tensor of type LongTensor, got {tensor.dtype}.")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise ShapeError("Can not infer total number of classes from empty tensor.")
    elif num_classes < 1 or not (tensor.is_meta or is_batched(tensor)):  # of which nobody sees the elements
        if int(tensor.min()) < 0:
            raise ShapeError("Class values must be non-negative.")
        greatest = int(tensor.max())
        if num_classes == -1:
            num_classes = greatest + 1
        elif num_classes < 1:
            raise ShapeError("num_classes should be positive")
        elif greatest >= num_classes:
            raise ShapeError("Class values must be smaller than num_classes.")
    return (tensor.unsqueeze(-1) == ops.arange(num_classes, device=tensor.device)).to(dtypes.int64)
