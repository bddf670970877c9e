"""vision.ops: parts of models against what they are made of, computed by hand."""

import numpy as np
import pytest

import corefw as torch
from corefw import nn
from corefw.vision import ops

RNG = np.random.default_rng(0)


def tensor(*shape):
    return torch.tensor(RNG.standard_normal(shape))


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def names(module):
    return {name: tuple(value.shape) for name, value in module.state_dict().items()}


@pytest.mark.parametrize(
    "kernel_size, dilation, padding",
    [(3, 1, (1, 1)), (5, 2, (4, 4)), ((3, 5), 1, (1, 2)), (3, (1, 2), (1, 2)), (4, 1, (1, 1))],
)
def test_a_convolution_keeps_the_size_of_odd_windows(kernel_size, dilation, padding):
    part = ops.Conv2dNormActivation(4, 6, kernel_size, dilation=dilation).double().eval()
    convolution, norm, activation = part
    assert convolution.padding == padding and convolution.bias is None and part.out_channels == 6
    assert (type(norm), type(activation), activation.inplace) == (nn.BatchNorm2d, nn.ReLU, True)
    x = tensor(2, 4, 9, 9)
    expected = nn.functional.conv2d(x, convolution.weight, None, 1, padding, convolution.dilation)
    close(part(x), nn.functional.relu(expected / (1 + norm.eps) ** 0.5))


def test_what_is_none_is_left_out():
    part = ops.Conv2dNormActivation(4, 6, 1, 2, padding=3, groups=2, norm_layer=None, activation_layer=None)
    assert len(part) == 1 and part[0].bias is not None
    assert (part[0].padding, part[0].stride, part[0].groups) == ((3, 3), (2, 2), 2)
    assert ops.Conv2dNormActivation(4, 6, bias=True)[0].bias is not None
    assert type(ops.Conv2dNormActivation(4, 6, activation_layer=nn.Tanh, inplace=None)[2]) is nn.Tanh


def test_a_convolution_in_three_dimensions():
    part = ops.Conv3dNormActivation(2, 3)
    assert [type(layer) for layer in part] == [nn.Conv3d, nn.BatchNorm3d, nn.ReLU]
    assert part(torch.randn(2, 2, 5, 5, 5)).shape == (2, 3, 5, 5, 5)


def test_squeeze_and_excitation():
    part, x = ops.SqueezeExcitation(4, 2, nn.SiLU, nn.Hardsigmoid).double(), tensor(2, 4, 5, 5)
    assert names(part) == {"fc1.weight": (2, 4, 1, 1), "fc1.bias": (2,), "fc2.weight": (4, 2, 1, 1), "fc2.bias": (4,)}
    squeezed = nn.functional.linear(x.mean((2, 3)), part.fc1.weight[:, :, 0, 0], part.fc1.bias)
    scale = nn.functional.linear(nn.functional.silu(squeezed), part.fc2.weight[:, :, 0, 0], part.fc2.bias)
    close(part(x), x * nn.functional.hardsigmoid(scale)[:, :, None, None])


def test_a_perceptron():
    part = ops.MLP(4, [8, 6, 3], norm_layer=nn.LayerNorm, activation_layer=nn.GELU, dropout=0.5, bias=False)
    layer = [nn.Linear, nn.LayerNorm, nn.GELU, nn.Dropout]
    assert [type(one) for one in part] == [*layer, *layer, nn.Linear, nn.Dropout]
    assert [(one.in_features, one.out_features) for one in part if type(one) is nn.Linear] == [(4, 8), (8, 6), (6, 3)]
    assert all(one.p == 0.5 and not one.inplace for one in part if type(one) is nn.Dropout) and part[0].bias is None
    assert all(one.inplace for one in ops.MLP(4, [8, 2], inplace=True) if type(one) in (nn.ReLU, nn.Dropout))


def test_frozen_norms_are_those_that_were_trained():
    norm, frozen = nn.BatchNorm2d(3).double(), ops.FrozenBatchNorm2d(3).double()
    for value in norm.state_dict().values():
        if value.is_floating_point():
            value.copy_(torch.tensor(RNG.uniform(0.5, 1.5, 3)))
    assert str(frozen.load_state_dict(norm.state_dict())) == "<All keys matched successfully>"
    x = tensor(2, 3, 4, 4)
    close(frozen(x), norm.eval()(x).detach())
    assert list(frozen.parameters()) == [] and "num_batches_tracked" not in frozen.state_dict()


@pytest.mark.parametrize("mode, branches", [("row", 4000), ("batch", 1)])
def test_branches_are_left_out_with_their_mean_kept(mode, branches):
    torch.manual_seed(0)
    means = []
    for _ in range(4000 // branches):
        kept = ops.stochastic_depth(torch.ones(4000 if mode == "row" else 3, 2, 2), 0.25, mode)
        assert (kept == kept[:, :1, :1]).all() and (mode == "row" or (kept == kept[0]).all())
        assert set(kept.unique().tolist()) <= {0.0, torch.tensor(4 / 3).item()}
        means.append(kept.mean().item())
    assert abs(np.mean(means) - 1) < 0.04  # 4 deviations of 4,000 draws: 4 * sqrt(1 / 3 / 4000)


def test_branches_stay_where_nothing_is_to_be_left_out():
    x = tensor(3, 2)
    assert ops.stochastic_depth(x, 0.5, "row", training=False) is x and ops.stochastic_depth(x, 0.0, "batch") is x
    assert ops.StochasticDepth(0.5, "row").eval()(x) is x
    assert not ops.StochasticDepth(1.0, "batch")(x).any()


@pytest.mark.parametrize(
    "p, mode, text", [(1.5, "row", "probability"), (float("nan"), "row", "probability"), (0.5, "x", "mode")]
)
def test_wrong_branches_are_refused(p, mode, text):
    with pytest.raises(ValueError, match=text):
        ops.stochastic_depth(torch.ones(2, 2), p, mode)


def test_dimensions_in_another_order():
    x = tensor(2, 3, 4)
    close(ops.Permute([2, 0, 1])(x), x.permute(2, 0, 1))
