"""Initialisers: they fill a tensor in place, without a gradient, and return it."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

from corefw.dispatch.declare import ops
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor

_LINEAR = (
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "sigmoid",
)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a layer's weights are scaled to keep the variance through a nonlinearity.

    Args:
        nonlinearity: "linear", "conv2d", ..., "sigmoid", "tanh", "relu", "leaky_relu", "selu".
        param: the slope of leaky_relu (default 0.01).

    >>> calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"negative_slope {slope} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def fans(tensor: Tensor) -> tuple[int, int]:
    """The numbers of inputs and outputs of one unit: (fan_in, fan_out)."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator=None) -> Tensor:
    """Fill from U(a, b)."""
    with no_recording():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator=None) -> Tensor:
    """Fill from N(mean, std^2)."""
    with no_recording():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator=None
) -> Tensor:
    """Fill from N(mean, std^2) cut to [a, b], by drawing again what is refused: normal numbers outside, or, where less
    than 0.3 of them would be inside, uniform numbers in proportion to the density."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_", stacklevel=2)
    if tensor.device.type == "meta":
        return tensor
    below_b, below_a = (math.erf((bound - mean) / (std * math.sqrt(2.0))) for bound in (b, a))
    if below_b - below_a > 0.6:
        low, high = (tensor.new_tensor(bound).item() for bound in (a, b))

        def draw() -> tuple[Tensor, Tensor]:
            drawn = ops.empty_like(tensor).normal_(mean, std, generator=generator)
            return drawn, (drawn < low) | (drawn > high)
    else:
        largest = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2  # logarithm of the density, but for a constant

        def draw() -> tuple[Tensor, Tensor]:
            drawn = ops.empty_like(tensor).uniform_(a, b, generator=generator)
            density = ((drawn - mean) / std).square() * -0.5 - largest
            return drawn, ops.empty_like(tensor).uniform_(generator=generator).log() > density

    with no_recording():
        drawn, refused = draw()
        tensor.copy_(drawn)
        while bool(refused.any()):
            drawn, again = draw()
            tensor.copy_(ops.where(refused, drawn, tensor))
            refused = refused & again
        return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`."""
    with no_recording():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_recording():
        return tensor.copy_(ops.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight (3 to 5 dimensions) so that each group passes its input channels on."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.shape[0] // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    with no_recording():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.shape[1])):
                tensor[(group * per_group + channel, channel, *middle)] = 1
        return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator=None) -> Tensor:
    """Fill from U(-a, a), a = gain sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio 2010)."""
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / sum(fans(tensor))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator=None) -> Tensor:
    """Fill from N(0, s^2), s = gain sqrt(2 / (fan_in + fan_out)) (Glorot & Bengio 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """The number of inputs ("fan_in") or outputs ("fan_out") of one unit."""
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return fans(tensor)[mode == "fan_out"]


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator=None
) -> Tensor:
    """Fill from U(-b, b), b = gain sqrt(3 / fan) (He et al. 2015).

    Args:
        a: the slope of leaky_relu.
        mode: "fan_in" keeps the variance forward, "fan_out" backward.
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator=None
) -> Tensor:
    """Fill from N(0, s^2), s = gain / sqrt(fan) (He et al. 2015)."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator=None) -> Tensor:
    """Fill with `gain` times a random matrix of orthonormal rows or columns, whichever are fewer (Saxe et al. 2013).

    Dimensions after the first count as one.

    >>> import corefw as torch
    >>> weight = torch.nn.init.orthogonal_(torch.empty(2, 3))
    >>> torch.allclose(weight @ weight.T, torch.eye(2), atol=1e-6)
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.device.type == "meta":
        return tensor
    rows = tensor.shape[0]
    with no_recording():
        matrix = tensor.new_empty((rows, tensor.numel() // rows)).normal_(0, 1, generator=generator)
        wide = rows < matrix.shape[1]
        q, r = ops.linalg_qr(matrix.t() if wide else matrix)
        q = q * r.diagonal().sign()  # makes Q uniform (Mezzadri 2006)
        return tensor.copy_((q.t() if wide else q).reshape(tensor.shape) * gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator=None) -> Tensor:
    """Fill a matrix from N(0, std^2) with a fraction `sparsity` of each column zero (Martens 2010)."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_recording():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[ops.randperm(rows, generator=generator, device=tensor.device)[:zeros], column] = 0
        return tensor


#: the name of `fans` in PyTorch, which much code imports
_calculate_fan_in_and_fan_out = fans


# -- PyTorch's older names --------------------------------------------------------------------------------------------
def _older(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`function` under its name without the underscore, which warns."""
    name = function.__name__

    @functools.wraps(function)
    def initialize(*args: Any, **kwargs: Any) -> Tensor:
        text = f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`."
        warnings.warn(text, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    initialize.__name__ = initialize.__qualname__ = name[:-1]
    initialize.__doc__ = f"`{name}` under an older name."
    return initialize


uniform, normal, constant, eye, dirac = (
    _older(uniform_),
    _older(normal_),
    _older(constant_),
    _older(eye_),
    _older(dirac_),
)
xavier_uniform, xavier_normal, orthogonal = _older(xavier_uniform_), _older(xavier_normal_), _older(orthogonal_)
kaiming_uniform, kaiming_normal, sparse = _older(kaiming_uniform_), _older(kaiming_normal_), _older(sparse_)
