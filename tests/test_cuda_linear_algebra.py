"""Products of matrices of the CuPy backend: layouts that are read in place, and what the conformance rows leave out."""

import ctypes
import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw.dispatch.settings import settings
from corefw_cupy import cublas_lt as lt
from corefw_cupy import linear_algebra as family
from corefw_cupy import products
from corefw_cupy.products import ADJOINT, AS_IT_IS, TRANSPOSED, Factor, plan
from tests.emulation import cublas, cublas_lt, launches, memory
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


def launched(op, *arguments):
    """What a kernel computes, and how many launches it takes."""
    given = [memory.device(a) if isinstance(a, np.ndarray) else a for a in arguments]
    with launches.counted() as found:
        results = KERNELS[op](*given)
    results = results if isinstance(results, tuple) else (results,)
    return [memory.host(result).astype("f8") for result in results], found.total()


EPILOGUES = {
    "linear": lambda x, w, b: [x @ w.T + b],
    "addmm": lambda b, x, w, beta, alpha: [b + alpha * (x @ w)],
    "linear_gradients": lambda g, x: [g.reshape(-1, 4).T @ x.reshape(-1, 3), g.reshape(-1, 4).sum(0)],
}


def epilogue_calls(dtype):
    """Calls that are one product with an epilogue."""
    x, w, b, g = (numbers(*shape, dtype=dtype) for shape in ((2, 5, 3), (4, 3), (4,), (2, 5, 4)))
    yield "linear", (x, w, b)
    yield "linear", (x, w, b)  # the bias lies elsewhere
    yield "linear", (x[0, 0], w, b)
    yield "addmm", (b[None], x[0], w.T, 1, 2)
    yield "linear_gradients", (g, x)
    yield "linear_gradients", (g[0], x[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_biases_and_their_gradients_take_no_launch_where_cublaslt_has_an_algorithm(dtype):
    for op, arguments in epilogue_calls(dtype):
        results, count = launched(op, *arguments)
        expected = EPILOGUES[op](*(a.astype("f8") if isinstance(a, np.ndarray) else a for a in arguments))
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, wanted.astype(dtype).astype("f8"))
        assert count == (2 if dtype is np.float64 else 1), op


@pytest.mark.parametrize("missing", [True, False])
def test_without_cublaslt_and_where_it_fails(monkeypatch, missing, caplog):
    failing = SimpleNamespace(**vars(cublas_lt.library) | {"cublasLtMatmul": lambda *arguments: 15})
    monkeypatch.setattr(type(cuda()), "cublas_lt", lambda self: None if missing else failing)
    monkeypatch.setattr(sys.modules[__name__], "KERNELS", {k.op: k.function for k in family.kernels(cuda())})
    for _ in range(2):
        for op, arguments in epilogue_calls(np.float32):
            results, count = launched(op, *arguments)
            assert count == 2
            for result, wanted in zip(results, EPILOGUES[op](*arguments), strict=True):
                np.testing.assert_array_equal(result, wanted)
    refused = [record.getMessage() for record in caplog.records if "refuses its own algorithm" in record.message]
    assert bool(refused) != missing and len(set(refused)) == len(refused)  # a product is tried once


def test_addends_that_are_no_bias():
    x, w = numbers(5, 3, dtype=np.float32), numbers(3, 4, dtype=np.float32)
    for added in (numbers(5, 4), numbers(5, 1), numbers(1), numbers(8)[::2], numbers(4).astype(np.float64)):
        added = added if added.dtype == np.float64 and added.shape == (4,) else added.astype(np.float32)
        np.testing.assert_array_equal(computed("addmm", added, x, w, 1, 1), (added + x @ w).astype(np.float32))


def test_addresses_are_aligned_as_the_algorithm_was_told():
    inputs, weight, biases = (
        numbers(40, dtype=np.float32),
        numbers(4, 3, dtype=np.float32),
        numbers(8, dtype=np.float32),
    )
    for first in range(4):
        x, b = inputs[first : first + 15].reshape(5, 3), biases[first : first + 4]
        on_device = memory.device(inputs)[first : first + 15].reshape(5, 3), memory.device(biases)[first : first + 4]
        found = memory.host(KERNELS["linear"](on_device[0], memory.device(weight), on_device[1]))
        np.testing.assert_array_equal(found, x @ weight.T + b)


def test_descriptions_are_given_back():
    arrays = [memory.device(numbers(*shape, dtype=np.float32)) for shape in ((3, 2), (4, 3), (4, 2), (4,))]
    alpha, beta = (np.array(number, np.float32) for number in (1, 0))
    addresses = alpha.ctypes.data, beta.ctypes.data, *(array.data.ptr for array in arrays)
    about = (0, 68, 0), (0, 0), (2, 4, 3)
    gc.collect()
    before = len(cublas_lt.objects)
    made = [
        lt.Multiplication(cuda(), cublas_lt.library, epilogue, *about, (2, 3, 2), lt.SINGLE)
        for epilogue in (lt.BIAS, lt.COLUMN_SUMS)
    ]
    for multiply in made * 2:
        assert multiply(*addresses)
    assert len(cublas_lt.objects) == before + 2 * 4
    multiply = lt.Multiplication(cuda(), cublas_lt.library, lt.BIAS, *about, (1, 3, 2), lt.SINGLE)
    with pytest.raises(AssertionError, match="leading dimension of 1 for 2 rows"):
        multiply(*addresses)
    made, multiply = [], None
    gc.collect()
    assert len(cublas_lt.objects) == before


def test_no_description_takes_the_place_of_another():
    """What was given back is not found under an address again, and threads that describe at once get their own."""
    first = lt.Described(cublas_lt.library, "MatmulPreference")
    address = first.pointer
    del first
    gc.collect()
    assert lt.Described(cublas_lt.library, "MatmulPreference").pointer > address
    made, before = [], sys.getswitchinterval()

    def describe():
        for _ in range(200):
            made.append(lt.Described(cublas_lt.library, "MatmulPreference"))
            made[-1].set(lt.WORKSPACE, ctypes.c_uint64(1))

    try:
        sys.setswitchinterval(1e-6)
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(describe) for _ in range(4)]:
                done.result()
    finally:
        sys.setswitchinterval(before)
    assert len({described.pointer for described in made}) == 800


def test_precision_of_float32(monkeypatch):
    kinds = []
    original = cublas.gemmEx
    monkeypatch.setattr(cublas, "gemmEx", lambda *a: kinds.append(a[-2]) or original(*a))
    for allowed in (False, True):
        monkeypatch.setattr(settings, "allow_tf32", allowed)
        computed("mm", numbers(2, 3, dtype=np.float32), numbers(3, 2, dtype=np.float32))
        computed("mm", numbers(2, 3), numbers(3, 2))
    assert kinds == [products.FLOAT, products.DOUBLE, products.TF32, products.DOUBLE]


def test_refused():
    with pytest.raises(ValueError, match="two matrices"):
        computed("mm", numbers(2), numbers(2, 2))
    with pytest.raises(ValueError, match="inner sizes"):
        computed("matmul", numbers(2, 3), numbers(2, 3))
    with pytest.raises(ValueError, match="does not expand"):
        computed("addmm", numbers(2, 2, 2), numbers(2, 2), numbers(2, 2), 1, 1)
    with pytest.raises(RuntimeError, match="cannot be converted to type int"):
        computed("addmm", *(numbers(2, 2, dtype=np.int32),) * 3, 1, 1e10)
