"""Products of matrices, and of batches of them that broadcast.

cuBLAS multiplies floating and complex numbers, a function of our own (matmul.cu) integers; cublasLt adds a bias, or
sums a factor's columns, in the same launch, and multiplies while a graph is captured, which CuPy's cuBLAS refuses to.
Factors are read as they lie in memory, transposed or not; few need a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from corefw import dtypes, shapes
from corefw.dispatch.backend import Kernel
from corefw.dispatch.numbers import fitting_number
from corefw.dispatch.settings import settings
from corefw.errors import CaptureError
from corefw_cupy.cublas_lt import BIAS, COLUMN_SUMS, PLAIN, CublasLt
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import COMPLEX, FLOATS, INTEGERS, offered
from corefw_cupy.planned import Planned
from corefw_cupy.pointwise_function import Pointwise
from corefw_cupy.reducing import Reduction

TILE = 64  # rows and columns of a result that a block computes, as in matmul.cu
BLOCK = 256
#: (cudaDataType_t, cublasComputeType_t, the latter with TensorFloat-32, dtype of the factors alpha and beta)
SINGLE, DOUBLE, TF32 = 68, 70, 77
CUBLAS = {
    dtypes.float16.numpy: (2, SINGLE, SINGLE, "f4"),
    dtypes.bfloat16.numpy: (14, SINGLE, SINGLE, "f4"),
    dtypes.float32.numpy: (0, SINGLE, TF32, "f4"),
    dtypes.float64.numpy: (1, DOUBLE, DOUBLE, "f8"),
    dtypes.complex64.numpy: (4, SINGLE, TF32, "c8"),
    dtypes.complex128.numpy: (5, DOUBLE, DOUBLE, "c16"),
}
DEFAULT_ALGORITHM = -1
#: cudaDataType_t of the factors alpha and beta, by their dtype
SCALES = {"f4": 0, "f8": 1, "c8": 4, "c16": 5}
EPILOGUES = frozenset(FLOATS)  # the dtypes of products with an epilogue that cublasLt is asked for
AS_IT_IS, TRANSPOSED, ADJOINT = range(3)  # cublasOperation_t


def _types(dtype: np.dtype) -> tuple[int, int, str]:
    """cudaDataType_t and cublasComputeType_t of products, and the dtype of their factors alpha and beta."""
    element, compute, fast, scale = CUBLAS[dtype]
    return element, fast if settings.allow_tf32 else compute, scale


@lru_cache(maxsize=1 << 12)
def _expands(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array broadcasts to `target`."""
    return len(shape) <= len(target) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(target)))


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


@dataclass(frozen=True)
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


def _is_bias(added, how: Plan, dtype: np.dtype) -> bool:
    """Whether each row of a product is added the same dense vector."""
    columns = how.columns
    dense = columns == 1 or added.strides[-1:] == (added.itemsize,)
    return dense and added.dtype == dtype and added.size == columns and added.shape[-1:] == (columns,)


@lru_cache(maxsize=1 << 10)
def _number(value, dtype: str) -> tuple[np.ndarray, int]:
    """A number in host memory, and its address."""
    array = np.array(value, dtype)
    return array, array.ctypes.data


