"""Losses by margins and samples at grids: layers beside PyTorch's, warnings, errors, gradients at random points."""

import numpy as np
import pytest

import corefw
from corefw import nn
from corefw.nn import functional as F
from tests.layers import check_layer, check_repr
from tests.parity import import_torch

rng = np.random.default_rng(0)
X, Y, Z = (rng.standard_normal((4, 3)).astype("f4") for _ in range(3))
SIGNS, BITS, CLASSES = np.where(X > 0, 1, -1).astype("f4"), (Y > 0).astype("f4"), np.array([0, 2, 1, 1])
LABELS = np.array([[0, -1, 1], [2, 1, -1], [1, 0, 2], [-1, 0, 0]])
WEIGHT = np.array([0.5, 2, 1], "f4")

LOSSES = [
    ("HingeEmbeddingLoss", {"margin": 0.7}, (X, SIGNS)),
    ("MarginRankingLoss", {"margin": 0.2}, (X, Y, SIGNS)),
    ("SoftMarginLoss", {}, (X, SIGNS)),
    ("MultiLabelSoftMarginLoss", {"weight": WEIGHT}, (X, BITS)),
    ("MultiLabelMarginLoss", {}, (X, LABELS)),
    ("MultiMarginLoss", {"p": 2, "margin": 0.6, "weight": WEIGHT}, (X, CLASSES)),
    ("PoissonNLLLoss", {"full": True}, (X, np.floor(abs(Y) * 3))),
    ("GaussianNLLLoss", {"full": True}, (X, Y, abs(Z))),
    ("TripletMarginLoss", {"margin": 0.4, "p": 1.5, "swap": True}, (X, Y, Z)),
    ("TripletMarginWithDistanceLoss", {"margin": 0.4, "swap": True}, (X, Y, Z)),
]


@pytest.mark.parametrize(("name", "options", "arrays"), LOSSES, ids=[name for name, _, _ in LOSSES])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_are_pytorchs(name, options, arrays, reduction):
    found = []
    for module in (corefw, import_torch()):
        given = {k: module.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        layer = getattr(module.nn, name)(**given, reduction=reduction)
        x = module.tensor(arrays[0], requires_grad=True)
        loss = layer(x, *map(module.tensor, arrays[1:]))
        loss.sum().backward()
        found.append((loss.detach().numpy(), x.grad.numpy(), repr(layer), list(layer.state_dict())))
    for ours, theirs in zip(found[0][:2], found[1][:2], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert found[0][2:] == found[1][2:]


@pytest.mark.parametrize("name", ["LocalResponseNorm", "CrossMapLRN2d"])
def test_local_response_norm(name):
    check_repr(name, (3,), {"beta": 0.5})
    if name == "LocalResponseNorm":  # PyTorch's CrossMapLRN2d is a function without a second implementation
        check_layer(name, (3,), {"alpha": 0.5, "k": 2.0}, (2, 5, 4, 4))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
def test_samples_and_gradients_are_pytorchs(mode, padding, corners):
    images = [rng.standard_normal((2, 3, 5, 4))] + ([rng.standard_normal((1, 2, 3, 4, 5))] if mode != "bicubic" else [])
    for image in images:
        n = image.ndim - 2
        theta = np.eye(n, n + 1) * 1.3 + rng.standard_normal((len(image), n, n + 1)) * 0.3
        found = []
        for module in (corefw, import_torch()):
            x, t = (module.tensor(a, requires_grad=True) for a in (image, theta))
            grid = module.nn.functional.affine_grid(t, (len(image), 1, *[4] * n), align_corners=corners)
            y = module.nn.functional.grid_sample(x, grid, mode, padding, corners)
            (y * y).sum().backward()
            found.append((grid.detach().numpy(), y.detach().numpy(), x.grad.numpy()))
            if mode != "nearest":  # where PyTorch gives zeros, and corefw nothing
                found[-1] += (t.grad.numpy(),)
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


IMAGE, GRID = corefw.ones(1, 1, 2, 2), corefw.zeros(1, 1, 1, 2)
VOLUME, POINTS = corefw.ones(1, 1, 2, 2, 2), corefw.zeros(1, 1, 1, 1, 3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.grid_sample(IMAGE, GRID, "linear"), ValueError, "expected mode to be"),
        (lambda: F.grid_sample(IMAGE, GRID, padding_mode="zero"), ValueError, "expected padding_mode to be"),
        (lambda: F.grid_sample(IMAGE[0], GRID), RuntimeError, "4D or 5D"),
        (lambda: F.grid_sample(IMAGE, GRID[..., :1]), RuntimeError, "2 as its last size"),
        (lambda: F.grid_sample(IMAGE[..., :0], GRID), RuntimeError, "non-empty spatial"),
        (lambda: F.grid_sample(VOLUME, POINTS, "bicubic"), NotImplementedError, "4D input"),
        (lambda: F.affine_grid(corefw.eye(3), (1, 1, 2, 2)), RuntimeError, "Nx2x3"),
        (lambda: F.affine_grid(GRID, (1, 2, 2)), NotImplementedError, "4D and 5D"),
        (lambda: F.affine_grid(corefw.ones(1, 2, 3), (1, 1, 0, 2)), RuntimeError, "positive output size"),
        (lambda: F.multi_margin_loss(corefw.ones(2, 3), corefw.tensor([0]), p=1), RuntimeError, "target size"),
        (lambda: F.multi_margin_loss(corefw.ones(1, 3), corefw.tensor([0]), p=3), ValueError, "p == 1 and p == 2"),
        (lambda: F.multilabel_margin_loss(corefw.ones(2, 3), corefw.tensor([0])), RuntimeError, "target size"),
        (lambda: F.pdist(corefw.ones(3)), RuntimeError, "only supports 2D"),
        (lambda: F.pdist(corefw.ones(3, 2), -1), ValueError, "non-negative"),
        (lambda: F.local_response_norm(corefw.ones(2, 2), 1), ValueError, "3D or higher"),
        (lambda: nn.TripletMarginLoss(margin=0), ValueError, "greater than 0"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*align_corners")
def test_misuse_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_align_corners_is_to_be_said():
    with pytest.warns(UserWarning, match="align_corners is False unless given"):
        F.grid_sample(IMAGE, GRID)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_half_types_are_rounded_once(dtype, mode):
    image = corefw.tensor(rng.standard_normal((2, 3, 6, 6)), dtype=getattr(corefw, dtype))
    grid = corefw.tensor(rng.uniform(-1.1, 1.1, (2, 5, 5, 2)), dtype=getattr(corefw, dtype))
    leaves = [t.clone().requires_grad_() for t in (image, grid)]
    wide = [t.float().requires_grad_() for t in (image, grid)]
    found, expected = (F.grid_sample(*given, mode, align_corners=False) for given in (leaves, wide))
    weight = corefw.tensor(rng.standard_normal((2, 3, 5, 5)), dtype=getattr(corefw, dtype))
    assert found.dtype is image.dtype and found.equal(expected.to(image.dtype))
    (found * weight).sum().backward()
    (expected * weight.float()).sum().backward()
    for ours, theirs in zip(leaves, wide):
        assert ours.grad.dtype is image.dtype and ours.grad.equal(theirs.grad.to(image.dtype))
