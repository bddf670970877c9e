"""What tensors alone determine is computed once by compiled functions, and again after they have changed."""

import numpy as np
import pytest

import corefw as torch
from corefw import nn
from corefw.compiling.passes import PASSES
from corefw.vision.models import resnet18


def warmed(function, *arguments, **options):
    """The compiled function, after calls of which the last one was replayed."""
    compiled = torch.compile(function, options=options or None)
    for _ in range(3):
        compiled(*arguments)
    return compiled


def plan_of(compiled):
    return getattr(compiled, "_compiled", compiled).programs[0]


def names(calls):
    return [call.op.name for call in calls]


def test_steps_under_autocast_are_recorded_by_their_second_call():
    """Kernels are found anew while a call is recorded; what that makes is no function of the program, and neither is
    what their shims call."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5, 8), nn.LayerNorm(8), nn.LSTM(8, 6))
    optimizer, texts = torch.optim.SGD(model.parameters(), lr=0.1), torch.randint(0, 5, (3, 4))

    def step():
        with torch.autocast("cpu"):
            loss = model(texts)[0].float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    step()
    compiled = torch.compile(step)
    for _ in range(5):
        compiled()
    assert compiled.replays == 3 and len(compiled.programs) == 1, torch.explain(compiled)


class Casting(nn.Module):
    """Two casts and a transposed copy of a parameter, and a cast of a buffer."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4))
        self.scale = nn.Buffer(torch.ones(3, dtype=torch.float64))

    def forward(self, x):
        return (x.double() @ self.weight.double().t().contiguous()) * self.scale.float()


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Casting().requires_grad_(False)


