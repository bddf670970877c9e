"""Resampling: layers and refused arguments."""

from itertools import product

import numpy as np
import pytest

import corefw as torch
from corefw import nn
from tests.layers import check_layer, check_repr
from tests.parity import import_torch

F = nn.functional


@pytest.mark.parametrize(
    ("shape", "options", "error", "text"),
    [
        ((1, 3, 5, 5), {}, ValueError, "either size or scale_factor should be defined"),
        ((1, 3, 5, 5), {"size": 2, "scale_factor": 2}, ValueError, "only one of size or scale_factor"),
        ((1, 3, 5, 5), {"size": (2, 2, 2)}, ValueError, "must have the same number of spatial dimensions"),
        ((1, 3, 5, 5), {"scale_factor": (2.0,)}, ValueError, "must have the same number of spatial dimensions"),
        (
            (1, 3, 5, 5),
            {"size": 2, "mode": "linear"},
            NotImplementedError,
            "Got 4D input, but linear mode needs 3D input",
        ),
        ((1, 3, 5, 5), {"size": 2, "mode": "some"}, NotImplementedError, r"\(got some\)"),
        ((3, 5), {"size": 2}, NotImplementedError, "Only 3D, 4D and 5D input Tensors supported"),
        ((1, 3, 5), {"size": 2, "align_corners": True}, ValueError, "align_corners option can only be set"),
        ((1, 3, 5), {"size": 2, "recompute_scale_factor": True}, ValueError, "not meaningful with an explicit size"),
        ((1, 3, 5, 5), {"size": 2, "antialias": True}, ValueError, "Anti-alias option is restricted"),
        ((1, 3, 5, 5), {"size": 0}, RuntimeError, r"should be greater than 0, but got input \(H: 5, W: 5\)"),
        ((2, 0, 5), {"size": 2}, RuntimeError, "Non-empty 3D data tensor expected"),
    ],
)
def test_wrong_arguments(shape, options, error, text):
    with pytest.raises(error, match=text):
        F.interpolate(torch.zeros(shape), **options)


def test_integers_are_picked_but_not_weighed():
    x = torch.tensor([[[1, 2]]], dtype=torch.uint8)
    assert F.interpolate(x, scale_factor=2).tolist() == [[[1, 1, 2, 2]]]
    with pytest.raises(RuntimeError, match="mode linear is not supported for uint8"):
        F.interpolate(x, scale_factor=2, mode="linear")


def test_places_are_computed_in_the_precision_of_the_elements():
    """In single precision 6 * (1 / 1.2) is below 5."""
    oracle = pytest.importorskip("torch")
    for size in (5, 7, 10):
        x = list(range(size))
        for wanted in range(1, 40):
            expected = oracle.nn.functional.interpolate(oracle.tensor([[x]]).float(), wanted)
            assert F.interpolate(torch.tensor([[x]]).float(), wanted).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.channel_shuffle(x, 2),
        lambda x: F.channel_shuffle(x, 0),
        lambda x: F.channel_shuffle(x[0], 1),
    ],
)
def test_channels_that_cannot_be_shuffled(call):
    with pytest.raises(RuntimeError, match=r"groups|> 2 dims"):
        call(torch.zeros(1, 3, 2))


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear"])
def test_scales_that_keep_a_size(mode):
    """Whether elements then stay where they are depends on the mode, and in nearest on the dimensions."""
    oracle = import_torch()
    for n, factor, recompute in product((1, 2, 3), (1.1, (1.3, 2.0), (2.0, 1.3), (1.0, 1.3, 0.7)), (None, True)):
        if n != {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}.get(mode, n):
            continue
        if isinstance(factor, tuple) and len(factor) != n:
            continue
        x = np.random.default_rng(0).random((2, 2, 3, 2, 3)[: n + 2], dtype=np.float32)
        for antialias in (False, True) if mode in ("bilinear", "bicubic") else (False,):
            options = {"mode": mode, "recompute_scale_factor": recompute, "antialias": antialias}
            expected = oracle.nn.functional.interpolate(oracle.from_numpy(x), scale_factor=factor, **options)
            found = torch.nn.functional.interpolate(torch.from_numpy(x), scale_factor=factor, **options)
            np.testing.assert_allclose(found.numpy(), expected.numpy(), 1e-4, 1e-5, err_msg=str((n, factor, options)))


LAYERS = [
    ("Upsample", (), {"scale_factor": 2}, (2, 3, 4, 5)),
    ("Upsample", (), {"scale_factor": (1.5, 2)}, (2, 3, 4, 5)),
    ("Upsample", ((6, 7),), {"mode": "bilinear", "align_corners": True}, (2, 3, 4, 5)),
    ("Upsample", (), {"scale_factor": 1.7, "mode": "bicubic"}, (2, 3, 4, 5)),
    ("Upsample", (7,), {"mode": "linear"}, (2, 3, 4)),
    ("Upsample", (), {"scale_factor": 1.6, "mode": "trilinear", "recompute_scale_factor": True}, (1, 2, 3, 4, 3)),
    ("UpsamplingNearest2d", (7,), {}, (1, 2, 3, 4)),
    ("UpsamplingBilinear2d", (), {"scale_factor": 2}, (1, 2, 3, 4)),
    ("PixelShuffle", (2,), {}, (1, 8, 3, 2)),
    ("PixelUnshuffle", (2,), {}, (1, 2, 4, 6)),
    ("ChannelShuffle", (2,), {}, (1, 4, 3, 2)),
]


@pytest.mark.parametrize(("name", "arguments", "options", "shape"), LAYERS)
def test_layers_agree_with_pytorch(name, arguments, options, shape):
    check_layer(name, arguments, options, shape)
    check_repr(name, arguments, options)
