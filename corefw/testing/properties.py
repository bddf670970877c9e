"""The properties of every op, each written once: what a Case must satisfy on a Target."""

from __future__ import annotations

import doctest
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

import corefw
from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.dispatch.operands import result_type
from corefw.dispatch.record import no_recording, node_of
from corefw.dispatch.registry import Op, registry
from corefw.dtypes import BOOL, COMPLEX, FLOATING, dtype
from corefw.errors import CorefwError, GradientError, ShapeError
from corefw.tensor import Tensor
from corefw.testing.cases import Case
from corefw.testing.comparison import TOLERANCES, compare_values, host
from corefw.testing.differences import ATOL, RTOL, check_gradient, differentiable, gradients
from corefw.testing.samples import LAYOUTS, Sample, require_gradients, samples, special_samples, to_tensor
from corefw.testing.targets import Target

#: dtypes that a row is tested for where neither it nor the op says which
_UNRULED = ("float32", "float64")
_UNPROMOTED = frozenset({dtypes.uint16, dtypes.uint32, dtypes.uint64})
#: the dtypes of the properties that do not depend on arithmetic, the first that the case has
_REPRESENTATIVE = (dtypes.float32, dtypes.int64, dtypes.bool_, dtypes.complex64)


@dataclass(frozen=True)
class Property:
    """A named check of a case on a target; `applies` says of which cases it makes sense."""

    check: Callable[[Case, Op, Target], None]
    applies: Callable[[Case, Op], bool]
    once: bool  # whether the target does not matter

    @property
    def name(self) -> str:
        """The name by which tests are selected."""
        return self.check.__name__.strip("_")


PROPERTIES: dict[str, Property] = {}


def _property(applies: Callable[[Case, Op], bool] = lambda case, op: True, once: bool = False):
    def decorate(check):
        found = Property(check, applies, once)
        PROPERTIES[found.name] = found
        return check

    return decorate


@dataclass(frozen=True)
class Check:
    """One property of one case on one target; calling it raises AssertionError if it does not hold."""

    property: Property
    case: Case
    target: Target

    def __call__(self) -> None:
        op = registry.ops.get(self.case.op)
        if op is None:
            raise AssertionError(f"the row names the op {self.case.op!r}, which is not declared")
        with self.target.preferred():
            self.property.check(self.case, op, self.target)

    def __str__(self) -> str:
        return f"{self.case.op}-{self.property.name}" + ("" if self.property.once else f"-{self.target}")


def checks(cases: Sequence[Case], targets: Sequence[Target]) -> Iterator[Check]:
    """Every property that applies, for every case and target."""
    for case in cases:
        op = registry.ops.get(case.op)
        for found in PROPERTIES.values():
            if op is None:
                yield Check(found, case, targets[0])  # says that the op is not declared
                break
            if found.applies(case, op):
                concerned = targets[:1] if found.once else [t for t in targets if t.concerns(op)]
                yield from (Check(found, case, target) for target in concerned)


# -- calling ----------------------------------------------------------------------------------------------------------
@contextmanager
def _about(*what) -> Iterator[None]:
    """Say in an error's traceback which dtype, sample or layout it happened for."""
    try:
        yield
    except Exception as error:
        error.add_note("with " + " ".join(map(str, what)))
        raise


def flat(result) -> list:
    """The results of a call as a list: tensors, and whatever else it returned."""
    if isinstance(result, list | tuple) and not hasattr(result, "numel"):
        return [item for part in result for item in flat(part)]
    return [result]


def _values(layout: Callable, array: np.ndarray) -> np.ndarray:
    """The elements of an array laid out otherwise."""
    return host(layout(array, "cpu"))


def _given(function: Callable, sample: Sample, target: Target, layout: Callable[..., Tensor] = to_tensor) -> Sample:
    """A sample's arrays as tensors of a layout; a call without any is told the device."""
    tensors = sample.map(partial(layout, on=target.device))
    if not sample.arrays() and "device" in inspect.signature(function).parameters:
        return Sample(sample.arguments, {**sample.keywords, "device": target.device})
    return tensors


