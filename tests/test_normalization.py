"""Normalisation, dropout and distance layers: parity with PyTorch, running statistics, refused inputs."""

import numpy as np
import pytest

import corefw as torch
from tests.parity import compare_layers, import_torch

F = torch.nn.functional
RNG = np.random.default_rng(0)

LAYERS = [
    ("LayerNorm", (5,), {}, (2, 3, 5)),
    ("LayerNorm", ((3, 5),), {"bias": False}, (2, 3, 5)),
    ("LayerNorm", (5,), {"elementwise_affine": False, "eps": 0.1}, (2, 5)),
    ("RMSNorm", (5,), {}, (2, 3, 5)),
    ("RMSNorm", ((3, 5),), {"eps": 0.1, "elementwise_affine": False}, (2, 3, 5)),
    ("GroupNorm", (2, 4), {}, (3, 4, 5)),
    ("GroupNorm", (4, 4), {"affine": False}, (3, 4, 5, 2)),
    ("GroupNorm", (1, 4), {"bias": False}, (3, 4, 5)),
    ("BatchNorm1d", (3,), {}, (4, 3)),
    ("BatchNorm1d", (3,), {"momentum": None}, (4, 3, 5)),
    ("BatchNorm2d", (3,), {"affine": False}, (2, 3, 4, 5)),
    ("BatchNorm2d", (3,), {"track_running_stats": False}, (2, 3, 4, 5)),
    ("BatchNorm3d", (3,), {"momentum": 0.5, "bias": False}, (2, 3, 2, 2, 2)),
    ("InstanceNorm1d", (3,), {}, (2, 3, 5)),
    ("InstanceNorm1d", (3,), {"affine": True, "track_running_stats": True}, (3, 5)),
    ("InstanceNorm2d", (3,), {"affine": True, "track_running_stats": True}, (2, 3, 4, 5)),
    ("InstanceNorm3d", (3,), {"affine": True, "bias": False}, (2, 3, 2, 2, 2)),
]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("name", "arguments", "options", "shape"), LAYERS)
def test_parity(name, arguments, options, shape, training):
    ours = getattr(torch.nn, name)(*arguments, **options)
    theirs = getattr(import_torch().nn, name)(*arguments, **options)
    for parameter in theirs.parameters():
        parameter.data.normal_()
    for _ in range(3):  # the running statistics move
        compare_layers(ours, theirs, RNG.normal(2, 3, shape).astype(np.float32))
    ours.zero_grad()
    theirs.zero_grad()
    compare_layers(ours.train(training), theirs.train(training), RNG.normal(size=shape).astype(np.float32))


def test_running_statistics_move_in_place():
    mean, variance = torch.zeros(1), torch.ones(1)
    memory, version = mean.data_ptr(), mean._version
    F.batch_norm(torch.tensor([[1.0], [3.0]]), mean, variance, training=True, momentum=0.5)
    assert (mean.item(), variance.item()) == (1.0, 1.5)
    assert mean.data_ptr() == memory and mean._version > version


def test_cumulative_average_and_reset():
    layer = torch.nn.BatchNorm1d(1, momentum=None)
    layer(torch.tensor([[0.0], [2.0]]))
    layer(torch.tensor([[2.0], [4.0]]))
    assert layer.num_batches_tracked.item() == 2
    assert layer.running_mean.item() == 2
    layer.reset_running_stats()
    assert (layer.num_batches_tracked.item(), layer.running_mean.item(), layer.running_var.item()) == (0, 0, 1)


@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 2), (2, 3, 0)])
@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize(("dtype", "eps"), [(torch.float32, 1e-5), (torch.float16, 1e-12)])
def test_a_batch_without_elements_leaves_the_running_statistics(shape, momentum, dtype, eps):
    layer = torch.nn.BatchNorm1d(3, eps, momentum, dtype=dtype)
    x = torch.zeros(shape, dtype=dtype, requires_grad=True)
    output = layer(x)
    output.sum().backward()
    assert output.shape == shape and x.grad.shape == shape
    assert layer.running_mean.tolist() == [0, 0, 0] and layer.running_var.tolist() == [1, 1, 1]
    assert layer.num_batches_tracked.item() == 1
    assert layer.weight.grad.tolist() == layer.bias.grad.tolist() == [0, 0, 0]


