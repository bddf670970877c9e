"""Losses: errors, warnings, deprecated arguments and special values beyond what the rows say."""

from math import fsum, inf, isnan

import numpy as np
import pytest

import corefw as torch
from corefw.dispatch.registry import registry
from tests.parity import import_torch, to_torch

F = torch.nn.functional
LOGITS = [[1.0, 2.0, 0.5], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
@pytest.mark.parametrize(
    ("target", "error", "text"),
    [
        ([0, 3], IndexError, "Target 3 is out of bounds"),
        ([0, -1], IndexError, "Target -1 is out of bounds"),
        ([0, 1, 2], RuntimeError, r"Expected input batch_size \(2\) to match target batch_size \(3\)"),
        ([[0, 1], [0, 1]], RuntimeError, "expected target size"),
    ],
)
def test_wrong_classes(name, target, error, text):
    with pytest.raises(error, match=text):
        getattr(F, name)(torch.tensor(LOGITS), torch.tensor(target))


def test_only_ignored_classes():
    target = torch.tensor([-100, -100])
    logits = torch.tensor(LOGITS).requires_grad_()
    assert isnan(F.cross_entropy(logits, target).item())
    loss = F.cross_entropy(logits, target, reduction="sum")
    loss.backward()
    assert loss.item() == 0
    assert not logits.grad.any()


def test_cross_entropy_of_large_logits():
    """Their difference counts, however little of it a sum beside them would keep."""
    for dtype, size in ((torch.float32, 1e8), (torch.bfloat16, 300.0), (torch.float64, 1e17)):
        logits = torch.tensor([[size, size, 0.0]], dtype=dtype).requires_grad_()
        loss = F.cross_entropy(logits, torch.tensor([0]))
        loss.backward()
        assert loss.item() == pytest.approx(np.log(2), rel=4e-3)
        assert logits.grad.tolist() == [[-0.5, 0.5, 0.0]]


def test_errors_beyond_the_quadratic_part_have_a_bounded_gradient():
    x = torch.tensor([inf, -inf, 0.25]).requires_grad_()
    F.smooth_l1_loss(x, torch.zeros(3), reduction="sum", beta=0.5).backward()
    assert x.grad.tolist() == [1.0, -1.0, 0.5]
    x.grad = None
    F.huber_loss(x, torch.zeros(3), reduction="sum", delta=2.0).backward()
    assert x.grad.tolist() == [2.0, -2.0, 0.25]


def test_an_infinite_variance_has_no_gradient():
    x, variance = torch.tensor([2.0]).requires_grad_(), torch.tensor([inf]).requires_grad_()
    F.gaussian_nll_loss(x, torch.zeros(1), variance).backward()
    assert x.grad.item() == variance.grad.item() == 0


def test_an_ignored_infinite_logit_does_no_harm():
    logits = torch.tensor([[0.0, -inf], [0.0, 0.0]]).requires_grad_()
    F.cross_entropy(logits, torch.tensor([0, -100])).backward()
    assert logits.grad.isfinite().all()


def test_wrong_weights():
    with pytest.raises(RuntimeError, match="weight tensor should be defined either for all 3 classes or no classes"):
        F.nll_loss(torch.tensor(LOGITS), torch.tensor([0, 1]), torch.ones(2))


def smoothed(input, target):
    return F.cross_entropy(input, target, label_smoothing=0.1)


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss, smoothed], ids=lambda f: f.__name__)
def test_dtypes_of_classes(loss):
    logits, target = torch.tensor(LOGITS), torch.tensor([0, 2])
    assert loss(logits, target.to(torch.uint8)).item() == loss(logits, target).item()
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int16, torch.bool, torch.complex64):
        found = dtype.title
        with pytest.raises(RuntimeError, match=f"expected target dtype to be Long or Byte, but got {found}"):
            loss(logits, target.to(dtype))
        with pytest.raises(RuntimeError, match=f"expected target dtype to be Long or Byte, but got {found}"):
            loss(logits[0], target[0].to(dtype))
    with pytest.raises(RuntimeError, match="expected scalar type Long but found Byte"):
        loss(torch.zeros(1, 3, 2, 2), torch.zeros(1, 2, 2, dtype=torch.uint8))


