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
