"""Runs of plans in C: they give what the kernels give, bit for bit, with memory of their own."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("tests.compiled")
import corefw as torch
from corefw import nn
from corefw.compiling.tape import Tape
from corefw.dispatch.backend import Kernel
from corefw.dispatch.plan import Plan
from corefw.dispatch.registry import registry
from corefw.nn import functional as F
from corefw.testing.targets import Target
from corefw_c.replaying import arena
from corefw_c.replaying.places import Span
from corefw_c.replaying.preparing import FirstRun
from corefw_c.replaying.replay import maker
from corefw_c.replaying.trying import Scratch, Trial, Unproved

LEVELS = [name for name, backend in registry.backends.items() if name.partition("-")[0] == "c" and backend.executor]


def recorded(function, *tensors, held=(), backend="c", executor=None):
    """A run of what a function of tensors does, whose results it returns."""
    tape = Tape()
    with tape:
        for tensor in tensors:
            tape.given(tensor.array, "an argument")
        results = function(*tensors)
        results = results if isinstance(results, tuple) else (results,)
        places = [tape.returned(t.array) for t in results]
    assert not tape.refusal
    run = (executor or registry.backends[backend].executor)(tape.finished())

    def call(*given, draws=(), rates=()):
        found = run([t.array for t in given], draws, rates)
        return [found[place] for place in places]

    return SimpleNamespace(call=call, run=run, tape=tape)


def stays(made):
    """The ops of calls that stay Python's, with the reasons."""
    steps = zip(made.run.plan.calls, made.run.steps, strict=True)
    return {call.op.name: step.reason for call, step in steps if step is not None and not step.notes}


def same(arrays, tensors):
    """Whether arrays have the bits of tensors."""
    return all(
        a.tobytes() == t.array.tobytes() and a.shape == t.array.shape for a, t in zip(arrays, tensors, strict=True)
    )


def check(function, make, times=4, **options):
    """Record a function with some tensors and run it with others; gives what was recorded."""
    made = recorded(function, *make(0), **options)
    for seed in range(1, times):
        results = function(*make(seed))
        assert same(made.call(*make(seed)), results if isinstance(results, tuple) else (results,))
    return made


def inputs(*shapes, dtype=torch.float32):
    def make(seed):
        rng = np.random.default_rng(seed)
        return [torch.from_numpy(rng.normal(size=shape)).to(dtype) for shape in shapes]

    return make


