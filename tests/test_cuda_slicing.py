"""The gradients of basic indexing on the emulated device."""

import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw_cupy import slicing
from tests.emulation import memory
from tests.emulation.device import cuda

KEYS = (
    (0,),
    (-1, ..., 2),
    (slice(1, 3), slice(4, 2)),
    (None, slice(-3, None), None, ..., 1),
    (..., None, slice(2, None)),
    (2, 3, -4),
    (slice(None, None, 2), 1),
    (..., slice(6, 1, -2)),
    (),
)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_gradient_lies_in_zeros_where_the_view_was(key):
    (kernel,) = (k.function for k in slicing.kernels(cuda()) if k.op == "basic_index_backward")
    wanted = np.zeros((5, 6, 7))
    wanted[key] = grad = np.random.default_rng(0).normal(size=wanted[key].shape)
    np.testing.assert_array_equal(memory.host(kernel(memory.device(grad), wanted.shape, key)), wanted)


def test_only_steps_are_left_to_a_copy():
    assert slicing.place((5, 6, 7), (None, 1, ..., slice(2, 4))) == (
        [1, 0, 2],
        [1, 6, 2],
        [0, None, *[slice(None)] * 2],
    )
    assert slicing.place((5,), (slice(None, None, 2),)) is None


def test_a_gradient_of_another_shape_is_refused():
    kernels = {kernel.op: kernel.function for kernel in slicing.kernels(cuda())}
    grad = memory.device(np.zeros(3))
    with pytest.raises(ValueError):
        kernels["basic_index_backward"](grad, (5,), (slice(0, 4),))
    with pytest.raises(ValueError):
        kernels["diagonal_backward"](grad, (5, 5), 0, 0, 1)
