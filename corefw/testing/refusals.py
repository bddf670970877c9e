"""The properties of wrong calls: what is refused, and with which exception."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from corefw import dtypes
from corefw.dispatch.op import Op
from corefw.errors import CorefwError, ShapeError
from corefw.testing.case import Case
from corefw.testing.checks import (
    UNPROMOTED,
    about,
    call,
    property_of,
    refuses,
    representative,
    settle,
)
from corefw.testing.samples import Sample, samples, to_tensor
from corefw.testing.targets import Target

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


@property_of(lambda case, op: op.rule is not None and op.shape is not None, section="bad input")
def wrong_shapes(case: Case, op: Op, target: Target) -> None:
    """Shapes that the shape rule refuses raise its error, and those that it takes give results of the shape it says."""
    d = representative(case, op)
    for sample in samples(case, d):
        for wrong in _misshapen(sample):
            with about(d.name, wrong):
                try:
                    meta = call(op.function, wrong, Target("corefw", "meta"))
                except ShapeError:
                    refuses(RuntimeError, "shapes that do not fit", call, op.function, wrong, target)
                except CorefwError as refusal:
                    refuses((type(refusal), RuntimeError, IndexError), "shapes", call, op.function, wrong, target)
                else:
                    try:
                        real = call(op.function, wrong, target)
                        settle()
                    except (CorefwError, IndexError):
                        continue  # what the elements say may be wrong where the shapes are not
                    for r, m in zip(real, meta, strict=True):
                        assert tuple(r.array.shape) == tuple(m.array.shape), (
                            f"shape {r.array.shape}, on meta {m.array.shape}"
                        )


@property_of(lambda case, op: op.rule is not None, section="bad input")
def wrong_arguments(case: Case, op: Op, target: Target) -> None:
    """Devices that differ, a text for a tensor, dimensions out of range and refused dtypes raise PyTorch's types."""
    d = representative(case, op)
    found = samples(case, d)
    if not found:
        return
    sample = max(found, key=lambda s: sum(a.size for a in s.arrays()))
    tensors = [i for i, a in enumerate(sample.arguments) if isinstance(a, np.ndarray)]
    kinds = {p.name: p.kind for p in op.parameters}
    with about(d.name, sample):
        if len(tensors) > 1 and all(sample.arguments[i].ndim for i in tensors[:2]):

            def elsewhere():
                given = sample.map(partial(to_tensor, on=target.device)).arguments
                moved = [
                    to_tensor(a, "meta") if i == tensors[1] else g
                    for i, (a, g) in enumerate(zip(sample.arguments, given))
                ]
                keywords = sample.map(partial(to_tensor, on=target.device)).keywords
                op.function(*moved, **keywords)

            refuses(RuntimeError, "tensors of different devices", elsewhere)
        if tensors:

            def no_tensor():
                given = list(sample.map(partial(to_tensor, on=target.device)).arguments)
                given[tensors[-1]] = "text"
                op.function(*given, **sample.map(partial(to_tensor, on=target.device)).keywords)

            # the body of an internal composite may stumble over it
            wanted = TypeError if op.primitive or op.public else (TypeError, AttributeError)
            refuses(wanted, "a text in place of a tensor", no_tensor)
        for name in (n for n, kind in kinds.items() if kind in ("dim", "dims", "given_dims")):
            if isinstance(sample.keywords.get(name), int):
                wrong = Sample(sample.arguments, {**sample.keywords, name: 9})
                refuses(IndexError, f"{name}=9", call, op.function, wrong, target)
    assert op.rule is not None
    if case.make is None:
        for refused in (r for r in dtypes.ALL if not op.rule.accepts(r) and r not in UNPROMOTED):
            for wrong in samples(case, refused)[:1]:
                with about(refused.name, wrong):
                    refuses((RuntimeError, TypeError), "a dtype that is refused", call, op.function, wrong, target)
