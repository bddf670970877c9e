"""Passes over plans: what they do to some programs, that random programs compute the same, and that faults are seen."""

import sys

import numpy as np
import pytest

import corefw as torch
from corefw.compiling.passes import PASSES, facts, improved
from corefw.dispatch.plan import Call
from corefw.dispatch.registry import registry
from tests.plans import better, names, recorded, run, same_bits

functional = torch.nn.functional
common, constants, dead, fusion, updates = (
    sys.modules[f"corefw.compiling.passes.{name}"] for name in ("common", "constants", "dead", "fusion", "updates")
)
registry.runtime("cpu")
FUSING = registry.backends["c"].fuse if "c" in registry.backends else None
fused = pytest.mark.skipif(FUSING is None, reason="no backend fuses")


def tensors(*shapes, dtype=torch.float32):
    rng = np.random.default_rng(0)
    return [torch.tensor(rng.normal(size=shape).astype(np.float32)).to(dtype) for shape in shapes]


def check(function, *inputs, passes=tuple(PASSES), exact=True):
    """Run a function as it is and as a plan: results and what becomes of the inputs are the same. Returns the plan."""
    plan = better(function, *(x.clone() for x in inputs), passes=passes)
    for _ in range(2):  # a run leaves nothing behind
        eager, own = [x.clone() for x in inputs], [x.clone() for x in inputs]
        expected = function(*eager)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for actual, wanted in zip(run(plan, *own), expected, strict=True):
            if exact:
                same_bits(actual, wanted.array)
            else:
                tolerance = 1e-2 if wanted.element_size() == 2 else 1e-5
                np.testing.assert_allclose(*(np.float64(a) for a in (actual, wanted.array)), tolerance, tolerance)
        for actual, wanted in zip(own, eager, strict=True):
            same_bits(actual.array, wanted.array)
    return plan


# -- dead -------------------------------------------------------------------------------------------------------------
def test_what_nobody_looks_at_is_not_computed():
    def function(x):
        (x.exp() + 1).sin()
        return x * 2

    assert names(check(function, *tensors(5), passes=["dead"])) == ["mul"]


def test_what_is_written_or_drawn_stays():
    def function(x):
        x.mul_(2)
        y = torch.zeros(5)
        y[1:3].add_(x[1:3])
        torch.rand(3)
        return y

    kept = names(better(function, *tensors(5), passes=["dead"]))
    assert "mul" in kept and "add" in kept and any(name.endswith("_at") for name in kept), kept


# -- common -----------------------------------------------------------------------------------------------------------
def test_equal_calls_are_one():
    def function(x, y):
        return (x * y).exp() + (x * y).exp() * 3.0, (x * y)[1:] + (x * y)[1:]

    plan = check(function, *tensors(5, 5), passes=["common"])
    assert [names(plan).count(name) for name in ("mul", "exp")] == [2, 1]


def test_calls_that_differ_stay():
    def function(x):
        a = x * 2.0
        x.add_(1)
        b = x * 2.0  # of other elements
        c, d = functional.leaky_relu(x, 0.0), functional.leaky_relu(x, -0.0)
        e, f = x.exp(), x.exp()  # each is the caller's
        g = x.exp()
        g.add_(1)  # written to
        return a, b, c, d, e, f, g

    assert len(check(function, *tensors(5), passes=["common"]).calls) == 9


def test_random_numbers_stay_apart():
    plan = better(lambda x: x + torch.rand(5) + torch.rand(5), *tensors(5), passes=["common"])
    assert sum(facts.varies(call) for call in plan.calls) == 2


def test_views_of_one_of_several_equal_results():
    def function(x):
        first, second = x.exp(), x.exp()
        return first[1:].sin() + second[1:].reshape(2, 2).reshape(-1).cos()

    plan = check(function, *tensors(5), passes=["common"])
    assert all(cell.memory in plan.cells() for cell in plan.cells())


# -- constants --------------------------------------------------------------------------------------------------------
def test_constants_are_computed_once():
    def function(x):
        return x * (torch.arange(5) * 2.0).exp() + torch.full((5,), 2.0)

    plan = check(function, *tensors(5), passes=["constants"])
    assert names(plan) == ["mul", "add"]


