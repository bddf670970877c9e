"""The pytest plugin for authors of backends: gives ``corefw_check`` to tests, one for each row, property and target.

pytest -p corefw.testing.plugin --pyargs corefw.testing.conformance --corefw-backend acme
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corefw.testing import CaseFileError, checks, kit_families, load_folder, oracle_available, targets
from corefw.testing.conform.evidence import claims
from corefw.testing.conform.execution import Alone
from corefw.testing.conform.items import Item, behaviour_items, items, targets_of, why_none
from corefw.testing.conform.outcomes import FAILURES, Outcome, Result

_MARK = "corefw_check"  # of the tests that are checks of rows
_NOT_RUN = "NOT RUN: "  # how the reason begins for which rows are left out


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the conformance tests."""
    group = parser.getgroup("corefw", "conformance of corefw's backends")
    group.addoption("--corefw-backend", help="test this backend, or the backends of this device, one dtype at a time")
    group.addoption("--corefw-cases", action="append", default=[], help="a folder with more files of rows (CASES)")
    parser.addini("corefw_cases", "folders with more files of rows", type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """The markers, and the report of what was checked."""
    config.addinivalue_line("markers", "oracle: compares with PyTorch; skipped when it is not installed")
    config.addinivalue_line("markers", f"{_MARK}: one property of one row on one target")
    config.pluginmanager.register(Report(), "corefw-report")


class Report:
    """Says which rows were not run, and fails a run in which no check ran."""

    def __init__(self) -> None:
        self.ran = 0
        self.skipped: dict[str, str] = {}  # {test: reason}
        self.results: list[Result] = []  # of the checks of one backend
        self.unproven: list[Result] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a check that ran, or note why it did not."""
        if _MARK not in report.keywords:
            return
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skipped[report.nodeid] = report.longrepr[2].removeprefix("Skipped: ")
        elif report.when == "call":
            self.ran += 1
        for name, value in report.user_properties if report.when == "teardown" else ():
            if name == _MARK and isinstance(value, dict):
                self.results.append(Result.of_dict(value))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item):
        """Give what came of a check of one backend to the process that gathers the reports."""
        report = yield
        if report.when == "teardown" and isinstance(item, pytest.Function) and item.get_closest_marker(_MARK):
            check = item.callspec.params["corefw_check"]
            if isinstance(check, _OneCheck):
                report.user_properties.append((_MARK, check.result.as_dict()))
        return report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Zero checks are no success, nor are kernels that no check has run; of several processes the one that gathers
        the reports decides."""
        config = session.config
        if hasattr(config, "workerinput"):
            return
        if self.results and not (config.option.keyword or config.option.markexpr):  # all were to run
            for target in targets_of(config.getoption("--corefw-backend")):
                self.unproven += (r for r in claims(target, self.results) if r.outcome is Outcome.UNPROVEN)
        if self.unproven or (self.skipped and not self.ran):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """What was not run, and why."""
        for reason in dict.fromkeys(self.skipped.values()):
            if reason.startswith(_NOT_RUN):
                terminalreporter.write_line(reason, yellow=True)
        for result in self.unproven:
            terminalreporter.write_line(f"{result.outcome}: {result.check}: {result.reason}", red=True)
        if self.skipped and not self.ran:
            terminalreporter.write_line(f"no check of a row ran: all {len(self.skipped)} were skipped", red=True)


def _parameters(config: pytest.Config) -> Iterator:
    folders = [Path(folder) for folder in config.getoption("--corefw-cases")] or config.getini("corefw_cases")
    name = config.getoption("--corefw-backend")
    try:
        yield from _items(name, folders) if name else _whole_rows(folders)
    except CaseFileError as error:
        raise pytest.UsageError(str(error)) from error


def _items(name: str, folders: list[Path]) -> Iterator:
    """The checks of `corefw conform`, one for each op, property and dtype of one backend."""
    tested = targets_of(name)
    if not tested:
        raise pytest.UsageError(f"--corefw-backend: {why_none(name)}")
    for target in tested:
        for item in items(target, tuple(folders)):
            yield pytest.param(_OneCheck(item), id=str(item), marks=[_check_mark(), *_decision(item)])


def _whole_rows(folders: list[Path]) -> Iterator:
    """The properties of rows, each with all dtypes, and the behaviours, of every backend."""
    tested = targets()
    for target in tested:
        for item in behaviour_items(target):
            yield pytest.param(item.run, id=str(item), marks=[_check_mark(), *_decision(item)])
    for families in (kit_families(), *map(load_folder, folders)):
        for what, reason in families.not_run.items():
            skipped = pytest.mark.skip(reason=f"{_NOT_RUN}{what} {reason}")
            yield pytest.param(None, id=f"not-run-{what}", marks=[_check_mark(), skipped])
        for family, cases in families.items():
            for check in checks(cases, tested):
                marks: list[pytest.MarkDecorator] = [_check_mark()]
                if check.property.name in ("oracle", "unusual_gradients"):
                    marks += [
                        pytest.mark.oracle,
                        pytest.mark.skipif(not oracle_available(), reason="PyTorch is not installed"),
                    ]
                yield pytest.param(check, id=f"{family}-{check}", marks=marks)


def _check_mark() -> pytest.MarkDecorator:
    return getattr(pytest.mark, _MARK)


def _decision(item: Item) -> list[pytest.MarkDecorator]:
    outcome, reason = item.decided
    return [] if item.run is not None else [pytest.mark.skip(reason=f"{outcome}: {reason}")]


class _OneCheck:
    """Runs one check as `corefw conform` does, in this process; `result` is what came of it."""

    def __init__(self, item: Item):
        self.item, self.result = item, item.result(*item.decided)

    def __call__(self) -> None:
        with Alone() as alone:
            self.result = alone.run(self.item)
        said = f"{self.result.outcome}: {self.result.reason}"
        if self.result.outcome in FAILURES:
            pytest.fail(said, pytrace=False)
        if self.result.outcome is not Outcome.PASS:
            pytest.skip(said)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Fill the argument ``corefw_check``."""
    if "corefw_check" in metafunc.fixturenames:
        metafunc.parametrize("corefw_check", list(_parameters(metafunc.config)))
