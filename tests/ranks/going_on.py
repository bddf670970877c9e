"""What is on its way goes on while the program computes, with engines that need calls for that, as MPI does."""

from __future__ import annotations

import copy

import corefw as torch
import corefw.distributed as dist
from corefw.distributed.engine import Request
from corefw.nn.parallel import DistributedDataParallel
from tests.ranks import data_parallel
from tests.ranks.data_parallel import F
from tests.ranks.sharded import Layers, part, samples, sharded


class InSteps(Request):
    """A collective that ends when it is asked for the third time."""

    def __init__(self, begin):
        self.begin, self.left = begin, 3

    def done(self):
        self.left -= 1
        if self.left == 0:
            request = self.begin()
            if request is not None:
                request.wait(60)
        return self.left <= 0

    def wait(self, timeout):
        while not self.done():
            pass


def slow(name):
    """A group whose collectives of a name take several calls, and a list of those begun."""
    group = dist.new_group()
    communicator = group.any_communicator()
    begin, begun = getattr(communicator, name), []

    def call(*arguments):
        begun.append(InSteps(lambda: begin(*arguments)))
        return begun[-1]

    setattr(communicator, name, call)
    return group, begun


def gradients(rank, size):
    """The first bucket has arrived before the backward ends."""
    group, begun = slow("all_reduce")
    model = DistributedDataParallel(data_parallel.Model(rank), bucket_cap_mb=1e-5, process_group=group)
    inputs, targets = data_parallel.data(size)
    arrived = []

    def look(gradient):
        arrived.extend(request.left <= 0 for request in begun)

    model.module.first.register_forward_hook(lambda module, given, result: result.register_hook(look) and None)
    F.mse_loss(model(data_parallel.part(rank, inputs)), data_parallel.part(rank, targets)).backward()
    data_parallel.close(model.module, data_parallel.alone(size))
    assert arrived[0] and not all(arrived)


def parameters(rank, size):
    """A unit's parameters have arrived when its forward or backward begins."""
    group, _ = slow("all_gather")
    model = Layers()
    sharded(model, model.blocks, mesh=group)
    x = part(rank, samples(size))
    model(x).sum().backward()  # tells the order of the units
    arrived = []
    for block in model.blocks[1:]:
        ready = block._fsdp_unit.flats[0].ready

        def look(flat=block._fsdp_unit.flats[0], ready=ready):
            if flat._coming is not None:
                arrived.append(flat._coming[1].requests[0].left <= 0)
            return ready()

        block._fsdp_unit.flats[0].ready = look
    loss = model(x).sum()
    assert arrived == [True, True]
    loss.backward()
    assert arrived[2:] and all(arrived[2:])


def left_alone(rank, size):
    """Whoever drops a Work does not stop it; the next one that is begun looks after it."""
    group, begun = slow("all_reduce")
    tensor = torch.ones(2)
    dist.all_reduce(tensor, group=group, async_op=True)
    assert len(group.going) == 1
    for _ in range(3):
        group.advance()
    assert group.going == [] and tensor.tolist() == [size, size]
    works = [dist.all_reduce(torch.ones(2), group=group, async_op=True) for _ in range(2)]
    assert group.going == works and [request.left for request in begun[1:]] == [2, 3]
    assert [works[1].is_completed() for _ in range(3)] == [False, False, True]
    assert works[0].wait() and group.going == []


def compiled(rank, size):
    """What is compiled gives in each call what all processes give, though collectives are not replayed."""
    plain = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    for parameter in plain.parameters():  # threads share what draws random numbers
        parameter.detach().copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
    wrapped = DistributedDataParallel(copy.deepcopy(plain))
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (plain, wrapped)]

    def step(x):
        optimizers[1].zero_grad()
        loss = wrapped(x).square().mean()
        loss.backward()
        optimizers[1].step()
        total = loss.detach() * 1
        dist.all_reduce(total)
        return total / size

    run = torch.compile(step)
    for i in range(6):
        everyone = torch.arange(3.0 * size).reshape(size, 3) / size + i
        optimizers[0].zero_grad()
        expected = plain(everyone).square().mean()
        expected.backward()
        optimizers[0].step()
        assert torch.allclose(run(everyone[rank : rank + 1]), expected.detach(), atol=1e-6)
    assert "0 calls replayed" in torch.explain(run)
    for own, shared in zip(plain.parameters(), wrapped.parameters(), strict=True):
        assert torch.allclose(own, shared, atol=1e-6)


SCENARIOS = [gradients, parameters, left_alone, compiled]
