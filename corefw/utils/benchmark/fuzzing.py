"""Tensors of random shapes and orders in memory, to measure on more than one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from corefw.dispatch.declare import ops
from corefw.dtypes import dtype, float32
from corefw.tensor import Tensor

_TRIES = 1000


class ParameterAlias:
    """In a distribution: the value of another parameter."""

    def __init__(self, alias_to: str):
        self.alias_to = alias_to


class FuzzedParameter:
    """A number, often a size, that is drawn anew for each case.

    Args:
        name: how tensors and other parameters name it.
        minval, maxval: where it lies, both ends included.
        distribution: "uniform" or "loguniform" between them, or {value: probability}.
        strict: whether no other parameter may stand for it in a distribution.
    """

    def __init__(
        self, name: str, minval: float | None = None, maxval: float | None = None,
        distribution: str | Mapping[Any, float] | None = None, strict: bool = False,
    ):  # fmt: skip
        if isinstance(distribution, Mapping):
            if minval is not None or maxval is not None:
                raise ValueError(
                    f"FuzzedParameter {name!r}: the distribution has the values, without minval and maxval"
                )
            if not math.isclose(sum(distribution.values()), 1.0, rel_tol=1e-6):
                raise ValueError(f"FuzzedParameter {name!r}: probabilities sum to {sum(distribution.values())}, not 1")
        elif distribution not in ("uniform", "loguniform"):
            raise ValueError(f"FuzzedParameter {name!r}: unknown distribution {distribution!r}")
        elif minval is None or maxval is None or minval > maxval or (distribution == "loguniform" and minval <= 0):
            raise ValueError(f"FuzzedParameter {name!r}: wants minval <= maxval, got {minval} and {maxval}")
        self._name, self._low, self._high, self._distribution, self.strict = name, minval, maxval, distribution, strict

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def sample(self, state: np.random.RandomState) -> Any:
        """A value."""
        if isinstance(self._distribution, Mapping):
            values = [*self._distribution]
            return values[state.choice(len(values), p=[*self._distribution.values()])]
        low: Any = self._low
        high: Any = self._high
        if self._distribution == "loguniform":
            drawn = math.exp(state.uniform(math.log(low), math.log(high)))
            return min(max(round(drawn), low), high) if isinstance(low, int) else drawn
        return int(state.randint(low, high + 1)) if isinstance(low, int) else float(state.uniform(low, high))


class FuzzedTensor:
    """A tensor whose shape is named by parameters.

    Args:
        name: its name among the tensors of a case.
        size: parameters' names, or numbers.
        steps: the tensor is every so many elements of a larger one, per dimension; names or numbers.
        probability_contiguous: how likely its memory is in the order of its dimensions.
        min_elements, max_elements, max_allocation_bytes: cases outside are drawn again.
        dim_parameter: the parameter that says how many of the sizes are used.
        roll_parameter: the parameter by which the sizes are rotated.
        dtype: of the elements.
        cuda: whether it lies on a GPU.
        tensor_constructor: ``tensor_constructor(size=..., dtype=..., **parameters)`` makes the tensor instead.
    """

    def __init__(
        self, name: str, size: Sequence[str | int], steps: Sequence[str | int] | None = None,
        probability_contiguous: float = 0.5, min_elements: int | None = None, max_elements: int | None = None,
        max_allocation_bytes: int | None = None, dim_parameter: str | None = None, roll_parameter: str | None = None,
        dtype: dtype = float32, cuda: bool = False, tensor_constructor: Callable | None = None,
    ):  # fmt: skip
        self._name, self._size, self._steps = name, size, steps or (1,) * len(size)
        self._contiguous, self._least, self._most = probability_contiguous, min_elements, max_elements
        self._bytes, self._dim, self._roll, self._dtype = max_allocation_bytes, dim_parameter, roll_parameter, dtype
        self._device, self._constructor = "cuda" if cuda else "cpu", tensor_constructor

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: Sequence[int], dtype: dtype, **parameters: Any) -> Tensor:
        """Normal numbers, or integers from 0 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return ops.rand(size, dtype=dtype)
        return ops.randint(0, 127, size, dtype=dtype)

    def _shape(self, parameters: Mapping[str, Any]) -> tuple[list[int], list[int], list[int]]:
        """Sizes, steps, and the sizes in memory."""

        def values(names: Sequence[str | int]) -> list[int]:
            found = [parameters[name] if isinstance(name, str) else name for name in names]
            by = parameters[self._roll] if self._roll else 0
            found = found if self._dim is None else found[: parameters[self._dim]]
            by = by % len(found) if found else 0
            return found[-by:] + found[:-by] if by else found

        size, steps = values(self._size), values(self._steps)
        return size, steps, [n * step for n, step in zip(size, steps)]

    def satisfies_constraints(self, parameters: Mapping[str, Any]) -> bool:
        """Whether its numbers of elements and bytes are permitted."""
        size, _, allocated = self._shape(parameters)
        count = math.prod(size)
        return (
            (self._least is None or count >= self._least)
            and (self._most is None or count <= self._most)
            and (self._bytes is None or math.prod(allocated) * self._dtype.itemsize <= self._bytes)
        )

    def make(self, parameters: Mapping[str, Any], state: np.random.RandomState) -> tuple[Tensor, dict[str, Any]]:
        """The tensor of a case, and what is worth knowing of it."""
        size, steps, allocated = self._shape(parameters)
        order = [*range(len(size))]
        if len(order) > 1 and state.uniform() > self._contiguous:
            order = [int(i) for i in state.permutation(len(size))]
        make = self._constructor or self.default_tensor_constructor
        made = make(size=[allocated[i] for i in order], dtype=self._dtype, **parameters).to(self._device)
        made = made.permute([order.index(i) for i in range(len(size))])
        made = made[tuple(slice(None, None, step) for step in steps)]
        facts = {
            "numel": made.numel(),
            "order": order,
            "steps": steps,
            "is_contiguous": made.is_contiguous(),
            "dtype": str(self._dtype),
        }
        return made, facts


