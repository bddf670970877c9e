"""Access to the recorded graph: its nodes and edges, and hooks on the tensors that it saves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from corefw.autograd.differentiate import GradientEdge, edge_of
from corefw.autograd.drawing import dot
from corefw.autograd.recorder import exchange_step
from corefw.autograd.saved import pack_saved
from corefw.graph.grad_mode import Run
from corefw.graph.grad_mode import mode as grad_mode
from corefw.tensor import Node, Tensor


class _Disabled(threading.local):
    message: str | None = None


_disabled = _Disabled()


class saved_tensors_hooks:
    """Inside, what the graph saves is what `pack_hook` makes of each tensor; `unpack_hook` gives the tensor back.

    Of nested ones the innermost counts.

    Args:
        pack_hook: from a tensor to anything; it must not change the tensor.
        unpack_hook: from that to a tensor with the same content.

    >>> import corefw as torch
    >>> x = torch.ones(3, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), torch.from_numpy):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2., 2.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook
        self._before: list = []

    def __enter__(self) -> None:
        if _disabled.message is not None:
            raise RuntimeError(_disabled.message)
        step = partial(pack_saved, pack=self.pack_hook, unpack=self.unpack_hook)
        self._before.append(exchange_step("saved", step))

    def __exit__(self, *exception: object) -> None:
        exchange_step("saved", self._before.pop())


class save_on_cpu(saved_tensors_hooks):
    """Inside, what the graph saves waits in the memory of the CPU.

    Args:
        pin_memory: accepted for compatibility.
        device_type: accepted for compatibility; tensors go back to where they came from.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda tensor: (tensor.device, tensor.detach().cpu()), lambda packed: packed[1].to(packed[0]))


@contextmanager
def disable_saved_tensors_hooks(error_message: str):
    """Inside, entering `saved_tensors_hooks` raises RuntimeError with this text."""
    before, _disabled.message = _disabled.message, error_message
    try:
        yield
    finally:
        _disabled.message = before


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Say that a tensor (or several) was changed in place in a way that corefw does not see.

    >>> import corefw as torch
    >>> x = torch.zeros(2)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        t.version[0] += 1


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where `tensor` stands in the graph: usable instead of it in `grad` and `backward`, without keeping it alive."""
    return edge_of(tensor)


class _Handles:
    """The handle of a hook on several tensors."""

    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take the hook away from all of them."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all") -> _Handles:
    """Call `fn` when the gradients of `tensors` are there.

    Args:
        tensors: all require gradients.
        fn: with mode "all" called once per backward, with the list of all gradients; with "any" with the first one.
        mode: "all" or "any".
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    nodes = [edge_of(tensor).target for tensor in tensors]
    states: WeakKeyDictionary[Run, _Arrivals] = WeakKeyDictionary()
    lock = threading.Lock()

    def arrived(index: int, gradient: Tensor) -> None:
        run = grad_mode.run
        assert run is not None
        with lock:
            state = states.get(run) or states.setdefault(run, _Arrivals(nodes, run))
            state.gradients[index] = gradient
            state.left -= 1
            first, state.first = state.first, False
        if mode == "any" and first:
            fn(gradient)
        elif mode == "all" and state.left == 0:
            fn(state.gradients)

    return _Handles(t.register_hook(partial(arrived, i)) for i, t in enumerate(tensors))


class _Arrivals:
    """The gradients of some nodes that have arrived in a backward, and how many are still to come."""

    def __init__(self, nodes: Sequence[Node], run: Run):
        self.gradients: list[Tensor | None] = [None] * len(nodes)
        self.left = _awaited(nodes, run)
        self.first = True


def _awaited(nodes: Sequence[Node], run: Run) -> int:
    """How many of some nodes get a gradient in a backward."""
    oldest = min(node.sequence for node in nodes)
    stack = [node for node, _ in run.roots]
    reached = set(stack)
    while stack:
        for node in stack.pop().inputs:
            if node is not None and node.sequence >= oldest and node not in reached:
                reached.add(node)
                stack.append(node)
    return sum(node in reached and (run.needed is None or node in run.needed) for node in nodes)


__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "dot",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]
