"""`compile`: what it takes and gives back, what is not replayed and why, and how recordings are read."""

import copy
import cProfile
import gc
import logging
import pickle

import pytest

import corefw as torch
from corefw import nn
from corefw.dispatch.plan import Plan
from corefw.errors import CompileError, DifferenceError


def network():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


class TestWhatComesBack:
    def test_a_module_with_the_names_of_its_state(self):
        model = network()
        compiled = torch.compile(model)
        assert next(iter(compiled.state_dict())) == "_orig_mod.0.weight"
        assert compiled._orig_mod is model
        assert compiled[0] is model[0]
        assert len(compiled) == 3
        compiled.load_state_dict({name: t * 0 for name, t in compiled.state_dict().items()})
        for _ in range(3):
            assert not compiled(torch.ones(1, 3)).any()
        assert compiled.eval().training is model.training is False

    def test_a_module_that_compiles_itself(self):
        model = network()
        model.compile()
        assert next(iter(model.state_dict())) == "0.weight"
        expected = copy.deepcopy(network())
        expected.load_state_dict(model.state_dict())
        for _ in range(4):
            x = torch.randn(2, 3)
            assert torch.equal(model(x), expected(x))
        assert "calls replayed" in torch.explain(model)
        with pytest.raises(TypeError, match="replays"):
            model.compile(replays=3)

    def test_copies_and_pickles(self):
        compiled = torch.compile(network())
        x = torch.ones(2, 3)
        for _ in range(3):
            expected = compiled(x)
        for made in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
            for _ in range(3):
                assert torch.equal(made(x), expected)
            made._orig_mod[0].weight.detach().fill_(0)
            assert not torch.equal(made(x), expected)
        assert torch.equal(compiled(x), expected)

    def test_a_function_with_its_name(self):
        @torch.compile
        def double(x):
            """Twice."""
            return x * 2

        assert double.__name__ == "double"
        assert double.__doc__ == "Twice."
        assert double(torch.ones(1)).item() == 2

    def test_a_decorator_with_options_and_methods(self):
        class Model:
            factor = 3

            @torch.compile(fullgraph=True)
            def scaled(self, x):
                return x * self.factor

        model = Model()
        for _ in range(4):
            assert model.scaled(torch.ones(1)).item() == 3
        model.factor = 4
        assert model.scaled(torch.ones(1)).item() == 4

    def test_disabled_is_the_function_itself(self):
        assert torch.compile(network, disable=True) is network

    def test_what_is_refused(self):
        with pytest.raises(NotImplementedError, match="no backend 'tvm'"):
            torch.compile(network(), backend="tvm")
        with pytest.raises(RuntimeError, match="Unrecognized mode"):
            torch.compile(network(), mode="fastest")
        with pytest.raises(RuntimeError, match="Unexpected optimization option"):
            torch.compile(network(), options={"wishes": 1})
        with pytest.raises(RuntimeError, match="no pass 'wishes'"):
            torch.compile(network(), options={"passes": ["wishes"]})

    def test_backends_for_debugging(self):
        x = torch.randn(4)
        for backend in ("eager", "aot_eager", "inductor"):
            compiled = torch.compile(lambda t: (t + t) * (t + t), backend=backend)
            for _ in range(3):
                assert torch.equal(compiled(x), (x + x) * (x + x))

    def test_whether_it_is_compiling(self):
        seen = []

        def function(x):
            seen.append(torch.compiler.is_compiling())
            return x

        torch.compile(function)(torch.ones(1))
        function(torch.ones(1))
        assert seen == [True, False]


