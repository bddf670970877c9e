"""A Case: one row of test data per op, from which every property is checked; and the files that hold rows."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
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
        special: whether NaN and infinities are given too.
        wide: whether the reference gets double precision for narrower floating samples (and for integers of which the
            op computes floating results); False for ops whose values depend on the precision itself (nextafter).
        constant: positions among all arrays of a call of those that no gradient flows to (running statistics, weights).
        meta: whether the op runs on the meta device, i.e. the result's shape does not depend on the data.
        torch: the function to compare with when torch is importable, by dotted name; "" for the one that is where the
            op is public, None for none.
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
    valid: Callable[..., bool] = field(default=lambda *shapes, **attributes: True)


class RequirementError(Exception):
    """A package that a file of rows declares to need is not installed."""


class CaseFileError(Exception):
    """A file of rows cannot be used; the text names it and says why."""


class Families(dict[str, tuple[Case, ...]]):
    """The rows of each family that can be checked.

    Attributes: ``not_run`` the reasons why files, and rows "<file>: <op>", are left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.not_run: dict[str, str] = {}


def require(name: str) -> ModuleType:
    """A module that a file of rows cannot do without: where its package is not installed the file is not run, and is
    reported with that reason.

    >>> require("math").floor(1.5)
    1
    """
    if missing := _missing((name,)):
        raise RequirementError(missing)
    return importlib.import_module(name)


def _missing(names: tuple[str, ...]) -> str:
    """Why something that needs these modules cannot run; "" if it can."""
    packages = dict.fromkeys(name.partition(".")[0] for name in names)
    absent = [package for package in packages if importlib.util.find_spec(package) is None]
    return f"needs {', '.join(absent)}, not installed" if absent else ""


def load_cases(folder: Path) -> Families:
    """The ``CASES`` of every file in a folder, by the file's name: its family.

    Raises CaseFileError for a folder without such files, and for a file that fails or has no rows.
    """
    found = Families()
    paths = sorted(Path(folder).glob("[a-z]*.py"))
    if not paths:
        raise CaseFileError(f"{folder}: " + ("no files of rows" if Path(folder).is_dir() else "no such folder"))
    for path in paths:
        try:
            rows = _rows(path)
        except RequirementError as error:
            found.not_run[path.name] = str(error)
            continue
        except Exception as error:
            raise CaseFileError(f"{path}: {type(error).__name__}: {error}") from error
        if not rows:
            raise CaseFileError(f"{path}: CASES is empty")
        found.not_run |= {f"{path.name}: {row.op}": why for row in rows if (why := _missing(row.requires))}
        found[path.stem] = tuple(row for row in rows if not _missing(row.requires))
    return found


def _rows(path: Path) -> tuple[Case, ...]:
    specification = importlib.util.spec_from_file_location(f"corefw_cases_{path.stem}", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return tuple(module.CASES)
