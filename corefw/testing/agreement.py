"""The property that the backends of one device agree: what a faster kernel does at sizes that a row does not list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from math import prod

import numpy as np

from corefw import dtypes
from corefw.devices import device
from corefw.dispatch.op import Op
from corefw.dispatch.registry import dispatch_key_of
from corefw.tensor import Tensor, wrap
from corefw.testing.case import Case
from corefw.testing.checks import about, call, case_dtypes, property_of
from corefw.testing.expectations import compare_calls
from corefw.testing.samples import LAYOUTS, Sample, samples, special_samples, to_tensor
from corefw.testing.targets import Target

#: what the sizes of a row's shapes become: around the widths of SIMD registers, primes, and enough for several threads
_SIZES = ((1, 3, 17, 65), (2, 15, 63, 5), (16, 64, 1, 7), (31, 129, 33, 2), (1, 509, 521, 3))
_MOST = 400_000  # elements


def reversed_(array: np.ndarray, on) -> Tensor:
    """The first dimension backwards in memory, on devices whose arrays may have negative strides."""
    if array.ndim == 0:
        return to_tensor(array, on)
    dispatch_key = dispatch_key_of(device(on), dtypes.of_numpy(array.dtype))
    return wrap(
        dispatch_key.runtime.upload(np.array(array[::-1], order="C")[::-1], dispatch_key.device.index), dispatch_key
    )


def _resized(case: Case, sizes: tuple[int, ...], leading: int | None) -> Case:
    """The row with other sizes of the leading dimensions, equal ones for equal ones; 0 and 1 stay."""

    def size(n: int) -> int:
        return n if n < 2 else sizes[n % len(sizes)]

    def others(shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*map(size, shape[:leading]), *(shape[leading:] if leading else ()))

    shapes = tuple(tuple(map(others, shapes)) for shapes in case.shapes)
    return replace(case, shapes=tuple(s for s in shapes if max(map(prod, s), default=0) <= _MOST))


def _larger_calls(case: Case, d: dtypes.dtype, leading: int | None) -> Iterator[list[tuple[Callable, Sample]]]:
    """By sizes, the row's calls, each with a memory layout."""
    layouts = cycle((to_tensor, *LAYOUTS.values(), reversed_))
    for sizes in _SIZES:
        resized = _resized(case, sizes, leading)
        found = samples(resized, d)
        if sizes is _SIZES[0] and case.special and d in (dtypes.float32, dtypes.float64):
            found += special_samples(resized, d, draws=3)
        yield [(next(layouts), sample) for sample in found]


def _resizable(case: Case, op: Op) -> bool:
    """Whether the row's shapes may become others: nothing else among its arguments says a shape."""
    free = case.make is None and not any(p.name == "shape" for p in op.parameters)
    return free and op.rule is not None and not op.view


@property_of(_resizable, guests=True, dtypes=case_dtypes)
def agreement(case: Case, op: Op, target: Target) -> None:
    """The backend gives what the owner of the device's memory gives, for many sizes and every memory layout."""
    rough = replace(case, rtol=max(case.rtol, 3e-6))  # long sums round in different orders
    for d in case_dtypes(case, op):
        if target.has_kernel(op, d):
            # where the attributes fit the row's own shapes only, batch and channels, or the batch, may be others
            any(_agreed(rough, op, target, d, leading) for leading in (None, 2, 1))


def _agreed(case: Case, op: Op, target: Target, d: dtypes.dtype, leading: int | None) -> int:
    """How many calls with other sizes of the leading dimensions were compared: those that the owner takes."""
    owner, compared = target.owner(), 0
    for calls in _larger_calls(case, d, leading):
        with owner.preferred():  # for all at once: after each change of the preference every op is looked up again
            expected = [_taken(op, owner, d, layout, sample) for layout, sample in calls]
        for (layout, sample), results in zip(calls, expected, strict=True):
            if results is not None:
                with about(d.name, layout.__name__, sample):
                    compare_calls(call(op.function, sample, target, layout), results, case, d)
                compared += 1
    return compared


def _taken(op: Op, owner: Target, d: dtypes.dtype, layout: Callable, sample: Sample) -> list | None:
    """The results of the owner, or None if it refuses the call."""
    with about(d.name, layout.__name__, sample):
        try:
            return call(op.function, sample, owner, layout)
        except (RuntimeError, ValueError, IndexError, TypeError):
            return None
