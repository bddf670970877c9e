"""Resampling: tensors read at other places of their spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import floor

from corefw.declarations._shared.batching import on_images
from corefw.dispatch.declare import composite, ops, primitive
from corefw.dispatch.rules import real_floats, real_numbers
from corefw.errors import DtypeError, KernelNotFoundError, ShapeError
from corefw.windows import per_dimension

#: the kernel per dimension that a mode means, by the number of spatial dimensions it takes
_DIMENSIONS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
_FILTERS = {"linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
_MODES = ("nearest", "linear", "bilinear", "bicubic", "trilinear", "area", "nearest-exact")


# -- the operation ----------------------------------------------------------------------------------------------------
def resample_shape(input, sizes, filter, align_corners, scales, antialias):
    """(N, C, *spatial) gives (N, C, *sizes)."""
    names = "DHW"[-len(sizes) :]
    if len(input) != len(sizes) + 2:
        raise ShapeError(f"resample: {len(sizes)} sizes for an input of shape {list(input)}")
    if any(size < 1 for size in (*input[2:], *sizes)):
        before = ", ".join(f"{name}: {size}" for name, size in zip(names, input[2:]))
        after = ", ".join(f"{name}: {size}" for name, size in zip(names, sizes))
        raise ShapeError(f"Input and output sizes should be greater than 0, but got input ({before}) output ({after})")
    if input[1] == 0:
        raise ShapeError(f"Non-empty {len(input)}D data tensor expected but got a tensor with sizes {list(input)}")
    return (*input[:2], *sizes)


def _resample_name(input_shape, filter, antialias):
    n = len(input_shape) - 2
    linear = ("Linear", "Bilinear", "Trilinear")[n - 1]
    title = {"nearest": "Nearest", "nearest-exact": "NearestExact", "linear": linear, "cubic": "Bicubic"}[filter]
    return f"Upsample{title}{n}D" + ("Aa" if antialias else "")


@primitive(dtype=real_numbers, shape=resample_shape, public="", grad_name=_resample_name)
def resample(input, sizes: tuple, filter: str, align_corners: bool, scales: tuple, antialias: bool):
    """(N, C, *spatial) read at evenly spaced places, one dimension after the other.

    Place i of a dimension reads around ``(i + 0.5) * scale - 0.5``, of "nearest" around ``i * scale``, with aligned
    corners around ``i * (size - 1) / (new size - 1)``.

    Args:
        sizes: the new spatial sizes.
        filter: how elements around a place are weighed: "nearest" and "nearest-exact" take one, "linear" two, "cubic"
            four (Keys 1981, with a = -0.75; -0.5 with antialias).
        align_corners: whether the first and last elements stay where they are.
        scales: per dimension the scale of the new size to the old, or None for their quotient.
        antialias: whether the filter is as wide as the step where the step is longer than 1.
    """


resample.batching(on_images)


@resample.gradient("input")
def resample_vjp(grad, input_shape, filter, align_corners, scales, antialias):
    return ops.resample_backward(grad, tuple(input_shape[2:]), filter, align_corners, scales, antialias)


def resample_backward_shape(output_grad, sizes, filter, align_corners, scales, antialias):
    """(N, C, *new sizes) gives (N, C, *sizes)."""
    return resample_shape(output_grad, sizes, filter, align_corners, scales, antialias)


@primitive(dtype=real_floats, shape=resample_backward_shape, public="")
def resample_backward(output_grad, sizes: tuple, filter: str, align_corners: bool, scales: tuple, antialias: bool):
    """The gradient of resample for an input of spatial `sizes`: what was read gets its share."""


resample_backward.batching(on_images)


@resample_backward.gradient("output_grad")
def resample_backward_vjp(grad, output_grad_shape, filter, align_corners, scales, antialias):
    return ops.resample(grad, tuple(output_grad_shape[2:]), filter, align_corners, scales, antialias)


# -- the function -----------------------------------------------------------------------------------------------------
def _sizes_and_scales(input, size, scale_factor, recompute_scale_factor) -> tuple[tuple, tuple]:
    """(new sizes, scales to use instead of the sizes' quotients) from the function's arguments."""
    spatial = input.array.shape[2:]
    n = len(spatial)
    unscaled = (None,) * n
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        sizes = per_dimension(size, n)
        if len(sizes) != n:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(spatial)} and output size of {size}. Please provide input tensor in (N, C, d1, "
                "d2, ...,dK) format and output size in (o1, o2, ...,oK) format."
            )
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return tuple(map(int, sizes)), unscaled
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    scales = per_dimension(scale_factor, n)
    if len(scales) != n:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {list(spatial)} and scale_factor of shape {scale_factor}. Please provide input tensor in "
            "(N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    scales = tuple(map(float, scales))
    return _scaled(spatial, scales), unscaled if recompute_scale_factor else scales


@lru_cache(maxsize=4096)
def _scaled(spatial: tuple, scales: tuple) -> tuple:
    """The sizes times their scales, rounded down."""
    return tuple(floor(float(old) * scale) for old, scale in zip(spatial, scales))


@composite(public="nn.functional")
def interpolate(
    input, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
):  # fmt: skip
    """`input` resampled to other spatial sizes.

    Args:
        input: (N, C, *spatial) with 1 to 3 spatial dimensions.
        size: the new spatial sizes.
        scale_factor: or by how much they grow.
        mode: "nearest", "nearest-exact", "area" (means, for any number of dimensions), "linear" (1-d), "bilinear",
            "bicubic" (2-d), "trilinear" (3-d).
        align_corners: for the linear and cubic modes: whether the corner elements stay where they are.
        recompute_scale_factor: whether the scale is computed anew from the rounded sizes.
        antialias: for "bilinear" and "bicubic": whether shrinking averages over what it leaves out.

    >>> import corefw as torch
    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.2500, 1.7500, 2.0000]]])
    """
    ndim = input.array.ndim
    if mode not in _FILTERS and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    sizes, scales = _sizes_and_scales(input, size, scale_factor, recompute_scale_factor)
    if antialias or _FILTERS.get(mode) == "linear" or (mode == "nearest" and ndim == 4):
        # as PyTorch's kernels: where the size stays the elements do, whatever the scale
        changes = zip(input.array.shape[2:], sizes, scales)
        scales = tuple([None if new == old else scale for old, new, scale in changes])
    if antialias and not (mode in ("bilinear", "bicubic") and ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if mode not in _MODES or ndim not in (3, 4, 5):
        raise KernelNotFoundError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: "
            f"{' | '.join(_MODES)} (got {mode})"
        )
    if mode in _DIMENSIONS and _DIMENSIONS[mode] != ndim - 2:
        raise KernelNotFoundError(f"Got {ndim}D input, but {mode} mode needs {_DIMENSIONS[mode] + 2}D input")
    if mode == "area":
        return ops.adaptive_avg_pool(input, sizes)
    if mode in _FILTERS and not input.dispatch_key.dtype.is_floating_point:
        raise DtypeError(f"interpolate: mode {mode} is not supported for {input.dispatch_key.dtype.name} inputs")
    return ops.resample(input, sizes, _FILTERS.get(mode, mode), bool(align_corners), scales, antialias)


@composite(public="nn.functional")
def upsample(
    input,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
):
    """An older name of `interpolate`.

    >>> import corefw as torch
    >>> torch.nn.functional.upsample(torch.zeros(1, 3, 4), scale_factor=2).shape
    torch.Size([1, 3, 8])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