class TestWhatIsNotReplayed:
    @pytest.mark.parametrize(
        ("function", "reason"),
        [
            (lambda x: x * x.sum().item(), "elements of a tensor are read"),
            (lambda x: x if x.sum() > 0 else -x, "elements of a tensor are read"),
            (lambda x: x[x > 0], "depends on elements"),
            (lambda x: x.view(-1), "returns a view"),
            (lambda x: torch.nn.Parameter(x * 2), "returns a Parameter"),
        ],
    )
    def test_reasons(self, function, reason):
        compiled = torch.compile(function)
        for seed in range(4):
            x = torch.randn(6, generator=torch.Generator().manual_seed(seed))
            expected, got = function(x), compiled(x)
            assert torch.equal(expected, got)
        said = torch.explain(compiled)
        assert reason in said
        assert compiled.replays == 0

    def test_the_line_is_told_once(self, caplog):
        def function(x):
            return x * x.sum().item()  # this one

        compiled = torch.compile(function)
        with caplog.at_level(logging.INFO, logger="corefw.compiler"):
            for _ in range(5):
                compiled(torch.ones(2))
        (record,) = caplog.records
        line = function.__code__.co_firstlineno + 1
        assert f"{__file__}:{line}" in record.getMessage()

    def test_fullgraph_raises(self):
        compiled = torch.compile(lambda x: x.tolist(), fullgraph=True)
        compiled(torch.ones(1))
        with pytest.raises(CompileError, match="elements of a tensor are read by Python"):
            compiled(torch.ones(1))

    def test_effects_of_python(self):
        seen = []

        class Counting(nn.Module):
            calls = 0

            def forward(self, x):
                self.calls += 1
                seen.append(x.shape)
                return x * self.calls

        model = Counting()
        compiled = torch.compile(model)
        for i in range(8):
            assert compiled(torch.ones(1)).item() == i + 1
        assert len(seen) == 8
        assert "done by Python" in torch.explain(compiled)

    def test_modules_inside_are_replayed_by_themselves(self):
        class Deciding(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(6)))

            def forward(self, x):
                if x.sum().item() > 1e9:
                    return x
                return self.layers(x)

        model = Deciding()
        expected = copy.deepcopy(model)
        compiled = torch.compile(model)
        for _ in range(8):
            x = torch.randn(2, 4)
            assert torch.equal(compiled(x), expected(x))
        assert "0 calls replayed" in torch.explain(compiled)
        assert "0 calls replayed" not in torch.explain(model.layers)

    def test_too_many_recordings(self):
        compiled = torch.compile(lambda x: x * 2)
        for rows in (*range(1, 40), *range(1, 40), *range(1, 12)):
            assert torch.equal(compiled(torch.ones(rows)), torch.full((rows,), 2.0))
        assert len(compiled.programs) == 8
        assert "there are 8 recordings" in torch.explain(compiled)
        assert compiled.replays == 8  # those stay

    def test_arguments_that_differ_in_each_call(self):
        compiled = torch.compile(lambda x: x * 2)
        for rows in range(1, 80):
            assert torch.equal(compiled(torch.ones(rows)), torch.full((rows,), 2.0))
        assert not compiled.programs
        assert "others in each call" in torch.explain(compiled)

    def test_the_last_batch_of_an_epoch_is_smaller(self):
        model = network()
        optimizer = torch.optim.Adam(model.parameters())

        @torch.compile
        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        expected_model, found = copy.deepcopy(model), []
        expected_optimizer = torch.optim.Adam(expected_model.parameters())
        for _ in range(4):
            for x in torch.randn(14, 3, generator=torch.Generator().manual_seed(1)).split(4):
                found.append(step(x).item())
                expected_optimizer.zero_grad()
                loss = expected_model(x).square().mean()
                loss.backward()
                expected_optimizer.step()
                assert found[-1] == loss.item()
        assert len(step.programs) == 2
        assert step.replays == 12  # of 16: the first two of each kind ran

    def test_disabled_functions(self):
        inner = torch.compiler.disable(lambda x: x + 1, reason="it prints")
        compiled = torch.compile(lambda x: inner(x) * 2)
        for _ in range(3):
            assert compiled(torch.ones(1)).item() == 4
        assert "is not to be compiled: it prints" in torch.explain(compiled)

    def test_a_profiler_that_is_on_stays_on(self):
        def function(x):
            return x * 2

        compiled, profiler = torch.compile(function), cProfile.Profile()
        with profiler:
            for _ in range(4):
                assert compiled(torch.ones(1)).item() == 2
        assert compiled.replays == 0
        assert any(entry.code is function.__code__ and entry.callcount == 4 for entry in profiler.getstats())
        for _ in range(3):
            assert compiled(torch.ones(1)).item() == 2
        with profiler:
            assert compiled(torch.ones(1)).item() == 2
        assert compiled.replays == 2

    def test_errors_are_those_of_the_function(self):
        compiled = torch.compile(lambda x, y: x @ y)
        for _ in range(3):
            with pytest.raises(RuntimeError, match="mat1"):
                compiled(torch.ones(2, 3), torch.ones(2, 3))
        for _ in range(3):
            assert compiled(torch.ones(2, 3), torch.ones(3, 2)).sum().item() == 12

    def test_a_compiled_function_inside_of_another(self):
        inner = torch.compile(lambda x: x * 2)
        outer = torch.compile(lambda x: inner(x) + 1)
        for _ in range(4):
            assert outer(torch.ones(1)).item() == 3
        assert outer.replays == 2


