"""The properties of every op's values and gradients, each written once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from corefw import dtypes
from corefw.dispatch.op import Op
from corefw.dtypes import dtype
from corefw.graph.grad_mode import no_recording
from corefw.shapes import broadcast, same_shape
from corefw.tensor import Tensor
from corefw.testing.case import Case
from corefw.testing.checks import (
    about,
    call,
    case_dtypes,
    flat,
    given,
    property_of,
    representative,
    tensors_in,
)
from corefw.testing.comparison import host
from corefw.testing.differences import ATOL, RTOL, check_gradient
from corefw.testing.expectations import compare_calls, compare_results, expected_dtypes, expected_results
from corefw.testing.samples import LAYOUTS, Sample, of_foreign_bytes, samples, special_samples, to_tensor
from corefw.testing.targets import Target


@property_of(dtypes=case_dtypes)
def forward(case: Case, op: Op, target: Target) -> None:
    """Values, dtype, shape and device of every sample for every dtype; the inputs are left as they were."""
    for d in case_dtypes(case, op):
        for sample in samples(case, d):
            with about(d.name, sample):
                tensors = given(op.function, sample, target)
                results = flat(op.function(*tensors.arguments, **tensors.keywords))
                wanted = expected_dtypes(op, sample, len(results))
                for result, result_dtype in zip(results, wanted):
                    if isinstance(result, Tensor) and sample.arrays():
                        assert result.dispatch_key.device.type == target.device, (
                            f"the result is on {result.dispatch_key.device}"
                        )
                        assert result_dtype in (None, result.dispatch_key.dtype), (
                            f"{result.dispatch_key.dtype} where {result_dtype} was expected"
                        )
                        stored = result.dispatch_key.runtime.download(result.array).dtype
                        assert stored == result.dispatch_key.dtype.numpy, (
                            f"the array holds {stored}, the tensor says {result.dispatch_key.dtype}"
                        )
                compare_results(case, results, expected_results(case, op, sample, d), d)
                for tensor, array in zip(tensors_in(tensors), sample.arrays(), strict=True):
                    assert host(tensor).tobytes() == array.tobytes(), "an input was changed"


def _values(layout: Callable, array: np.ndarray) -> np.ndarray:
    """The elements of an array laid out otherwise."""
    return host(layout(array, "cpu"))


@property_of(dtypes=case_dtypes)
def layouts(case: Case, op: Op, target: Target) -> None:
    """Strided, transposed and expanded inputs give what contiguous ones of the same values give."""
    d = representative(case, op)
    for sample in samples(case, d):
        contiguous = call(op.function, sample, target)
        for name, layout in LAYOUTS.items():
            if name == "expanded" and case.make is not None:
                continue  # inputs with a property (sorted, positive definite) would lose it
            with about(d.name, name, sample):
                expected = contiguous
                if name == "expanded":  # of which the first row alone is the array's
                    expected = call(op.function, sample.map(partial(_values, layout)), target)
                compare_calls(call(op.function, sample, target, layout), expected, case, d)


def _with_bools(case: Case, op: Op) -> Iterator[tuple[dtype, Sample]]:
    """The calls of a row that have arrays of bools."""
    for d in {representative(case, op), dtypes.bool_}.intersection(case_dtypes(case, op)):
        for sample in samples(case, d):
            if any(array.dtype.kind == "b" for array in sample.arrays()):
                yield d, sample


def _takes_bools(case: Case, op: Op) -> bool:
    if case.make is None:
        return dtypes.bool_ in case_dtypes(case, op)
    try:
        return next(_with_bools(case, op), None) is not None
    except Exception:  # the row is at fault, as all its checks will say
        return False


@property_of(_takes_bools)
def foreign_bytes(case: Case, op: Op, target: Target) -> None:
    """Every byte other than 0 is True."""
    for d, sample in _with_bools(case, op):
        with about(d.name, sample):
            plain = call(op.function, sample, target)
            compare_calls(call(op.function, sample, target, of_foreign_bytes), plain, case, d)


def _special_dtypes(case: Case, op: Op) -> list[dtype]:
    return [d for d in (dtypes.float32, dtypes.float64) if d in case_dtypes(case, op)]


def _takes_special_values(case: Case, op: Op) -> bool:
    """Whether the elements of a row's calls may be anything; made ones, where the op is elementwise."""
    return case.special and (case.make is None or op.shape in (broadcast, same_shape))


