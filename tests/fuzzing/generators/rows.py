"""The calls of the conformance rows (corefw/testing/cases) with other sizes, values, layouts and forms."""

from __future__ import annotations

from functools import cache
from math import prod
from random import Random

import numpy as np

import corefw
from corefw.dispatch.registry import registry
from corefw.dtypes import dtype
from corefw.testing import Case, Sample, kit_families, samples
from corefw.testing.checks import case_dtypes
from corefw.testing.oracle import path as torch_path
from tests.fuzzing import drawing
from tests.fuzzing.builder import Builder
from tests.fuzzing.generators.promotion import out
from tests.fuzzing.programs import Name, Ref

_LONGEST = 4000  # elements of an array that is listed in a program


def _reachable(path: str) -> bool:
    found = corefw
    for part in path.split("."):
        found = getattr(found, part, None)
    return found is not None


def _path(case: Case) -> str:
    path = torch_path(case)
    return path if path and _reachable(path) else "op:" + case.op


@cache
def table() -> list[tuple[Case, str]]:
    """All rows with the path of their function."""
    found = [case for case in kit_families().cases() if case.op in registry.declared and "empty" not in case.op]
    return [(case, _path(case)) for case in found if not registry.declared[case.op].update]


@cache
def _samples(number: int, name: str) -> list[Sample]:
    return samples(table()[number][0], getattr(corefw, name))


def _static(value):
    """A static argument as programs hold it; TypeError if they cannot."""
    if isinstance(value, dtype):
        return Name(value.name)
    if isinstance(value, tuple | list):
        return type(value)(map(_static, value))
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | complex | str | slice):
        return value
    raise TypeError(f"a program cannot hold {value!r}")


def _leaf(b: Builder, array: np.ndarray, changed: bool) -> Ref:
    """The array, or another of its dtype and shape, as a leaf of some layout."""
    rng, name = b.rng, corefw.from_numpy(array).dtype.name
    grad = rng.random() < 0.5
    if changed and name in drawing.FLOATING + drawing.COMPLEX and rng.random() < 0.7:
        return b.leaf(name, array.shape, grad=grad)
    wide = (
        array.astype(np.complex128 if array.dtype.kind == "c" else np.float64) if array.dtype.kind in "fcV" else array
    )
    layout = drawing.layout(rng)
    if layout in ("contiguous", "expanded") or array.ndim == 0:
        return b.leaf(name, array.shape, values=wide.ravel().tolist(), layout="contiguous", grad=grad)
    ref = b.leaf(
        name,
        array.shape,
        values=wide.ravel(order="F").tolist() if layout == "transposed" else wide.ravel().tolist(),
        layout="transposed" if layout == "transposed" else "contiguous",
        grad=grad,
    )
    return ref


def _resized(rng: Random, case: Case, sample: Sample) -> Sample:
    """The sample with other sizes, equal ones for equal ones; 0 and 1 stay, and arrays that would be too long."""
    sizes = {}

    def size(n: int) -> int:
        return n if n < 2 else sizes.setdefault(n, rng.choice((n, n, 2, 3, 5, 8, 17, 33)))

    def change(array: np.ndarray) -> np.ndarray:
        shape = tuple(map(size, array.shape))
        return np.resize(array, shape) if prod(shape) <= _LONGEST else array

    return sample.map(change)


def rows(b: Builder) -> None:
    rng = b.rng
    number = rng.randrange(len(table()))
    case, path = table()[number]
    op = registry.declared[case.op]
    choices = [d.name for d in case_dtypes(case, op) if d.name in drawing.DTYPES]
    if not choices:
        return
    sample = rng.choice(_samples(number, rng.choice(choices)) or [Sample()])
    if any(array.size > _LONGEST for array in sample.arrays()):
        return
    if case.make is None and not path.startswith("op:") and rng.random() < 0.4:
        sample = _resized(rng, case, sample)
    changed = case.make is None and rng.random() < 0.8

    def given(value):
        if isinstance(value, np.ndarray):
            return _leaf(b, value, changed)
        if isinstance(value, list) and any(isinstance(item, np.ndarray) for item in value):
            return tuple(given(item) for item in value)
        return _static(value)

    try:
        arguments = [given(value) for value in sample.arguments]
        keywords = {name: given(value) for name, value in sample.keywords.items()}
    except TypeError:
        return
    at = rng.random()
    if at < 0.15 and op.takes_out and not path.startswith("op:"):
        out(b, path, arguments, keywords)
    elif at < 0.3 and f"{op.name}_" in op.public.get("Tensor", ()) and arguments and isinstance(arguments[0], Ref):
        target = b.call("operator.mul", arguments[0], 1) or arguments[0]
        b.call(f".{op.name}_", target, *arguments[1:], **keywords)
    else:
        b.call(path, *arguments, **keywords)
    b.gradients(records_again=rng.random() < 0.1)
