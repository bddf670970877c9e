"""The engine "nccl" over a stand-in for CuPy's NCCL, on the emulated device."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw.dispatch.registry import registry
from tests.ranks import collectives, data_parallel, hooks, joining, names, sharded, threads

if "emulated" not in registry.runtimes:
    pytest.skip("there is no emulated device", allow_module_level=True)

from corefw_cupy.nccl_communicator import NcclCommunicator, reduction
from tests.emulation import nccl
from tests.emulation.engine import installed

TRAINING = [data_parallel.averages, hooks.power_sgd, joining.data_parallel, sharded.freed]
SCENARIOS = [*collectives.SCENARIOS, names.split, names.shrink, names.coalesced]


@pytest.fixture(autouse=True, scope="module")
def engine():
    """The engine, for arrays of the emulated device."""
    with installed():
        yield


def run(size, function):
    """Run a function on ranks that are joined by NCCL through a store."""
    store = dist.HashStore()

    def join(rank):
        dist.init_process_group("nccl", store=store, rank=rank, world_size=size)

    def work(rank):
        with torch.device("emulated"):
            result = function(rank, size)
        dist.destroy_process_group()
        return result

    found = threads.run(size, work, join)
    assert not nccl.made, "a communicator was left open"
    assert store.num_keys() == 0, "what is in the store is for the next job"
    return found


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_collectives(scenario, size):
    run(size, scenario)


@pytest.mark.parametrize("scenario", TRAINING, ids=lambda scenario: scenario.__name__)
def test_training(scenario):
    run(2, scenario)


def test_marks_are_where_streams_need_them():
    """Where each stream's work is done by itself and late, a missing mark gives stale elements."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", __file__, "-k", "test_collectives and 2"]
    environment = {**os.environ, "COREFW_EMULATED": "deferred"}
    done = subprocess.run(command, cwd=Path(__file__).parents[1], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and f"{len(SCENARIOS)} passed" in done.stdout, done.stdout


def test_ranks_exchange_without_order():
    """Messages that are begun together wait for none of each other, also of three ranks in a ring."""

    def ring(rank, size):
        found = [torch.full((2,), float(rank)) for _ in range(size)]
        others = [(rank + step) % size for step in range(1, size)]
        messages = [dist.P2POp(dist.isend, torch.full((2,), float(rank)), other) for other in others]
        messages += [dist.P2POp(dist.irecv, found[other], other) for other in others]
        for work in dist.batch_isend_irecv(messages):
            assert work.wait() and work.is_completed()
        return [part[0].item() for part in found]

    assert run(3, ring) == [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]


def test_what_is_asked_of_one_rank_alone_is_told(monkeypatch):
    monkeypatch.setattr(nccl, "PATIENCE", 0.2)

    def lonely(rank, size):
        dist.all_reduce(torch.zeros(1))
        if rank == 0:
            with pytest.raises(dist.DistBackendError, match=r"all_reduce #2 of group 0 .* a rank did not come"):
                dist.all_reduce(torch.ones(2))

    run(2, lonely)


def test_calls_are_compared():
    def differing(rank, size):
        dist.set_debug_level(dist.DebugLevel.DETAIL)
        with pytest.raises(dist.DistBackendError, match="different collectives"):
            dist.all_reduce(torch.ones(rank + 1))
        dist.barrier()
        dist.set_debug_level(dist.DebugLevel.OFF)

    run(2, differing)


@pytest.mark.parametrize(
    ("name", "operation", "wanted"),
    [
        ("bfloat16", "max", (9, 1, 2, False)), ("float16", "product", (6, 1, 1, False)),
        ("complex128", "sum", (8, 2, 0, False)), ("int16", "min", (2, 1, 3, True)), ("bool", "sum", (1, 1, 2, False)),
        ("bool", "product", (1, 1, 3, False)),
    ],
)  # fmt: skip
def test_reductions(name, operation, wanted):
    assert reduction(name, operation) == wanted


@pytest.mark.parametrize(
    ("name", "operation"), [("complex64", "max"), ("int32", "bxor"), ("bool", "bxor"), ("float8_e5m2", "sum")]
)
def test_reductions_that_nccl_lacks(name, operation):
    with pytest.raises(ValueError, match=f"NCCL has no reduction '{operation}' of {name}"):
        reduction(name, operation)


def test_wide_sums_of_short_numbers_wrap():
    def wrapping(rank, size):
        tensor = torch.tensor([30000, -30000, 7], dtype=torch.int16)
        dist.all_reduce(tensor)
        part = torch.zeros(1, dtype=torch.int16)
        dist.reduce_scatter_tensor(part, torch.tensor([30000, -30000], dtype=torch.int16))
        return [*tensor.tolist(), part.item()]

    assert run(2, wrapping) == [[-5536, 5536, 14, -5536], [-5536, 5536, 14, 5536]]


class Mark:
    """A mark that is never reached."""

    done = False


def test_what_does_not_end_is_aborted(monkeypatch):
    """The program is told by its next call, within the time that was given."""
    runtime = registry.runtime("emulated")
    one = NcclCommunicator(nccl, runtime, dist.HashStore(), "alone", 0, 1, 0.2)
    array = torch.ones(3, device="emulated").array
    request = one.all_reduce(array, "sum")
    request.wait(1.0)
    assert request.done() and one._made in nccl.made
    request = one.all_reduce(array, "sum")
    request.mark = Mark()
    end = time.monotonic() + 10
    while nccl.made and time.monotonic() < end:
        time.sleep(0.02)
    assert not nccl.made
    for call in (request.done, lambda: request.wait(1.0), lambda: one.all_reduce(array, "sum")):
        with pytest.raises(TimeoutError):
            call()
    one.close()


def test_an_error_of_the_library_is_told(monkeypatch):
    one = NcclCommunicator(nccl, registry.runtime("emulated"), dist.HashStore(), "alone", 0, 1, 0.2)
    array = torch.ones(3, device="emulated").array
    one.all_reduce(array, "sum").wait(1.0)

    def failing(self):
        raise nccl.NcclError("remote process exited")

    monkeypatch.setattr(nccl.NcclCommunicator, "check_async_error", failing)
    end = time.monotonic() + 10
    while nccl.made and time.monotonic() < end:
        time.sleep(0.02)
    with pytest.raises(nccl.NcclError, match="remote process"):
        one.all_reduce(array, "sum")
    one.close()


def test_a_closed_communicator_refuses():
    before = set(threading.enumerate())
    one = NcclCommunicator(nccl, registry.runtime("emulated"), dist.HashStore(), "alone", 0, 1, 60.0)
    one.barrier().wait(1.0)
    one.close()
    with pytest.raises(ValueError, match="closed"):
        one.barrier()
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive()


def test_addresses_join_too():
    """Rank 0 serves the store at MASTER_ADDR:MASTER_PORT; here at a free port."""
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, multi_tenant=True)

    def join(rank):
        dist.init_process_group("nccl", f"tcp://127.0.0.1:{server.port}?rank={rank}&world_size=2")

    def work(rank):
        tensor = torch.ones(2, device="emulated")
        dist.all_reduce(tensor)
        dist.destroy_process_group()
        return tensor.tolist()

    assert threads.run(2, work, join) == [[2.0, 2.0]] * 2


