"""What a case expects of a call - values, dtypes, tolerances - and the comparison with what came."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from corefw import dtypes
from corefw.dispatch.op import Op
from corefw.dispatch.promotion import result_type
from corefw.dtypes import BOOL, COMPLEX, FLOATING, dtype
from corefw.tensor import Tensor
from corefw.testing.case import Case
from corefw.testing.checks import (
    about,
    flat,
)
from corefw.testing.comparison import TOLERANCES, compare_values, host
from corefw.testing.samples import Sample, to_tensor

#: half types, of which one op may round several times on the way
_HALF_TOLERANCES = {dtypes.float16: (4e-3, 4e-3), dtypes.bfloat16: (3.2e-2, 3.2e-2)}


def tolerance(case: Case, *found: dtype) -> tuple[float, float]:
    """The tolerance of results of these dtypes: the dtype's own, scaled where the row asks for more than usual, or so
    many units in the last place as it allows."""
    floats = [d for d in found if d.category >= FLOATING]
    if case.max_ulp is not None and floats:
        widest = max(map(dtypes.finfo, floats), key=lambda info: info.eps)
        return case.max_ulp * widest.eps, case.max_ulp * widest.tiny * widest.eps
    known = [_HALF_TOLERANCES.get(d) or TOLERANCES.get(d, (0.0, 0.0)) for d in found]
    rtol, atol = (max(values) for values in zip(*known))
    if not rtol:
        return 0.0, 0.0
    if rtol == TOLERANCES[dtypes.float64][0]:
        return case.rtol, case.atol
    wider = max(1.0, case.rtol / 1e-7, case.atol / 1e-7)
    return rtol * wider, atol * wider


def _widened(d: dtype, op: Op) -> Callable[[np.ndarray], np.ndarray]:
    """How the reference gets its arrays: in double precision wherever the op computes with floating values."""
    integers = op.rule is not None and d.category < FLOATING <= op.rule.compute(d).category

    def widen(array: np.ndarray) -> np.ndarray:
        category = dtypes.of_numpy(array.dtype).category
        if category == COMPLEX:
            return array.astype(np.complex128)
        if category == FLOATING or (integers and array.dtype == d.numpy):
            return array.astype(np.float64)
        return array

    return widen


def _quiet(function: Callable, sample: Sample) -> list:
    """The results of a reference; it may overflow and divide by zero."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = function(*sample.arguments, **sample.keywords)
    return flat(result)


def expected_results(case: Case, op: Op, sample: Sample, d: dtype) -> list:
    """What the reference says of a sample."""
    return _quiet(case.reference, sample.map(_widened(d, op)) if case.wide else sample)


def expected_dtypes(op: Op, sample: Sample, count: int) -> list[dtype | None]:
    """The dtypes that the op's rule gives its results; None where the rule does not say."""
    asked = sample.keywords.get("dtype")
    if asked is not None:
        return [dtypes.as_dtype(asked)] * count
    if op.rule is None:
        return [None] * count
    values = dict(zip((p.name for p in op.parameters), sample.arguments)) | sample.keywords
    kinds = {p.name: p.kind for p in op.parameters}
    found: list = []
    for name, value in values.items():
        kind = kinds.get(name)
        if kind in ("tensor", "optional", "tensors"):
            several = value if isinstance(value, list | tuple) else [value]
            found += [v for v in several if isinstance(v, np.ndarray) or (v is not None and op.rule.promotes)]
    if not any(isinstance(v, np.ndarray) for v in found):
        return [None] * count
    if op.rule.follows:
        found = found[:1]
    common = result_type(*(to_tensor(v) if isinstance(v, np.ndarray) else v for v in found))
    results = [rule(common) for rule in op.rule.results]
    return [*results] if len(results) == count else [results[0]] * count


def _compare(actual, expected, rtol: float, atol: float) -> None:
    """Compare one result with what the reference gave, which may be wider."""
    if not isinstance(actual, Tensor):
        if isinstance(actual, int | float | complex) and not isinstance(actual, bool):
            compare_values(np.asarray(actual), np.asarray(expected), max(rtol, 1e-6), atol, name="Scalar")
        else:
            assert actual == expected, f"{actual!r} where {expected!r} was expected"
        return
    found, wanted = host(actual), np.asarray(expected)
    if dtypes.of_numpy(found.dtype).category == BOOL:
        assert wanted.dtype == np.bool_ or np.isin(wanted, (0, 1)).all(), f"a bool where {wanted} was expected"
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the imaginary part of a reference that stayed complex
        wanted = wanted.astype(found.dtype)
    compare_values(found, wanted, rtol, atol)


def compare_results(case: Case, actual: list, expected: list, d: dtype) -> None:
    assert len(actual) == len(expected), f"{len(actual)} results where the reference gives {len(expected)}"
    for i, (a, e) in enumerate(zip(actual, expected)):
        with about(f"result {i}"):
            _compare(a, e, *tolerance(case, d, a.dispatch_key.dtype if isinstance(a, Tensor) else dtypes.float32))


def compare_calls(actual: list, expected: list, case: Case, d: dtype) -> None:
    """Two calls of the op itself agree, in dtype too."""
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected):
        if isinstance(a, Tensor):
            assert a.dispatch_key is e.dispatch_key, f"{a.dispatch_key} where {e.dispatch_key} was expected"
            compare_values(host(a), host(e), *tolerance(case, d, a.dispatch_key.dtype))
        else:
            assert a == e or a != a, f"{a!r} where {e!r} was expected"