def test_states_without_a_counter_load():
    layer = torch.nn.BatchNorm1d(2)
    state = {name: value + 3 for name, value in layer.state_dict().items() if name != "num_batches_tracked"}
    assert not layer.load_state_dict(state).missing_keys
    assert (layer.running_mean.tolist(), layer.num_batches_tracked.item()) == ([3, 3], 0)


def test_large_means_lose_little():
    """The variance is that of the differences from the mean, not a difference of squares."""
    x = torch.randn(64, 3, 32) + 1000
    for result in (F.batch_norm(x, None, None, training=True), F.instance_norm(x), F.layer_norm(x, (32,))):
        assert abs(result.double().var().item() - 1) < 0.02


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_train(dtype):
    x = torch.randn(4, 6).to(dtype).requires_grad_()
    for layer in (
        torch.nn.LayerNorm(6, dtype=dtype),
        torch.nn.BatchNorm1d(6, dtype=dtype),
        torch.nn.RMSNorm(6, dtype=dtype),
    ):
        layer(x).square().sum().backward()
        assert layer.weight.grad.dtype is dtype
        assert x.grad.dtype is dtype and bool(x.grad.isfinite().all())


@pytest.mark.parametrize("layer", [torch.nn.LayerNorm(6), torch.nn.BatchNorm1d(6), torch.nn.GroupNorm(2, 6)])
def test_half_types_beside_wide_parameters(layer):
    x = torch.randn(4, 6).bfloat16().requires_grad_()
    result = layer(x)
    result.square().sum().backward()
    assert result.dtype is x.grad.dtype is torch.bfloat16
    assert layer.weight.grad.dtype is torch.float32
    assert layer.eval()(x).dtype is torch.bfloat16


def test_derivatives_of_third_order():
    x = torch.randn(2, 4, dtype=torch.float64).requires_grad_()

    def second(normalize):
        (first,) = torch.autograd.grad(normalize(x).sin().sum(), x, create_graph=True)
        (again,) = torch.autograd.grad(first.square().sum(), x, create_graph=True)
        return torch.autograd.grad(again.square().sum(), x)[0]

    def plain(x):
        centred = x - x.mean(1, keepdim=True)
        return centred * (centred.square().mean(1, keepdim=True) + 1e-5).rsqrt()

    torch.testing.assert_close(second(lambda x: F.layer_norm(x, (4,))), second(plain), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda x: F.layer_norm(x, (4,)),
            RuntimeError,
            r"Given normalized_shape=\[4\], expected input with shape \[\*, 4\]",
        ),
        (lambda x: F.layer_norm(x, ()), RuntimeError, "at least 1-dimensional"),
        (lambda x: F.layer_norm(x, (3,), torch.ones(2)), RuntimeError, "Expected weight to be of same shape"),
        (lambda x: F.layer_norm(x, (3,), None, torch.ones(2)), RuntimeError, "Expected bias to be of same shape"),
        (lambda x: F.rms_norm(x, (4,)), RuntimeError, r"Given normalized_shape=\[4\]"),
        (lambda x: F.group_norm(x, 2), RuntimeError, "divisible by num_groups"),
        (lambda x: F.group_norm(x[:0], 2), RuntimeError, "divisible by num_groups"),
        (lambda x: F.group_norm(x[0], 1), RuntimeError, "Expected at least 2 dimensions"),
        (lambda x: F.group_norm(x, 3, torch.ones(2)), RuntimeError, "vector of size equal to the number of channels"),
        (lambda x: F.group_norm(x[:1], 3), ValueError, "Expected more than 1 value per channel when training"),
        (
            lambda x: F.batch_norm(x[:1], None, None, training=True),
            ValueError,
            r"got input size torch.Size\(\[1, 3\]\)",
        ),
        (lambda x: F.batch_norm(x, None, None), RuntimeError, "running_mean must be defined in evaluation mode"),
        (
            lambda x: F.batch_norm(x, torch.ones(2), torch.ones(3)),
            RuntimeError,
            "running_mean should contain 3 elements not 2",
        ),
        (
            lambda x: F.batch_norm(x, torch.ones(3), torch.ones(3), torch.ones(2)),
            RuntimeError,
            "should contain 3 elements",
        ),
        (lambda x: F.instance_norm(x), ValueError, "Expected more than 1 spatial element when training"),
        (lambda x: F.instance_norm(x, use_input_stats=False), RuntimeError, "use_input_stats is false"),
        (lambda x: torch.nn.BatchNorm1d(3)(x[0]), ValueError, r"expected 2D or 3D input \(got 1D input\)"),
        (lambda x: torch.nn.BatchNorm2d(3)(x), ValueError, r"expected 4D input \(got 2D input\)"),
        (lambda x: torch.nn.BatchNorm3d(3)(x), ValueError, r"expected 5D input \(got 2D input\)"),
        (lambda x: torch.nn.InstanceNorm2d(3)(x), ValueError, r"expected 3D or 4D input \(got 2D input\)"),
        (lambda x: torch.nn.InstanceNorm1d(3, affine=True)(x), ValueError, "size at dim=0 to match num_features"),
        (lambda x: torch.nn.GroupNorm(2, 3), ValueError, r"num_channels \(3\) must be divisible by num_groups \(2\)"),
        (lambda x: torch.nn.Dropout(1.5), ValueError, "between 0 and 1, but got 1.5"),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.ones(2, 3))


