"""The C backend's machinery: levels, the layout of arrays, threads, forks and memory."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import corefw as torch
from corefw.dispatch.registry import registry

pytest.importorskip("tests.compiled")
from corefw_c import allocator, library

lib = library.load(library.best_level())


def run(program, **environment):
    """The output of a Python program in a process of its own, in which warnings are errors."""
    command, env = [sys.executable, "-W", "error", "-c", program], {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# -- choice -----------------------------------------------------------------------------------------------------------
def test_is_preferred_to_numpy():
    torch.zeros(1)
    assert registry.backends["c"].priority > registry.backends["numpy"].priority
    assert "-> kernel of backend 'c'" in torch.explain("softmax", torch.zeros(2, 2), 1)


def test_numpy_can_be_asked_for():
    with torch.backend("numpy"):
        assert "-> kernel of backend 'numpy'" in torch.explain("softmax", torch.zeros(2, 2), 1)


@pytest.mark.parametrize("level", library.levels())
def test_level_is_lowered_by_the_environment(level):
    program = "import corefw, corefw_c.library as l; corefw.zeros(1); print(l.best_level())"
    assert run(program, COREFW_C_LEVEL=level) == level


REFUSED = """
import corefw as torch
for use in (lambda: torch.ones(2), lambda: torch.ones(2), torch.backends):
    try:
        use()
    except RuntimeError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("COREFW_C_LEVEL", "v9", f"this machine and installation have {', '.join(library.levels())}"),
        ("COREFW_C_LEVEL", library.levels()[0].upper() + "1", ""),
        ("COREFW_C_LEVEL", f"{library.levels()[0]}x", f"(did you mean '{library.levels()[0]}'?)"),
        ("COREFW_C_CACHE", "1 GB", "expected a number of bytes"),
    ],
)
def test_wrong_settings_are_refused_each_time(variable, value, words):
    said = run(REFUSED, **{variable: value}).splitlines()
    assert len(said) == 3 and all(line.startswith(f"{variable}=") and words in line for line in said)


def test_the_level_is_told():
    level = library.best_level()
    torch.zeros(1)
    assert registry.backends["c"].detail == level
    assert f"-> kernel of backend 'c' ({level}, priority 10)" in torch.explain("softmax", torch.zeros(2, 2), 1)
    listed = [line.split()[0] for line in torch.explain("sum").splitlines()[2:]]
    assert listed[0] == "c" and len(set(listed)) == len(listed)
    (told,) = [str(backend) for backend in torch.backends() if backend.name == "c"]
    assert told.startswith(f"c ({level}) ")


# -- arrays -----------------------------------------------------------------------------------------------------------
def test_layout_of_arrays_is_read_as_numpy_says():
    a = np.zeros((4, 6), np.float64)[::-1, 1:4]
    facts = [a.ctypes.data, a.ndim, a.shape, a.strides, a.dtype.num]
    assert lib.layout_is(id(a), *facts)
    for position, wrong in enumerate((a.ctypes.data + 8, 1, (4, 4), (48, 8), 11)):
        assert not lib.layout_is(id(a), *facts[:position], wrong, *facts[position + 1 :])


def test_unexpected_layout_is_refused_with_the_reason():
    class Wrong:
        def layout_is(self, *facts):
            return 0

    with pytest.raises(ImportError, match="lays out its array objects"):
        library._check_layout(Wrong())


def test_wrong_shapes_and_dtypes_do_not_reach_memory():
    x, y = np.ones((2, 3), np.float32), np.ones((2, 4), np.float32)
    with pytest.raises(ValueError, match="softmax"):
        library.fail("softmax", lib.softmax(id(x), 1, id(y)))
    with pytest.raises(TypeError, match="softmax"):
        library.fail("softmax", lib.softmax(id(x), 1, id(x.astype(np.float64))))
    assert (y == 1).all()


# -- threads ----------------------------------------------------------------------------------------------------------
def work():
    """Results of kernels large enough to be shared between threads."""
    torch.manual_seed(0)
    x = torch.randn(300, 1000)
    return torch.stack([x.softmax(1).sum(), (x @ x.t()).sum(), x.exp().mean(), x.var(), x.sort(1)[0][:, 10].sum()])


def test_results_do_not_depend_on_the_number_of_threads(same_on_threads):
    same_on_threads(work)


def test_several_python_threads_compute_at_once(set_threads):
    set_threads(2)
    expected, wrong = work().numpy().copy(), []

    def repeat():
        for _ in range(5):
            x = torch.arange(300_000, dtype=torch.float32).reshape(300, 1000) / 1e5
            if not np.array_equal((x.exp() + x).numpy(), alone):
                wrong.append(x)

    x = torch.arange(300_000, dtype=torch.float32).reshape(300, 1000) / 1e5
    alone = (x.exp() + x).numpy()
    workers = [threading.Thread(target=repeat) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive()
    assert not wrong
    np.testing.assert_array_equal(work().numpy(), expected)


def test_fork_after_parallel_work_does_not_hang(set_threads):
    set_threads(2)
    expected = work().numpy().copy()
    child = os.fork()
    if child == 0:  # no pytest here: only the answer counts
        signal.alarm(60)
        os._exit(0 if np.array_equal(work().numpy(), expected) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    np.testing.assert_array_equal(work().numpy(), expected)


# -- memory -----------------------------------------------------------------------------------------------------------
def test_freed_memory_is_used_again():
    first = torch.empty(1 << 20)
    place = first.data_ptr()
    del first
    before = allocator.statistics()
    second = torch.empty(1 << 20)
    after = allocator.statistics()
    assert second.data_ptr() == place
    assert after.hits > before.hits and after.in_use >= before.in_use + (4 << 20)
    assert after.cached <= before.cached - (4 << 20)


def test_zeros_are_zeros_in_used_memory():
    dirty = np.full(100_000, 7.0)
    del dirty
    assert not np.zeros(100_000).any()


def test_cache_can_be_emptied_and_the_peak_reset():
    block = torch.empty(1 << 20)
    assert allocator.statistics().peak >= 4 << 20
    del block
    assert allocator.statistics().cached >= 4 << 20
    allocator.empty_cache()
    allocator.reset_peak()
    now = allocator.statistics()
    assert now.cached < 4 << 20 and now.peak <= now.in_use + (1 << 20)


def test_arrays_are_aligned_and_may_grow():
    for size in (1, 15, 16, 17, 100, 1000, 4097, 10**6):
        array = np.arange(size, dtype=np.float32)
        assert array.ctypes.data % 64 == 0
        array.resize(3 * size, refcheck=False)
        assert (array[:size] == np.arange(size, dtype=np.float32)).all() and not array[size:].any()


def test_numpy_keeps_its_allocator_on_request():
    program = """
import corefw, numpy
corefw.zeros(1)
print(numpy._core.multiarray.get_handler_name(numpy.empty(3)))
"""
    assert run(program, COREFW_C_CACHE="0") == "default_allocator"
    assert run(program) == "corefw"


def test_many_small_calls_keep_memory_flat():
    program = """
import corefw as torch
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
a = torch.ones(4)
def calls(n):
    for _ in range(n):
        ((a + a).exp().sum() * a).softmax(0)
calls(2000)
before = resident()
calls(50_000)
print(resident() - before)
"""
    if os.path.exists("/proc/self/statm"):
        assert int(run(program)) < 1 << 20
