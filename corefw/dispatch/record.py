"""What is recorded of computations for gradients: the grad mode, and the history of views and in-place changes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from sys import getrefcount
from typing import Any

from corefw.errors import GradientError, ShapeError
from corefw.tensor import Accumulate, Node, Output, Tensor, View, new, next_sequence, replay, wrap


class Mode(threading.local):
    """The thread's grad mode.

    Attributes: ``recording`` False while gradients are off, else ``recorder``; ``recorder`` True, or a callable that is
    given each new node (anomaly mode, saved-tensor hooks); ``inference`` whether inside inference_mode; ``call_node``
    what the engine calls instead of ``node.backward``, None for nothing (anomaly mode); ``targeted`` whether inside a
    backward for the gradients of some tensors only.
    """

    recording: bool | Callable[[Node], None] = True
    recorder: bool | Callable[[Node], None] = True
    inference = False
    call_node: Callable[[Node, Any], Any] | None = None
    targeted = False


mode: Mode = Mode()


class no_recording:
    """Gradients off inside a with-block; the cheap form used by the framework itself."""

    __slots__ = ("before",)

    def __enter__(self):
        self.before = mode.recording
        mode.recording = False

    def __exit__(self, *exception):
        mode.recording = self.before


def leaf_node(tensor: Tensor) -> Accumulate:
    """The node that adds gradients to `tensor`, a leaf."""
    node = new(Accumulate)
    node.inputs = node.saved = ()
    node.shape = tensor.array.shape
    node.place = tensor.place
    node.hooks = None
    node.sequence = next_sequence()
    node.leaf = weakref.ref(tensor)
    return node


def output_node(parent: Node, index: int, array, place) -> Output:
    """The node of one of several outputs of `parent`."""
    node = new(Output)
    node.inputs = (parent,)
    node.saved = ()
    node.shape = array.shape
    node.place = place
    node.hooks = None
    node.sequence = next_sequence()
    node.index = index
    return node


def history(tensor: Tensor) -> Node | None:
    """The node of a tensor that is a view, renewed if its base was changed in place since."""
    view = tensor.origin
    base = _base_of(view)
    if view.base_node is not base.node:
        if base.node is None or base.node.__class__ is Accumulate:
            # a base without a history, or that became a leaf later, has no part in the view's own, unless it changes
            if view.base_node is not None and view.base_node.detached_at != base.version[0]:
                tensor.node = None
            return tensor.node
        if not view.recorded:
            if mode.recording:
                raise GradientError(
                    "A view was created in no_grad mode and its base or another view of its base has been modified "
                    "inplace with grad mode enabled. Move the creation of the view and the in-place change into the "
                    "same "
                    "mode."
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


def _base_of(view: View) -> Tensor:
    """The tensor with the memory and history that `view` shows; a base turned in place (`t_`) has another one now."""
    base = view.base
    while base.origin is not None:
        base = view.base = base.origin.base
    return base


def forget(tensor: Tensor) -> None:
    """Take a tensor's history, or that it is a leaf, from it. Views of it keep theirs until its elements change."""
    if tensor.node is not None:
        tensor.node.detached_at = tensor.version[0]
        tensor.node = None


def node_of(tensor: Tensor) -> Node | None:
    """What computed `tensor`, or its accumulator if it is a leaf that requires a gradient."""
    return tensor.node if tensor.origin is None else history(tensor)


_TWO_HOLDERS = 3  # references to a version list that two tensors hold, seen by getrefcount

_MULTIPLE_VIEWS = (
    "Output {index} of {name} is a view and is being modified inplace. This view is the output of a function that "
    "returns "
    "multiple views. Such functions do not allow the output views to be modified inplace. You should replace the "
    "inplace "
    "operation by an out-of-place one."
)


def _move_retained(old: Node | None, new: Node | None) -> None:
    """After an in-place change `Tensor.retain_grad` means the gradient of the newest value: the new node keeps it."""
    if old is None or new is None or old.hooks is None or old.hooks.retain is None:
        return
    if new.hooks is None:
        new.hooks = type(old.hooks)()
    new.hooks.retain, old.hooks.retain = old.hooks.retain, None


def base_recorded(view: View) -> bool:
    """Whether the base of a view has a history, which an in-place change of the view would become part of."""
    return _base_of(view).node is not None


def check_memory(tensor: Tensor) -> None:
    """Refuse to write to a view that shows one element several times (an expanded one)."""
    array = tensor.array
    if 0 not in array.strides or not array.nbytes:
        return
    if any(step == 0 and n > 1 for n, step in zip(array.shape, array.strides, strict=True)):
        raise ShapeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def check_overlap(tensor: Tensor, other: Tensor) -> None:
    """Refuse to write to a tensor that shares some, but not all, of its memory with an input. As in PyTorch, where
    there are gaps between the elements of one of them nothing is said."""
    if tensor.place.device is not other.place.device:
        return
    address = tensor.place.runtime.address
    first, second = (address(t.array) for t in (tensor, other))
    if not (first < second + other.array.nbytes and second < first + tensor.array.nbytes):
        return
    alike = first == second and _walk(tensor.array) == _walk(other.array)
    if not alike and all(map(_is_dense, (tensor.array, other.array))):
        raise ShapeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def _walk(array) -> list[tuple[int, int]]:
    """The strides and sizes of the dimensions along which there is more than one element."""
    return [(step, n) for n, step in zip(array.shape, array.strides, strict=True) if n != 1]


