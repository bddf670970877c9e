"""Families of rows: the files that hold the ``CASES`` of an op family, of the kit and of a plug-in's author."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from types import ModuleType

from corefw.testing.case import Case, RequirementError, missing_packages


class CaseFileError(Exception):
    """A file of rows cannot be used; the text names it and says why."""


class Families(dict[str, tuple[Case, ...]]):
    """The rows of each family that can be checked.

    Attributes: ``not_run`` the reasons why files, and rows "<file>: <op>", are left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.not_run: dict[str, str] = {}

    def cases(self) -> tuple[Case, ...]:
        """All rows, in order."""
        return tuple(case for rows in self.values() for case in rows)


def load_package(name: str) -> Families:
    """The rows of every module of a package, by the module's name.

    Raises CaseFileError for a module that fails or has no rows.

    >>> "elementary" in load_package("corefw.testing.cases")
    True
    """
    paths = importlib.import_module(name).__path__
    modules = sorted(module.name for module in pkgutil.iter_modules(paths))
    return _load((f"{module}.py", partial(importlib.import_module, f"{name}.{module}")) for module in modules)


@cache
def kit_families() -> Families:
    """The rows of the kit itself."""
    return load_package("corefw.testing.cases")


def load_folder(folder: Path) -> Families:
    """The rows of every file in a folder, by the file's name.

    Raises CaseFileError for a folder without such files, and for a file that fails or has no rows.
    """
    paths = sorted(Path(folder).glob("[a-z]*.py"))
    if not paths:
        raise CaseFileError(f"{folder}: " + ("no files of rows" if Path(folder).is_dir() else "no such folder"))
    return _load((str(path), partial(_execute, path)) for path in paths)


def _load(files: Iterable[tuple[str, Callable[[], ModuleType]]]) -> Families:
    found = Families()
    for path, load in files:
        file = Path(path)
        try:
            rows = tuple(load().CASES)
        except RequirementError as error:
            found.not_run[file.name] = str(error)
            continue
        except Exception as error:
            raise CaseFileError(f"{path}: {type(error).__name__}: {error}") from error
        if not rows:
            raise CaseFileError(f"{path}: CASES is empty")
        found.not_run |= {f"{file.name}: {row.op}": why for row in rows if (why := missing_packages(row.requires))}
        found[file.stem] = tuple(row for row in rows if not missing_packages(row.requires))
    return found


def _execute(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(f"corefw_cases_{path.stem}", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
