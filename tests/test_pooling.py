"""Pooling: layers, refused arguments and special values."""

from math import inf, nan

import numpy as np
import pytest

import corefw as torch
from corefw import nn
from tests.layers import check_layer, check_repr

F = nn.functional


@pytest.mark.parametrize("pool", ["max_pool2d", "avg_pool2d"])
@pytest.mark.parametrize(
    ("shape", "kernel_size", "options", "text"),
    [
        ((3, 2, 2), 3, {}, r"Given input size: \(3x2x2\). Calculated output size: \(3x0x0\). Output size is too small"),
        ((1, 3, 5, 5), 3, {"padding": 2}, "pad should be at most half of effective kernel size, but got pad=2"),
        ((1, 3, 5, 5), 3, {"padding": -1}, "pad must be non-negative"),
        ((1, 3, 5, 5), 0, {"stride": 1}, "kernel size should be greater than zero"),
        ((1, 3, 5, 5), 2, {"stride": 0}, "stride should not be zero"),
        ((1, 3, 5, 5), (2, 2, 2), {}, "kernel_size must either be a single int, or a tuple of two ints"),
        ((5, 5), 2, {}, r"Expected 3D or 4D \(batch mode\) tensor"),
        ((1, 0, 5, 5), 2, {}, "with optional 0 dim batch size"),
    ],
)
def test_wrong_windows(pool, shape, kernel_size, options, text):
    with pytest.raises(RuntimeError, match=text):
        getattr(F, pool)(torch.zeros(shape), kernel_size, **options)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: F.max_pool2d(x, 2, dilation=0), RuntimeError, "dilation should be greater than zero"),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=0), RuntimeError, "divisor must be not zero"),
        (lambda x: F.adaptive_avg_pool2d(x, (3, 3, 3)), RuntimeError, "adaptive_avg_pool2d: output_size must be 2"),
        (lambda x: F.adaptive_avg_pool2d(x, -1), RuntimeError, r"greater than or equal to 0 but received \{-1, -1\}"),
        (lambda x: F.adaptive_max_pool2d(x[:, :, :0], 2), RuntimeError, "with dimension 2 being empty"),
        (lambda x: F.adaptive_max_pool3d(x[0], 2), RuntimeError, r"Expected 4D or 5D \(batch mode\) tensor"),
        (lambda x: F.max_pool2d("text", 2), TypeError, "must be Tensor, not str"),
        (lambda x: F.max_unpool2d(x, torch.zeros(1, 3, 2, 2, dtype=torch.int64), 2), RuntimeError, "shape of indices"),
        (lambda x: F.max_unpool2d(x, x.long(), 2, output_size=(20, 20)), ValueError, "invalid output_size"),
    ],
)
def test_wrong_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.zeros(1, 3, 5, 5))


def test_sizes_that_are_not_given_are_not_checked():
    x, zeros = torch.tensor([[2.0]]), torch.zeros(1, 1, dtype=torch.int64)
    assert F.max_unpool1d(x, zeros, 1, 0).tolist() == [[2.0]]
    with pytest.raises(RuntimeError, match="out of bounds"):
        F.max_unpool1d(x, zeros + 1, 1, 0)
    with pytest.raises(RuntimeError, match="type int64 but got: Float"):
        F.max_unpool2d(torch.zeros(0, 1, 1), torch.zeros(0, 1, 1), 0)


def test_a_nan_is_the_maximum_and_the_last_one_counts():
    x = torch.tensor([[[nan, 1.0, nan, -inf, -inf, -inf]]])
    values, indices = F.max_pool1d(x, 3, return_indices=True)
    assert indices.tolist() == [[[2, 3]]]
    assert values.isnan().tolist() == [[[True, False]]]
    assert values[0, 0, 1].item() == -inf


def test_padding_is_never_the_maximum():
    x = torch.full((1, 1, 3), -inf)
    values, indices = F.max_pool1d(x, 3, stride=1, padding=1, return_indices=True)
    assert values.tolist() == [[[-inf] * 3]]
    assert indices.tolist() == [[[0, 0, 1]]]
    smallest = torch.iinfo(torch.int32).min
    assert F.max_pool2d(torch.full((1, 2, 2), smallest, dtype=torch.int32), 2).item() == smallest


def test_integer_means_are_cut():
    assert F.avg_pool1d(torch.tensor([[[3, 4, -3, -4]]]), 2).tolist() == [[[3, -3]]]


def test_an_adapted_size_of_none_is_kept():
    assert F.adaptive_avg_pool2d(torch.zeros(1, 2, 5, 7), (None, 3)).shape == (1, 2, 5, 3)
    assert F.adaptive_avg_pool2d(torch.zeros(1, 2, 5, 7), 0).shape == (1, 2, 0, 0)


@pytest.mark.parametrize("name", ["max_pool", "avg_pool", "lp_pool"])
@pytest.mark.parametrize("step", [None, [], ()])
def test_a_step_of_nothing_is_the_size_of_the_window(name, step):
    for n in (1, 2, 3):
        pool = getattr(F, f"{name}{n}d")
        x = torch.arange(1.0, 6.0**n + 1).reshape(1, 1, *(6,) * n)
        power = (2,) if name == "lp_pool" else ()
        assert pool(x, *power, 2, stride=step).tolist() == pool(x, *power, 2, stride=2).tolist()