class TestHoisting:
    def test_which_calls(self, model):
        plan = plan_of(warmed(model, torch.randn(2, 4), passes=["hoisting"]))
        assert names(plan.calls) == ["cast", "matmul", "mul"]
        assert names(plan.hoisted.calls) == ["cast", "t", "clone_in_order", "cast", "cast"]
        assert "hoisted" in str(plan)

    @pytest.mark.parametrize(
        "change",
        [
            lambda m: m.weight.mul_(2),
            lambda m: m.weight.detach().mul_(2),
            lambda m: m.weight[1:].zero_(),
            lambda m: m.weight.data.mul_(2),
            lambda m: (m.weight.data.mul_(2), m.weight.data.add_(1)),
            lambda m: m.scale.mul_(3),
            lambda m: np.copyto(m.weight.numpy(), 1.5),
            lambda m: np.copyto(np.asarray(m.scale), 1.5),
            lambda m: np.copyto(np.from_dlpack(m.weight), 1.5),
            lambda m: setattr(m, "weight", nn.Parameter(torch.ones(3, 4), requires_grad=False)),
            lambda m: m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()}),
            lambda m: setattr(m.weight, "data", torch.ones(3, 4)),
            lambda m: m.half().float(),
        ],
    )
    def test_every_change_is_seen(self, model, change):
        x = torch.randn(2, 4)
        compiled = warmed(model, x)
        before = compiled(x)
        for _ in range(2):
            change(model)
            for _ in range(4):
                assert torch.equal(compiled(x), model(x))
        assert not torch.equal(model(x), before)

    def test_memory_of_other_libraries(self):
        array = np.ones((3, 4), np.float32)
        tensor = torch.from_numpy(array)
        weight = nn.Parameter(tensor, requires_grad=False)
        for used in (tensor, weight):
            compiled = warmed(lambda x, used: x.double() @ used.double().t(), torch.ones(2, 4), used)
            held = warmed(lambda x: x.double() @ tensor.double().t() + weight.double().sum(), torch.ones(2, 4))
            array *= 2
            expected = torch.full((2, 3), 4.0 * array[0, 0], dtype=torch.float64)
            assert torch.equal(compiled(torch.ones(2, 4), used), expected)
            assert torch.equal(held(torch.ones(2, 4)), expected + array.sum())

    def test_memory_of_other_processes(self, model):
        model.share_memory()
        compiled = warmed(model, torch.ones(2, 4))
        assert plan_of(compiled).hoisted is None

    def test_the_tensor_of_which_a_parameter_was_made(self, model):
        base = torch.ones(3, 4)
        model.weight = nn.Parameter(base, requires_grad=False)
        compiled = warmed(model, torch.ones(2, 4))
        base.mul_(5)
        assert compiled(torch.ones(2, 4)).eq(20).all()

    def test_changes_between_replays_alone_make_the_calls_again(self, model, monkeypatch):
        x = torch.randn(2, 4)
        compiled = warmed(model, x, passes=["hoisting"])
        copied = []
        runtime = x.dispatch_key.runtime
        monkeypatch.setattr(runtime, "copy", lambda *a, copy=runtime.copy: (copied.append(1), copy(*a)))
        for _ in range(3):
            compiled(x)
        assert not copied
        model.weight.add_(1)
        for _ in range(3):
            compiled(x)
        assert len(copied) == 2  # the transposed copy, and the scale
        model.to("cpu")  # changes nothing
        model.weight.data  # may be changed from now on
        copied.clear()
        for _ in range(3):
            compiled(x)
        assert len(copied) == 6

    def test_a_step_that_changes_its_weights(self):
        torch.manual_seed(0)
        model, frozen = nn.Linear(4, 3), nn.Linear(4, 4).requires_grad_(False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            with torch.autocast("cpu"):
                loss = model(frozen(x)).float().square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        compiled = warmed(step, torch.ones(2, 4), passes=["hoisting"])
        hoisted = plan_of(compiled).hoisted
        assert {tuple(cell.shape) for call in hoisted.calls for cell in call.cells()} - {()} == {(4, 4), (4,)}
        losses = [compiled(torch.ones(2, 4)).item() for _ in range(4)]
        assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1]

    def test_arguments_that_are_changed_may_be_anything(self, model):
        def function(x, y):
            y.add_(1)
            return x.double() @ model.weight.double().t()

        row = model.weight.detach()[1]
        compiled = warmed(function, torch.ones(2, 4), torch.zeros(4))
        assert plan_of(compiled).hoisted is None
        for _ in range(3):
            expected = torch.ones(2, 4).double() @ torch.stack([model.weight[0], row + 1, model.weight[2]]).double().t()
            assert torch.equal(compiled(torch.ones(2, 4), row), expected)

    def test_what_is_returned_is_made_each_time(self, model):
        compiled = warmed(lambda: model.weight.double())
        first = compiled()
        first.zero_()
        assert torch.equal(compiled(), model.weight.double())

    def test_modules_with_gradients(self):
        torch.manual_seed(0)
        model, other = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)), None
        compiled = torch.compile(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        found = []
        for called in (model, compiled):
            model.load_state_dict(other) if other else None
            other = {name: t.clone() for name, t in model.state_dict().items()}
            for _ in range(5):
                with torch.autocast("cpu"):
                    loss = called(torch.ones(2, 4)).float().square().sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                found.append(loss.item())
        assert found[:5] == found[5:]


def network(bias=True):
    torch.manual_seed(0)
    layers = [
        *(nn.Conv2d(3, 4, 3, bias=bias), nn.BatchNorm2d(4), nn.ReLU()),
        *(nn.Conv2d(4, 6, 2, groups=2, bias=not bias), nn.BatchNorm2d(6), nn.Flatten()),
        *(nn.Linear(24, 5, bias=bias), nn.BatchNorm1d(5)),
    ]
    model = nn.Sequential(*layers).eval().requires_grad_(False)
    for layer in model:
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2)
            layer.weight.normal_()
            layer.bias.normal_()
    return model


