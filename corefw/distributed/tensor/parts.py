"""Tensors in parts on the processes of a mesh, and the nodes by which gradients pass between them and the parts.

All else is computed by ops on the parts, which are ordinary tensors: their gradients are ordinary gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NoReturn

from corefw.devices import DispatchKey
from corefw.dispatch.runtime import Runtime
from corefw.dispatch.sparse.keys import kinds, layout_key
from corefw.distributed.device_mesh import DeviceMesh
from corefw.distributed.tensor.placements import WHOLE, Placement, Shard, Spec
from corefw.distributed.tensor.redistribution import redistributed
from corefw.errors import LayoutError
from corefw.graph.grad_mode import mode, no_recording
from corefw.graph.views import node_of
from corefw.tensor import AccumulateGrad, Node, Tensor, new, next_sequence, wrap
from corefw.versions import fresh_version


class Parts:
    """What stands in the slot `array` of a tensor in parts.

    It has the shape of an array, for the engine; whatever else asks it for an array's attributes is refused.

    Attributes: ``local`` this process's part, without a history; ``shape`` of the whole; ``spec`` where it lies;
    ``is_view`` whether a view op made it, ``is_copy`` whether of other memory, since the parts had to be moved.
    """

    __slots__ = ("is_copy", "is_view", "local", "shape", "spec")
    __array_ufunc__ = None  # NumPy refuses it
    base = object  # held by many: the memory may be another tensor's too, so a gradient is copied before it is kept

    def __init__(self, local: Tensor, shape: Sequence[int], spec: Spec):
        self.local, self.shape, self.spec = local, tuple(shape), spec
        self.is_view = self.is_copy = False

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def __getattr__(self, name: str) -> NoReturn:
        raise LayoutError(f"a DTensor has no {name} of its own: take .to_local(), or .full_tensor()")

    def __array__(self, *arguments: Any, **options: Any) -> NoReturn:
        raise LayoutError("a DTensor is no array: take .to_local(), or .full_tensor()")


class PartsRuntime(Runtime):
    """The memory of tensors in parts, that of their parts. Python and NumPy see the whole, for which all processes of
    the mesh must ask."""

    array_type = Parts

    def __init__(self, dense: DispatchKey, spec: Spec):
        self.dense, self.spec, self.inner = dense, spec, dense.runtime
        self.device_type, self.dtypes = self.inner.device_type, self.inner.dtypes

    def empty(self, shape, dtype, index):
        spec = self.spec_of(shape)
        made = self.inner.empty(spec.extent(shape)[0], dtype, index)
        return Parts(wrap(made, self.dense.with_dtype(dtype)), shape, spec)

    def spec_of(self, shape: Sequence[int]) -> Spec:
        """Where a new tensor lies: as the one in whose image it is made, as far as it has the dimensions."""
        return self.spec.replaced(
            [p if isinstance(p, Shard) and p.dim < len(shape) else WHOLE for p in self.spec.placements]
        )

    def constant(self, number, dtype, index):
        made = wrap(self.inner.constant(number, dtype, index), self.dense.with_dtype(dtype))
        return Parts(made, (), self.spec.whole)

    def clone(self, array):
        return Parts(array.local.clone(), array.shape, array.spec)

    def download(self, array):
        return self.inner.download(_whole(array).array)

    def item(self, array):
        return self.inner.item(_whole(array).array)

    def is_contiguous(self, array):
        return True

    def is_writable(self, array):
        return self.inner.is_writable(array.local.array)


def _whole(array: Parts) -> Tensor:
    spec = array.spec
    with no_recording():
        return redistributed(array.local, array.shape, spec.mesh, spec.placements, spec.whole.placements).contiguous()


class Passage(Node):
    """A node between a tensor in parts and its part, or the same tensor elsewhere; `back` brings gradients back."""

    __slots__ = ("back", "title")
    back: Callable[[Tensor], Tensor]
    title: str

    def backward(self, gradient):
        return (self.back(gradient),)

    def name(self) -> str:
        return self.title


def _record(result: Tensor, node: Node | None, back: Callable[[Tensor], Tensor], title: str) -> Tensor:
    """Make a tensor a computation of what has the node."""
    if node is not None:
        result.node = made = new(Passage)
        made.inputs, made.saved, made.hooks = (node,), (), None
        made.shape, made.dispatch_key = tuple(result.array.shape), result.dispatch_key
        made.back, made.title, made.sequence = back, title, next_sequence()
        if mode.recording is not True:
            mode.recording(made)  # type: ignore[operator]
    return result


def _made(local: Tensor, shape: Sequence[int], spec: Spec) -> Any:
    result = new(kinds[Spec].tensor_class)
    result.array = Parts(local, shape, spec)
    result.dispatch_key = layout_key(local.dispatch_key, spec)
    result.node = result.view_info = None
    result.version = fresh_version()
    return result


def assembled(
    local: Tensor, shape: Sequence[int], spec: Spec, title: str = "FromLocalBackward0",
    gradient: Sequence[Placement] | None = None, again: Sequence[Placement] | None = None,
) -> Any:  # fmt: skip
    """The tensor of `shape` whose part on this process is `local`, as a computation of that.

    Args:
        gradient: the placements of the gradient that `local` gets; those of `Spec.of_gradient` if missing.
        again: how the gradient of that gradient is to be understood; as by `Spec.of_gradient` if missing.
    """
    node = node_of(local) if mode.recording else None
    result = _made(local if node is None and local.view_info is None else local.detach(), shape, spec)
    wanted = spec.of_gradient() if gradient is None else spec.replaced(gradient)
    return _record(result, node, lambda grad: local_of(placed(grad, wanted), again), title)


def local_of(tensor: Tensor, gradient: Sequence[Placement] | None = None) -> Tensor:
    """This process's part of a tensor in parts, as a computation of it.

    Args:
        gradient: how the part's gradient is to be understood; as by `Spec.of_gradient` if missing.
    """
    parts: Parts = tensor.array
    node = node_of(tensor) if mode.recording else None
    if node is None:
        return parts.local
    shape, wanted, found = parts.shape, parts.spec.of_gradient(), parts.spec.of_gradient()
    if gradient is not None:
        found = parts.spec.replaced(gradient)
    at_once = node.__class__ is AccumulateGrad  # a leaf's gradient lies as the leaf; others may be added up as terms

    def back(grad: Tensor) -> Tensor:
        made = assembled(grad, shape, found)
        return placed(made, wanted) if at_once else made

    result = parts.local.detach()
    result.view_info = None
    return _record(result, node, back, "ToLocalBackward0")


def placed(tensor: Tensor, spec: Spec) -> Any:
    """A tensor in parts where `spec` says, as a computation of it: itself if it lies there."""
    if not in_parts(tensor):
        raise RuntimeError("expected a DTensor, such as the gradient of one, but got a torch.Tensor: distribute it")
    parts: Parts = tensor.array
    source = parts.spec
    if source == spec:
        return tensor
    with no_recording():
        local = redistributed(parts.local, parts.shape, spec.mesh, source.placements, spec.placements)
    result = _made(local, parts.shape, spec)
    node = node_of(tensor) if mode.recording else None
    back = source.of_gradient()
    return _record(result, node, lambda grad: placed(grad, back), "RedistributeBackward0")


def whole_of(tensor: Tensor, mesh: DeviceMesh) -> Any:
    """A plain tensor, the same on all processes, as one on a mesh."""
    return assembled(tensor, tensor.array.shape, Spec(mesh, (WHOLE,) * mesh.ndim))


def in_parts(value: Any) -> bool:
    """Whether a value is a tensor in parts."""
    return isinstance(value, Tensor) and value.array.__class__ is Parts