def test_what_changes_is_no_constant():
    def function(x):
        total = torch.zeros(5)
        total.add_(x)
        return total, torch.ones(5)

    kept = names(check(function, *tensors(5), passes=["constants"]))
    assert kept[-2:] == ["add", "full_at"] or len(kept) == 3, kept


# -- pooling ----------------------------------------------------------------------------------------------------------
def pooled(x, g, size=2, stride=2, relu=functional.relu, pool=None):
    """relu and a pooling, and their gradient."""
    x = x.detach().requires_grad_()
    y = (pool or (lambda x: functional.max_pool2d(x, size, stride)))(relu(x * 1.0))
    return y, torch.autograd.grad(y, x, g)[0]


def images(special):
    """Images and a gradient, among them windows of negative numbers, of equal ones and, if special, of NaN."""
    x, g = tensors((2, 3, 9, 9), (2, 3, 4, 4))
    x[0, 0], x[0, 1, :4, :4] = -1.0, 0.5
    if special:
        x[1, 2, 2, 3], x[1, 2, 5, 5], g[0] = np.nan, -np.inf, np.inf
    return x, g


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(("size", "stride"), [(2, 2), (3, 2)])
def test_relu_comes_after_a_pooling(size, stride, special):
    plan = check(lambda x, g: pooled(x, g, size, stride), *images(special), passes=["pooling"])
    assert names(plan) == ["mul", "max_pool", "relu", "relu_backward", "max_pool_backward", "mul"]


def test_relu_comes_after_an_adaptive_pooling():
    plan = check(
        lambda x, g: pooled(x, g, pool=lambda x: functional.adaptive_max_pool2d(x, 4)),
        *images(True),
        passes=["pooling"],
    )
    assert names(plan).index("relu") > names(plan).index("adaptive_max_pool")


def test_relu_that_others_see_stays_before_a_pooling():
    def also_returned(x, g):
        kept = []
        return (*pooled(x, g, relu=lambda x: kept.append(functional.relu(x)) or kept[0]), kept[0].detach())

    def also_used(x, g):
        return pooled(x, g, relu=lambda x: (y := functional.relu(x)) + 0 * y.sum())

    def indices(x, g):
        return functional.max_pool2d(functional.relu(x), 2, return_indices=True)

    def changed(x, g):
        y = functional.relu(x)
        x.neg_()
        return functional.max_pool2d(y, 2), g

    for function in (also_returned, also_used, indices, changed):
        kept = names(check(function, *images(False), passes=["pooling"], exact=function is not also_used))
        assert kept.index("relu") < kept.index("max_pool"), function


def test_a_planted_fault_of_poolings_is_seen(monkeypatch):
    monkeypatch.setattr(facts.Facts, "are_unchanged", lambda self, *arguments: True)

    def changed(x, g):
        y = functional.relu(x)
        x.neg_()
        return functional.max_pool2d(y, 2), g

    with pytest.raises(AssertionError):
        check(changed, *images(False), passes=["pooling"])


# -- updates ----------------------------------------------------------------------------------------------------------
def test_what_only_the_plan_sees_is_not_changed_in_place():
    def function(x, y):
        z = x.exp()
        z += y
        z.mul_(2.0)
        return z, functional.relu(z)

    plan = check(function, *tensors((4, 5), (4, 5)), passes=["updates"])
    assert not any(any(call.changed()) for call in plan.calls)
    assert names(check(function, *tensors((4, 5), (4, 5)), passes=["updates", "fusion"])) == (
        ["fused"] if FUSING else names(plan)
    )


def shown(x, y):
    """Changes in place what a view shows."""
    z = x.exp()
    row = z[1]
    z += y
    return row * 2.0


def test_a_planted_fault_of_updates_is_seen(monkeypatch):
    monkeypatch.setattr(updates, "_may_be_new", lambda call, facts: True)
    with pytest.raises(AssertionError):
        check(shown, *tensors((5, 5), (5, 5)), passes=["updates"])


def test_what_others_see_is_changed_in_place():
    def given(x, y):
        x += y
        return x * 2.0

    def narrower(x, y):
        z = x.exp()
        z += y.double()
        return z

    def transposed(x, y):
        z = x.exp()
        z += y.t()
        return z

    for function in (given, shown, narrower, transposed):
        plan = check(function, *tensors((5, 5), (5, 5)), passes=["updates"])
        assert any(any(call.changed()) for call in plan.calls), function


