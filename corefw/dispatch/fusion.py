"""Fusions: several elementwise ops, and perhaps a sum of what they give, as one kernel that a backend may offer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from corefw.dtypes import dtype

#: how much is asked of a backend at most
MOST_INPUTS, MOST_PARTS, MOST_OUTPUTS = 16, 48, 8


@dataclass(frozen=True)
class Part:
    """One elementwise function within a fusion.

    Attributes:
        expression: its name in `corefw.dispatch.expressions`; or "choose" (of a mask and two values), or "cast".
        operands: the values that it takes, by their numbers.
        numbers: the numbers that follow the tensors in its formula.
        dtype: that of its result, to which each element is rounded. Half types are computed in float32.
    """

    expression: str
    operands: tuple[int, ...]
    numbers: tuple[float, ...]
    dtype: dtype


@dataclass(frozen=True)
class Reduction:
    """The sum or mean that ends a fusion, of the dtype of its input.

    Attributes:
        mean: whether it is the mean.
        value: what is summed, by its number.
        dim: the dimensions: all, or all but some that lie next to each other.
        keepdim: whether they stay, with size 1.
    """

    mean: bool
    value: int
    dim: tuple[int, ...]
    keepdim: bool
    dtype: dtype


@dataclass(frozen=True)
class Fusion:
    """Elementwise functions of arrays that broadcast to one shape, one after the other.

    Values are numbered: first the inputs, then the result of each part.

    Attributes:
        inputs: the dtypes of the arrays.
        parts: in an order in which each takes values that are there.
        outputs: the values whose arrays are wanted, all of the shape to which the inputs broadcast, in row-major order.
        reduction: what is summed besides.

    Its kernel is ``kernel(*inputs, out=None)`` and returns a tuple: the arrays of `outputs`, then the sum. ``out=`` is
    an array to write the last one of `outputs` to, which is then not returned; it may be one of the inputs. Its
    attribute ``alone``, if it has one, says whether it is faster than an op's own kernel for one part, if the elements
    are many.

    >>> from corefw import dtypes
    >>> f = dtypes.float32
    >>> parts = Part("mul", (0, 1), (), f), Part("add", (3, 2), (), f), Part("gelu", (4,), (), f)
    >>> print(Fusion((f, f, f), parts, (5,)))
    gelu(add(mul(x0, x1), x2))
    """

    inputs: tuple[dtype, ...]
    parts: tuple[Part, ...]
    outputs: tuple[int, ...]
    reduction: Reduction | None = None

    @property
    def key(self) -> str:
        """What two fusions have in common only if one kernel serves both: 0.0 and -0.0 are equal numbers."""
        return repr(self)

    def dtype_of(self, value: int) -> dtype:
        """The dtype of a value."""
        return self.inputs[value] if value < len(self.inputs) else self.parts[value - len(self.inputs)].dtype

    def shown(self, inputs: Sequence[str]) -> str:
        """It as nested calls, over names of its inputs; what is used several times is named first."""
        first = len(inputs)
        used = Counter(operand for part in self.parts for operand in part.operands)
        used.update(self.outputs)
        if self.reduction is not None:
            used[self.reduction.value] += 1
        named: list[str] = []
        texts = [*inputs]
        for number, part in enumerate(self.parts, first):
            options = [f"{n:g}" for n in part.numbers] + ([part.dtype.name] if part.expression == "cast" else [])
            text = f"{part.expression}({', '.join([*(texts[i] for i in part.operands), *options])})"
            if used[number] > 1:
                named.append(f"{chr(ord('a') + len(named) % 26)}{len(named) // 26 or ''} = {text}")
                text = named[-1].partition(" ")[0]
            texts.append(text)
        results = [texts[value] for value in self.outputs]
        if self.reduction is not None:
            r = self.reduction
            results.append(f"{'mean' if r.mean else 'sum'}({texts[r.value]}, {r.dim})")
        return "; ".join([*named, ", ".join(results)])

    def __str__(self) -> str:
        return self.shown([f"x{i}" for i in range(len(self.inputs))])
