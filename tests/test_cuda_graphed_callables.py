"""Modules and functions that are replayed from graphs within programs that are not: `make_graphed_callables`."""

import inspect
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("cupy")

import corefw as torch
from corefw.errors import GradientError
from tests.emulation import compiler
from tests.graphs import bits

pytestmark = pytest.mark.skipif(compiler.COMPILER is None, reason="no C++ compiler")

nn = torch.nn
graphed = torch.cuda.make_graphed_callables


def numbers(*shape, requires_grad=False):
    made = np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)
    return torch.tensor(made, device="cuda", requires_grad=requires_grad)


@pytest.fixture
def replays(cuda, monkeypatch):
    """How often each graph was replayed."""
    counted = Counter()
    replay = torch.cuda.CUDAGraph.replay
    monkeypatch.setattr(torch.cuda.CUDAGraph, "replay", lambda self: counted.update([self]) or replay(self))
    return counted


def trained(capture):
    """The losses and the bits of the parameters after steps through a head and a middle part, which may be graphed."""
    torch.manual_seed(1)
    head = nn.Linear(4, 6).to("cuda")
    middle = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Dropout(0.3), nn.Linear(6, 2)).to("cuda")
    optimizer = torch.optim.SGD([*head.parameters(), *middle.parameters()], lr=0.1)
    if capture:
        assert graphed(middle, (torch.empty(5, 6, device="cuda", requires_grad=True),)) is middle
    torch.manual_seed(2)
    losses = []
    for step in range(4):
        optimizer.zero_grad()
        loss = (middle(head(numbers(5, 4) * (step + 1))) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [bits(p) for p in (*head.parameters(), *middle.parameters())]


def test_training_is_as_without_graphs(replays):
    plain = trained(False)
    assert not replays
    assert trained(True) == plain
    assert sorted(replays.values()) == [4, 4], "each graph in each step"


def test_several_callables_in_the_order_of_their_calls(replays):
    def first(x, pair):
        a, b = pair["factors"]
        return {"product": x * a, "sum": [x + b]}

    def second(y):
        return (y.exp(), y.detach() * 2)

    sample = numbers(3, requires_grad=True), {"factors": (numbers(3) * 2, numbers(3))}
    made = graphed((first, second), (sample, (numbers(3, requires_grad=True),)), pool=torch.cuda.graph_pool_handle())
    for scale in (1.0, -0.5):
        gradients, results = [], []
        for one, two in (first, second), made:
            x = (numbers(3) * scale).requires_grad_()
            found = one(x, {"factors": (numbers(3), numbers(3) - scale)})
            exponential, doubled = two(found["product"] + found["sum"][0])
            exponential.sum().backward()
            gradients.append(bits(x.grad))
            results.append([bits(exponential), bits(doubled)])
        assert gradients[0] == gradients[1] and results[0] == results[1]
    assert sorted(replays.values()) == [2, 2, 2, 2]


def test_results_are_overwritten_by_the_next_call(cuda):
    call = graphed(lambda x: x * 2, (torch.zeros(2, device="cuda"),))
    first = call(torch.ones(2, device="cuda"))
    assert first.tolist() == [2.0, 2.0] and not first.requires_grad
    assert call(torch.full((2,), 3.0, device="cuda")).tolist() == first.tolist() == [6.0, 6.0]


def test_a_module_in_the_other_mode_computes_as_before(replays):
    module = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)).to("cuda")
    x = numbers(3, 2)
    wanted = bits(module.eval()(x))
    graphed(module.train(), (x,))
    assert bits(module.eval()(x)) == wanted and not replays
    calls = []
    module.register_forward_hook(lambda *call: calls.append(call))
    module.train()(x).tolist()  # what is replayed outlives the graph's memory otherwise
    assert replays.total() == len(calls) == 1, "hooks that are registered afterwards are called"


def test_inputs_that_do_not_matter(cuda):
    sample = numbers(2, requires_grad=True), numbers(2, requires_grad=True)
    with pytest.raises(GradientError, match="not have been used"):
        graphed(lambda x, y: x * 3, sample)
    x, y = (numbers(2, requires_grad=True) for _ in range(2))
    graphed(lambda x, y: x * 3, sample, allow_unused_input=True)(x, y).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and y.grad is None


def test_gradients_are_not_differentiated_again(cuda):
    x = numbers(2, requires_grad=True)
    (gradient,) = torch.autograd.grad((graphed(lambda x: x**3, (x,))(x) ** 2).sum(), x, create_graph=True)
    assert gradient.shape == x.shape and gradient.tolist()
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def hooked(x):
    module = nn.Linear(2, 2).to("cuda")
    module.register_forward_hook(lambda *call: None)
    graphed(module, (x,))


def with_a_trained_buffer(x):
    module = nn.Linear(2, 2).to("cuda")
    module.register_buffer("scale", torch.ones(2, device="cuda", requires_grad=True))
    graphed(module, (x,))


REFUSED = {
    "hooks": (hooked, AssertionError, "Modules must not have hooks registered"),
    "buffers": (with_a_trained_buffer, AssertionError, "All buffers must have requires_grad=False"),
    "numbers": (lambda x: graphed(lambda x, n: x * n, (x, 2)), AssertionError, "must contain only Tensors, got int"),
    "samples": (lambda x: graphed((torch.exp,), ((x,), (x,))), ValueError, "1 callables and sample_args for 2"),
    "shape": (lambda x: graphed(torch.exp, (x,))(x[0]), ValueError, r"captured for shape \(3, 2\), got \(2,\)"),
    "arguments": (lambda x: graphed(torch.exp, (x,))(x, x), TypeError, "with 1 tensors as arguments, got 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(cuda, name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call(numbers(3, 2))


@pytest.mark.oracle
def test_the_signature_is_pytorchs():
    oracle = pytest.importorskip("torch").cuda.make_graphed_callables
    ours, theirs = (inspect.signature(f).parameters.values() for f in (graphed, oracle))
    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in theirs]
