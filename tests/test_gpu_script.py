"""The script that runs everything on a GPU: what it finds, reads and says."""

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import corefw

ROOT = Path(corefw.__file__).parents[1]


@pytest.fixture(scope="module")
def script():
    """The script as a module."""
    loader = importlib.machinery.SourceFileLoader("gpu_script", str(ROOT / "scripts" / "gpu"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_script", loader))
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def test_the_checkout_is_used_as_it_lies(script, tmp_path):
    variables = script.environment(tmp_path)
    found = subprocess.run(
        [sys.executable, "-S", "-c", "import sys; print(sys.path)"], env=variables, capture_output=True, text=True
    ).stdout
    assert str(ROOT / "backends" / "cupy_backend") in found and str(tmp_path) in found
    for name, (entry, module) in script.ENTRY_POINTS.items():
        text = (tmp_path / f"{name.replace('-', '_')}-0.1.0.dist-info" / "entry_points.txt").read_text()
        assert text == f"[corefw.backends]\n{entry} = {module}\n"
        folder = {"corefw": ".", "corefw-cupy": "backends/cupy_backend"}[name]
        declared = (ROOT / folder / "pyproject.toml").read_text()
        assert f'"{entry}" = "{module}"' in declared, "the entry points are those of the distribution"


def test_the_outcome_of_tests(script):
    text = "....F\nFAILED tests/test_ops.py::test_op[a] - x\n=== 1 failed, 4 passed in 2.1s ===\nsome warning\n"
    assert script.outcome(text) == ("1 failed, 4 passed in 2.1s", ["tests/test_ops.py::test_op[a] - x"])
    assert script.outcome("") == ("nothing was printed", [])


def test_figures_beside_their_targets(script):
    large = 1 << 26
    results = {
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
    assert script.rated(results) == [
        "copy of 2^26 float32: 2000 GB/s",
        "training steps: 2.00 times PyTorch's speed over 1; slower: none",
        "matmul and convolution: 0.50 times PyTorch's speed over 1; slower: matmul-512 0.50",
        "all rows: 1.00 times PyTorch's speed over 2; slower: matmul-512 0.50",
        f"large rows below 0.85 of the copy's rate: exp-{large} 0.50",
        "failed: sort: ValueError: no",
        "no time for 1 rows",
    ]
