"""Dropout: random elements or feature maps set to zero in training."""

from __future__ import annotations

import math
from dataclasses import replace

from corefw import dtypes
from corefw.declarations._shared.drawing import draw_bernoulli, probability_tensor
from corefw.declarations._shared.factories import ArgumentError
from corefw.dispatch.declare import Index, composite, ops
from corefw.dispatch.random_generator import differing, source
from corefw.dispatch.rules import real_floats
from corefw.errors import ShapeError
from corefw.tensor import Tensor
from corefw.tracebacks import warn


# -- elements ---------------------------------------------------------------------------------------------------------
class ProbabilityError(ArgumentError, ValueError):
    """A dropout probability outside [0, 1]."""


def _check_dropout(p: float) -> None:
    if not 0 <= p <= 1:
        raise ProbabilityError(f"dropout probability has to be between 0 and 1, but got {p}")


def _check_floating(input: Tensor) -> None:
    if not input.dispatch_key.dtype.is_floating_point:
        raise ArgumentError(
            f"result type Float can't be cast to the desired output type {input.dispatch_key.dtype.title}"
        )


@composite(
    dtype=replace(real_floats, results=(*real_floats.results, lambda d: dtypes.bool_)),
    shape=lambda input, *attributes: (input, input),
    outputs=("output", "mask"),
    public="",
    grad_name="Mul",
)
def masked_dropout(input, p: float, seed: int, offset: int):
    """`input` with each element zero with probability `p`, else scaled by ``1 / (1 - p)``; and where it was kept."""
    dispatch_key = input.dispatch_key
    keep = ops.bernoulli_at(
        dispatch_key,
        probability_tensor(dispatch_key, 1 - p),
        tuple(input.array.shape),
        seed,
        offset,
        dispatch_key.dtype.numpy,
    )
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return input * (keep * scale), keep.to(dtypes.bool_)


masked_dropout.gradients(input=lambda grad, mask, p: ops.masked_dropout_backward(grad, mask, p))


@composite(dtype=real_floats, shape=lambda output_grad, mask, p: output_grad, public="")
def masked_dropout_backward(output_grad, mask: Index, p: float):
    """The gradient of masked_dropout: that of the kept elements, scaled like them."""
    return output_grad * (mask.to(output_grad.dtype) * (0.0 if p == 1 else 1 / (1 - p)))


masked_dropout_backward.gradients(output_grad=lambda grad, mask, p: ops.masked_dropout_backward(grad, mask, p))


def _certain(input: Tensor, p: float, train: bool, inplace: bool) -> Tensor | None:
    """The result where it is no matter of chance, because nothing is dropped or everything; else None."""
    _check_dropout(p)
    if not train or p == 0 or 0 in input.array.shape:
        return input
    _check_floating(input)
    if p == 1:
        return input.mul_(0.0) if inplace else input * 0.0
    return None


def _noise(input: Tensor, p: float, features: bool) -> Tensor:
    """Ones with probability ``1 - p`` for each element, or for each feature map of the first two dimensions."""
    shape = tuple(input.array.shape)
    if features:
        if len(shape) < 2:
            raise ShapeError("Feature dropout requires at least 2 dimensions in the input")
        shape = (*shape[:2], *(1 for _ in shape[2:]))
    over = None if features else input
    return draw_bernoulli(input.dispatch_key, probability_tensor(input.dispatch_key, 1 - p), shape, None, over)


@composite(public="corefw corefw.dropout_ nn.functional")
def dropout(input, p: float = 0.5, training: bool = True, inplace: bool = False, *, train: bool | None = None):
    """In training, each element zero with probability `p`, the others scaled by ``1 / (1 - p)``; else `input` itself.

    Args:
        input: any shape, floating.
        p: the probability of zero.
        training: whether anything happens; ``train`` is another name.
        inplace: overwrite `input`.

    Raises ValueError (a RuntimeError too) for `p` outside [0, 1]. The numbers are drawn as by `bernoulli` with ``1 -
    p``.

    >>> import corefw as torch
    >>> torch.dropout(torch.ones(3), 0.0, True), torch.dropout(torch.ones(3), 1.0, True)
    (tensor([1., 1., 1.]), tensor([0., 0., 0.]))
    """
    certain = _certain(input, p, training if train is None else train, inplace)
    if certain is not None:
        return certain
    if inplace:
        return input.mul_(_noise(input, p, False) / (1 - p))
    input = differing(input)
    return source(None, input.dispatch_key.device).dropout(input, p)[0]


@composite(public="corefw")
def native_dropout(input, p: float, train: bool | None = True) -> tuple[Tensor, Tensor]:
    """`dropout`, and a bool tensor that tells which elements were kept.

    >>> import corefw as torch
    >>> torch.native_dropout(torch.ones(2), 0.0, True)
    (tensor([1., 1.]), tensor([True, True]))
    """
    if train is False or p == 0 or 0 in input.array.shape:
        return input * 1, ops.ones_like(input, dtype=dtypes.bool_)
    _check_dropout(p)
    input = differing(input)
    output, mask = source(None, input.dispatch_key.device).dropout(input, p)
    return output, mask


# -- feature maps -----------------------------------------------------------------------------------------------------
@composite(public="corefw corefw.feature_dropout_")
def feature_dropout(input, p: float = 0.5, train: bool = True, inplace: bool = False):
    """As `dropout`, for whole feature maps: all elements with the same first two indices go together.

    >>> import corefw as torch
    >>> torch.feature_dropout(torch.ones(1, 2, 3), 0.5, True).std(-1)
    tensor([[0., 0.]])
    """
    certain = _certain(input, p, train, inplace)
    if certain is not None:
        return certain
    factor = _noise(input, p, True) / (1 - p)
    return input.mul_(factor) if inplace else input * factor


