"""Tensors as Python values: numbers, truth, lists, iteration, text."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from corefw import dtypes, printing
from corefw.dispatch.batching.arrays import BatchedDevice, LevelDevice
from corefw.dispatch.batching.tensors import leave
from corefw.errors import CorefwError
from corefw.tensor import Tensor
from corefw.tensor_api.attach import method, method_called
from corefw.tensor_api.interchange import host_array


class ValueAmbiguousError(CorefwError, RuntimeError, ValueError):
    """One number was asked of a tensor that has several, or none."""


@method
def item(self) -> int | float | bool:
    """The only element as a Python number.

    >>> import corefw as torch
    >>> torch.tensor([2.5]).item()
    2.5
    """
    array = self.array
    if array.ndim and self.numel() != 1:
        raise ValueAmbiguousError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
    return self.dispatch_key.runtime.item(array)


@method
def tolist(self):
    """The elements as nested lists of Python numbers; one number for a 0-d tensor.

    >>> import corefw as torch
    >>> torch.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return host_array(self).tolist()


def _only(self):
    array = self.array
    if array.ndim and prod(array.shape) != 1:
        raise ValueAmbiguousError("only one element tensors can be converted to Python scalars")
    return self.dispatch_key.runtime.item(array)


@method
def __bool__(self) -> bool:
    array = self.array
    if array.ndim and (count := prod(array.shape)) != 1:
        values = "more than one value" if count else "no values"
        raise ValueAmbiguousError(f"Boolean value of Tensor with {values} is ambiguous")
    return bool(self.dispatch_key.runtime.item(array))


@method
def __float__(self) -> float:
    value = _only(self)
    return value if value.__class__ is float else float(_real(value))


@method
def __int__(self) -> int:
    value = _only(self)
    return value if value.__class__ is int else int(_real(value))


def _real(value):
    if value.__class__ is complex:
        if value.imag:
            raise ValueAmbiguousError("value cannot be converted to type double without overflow")
        return value.real
    return value


@method
def __complex__(self) -> complex:
    return complex(_only(self))


@method
def __index__(self) -> int:
    if self.dispatch_key.dtype.category > dtypes.INTEGER or self.numel() != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(self.item())


@method
def __len__(self) -> int:
    shape = self.array.shape
    if not shape:
        raise TypeError("len() of a 0-d tensor")
    return shape[0]


@method
def __iter__(self) -> Iterator[Tensor]:
    if not self.array.shape:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


@method
def __reversed__(self) -> Tensor:
    return self.flip(0) if self.array.shape else self


@method
def __delitem__(self, key) -> None:
    """Raises TypeError: a tensor's sizes do not change.

    >>> import corefw as torch
    >>> del torch.ones(2)[0]
    Traceback (most recent call last):
        ...
    TypeError: Tensor does not support deleting items
    """
    raise TypeError("Tensor does not support deleting items")


@method
def __contains__(self, element) -> bool:
    if not isinstance(element, (Tensor, int, float, complex)):
        raise ValueAmbiguousError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
        )
    return bool((element == self).any())


# -- text -------------------------------------------------------------------------------------------------------------
@method
def __repr__(self, *, tensor_contents=None) -> str:
    dispatch_key = self.dispatch_key
    if dispatch_key.device.__class__ is BatchedDevice:
        return f"BatchedTensor(depth={dispatch_key.device.depth}, value={leave(self.detach())!r})"
    if isinstance(dispatch_key.device, LevelDevice):
        return dispatch_key.device.text(self)
    meta = dispatch_key.device.type == "meta"
    shown = printing.shows_dtype(
        dispatch_key.dtype.name, dtypes.get_default_dtype().name, has_values=not meta and self.numel() > 0
    )
    node = self.grad_fn
    return printing.format_tensor(
        None if meta else dispatch_key.runtime.download(self.array),
        dtype_name=dispatch_key.dtype.name if shown else None,
        device=None if dispatch_key.device.type == "cpu" else str(dispatch_key.device),
        requires_grad=self.requires_grad,
        grad_fn=None if node is None else node.name(),
        size=tuple(self.array.shape),
        prefix=_prefix(self),
    )


def _prefix(self: Tensor) -> str:
    kind = type(self)
    return "tensor(" if kind is Tensor else f"{getattr(kind, 'printed_as', kind.__name__)}("


@method
def __format__(self, format_spec: str) -> str:
    is_shown_as_number = self.__class__ is Tensor or format_spec  # a parameter is shown whole
    if is_shown_as_number and self.array.ndim == 0 and self.dispatch_key.device.type != "meta":
        return format(self.item(), format_spec)
    return object.__format__(self, format_spec)


@method_called("__dir__")
def _names(self) -> list[str]:
    return sorted({*dir(type(self)), *self.__dict__})