class TestPrograms:
    def test_how_they_are_printed(self):
        model = nn.Linear(2, 3)
        compiled = torch.compile(lambda x: model(x).relu())
        with torch.no_grad():
            for _ in range(2):
                compiled(torch.ones(4, 2))
        (program,) = compiled.programs
        assert isinstance(program, Plan)
        lines = str(program).splitlines()
        assert lines[0] == "%0 = given argument 0: float32[4, 2]"
        assert "linear(%0, %1, %2): float32[4, 3]" in lines[3]
        assert f"{__file__}:" in lines[3]
        assert lines[-1].startswith("return %")

    def test_counts_and_picture(self):
        compiled = torch.compile(lambda x, y: (x @ y).relu(), backend="aot_eager")
        for _ in range(2):
            compiled(torch.ones(4, 2), torch.ones(2, 3))
        (program,) = compiled.programs
        assert program.flops() == 2 * 4 * 2 * 3
        assert program.bytes() == 4 * (4 * 2 + 2 * 3 + 4 * 3) + 4 * 2 * (4 * 3)
        picture = program.dot()
        assert picture.startswith("digraph {")
        assert "matmul" in picture or "mm" in picture

    def test_explain(self):
        compiled = torch.compile(lambda x: x + 1)
        assert "has not been called yet" in torch.explain(compiled)
        for _ in range(3):
            compiled(torch.ones(1))
        said = torch.explain(compiled)
        assert "1 programs, 1 calls replayed" in said
        torch.compiler.reset()
        assert "has not been called yet" in torch.explain(compiled)