def test_pooling_and_unpooling_layers_fit():
    x = torch.arange(50.0).reshape(1, 2, 5, 5)
    values, indices = nn.MaxPool2d(2, return_indices=True)(x)
    back = nn.MaxUnpool2d(2)(values, indices, output_size=x.shape)
    assert back.shape == x.shape
    assert back.sum().item() == values.sum().item()
    assert F.max_pool2d(back, 2).tolist() == values.tolist()


def dimensions(name, arguments, options=None):
    return [(f"{name}{n}d", arguments, options or {}, (2, 3, *(7, 6, 5)[:n])) for n in (1, 2, 3)]


LAYERS = [
    *dimensions("MaxPool", (2,)),
    *dimensions("MaxPool", (3,), {"stride": 1, "padding": 1, "dilation": 1, "ceil_mode": True}),
    *dimensions("AvgPool", (2,)),
    *dimensions("AvgPool", (3,), {"stride": 2, "padding": 1, "count_include_pad": False}),
    *dimensions("AdaptiveMaxPool", (3,)),
    *dimensions("AdaptiveAvgPool", (3,)),
    *dimensions("LPPool", (3, 2)),
    ("AdaptiveAvgPool2d", ((1, None),), {}, (3, 4, 5)),
]


@pytest.mark.parametrize(("name", "arguments", "options", "shape"), LAYERS)
def test_layers_agree_with_pytorch(name, arguments, options, shape):
    check_layer(name, arguments, options, shape)
    check_repr(name, arguments, options)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling_layers_print_as_pytorchs(n):
    check_repr(f"MaxUnpool{n}d", (2,), {"padding": 1})


@pytest.mark.parametrize("shape", [(2,), (1, 2), (3, 1), (1, 3, 2)])
def test_unpooling_wants_a_position_for_each_maximum(shape):
    with pytest.raises(RuntimeError, match="Expected shape of indices to be same"):
        nn.functional.max_unpool1d(torch.zeros(3, 2), torch.zeros(shape, dtype=torch.int64), 2)


# -- fractional steps -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [2, 3])
def test_fractional_pooling_is_pytorchs(n):
    shape, windows, counts = ((2, 3, 9, 7), (3, 2), (4, 5)) if n == 2 else ((2, 2, 6, 5, 7), (2, 3, 1), (3, 2, 4))
    name = f"FractionalMaxPool{n}d"
    rng = np.random.default_rng(0)
    image, samples = rng.normal(size=shape), rng.random((*shape[:2], n))
    found = []
    for module in (torch, pytest.importorskip("torch")):
        x = module.tensor(image, requires_grad=True)
        for options in ({"output_size": counts}, {"output_ratio": 0.5}):
            layer = getattr(module.nn, name)(
                windows, **options, return_indices=True, _random_samples=module.tensor(samples)
            )
            values, indices = layer(x)
            (values * values).sum().backward()
            found.append((values.detach().numpy(), indices.numpy(), x.grad.numpy().copy(), list(layer.state_dict())))
    for ours, theirs in zip(found[:2], found[2:], strict=True):
        assert ours[3] == theirs[3] and (ours[1] == theirs[1]).all()
        np.testing.assert_allclose(ours[0], theirs[0])
        np.testing.assert_allclose(ours[2], theirs[2])


def test_drawn_steps_reach_from_end_to_end():
    torch.manual_seed(0)
    line = torch.arange(23.0).expand(400, 2, 23)
    ends = F.fractional_max_pool2d(line, (1, 3), (2, 8))[:, 0]
    steps = ends.diff(dim=1)
    assert (ends[:, -1] == 22).all() and (ends[:, 0] == 2).all() and set(steps.unique().tolist()) == {2, 3}
    assert len(steps.unique(dim=0)) > 3


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: F.fractional_max_pool2d(x, 2), ValueError, "either an output_size or an output_ratio"),
        (lambda x: F.fractional_max_pool2d(x, 2, 5), RuntimeError, "pool too large relative to input"),
        (lambda x: F.fractional_max_pool2d(x, 0, 2), RuntimeError, "or there are none"),
        (lambda x: F.fractional_max_pool2d(x[:, :, :0], 1, 1), RuntimeError, "non-zero size for non-batch dimensions"),
        (lambda x: F.fractional_max_pool2d(x.long(), 2, 2), NotImplementedError, "check_uniform_bounds"),
        (lambda x: F.fractional_max_pool3d(x[0, 0], 2, 2), RuntimeError, "Expected 4D or 5D"),
        (
            lambda x: F.fractional_max_pool2d(x, 2, 2, _random_samples=torch.rand(1, 3, 3)),
            RuntimeError,
            r"_random_samples of shape \[1, 3, 2\]",
        ),
        (
            lambda x: F.fractional_max_pool2d(x, 2, 2, _random_samples=torch.rand(1, 3, 2).double()),
            RuntimeError,
            "same dtype and device",
        ),
        (lambda x: nn.FractionalMaxPool2d(2), ValueError, "either an output size, or a pooling ratio"),
        (lambda x: nn.FractionalMaxPool2d(2, 2, 0.5), ValueError, "and not both"),
        (lambda x: nn.FractionalMaxPool3d(2, output_ratio=1.5), ValueError, "must be between 0 and 1"),
    ],
)
def test_misuse_of_fractional_pooling_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.zeros(1, 3, 5, 5))
