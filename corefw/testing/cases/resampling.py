"""Resampling, as a matrix of weights per dimension."""

from math import floor

import numpy as np

from corefw.testing.case import Case

FILTERS = {"linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


def keys(x, a):
    """Keys' cubic kernel."""
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0


def tent(x):
    return max(0, 1 - abs(x))


def row(i, size, step, filter, align_corners, antialias):
    """The weights of the input's elements at place i."""
    weights = np.zeros(size)
    if filter.startswith("nearest"):
        weights[min(floor((i if filter == "nearest" else i + 0.5) * step), size - 1)] = 1
    elif antialias:
        width, center = max(step, 1), (i + 0.5) * step
        support = width * (2 if filter == "cubic" else 1)
        for j in range(max(int(center - support + 0.5), 0), min(int(center + support + 0.5), size)):
            x = (j - center + 0.5) / width
            weights[j] = keys(x, -0.5) if filter == "cubic" else tent(x)
        weights /= weights.sum()
    else:
        center = i * step if align_corners else (i + 0.5) * step - 0.5
        center = max(center, 0) if filter == "linear" else center
        for j in range(floor(center) - 2, floor(center) + 4):
            x = j - center
            weights[min(max(j, 0), size - 1)] += keys(x, -0.75) if filter == "cubic" else tent(x)
    return weights


def matrix(size, count, filter, align_corners, scale, antialias):
    if align_corners:
        step = (size - 1) / (count - 1) if count > 1 else 0
    else:
        step = 1 / scale if scale else size / count
    return np.stack([row(i, size, step, filter, align_corners, antialias) for i in range(count)])


def resample(input, sizes, filter, align_corners, scales, antialias):
    for axis, (count, scale) in enumerate(zip(sizes, scales), 2):
        weights = matrix(input.shape[axis], count, filter, align_corners, scale, antialias)
        input = np.moveaxis(np.tensordot(input, weights, (axis, 1)), -1, axis)
    return input


def resample_backward(output_grad, sizes, filter, align_corners, scales, antialias):
    for axis, (size, scale) in enumerate(zip(sizes, scales), 2):
        weights = matrix(size, output_grad.shape[axis], filter, align_corners, scale, antialias)
        output_grad = np.moveaxis(np.tensordot(output_grad, weights, (axis, 0)), -1, axis)
    return output_grad


def area(input, sizes):
    for axis, count in enumerate(sizes, 2):
        size = input.shape[axis]
        bounds = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
        input = np.stack([input.take(range(*b), axis).mean(axis) for b in bounds], axis)
    return input


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
    antialias=False,
):  # fmt: skip
    n = input.ndim - 2
    scales = scale_factor if isinstance(scale_factor, tuple) else (scale_factor,) * n
    if size is None:
        size = tuple(floor(old * scale) for old, scale in zip(input.shape[2:], scales))
    sizes = size if isinstance(size, tuple) else (size,) * n
    if mode == "area":
        return area(input, sizes)
    scales = (None,) * n if recompute_scale_factor else scales
    return resample(input, sizes, FILTERS.get(mode, mode), bool(align_corners), scales, antialias)


def channel_shuffle(input, groups):
    order = [
        c for start in range(input.shape[1] // groups) for c in range(start, input.shape[1], input.shape[1] // groups)
    ]
    return input[:, order]


RESAMPLED = tuple(
    {"filter": filter, "align_corners": corners, "scales": (None, scale), "antialias": antialias}
    for filter, corners, scale, antialias in (
        ("nearest", False, None, False),
        ("nearest-exact", False, None, False),
        ("linear", False, 1.5, False),
        ("linear", True, None, False),
        ("cubic", False, None, False),
        ("cubic", True, None, False),
        ("linear", False, None, True),
        ("cubic", False, None, True),
    )
)
PLANE = ("nearest", "nearest-exact", "area", "bilinear", "bicubic")
FLOATS = ("float16", "bfloat16", "float32", "float64")

CASES = (
    Case(
        "resample",
        resample,
        shapes=(((2, 3, 5, 4),), ((0, 3, 5, 4),)),
        attributes=tuple({"sizes": (3, 6), **attributes} for attributes in RESAMPLED),
        dtypes=FLOATS,
        special=False,
    ),
    Case(
        "resample_backward",
        resample_backward,
        shapes=(((2, 3, 3, 6),),),
        attributes=tuple({"sizes": (5, 4), **attributes} for attributes in RESAMPLED),
        dtypes=FLOATS,
        special=False,
    ),
    Case(
        "interpolate",
        interpolate,
        shapes=(((2, 3, 5, 4),), ((2, 3, 5),), ((1, 2, 3, 2, 3),)),
        attributes=(
            *({"size": 3, "mode": mode} for mode in (*PLANE, "linear", "trilinear")),
            *({"scale_factor": 1.6, "mode": mode, "align_corners": True} for mode in FILTERS),
            *({"scale_factor": 1.6, "mode": mode} for mode in ("nearest", "bilinear")),
            {"scale_factor": (0.7, 2.0), "mode": "bicubic", "antialias": True},
            {"scale_factor": 0.7, "mode": "bilinear", "recompute_scale_factor": True},
        ),
        valid=lambda input, mode="nearest", **_: (
            len(input) - 2
            in {"linear": (1,), "trilinear": (3,), "bilinear": (2,), "bicubic": (2,)}.get(mode, (1, 2, 3))
        ),
        special=False,
    ),
    Case(
        "upsample_nearest",
        interpolate,
        shapes=(((2, 3, 2, 3),),),
        attributes=({"scale_factor": 2}, {"size": (3, 5)}),
        special=False,
    ),
    Case(
        "upsample_bilinear",
        lambda input, **sizes: interpolate(input, mode="bilinear", align_corners=True, **sizes),
        shapes=(((2, 3, 2, 3),),),
        attributes=({"scale_factor": 2}, {"size": (3, 5)}),
        special=False,
    ),
    Case(
        "upsample",
        interpolate,
        shapes=(((2, 3, 2, 3),),),
        attributes=({"scale_factor": 2}, {"size": (3, 5), "mode": "bilinear", "align_corners": True}),
        special=False,
    ),
    Case(
        "channel_shuffle",
        channel_shuffle,
        shapes=(((2, 6, 3),), ((1, 6, 2, 2),)),
        attributes=({"groups": 2}, {"groups": 3}),
    ),
)
