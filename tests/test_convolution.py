"""Convolutions: layers, refused arguments, and agreement with PyTorch's layers."""

import numpy as np
import pytest

import corefw as torch
from corefw import nn
from tests.layers import check_layer, check_repr

F = nn.functional


@pytest.mark.parametrize(
    ("input", "weight", "options", "text"),
    [
        (
            (1, 2, 5, 5),
            (4, 3, 3, 3),
            {},
            r"expected input\[1, 2, 5, 5\] to have 3 channels, but got 2 channels instead",
        ),
        ((1, 3, 2, 2), (4, 3, 3, 3), {}, r"\(2 x 2\). Kernel size: \(3 x 3\). Kernel size can't be greater than"),
        ((3, 2), (4, 3, 3, 3), {}, r"Expected 3D \(unbatched\) or 4D \(batched\) input to conv2d"),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"bias": (3,)}, "expected bias to be 1-dimensional with 4 elements"),
        (
            (1, 3, 5, 5),
            (4, 3, 3, 3),
            {"groups": 3},
            "Given groups=3, expected weight to be divisible by 3 at dimension 0",
        ),
        ((1, 3, 5, 5), (2, 1, 3, 3), {"groups": 3}, "expected weight to be at least 3 at dimension 0"),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"groups": 0}, "non-positive groups is not supported"),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"stride": 0}, "non-positive stride is not supported"),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"padding": -1}, "negative padding is not supported"),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"dilation": 0}, "dilation should be greater than zero"),
        (
            (1, 3, 5, 5),
            (4, 3, 3, 3),
            {"stride": (1, 1, 1)},
            "expected stride to be a single integer value or a list of 2",
        ),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"padding": "same", "stride": 2}, "not supported for strided convolutions"),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"padding": "some"}, "Invalid padding string"),
        ((1, 3, 5, 5), (4, 3, 0, 3), {}, "kernel size should be greater than zero"),
    ],
)
def test_wrong_arguments_of_conv2d(input, weight, options, text):
    if "bias" in options:
        options = {**options, "bias": torch.zeros(options["bias"])}
    with pytest.raises(RuntimeError, match=text):
        F.conv2d(torch.zeros(input), torch.zeros(weight), **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"output_padding": 2}, "output padding must be smaller than either stride or dilation"),
        ({"padding": 3}, "Output size is too small"),
        ({"groups": 2}, "divisible by 2 at dimension 0"),
    ],
)
def test_wrong_arguments_of_conv_transpose2d(options, text):
    with pytest.raises(RuntimeError, match=text):
        F.conv_transpose2d(torch.zeros(1, 3, 2, 2), torch.zeros(3, 4, 3, 3), **options)


def test_dtypes_must_agree():
    with pytest.raises(RuntimeError, match="same dtype"):
        F.conv1d(torch.zeros(1, 1, 3), torch.zeros(1, 1, 1, dtype=torch.float64))
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        F.conv1d("text", torch.zeros(1, 1, 1))


def test_batches_of_no_samples_and_inputs_of_no_channels():
    assert F.conv2d(torch.zeros(0, 3, 5, 5), torch.zeros(4, 3, 3, 3)).shape == (0, 4, 3, 3)
    assert F.conv2d(torch.zeros(1, 0, 5, 5), torch.zeros(4, 0, 3, 3), torch.ones(4)).unique().tolist() == [1]


def test_many_samples_are_taken_in_several_steps():
    """Larger than what is copied at a time: the result is that of sample by sample, as are the gradients."""
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(9, 8, 40, 40)), requires_grad=True)
    w = torch.tensor(rng.normal(size=(4, 8, 3, 3)), requires_grad=True)
    whole = F.conv2d(x, w)
    parts = torch.cat([F.conv2d(x[i : i + 1], w) for i in range(9)])
    np.testing.assert_allclose(whole.detach().numpy(), parts.detach().numpy(), rtol=1e-10)
    both = [torch.autograd.grad((y * y).sum(), (x, w)) for y in (whole, parts)]
    for a, b in zip(*both):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)


