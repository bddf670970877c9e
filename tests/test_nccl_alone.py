"""Collectives of NCCL in a world of one, on a GPU - or on the emulated device where there is none."""

from contextlib import nullcontext

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw.dispatch.registry import registry
from corefw.distributed import engines

ACCELERATOR = "cuda" if torch.cuda.is_available() else "emulated" if "emulated" in registry.runtimes else None
DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32,
    torch.int64, torch.bool, torch.complex64, torch.complex128,
)  # fmt: skip

if ACCELERATOR is None:
    pytest.skip("neither a GPU nor what emulates it", allow_module_level=True)
if ACCELERATOR == "cuda" and not dist.is_nccl_available():
    pytest.skip(f"NOT RUN: {engines.load()['nccl'].unusable}", allow_module_level=True)


@pytest.fixture(autouse=True)
def world():
    """This process alone, joined by NCCL, with new tensors on the device."""
    if ACCELERATOR == "emulated":
        from tests.emulation.engine import installed
    else:
        installed = nullcontext
    with installed():
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
        with torch.device(ACCELERATOR):
            yield
        dist.destroy_process_group()


def own(dtype):
    return (torch.arange(6).reshape(2, 3) + 1).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_is_moved_and_summed(dtype):
    wanted = own(dtype).cpu()
    tensor, gathered, scattered = own(dtype), torch.zeros(2, 3, dtype=dtype), torch.zeros(2, 3, dtype=dtype)
    dist.all_reduce(tensor)
    dist.reduce(tensor, 0)
    dist.broadcast(tensor, 0)
    dist.all_gather_into_tensor(gathered, tensor)
    dist.reduce_scatter_tensor(scattered, gathered)
    for found in (tensor, gathered, scattered):
        assert torch.equal(found.cpu(), wanted)


def test_parts_of_lists():
    tensor = own(torch.float32)
    gathered, scattered, exchanged = ([torch.zeros(2, 3)] for _ in range(3))
    dist.gather(tensor, gathered, dst=0)
    dist.scatter(scattered[0], [tensor], src=0)
    dist.all_to_all(exchanged, [tensor.t().contiguous().t()])
    single = torch.zeros(2, 3)
    dist.all_to_all_single(single, tensor)
    for found in (gathered[0], scattered[0], exchanged[0], single):
        assert torch.equal(found.cpu(), tensor.cpu())
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    assert objects == [{"a": 1}]
    dist.barrier()


def test_what_is_computed_before_and_after():
    """Streams wait for each other; nothing else does."""
    tensor = torch.zeros(1 << 16)
    for step in range(20):
        tensor.add_(1)
        work = dist.all_reduce(tensor, async_op=True)
        beside = torch.ones(1 << 16) * step
        work.wait()
        tensor.mul_(2)
    assert tensor[-1].item() == 2**21 - 2 and beside[0].item() == 19
    assert work.is_completed()


def test_a_model_trains():
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
    before = model.module.weight.detach().cpu()
    model(torch.ones(1, 3)).sum().backward()
    torch.optim.SGD(model.parameters(), lr=1.0).step()
    assert torch.allclose(model.module.weight.detach().cpu(), before - 1)
