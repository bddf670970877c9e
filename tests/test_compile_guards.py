"""Everything that a recording depends on, changed between calls: the result follows."""

import functools

import pytest

import corefw as torch
from corefw import nn
from corefw.compiling.arguments import OTHER, Look, key_of

SCALE = 2.0


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def inputs(seed=0, rows=5):
    return torch.randn(rows, 3, generator=torch.Generator().manual_seed(seed))


def warmed(function, *arguments, calls=3):
    """The compiled function, after calls of which the last ones were replayed."""
    compiled = torch.compile(function)
    for _ in range(calls):
        compiled(*arguments)
    return compiled


def agree(function, compiled, *arguments):
    """Both give the same, bit for bit; returns it."""
    expected, got = function(*arguments), compiled(*arguments)
    assert torch.equal(expected, got) and expected.dtype is got.dtype
    return got


def many_arguments():
    """Arguments of all kinds, most of them alike but for one thing."""
    x, y = inputs(), inputs(1)
    nan, leaf, text = float("nan"), inputs().requires_grad_(), "a"
    numbers = (0, False, 0.0, -0.0, nan, float("nan"), 0j, -0j, 1, True, 1.0, None, text, b"a", torch.float32)
    tensors = (x, x.double(), inputs(rows=6), inputs(rows=3), inputs(rows=3).t(), leaf, leaf * 2, x[:], nn.Parameter(x))
    structured = ([0], (0,), [0, 0], [False], {"a": 0}, {"b": 0}, {"a": 0.0}, {}, [], (), slice(0, 1), slice(0, 2))
    single = [(value,) for value in (*numbers, *tensors, *structured, object(), object())]
    return [*single, (), (x, x), (x, y), (x, x[:]), (x, x, y), (x, y, x), (x, y, y), ([x, y],), ([x], y), (text, text)]


class TestArguments:
    def test_keys_and_lines_tell_the_same_arguments_apart(self):
        """A look is at what keys are made of, which `arguments.ASPECTS` lists once."""
        calls = [(args, kwargs) for args in many_arguments() for kwargs in ({}, {"k": args[0] if args else 0})]
        for args, kwargs in calls:
            look, key = Look(args, kwargs), key_of(args, kwargs)[0]
            lines = ["def look(args, kwargs):", *look.lines, "return True"]
            exec("\n    ".join(lines), names := {"OTHER": OTHER, **look.names})
            for other in calls:
                assert (names["look"](*other) is True) == (key_of(*other)[0] == key), (args, kwargs, other)

    def test_shape_dtype_and_strides(self):
        def function(x):
            return (x * 2 + x.shape[0]).sum(0)

        compiled = warmed(function, inputs())
        assert compiled.replays == 1
        for x in (inputs(1), inputs(1, rows=7), inputs().double(), inputs(1, rows=3).t(), inputs(2, rows=7)):
            for _ in range(3):
                agree(function, compiled, x)
        assert len(compiled.programs) == 4

    def test_other_strides_in_the_same_shape(self):
        def function(x):
            return x * 2 + x.reshape(-1)[:3]

        compiled = warmed(function, inputs(rows=3))
        for x in (inputs(1, rows=3).t(), inputs(2, rows=3), inputs(3, rows=3).t()):
            agree(function, compiled, x)

    def test_numbers_strings_and_containers(self):
        def function(x, factor, names, options):
            return x * factor + len(names) + options["bias"] * (2 if "twice" in names else 1)

        compiled = torch.compile(function)
        for factor in (2, 2.0, 3, True):
            for names in (["once"], ["twice"], ("twice", "more")):
                for _ in range(3):
                    agree(function, compiled, inputs(), factor, names, {"bias": torch.ones(3)})

    def test_minus_zero_is_not_zero(self):
        def function(x, y):
            return x / y

        compiled = torch.compile(function)
        for y in (0.0, -0.0, 0.0, -0.0, 0.0, -0.0):
            agree(function, compiled, torch.ones(2), y)

    def test_keywords(self):
        def function(x, *, other):
            return x - other

        compiled = torch.compile(function)
        for seed in range(4):
            x, other = inputs(seed), inputs(seed + 9)
            assert torch.equal(compiled(x, other=other), x - other)
        assert compiled.replays == 2

    def test_requires_grad(self):
        def function(x):
            return (x * x).sum()

        compiled = torch.compile(function)
        for wants in (False, True, False, True, True, True):
            x = inputs().requires_grad_(wants)
            result = compiled(x)
            assert result.requires_grad is wants
            if wants:
                result.backward()
                assert torch.equal(x.grad, 2 * x.detach())

    def test_one_tensor_given_twice_or_a_view_of_it(self):
        def function(x, y):
            x.add_(1)
            return x + y

        compiled = torch.compile(function)
        for _ in range(3):
            assert torch.equal(compiled(torch.zeros(2), torch.zeros(2)), torch.ones(2))
        for _ in range(3):
            x = torch.zeros(2)
            assert torch.equal(compiled(x, x), torch.full((2,), 2.0))
            base = torch.zeros(3)
            assert torch.equal(compiled(base[:2], base[1:]), torch.tensor([2.0, 1.0]))
        replays = compiled.replays
        compiled(torch.zeros(2), torch.zeros(2))
        assert compiled.replays == replays + 1  # what shows one memory is what was refused
        compiled(base[:2], base[1:])
        assert compiled.replays == replays + 1

    def test_a_tensor_that_the_function_also_names(self):
        weight = torch.ones(3)

        def function(x):
            return x + weight

        compiled = warmed(function, weight)
        assert torch.equal(compiled(weight), torch.full((3,), 2.0))
        assert torch.equal(compiled(torch.zeros(3)), torch.ones(3))
        assert torch.equal(compiled(torch.zeros(3)), torch.ones(3))

    def test_objects_count_by_identity_and_by_what_they_hold(self):
        class Options:
            def __init__(self, scale):
                self.scale = scale

        def function(x, options):
            return x * options.scale

        compiled, options = torch.compile(function), Options(2.0)
        for _ in range(3):
            agree(function, compiled, inputs(), options)
        options.scale = 5.0
        agree(function, compiled, inputs(), options)
        for scale in (2.0, 3.0, 4.0):
            agree(function, compiled, inputs(), Options(scale))