def call(function: Callable, sample: Sample, target: Target, layout: Callable[..., Tensor] = to_tensor) -> list:
    """The results of `function` for a sample, its arrays given as tensors of a layout."""
    tensors = _given(function, sample, target, layout)
    return flat(function(*tensors.arguments, **tensors.keywords))


def _tensors_in(sample: Sample) -> list[Tensor]:
    """The tensors among a call's arguments, in order."""
    values = flat([*sample.arguments, *sample.keywords.values()])
    return [value for value in values if isinstance(value, Tensor)]


def _quiet(function: Callable, sample: Sample) -> list:
    """The results of a reference; it may overflow and divide by zero."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = function(*sample.arguments, **sample.keywords)
    return flat(result)


def case_dtypes(case: Case, op: Op) -> list[dtype]:
    """The dtypes that a case is tested for."""
    if case.dtypes is not None:
        return [dtypes.of_name(name) for name in case.dtypes]
    if op.rule is None:
        return [dtypes.of_name(name) for name in _UNRULED]
    return [d for d in dtypes.ALL if op.rule.accepts(d) and (d not in _UNPROMOTED or not op.rule.promotes)]


def _representative(case: Case, op: Op) -> dtype:
    known = case_dtypes(case, op)
    return next((d for d in _REPRESENTATIVE if d in known), known[0])


#: half types, of which one op may round several times on the way
_HALF_TOLERANCES = {dtypes.float16: (4e-3, 4e-3), dtypes.bfloat16: (3.2e-2, 3.2e-2)}


def tolerance(case: Case, *found: dtype) -> tuple[float, float]:
    """The tolerance of results of these dtypes: the dtype's own, scaled where the row asks for more than usual."""
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


def _compare_all(case: Case, actual: list, expected: list, d: dtype) -> None:
    assert len(actual) == len(expected), f"{len(actual)} results where the reference gives {len(expected)}"
    for i, (a, e) in enumerate(zip(actual, expected)):
        with _about(f"result {i}"):
            _compare(a, e, *tolerance(case, d, a.place.dtype if isinstance(a, Tensor) else dtypes.float32))


def _same(actual: list, expected: list, case: Case, d: dtype) -> None:
    """Two calls of the op itself agree, in dtype too."""
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected):
        if isinstance(a, Tensor):
            assert a.place is e.place, f"{a.place} where {e.place} was expected"
            compare_values(host(a), host(e), *tolerance(case, d, a.place.dtype))
        else:
            assert a == e or a != a, f"{a!r} where {e!r} was expected"


# -- values -----------------------------------------------------------------------------------------------------------
@_property()
def forward(case: Case, op: Op, target: Target) -> None:
    """Values, dtype, shape and device of every sample for every dtype; the inputs are left as they were."""
    for d in case_dtypes(case, op):
        for sample in samples(case, d):
            with _about(d.name, sample):
                tensors = _given(op.function, sample, target)
                results = flat(op.function(*tensors.arguments, **tensors.keywords))
                wanted = expected_dtypes(op, sample, len(results))
                for result, result_dtype in zip(results, wanted):
                    if isinstance(result, Tensor) and sample.arrays():
                        assert result.place.device.type == target.device, f"the result is on {result.place.device}"
                        assert result_dtype in (None, result.place.dtype), (
                            f"{result.place.dtype} where {result_dtype} was expected"
                        )
                        stored = result.place.runtime.download(result.array).dtype
                        assert stored == result.place.dtype.numpy, (
                            f"the array holds {stored}, the tensor says {result.place.dtype}"
                        )
                _compare_all(case, results, expected_results(case, op, sample, d), d)
                for tensor, array in zip(_tensors_in(tensors), sample.arrays(), strict=True):
                    assert host(tensor).tobytes() == array.tobytes(), "an input was changed"


@_property()
def layouts(case: Case, op: Op, target: Target) -> None:
    """Strided, transposed and expanded inputs give what contiguous ones of the same values give."""
    d = _representative(case, op)
    for sample in samples(case, d):
        for name, layout in LAYOUTS.items():
            if name == "expanded" and case.make is not None:
                continue  # inputs with a property (sorted, positive definite) would lose it
            with _about(d.name, name, sample):
                same_values = sample.map(partial(_values, layout))
                _same(call(op.function, sample, target, layout), call(op.function, same_values, target), case, d)


