"""Recordings of `compile` on the GPU are replayed as CUDA graphs where nothing on the host changes between replays."""

import numpy as np
import pytest

pytest.importorskip("cupy")

import corefw as torch
from corefw_cupy import graphs, replaying
from tests.emulation import compiler
from tests.steps import classes, step_of

pytestmark = pytest.mark.skipif(compiler.COMPILER is None, reason="no C++ compiler")

nn, optim = torch.nn, torch.optim
STEPS = 6
AS_RECORDED = {"passes": []}  # no function is compiled for these tests alone
GRAPHS = STEPS - 3  # the first call runs as ever, the second is recorded, the third goes call by call


@pytest.fixture
def replayed(cuda, monkeypatch):
    """A list that grows with each replay of a graph."""
    found, replay = [], graphs.Graph.replay

    def counted(self):
        found.append(self)
        replay(self)

    monkeypatch.setattr(graphs.Graph, "replay", counted)
    return found


def network():
    """One of more launches than arrays that a graph must copy."""
    torch.manual_seed(0)
    layers = [layer for _ in range(12) for layer in (nn.Tanh(), nn.Dropout(0.1), nn.Sigmoid())]
    return nn.Sequential(nn.Linear(6, 8, bias=False), *layers, nn.Linear(8, 4, bias=False)).to("cuda")


def trained(optimizer_of, compiled):
    """The losses of some steps on other data each time, the gradients after each, and the compiled step."""
    model = network()
    step = step_of(optimizer_of(model.parameters()), lambda x, y: nn.functional.cross_entropy(model(x), y))
    run = torch.compile(step, options=AS_RECORDED) if compiled else step
    losses, gradients = [], []
    for x, y in classes(STEPS):
        losses.append(run(x.to("cuda"), y.to("cuda")))
        gradients.append(model[0].weight.grad)
    return [tensor.tolist() for tensor in losses], [tensor.tolist() for tensor in gradients], run


OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.5, momentum=0.9),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01, capturable=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_graphs(replayed, name):
    expected = trained(OPTIMIZERS[name], compiled=False)
    assert not replayed
    found = trained(OPTIMIZERS[name], compiled=True)
    assert len(replayed) == GRAPHS
    assert found[:2] == expected[:2]  # read at the end: later replays leave what earlier ones returned


@pytest.mark.parametrize("part", ["copy", "write"])
def test_what_a_replay_does_not_renew_shows(replayed, cuda, monkeypatch, part):
    """Arguments that are not copied, or a generator's state that stays."""
    kind = type(cuda) if part == "copy" else graphs.GeneratorState
    expected = trained(OPTIMIZERS["SGD"], compiled=False)
    replay = replaying.GraphedPlan._replay

    def stale(self, given, draws):
        with monkeypatch.context() as patch:
            patch.setattr(kind, part, lambda *arguments: None)
            return replay(self, given, draws)

    monkeypatch.setattr(replaying.GraphedPlan, "_replay", stale)
    assert trained(OPTIMIZERS["SGD"], compiled=True)[0] != expected[0]


def test_counts_of_steps_on_the_host_go_call_by_call(replayed):
    def optimizer_of(p):
        return optim.AdamW(p, lr=0.01)

    expected, found = (trained(optimizer_of, compiled) for compiled in (False, True))
    assert found[:2] == expected[:2]
    assert found[2].replays == STEPS - 2
    assert not replayed


def deep(x):
    for _ in range(6):
        x = x.tanh().exp().add(1).reciprocal()
    return x


def test_streams_wait_for_each_other(replayed):
    compiled = torch.compile(deep, options=AS_RECORDED)
    for _ in range(STEPS):
        x = torch.randn(4, 5, device="cuda")
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            found = compiled(x)
        stream.synchronize()
        assert torch.equal(found, deep(x))
    assert len(replayed) == GRAPHS


def test_a_replay_becomes_part_of_the_graph_that_a_program_captures(replayed):
    compiled = torch.compile(deep, options=AS_RECORDED)
    x = torch.randn(4, 5, device="cuda")
    for _ in range(STEPS):
        compiled(x)
    before = len(replayed)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = compiled(x)
    assert len(replayed) == before
    x.mul_(2)
    graph.replay()
    assert torch.equal(found, deep(x))


def test_what_cannot_be_captured_goes_call_by_call(replayed):
    """An inverse is cuSOLVER's, which is not captured."""

    def function(x):
        return torch.linalg.inv(deep(x))

    compiled = torch.compile(function, options=AS_RECORDED)
    for _ in range(STEPS):
        x = torch.randn(4, 4, device="cuda")
        np.testing.assert_array_equal(compiled(x).cpu().numpy(), function(x).cpu().numpy())
    assert compiled.replays == STEPS - 2
    assert not replayed
