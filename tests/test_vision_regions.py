"""vision.ops: regions of features, bent convolutions and pyramids against loops in NumPy."""

import math

import numpy as np
import pytest

import corefw as torch
from corefw.vision import ops
from corefw.vision.ops.feature_pyramid_network import ExtraFPNBlock, LastLevelMaxPool, LastLevelP6P7

RNG = np.random.default_rng(0)


def tensor(*shape, requires_grad=False):
    return torch.tensor(RNG.standard_normal(shape), requires_grad=requires_grad)


def close(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9, atol=1e-11)


def some_rois(count=9, pictures=2, low=-3, high=11):
    corners = np.sort(RNG.uniform(low, high, (count, 2, 2)), axis=1).reshape(count, 4)
    return np.concatenate([RNG.integers(0, pictures, (count, 1)), corners], axis=1)


def element(plane, y, x):
    """Of a plane at a place between its elements, with the edge's beyond the middles of edges and 0 further out."""
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = plane[top, left] * (1 - x + left) + plane[top, right] * (x - left)
    return upper * (1 - y + top) + (plane[bottom, left] * (1 - x + left) + plane[bottom, right] * (x - left)) * (
        y - top
    )


def mean_of_samples(plane, start, length, bins, place, ratio):
    """Of a bin: `start` and `length` of its region, (y, x), and its `place` among `bins`."""
    steps = [length[axis] / bins[axis] for axis in (0, 1)]
    counts = [ratio if ratio > 0 else math.ceil(step) for step in steps]
    at = [
        [start[axis] + (place[axis] + (i + 0.5) / counts[axis]) * steps[axis] for i in range(counts[axis])]
        for axis in (0, 1)
    ]
    samples = [element(plane, y, x) for y in at[0] for x in at[1]]
    return sum(samples) / max(len(samples), 1)


def bins_of(shape):
    return np.ndindex(*shape)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 1, 3])
def test_interpolated_regions(ratio, aligned):
    x, rois, scale, bins = tensor(2, 3, 7, 8), some_rois(), 0.8, (3, 2)
    rois[0, 3:] = rois[0, 1:3]  # a point
    expected = np.zeros((len(rois), 3, *bins))
    for k, (picture, *corners) in enumerate(rois):
        x1, y1, x2, y2 = np.array(corners) * scale - 0.5 * aligned
        length = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1), max(x2 - x1, 1))
        for c, i, j in bins_of(expected.shape[1:]):
            expected[k, c, i, j] = mean_of_samples(x[int(picture), c].numpy(), (y1, x1), length, bins, (i, j), ratio)
    close(ops.roi_align(x, torch.tensor(rois), bins, scale, ratio, aligned), expected)
    lists = [torch.tensor(rois[rois[:, 0] == n, 1:]) for n in (0, 1)]
    order = np.argsort(rois[:, 0], kind="stable")
    close(ops.RoIAlign(bins, scale, ratio, aligned)(x, lists), expected[order])


@pytest.mark.parametrize("ratio", [-1, 2])
def test_interpolated_regions_of_own_channels(ratio):
    x, rois, scale, bins = tensor(2, 12, 6, 7), some_rois(), 0.7, (3, 2)
    expected = np.zeros((len(rois), 2, *bins))
    for k, (picture, *corners) in enumerate(rois):
        x1, y1, x2, y2 = np.array(corners) * scale - 0.5
        for c, i, j in bins_of(expected.shape[1:]):
            plane = x[int(picture), (c * bins[0] + i) * bins[1] + j].numpy()
            expected[k, c, i, j] = mean_of_samples(plane, (y1, x1), (y2 - y1, x2 - x1), bins, (i, j), ratio)
    close(ops.ps_roi_align(x, torch.tensor(rois), bins, scale, ratio), expected)
    close(ops.PSRoIAlign(bins, scale, ratio)(x, torch.tensor(rois)), expected)


def half_up(value):
    return math.floor(abs(value) + 0.5) * (1 if value > 0 else -1)


def whole_bin(start, length, bins, place, end):
    """The first place of a bin along one dimension, and the first behind it, both at most `end`."""
    first, last = math.floor(place * length / bins), math.ceil((place + 1) * length / bins)
    return [min(max(start + edge, 0), end) for edge in (first, last)]


