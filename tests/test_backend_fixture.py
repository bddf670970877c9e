"""The fixture `backend`, in a user's own tests and benchmarks, in a folder of their own."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import corefw

ROOT = Path(corefw.__file__).parents[1]
ENTRY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
TESTS = """
import pytest

import corefw as torch


@pytest.mark.backends("numpy", "absent")
def test_who_runs(backend):
    with torch.ledger() as book:
        torch.ones(3).exp()
    assert (backend.name, backend.device, backend.module) == ("numpy", "cpu", torch)
    assert book.count("exp", backend.name) == 1


def test_every_backend(backend):
    assert backend.module.ones(2).sum().item() == 2


@pytest.mark.parametrize("backend", ["of its own"])
def test_parameter(backend):
    assert backend == "of its own"


@pytest.mark.backends("numpy")
def test_product(benchmark, backend):
    a = torch.ones(8, 4, dtype=torch.float64)
    assert benchmark(torch.matmul, a, a.t()).shape == (8, 8)


@pytest.mark.backends("numpy")
def test_pedantic(benchmark, backend):
    result = benchmark.pedantic(torch.add, setup=lambda: ((torch.ones(4), torch.ones(4)), {}), rounds=3)
    assert result.tolist() == [2] * 4
"""


@pytest.fixture
def run(tmp_path):
    """Runs pytest in a new folder, where the plugin is found by its entry point."""
    about = tmp_path / "site" / "corefw_entry-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: corefw-entry\nVersion: 1\n")
    lines = [f"{name} = {value}" for name, value in ENTRY.items()]
    (about / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines]))
    folder = tmp_path / "a user's tests"
    folder.mkdir()
    path = os.pathsep.join([str(about.parent), *filter(None, sys.path)])

    def run(text, *arguments, check=True):
        (folder / "test_mine.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", "-rs", *arguments]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | {"PYTHONPATH": path}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    run.folder = folder
    return run


def test_a_user_benchmarks_backends(run):
    said = run(TESTS, "-v", "--benchmark-json=figures.json", "--benchmark-max-time=0.01").stdout
    assert "test_who_runs[numpy] PASSED" in said and "test_every_backend[numpy] PASSED" in said
    assert "test_parameter[of its own] PASSED" in said
    assert "backend 'absent' is not installed" in said
    product, pedantic = json.loads((run.folder / "figures.json").read_text())["benchmarks"]
    assert product["params"] == {"backend": "numpy"}
    assert product["extra_info"] == {
        "backend": "numpy",
        "device": "cpu",
        "threads": corefw.get_num_threads(),
        "dtype": "float64",
        "flops": 2 * 8 * 8 * 4,
        "bytes": 8 * (32 + 32 + 64),
        "ran": {"numpy": 1},
    }
    assert pedantic["stats"]["rounds"] == 3
    assert (pedantic["extra_info"]["ran"], pedantic["extra_info"]["bytes"]) == ({"numpy": 1}, 3 * 4 * 4)


def test_a_benchmark_that_is_not_timed_is_called_once(run):
    run(
        """
def test_once(benchmark, backend):
    calls = []
    benchmark(calls.append, 1)
    assert calls == [1]
""",
        *("--benchmark-disable", "--backends=numpy"),
    )


def test_backends_are_chosen_by_option(run):
    said = run(TESTS, "-v", "--benchmark-disable", "--backends", "numpy").stdout
    assert "test_every_backend[numpy] PASSED" in said and "absent" not in said
    done = run(TESTS, "--backends", "nunpy", check=False)
    assert done.returncode and "--backends: backend 'nunpy' is not installed (did you mean 'numpy'?)" in done.stdout


@pytest.mark.oracle
def test_the_peer_is_a_backend_of_tests(run):
    pytest.importorskip("torch")
    run(
        """
def test_module(backend, benchmark):
    assert backend.module.__name__ == "torch"
    assert benchmark(backend.module.ones, 3).tolist() == [1, 1, 1]
    assert benchmark.extra_info["backend"] == "torch"
""",
        *("--backends", "torch", "--benchmark-max-time=0.01"),
    )


def test_a_device_is_waited_for_in_what_is_timed(run):
    """A device whose work takes 20 ms, and is done when it is waited for."""
    (run.folder / "conftest.py").write_text(
        """
import time

import corefw_numpy
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.plugins import load
from corefw.dispatch.registry import registry

load("cpu")


class Queue(type(registry.runtime("cpu"))):
    device_type = "lazy"

    def synchronize(self, index=None):
        time.sleep(0.02)


registry.add_backend(
    Backend("lazy", "1", ("lazy",), {"lazy": list(registry.backends["numpy"].kernels["cpu"])}, {"lazy": Queue()})
)
"""
    )
    run(
        """
def test_wait(benchmark, backend):
    a = backend.module.ones(3)
    assert a.device.type == "lazy"
    benchmark.pedantic(a.exp, rounds=2)
    assert benchmark.stats.stats.min > 0.02
    assert benchmark.extra_info["device"] == "lazy"
""",
        *("--backends", "lazy"),
    )


def test_the_plugin_imports_nothing_that_is_not_used(run):
    run("import sys\n\n\ndef test_it():\n    assert 'pytest_corefw' in sys.modules and 'corefw' not in sys.modules")
