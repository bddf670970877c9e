"""A pytest plugin that runs one share of the tests and writes each result at once, for `shards.py` to follow.

pytest -p tests.on_device.worker --share 2/8 --journal FILE [--after TEST]
"""

import json
import os

import pytest

from corefw.dispatch.registry import registry

SICK = 70  # the exit status of a process whose device answers every call with an error


def pytest_addoption(parser):
    group = parser.getgroup("on device")
    group.addoption("--share", default="1/1", help="which share of the tests to run, and of how many")
    group.addoption("--journal", required=True, help="the file that gets one line of JSON for each event")
    group.addoption("--after", help="the test to go on after")


class Journal:
    """Writes events; the test at hand is known even if the process ends within it."""

    def __init__(self, config):
        self.file = open(config.getoption("--journal"), "a")  # noqa: SIM115 (for the life of the process)
        self.share, self.shares = map(int, config.getoption("--share").split("/"))
        self.after = config.getoption("--after")

    def write(self, **event):
        self.file.write(json.dumps(event) + "\n")
        self.file.flush()

    @pytest.hookimpl(trylast=True)  # what is left when others were deselected
    def pytest_collection_modifyitems(self, items):
        items[:] = items[self.share - 1 :: self.shares]
        names = [item.nodeid for item in items]
        self.write(event="collected", tests=len(names))
        if self.after is not None:
            del items[: names.index(self.after) + 1]

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(event="ended", test=report.nodeid, outcome="failed", said=str(report.longrepr)[-2000:])

    def pytest_runtest_logstart(self, nodeid):
        self.write(event="began", test=nodeid)

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.passed:
            return
        said = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else report.longreprtext
        self.write(event="ended", test=report.nodeid, outcome=report.outcome, said=said[-2000:])
        if report.failed and not devices_answer():
            self.write(event="sick")
            os._exit(SICK)  # nothing that this process asks of the device would be answered any more

    def pytest_sessionfinish(self, exitstatus):
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
            self.write(event="done")


def devices_answer() -> bool:
    """Whether all devices can still be waited for; the first wait may raise what a kernel reported."""
    for _, runtime in registry.runtimes.values():
        for last in (False, True):
            try:
                runtime.synchronize()
                break
            except Exception:
                if last:
                    return False
    return True


def pytest_configure(config):
    config.pluginmanager.register(Journal(config), "journal")
