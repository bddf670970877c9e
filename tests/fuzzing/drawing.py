"""Random dtypes, shapes, values and layouts."""

from __future__ import annotations

from math import inf, nan
from random import Random

import corefw
from tests.fuzzing.programs import LAYOUTS

FLOATING = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
DTYPES = ("bool", *INTEGERS, *FLOATING, *COMPLEX)

#: how often each kind of value is drawn
STYLES = ("exact",) * 10 + ("random",) * 12 + ("special",) * 5 + ("extreme", "equal", "equal")
_SPECIAL = (nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e-3, 3e4)


def dtype(rng: Random, *, floating: float = 0.75) -> str:
    """A dtype, a floating one with this probability."""
    if rng.random() < floating:
        return rng.choice(("float32",) * 6 + ("float64",) * 5 + ("float16", "bfloat16"))
    return rng.choice(DTYPES)


def size(rng: Random) -> int:
    """A size of one dimension: mostly small, sometimes around the widths of vector registers."""
    at = rng.random()
    if at < 0.9:
        return rng.choice((1, 2, 2, 3, 3, 4, 5, 7))
    return 0 if at < 0.93 else rng.choice((8, 9, 15, 16, 17, 31, 33, 64, 65))


def shape(rng: Random, least: int = 0, most: int = 4) -> tuple[int, ...]:
    """A shape of few dimensions."""
    found = tuple(size(rng) for _ in range(rng.choice([n for n in (0, 1, 1, 2, 2, 2, 3, 3, 4) if least <= n <= most])))
    return found if _elements(found) <= 3000 else tuple(min(n, 5) for n in found)


def large_shape(rng: Random, most: int = 3) -> tuple[int, ...]:
    """A shape with enough elements for blocked loops and, at times, for several threads."""
    count = rng.randint(1, most)
    if count == 1:
        return (rng.choice((127, 128, 129, 1000, 4097, 40_000)),)
    return tuple(rng.choice((2, 3, 16, 31, 32, 33, 64, 65, 129)) for _ in range(count - 1)) + (
        rng.choice((1, 7, 17, 33, 64, 65)),
    )


def _elements(sizes) -> int:
    product = 1
    for n in sizes:
        product *= n
    return product


def broadcastable(rng: Random, to: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with another one."""
    found = tuple(1 if rng.random() < 0.2 else n for n in to)
    return found[rng.randint(1, len(found)) :] if found and rng.random() < 0.25 else found


def layout(rng: Random) -> str:
    """A layout, the contiguous one most of the time."""
    return "contiguous" if rng.random() < 0.65 else rng.choice(LAYOUTS[1:])


def number(rng: Random, dtype: str, style: str = "exact"):
    """One value of a style."""
    if dtype == "bool":
        return rng.random() < 0.5
    if dtype in INTEGERS:
        limits = corefw.iinfo(getattr(corefw, dtype))
        if style in ("special", "extreme"):
            return rng.choice((0, 1, -1 % (limits.max + 1), 2, limits.max, limits.min, limits.max // 2, 100))
        return rng.randint(0 if dtype == "uint8" else -4, 5)
    if dtype in COMPLEX:
        return complex(number(rng, "float64", style), number(rng, "float64", style))
    if style == "exact":
        return rng.randint(-12, 12) / 4
    if style == "positive":
        return rng.randint(1, 16) / 8
    if style == "special" and rng.random() < 0.8:
        return rng.choice(_SPECIAL)
    if style == "extreme" and rng.random() < 0.8:
        limits = corefw.finfo(getattr(corefw, dtype))
        return rng.choice((*_SPECIAL, limits.max, -limits.max, limits.tiny, limits.tiny / 4, limits.eps))
    return rng.uniform(-3, 3) if rng.random() < 0.95 else rng.uniform(-100, 100)


def values(rng: Random, dtype: str, style: str, count: int = 13) -> tuple:
    """A few values of a style: what a leaf's memory repeats. Their number has no factor in common with most sizes."""
    if style == "equal":
        return (number(rng, dtype),)
    return tuple(number(rng, dtype, style) for _ in range(count))


def style(rng: Random) -> str:
    return rng.choice(STYLES)


def dimension(rng: Random, ndim: int) -> int:
    """A dimension's number, at times one that does not exist."""
    if rng.random() < 0.02:
        return rng.choice((ndim, -ndim - 1, 7))
    return rng.randint(-ndim, ndim - 1) if ndim else rng.choice((0, -1))
