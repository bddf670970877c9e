"""Padding layers: each extends the borders of the last dimensions in one way."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.nn.modules.module import Module


class _Pad(Module):
    """Padding of the last `dimensions` dimensions: by one amount, or by one per border, the last dimension first."""

    dimensions = 0
    mode = "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = (padding,) * (2 * self.dimensions) if isinstance(padding, int) else tuple(padding)

    def forward(self, input):
        return ops.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """Padding with a value."""

    def __init__(self, padding, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return ops.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """The last dimension extended by a value.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...
        value: the new elements.

    >>> import corefw as torch
    >>> torch.nn.ConstantPad1d(1, 2.5)(torch.zeros(1, 2, 3)).shape
    torch.Size([1, 2, 5])
    """

    dimensions = 1


class ConstantPad2d(_ConstantPad):
    """The last two dimensions extended by a value.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...
        value: the new elements.

    >>> import corefw as torch
    >>> torch.nn.ConstantPad2d(1, 2.5)(torch.zeros(1, 2, 3, 3)).shape
    torch.Size([1, 2, 5, 5])
    """

    dimensions = 2


class ConstantPad3d(_ConstantPad):
    """The last three dimensions extended by a value.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...
        value: the new elements.

    >>> import corefw as torch
    >>> torch.nn.ConstantPad3d(1, 2.5)(torch.zeros(1, 2, 3, 3, 3)).shape
    torch.Size([1, 2, 5, 5, 5])
    """

    dimensions = 3


class ZeroPad1d(_Pad):
    """The last dimension extended by zeros.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...

    >>> import corefw as torch
    >>> torch.nn.ZeroPad1d(1)(torch.zeros(1, 2, 3)).shape
    torch.Size([1, 2, 5])
    """

    dimensions = 1


class ZeroPad2d(_Pad):
    """The last two dimensions extended by zeros.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...

    >>> import corefw as torch
    >>> torch.nn.ZeroPad2d(1)(torch.zeros(1, 2, 3, 3)).shape
    torch.Size([1, 2, 5, 5])
    """

    dimensions = 2


class ZeroPad3d(_Pad):
    """The last three dimensions extended by zeros.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...

    >>> import corefw as torch
    >>> torch.nn.ZeroPad3d(1)(torch.zeros(1, 2, 3, 3, 3)).shape
    torch.Size([1, 2, 5, 5, 5])
    """

    dimensions = 3


class ReflectionPad1d(_Pad):
    """The last dimension extended by the mirror image of the input, without the border itself.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...

    >>> import corefw as torch
    >>> torch.nn.ReflectionPad1d(1)(torch.zeros(1, 2, 3)).shape
    torch.Size([1, 2, 5])
    """

    dimensions = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """The last two dimensions extended by the mirror image of the input, without the border itself.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...

    >>> import corefw as torch
    >>> torch.nn.ReflectionPad2d(1)(torch.zeros(1, 2, 3, 3)).shape
    torch.Size([1, 2, 5, 5])
    """

    dimensions = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """The last three dimensions extended by the mirror image of the input, without the border itself.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...

    >>> import corefw as torch
    >>> torch.nn.ReflectionPad3d(1)(torch.zeros(1, 2, 3, 3, 3)).shape
    torch.Size([1, 2, 5, 5, 5])
    """

    dimensions = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """The last dimension extended by copies of the border elements.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...

    >>> import corefw as torch
    >>> torch.nn.ReplicationPad1d(1)(torch.zeros(1, 2, 3)).shape
    torch.Size([1, 2, 5])
    """

    dimensions = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """The last two dimensions extended by copies of the border elements.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...

    >>> import corefw as torch
    >>> torch.nn.ReplicationPad2d(1)(torch.zeros(1, 2, 3, 3)).shape
    torch.Size([1, 2, 5, 5])
    """

    dimensions = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """The last three dimensions extended by copies of the border elements.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...

    >>> import corefw as torch
    >>> torch.nn.ReplicationPad3d(1)(torch.zeros(1, 2, 3, 3, 3)).shape
    torch.Size([1, 2, 5, 5, 5])
    """

    dimensions = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """The last dimension extended by the elements of the opposite end.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...

    >>> import corefw as torch
    >>> torch.nn.CircularPad1d(1)(torch.zeros(1, 2, 3)).shape
    torch.Size([1, 2, 5])
    """

    dimensions = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """The last two dimensions extended by the elements of the opposite end.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...

    >>> import corefw as torch
    >>> torch.nn.CircularPad2d(1)(torch.zeros(1, 2, 3, 3)).shape
    torch.Size([1, 2, 5, 5])
    """

    dimensions = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """The last three dimensions extended by the elements of the opposite end.

    Args:
        padding: by how much on all sides, or on each: before and after the last dimension, then the one before it, ...

    >>> import corefw as torch
    >>> torch.nn.CircularPad3d(1)(torch.zeros(1, 2, 3, 3, 3)).shape
    torch.Size([1, 2, 5, 5, 5])
    """

    dimensions = 3
    mode = "circular"
