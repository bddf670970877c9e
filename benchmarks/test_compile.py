"""Compiled functions beside the same ones without: corefw and PyTorch with and without `compile`, JAX with `jit`.

Run: python -m pytest benchmarks/test_compile.py --benchmark-enable --benchmark-group-by=func,param:program -p no:xdist

Columns that are not installed are left out; `-k "not torch"` leaves out PyTorch, whose compilations take minutes.
JAX's arithmetic takes as many threads as the process may use processors: run it under `taskset` for two.
"""

import importlib
import importlib.util
import os
import threading
import time

import pytest
import threadpoolctl

import corefw
from benchmarks.conftest import THREADS
from corefw.benchmarks.training import TRAINING

pytestmark = pytest.mark.filterwarnings("ignore")  # of what PyTorch does to compile
COLUMNS = ["corefw", "corefw-compiled", "torch", "torch-compiled", "jax"]
LARGE = 10**7  # elements of the chain


@pytest.fixture(params=COLUMNS)
def column(request):
    """A column's name, with its threads set."""
    package = request.param.partition("-")[0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of processes beside what is measured
    if package == "jax":
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    with threadpoolctl.threadpool_limits(THREADS):
        yield request.param


def framework(column):
    """The module with PyTorch's API that a column measures."""
    module = importlib.import_module(column.partition("-")[0])
    module.set_num_threads(THREADS)
    module.manual_seed(0)
    return module


def measured(benchmark, function, column, module):
    """Measure a function, compiled if the column is, after the calls in which it is recorded."""
    call = module.compile(function) if column.endswith("-compiled") else function
    for _ in range(3):
        call()
    if column == "corefw-compiled" and importlib.util.find_spec("corefw_c"):
        compiled = threading.Event()  # chains are compiled beside the first replays
        importlib.import_module("corefw_c.fusing.compiler").soon(compiled.set)
        compiled.wait()
    benchmark(call)
    if column == "corefw-compiled":
        assert call.replays, corefw.explain(call)


@pytest.mark.parametrize("program", TRAINING)
def test_step(benchmark, column, program):
    if column == "jax":
        programs = importlib.import_module("benchmarks.jax_programs").PROGRAMS
        if program not in programs:
            pytest.skip("JAX has no autocast")
        step = programs[program]()
        step()
        benchmark(step)
    else:
        module = framework(column)
        measured(benchmark, TRAINING[program](module).update, column, module)


@pytest.mark.parametrize("program", ["chain"])
def test_chain(benchmark, column, program):
    if column == "jax":
        chain = importlib.import_module("benchmarks.jax_programs").chain(LARGE)
        chain()
        benchmark(chain)
        return
    module = framework(column)
    x, a, b, c = (module.randn(LARGE) for _ in range(4))
    gelu = module.nn.functional.gelu

    def chain(x, a, b, c):  # given, since what never changes would be computed once
        return gelu(x * a + b).mul(c).sum()

    call = module.compile(chain) if column.endswith("-compiled") else chain
    measured(benchmark, lambda: call(x, a, b, c), column.removesuffix("-compiled"), module)
    if column == "corefw-compiled":
        assert call.replays, corefw.explain(call)


@pytest.mark.parametrize("program", ["one_addition"])
def test_call(benchmark, column, program):
    """What a call costs that does next to nothing: the look at the argument, at what it depends on, and the replay."""
    if column == "jax":
        jax = importlib.import_module("jax")
        add, one = jax.jit(lambda x: x + 1), jax.numpy.ones(1)
        add(one)
        benchmark(lambda: add(one).block_until_ready())
        return
    module = framework(column)
    one = module.ones(1)
    add = module.compile(lambda x: x + 1) if column.endswith("-compiled") else lambda x: x + 1
    for _ in range(3):
        add(one)
    benchmark(add, one)


@pytest.mark.parametrize("program", TRAINING)
def test_recording(benchmark, program):
    """The first three calls of a compiled step, which look at it, record it and prove its calls in C; `eager_calls` is
    how many calls as ever take as long."""
    module = framework("corefw")
    step = TRAINING[program](module).update
    step()
    begun, times = time.perf_counter(), []
    while len(times) < 5 or (time.perf_counter() - begun < 0.2 and len(times) < 1000):
        before = time.perf_counter()
        step()
        times.append(time.perf_counter() - before)

    def record(compiled):
        for _ in range(5):  # under autocast one more, which keeps the casts of weights
            compiled()
            if compiled.replays:
                return
        raise AssertionError(corefw.explain(compiled))

    benchmark.pedantic(record, setup=lambda: ((corefw.compile(step),), {}), rounds=3)
    if benchmark.stats is not None:
        benchmark.extra_info["eager_calls"] = benchmark.stats.stats.median / sorted(times)[len(times) // 2]
