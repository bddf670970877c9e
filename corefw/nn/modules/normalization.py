"""Normalisation layers: over layers, groups, batches and instances."""

from __future__ import annotations

import warnings

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.nn import init
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor


def _register_affine(module: Module, shape, weight: bool, bias: bool, device, dtype) -> None:
    """Give `module` a weight and a bias of `shape`, or None in their places."""
    for name, wanted in (("weight", weight), ("bias", bias)):
        module.register_parameter(name, Parameter(ops.empty(shape, device=device, dtype=dtype)) if wanted else None)


def _reset_affine(module: Module) -> None:
    if module.weight is not None:
        init.ones_(module.weight)
    if module.bias is not None:
        init.zeros_(module.bias)


def _as_tuple(normalized_shape) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last dimensions of each sample (Ba et al. 2016), then ``* weight + bias``.

    Args:
        normalized_shape: the sizes of these dimensions.
        eps: what is added to the variance.
        elementwise_affine: whether there are a weight and a bias, both of shape `normalized_shape`.
        bias: whether there is a bias beside the weight.

    >>> import corefw as torch
    >>> torch.nn.LayerNorm(2)(torch.tensor([[0.0, 2.0]]))
    tensor([[-1.0000,  1.0000]], grad_fn=<NativeLayerNormBackward0>)
    """

    def __init__(
        self, normalized_shape, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, device=None,
        dtype=None,
    ):  # fmt: skip
        super().__init__()
        self.normalized_shape = _as_tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        _register_affine(self, self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return ops.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Root mean square 1 over the last dimensions of each sample (Zhang and Sennrich 2019), then ``* weight``.

    Args:
        normalized_shape: the sizes of these dimensions.
        eps: what is added to the mean square; the dtype's distance from 1 to the next number if None.
        elementwise_affine: whether there is a weight, of shape `normalized_shape`.

    >>> import corefw as torch
    >>> torch.nn.RMSNorm(2, elementwise_affine=False)(torch.tensor([[1.0, 7.0]]))
    tensor([[0.2000, 1.4000]])
    """

    def __init__(
        self, normalized_shape, eps: float | None = None, elementwise_affine: bool = True, device=None, dtype=None
    ):
        super().__init__()
        self.normalized_shape = _as_tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        weight = Parameter(ops.empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return ops.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Mean 0 and variance 1 over each group of channels of each sample (Wu and He 2018), then ``* weight + bias``.

    Args:
        num_groups: how many groups there are.
        num_channels: how many channels, a multiple of `num_groups`; dimension 1 of the input.
        eps: what is added to the variance.
        affine: whether there are a weight and a bias, with an element per channel.
        bias: whether there is a bias beside the weight.

    >>> import corefw as torch
    >>> torch.nn.GroupNorm(2, 4)(torch.zeros(3, 4, 5)).shape
    torch.Size([3, 4, 5])
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device=None, dtype=None, *,
        bias: bool = True,
    ):  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        _register_affine(self, (num_channels,), affine, affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return ops.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        sizes = f"{self.num_groups}, {self.num_channels}"
        return f"{sizes}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class _ChannelNorm(Module):
    """A normalisation per channel that can keep running statistics."""

    #: how many dimensions an input may have
    dimensions: tuple[int, ...] = ()

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device=None, dtype=None, *, bias: bool = True,
    ):  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        _register_affine(self, (num_features,), affine, affine and bias, device, dtype)
        mean = variance = count = None
        if track_running_stats:
            mean = ops.zeros((num_features,), device=device, dtype=dtype)
            variance = ops.ones((num_features,), device=device, dtype=dtype)
            count = ops.zeros((), device=device, dtype=dtypes.int64)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", variance)
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget what was tracked: mean 0, variance 1, no batches."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget what was tracked; set the weight to 1 and the bias to 0."""
        self.reset_running_stats()
        _reset_affine(self)

    def _load_own(self, state, prefix: str, assign: bool, missing: list[str], errors: list[str]) -> set[str]:
        known = super()._load_own(state, prefix, assign, missing, errors)
        counter = prefix + "num_batches_tracked"
        if counter in missing:  # states saved by PyTorch before 0.4.1 have no counter
            missing.remove(counter)
        return known

    def _check_input_dim(self, input) -> None:
        if input.ndim not in self.dimensions:
            expected = " or ".join(f"{n}D" for n in self.dimensions)
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_ChannelNorm):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        training, momentum = self.training, self.momentum
        if training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:
                momentum = 1 / self.num_batches_tracked.item()
        tracked = self.track_running_stats or not training
        return ops.functional_batch_norm(
            input,
            self.running_mean if tracked else None,
            self.running_var if tracked else None,
            self.weight,
            self.bias,
            training or (self.running_mean is None and self.running_var is None),
            momentum or 0.0,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Mean 0 and variance 1 of each channel over the batch (Ioffe and Szegedy 2015), then ``* weight + bias``, for
    inputs (N, C) or (N, C, L). In evaluation mode the running statistics take the place of the batch's.

    Args:
        num_features: the number of channels C.
        eps: what is added to the variance.
        momentum: the share of a batch in the new running statistics; None for the mean over all batches so far.
        affine: whether there are a weight and a bias, of shape (C,).
        track_running_stats: whether running statistics are kept; without them evaluation mode is as training.
        bias: whether there is a bias beside the weight.

    >>> import corefw as torch
    >>> torch.nn.BatchNorm1d(1, affine=False)(torch.tensor([[0.0], [2.0]]))
    tensor([[-1.0000],
            [ 1.0000]])
    """

    dimensions = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` for inputs (N, C, H, W).

    >>> import corefw as torch
    >>> torch.nn.BatchNorm2d(3)(torch.zeros(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    dimensions = (4,)


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` for inputs (N, C, D, H, W).

    >>> import corefw as torch
    >>> torch.nn.BatchNorm3d(3)(torch.zeros(2, 3, 2, 2, 2)).shape
    torch.Size([2, 3, 2, 2, 2])
    """

    dimensions = (5,)


class _InstanceNorm(_ChannelNorm):
    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
        track_running_stats: bool = False, device=None, dtype=None, *, bias: bool = True,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = input.ndim == self.dimensions[0]
        dim = 0 if single else 1
        channels = input.shape[dim]
        if channels != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: "
                    f"{channels}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing "
                "in num_features, which is not used because affine=False",
                stacklevel=3,
            )
        result = ops.functional_instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum or 0.0,
            self.eps,
        )
        return result.squeeze(0) if single else result