def test_a_needless_number_of_channels_is_warned_of():
    with pytest.warns(UserWarning, match="does not match num_features"):
        torch.nn.InstanceNorm1d(3)(torch.ones(2, 2, 2))


@pytest.mark.parametrize(
    "name", ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]
)
def test_dropout(name):
    ndim = int(name[-2]) + 2 if name.endswith("d") else 3
    layer = getattr(torch.nn, name)(0.5)
    assert repr(layer) == f"{name}(p=0.5, inplace=False)"
    x = torch.randn(8, 16, *(4,) * (ndim - 2))
    result = layer(x)
    changed = (result != x).reshape(8, 16, -1)
    assert changed.any()
    if name != "Dropout" and "Alpha" not in name:
        zero = (result == 0).reshape(8, 16, -1)
        assert bool((zero.all(-1) | ~zero.any(-1)).all())
    assert layer.eval()(x) is x


def test_dropout_gradient():
    x, grad = torch.randn(300, requires_grad=True), torch.randn(300, requires_grad=True)
    result = torch.nn.functional.dropout(x, 0.3)
    kept = (result != 0).to(torch.float32) / 0.7
    (first,) = torch.autograd.grad(result, x, grad, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), grad)
    assert torch.allclose(first, grad * kept) and torch.allclose(second, kept)


def test_dropout_in_place():
    x = torch.ones(100)
    assert torch.nn.Dropout(0.5, inplace=True)(x) is x
    assert set(x.tolist()) == {0.0, 2.0}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("CosineSimilarity", {}),
        ("CosineSimilarity", {"dim": 0}),
        ("PairwiseDistance", {}),
        ("PairwiseDistance", {"p": 1.0, "keepdim": True}),
    ],
)
def test_distances(name, options):
    inputs = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    compare_layers(getattr(torch.nn, name)(**options), getattr(import_torch().nn, name)(**options), *inputs)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_group_norm_wants_whole_groups_of_no_samples_too(backend):
    if backend not in {b.name for b in torch.backends() if b.usable}:
        pytest.skip(f"the backend {backend} is not installed")
    with torch.backend(backend), pytest.raises(RuntimeError, match="divisible by num_groups"):
        torch.nn.functional.group_norm(torch.zeros(0, 1), 2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_given_statistics_of_half_types_are_used_in_single_precision(dtype):
    """The scale, 30,000 / sqrt(1e-5), is beyond the range of float16, and the result is not."""
    zero, weight = torch.zeros(1, dtype=getattr(torch, dtype)), torch.full((1,), 3e4, dtype=getattr(torch, dtype))
    result = F.batch_norm(torch.zeros(1, 1, dtype=zero.dtype), zero, zero, weight)
    assert result.dtype is zero.dtype and result.tolist() == [[0]]
