"""The properties of updates, the ops that change lists of tensors in place: optimizers' steps."""

from __future__ import annotations

from collections.abc import Callable

from corefw.dispatch.op import Op
from corefw.errors import ReadOnlyError
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor
from corefw.testing.case import Case
from corefw.testing.checks import about, case_dtypes, flat, property_of, refuses, representative
from corefw.testing.comparison import host
from corefw.testing.expectations import compare_results, expected_results
from corefw.testing.samples import LAYOUTS, Sample, samples, to_tensor
from corefw.testing.targets import Target


def _given(op: Op, sample: Sample, target: Target, layout: Callable[..., Tensor] = to_tensor) -> dict:
    """The arguments by name, arrays as tensors of a layout; counts lie on the host."""
    return {
        p.name: [to_tensor(a) if p.role == "counts" else layout(a, on=target.device) for a in value]
        if p.kind == "tensors"
        else to_tensor(value, target.device)
        if p.kind == "index"
        else value
        for p, value in zip(op.parameters, sample.arguments, strict=True)
    }


def _run(op: Op, arguments: dict) -> list[Tensor]:
    """Run the op; the arrays that it has changed."""
    with no_recording():
        assert op.function(**arguments) is None, "an update returns nothing"
    return flat([arguments[p.name] for p in op.changed if p.role == "changed"])


@property_of(updates=True, section="optimizers", dtypes=case_dtypes)
def update(case: Case, op: Op, target: Target) -> None:
    """What is changed becomes what the reference says, and is counted as changed; the rest stays as it was."""
    for d in case_dtypes(case, op):
        for sample in samples(case, d):
            with about(d.name, sample):
                arguments = _given(op, sample, target)
                compare_results(case, _run(op, arguments), flat(expected_results(case, op, sample, d)), d)
                for p, before in zip(op.parameters, sample.arguments):
                    for tensor, array in zip(arguments[p.name], before) if p.kind == "tensors" else ():
                        assert tensor.version[0] == bool(p.role), f"{p.name} has version {tensor.version[0]}"
                        assert p.role or host(tensor).tobytes() == array.tobytes(), f"{p.name} was changed"
                        assert p.role != "counts" or tensor.item() != array.item(), f"{p.name} was not changed"


@property_of(updates=True, section="optimizers", dtypes=case_dtypes)
def update_of_layouts(case: Case, op: Op, target: Target) -> None:
    """Strided and transposed tensors become what contiguous ones do, whichever of the lists they are in."""
    d = representative(case, op)
    for sample in samples(case, d):
        wanted = flat(expected_results(case, op, sample, d))
        for name, layout in LAYOUTS.items():
            for p in op.parameters:
                if p.kind != "tensors" or p.role == "counts" or name == "expanded":
                    continue  # no element is written twice
                with about(d.name, name, p.name, sample):
                    arguments = _given(op, sample, target)
                    arguments[p.name] = _given(op, sample, target, layout)[p.name]
                    compare_results(case, _run(op, arguments), wanted, d)


@property_of(updates=True, section="optimizers")
def update_of_two_dtypes(case: Case, op: Op, target: Target) -> None:
    """Tensors of two dispatch keys in one list are changed as those of each alone."""
    first, *others = case_dtypes(case, op)
    if not others:
        return
    for one, other in zip(samples(case, first), samples(case, others[0])):
        arguments, more = (_given(op, sample, target) for sample in (one, other))
        wanted = [_run(op, _given(op, sample, target)) for sample in (one, other)]
        joined = {name: v + more[name] if isinstance(v, list) else v for name, v in arguments.items()}
        _run(op, joined)
        for values, given in zip(wanted, (arguments, more)):
            changed = flat([given[p.name] for p in op.changed if p.role == "changed"])
            assert [host(t).tobytes() for t in changed] == [host(t).tobytes() for t in values]


@property_of(updates=True, section="bad input")
def refused_updates(case: Case, op: Op, target: Target) -> None:
    """Read-only memory, tensors that require grad and an empty list are refused, and nothing has changed."""
    sample = samples(case, representative(case, op))[0]
    for p in op.changed if target.device == "cpu" else ():
        arguments = _given(op, sample, target)
        if not arguments[p.name]:
            continue
        arguments[p.name][1].array.flags.writeable = False
        before = [host(t).tobytes() for t in flat([arguments[q.name] for q in op.changed])]
        refuses(ReadOnlyError, f"a read-only array in {p.name}", _run, op, arguments)
        assert [host(t).tobytes() for t in flat([arguments[q.name] for q in op.changed])] == before
    first = op.parameters[0].name
    arguments = _given(op, sample, target)
    arguments[first][0].requires_grad_()
    refuses(RuntimeError, "a leaf that requires grad", lambda: op.function(**arguments))
    refuses(ValueError, "an empty list", lambda: op.function(**arguments | {first: []}))
