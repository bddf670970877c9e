"""The history of views: each renews itself when its base has been changed."""

from __future__ import annotations

from corefw.errors import GradientError
from corefw.graph.grad_mode import mode
from corefw.tensor import AccumulateGrad, Node, Tensor, ViewInfo, replay


def history(tensor: Tensor) -> Node | None:
    """The node of a tensor that is a view, renewed if its base was changed in place since."""
    view = tensor.view_info
    base = _base_of(view)
    if view.base_node is not base.node:
        if base.node is None or base.node.__class__ is AccumulateGrad:
            # a base without a history, or that became a leaf later, has no part in the view's own, unless it changes
            if view.base_node is not None and view.base_node.detached_at != base.version[0]:
                tensor.node = None
            return tensor.node
        if not view.recorded:
            if mode.recording:
                raise GradientError(
                    "A view was created in no_grad mode and its base or another view of its base has been modified "
                    "inplace with grad mode enabled. Move the creation of the view and the in-place change into the "
                    "same mode."
                )
            return tensor.node
        else:
            before, mode.recording = mode.recording, mode.recorder
            try:
                node = replay(view.steps(), base).node
            finally:
                mode.recording = before
            _move_retained(tensor.node, node)
            tensor.node = node
        view.base_node = base.node
    return tensor.node


def _base_of(view: ViewInfo) -> Tensor:
    """The tensor with the memory and history that `view` shows; a base turned in place (`t_`) has another one now."""
    base = view.base
    while base.view_info is not None:
        base = view.base = base.view_info.base
    return base


def forget(tensor: Tensor) -> None:
    """Take a tensor's history, or that it is a leaf, from it. Views of it keep theirs until its elements change."""
    if tensor.node is not None:
        tensor.node.detached_at = tensor.version[0]
        tensor.node = None


def node_of(tensor: Tensor) -> Node | None:
    """What computed `tensor`, or its accumulator if it is a leaf that requires a gradient."""
    return tensor.node if tensor.view_info is None else history(tensor)


def _move_retained(old: Node | None, new: Node | None) -> None:
    """After an in-place change `Tensor.retain_grad` means the gradient of the newest value: the new node keeps it."""
    if old is None or new is None or old.hooks is None or old.hooks.retain is None:
        return
    if new.hooks is None:
        new.hooks = type(old.hooks)()
    new.hooks.retain, old.hooks.retain = old.hooks.retain, None


def base_recorded(view: ViewInfo) -> bool:
    """Whether the base of a view has a history, which an in-place change of the view would become part of."""
    return _base_of(view).node is not None
