"""Arithmetic on shapes, dimensions and strides: pure functions of tuples."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from operator import index
from typing import SupportsIndex, overload

from corefw.errors import DimensionError, ShapeError

Shape = tuple[int, ...]


class Size(tuple[int, ...]):
    """A tensor's shape: a tuple that prints as PyTorch's and counts its elements.

    >>> Size((2, 3)), Size((2, 3)).numel()
    (torch.Size([2, 3]), 6)
    """

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> Size: ...
    def __getitem__(self, key):
        found = tuple.__getitem__(self, key)
        return Size(found) if key.__class__ is slice else found

    def __add__(self, other: tuple) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __reduce__(self):
        return Size, (tuple(self),)


class _Sizes(dict):
    """{shape: its Size}, made when first asked for: finding it takes less than making it. Programs with very many
    shapes begin anew from time to time."""

    def __missing__(self, shape: Shape) -> Size:
        if len(self) == 4096:
            self.clear()
        return self.setdefault(shape, Size(shape))


sizes = _Sizes()


def canonical_dim(dim: int, ndim: int) -> int:
    """`dim` as a number from 0 to ndim - 1; a 0-d tensor takes dim 0 and -1. Raises IndexError out of range.

    >>> canonical_dim(-1, 3)
    2
    """
    if dim.__class__ is int and -ndim <= dim < ndim:
        return dim + ndim if dim < 0 else dim
    size = ndim or 1
    try:
        dim = index(dim)
    except TypeError:
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}") from None
    if not -size <= dim < size:
        raise DimensionError(
            f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {dim})"
        )
    return dim + size if dim < 0 else dim


def canonical_dims(dims, ndim: int) -> Shape | None:
    """`dims` (an int, several, or none for all) as a sorted tuple of non-negative ints, or None for all
    (as for every dimension of a 0-d tensor).

    >>> canonical_dims((-1, 0), 3), canonical_dims((), 3)
    ((0, 2), None)
    """
    if dims is None:
        return None
    if dims.__class__ is int:
        dim = canonical_dim(dims, ndim)
        return (dim,) if ndim else None
    try:
        given = [d if d.__class__ is int and 0 <= d < ndim else canonical_dim(d, ndim) for d in dims]
    except TypeError:
        given = [canonical_dim(dims, ndim)]
    if len(given) == 1 and ndim:
        return tuple(given)
    if len(set(given)) != len(given):
        repeated = next(d for d in given if given.count(d) > 1)
        raise ShapeError(f"dim {repeated} appears multiple times in the list of dims")
    return tuple(sorted(given)) or None if ndim else None


def as_shape(sizes) -> Shape:
    """Sizes given as one sequence, one int, or the tuple of several arguments, as a tuple of ints.

    >>> as_shape(3), as_shape([2, 3]), as_shape(((2, 3),))
    ((3,), (2, 3), (2, 3))
    """
    if sizes.__class__ is int:
        return (sizes,)
    if sizes.__class__ is tuple:
        for n in sizes:
            if n.__class__ is not int:
                break
        else:
            return sizes
    try:
        sizes = tuple(sizes)
    except TypeError:
        return (index(sizes),)
    if len(sizes) == 1 and not hasattr(sizes[0], "__index__"):
        sizes = tuple(sizes[0])
    return tuple(map(index, sizes))


def roll_arguments(shifts, dims) -> tuple[Shape, Shape]:
    """The shifts of a roll and its dimensions, of which there are none if the flattened array is rolled.

    >>> roll_arguments(3, None), roll_arguments([1, 2], (0, -1))
    (((3,), ()), ((1, 2), (0, -1)))
    """
    shifts, dims = as_shape(shifts), () if dims is None else as_shape(dims)
    if not shifts:
        raise ShapeError("`shifts` required")
    if len(shifts) != (len(dims) or 1):
        raise ShapeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    return shifts, dims


def broadcast(*shapes: Shape) -> Shape:
    """The shape that all `shapes` broadcast to: aligned at the right, sizes equal or 1.

    >>> broadcast((3, 1), (4,))
    (3, 4)
    """
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for position, shape in enumerate(shapes):
        for i, size in enumerate(shape, ndim - len(shape)):
            if size != 1 and size != result[i]:
                if result[i] != 1:
                    raise ShapeError(
                        f"The size of tensor {'abcdefgh'[0 if position < 2 else position - 1]} ({result[i]}) must "
                        f"match the size of tensor {'abcdefgh'[position]} ({size}) at non-singleton dimension {i}; "
                        f"shapes {', '.join(str(list(s)) for s in shapes)}"
                    )
                result[i] = size
    return tuple(result)


def same_shape(input: Shape, *attributes) -> Shape:
    """The shape rule of an op whose result has the shape of its first tensor."""
    return input


def reduced(shape: Shape, dims: Shape | None, keepdim: bool) -> Shape:
    """The shape after reducing over `dims` (None: all).

    >>> reduced((2, 3, 4), (1,), False), reduced((2, 3), None, True)
    ((2, 4), (1, 1))
    """
    if dims is None:
        return (1,) * len(shape) if keepdim else ()
    if keepdim:
        return tuple(1 if i in dims else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in dims)


def contiguous_strides(shape: Shape) -> Shape:
    """Row-major strides in elements; sizes of 0 count as 1, as PyTorch's.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size or 1
    return tuple(reversed(strides))


