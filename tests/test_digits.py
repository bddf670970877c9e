"""The digits in the package are scikit-learn's, and their split is a stratified quarter."""

from importlib.resources import files

import numpy as np
import pytest

from corefw.vision.datasets import Digits


@pytest.fixture(scope="module")
def stored():
    with (files("corefw.vision") / "_digits.npz").open("rb") as file, np.load(file) as arrays:
        return dict(arrays)


def test_images_are_those_of_scikit_learn(stored):
    original = pytest.importorskip("sklearn.datasets").load_digits()
    np.testing.assert_array_equal(stored["images"], original.images)
    np.testing.assert_array_equal(stored["targets"], original.target)


def test_a_quarter_of_each_class_is_held_out(stored):
    members = np.bincount(stored["targets"])
    held_out = np.bincount(stored["targets"][stored["held_out"]])
    np.testing.assert_allclose(held_out, members / 4, atol=0.5)


def test_the_two_parts_are_the_whole(stored):
    parts = [Digits(train=True), Digits(train=False)]
    assert [len(part) for part in parts] == [1347, 450]
    images = np.concatenate([part.data.numpy() for part in parts])
    order = np.lexsort(images.reshape(-1, 64).T)
    original_order = np.lexsort(stored["images"].reshape(-1, 64).T)
    np.testing.assert_array_equal(images[order], stored["images"][original_order])


def test_an_item_is_an_image_and_an_int():
    digits = Digits("ignored", train=False)
    image, target = digits[3]
    assert tuple(image.shape) == (8, 8)
    assert type(target) is int
    np.testing.assert_array_equal(image.numpy(), digits.data.numpy()[3])


def test_transforms_are_applied():
    digits = Digits(train=False, transform=lambda image: image.float() / Digits.maximum, target_transform=str)
    image, target = digits[0]
    assert 0 <= image.numpy().min() <= image.numpy().max() <= 1
    assert target in Digits.classes