def evaluated(model, x):
    """What a network like `network` gives, in float64 by NumPy."""
    x = np.array(x, np.float64)
    for layer in model:
        if isinstance(layer, nn.Conv2d):
            weight, groups = np.array(layer.weight, np.float64), layer.groups
            windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], (2, 3))
            parts = zip(np.split(windows, groups, 1), np.split(weight, groups))
            x = np.concatenate([np.einsum("nchwij,ocij->nohw", a, w) for a, w in parts], 1)
            x = x if layer.bias is None else x + np.array(layer.bias)[:, None, None]
        elif isinstance(layer, nn.Linear):
            x = x @ np.array(layer.weight, np.float64).T + (0 if layer.bias is None else np.array(layer.bias))
        elif isinstance(layer, nn.ReLU):
            x = np.maximum(x, 0)
        elif isinstance(layer, nn.Flatten):
            x = x.reshape(len(x), -1)
        else:
            mean, variance, weight, bias = (
                np.array(t, np.float64).reshape(-1, *[1] * (x.ndim - 2))
                for t in (layer.running_mean, layer.running_var, layer.weight, layer.bias)
            )
            x = (x - mean) / np.sqrt(variance + layer.eps) * weight + bias
    return x


class TestFolding:
    @pytest.mark.parametrize("bias", [True, False])
    def test_values_after_changes_of_everything(self, bias):
        model, x = network(bias), torch.randn(2, 3, 5, 5)
        compiled = warmed(model, x)
        plan = plan_of(compiled)
        assert "channel_affine" not in names(plan.calls)
        assert names(plan.calls).count("convolution") == 2
        for changed in [None, *model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]:
            if changed is not None:
                changed.mul_(1.5)
            np.testing.assert_allclose(np.array(compiled(x)), evaluated(model, x), rtol=1e-4, atol=1e-4)

    def test_it_can_be_left_out(self):
        model, x = network(), torch.randn(2, 3, 5, 5)
        compiled = warmed(model, x, passes=[name for name in PASSES if name != "folding"])
        assert torch.equal(compiled(x), model(x))
        assert "channel_affine" in names(plan_of(compiled).calls)

    def test_alone_it_folds_in_each_run(self):
        model, x = network(), torch.randn(2, 3, 5, 5)
        compiled = warmed(model, x, passes=["folding"])
        model[0].weight.mul_(2)
        np.testing.assert_allclose(np.array(compiled(x)), evaluated(model, x), rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize(
        "function",
        [
            lambda conv, norm, x: (y := conv(x), norm(y))[0] + norm(y),
            lambda conv, norm, x: [y := conv(x), norm(y)],
            lambda conv, norm, x: norm(conv(x).add_(1)),
            lambda conv, norm, x: norm(conv(x)[:1]),
            lambda conv, norm, x: norm(conv(x).relu()),
            lambda conv, norm, x: norm(torch.nn.functional.conv2d(x, conv.weight * x.mean())),
        ],
    )
    def test_what_others_see_is_not_folded(self, function):
        conv, norm = [*network()][:2]
        x = torch.randn(2, 3, 5, 5)
        compiled = warmed(lambda x: function(conv, norm, x), x)
        got, expected = compiled(x), function(conv, norm, x)
        for a, b in zip(got, expected):
            assert torch.equal(a, b)

    def test_statistics_of_the_batch_are_not_folded(self):
        model, x = network().train(), torch.randn(4, 3, 5, 5)
        expected = network().train()
        compiled = torch.compile(model)
        for _ in range(4):
            assert torch.equal(compiled(x), expected(x))
        assert torch.equal(model[1].running_mean, expected[1].running_mean)

    def test_with_gradients_of_the_norm_nothing_is_folded(self):
        model, x = network().requires_grad_(), torch.randn(2, 3, 5, 5)
        compiled = warmed(model, x)
        assert torch.equal(compiled(x), model(x))

    def test_resnet(self):
        torch.manual_seed(0)
        model, x = resnet18().eval(), torch.randn(1, 3, 32, 32)
        with torch.no_grad():
            compiled = warmed(model, x)
            plan = plan_of(compiled)
            assert names(plan.calls).count("convolution") == 20
            assert "channel_affine" not in names(plan.calls)
            assert compiled(x).allclose(model(x), rtol=1e-4, atol=1e-5)
            model.conv1.weight.mul_(1.5)
            model.layer4[1].bn2.running_mean.add_(0.1)
            assert compiled(x).allclose(model(x), rtol=1e-4, atol=1e-5)
