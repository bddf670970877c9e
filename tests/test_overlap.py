"""Writing where memory overlaps: into one element several times, or over parts of what is read."""

import pytest

import corefw
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
