"""Writing where memory overlaps: into one element several times, or over parts of what is read."""

import numpy as np
import pytest

import corefw
from corefw.dispatch.registry import registry
from tests.parity import import_torch

EXPANDED = """
t.add(t.ones(3), 1, out=x)
t.matmul(t.ones(1, 2), t.ones(2, 3), out=x[None])
t.cat((t.ones(3),), out=x)
t.stack((t.ones(3),), out=x[None])
t.arange(3, out=x)
t.linspace(0, 1, 3, out=x)
t.rand(3, out=x)
t.take(t.ones(3), t.tensor([0, 1, 2]), out=x)
t.sort(t.ones(3), out=(x, t.zeros(3, dtype=t.int64)))
x.add_(1)
x.copy_(t.ones(3))
x.uniform_()
x.cumsum_(0)
x[:2].mul_(2)
"""

PARTLY = """
t.add(x[:-1], 1, out=x[1:])
t.sin(x[:-1], out=x[1:])
t.clamp(x[:-1], 0, 1, out=x[1:])
t.add(m.t(), 1, out=m)
t.cat((x[:2], x[2:]), out=x)
t.index_select(x, 0, t.tensor([0, 1]), out=x[:2])
x[1:].add_(x[:-1])
x[1:].copy_(x[:-1])
x[1:].mul_(x[:-1])
x[1:].addcmul_(x[:-1], x[:-1])
x[1:].lerp_(x[:-1], 0.5)
x[1:].pow_(x[:-1])
x[1:].floor_divide_(x[:-1] + 1 if False else x[:-1])
m.t().add_(m)
put(x, slice(1, None), x[:-1])
"""

ALLOWED = """
t.add(x, 1, out=x)
t.add(x, 1, out=x[:])
t.add(x[::2], 1, out=x[1::2])
t.sin(x[:2], out=x[2:])
t.cumsum(x, 0, out=x)
t.where(x > 2, x, -x, out=x)
x.add_(x)
put(x, None, x)
x[:].add_(x)
x.add_(x[:])
x[:2].add_(x[2:])
m.add_(m[0] * 1)
m[0].add_(m[1])
m[0].add_(m[0, 0] * 1)
m[:, 0].add_(m[0])
put(m, slice(None), m[1])
put(m.view(9), ..., m[1, 1])
put(x, (), x[1])
put(x, slice(0, 2), x[1])
put(x, slice(0, 3), x[1:2])
put(m[:], m > 4, m[1, 1])
t.zeros(1).expand(3).fill_(2)
t.ones(1).expand(3).zero_()
x[:].fill_(x[1])
x[:].masked_fill_(x > 2, x[1])
x[:].index_fill_(0, t.tensor([3]), x[1])
"""


def put(x, key, value):
    x[key] = value
    return x


def run(t, expression, x):
    names = {"t": t, "x": x, "m": t.arange(9.0).reshape(3, 3), "put": put}
    return eval(expression, names), names


def refused(t, expression, x, text):
    before = x.tolist()
    with pytest.raises(RuntimeError, match=text):
        run(t, expression, x)
    assert x.tolist() == before, "what was refused was written"


@pytest.mark.parametrize("expression", EXPANDED.strip().splitlines())
def test_an_element_written_several_times_is_refused(expression):
    text = "more than one element of the written-to tensor refers to a single memory location"
    refused(corefw, expression, corefw.zeros(1).expand(3), text)


@pytest.mark.oracle
@pytest.mark.parametrize("expression", EXPANDED.strip().splitlines())
def test_an_element_written_several_times_is_refused_by_pytorch(expression):
    torch = import_torch()
    with pytest.raises(RuntimeError, match="unsupported operation"):
        run(torch, expression, torch.zeros(1).expand(3))


@pytest.mark.parametrize("expression", PARTLY.strip().splitlines())
def test_a_target_that_lies_partly_over_an_input_is_refused(expression):
    text = "some elements of the input tensor and the written-to tensor refer to a single memory location"
    refused(corefw, expression, corefw.arange(4.0), text)


@pytest.mark.oracle
@pytest.mark.parametrize("expression", PARTLY.strip().splitlines())
def test_a_target_that_lies_partly_over_an_input_is_refused_by_pytorch(expression):
    torch = import_torch()
    with pytest.raises(RuntimeError, match="unsupported operation"):
        run(torch, expression, torch.arange(4.0))


