"""Lazy layers: what they become, states loaded before, what waits; uninitialized parameters and buffers."""

import copy
import pickle

import numpy as np
import pytest

import corefw as torch
from corefw import nn
from corefw.nn.modules.lazy import LazyModuleMixin
from corefw.nn.parameter import is_lazy
from tests.parity import compare_layers, import_torch

#: (layer, its arguments, options, the arguments of the layer that it becomes, input)
LAYERS = [
    ("LazyLinear", (3,), {}, (4, 3), (2, 5, 4)),
    ("LazyLinear", (3,), {"bias": False}, (4, 3), (4,)),
    *((f"LazyConv{n}d", (4, 3), {"groups": 2, "padding": 1}, (6, 4, 3), (2, 6, *[5] * n)) for n in (1, 2, 3)),
    *((f"LazyConvTranspose{n}d", (4, 3, 2), {"bias": False}, (6, 4, 3, 2), (6, *[3] * n)) for n in (1, 2, 3)),
    *((f"LazyBatchNorm{n}d", (), {"momentum": 0.3}, (3,), (4, 3, *[2] * n)) for n in (1, 2, 3)),
    *((f"LazyInstanceNorm{n}d", (), {"eps": 0.1}, (3,), (4, 3, *[2] * n)) for n in (1, 2, 3)),
]


@pytest.mark.parametrize(("name", "arguments", "options", "others", "shape"), LAYERS)
def test_becomes_the_ordinary_layer(name, arguments, options, others, shape):
    torch.manual_seed(0)
    lazy = getattr(nn, name)(*arguments, **options)
    assert all(map(is_lazy, lazy.parameters())) and repr(lazy) == repr(
        getattr(import_torch().nn, name)(*arguments, **options)
    )
    before, state = lazy, list(lazy.state_dict())
    x = torch.rand(shape)
    result = lazy(x)
    ordinary = getattr(nn, name.removeprefix("Lazy"))
    if "Instance" in name:
        options = {**options, "affine": True, "track_running_stats": True}  # PyTorch's other defaults
    torch.manual_seed(0)
    expected = ordinary(*others, **options)
    assert type(lazy) is ordinary and lazy is before and repr(lazy) == repr(expected)
    assert list(lazy.state_dict()) == list(expected.state_dict()) == state
    assert all(type(parameter) is nn.Parameter and parameter.requires_grad for parameter in lazy.parameters())
    assert {name: tuple(t.shape) for name, t in lazy.state_dict().items()} == {
        name: tuple(t.shape) for name, t in expected.state_dict().items()
    }
    result.sum().backward()
    assert all(parameter.grad is not None for parameter in lazy.parameters())


@pytest.mark.parametrize(("name", "arguments", "options", "others", "shape"), LAYERS[::3])
def test_layers_are_pytorchs(name, arguments, options, others, shape):
    theirs = getattr(import_torch().nn, name)(*arguments, **options)
    theirs(import_torch().zeros(shape))
    ours = getattr(nn, name)(*arguments, **options)
    ours(torch.zeros(shape))
    compare_layers(ours, theirs, np.random.default_rng(0).normal(size=shape).astype("f4"), tolerance=1e-4)


def test_a_state_is_loaded_before_the_first_call():
    wanted = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    lazy = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    assert str(lazy.load_state_dict(wanted.state_dict())) == "<All keys matched successfully>"
    x = torch.rand(5, 4)
    assert (lazy(x) == wanted(x)).all() and repr(lazy) == repr(wanted)
    nn.LazyLinear(3).load_state_dict(nn.LazyLinear(3).state_dict())
    with pytest.raises(RuntimeError, match="trying to load an uninitialized parameter into an initialized one"):
        nn.Linear(4, 3).load_state_dict(nn.LazyLinear(3).state_dict())


def test_dtypes_and_devices_are_kept_for_later():
    layer = nn.LazyBatchNorm1d(dtype=torch.float64).to(torch.float16)
    assert layer.weight.dtype is layer.running_mean.dtype is torch.float16
    layer.double()(torch.rand(3, 2).double())
    assert layer.weight.dtype is layer.running_mean.dtype is torch.float64
    moved = nn.LazyLinear(2).to("meta")
    assert moved(torch.empty(3, 4, device="meta")).shape == (3, 2) and moved.weight.is_meta


@pytest.mark.parametrize("again", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_wait_too(again):
    layer = nn.LazyBatchNorm1d(dtype=torch.float64)
    copied = again(layer)
    assert is_lazy(copied.weight) and is_lazy(copied.running_var) and copied.weight.dtype is torch.float64
    copied(torch.rand(3, 2).double())
    assert is_lazy(layer.weight) and not is_lazy(copied.weight)


def test_a_lazy_layer_of_ones_own():
    class Scale(LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.UninitializedParameter()

        def initialize_parameters(self, input):
            if self.has_uninitialized_params():
                self.factor.materialize(input.shape)
                nn.init.constant_(self.factor, 2)

        def forward(self, input):
            return input * self.factor

    layer = Scale()
    assert layer(torch.ones(3)).tolist() == layer(torch.ones(3)).tolist() == [2, 2, 2]

    class Forgotten(LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.UninitializedParameter()

        def initialize_parameters(self, input):
            pass

    with pytest.raises(RuntimeError, match="Forgotten has not been fully initialized"):
        Forgotten()(torch.ones(3))


WEIGHT = nn.UninitializedParameter()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: WEIGHT + 1, ValueError, "Attempted to use an uninitialized parameter"),
        (lambda: torch.ones(2) @ WEIGHT, ValueError, "Attempted to use an uninitialized parameter"),
        (lambda: nn.init.ones_(WEIGHT), ValueError, "Attempted to use an uninitialized parameter"),
        (lambda: WEIGHT.numel(), ValueError, "Attempted to use an uninitialized parameter"),
        (lambda: nn.UninitializedBuffer().sum(), ValueError, "parameter.UninitializedBuffer"),
        (lambda: WEIGHT.shape, RuntimeError, "Can't access the shape"),
        (
            lambda: nn.LazyConv2d(4, 3)(torch.ones(2, 3)),
            RuntimeError,
            r"3D \(unbatched\) or 4D \(batched\) input to LazyConv2d",
        ),
        (lambda: nn.LazyConv2d(4, 3, groups=2)(torch.ones(3, 5, 5)), ValueError, "in_channels must be divisible"),
        (lambda: nn.LazyConv2d(3, 3, groups=2), ValueError, "out_channels must be divisible"),
        (lambda: nn.LazyBatchNorm2d()(torch.ones(2, 3)), ValueError, "expected 4D input"),
        (lambda: LazyModuleMixin().initialize_parameters(), NotImplementedError, "LazyModuleMixin"),
    ],
)
def test_misuse_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
