"""Sizes, strides and paddings that are too large: each is counted right or refused, in words, and none wraps around."""

from contextlib import nullcontext

import numpy as np
import pytest

import corefw as torch
from corefw.errors import CorefwError

F = torch.nn.functional

REFUSED = {
    "empty": lambda n: torch.empty(n),
    "empty of two": lambda n: torch.empty(n, n),
    "empty_strided": lambda n: torch.empty_strided((2, 2), (n, n)),
    "new_empty": lambda n: torch.ones(1).new_empty(n),
    "Tensor": lambda n: torch.Tensor(n, n),
    "resize_": lambda n: torch.ones(1).resize_(n),
    "zeros": lambda n: torch.zeros(n),
    "full": lambda n: torch.full((n, 4), 1.0),
    "ones of bytes": lambda n: torch.ones(n, 4, dtype=torch.uint8),
    "eye": lambda n: torch.eye(n),
    "randn": lambda n: torch.randn(n),
    "randperm": lambda n: torch.randperm(n),
    "arange": lambda n: torch.arange(n),
    "arange of both signs": lambda n: torch.arange(-n, n),
    "range": lambda n: torch.arange(0.0, float(n)),
    "linspace": lambda n: torch.linspace(0, 1, n),
    "logspace": lambda n: torch.logspace(0, 1, n),
    "tril_indices": lambda n: torch.tril_indices(n, n),
    "one_hot": lambda n: F.one_hot(torch.tensor([1]), n),
    "expand": lambda n: torch.ones(1, 1).expand(n, n),
    "repeat": lambda n: torch.ones(2).repeat(n),
    "repeat of two": lambda n: torch.ones(2).repeat(n, n),
    "tile": lambda n: torch.tile(torch.ones(2), (n, n)),
    "repeat_interleave": lambda n: torch.ones(2).repeat_interleave(n),
    "interpolate": lambda n: F.interpolate(torch.ones(1, 1, 4), size=n),
    "interpolate linearly": lambda n: F.interpolate(torch.ones(1, 1, 4), size=n, mode="linear"),
    "pad": lambda n: F.pad(torch.ones(1, 2, 3), (n, 0)),
    "pad both": lambda n: F.pad(torch.ones(1, 2, 3), (n, n)),
    "pad by the border": lambda n: F.pad(torch.ones(1, 2, 3), (n, 0), mode="replicate"),
    "pad both by the border": lambda n: F.pad(torch.ones(1, 2, 3), (n, n), mode="replicate"),
    "adaptive_avg_pool1d": lambda n: F.adaptive_avg_pool1d(torch.ones(1, 2, 5), n),
    "max_unpool1d": lambda n: F.max_unpool1d(torch.ones(1, 1, 2), torch.zeros(1, 1, 2, dtype=torch.int64), 2, n),
    "padding of conv2d": lambda n: F.conv2d(torch.ones(1, 2, 5, 5), torch.ones(2, 2, 3, 3), padding=n),
    "dilation of conv2d": lambda n: F.conv2d(torch.ones(1, 2, 5, 5), torch.ones(2, 2, 3, 3), dilation=n),
    "window of conv2d": lambda n: F.conv2d(
        torch.ones(1, 2, 5, 5), torch.ones(2, 2, 3, 3), padding=n, dilation=n, stride=n
    ),
    "stride of conv_transpose1d": lambda n: F.conv_transpose1d(torch.ones(1, 2, 5), torch.ones(2, 2, 3), stride=n),
    "kernel of max_pool2d": lambda n: F.max_pool2d(torch.ones(1, 2, 5, 5), n, padding=n // 2),
    "kernel of avg_pool2d": lambda n: F.avg_pool2d(torch.ones(1, 2, 5, 5), n, padding=n // 2, ceil_mode=True),
    "dilation of max_pool2d": lambda n: F.max_pool2d(torch.ones(1, 2, 5, 5), 3, dilation=n),
    "unfold": lambda n: F.unfold(torch.ones(1, 2, 5, 5), 2, padding=n),
    "window of unfold": lambda n: F.unfold(torch.ones(1, 2, 5, 5), 2, padding=n, dilation=n, stride=n),
    "fold": lambda n: F.fold(torch.ones(1, 4, 1), (n, n), 2, stride=n),
}


@pytest.mark.parametrize("size", [2**62, 2**63 - 1, 2**64], ids=str)
@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in REFUSED.items()])
def test_sizes_that_cannot_be_counted_are_refused(call, size):
    with pytest.raises((RuntimeError, TypeError)) as refusal:
        call(size)
    assert isinstance(refusal.value, CorefwError)


