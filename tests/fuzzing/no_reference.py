"""Where PyTorch's numbers are no reference: what infinities, NaN and narrow integers do to them, and its own faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from tests.fuzzing.documented import PRODUCTS, numpys, open_values, short
from tests.fuzzing.programs import Leaf, Ref, Step, references, words
from tests.fuzzing.runs import Picture, Run

#: functions whose results are left open where one side's is infinite or NaN: (functions, why)
_OPEN_SPECIAL = (
    ("var_mean std_mean", "a mean by Welford's recurrence"),
    ("ldexp", "a power beyond the largest number"),
    (
        "solve_triangular cholesky_solve cholesky_inverse solve inv inverse matrix_power",
        "how far NaN and infinities spread",
    ),
    ("fmod remainder", "a quotient beyond the largest number"),
    ("addr addcmul", "a product beyond the largest number"),
    ("norm vector_norm", "a square beyond the largest number"),
    ("mv inner dot vdot matmul mm bmm rnn_tanh_cell rnn_relu_cell", "the order of terms in a sum"),
    ("cond", "a singular value that is 0 but for roundings"),
    ("det linalg_det logdet slogdet linalg_slogdet", "a pivot of 0 is met before, or after, an infinity"),
    ("cross linalg_cross", "a product beyond the largest number, rounded or not before it is subtracted"),
    ("trapezoid trapz", "a sum less the half of its ends, or of panels"),
    ("cdist", "distances of many rows by matrix products, the largest of several without regard to NaN"),
    ("mode", "NaN where PyTorch's sort, which does not order it, leaves it"),
    ("fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2", "the order of terms in a sum"),
    ("fftn ifftn rfftn irfftn hfftn ihfftn", "the same"),
    ("lu lu_factor lu_factor_ex lu_solve linalg_lu linalg_lu_factor geqrf ormqr householder_product", "eliminations"),
    ("ldl_factor ldl_factor_ex ldl_solve linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve", "eliminations"),
    ("igamma igammac gammainc gammaincc", "a limit in the one argument where the other is NaN"),
)
_SPECIAL = frozenset(name for names, _ in _OPEN_SPECIAL for name in words(names))
#: on any two sides: sums and products of finite elements beyond the largest number, or below the smallest
_SUMS = frozenset(
    words("""
        var std var_mean std_mean nansum nanmean prod lerp matmul tensordot softmax_backward adaptive_avg_pool1d
        adaptive_avg_pool2d adaptive_avg_pool3d
    """)
)
#: the same, where one operand is multiplied first
_SCALED_SUMS = frozenset(words("add sub subtract rsub"))
_POLYNOMIALS = " ".join(
    f"{prefix}{name}"
    for prefix in ("", "special_")
    for name in words("""
        chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
        shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
        shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
        legendre_polynomial_p
    """)
)
#: functions with steps, whose gradient at NaN is one from PyTorch's vector loops and another from what these leave over
_STEPS = frozenset(words("softshrink hardshrink elu selu celu relu6"))


def special(entry: Step, sides: tuple[str, str]) -> bool:
    """Whether results of infinities and NaN are left open."""
    name = short(entry.function)
    if name in _SUMS or (name in _SCALED_SUMS and "alpha" in entry.keywords):
        return True
    return sides[1] == "torch" and name in _SPECIAL


def steps_at_nan(functions: Iterable[str], sides: tuple[str, str]) -> bool:
    """Whether the gradient through these functions at NaN is left open."""
    return sides[1] == "torch" and not _STEPS.isdisjoint(map(short, functions))


def reshapes(entry: Step, run: Run, sides: tuple[str, str]) -> bool:
    """Whether PyTorch gives a tensor another shape that ought to keep its own: one without a batch gets one."""
    name = short(entry.function)
    if sides[1] != "torch" or name not in ("dropout1d", "dropout2d", "dropout3d") or not entry.keywords.get("inplace"):
        return False
    return any(picture.array.ndim < int(name[7]) + 2 for picture in _operands(entry, run))


def degenerate(steps: Iterable[Leaf | Step], run: Run) -> bool:
    """Whether a step decomposes matrices whose factors have no gradient: of less than full rank, or with singular
    values that are equal."""
    factors = (step for step in steps if isinstance(step, Step) and short(step.function) in ("svd", "qr"))
    return any(_degenerate(picture.array) for step in factors for picture in _operands(step, run))


def _degenerate(matrices: np.ndarray) -> bool:
    if matrices.ndim < 2 or not matrices.size or not np.isfinite(matrices).all():
        return True
    wide = matrices.astype(np.complex128 if matrices.dtype.kind == "c" else np.float64)
    values = np.linalg.svd(wide, compute_uv=False)
    smallest = 1e-4 * values[..., :1]
    return bool((values <= smallest).any() or (-np.diff(values) <= smallest).any())


def form(entry: Leaf | Step, run: Run, sides: tuple[str, str]) -> bool:
    """Whether PyTorch's dtype or shape is another."""
    return sides[1] == "torch" and isinstance(entry, Step) and _stands(_FORMS, entry, run)


