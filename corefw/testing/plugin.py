"""The pytest plugin for authors of backends: gives ``corefw_check`` to tests, one for each row, property and target.

pytest -p corefw.testing.plugin --pyargs corefw.testing.conformance --corefw-backend acme --corefw-cases tests/cases
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corefw.testing import checks, load_cases, oracle_available, targets


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the conformance tests."""
    group = parser.getgroup("corefw", "conformance of corefw's backends")
    group.addoption("--corefw-backend", help="test this backend only")
    group.addoption("--corefw-cases", action="append", default=[], help="a folder with files of rows (CASES)")
    parser.addini("corefw_cases", "folders with files of rows", type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """The marker of tests that compare with PyTorch; and no news of floating-point flags: the value says it."""
    config.addinivalue_line("markers", "oracle: compares with PyTorch; skipped when it is not installed")
    config.addinivalue_line("filterwarnings", r"ignore::RuntimeWarning:corefw\.(generated|dispatch)")


def _parameters(config: pytest.Config) -> Iterator:
    folders = [Path(folder) for folder in config.getoption("--corefw-cases")] or config.getini("corefw_cases")
    tested = targets(config.getoption("--corefw-backend"))
    if not tested:
        raise pytest.UsageError(f"no usable backend is called {config.getoption('--corefw-backend')!r}")
    for folder in folders:
        for family, cases in load_cases(folder).items():
            for check in checks(cases, tested):
                marks: list[pytest.MarkDecorator] = []
                if check.property.name == "oracle":
                    marks = [
                        pytest.mark.oracle,
                        pytest.mark.skipif(not oracle_available(), reason="PyTorch is not installed"),
                    ]
                yield pytest.param(check, id=f"{family}-{check}", marks=marks)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Fill the argument ``corefw_check``."""
    if "corefw_check" in metafunc.fixturenames:
        metafunc.parametrize("corefw_check", list(_parameters(metafunc.config)))
