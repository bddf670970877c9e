"""Ops that make tensors on a device from no tensor, convert between dtypes, and write into what they are given."""

from __future__ import annotations

import numpy as np

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.dtypes import dtype
from corefw.testing.behaviour import behaviour
from corefw.testing.comparison import compare_values, host, host_of
from corefw.testing.samples import LAYOUTS, draw, to_tensor
from corefw.testing.targets import Target, dispatch_key

ALL = tuple(d.name for d in dtypes.ALL)
NUMBERS = tuple(name for name in ALL if name not in ("bool", "uint16", "uint32", "uint64"))
_SHAPES: tuple[tuple[int, ...], ...] = ((), (5,), (2, 3), (0, 4))


@behaviour("ops", "zeros_at", dtypes=ALL)
def zeros(target: Target, d: dtype) -> None:
    """Zeros of every shape."""
    for shape in _SHAPES:
        made = host_of(ops.zeros_at(dispatch_key(target, d), shape, d.numpy), d)
        compare_values(made, np.zeros(shape, d.numpy), 0, 0)


@behaviour("ops", "full_at", dtypes=ALL)
def full(target: Target, d: dtype) -> None:
    """A number everywhere; the extremes of integers, NaN and infinities of the others."""
    values: list[float] = [1]
    if d.category == dtypes.INTEGER:
        values += [dtypes.iinfo(d).min, dtypes.iinfo(d).max]
    elif d.category >= dtypes.FLOATING:
        values += [np.nan, np.inf, -np.inf, -0.0]
    for shape in _SHAPES:
        for value in values:
            made = host_of(ops.full_at(dispatch_key(target, d), shape, value, d.numpy), d)
            assert made.tobytes() == np.full(shape, value, d.numpy).tobytes() or np.isnan(value), f"{made} for {value}"
            compare_values(made, np.full(shape, value, d.numpy), 0, 0)


@behaviour("ops", "arange_at", dtypes=NUMBERS[: NUMBERS.index("complex64")])
def ascending(target: Target, d: dtype) -> None:
    """``start + i * step``, upwards and downwards."""
    for start, step, count in ((0, 1, 7), (3, 2, 5), (100, -7, 9), (0, 1, 0)):
        made = host_of(ops.arange_at(dispatch_key(target, d), start, step, count, d.numpy), d)
        compare_values(made, (start + step * np.arange(count)).astype(d.numpy), 0, 0)


@behaviour("ops", "linspace_at", dtypes=("float32", "float64", "float16", "bfloat16", "int32", "int64"))
def evenly(target: Target, d: dtype) -> None:
    """Numbers at equal distances; both ends are exact."""
    for start, end, steps in ((0, 6, 7), (-3, 3, 7), (2, 9, 1), (0, 1, 0)):
        made = host_of(ops.linspace_at(dispatch_key(target, d), start, end, steps, d.numpy), d)
        tolerance = 2 * dtypes.finfo(d).eps if d.category >= dtypes.FLOATING else 0
        compare_values(made, np.linspace(start, end, steps).astype(d.numpy), tolerance, tolerance)


@behaviour("ops", "eye_at", dtypes=NUMBERS)
def diagonal(target: Target, d: dtype) -> None:
    """Ones on the diagonal of matrices of every shape."""
    for n, m in ((3, 3), (2, 5), (4, 1), (0, 3)):
        made = host_of(ops.eye_at(dispatch_key(target, d), n, m, d.numpy), d)
        compare_values(made, np.eye(n, m).astype(d.numpy), 0, 0)


@behaviour("ops", "cast", dtypes=ALL)
def conversion(target: Target, d: dtype) -> None:
    """To `d` from every dtype, from strided memory too."""
    known = dispatch_key(target, d).runtime.dtypes
    for source in (s for s in dtypes.ALL if s in known and not (s.is_complex and not d.is_complex)):
        values = draw(np.random.default_rng(0), (3, 5), source, 0, 3)
        if source.category == dtypes.INTEGER:
            values[0, :2] = dtypes.iinfo(source).min, dtypes.iinfo(source).max
        for layout in (to_tensor, *LAYOUTS.values()):
            tensor = layout(values, target.device)
            before = host(tensor).copy()
            with np.errstate(over="ignore"):
                wanted = before.astype(d.numpy)
            compare_values(host_of(tensor.to(d), d), wanted, 0, 0)
            assert host(tensor).tobytes() == before.tobytes(), "the input was changed"


@behaviour("ops", "copy_", dtypes=ALL)
def copying(target: Target, d: dtype) -> None:
    """Into strided memory, with what lies between left alone; of what broadcasts."""
    rng = np.random.default_rng(0)
    for shape in ((3, 5), (5,), (1, 5), ()):
        source = draw(rng, shape, d, 0, 3)
        memory = to_tensor(draw(rng, (6, 10), d, 0, 3), target.device)
        before = host(memory).copy()
        memory[::2, 1::2].copy_(to_tensor(source, target.device))
        before[::2, 1::2] = source
        assert host(memory).tobytes() == before.tobytes(), "other elements than those of the view are there"


@behaviour("ops", "zero_", dtypes=ALL)
def zeroing(target: Target, d: dtype) -> None:
    """The elements of a view alone become zero."""
    memory = to_tensor(draw(np.random.default_rng(0), (6, 10), d, 1, 3), target.device)
    before = host(memory).copy()
    memory[1::2].zero_()
    before[1::2] = 0
    assert host(memory).tobytes() == before.tobytes(), "other elements than those of the view are there"


@behaviour("ops", "unique_values", dtypes=NUMBERS[: NUMBERS.index("complex64")])
def distinct(target: Target, d: dtype) -> None:
    """Distinct elements in order, where each element's like is, and how often each occurs."""
    for shape in ((12,), (1,), (0,)):
        array = draw(np.random.default_rng(0), shape, d, 0, 4)
        tensor = to_tensor(array, target.device)
        found = ops.unique_values(tensor, None, False)
        wanted = np.unique(array, return_inverse=True, return_counts=True)
        for made, right, kind in zip(found, wanted, (d, dtypes.int64, dtypes.int64), strict=True):
            compare_values(host_of(made, kind), right, 0, 0)
        assert host(tensor).tobytes() == array.tobytes(), "the input was changed"