@pytest.mark.oracle
@pytest.mark.parametrize("expression", ALLOWED.strip().splitlines())
def test_targets_that_lie_wholly_over_an_input_or_beside_it(expression):
    torch = import_torch()
    result, names = run(corefw, expression, corefw.arange(4.0))
    expected, wanted = run(torch, expression, torch.arange(4.0))
    assert result.tolist() == expected.tolist()
    assert all(names[name].tolist() == wanted[name].tolist() for name in "xm")


TARGETS = {
    "forwards": ("m[:, 1:]", "m[:, :-1]"),
    "backwards": ("m[:, :-1]", "m[:, 1:]"),
    "up": ("m[:-1, ::2]", "m[1:, ::2]"),
    "down": ("m[1:, ::2]", "m[:-1, ::2]"),
    "one column for all": ("m", "m[:, 3:4]"),
    "one element for all": ("m.data", "m[3, 4]"),
    "transposed": ("m[:, ::2]", "m.t()[:, ::2]"),
    "expand_reduced": ("m[::2]", "m[20:]"),
    "beside": ("m[:, :20]", "m[:, 20:]"),
    "counted apart": ("m.data[1:]", "m[:-1]"),
}
CHANGES = """
target.copy_(source)
target.add_(source)
target.mul_(source)
target.addcmul_(source, source)
target.lerp_(source, 0.5)
target.masked_fill_(source > 800, 7)
target.__setitem__(..., source)
t.where(source > 800, source, target, out=target)
"""


@pytest.mark.parametrize("device", ["cpu", "emulated"])
@pytest.mark.parametrize("target, source", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("change", CHANGES.strip().splitlines())
def test_what_is_read_is_what_was_there_before(device, target, source, change):
    """Where neither is refused: the target's elements never show in the source."""
    if device not in ("cpu", *registry.runtimes):
        pytest.skip("there is no emulated device")
    found, wanted = (corefw.arange(1600.0, device=device).reshape(40, 40) for _ in "fw")
    names = {"t": corefw}
    before = eval(source, {**names, "m": wanted}).clone()
    eval(change, {**names, "target": eval(target, {**names, "m": wanted}), "source": before})
    eval(
        change, {**names, "target": eval(target, {**names, "m": found}), "source": eval(source, {**names, "m": found})}
    )
    assert found.tolist() == wanted.tolist()


MOVES = """
x.masked_scatter_(x > 300, x)
x.masked_scatter_(b, x[:])
x.index_put_((p,), x)
x.index_add_(0, p, x)
x.index_copy_(0, p, x)
x.scatter_(0, p, x)
x.scatter_reduce_(0, p, x, 'sum', include_self=False)
x.scatter_reduce_(0, p, x, 'amax', include_self=False)
x.put_(p, x)
p.index_copy_(0, p, p)
p.scatter_(0, p, p)
b.masked_scatter_(b, b)
"""


@pytest.mark.parametrize("device", ["cpu", "emulated"])
@pytest.mark.parametrize("change", MOVES.strip().splitlines())
def test_elements_that_are_moved_are_those_that_were_there_before(device, change):
    if device not in ("cpu", *registry.runtimes):
        pytest.skip("there is no emulated device")

    def tensors():
        numbers = corefw.arange(600, device=device)
        return {"x": numbers.double() + 1, "p": (numbers * 7 + 3) % 600, "b": numbers % 3 == 0}

    target, rest = change[0], change[1:]
    found, wanted, before = tensors(), tensors(), tensors()
    eval(change, found)
    eval("target" + rest, {**before, "target": wanted[target]})
    assert found[target].tolist() == wanted[target].tolist()


def test_elements_in_common_are_found():
    """Of two equal windows of an array, at any places."""
    meets = pytest.importorskip("corefw_cupy.overlap", reason="the CuPy backend is not installed").meets
    rng, found = np.random.default_rng(0), set()
    for _ in range(1000):
        whole = np.zeros(rng.integers(1, 8, rng.integers(1, 4)), np.float32)
        sizes, steps = ([int(rng.integers(1, n + 1)) for n in whole.shape] for _ in "ns")
        starts = [[int(rng.integers(n)) for n in whole.shape] for _ in "ab"]
        a, b = (whole[tuple(slice(i, i + n, s) for i, n, s in zip(at, sizes, steps))] for at in starts)
        if a.shape == b.shape:
            meet = meets(a.ctypes.data - b.ctypes.data, a.shape, a.strides, 4)
            assert meet == np.shares_memory(a, b)
            found.add(meet)
    assert found == {True, False}