class InstanceNorm1d(_InstanceNorm):
    """Mean 0 and variance 1 of each channel of each sample (Ulyanov et al. 2016), for inputs (N, C, L) or (C, L).

    Args:
        num_features: the number of channels C.
        eps: what is added to the variance.
        momentum: the share of an input in the new running statistics.
        affine: whether there are a weight and a bias, of shape (C,).
        track_running_stats: whether running statistics are kept, which evaluation mode then uses.
        bias: whether there is a bias beside the weight.

    >>> import corefw as torch
    >>> torch.nn.InstanceNorm1d(1)(torch.tensor([[[0.0, 2.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    dimensions = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` for inputs (N, C, H, W) or (C, H, W).

    >>> import corefw as torch
    >>> torch.nn.InstanceNorm2d(3)(torch.zeros(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    dimensions = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` for inputs (N, C, D, H, W) or (C, D, H, W).

    >>> import corefw as torch
    >>> torch.nn.InstanceNorm3d(3)(torch.zeros(2, 3, 2, 2, 2)).shape
    torch.Size([2, 3, 2, 2, 2])
    """

    dimensions = (4, 5)


class LocalResponseNorm(Module):
    """Each element over a power of the mean square of the channels around (Krizhevsky et al. 2012); arguments as for
    `functional.local_response_norm`.

    >>> import corefw as torch
    >>> torch.nn.LocalResponseNorm(2)(torch.zeros(1, 4, 3)).shape
    torch.Size([1, 4, 3])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return ops.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of images, under the name that it had in Torch."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        super().__init__(size, alpha, beta, k)
