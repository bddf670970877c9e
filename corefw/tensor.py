"""The slots of Tensor, Node and View; their methods are attached from the op declarations and by the upper floors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from corefw.versions import fresh_version, inferring

#: numbers nodes in the order of their creation; the engine runs them backwards in this order
next_sequence: Callable[[], int] = count().__next__


class Tensor:
    """A multi-dimensional array of one dtype on one device, with PyTorch's methods.

    Slots: ``array`` the device's raw array; ``dispatch_key`` its (device, dtype); ``node`` what computed it, None if no
    gradient flows; ``view_info`` how it was taken from another tensor, None for a tensor of its own; ``version`` a
    list whose first number counts in-place changes, shared by all tensors over one memory (see `versions.py`).
    """

    __slots__ = ("__dict__", "__weakref__", "array", "dispatch_key", "node", "version", "view_info")
    __array_priority__ = 1000  # NumPy operators defer to Tensor's
    __hash__ = object.__hash__
    array: Any
    dispatch_key: Any
    node: Any
    view_info: Any
    version: list[int]
    _grad: Any = None  # what `backward` accumulated
    _plain: type[Tensor]  # the class of tensors over its memory, whatever subclass it is of


Tensor._plain = Tensor


class Constant(Tensor):
    """A Python number as a 0-d operand; it has the lowest priority in dtype promotion.

    Slots: ``number`` the number itself, for formulas that are simpler for some numbers.
    """

    __slots__ = ("number",)
    number: Any


new: Callable[[type[Any]], Any] = object.__new__


def wrap(array, dispatch_key, node=None) -> Tensor:
    """A fresh Tensor over a raw array of `dispatch_key`."""
    tensor = new(Tensor)
    tensor.array = array
    tensor.dispatch_key = dispatch_key
    tensor.node = node
    tensor.view_info = None
    tensor.version = [0] if not inferring else fresh_version()
    return tensor


class ViewInfo:
    """How a tensor was taken from another one: enough to take it again from a changed `base`.

    Slots: ``base`` the tensor that owns memory and history; ``parent`` the View of the tensor it was taken from (None
    if that is the base); ``function, arguments`` the view op; ``base_node`` the base's node when the view's own node
    was
    made: the view's node is valid while this is still the base's; ``recorded`` whether gradients were on.
    """

    __slots__ = ("arguments", "base", "base_node", "function", "parent", "recorded")
    base: Tensor
    parent: ViewInfo | None
    function: Callable[..., Any]
    arguments: tuple
    base_node: Node | None
    recorded: bool
    arguments: tuple
    base: Tensor
    base_node: Node | None
    function: Any
    parent: ViewInfo | None
    recorded: bool

    def steps(self) -> list[tuple[Any, tuple]]:
        """The view ops from the base to this view, each with its arguments."""
        found = []
        step: ViewInfo | None = self
        while step is not None:
            found.append((step.function, step.arguments))
            step = step.parent
        return found[::-1]


def replay(steps: list[tuple[Any, tuple]], base: Tensor) -> Tensor:
    """Take the view that `steps` describe of another tensor of the base's geometry."""
    for function, arguments in steps:
        base = function(base, *arguments)
    return base


class Node:
    """One recorded computation: calls its op's gradient formulas with what was saved.

    Slots: ``inputs`` the nodes of the op's tensor arguments (None where no gradient flows); ``saved`` what the formulas
    need, None once freed; ``shape, dispatch_key`` of the output, to which the engine brings arriving gradients;
    ``sequence`` the creation order; ``hooks`` a Hooks object or None.
    Attributes: ``detached_at`` how often its output's memory had been changed when that was detached in place;
    ``variant`` where PyTorch's name depends on the call, what tells the class with that name from the node; ``part``
    the table of a view op that shows each element at most once, so that its gradient may be added where it belongs;
    ``by_formulas`` whether ``backward`` computes nothing for inputs that are None, and gives the node to nobody.
    Each op has its own subclass, named as PyTorch names it (AddBackward0), whose ``backward`` is generated.
    """

    __slots__ = ("__dict__", "__weakref__", "dispatch_key", "hooks", "inputs", "saved", "sequence", "shape")
    inputs: tuple
    saved: Any  # a tuple or, where hooks packed it, an iterable; None once freed
    shape: tuple[int, ...]
    dispatch_key: Any
    sequence: int
    hooks: Any
    saves_tensors = False
    saved_kinds: tuple[tuple[str, str], ...] = ()  # (name, kind) of what `saved` holds
    output_names: tuple[str, ...] = ()  # if there are several
    outputs = 1
    detached_at: int | None = None
    variant: Callable[[], type[Node]] | None = None
    part: Mapping[Any, tuple] | None = None
    by_formulas = False

    def backward(self, gradient):
        """The gradients of the inputs, given the gradient of the output."""
        raise NotImplementedError

    def release(self) -> None:
        """Free what was saved."""
        if self.saves_tensors:
            self.saved = None

    def name(self) -> str:
        """PyTorch's name of the node, e.g. "AddBackward0"."""
        return type(named(self)).__name__

    @property
    def metadata(self) -> dict:
        """A dictionary for notes on the node; anomaly mode leaves the forward traceback here."""
        return self.__dict__.setdefault("metadata_", {})


def named(node: Node) -> Node:
    """A node as it is shown: in the class that is called as PyTorch calls the node. Recording leaves this to those who
    look."""
    if node.variant is not None:
        node.__class__ = node.variant()
    return node


class Output(Node):
    """One output of a node with several: collects its gradient for the parent, which runs when all have come."""

    __slots__ = ("index",)
    index: int


class AccumulateGrad(Node):
    """The end of the graph at a leaf tensor: its gradient is added to the leaf's ``.grad``."""

    __slots__ = ("leaf",)
    leaf: Any  # a weak reference to the tensor

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"