@pytest.mark.parametrize("scale", [1.0, 0.6])
def test_largest_and_mean_elements_of_regions(scale):
    x, rois, bins = tensor(2, 6, 7, 8), some_rois(), (3, 2)
    largest, mean = np.zeros((len(rois), 6, *bins)), np.zeros((len(rois), 1, *bins))
    for k, (picture, *corners) in enumerate(rois):
        x1, y1, x2, y2 = (half_up(corner * scale) for corner in corners)
        for c, i, j in bins_of(largest.shape[1:]):
            rows = whole_bin(y1, max(y2 - y1 + 1, 1), bins[0], i, 7)
            columns = whole_bin(x1, max(x2 - x1 + 1, 1), bins[1], j, 8)
            inside = x[int(picture), c].numpy()[slice(*rows), slice(*columns)]
            largest[k, c, i, j] = inside.max() if inside.size else 0
        for i, j in bins_of(bins):
            rows = whole_bin(y1, max(y2 - y1, 1), bins[0], i, 6)
            columns = whole_bin(x1, max(x2 - x1, 1), bins[1], j, 7)
            inside = x[int(picture), i * 2 + j].numpy()[slice(*rows), slice(*columns)]
            mean[k, 0, i, j] = inside.mean() if inside.size else 0
    close(ops.roi_pool(x, torch.tensor(rois), bins, scale), largest)
    close(ops.RoIPool(bins, scale)(x, torch.tensor(rois)), largest)
    close(ops.ps_roi_pool(x, torch.tensor(rois), bins, scale), mean)
    close(ops.PSRoIPool(bins, scale)(x, torch.tensor(rois)), mean)


@pytest.mark.parametrize("name", ["roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool"])
def test_gradients_of_regions(name):
    x, rois = tensor(2, 4, 4, 5, requires_grad=True), torch.tensor(some_rois(4, high=7))
    assert torch.autograd.gradcheck(lambda x: getattr(ops, name)(x, rois, 2), (x,))


@pytest.mark.parametrize("name", ["roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool"])
def test_no_regions_and_wrong_ones(name):
    pool, x = getattr(ops, name), tensor(2, 4, 5, 6, requires_grad=True)
    channels = 1 if name.startswith("ps") else 4
    for none in (torch.zeros(0, 5), [], [torch.zeros(0, 4), torch.zeros(0, 4)]):
        found = pool(x, none, 2)
        assert found.shape == (0, channels, 2, 2)
        found.sum().backward()
    assert not x.grad.any()
    for wrong in (torch.zeros(3, 4), [torch.zeros(3, 5), torch.zeros(0, 4)]):
        with pytest.raises(ValueError, match=f"{name}: boxes of shape"):
            pool(x, wrong, 2)
    with pytest.raises(ValueError, match="pictures 0 to 1 expected"):
        pool(x, torch.tensor([[2.0, 0, 0, 1, 1]]), 2)
    with pytest.raises(ValueError, match="input"):
        pool(x[0], torch.zeros(1, 5), 2)


def test_channels_that_bins_do_not_divide():
    for pool in (ops.ps_roi_align, ops.ps_roi_pool):
        with pytest.raises(ValueError, match="must be a multiple"):
            pool(tensor(1, 5, 4, 4), torch.zeros(1, 5), 2)


def test_many_regions_are_computed_in_parts(monkeypatch):
    x, rois = tensor(2, 3, 7, 8), torch.tensor(some_rois(20))
    whole = ops.roi_align(x, rois, 2)
    monkeypatch.setattr("corefw.vision.ops._regions._ELEMENTS", 1)
    close(ops.roi_align(x, rois, 2), whole.numpy())


# -- bent windows -----------------------------------------------------------------------------------------------------
def zero_outside(plane, y, x):
    """Of a plane surrounded by zeros at a place between its elements."""
    padded = np.pad(plane, 1)
    return element(padded, y + 1, x + 1) if -1 < y < plane.shape[0] and -1 < x < plane.shape[1] else 0.0


