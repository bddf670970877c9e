"""The checks of a target, one for each op, property and dtype, in the order in which they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from corefw import dtypes
from corefw.dispatch.inspect import backends
from corefw.dispatch.op import Op
from corefw.dispatch.registry import registry
from corefw.dtypes import dtype
from corefw.errors import did_you_mean
from corefw.testing.behaviour import Behaviour
from corefw.testing.behaviours import BEHAVIOURS
from corefw.testing.case import Case
from corefw.testing.checks import PROPERTIES, Check, Property, case_dtypes, representative
from corefw.testing.conform.outcomes import Outcome, Result
from corefw.testing.families import Families, kit_families, load_folder
from corefw.testing.targets import Target, targets


@dataclass(frozen=True)
class Item:
    """One check; `run` raises what is wrong. A `decided` one is not to be run: it is an outcome with its reason."""

    section: str
    op: str
    property: str
    dtype: str
    target: Target
    run: Callable[[], None] | None
    decided: tuple[Outcome, str] = (Outcome.PASS, "")
    row: int = 1  # among the rows of the op
    family: str = ""  # of rows that are left out, where no op is

    def __str__(self) -> str:
        number = f".{self.row}" if self.row > 1 else ""
        return "-".join(filter(None, (self.op, self.property + number, self.dtype, str(self.target))))

    def result(self, outcome: Outcome, reason: str = "", ulp: float = 0.0, seconds: float = 0.0) -> Result:
        """What came of it."""
        declared = registry.declared.get(self.op)
        family = declared.family if declared is not None else self.family
        about = (str(self), self.section, self.op, family, self.dtype, self.property, str(self.target))
        return Result(*about, outcome, reason, ulp, seconds)


def targets_of(name: str) -> list[Target]:
    """The targets that a backend's or a device type's name means."""
    return [target for target in targets() if name in (target.backend, target.device)]


def why_none(name: str) -> str:
    """Why a name means no targets."""
    states = {info.name: info for info in backends()}
    if name in states:
        return f"backend '{name}' cannot be tested: {states[name].reason or 'none of its devices is here'}"
    known = sorted({*states, *registry.runtimes} - {"meta"})
    return f"no backend or device is called '{name}'{did_you_mean(name, known)}; there are {', '.join(known)}"


def items(target: Target, folders: tuple[Path, ...] = ()) -> Iterator[Item]:
    """All checks of a target; `folders` hold further rows."""
    yield from behaviour_items(target)
    rows: Counter[str] = Counter()
    for families in (kit_families(), *map(load_folder, folders)):
        yield from _left_out(families, target)
        for case in families.cases():
            rows[case.op] += 1
            yield from (replace(item, row=rows[case.op]) for item in _of_case(case, target))


def behaviour_items(target: Target) -> Iterator[Item]:
    """The checks of a target that no row describes."""
    for behaviour in BEHAVIOURS.values():
        yield from _of_behaviour(behaviour, target)


def _left_out(families: Families, target: Target) -> Iterator[Item]:
    for what, reason in families.not_run.items():
        decided, family = (Outcome.NOT_RUN, f"{what} {reason}"), Path(what.partition(":")[0]).stem
        yield Item("ops", "", f"not-run-{what}", "", target, None, decided, family=family)


def _claimed(op: Op, target: Target, known: list[dtype], optional: bool = False) -> list[dtype]:
    """The dtypes for which the target must compute an op: all of a device that it owns, else, or where the op is
    optional, those of its kernels."""
    return known if target == target.owner() and not optional else [d for d in known if target.has_kernel(op, d)]


def _unsupported(target: Target, known: list[dtype]) -> list[dtype]:
    return [d for d in known if d not in registry.runtime(target.device).dtypes]


def _of_case(case: Case, target: Target) -> Iterator[Item]:
    op = registry.declared.get(case.op)
    if op is None:
        yield Item("ops", case.op, "row", "", target, None, (Outcome.WRONG, "the row's op is not declared"))
        return
    if not target.concerns(op):
        return
    known = case_dtypes(case, op)
    unsupported = _unsupported(target, known)
    claimed = [d for d in _claimed(op, target, known) if d not in unsupported]
    for d in unsupported:
        reason = f"device '{target.device}' does not store {d.name}"
        yield Item("ops", case.op, "forward", d.name, target, None, (Outcome.UNSUPPORTED, reason))
    if not claimed:
        return
    narrowed = _of_dtypes(case, claimed)
    for found in PROPERTIES.values():
        if found.once or (found.guests and target == target.owner()) or found.updates != op.update:
            continue
        if not found.applies(narrowed, op):
            continue
        if found.dtypes is None:
            yield _item(found, narrowed, representative(narrowed, op), target)
        else:
            tested = [d for d in found.dtypes(narrowed, op) if not found.kernels or target.has_kernel(op, d)]
            yield from (_item(found, _of_dtypes(case, [d]), d, target) for d in tested)


def _of_dtypes(case: Case, known: list[dtype]) -> Case:
    return replace(case, dtypes=tuple(d.name for d in known))


def _item(found: Property, case: Case, d: dtype, target: Target) -> Item:
    kernel = target.kernel(registry.declared[case.op], d)
    if kernel is not None and kernel.max_ulp is not None:
        case = replace(case, max_ulp=kernel.max_ulp)
    return Item(found.section, case.op, found.name, d.name, target, Check(found, case, target))


def _of_behaviour(behaviour: Behaviour, target: Target) -> Iterator[Item]:
    op = registry.declared.get(behaviour.op)
    if target != target.owner() and (behaviour.section == "runtime" or (op is not None and not target.concerns(op))):
        return
    known = [dtypes.of_name(name) for name in behaviour.dtypes]
    claimed = known if op is None or op.rule is None else _claimed(op, target, known, behaviour.optional)
    unsupported = _unsupported(target, known)
    for d in claimed:
        decided = (Outcome.PASS, "")
        if d in unsupported:
            decided = (Outcome.UNSUPPORTED, f"device '{target.device}' does not store {d.name}")
        run = behaviour.on(target, d) if not decided[1] else None
        name = d.name if behaviour.op or len(known) > 1 else ""
        yield Item(behaviour.section, behaviour.op, behaviour.name, name, target, run, decided)