@_property(lambda case, op: case.special and case.make is None)
def special_values(case: Case, op: Op, target: Target) -> None:
    """NaN, infinities and zeros of both signs give what the reference says."""
    for d in (dtypes.float32, dtypes.float64):
        if d not in case_dtypes(case, op):
            continue
        for sample in special_samples(case, d):
            with _about(d.name, sample):
                _compare_all(case, call(op.function, sample, target), expected_results(case, op, sample, d), d)


@_property(lambda case, op: op.rule is not None and case.meta and (op.shape is not None or op.view or not op.primitive))
def shape_rule(case: Case, op: Op, target: Target) -> None:
    """The meta device says shape and dtype of the real result."""
    d = _representative(case, op)
    for sample in samples(case, d):
        with _about(d.name, sample):
            real = call(op.function, sample, target)
            meta = call(op.function, sample, Target("corefw", "meta"))
            assert len(real) == len(meta)
            for r, m in zip(real, meta):
                if isinstance(r, Tensor):
                    assert tuple(r.array.shape) == tuple(m.array.shape), (
                        f"shape {m.array.shape} on meta, {r.array.shape} really"
                    )
                    assert r.place.dtype is m.place.dtype, f"dtype {m.place.dtype} on meta, {r.place.dtype} really"
                    assert m.place.device.type == "meta", f"the result of meta inputs is on {m.place.device}"


@_property(lambda case, op: op.rule is not None and not op.primitive and not op.view)
def kernel_equals_body(case: Case, op: Op, target: Target) -> None:
    """A composite's kernel computes what its body says."""
    for d in case_dtypes(case, op):
        if not target.has_kernel(op, d) or d.itemsize == 2:
            continue
        for sample in samples(case, d):
            with _about(d.name, sample):
                with no_recording():
                    body = call(op.body, sample, target)
                _same(call(op.function, sample, target), body, case, d)


# -- gradients --------------------------------------------------------------------------------------------------------
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
            if not differentiable(call(op.function, sample, target)):
                continue
            floating = [i for i, a in enumerate(sample.arrays()) if a.dtype.kind in "fc" and i not in case.constant]
            if not floating:
                continue

            arrays = [sample.arrays()[i] for i in floating]
            function = _of_arrays(op, sample, floating, target)
            scale = max(1.0, case.rtol / 1e-7)
            with _about(d.name, sample):
                check_gradient(function, arrays, target.device, second=second, rtol=RTOL * scale, atol=ATOL * scale)


def _has_gradient(case: Case, op: Op) -> bool:
    return case.gradient and bool(_differentiated(case, op))


@_property(lambda case, op: _has_gradient(case, op) and not case.second)
def gradient(case: Case, op: Op, target: Target) -> None:
    """The gradient is the numerical one, in double precision, real and complex."""
    _check_gradients(case, op, target, second=False)


@_property(lambda case, op: _has_gradient(case, op) and case.second)
def second_gradient(case: Case, op: Op, target: Target) -> None:
    """The gradient, and the gradient of the gradient, are the numerical ones."""
    _check_gradients(case, op, target, second=True)


# -- forms ------------------------------------------------------------------------------------------------------------
def _writable(op: Op, sample: Sample, target: Target) -> bool:
    """Whether the op's result fits into its first argument."""
    first = sample.arguments[0] if sample.arguments else None
    if not isinstance(first, np.ndarray):
        return False
    (result,) = call(op.function, sample, target)[:1]
    fits = tuple(result.array.shape) == first.shape
    return fits and dtypes.can_cast(result.place.dtype, dtypes.of_numpy(first.dtype))


@_property(lambda case, op: op.inplace_function is not None and not op.view)
def inplace(case: Case, op: Op, target: Target) -> None:
    """The in-place form leaves the same values in its first argument, returns it, and counts the change."""
    assert op.inplace_function is not None
    tested = 0
    wanted = [d for d in (dtypes.float32, dtypes.int64, dtypes.bool_, dtypes.float16) if d in case_dtypes(case, op)]
    for d in wanted or [_representative(case, op)]:
        for sample in samples(case, d):
            if not _writable(op, sample, target):
                continue
            for layout in (to_tensor, LAYOUTS["strided"]):
                with _about(d.name, layout.__name__, sample):
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


