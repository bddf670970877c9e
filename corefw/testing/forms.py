"""The properties of an op's other forms: in place, ``out=``, method, mixed dtypes; and whose memory results are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.dispatch.op import Op
from corefw.dispatch.out import accumulates
from corefw.dtypes import BOOL, dtype
from corefw.errors import GradientError, ReadOnlyError, ShapeError
from corefw.graph.views import node_of
from corefw.tensor import Tensor
from corefw.testing.case import Case
from corefw.testing.checks import (
    about,
    call,
    case_dtypes,
    flat,
    given,
    property_of,
    refuses,
    representative,
    settle,
    tensors_in,
)
from corefw.testing.comparison import compare_values, host
from corefw.testing.differences import differentiable, gradients
from corefw.testing.expectations import compare_calls, tolerance
from corefw.testing.samples import LAYOUTS, Sample, require_gradients, samples, to_tensor
from corefw.testing.targets import Target


def _writable(op: Op, sample: Sample, target: Target) -> bool:
    """Whether the op's result fits into its first argument."""
    first = sample.arguments[0] if sample.arguments else None
    if not isinstance(first, np.ndarray):
        return False
    (result,) = call(op.function, sample, target)[:1]
    fits = tuple(result.array.shape) == first.shape
    return fits and dtypes.can_cast(result.dispatch_key.dtype, dtypes.of_numpy(first.dtype))


@property_of(lambda case, op: op.inplace_function is not None and not op.view)
def inplace(case: Case, op: Op, target: Target) -> None:
    """The in-place form leaves the same values in its first argument, returns it, and counts the change."""
    assert op.inplace_function is not None
    tested = 0
    wanted = [d for d in (dtypes.float32, dtypes.int64, dtypes.bool_, dtypes.float16) if d in case_dtypes(case, op)]
    for d in wanted or [representative(case, op)]:
        for sample in samples(case, d):
            if not _writable(op, sample, target):
                continue
            for layout in (to_tensor, LAYOUTS["strided"]):
                with about(d.name, layout.__name__, sample):
                    expected = host(call(op.function, sample, target)[0]).astype(sample.arguments[0].dtype)
                    tensors = sample.map(partial(layout, on=target.device))
                    first = tensors.arguments[0]
                    version, array = first.version[0], first.array
                    result = op.inplace_function(*tensors.arguments, **tensors.keywords)
                    assert result is first, "the in-place form does not return its first argument"
                    assert first.array is array, "the in-place form changed the memory of its first argument"
                    assert first.version[0] > version, "the version was not counted up"
                    compare_values(host(first), expected, *tolerance(case, d))
                    tested += 1
    assert tested or not wanted, "no sample of the row has a result that fits into the first argument"


@property_of(lambda case, op: op.inplace_function is not None and not op.view, section="bad input")
def inplace_wrong_shape(case: Case, op: Op, target: Target) -> None:
    """A result that is larger than the first argument is refused."""
    d = representative(case, op)
    for sample in samples(case, d):
        arrays = sample.arrays()
        if len(arrays) < 2 or not arrays[0].ndim or not arrays[0].size or not _writable(op, sample, target):
            continue
        smaller = sample.with_array(0, np.asarray(arrays[0][0]))
        try:
            (result,) = call(op.function, smaller, target)
            settle()
        except (RuntimeError, IndexError):  # the latter for a dimension that the smaller argument lacks
            continue
        if tuple(result.array.shape) != arrays[0].shape[1:]:
            with about(d.name, smaller):
                refuses(RuntimeError, "a result larger than its target", call, op.inplace_function, smaller, target)


