"""assert_close: whether two results are equal within the tolerance of their dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from corefw import dtypes
from corefw.dtypes import dtype
from corefw.tensor import Tensor
from corefw.tensor_api import tensor
from corefw.tracebacks import warn

#: (relative, absolute) tolerance of each floating dtype, as in torch.testing.assert_close; other dtypes compare exactly
TOLERANCES: dict[dtype, tuple[float, float]] = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}


#: those of torch.testing.assert_allclose
FORMER_TOLERANCES: dict[dtype, tuple[float, float]] = {
    dtypes.float16: (1e-3, 1e-3),
    dtypes.float32: (1e-4, 1e-5),
    dtypes.float64: (1e-5, 1e-8),
}


def host(value) -> np.ndarray:
    """A tensor's content, or anything array-like, as a NumPy array."""
    if isinstance(value, Tensor):
        return value.dispatch_key.runtime.download(value.array)
    return np.asarray(value)


def host_of(value: Tensor, d: dtype) -> np.ndarray:
    """A tensor's content; AssertionError if its memory is of another dtype than `d`."""
    content = host(value)
    assert content.dtype == d.numpy, f"the memory is {content.dtype}, {d.name} was asked for"
    return content


class Measured:
    """A with-block that notes the greatest error of what is compared in it.

    Attributes: ``ulp`` in units of the last place of the expected elements; those below a sixteenth of the greatest,
    which are differences of others, count as such a sixteenth.
    """

    _open: ClassVar[list[Measured]] = []

    def __init__(self) -> None:
        self.ulp = 0.0

    def __enter__(self) -> Measured:
        self._open.append(self)
        return self

    def __exit__(self, *exception) -> None:
        self._open.remove(self)

    @classmethod
    def note(cls, difference: np.ndarray, expected: np.ndarray, info) -> None:
        """Tell the open blocks of an error in a floating dtype, whose `finfo` is given."""
        if not cls._open:
            return
        magnitude = np.abs(expected)
        known = np.isfinite(difference) & np.isfinite(magnitude)
        least = max(info.tiny, magnitude[known].max(initial=0.0) / 16)
        exponent = np.frexp(np.maximum(magnitude[known], least))[1] - 1
        found = (difference[known] / np.ldexp(info.eps, exponent)).max(initial=0.0)
        for block in cls._open:
            block.ulp = max(block.ulp, float(np.nan_to_num(found)))  # JSON has no infinity


def _wide(array: np.ndarray) -> np.ndarray:
    """Floating values in double precision; other values as they are."""
    category = dtypes.of_numpy(array.dtype).category
    if category == dtypes.COMPLEX:
        return array.astype(np.complex128)
    return array.astype(np.float64) if category == dtypes.FLOATING else array


def compare_values(
    actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float, equal_nan: bool = True, name: str = "Tensor"
) -> None:
    """Raise AssertionError, with the worst element, unless ``|actual - expected| <= atol + rtol * |expected|``."""
    if actual.shape != expected.shape:
        raise AssertionError(f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}.")
    a, b = np.asarray(_wide(actual)), np.asarray(_wide(expected))
    with np.errstate(all="ignore"):
        if a.dtype.kind == b.dtype.kind and a.dtype.kind in "biu":
            difference, close = (a != b).astype(np.float64), a == b
        else:
            difference = np.abs(a - b)
            found = dtypes.of_numpy(actual.dtype)
            if found.category >= dtypes.FLOATING:
                Measured.note(difference, b, dtypes.finfo(found))
            close = (a == b) | (difference <= atol + rtol * np.abs(b)) & np.isfinite(b)
            if equal_nan:
                close |= np.isnan(a) & np.isnan(b)
    if close.all():
        return
    wrong = ~close
    worst = np.unravel_index(
        np.argmax(np.where(wrong, np.nan_to_num(difference, nan=np.inf, posinf=np.inf), -1.0)), a.shape
    )
    position = tuple(int(i) for i in worst)
    raise AssertionError(
        f"{name}-likes are not close!\n\nMismatched elements: {int(wrong.sum())} / {wrong.size}\n"
        f"Greatest difference at index {position}: {actual[worst]} where {expected[worst]} was expected "
        f"(allowed: relative {rtol:g}, absolute {atol:g})"
    )