@pytest.mark.parametrize(
    "call",
    [
        lambda n: torch.empty(n),
        lambda n: torch.zeros(n),
        lambda n: torch.arange(n),
        lambda n: torch.ones(2).repeat(n),
        lambda n: F.interpolate(torch.ones(1, 1, 4), size=n),
        lambda n: F.pad(torch.ones(1, 2, 3), (n, n)),
    ],
)
def test_the_error_says_which_size_is_too_large(call):
    with pytest.raises(RuntimeError, match=r"Storage size calculation overflowed with sizes=\[.*\d{19}"):
        call(2**62)


def test_positions_of_resampling_fit():
    with pytest.raises(RuntimeError, match=r"Unable to allocate|too big|sizes must be below"):
        F.interpolate(torch.ones(1, 1, 1).expand(1, 1, 2**40), size=4)


def test_windows_that_cannot_be_counted_are_named():
    with pytest.raises(
        RuntimeError, match=r"convolution: windows that reach over \(3, 3\) places .* too large to count"
    ):
        F.conv2d(torch.ones(1, 2, 5, 5), torch.ones(2, 2, 3, 3), padding=2**62, stride=2**62)


def test_elements_that_do_not_exist_are_not_reached():
    x = torch.arange(5)
    for view in (
        lambda n: x.as_strided((n,), (1,)),
        lambda n: x.as_strided((2,), (n,)),
        lambda n: x.as_strided((2,), (1,), n),
        lambda n: x.as_strided((n, n), (1, 1)),
        lambda n: x.as_strided((3, 3), (n, n)),
        lambda n: x.unfold(0, n, 1),
        lambda n: x.narrow(0, 1, n),
    ):
        for size in (2**31, 2**61, 2**62, 2**63 - 1):
            with pytest.raises(RuntimeError):
                view(size)


def test_one_window_of_any_step():
    assert torch.arange(5).unfold(0, 4, 2**62).tolist() == [[0, 1, 2, 3]]
    x = torch.arange(6.0, requires_grad=True)
    (window,) = F.max_pool1d(x.reshape(1, 1, 6), 2, stride=2**63 - 1)[0]
    window.backward()
    assert window.tolist() == [1.0] and x.grad.tolist() == [0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("options", [{"stride": 2**31}, {"stride": 2**31, "padding": 2**31}], ids=str)
def test_gradients_of_convolutions_of_great_steps(options):
    x = torch.ones(1, 2, 5, requires_grad=True)
    F.conv1d(x, torch.ones(2, 2, 3), **options).sum().backward()
    expected = np.zeros((1, 2, 5)) + 2
    expected[..., slice(1, None) if "padding" in options else slice(3, None)] = 0
    if "padding" in options:
        expected[..., :3] = 2
    assert x.grad.tolist() == expected.tolist()


@pytest.mark.oracle
@pytest.mark.parametrize("stride", [2**31 - 1, 2**31, 2**31 + 1, 2**62, 2**63 - 1])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_convolutions_of_great_stride_agree_with_pytorch(n, stride):
    pytorch = pytest.importorskip("torch")

    rng = np.random.default_rng(0)
    image, kernel = rng.normal(size=(2, 3, *(5,) * n)), rng.normal(size=(4, 3, *(3,) * n))
    results = []
    for library in (torch, pytorch):
        x, w = (library.tensor(a, requires_grad=True) for a in (image, kernel))
        result = getattr(library.nn.functional, f"conv{n}d")(x, w, stride=stride)
        result.sum().backward()
        results.append([t.detach().numpy() for t in (result, x.grad, w.grad)])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.oracle
def test_transposed_convolutions_of_any_options_agree_with_pytorch():
    pytorch = pytest.importorskip("torch")

    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(300):
        n = rng.integers(1, 4)
        kernel, stride, dilation, padding = (rng.integers(*r, n).tolist() for r in ((1, 4), (1, 6), (1, 4), (0, 2)))
        left = [int(rng.integers(0, max(s, d))) for s, d in zip(stride, dilation)]
        image = rng.normal(size=(1, 2, *rng.integers(1, 5, n)))
        weight, bias = rng.normal(size=(2, rng.choice([1, 5, 17]), *kernel)), None
        options = {"stride": stride, "padding": padding, "dilation": dilation, "output_padding": left}
        results = []
        for library in (pytorch, torch):
            function = getattr(library.nn.functional, f"conv_transpose{n}d")
            try:
                results.append(function(library.tensor(image), library.tensor(weight), bias, **options).numpy())
            except RuntimeError:
                break  # nothing of the result is left
        else:
            np.testing.assert_allclose(results[1], results[0], rtol=1e-9, atol=1e-9, err_msg=str(options))
            compared += 1
    assert compared > 200


@pytest.mark.parametrize("resize", [F.interpolate, F.adaptive_avg_pool1d, F.adaptive_max_pool1d])
def test_results_without_elements_are_counted_too(resize):
    for backend in ("numpy", None):
        with torch.backend(backend) if backend else nullcontext(), pytest.raises(CorefwError, match="overflowed"):
            resize(torch.ones(0, 1, 2), 2**63 - 1)
