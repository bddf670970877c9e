"""Arithmetic on windows that slide over spatial dimensions: pure functions of tuples."""

from __future__ import annotations

from corefw.shapes import Shape


def window_extent(kernel: Shape, dilation: Shape) -> Shape:
    """The sizes that a dilated kernel covers.

    >>> window_extent((3, 2), (1, 4))
    (3, 5)
    """
    return tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))


def window_counts(sizes: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape) -> Shape:
    """How many windows each dimension has.

    >>> window_counts((5, 4), (3, 2), (1, 2), (0, 0), (1, 1))
    (3, 2)
    """
    steps = zip(sizes, window_extent(kernel, dilation), stride, padding, strict=True)
    return tuple((size + 2 * p - e) // s + 1 for size, e, s, p in steps)


def per_dimension(value, n: int) -> tuple:
    """A number for all `n` dimensions, or one for each, as a tuple.

    >>> per_dimension(2, 3), per_dimension([1, 2], 2)
    ((2, 2, 2), (1, 2))
    """
    return tuple(value) if isinstance(value, list | tuple) else (value,) * n
