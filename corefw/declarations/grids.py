"""Images sampled at the points of a grid.

A point's coordinates are from -1 to 1 over an image's extent: with `align_corners` between the centres of its outermost
pixels, else between their outer edges. The first coordinate of a point is that of the image's last dimension.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

from corefw.dispatch.declare import composite, ops
from corefw.dispatch.rules import computed
from corefw.errors import ShapeError
from corefw.tracebacks import warn

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
#: the coefficient of the cubic convolution (Keys 1981)
_A = -0.75


def _meant_corners(name: str, align_corners: bool | None) -> bool:
    if align_corners is None:
        warn(f"{name}: align_corners is False unless given; say align_corners=True for what was so before PyTorch 1.3")
    return bool(align_corners)


@composite(public="nn.functional")
def affine_grid(theta, size: tuple, align_corners: bool | None = None):
    """The points of a grid, mapped by affine matrices: what `grid_sample` takes.

    Args:
        theta: shape (N, 2, 3), or (N, 3, 4) for volumes.
        size: that of the images which are wanted, (N, C, H, W) or (N, C, D, H, W).
        align_corners: what -1 and 1 stand for: the outermost pixels' centres or their edges.

    Returns:
        shape (N, H, W, 2) or (N, D, H, W, 3).

    >>> import corefw as torch
    >>> torch.nn.functional.affine_grid(torch.eye(2, 3).unsqueeze(0), (1, 1, 1, 2), align_corners=True)[..., 0]
    tensor([[[-1.,  1.]]])
    """
    n, size = len(size) - 2, tuple(size)
    if not theta.is_floating_point():
        raise TypeError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if n not in (2, 3):
        raise NotImplementedError(f"affine_grid only supports 4D and 5D sizes, of images and volumes. Got size {size}.")
    if tuple(theta.shape[1:]) != (n, n + 1):
        raise ShapeError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got "
            f"{tuple(theta.shape)}."
        )
    if min(size) <= 0:
        raise ShapeError(f"Expected non-zero, positive output size. Got {size}")
    corners = _meant_corners("affine_grid", align_corners)
    axes: list[Any] = []
    for axis, count in enumerate(size[2:]):
        coordinates = _coordinates(ops.arange(count, dtype=theta.dtype, device=theta.device), count, corners)
        axes.insert(0, coordinates.reshape([-1 if i == axis else 1 for i in range(n)]).expand(size[2:]))
    points = ops.stack([*axes, ops.ones_like(axes[0])], -1).reshape(1, prod(size[2:]), n + 1)
    return points.matmul(theta.mT).reshape(size[0], *size[2:], n)


def _coordinates(places, count: int, corners: bool):
    """The coordinates of pixels, of which there are so many."""
    if not corners:
        return (places * 2 + 1) / count - 1
    return places * (2 / (count - 1)) - 1 if count > 1 else places


def _places(coordinates, count: int, corners: bool):
    """Where coordinates are, in pixels."""
    return (coordinates + 1) * ((count - 1) / 2) if corners else ((coordinates + 1) * count - 1) / 2


@composite(public="nn.functional")
def grid_sample(input, grid, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None):
    """The values of images at the points of a grid (spatial transformer networks, Jaderberg et al. 2015).

    Args:
        input: shape (N, C, H, W) or (N, C, D, H, W).
        grid: shape (N, *points, 2) or (N, *points, 3), as many sizes of points as the images have dimensions.
        mode: "bilinear" (between the pixels around, of volumes too), "nearest", or "bicubic" for images.
        padding_mode: what is outside: "zeros", "border" (the next pixel within) or "reflection" at the border.
        align_corners: what -1 and 1 stand for: the outermost pixels' centres or their edges.

    Returns:
        shape (N, C, *points).

    >>> import corefw as torch
    >>> image = torch.tensor([[[[1.0, 3.0]]]])
    >>> torch.nn.functional.grid_sample(image, torch.zeros(1, 1, 1, 2), align_corners=False)
    tensor([[[[2.]]]])
    """
    for name, given, known in (("mode", mode, MODES), ("padding_mode", padding_mode, PADDINGS)):
        if given not in known:
            raise ValueError(
                f"nn.functional.grid_sample(): expected {name} to be {', '.join(map(repr, known))}, but got: {given!r}"
            )
    n = input.ndim - 2
    shapes = f"got input of shape {list(input.shape)} and grid of shape {list(grid.shape)}"
    if n not in (2, 3) or grid.ndim != input.ndim:
        raise ShapeError(f"grid_sampler(): expected 4D or 5D input and a grid of as many dimensions, but {shapes}")
    if grid.shape[-1] != n or grid.shape[0] != input.shape[0]:
        raise ShapeError(f"grid_sampler(): expected a grid with input's batch and {n} as its last size, but {shapes}")
    if mode == "bicubic" and n != 2:
        raise NotImplementedError("grid_sampler(): bicubic interpolation only supports 4D input")
    if min(input.shape[2:]) == 0:
        raise ShapeError(f"grid_sampler(): expected input to have non-empty spatial dimensions, but {shapes}")
    corners = _meant_corners("grid_sample", align_corners)
    if (wide := computed(input.dtype)) is not input.dtype:  # rounded once, not after each step
        return ops.grid_sample(input.to(wide), grid.to(wide), mode, padding_mode, corners).to(input.dtype)
    sizes, points = tuple(input.shape[2:]), grid.reshape(grid.shape[0], prod(grid.shape[1:-1]), n)
    places = [_places(points[..., n - 1 - axis], size, corners) for axis, size in enumerate(sizes)]
    if mode == "bicubic":
        taps = [_cubic_taps(place) for place in places]
        taps = [
            [(_inside(tap, size, padding_mode, corners), weight) for tap, weight in axis]
            for axis, size in zip(taps, sizes, strict=True)
        ]
    else:
        places = [_inside(place, size, padding_mode, corners) for place, size in zip(places, sizes, strict=True)]
        taps = [[(place.round(), None)] if mode == "nearest" else _linear_taps(place) for place in places]
    pixels = input.reshape(*input.shape[:2], prod(sizes))
    result: Any = None
    for chosen in product(*taps):
        term = _picked(pixels, sizes, chosen)
        result = term if result is None else result + term
    return result.reshape(*input.shape[:2], *grid.shape[1:-1])


def _inside(place, size: int, padding: str, corners: bool):
    """Places brought to those whose pixels stand for them."""
    if padding == "zeros":
        return place
    if padding == "reflection":
        low, span = (0.0, size - 1.0) if corners else (-0.5, float(size))
        if span == 0:
            place = place * 0
        else:
            distance = (place - low).abs()
            turns = (distance / span).floor()
            rest = distance - turns * span
            place = ops.where(turns % 2 == 0, rest, span - rest) + low
    return place.clamp(0, size - 1)


def _linear_taps(place):
    """The two pixels around, and their weights."""
    first = place.detach().floor()
    share = place - first
    return [(first, 1 - share), (first + 1, share)]


def _cubic_taps(place):
    """The four pixels around, and their weights."""
    first = place.detach().floor()
    t = place - first

    def near(x):
        return ((_A + 2) * x - (_A + 3)) * x * x + 1

    def far(x):
        return ((_A * x - 5 * _A) * x + 8 * _A) * x - 4 * _A

    weights = far(t + 1), near(t), near(1 - t), far(2 - t)
    return [(first + i - 1, weight) for i, weight in enumerate(weights)]


def _picked(pixels, sizes: tuple, chosen: tuple):
    """The pixels at whole places times their weights; 0 outside of the image."""
    position: Any = 0
    inside: Any = None
    factor: Any = None
    for (place, weight), size in zip(chosen, sizes, strict=True):
        within = (place >= 0).logical_and(place <= size - 1)
        inside = within if inside is None else inside.logical_and(within)
        position = position * size + place.detach().masked_fill(within.logical_not(), 0).to(ops.arange(0).dtype)
        if weight is not None:
            factor = weight if factor is None else factor * weight
    found = pixels.gather(2, position.unsqueeze(1).expand(*pixels.shape[:2], position.shape[-1]))
    found = found if factor is None else found * factor.unsqueeze(1)
    return found.masked_fill(inside.logical_not().unsqueeze(1), 0)
