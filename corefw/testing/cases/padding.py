"""Padding."""

import numpy as np

from corefw.testing.case import Case

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def amounts(ndim, pad):
    """(before, after) of every dimension."""
    pairs = list(zip(pad[::2], pad[1::2], strict=True))
    return [(0, 0)] * (ndim - len(pairs)) + pairs[::-1]


def cut(input, pad):
    """The input without what negative amounts take away."""
    edges = amounts(input.ndim, pad)
    return input[tuple(slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(input.shape, edges))]


def constant_pad_nd(input, pad, value=0):
    widths = [(max(b, 0), max(a, 0)) for b, a in amounts(input.ndim, pad)]
    return np.pad(cut(input, pad), widths, constant_values=value)


def indexed_pad(input, pad, mode):
    widths = [(max(b, 0), max(a, 0)) for b, a in amounts(input.ndim, pad)]
    return np.pad(cut(input, pad), widths, mode=MODES[mode])


def indexed_pad_backward(grad, shape, pad, mode):
    source = indexed_pad(np.arange(np.prod(shape)).reshape(shape), pad, mode)
    result = np.zeros(shape, grad.dtype)
    for position, value in np.ndenumerate(grad):
        result.reshape(-1)[source[position]] += value
    return result


def pad(input, pad, mode="constant", value=None):
    return constant_pad_nd(input, pad, value or 0) if mode == "constant" else indexed_pad(input, pad, mode)


INDEXED = [{"pad": p, "mode": mode} for p in ((1, 2), (-1, 1, 2, 0)) for mode in MODES]

#: of which nothing remains along one dimension
EMPTY = [{"pad": (1, -2, -1, -2), "mode": mode} for mode in MODES]
EMPTY += [{"pad": (-3, -1), "mode": "circular"}, {"pad": (-4, 0, 0, 0), "mode": "reflect"}]

CASES = (
    Case(
        "constant_pad_nd",
        constant_pad_nd,
        shapes=(((2, 3, 4),), ((3, 0),)),
        attributes=({"pad": (1, 2)}, {"pad": (0, 1, 2, 1), "value": 1}, {"pad": (1, 0, -1, 2)}, {"pad": (0, 0)}),
    ),
    Case("indexed_pad", indexed_pad, shapes=(((2, 3, 4),),), attributes=INDEXED),
    Case(
        "indexed_pad_backward",
        indexed_pad_backward,
        shapes=(((2, 4, 6),),),
        attributes=(
            {"shape": (2, 4, 3), "pad": (1, 2), "mode": "reflect"},
            {"shape": (2, 3, 4), "pad": (1, 1, 2, -1), "mode": "replicate"},
            {"shape": (2, 3, 3), "pad": (2, 1, 1, 0), "mode": "circular"},
        ),
        dtypes=("int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
        special=False,
    ),
    Case(
        "pad",
        pad,
        shapes=(((2, 3, 4),),),
        attributes=(*INDEXED, *EMPTY, {"pad": (1, 1)}, {"pad": (1, 1, 2, 0), "value": 2.5}),
    ),
)
