"""Normalisations: elements brought to mean 0 and variance 1 over a layer, a batch, a group or an instance."""

from __future__ import annotations

from functools import partial
from math import prod

from corefw import dtypes
from corefw.declarations._shared.standardization import check_parameters, gradients, scaled
from corefw.dispatch.batching.calls import aligned
from corefw.dispatch.declare import Statistic, composite, ops
from corefw.dispatch.out import refuse_read_only
from corefw.dispatch.rules import computed, real_floats, statistic
from corefw.errors import ShapeError
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor

with_statistics = real_floats.giving(real_floats, statistic, statistic)
with_scale = real_floats.giving(real_floats, statistic)


_with_mean_and_scale = partial(composite, dtype=with_statistics, outputs=("output", "mean", "scale"), public="")


def _check_vector(name: str, vector, count: int) -> None:
    if vector is not None and prod(vector) != count:
        raise ShapeError(f"{name} should contain {count} elements not {prod(vector)}")


# -- layers -----------------------------------------------------------------------------------------------------------
def _layer_dims(ndim: int, normalized_shape: tuple) -> tuple:
    return tuple(range(ndim - len(normalized_shape), ndim))


def _check_layer(input, normalized_shape: tuple, weight, bias=None) -> tuple:
    """Refuse shapes that do not end as `normalized_shape` says; returns the shape of the statistics."""
    if not normalized_shape:
        raise ShapeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is not None and tuple(vector) != normalized_shape:
            raise ShapeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(vector)} and "
                f"normalized_shape = {list(normalized_shape)}"
            )
    count = len(normalized_shape)
    if tuple(input[-count:]) != normalized_shape or len(input) < count:
        expected = ", ".join(["*", *map(str, normalized_shape)])
        raise ShapeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [{expected}], but got input "
            f"of size{list(input)}"
        )
    return (*input[:-count], *(1 for _ in normalized_shape))


def _layer_shapes(input, normalized_shape, weight=None, bias=None, eps=0.0):
    statistics = _check_layer(input, normalized_shape, weight, bias)
    return input, statistics, statistics


def _shape(tensor):
    return None if tensor is None else tuple(tensor.array.shape)


def _sizes(normalized_shape) -> tuple:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


@composite(public="corefw nn.functional")
def layer_norm(input, normalized_shape: tuple, weight=None, bias=None, eps: float = 1e-5, cudnn_enable: bool = True):
    """``(input - mean) / sqrt(variance + eps) * weight + bias`` over the last dimensions.

    Args:
        input: shape (*, *normalized_shape), floating.
        normalized_shape: the sizes of the last dimensions, over which mean and variance are taken.
        weight, bias: shape `normalized_shape`.
        eps: what is added to the variance.
        cudnn_enable: accepted for compatibility.

    Source: Ba, Kiros, Hinton, "Layer normalization", 2016, equation 4.

    >>> import corefw as torch
    >>> torch.nn.functional.layer_norm(torch.tensor([[1.0, 3.0]]), (2,), eps=0.0)
    tensor([[-1.,  1.]])
    """
    check_parameters("layer_norm", input, weight, bias)
    return ops.layer_normalization(input, _sizes(normalized_shape), weight, bias, eps)[0]


@_with_mean_and_scale(shape=_layer_shapes, grad_name="NativeLayerNorm")
def layer_normalization(
    input, normalized_shape: tuple, weight: Statistic | None = None, bias: Statistic | None = None, eps: float = 1e-5
):
    """`layer_norm`, and the mean and reciprocal standard deviation it used."""
    _check_layer(input.array.shape, normalized_shape, _shape(weight), _shape(bias))
    dims = _layer_dims(input.ndim, normalized_shape)
    mean = input.mean(dims, keepdim=True)
    scale = (input.var(dims, correction=0, keepdim=True) + eps).rsqrt()
    return scaled((input - mean) * scale, weight, bias), mean, scale


@layer_normalization.batching
def layer_normalization_batching(call, examples, input, normalized_shape, weight, bias, eps):
    values, mean, scale = call(input, normalized_shape, None, None, eps)
    return scaled(*aligned(values, weight, bias)), mean, scale


