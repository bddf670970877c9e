"""How products of matrices are planned and computed.

cuBLAS multiplies floating and complex numbers, a function of our own (matmul.cu) integers; cublasLt adds a bias, or
sums a factor's columns, in the same launch, and multiplies while a graph is captured, which CuPy's cuBLAS refuses to.
Factors are read as they lie in memory, transposed or not; few need a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np

from corefw import dtypes, shapes
from corefw.dispatch.settings import settings
from corefw.errors import CaptureError
from corefw_cupy.cublas_lt import BIAS, COLUMN_SUMS, PLAIN, SINGLE, Multiplication
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import COMPLEX, FLOATS, INTEGERS
from corefw_cupy.planned import Planned
from corefw_cupy.pointwise_function import Pointwise
from corefw_cupy.reducing import Reduction

TILE = 64  # rows and columns of a result that a block computes, as in matmul.cu
BLOCK = 256
#: (cudaDataType_t, cublasComputeType_t, the latter with TensorFloat-32, dtype of the factors alpha and beta)
FLOAT, DOUBLE, TF32 = 68, 70, 77
CUBLAS = {
    dtypes.float16.numpy: (2, FLOAT, FLOAT, "f4"),
    dtypes.bfloat16.numpy: (14, FLOAT, FLOAT, "f4"),
    dtypes.float32.numpy: (0, FLOAT, TF32, "f4"),
    dtypes.float64.numpy: (1, DOUBLE, DOUBLE, "f8"),
    dtypes.complex64.numpy: (4, FLOAT, TF32, "c8"),
    dtypes.complex128.numpy: (5, DOUBLE, DOUBLE, "c16"),
}
DEFAULT_ALGORITHM = -1
#: cudaDataType_t of the factors alpha and beta, by their dtype
SCALES = {"f4": 0, "f8": 1, "c8": 4, "c16": 5}
EPILOGUES = frozenset(FLOATS)  # the dtypes of products with an epilogue that cublasLt is asked for
AS_IT_IS, TRANSPOSED, ADJOINT = range(3)  # cublasOperation_t
#: of both factors
BOTH_AS_THEY_ARE, FIRST_TRANSPOSED, SECOND_TRANSPOSED = (0, 0), (TRANSPOSED, 0), (0, TRANSPOSED)


def _types(dtype: np.dtype) -> tuple[int, int, str]:
    """cudaDataType_t and cublasComputeType_t of products, and the dtype of their factors alpha and beta."""
    element, compute, fast, scale = CUBLAS[dtype]
    return element, fast if settings.allow_tf32 else compute, scale


@dataclass(frozen=True)
class Factor:
    """How a batch of matrices lies in memory.

    Attributes: ``form`` in which BLAS takes it to read the transposed matrix: as it is if rows lie without gaps,
    transposed or adjoint if columns do; ``step`` elements from one row (or column) to the next; ``jump`` elements from
    one matrix to the next.
    """

    form: int
    step: int
    jump: int


@dataclass(frozen=True, eq=False)
class Plan:
    """How a product is computed; a factor that must be copied first is None."""

    shape: tuple[int, ...]  # of the result
    batch_shape: tuple[int, ...]
    batch: int
    rows: int
    columns: int
    inner: int
    left: Factor | None
    right: Factor | None


def _jump(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """The distance between neighbours when several dimensions are walked as one, or None if it varies."""
    jump, count = 0, 1
    for size, step in zip(reversed(sizes), reversed(strides)):
        if size != 1:
            if count == 1:
                jump = step
            elif step != jump * count:
                return None
            count *= size
    return jump if jump >= 0 else None


def _factor(sizes, steps, jump: int | None, conjugated: bool) -> Factor | None:
    """How BLAS can read matrices of these sizes, with these distances between rows and between columns."""
    (rows, columns), (row_step, column_step) = sizes, steps
    if jump is None:
        return None
    row_major = (columns == 1 or column_step == 1) and (rows == 1 or row_step >= max(columns, 1))
    if row_major and not conjugated:  # BLAS conjugates only what it transposes
        return Factor(AS_IT_IS, row_step if rows > 1 else max(columns, 1), jump)
    if (rows == 1 or row_step == 1) and (columns == 1 or column_step >= max(rows, 1)):
        return Factor(ADJOINT if conjugated else TRANSPOSED, column_step if columns > 1 else max(rows, 1), jump)
    return None


def plan(left: tuple, right: tuple, itemsize: int, forms: tuple[int, int]) -> Plan:
    """The plan for factors given as (shape, strides in bytes), which enter as they are, transposed, or adjoint."""
    (left_shape, left_strides), (right_shape, right_strides) = left, right
    if not left_shape or not right_shape:
        raise ValueError("numbers have no matrix product")
    kept_rows, kept_columns = left_shape[-2:-1], right_shape[-1:] if len(right_shape) > 1 else ()
    if len(left_shape) == 1:
        left_shape, left_strides = (1, *left_shape), (0, *left_strides)
    if len(right_shape) == 1:
        right_shape, right_strides = (*right_shape, 1), (*right_strides, 0)
    sides = []
    for shape, strides, form in ((left_shape, left_strides, forms[0]), (right_shape, right_strides, forms[1])):
        sizes, steps = shape[-2:], tuple(step // itemsize for step in strides[-2:])
        sides.append((sizes[::-1], steps[::-1]) if form else (sizes, steps))
    ((rows, inner), left_steps), ((other_inner, columns), right_steps) = sides
    if inner != other_inner:
        raise ValueError(f"inner sizes {inner} and {other_inner}")
    if forms[0]:
        kept_rows = (rows,)
    if forms[1]:
        kept_columns = (columns,)
    batch_shape = shapes.broadcast(left_shape[:-2], right_shape[:-2])
    batch = prod(batch_shape)

    def jump(shape, strides):
        lead = len(batch_shape) - len(shape) + 2
        steps = [0 if size == 1 else step // itemsize for size, step in zip(shape[:-2], strides)]
        return _jump(batch_shape, (0,) * lead + tuple(steps))

    result = *batch_shape, *kept_rows, *kept_columns
    if not prod(result) or not inner:  # nothing is read
        whole = Factor(AS_IT_IS, 1, 0), Factor(AS_IT_IS, max(columns, 1), 0)
        return Plan(result, batch_shape, 1, prod(result) // max(columns, 1), columns, inner, *whole)
    first = _factor((rows, inner), left_steps, jump(left_shape, left_strides), forms[0] == ADJOINT)
    second = _factor((inner, columns), right_steps, jump(right_shape, right_strides), forms[1] == ADJOINT)
    if first and second and batch > 1 and second.jump == 0 and first.form == AS_IT_IS:
        step = first.jump if rows == 1 else first.step
        if step >= inner and first.jump == rows * step:  # the rows of one large product
            first, rows, batch = Factor(AS_IT_IS, step, 0), rows * batch, 1
    return Plan(result, batch_shape, batch, rows, columns, inner, first, second)


def _expands(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array broadcasts to `target`."""
    return len(shape) <= len(target) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(target)))


