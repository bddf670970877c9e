"""`Variable`, the former name of tensors that gradients flow through."""

from __future__ import annotations

from corefw.tensor import Tensor


class _VariableType(type):
    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableType):
    """``Variable(data, requires_grad)`` is a tensor over the memory of `data`; every tensor is a Variable.

    >>> import corefw as torch
    >>> torch.autograd.Variable(torch.zeros(2), requires_grad=True)
    tensor([0., 0.], requires_grad=True)
    """

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False):
        return data.detach().requires_grad_(requires_grad)


__all__ = ["Variable"]
