"""The attributes of Tensor and Node that belong to differentiation."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from inspect import unwrap

from corefw.autograd.differentiate import backward
from corefw.autograd.engine import hooks_of
from corefw.autograd.handles import RemovableHandle
from corefw.autograd.saved import saved_names, saved_values
from corefw.errors import GradientError
from corefw.graph.views import node_of
from corefw.tensor import AccumulateGrad, Node, Output, Tensor, named
from corefw.tracebacks import hide_internal_frames

#: without the guard of the public function, since the method has its own
_backward = unwrap(backward)


def _add_hook(hooks: dict, hook: Callable) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


class TensorAttributes(Tensor):
    """What `attach_autograd` gives to Tensor."""

    __slots__ = ()

    @property
    def retains_grad(self) -> bool:
        """Whether the tensor is no leaf, and `retain_grad` was called."""
        node = node_of(self)
        return node is not None and node.hooks is not None and node.hooks.retain is not None

    def retain_grad(self) -> None:
        """Let `backward` fill ``.grad`` though the tensor is no leaf.

        >>> import corefw as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = x * 3
        >>> y.retain_grad()
        >>> (y * y).sum().backward()
        >>> y.grad
        tensor([6., 6.])
        """
        node = node_of(self)
        if node is None:
            raise GradientError("can't retain_grad on Tensor that has requires_grad=False")
        if node.__class__ is not AccumulateGrad:
            hooks_of(node).retain = weakref.ref(self)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook` with the tensor's gradient whenever it is computed; what it returns, if anything, replaces it.

        Returns:
            A handle whose ``remove()`` takes the hook away.

        >>> import corefw as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 10)
        >>> x.sum().backward()
        >>> x.grad
        tensor([10., 10.])
        """
        node = node_of(self)
        if node is None:
            raise GradientError("cannot register a hook on a tensor that doesn't require gradient")
        return _add_hook(hooks_of(node).tensor, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook` with the tensor, a leaf, after its ``.grad`` was filled.

        >>> import corefw as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> x.sum().backward()
        tensor([1., 1.])
        """
        node = node_of(self)
        if node is None:
            raise GradientError("cannot register a hook on a tensor that doesn't require gradient")
        if node.__class__ is not AccumulateGrad:
            raise GradientError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return _add_hook(hooks_of(node).post_accumulate, hook)

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs=None,
    ) -> None:
        """Compute the gradients of the leaves that the tensor comes from; see `corefw.autograd.backward`.

        Args:
            gradient: the gradient of some scalar with respect to this tensor; None if this one is a scalar.
            retain_graph, create_graph, inputs: as for `corefw.autograd.backward`.
        """
        try:
            _backward(self, gradient, retain_graph, create_graph, inputs=inputs)
        except Exception as error:
            hide_internal_frames(error)
            raise


class NodeAttributes(Node):
    """What `attach_autograd` gives to Node."""

    __slots__ = ()

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes of the inputs, each with which of its outputs the input is; (None, 0) where no gradient flows."""
        return tuple(
            (None, 0)
            if node is None
            else (named(node.inputs[0]), node.index)
            if node.__class__ is Output
            else (named(node), 0)
            for node in self.inputs
        )

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after the node ran; a returned tuple replaces the gradients."""
        return _add_hook(hooks_of(self).after, hook)

    def register_prehook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before the node runs; a returned tuple replaces the gradients."""
        return _add_hook(hooks_of(self).before, hook)

    def _sequence_nr(self) -> int:
        return self.sequence

    def __repr__(self) -> str:
        return f"<{self.name().rpartition('::')[2]} object at {id(self):#x}>"

    def __dir__(self):
        return [*object.__dir__(self), *(f"_saved_{n}" for name, _ in self.saved_kinds for n in saved_names(name))]

    def __getattr__(self, name: str):
        """``_saved_<name>``: what the node saved under that name."""
        if name.startswith("_saved_"):
            return saved_value(self, name.removeprefix("_saved_"))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def saved_value(node: Node, name: str):
    """What `node` saved as `name`: PyTorch's ``grad_fn._saved_self``, with the op's own names for the values."""
    values = saved_values(node)
    if name not in values:
        raise AttributeError(f"{type(node).__name__!r} object has no attribute '_saved_{name}'")
    return values[name]


class AccumulateGradAttributes(AccumulateGrad):
    """What `attach_autograd` gives to AccumulateGrad."""

    __slots__ = ()

    @property
    def variable(self) -> Tensor | None:
        """The leaf to which the gradient is added, None if it is gone."""
        return self.leaf()


def attach_autograd() -> None:
    """Give Tensor and the nodes their attributes for differentiation."""
    for source in (TensorAttributes, NodeAttributes, AccumulateGradAttributes):
        for name, value in vars(source).items():
            if name not in ("__module__", "__slots__", "__doc__"):
                setattr(source.__base__, name, value)
