"""Compiled functions in several threads at once: results are those of the functions."""

import copy
import threading

import pytest

import corefw as torch
from corefw import nn


def together(*functions, seconds=60):
    """Run functions in threads of their own that start at once; what one raises is raised."""
    barrier, errors = threading.Barrier(len(functions)), []

    def run(function):
        barrier.wait()
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.0), nn.Linear(8, 4)).requires_grad_(False)


@pytest.mark.parametrize("warm", [0, 1, 3])
def test_two_threads_call_one_function(warm):
    model = network()
    compiled = torch.compile(copy.deepcopy(model))
    for _ in range(warm):
        compiled(torch.ones(3, 6))

    def calls(seed):
        def run():
            generator = torch.Generator().manual_seed(seed)
            for _ in range(60):
                x = torch.randn(3, 6, generator=generator)
                assert torch.equal(compiled(x), model(x))

        return run

    together(*map(calls, range(4)))
    x = torch.ones(3, 6)
    for _ in range(4):
        assert torch.equal(compiled(x), model(x))
    assert compiled._compiled.replays > 0, torch.explain(compiled)


def test_one_thread_calls_while_another_records():
    model = network()
    replayed = torch.compile(copy.deepcopy(model))
    for _ in range(3):
        replayed(torch.ones(3, 6))
    done = threading.Event()

    def record():
        try:
            for rows in range(1, 30):
                recorded = torch.compile(lambda x: model(x).relu() * 2)
                for _ in range(3):
                    x = torch.randn(rows, 6, generator=torch.Generator().manual_seed(rows))
                    assert torch.equal(recorded(x), model(x).relu() * 2)
                assert recorded.replays >= 1
        finally:
            done.set()

    def call():
        generator = torch.Generator().manual_seed(0)
        while not done.is_set():
            x = torch.randn(3, 6, generator=generator)
            assert torch.equal(replayed(x), model(x))

    together(record, call)


def test_training_in_two_threads():
    models = [network().requires_grad_() for _ in range(3)]

    def trained(model, compiled, found):
        optimizer = torch.optim.Adam(model.parameters())

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        run = torch.compile(step) if compiled else step
        for i in range(20):
            found.append(run(torch.full((3, 6), 1.0 + i)).item())

    losses: list[list[float]] = [[], [], []]
    together(*(lambda i=i: trained(models[i], True, losses[i]) for i in range(2)))
    trained(models[2], False, losses[2])
    assert losses[0] == losses[1] == losses[2]