@_property(lambda case, op: op.inplace_function is not None and not op.view)
def inplace_wrong_shape(case: Case, op: Op, target: Target) -> None:
    """A result that is larger than the first argument is refused."""
    d = _representative(case, op)
    for sample in samples(case, d):
        arrays = sample.arrays()
        if len(arrays) < 2 or not arrays[0].ndim or not arrays[0].size or not _writable(op, sample, target):
            continue
        smaller = sample.with_array(0, np.asarray(arrays[0][0]))
        try:
            (result,) = call(op.function, smaller, target)
        except (RuntimeError, IndexError):  # the latter for a dimension that the smaller argument lacks
            continue
        if tuple(result.array.shape) != arrays[0].shape[1:]:
            with _about(d.name, smaller):
                _refuses(RuntimeError, "a result larger than its target", call, op.inplace_function, smaller, target)


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


def _compare_gradients(actual: list, expected: list, case: Case) -> None:
    for a, e in zip(actual, expected, strict=True):
        if a is not None or e is not None:
            known = a if e is None else e
            zeros = np.zeros_like(known)
            compare_values(zeros if a is None else a, zeros if e is None else e, case.rtol, case.atol)


@_property(lambda case, op: op.inplace_function is not None and not op.view and _has_gradient(case, op))
def inplace_gradient(case: Case, op: Op, target: Target) -> None:
    """The gradient through the in-place form is that of the op."""
    for sample in samples(case, dtypes.float64) if dtypes.float64 in case_dtypes(case, op) else ():
        if _writable(op, sample, target) and sample.arrays()[0].size:
            with _about(sample):
                assert op.inplace_function is not None
                in_place = _gradients_of(op.inplace_function, sample, target)
                _compare_gradients(in_place, _gradients_of(op.function, sample, target), case)


@_property(lambda case, op: _has_gradient(case, op))
def saved_values(case: Case, op: Op, target: Target) -> None:
    """After a change in place of an input or a result, the gradient is refused or what it was."""
    for sample in samples(case, dtypes.float64) if dtypes.float64 in case_dtypes(case, op) else ():
        expected = _gradients_of(op.function, sample, target)

        def change_inputs(inputs, results):
            for tensor in inputs:
                tensor.add_(1.0)

        def change_results(inputs, results):
            for tensor in results:
                tensor.add_(1.0)

        for change in (change_inputs, change_results):
            with _about(change.__name__, sample):
                try:
                    actual = _gradients_of(op.function, sample, target, change)
                except GradientError:
                    continue
                _compare_gradients(actual, expected, case)


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


@_property(_mixes)
def mixed_dtypes(case: Case, op: Op, target: Target) -> None:
    """Operands of different dtypes give what operands of their common dtype give, or are refused."""
    assert op.rule is not None
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
        with _about(mixed):
            if not op.rule.promotes:
                _refuses(RuntimeError, "operands of different dtypes", call, op.function, mixed, target)
                continue
            same = mixed.map(lambda array: array.astype(common.numpy))  # noqa: B023
            _same(call(op.function, mixed, target), call(op.function, same, target), case, common)


def _smallest(sample: Sample) -> int:
    return min(array.size for array in sample.arrays())


@_property(lambda case, op: op.rule is not None)
def memory(case: Case, op: Op, target: Target) -> None:
    """The result of a view is the input's memory; other results are memory of their own."""
    if not (op.view or op.primitive or op.gradients):
        return  # the body decides
    d = _representative(case, op)
    for sample in samples(case, d):
        tensors = _given(op.function, sample, target)
        for result in flat(op.function(*tensors.arguments, **tensors.keywords)):
            if not isinstance(result, Tensor) or not host(result).size:
                continue
            with _about(d.name, sample):
                _check_memory(op, result, _tensors_in(tensors))


def _check_memory(op: Op, result: Tensor, inputs: list[Tensor]) -> None:
    """Write into the result and see which inputs change."""
    runtime = result.place.runtime
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