def _tolerance(rtol: float | None, atol: float | None, *found: dtype) -> tuple[float, float]:
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be specified or both be unspecified")
    if rtol is not None and atol is not None:
        return rtol, atol
    known = [TOLERANCES.get(d, (0.0, 0.0)) for d in found]
    return max(r for r, _ in known), max(a for _, a in known)


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
    check_stride: bool = False, msg: str | Any = None,
) -> None:  # fmt: skip
    """Assert that `actual` and `expected` are equal within a tolerance: ``|a - e| <= atol + rtol * |e|``.

    Args:
        actual, expected: tensors, arrays, numbers, or sequences and mappings of them.
        allow_subclasses: whether tensors of different classes may be compared.
        rtol, atol: tolerances, both or neither; the default follows the dtype, and integers must be equal.
        equal_nan: whether NaN equals NaN.
        check_device, check_dtype, check_stride: whether these must agree too.
        check_layout: accepted for compatibility; every tensor is strided.
        msg: the error's text, or a function of the text that would be raised.

    Raises AssertionError if they differ, TypeError if they cannot be compared.

    >>> import corefw as torch
    >>> torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-7]))
    """
    options = (allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_stride)
    try:
        _assert_close(actual, expected, *options)
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """`assert_close` with wider tolerances, of any dtypes and of anything that is like an array; deprecated.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     assert_allclose([1.0, 2.0], [1.0, 2.00001])
    """
    warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please "
        "use `torch.testing.assert_close()` instead.",
        FutureWarning,
    )
    actual = actual if isinstance(actual, Tensor) else tensor(actual)
    expected = expected if isinstance(expected, Tensor) else tensor(expected, dtype=actual.dispatch_key.dtype)
    if rtol is None and atol is None:
        tolerances = [FORMER_TOLERANCES.get(t.dispatch_key.dtype, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = (max(pair) for pair in zip(*tolerances, strict=True))
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def _assert_close(
    actual, expected, allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_stride
) -> None:
    options = (allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_stride)
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            raise AssertionError(f"The keys of the mappings do not match: {sorted(actual)} != {sorted(expected)}")
        for key in actual:
            _named(f"[{key!r}]", actual[key], expected[key], options)
        return
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise AssertionError(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for i, (a, e) in enumerate(zip(actual, expected)):
            _named(f"[{i}]", a, e, options)
        return
    if actual is None and expected is None:
        return
    both_tensors = isinstance(actual, Tensor) and isinstance(expected, Tensor)
    if isinstance(actual, Tensor) != isinstance(expected, Tensor) or (
        not allow_subclasses and type(actual) is not type(expected)
    ):
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")
    a, e = host(actual), host(expected)
    a_dtype, e_dtype = dtypes.of_numpy(a.dtype), dtypes.of_numpy(e.dtype)
    if a.shape != e.shape:
        raise AssertionError(f"The values for attribute 'shape' do not match: {a.shape} != {e.shape}.")
    if both_tensors:
        if check_device and actual.dispatch_key.device is not expected.dispatch_key.device:
            raise AssertionError(
                f"The values for attribute 'device' do not match: {actual.dispatch_key.device} != "
                f"{expected.dispatch_key.device}."
            )
        if check_stride and actual.stride() != expected.stride():
            raise AssertionError(
                f"The values for attribute 'stride()' do not match: {actual.stride()} != {expected.stride()}."
            )
    if check_dtype and a_dtype is not e_dtype:
        raise AssertionError(f"The values for attribute 'dtype' do not match: {a_dtype} != {e_dtype}.")
    found_rtol, found_atol = _tolerance(rtol, atol, a_dtype, e_dtype)
    if a_dtype is not e_dtype and found_rtol:
        a, e = a.astype(np.result_type(_wide(a), _wide(e))), e.astype(np.result_type(_wide(a), _wide(e)))
    name = "Tensor" if both_tensors else "Scalar" if a.ndim == 0 else "Array"
    compare_values(a, e, found_rtol, found_atol, equal_nan, name)


def _is_sequence(value) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _named(where: str, actual, expected, options) -> None:
    try:
        _assert_close(actual, expected, *options)
    except AssertionError as error:
        raise AssertionError(f"{error}\n\nThe failure occurred for item {where}") from None
