"""A normalisation with fixed statistics taken into the convolution or linear layer before it."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from corefw.dispatch.declare import ops
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]
Layer = TypeVar("Layer", bound=Module)


def _fused(
    weight: Tensor, bias: Tensor | None, mean: Tensor, variance: Tensor, eps: float,
    scale: Tensor | None, shift: Tensor | None, shape: list[int],
) -> tuple[Parameter, Parameter]:  # fmt: skip
    bias = ops.zeros_like(mean) if bias is None else bias
    factor = (variance + eps).rsqrt()
    factor = factor if scale is None else factor * scale
    moved = (bias - mean) * factor
    moved = moved if shift is None else moved + shift
    fused = weight * factor.reshape(shape).to(weight.dtype)
    return Parameter(fused, weight.requires_grad), Parameter(moved.to(bias.dtype), bias.requires_grad)


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """The weight and bias of a convolution that normalises its output too.

    Args:
        conv_w, conv_b: those of the convolution.
        bn_rm, bn_rv: the running mean and variance, (channels,).
        bn_eps: added to the variance.
        bn_w, bn_b: the scale and shift, or None.
        transpose: whether it is a transposed convolution.
    """
    shape = [1, -1] if transpose else [-1, 1]
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape + [1] * (conv_w.ndim - 2))


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]:
    """As `fuse_conv_bn_weights`, for a linear layer."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _layer(layer: Layer, normalization: Any, fuse: Any, **options: Any) -> Layer:
    if layer.training or normalization.training:
        raise AssertionError("Fusion only for eval!")
    n, fused = normalization, copy.deepcopy(layer)
    assert n.running_mean is not None and n.running_var is not None, "the normalisation has no running statistics"
    fused.weight, fused.bias = fuse(
        layer.weight, layer.bias, n.running_mean, n.running_var, n.eps, n.weight, n.bias, **options
    )
    return fused


def fuse_conv_bn_eval(conv: Layer, bn: Module, transpose: bool = False) -> Layer:
    """A convolution that computes what a convolution and a normalisation compute, both in evaluation mode.

    Args:
        conv, bn: the two.
        transpose: whether it is a transposed convolution.

    Raises:
        AssertionError: one of them is in training mode.

    >>> import corefw as torch
    >>> from corefw.nn.utils.fusion import fuse_conv_bn_eval
    >>> conv, norm = torch.nn.Conv2d(1, 2, 3).eval(), torch.nn.BatchNorm2d(2).eval()
    >>> x = torch.ones(1, 1, 3, 3)
    >>> torch.allclose(fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)))
    True
    """
    return _layer(conv, bn, fuse_conv_bn_weights, transpose=transpose)


def fuse_linear_bn_eval(linear: Layer, bn: Module) -> Layer:
    """As `fuse_conv_bn_eval`, for a linear layer."""
    return _layer(linear, bn, fuse_linear_bn_weights)
