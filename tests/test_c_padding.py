"""Padding in C, at every level that this machine has: rows of all lengths and layouts, cuts, gradients, and arguments
that fit no padding."""

from itertools import product

import numpy as np
import pytest

import corefw as torch
from corefw.testing.cases import padding
from tests.test_half_products import LEVELS

pytest.importorskip("tests.compiled")
from corefw_c import library

MODES = ("constant", *padding.MODES)
CUTS = [(0, 0), (2, 1), (-1, 2), (3, -2), (-2, -1)]


def padded(x, pad, mode):
    """What NumPy makes of an array."""
    return padding.constant_pad_nd(x, pad) if mode == "constant" else padding.indexed_pad(x, pad, mode)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16"])
def test_rows_of_any_length(level, mode, dtype):
    for width in (*range(3, 40), 63, 64, 65, 255, 256, 257, 1030):
        x = np.arange(2 * 3 * width).reshape(2, 3, width).astype(dtype)
        for pad in ((2, 1), (1, 2, 2, 1)):
            with torch.backend(level):
                found = torch.nn.functional.pad(torch.from_numpy(x), pad, mode).numpy()
            np.testing.assert_array_equal(found, padded(x, pad, mode))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", MODES)
def test_many_rows_and_borders_wider_than_a_vector(level, mode):
    x = np.random.default_rng(0).standard_normal((3, 41, 50), np.float32)
    for pad in ((40, 33), (20, 17, 40, 33), (0, 0, 1, 1), (3, 0, 0, 0)):
        for view in (x, x.transpose(1, 0, 2).copy().transpose(1, 0, 2), x[::-1, :, ::-1], np.repeat(x, 2, 2)[..., ::2]):
            with torch.backend(level):
                found = torch.nn.functional.pad(torch.from_numpy(np.ascontiguousarray(view)), pad, mode).numpy()
                strided = torch.tensor(x).transpose(0, 1).contiguous().transpose(0, 1)
                as_it_lies = torch.nn.functional.pad(strided, pad, mode).numpy()
            np.testing.assert_array_equal(found, padded(view, pad, mode))
            np.testing.assert_array_equal(as_it_lies, padded(x, pad, mode))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", padding.MODES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_cuts_and_gradients(level, mode, dtype):
    """Small whole numbers, whose sums are exact in every type, beside the definition of the op."""
    for last, middle in product(CUTS, CUTS):
        pad, shape = (*last, *middle), (2, 4, 5)
        x = torch.arange(40, dtype=torch.float64).reshape(shape)
        with torch.backend("numpy"):
            expected = torch.nn.functional.pad(x, pad, mode)
            grad = (torch.arange(expected.numel(), dtype=torch.float64) % 5).reshape(expected.shape)
            wanted = torch.autograd.grad(torch.nn.functional.pad(x.requires_grad_(), pad, mode), x, grad)[0]
        input = x.detach().to(getattr(torch, dtype)).requires_grad_()
        with torch.backend(level):
            found = torch.nn.functional.pad(input, pad, mode)
            gradient = torch.autograd.grad(found, input, grad.to(input.dtype))[0]
        np.testing.assert_array_equal(found.detach().double().numpy(), expected.numpy(), err_msg=f"{pad}")
        np.testing.assert_array_equal(gradient.double().numpy(), wanted.numpy(), err_msg=f"{pad}")


@pytest.mark.parametrize("level", library.levels())
def test_what_fits_no_padding_is_refused(level):
    lib = library.load(level)
    x, y = np.ones((3, 4), np.float32), np.full((5, 9), 7, np.float32)
    far = 1 << 62
    for mode, before in product((1, 2, 3, 4, -1), ([1, far], [-far, 1], [far, -far])):
        assert lib.indexed_pad(id(x), before, mode, id(y))
    for before in ([3, 2], [1, 5], [-1, 2], [1, -1]):
        assert lib.indexed_pad(id(x), before, 1, id(y)), before  # a mirror further away than the other border
    assert lib.indexed_pad(id(x), [1, 2], 0, id(y))
    assert lib.indexed_pad(id(x), [1, 2], 2, id(y.T))
    assert lib.indexed_pad(id(x[:, :0]), [1, 2], 2, id(y))
    assert lib.indexed_pad(id(x.astype(float)), [1, 2], 2, id(y))
    assert lib.indexed_pad_gradient(id(y), [1, 2], 2, id(x.astype(np.int32)))
    assert lib.indexed_pad_gradient(id(y), [4, 2], 1, id(x))
    assert (y == 7).all() and (x == 1).all()
    fixed = y.copy()
    fixed.flags.writeable = False
    assert lib.indexed_pad(id(x), [1, 2], 2, id(fixed))
    assert not lib.indexed_pad(id(x), [1, 2], 2, id(y)) and (y == 1).all()
