"""Hooks that compress or leave out averages, against the algorithms of their papers in NumPy."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import corefw as torch
import corefw.distributed as dist
from corefw import nn
from corefw.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook, powerSGD_hook
from corefw.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from corefw.distributed.optim import PostLocalSGDOptimizer
from corefw.nn.parallel import DistributedDataParallel

SHAPES = {"a": (12, 16), "b": (12, 16), "c": (9, 20), "bias": (13,)}
COMPRESSED = ("a", "b", "c")  # with r = 2: 56, 56 and 58 numbers, less than half of 192, 192 and 180


class Given(nn.Module):
    """A model whose gradients are what it is called with."""

    def __init__(self):
        super().__init__()
        for name, shape in SHAPES.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(*shape, dtype=torch.float64)))

    def forward(self, gradients):
        return sum((getattr(self, name) * torch.tensor(value)).sum() for name, value in gradients.items())


def gradients(rank, step):
    """A rank's gradients in a step; those of ranks and steps have something in common, as in training."""
    common, own = np.random.default_rng(7), np.random.default_rng([rank, step])
    return {name: common.normal(size=shape) + own.normal(size=shape) / 2 for name, shape in SHAPES.items()}


def orthogonalized(matrix):
    """The columns of a matrix, after Gram and Schmidt."""
    done = []
    for column in matrix.T:
        for other in done:
            column = column - (column @ other) * other
        done.append(column / np.linalg.norm(column))
    return np.stack(done, 1)


class Paper:
    """Algorithms 1 and 2 of Vogels et al. (2019) for one gradient of all ranks."""

    def __init__(self, q, size):
        self.q, self.errors = q, [0.0] * size

    def step(self, matrices):
        """The average of matrices as all ranks get it."""
        given = [m + e for m, e in zip(matrices, self.errors)]
        p = orthogonalized(np.mean([m @ self.q for m in given], 0))
        self.q = np.mean([m.T @ p for m in given], 0)
        result = p @ self.q.T
        self.errors = [m - result for m in given]
        return result


def stepped(model, rank, step):
    """The gradients that a model gets in a step."""
    model.zero_grad()
    model(gradients(rank, step)).backward()
    return {name: getattr(model.module, name).grad.cpu().numpy() for name in SHAPES}


def mean(size, step, name):
    return np.mean([gradients(r, step)[name] for r in range(size)], 0)


def power_sgd(rank, size):
    queries = {name: np.random.default_rng(i).normal(size=(SHAPES[name][1], 2)) for i, name in enumerate(COMPRESSED)}
    for together in (False, True):
        state = powerSGD_hook.PowerSGDState(None, 2, start_powerSGD_iter=2, batch_tensors_with_same_shape=together)
        model = DistributedDataParallel(Given())
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        order = [name for name in reversed(SHAPES) if name in COMPRESSED]  # of a bucket
        batches = [["c"], ["b", "a"]] if together else [[name] for name in order]
        state.q_memory_dict[0] = [torch.tensor(np.stack([queries[n] for n in names])) for names in batches]
        paper = {name: Paper(queries[name], size) for name in COMPRESSED}
        for step in range(6):
            found = stepped(model, rank, step)
            for name in SHAPES:
                wanted = mean(size, step, name)
                if step >= 2 and name in COMPRESSED:
                    wanted = paper[name].step([gradients(r, step)[name] for r in range(size)])
                    assert np.linalg.matrix_rank(found[name]) == 2
                np.testing.assert_allclose(found[name], wanted, atol=1e-9, err_msg=f"{name} in step {step}")
        rate, before, after = state.compression_stats()
        sent = sum(2 * sum(SHAPES[name]) for name in COMPRESSED) + 13
        assert (before, after) == (4 * 577, 4 * sent) and rate == 577 / sent
        kept = pickle.loads(pickle.dumps(state))
        assert kept.iter == 6 and torch.equal(kept.error_dict[0], state.error_dict[0])