@composite(public="nn.functional")
def upsample_nearest(
    input, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
):
    """An older name of `interpolate` with mode "nearest".

    >>> import corefw as torch
    >>> torch.nn.functional.upsample_nearest(torch.zeros(1, 3, 2, 2), scale_factor=2).shape
    torch.Size([1, 3, 4, 4])
    """
    return interpolate(input, size, scale_factor, mode="nearest")


@composite(public="nn.functional")
def upsample_bilinear(
    input, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
):
    """An older name of `interpolate` with mode "bilinear" and aligned corners.

    >>> import corefw as torch
    >>> torch.nn.functional.upsample_bilinear(torch.zeros(1, 3, 2, 2), scale_factor=2).shape
    torch.Size([1, 3, 4, 4])
    """
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


@composite(public="corefw nn.functional")
def channel_shuffle(input, groups: int):
    """The channels of (N, C, ...) dealt anew: seen as (groups, C / groups), they are read by columns.

    >>> import corefw as torch
    >>> torch.nn.functional.channel_shuffle(torch.arange(4).reshape(1, 4, 1), 2).reshape(-1)
    tensor([0, 2, 1, 3])
    """
    if input.ndim < 3:
        raise ShapeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    n, channels, *sizes = input.shape
    if groups <= 0:
        raise ShapeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if channels % groups:
        raise ShapeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    dealt = input.reshape((n, groups, channels // groups, *sizes)).transpose(1, 2)
    return ops.unsafe_view(dealt, tuple(input.shape))