def extent(shape: Shape, strides: Shape, offset: int = 0) -> int:
    """How many elements of memory a tensor needs that lies so in it; ShapeError if none can.

    >>> extent((2, 3), (10, 1), 5)
    18
    """
    numbers = (offset, *shape, *strides)
    if len(shape) != len(strides) or any(number.__class__ is not int or number < 0 for number in numbers):
        raise ShapeError(
            f"a tensor cannot have sizes {list(shape)}, strides {list(strides)} and storage offset {offset}: all are "
            "integers that are not negative, and there are as many strides as sizes"
        )
    if prod(shape) >= 2**63:
        raise ShapeError(f"numel: integer multiplication overflow, sizes {list(shape)}")
    return 0 if 0 in shape else offset + 1 + sum((n - 1) * stride for n, stride in zip(shape, strides))


#: elements of a range, which is computed in types of 8 bytes: bytes are counted in 64 bits
MOST_ELEMENTS = 2**60 - 1


def turned_slice(item: slice, size: int) -> slice:
    """The slice of positive step that shows what `item`, of negative step, shows of a dimension: in reverse order.

    >>> turned_slice(slice(None, None, -2), 4)
    slice(1, 4, 2)
    """
    shown = range(size)[item]
    return slice(shown[-1], shown[0] + 1, -shown.step) if shown else slice(0, 0)


def check_storage(sizes: Shape, itemsize: int) -> None:
    """Raise ShapeError for sizes whose elements, of `itemsize` bytes each, are too many to count.

    >>> check_storage((2**62, 3), 4)
    Traceback (most recent call last):
        ...
    corefw.errors.ShapeError: Storage size calculation overflowed with sizes=[4611686018427387904, 3]
    """
    if prod(n for n in sizes if n) * itemsize >= 2**63:
        raise ShapeError(f"Storage size calculation overflowed with sizes={list(sizes)}")


