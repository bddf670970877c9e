"""Checks: the register of properties, and how they call ops on the samples of a case."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from corefw import dtypes
from corefw.dispatch.op import Op
from corefw.dispatch.registry import registry
from corefw.dtypes import dtype
from corefw.errors import KernelNotFoundError
from corefw.tensor import Tensor
from corefw.testing.case import Case
from corefw.testing.samples import Sample, to_tensor
from corefw.testing.targets import Target

#: dtypes that a row is tested for where neither it nor the op says which
_UNRULED = ("float32", "float64")
UNPROMOTED = frozenset({dtypes.uint16, dtypes.uint32, dtypes.uint64})
#: the dtypes of the properties that do not depend on arithmetic, the first that the case has
_REPRESENTATIVE = (dtypes.float32, dtypes.int64, dtypes.bool_, dtypes.complex64)


@dataclass(frozen=True)
class Property:
    """A named check of a case on a target; `applies` says of which cases it makes sense."""

    check: Callable[[Case, Op, Target], None]
    applies: Callable[[Case, Op], bool]
    once: bool = False  # whether the target does not matter
    guests: bool = False  # whether it says something only of backends that do not own the device's memory
    updates: bool = False  # whether it is one of ops that change lists of tensors in place, which have no results
    kernels: bool = False  # whether it is about a kernel that the target may lack
    section: str = "ops"  # of the conformance report
    dtypes: Callable[[Case, Op], list[dtype]] | None = None  # those that it tests one by one; None: one for all

    @property
    def name(self) -> str:
        """The name by which tests are selected."""
        return self.check.__name__.strip("_")


PROPERTIES: dict[str, Property] = {}


def property_of(applies: Callable[[Case, Op], bool] = lambda case, op: True, **options):
    """Register a property; the options are the fields of `Property`."""

    def decorate(check):
        found = Property(check, applies, **options)
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
        op = registry.declared.get(self.case.op)
        if op is None:
            raise AssertionError(f"the row names the op {self.case.op!r}, which is not declared")
        with self.target.preferred():
            try:
                self.property.check(self.case, op, self.target)
            except Exception:
                with suppress(Exception):
                    settle()
                raise
            settle()

    def __str__(self) -> str:
        return f"{self.case.op}-{self.property.name}" + ("" if self.property.once else f"-{self.target}")


def checks(cases: Sequence[Case], targets: Sequence[Target]) -> Iterator[Check]:
    """Every property that applies, for every case and target."""
    for case in cases:
        op = registry.declared.get(case.op)
        for found in PROPERTIES.values():
            if op is None:
                yield Check(found, case, targets[0])  # says that the op is not declared
                break
            if found.updates == op.update and found.applies(case, op):
                concerned = targets[:1] if found.once else [t for t in targets if t.concerns(op)]
                if found.guests:
                    concerned = [t for t in concerned if t != t.owner()]
                yield from (Check(found, case, target) for target in concerned)


@contextmanager
def about(*what) -> Iterator[None]:
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


def given(function: Callable, sample: Sample, target: Target, layout: Callable[..., Tensor] = to_tensor) -> Sample:
    """A sample's arrays as tensors of a layout; a call without any is told the device."""
    tensors = sample.map(partial(layout, on=target.device))
    if not sample.arrays() and "device" in inspect.signature(function).parameters:
        return Sample(sample.arguments, {**sample.keywords, "device": target.device})
    return tensors


def call(function: Callable, sample: Sample, target: Target, layout: Callable[..., Tensor] = to_tensor) -> list:
    """The results of `function` for a sample, its arrays given as tensors of a layout."""
    tensors = given(function, sample, target, layout)
    return flat(function(*tensors.arguments, **tensors.keywords))


def tensors_in(sample: Sample) -> list[Tensor]:
    """The tensors among a call's arguments, in order."""
    values = flat([*sample.arguments, *sample.keywords.values()])
    return [value for value in values if isinstance(value, Tensor)]


def case_dtypes(case: Case, op: Op) -> list[dtype]:
    """The dtypes that a case is tested for."""
    if case.dtypes is not None:
        return [dtypes.of_name(name) for name in case.dtypes]
    if op.rule is None:
        return [dtypes.of_name(name) for name in _UNRULED]
    return [d for d in dtypes.ALL if op.rule.accepts(d) and (d not in UNPROMOTED or not op.rule.promotes)]


def representative(case: Case, op: Op) -> dtype:
    known = case_dtypes(case, op)
    return next((d for d in _REPRESENTATIVE if d in known), known[0])


def refuses(kinds, what: str, function: Callable, *arguments) -> None:
    """Assert that the call raises one of these exceptions, and that its text says something."""
    try:
        function(*arguments)
        settle()
    except kinds as error:
        assert str(error), f"{what}: the error says nothing"
        return
    except KernelNotFoundError:  # nothing is known of a kernel that is not there
        raise
    except Exception as error:
        raise AssertionError(f"{what}: raises {type(error).__name__}, {kinds} was expected: {error}") from error
    raise AssertionError(f"{what}: raises nothing, {kinds} was expected")


def settle() -> None:
    """Wait for all devices, so that what a kernel found wrong is raised here and not by what comes next."""
    for _, runtime in registry.runtimes.values():
        runtime.synchronize()