# -- whole training steps ---------------------------------------------------------------------------------------------
def training(optimizer, compiled):
    """Losses and the state after some steps of a small network."""
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.2), nn.Flatten()),
        *(nn.Linear(64, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 5)),
    )
    made = optimizer(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(made, 2, 0.5)

    def step(x, y):
        made.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        made.step()
        return loss

    function = torch.compile(step) if compiled else step
    losses = []
    for _ in range(9):
        losses.append(function(torch.randn(4, 3, 8, 8), torch.randint(0, 5, (4,))).item())
        schedule.step()
    return losses, [value.array.tobytes() for value in model.state_dict().values()], function


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_training_steps_run_in_c_alone(level, optimizer):
    options = {"SGD": {"lr": 0.1, "momentum": 0.9}, "Adam": {"lr": 0.01}}[optimizer]

    def make(parameters):
        return getattr(torch.optim, optimizer)(parameters, **options)

    with Target(level, "cpu").preferred():
        expected = training(make, False)
        losses, state, function = training(make, True)
    assert (losses, state) == expected[:2]
    assert function.replays >= 6
    runs = [entry.run for entries in function._entries.values() for entry in entries if entry.run.steps]
    assert runs
    for run in runs:
        assert not [step.reason for step in run.steps if step is not None and not step.notes]
        assert run.memory.least <= run.memory.arena < run.memory.unshared


# -- calls ------------------------------------------------------------------------------------------------------------
def test_calls_that_stay_pythons_stand_between_calls_in_c():
    def function(x):
        y = (x + x).clone()
        z = y.to(torch.complex64)[1:]
        return (z * z).real.contiguous() * y[1:], z

    made = check(function, inputs((5, 3)))
    assert stays(made)
    assert any(step is not None and step.notes for step in made.run.steps)


def test_views_are_returned_over_memory_of_their_own():
    def function(x, y):
        product = x @ y
        return product.t(), product[1:], x.t(), (x + 1).permute(1, 0)

    made = recorded(function, *inputs((3, 4), (4, 5))(0))
    first, second = (made.call(*inputs((3, 4), (4, 5))(seed)) for seed in (1, 2))
    for _ in range(2):
        assert same(made.call(*inputs((3, 4), (4, 5))(2)), function(*inputs((3, 4), (4, 5))(2)))
    assert same(second, function(*inputs((3, 4), (4, 5))(2)))
    assert same(first, function(*inputs((3, 4), (4, 5))(1)))
    assert np.shares_memory(second[0], second[1])


def test_two_views_of_one_result_are_returned_each_in_its_shape():
    check(lambda x: (lambda y: (y.view(-1, 1, 1), y, y.view(2, 3)))(x + 1), inputs((6,)))


def test_arrays_that_are_given_are_changed_in_place():
    def function(x, y):
        x.mul_(2).add_(y)
        x[1:].copy_(y[1:])
        return x.sum()

    made = recorded(function, *inputs((4, 3), (4, 3))(0))
    for seed in range(4):
        (x, y), (a, b) = inputs((4, 3), (4, 3))(seed), inputs((4, 3), (4, 3))(seed)
        assert same(made.call(x, y), [function(a, b)])
        assert torch.equal(x, a)
    assert not stays(made)


def test_a_number_of_each_run_chooses_no_formula():
    """The kernel of powers looks at its exponent."""
    made = recorded(lambda x, e: x**e, torch.rand(5), torch.tensor(2.0))
    for exponent in (2.0, 0.5, 3.0, 1.7, -1.0, 2.0):
        x, e = torch.rand(5), torch.tensor(exponent)
        assert same(made.call(x, e), [x**e])
    assert list(stays(made)) == ["pow"]
    assert not stays(check(lambda x: x.abs() ** 3 + x.abs() ** 0.5, inputs((5,))))


def test_draws_go_on_from_where_the_generator_is():
    def function(x):
        return F.dropout(x, 0.5), torch.rand(4), torch.randn(3)

    torch.manual_seed(5)
    made = recorded(function, torch.ones(6))
    blocks = [offset for _, _, offset in made.tape.generators]
    for seed in (5, 6, 1 << 63, (1 << 64) - 1):
        torch.manual_seed(seed)
        assert same(made.call(torch.ones(6), draws=[(seed, blocks[0])]), function(torch.ones(6)))
    assert not stays(made)


def test_half_types_and_layouts():
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int64):
        check(lambda x, y: (x + y.t()) * x[:, :1], inputs((6, 6), (6, 6), dtype=dtype))
    images = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    made = recorded(lambda x: (x * 2, x.clone()), images)
    for _ in range(3):
        assert all(a.strides == images.array.strides for a in made.call(images))


# -- what is given ----------------------------------------------------------------------------------------------------
def test_arrays_at_other_addresses_and_read_only_ones():
    made = recorded(lambda x: (x + 1) * x, torch.ones(50))
    made.call(torch.ones(50))
    odd = np.zeros(201, np.uint8)[1:].view(np.float32)
    odd[:] = range(50)
    frozen = np.arange(50, dtype=np.float32)
    frozen.flags.writeable = False
    for array in (odd, frozen):
        (found,) = made.run([array], (), ())
        np.testing.assert_array_equal(found, (array + 1) * array)

    def add(x):
        x.add_(1)
        return x * 2

    changing = recorded(add, torch.ones(50))
    for _ in range(2):
        changing.call(torch.ones(50))
    with pytest.raises(Exception, match="read-only"):
        changing.run([frozen], (), ())
    assert frozen[1] == 1


def test_a_kernel_that_fails_says_why_and_the_next_run_is_well():
    weight = torch.randn(4, 3)
    made = recorded(lambda i: F.embedding(i, weight) * 2, torch.tensor([0, 3]))
    for _ in range(2):
        assert same(made.call(torch.tensor([1, 2])), [weight[1:3] * 2])
    with pytest.raises(IndexError, match="index out of range"):
        made.call(torch.tensor([1, 4]))
    assert same(made.call(torch.tensor([2, 2])), [weight[[2, 2]] * 2])