@property_of(_takes_special_values, dtypes=_special_dtypes)
def special_values(case: Case, op: Op, target: Target) -> None:
    """NaN, infinities and zeros of both signs give what the reference says."""
    for d in _special_dtypes(case, op):
        for sample in special_samples(case, d):
            with about(d.name, sample):
                compare_results(case, call(op.function, sample, target), expected_results(case, op, sample, d), d)


@property_of(
    lambda case, op: op.rule is not None and case.meta and (op.shape is not None or op.view or not op.primitive)
)
def shape_rule(case: Case, op: Op, target: Target) -> None:
    """The meta device says shape and dtype of the real result."""
    d = representative(case, op)
    for sample in samples(case, d):
        with about(d.name, sample):
            real = call(op.function, sample, target)
            meta = call(op.function, sample, Target("corefw", "meta"))
            assert len(real) == len(meta)
            for r, m in zip(real, meta):
                if isinstance(r, Tensor):
                    assert tuple(r.array.shape) == tuple(m.array.shape), (
                        f"shape {m.array.shape} on meta, {r.array.shape} really"
                    )
                    assert r.dispatch_key.dtype is m.dispatch_key.dtype, (
                        f"dtype {m.dispatch_key.dtype} on meta, {r.dispatch_key.dtype} really"
                    )
                    assert m.dispatch_key.device.type == "meta", (
                        f"the result of meta inputs is on {m.dispatch_key.device}"
                    )


@property_of(
    lambda case, op: op.rule is not None and not op.primitive and not op.view,
    kernels=True,
    section="fused kernels",
    dtypes=lambda case, op: [d for d in case_dtypes(case, op) if d.itemsize != 2],
)
def kernel_equals_body(case: Case, op: Op, target: Target) -> None:
    """A composite's kernel computes what its body says."""
    for d in case_dtypes(case, op):
        if not target.has_kernel(op, d) or d.itemsize == 2:
            continue
        for sample in samples(case, d):
            with about(d.name, sample):
                with no_recording():
                    body = call(op.body, sample, target)
                compare_calls(call(op.function, sample, target), body, case, d)


def _differentiated(case: Case, op: Op) -> list[dtype]:
    return [d for d in (dtypes.float64, dtypes.complex128) if d in case_dtypes(case, op)]


def _of_arrays(op: Op, sample: Sample, positions: list[int], target: Target) -> Callable[..., list[Tensor]]:
    """The op as a function of the arrays at some positions; the sample gives the others."""

    def function(*tensors: Tensor) -> list[Tensor]:
        given = dict(zip(positions, tensors))
        picked = sample.map_numbered(lambda i, array: given[i] if i in given else to_tensor(array, target.device))
        return flat(op.function(*picked.arguments, **picked.keywords))

    return function


def _check_gradients(case: Case, op: Op, target: Target, second: bool) -> None:
    for d in _differentiated(case, op):
        for sample in samples(case, d):
            floating = [i for i, a in enumerate(sample.arrays()) if a.dtype.kind in "fc" and i not in case.constant]
            if not floating:
                continue

            arrays = [sample.arrays()[i] for i in floating]
            function = _of_arrays(op, sample, floating, target)
            scale = max(1.0, case.rtol / 1e-7)
            with about(d.name, sample):
                check_gradient(function, arrays, target.device, second=second, rtol=RTOL * scale, atol=ATOL * scale)


def has_gradient(case: Case, op: Op) -> bool:
    return case.gradient and bool(_differentiated(case, op))


@property_of(lambda case, op: has_gradient(case, op) and not case.second, section="gradients", dtypes=_differentiated)
def gradient(case: Case, op: Op, target: Target) -> None:
    """The gradient is the numerical one, in double precision, real and complex."""
    _check_gradients(case, op, target, second=False)


@property_of(lambda case, op: has_gradient(case, op) and case.second, section="gradients", dtypes=_differentiated)
def second_gradient(case: Case, op: Op, target: Target) -> None:
    """The gradient, and the gradient of the gradient, are the numerical ones."""
    _check_gradients(case, op, target, second=True)