def _is_bias(how: Plan, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether each row of a product is added the same dense vector."""
    columns = how.columns
    return shape[-1:] == (columns,) and prod(shape) == columns and (columns == 1 or strides[-1] == itemsize)


@lru_cache(maxsize=1 << 10)
def _number(value, dtype: str) -> tuple[np.ndarray, int]:
    """A number in host memory, and its address."""
    array = np.array(value, dtype)
    return array, array.ctypes.data


class Prepared:
    """A product of matrices of certain layouts, planned, and what computes it.

    Attributes: ``plan``; ``multiply(left, right, alpha, beta, out)``, None if a factor must be copied first;
    ``with_bias`` what adds an addend in the same launch, by its (shape, strides, dtype); ``with_sums`` what sums the
    columns of `left` too. Both are called with (left, right, alpha, out, vector), say whether they did it, and are None
    where that cannot be.
    """

    def __init__(self, products: Products, plan: Plan, dtype: np.dtype, multiply: Callable | None):
        self.products, self.plan, self.dtype, self.multiply = products, plan, dtype, multiply
        self.with_bias = Planned(self._with_bias)

    def _with_bias(self, shape, strides, dtype) -> Callable | None:
        how = self.plan
        if not _expands(shape, how.shape):
            raise ValueError(f"{shape} does not expand to {how.shape}")
        if dtype != self.dtype or not _is_bias(how, shape, strides, dtype.itemsize):
            return None
        return self.products.epilogue(BIAS, how, dtype)

    @cached_property
    def with_sums(self) -> Callable | None:
        return self.products.epilogue(COLUMN_SUMS, self.plan, self.dtype)


class Products:
    """Products of batches of matrices, on one kind of device."""

    def __init__(self, cuda: Cuda):
        self.cuda, self.empty, self.copying, self.capturing = cuda, cuda.empty, cuda.copying, cuda.capturing
        self.plans = Planned(self._prepare)
        self.multiplications = Planned(lambda *about: Multiplication(cuda, self.cublas_lt, *about))
        self.total = Reduction(cuda, "reduction/reduction.cu", "Total", FLOATS)
        self.of_integers = cuda.function("core/matmul.cu", "integer_matmul", T=INTEGERS)
        formula = ("conjugated_factor", ("T",), 0, "int64", "T", "conj(x)", {"T": COMPLEX})
        self.conjugated = Pointwise(cuda, *formula, computed=False)

    @cached_property
    def cublas_lt(self) -> Any:
        """The library, found when first needed, or None."""
        return self.cuda.cublas_lt()

    def __call__(self, left, right, forms=BOTH_AS_THEY_ARE, added=None, alpha=1, beta=1, out=None):
        """``alpha * left @ right + beta * added``, in `out` (without gaps) if it is given; an absent or unscaled
        (beta = 0) addend is not read."""
        found, left, right = self._prepared(left, right, forms)
        if out is None:
            out = self.empty(found.plan.shape, found.dtype)
        if added is None:
            found.multiply(left, right, alpha, 0, out)
            return out
        with_bias = found.with_bias[added.shape, added.strides, added.dtype]
        if not (beta == 1 and with_bias and with_bias(left, right, alpha, out, added)):
            if beta:
                self.copying.copy(out, added)
            found.multiply(left, right, alpha, beta, out)
        return out

    def with_sums(self, left, right):
        """The product of the transposed matrix `left` with `right`, and the sums of the columns of `left`."""
        found, left, right = self._prepared(left, right, FIRST_TRANSPOSED)
        shape, dtype, with_sums = found.plan.shape, found.dtype, found.with_sums
        out, sums = self.empty(shape, dtype), self.empty(shape[:1], dtype)
        if with_sums and with_sums(left, right, 1, out, sums):
            return out, sums
        found.multiply(left, right, 1, 0, out)
        return out, self.total(left, (0,))

    def _prepared(self, left, right, forms: tuple[int, int]):
        """How matrices are multiplied, and they or copies of them that can be read so."""
        seen = left.shape, left.strides, left.dtype, right.shape, right.strides, right.dtype
        found = self.plans[*seen, forms, settings.allow_tf32, self.capturing.capture is None]
        if found.multiply:
            return found, left, right
        if found.plan.left is None:
            left, form = self._readable(left, found.plan, forms[0])
            return self._prepared(left, right, (form, forms[1]))
        right, form = self._readable(right, found.plan, forms[1])
        return self._prepared(left, right, (forms[0], form))

    def _prepare(
        self, left_shape, left_strides, dtype, right_shape, right_strides, right_dtype, forms, allow_tf32, called
    ) -> Prepared:
        if right_dtype != dtype:
            raise ValueError(f"factors of {dtype} and {right_dtype}")
        how = plan((left_shape, left_strides), (right_shape, right_strides), dtype.itemsize, forms)
        if not prod(how.shape):
            return Prepared(self, how, dtype, _nothing)
        if how.left is None or how.right is None:
            return Prepared(self, how, dtype, None)
        prepare = self._integers if dtype.kind in "iu" else self._cublas if called else self._captured
        multiply = prepare(how, how.left, how.right, dtype)
        return Prepared(self, how, dtype, multiply if how.inner else self._scaling(multiply))

    def _readable(self, factor, how: Plan, form: int):
        """A factor copied so that BLAS can read it, and the form in which it enters."""
        if form == ADJOINT:
            return self.conjugated((factor.dtype,), factor.dtype, (factor,)), TRANSPOSED
        if not factor.flags.c_contiguous:
            return self.copying.dense(factor), form
        whole = self.empty((*how.batch_shape, *factor.shape[-2:]), factor.dtype)
        self.copying.copy(whole, factor)
        return whole, form

    def epilogue(self, epilogue: int, how: Plan, dtype: np.dtype) -> Callable | None:
        """What multiplies with an epilogue of cublasLt: see `Prepared`."""
        if dtype not in EPILOGUES or how.batch != 1 or not (how.inner and prod(how.shape)) or self.cublas_lt is None:
            return None
        multiplication, scale = self._multiplication(epilogue, how, dtype)
        one, zero = _number(1, scale), _number(0, scale)

        def multiply(left, right, alpha, out, vector):
            factor = one if alpha == 1 else _number(alpha, scale)
            addresses = right.data.ptr, left.data.ptr, out.data.ptr, vector.data.ptr
            return multiplication(factor[1], zero[1], *addresses)

        return multiply

    def _multiplication(self, epilogue: int, how: Plan, dtype: np.dtype) -> tuple[Multiplication, str]:
        """cublasLt's product with an epilogue, and the dtype of its factors alpha and beta."""
        element, compute, scale = _types(dtype)
        first, second, rows, columns = how.left, how.right, how.rows, how.columns
        assert first and second
        about = (
            (element, compute, SCALES[scale]),
            (second.form, first.form),
            (columns, rows, max(how.inner, 1)),
            (second.step, first.step, columns),
            SINGLE if how.batch == 1 else (how.batch, second.jump, first.jump, rows * columns),
        )
        return self.multiplications[epilogue, *about], scale

    def _scaling(self, multiply: Callable) -> Callable:
        """What multiplies factors without elements, which are not read: `out` is scaled."""

        def scale(left, right, alpha, beta, out):
            if not beta:
                self.copying.fill(out, 0)
            elif beta != 1:
                multiply(left, right, 0, beta, out)

        return scale

    def _cublas(self, how: Plan, first: Factor, second: Factor, dtype: np.dtype) -> Callable:
        """By columns, as cuBLAS sees matrices, the transposed result is the product of the transposed factors."""
        element, compute, scale = _types(dtype)
        device, rows, columns, inner, batch = self.cuda.xp.cuda, how.rows, how.columns, max(how.inner, 1), how.batch
        left_form, left_step, left_jump = first.form, first.step, first.jump
        right_form, right_step, right_jump = second.form, second.step, second.jump
        one, zero = _number(1, scale), _number(0, scale)

        def multiply(left, right, alpha, beta, out):
            factor = one if alpha == 1 else _number(alpha, scale)
            kept = zero if beta == 0 else _number(beta, scale)
            device.cublas.gemmEx(
                *(device.get_cublas_handle(), right_form, left_form, columns, rows, inner, factor[1]),
                *(right.data.ptr, element, right_step, left.data.ptr, element, left_step),
                *(kept[1], out.data.ptr, element, columns, compute, DEFAULT_ALGORITHM),
            )

        def multiply_batch(left, right, alpha, beta, out):
            factor = one if alpha == 1 else _number(alpha, scale)
            kept = zero if beta == 0 else _number(beta, scale)
            device.cublas.gemmStridedBatchedEx(
                *(device.get_cublas_handle(), right_form, left_form, columns, rows, inner, factor[1]),
                *(right.data.ptr, element, right_step, right_jump, left.data.ptr, element, left_step, left_jump),
                *(kept[1], out.data.ptr, element, columns, rows * columns),
                *(batch, compute, DEFAULT_ALGORITHM),
            )

        return multiply if batch == 1 else multiply_batch

    def _captured(self, how: Plan, first: Factor, second: Factor, dtype: np.dtype) -> Callable:
        """As `_cublas`, while a graph is captured."""
        missing = (
            "cublasLt, which multiplies while a graph is captured, is missing or has no algorithm for "
            f"{dtype} of shape {how.shape}"
        )
        if self.cublas_lt is None:
            raise CaptureError(missing)
        multiplication, scale = self._multiplication(PLAIN, how, dtype)

        def multiply(left, right, alpha, beta, out):
            numbers = _number(alpha, scale), _number(beta, scale)
            if not multiplication(numbers[0][1], numbers[1][1], right.data.ptr, left.data.ptr, out.data.ptr):
                raise CaptureError(missing)

        return multiply

    def _integers(self, how: Plan, first: Factor, second: Factor, dtype: np.dtype) -> Callable:
        """By a function of our own."""
        launch, tiles = self.of_integers[dtype], -(-how.rows // TILE) * -(-how.columns // TILE) * how.batch
        own = [(1, f.step, f.jump) if f.form else (f.step, 1, f.jump) for f in (first, second)]
        numbers = how.rows, how.columns, how.inner, *own[0], *own[1]

        def multiply(left, right, alpha, beta, out):
            launch((tiles,), (BLOCK,), (left, right, out, *numbers, alpha, beta))

        return multiply


def _nothing(left, right, alpha, beta, out) -> None:
    """The product without elements."""
