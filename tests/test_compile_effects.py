"""What compiled functions do to tensors: gradients, changes in place, memory and random numbers, as without."""

import numpy as np
import pytest

import corefw as torch
from corefw import nn
from corefw.nn import functional as F
from tests.test_compile_guards import agree, inputs, network, warmed


class TestGradients:
    def test_accumulated_in_the_order_of_calls(self):
        model, other = network(), network()

        def backward(x, m=model):
            m(x).square().sum().backward()

        compiled = torch.compile(backward)
        for seed in range(8):
            if seed == 5:
                model.zero_grad(set_to_none=False)
                other.zero_grad(set_to_none=False)
            if seed == 6:
                model.zero_grad()
                other.zero_grad()
            compiled(inputs(seed))
            backward(inputs(seed), other)
            for a, b in zip(model.parameters(), other.parameters()):
                assert torch.equal(a.grad, b.grad)
        assert compiled.replays > 0

    def test_gradients_of_arguments_that_are_there_or_not(self):
        def backward(x):
            (x * x).sum().backward()

        compiled = torch.compile(backward)
        for _ in range(4):
            x = inputs().requires_grad_()
            for times in (1, 2, 3):
                compiled(x)
                assert torch.equal(x.grad, times * 2 * x.detach())
        assert compiled.replays > 0

    def test_former_gradients_in_other_strides(self):
        model, other = network(), network()

        def backward(x, m=model):
            m(x).square().sum().backward()

        for m in (model, other):
            backward(inputs(), m)
        compiled = warmed(backward, inputs(), calls=4)
        for _ in range(4):
            backward(inputs(), other)
        for m in (model, other):
            m[0].weight.grad = torch.arange(12.0).reshape(3, 4).t()
        for seed in range(3):
            compiled(inputs(seed))
            backward(inputs(seed), other)
            for a, b in zip(model.parameters(), other.parameters()):
                assert torch.equal(a.grad, b.grad)

    def test_former_gradients_are_not_written_over(self):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()

        compiled = warmed(step, inputs())
        compiled(inputs(1))
        kept = model[0].weight.grad
        copy = kept.clone()
        for seed in range(3):
            compiled(inputs(seed))
        assert torch.equal(kept, copy)
        assert model[0].weight.grad is not kept

    def test_results_are_not_written_over(self):
        compiled = warmed(lambda x: x * 2, inputs())
        first = compiled(inputs(1))
        compiled(inputs(2))
        assert torch.equal(first, inputs(1) * 2)

    def test_forward_and_backward_of_a_module(self):
        model, other = network(), network()
        compiled = torch.compile(model)
        for seed in range(6):
            x, y = inputs(seed).requires_grad_(), inputs(seed).requires_grad_()
            for m, given in ((compiled, x), (other, y)):
                (m(given) * torch.arange(2.0)).sum().backward()
            assert torch.equal(x.grad, y.grad)
        for a, b in zip(model.parameters(), other.parameters()):
            assert torch.equal(a.grad, b.grad)

    def test_gradient_of_a_part_of_the_outputs(self):
        compiled = warmed(lambda x: (x.exp(), x * 2, x.argmax()), inputs().requires_grad_())
        for i in range(2):
            x = inputs().requires_grad_()
            result = compiled(x)[i]
            result.sum().backward()
            assert torch.equal(x.grad, x.detach().exp() if i == 0 else torch.full_like(x, 2))

    def test_a_saved_tensor_that_was_changed(self):
        model = network()
        compiled = warmed(model, inputs())
        result = compiled(inputs())
        with torch.no_grad():
            model[2].weight.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()
        x = inputs().requires_grad_()
        y = x * 1
        squared = warmed(lambda t: t * t, y)
        result = squared(y)
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()

    def test_backward_twice_and_derivatives_of_derivatives_are_refused(self):
        compiled = warmed(network(), inputs())
        result = compiled(inputs()).sum()
        result.backward()
        with pytest.raises(RuntimeError, match="second time"):
            result.backward()
        x = inputs().requires_grad_()
        compiled = warmed(lambda t: (t**3).sum(), x)
        with pytest.raises(RuntimeError, match="create_graph"):
            torch.autograd.grad(compiled(x), x, create_graph=True)
        kept = compiled(x)
        for _ in range(2):
            assert torch.equal(torch.autograd.grad(kept, x, retain_graph=True)[0], 3 * x.detach() ** 2)

    def test_a_step_leaves_no_graph(self):
        model = network()

        def step(x):
            loss = model(x).sum()
            loss.backward()
            return loss

        compiled = warmed(step, inputs())
        loss = compiled(inputs())
        assert loss.requires_grad
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()

    def test_functions_written_by_users(self):
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensors
                return gradient * 2 + x * 0 + 1

        compiled = torch.compile(lambda x: Double.apply(x).sum())
        for seed in range(4):
            x = inputs(seed).requires_grad_()
            compiled(x).backward()
            assert torch.equal(x.grad, torch.full_like(x, 3))
        assert compiled.replays == 2