@pytest.mark.parametrize(
    "stride, padding, dilation, groups, offset_groups, window",
    [((1, 1), (1, 1), (1, 1), 1, 1, (3, 3)), ((2, 1), (0, 2), (1, 2), 2, 2, (3, 2)), ((1, 2), 1, 2, 1, 4, (1, 3))],
)
@pytest.mark.parametrize("masked", [True, False])
def test_bent_windows(stride, padding, dilation, groups, offset_groups, window, masked):
    elements = window[0] * window[1]
    (sy, sx), (py, px), (dy, dx) = (v if isinstance(v, tuple) else (v, v) for v in (stride, padding, dilation))
    height = (5 + 2 * py - dy * (window[0] - 1) - 1) // sy + 1
    width = (6 + 2 * px - dx * (window[1] - 1) - 1) // sx + 1
    x, weight, bias = tensor(2, 4, 5, 6), tensor(2, 4 // groups, *window), tensor(2)
    offset = 2 * tensor(2, 2 * offset_groups * elements, height, width)
    mask = tensor(2, offset_groups * elements, height, width) if masked else None
    expected = np.zeros((2, 2, height, width))
    for n, o, i, j in np.ndindex(*expected.shape):
        total = bias[o].item()
        for c in range(4 // groups):
            channel = c + o * groups // 2 * (4 // groups)
            for ky, kx in np.ndindex(*window):
                place = channel // (4 // offset_groups) * elements + ky * window[1] + kx
                y = i * sy - py + ky * dy + offset[n, 2 * place, i, j].item()
                across = j * sx - px + kx * dx + offset[n, 2 * place + 1, i, j].item()
                one = zero_outside(x[n, channel].numpy(), y, across)
                total += weight[o, c, ky, kx].item() * one * (mask[n, place, i, j].item() if masked else 1)
        expected[n, o, i, j] = total
    close(ops.deform_conv2d(x, offset, weight, bias, stride, padding, dilation, mask), expected)


def test_gradients_of_bent_windows():
    values = (tensor(1, 2, 4, 4), tensor(1, 8, 3, 3), tensor(3, 2, 2, 2), tensor(3), tensor(1, 4, 3, 3))
    values = [value.requires_grad_() for value in values]
    assert torch.autograd.gradcheck(lambda x, o, w, b, m: ops.deform_conv2d(x, o, w, b, mask=m), values)


def test_a_window_that_is_not_bent_is_a_convolution():
    layer, x = ops.DeformConv2d(4, 6, 3, stride=2, padding=1, groups=2).double(), tensor(2, 4, 7, 7)
    expected = torch.nn.functional.conv2d(x, layer.weight, layer.bias, 2, 1, groups=2)
    close(layer(x, torch.zeros(2, 18, 4, 4, dtype=torch.float64)), expected.detach().numpy())
    assert repr(layer) == "DeformConv2d(4, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), groups=2)"


@pytest.mark.parametrize(
    "offset, mask, text",
    [
        ((1, 17, 4, 4), None, "multiple of 2"),
        ((1, 18, 3, 4), None, "offset of batch and size"),
        ((1, 18, 4, 4), (1, 8, 4, 4), "a mask of shape"),
    ],
)
def test_wrong_bends_are_refused(offset, mask, text):
    with pytest.raises(ValueError, match=text):
        ops.DeformConv2d(2, 2, 3)(torch.zeros(1, 2, 6, 6), torch.zeros(offset), mask and torch.zeros(mask))


# -- losses and dropout -----------------------------------------------------------------------------------------------
def sorted_boxes(count=7):
    return torch.tensor(np.sort(RNG.uniform(0, 9, (count, 2, 2)), axis=1).reshape(count, 4), requires_grad=True)


@pytest.mark.parametrize("kind", ["generalized", "distance", "complete"])
def test_losses_of_boxes_are_their_overlaps(kind):
    first, second = sorted_boxes(), sorted_boxes()
    loss, pairs = getattr(ops, f"{kind}_box_iou_loss"), getattr(ops, f"{kind}_box_iou")(first, second)
    expected = 1 - pairs.detach().numpy().diagonal()
    np.testing.assert_allclose(loss(first, second).detach().numpy(), expected, atol=1e-6)
    assert loss(first, second, "sum").item() == pytest.approx(expected.sum(), abs=1e-5)
    assert loss(first, second, "mean").item() == pytest.approx(expected.mean(), abs=1e-6)
    assert loss(first[:0], second[:0], "mean").item() == 0
    if kind != "complete":  # where no gradient flows through a weight
        assert torch.autograd.gradcheck(loss, (first, second))
    with pytest.raises(ValueError, match="Invalid Value for arg 'reduction'"):
        loss(first, second, "most")


@pytest.mark.parametrize("alpha, gamma", [(0.25, 2), (0.7, 0.5), (-1, 1)])
def test_focal_loss(alpha, gamma):
    logits, target = RNG.standard_normal(8), np.arange(8) % 2
    right = 1 / (1 + np.exp(-logits * (2 * target - 1)))
    weight = 1 if alpha < 0 else np.where(target, alpha, 1 - alpha)
    expected = -weight * (1 - right) ** gamma * np.log(right)
    x = torch.tensor(logits, requires_grad=True)
    close(ops.sigmoid_focal_loss(x, torch.tensor(target).double(), alpha, gamma), expected)
    assert ops.sigmoid_focal_loss(x, torch.tensor(target).double(), alpha, gamma, "mean").item() == pytest.approx(
        expected.mean()
    )
    with pytest.raises(ValueError, match="Invalid alpha value"):
        ops.sigmoid_focal_loss(x, x, alpha=1.5)


@pytest.mark.parametrize("drop, module, sizes", [("2d", "2d", (24, 30)), ("3d", "3d", (9, 12, 10))])
@pytest.mark.parametrize("side", [2, 3])
def test_blocks_are_dropped_whole(drop, module, sizes, side):
    torch.manual_seed(0)
    x = torch.ones(4, 5, *sizes, dtype=torch.float64)
    found = getattr(ops, f"drop_block{drop}")(x, 0.2, side)
    gone = found.numpy() == 0
    assert 0.1 < gone.mean() < 0.25 and found.mean().item() == pytest.approx(1)
    covered = np.zeros_like(gone)  # by blocks that are gone whole
    for first in np.ndindex(*(size - side + 1 for size in sizes)):
        block = (..., *(slice(i, i + side) for i in first))
        covered[block] |= gone[block].all(tuple(range(2, 2 + len(sizes))), keepdims=True)
    assert (covered == gone).all()
    layer = getattr(ops, f"DropBlock{module}")(0.2, side, inplace=True)
    assert layer(x) is x and (x == 0).any()
    assert layer.eval()(x) is x and repr(layer) == f"DropBlock{module}(p=0.2, block_size={side}, inplace=True)"


def test_wrong_blocks_are_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        ops.drop_block2d(torch.ones(1, 1, 2, 2), 1.5, 1)
    with pytest.raises(ValueError, match="should be 5 dimensional"):
        ops.drop_block3d(torch.ones(1, 1, 2, 2), 0.5, 1)


# -- pyramids ---------------------------------------------------------------------------------------------------------
def test_a_pyramid_is_its_parts():
    net = ops.FeaturePyramidNetwork([3, 5], 4, LastLevelMaxPool()).double()
    low, high = tensor(1, 3, 6, 8), tensor(1, 5, 3, 4)
    found = net({"low": low, "high": high})
    inner, layer = net.inner_blocks, net.layer_blocks
    top = inner[1](high)
    below = inner[0](low) + top.repeat_interleave(2, 2).repeat_interleave(2, 3)
    assert list(found) == ["low", "high", "pool"]
    close(found["high"], layer[1](top).detach().numpy())
    close(found["low"], layer[0](below).detach().numpy())
    close(found["pool"], found["high"][:, :, ::2, ::2].detach().numpy())
    old = {name.replace(".0.weight", ".weight").replace(".0.bias", ".bias"): v for name, v in net.state_dict().items()}
    again = ops.FeaturePyramidNetwork([3, 5], 4).double()
    again.load_state_dict(old)
    close(again({"low": low, "high": high})["low"], found["low"].detach().numpy())


@pytest.mark.parametrize("channels, of", [(4, "results"), (5, "features")])
def test_two_levels_more(channels, of):
    extra = LastLevelP6P7(channels, 4).double()
    results, features = [tensor(1, 4, 6, 6)], [tensor(1, 5, 6, 6)]
    found, names = extra(results, features, ["a"])
    sixth = extra.p6((results if of == "results" else features)[0])
    assert names == ["a", "p6", "p7"]
    close(found[1], sixth.detach().numpy())
    close(found[2], extra.p7(sixth.relu()).detach().numpy())


def test_wrong_pyramids_are_refused():
    with pytest.raises(ValueError, match="in_channels=0"):
        ops.FeaturePyramidNetwork([0, 2], 2)
    with pytest.raises(TypeError, match="ExtraFPNBlock"):
        ops.FeaturePyramidNetwork([2], 2, torch.nn.ReLU())
    with pytest.raises(NotImplementedError, match="define one"):
        ExtraFPNBlock()([], [], [])


def test_regions_come_from_the_level_of_their_size():
    features = {"a": tensor(2, 3, 32, 32), "b": tensor(2, 3, 16, 16), "c": tensor(2, 3, 8, 8)}
    boxes = [torch.tensor([[0.0, 0, 10, 12], [0, 0, 120, 110]]), torch.tensor([[5.0, 5, 70, 70], [1, 1, 500, 500]])]
    pool = ops.MultiScaleRoIAlign(["a", "b", "c"], 2, 2, canonical_scale=56, canonical_level=3)
    found = pool(features, boxes, [(128, 120), (100, 128)])
    assert pool.scales == [0.25, 0.125, 0.0625]
    for place, (level, picture, box) in enumerate([("a", 0, 0), ("c", 0, 1), ("b", 1, 0), ("c", 1, 1)]):
        lists = [boxes[n][box : box + 1] if n == picture else boxes[n][:0] for n in (0, 1)]
        one = ops.roi_align(features[level], lists, 2, features[level].shape[-1] / 128, 2)
        close(found[place : place + 1], one.numpy())
    assert repr(pool) == "MultiScaleRoIAlign(featmap_names=['a', 'b', 'c'], output_size=(2, 2), sampling_ratio=2)"
    single = ops.MultiScaleRoIAlign(["b"], (2, 2), 2)(features, boxes, [(128, 128)] * 2)
    close(single, ops.roi_align(features["b"], boxes, 2, 0.125, 2).numpy())
