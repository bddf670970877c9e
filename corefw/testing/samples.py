"""Samples of a Case: the NumPy arguments of its calls, and tensors of every memory layout made from them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.devices import device
from corefw.dispatch.declare import ops
from corefw.dispatch.registry import dispatch_key_of
from corefw.dtypes import dtype
from corefw.graph.nodes import leaf_node
from corefw.shapes import as_shape, contiguous_strides
from corefw.tensor import Tensor, wrap
from corefw.testing.case import Case
from corefw.testing.comparison import host


@dataclass(frozen=True)
class Sample:
    """One call: arguments by position and by keyword, with NumPy arrays where the op takes tensors."""

    arguments: tuple = ()
    keywords: dict[str, Any] = field(default_factory=dict)

    def map(self, change: Callable[[np.ndarray], Any]) -> Sample:
        """The call with every array replaced by what `change` makes of it."""

        def changed(value):
            if isinstance(value, np.ndarray | np.generic):
                return change(np.asarray(value))
            if isinstance(value, list | tuple) and any(isinstance(item, np.ndarray | np.generic) for item in value):
                return [changed(item) for item in value]
            return value

        return Sample(tuple(map(changed, self.arguments)), {k: changed(v) for k, v in self.keywords.items()})

    def map_numbered(self, change: Callable[[int, np.ndarray], Any]) -> Sample:
        """As `map`; `change` is also told how many arrays came before."""
        position = count()
        return self.map(lambda array: change(next(position), array))

    def with_array(self, position: int, other: np.ndarray) -> Sample:
        """The call with another array at one position among all arrays."""
        return self.map_numbered(lambda i, array: other if i == position else array)

    def arrays(self) -> list[np.ndarray]:
        """Every array of the call, in order."""
        found: list[np.ndarray] = []
        self.map(lambda array: found.append(array))
        return found

    def largest(self) -> int:
        """The number of elements of the largest array; 0 where no array has any."""
        return max((array.size for array in self.arrays()), default=0)

    def __str__(self) -> str:
        def text(value):
            if isinstance(value, np.ndarray):
                return f"{value.dtype}{list(value.shape)}"
            return "[" + ", ".join(map(text, value)) + "]" if isinstance(value, list) else repr(value)

        items = [text(value) for value in self.arguments] + [f"{k}={text(v)}" for k, v in self.keywords.items()]
        return "(" + ", ".join(items) + ")"


def generator(case: Case) -> np.random.Generator:
    """Random numbers that depend on the row's op alone."""
    return np.random.default_rng(zlib.crc32(case.op.encode()))


def draw(rng: np.random.Generator, shape, d: dtype, low: float, high: float) -> np.ndarray:
    """Random elements of dtype `d` from ``[low, high]``; complex ones in both parts."""
    if d is dtypes.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if d.category == dtypes.INTEGER:
        info = dtypes.iinfo(d)
        first = int(max(np.ceil(low), info.min))
        last = int(min(np.floor(high), info.max))
        return np.asarray(rng.integers(first, max(first, last), shape, endpoint=True)).astype(d.numpy)
    values = rng.uniform(low, high, shape)
    if d.is_complex:
        values = values + 1j * rng.uniform(low, high, shape)
    return np.asarray(values).astype(d.numpy)


def samples(case: Case, d: dtype) -> list[Sample]:
    """The calls of a case for one dtype; the same ones every time."""
    rng = generator(case)
    if case.make is not None:
        assert d.numpy is not None
        made = [Sample(tuple(arguments), dict(keywords)) for arguments, keywords in case.make(rng, d.numpy)]
        return [sample.map(np.asarray) for sample in made]
    return [
        Sample(tuple(draw(rng, shape, d, *case.domain) for shape in shapes), dict(attributes))
        for shapes in case.shapes
        for attributes in case.attributes
        if case.valid(*shapes, **attributes)
    ]


_SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5])
#: draws of a sample: as many as give so many elements, among which most pairs of special values meet; within bounds
_DRAWN, _FEWEST, _MOST = 150, 6, 24