@_property(lambda case, op: op.takes_out)
def out(case: Case, op: Op, target: Target) -> None:
    """``out=`` receives the values, whatever it was; it is refused for lower categories and recorded gradients."""
    d = _representative(case, op)
    for sample in samples(case, d):
        with _about(d.name, sample):
            expected = call(op.function, sample, target)
            for layout in (to_tensor, LAYOUTS["strided"]):
                buffers = _buffers(expected, target, layout)
                versions = [buffer.version[0] for buffer in buffers]
                _into(op, sample, target, buffers)
                _same(buffers, expected, case, d)
                assert all(b.version[0] > v for b, v in zip(buffers, versions)), "the version was not counted up"
            others = _buffers(expected, target, shape=lambda shape: (*shape, 2))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                _into(op, sample, target, others)
            _same(others, expected, case, d)
            resized = any("resized" in str(w.message) for w in caught)
            assert resized == any(host(e).size for e in expected), "resizing an out tensor with elements must warn"
            if any(e.place.dtype.category > BOOL for e in expected):
                lower = _buffers(expected, target, dtype=dtypes.bool_)
                _refuses(RuntimeError, "out= of a lower category", _into, op, sample, target, lower)
            recorded = _buffers(expected, target)
            if list(require_gradients(recorded)):
                _refuses(RuntimeError, "out= that requires a gradient", _into, op, sample, target, recorded)


def _buffers(
    expected: list[Tensor], target: Target, layout=to_tensor, shape=tuple, dtype: dtype | None = None
) -> list[Tensor]:
    """Tensors of zeros to write results into."""
    return [layout(np.zeros(shape(e.array.shape), (dtype or e.place.dtype).numpy), target.device) for e in expected]


def _into(op: Op, sample: Sample, target: Target, buffers: list[Tensor]) -> None:
    written = Sample(sample.arguments, {**sample.keywords, "out": tuple(buffers) if len(buffers) > 1 else buffers[0]})
    results = call(op.function, written, target)
    assert all(r is b for r, b in zip(results, buffers, strict=True)), "out= is not what is returned"


@_property(lambda case, op: op.method is True and any(p.name == "input" for p in op.parameters[:1]))
def method(case: Case, op: Op, target: Target) -> None:
    """The method of Tensor does what the function does."""
    d = _representative(case, op)
    assert hasattr(Tensor, op.name), f"Tensor has no method {op.name}"
    for sample in samples(case, d):
        if not sample.arguments or not isinstance(sample.arguments[0], np.ndarray):
            continue
        with _about(d.name, sample):
            as_method = call(lambda input, *rest, **options: getattr(input, op.name)(*rest, **options), sample, target)
            _same(as_method, call(op.function, sample, target), case, d)


# -- errors -----------------------------------------------------------------------------------------------------------
def _refuses(kinds, what: str, function: Callable, *arguments) -> None:
    """Assert that the call raises one of these exceptions, and that its text says something."""
    try:
        function(*arguments)
    except kinds as error:
        assert str(error), f"{what}: the error says nothing"
        return
    except Exception as error:
        raise AssertionError(f"{what}: raises {type(error).__name__}, {kinds} was expected: {error}") from error
    raise AssertionError(f"{what}: raises nothing, {kinds} was expected")


_RESHAPES = (
    lambda a: np.concatenate([a, a, a], axis=-1)[..., : a.shape[-1] + 1] if a.ndim and a.shape[-1] else a,
    lambda a: np.stack([a, a, a]),
    lambda a: np.asarray(a[0]) if a.ndim and a.shape[0] else a,
)


def _misshapen(sample: Sample) -> Iterator[Sample]:
    """The sample with one array after the other longer, of one dimension more, and of one less."""
    for position, array in enumerate(sample.arrays()):
        for reshape in _RESHAPES:
            other = reshape(array)
            if other.shape != array.shape:
                yield sample.with_array(position, other)