class TestCheck:
    def test_replays_that_agree(self):
        model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
        other = copy.deepcopy(model)
        optimizers = [torch.optim.Adam(m.parameters()) for m in (model, other)]

        def step(m, optimizer, x):
            optimizer.zero_grad()
            loss = m(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        compiled = torch.compile(lambda x: step(model, optimizers[0], x), options={"check": 1})
        x = torch.randn(6, 3)
        losses = []
        for function in (compiled, lambda x: step(other, optimizers[1], x)):
            torch.manual_seed(0)
            losses.append([function(x).item() for _ in range(8)])
        assert losses[0] == losses[1]
        for a, b in zip(model.state_dict().values(), other.state_dict().values()):
            assert torch.equal(a, b)

    def test_what_the_recorder_cannot_see_is_found(self):
        class Hidden:
            __slots__ = ("value",)

        hidden = Hidden()
        hidden.value = 1.0
        compiled = torch.compile(lambda x: x * hidden.value, options={"check": 2})
        for _ in range(3):
            compiled(torch.ones(2))
        hidden.value = 2.0
        with pytest.raises(DifferenceError, match="differs from the function"):
            for _ in range(3):
                compiled(torch.ones(2))


class TestStances:
    def test_each(self):
        compiled = torch.compile(lambda x: x * 2)
        for _ in range(3):
            compiled(torch.ones(1))
        with torch.compiler.set_stance("force_eager"):
            compiled(torch.ones(1))
        assert compiled.replays == 1
        with torch.compiler.set_stance("eager_on_recompile"):
            compiled(torch.ones(1))
            for _ in range(3):
                assert compiled(torch.ones(2)).tolist() == [2, 2]
        assert compiled.replays == 2
        with torch.compiler.set_stance("fail_on_recompile"):
            compiled(torch.ones(1))
            with pytest.raises(RuntimeError, match="would be recorded"):
                compiled(torch.ones(2))
        for _ in range(3):
            compiled(torch.ones(2))
        assert compiled.replays == 4

    def test_decorated(self):
        compiled = torch.compile(lambda x: x * 2)

        @torch.compiler.set_stance("force_eager")
        def evaluate():
            return compiled(torch.ones(1))

        for _ in range(4):
            evaluate()
            compiled(torch.ones(1))
        assert compiled.replays == 2

    def test_what_is_refused(self):
        with pytest.raises(RuntimeError, match="invalid torch"):
            torch.compiler.set_stance("lazy")
        with pytest.raises(NotImplementedError, match="always compared"):
            torch.compiler.set_stance(skip_guard_eval_unsafe=True)


def test_default_backend():
    assert torch.compiler.get_default_backend() == "inductor"
    torch.compiler.set_default_backend("eager")
    try:
        compiled = torch.compile(lambda x: x * 2)
        assert [compiled(torch.ones(1)).item() for _ in range(4)] == [2] * 4
        assert not hasattr(compiled, "replays")
    finally:
        torch.compiler.set_default_backend("inductor")
    with pytest.raises(ValueError, match="tvm"):
        torch.compiler.set_default_backend("tvm")


def test_functions_of_numpy_arrays():
    halved = torch.compiler.wrap_numpy(lambda a: a / 2)
    assert torch.equal(halved(torch.tensor([2.0, 4.0])), torch.tensor([1.0, 2.0]))


@pytest.mark.parametrize(
    "name",
    [
        *("keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "skip_all_guards_unsafe"),
        *("skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe"),
        "skip_guard_on_inbuilt_nn_modules_unsafe",
    ],
)
def test_no_comparison_can_be_left_out(name):
    assert getattr(torch.compiler, name)([object(), object()]) == [True, True]


def test_names_that_change_nothing():
    def function(x):
        return x

    for decorate in (
        *(torch.compiler.allow_in_graph, torch.compiler.assume_constant_result, torch.compiler.nested_compile_region),
        *(torch.compiler.nested_compile_region(), torch.compiler.substitute_in_graph(abs)),
    ):
        assert decorate(function) is function
    torch.compiler.cudagraph_mark_step_begin()
    assert torch.compiler.save_cache_artifacts() is torch.compiler.load_cache_artifacts(b"") is None
    assert torch.compiler.set_enable_guard_collectives(False) is False
    with pytest.raises(NotImplementedError, match="each process decides alone"):
        torch.compiler.set_enable_guard_collectives(True)
    with pytest.raises(NotImplementedError, match="not saved"):
        torch.compiler.load_compiled_function(b"")
    assert torch.compiler.list_backends() == ["inductor"]
    assert torch.compiler.is_exporting() is torch.compiler.is_dynamo_compiling() is False


def test_what_the_garbage_collector_calls_is_no_part_of_a_call():
    def callback(phase, info):
        seen.append(phase)

    seen, made = [], []
    compiled = torch.compile(lambda x: sum([x * i for i in range(len(made) or 40)]) + len([[] for _ in range(5000)]))
    compiled(torch.ones(2))
    gc.callbacks.append(callback)
    try:
        compiled(torch.ones(2))
        assert compiled.programs
        compiled(torch.ones(2))
    finally:
        gc.callbacks.remove(callback)
    assert compiled.replays == 1
    assert gc.isenabled()