def test_dtypes_of_class_probabilities():
    logits = torch.tensor(LOGITS)
    for dtype in (torch.int64, torch.int32, torch.uint8):
        with pytest.raises(RuntimeError, match="xpected floating point type"):
            F.cross_entropy(logits, torch.zeros_like(logits, dtype=dtype))
    with pytest.raises(RuntimeError, match=r"probabilities have the input's shape \[2, 3\], this target has \[3, 2\]"):
        F.cross_entropy(logits, logits.T)
    assert F.cross_entropy(logits, torch.zeros_like(logits)).item() == 0


@pytest.mark.oracle
@pytest.mark.parametrize("loss", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "uint8", "bool", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(2,), (2, 3), (2, 2, 2)], ids=str)
def test_targets_are_taken_and_refused_as_by_pytorch(loss, dtype, shape):
    oracle = import_torch()

    def attempt(library):
        input = library.zeros((2, 3, 2, 2) if len(shape) == 3 else (2, 3))
        try:
            getattr(library.nn.functional, loss)(input, library.zeros(shape, dtype=getattr(library, dtype)))
        except RuntimeError:
            return False
        return True

    assert attempt(torch) is attempt(oracle)


def test_second_derivative_of_cross_entropy():
    """The Hessian of the loss of one sample is diag(p) - p pᵀ."""
    logits = torch.tensor([0.1, -0.4, 0.7], dtype=torch.float64).requires_grad_()
    (gradient,) = torch.autograd.grad(F.cross_entropy(logits, torch.tensor(1)), logits, create_graph=True)
    rows = [torch.autograd.grad(g, logits, retain_graph=True)[0].numpy() for g in gradient]
    p = np.exp(logits.detach().numpy())
    p /= p.sum()
    np.testing.assert_allclose(rows, np.diag(p) - np.outer(p, p), atol=1e-12)


@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss"])
def test_truths_are_targets(name):
    assert getattr(F, name)(torch.tensor([1.5]), torch.tensor([True])).item() == (0.25 if name == "mse_loss" else 0.125)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_broadcasting_is_warned_of(name):
    with pytest.warns(UserWarning, match="different to the input size"):
        loss = getattr(F, name)(torch.zeros(3, 1), torch.zeros(3), reduction="none")
    assert loss.shape == (3, 3)


def test_logits_beyond_the_range_of_exp():
    x = torch.tensor([-94.0, 94.0, -94.0, 94.0], requires_grad=True)
    y, pos_weight = torch.tensor([0.0, 0.0, 1.0, 1.0]), torch.tensor(0.5)
    loss = F.binary_cross_entropy_with_logits(x, y, reduction="none", pos_weight=pos_weight)
    loss.sum().backward()
    assert loss.tolist() == pytest.approx([0.0, 94.0, 47.0, 0.0], abs=1e-30)
    assert x.grad.tolist() == pytest.approx([0.0, 1.0, -0.5, 0.0], abs=1e-30)


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("binary_cross_entropy", "weight"),
        ("binary_cross_entropy_with_logits", "weight"),
        ("binary_cross_entropy_with_logits", "pos_weight"),
    ],
)
def test_weights_leave_the_dtype(name, weight):
    x = torch.tensor([0.5, 0.25])
    loss = getattr(F, name)(x, x, **{weight: torch.tensor([1.0, 2.0], dtype=torch.float64)})
    assert loss.dtype == torch.float32


@pytest.mark.parametrize("pos_weight", [None, 2.0])
def test_targets_of_double_precision_beside_logits(pos_weight):
    x, y = torch.tensor([0.5, -2.0], requires_grad=True), torch.tensor([0.25, 1.0], dtype=torch.float64)
    pos_weight = pos_weight and torch.tensor(pos_weight)
    loss = F.binary_cross_entropy_with_logits(x, y, pos_weight=pos_weight)
    expected = F.binary_cross_entropy_with_logits(x.double(), y, pos_weight=pos_weight)
    assert loss.dtype == torch.float64 and loss.item() == pytest.approx(expected.item(), rel=1e-6)
    loss.backward()
    assert x.grad.dtype == torch.float32 and x.grad.all()