def special_samples(case: Case, d: dtype, draws: int | None = None) -> list[Sample]:
    """The calls of a case with NaN, infinities and zeros of both signs among the elements, each in so many draws."""
    rng = generator(case)

    def fill(array: np.ndarray) -> np.ndarray:
        if array.dtype != d.numpy:
            return array
        return np.where(rng.random(array.shape) < 0.8, rng.choice(_SPECIAL, array.shape), array).astype(array.dtype)

    def count(sample: Sample) -> int:
        return draws or min(_MOST, max(_FEWEST, -(-_DRAWN // sample.largest())))

    return [sample.map(fill) for sample in samples(case, d) if sample.largest() for _ in range(count(sample))]


# -- tensors from arrays ----------------------------------------------------------------------------------------------
def to_tensor(array: np.ndarray, on: str | device = "cpu") -> Tensor:
    """A new contiguous tensor with the array's content."""
    where = device(on)
    dispatch_key = dispatch_key_of(where, dtypes.of_numpy(array.dtype))
    return wrap(
        dispatch_key.runtime.upload(np.array(array, order="C", copy=True), dispatch_key.device.index), dispatch_key
    )


def of_foreign_bytes(array: np.ndarray, on: str | device = "cpu") -> Tensor:
    """The same, but what is True is any byte other than 0, as files and other programs may have it."""
    if array.dtype.kind == "b":
        array = (array * np.resize(np.array([255, 7, 1], np.uint8), array.shape)).view(np.bool_)
    return to_tensor(array, on)


def _viewed(memory: np.ndarray, shape, strides, offset: int, on) -> Tensor:
    """A tensor that shows `memory`, uploaded as it is, under this geometry (strides and offset in elements)."""
    base = to_tensor(memory, on)
    return wrap(
        base.dispatch_key.runtime.as_strided(base.array, tuple(shape), tuple(strides), offset), base.dispatch_key
    )


def strided(array: np.ndarray, on) -> Tensor:
    """Every second element along each dimension, from the second element of the memory on."""
    spread = np.full([2 * n + 2 for n in array.shape] or [2], _filler(array.dtype), array.dtype)
    if array.ndim == 0:
        spread[1] = array
        return _viewed(spread, (), (), 1, on)
    spread[tuple(slice(1, 2 * n + 1, 2) for n in array.shape)] = array
    strides = contiguous_strides(spread.shape)
    return _viewed(spread, array.shape, [2 * s for s in strides], sum(strides), on)


def transposed(array: np.ndarray, on) -> Tensor:
    """The dimensions in reverse order in memory."""
    strides = tuple(reversed(contiguous_strides(tuple(reversed(array.shape)))))
    return _viewed(np.ascontiguousarray(array.T).reshape(array.T.shape), array.shape, strides, 0, on)


def expanded(array: np.ndarray, on) -> Tensor:
    """The first dimension repeated without memory (its stride is 0); other values than the array's."""
    if array.ndim == 0 or array.size == 0:
        return to_tensor(array, on)
    row = np.ascontiguousarray(array[:1])
    return _viewed(row, array.shape, (0, *contiguous_strides(row.shape)[1:]), 0, on)


def _filler(numpy_dtype: np.dtype):
    """A value that shows when a kernel reads what lies between the elements."""
    category = dtypes.of_numpy(numpy_dtype).category
    return {dtypes.BOOL: True, dtypes.INTEGER: 99}.get(category, np.nan)


#: how a tensor may lie in memory, by name
LAYOUTS: dict[str, Callable[..., Tensor]] = {
    "strided": strided,
    "transposed": transposed,
    "expanded": expanded,
}


def require_gradients(values) -> Iterator[Tensor]:
    """Make the floating tensors among `values`, and in lists there, leaves that require a gradient; yields them."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from require_gradients(value)
        elif isinstance(value, Tensor) and value.dispatch_key.dtype.category >= dtypes.FLOATING:
            value.node = leaf_node(value)
            yield value


def make_tensor(
    *shape, dtype: dtype, device: str | device = "cpu", low: float | None = None, high: float | None = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False, memory_format=None,
) -> Tensor:  # fmt: skip
    """A tensor with random elements from ``[low, high)``.

    Args:
        shape: sizes, as one sequence or several ints.
        low, high: the range; by default [-9, 9] for floating and complex dtypes, [-9, 10) for signed and [0, 10) for
            unsigned integers.
        requires_grad: whether the tensor is a leaf that requires a gradient.
        noncontiguous: whether it shows every second element of a larger memory.
        exclude_zero: whether zeros are replaced by the smallest positive number (1 for integers).
        memory_format: accepted for compatibility; only the contiguous format exists here.

    >>> import corefw as torch
    >>> torch.testing.make_tensor(2, 3, dtype=torch.float64, low=0, high=1).shape
    torch.Size([2, 3])
    """
    if requires_grad and dtype.category < dtypes.FLOATING:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype!r}")
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive")
    low = (-9 if dtype.is_signed else 0) if low is None else low
    high = (9 if dtype.category >= dtypes.FLOATING else 10) if high is None else high
    if not low <= high:
        raise ValueError(f"make_tensor: low must be at most high, got {low} and {high}")
    last = high - 1 if dtype.category == dtypes.INTEGER and high > low else high
    seed = int(host(ops.randint(0, 2**31 - 1, (1,)))[0])  # so that manual_seed decides
    values = draw(np.random.default_rng(seed), as_shape(shape), dtype, low, last)
    if exclude_zero:
        smallest = dtypes.finfo(dtype).tiny if dtype.category >= dtypes.FLOATING else 1
        values = np.where(values == 0, np.asarray(smallest, values.dtype), values)
    result = (strided if noncontiguous and values.size > 1 else to_tensor)(values, device)
    if requires_grad:
        result.node = leaf_node(result)
    return result
