"""Dispatch keys of tensors that are not strided: no table has an entry for them, so that ops come to the slow path."""

from __future__ import annotations

from corefw.devices import DispatchKey
from corefw.dtypes import dtype
from corefw.layouts import layout


class LayoutKey(DispatchKey):
    """The dispatch key of tensors in a sparse layout, whose values have the key `dense`."""

    __slots__ = ("dense", "layout")
    _of: dict[tuple[DispatchKey, layout], LayoutKey] = {}

    def __init__(self, dense: DispatchKey, layout: layout):
        super().__init__(dense.device, dense.dtype, dense.runtime)
        self.dense, self.layout = dense, layout

    def __repr__(self) -> str:
        return f"{self.dense}/{self.layout.name}"

    def with_dtype(self, dtype: dtype) -> LayoutKey:
        """The dispatch key of the same device and layout with another dtype."""
        return layout_key(self.dense.with_dtype(dtype), self.layout)


def layout_key(dense: DispatchKey, layout: layout) -> LayoutKey:
    """The one dispatch key of sparse tensors of this layout, whose values have the key `dense`."""
    found = LayoutKey._of.get((dense, layout))
    return found if found is not None else LayoutKey._of.setdefault((dense, layout), LayoutKey(dense, layout))