class TestSettings:
    def test_grad_mode(self):
        model = network()
        compiled = warmed(model, inputs())
        assert compiled(inputs()).requires_grad
        for _ in range(3):
            with torch.no_grad():
                assert not compiled(inputs()).requires_grad
            with torch.inference_mode():
                assert compiled(inputs()).is_inference()
        assert compiled(inputs()).requires_grad

    def test_autocast(self):
        model = network()
        compiled = warmed(model, inputs())
        for _ in range(4):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                expected, got = model(inputs()), compiled(inputs())
            assert got.dtype is torch.bfloat16
            assert torch.equal(got, expected)
            agree(model, compiled, inputs())

    def test_preferred_backend(self):
        def function(x):
            return x.exp().sum()

        compiled = warmed(function, inputs())
        with torch.backend("numpy"):
            for _ in range(3):
                agree(function, compiled, inputs())
            assert {call.who for call in compiled.programs[0].calls} <= {"numpy"}
        agree(function, compiled, inputs())

    def test_default_dtype(self):
        def function(x):
            return x * torch.tensor(1.5) + torch.ones(3)

        compiled = warmed(function, inputs())
        torch.set_default_dtype(torch.float64)
        try:
            agree(function, compiled, inputs())
        finally:
            torch.set_default_dtype(torch.float32)
        agree(function, compiled, inputs())

    def test_modes_see_every_call(self):
        def function(x):
            return (x + 1) * 2

        compiled = warmed(function, inputs())
        with torch.ledger() as book:
            compiled(inputs())
        assert book.count("mul") == 1

    def test_transforms_run_the_function(self):
        def function(x):
            return (x * x).sum()

        compiled = warmed(function, inputs())
        assert torch.equal(torch.func.vmap(compiled)(inputs()), torch.func.vmap(function)(inputs()))
        assert torch.equal(torch.func.grad(compiled)(inputs()), 2 * inputs())


