"""Boxes: areas, overlaps, forms, and which of many overlapping boxes stay."""

import numpy as np
import pytest

import corefw
from corefw.vision import ops


def some_boxes(count, seed=0):
    corners = np.random.default_rng(seed).uniform(0, 10, (count, 2, 2))
    return np.concatenate([corners.min(1), corners.max(1)], axis=1)


def overlap(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, 0) * max(height, 0)
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def test_overlaps_are_those_of_each_pair():
    first, second = some_boxes(7), some_boxes(5, 1)
    want = [[overlap(a, b) for b in second] for a in first]
    np.testing.assert_allclose(ops.box_iou(corefw.tensor(first), corefw.tensor(second)).numpy(), want, rtol=1e-12)


def test_overlap_has_gradients():
    first, second = (corefw.tensor(some_boxes(3, seed), requires_grad=True) for seed in (0, 1))
    assert corefw.autograd.gradcheck(ops.box_iou, (first, second))


def test_area_of_small_integers_does_not_overflow():
    assert ops.box_area(corefw.tensor([[0, 0, 100, 100]], dtype=corefw.int8)).tolist() == [10000]


@pytest.mark.parametrize("middle", ["xyxy", "xywh", "cxcywh"])
@pytest.mark.parametrize("form", ["xyxy", "xywh", "cxcywh"])
def test_forms_lead_back(form, middle):
    boxes = corefw.tensor(some_boxes(4))
    there = ops.box_convert(boxes, form, middle)
    np.testing.assert_allclose(ops.box_convert(there, middle, form).numpy(), boxes.numpy(), atol=1e-12)


@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_suppression_keeps_the_best_of_each_crowd(threshold):
    boxes, scores = some_boxes(40), np.random.default_rng(2).random(40)
    kept = []
    for index in np.argsort(-scores):
        if all(overlap(boxes[index], boxes[other]) <= threshold for other in kept):
            kept.append(int(index))
    assert ops.nms(corefw.tensor(boxes), corefw.tensor(scores), threshold).tolist() == kept
    same = corefw.zeros(40, dtype=corefw.int64)
    assert ops.batched_nms(corefw.tensor(boxes), corefw.tensor(scores), same, threshold).tolist() == kept


def test_suppression_of_nothing():
    assert ops.nms(corefw.zeros(0, 4), corefw.zeros(0), 0.5).shape == (0,)


def test_wrong_shapes_and_forms_are_refused():
    with pytest.raises(RuntimeError, match="nms: boxes"):
        ops.nms(corefw.zeros(3, 4), corefw.zeros(2), 0.5)
    with pytest.raises(ValueError, match="box_area: boxes of shape"):
        ops.box_area(corefw.zeros(3, 5))
    with pytest.raises(ValueError, match="box_convert: a form of"):
        ops.box_convert(corefw.zeros(3, 4), "xyxy", "xxyy")


# -- other overlaps ---------------------------------------------------------------------------------------------------
def pairs(count=7):
    corners = np.sort(np.random.default_rng(3).uniform(0, 9, (2, count, 2, 2)), axis=2)
    return corners.reshape(2, count, 4)


def overlaps(one, other):
    """The overlap of two boxes and its variants, number by number."""
    area = [(b[2] - b[0]) * (b[3] - b[1]) for b in (one, other)]
    shared = np.prod([max(0, min(one[2 + i], other[2 + i]) - max(one[i], other[i])) for i in (0, 1)])
    around = [max(one[2 + i], other[2 + i]) - min(one[i], other[i]) for i in (0, 1)]
    union = area[0] + area[1] - shared
    iou = shared / union
    centres = sum(((one[i] + one[2 + i] - other[i] - other[2 + i]) / 2) ** 2 for i in (0, 1))
    distance = iou - centres / (around[0] ** 2 + around[1] ** 2 + 1e-7)
    angles = [np.arctan((b[2] - b[0]) / (b[3] - b[1])) for b in (one, other)]
    v = 4 / np.pi**2 * (angles[0] - angles[1]) ** 2
    return {
        "box_iou": iou,
        "generalized_box_iou": iou - (np.prod(around) - union) / np.prod(around),
        "distance_box_iou": distance,
        "complete_box_iou": distance - v * v / (1 - iou + v + 1e-7),
    }


@pytest.mark.parametrize("name", ["box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou"])
def test_overlaps_of_pairs(name):
    first, second = pairs()
    found = getattr(ops, name)(corefw.tensor(first), corefw.tensor(second[:4]))
    expected = [[overlaps(one, other)[name] for other in second[:4]] for one in first]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-11, atol=1e-13)
    integers = getattr(ops, name)(corefw.tensor(first).int(), corefw.tensor(second[:4]).int() + 9)
    assert integers.is_floating_point() and integers.shape == (7, 4)


@pytest.mark.parametrize("name", ["generalized_box_iou", "distance_box_iou"])
def test_gradients_of_overlaps(name):
    first, second = (corefw.tensor(boxes[:3], requires_grad=True) for boxes in pairs())
    assert corefw.autograd.gradcheck(getattr(ops, name), (first, second))


@pytest.mark.parametrize("form", ["xywh", "cxcywh"])
def test_boxes_of_other_forms(form):
    first, second = (corefw.tensor(boxes) for boxes in pairs())
    others = [ops.box_convert(boxes, "xyxy", form) for boxes in (first, second)]
    np.testing.assert_allclose(ops.box_iou(*others, fmt=form).numpy(), ops.box_iou(first, second).numpy(), rtol=1e-10)
    np.testing.assert_allclose(ops.box_area(others[0], form).numpy(), ops.box_area(first).numpy(), rtol=1e-10)
    with pytest.raises(ValueError, match="a form of xyxy"):
        ops.box_area(first, "xxyy")


def test_many_boxes_give_way_block_by_block():
    rng = np.random.default_rng(4)
    corners = rng.uniform(0, 60, (400, 2))
    boxes, scores = np.concatenate([corners, corners + rng.uniform(1, 9, (400, 2))], 1), rng.random(400)
    gone, kept = set(), []
    for i in np.argsort(-scores):
        if i in gone:
            continue
        kept.append(i)
        gone |= {j for j in range(400) if overlaps(boxes[i], boxes[j])["box_iou"] > 0.3}
    assert ops.nms(corefw.tensor(boxes), corefw.tensor(scores), 0.3).tolist() == kept


def test_boxes_around_masks():
    masks = corefw.zeros(3, 5, 6)
    masks[0, 1:4, 2:5] = 1
    masks[2, 4, 0] = 7
    assert ops.masks_to_boxes(masks).tolist() == [[2, 1, 4, 3], [0, 0, 0, 0], [0, 4, 0, 4]]
    assert ops.masks_to_boxes(masks > 0).dtype is corefw.float32
    with pytest.raises(ValueError, match=r"masks of shape \(N, H, W\)"):
        ops.masks_to_boxes(masks[0])
