"""Uneven inputs: what ranks with fewer batches do until the others are done."""

from __future__ import annotations

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw import nn
from corefw.distributed.algorithms.join import Join, Joinable, JoinHook
from corefw.distributed.optim import ZeroRedundancyOptimizer
from corefw.nn.parallel import DistributedDataParallel
from tests.ranks.data_parallel import Model

F = nn.functional


def batches(rank, size):
    """A rank's batches: one more than the rank before has."""
    return [torch.sin(torch.arange(6.0) + 10 * i + rank).reshape(2, 3) for i in range(rank + 1)]


def loss_of(model, x):
    return F.mse_loss(model(x), x[:, :2].square())


def alone(size, divides_by_all, make):
    """The model that one process trains with what all ranks have."""
    model = Model(0)
    optimizer = make(model.parameters())
    for step in range(size):
        given = [batches(rank, size)[step] for rank in range(size) if step <= rank]
        optimizer.zero_grad()
        (sum(loss_of(model, x) for x in given) / (size if divides_by_all else len(given))).backward()
        optimizer.step()
    return model


def same_models(model, wanted, tolerance=1e-6):
    for (name, p), q in zip(model.named_parameters(), wanted.parameters(), strict=True):
        assert torch.allclose(p, q, atol=tolerance), (name, p, q)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.01)


def data_parallel(rank, size):
    for divides_by_all in (True, False):
        model = DistributedDataParallel(Model(rank), bucket_cap_mb=1e-4)
        optimizer = sgd(model.parameters())
        with model.join(divide_by_initial_world_size=divides_by_all):
            for i, x in enumerate(batches(rank, size)):
                optimizer.zero_grad()
                if i == 1:  # in two parts, of which one is not averaged
                    with model.no_sync():
                        (0 * loss_of(model, x)).backward()
                loss_of(model, x).backward()
                optimizer.step()
        same_models(model.module, alone(size, divides_by_all, sgd))
        assert model.module.seen == size + 1, "buffers are those of a rank that was done last"
        loss_of(model, batches(0, size)[0]).backward()  # as before


def with_zero(rank, size):
    model = DistributedDataParallel(Model(rank))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    with Join([model, optimizer]):
        for x in batches(rank, size):
            optimizer.zero_grad()
            loss_of(model, x).backward()
            optimizer.step()
    same_models(model.module, alone(size, True, adam))


def throwing(rank, size):
    model = DistributedDataParallel(Model(rank))
    told = "Rank 0 exhausted all inputs" if rank == 0 else "at least one rank that exhausted inputs"
    steps = 0
    with pytest.raises(RuntimeError, match=told), model.join(throw_on_early_termination=True):
        for x in batches(rank, size):
            loss_of(model, x).backward()
            steps += 1
    assert steps == 1
    with model.join(enable=False):
        loss_of(model, batches(0, size)[0]).backward()


class Counter(Joinable):
    """Counts, over all ranks, what is given to it."""

    def __init__(self, group=None):
        super().__init__()
        self.group, self.total, self.last = group or dist.group.WORLD, 0, None

    def __call__(self):
        Join.notify_join_context(self)
        self.add(1)

    def add(self, number):
        word = torch.tensor([number])
        dist.all_reduce(word, group=self.group)
        self.total += int(word)

    def join_hook(self, **kwargs):
        counter, given = self, kwargs

        class Hook(JoinHook):
            def main_hook(self):
                counter.add(0)

            def post_hook(self, is_last_joiner):
                counter.last = (is_last_joiner, given)

        return Hook()

    @property
    def join_device(self):
        return torch.get_default_device()

    @property
    def join_process_group(self):
        return self.group


def ones_own(rank, size):
    counters = [Counter(), Counter()]
    with Join(counters, word=1):
        for _ in range(rank + 1):
            for counter in counters:
                counter()
    wanted = size * (size + 1) // 2
    assert [c.total for c in counters] == [wanted] * 2
    assert [c.last for c in counters] == [(rank == size - 1, {"word": 1})] * 2
    assert Join.notify_join_context(counters[0]) is None
    with pytest.raises(ValueError, match="at least one joinable"):
        Join([])
    other = dist.new_group()
    with pytest.raises(ValueError, match="multiple process groups"):
        Join([Counter(), Counter(other)])


SCENARIOS = [data_parallel, with_zero, throwing, ones_own]
