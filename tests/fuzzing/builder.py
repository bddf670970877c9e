"""A program that grows: every entry is run on the guide as it is added, so that what follows can look at it."""

from __future__ import annotations

from random import Random

from tests.fuzzing import drawing
from tests.fuzzing.programs import Leaf, Program, Ref, Step
from tests.fuzzing.runs import MISSING, Run


class Builder:
    """A program under construction and its run on the guide."""

    def __init__(self, rng: Random, framework):
        self.rng = rng
        self.entries: list[Leaf | Step] = []
        self.run = Run(framework)
        self.trace = False  # whether entries are printed before they run: a run that crashes ends with the culprit

    def _append(self, entry: Leaf | Step) -> Ref:
        if self.trace:
            print(entry, flush=True)
        self.entries.append(entry)
        self.run.append(entry)
        return Ref(len(self.entries) - 1)

    def leaf(
        self,
        dtype: str,
        shape: tuple[int, ...],
        style: str | None = None,
        layout: str | None = None,
        grad=False,
        values=None,
    ) -> Ref:
        """A new input tensor; what is not said is drawn."""
        rng = self.rng
        values = drawing.values(rng, dtype, style or drawing.style(rng)) if values is None else values
        layout = drawing.layout(rng) if layout is None else layout
        if layout == "expanded" and (grad or not shape or 0 in shape):
            layout = "contiguous"
        return self._append(Leaf(dtype, tuple(shape), tuple(values), layout, grad and _differentiable(dtype)))

    def call(self, function: str, *arguments, records: bool = True, **keywords) -> Ref | None:
        """A further step; None if it raised or gave nothing."""
        ref = self._append(Step(function, arguments, keywords, records))
        return None if self.value(ref) is MISSING or self.value(ref) is None else ref

    def value(self, ref: Ref):
        """What an entry gave on the guide."""
        return self.run.values[ref.number]

    def shape(self, ref: Ref) -> tuple[int, ...]:
        return tuple(self.value(ref).shape)

    def dtype(self, ref: Ref) -> str:
        return self.value(ref).dtype.name

    def tensors(self) -> list[Ref]:
        """All that gave a tensor of a moderate size."""
        tensor = self.run.framework.module.Tensor
        return [Ref(i) for i, v in enumerate(self.run.values) if isinstance(v, tensor) and v.array.size <= 20_000]

    def gradients(self, records_again: bool = False) -> Ref | None:
        """The gradients of the leaves for the last few results that have a history."""
        inputs = tuple(Ref(i) for i, e in enumerate(self.entries) if isinstance(e, Leaf) and e.requires_grad)
        outputs = [
            r for r in self.tensors() if self.value(r).requires_grad and not isinstance(self.entries[r.number], Leaf)
        ]
        if not inputs or not outputs:
            return None
        outputs = tuple(outputs[-self.rng.randint(1, 3) :])
        weights = self.rng.choice(((1.0,), (1.0, -0.5, 2.0, 0.25, -1.0)))
        again = {"create_graph": True} if records_again else {}
        return self.call("gradients", outputs, inputs, weights, **again)

    def program(self) -> Program:
        return Program(tuple(self.entries))


def _differentiable(dtype: str) -> bool:
    return dtype in drawing.FLOATING + drawing.COMPLEX
