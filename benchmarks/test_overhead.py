"""What one op costs beside its arithmetic: tensors of four elements.

Run: python -m pytest benchmarks/test_overhead.py --benchmark-enable --benchmark-group-by=func
"""

import subprocess
import sys

import pytest


@pytest.fixture
def four(framework):
    """Two plain tensors and one that requires a gradient."""
    a, b = framework.ones(4), framework.ones(4)
    return framework, a, b, framework.ones(4, requires_grad=True)


def test_add(benchmark, four):
    _, a, b, _ = four
    benchmark(lambda: a + b)


def test_add_number(benchmark, four):
    _, a, _, _ = four
    benchmark(lambda: a + 2.0)


def test_add_recorded(benchmark, four):
    _, _, b, c = four
    benchmark(lambda: c + b)


def test_exp(benchmark, four):
    _, a, _, _ = four
    benchmark(a.exp)


def test_sum(benchmark, four):
    _, a, _, _ = four
    benchmark(a.sum)


def test_transpose(benchmark, framework):
    a = framework.ones(2, 2)
    benchmark(a.t)


def test_index_row(benchmark, framework):
    a = framework.ones(2, 2)
    benchmark(lambda: a[0])


def test_matmul(benchmark, framework):
    a = framework.ones(2, 2)
    benchmark(lambda: a @ a)


def test_add_inplace(benchmark, four):
    _, a, b, _ = four
    benchmark(lambda: a.add_(b))


def test_forward_backward(benchmark, four):
    _, _, b, c = four
    benchmark(lambda: (c * b).relu().sum().backward())


@pytest.mark.parametrize("module", ["numpy", "corefw"])
def test_import(benchmark, module):
    benchmark.pedantic(
        subprocess.run, ([sys.executable, "-c", f"import {module}"],), {"check": True}, rounds=5, warmup_rounds=1
    )
