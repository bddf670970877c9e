"""What a convolution multiplies with what, as CUDA functions are told (convolution.cuh): pure functions of shapes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import gcd, prod
from typing import Any

import numpy as np

from corefw.dispatch.registry import shape_rule
from corefw.shapes import contiguous_strides
from corefw.windows import meaningful, window_counts
from corefw_cupy.launch import argument

AXES = 3  # as in convolution.cuh
#: of the struct Convolution
HEAD = (
    *("samples", "groups", "rows", "channels", "image_sample", "image_group", "image_channel"),
    *("place_offset", "place_sample", "place_group", "place_row"),
    *("tap_offset", "tap_group", "tap_row", "tap_channel"),
)
AXIS = ("places", "taps", "place_step", "tap_step", "first", "size", "stride", "place_stride", "tap_stride")
STRUCT = np.dtype([*((name, "i8") for name in HEAD), ("axes", [(name, "i8") for name in AXIS], AXES)])
UNUSED = (1, 1, 1, 1, 0, 1, 0, 0, 0)  # an axis that is not there
LEAST_BLOCKS = 132  # that keep a device busy: the multiprocessors of an H100
LEAST_SLABS = 8  # of which a part of a split sum consists
MOST_SPLIT_BYTES = 1 << 26


@dataclass(frozen=True)
class Layout:
    """An array: its shape, and its strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def dense(cls, shape: tuple[int, ...]) -> Layout:
        """A new array's."""
        return cls(shape, contiguous_strides(shape))