def _gradients_of(function: Callable, sample: Sample, target: Target, between: Callable | None = None) -> list:
    """The gradients of a call on clones of leaves, as arrays; `between` is first given the clones and the results."""
    tensors = sample.map(partial(to_tensor, on=target.device))
    inputs = list(require_gradients((*tensors.arguments, *tensors.keywords.values())))
    clones: dict[int, Tensor] = {id(leaf): ops.clone(leaf) for leaf in inputs}

    def cloned(value):
        return [cloned(v) for v in value] if isinstance(value, list) else clones.get(id(value), value)

    results = flat(function(*map(cloned, tensors.arguments), **{k: cloned(v) for k, v in tensors.keywords.items()}))
    results = [r for r in differentiable(results) if node_of(r) is not None]
    if between is not None:
        between(list(clones.values()), results)
    weights = [np.arange(1.0, 1.0 + host(r).size).reshape(host(r).shape).astype(host(r).dtype) for r in results]
    found = gradients(results, inputs, [to_tensor(w, target.device) for w in weights])
    return [None if g is None else host(g) for g in found]


def _recorded(case: Case, op: Op) -> list[dtype]:
    """The widest dtype of a row whose gradient is known."""
    known = case_dtypes(case, op) if case.gradient else []
    widest_first = (dtypes.float64, dtypes.complex128, dtypes.float32, dtypes.complex64)
    return [d for d in widest_first if d in known][:1]


def _compare_gradients(actual: list, expected: list, case: Case, d: dtype) -> None:
    for a, e in zip(actual, expected, strict=True):
        if a is not None or e is not None:
            known = a if e is None else e
            zeros = np.zeros_like(known)
            compare_values(zeros if a is None else a, zeros if e is None else e, *tolerance(case, d))


@property_of(
    lambda case, op: op.inplace_function is not None and not op.view and bool(_recorded(case, op)), section="gradients"
)
def inplace_gradient(case: Case, op: Op, target: Target) -> None:
    """The gradient through the in-place form is that of the op."""
    (d,) = _recorded(case, op)
    for sample in samples(case, d):
        if _writable(op, sample, target) and sample.arrays()[0].size:
            with about(sample):
                assert op.inplace_function is not None
                in_place = _gradients_of(op.inplace_function, sample, target)
                _compare_gradients(in_place, _gradients_of(op.function, sample, target), case, d)


@property_of(lambda case, op: bool(_recorded(case, op)), section="gradients")
def saved_values(case: Case, op: Op, target: Target) -> None:
    """After a change in place of an input or a result, the gradient is refused or what it was."""
    (d,) = _recorded(case, op)
    for sample in samples(case, d):
        expected = _gradients_of(op.function, sample, target)

        def change_inputs(inputs, results):
            for tensor in inputs:
                tensor.add_(1.0)

        def change_results(inputs, results):
            for tensor in results:
                tensor.add_(1.0)

        for change in (change_inputs, change_results):
            with about(change.__name__, sample):
                try:
                    actual = _gradients_of(op.function, sample, target, change)
                except (GradientError, ShapeError):
                    continue  # refused, as is a change of memory that several elements share
                _compare_gradients(actual, expected, case, d)


_MIXED = (
    ("float32", "float64"),
    ("float64", "float32"),
    ("int32", "float32"),
    ("int64", "uint8"),
    ("float16", "float32"),
)


def _mixes(case: Case, op: Op) -> bool:
    """Whether the row's calls start with several tensors that take part in promotion."""
    operands = [p for p in op.parameters if p.kind in ("tensor", "optional")]
    return op.rule is not None and case.make is None and len(operands) > 1 and all(len(s) > 1 for s in case.shapes)


def _takes_mixtures(op: Op) -> bool:
    return op.rule is not None and (op.rule.promotes or op.rule.follows) and not op.rule.agreeing


def _mixtures(case: Case, op: Op) -> Iterator[tuple[dtype, dtype, Sample]]:
    """Calls with operands of different dtypes: those of the first one and of all together, and the call."""
    known = {d.name for d in case_dtypes(case, op)}
    for pair in _MIXED:
        first, second = map(dtypes.of_name, pair)
        common = dtypes.promote_types(first, second)
        if not {first.name, second.name, common.name} <= known:
            continue
        sample = max(samples(case, second if second.category < first.category else first), key=_smallest)
        if _smallest(sample) == 0 or not all(a.ndim for a in sample.arrays()):
            continue
        arrays = sample.arrays()
        mixed = sample.with_array(0, arrays[0].astype(first.numpy)).with_array(1, arrays[1].astype(second.numpy))
        for position in range(2, len(arrays)):
            mixed = mixed.with_array(position, arrays[position].astype(common.numpy))
        yield first, common, mixed