class Products:
    """Products of batches of matrices, on one kind of device."""

    def __init__(self, cuda: Cuda):
        self.cuda = cuda
        self.copying = cuda.copying
        self.plans = Planned(self._plan)
        self.cublas_lt = CublasLt(cuda)
        self.capturing = cuda.capturing
        self.total = Reduction(cuda, "reduction/reduction.cu", "Total", FLOATS)
        self.of_integers = cuda.function("core/matmul.cu", "integer_matmul", T=INTEGERS)
        formula = ("conjugated_factor", ("T",), 0, "int64", "T", "conj(x)", {"T": COMPLEX})
        self.conjugated = Pointwise(cuda, *formula, computed=False)

    def __call__(self, left, right, forms=(AS_IT_IS, AS_IT_IS), added=None, alpha=1, beta=1, out=None):
        """``alpha * left @ right + beta * added``, in `out` (without gaps) if it is given; an absent or unscaled
        (beta = 0) addend is not read."""
        how, multiply, left, right = self._planned(left, right, forms)
        if out is None:
            out = self.cuda.empty(how.shape, left.dtype)
        if added is None:
            if out.size:
                multiply(left, right, alpha, 0, out)
            return out
        if not _expands(added.shape, how.shape):
            raise ValueError(f"{added.shape} does not expand to {how.shape}")
        is_bias = beta == 1 and _is_bias(added, how, left.dtype)
        if out.size and not (is_bias and self._epilogue(BIAS, how, left, right, alpha, out, added)):
            if beta:
                self.copying.copy(out, added)
            multiply(left, right, alpha, beta, out)
        return out

    def with_sums(self, left, right):
        """The product of the transposed matrix `left` with `right`, and the sums of the columns of `left`."""
        how, multiply, left, right = self._planned(left, right, (TRANSPOSED, AS_IT_IS))
        out, sums = self.cuda.empty(how.shape, left.dtype), self.cuda.empty(how.shape[:1], left.dtype)
        if out.size and self._epilogue(COLUMN_SUMS, how, left, right, 1, out, sums):
            return out, sums
        if out.size:
            multiply(left, right, 1, 0, out)
        return out, self.total(left, (0,))

    def _planned(self, left, right, forms: tuple[int, int]):
        """How matrices are multiplied, what does it, and they or copies of them that can be read so."""
        seen = left.shape, left.strides, left.dtype, right.shape, right.strides, right.dtype
        how, multiply = self.plans[*seen, forms, settings.allow_tf32, self.capturing.capture is not None]
        if multiply:
            return how, multiply, left, right
        if how.left is None:
            left, form = self._readable(left, how, forms[0])
            return self._planned(left, right, (form, forms[1]))
        right, form = self._readable(right, how, forms[1])
        return self._planned(left, right, (forms[0], form))

    def _plan(
        self,
        left_shape,
        left_strides,
        left_dtype,
        right_shape,
        right_strides,
        right_dtype,
        forms,
        allow_tf32,
        captured,
    ):
        """How matrices are multiplied, and what does it: called with (left, right, alpha, beta, out); None if a factor
        must be copied first."""
        if right_dtype != left_dtype:
            raise ValueError(f"factors of {left_dtype} and {right_dtype}")
        how = plan((left_shape, left_strides), (right_shape, right_strides), left_dtype.itemsize, forms)
        if how.left is None or how.right is None:
            return how, None
        prepare = self._integers if left_dtype.kind in "iu" else self._captured if captured else self._cublas
        multiply = prepare(how, how.left, how.right, left_dtype)
        return how, multiply if how.inner else self._scaling(multiply)

    def _readable(self, factor, how: Plan, form: int):
        """A factor copied so that BLAS can read it, and the form in which it enters."""
        if form == ADJOINT:
            return self.conjugated((factor.dtype,), factor.dtype, (factor,)), TRANSPOSED
        if not factor.flags.c_contiguous:
            return self.copying.dense(factor), form
        whole = self.cuda.empty((*how.batch_shape, *factor.shape[-2:]), factor.dtype)
        self.copying.copy(whole, factor)
        return whole, form

    def _epilogue(self, epilogue: int, how: Plan, left, right, alpha, out, vector) -> bool:
        """Multiply with an epilogue of cublasLt, and say so; False if that is not possible."""
        if out.dtype not in EPILOGUES or how.batch != 1 or not how.inner:
            return False
        element, compute, scale = _types(out.dtype)
        (_, alpha), (_, beta), first, second = _number(alpha, scale), _number(0, scale), how.left, how.right
        assert first and second
        return self.cublas_lt(
            epilogue,
            (element, compute, SCALES[scale]),
            (second.form, first.form),
            (how.columns, how.rows, how.inner),
            alpha,
            beta,
            (right.data.ptr, second.step),
            (left.data.ptr, first.step),
            (out.data.ptr, how.columns),
            vector.data.ptr,
        )

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

        def multiply(left, right, alpha, beta, out):
            device.cublas.gemmEx(
                *(device.get_cublas_handle(), right_form, left_form, columns, rows, inner, _number(alpha, scale)[1]),
                *(right.data.ptr, element, right_step, left.data.ptr, element, left_step),
                *(_number(beta, scale)[1], out.data.ptr, element, columns, compute, DEFAULT_ALGORITHM),
            )

        def multiply_batch(left, right, alpha, beta, out):
            device.cublas.gemmStridedBatchedEx(
                *(device.get_cublas_handle(), right_form, left_form, columns, rows, inner, _number(alpha, scale)[1]),
                *(right.data.ptr, element, right_step, right_jump, left.data.ptr, element, left_step, left_jump),
                *(_number(beta, scale)[1], out.data.ptr, element, columns, rows * columns),
                *(batch, compute, DEFAULT_ALGORITHM),
            )

        return multiply if batch == 1 else multiply_batch

    def _captured(self, how: Plan, first: Factor, second: Factor, dtype: np.dtype) -> Callable:
        """As `_cublas`, while a graph is captured."""
        element, compute, scale = _types(dtype)
        types, forms = (element, compute, SCALES[scale]), (second.form, first.form)
        sizes = how.columns, how.rows, max(how.inner, 1)
        batch = how.batch, second.jump, first.jump, how.rows * how.columns

        def multiply(left, right, alpha, beta, out):
            numbers = _number(alpha, scale)[1], _number(beta, scale)[1]
            places = (right.data.ptr, second.step), (left.data.ptr, first.step), (out.data.ptr, how.columns)
            if not self.cublas_lt(PLAIN, types, forms, sizes, *numbers, *places, batch=batch):
                raise CaptureError(
                    "cublasLt, which multiplies while a graph is captured, is missing or has no algorithm for "
                    f"{dtype} of shape {how.shape}"
                )

        return multiply

    def _integers(self, how: Plan, first: Factor, second: Factor, dtype: np.dtype) -> Callable:
        """By a function of our own."""
        launch, tiles = self.of_integers[dtype], -(-how.rows // TILE) * -(-how.columns // TILE) * how.batch
        own = [(1, f.step, f.jump) if f.form else (f.step, 1, f.jump) for f in (first, second)]
        numbers = how.rows, how.columns, how.inner, *own[0], *own[1]

        def multiply(left, right, alpha, beta, out):
            launch((tiles,), (BLOCK,), (left, right, out, *numbers, alpha, beta))

        return multiply


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    product = Products(cuda)

    def matmul(input, other):
        return product(input, other)

    def matmul_adjoint(input, other):
        return product(input, other, (AS_IT_IS, ADJOINT if other.dtype.kind == "c" else TRANSPOSED))

    def adjoint_matmul(input, other):
        return product(input, other, (ADJOINT if input.dtype.kind == "c" else TRANSPOSED, AS_IT_IS))

    def mm(input, mat2):
        if input.ndim != 2 or mat2.ndim != 2:
            raise ValueError("two matrices expected")
        return product(input, mat2)

    def check_batches(input, other):
        if input.ndim != 3 or other.ndim != 3 or input.shape[0] != other.shape[0]:
            raise ValueError("two batches of matrices expected")

    def bmm(input, mat2):
        check_batches(input, mat2)
        return product(input, mat2)

    def factors(matrix, beta, alpha):
        """The factors as numbers of the matrices' dtype, where that is one of integers."""
        if matrix.dtype.kind in "iu":
            beta, alpha = (fitting_number(factor, dtypes.of_numpy(matrix.dtype)) for factor in (beta, alpha))
        return {"beta": beta, "alpha": alpha}

    def addmm(input, mat1, mat2, beta, alpha):
        if mat1.ndim != 2 or mat2.ndim != 2:
            raise ValueError("two matrices expected")
        return product(mat1, mat2, added=input, **factors(mat1, beta, alpha))

    def baddbmm(input, batch1, batch2, beta, alpha):
        check_batches(batch1, batch2)
        return product(batch1, batch2, added=input, **factors(batch1, beta, alpha))

    def linear(input, weight, bias):
        if weight.ndim == 1:
            return product(input, weight, added=bias)
        if weight.ndim != 2:
            raise ValueError("a matrix or vector expected")
        return product(input, weight, (AS_IT_IS, TRANSPOSED), bias)

    def as_matrix(array):
        """The last dimension's vectors as the rows of one matrix."""
        return array if array.ndim == 2 else cuda.dense(array).reshape(prod(array.shape[:-1]), array.shape[-1])

    def linear_gradients(gradient, input):
        if gradient.shape[:-1] != input.shape[:-1]:
            raise ValueError("as many rows of both expected")
        return product.with_sums(as_matrix(gradient), as_matrix(input))

    functions = (matmul, matmul_adjoint, adjoint_matmul, mm, bmm, addmm, baddbmm, linear)
    numbers = offered({**FLOATS, **COMPLEX, **INTEGERS})
    return [
        *(Kernel(function.__name__, function, numbers) for function in functions),
        Kernel("linear_gradients", linear_gradients, offered(FLOATS)),
    ]