def layout(array) -> Layout:
    """An array's layout."""
    size = array.dtype.itemsize
    return Layout(array.shape, tuple([step // size for step in array.strides]))


@dataclass(frozen=True)
class Geometry:
    """A convolution, or the part of a transposed one that computes results of equal distances.

    Attributes: ``struct`` for CUDA functions; ``groups``; ``rows`` of a group's product, which are channels of the
    result; ``places`` of all samples; ``taps`` of all channels of a group.
    """

    struct: Any
    groups: int
    rows: int
    places: int
    taps: int


@dataclass(frozen=True)
class Axis:
    """One spatial dimension, as the struct of this name in convolution.cuh says."""

    places: int
    taps: int
    place_step: int
    tap_step: int
    first: int
    first_place: int = 0  # and how many places of the result, and elements of the kernel, it counts as one
    places_apart: int = 1
    first_tap: int = 0
    taps_apart: int = 1


def _geometry(image: Layout, result: Layout, kernel: Layout, groups: int, axes: tuple[Axis, ...], transposed: bool):
    """The geometry for these arrays; a transposed kernel has the image's channels first, then those of the result."""
    if len(axes) > AXES:
        raise ValueError(f"convolutions have at most {AXES} spatial dimensions here")
    rows, channels = result.shape[1] // groups, image.shape[1] // groups
    tap_row, tap_channel = kernel.strides[1::-1] if transposed else kernel.strides[:2]
    struct = np.zeros(1, STRUCT)
    head = {
        "samples": image.shape[0],
        "groups": groups,
        "rows": rows,
        "channels": channels,
        "image_sample": image.strides[0],
        "image_group": channels * image.strides[1],
        "image_channel": image.strides[1],
        "place_offset": sum(axis.first_place * step for axis, step in zip(axes, result.strides[2:])),
        "place_sample": result.strides[0],
        "place_group": rows * result.strides[1],
        "place_row": result.strides[1],
        "tap_offset": sum(axis.first_tap * step for axis, step in zip(axes, kernel.strides[2:])),
        "tap_group": channels * tap_channel if transposed else rows * tap_row,
        "tap_row": tap_row,
        "tap_channel": tap_channel,
    }
    for name, value in head.items():
        struct[name] = value
    struct["axes"][0] = UNUSED
    for i, axis in enumerate(axes):
        size, step = image.shape[2 + i], image.strides[2 + i]
        place_stride = axis.places_apart * result.strides[2 + i]
        tap_stride = axis.taps_apart * kernel.strides[2 + i]
        steps = (axis.place_step, axis.tap_step, axis.first)
        struct["axes"][0, AXES - len(axes) + i] = axis.places, axis.taps, *steps, size, step, place_stride, tap_stride
    places = image.shape[0] * prod(axis.places for axis in axes)
    taps = channels * prod(axis.taps for axis in axes)
    reach = [abs(axis.first) + axis.places * axis.place_step + axis.taps * abs(axis.tap_step) for axis in axes]
    if max(places, taps, *image.shape, *reach) >= 1 << 31:
        raise ValueError("too many places for offsets of 32 bits")
    struct.setflags(write=False)
    return Geometry(argument(struct), groups, rows, places, taps)


def _forward_axes(places, kernel, stride, padding, dilation) -> tuple[Axis, ...]:
    steps = meaningful(stride, places), padding, meaningful(dilation, kernel)
    return tuple(Axis(n, k, s, d, -p) for n, k, s, p, d in zip(places, kernel, *steps, strict=True))


def _phase(results: int, taps: int, stride: int, padding: int, dilation: int, first: int) -> Axis:
    """The results first, first + stride, ... of a transposed convolution: those see one set of taps, at neighbouring
    positions of the input."""
    apart = stride // gcd(stride, dilation)  # of the taps that some of them see
    tap = next((k for k in range(min(apart, taps)) if (first + padding - k * dilation) % stride == 0), taps)
    count = -(-(taps - tap) // apart)
    position = (first + padding - tap * dilation) // stride
    places = -(-(results - first) // stride)
    return Axis(places, count, 1, -(apart * dilation // stride), position, first, stride, tap, apart)


@dataclass(frozen=True)
class Plan:
    """How a convolution is computed.

    Attributes: ``shape`` of the result; ``pointwise`` whether each position of the input gives one of the result, by
    one product with a matrix; ``parts`` whose results together are the whole.
    """

    shape: tuple[int, ...]
    pointwise: bool
    parts: tuple[Geometry, ...]


@lru_cache(maxsize=1 << 12)
def convolution(
    image: Layout, kernel: Layout, bias, stride, padding, dilation, transposed, output_padding, groups
) -> Plan:
    """The plan for these arrays.

    Raises:
        ShapeError: the shapes do not fit.
    """
    options = (stride, padding, dilation, transposed, output_padding, groups)
    result = Layout.dense(shape_rule("convolution")(image.shape, kernel.shape, bias, *options))
    places, taps = result.shape[2:], kernel.shape[2:]
    alone = prod(taps) == groups == prod(stride) == 1 and not any(padding) and places == image.shape[2:]
    if not transposed:
        axes = _forward_axes(places, taps, stride, padding, dilation)
        return Plan(result.shape, alone, (_geometry(image, result, kernel, groups, axes, transposed=False),))
    steps = zip(places, taps, stride, padding, dilation, strict=True)
    phases = [[_phase(*options, first) for first in range(min(options[2], options[0]))] for options in steps]
    parts = tuple(_geometry(image, result, kernel, groups, axes, transposed=True) for axes in product(*phases))
    return Plan(result.shape, alone, parts)


@lru_cache(maxsize=1 << 12)
def weight_gradient(
    image: Layout, gradient: Layout, kernel_size, stride, padding, dilation, groups
) -> tuple[tuple[int, ...], Geometry]:
    """The shape of the gradient of a kernel, and how it is computed.

    Raises:
        ShapeError: the shapes do not fit.
    """
    options = (kernel_size, stride, padding, dilation, groups)
    shape = shape_rule("convolution_weight")(image.shape, gradient.shape, *options)
    axes = _forward_axes(gradient.shape[2:], kernel_size, stride, padding, dilation)
    return shape, _geometry(image, gradient, Layout.dense(shape), groups, axes, transposed=False)


@lru_cache(maxsize=1 << 12)
def columns(image: Layout, kernel_size, dilation, padding, stride, places=None) -> Geometry:
    """The windows of images, all or the first of them: a convolution with one row."""
    places = places or window_counts(image.shape[2:], kernel_size, stride, padding, dilation)
    axes = _forward_axes(places, kernel_size, stride, padding, dilation)
    result = Layout.dense((image.shape[0], 1, *places))
    kernel = Layout.dense((1, image.shape[1], *kernel_size))
    return _geometry(image, result, kernel, 1, axes, transposed=False)


def tile(rows: int, columns: int, groups: int) -> tuple[int, int]:
    """The size of the tiles of a product with real numbers of at most 32 bits: large ones, if they are enough."""
    if rows <= 32 and columns > 64:
        return 32, 128
    large = -(-rows // 128) * -(-columns // 128) * groups
    return (128, 128) if rows > 64 and large >= LEAST_BLOCKS else (64, 64)


def splits(blocks: int, inner: int, depth: int, result_bytes: int) -> int:
    """Into how many parts sums of `inner` products are split, so that there is work for the whole device."""
    if blocks >= LEAST_BLOCKS:
        return 1
    wanted = -(-2 * LEAST_BLOCKS // blocks)
    return max(1, min(wanted, inner // (depth * LEAST_SLABS), MOST_SPLIT_BYTES // max(result_bytes, 1)))
