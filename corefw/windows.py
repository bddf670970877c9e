"""Arithmetic on windows that slide over spatial dimensions: pure functions of tuples."""

from __future__ import annotations

from corefw.errors import ShapeError
from corefw.shapes import Shape

#: padded sizes and extents of windows beyond this are refused: kernels count in 64 bits, in which sums of a few fit
LARGEST_EXTENT = 2**60


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


def check_extents(op: str, padded: Shape, extent: Shape, *steps: Shape) -> None:
    """Raise ShapeError for windows that kernels cannot count: by their padded sizes and extents, or by strides and
    dilations of more than 64 bits.

    >>> check_extents("unfold", (2**70,), (3,))
    Traceback (most recent call last):
        ...
    corefw.errors.ShapeError: unfold: windows that reach over (3,) places of sizes (1180591620717411303424,) with \
padding are too large to count: sizes must be at most 2**60; choose a smaller kernel, dilation or padding
    """
    if any(size > LARGEST_EXTENT for size in (*padded, *extent)):
        raise ShapeError(
            f"{op}: windows that reach over {tuple(extent)} places of sizes {tuple(padded)} with padding are too large "
            "to count: sizes must be at most 2**60; choose a smaller kernel, dilation or padding"
        )
    for step in steps:
        if any(s >= 2**63 for s in step):
            raise ShapeError(f"{op}: expected strides and dilations that fit 64 bits, got {tuple(step)}")


def meaningful(steps: Shape, counts: Shape) -> Shape:
    """`steps` with 1 where there is only one to count, and the distance to others means nothing.

    >>> meaningful((2**62, 2), (1, 3))
    (1, 2)
    """
    return tuple(1 if count == 1 else step for step, count in zip(steps, counts, strict=True))


def per_dimension(value, n: int) -> tuple:
    """A number for all `n` dimensions, or one for each, as a tuple.

    >>> per_dimension(2, 3), per_dimension([1, 2], 2)
    ((2, 2, 2), (1, 2))
    """
    return tuple(value) if isinstance(value, list | tuple) else (value,) * n


_AXES = {1: "L", 2: "H, W", 3: "D, H, W"}
_DIMENSIONS = {1: "dimension", 2: "two dimensions", 3: "three dimensions"}


def in_dimensions(docs: str, n: int, **words) -> str:
    """The docs that a family shares, for its member of `n` spatial dimensions.

    Args:
        docs: where ``{n}`` stands for the number, ``{axes}`` for the names of the dimensions, ``{dimensions}`` for how
            many there are in words, and ``{4}`` for the size 4 in each.
        n: 1, 2 or 3.
        words: what else is to be put in by name.

    >>> in_dimensions("Conv{n}d of the last {dimensions} of (C, {axes}), such as (2, {5})", 2)
    'Conv2d of the last two dimensions of (C, H, W), such as (2, 5, 5)'
    """
    sizes = [", ".join(str(size) for _ in range(n)) for size in range(10)]
    return docs.format(*sizes, n=n, axes=_AXES[n], dimensions=_DIMENSIONS[n], **words)