def test_an_engine_that_is_joined_already_tells_the_address():
    """ "cpu:threads,emulated:nccl": the store's address goes by the other engine."""

    def work(rank):
        tensors = [torch.ones(2, device=device) for device in ("cpu", "emulated")]
        for tensor in tensors:
            dist.all_reduce(tensor)
        assert dist.get_backend_config() == "cpu:threads,emulated:nccl"
        dist.destroy_process_group()
        return [tensor.tolist() for tensor in tensors]

    found = threads.run(2, work, lambda rank: dist.init_process_group("cpu:threads,emulated:nccl"))
    assert found == [[[2.0, 2.0]] * 2] * 2


def test_nothing_tells_where_the_others_are(monkeypatch):
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(dist.DistNetworkError, match="nothing tells how the 2 processes find each other"):
        dist.init_process_group("nccl", rank=0, world_size=2)
    dist.init_process_group("nccl")  # a world of one
    tensor = torch.ones(2, device="emulated")
    dist.all_reduce(tensor)
    assert (dist.get_rank(), dist.get_world_size(), tensor.tolist()) == (0, 1, [1.0, 1.0])
    dist.destroy_process_group()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"store": 1, "init_method": "env://"}, "both init_method and store"),
        ({"store": 1, "rank": 0}, "world_size must be positive"),
    ],
)
def test_stores_come_with_rank_and_size(options, told):
    with pytest.raises(AssertionError, match=told):
        dist.init_process_group("nccl", **options)
