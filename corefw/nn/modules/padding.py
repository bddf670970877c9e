"""Padding layers: each extends the borders of the last dimensions in one way."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.nn.modules.spatial import Spatial
from corefw.tensor import Tensor


class _Pad(Spatial):
    """Padding of the last `dimensions` dimensions: by one amount, or by one per border, the last dimension first."""

    mode = "constant"
    _new_elements = "zeros"
    _docs = """The last {dimensions} extended by {layer._new_elements}.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...

    >>> import corefw as torch
    >>> torch.nn.{layer.__name__}(1)(torch.zeros(1, 2, {3})).shape
    torch.Size([1, 2, {5}])
    """

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.dimensions) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return ops.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """Padding with a value."""

    _docs = """The last {dimensions} extended by a value.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...
        value: the new elements.

    >>> import corefw as torch
    >>> torch.nn.ConstantPad{n}d(1, 2.5)(torch.zeros(1, 2, {3})).shape
    torch.Size([1, 2, {5}])
    """

    def __init__(self, padding, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return ops.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPad(_Pad):
    """Padding with a mirror image."""

    mode = "reflect"
    _new_elements = "the mirror image of the input, without the border itself"


class _ReplicationPad(_Pad):
    """Padding with the border."""

    mode = "replicate"
    _new_elements = "copies of the border elements"


class _CircularPad(_Pad):
    """Padding with the opposite end."""

    mode = "circular"
    _new_elements = "the elements of the opposite end"


class ConstantPad1d(_ConstantPad, dimensions=1): ...


class ConstantPad2d(_ConstantPad, dimensions=2): ...


class ConstantPad3d(_ConstantPad, dimensions=3): ...


class ZeroPad1d(_Pad, dimensions=1): ...


class ZeroPad2d(_Pad, dimensions=2): ...


class ZeroPad3d(_Pad, dimensions=3): ...


class ReflectionPad1d(_ReflectionPad, dimensions=1): ...


class ReflectionPad2d(_ReflectionPad, dimensions=2): ...


class ReflectionPad3d(_ReflectionPad, dimensions=3): ...


class ReplicationPad1d(_ReplicationPad, dimensions=1): ...


class ReplicationPad2d(_ReplicationPad, dimensions=2): ...


class ReplicationPad3d(_ReplicationPad, dimensions=3): ...


class CircularPad1d(_CircularPad, dimensions=1): ...


class CircularPad2d(_CircularPad, dimensions=2): ...


class CircularPad3d(_CircularPad, dimensions=3): ...