# One geometry for every way that a backend may take: (input, weight, options).
GEOMETRIES = [
    ((3, 24, 13, 18), (40, 24, 3, 3), {"padding": 1}),  # many channels, 3 x 3
    ((2, 40, 17, 33), (40, 20, 3, 3), {"padding": 2, "groups": 2}),
    ((2, 16, 32, 32), (65, 16, 3, 3), {"padding": 3}),
    ((5, 136, 21, 20), (137, 136, 3, 3), {"padding": 1}),  # a gradient of weights by all threads together
    ((2, 33, 30, 31), (19, 33, 5, 3), {"stride": (2, 3), "padding": (1, 2), "dilation": (1, 2)}),
    ((9, 64, 4, 4), (33, 64, 3, 3), {"padding": 1, "stride": 2}),  # several samples in one slab
    ((1, 20, 70, 90), (31, 20, 2, 2), {}),  # one sample in several slabs, no padding
    ((5, 34, 3, 4), (46, 34, 3, 4), {"stride": 3}),  # one window
    ((5, 48, 9, 11), (29, 48, 1, 1), {}),
    ((5, 48, 9, 11), (29, 48, 1, 1), {"stride": 2}),
    ((13, 600, 7, 7), (31, 600, 1, 1), {}),  # panels of two samples, in several depths
    ((2, 70, 31, 53), (30, 35, 1, 1), {"groups": 2}),  # one sample in several slabs, to the input's end
    ((2, 20, 15, 14), (33, 20, 3, 3), {"stride": 2, "padding": 1}),  # rows shorter than a vector
    ((3, 1, 28, 28), (32, 1, 3, 3), {}),
    ((2, 3, 37, 41), (64, 3, 7, 7), {"stride": 2, "padding": 3}),
    ((3, 20, 21, 35), (20, 1, 3, 3), {"groups": 20, "padding": 1}),  # depthwise
    ((2, 7, 24, 19), (14, 1, 5, 5), {"groups": 7, "padding": 2, "stride": 2}),
    ((3, 41, 7, 7), (41, 1, 5, 5), {"groups": 41, "padding": 2}),  # several samples in one slab, a part of a vector
    ((2, 17, 90, 70), (17, 1, 3, 3), {"groups": 17, "padding": 1, "stride": 2}),  # several slabs, one channel left
    ((3, 24, 1, 65), (24, 1, 1, 31), {"groups": 24, "padding": (0, 15), "stride": (1, 2)}),
    ((2, 16, 6, 9, 7), (16, 1, 3, 2, 3), {"groups": 16, "padding": 2, "dilation": 2}),
    ((2, 64, 16, 16), (2, 64, 3, 3), {"padding": 1}),
    ((4, 17, 203), (31, 17, 5), {"padding": 4, "dilation": 2}),
    ((2, 5, 6, 7, 20), (18, 5, 3, 3, 3), {"padding": 1, "stride": (1, 2, 1)}),
]


def values_and_gradients(x, w, b, grad, **options):
    x, w, b = (torch.tensor(a, requires_grad=True) for a in (x, w, b))
    y = getattr(F, f"conv{x.ndim - 2}d")(x, w, b, **options)
    gradients = torch.autograd.grad(y, (x, w, b), torch.tensor(np.resize(grad, y.shape)))
    return [t.detach().numpy() for t in (y, *gradients)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("input", "weight", "options"), GEOMETRIES)
def test_all_backends_agree(input, weight, options, dtype):
    rng = np.random.default_rng(2)
    arrays = [rng.normal(size=shape) for shape in (input, weight, weight[:1], (9973,))]
    with torch.backend("numpy"):
        expected = values_and_gradients(*arrays, **options)
    results = values_and_gradients(*(a.astype(dtype) for a in arrays), **options)
    for result, exact in zip(results, expected, strict=True):
        assert result.dtype == dtype
        scale = np.abs(exact).max()
        np.testing.assert_allclose(result / scale, exact / scale, atol=2e-6 if dtype == "float32" else 1e-14)