@pytest.mark.parametrize(
    ("name", "kind"), [("binary_cross_entropy", "size"), ("binary_cross_entropy_with_logits", "size")]
)
def test_sizes_that_must_agree(name, kind):
    with pytest.raises(ValueError, match=kind):
        getattr(F, name)(torch.zeros(3, 1), torch.zeros(3))


@pytest.mark.parametrize(
    ("flags", "reduction"),
    [
        ({"size_average": False}, "sum"),
        ({"reduce": False}, "none"),
        ({"size_average": True}, "mean"),
        ({"reduce": True}, "mean"),
    ],
)
def test_deprecated_flags(flags, reduction):
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.5])
    for name in ("mse_loss", "l1_loss", "binary_cross_entropy_with_logits"):
        with pytest.warns(UserWarning, match=f"reduction='{reduction}'"):
            result = getattr(F, name)(x, y, **flags)
        assert result.tolist() == getattr(F, name)(x, y, reduction=reduction).tolist()


def test_kl_div_warns_of_its_mean():
    with pytest.warns(UserWarning, match="batchmean"):
        F.kl_div(torch.zeros(2, 2), torch.ones(2, 2))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: F.mse_loss(x, x, reduction="avg"), ValueError, "avg is not a valid value for reduction"),
        (lambda x: F.l1_loss(x, x, reduction="avg"), ValueError, "avg is not a valid value for reduction"),
        (lambda x: F.huber_loss(x, x, delta=0), (RuntimeError, ValueError), "non-positive values for delta"),
        (lambda x: F.smooth_l1_loss(x, x, beta=-1), (RuntimeError, ValueError), "negative values for beta"),
        (lambda x: F.binary_cross_entropy(x + 1, x), RuntimeError, "should be between 0 and 1"),
        (lambda x: F.gaussian_nll_loss(x, x, -x), ValueError, "var has negative entry"),
        (lambda x: F.gaussian_nll_loss(x, x, torch.ones(3)), ValueError, "var is of incorrect size"),
        (lambda x: F.triplet_margin_loss(x, x, x, margin=0), ValueError, "margin must be greater than 0"),
        (lambda x: F.cosine_embedding_loss(x, x, x), RuntimeError, "1D target tensor expects 2D input tensors"),
        (lambda x: F.cross_entropy(x, x, label_smoothing=2.0), RuntimeError, "between 0.0 and 1.0"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.tensor([0.5, 1.0]))


def test_weights_per_element():
    x, y, w = torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]), torch.tensor([3.0, 1.0])
    assert F.mse_loss(x, y, weight=w).item() == 7 / 4
    assert F.l1_loss(x, y, weight=w, reduction="sum").item() == 5
    assert F.huber_loss(x, y, weight=w, reduction="none").tolist() == [1.5, 1.5]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
@pytest.mark.parametrize("target", [torch.tensor(3.0, dtype=torch.float64), torch.tensor([3, 4]), torch.tensor([0.5])])
def test_dtypes_that_differ(name, target):
    """A target without dimensions counts as much as another."""
    x = torch.tensor([1.0, 2.5], dtype=torch.float16).requires_grad_()
    theirs, their_target = to_torch(x).requires_grad_(), to_torch(target)
    if name == "huber_loss":  # of the input's dtype, and PyTorch's has no gradient for another target
        their_target = their_target.to(theirs.dtype)
    loss = getattr(F, name)(x, target)
    wanted = getattr(import_torch().nn.functional, name)(theirs, their_target)
    assert str(loss.dtype) == str(wanted.dtype)
    np.testing.assert_allclose(loss.detach().numpy(), wanted.detach().numpy(), rtol=1e-3)
    loss.backward()
    wanted.backward()
    assert x.grad.dtype is torch.float16
    np.testing.assert_allclose(x.grad.numpy(), theirs.grad.numpy(), rtol=2e-3)


