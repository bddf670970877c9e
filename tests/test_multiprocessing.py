"""Tensors that several processes see: queues, pipes, pools, started processes, and what is left when one is killed."""

import gc
import os
import signal
import sys

import pytest

import corefw as torch
from corefw import multiprocessing as mp
from corefw.multiprocessing import jobs
from corefw.shared_memory import SharedMemory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="tensors are copied there")
nn = torch.nn


def answer(tensor):
    """Change a tensor that another process has, and tell what it was."""
    found = tensor.tolist()
    with torch.no_grad():
        tensor.add_(10)
    return found, tensor.is_shared()


def serve(received, sent):
    """Answer to all tensors; send back one of its own at the end."""
    while (tensor := received.get()) is not None:
        sent.put(answer(tensor))
    made = torch.arange(3.0)
    sent.put(made)
    received.get()  # until the other one has it
    sent.put(made.tolist())


@pytest.fixture(params=["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def served(request):
    context = mp.get_context(request.param)
    there, back = context.Queue(), context.Queue()
    process = context.Process(target=serve, args=(there, back))
    process.start()
    yield there, back
    process.join(30)
    assert process.exitcode == 0


def test_tensors_travel_without_their_elements(served):
    there, back = served
    x, parameter = torch.arange(6).view(2, 3).t(), nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
    x.share_memory_()
    for tensor in (x, x[1:, 1], parameter, torch.tensor(3), nn.Buffer(torch.zeros(1))):
        before = tensor.tolist()
        there.put(tensor)
        found, shared = back.get(timeout=30)
        assert found == before and shared and tensor.is_shared()
        assert tensor.tolist() == torch.tensor(before).add(10).tolist()
    base = torch.zeros(4)
    there.put(base[:2])  # a part of what is not shared is copied
    assert back.get(timeout=30) == ([0, 0], False) and base.tolist() == [0] * 4
    there.put(torch.zeros(0))
    assert back.get(timeout=30) == ([], False)
    there.put(None)
    received = back.get(timeout=30)
    received[1] = 9
    there.put("seen")
    assert back.get(timeout=30) == [0, 9, 2] and received.is_shared()


def test_memory_goes_with_its_last_user():
    opened = lambda: len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    receiver, sender = mp.Pipe(duplex=False)
    x = torch.ones(1000)
    sender.send(x)
    y = receiver.recv()
    gc.collect()
    before = opened()
    del x
    assert y.sum().item() == 1000
    del y
    gc.collect()
    assert opened() <= before - 2 or not before


def test_a_killed_process_leaves_nothing():
    receiver, sender = mp.get_context("fork").Pipe(duplex=False)

    def send():
        x = torch.ones(1000)
        sender.send(x)
        receiver.poll(30)
        signal.pause()

    names = [*os.listdir("/dev/shm")] if os.path.isdir("/dev/shm") else []
    process = mp.get_context("fork").Process(target=send)
    process.start()
    found = receiver.recv()
    os.kill(process.pid, signal.SIGKILL)
    process.join(30)
    assert found.add_(1).sum().item() == 2000 and process.exitcode == -signal.SIGKILL
    assert not os.path.isdir("/dev/shm") or {*os.listdir("/dev/shm")} - {*names} == set()


def double(tensor):
    return tensor.mul_(2)


def test_pools():
    parts = [torch.full((2,), float(i)) for i in range(3)]
    with mp.get_context("fork").Pool(2) as pool:
        found = pool.map(double, parts)
    assert [part.tolist() for part in found] == [[0, 0], [2, 2], [4, 4]] == [part.tolist() for part in parts]


def train(number, model, x, y, steps):
    """Steps of one process on weights that all have; no locks, as in Hogwild."""
    torch.manual_seed(number)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_processes_train_one_model(method):
    model, x = nn.Linear(3, 1), torch.rand(32, 3)
    y = x.sum(1, keepdim=True)
    model.share_memory()
    before = nn.functional.mse_loss(model(x), y).item()
    mp.start_processes(train, (model, x, y, 40), nprocs=2, start_method=method)
    assert model.weight.is_shared() and nn.functional.mse_loss(model(x), y).item() < before / 4


def test_what_does_not_travel():
    receiver, sender = mp.Pipe(duplex=False)
    with pytest.raises(RuntimeError, match="Cowardly refusing"):
        sender.send(torch.ones(2, requires_grad=True) * 2)
    leaf = torch.ones(2, requires_grad=True)
    sender.send(leaf)
    assert receiver.recv().requires_grad


def test_strategies():
    assert mp.get_sharing_strategy() == "file_descriptor" and mp.get_all_sharing_strategies() > {"file_descriptor"}
    receiver, sender = mp.Pipe(duplex=False)
    try:
        mp.set_sharing_strategy("file_system")
        x = torch.ones(2)
        sender.send(x)
        assert receiver.recv().tolist() == [1, 1] and not x.is_shared()
    finally:
        mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(ValueError, match="'other'"):
        mp.set_sharing_strategy("other")


def test_shared_memory_without_a_kernel_for_it(monkeypatch):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    first = SharedMemory.of_size(8)
    second = SharedMemory.of_descriptor(os.dup(first.descriptor), 8)
    second[3] = 5
    assert first[3] == 5 and len(first) == 8


class TestInAJob:
    """Where a launcher started several processes, they are the ones that `spawn` would start."""

    @pytest.fixture(autouse=True)
    def job(self, monkeypatch):
        monkeypatch.setenv("PMI_RANK", "1")
        monkeypatch.setenv("PMI_SIZE", "3")

    def test_another_number_is_refused(self):
        with pytest.raises(ValueError, match=r"nprocs is 2, but the job .* has 3 processes.*`corefw launch -n 2`"):
            mp.spawn(print, nprocs=2)
        told = r"world size 2, but its job has 3 processes. Start it with `corefw launch -n 2`"
        with pytest.raises(ValueError, match=told):
            torch.distributed.init_process_group("gloo", rank=1, world_size=2)
        with pytest.raises(ValueError, match="rank 0, but this process is rank 1 of its job"):
            torch.distributed.init_process_group("gloo", rank=0, world_size=3)

    def test_a_share_is_run_here(self):
        seen = []
        context = mp.spawn(lambda *given: seen.append(given), ("a", 2), nprocs=3, join=False)
        assert seen == [(1, "a", 2)] and context.join() and context.processes == []
        processes = [mp.Process(target=lambda *given: seen.append(given), args=(r, 3)) for r in range(3)]
        for process in processes:
            process.start()
        assert seen[1:] == [(1, 3)]
        for process in processes:
            process.join()
            assert process.exitcode == 0
        with pytest.raises(KeyError, match="here"):
            mp.spawn(lambda rank: {}["here"], nprocs=3)

    def test_other_processes_are_started(self, monkeypatch):
        process = mp.Process(target=print, args=("a", 3))
        process.start()
        process.join()
        assert process.exitcode == 0 and process.pid != os.getpid()
        monkeypatch.delenv("PMI_SIZE")
        monkeypatch.setenv("WORLD_SIZE", "3")  # which programs themselves may set, of hosts for instance
        assert jobs.place() is None
