"""Images sampled at the points of a grid."""

from itertools import product

import numpy as np

from corefw.testing.case import Case

FLOATS = ("float32", "float64")


def affine_grid(theta, size, align_corners):
    n = len(size) - 2
    grid = np.empty((size[0], *size[2:], n), theta.dtype)
    for place in np.ndindex(*size[2:]):
        at = [
            (2 * i / (count - 1) - 1 if count > 1 else 0) if align_corners else (2 * i + 1) / count - 1
            for i, count in zip(place, size[2:], strict=True)
        ]
        grid[(slice(None), *place)] = theta @ np.array([*at[::-1], 1], theta.dtype)
    return grid


def brought_inside(x, size, padding, corners):
    if padding == "reflection":
        low, high = (0, size - 1) if corners else (-0.5, size - 0.5)
        while low < high and not low <= x <= high:
            x = 2 * low - x if x < low else 2 * high - x
        x = x if low < high else 0.0
    return x if padding == "zeros" else min(max(x, 0), size - 1)


def cubic(distance, a=-0.75):
    d = abs(distance)
    if d <= 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0.0


def weighed(x, size, mode, padding, corners):
    """The pixels along one dimension that stand for a place, and their weights."""
    if mode == "bicubic":
        taps = [(np.floor(x) + i, cubic(x - np.floor(x) - i)) for i in (-1, 0, 1, 2)]
        return [(int(np.floor(brought_inside(tap, size, padding, corners))), weight) for tap, weight in taps]
    x = brought_inside(x, size, padding, corners)
    if mode == "nearest":
        return [(int(np.rint(x)), 1.0)]
    return [(int(np.floor(x)), 1 - (x - np.floor(x))), (int(np.floor(x)) + 1, x - np.floor(x))]


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    sizes = input.shape[2:]
    result = np.zeros((*input.shape[:2], *grid.shape[1:-1]), input.dtype)
    for place in np.ndindex(*grid.shape[:-1]):
        taps = []
        for x, size in zip(grid[place][::-1], sizes, strict=True):
            x = (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2
            taps.append(weighed(x, size, mode, padding_mode, align_corners))
        for chosen in product(*taps):
            if all(0 <= at < size for (at, _), size in zip(chosen, sizes, strict=True)):
                pixel = input[(place[0], slice(None), *(at for at, _ in chosen))]
                result[(place[0], slice(None), *place[1:])] += pixel * np.prod([weight for _, weight in chosen])
    return result


def images(rng, dtype):
    options = [
        {"mode": mode, "padding_mode": padding, "align_corners": corners}
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for corners in (False, True)
    ]
    calls = []
    for option in options:
        image, grid = rng.uniform(-1, 1, (2, 2, 3, 4)), rng.uniform(-1.6, 1.6, (2, 2, 3, 2))
        calls.append(([image.astype(dtype), grid.astype(dtype)], option))
        if option["mode"] != "bicubic" and option["align_corners"]:
            volume, grid = rng.uniform(-1, 1, (1, 2, 2, 3, 2)), rng.uniform(-1.6, 1.6, (1, 2, 1, 2, 3))
            calls.append(([volume.astype(dtype), grid.astype(dtype)], option))
    return calls


def matrices(rng, dtype):
    image, volume = (rng.uniform(-1, 1, shape).astype(dtype) for shape in ((2, 2, 3), (1, 3, 4)))
    calls = [([image], {"size": (2, 1, 3, 4)}), ([volume], {"size": (1, 2, 2, 1, 3)})]
    return [(arrays, {**options, "align_corners": corners}) for arrays, options in calls for corners in (False, True)]


CASES = (
    Case("affine_grid", affine_grid, make=matrices, dtypes=FLOATS, special=False),
    Case("grid_sample", grid_sample, make=images, dtypes=FLOATS, special=False, second=False, meta=False),
)