# -- fusion -----------------------------------------------------------------------------------------------------------
@fused
def test_a_chain_and_a_sum_are_one_call():
    plan = check(lambda x, c: functional.gelu(x * 2.0 + 1.0).mul(c).sum(), *tensors(300, 300), exact=False)
    assert names(plan) == ["fused"]
    assert "fused(sum(mul(gelu(add(mul(%0, %2), %3)), %1), (0,))): float32[]; c" in str(plan)


@fused
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_programs(dtype):
    x, y, bias, mask = (*tensors((6, 40), (6, 40), 40, dtype=dtype), tensors((6, 40))[0] > 0)

    def dropout(x, mask, bias):
        return functional.relu(x + bias) * mask.to(x.dtype) * 1.25 + x

    def swish(x, y):
        return (x * torch.sigmoid(x)).where(y > 0, y.clamp(-1, 1)) ** 2.0

    def normalized(x):
        centred = x - x.mean(-1, keepdim=True)
        return centred * (centred.square().mean(-1, keepdim=True) + 1e-5).rsqrt()

    def backward(x, y, bias):
        inner = functional.gelu(x + bias) * y
        grad = (
            torch.ops.aten.gelu_backward(inner, x + bias)
            if False
            else inner * torch.sigmoid(x) * (1 - torch.sigmoid(x))
        )
        return grad, grad.sum(0), (grad * x).sum((0, 1))

    assert names(check(dropout, x, mask, bias)) == ["fused"]
    assert names(check(swish, x, y)) == ["fused"]
    assert names(check(normalized, x, exact=False)).count("fused") >= 2
    assert "fused" in names(check(backward, x, y, bias, exact=False))
    assert names(check(lambda x: x.double().exp().to(torch.float32) * 2, x)) == ["fused"]


@fused
def test_one_long_call_of_many_elements_is_fused_alone():
    plan = check(lambda x: (functional.gelu(x), functional.relu(x)), *tensors((300, 300)))
    assert names(plan) == ["fused", "relu"]
    assert names(check(lambda x: functional.gelu(x), *tensors((30, 30)))) == ["gelu"]


@fused
def test_intermediate_results_that_others_need_are_outputs():
    plan = check(lambda x, w: ((y := x.exp()) * 2 + 1, y @ w, y), *tensors((4, 30), (30, 5)), exact=False)
    assert names(plan) == ["fused", "matmul"]
    (made,) = [call for call in plan.calls if call.op.name == "fused"]
    assert len(made.results) == 2


@fused
def test_accumulation_in_place_ends_a_group():
    def function(x, grad):
        grad.add_(x.exp() * 2)
        return grad * 3

    plan = check(function, *tensors(50, 50))
    assert names(plan) == ["fused", "mul"] and plan.calls[0].out is plan.given[1]


@fused
def test_writes_in_between_part_groups():
    def function(x, y):
        a = x * 2
        x.add_(1)
        b = a + x  # a is needed of x as it was
        view = b[1:]
        view.mul_(y[1:])
        return (b + 1).exp()

    check(function, *tensors(50, 50))


@fused
def test_a_call_that_needs_a_part_stands_in_between():
    def function(x):
        a = x.exp()
        b = a.cumsum(0)  # of no formula
        return (a * b + x).sin()

    assert names(check(function, *tensors(50))) == ["exp", "cumsum", "fused"]


@fused
def test_a_sum_comes_forward_to_what_it_sums():
    def function(grad, x, w):
        inner = grad * x
        return inner @ w, inner.sum(0)

    plan = check(function, *tensors((40, 30), (40, 30), (30, 20)), exact=False)
    assert names(plan) == ["fused", "matmul"]


@fused
def test_sums_beside_kept_dimensions():
    plan = check(lambda x, y: (x * y + x).sum((0, 2, 3)), *tensors((4, 5, 6, 7), (4, 5, 6, 7)), exact=False)
    assert names(plan) == ["fused"]
    plan = check(lambda x, y: (x * y + x).sum((1, 3)), *tensors((4, 5, 6, 7), (4, 5, 6, 7)))
    assert names(plan) == ["fused", "sum"]