def _is_dense(array) -> bool:
    """Whether the elements lie in memory without gaps, in any order of the dimensions."""
    expected = array.dtype.itemsize
    for step, n in sorted(_walk(array)):
        if step != expected:
            return False
        expected *= n
    return True


def check_writable(tensor: Tensor) -> None:
    """Refuse an in-place change that gradients could not follow; called while recording."""
    view = tensor.origin
    if view is None:
        if tensor.node.__class__ is Accumulate:
            raise GradientError(
                "a leaf Variable that requires grad is being used in an in-place operation. Wrap it in "
                "corefw.no_grad() "
                "to change the value, or use the out-of-place op to record the computation."
            )
        return
    if _base_of(view).node.__class__ is Accumulate:
        raise GradientError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    step: View | None = view
    while step is not None:
        if not step.recorded:
            raise GradientError(
                "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Move the "
                "creation of the view and the in-place change into the same mode."
            )
        several = getattr(step.function, "several", None)
        if several is not None:
            raise GradientError(_MULTIPLE_VIEWS.format(index=step.arguments[0], name=several))
        step = step.parent


def _in_layout(tensor: Tensor, strides: tuple[int, ...]) -> Tensor:
    """A copy of `tensor` whose memory has these strides."""
    runtime, array = tensor.place.runtime, tensor.array
    if array.strides == tuple(stride * array.dtype.itemsize for stride in strides):
        return tensor.clone()
    extent = (
        sum((n - 1) * stride for n, stride in zip(array.shape, strides, strict=True)) + 1 if 0 not in array.shape else 0
    )
    memory = runtime.empty((extent,), tensor.place.dtype, tensor.place.device.index)
    return wrap(runtime.as_strided(memory, array.shape, strides, 0), tensor.place).copy_(tensor)


class CopySlices(Node):
    """An in-place change of a view, as a computation of the view's base: the changed part's gradient goes through the
    op that changed it, the rest passes by."""

    __slots__ = ("change", "layout", "steps")
    change: Node | None
    layout: tuple[int, ...]  # the base's strides in elements, which view ops depend on
    steps: list  # from the base to the changed view
    saves_tensors = True

    def backward(self, gradient):
        if self.change is None:
            raise freed(self)
        result = _in_layout(gradient, self.layout)
        part = replay(self.steps, result)
        gradients = self.change.backward(part.clone())
        first = gradients[0]
        if first is None:
            part.zero_()
        else:
            if first.array.shape != part.array.shape:
                first = first.sum_to_size(part.array.shape)
            part.copy_(first)
        return (result, *gradients[1:])

    def release(self):
        self.change = None  # not released itself: second derivatives may reach it through an output that it saved

    def name(self):
        return "torch::autograd::CopySlices"


def rebase(tensor: Tensor, node: Node) -> None:
    """Make `node`, an in-place change, the history of `tensor` and of all tensors over its memory."""
    view = tensor.origin
    if view is None:
        _move_retained(tensor.node, node)
        tensor.node = node
        return
    base = _base_of(view)
    slices = new(CopySlices)
    slices.inputs = (base.node, *node.inputs[1:])
    slices.saved = ()
    slices.shape = base.array.shape
    slices.place = base.place
    slices.hooks = None
    slices.sequence = next_sequence()
    slices.change = node
    slices.layout = tuple(stride // base.array.dtype.itemsize for stride in base.array.strides)
    slices.steps = view.steps()  # not the View itself: it holds the base, which holds this node
    _move_retained(base.node, slices)
    base.node = slices  # the view's own node is renewed from here when it is next asked for


def become(tensor: Tensor, result: Tensor) -> Tensor:
    """Make `tensor` what `result`, a view of it, is: the in-place form of a view op. No element moves."""
    node = node_of(tensor)
    if node is not None and mode.recording:
        check_writable(tensor)
    if tensor.origin is not None:
        tensor.origin = result.origin
    elif getrefcount(tensor.version) > _TWO_HOLDERS:  # other views show the base as it was: it lives on behind them
        base = wrap(tensor.array, tensor.place, node)
        base.version = tensor.version
        tensor.origin = result.origin
        tensor.origin.base = base
    tensor.array = result.array
    if node.__class__ is Accumulate:
        node.shape = result.array.shape
    else:
        tensor.node = result.node
    tensor.version[0] += 1
    return tensor


def stale(name: str, shape, place, expected: int, version: int) -> GradientError:
    """The error for a saved tensor that was changed before its gradient was computed."""
    return GradientError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{place.dtype!r} {list(shape)}], saved for {name}, is at version {version}; expected version {expected} "
        "instead. "
        "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "corefw.autograd.set_detect_anomaly(True)."
    )


def freed(node: Node) -> GradientError:
    """The error for a second backward through a graph whose saved tensors are gone."""
    return GradientError(
        f"Trying to backward through the graph a second time (at {node.name()}): its saved tensors were freed by the "
        "first "
        "backward. Specify retain_graph=True the first time if you need to do it again."
    )
