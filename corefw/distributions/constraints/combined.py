"""Constraints made of others."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.distributions.constraints.constraint import Constraint
from corefw.tensor import Tensor


class IndependentConstraint(Constraint):
    """A constraint of single values, for all those in the last dimensions together.

    Args:
        base_constraint: the constraint of each.
        reinterpreted_batch_ndims: how many dimensions.
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        if result.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        kept = result.shape[: result.ndim - self.reinterpreted_batch_ndims]
        return result.reshape((*kept, -1)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """Values that every component of a batch satisfies, the components standing in the batch's last dimension."""

    def __init__(self, base_constraint: Constraint):
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        if value.ndim < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class Cat(Constraint):
    """Constraints of parts of the lengths `lengths`, which lie one after another in the dimension `dim`."""

    def __init__(self, cseq, dim: int = 0, lengths=None):
        self.cseq = list(cseq)
        self.dim = dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"cat: {len(self.cseq)} constraints with {len(self.lengths)} lengths")

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        parts = value.split(self.lengths, self.dim)
        return ops.cat([constraint.check(part) for constraint, part in zip(self.cseq, parts)], self.dim)


class Stack(Constraint):
    """Constraints of the slices along the dimension `dim`."""

    def __init__(self, cseq, dim: int = 0):
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim  # a slice is a part of a value

    def check(self, value: Tensor) -> Tensor:
        slices = value.unbind(self.dim)
        return ops.stack([constraint.check(part) for constraint, part in zip(self.cseq, slices)], self.dim)