class TestMemory:
    def test_changes_in_place_of_arguments_count(self):
        def function(x):
            x.mul_(2)
            x[0] = 5
            return x.sum()

        compiled = torch.compile(function)
        for seed in range(4):
            x, y = inputs(seed), inputs(seed)
            assert torch.equal(compiled(x), function(y))
            assert torch.equal(x, y)
            assert x._version == y._version
        assert compiled.replays == 2

    def test_tensors_made_by_python_start_anew_in_each_run(self):
        def function(x):
            total = torch.tensor([1.0, 2.0])
            for row in x:
                total += row[:2]
            return total

        compiled = torch.compile(function)
        for seed in range(4):
            agree(function, compiled, inputs(seed))
        assert compiled.replays == 2

    def test_results_that_share_memory_share_a_version(self):
        def function(x):
            y = x * 2
            return y, y.t()

        compiled = warmed(function, inputs())
        y, turned = compiled(inputs())
        y.add_(1)
        assert turned._version == 1
        assert torch.equal(turned, (inputs() * 2 + 1).t())


class TestRandomNumbers:
    def test_the_same_bits_as_without(self):
        model = nn.Sequential(nn.Linear(3, 64), nn.Dropout(0.5), nn.Dropout(0.2))

        def function(x):
            return model(x) + torch.rand(64) + torch.randn(5, 64)

        compiled = torch.compile(function)
        torch.manual_seed(1)
        expected = [function(inputs(seed)) for seed in range(6)] + [torch.rand(3)]
        torch.manual_seed(1)
        got = [compiled(inputs(seed)) for seed in range(6)] + [torch.rand(3)]
        assert compiled.replays == 4
        for a, b in zip(expected, got):
            assert torch.equal(a, b)
        torch.manual_seed(2)
        expected = function(inputs())
        torch.manual_seed(2)
        assert torch.equal(compiled(inputs()), expected)

    def test_a_generator_of_ones_own(self):
        generator = torch.Generator()
        compiled = torch.compile(lambda x: x + torch.rand(3, generator=generator))
        for seed in (0, 1, 2, 0, 1, 2):
            generator.manual_seed(seed)
            got = [compiled(inputs()) for _ in range(2)]
            generator.manual_seed(seed)
            for result in got:
                assert torch.equal(result, inputs() + torch.rand(3, generator=generator))
        assert compiled.replays == 10

    def test_seeding_inside_is_not_replayed(self):
        def function(x):
            torch.manual_seed(0)
            return F.dropout(x, 0.5)

        compiled = warmed(function, inputs())
        torch.manual_seed(5)
        agree(function, compiled, inputs())
        assert "generator of random numbers is seeded" in torch.explain(compiled)


def test_numpy_arrays_are_not_looked_at():
    values = np.ones(3, np.float32)

    def function(x):
        return x + torch.tensor(values)

    compiled = warmed(function, inputs())
    values[:] = 5
    agree(function, compiled, inputs())
    assert "NumPy" in torch.explain(compiled)


def test_memory_shared_with_numpy_is_seen():
    values = np.ones(3, np.float32)
    shared = torch.from_numpy(values)
    compiled = warmed(lambda x: x + shared, inputs())
    values[:] = 5
    assert torch.equal(compiled(inputs()), inputs() + 5)