def test_runs_of_several_threads():
    def function(x):
        for _ in range(6):
            x = (x @ x).tanh() + x.t()
        return x

    made = check(function, inputs((24, 24)))
    wrong = []

    def loop(seed):
        (x,) = inputs((24, 24))(seed)
        expected = function(x)
        wrong.extend(i for i in range(40) if not same(made.call(x), [expected]))

    threads = [threading.Thread(target=loop, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_first_runs_wait_for_none_that_goes_on():
    """It may go on around this one: a kernel of the user's may call what is compiled."""
    made = recorded(lambda x: x * 2, torch.ones(3))
    with made.run._twins.lock:
        assert same(made.call(torch.ones(3)), [torch.full((3,), 2.0)])
        assert not made.run.steps
    made.call(torch.ones(3))
    assert made.run.steps


# -- what lies side by side -------------------------------------------------------------------------------------------
def heads(x, then):
    """Attention of three parts of one array, and what `then` makes of its gradient."""
    x = x.detach().requires_grad_()
    q, k, v = (part.unflatten(2, (2, 4)).transpose(1, 2) for part in x.chunk(3, 2))
    y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    return y.detach(), then(torch.autograd.grad(y.square().sum(), x)[0])


@pytest.mark.parametrize(
    ("then", "joined"),
    [
        (lambda gradient: gradient * 2.0, True),
        (lambda gradient: gradient, False),  # the caller's, with memory of its own
        (lambda gradient: gradient.mul_(2.0) + gradient, False),
    ],
)
def test_gradients_of_parts_are_joined_where_they_lie(then, joined):
    made = check(lambda x: heads(x, then), inputs((3, 5, 24)))
    steps = [step for call, step in zip(made.run.plan.calls, made.run.steps, strict=True) if call.op.name == "cat"]
    assert [step is None for step in steps] == [joined]


def test_a_planted_wrong_place_of_what_is_joined_shows(monkeypatch):
    def shifted(self, call):
        place = found(self, call)
        return None if place is None else place._replace(offset=place.offset + 4)

    found = FirstRun._side_by_side
    monkeypatch.setattr(FirstRun, "_side_by_side", shifted)
    with pytest.raises(AssertionError):
        check(lambda x: heads(x, lambda gradient: gradient * 2.0), inputs((3, 5, 24)))


# -- measuring --------------------------------------------------------------------------------------------------------
def test_profiles_tell_what_calls_take():
    weight = torch.randn(200, 200)

    def function(x):
        return (x @ weight).cumsum(0), (x * x).to(torch.complex64) * 2

    compiled = torch.compile(function)
    x = torch.randn(200, 200)
    for _ in range(3):
        compiled(x)
    (plan,) = compiled.programs
    times = plan.profile(lambda: compiled(x), runs=5)
    assert {"matmul", "cumsum", "mul"} <= {call.op.name for call, _ in times} and all(s > 0 for _, s in times)
    assert len(str(times).splitlines()) == len(times) and "matmul" in str(times)
    expected = function(x)
    for found, wanted in zip(compiled(x), expected):
        assert torch.equal(found, wanted)
    with pytest.raises(RuntimeError, match="was not run"):
        plan.profile(lambda: None)
    with pytest.raises(RuntimeError, match="does not measure"):
        Plan().profile(lambda: None)


# -- proofs -----------------------------------------------------------------------------------------------------------
def executor_of(op, make):
    """An executor for which the kernel of an op is what `make` makes of a library."""
    kernels = registry.backends["c"].kernels["cpu"]

    def table(recording):
        return [Kernel(k.op, make(recording)) if k.op == op else k for k in kernels]

    return maker(registry.backends["c"].detail, kernels, table)


def computing_before(lib):
    def softmax(input, dim):
        scaled, output = input * 1, np.empty_like(input)
        lib.softmax(id(scaled), dim, id(output))
        return output

    return softmax


def computing_afterwards(lib):
    def softmax(input, dim):
        output = np.empty_like(input)
        lib.softmax(id(input), dim, id(output))
        output[0] = 0.25
        return output

    return softmax


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (computing_before, "NumPy makes an array for it"),
        (computing_afterwards, "its calls in C lead to something else"),
    ],
)
def test_what_numpy_does_beside_calls_in_c_is_noticed(kernel, reason):
    made = recorded(lambda x: torch.softmax(x, 0), *inputs((7,))(0), executor=executor_of("softmax", kernel))
    made.call(*inputs((7,))(1))
    assert stays(made) == {"softmax": reason}