class TestSurroundings:
    def test_globals(self, monkeypatch):
        def function(x):
            return x * SCALE

        compiled = warmed(function, inputs())
        monkeypatch.setitem(globals(), "SCALE", 7.0)
        agree(function, compiled, inputs())
        monkeypatch.setitem(globals(), "SCALE", torch.full((3,), 3.0))
        for _ in range(3):
            agree(function, compiled, inputs())

    def test_closures_also_those_of_methods_and_partial_functions(self):
        factor, bias = 2.0, torch.ones(3)

        class Affine(nn.Module):
            def forward(self, x):
                return x * factor + bias

        model = Affine()
        compiled, partly = (
            warmed(model, inputs()),
            warmed(functools.partial(lambda b, x: x * factor + b, bias), inputs()),
        )
        for factor in (3.0, 4.0):
            agree(model, compiled, inputs())
            assert torch.equal(partly(inputs()), inputs() * factor + bias)
        bias = torch.zeros(3)
        agree(model, compiled, inputs())

    def test_containers_and_objects(self):
        state = {"scale": 2.0, "layers": [torch.ones(3)]}

        def function(x):
            return sum((x + layer for layer in state["layers"]), x * state["scale"])

        compiled = warmed(function, inputs())
        state["scale"] = 3.0
        agree(function, compiled, inputs())
        state["layers"].append(torch.full((3,), 5.0))
        for _ in range(3):
            agree(function, compiled, inputs())
        state["layers"][0] = torch.zeros(3)
        agree(function, compiled, inputs())

    def test_keys_of_dictionaries(self):
        state = {"bias": 1.0, "scale": 2.0}

        def function(x):
            return x * state.get("scale", 5.0) + state["bias"]

        compiled = warmed(function, inputs())
        state["other"] = state.pop("scale")
        agree(function, compiled, inputs())

    def test_equal_numbers_that_are_computed_anew_do_not_count(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = 1.0

            def forward(self, x):
                return x / self.scale

        model = Model()
        compiled = torch.compile(model.forward)
        for i in range(8):
            model.scale = float(f"{0}.0")  # another object each time
            agree(model.forward, compiled, inputs(i))
        assert compiled.replays == 6
        model.scale = -0.0
        agree(model.forward, compiled, inputs())

    def test_an_attribute_that_is_set_beside_the_module(self):
        model = network()
        compiled = warmed(model, inputs())
        model[0].__dict__["weight"] = nn.Parameter(torch.ones(4, 3))
        agree(model, compiled, inputs())

    def test_changes_in_place_are_seen_without_a_new_recording(self):
        weight = torch.ones(3)
        compiled = warmed(lambda x: x * weight, inputs())
        weight.mul_(4)
        assert torch.equal(compiled(inputs()), inputs() * 4)
        assert len(compiled.programs) == 1


class TestModules:
    @pytest.mark.parametrize("change", range(10))
    def test_attributes(self, change):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = network()
                self.dropout = nn.Dropout(0.0)
                self.norm = nn.BatchNorm1d(2)
                self.power = 1
                self.register_buffer("shift", torch.zeros(2))

            def forward(self, x):
                return self.dropout(self.norm(self.layers(x))) ** self.power + self.shift

        model, other = Model(), Model()
        compiled = warmed(model, inputs())
        changes = [
            lambda m: m.eval(),
            lambda m: setattr(m, "power", 2),
            lambda m: setattr(m, "shift", torch.ones(2)),
            lambda m: setattr(m.layers[0], "weight", nn.Parameter(torch.ones(4, 3))),
            lambda m: m.layers.__setitem__(1, nn.ReLU()),
            lambda m: m.layers.append(nn.Linear(2, 2, bias=False)) and m.layers[-1].weight.detach().fill_(0.5),
            lambda m: setattr(m.layers[0].weight, "data", torch.full((4, 3), 0.25)),
            lambda m: m.double(),
            lambda m: m.load_state_dict({name: t * 0 + 0.5 for name, t in m.state_dict().items()}),
            lambda m: m.register_forward_hook(lambda module, given, result: result * 3),
        ]
        other.load_state_dict(model.state_dict())
        changes[change](model)
        changes[change](other)
        x = inputs().to(model.layers[0].weight.dtype)
        for _ in range(3):
            assert torch.equal(compiled(x), other(x))
        assert torch.equal(model.norm.running_mean, other.norm.running_mean)

    def test_frozen_parameters(self):
        model = network()
        compiled = warmed(model, inputs())
        model[0].weight.requires_grad_(False)
        for _ in range(3):
            model.zero_grad()
            compiled(inputs()).sum().backward()
            assert model[0].weight.grad is None
            assert model[2].weight.grad is not None
        model[0].weight.requires_grad_(True)
        compiled(inputs()).sum().backward()
        assert model[0].weight.grad is not None

    def test_hooks_on_parameters(self):
        model, seen = network(), []
        compiled = warmed(lambda x: model(x).sum().backward(), inputs())
        model.zero_grad()
        handle = model[0].weight.register_hook(lambda gradient: gradient * 0)
        for _ in range(3):
            model.zero_grad()
            compiled(inputs())
            assert not model[0].weight.grad.any()
        handle.remove()
        model[0].weight.register_hook(lambda gradient: seen.append(1))
        for _ in range(5):
            compiled(inputs())
        assert len(seen) == 5


class TestOptimizers:
    def step(self, model, optimizer):
        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return step

    def pair(self, make):
        models = [network(), network()]
        optimizers = [make(model) for model in models]
        steps = [self.step(*pair) for pair in zip(models, optimizers)]
        return models, optimizers, steps[0], torch.compile(steps[1])

    @pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "Adadelta"])
    def test_steps_are_the_same(self, kind):
        models, _, plain, compiled = self.pair(lambda m: getattr(torch.optim, kind)(m.parameters(), lr=0.05))
        for seed in range(8):
            agree(plain, compiled, inputs(seed))
        assert compiled.replays >= 5
        for a, b in zip(models[0].parameters(), models[1].parameters()):
            assert torch.equal(a, b)
            assert torch.equal(a.grad, b.grad)
            assert a._version == b._version

    def test_learning_rates_that_change_are_given_to_each_run(self):
        _, optimizers, plain, compiled = self.pair(lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9))
        schedulers = [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9) for optimizer in optimizers]
        for seed in range(10):
            agree(plain, compiled, inputs(seed))
            for scheduler in schedulers:
                scheduler.step()
        assert len(compiled.programs) == 2
        assert compiled.replays >= 6

    def test_hyperparameters_groups_and_states(self):
        def make(model):
            return torch.optim.Adam([{"params": model[0].parameters()}], lr=0.05)

        models, optimizers, plain, compiled = self.pair(make)
        for seed in range(4):
            agree(plain, compiled, inputs(seed))
        for optimizer in optimizers:
            optimizer.param_groups[0]["betas"] = (0.5, 0.9)
            optimizer.param_groups[0]["weight_decay"] = 0.1
        for seed in range(4):
            agree(plain, compiled, inputs(seed))
        for model, optimizer in zip(models, optimizers):
            optimizer.add_param_group({"params": model[2].parameters(), "lr": 0.2})
        for seed in range(5):
            agree(plain, compiled, inputs(seed))
        for optimizer in optimizers:
            optimizer.load_state_dict(optimizer.state_dict())
        for seed in range(4):
            agree(plain, compiled, inputs(seed))
        for a, b in zip(models[0].parameters(), models[1].parameters()):
            assert torch.equal(a, b)

    def test_clipping(self):
        models = [network(), network()]
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.5) for model in models]

        def step(model, optimizer, x):
            optimizer.zero_grad()
            loss = (model(x) * 100).square().mean()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss, norm

        compiled = torch.compile(functools.partial(step, models[1], optimizers[1]))
        for seed in range(6):
            for a, b in zip(step(models[0], optimizers[0], inputs(seed)), compiled(inputs(seed))):
                assert torch.equal(a, b)
        assert compiled.replays == 4
