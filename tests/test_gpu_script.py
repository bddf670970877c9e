"""The script that runs everything on a GPU: what it finds, reads and says."""

import configparser
import json
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import corefw
from benchmarks.device import few_samples, measure, rows
from corefw.dispatch.registry import registry
from corefw.testing.conform.items import items, targets_of
from tests import scripts
from tests.on_device.shards import Report, Shards, pytest_command
from tests.on_device.summary import passes, rated, told

ROOT = Path(corefw.__file__).parents[1]


@pytest.fixture(scope="module")
def script():
    """The script as a module."""
    return scripts.load("gpu")


def test_the_checkout_is_used_as_it_lies(script, tmp_path):
    variables = script.environment(tmp_path)
    found = subprocess.run(
        [sys.executable, "-S", "-c", "import sys; print(sys.path)"], env=variables, capture_output=True, text=True
    ).stdout
    assert str(ROOT / "backends" / "cupy_backend") in found and str(tmp_path) in found
    for name, groups in script.ENTRY_POINTS.items():
        text = (tmp_path / f"{name.replace('-', '_')}-0.1.0.dist-info" / "entry_points.txt").read_text()
        folder = {"corefw": ".", "corefw-cupy": "backends/cupy_backend"}[name]
        declared = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]["entry-points"]
        written = configparser.ConfigParser()
        written.read_string(text)
        for group, (entry, module) in groups.items():
            assert written[group][entry] == declared[group][entry] == module
        assert written.sections() == [group for group in declared if group.startswith("corefw.")]


TESTS = """
import os, signal, time, pytest
def test_1(): pass
def test_2(): assert 1 == 2
def test_3(): os.kill(os.getpid(), signal.SIGKILL)
def test_4(): pytest.skip("SciPy is not installed")
def test_5():
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass
def test_6(): pass
def test_7(): pass
"""


def supervised(tmp_path, text, shards=1, seconds=60.0, patience=6.0):
    """The report on tests of this text, and the news."""
    file = tmp_path / "test_shards.py"
    file.write_text(text)
    news: list[str] = []
    command = pytest_command([str(file)], "--rootdir", str(tmp_path))
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    run = Shards(command, shards, tmp_path / "logs", variables, patience, news.append)
    return run.run(time.monotonic() + seconds), news


@pytest.mark.parametrize("shards", [1, 3])
def test_tests_that_die_or_hang_are_named_and_the_others_run(tmp_path, shards):
    report, news = supervised(tmp_path, TESTS, shards)
    assert (report.collected, report.passed, report.unfinished) == (7, 3, 0)
    said = {name.rpartition("::")[2]: said for name, said in report.failed.items()}
    assert said.keys() == {"test_2", "test_3", "test_5"}
    assert "assert 1 == 2" in said["test_2"]
    assert said["test_3"] == "the process ended with status -9"
    assert said["test_5"].startswith("nothing was heard for ")
    assert list(report.not_run.values()) == ["Skipped: SciPy is not installed"]
    assert len(news) == 3 and all(line.startswith("FAILED ") for line in news)


def test_a_second_run_in_the_same_folder_reads_nothing_of_the_first(tmp_path):
    supervised(tmp_path, "def test_1(): pass\ndef test_2(): pass")
    report, news = supervised(tmp_path, "def test_1(): assert 1 == 2")
    assert (report.collected, report.passed, len(report.failed), len(news)) == (1, 0, 1, 1)


def test_what_there_is_no_time_for_is_counted(tmp_path):
    report, _ = supervised(tmp_path, TESTS.replace("SIGKILL", "SIGCONT"), seconds=4.0, patience=60.0)
    assert (report.collected, report.passed, report.unfinished) == (7, 2, 3)


def test_a_file_that_does_not_import_fails_the_run(tmp_path):
    report, news = supervised(tmp_path, "import nothing_of_this_name")
    assert not passes(report, 0) and any("nothing_of_this_name" in said for said in report.failed.values())
    assert news


def test_a_device_that_answers_no_more_is_left(tmp_path):
    sick = """
from corefw.dispatch.registry import registry
class Sick(type(registry.runtimes["meta"][1])):
    def synchronize(self, index=None): raise RuntimeError("cudaErrorIllegalAddress")
def test_1():
    registry.runtimes["sick"] = ("sick", Sick())
    assert False
def test_2(): assert "sick" not in registry.runtimes
"""
    report, _ = supervised(tmp_path, sick)
    assert (report.passed, len(report.failed)) == (1, 1)


def test_reports_are_kept_whatever_becomes_of_the_benchmarks(script, tmp_path):
    results = tmp_path / "gpu.json"
    report = Report(collected=9, passed=1, failed={"a": "no"}, not_run={"b": "no SciPy"}, unfinished=6)
    script.record(results, {"conformance": report})
    kept = {"passed": 1, "failed": ["a"], "not run": 1, "no time for": 6}
    assert json.loads(results.read_text()) == {"conformance": kept}
    results.write_text('{"seconds": {}}')
    script.record(results, {"conformance": report})
    assert json.loads(results.read_text()) == {"seconds": {}, "conformance": kept}


