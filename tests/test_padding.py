"""Padding: layers and refused arguments."""

import pytest

import corefw as torch
from corefw import nn
from tests.layers import check_layer, check_repr

F = nn.functional


@pytest.mark.parametrize(
    ("shape", "pad", "options", "error", "text"),
    [
        ((2, 3), (1, 1, 1, 1, 1, 1), {}, RuntimeError, "less than or equal to two times the input dimension"),
        ((2, 3), (1,), {}, RuntimeError, "Padding length must be divisible by 2"),
        ((2, 3), (-2, -2), {}, RuntimeError, "resulted in a negative output size"),
        ((2, 3), (1, 1), {"mode": "some"}, NotImplementedError, "Unrecognised padding mode some"),
        ((2, 3), (1, 1), {"mode": "reflect", "value": 1}, RuntimeError, "doesn't take in value argument"),
        ((2, 3), (3, 1), {"mode": "reflect"}, RuntimeError, r"got: padding \(3, 1\) at dimension 1 of input \[2, 3\]"),
        ((2, 3), (4, 1), {"mode": "circular"}, RuntimeError, "wrapping around more than once"),
        ((2, 3), (-2, -2), {"mode": "circular"}, RuntimeError, "resulting in an empty dimension"),
        ((2, 3), (-3, 1), {"mode": "circular"}, RuntimeError, "resulting in an empty dimension"),
        ((2, 3), (-2, -2), {"mode": "replicate"}, RuntimeError, "too small"),
        ((2, 3), (-1, -2), {"mode": "replicate"}, RuntimeError, "too small"),
        ((1, 2, 3), (-1, -3, 0, 0), {"mode": "reflect"}, RuntimeError, "too small"),
        ((1, 2, 3), (-1, -2, 0, -2), {"mode": "reflect"}, RuntimeError, "too small"),
        ((2, 3), (1, 1, 1, 1), {"mode": "replicate"}, NotImplementedError, "size 4 is not supported for 2D"),
        ((3,), (1, 1), {"mode": "reflect"}, NotImplementedError, "size 2 is not supported for 1D"),
    ],
)
def test_wrong_arguments(shape, pad, options, error, text):
    with pytest.raises(error, match=text):
        F.pad(torch.zeros(shape), pad, **options)


def test_negative_amounts_cut():
    x = torch.arange(5)
    assert F.pad(x, (-1, -2)).tolist() == [1, 2]
    assert F.pad(x, (-1, 2), value=9).tolist() == [1, 2, 3, 4, 9, 9]
    assert F.pad(x[None], (-1, 2), mode="circular").tolist() == [[1, 2, 3, 4, 1, 2]]


def test_nothing_goes_round_by_nothing():
    assert F.pad(torch.zeros(2, 0), (0, 0), "circular").shape == (2, 0)
    with pytest.raises(RuntimeError, match="wrapping around more than once"):
        F.pad(torch.zeros(2, 0), (1, 0), "circular")


def test_padding_by_nothing_gives_new_memory():
    x = torch.zeros(1, 3)
    for mode in ("constant", "reflect"):
        padded = F.pad(x, (0, 0), mode=mode)
        padded.add_(1)
    assert not x.any()


@pytest.mark.parametrize("kind", ["ConstantPad", "ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_layers_agree_with_pytorch(kind, n):
    value = (2.5,) if kind == "ConstantPad" else ()
    for padding in (2, (1, 2, 0, 1, 2, 1)[: 2 * n]):
        check_layer(f"{kind}{n}d", (padding, *value), {}, (2, 3, *(5, 4, 3)[:n]))
        check_repr(f"{kind}{n}d", (padding, *value), {})