def infer_size(sizes: Shape, numel: int) -> Shape:
    """`sizes` with a single -1 replaced so that the product is `numel`. Raises RuntimeError when that cannot be.

    >>> infer_size((2, -1), 6)
    (2, 3)
    """
    known = prod(n for n in sizes if n != -1)
    unknown = [i for i, n in enumerate(sizes) if n == -1]
    invalid = [n for n in sizes if n < -1]
    if invalid:
        raise ShapeError(f"invalid shape dimension {invalid[0]} in {list(sizes)}")
    if len(unknown) > 1:
        raise ShapeError(f"only one dimension can be inferred, got {list(sizes)}")
    if unknown and known == 0 and numel == 0:
        raise ShapeError(
            f"cannot reshape tensor of 0 elements into shape {list(sizes)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if (known == 0 and numel) or (unknown and numel % known) or (not unknown and known != numel):
        raise ShapeError(f"shape '{list(sizes)}' is invalid for input of size {numel}")
    if unknown:
        sizes = tuple(numel // known if n == -1 else n for n in sizes)
    return sizes


@lru_cache(maxsize=1024)
def view_strides(shape: Shape, strides: Shape, sizes: Shape) -> Shape | None:
    """Strides that show memory of `shape` and `strides` under `sizes` without a copy, or None if there are none.

    >>> view_strides((2, 3), (3, 1), (3, 2)), view_strides((2, 3), (1, 2), (6,))
    ((2, 1), None)
    """
    if prod(shape) == 0:
        return strides if shape == sizes else contiguous_strides(sizes)
    result = []
    at = len(sizes) - 1
    chunk_stride = strides[-1] if strides else 1
    chunk = view = 1
    for i in range(len(shape) - 1, -1, -1):
        chunk *= shape[i]
        if i == 0 or (shape[i - 1] != 1 and strides[i - 1] != chunk * chunk_stride):
            while at >= 0 and (view < chunk or sizes[at] == 1):
                result.append(view * chunk_stride)
                view *= sizes[at]
                at -= 1
            if view != chunk:
                return None
            if i > 0:
                chunk_stride = strides[i - 1]
                chunk = view = 1
    while at >= 0:  # a 0-d tensor under sizes of ones
        result.append(1)
        at -= 1
    return tuple(reversed(result))


def permuted_strides(shape: Shape, order: Shape) -> Shape:
    """The strides of a dense tensor whose dimensions lie in memory in `order`, the outermost first.

    >>> permuted_strides((2, 3, 5), (0, 2, 1))
    (15, 1, 3)
    """
    inner = contiguous_strides(tuple(shape[d] for d in order))
    strides = [0] * len(shape)
    for d, stride in zip(order, inner):
        strides[d] = stride
    return tuple(strides)


def preserved_strides(shape: Shape, strides: Shape) -> Shape:
    """The strides of a new tensor like one of `shape` and `strides`: the same memory order, without gaps.

    One with overlapping elements (an expanded one) gives a contiguous one.

    >>> preserved_strides((2, 3), (1, 2)), preserved_strides((2, 3), (1, 4)), preserved_strides((2, 3), (0, 1))
    ((1, 2), (1, 2), (3, 1))
    """
    order = sorted(range(len(shape)), key=lambda d: (strides[d], shape[d]))
    step = 1
    for d in order:
        if shape[d] > 1:
            if strides[d] != step:
                break
            step *= shape[d]
    else:
        return strides
    if any(strides[d] == 0 and shape[d] > 1 for d in order):
        return contiguous_strides(shape)
    return permuted_strides(shape, tuple(reversed(order)))


def packed_steps(batch_sizes: Shape, reverse: bool = False) -> list[Shape]:
    """The steps of sequences packed one step after the other, as (first row, row after the last, number of rows), in
    the order in which a recurrence visits them; `batch_sizes` do not grow.

    >>> packed_steps((3, 2)), packed_steps((3, 2), reverse=True)
    ([(0, 3, 3), (3, 5, 2)], [(3, 5, 2), (0, 3, 3)])
    """
    steps: list[Shape] = []
    start = 0
    for size in batch_sizes:
        steps.append((start, start + size, size))
        start += size
    return steps[::-1] if reverse else steps


# -- rules of reductions ----------------------------------------------------------------------------------------------
def reduced_shape(input: Shape, dim=None, keepdim=False, *attributes) -> Shape:
    """The input's shape without the dimensions reduced over."""
    return reduced(input, (dim,) if dim.__class__ is int else dim, keepdim)


def nonempty(name: str, error: type[Exception] = ShapeError):
    """The shape rule of a reduction that has no value for nothing, such as a maximum."""

    def shape(input: Shape, dim=None, keepdim=False, *attributes) -> Shape:
        if dim is None and not prod(input):
            raise error(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                "Specify the reduction dim with the 'dim' argument."
            )
        for d in (dim,) if dim.__class__ is int else dim or ():
            if input and not input[d]:
                raise DimensionError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        return reduced_shape(input, dim, keepdim)

    return shape


def values_and_indices(input: Shape, *attributes) -> tuple[Shape, Shape]:
    """The shape rule of an op that gives a value and its position for every element."""
    return input, input


def picked(name: str):
    """The shape rule of a reduction that picks an element: its value and its position."""
    rule = nonempty(name)

    def shape(input: Shape, dim, keepdim, *attributes) -> tuple[Shape, Shape]:
        result = rule(input, dim, keepdim)
        return result, result

    return shape


def count_reduced(shape: Shape, dim) -> int:
    """How many elements are reduced to one."""
    return prod(shape) if dim is None else prod(shape[d] for d in dim)


# -- rules of ops on matrices -----------------------------------------------------------------------------------------
def check_matrices(name: str, shape) -> None:
    """Refuse a shape without room for matrices."""
    if len(shape) < 2:
        raise ShapeError(f"{name}: The input tensor A must have at least 2 dimensions.")


def check_square(name: str, shape):
    """The shape itself; refused unless its matrices are square."""
    check_matrices(name, shape)
    if shape[-1] != shape[-2]:
        raise ShapeError(
            f"{name}: A must be batches of square matrices, but they are {shape[-2]} by {shape[-1]} matrices"
        )
    return shape
