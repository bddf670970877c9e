"""Dual tensors for users: tensors with tangents, which all ops inside of a level carry along."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from typing import NamedTuple

from corefw.autograd.duals.arrays import Scope
from corefw.autograd.duals.calls import carrying
from corefw.autograd.duals.tensors import begin, end, make, primal_of, tangent_of
from corefw.dispatch.batching.arrays import levels
from corefw.dtypes import FLOATING
from corefw.tensor import Tensor


class _Entered(threading.local):
    """The level that the thread has entered."""

    scope: Scope | None = None


_entered = _Entered()


class UnpackedDualTensor(NamedTuple):
    """A tensor apart from its tangent.

    Attributes: ``primal`` the tensor without it; ``tangent`` of the same shape, None if it has none.
    """

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin a level of forward-mode differentiation; there is one at a time.

    Returns:
        Its number, 0.

    Raises:
        RuntimeError: this thread is inside of one already; `corefw.func.jvp` nests.
    """
    if _entered.scope is not None:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment: nest func.jvp to differentiate several times"
        )
    _entered.scope = begin()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: the tangents of its tensors are forgotten.

    Args:
        level: its number; by default that of the level entered last.

    Raises:
        RuntimeError: it is not the innermost one.
    """
    scope = _entered.scope
    if scope is None or level not in (None, 0) or levels.innermost() is not scope:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _entered.scope = None
    end(scope)


class dual_level(ContextDecorator):
    """A block inside of which tensors may have tangents, `make_dual` gives them, and `unpack_dual` reads them.

    >>> import corefw as torch
    >>> from corefw.autograd import forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     dual = fwAD.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
    ...     fwAD.unpack_dual(dual**3).tangent
    tensor([3., 0.])
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


def _scope(level: int | None) -> Scope | None:
    if level not in (None, -1, 0):
        raise RuntimeError(f"there is no forward AD level {level}: they do not nest")
    return _entered.scope


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor with a tangent: what is computed from it has the tangent that its derivative makes of this one.

    Args:
        tensor: any shape, of floating or complex elements. The result shares its memory and history.
        tangent: of the same shape; converted to the dtype of `tensor`.
        level: the number of the level, 0.

    Raises:
        RuntimeError: outside of a level, for another shape, or for a tensor that has a tangent already.
        ValueError: for a dtype of integers.

    >>> import corefw as torch
    >>> from corefw.autograd import forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     fwAD.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])).exp()
    tensor([2.7183, 7.3891], tangent=tensor([2.7183, 0.0000]))
    """
    scope = _scope(level)
    if scope is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(value, Tensor):
            raise TypeError(f"make_dual(): argument '{name}' must be Tensor, not {type(value).__name__}")
        if value.dispatch_key.dtype.category < FLOATING:
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    if tangent.shape != tensor.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if tangent_of(tensor, scope) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    if tangent_of(tangent, scope) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level 0 is not supported."
        )
    if not carrying.forward:
        return tensor.view_as(tensor)
    return make(primal_of(tensor, scope), primal_of(tangent, scope), scope)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A tensor apart from its tangent, both with their histories.

    Args:
        tensor: any; the tangent of one without is None, as is that of one whose level ended.
        level: the number of the level, 0.

    >>> import corefw as torch
    >>> from corefw.autograd import forward_ad as fwAD
    >>> fwAD.unpack_dual(torch.tensor([1.0]))
    UnpackedDualTensor(primal=tensor([1.]), tangent=None)
    """
    scope = _scope(level)
    if scope is None:
        return UnpackedDualTensor(tensor, None)
    tangent = tangent_of(tensor, scope) if carrying.forward else None
    return UnpackedDualTensor(primal_of(tensor, scope), tangent)


def _is_fwd_grad_enabled() -> bool:
    """Whether this thread carries tangents along."""
    return carrying.forward


class _set_fwd_grad_enabled(ContextDecorator):
    """Switch tangents on or off, from the call on; as a context manager until its end."""

    def __init__(self, mode: bool):
        self._before, carrying.forward = carrying.forward, bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        carrying.forward = self._before


__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]
