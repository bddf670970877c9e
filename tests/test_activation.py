"""Activations: in-place forms, options and errors beyond what the rows of corefw/testing/cases say."""

import pytest

import corefw as torch
from corefw.dispatch.registry import registry
from corefw.testing import targets

F = torch.nn.functional
VALUES = [-4.0, -1.0, 0.0, 0.5, 7.0]


@pytest.mark.parametrize(
    "name",
    ["relu", "relu6", "hardtanh", "leaky_relu", "hardsigmoid", "hardswish", "elu", "selu", "celu", "silu", "mish"],
)
def test_the_argument_inplace(name):
    function = getattr(F, name)
    x = torch.tensor(VALUES)
    expected = function(x)
    assert x.tolist() == VALUES
    assert function(x, inplace=True) is x
    assert x.tolist() == expected.tolist()


def test_classes_that_nobody_sees():
    """On meta their number is the caller's."""
    classes = torch.zeros(2, 3, dtype=torch.int64, device="meta")
    assert F.one_hot(classes, 4).shape == (2, 3, 4)
    with pytest.raises(RuntimeError, match="meta"):
        F.one_hot(classes)


def test_inplace_keeps_the_gradient():
    for name in ("elu", "silu", "relu", "hardtanh"):
        x = torch.tensor(VALUES).requires_grad_()
        getattr(F, name)(x * 1).sum().backward()
        y = torch.tensor(VALUES).requires_grad_()
        getattr(F, name)(y * 1, inplace=True).sum().backward()
        assert x.grad.tolist() == y.grad.tolist(), name


@pytest.mark.parametrize("name", ["relu", "selu", "celu", "elu", "leaky_relu", "hardtanh", "threshold"])
def test_functions_ending_in_an_underscore(name):
    arguments = (0.0, 2.0) if name == "threshold" else ()
    x = torch.tensor(VALUES)
    expected = registry.declared[name].function(x, *arguments).tolist()
    assert registry.declared[name].inplace_function(x, *arguments) is x
    assert x.tolist() == expected


def test_softmax_converts_first():
    assert torch.softmax(torch.tensor([1, 1]), 0, dtype=torch.float64).tolist() == [0.5, 0.5]
    assert torch.log_softmax(torch.tensor([0.0], dtype=torch.float16), 0, torch.float32).dtype is torch.float32
    with pytest.raises(RuntimeError):
        torch.softmax(torch.tensor([1, 1]), 0, torch.int64)


def test_softmax_of_huge_and_infinite_values():
    assert torch.softmax(torch.tensor([1e30, 1e30]), 0).tolist() == [0.5, 0.5]
    assert torch.softmax(torch.tensor([0.0, -float("inf")]), 0).tolist() == [1.0, 0.0]
    assert torch.softmax(torch.tensor([-float("inf")] * 2), 0).isnan().all()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.gelu(torch.ones(2), approximate="erf"), (RuntimeError, ValueError), "none or tanh"),
        (lambda: F.glu(torch.ones(3)), RuntimeError, "Halving dimension must be even, but dimension 0 is size 3"),
        (lambda: F.celu(torch.ones(2), alpha=0), RuntimeError, "alpha cannot be 0 for CELU"),
        (lambda: F.softshrink(torch.ones(2), -1), (RuntimeError, ValueError), "lambda must be greater or equal to 0"),
        (lambda: F.hardtanh(torch.ones(2), 1.0, 0.0), (RuntimeError, ValueError), "cannot be greater than"),
        (
            lambda: torch.prelu(torch.ones(2, 3), torch.ones(2)),
            RuntimeError,
            "channel size = 3",
        ),
        (lambda: torch.softmax(torch.ones(2, 3), 2), IndexError, r"range of \[-2, 1\], but got 2"),
        (lambda: F.one_hot(torch.tensor([1.0])), RuntimeError, "LongTensor"),
        (lambda: F.one_hot(torch.tensor([-1])), RuntimeError, "must be non-negative"),
        (lambda: F.one_hot(torch.tensor([3]), 3), RuntimeError, "smaller than num_classes"),
        (lambda: F.one_hot(torch.ones(0, dtype=torch.int64)), RuntimeError, "Can not infer total number of classes"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("target", targets(None), ids=str)
def test_gelu_by_tanh_keeps_its_digits_below_zero(target):
    """Its factor is about 1e-38 at -10, where 1 + tanh is 0."""
    x = torch.tensor([-3.0, -10.0], dtype=torch.float64, device=target.device).requires_grad_()
    with target.preferred():
        y = F.gelu(x, approximate="tanh")
        y.sum().backward()
    assert y.tolist() == pytest.approx([-0.0036373920817730188, -1.2040923482098060e-37], rel=1e-12, abs=0)
    assert x.grad.tolist() == pytest.approx([-0.011584166630969726, -2.7576380638540316e-36], rel=1e-12, abs=0)


def test_large_inputs_do_not_overflow():
    x = torch.tensor([-1000.0, 1000.0]).requires_grad_()
    for name, values in {
        "softplus": [0.0, 1000.0],
        "logsigmoid": [-1000.0, 0.0],
        "elu": [-1.0, 1000.0],
        "mish": [0.0, 1000.0],
        "gelu": [0.0, 1000.0],
    }.items():
        out = getattr(F, name)(x)
        assert out.tolist() == values, name
        x.grad = None
        out.sum().backward()
        assert x.grad.isfinite().all(), name