def test_nothing_run_and_too_few_checks_are_failures():
    assert not passes(Report(), 0)
    assert passes(Report(collected=5, passed=4, not_run={"a": "no SciPy"}), 5)
    assert not passes(Report(collected=5, passed=5), 6)
    assert not passes(Report(collected=5, passed=4, unfinished=1), 5)
    assert told("conformance", Report(collected=2, passed=1, not_run={"a": "Skipped: no SciPy"}), 9) == [
        "conformance: 1 passed, 0 failed, 1 not run",
        "  not run: no SciPy",
        "  failed: 2 checks are known here, at least 9 exist",
    ]


def test_as_many_checks_as_the_emulated_device_has_are_wanted(script):
    if "emulated" not in registry.runtimes:
        pytest.skip("there is no emulated device")
    (target,) = targets_of("emulated")
    count = len(list(items(target)))
    assert 0.85 * count < script.LEAST_CHECKS <= count


@pytest.mark.slow
def test_all_parts_run_on_the_emulated_device(tmp_path):
    if "emulated" not in registry.runtimes:
        pytest.skip("there is no emulated device")
    selected = ["--select", "log_softmax or sequential or tiny or mnist_cnn"]
    command = [sys.executable, ROOT / "scripts" / "gpu", "--device", "emulated", "--output", tmp_path, *selected]
    found = subprocess.run([*map(str, command), "--seconds", "240"], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    summary = found.stdout[found.stdout.index("\nemulated\n") :].splitlines()
    assert summary[2].startswith("conformance: ") and "0 failed" in summary[2]
    reasons = {line.removeprefix("  not run: ") for line in summary if line.startswith("  not run: ")}
    assert reasons <= {
        "PyTorch is not installed",
        "no kernel of 'emulated' ran",
        "the row has no sample of this kind",
    }
    assert "training: 1 passed, 0 failed, 0 not run" in summary and summary[-1] == "all is well"
    assert "called 4 rows once, on few samples: their times say nothing" in summary
    record = json.loads((tmp_path / "emulated.json").read_text())
    steps = {f"step {program}" for program in ("tiny_mlp_sgd", "mnist_cnn_adam", "mnist_cnn_adam_autocast")}
    assert record["seconds"].keys() == {*steps, "log_softmax-512x1024"}
    assert record["conformance"]["passed"] >= 5
    assert record["training"] == {"passed": 1, "failed": [], "not run": 0, "no time for": 0}


def test_rows_are_called_once_on_few_samples_where_times_say_nothing():
    called = []
    found = measure({"corefw": lambda: called.append("corefw")}, {"corefw": lambda: called.append("wait")}, once=True)
    assert called == ["wait", "corefw", "wait"] and found.keys() == {"corefw"}
    assert few_samples(((32, 64, 8, 8), (64, 64, 3, 3))) == ((2, 64, 8, 8), (64, 64, 3, 3))
    assert few_samples(((64, 4, 5), (64, 5, 4))) == ((2, 4, 5), (2, 5, 4))
    assert few_samples(((1024, 8), (1024, 8))) == ((1024, 8), (1024, 8))
    assert [name for name, _ in rows({}, 4096, once=True)] == [name for name, _ in rows({}, 4096)]


def test_what_was_called_once_has_no_figures():
    results = {"once": True, "seconds": {"add": {"corefw": 1}}, "copy_bytes_per_second": 1, "failed": {"sort": "no"}}
    assert rated(results | {"left_out": []}) == [
        "called 1 rows once, on few samples: their times say nothing",
        "failed: sort: no",
    ]


def test_figures_beside_their_targets():
    large = 1 << 26
    results = {
        "large": large,
        "once": False,
        "seconds": {
            "step mlp": {"corefw": 1e-4, "torch": 2e-4},
            "matmul-512": {"corefw": 2e-4, "torch": 1e-4},
            f"exp-{large}": {"corefw": 8 * large / 1e12},
            f"add-{large}": {"corefw": 12 * large / 1.9e12},
        },
        "bytes": {f"exp-{large}": 8 * large, f"add-{large}": 12 * large},
        "copy_bytes_per_second": 2e12,
        "failed": {"sort": "ValueError: no"},
        "left_out": ["topk"],
    }
    assert rated(results) == [
        f"copy of {large} float32: 2000 GB/s",
        "training steps: 2.00 times PyTorch's speed over 1; slower: none",
        "matmul and convolution: 0.50 times PyTorch's speed over 1; slower: matmul-512 0.50",
        "all rows: 1.00 times PyTorch's speed over 2; slower: matmul-512 0.50",
        f"large rows below 0.85 of the copy's rate: exp-{large} 0.50",
        "measured 4 rows",
        "failed: sort: ValueError: no",
        "no time for 1 rows",
    ]
