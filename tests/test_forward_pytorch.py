"""Tangents beside PyTorch's."""

import numpy as np
import pytest

import corefw
from corefw.autograd import forward_ad as fwAD

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")]
A, B = (np.random.default_rng(seed).uniform(0.5, 2.0, (4, 4)) for seed in (1, 2))

#: functions of two (4, 4) matrices
FUNCTIONS = {
    "arithmetic": lambda t, x, y: x * y / (x + y) - x**2 + x.pow(y),
    "broadcasting": lambda t, x, y: x[:, :1] * y + x[0],
    "products": lambda t, x, y: x @ y + t.einsum("ij,kj->ik", x, y) + t.addmm(x, x, y, alpha=2),
    "reductions": lambda t, x, y: t.stack([x.sum(), x.mean(), x.prod(), x.std(), x.norm()]) + y.logsumexp((0, 1)),
    "along": lambda t, x, y: x.cumsum(0) + y.cumprod(1) + x.max(1).values + x.median(0)[0] + y.sort(0)[0],
    "joins": lambda t, x, y: t.cat([x, y.flip(0)], 1).roll(1, 1)[:, ::3],
    "gathered": lambda t, x, y: x.gather(1, t.tensor([[0], [1], [3], [3]])) + y[[0, 2, 2, 1]],
    "scattered": lambda t, x, y: x.index_add(0, t.tensor([1]), y[:1]).scatter(1, t.tensor([[0], [1]]), y),
    "choices": lambda t, x, y: t.where(x > y, x, y.sin()).masked_fill(x > 1.5, 2.0).clamp(0.2, 1.4),
    "softmax": lambda t, x, y: x.softmax(0) * y.log_softmax(1) + t.nn.functional.gelu(x),
    "linear algebra": lambda t, x, y: t.linalg.inv(x @ x.mT + y.diag().diag()) @ t.linalg.solve(x, y) * t.linalg.det(x),
    "symmetric": lambda t, x, y: t.linalg.cholesky(x @ x.mT + x.diag().diag()) + t.linalg.eigvalsh(y @ y.mT),
    "fourier": lambda t, x, y: t.fft.fft(x).abs() + t.fft.irfft(t.fft.rfft(y), 4),
    "convolution": lambda t, x, y: t.nn.functional.conv1d(x[None], y[:, :2, None].expand(4, 2, 3), x[0], groups=2),
    "pools": lambda t, x, y: t.nn.functional.max_pool1d(x, 2) + t.nn.functional.avg_pool1d(y, 2),
    "layer norm": lambda t, x, y: t.nn.functional.layer_norm(x, (4,), y[0], y[1]),
    "batch norm": lambda t, x, y: t.nn.functional.batch_norm(x, None, None, y[0], training=True),
    "losses": lambda t, x, y: t.nn.functional.cross_entropy(x, t.tensor([0, 1, 2, 0])) + t.dist(x, y),
    "attention": lambda t, x, y: t.nn.functional.scaled_dot_product_attention(x[None], y[None], x[None]),
    "in place": lambda t, x, y: t.zeros(4, 4, dtype=t.float64).copy_(x).mul_(y).add_(x).t_(),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_as_pytorch(name):
    torch = pytest.importorskip("torch")
    theirs = torch.autograd.forward_ad

    rng = np.random.default_rng(3)
    tangents = [rng.standard_normal((4, 4)) for _ in range(2)]
    results = []
    for library, ad in ((corefw, fwAD), (torch, theirs)):
        with ad.dual_level():
            duals = [ad.make_dual(library.tensor(a), library.tensor(t)) for a, t in zip((A, B), tangents)]
            results.append([np.asarray(part) for part in ad.unpack_dual(FUNCTIONS[name](library, *duals))])
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-10)