@_property(lambda case, op: op.rule is not None and op.shape is not None)
def wrong_shapes(case: Case, op: Op, target: Target) -> None:
    """Shapes that the shape rule refuses raise its error, and those that it takes give results of the shape it says."""
    d = _representative(case, op)
    for sample in samples(case, d):
        for wrong in _misshapen(sample):
            with _about(d.name, wrong):
                try:
                    meta = call(op.function, wrong, Target("corefw", "meta"))
                except ShapeError:
                    _refuses(RuntimeError, "shapes that do not fit", call, op.function, wrong, target)
                except CorefwError as refusal:
                    _refuses((type(refusal), RuntimeError, IndexError), "shapes", call, op.function, wrong, target)
                else:
                    try:
                        real = call(op.function, wrong, target)
                    except (CorefwError, IndexError):
                        continue  # what the elements say may be wrong where the shapes are not
                    for r, m in zip(real, meta, strict=True):
                        assert tuple(r.array.shape) == tuple(m.array.shape), (
                            f"shape {r.array.shape}, on meta {m.array.shape}"
                        )


@_property(lambda case, op: op.rule is not None)
def wrong_arguments(case: Case, op: Op, target: Target) -> None:
    """Devices that differ, a text for a tensor, dimensions out of range and refused dtypes raise PyTorch's types."""
    d = _representative(case, op)
    found = samples(case, d)
    if not found:
        return
    sample = max(found, key=lambda s: sum(a.size for a in s.arrays()))
    tensors = [i for i, a in enumerate(sample.arguments) if isinstance(a, np.ndarray)]
    kinds = {p.name: p.kind for p in op.parameters}
    with _about(d.name, sample):
        if len(tensors) > 1 and all(sample.arguments[i].ndim for i in tensors[:2]):

            def elsewhere():
                given = sample.map(partial(to_tensor, on=target.device)).arguments
                moved = [
                    to_tensor(a, "meta") if i == tensors[1] else g
                    for i, (a, g) in enumerate(zip(sample.arguments, given))
                ]
                keywords = sample.map(partial(to_tensor, on=target.device)).keywords
                op.function(*moved, **keywords)

            _refuses(RuntimeError, "tensors of different devices", elsewhere)
        if tensors:

            def no_tensor():
                given = list(sample.map(partial(to_tensor, on=target.device)).arguments)
                given[tensors[-1]] = "text"
                op.function(*given, **sample.map(partial(to_tensor, on=target.device)).keywords)

            # the body of an internal composite may stumble over it
            wanted = TypeError if op.primitive or _is_public(op) else (TypeError, AttributeError)
            _refuses(wanted, "a text in place of a tensor", no_tensor)
        for name in (n for n, kind in kinds.items() if kind in ("dim", "dims")):
            if isinstance(sample.keywords.get(name), int):
                wrong = Sample(sample.arguments, {**sample.keywords, name: 9})
                _refuses(IndexError, f"{name}=9", call, op.function, wrong, target)
    assert op.rule is not None
    if case.make is None:
        for refused in (r for r in dtypes.ALL if not op.rule.accepts(r) and r not in _UNPROMOTED):
            for wrong in samples(case, refused)[:1]:
                with _about(refused.name, wrong):
                    _refuses((RuntimeError, TypeError), "a dtype that is refused", call, op.function, wrong, target)


# -- documentation ----------------------------------------------------------------------------------------------------
def _is_public(op: Op) -> bool:
    """Whether users can reach the op: as a function of a namespace or as a method."""
    spaces = [corefw, getattr(getattr(corefw, "nn", None), "functional", None)]
    spaces += [getattr(corefw, name, None) for name in ("linalg", "fft", "special")]
    return hasattr(Tensor, op.name) or any(op.name in vars(space) for space in spaces if space is not None)


@_property(once=True)
def documentation(case: Case, op: Op, target: Target) -> None:
    """The docstring says what the op means, with an example that runs if the op is public."""
    text = op.body.__doc__
    assert text and text.strip(), "the op has no docstring"
    if _is_public(op):
        assert ">>>" in text, "the docstring has no example"
    run_examples(op.name, text)


def run_examples(name: str, text: str) -> None:
    """Run the examples of a docstring; AssertionError with what differed."""
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    test = doctest.DocTestParser().get_doctest(text, {"torch": corefw}, name, None, None)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
