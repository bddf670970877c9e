"""In-place changes: what they are checked for, and how they enter the history of the base."""

from __future__ import annotations

from collections.abc import Iterable
from sys import getrefcount

from corefw.errors import GradientError, ShapeError
from corefw.graph.grad_mode import mode
from corefw.graph.nodes import freed
from corefw.graph.views import _base_of, _move_retained, node_of
from corefw.tensor import AccumulateGrad, Node, Tensor, ViewInfo, new, next_sequence, replay, wrap

_TWO_HOLDERS = 3  # references to a version list that two tensors hold, seen by getrefcount


_MULTIPLE_VIEWS = (
    "Output {index} of {name} is a view and is being modified inplace. This view is the output of a function that "
    "returns "
    "multiple views. Such functions do not allow the output views to be modified inplace. You should replace the "
    "inplace "
    "operation by an out-of-place one."
)


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
    if tensor.dispatch_key.device is not other.dispatch_key.device:
        return
    address = tensor.dispatch_key.runtime.address
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
    view = tensor.view_info
    if view is None:
        if tensor.node.__class__ is AccumulateGrad:
            raise GradientError(
                "a leaf Variable that requires grad is being used in an in-place operation. Wrap it in "
                "corefw.no_grad() to change the value, or use the out-of-place op to record the computation."
            )
        return
    if _base_of(view).node.__class__ is AccumulateGrad:
        raise GradientError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    step: ViewInfo | None = view
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


def check_unrecorded(name: str, tensors: Iterable[Tensor]) -> None:
    """Refuse to change tensors that require grad by an op without a gradient; called while recording."""
    for tensor in tensors:
        if node_of(tensor) is not None:
            check_writable(tensor)
            raise GradientError(f"{name}: the derivative is not implemented. Run it inside corefw.no_grad().")


def _in_layout(tensor: Tensor, strides: tuple[int, ...]) -> Tensor:
    """A copy of `tensor` whose memory has these strides."""
    runtime, array = tensor.dispatch_key.runtime, tensor.array
    if array.strides == tuple(stride * array.dtype.itemsize for stride in strides):
        return tensor.clone()
    extent = (
        sum((n - 1) * stride for n, stride in zip(array.shape, strides, strict=True)) + 1 if 0 not in array.shape else 0
    )
    memory = runtime.empty((extent,), tensor.dispatch_key.dtype, tensor.dispatch_key.device.index)
    return wrap(runtime.as_strided(memory, array.shape, strides, 0), tensor.dispatch_key).copy_(tensor)


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
    view = tensor.view_info
    if view is None:
        _move_retained(tensor.node, node)
        tensor.node = node
        return
    base = _base_of(view)
    slices = new(CopySlices)
    slices.inputs = (base.node, *node.inputs[1:])
    slices.saved = ()
    slices.shape = base.array.shape
    slices.dispatch_key = base.dispatch_key
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
    if tensor.view_info is not None:
        tensor.view_info = result.view_info
    elif getrefcount(tensor.version) > _TWO_HOLDERS:  # other views show the base as it was: it lives on behind them
        base = wrap(tensor.array, tensor.dispatch_key, node)
        base.version = tensor.version
        tensor.view_info = result.view_info
        tensor.view_info.base = base
    tensor.array = result.array
    if node.__class__ is AccumulateGrad:
        node.shape = result.array.shape
    elif node is None or mode.recording:  # else it keeps its history, as after any change
        tensor.node = result.node
    tensor.version[0] += 1
    return tensor
