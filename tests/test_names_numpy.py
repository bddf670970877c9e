"""NumPy's names of arguments: every op that PyTorch lets be called with `axis` and `keepdims` is, and so by NumPy."""

import inspect

import numpy as np
import pytest

import corefw
from corefw.dispatch.names import public_path
from corefw.dispatch.registry import registry
from corefw.dispatch.spelling import aliases, takes_options
from tests.parity import import_torch

x = corefw.arange(6.0).reshape(2, 3)
POSITIONS = corefw.zeros(1, 3, dtype=corefw.int64)


def words(text):
    return text.split()


#: calls with the name of an argument left open, by function: the others that it needs
CALLS: dict[str, dict] = {
    **{
        name: {}
        for name in words(
            """
            sum mean nansum nanmean prod amax amin argmax argmin all any logsumexp std var std_mean var_mean aminmax
            median nanmedian mode max min count_nonzero cumsum cumprod logcumsumexp cummax cummin softmax log_softmax
            sort argsort diff squeeze unsqueeze unbind gradient trapezoid cumulative_trapezoid
            linalg.vector_norm linalg.norm fft.fft
            """
        )
    },
    "gather": {"index": POSITIONS},
    "index_select": {"index": corefw.tensor([1])},
    "select": {"index": 1},
    "topk": {"k": 1},
    "kthvalue": {"k": 2},
    "repeat_interleave": {"repeats": 2},
    "tensor_split": {"indices_or_sections": 2},
    "narrow": {"start": 1, "length": 1},
    "fft.fftshift": {},
    "fft.ifftshift": {},
    "cosine_similarity": {"x2": x + 1},
}
#: those that keep dimensions when asked to
KEEPING = words("sum mean prod amax argmax all logsumexp std var median mode max aminmax linalg.norm")


def flat(result):
    return [part.tolist() for part in result] if isinstance(result, (tuple, list)) else result.tolist()


@pytest.mark.parametrize("name", CALLS)
def test_axis_is_dim(name):
    call, others = function(corefw, name), CALLS[name]
    assert flat(call(x, axis=0, **others)) == flat(call(x, dim=0, **others))
    if name in KEEPING:
        wanted = flat(call(x, dim=1, keepdim=True))
        assert flat(call(x, axis=1, keepdims=True)) == flat(call(x, dim=1, keepdims=True)) == wanted
    if "." not in name and hasattr(x, name):
        assert flat(getattr(x, name)(axis=0, **others)) == flat(call(x, dim=0, **others))


def test_lists_of_tensors_and_in_other_dtypes():
    assert corefw.stack([x, x], axis=1).shape == (2, 2, 3) and corefw.cat([x, x], axis=1).shape == (2, 6)
    assert x.sum(axis=0, dtype=corefw.float64).dtype is corefw.float64
    out = corefw.empty(3)
    assert corefw.sum(x, axis=0, out=out) is out and out.tolist() == [3, 5, 7]
    w = x.clone().requires_grad_()
    w.mean(axis=0, keepdims=True).sum().backward()
    assert corefw.equal(w.grad, corefw.full((2, 3), 0.5))


@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "max", "min", "all", "any", "std", "var", "argmax", "cumsum", "ptp"]
)
def test_numpys_functions_take_tensors(name):
    numpy = getattr(np, name)
    for options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}):
        if options and (name in ("max", "min") or (name == "cumsum" and "keepdims" in options)):
            continue  # with a dimension these are PyTorch's pair, and there is nothing to keep
        result = numpy(x, **options)
        assert isinstance(result, corefw.Tensor)
        np.testing.assert_allclose(result.numpy(), numpy(x.numpy(), **options), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: x.sum(0, axis=0), "multiple values for argument 'dim', also called 'axis'"),
        (lambda: x.sum(dim=0, axis=0), "multiple values"),
        (lambda: x.unsqueeze(0, axis=0), "multiple values"),
        (lambda: x.unsqueeze(0, 1), "multiple values"),
        (lambda: x.argsort(dim=0, axis=0), "multiple values"),
        (lambda: corefw.add(x, x2=x, other=x), "multiple values"),
        (lambda: x.sum(axes=0), "unexpected keyword argument 'axes'"),
        (lambda: x.sum(axis=0, nonsense=1), "unexpected keyword argument 'nonsense'"),
        (lambda: x.std(nonsense=1), "unexpected keyword argument 'nonsense'"),
        (lambda: x.argsort(nonsense=1), "unexpected keyword argument 'nonsense'"),
        (lambda: corefw.softmax(x), "missing 1 required positional argument: 'dim'"),
        (lambda: x.select(1), "missing 1 required positional argument: 'index'"),
        (lambda: x.topk(), "missing 1 required positional argument: 'k'"),
        (lambda: corefw.add(x), "missing 1 required positional argument: 'other'"),
        (lambda: corefw.add(), "missing"),
        (lambda: corefw.gather(x, axis=0), "missing 1 required positional argument: 'index'"),
        (lambda: x.add_(), "missing 1 required positional argument: 'other'"),
        (lambda: x.sin(axis=0), "unexpected keyword"),
    ],
)
def test_misuse_is_refused(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_operands_and_forms():
    assert corefw.equal(corefw.add(x1=x, x2=x, alpha=2), x * 3)
    assert corefw.equal(corefw.exp(a=x), x.exp()) and corefw.equal(corefw.sum(x=x, axis=1), x.sum(1))
    assert corefw.equal(x.clone().cumsum_(axis=0), x.cumsum(0)) and x.clone().unsqueeze_(axis=0).shape == (1, 2, 3)
    assert x.sum(axis=None) == 15 and x[None].squeeze(axis=None).shape == (2, 3)


def test_signatures_are_pytorchs():
    assert str(inspect.signature(corefw.softmax)).startswith("(input, dim: 'Dim'")
    assert list(inspect.signature(corefw.sum).parameters) == ["input", "dim", "keepdim", "dtype"]
    assert list(inspect.signature(corefw.Tensor.unsqueeze).parameters) == ["input", "dim"]


def test_equals_pytorch():
    """What PyTorch's functions take, ours do."""
    torch = import_torch()
    for name, others in CALLS.items():
        given = {k: torch.tensor(v.numpy()) if isinstance(v, corefw.Tensor) else v for k, v in others.items()}
        try:
            expected = function(torch, name)(torch.tensor(x.numpy()), axis=0, **given)
        except TypeError:
            continue
        assert str(flat(function(corefw, name)(x, axis=0, **others))) == str(flat(expected)), name
    lacking = set()
    for op in set(registry.declared.values()):
        named = {p.name for p in op.parameters} & {"dim", "keepdim"}
        taking = takes_options(op) or aliases(op) if op.rule else op.takes_out or op.other_names
        if named and not taking and inspect.isbuiltin(function(torch, public_path(op))):
            lacking.add(op.name)
    assert not lacking


def function(module, name):
    """What a dotted name leads to, None if nowhere."""
    for part in name.split("."):
        module = getattr(module, part, None)
    return module
