"""Pictures as files: grids of images, and how they are saved."""

import io
import os

import numpy as np
import pytest

import corefw
from corefw.vision.utils import make_grid, save_image
from tests.pictures import Image, pixels


def test_grid_puts_images_in_their_places():
    images = corefw.rand(5, 3, 4, 6)
    grid = make_grid(images, nrow=3, padding=1, pad_value=0.5).numpy()
    assert grid.shape == (3, 2 * 5 + 1, 3 * 7 + 1)
    for index, image in enumerate(images.numpy()):
        top, left = index // 3 * 5 + 1, index % 3 * 7 + 1
        np.testing.assert_array_equal(grid[:, top : top + 4, left : left + 6], image)
        grid[:, top : top + 4, left : left + 6] = 0.5
    assert (grid == 0.5).all()


def test_grid_of_few_and_of_grey_images():
    assert tuple(make_grid(corefw.rand(4, 5)).shape) == (3, 4, 5)
    assert tuple(make_grid([corefw.rand(1, 4, 5)] * 2).shape) == (3, 8, 16)
    for wrong in ("image", [1, 2]):
        with pytest.raises(TypeError, match="tensor or list of tensors expected"):
            make_grid(wrong)


def test_grid_normalises():
    images = corefw.tensor([[0.0, 2.0], [4.0, 8.0]]).view(2, 1, 1, 2)
    whole, each = (make_grid(images, padding=0, normalize=True, scale_each=each).numpy()[0] for each in (False, True))
    np.testing.assert_allclose(whole, [[0, 0.25, 0.5, 1]])
    np.testing.assert_allclose(each, [[0, 1, 0, 1]])
    clipped = make_grid(images, padding=0, normalize=True, value_range=(2, 4)).numpy()[0]
    np.testing.assert_allclose(clipped, [[0, 0, 1, 1]])
    assert images.max() == 8


def test_save_image(tmp_path):
    image = corefw.rand(3, 5, 7)
    path = tmp_path / "picture.png"
    save_image(image, path)
    np.testing.assert_array_equal(pixels(Image.open(path)), (image.numpy() * 255 + 0.5).astype(np.uint8))
    stream = io.BytesIO()
    save_image([image] * 3, stream, format="png", nrow=2)
    assert Image.open(stream).size == (20, 16)


def test_a_picture_that_fails_leaves_the_old_one(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(b"old")
    with pytest.raises((OSError, ValueError, KeyError)):
        save_image(corefw.rand(3, 5, 7), path, format="no such format")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["picture.png"]
    with pytest.raises(ValueError, match="unknown file extension"):
        save_image(corefw.rand(3, 5, 7), tmp_path / "picture.nothing")