@property_of(lambda case, op: _mixes(case, op) and _takes_mixtures(op))
def mixed_dtypes(case: Case, op: Op, target: Target) -> None:
    """Operands of different dtypes give what operands of their common dtype, or of the first one's, give."""
    assert op.rule is not None
    for first, common, mixed in _mixtures(case, op):
        with about(mixed):
            wanted = first if op.rule.follows else common
            same = mixed.map(lambda array: array.astype(wanted.numpy))  # noqa: B023
            compare_calls(call(op.function, mixed, target), call(op.function, same, target), case, wanted)


@property_of(
    # an internal composite is what its body is
    lambda case, op: _mixes(case, op) and not _takes_mixtures(op) and bool(op.primitive or op.public),
    section="bad input",
)
def refused_mixtures(case: Case, op: Op, target: Target) -> None:
    """Operands of different dtypes are refused where they are not promoted."""
    for _, _, mixed in _mixtures(case, op):
        with about(mixed):
            refuses(RuntimeError, "operands of different dtypes", call, op.function, mixed, target)


def _smallest(sample: Sample) -> int:
    return min(array.size for array in sample.arrays())


@property_of(lambda case, op: op.rule is not None and bool(op.view or op.primitive or op.gradients))
def memory(case: Case, op: Op, target: Target) -> None:
    """The result of a view is the input's memory; other results are memory of their own. (Of what else is composed, the
    body decides.)"""
    d = representative(case, op)
    for sample in samples(case, d):
        tensors = given(op.function, sample, target)
        for result in flat(op.function(*tensors.arguments, **tensors.keywords)):
            if not isinstance(result, Tensor) or not host(result).size:
                continue
            with about(d.name, sample):
                _check_memory(op, result, tensors_in(tensors))


def _check_memory(op: Op, result: Tensor, inputs: list[Tensor]) -> None:
    """Write into the result and see which inputs change."""
    runtime = result.dispatch_key.runtime
    before = [host(tensor).copy() for tensor in inputs]
    values = host(result)
    changed = ~values if values.dtype == np.bool_ else values + values.dtype.type(1)
    kept = runtime.clone(result.array)
    try:
        runtime.copy(result.array, runtime.upload(np.where(changed == values, 0, changed).astype(values.dtype), None))
    except ValueError:
        assert op.view, "the result cannot be written to"
        return  # a read-only view
    seen = [not np.array_equal(b, host(t), equal_nan=b.dtype.kind in "fc") for b, t in zip(before, inputs)]
    runtime.copy(result.array, kept)
    if op.view:
        assert seen[0], "the result of a view does not share its input's memory"
        assert result.version is inputs[0].version, "a view does not share its base's version"
    else:
        assert not any(seen), "the result is an input's memory"


@property_of(lambda case, op: op.takes_out)
def out(case: Case, op: Op, target: Target) -> None:
    """``out=`` receives the values, whatever it was; it is refused for recorded gradients and, where the op does not
    compute in its dtype, for lower categories."""
    d = representative(case, op)
    for sample in samples(case, d):
        with about(d.name, sample):
            expected = call(op.function, sample, target)
            for layout in (to_tensor, LAYOUTS["strided"]):
                buffers = _buffers(expected, target, layout)
                versions = [buffer.version[0] for buffer in buffers]
                _into(op, sample, target, buffers)
                compare_calls(buffers, expected, case, d)
                assert all(b.version[0] > v for b, v in zip(buffers, versions)), "the version was not counted up"
            others = _buffers(expected, target, shape=lambda shape: (*shape, 2))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                _into(op, sample, target, others)
            compare_calls(others, expected, case, d)
            resized = any("resized" in str(w.message) for w in caught)
            assert resized == any(host(e).size for e in expected), "resizing an out tensor with elements must warn"
            if any(e.dispatch_key.dtype.category > BOOL for e in expected) and not accumulates(op):
                lower = _buffers(expected, target, dtype=dtypes.bool_)
                refuses(RuntimeError, "out= of a lower category", _into, op, sample, target, lower)
            recorded = _buffers(expected, target)
            if list(require_gradients(recorded)):
                refuses(RuntimeError, "out= that requires a gradient", _into, op, sample, target, recorded)


