"""Pictures for tests: the same one as Pillow's and as a tensor."""

import hashlib
import struct

import numpy as np
import pytest

import corefw

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: no images")


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


def pixels(image):
    """An image's numbers, (H, W) or (H, W, C) of Pillow's and (..., H, W) of tensors, as (..., H, W)."""
    if isinstance(image, corefw.Tensor):
        return image.numpy()
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def random_pixels(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def both(channels=3, height=6, width=9):
    """The same image as Pillow's and as a tensor."""
    array = random_pixels(height, width, channels)
    image = Image.fromarray(array[:, :, 0] if channels == 1 else array)
    return image, corefw.from_numpy(array.transpose(2, 0, 1).copy())


def idx(array):
    """The bytes of an idx file, as MNIST's."""
    codes = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}
    header = struct.pack(f">HBB{array.ndim}I", 0, codes[array.dtype.str[1:]], array.ndim, *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()