@layer_normalization.gradient("input", "weight", "bias")
def layer_normalization_vjp(grad, input, normalized_shape, weight, mean, scale, needs):
    dims = _layer_dims(input.ndim, normalized_shape)
    return gradients(needs, grad, input, weight, scale, dims, mean, normalized_shape)


@composite(public="corefw nn.functional")
def rms_norm(input, normalized_shape: tuple, weight=None, eps: float | None = None):
    """``input / sqrt(mean(input²) + eps) * weight`` over the last dimensions.

    Args:
        input: shape (*, *normalized_shape), floating.
        normalized_shape: the sizes of the last dimensions, over which the mean is taken.
        weight: shape `normalized_shape`.
        eps: what is added to the mean; the dtype's distance from 1 to the next number if missing.

    Source: Zhang, Sennrich, "Root mean square layer normalization", 2019, equation 4.

    >>> import corefw as torch
    >>> torch.nn.functional.rms_norm(torch.tensor([[1.0, 7.0]]), (2,), eps=0.0)
    tensor([[0.2000, 1.4000]])
    """
    check_parameters("rms_norm", input, weight)
    eps = dtypes.finfo(input.dtype).eps if eps is None else eps
    return ops.rms_normalization(input, _sizes(normalized_shape), weight, eps)[0]


def _rms_shapes(input, normalized_shape, weight=None, eps=0.0):
    return input, _check_layer(input, normalized_shape, weight)


@composite(dtype=with_scale, shape=_rms_shapes, outputs=("output", "scale"), public="", grad_name="FusedRmsNorm")
def rms_normalization(input, normalized_shape: tuple, weight: Statistic | None = None, eps: float = 0.0):
    """`rms_norm`, and the reciprocal root mean square it used."""
    _check_layer(input.array.shape, normalized_shape, _shape(weight))
    scale = ((input * input).mean(_layer_dims(input.ndim, normalized_shape), keepdim=True) + eps).rsqrt()
    return scaled(input * scale, weight, None), scale


@rms_normalization.batching
def rms_normalization_batching(call, examples, input, normalized_shape, weight, eps):
    values, scale = call(input, normalized_shape, None, eps)
    return scaled(*aligned(values, weight, None)), scale


@rms_normalization.gradient("input", "weight")
def rms_normalization_vjp(grad, input, normalized_shape, weight, scale, needs):
    dims = _layer_dims(input.ndim, normalized_shape)
    return gradients((*needs, False), grad, input, weight, scale, dims, None, normalized_shape)[:2]


# -- groups -----------------------------------------------------------------------------------------------------------
def _check_groups(input, num_groups: int, weight, bias) -> None:
    if len(input) < 2:
        raise ShapeError(f"Expected at least 2 dimensions for input tensor but received {len(input)}")
    if num_groups <= 0:
        raise ShapeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if input[1] % num_groups:
        raise ShapeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input)} and num_groups={num_groups}"
        )
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is not None and tuple(vector) != (input[1],):
            raise ShapeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(vector)} and input of shape {list(input)}"
            )


def _group_shapes(input, num_groups, weight=None, bias=None, eps=0.0):
    _check_groups(input, num_groups, weight, bias)
    statistics = (input[0], num_groups)
    return input, statistics, statistics


def _require_several(shape, what: str, sizes) -> None:
    """One value has no variance."""
    if prod(sizes) == 1:
        raise ValueError(f"Expected more than 1 {what} when training, got input size {shape}")


