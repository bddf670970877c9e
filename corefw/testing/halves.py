"""The properties of half types: how far rounding may lead a gradient, and numbers that are not rounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from corefw import dtypes
from corefw.dispatch.op import Op
from corefw.dispatch.registry import registry
from corefw.dtypes import dtype
from corefw.shapes import broadcast
from corefw.tensor import Tensor
from corefw.testing.case import Case
from corefw.testing.checks import about, case_dtypes, flat, property_of
from corefw.testing.comparison import host
from corefw.testing.differences import differentiable, gradients
from corefw.testing.samples import Sample, require_gradients, samples, to_tensor
from corefw.testing.targets import Target

HALVES = (dtypes.float16, dtypes.bfloat16)
#: how far a gradient may be from the true one, in units of the last place of its greatest element: a gradient that is
#: computed in several steps is rounded after each
PLACES = 6.0
#: samples of a row that are differentiated: the first of each kind that rows list
_MOST_SAMPLES = 12


def half_dtypes(case: Case, op: Op) -> list[dtype]:
    """The half types of a row whose gradient is known."""
    return [d for d in HALVES if case.gradient and d in case_dtypes(case, op)]


def half_samples(case: Case, d: dtype) -> list[Sample]:
    """The row's first samples of a half type that have elements."""
    found = [s for s in samples(case, d) if any(a.size and a.dtype == d.numpy for a in s.arrays())]
    return found[:_MOST_SAMPLES]


def in_double(sample: Sample, d: dtype) -> Sample:
    """The sample with its elements of dtype `d` in double precision."""
    double = np.complex128 if d.is_complex else np.float64
    return sample.map(lambda array: array.astype(double) if array.dtype == d.numpy else array)


def recorded(op: Op, sample: Sample, on) -> tuple[list[Tensor], list[Tensor]]:
    """(differentiable inputs, differentiable outputs) of a call that is recorded."""
    tensors = sample.map(lambda array: to_tensor(array, on))
    inputs = list(require_gradients((*tensors.arguments, *tensors.keywords.values())))
    return inputs, differentiable(flat(op.function(*tensors.arguments, **tensors.keywords)))


def weights_of(outputs: Sequence[Tensor]) -> list[np.ndarray]:
    """Random gradients of some outputs, in their dtypes."""
    rng = np.random.default_rng(0)
    return [np.asarray(rng.standard_normal(host(out).shape)).astype(out.dispatch_key.dtype.numpy) for out in outputs]


def places(
    d: dtype,
    actual: Sequence[np.ndarray | None],
    exact: Sequence[np.ndarray | None],
    weights: Sequence[np.ndarray],
) -> float:
    """The greatest error among gradients, in units of the last place of the greatest exact element; where all are
    small differences of terms, in those of a sixteenth of the greatest gradient of an output."""
    pairs = [(a, e) for a, e in zip(actual, exact, strict=True) if e is not None]
    finite = [np.isfinite(e) & (np.abs(e) < dtypes.finfo(dtypes.float16).max) for _, e in pairs]
    scales = [np.abs(e[kept]).max(initial=0) for (_, e), kept in zip(pairs, finite)]
    scales += [np.abs(w).astype(np.float64).max(initial=0) / 16 for w in weights]
    unit = dtypes.finfo(d).eps * max(scales, default=1.0)
    errors = [
        (np.abs(e) if a is None else np.abs(a.astype(e.dtype) - e))[kept].max(initial=0)
        for (a, e), kept in zip(pairs, finite)
    ]
    return float(max(errors, default=0) / unit) if unit else 0.0


def narrow_and_exact(case: Case, op: Op, sample: Sample, d: dtype, on: str):
    """(gradients of a narrow type, those of double precision at the same point, the outputs' gradients for both). Where
    a device has no double precision, the CPU has."""
    inputs, outputs = recorded(op, sample, on)
    weights = weights_of(outputs)
    double = dtypes.complex128 if d.is_complex else dtypes.float64
    exact_on = on if double in registry.runtime(on).dtypes else "cpu"
    exact_inputs, exact_outputs = recorded(op, in_double(sample, d), exact_on)
    exact_weights = [
        to_tensor(w.astype(e.dispatch_key.dtype.numpy), exact_on) for w, e in zip(weights, exact_outputs, strict=True)
    ]
    actual = gradients(outputs, inputs, [to_tensor(w, on) for w in weights])
    exact = gradients(exact_outputs, exact_inputs, exact_weights)
    kept = [i for i, x in enumerate(inputs) if x.dispatch_key.dtype is d and i not in case.constant]

    def arrays(found):
        return [None if found[i] is None else host(found[i]) for i in kept]

    return arrays(actual), arrays(exact), weights


@property_of(lambda case, op: bool(half_dtypes(case, op)), section="gradients", dtypes=half_dtypes)
def half_gradient(case: Case, op: Op, target: Target) -> None:
    """The gradient of half types is that of double precision at the same point but for a few roundings."""
    for d in half_dtypes(case, op):
        for sample in half_samples(case, d):
            with about(d.name, sample):
                actual, exact, weights = narrow_and_exact(case, op, sample, d, target.device)
                error = places(d, actual, exact, weights)
                assert error <= PLACES * max(1.0, case.rtol / 1e-7), (
                    f"the gradient is {error:.3g} units of the last place from that in double precision"
                )


#: no half type holds them, and float16 takes them for 0.1, for infinity and for zero
_NUMBERS = (0.1, 70000.0, 2e-8)


def _with_numbers(op: Op, case: Case, d: dtype) -> Iterator[tuple[int, float, list[np.ndarray], dict]]:
    """(position, number to stand there, the call's arrays, its other arguments) for the operands of a row's samples."""
    for sample in half_samples(replace(case, shapes=case.shapes[:1]), d):
        for position in range(len(sample.arguments)):
            for number in _NUMBERS:
                yield position, number, list(sample.arguments), sample.keywords


@property_of(
    lambda case, op: (
        op.rule is not None
        and op.rule.arithmetic
        and op.shape is broadcast
        and case.make is None
        and len(case.shapes[0]) == 2
        and any(d in case_dtypes(case, op) for d in HALVES)
    )
)
def half_numbers(case: Case, op: Op, target: Target) -> None:
    """A number, or a 0-d tensor, beside half types takes part in their computation in float32 as it is."""
    for d in HALVES:
        for position, number, arguments, keywords in _with_numbers(op, case, d):
            with about(d.name, f"{number} as argument {position}"):
                tensors = [to_tensor(array, target.device) for array in arguments]
                wide = [to_tensor(array.astype(np.float32), target.device) for array in arguments]
                expected = op.function(*_replaced(wide, position, number), **keywords)
                with np.errstate(over="ignore"):
                    rounded = host(expected).astype(d.numpy)
                zero_dim = to_tensor(np.asarray(number, np.float32), target.device)
                results = [
                    op.function(*_replaced(tensors, position, value), **keywords) for value in (number, zero_dim)
                ]
                if op.inplace and position:
                    results.append(op.inplace_function(*_replaced(tensors, position, number), **keywords))
                for result in results:
                    assert result.dispatch_key.dtype is d, f"the result is {result.dispatch_key.dtype}"
                    np.testing.assert_array_equal(host(result).astype(np.float32), rounded.astype(np.float32))


def _replaced(values: list, position: int, value) -> list:
    return [*values[:position], value, *values[position + 1 :]]
