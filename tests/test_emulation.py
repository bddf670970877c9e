"""The emulated device catches planted faults: what would go wrong on a GPU shows where there is none."""

import os
import subprocess
import sys

import numpy as np
import pytest

from corefw.dispatch.registry import registry

if "emulated" not in registry.runtimes:
    pytest.skip("there is no emulated device", allow_module_level=True)

from tests.emulation import compiler, memory, queue
from tests.emulation.modes import MODES

N = 256
#: a line turned around in each block by way of shared memory
TURN = """
extern "C" __global__ void turn(const float *x, float *y)
{
    __shared__ float line[64];
    const float *own = x + blockIdx.x * blockDim.x;
    line[threadIdx.x] = own[threadIdx.x];
    BARRIER;
    y[blockIdx.x * blockDim.x + threadIdx.x] = line[63 - threadIdx.x];
}
"""
#: a line moved down by one in its own memory: right within a block, and while blocks run from the first to the last
SHIFT = """
extern "C" __global__ void shift(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float found = x[i + 1];
    __syncthreads();
    x[i] = found;
}
"""
SUM = """
extern "C" __global__ void add(const float *x, const float *y, float *z, long long n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (GUARD)
        z[i] = x[i] + y[i];
}
"""
#: where each thread's variables lie
STACKS = """
extern "C" __global__ void stacks(unsigned long long *where)
{
    volatile int local = SALT;
    where[threadIdx.x] = (unsigned long long)&local;
    __syncthreads();
}
"""


def launched(source, name, arrays, *numbers, blocks=4, threads=64, **macros):
    """Run a function over arrays, and return the last one."""
    source = "".join(f"#define {macro} {text}\n" for macro, text in macros.items()) + source
    arguments = [memory.device(array) for array in arrays]
    compiler.launcher(compiler.library(source), name)((blocks,), (threads,), (*arguments, *numbers))
    return memory.host(arguments[-1])


@pytest.fixture
def line():
    return np.random.default_rng(0).normal(size=N).astype(np.float32)


@pytest.mark.parametrize(("barrier", "right"), [("__syncthreads()", True), ("", False)])
def test_a_missing_barrier(line, barrier, right):
    found = launched(TURN, "turn", [line, np.zeros(N, np.float32)], BARRIER=barrier)
    assert (found == line.reshape(4, 64)[:, ::-1].ravel()).all() == right


def test_a_barrier_that_some_threads_never_reach(line):
    with pytest.raises(RuntimeError, match="some threads wait at a barrier that others never reach"):
        launched(TURN, "turn", [line, line], BARRIER="if (threadIdx.x % 2) __syncthreads(); else __syncwarp()")


def test_all_libraries_run_their_threads_on_the_same_stacks():
    """Each library with its own would take as much address space as a machine has memory, which then can't fork."""
    where = [
        launched(STACKS, "stacks", [np.zeros(64, np.uint64)], blocks=1, SALT=salt).astype(np.int64) for salt in (1, 2)
    ]
    assert (abs(where[0] - where[1]) < 1 << 12).all()
    assert len(set(where[0])) == 64


def test_what_lies_outside_of_an_array_is_not_written(line):
    arrays = [line, line, line[: N - 3]]
    assert (launched(SUM, "add", arrays, N - 3, GUARD="i < n") == 2 * line[: N - 3]).all()
    with pytest.raises(RuntimeError, match=f"add wrote outside of an array of {4 * (N - 3)} bytes"):
        launched(SUM, "add", arrays, N, GUARD="i < n")


def test_what_nobody_wrote_is_no_number(line):
    result = memory.empty((N,), "f4")
    function = compiler.launcher(compiler.library(f"#define GUARD i < n\n{SUM}"), "add")
    function((4,), (64,), (memory.device(line), memory.device(line), result, 100))
    assert np.isnan(memory.host(result)[100:]).all() and not np.isnan(memory.host(result)[:100]).any()


@pytest.mark.parametrize("wrong", [100.0, np.float32(3), None])
def test_an_argument_of_another_kind(line, wrong):
    with pytest.raises(TypeError, match="was passed for a parameter of kind 'i'"):
        launched(SUM, "add", [line] * 3, wrong, GUARD="i < n")


def test_work_waits_until_it_is_done(monkeypatch):
    """Another thread must not take a stream for idle whose last launch runs, nor its memory."""
    monkeypatch.setattr(queue, "DEFERRED", True)
    monkeypatch.setattr(queue, "_kept", [])
    stream, seen = -1, []

    def launch():
        queue.keep("given back", kept=queue._kept)
        seen.append((queue.is_empty(stream), list(queue._kept)))

    def refused():
        raise ValueError("late")

    queue.submit(launch, stream)
    queue.drain(stream)
    assert seen == [(False, ["given back"])] and queue.is_empty(stream)
    queue.submit(refused, stream)
    queue.submit(lambda: seen.append("after"), stream)
    with pytest.raises(ValueError, match="late"):
        queue.drain(stream)
    queue.drain(stream)
    assert seen[1:] == ["after"] and queue.is_empty(stream), "what fails is not run again"


def test_what_needs_blocks_to_run_in_order(line):
    """Right by luck where they do; the mode "reversed" shows it."""
    found = launched(SHIFT, "shift", [np.append(line, np.float32(0))])
    assert (found[:N] == np.append(line[1:], 0)).all() == ("reversed" not in MODES)


def test_the_other_order():
    """All of this file, and of the writes to memory that is read, with blocks and threads in the opposite order."""
    if "reversed" in MODES:
        pytest.skip("this is the other order")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    files = [__file__, os.path.join(os.path.dirname(__file__), "test_overlap.py"), "-k", "emulat"]
    modes = {"COREFW_EMULATED": ",".join([*MODES, "reversed"])}
    found = subprocess.run([*command, *files], env={**os.environ, **modes}, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-4000:]


def test_barriers_are_taken_out_one_at_a_time():
    command = [sys.executable, "-m", "tests.cuda_barriers", "core/matmul.cu"]
    found = subprocess.run(command, capture_output=True, text=True)
    lines = found.stdout.splitlines()
    assert found.returncode == 0 and len(lines) == 2, found.stdout + found.stderr
    assert all("::test_products_of_several_tiles" in line for line in lines)