@pytest.mark.parametrize(("input", "weight", "options"), GEOMETRIES[:21:3])
def test_results_do_not_depend_on_the_number_of_threads(input, weight, options, same_on_threads):
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=shape).astype("float32") for shape in (input, weight, weight[:1], (9973,))]
    same_on_threads(lambda: values_and_gradients(*arrays, **options))


@pytest.mark.parametrize("value", [np.inf, np.nan, 3e38, 1e20, 1e6])
def test_an_outlier_reaches_only_the_windows_that_see_it(value):
    rng = np.random.default_rng(4)
    x, w = (rng.normal(size=shape).astype("float32") for shape in ((2, 20, 16, 16), (18, 20, 3, 3)))
    unseen = np.ones((2, 18, 16, 16), bool)
    unseen[1, :, 4:7, 7:10] = False
    plain = F.conv2d(torch.tensor(x), torch.tensor(w), padding=1).numpy()
    x[1, 7, 5, 8] = value
    with np.errstate(over="ignore"):
        y = F.conv2d(torch.tensor(x), torch.tensor(w), padding=1).numpy()
    np.testing.assert_allclose(y[unseen], plain[unseen], atol=1e-4)
    assert not (np.abs(y[~unseen]) < 1e3).all()


@pytest.mark.parametrize("value", [3e38, 1e20, 1e7])
def test_an_outlier_reaches_only_the_weights_that_meet_it(value):
    """Gradients of weights: an input's outlier stays in its channel, one in a result's corner in the taps inside."""
    rng = np.random.default_rng(5)
    shapes = (2, 20, 16, 16), (18, 20, 3, 3), (2, 18, 16, 16)
    x, w, g = (rng.normal(size=shape).astype("float32") for shape in shapes)

    def weight_gradient(x, g):
        w_ = torch.tensor(w, requires_grad=True)
        F.conv2d(torch.tensor(x), w_, padding=1).backward(torch.tensor(g))
        return w_.grad.numpy()

    plain = weight_gradient(x, g)
    unseen = np.ones((2, 18, 20, 3, 3), bool)
    unseen[0, :, 7], unseen[1, 4, :, 1:, 1:] = False, False
    x_, g_ = x.copy(), g.copy()
    x_[1, 7, 5, 8], g_[0, 4, 0, 0] = value, value
    with np.errstate(over="ignore"):
        for mask, result in zip(unseen, (weight_gradient(x_, g), weight_gradient(x, g_)), strict=True):
            np.testing.assert_allclose(result[mask], plain[mask], atol=1e-3)
            assert not (np.abs(result[~mask]) < 1e3).all()


def test_the_transposed_convolution_is_the_adjoint():
    rng = np.random.default_rng(1)
    x, w = torch.tensor(rng.normal(size=(2, 4, 7))), torch.tensor(rng.normal(size=(6, 2, 3)))
    y = F.conv1d(x, w, stride=2, padding=1, groups=2)
    z = torch.tensor(rng.normal(size=tuple(y.shape)))
    back = F.conv_transpose1d(z, w, stride=2, padding=1, groups=2)
    assert abs(((y * z).sum() - (x * back).sum()).item()) < 1e-10


def test_the_node_has_its_name():
    assert (
        F.conv1d(torch.zeros(1, 1, 3, requires_grad=True), torch.ones(1, 1, 1)).grad_fn.name() == "ConvolutionBackward0"
    )