def test_a_seed_that_is_computed_with_is_noticed():
    def uniform(lib):
        def kernel(size, seed, offset, low, high, dtype):
            output = np.empty(size, dtype)
            lib.uniform_at(seed, offset + 0, 0.0, 1.0, 1.0, id(output))
            return output

        return kernel

    made = recorded(lambda: torch.rand(4), executor=executor_of("uniform_at", uniform))
    made.call(draws=[(1, 2)])
    assert list(stays(made)) == ["uniform_at"]


def test_calls_of_one_kind_are_tried_once(monkeypatch):
    tried, attempt = [], FirstRun._try

    def noting(self, call, *arguments):
        tried.append(call.op.name)
        attempt(self, call, *arguments)

    def softmax_of(lib):
        def softmax(input, dim):
            output = np.empty_like(input)
            lib.softmax(id(input), dim, id(output))
            return output

        return softmax

    monkeypatch.setattr(FirstRun, "_try", noting)
    executor = executor_of("softmax", softmax_of)
    for x, dim, times in (
        *((torch.randn(3, 4), 1, 1), (torch.randn(3, 4), 1, 1), (torch.randn(3, 5), 1, 2)),
        *((torch.randn(3, 4), 0, 3), (torch.randn(3, 4).double(), 1, 4)),
    ):
        made = recorded(lambda x, dim=dim: x.softmax(dim), x, executor=executor)
        for _ in range(2):
            assert same(made.call(x), [x.softmax(dim)])
        assert not stays(made)
        assert len(tried) == times


def test_trials_refuse_arguments_that_lie_partly_in_what_is_changed():
    memory = np.arange(10.0)
    span = Span.of(memory[2:6])
    trial = Trial({span: span.content()}, Scratch())
    np.testing.assert_array_equal(trial.of(memory[3:5]), [3, 4])
    assert not np.shares_memory(trial.of(memory[2:6]), memory)
    with pytest.raises(Unproved, match="shares memory"):
        trial.of(memory[4:8])


# -- memory -----------------------------------------------------------------------------------------------------------
def overlaps(blocks, begins):
    """The pairs of blocks that have bytes in common while both are in use."""
    spans = [(begin, begin + b.size, b.first, b.last) for begin, b in zip(begins, blocks)]
    return [
        (i, j)
        for i, (a, b, first, last) in enumerate(spans)
        for j, (c, d, start, end) in enumerate(spans[:i])
        if a < d and c < b and first <= end and start <= last
    ]


def test_blocks_in_use_at_once_lie_apart():
    rng = np.random.default_rng(0)
    for count in (0, 1, 2, 9, 60):
        first = rng.integers(0, 30, count)
        last = first + rng.integers(0, 8, count)
        blocks = [arena.Block(int(s), int(f), int(e)) for s, f, e in zip(rng.integers(0, 9000, count), first, last)]
        begins, total = arena.offsets(blocks)
        assert not overlaps(blocks, begins)
        assert all(begin % arena.ALIGNMENT == 0 and begin + b.size <= total for begin, b in zip(begins, blocks))
        assert arena.most(blocks) <= total <= sum(arena.aligned(b.size) for b in blocks)


def test_an_overlap_in_the_arena_shows(monkeypatch):
    """Planted: all blocks begin at the arena's begin."""

    def piled(blocks):
        return [0] * len(blocks), max(arena.aligned(b.size) for b in blocks)

    def function(x):
        a, b = x.exp(), x.sin()
        return (a * b + a) @ b.t()

    check(function, inputs((9, 9)))
    monkeypatch.setattr(arena, "offsets", piled)
    with pytest.raises(AssertionError):
        check(function, inputs((9, 9)))