def test_weighted_squares_of_any_dtype():
    weight = torch.tensor([3, 1])
    assert F.mse_loss(torch.tensor([3, 1]), torch.tensor([5, 1]), weight=weight).item() == 3
    x, y = torch.tensor([3j, 1]), torch.tensor([5 + 1j, 1])
    assert F.mse_loss(x, y, weight=weight, reduction="sum").item() == 63 - 60j


def test_the_mean_of_nothing_is_nan():
    assert isnan(F.mse_loss(torch.ones(0), torch.ones(0)).item())
    assert isnan(F.cross_entropy(torch.ones(0, 3), torch.ones(0, dtype=torch.int64)).item())


def test_binary_cross_entropy_stays_finite_at_the_ends():
    x = torch.tensor([0.0, 1.0]).requires_grad_()
    loss = F.binary_cross_entropy(x, torch.tensor([1.0, 0.0]), reduction="sum")
    loss.backward()
    assert loss.item() == 200
    assert x.grad.isfinite().all()


def test_large_sums_of_squares_are_exact():
    x = torch.full((300_000,), 0.1)
    assert abs(F.mse_loss(x, torch.zeros(300_000)).item() - 0.01) < 1e-8


@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (0, 0), (1, 0, 1, 1)])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.5, 1.0])
def test_cross_entropy_of_no_probabilities(shape, label_smoothing):
    """Without samples, or without classes, a mean is NaN and a sum 0."""
    empty = torch.zeros(shape)
    assert isnan(torch.nn.functional.cross_entropy(empty, empty, label_smoothing=label_smoothing))
    loss = torch.nn.functional.cross_entropy(empty, empty, label_smoothing=label_smoothing, reduction="sum")
    assert loss.item() == 0


@pytest.mark.parametrize("shape", [(1, 3), (2, 1), (2,)])
def test_gaussian_nll_loss_of_one_variance_for_several(shape):
    """The variance may have size 1 in any one dimension."""
    var = torch.linspace(1, 2, steps=6)[: int(np.prod(shape))].reshape(shape)
    wide = (var.unsqueeze(-1) if var.ndim == 1 else var).expand(2, 3)
    input, target = torch.randn(2, 3), torch.randn(2, 3)
    loss = torch.nn.functional.gaussian_nll_loss(input, target, var)
    torch.testing.assert_close(loss, torch.nn.functional.gaussian_nll_loss(input, target, wide))


@pytest.mark.parametrize("shape", [(1, 1), (1,), (3,), (3, 2)])
def test_gaussian_nll_loss_refuses_other_variances(shape):
    with pytest.raises(ValueError, match="var is of incorrect size"):
        torch.nn.functional.gaussian_nll_loss(torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(shape))


def test_poisson_nll_loss_of_integers():
    """An `eps` that is an integer is a number all the same; the loss keeps its dtype beside integer counts."""
    rate, count = torch.tensor(255, dtype=torch.uint8), torch.tensor(0, dtype=torch.uint8)
    assert torch.nn.functional.poisson_nll_loss(rate, count, log_input=False, eps=1).item() == 255
    half = torch.nn.functional.poisson_nll_loss(torch.ones(2).half(), torch.tensor([2, 3]), full=True)
    assert half.dtype is torch.float16


def test_weights_of_a_narrower_dtype_are_summed_in_the_dtype_of_the_loss():
    weight = torch.tensor(-0.69, dtype=torch.float32)
    loss = torch.nn.functional.l1_loss(torch.zeros(6).double(), torch.ones(6).double(), weight=weight.expand(6))
    assert abs(loss.item() - 1) < 1e-15


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_sums_over_many_samples_are_not_taken_in_turn(backend):
    """The rounding errors of a sum in turn grow with its terms: 5e-14 here, against 1e-16."""
    if backend not in registry.backends:
        pytest.skip(f"no backend {backend}")
    logits = torch.rand(100_000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    target = torch.zeros(100_000, dtype=torch.int64)
    with torch.backend(backend):
        losses = F.cross_entropy(logits, target, reduction="none").tolist()
        total = F.cross_entropy(logits, target, reduction="sum").item()
    assert abs(total - fsum(losses)) <= 4e-16 * fsum(losses)