LAYERS = [
    ("Conv1d", (4, 6, 3), {"padding": 1, "groups": 2}, (2, 4, 7)),
    ("Conv2d", (3, 4, (2, 3)), {"stride": 2, "padding": (1, 0), "dilation": 2, "bias": False}, (2, 3, 9, 8)),
    ("Conv2d", (3, 4, 3), {"padding": "same"}, (3, 6, 5)),
    ("Conv2d", (3, 4, 3), {"padding": 2, "padding_mode": "reflect"}, (2, 3, 6, 5)),
    ("Conv2d", (3, 4, (2, 3)), {"padding": "same", "padding_mode": "circular"}, (2, 3, 6, 5)),
    ("Conv3d", (2, 3, 2), {"padding": 1, "padding_mode": "replicate"}, (1, 2, 3, 4, 3)),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "output_padding": 1, "groups": 2}, (2, 4, 5)),
    ("ConvTranspose2d", (3, 4, 3), {"stride": 2, "padding": 1}, (2, 3, 4, 3)),
    ("ConvTranspose3d", (2, 3, 2), {"dilation": 2, "bias": False}, (1, 2, 2, 3, 2)),
    ("Unfold", (2,), {"padding": 1, "stride": 2}, (2, 3, 5, 4)),
    ("Fold", ((5, 4), 2), {}, (2, 12, 12)),
]


@pytest.mark.parametrize(("name", "arguments", "options", "shape"), LAYERS)
def test_layers_agree_with_pytorch(name, arguments, options, shape):
    check_layer(name, arguments, options, shape)
    check_repr(name, arguments, options)


def test_the_output_size_of_a_transposed_convolution():
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2)
    x = torch.zeros(1, 1, 3, 3)
    assert layer(x, output_size=(8, 7)).shape == (1, 1, 8, 7)
    assert layer(x, output_size=[1, 1, 8, 7]).shape == (1, 1, 8, 7)
    with pytest.raises(ValueError, match=r"requested an output size of \[9, 7\], but valid sizes range"):
        layer(x, output_size=(9, 7))
    with pytest.raises(ValueError, match="output_size must have 2 or 4 elements"):
        layer(x, output_size=(9,))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"groups": 2}, "in_channels must be divisible by groups"),
        ({"groups": 3}, "out_channels must be divisible by groups"),
        ({"groups": 0}, "groups must be a positive integer"),
        ({"padding": "some"}, "Invalid padding string 'some'"),
        ({"padding": "same", "stride": 2}, "not supported for strided"),
        ({"padding_mode": "some"}, "padding_mode must be one of"),
    ],
)
def test_layers_refuse(options, text):
    with pytest.raises(ValueError, match=text):
        nn.Conv2d(3, 4, 3, **options)
    if "groups" in options:
        with pytest.raises(ValueError, match=text):
            nn.ConvTranspose2d(3, 4, 3, **options)


def test_a_transposed_layer_pads_with_zeros_only():
    with pytest.raises(ValueError, match='Only "zeros" padding mode is supported for ConvTranspose2d'):
        nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect")


def test_parameters_are_drawn_from_the_documented_interval():
    torch.manual_seed(0)
    layer = nn.Conv2d(8, 64, 3)
    bound = 1 / np.sqrt(8 * 9)
    for parameter in layer.parameters():
        largest = parameter.abs().max().item()
        assert 0.9 * bound < largest <= bound
    assert nn.Conv2d(3, 4, 3, dtype=torch.float64).weight.dtype == torch.float64


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.unfold(torch.zeros(1, 3, 2, 2), 3), r"calculated shape of the array of sliding blocks as \(0, 0\)"),
        (
            lambda: F.unfold(torch.zeros(1, 3, 5, 5), (3, 3, 3)),
            "It is expected kernel_size equals to 2, but got size 3",
        ),
        (lambda: F.unfold(torch.zeros(1, 3, 5, 5), 3, stride=0), "stride should be greater than zero"),
        (lambda: F.fold(torch.zeros(1, 27, 5), 5, 3), r"3 \* 3 = 9, but got input.size\(2\)=5"),
        (lambda: F.fold(torch.zeros(1, 26, 9), 5, 3), "divisible by the product of kernel_size"),
        (lambda: F.fold(torch.zeros(9), 5, 3), "Expected 2D or 3D"),
    ],
)
def test_wrong_windows(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()