# The constants of SELU (Klambauer et al., "Self-normalizing neural networks", 2017): -alpha * scale, where it
# saturates.
_SATURATION = -1.7580993408473766


def _alpha(name: str, input: Tensor, p: float, train: bool, inplace: bool, features: bool) -> Tensor:
    certain = _certain(input, p, train, inplace)
    if certain is not None:
        return certain
    keep = _noise(input, p, features)
    a = 1 / math.sqrt((_SATURATION * _SATURATION * p + 1) * (1 - p))
    b = (keep - 1) * (-_SATURATION * a) + (-_SATURATION * a * p)
    factor = keep * a
    return input.mul_(factor).add_(b) if inplace else input * factor + b


@composite(public="corefw corefw.alpha_dropout_ nn.functional")
def alpha_dropout(input, p: float = 0.5, training: bool = False, inplace: bool = False, *, train: bool | None = None):
    """In training, each element with probability `p` at the value where SELU saturates, then an affine map of all, so
    that mean 0 and variance 1 are kept.

    Args:
        input: any shape, floating.
        p: the probability.
        training: whether anything happens; ``train`` is another name.
        inplace: overwrite `input`.

    Source: Klambauer et al., "Self-normalizing neural networks", 2017, section 3.

    >>> import corefw as torch
    >>> torch.alpha_dropout(torch.ones(3), 0.5, False)
    tensor([1., 1., 1.])
    """
    return _alpha("alpha_dropout", input, p, training if train is None else train, inplace, False)


@composite(public="corefw corefw.feature_alpha_dropout_ nn.functional")
def feature_alpha_dropout(
    input, p: float = 0.5, training: bool = False, inplace: bool = False, *, train: bool | None = None
):
    """As `alpha_dropout`, for whole feature maps: all elements with the same first two indices go together.

    >>> import corefw as torch
    >>> torch.nn.functional.feature_alpha_dropout(torch.ones(1, 2, 3), 0.5, False).shape
    torch.Size([1, 2, 3])
    """
    return _alpha("feature_alpha_dropout", input, p, training if train is None else train, inplace, True)


def _channels(name: str, input: Tensor, p: float, training: bool, inplace: bool, spatial: int) -> Tensor:
    """Feature dropout of an input that may lack its batch dimension."""
    _check_dropout(p)
    ndim = input.array.ndim
    if ndim not in (spatial + 1, spatial + 2):
        advice = (
            f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a future "
            f"release. To retain the behavior and silence this warning, please use dropout instead. Note that {name} "
            f"exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel dimension, "
            f"and an optional batch dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs)."
        )
        if spatial == 1:
            raise ShapeError(
                f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that dropout1d exists to "
                "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
                "batch dimension (i.e. 2D or 3D inputs)."
            )
        warn(advice)
        if spatial == 2:
            return feature_dropout(input, p, training, inplace)
    if ndim == spatial + 2:
        return feature_dropout(input, p, training, inplace)
    if spatial == 2:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead."
        )
        return feature_dropout(input, p, training, inplace)
    if inplace:
        feature_dropout(input.unsqueeze(0), p, training, True)
        return input
    return feature_dropout(input.unsqueeze(0), p, training).squeeze(0)


@composite(public="nn.functional")
def dropout1d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """In training, each channel of ``(C, L)`` or ``(N, C, L)`` zero with probability `p`, the others scaled.

    Args:
        input: floating.
        p: the probability of zero.
        training: whether anything happens.
        inplace: overwrite `input`.

    >>> import corefw as torch
    >>> torch.nn.functional.dropout1d(torch.ones(2, 3), 1.0)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return _channels("dropout1d", input, p, training, inplace, 1)


@composite(public="nn.functional")
def dropout2d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """In training, each channel of ``(N, C, H, W)`` zero with probability `p`, the others scaled. Arguments as for
    `dropout1d`; an input of three dimensions counts as ``(N, C, L)``.

    >>> import corefw as torch
    >>> torch.nn.functional.dropout2d(torch.ones(1, 1, 1, 2), 1.0)
    tensor([[[[0., 0.]]]])
    """
    return _channels("dropout2d", input, p, training, inplace, 2)


@composite(public="nn.functional")
def dropout3d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """In training, each channel of ``(C, D, H, W)`` or ``(N, C, D, H, W)`` zero with probability `p`, the others
    scaled. Arguments as for `dropout1d`.

    >>> import corefw as torch
    >>> torch.nn.functional.dropout3d(torch.ones(1, 1, 1, 2), 1.0)
    tensor([[[[0., 0.]]]])
    """
    return _channels("dropout3d", input, p, training, inplace, 3)


# -- in place ---------------------------------------------------------------------------------------------------------
def _inplace_form(declared) -> None:
    """Give a dropout its form ``name_(input, p, train)``, which overwrites `input`."""
    function = declared.op.function

    def inplace(input, p: float, train: bool):
        return function(input, p, train, True)

    inplace.__name__ = inplace.__qualname__ = declared.op.name + "_"
    inplace.__doc__ = f"In-place form of `{declared.op.name}`."
    declared.op.inplace_function = inplace


for _dropout in (dropout, feature_dropout, alpha_dropout, feature_alpha_dropout):
    _inplace_form(_dropout)
