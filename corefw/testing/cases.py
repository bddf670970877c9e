"""A Case: one row of test data per op, from which every property is checked."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Case:
    """One op's test data.

    Attributes:
        op: the op's name; `corefw.<op>`, `corefw.nn.functional.<op>` or a private op of the registry.
        reference: its meaning on NumPy arrays, called as the op is (arrays for tensors, the same statics); naive, never
            the code under test. Several outputs give a tuple.
        shapes: for each sample, the shapes of the tensor arguments that come first.
        statics: for each sample the further arguments, by keyword; samples are all pairs of shapes and statics
            for which `valid` holds.
        domain: the interval from which floating samples are drawn.
        make: builds the arguments instead (rng, NumPy dtype) -> list of (positional arguments, keywords), for ops that
            need special inputs: index tensors, sorted or distinct values, lists of tensors.
        dtypes: names of the dtypes to test; None for all that the op's dtype rule takes.
        gradient: whether gradients are checked (for float64 and complex128).
        second: whether second derivatives are checked.
        rtol, atol: tolerance in float64; float32 and half types get their own, wider ones.
        special: whether NaN and infinities are given too.
        wide: whether the reference gets double precision for narrower floating samples (and for integers of which the
            op computes floating results); False for ops whose values depend on the precision itself (nextafter).
        constant: positions among all arrays of a call of those that no gradient flows to (running statistics, weights).
        meta: whether the op runs on the meta device, i.e. the result's shape does not depend on the data.
        torch: the function to compare with when torch is importable, by dotted name; "" for `torch.<op>`, None for
            none.
    """

    op: str
    reference: Callable
    shapes: tuple[Shapes, ...] = (((2, 3),), ((),), ((0, 3),), ((5,),))
    statics: tuple[dict[str, Any], ...] = ({},)
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
    valid: Callable[..., bool] = field(default=lambda *shapes, **statics: True)


def load_cases(folder: Path) -> dict[str, tuple[Case, ...]]:
    """The ``CASES`` of every file in a folder, by the file's name: its family."""
    found = {}
    for path in sorted(folder.glob("[a-z]*.py")):
        specification = importlib.util.spec_from_file_location(f"corefw_cases_{path.stem}", path)
        assert specification is not None and specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        try:
            specification.loader.exec_module(module)
            found[path.stem] = tuple(module.CASES)
        except Exception as error:  # half-written for a moment
            print(f"{path}: {error!r}")
    return found