def power_sgd_options(rank, size):
    fresh = powerSGD_hook.PowerSGDState(
        None, 12, start_powerSGD_iter=0, min_compression_rate=0.1, use_error_feedback=False, warm_start=False,
        orthogonalization_epsilon=1e-12,
    )  # fmt: skip
    model = DistributedDataParallel(Given())
    model.register_comm_hook(fresh, powerSGD_hook.powerSGD_hook)
    for step in range(2):  # with as many columns as rows nothing is lost, whatever Q is
        found = stepped(model, rank, step)
        for name in SHAPES:
            np.testing.assert_allclose(found[name], mean(size, step, name), atol=1e-6, err_msg=name)
    assert not fresh.q_memory_dict and not fresh.error_dict
    with pytest.raises(ValueError, match="start_powerSGD_iter"):
        powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=1)


def batched_power_sgd(rank, size):
    state = powerSGD_hook.PowerSGDState(None, 3, start_powerSGD_iter=2)
    model = DistributedDataParallel(Given())
    model.register_comm_hook(state, powerSGD_hook.batched_powerSGD_hook)
    order = [*reversed(SHAPES)]

    def square(r, step):
        flat = np.concatenate([gradients(r, step)[name].ravel() for name in order])
        return np.pad(flat, (0, 25 * 25 - flat.size)).reshape(25, 25)  # 577 numbers

    query = np.random.default_rng(3).normal(size=(25, 3))
    state.q_memory_dict[0] = [torch.tensor(query[None])]
    paper = Paper(query, size)
    for step in range(5):
        grads = stepped(model, rank, step)
        found = np.concatenate([grads[name].ravel() for name in order])
        wanted = np.concatenate([mean(size, step, name).ravel() for name in order])
        if step >= 2:
            result = paper.step([square(r, step) for r in range(size)])
            paper.errors = [_without_padding(error, found.size) for error in paper.errors]
            wanted = result.ravel()[: found.size]
        np.testing.assert_allclose(found, wanted, atol=1e-9, err_msg=f"step {step}")


def _without_padding(error, count):
    """What is lost of elements that are there."""
    error = error.copy().ravel()
    error[count:] = 0
    return error.reshape(25, 25)


def post_local_sgd(rank, size):
    own = dist.new_subgroups(1)[0]
    state = post_localSGD_hook.PostLocalSGDState(None, own, 2)
    model = DistributedDataParallel(Given())
    model.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
    averager = PeriodicModelAverager(2, warmup_steps=2)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), averager)
    weights = np.zeros((size, 12, 16))
    for step in range(5):
        found = stepped(model, rank, step)["a"]
        every = [gradients(r, step)["a"] for r in range(size)]
        weights -= np.mean(every, 0) if step < 2 else every
        np.testing.assert_allclose(found, np.mean(every, 0) if step < 2 else every[rank], atol=1e-12)
        optimizer.step()
        if step in (2, 4):
            weights[:] = weights.mean(0)
        np.testing.assert_allclose(model.module.a.detach().cpu().numpy(), weights[rank], atol=1e-12, err_msg=str(step))
    kept = optimizer.state_dict()
    assert kept["step"] == averager.step == 5
    averager.step = 0
    optimizer.load_state_dict(kept)
    assert averager.step == 5 and "SGD" in repr(optimizer) and optimizer.defaults["lr"] == 1.0
    optimizer.zero_grad()
    assert model.module.a.grad is None and optimizer.state is optimizer.optim.state
    with pytest.warns(UserWarning, match="step counter"):
        optimizer.load_state_dict({name: value for name, value in kept.items() if name != "step"})
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})
    assert len(optimizer.param_groups) == 2 and averager.step == 0
    alone = post_localSGD_hook.PostLocalSGDState(None, None, 0, post_local_gradient_allreduce=False)
    model = DistributedDataParallel(Given())
    model.register_comm_hook(alone, post_localSGD_hook.post_localSGD_hook)
    np.testing.assert_array_equal(stepped(model, rank, 0)["bias"], gradients(rank, 0)["bias"])
    for arguments, told in (((0,), "period"), ((1, -1), "warmup_steps")):
        with pytest.raises(ValueError, match=told):
            PeriodicModelAverager(*arguments)


SCENARIOS = [power_sgd, power_sgd_options, batched_power_sgd, post_local_sgd]
