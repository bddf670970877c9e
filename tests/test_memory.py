"""Memory: ops, graphs and errors leave nothing behind."""

import gc
import os
import weakref

import pytest

import corefw as torch

PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE


def plain():
    a = torch.ones(4)
    for _ in range(1000):
        (a + 1).mul(a).sum()


def recorded():
    a = torch.ones(4, requires_grad=True)
    for _ in range(200):
        (a * a).relu().sum().backward()


def in_place_views():
    a = torch.zeros(4, 4)
    for i in range(500):
        a[i % 4].add_(1)
        a.view(16)[3] = 1.0


def refused():
    a, b = torch.ones(3), torch.ones(4)
    for _ in range(200):
        with pytest.raises(RuntimeError):
            a + b


def numbers():
    a = torch.ones(2)
    for i in range(1000):
        a * (i + 0.5)


@pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="the resident size is read from /proc, which is not here"
)
@pytest.mark.parametrize("work", [plain, recorded, in_place_views, refused, numbers])
def test_repeated_work_leaves_the_resident_size_flat(work):
    for _ in range(20):
        work()
    before = resident()
    for _ in range(100):
        work()
    assert resident() - before < 2**20


def test_a_graph_dies_with_its_result_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(3, requires_grad=True)
        y = (x.exp() * x).sigmoid()
        watched = [weakref.ref(y), weakref.ref(y.grad_fn), weakref.ref(y.grad_fn.next_functions[0][0])]
        del y
        assert [w() for w in watched] == [None, None, None]
    finally:
        gc.enable()


def test_backward_frees_what_was_saved():
    x = torch.ones(1000, requires_grad=True)
    middle = x.exp()
    kept = weakref.ref(middle)
    loss = (middle * middle).sum()
    del middle
    assert kept() is not None
    loss.backward()
    assert kept() is None
