"""Parameter and Buffer: tensors that a Module knows as its own."""

from __future__ import annotations

from corefw.graph.nodes import leaf_node
from corefw.graph.views import node_of
from corefw.tensor import Tensor, new
from corefw.versions import fresh_version


class Parameter(Tensor):
    """A tensor that is a module's parameter when assigned as its attribute.

    Args:
        data: the values; memory is shared, history is not.
        requires_grad: whether gradients flow into it.

    >>> import corefw as torch
    >>> torch.nn.Parameter(torch.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    __slots__ = ()
    printed_as = "tensor"

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True):
        if data is None:
            from_sizes = Tensor(0)  # an empty tensor of the default dtype
            data = from_sizes
        self = new(cls)
        self.array = data.array
        self.dispatch_key = data.dispatch_key
        self.view_info = None
        self.version = fresh_version()
        self.node = None
        if requires_grad:
            if data.dispatch_key.dtype.category < 2:
                raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
            self.node = leaf_node(self)
        return self

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True):
        pass

    def __repr__(self) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + Tensor.__repr__(self)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), node_of(self) is not None)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return _rebuild_parameter, (type(self), self.detach().clone(), node_of(self) is not None)


def _rebuild_parameter(kind, data, requires_grad):
    return kind(data, requires_grad)


class Buffer(Tensor):
    """A tensor that is a module's buffer when assigned as its attribute: part of its state, not trained.

    Args:
        data: the values; memory is shared.
        persistent: whether it belongs to the `state_dict`.
    """

    __slots__ = ()
    printed_as = "tensor"
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True):
        data = Tensor(0) if data is None else data
        self = new(cls)
        self.array = data.array
        self.dispatch_key = data.dispatch_key
        self.view_info = self.node = None
        self.version = fresh_version()
        self.persistent = persistent
        return self

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True):
        pass