def _buffers(
    expected: list[Tensor], target: Target, layout=to_tensor, shape=tuple, dtype: dtype | None = None
) -> list[Tensor]:
    """Tensors of zeros to write results into."""
    return [
        layout(np.zeros(shape(e.array.shape), (dtype or e.dispatch_key.dtype).numpy), target.device) for e in expected
    ]


def _into(op: Op, sample: Sample, target: Target, buffers: list[Tensor]) -> None:
    written = Sample(sample.arguments, {**sample.keywords, "out": tuple(buffers) if len(buffers) > 1 else buffers[0]})
    results = call(op.function, written, target)
    assert all(r is b for r, b in zip(results, buffers, strict=True)), "out= is not what is returned"


def _lock(tensor: Tensor) -> bool:
    """Make the memory of a tensor read-only, where there is such memory; whether it is."""
    if isinstance(tensor.array, np.ndarray):
        tensor.array.flags.writeable = False
    return not tensor.dispatch_key.runtime.is_writable(tensor.array)


def _refuses_read_only(targets: Sequence[Tensor], function: Callable, *arguments, **keywords) -> None:
    before = [host(t).copy() for t in targets]
    try:
        function(*arguments, **keywords)
    except ReadOnlyError as error:
        assert "clone()" in str(error)
    else:
        raise AssertionError("a target in read-only memory is not refused")
    finally:
        assert all(b.tobytes() == host(t).tobytes() for b, t in zip(before, targets)), "a refused target is changed"


@property_of(lambda case, op: op.inplace_function is not None and not op.view, section="bad input")
def inplace_read_only(case: Case, op: Op, target: Target) -> None:
    """A first argument in read-only memory is refused, and left as it is."""
    assert op.inplace_function is not None
    wanted = [d for d in (dtypes.float32, dtypes.int64, dtypes.float16) if d in case_dtypes(case, op)]
    for d in wanted or [representative(case, op)]:
        for sample in samples(case, d):
            if not all(array.size for array in sample.arrays()) or not _writable(op, sample, target):
                continue  # nothing may be what is to be written
            for layout in (to_tensor, LAYOUTS["strided"]):
                with about(d.name, layout.__name__, sample):
                    tensors = sample.map(partial(layout, on=target.device))
                    if _lock(tensors.arguments[0]):
                        first = tensors.arguments[:1]
                        _refuses_read_only(first, op.inplace_function, *tensors.arguments, **tensors.keywords)


@property_of(lambda case, op: op.takes_out, section="bad input")
def out_read_only(case: Case, op: Op, target: Target) -> None:
    """Read-only memory is refused as ``out=``, before any of several is written to."""
    d = representative(case, op)
    for sample in samples(case, d):
        with about(d.name, sample):
            expected = call(op.function, sample, target)
            for i, result in enumerate(expected):
                buffers = _buffers(expected, target)
                if host(result).size and _lock(buffers[i]):
                    _refuses_read_only(buffers, _into, op, sample, target, buffers)


@property_of(lambda case, op: op.name in op.public.get("Tensor", ()) and op.parameters[0].name == "input")
def method(case: Case, op: Op, target: Target) -> None:
    """The method of Tensor does what the function does."""
    d = representative(case, op)
    assert hasattr(Tensor, op.name), f"Tensor has no method {op.name}"
    for sample in samples(case, d):
        if not sample.arguments or not isinstance(sample.arguments[0], np.ndarray):
            continue
        with about(d.name, sample):
            as_method = call(lambda input, *rest, **options: getattr(input, op.name)(*rest, **options), sample, target)
            compare_calls(as_method, call(op.function, sample, target), case, d)