@composite(public="corefw nn.functional")
def group_norm(input, num_groups: int, weight=None, bias=None, eps: float = 1e-5, cudnn_enabled: bool = True):
    """``(input - mean) / sqrt(variance + eps) * weight + bias`` over each group of channels of each sample.

    Args:
        input: shape (N, C, *), floating.
        num_groups: how many groups the channels form.
        weight, bias: shape (C,).
        eps: what is added to the variance.
        cudnn_enabled: accepted for compatibility.

    Source: Wu, He, "Group normalization", 2018.

    >>> import corefw as torch
    >>> torch.nn.functional.group_norm(torch.tensor([[1.0, 3.0, 5.0, 9.0]]), 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])
    """
    shape = input.array.shape
    if len(shape) > 1 and num_groups > 0:
        _require_several(list(shape), "value per channel", (shape[0] * shape[1] // num_groups, *shape[2:]))
    check_parameters("group_norm", input, weight, bias)
    return ops.group_normalization(input, num_groups, weight, bias, eps)[0]


@_with_mean_and_scale(shape=_group_shapes, grad_name="NativeGroupNorm")
def group_normalization(
    input, num_groups: int, weight: Statistic | None = None, bias: Statistic | None = None, eps: float = 1e-5
):
    """`group_norm`, and the mean and reciprocal standard deviation it used, of shape (N, num_groups)."""
    _check_groups(input.array.shape, num_groups, _shape(weight), _shape(bias))
    values = _grouped(input, num_groups)
    mean = values.mean((2, 3), keepdim=True)
    scale = (values.var((2, 3), correction=0, keepdim=True) + eps).rsqrt()
    output = scaled((values - mean) * scale, _per_channel(weight, num_groups), _per_channel(bias, num_groups))
    return output.reshape(input.shape), mean.reshape(-1, num_groups), scale.reshape(-1, num_groups)


def _grouped(input, num_groups: int):
    """(N, C, *) as (N, groups, channels of a group, elements of a channel)."""
    samples, channels, *rest = input.shape
    return input.reshape(samples, num_groups, channels // num_groups, prod(rest))


def _per_channel(vector, num_groups: int):
    """A vector with an element per channel, to stand beside `_grouped`."""
    return None if vector is None else vector.reshape(1, num_groups, vector.shape[0] // num_groups, 1)


def _per_group(statistic):
    return statistic.detach()[:, :, None, None]


@group_normalization.gradient("input", "weight", "bias")
def group_normalization_vjp(grad, input, num_groups, weight, mean, scale, needs):
    values = _grouped(input, num_groups)
    of_input, of_weight, of_bias = gradients(
        needs,
        _grouped(grad, num_groups),
        values,
        _per_channel(weight, num_groups),
        _per_group(scale),
        (2, 3),
        _per_group(mean),
        (1, *values.shape[1:3], 1),
    )
    return None if of_input is None else of_input.reshape(input.shape), _flat(of_weight), _flat(of_bias)


def _flat(vector):
    return None if vector is None else vector.flatten()


# -- batches ----------------------------------------------------------------------------------------------------------
def _batch_dims(ndim: int) -> tuple:
    return (0, *range(2, ndim))


def _sum_per_channel(input):
    return input.sum(_batch_dims(input.ndim))


def _beside(vector, ndim: int):
    """A vector with an element per channel, to stand beside an input of `ndim` dimensions."""
    return None if vector is None else vector.reshape(1, -1, *(1,) * (ndim - 2))


def _check_channels(input, **vectors) -> None:
    if len(input) < 2:
        raise ShapeError(f"batch_norm: expected an input of at least 2 dimensions, got shape {list(input)}")
    for name, vector in vectors.items():
        _check_vector(name, vector, input[1])
        if vector is not None and len(vector) != 1:
            raise ShapeError(f"batch_norm: expected {name} to be a vector, got shape {list(vector)}")


def _batch_shapes(input, weight=None, bias=None, eps=0.0):
    _check_channels(input, weight=weight, bias=bias)
    return input, (input[1],), (input[1],)


@composite(
    dtype=with_statistics,
    shape=_batch_shapes,
    outputs=("output", "mean", "variance"),
    public="",
    grad_name="NativeBatchNorm",
)
def batch_normalization(input, weight: Statistic | None = None, bias: Statistic | None = None, eps: float = 1e-5):
    """The input normalised over all dimensions but the channels', and each channel's mean and (biased) variance."""
    _check_channels(input.array.shape, weight=_shape(weight), bias=_shape(bias))
    ndim = input.ndim
    mean = input.mean(_batch_dims(ndim))
    variance = input.var(_batch_dims(ndim), correction=0)
    values = (input - _beside(mean, ndim)) * _beside((variance + eps).rsqrt(), ndim)
    return scaled(values, _beside(weight, ndim), _beside(bias, ndim)), mean, variance


@batch_normalization.gradient("input", "weight", "bias")
def batch_normalization_vjp(grad, input, weight, eps, mean, variance, needs):
    scale, mean = _beside((variance.detach() + eps).rsqrt(), input.ndim), _beside(mean.detach(), input.ndim)
    weight, dims = _beside(weight, input.ndim), _batch_dims(input.ndim)
    of_input, of_weight, of_bias = gradients(needs, grad, input, weight, scale, dims, mean, mean.shape)
    return of_input, _flat(of_weight), _flat(of_bias)


def _affine_shape(input, scale, shift=None):
    _check_channels(input, scale=scale, shift=shift)
    return input


@composite(dtype=real_floats, shape=_affine_shape, public="", grad_name="NativeBatchNorm")
def channel_affine(input, scale: Statistic, shift: Statistic | None = None):
    """``input * scale + shift`` with a scale and perhaps a shift per channel (dimension 1)."""
    _check_channels(input.array.shape, scale=_shape(scale), shift=_shape(shift))
    return scaled(input, _beside(scale, input.ndim), _beside(shift, input.ndim))


channel_affine.gradients(
    input=lambda grad, scale: ops.channel_affine(grad, scale),
    scale=lambda grad, input, scale: _sum_per_channel(grad.to(scale.dtype) * input.to(scale.dtype)),
    shift=lambda grad, shift: _sum_per_channel(grad.to(shift.dtype)),
)


def _with_statistics(input, weight, bias, mean, variance, eps: float) -> Tensor:
    """Batch normalisation by given statistics; of half types in single precision, whose range the scale may need."""
    wide = dtypes.float32 if variance.dtype.itemsize == 2 else variance.dtype
    scale = (variance.to(wide) + eps).rsqrt()
    scale = scale if weight is None else scale * weight
    shift = -mean * scale
    return ops.channel_affine(input, scale, shift if bias is None else shift + bias)


def _update(running, value, momentum: float) -> None:
    running.mul_(1 - momentum).add_(value.to(running.dtype) * momentum)


@composite(public="corefw")
def batch_norm(
    input, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float, cudnn_enabled: bool,
):  # fmt: skip
    """`corefw.nn.functional.batch_norm` with the arguments in another order.

    >>> import corefw as torch
    >>> torch.batch_norm(torch.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 0.0, True)
    tensor([[-1.],
            [ 1.]])
    """
    shape = input.array.shape
    channels = (shape[1] if len(shape) > 1 else 0,)
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        if running is not None:
            _check_vector(name, _shape(running), channels[0])
        elif not training:
            raise ShapeError(f"{name} must be defined in evaluation mode")
    if not training:
        _check_channels(shape, weight=_shape(weight), bias=_shape(bias))
        return _with_statistics(input, weight, bias, running_mean, running_var, eps)
    if not prod(shape):  # there are no statistics, and the running ones stay
        _check_channels(shape, weight=_shape(weight), bias=_shape(bias))
        unit = ops.ones(channels, dtype=input.dtype, device=input.device)
        return _with_statistics(input, weight, bias, unit, unit, eps)
    refuse_read_only("batch_norm", *(t for t in (running_mean, running_var) if t is not None))  # both or none move
    check_parameters("batch_norm", input, weight, bias)
    output, mean, variance = ops.batch_normalization(input, weight, bias, eps)
    count = prod(shape) // channels[0]
    with no_recording():
        if running_mean is not None:
            _update(running_mean, mean, momentum)
        if running_var is not None:
            _update(running_var, variance * (count / max(count - 1, 1)), momentum)
    return output


@composite(public="nn.functional.batch_norm", name="functional_batch_norm")
def functional_batch_norm(
    input, running_mean: Tensor | None, running_var: Tensor | None, weight=None, bias=None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
):  # fmt: skip
    """``(input - mean) / sqrt(variance + eps) * weight + bias`` for each channel over the whole batch.

    Args:
        input: shape (N, C, *), floating.
        running_mean, running_var: shape (C,). In training they move towards the batch's mean and (unbiased) variance
            and may be None; otherwise they are used in place of those.
        weight, bias: shape (C,).
        training: whether the batch's own statistics are used.
        momentum: the share of the batch in the new running statistics.
        eps: what is added to the variance.

    Raises ValueError in training if there is only one value per channel.

    Source: Ioffe, Szegedy, "Batch normalization", 2015, algorithm 1.

    >>> import corefw as torch
    >>> mean, variance = torch.zeros(1), torch.ones(1)
    >>> torch.nn.functional.batch_norm(torch.tensor([[1.0], [3.0]]), mean, variance, training=True, eps=0.0)
    tensor([[-1.],
            [ 1.]])
    >>> mean, variance
    (tensor([0.2000]), tensor([1.1000]))
    """
    if training:
        shape = input.shape
        _require_several(shape, "value per channel", (*shape[:1], *shape[2:]))
    return ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


# -- instances --------------------------------------------------------------------------------------------------------
def _repeated(vector, count: int):
    """A vector for each sample; of half types in float32, in which its gradients are summed."""
    return None if vector is None else vector.to(computed(vector.dtype)).repeat(count)


@composite(public="corefw")
def instance_norm(
    input, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool,
):  # fmt: skip
    """`corefw.nn.functional.instance_norm` with the arguments in another order.

    >>> import corefw as torch
    >>> torch.instance_norm(torch.tensor([[[1.0, 3.0]]]), None, None, None, None, True, 0.1, 0.0, True)
    tensor([[[-1.,  1.]]])
    """
    if not use_input_stats and (running_mean is None or running_var is None):
        raise ShapeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if input.ndim < 2:
        raise ShapeError(f"instance_norm: expected an input of at least 2 dimensions, got shape {list(input.shape)}")
    samples, channels, *rest = input.shape
    for name, vector in (
        ("weight", weight),
        ("bias", bias),
        ("running_mean", running_mean),
        ("running_var", running_var),
    ):
        _check_vector(name, _shape(vector), channels)
    if use_input_stats:
        refuse_read_only("instance_norm", *(t for t in (running_mean, running_var) if t is not None))
    means, variances = _repeated(running_mean, samples), _repeated(running_var, samples)
    output = ops.batch_norm(
        input.reshape(1, samples * channels, *rest),
        _repeated(weight, samples),
        _repeated(bias, samples),
        means,
        variances,
        use_input_stats,
        momentum,
        eps,
        True,
    )
    if use_input_stats:
        with no_recording():
            for running, found in ((running_mean, means), (running_var, variances)):
                if running is not None:
                    running.copy_(found.reshape(samples, channels).mean(0))
    return output.reshape(input.shape)


@composite(public="nn.functional.instance_norm", name="functional_instance_norm")
def functional_instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
):  # fmt: skip
    """``(input - mean) / sqrt(variance + eps) * weight + bias`` for each channel of each sample.

    Args:
        input: shape (N, C, *), floating.
        running_mean, running_var: shape (C,); as for `batch_norm`, averaged over the samples.
        weight, bias: shape (C,).
        use_input_stats: whether the sample's own statistics are used.
        momentum: the share of the input in the new running statistics.
        eps: what is added to the variance.

    Raises ValueError if there is only one value per channel whose statistics are wanted.

    Source: Ulyanov, Vedaldi, Lempitsky, "Instance normalization", 2016.

    >>> import corefw as torch
    >>> torch.nn.functional.instance_norm(torch.tensor([[[1.0, 3.0]]]), eps=0.0)
    tensor([[[-1.,  1.]]])
    """
    if use_input_stats:
        _require_several(input.shape, "spatial element", input.shape[2:])
    return ops.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)