class Fuzzer:
    """Draws cases: parameters, and tensors of them.

    Args:
        parameters: `FuzzedParameter`s, or lists of them.
        tensors: `FuzzedTensor`s, or lists of them.
        constraints: functions of all parameters by name; a case for which one is false is drawn again.
        seed: of the random numbers.

    >>> from corefw.utils.benchmark import FuzzedParameter, FuzzedTensor, Fuzzer
    >>> fuzzer = Fuzzer([FuzzedParameter("n", 2, 8, "uniform")], [FuzzedTensor("x", ("n", "n"))], seed=0)
    >>> [tensors["x"].shape[0] == parameters["n"] for tensors, facts, parameters in fuzzer.take(2)]
    [True, True]
    """

    def __init__(
        self, parameters: list, tensors: list, constraints: list[Callable] | None = None, seed: int | None = None
    ):
        self._parameters: list[FuzzedParameter] = [*_flat(parameters)]
        self._tensors: list[FuzzedTensor] = [*_flat(tensors)]
        names = [parameter.name for parameter in self._parameters] + [tensor.name for tensor in self._tensors]
        if len({*names}) < len(names):
            raise ValueError(f"Fuzzer: names occur twice among {names}")
        self._constraints, self._drawn, self._rejected = constraints or [], 0, 0
        self._seed = np.random.randint(0, 2**31) if seed is None else seed

    def take(self, n: int) -> Iterator[tuple[dict[str, Tensor], dict[str, dict[str, Any]], dict[str, Any]]]:
        """`n` cases: tensors, what is worth knowing of them, and parameters, each by name."""
        state = np.random.RandomState(self._seed)
        for _ in range(n):
            parameters = self._draw(state)
            made = {tensor.name: tensor.make(parameters, state) for tensor in self._tensors}
            yield {name: tensor for name, (tensor, _) in made.items()}, {k: f for k, (_, f) in made.items()}, parameters

    def _draw(self, state: np.random.RandomState) -> dict[str, Any]:
        for _ in range(_TRIES):
            values = {parameter.name: parameter.sample(state) for parameter in self._parameters}
            for name, value in values.items():
                while isinstance(value, ParameterAlias):
                    value = values[value.alias_to]
                values[name] = value
            self._drawn += 1
            if all(f(**values) for f in self._constraints) and all(
                tensor.satisfies_constraints(values) for tensor in self._tensors
            ):
                return values
            self._rejected += 1
        raise RuntimeError(f"Fuzzer: none of {_TRIES} cases in a row meets the constraints")

    @property
    def rejection_rate(self) -> float:
        """Which part of the cases was drawn again."""
        return self._rejected / self._drawn if self._drawn else 0.0


def _flat(parts: list) -> Iterator[Any]:
    for part in parts:
        yield from part if isinstance(part, list) else [part]
