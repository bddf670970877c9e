"""Products of matrices of the CuPy backend: layouts that are read in place, and what the conformance rows leave out."""

import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw.dispatch.registry import registry
from corefw_cupy import linear_algebra as family
from corefw_cupy.linear_algebra import ADJOINT, AS_IT_IS, TRANSPOSED, Factor, plan
from tests.emulation import cublas, memory
from tests.emulation.device import cuda

KERNELS = {kernel.op: kernel.function for kernel in family.kernels(cuda())}
PLAIN = (AS_IT_IS, AS_IT_IS)


def numbers(*shape, dtype=np.float64):
    return np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(dtype)


def described(array):
    return array.shape, array.strides


def planned(left, right, forms=PLAIN):
    return plan(described(left), described(right), left.itemsize, forms)


def computed(op, *arguments):
    return memory.host(KERNELS[op](*(memory.device(a) if isinstance(a, np.ndarray) else a for a in arguments)))


def test_transposed_factors_are_read_in_place():
    left, right = numbers(5, 3).T, numbers(7, 5).T
    how = planned(left, right)
    assert (how.left, how.right) == (Factor(TRANSPOSED, 3, 0), Factor(TRANSPOSED, 5, 0))
    assert planned(left.T, right.T, (TRANSPOSED, TRANSPOSED)).left == how.left


def test_rows_apart_are_read_in_place_and_elements_apart_are_not():
    whole = numbers(6, 10)
    assert planned(whole[::2, :4], numbers(4, 2)).left == Factor(AS_IT_IS, 20, 0)
    assert planned(whole[:, ::2], numbers(5, 2)).left is None
    assert planned(whole[::-1], numbers(10, 2)).left is None


def test_a_batch_times_one_matrix_is_one_product():
    how = planned(numbers(4, 3, 5), numbers(5, 2))
    assert (how.batch, how.rows) == (1, 12)
    assert planned(numbers(4, 1, 5)[::2], numbers(5, 2)).left == Factor(AS_IT_IS, 10, 0)
    assert planned(numbers(3, 4, 5).swapaxes(0, 1), numbers(5, 2)).batch == 4  # rows of no common distance


def test_batches_broadcast_without_copies_where_one_step_walks_them():
    how = planned(numbers(2, 3, 4, 5), numbers(5, 6)[None, None])
    assert how.right.jump == 0
    assert planned(numbers(2, 1, 4, 5), numbers(3, 5, 6)).left is None
    np.testing.assert_array_equal(
        computed("matmul", numbers(2, 1, 4, 5), numbers(3, 5, 6)), numbers(2, 1, 4, 5) @ numbers(3, 5, 6)
    )


def test_adjoint_factors_are_conjugated_by_blas_if_it_transposes_them():
    matrix = numbers(3, 4, dtype=np.complex128)
    assert planned(matrix, matrix, (AS_IT_IS, ADJOINT)).right == Factor(ADJOINT, 4, 0)
    assert planned(matrix, matrix.T.copy().T, (AS_IT_IS, ADJOINT)).right is None


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16])
def test_products_of_several_tiles(dtype):
    left, right = numbers(2, 70, 40, dtype=dtype), numbers(40, 130, dtype=dtype)
    expected = left.astype(np.int64) @ right.astype(np.int64)
    np.testing.assert_array_equal(computed("matmul", left, right), expected.astype(dtype))


def test_the_addend_of_empty_products_is_scaled():
    added = numbers(3, 2)
    np.testing.assert_array_equal(computed("addmm", added, numbers(3, 0), numbers(0, 2), 2, 3), 2 * added)
    np.testing.assert_array_equal(computed("addmm", added * np.nan, numbers(3, 0), numbers(0, 2), 0, 3), 0 * added)


def test_precision_of_float32(monkeypatch):
    kinds = []
    original = cublas.gemmEx
    monkeypatch.setattr(cublas, "gemmEx", lambda *a: kinds.append(a[-2]) or original(*a))
    for allowed in (False, True):
        monkeypatch.setattr(registry, "allow_tf32", allowed)
        computed("mm", numbers(2, 3, dtype=np.float32), numbers(3, 2, dtype=np.float32))
        computed("mm", numbers(2, 3), numbers(3, 2))
    assert kinds == [family.SINGLE, family.DOUBLE, family.TF32, family.DOUBLE]


def test_refused():
    with pytest.raises(ValueError, match="two matrices"):
        computed("mm", numbers(2), numbers(2, 2))
    with pytest.raises(ValueError, match="inner sizes"):
        computed("matmul", numbers(2, 3), numbers(2, 3))
    with pytest.raises(ValueError, match="does not expand"):
        computed("addmm", numbers(2, 2, 2), numbers(2, 2), numbers(2, 2), 1, 1)
    with pytest.raises(RuntimeError, match="cannot be converted to type int"):
        computed("addmm", *(numbers(2, 2, dtype=np.int32),) * 3, 1, 1e10)
