"""A Case: one row of test data per op, from which every property is checked."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Case:
    """One op's test data.

    Attributes:
        op: the op's name; `corefw.<op>`, `corefw.nn.functional.<op>` or a private op of the registry.
        reference: its meaning on NumPy arrays, called as the op is (arrays for tensors, the same attributes); naive,
        never
            the code under test. Several outputs give a tuple.
        shapes: for each sample, the shapes of the tensor arguments that come first.
        attributes: for each sample the further arguments, by keyword; samples are all pairs of shapes and attributes
            for which `valid` holds.
        domain: the interval from which floating samples are drawn.
        make: builds the arguments instead (rng, NumPy dtype) -> list of (positional arguments, keywords), for ops that
            need special inputs: index tensors, sorted or distinct values, lists of tensors.
        dtypes: names of the dtypes to test; None for all that the op's dtype rule takes.
        gradient: whether gradients are checked (for float64 and complex128).
        second: whether second derivatives are checked.
        rtol, atol: tolerance in float64; float32 and half types get their own, wider ones.
        special: whether NaN and infinities are given too; among made inputs, those of elementwise ops.
        wide: whether the reference gets double precision for narrower floating samples (and for integers of which the
            op computes floating results); False for ops whose values depend on the precision itself (nextafter).
        constant: positions among all arrays of a call of those that no gradient flows to (running statistics, weights).
        meta: whether the op runs on the meta device, i.e. the result's shape does not depend on the data.
        torch: the function to compare with when torch is importable, by dotted name; "" for the one that is where the
            op is public, None for none.
        max_ulp: what results may be wrong by, in units of the last place, instead of `rtol` and `atol`; a kernel that
            declares one is held to it.
        requires: packages that the op needs beyond those that corefw always has; the row is not run without them.
    """

    op: str
    reference: Callable
    shapes: tuple[Shapes, ...] = (((2, 3),), ((),), ((0, 3),), ((5,),))
    attributes: tuple[dict[str, Any], ...] = ({},)
    domain: tuple[float, float] = (-3.0, 3.0)
    make: Callable[[np.random.Generator, np.dtype], list[tuple[list, dict]]] | None = None
    dtypes: tuple[str, ...] | None = None
    gradient: bool = True
    second: bool = True
    rtol: float = 1e-7
    atol: float = 1e-9
    special: bool = True
    wide: bool = True
    constant: tuple[int, ...] = ()
    meta: bool = True
    torch: str | None = ""
    requires: tuple[str, ...] = ()
    max_ulp: float | None = None
    valid: Callable[..., bool] = field(default=lambda *shapes, **attributes: True)


def uniform(rng: np.random.Generator, low: float, high: float, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Random elements; unsigned ones have none below 0, which C converts to what the processor likes."""
    return np.asarray(rng.uniform(max(low, 0) if dtype.kind == "u" else low, high, shape)).astype(dtype)


class RequirementError(Exception):
    """A package that a file of rows declares to need is not installed."""


def require(name: str) -> ModuleType:
    """A module that a file of rows cannot do without: where its package is not installed the file is not run, and is
    reported with that reason.

    >>> require("math").floor(1.5)
    1
    """
    if missing := missing_packages((name,)):
        raise RequirementError(missing)
    return importlib.import_module(name)


def missing_packages(names: tuple[str, ...]) -> str:
    """Why something that needs these modules cannot run; "" if it can."""
    packages = dict.fromkeys(name.partition(".")[0] for name in names)
    absent = [package for package in packages if importlib.util.find_spec(package) is None]
    return f"needs {', '.join(absent)}, not installed" if absent else ""
