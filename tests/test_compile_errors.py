"""Replays in which a kernel raises an error: gradients and counts of changes are what the program leaves without."""

import pytest

import corefw as torch
from corefw import nn
from corefw.nn import functional as F

WORDS, WIDTH = 5, 3
WRONG = torch.tensor([1, WORDS])


class Model(nn.Module):
    """A batch norm, which changes its buffers, before rows are picked, which may raise an error."""

    def __init__(self):
        super().__init__()
        self.norm, self.words, self.out = nn.BatchNorm1d(WIDTH), nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, 4)

    def forward(self, x, places):
        return self.out(self.norm(x) + self.words(places)).square().sum()


def given(places=(0, 3)):
    return torch.randn(2, WIDTH), torch.tensor(places)


def states(model):
    gradients = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    return gradients, [t._version for t in (*model.parameters(), *model.buffers())]


def agree(got, expected):
    assert all((a is None) == (b is None) for a, b in zip(got, expected, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(got, expected) if a is not None)


def after_an_error(step_of):
    """What a compiled step leaves in two models when an index is out of range, and what the same one does without: of
    each its gradients, and how often its tensors were changed."""
    found = []
    for compiled in (True, False):
        torch.manual_seed(0)
        models = Model(), Model()
        step = step_of(*models)
        call = torch.compile(step) if compiled else step
        for _ in range(4):
            call(*given())
        if compiled:
            assert call.replays >= 1, torch.explain(call)
        before = [states(model)[1] for model in models]
        with pytest.raises(IndexError, match="out of range"):
            call(torch.ones(2, WIDTH), WRONG)
        left = [(states(m)[0], [n - b for n, b in zip(states(m)[1], bs)]) for m, bs in zip(models, before)]
        losses = [call(*given()).item() for _ in range(2)]
        found.append((left, losses))
        if compiled:
            assert call.replays >= 3, torch.explain(call)
    (got, losses), (expected, others) = found
    assert losses == others
    return got, expected


def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.0)


RUNS = pytest.mark.parametrize("backend", ["inductor", "straight"])


@pytest.fixture
def _straight(backend, monkeypatch):
    if backend == "straight":
        from corefw.compiling import executing, recording
        from corefw.dispatch.straight import straight

        monkeypatch.setattr(executing, "_maker", lambda plan: straight)
        assert recording.run_of is executing.run_of


@RUNS
@pytest.mark.usefixtures("_straight")
class TestGradients:
    def test_are_there_if_they_were_to_be_dropped_later(self):
        def step_of(model, other):
            descent = optimizer(model)

            def step(x, places):
                loss = model(x, places)
                descent.zero_grad()
                loss.backward()
                descent.step()
                return loss

            return step

        ((gradients, _), _), ((wanted, _), _) = after_an_error(step_of)
        assert all(g is not None for g in gradients)
        agree(gradients, wanted)

    def test_are_none_if_they_were_dropped(self):
        def step_of(model, other):
            descent = optimizer(model)

            def step(x, places):
                descent.zero_grad()
                loss = model(x, places)
                loss.backward()
                descent.step()
                return loss

            return step

        ((gradients, _), _), ((wanted, _), _) = after_an_error(step_of)
        assert all(g is None for g in (*gradients, *wanted))

    def test_of_two_optimizers_each_in_its_time(self):
        def step_of(model, other):
            first, second = optimizer(model), optimizer(other)

            def step(x, places):
                first.zero_grad()
                model(x, places.clamp(max=WORDS - 1)).backward()
                first.step()
                loss = other(x, places)
                second.zero_grad()
                loss.backward()
                second.step()
                return loss

            return step

        (_, (gradients, _)), (_, (wanted, _)) = after_an_error(step_of)
        assert all(g is not None for g in gradients)
        agree(gradients, wanted)

    def test_that_are_added_to(self):
        def step_of(model, other):
            def step(x, places):
                loss = model(x, places)
                loss.backward()
                return loss

            return step

        ((gradients, _), _), ((wanted, _), _) = after_an_error(step_of)
        assert all(g is not None for g in gradients)
        agree(gradients, wanted)


def test_changes_before_an_error_are_counted():
    def step_of(model, other):
        def step(x, places):
            with torch.no_grad():
                return model(x, places)

        return step

    ((_, counts), _), ((_, wanted), _) = after_an_error(step_of)
    assert counts == wanted
    assert sum(counts) > 0  # of the batch norm's buffers


def test_gradients_let_go_in_a_step_leave_their_memory():
    """A step that drops gradients between forward and backward keeps one set of them, not two."""
    model = nn.Linear(400, 400)
    descent = optimizer(model)

    def step(x):
        loss = F.relu(model(x)).sum()
        descent.zero_grad()
        loss.backward()
        descent.step()
        return loss

    compiled, x = torch.compile(step), torch.randn(4, 400)
    for _ in range(4):
        compiled(x)
    addresses = set()
    for _ in range(6):
        addresses.add(model.weight.grad.data_ptr())
        compiled(x)
    assert len(addresses) == 1
    assert compiled.replays >= 7