def values(steps: Iterable[Leaf | Step], run: Run, sides: tuple[str, str]) -> bool:
    """Whether the results of the last step, or the gradients through all of them, are wrong on PyTorch's side."""
    return sides[1] == "torch" and any(_stands(_VALUES, step, run) for step in steps if isinstance(step, Step))


def gradient(steps: Iterable[Leaf | Step], run: Run, sides: tuple[str, str]) -> bool:
    """Whether a gradient through these steps is wrong on PyTorch's side."""
    steps = [step for step in steps if isinstance(step, Step)]
    if sides[1] != "torch":
        return any(numpys(step, run, sides) or _of_unsettled(step, run) for step in steps)
    return any(_stands(_VALUES, step, run) or _stands(_GRADIENTS, step, run) for step in steps)


def _of_unsettled(step: Step, run: Run) -> bool:
    """Whether a step multiplies matrices of which one has an infinity or NaN: NumPy leaves out a product with 0."""
    return short(step.function) in PRODUCTS and _unsettled(step, run)


def unsettled(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The elements of which one side's is infinite or NaN."""
    return ~(np.isfinite(a) & np.isfinite(b))


# -- faults of PyTorch's: conditions on a step ------------------------------------------------------------------------
def _operands(step: Step, run: Run) -> list[Picture]:
    pictures = (run.pictures[number] for number in references(step))
    return [picture for picture in pictures if type(picture) is Picture]


def _with(holds: Callable[[np.ndarray], bool | np.bool_]) -> Callable[[Step, Run], bool]:
    """The condition that an operand is such an array."""
    return lambda step, run: any(holds(picture.array) for picture in _operands(step, run))


_integers = _with(lambda array: array.dtype.kind in "iu")
_bytes = _with(lambda array: array.dtype == np.uint8)
_empty = _with(lambda array: not array.size)
_unsettled = _with(lambda array: not np.isfinite(array).all())
_zero = _with(lambda array: bool((array == 0).any()))
_complex = _with(lambda array: array.dtype.kind == "c")
_complex_unsettled = _with(lambda array: array.dtype.kind == "c" and not np.isfinite(array).all())
_nan = _with(lambda array: array.dtype.kind not in "bSU" and np.isnan(array).any())
_tails = _with(lambda array: array.dtype.kind != "c" and (array < -2).any())
_cut = _with(lambda array: array.dtype.kind == "c" and (np.signbit(array.imag) & (array.imag == 0)).any())
_many = _with(lambda array: array.size > 1000)
_many_rows = _with(lambda array: array.ndim > 1 and array.shape[-2] > 25)
_denormal = _with(lambda array: array.dtype.kind == "f" and (array < -80).any())
_lowest = _with(lambda array: array.dtype.kind == "f" and np.isneginf(array).any())


_beyond_roots = _with(lambda array: array.dtype.kind == "f" and bool((abs(array) > 1e19).any()))


def _always(step: Step, run: Run) -> bool:
    return True


def _density(step: Step, run: Run) -> bool:
    return bool(step.keywords.get("density"))


def _beyond_degrees(step: Step, run: Run) -> bool:
    """Whether an operand is no number, or one that is no degree of a polynomial to compute."""
    numbers = np.array([part for part in step.arguments if isinstance(part, int | float)], np.float64)
    return _with(lambda array: not (np.abs(array) <= 65536).all())(step, run) or not (np.abs(numbers) <= 65536).all()


def _overflowing(array: np.ndarray) -> bool:
    """Whether a product of two such integers may be beyond the largest one."""
    return (
        array.dtype.kind in "iu" and float(np.abs(array.astype(float)).max(initial=0)) ** 2 > np.iinfo(array.dtype).max
    )


def _beyond_32_bits(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" and bool((np.abs(array.astype(np.float64)) >= 2.0**31).any())


def _of_several_dtypes(step: Step, run: Run) -> bool:
    return len({picture.dtype for picture in _operands(step, run)}) > 1


def _halves(step: Step, run: Run) -> bool:
    return any(picture.dtype in ("float16", "bfloat16") for picture in _operands(step, run))


def _repeated(step: Step, run: Run) -> bool:
    """An operand shows an element several times."""
    return any(0 in run.values[n].stride() for n in references(step) if type(run.pictures[n]) is Picture)


def _flat(step: Step, run: Run) -> bool:
    """The tolerance is that of float32, for integers."""
    return _integers(step, run) and len(step.arguments) + len(step.keywords) > 2


def _nothing_times_unsettled(step: Step, run: Run) -> bool:
    return step.keywords.get("alpha") == 0 and _unsettled(step, run)


def _numbers(step: Step, run: Run) -> bool:
    return all(not picture.array.ndim for picture in _operands(step, run))


def _powers_of_zero(step: Step, run: Run) -> bool:
    found = [picture.array for picture in _operands(step, run)]
    found += [np.array(value) for value in step.arguments if isinstance(value, int | float | complex)]
    return any(array.dtype.kind == "c" for array in found) and any((array == 0).any() for array in found)


def _one_tensor_bound(step: Step, run: Run) -> bool:
    bounds = [*step.arguments[1:], *(v for k, v in step.keywords.items() if k in ("min", "max"))]
    return len(bounds) == 2 and sum(isinstance(bound, Ref) for bound in bounds) == 1


def _into_out(step: Step, run: Run) -> bool:
    return "out" in step.keywords


def _scaled(step: Step, run: Run) -> bool:
    return step.keywords.get("scale_factor") is not None or len(step.arguments) > 2


def _smoothed_column(step: Step, run: Run) -> bool:
    """What is smoothed, or comes of it, is one element wide."""
    widths = [picture.array.shape[-1] for picture in _operands(step, run) if picture.array.ndim]
    size, factor = step.keywords.get("size"), step.keywords.get("scale_factor")
    if size is not None:
        widths.append(size[-1] if isinstance(size, tuple | list) else size)
    elif factor is not None:
        widths += [int(width * (factor[-1] if isinstance(factor, tuple | list) else factor)) for width in widths]
    return bool(step.keywords.get("antialias")) and 1 in widths


def _on_top(step: Step, run: Run) -> bool:
    """The strides lay elements on top of each other."""
    return open_values(step, run, ("", "torch"))


def _from_the_end(step: Step, run: Run) -> bool:
    given = (*step.arguments[2:3], step.keywords.get("start"))
    return any(isinstance(start, int) and start < 0 for start in given)


def _coarse(step: Step, run: Run) -> bool:
    given = (*step.arguments[3:], step.keywords.get("eps"))
    return any(isinstance(eps, int | float) and eps > 1e-6 for eps in given)


def _with_gaps(step: Step, run: Run) -> bool:
    return any(not run.values[n].is_contiguous() for n in references(step) if type(run.pictures[n]) is Picture)


def _real_result(step: Step, run: Run) -> bool:
    return "dtype" in step.keywords and _complex(step, run)


def _in_place(step: Step, run: Run) -> bool:
    return step.function.endswith("_")


def _no_dimensions(step: Step, run: Run) -> bool:
    return () in (*step.arguments, step.keywords.get("dim"))


def _tolerance_of_zero(step: Step, run: Run) -> bool:
    given = [*step.arguments[1:], *(v for k, v in step.keywords.items() if k in ("atol", "rtol", "rcond"))]
    found = [run.pictures[v.number].array if isinstance(v, Ref) else np.array(v) for v in given]
    return any(array.dtype.kind != "b" and (array == 0).any() for array in found)


def _weighted_of_several_shapes(step: Step, run: Run) -> bool:
    return "weight" in step.keywords and len({picture.array.shape for picture in _operands(step, run)}) > 1


def _table(*rows: tuple[str, Callable[[Step, Run], bool], str]) -> tuple:
    return tuple((frozenset(words(names)), holds) for names, holds, _ in rows)


def _stands(table, step: Step, run: Run) -> bool:
    """Whether a table has the step."""
    name = short(step.function)
    return any(name in names and holds(step, run) for names, holds in table)


#: whose dtype or shape is another: (functions, condition, why)
_FORMS = _table(
    ("clamp clip", _one_tensor_bound, "both bounds are taken for numbers if one is"),
    ("binary_cross_entropy_with_logits", _of_several_dtypes, "that of the target, whichever the input's"),
    ("ihfftn ihfft2", _into_out, "out= of another shape is given to the last step alone"),
    ("dropout dropout1d dropout2d dropout3d hinge_embedding_loss", _integers, "an integer keeps its dtype"),
    ("pixel_unshuffle", _empty, "what has no elements is given back"),
    ("trapezoid trapz cumulative_trapezoid", _empty, "what has no elements keeps its dtype"),
    ("soft_margin_loss", _of_several_dtypes, "that of the input, whichever the target's"),
    ("native_dropout", _with(lambda array: array.dtype.kind in "biu"), "an integer keeps its dtype"),
    ("native_dropout", _empty, "a mask of numbers, of no element"),
    ("conv1d conv2d conv3d", _empty, "what has no channels and no batch gets a size of 0"),
    ("unique", _nan, "rows with NaN are equal or not as the sort leaves them"),
)
#: whose values are wrong, or less exact than one dtype's rounding
_VALUES = _table(
    ("trapezoid trapz cumulative_trapezoid threshold", _integers, "what overflows wraps, and fractions are lost"),
    ("hinge_embedding_loss", _integers, "the same"),
    ("median nanmedian", _repeated, "elements that share memory are sorted in place"),
    (
        "any all",
        lambda step, run: _into_out(step, run) and _bytes(step, run),
        "converted to bytes before they are asked",
    ),
    ("clamp clip", _one_tensor_bound, "both bounds are taken for numbers if one is"),
    ("ihfftn ihfft2", _into_out, "what out= had is left where there was nothing to transform"),
    ("float_power pow ipow", _powers_of_zero, "NaN, by a logarithm, for 0 to the power of 0 too"),
    ("float_power pow ipow", _complex_unsettled, "the same, or a quotient, by which the power is written"),
    ("to", _with(_beyond_32_bits), "bytes by way of 64 bits, others by 32"),
    ("isclose", _flat, "a tolerance beyond 2**24 rounded to float32"),
    ("lstm_cell", _nan, "a product with a state of 0 and NaN"),
    ("sgn sign", _complex_unsettled, "NaN, by a quotient, for an infinite part too"),
    ("logcumsumexp", _complex, "the logarithm whose phase goes on where that of a sum jumps"),
    ("mode", _nan, "NaN is not ordered by the sort"),
    ("det linalg_det logdet slogdet linalg_slogdet", _unsettled, "the sign of NaN is 0"),
    ("gelu special_ndtr ndtr", _tails, "a difference from 1 in the lower tail"),
    ("polygamma special_polygamma zeta special_zeta", _always, "a sum right to 1e-9"),
    ("digamma psi special_digamma special_psi", _always, "roundings of its terms beside its root"),
    ("multilabel_margin_loss", _empty, "memory that nobody wrote"),
    ("igamma gammainc", _always, "an ending series"),
    ("airy_ai special_airy_ai", _always, "an approximation right to 1e-6"),
    ("bessel_j0 bessel_j1 bessel_y0 bessel_y1", _always, "an approximation right to 1e-11"),
    ("special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1", _always, "the same"),
    (_POLYNOMIALS, _beyond_degrees, "0 for a degree that is no number, infinite, or too great"),
    ("histogram histogramdd", _density, "counts over a small difference of rounded edges"),
    ("cholesky_ex linalg_cholesky_ex", _always, "what is left of a matrix that has no such factor"),
    ("pow ipow float_power", _lowest, "the root of -inf is NaN or not as the exponent is a number or a tensor"),
    ("histc soft_margin_loss", _halves, "rounded to the half type, or beyond its range, on the way"),
    ("var std var_mean std_mean", _many, "a recurrence whose roundings add up"),
    ("interpolate", _smoothed_column, "what is one element wide is smoothed with the weights of the first row"),
    ("addmm addmv addbmm baddbmm", _nothing_times_unsettled, "a product is not computed if its factor is 0"),
    ("lcm gcd", _with(_overflowing), "what overflows keeps another sign"),
    ("cdist", _many_rows, "distances of many rows by matrix products"),
    ("mish", _denormal, "a product with what is denormal"),
    ("pinv pinverse matrix_rank", _tolerance_of_zero, "whether the least singular value is 0 is decided by roundings"),
    (
        "mse_loss l1_loss",
        _weighted_of_several_shapes,
        "a sum over all elements by that of a weight before it is broadcast",
    ),
)
#: whose gradients are wrong
_GRADIENTS = _table(
    ("atan2 arctan2 pow soft_margin_loss ldexp", _integers, "computed in the dtype of the integers"),
    ("interpolate", _scaled, "the backward of nearest forgets the factor where the size was rounded"),
    ("group_norm", _empty, "the mean of no elements, times 0"),
    ("batch_norm instance_norm", _repeated, "weights that share memory are read behind its end"),
    ("batch_norm instance_norm", _with_gaps, "running statistics are read as if they had no gaps"),
    ("as_strided_scatter", _numbers, "what was overwritten has its gradient still"),
    ("as_strided_scatter", _on_top, "the same, of elements on top of each other"),
    ("narrow_copy", _from_the_end, "no gradient arrives"),
    ("cosine_similarity", _coarse, "the derivative of the norm, where eps stands for it"),
    ("detach", _in_place, "a view made before has a history until it is used"),
    ("logit", _nan, "no gradient arrives"),
    ("logaddexp", _complex_unsettled, "the derivative of a maximum, of NaN"),
    ("cumprod", _real_result, "the imaginary part is dropped before the product's derivative is taken"),
    ("nan_to_num", _complex_unsettled, "no gradient arrives for the finite part either"),
    ("pow", _complex_unsettled, "NaN, by a logarithm"),
    ("pow", _lowest, "NaN, by a square root"),
    ("var_mean std_mean var std", _no_dimensions, "the count is that of one element"),
    ("prod", _unsettled, "a quotient of infinities where no gradient arrives"),
    ("abs", _complex_unsettled, "its sign is NaN"),
    ("silu", _with(lambda array: array.dtype.kind == "c"), "the derivative is not conjugated"),
    ("log_ndtr special_log_ndtr", _tails, "a difference from 1"),
    ("digamma psi special_digamma special_psi", _always, "a sum right to 1e-9"),
    ("renorm", _beyond_roots, "a square beyond the largest number"),
    ("igamma igammac gammainc gammaincc", _zero, "0 times the logarithm of 0"),
    ("atan2 arctan2", _beyond_roots, "a square beyond the largest number"),
    ("acosh arccosh", _cut, "that of the other side of the branch cut"),
)