@fused
def test_sums_of_few_elements_are_made_where_these_are():
    for rows, expected in ((8, ["fused", "sum"]), (64, ["fused"])):
        plan = check(lambda x, y: (x * y + x).sum(0), *tensors((rows, 50), (rows, 50)), exact=False)
        assert names(plan) == expected


@fused
def test_other_layouts_are_left_alone():
    assert names(check(lambda x: (x.t() * 2).exp(), *tensors((5, 7)))) == ["t", "mul", "exp"]


@fused
def test_a_fusion_that_its_backend_refuses_runs_one_by_one(monkeypatch):
    backend, fuse = registry.backends["c"], FUSING
    monkeypatch.setattr(backend, "fuse", lambda made: fuse(made) if len(made.parts) < 2 else None)

    def function(x, grad):
        y = x.exp() * 2 + 1
        grad.add_(y)
        return y

    assert names(check(function, *tensors(50, 50))) == ["fused"]


def test_passes_can_be_left_out():
    plan = recorded(lambda x: (x * 2 + 1).exp(), *tensors(5))
    assert names(improved(plan, [])) == ["mul", "add", "exp"]


# -- random programs --------------------------------------------------------------------------------------------------
def program(seed):
    """A function of two matrices: elementwise ops, sums, views and writes in any order, some of it for nothing."""

    def function(x, y):
        rng = np.random.default_rng(seed)
        known, returned = [x, y, x * 1.5], []

        def any_of(values):
            return values[int(rng.integers(0, len(values)))]

        for _ in range(14):
            a, b = any_of(known), any_of(known)
            kind = int(rng.integers(0, 13))
            if kind < 3:
                known.append(any_of([torch.add, torch.mul, torch.sub])(a, b))
            elif kind < 6:
                known.append(any_of([torch.tanh, torch.sin, functional.relu, torch.neg])(a))
            elif kind == 6:
                known.append(torch.where(a > b, a, b * 2.0))
            elif kind == 7:
                known.append(a.double().mul(0.5).float())
            elif kind == 8:
                known.append(a + any_of([a.sum(0), a.mean(1, keepdim=True), a.sum()]) * 0.1)
            elif kind == 9:
                any_of([a.add_, a.mul_])(b.tanh())
            elif kind == 10:
                a[1:].add_(b[1:] * 0.5)
            elif kind == 11:
                known.append(a.cumsum(0) * 0.1)
            else:
                returned.append(a * 2.0)
        return (*returned, known[-1] * 1.0, any_of(known).sum(0))

    return function


SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs(seed):
    check(program(seed), *tensors((4, 9), (4, 9)), exact=False)
    for name in PASSES if seed < 8 else ():
        check(program(seed), *tensors((4, 9), (4, 9)), passes=[name], exact=False)


def no_writes(monkeypatch):
    monkeypatch.setattr(facts.Facts, "may_share", lambda self, cell, other: False)


def anything_runs(monkeypatch):
    monkeypatch.setattr(fusion._Grouping, "_may_run", lambda self, group: True)


def unchanged(monkeypatch):
    monkeypatch.setattr(facts.Facts, "are_unchanged", lambda self, *arguments: True)


def nothing_is_needed(monkeypatch):
    monkeypatch.setattr(fusion, "_is_needed", lambda plan, cell, group, uses: cell in plan.returned)


def writes_are_pure(monkeypatch):
    for module in (dead, common, constants):
        monkeypatch.setattr(module, "only_computes", lambda call: True)
    monkeypatch.setattr(Call, "changed", lambda self: iter(()))


FAULTS = [no_writes, writes_are_pure]
FUSION_FAULTS = [anything_runs, unchanged, nothing_is_needed]


@pytest.mark.parametrize("fault", [*FAULTS, *(pytest.param(f, marks=fused) for f in FUSION_FAULTS)])
def test_planted_faults_are_seen(fault, monkeypatch):
    fault(monkeypatch)
    for seed in SEEDS:
        try:
            check(program(seed), *tensors((4, 9), (4, 9)), exact=False)
        except Exception:
            return
    pytest.fail(f"no program shows the fault {fault.__name__}")
