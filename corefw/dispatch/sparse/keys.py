"""Dispatch keys of tensors that are not arrays, but held by ordinary tensors: no table has an entry for them, so that
ops come to the slow path, where their kind computes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from corefw.devices import DispatchKey
from corefw.dispatch.op import Op
from corefw.dtypes import dtype
from corefw.errors import LayoutError
from corefw.tensor import Tensor


class Kind(ABC):
    """What ops do that are given tensors of one kind, which are of the class `tensor_class`."""

    tensor_class: type[Tensor]

    @abstractmethod
    def compute(self, op: Op, *values: Any) -> Any:
        """What an op is for these arguments, of which some are of the kind."""

    @abstractmethod
    def compute_into(self, op: Op, *values: Any) -> Any:
        """As `compute`, for the in-place form of an op."""

    @abstractmethod
    def entry(self, op: Op) -> tuple:
        """What stands in an op's table: the body of a composite, in which ops are computed one by one; of others
        nothing, by a LayoutError, so that the call comes to the slow path."""

    @abstractmethod
    def refusal(self, name: str) -> LayoutError:
        """The error that leads a call to `compute`, and ends it where nobody computes."""

    def runtime(self, dense: DispatchKey, layout: Any) -> Any:
        """The runtime of tensors of a layout whose elements have the key `dense`."""
        return dense.runtime


#: {the class of what stands in the slot `layout` of a key: the kind}
kinds: dict[type, Kind] = {}


class LayoutKey(DispatchKey):
    """The dispatch key of tensors in another layout than strided, whose values have the key `dense`."""

    __slots__ = ("dense", "layout")
    _of: dict[tuple[DispatchKey, Any], LayoutKey] = {}

    def __init__(self, dense: DispatchKey, layout: Any):
        super().__init__(dense.device, dense.dtype, kinds[layout.__class__].runtime(dense, layout))
        self.dense, self.layout = dense, layout

    @property
    def kind(self) -> Kind:
        """What computes with the tensors."""
        return kinds[self.layout.__class__]

    def __repr__(self) -> str:
        return f"{self.dense}/{self.layout.name}"

    def with_dtype(self, dtype: dtype) -> LayoutKey:
        """The dispatch key of the same device and layout with another dtype."""
        return layout_key(self.dense.with_dtype(dtype), self.layout)


def layout_key(dense: DispatchKey, layout: Any) -> LayoutKey:
    """The one dispatch key of tensors of this layout whose values have the key `dense`."""
    found = LayoutKey._of.get((dense, layout))
    return found if found is not None else LayoutKey._of.setdefault((dense, layout), LayoutKey(dense, layout))


def kind_in(values: Any) -> Kind | None:
    """The kind of the first tensor, or dispatch key, among arguments that is not strided."""
    for value in values:
        if value.__class__ in (list, tuple):
            found = kind_in(value)
        else:
            key = getattr(value, "dispatch_key", value)
            found = key.kind if key.__class__ is LayoutKey else None
        if found is not None:
            return found
    return None
