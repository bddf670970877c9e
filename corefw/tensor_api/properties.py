"""What a tensor says of itself: shape, type, dispatch key, memory, and its part in gradients."""

from __future__ import annotations

import warnings
from math import prod
from operator import attrgetter
from threading import get_ident
from typing import overload

from corefw import layouts
from corefw.dispatch import promotion
from corefw.dispatch.batching.arrays import LevelDevice, stopped
from corefw.dispatch.declare import ops
from corefw.dtypes import FLOATING, dtype
from corefw.errors import GradientError
from corefw.graph.nodes import leaf_node
from corefw.graph.views import forget, history, node_of
from corefw.layouts import strided
from corefw.refusals import REFUSALS, Refused
from corefw.shapes import Size, as_shape, broadcast, canonical_dim, sizes
from corefw.tensor import AccumulateGrad, Node, Output, Tensor, ViewInfo, named, wrap
from corefw.tensor_api.attach import attribute, deletable, method, method_called, settable
from corefw.versions import InferenceCount, expose, inferring

# Read in C, without a Python frame.
for _name, _path, _doc in (
    ("dtype", "dispatch_key.dtype", "The element type."),
    ("device", "dispatch_key.device", "Where the elements lie."),
    ("ndim", "array.ndim", "The number of dimensions."),
    ("itemsize", "dispatch_key.dtype.itemsize", "The bytes of an element."),
):
    setattr(Tensor, _name, property(attrgetter(_path), doc=_doc))


# -- shape ------------------------------------------------------------------------------------------------------------
@attribute
def shape(self) -> Size:
    """The sizes of all dimensions."""
    return sizes[self.array.shape]


@overload
def size(self, dim: None = None) -> Size: ...
@overload
def size(self, dim: int) -> int: ...
@method
def size(self, dim=None):
    """The sizes of all dimensions, or of `dim`.

    >>> import corefw as torch
    >>> torch.zeros(2, 3).size(), torch.zeros(2, 3).size(-1)
    (torch.Size([2, 3]), 3)
    """
    shape = self.array.shape
    return sizes[shape] if dim is None else shape[_dimension(dim, len(shape), "size")]


def is_tensor(obj) -> bool:
    """Whether `obj` is a tensor.

    >>> import corefw as torch
    >>> torch.is_tensor(torch.zeros(2)), torch.is_tensor(1)
    (True, False)
    """
    return isinstance(obj, Tensor)


def result_type(tensor, other) -> dtype:
    """The dtype of arithmetic between two tensors or numbers: tensors with dimensions decide, then 0-d tensors, then
    numbers, each only by a higher category.

    >>> import corefw as torch
    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    """
    return promotion.result_type(tensor, other)


def broadcast_shapes(*shapes) -> Size:
    """The shape to which all `shapes` broadcast.

    >>> import corefw as torch
    >>> torch.broadcast_shapes((3, 1), (4,))
    torch.Size([3, 4])
    """
    return Size(broadcast(*map(as_shape, shapes)))


def _dimension(dim, ndim: int, name: str) -> int:
    if not hasattr(dim, "__index__"):
        raise TypeError(f"{name}(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
    if ndim == 0:
        raise _ZeroDimensions(f"Dimension specified as {dim} but tensor has no dimensions")
    return canonical_dim(dim, ndim)


class _ZeroDimensions(IndexError):
    """A dimension is named of a tensor that has none."""


@method
def dim(self) -> int:
    """The number of dimensions."""
    return self.array.ndim


@method
def ndimension(self) -> int:
    """The number of dimensions."""
    return self.array.ndim


@method_called("numel")
def _numel(self) -> int:
    """The number of elements."""
    return prod(self.array.shape)


def numel(input) -> int:
    """The number of elements of a tensor.

    >>> import corefw as torch
    >>> torch.numel(torch.zeros(2, 3))
    6
    """
    try:
        return prod(input.array.shape)
    except AttributeError:
        raise TypeError(f"numel(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}") from None


@method
def nelement(self) -> int:
    """The number of elements."""
    return prod(self.array.shape)


@method
def element_size(self) -> int:
    """The bytes of an element."""
    return self.dispatch_key.dtype.itemsize


@attribute
def nbytes(self) -> int:
    """The bytes of all elements."""
    return prod(self.array.shape) * self.dispatch_key.dtype.itemsize


@method
def dim_order(self, ambiguity_check: bool = False) -> tuple[int, ...]:
    """The dimensions from the slowest to the fastest varying in memory.

    >>> import corefw as torch
    >>> torch.zeros(2, 3).t().dim_order()
    (1, 0)
    """
    strides = self.array.strides
    return tuple(sorted(range(len(strides)), key=lambda d: -strides[d]))


# -- type and dispatch key --------------------------------------------------------------------------------------------
@attribute
def layout(self) -> layouts.layout:
    """How the elements are held: `torch.strided`."""
    return strided


def _device_test(name: str, doc: str) -> None:
    def test(self) -> bool:
        return self.dispatch_key.device.type == name[3:]

    setattr(Tensor, name, property(test, doc=doc))


_device_test("is_cpu", "Whether the elements lie in the CPU's memory.")
_device_test("is_cuda", "Whether the elements lie in a GPU's memory.")
_device_test("is_meta", "Whether there are no elements, only their shape and type.")


def _never(name: str, doc: str) -> None:
    def never(self) -> bool:
        return False

    setattr(Tensor, name, property(never, doc=doc))


for _name in ("is_sparse", "is_sparse_csr", "is_quantized", "is_nested", "is_mkldnn", "is_mps", "is_xpu", "is_ipu"):
    _never(_name, "False: corefw has no such tensors.")

for _name in REFUSALS:
    if _name.startswith("Tensor."):
        setattr(Tensor, _name.removeprefix("Tensor."), Refused(_name))


@method
def get_device(input) -> int:
    """The index of the device, -1 for the CPU."""
    index = input.dispatch_key.device.index
    return -1 if index is None else index


@method
def is_floating_point(self) -> bool:
    """Whether the elements are of a floating type."""
    return self.dispatch_key.dtype.is_floating_point


@method
def is_complex(self) -> bool:
    """Whether the elements are complex."""
    return self.dispatch_key.dtype.is_complex


@method
def is_signed(self) -> bool:
    """Whether the element type has negative numbers."""
    return self.dispatch_key.dtype.is_signed


@method
def is_neg(self) -> bool:
    """False: negation is computed at once."""
    return False


@method
def is_inference(input) -> bool:
    """Whether the tensor, or the one of which it is a view, was made in inference mode.

    >>> import corefw as torch
    >>> with torch.inference_mode():
    ...     x = torch.ones(2)
    >>> x.is_inference(), x[0].is_inference(), (x + 1).is_inference()
    (True, True, False)
    """
    return input.version[0].__class__ is InferenceCount


# -- gradients --------------------------------------------------------------------------------------------------------
@attribute
def requires_grad(self) -> bool:
    """Whether gradients are computed for this tensor; settable for leaves."""
    return (self.node if self.view_info is None else history(self)) is not None


@settable(requires_grad)
def _(self, value) -> None:
    if value.__class__ is not bool:
        raise TypeError_("requires_grad must be a bool")
    _set_requires_grad(self, value, "Only Tensors of floating point and complex dtype can require gradients")


class TypeError_(RuntimeError, TypeError):
    """An argument of the wrong type, where PyTorch raises RuntimeError."""


@method
def requires_grad_(self, requires_grad: bool = True) -> Tensor:
    """Ask for gradients with respect to this tensor, a leaf; returns it.

    >>> import corefw as torch
    >>> torch.ones(2).requires_grad_()
    tensor([1., 1.], requires_grad=True)
    """
    _set_requires_grad(self, bool(requires_grad), "only Tensors of floating point dtype can require gradients")
    return self


def _set_requires_grad(self: Tensor, wanted: bool, wrong_dtype: str) -> None:
    if wanted and get_ident() not in inferring and is_inference(self):
        raise GradientError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    node = node_of(self)
    if node is not None and node.__class__ is not AccumulateGrad:
        if wanted:
            return
        raise GradientError(
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
            "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
        )
    if wanted == (node is not None):
        return
    if not wanted:
        forget(self)
        return
    if self.dispatch_key.dtype.category < FLOATING:
        raise GradientError(wrong_dtype)
    self.view_info = None  # a view without history is a leaf of its own from now on; the version list stays shared
    self.node = leaf_node(self)


@attribute
def is_leaf(self) -> bool:
    """Whether the tensor was not computed from others that require gradients."""
    node = node_of(self)
    return node is None or node.__class__ is AccumulateGrad


@attribute
def grad_fn(self) -> Node | None:
    """The recorded computation whose result this tensor is; None for a leaf."""
    node = node_of(self)
    if node is None or node.__class__ is AccumulateGrad:
        return None
    return named(node.inputs[0] if node.__class__ is Output else node)


@attribute
def grad(self) -> Tensor | None:
    """The gradient accumulated by `backward`; settable, None to forget it."""
    found = self._grad
    if found is None and self.node is not None and self.node.__class__ is not AccumulateGrad:
        hooks = self.node.hooks
        if hooks is None or hooks.retain is None:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for "
                "a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by "
                "mistake, make sure you access the leaf Tensor instead.",
                UserWarning,
                stacklevel=2,
            )
    return found


@settable(grad)
def _(self, value) -> None:
    if value is not None:
        if not isinstance(value, Tensor):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
            )
        if value is self:
            raise GradientError("can't assign Variable as its own grad")
        if value.dispatch_key.device is not self.dispatch_key.device:
            raise GradientError(
                f"attempting to assign a gradient with device type '{value.dispatch_key.device}' to a tensor "
                "with device type "
                f"'{self.dispatch_key.device}'. Please ensure that the gradient and the tensor are on the same device"
            )
        if value.dispatch_key.dtype is not self.dispatch_key.dtype:
            raise GradientError(
                f"attempting to assign a gradient with dtype '{value.dispatch_key.dtype.title}' to a tensor with dtype "
                f"'{self.dispatch_key.dtype.title}'. Please ensure that the gradient and the tensor have the same dtype"
            )
        if value.array.shape != self.array.shape:
            raise GradientError(
                f"attempting to assign a gradient of size '{list(value.array.shape)}' to a tensor of size "
                f"'{list(self.array.shape)}'. Please ensure that the gradient and the tensor are the same size"
            )
    self._grad = value


@deletable(grad)
def _(self) -> None:
    self._grad = None


@attribute
def data(self) -> Tensor:
    """The same memory without history: changes of it are not seen by gradients. Settable to another tensor."""
    expose(self.version)
    return wrap(stopped(self.array) if LevelDevice.made else self.array, self.dispatch_key)


@settable(data)
def _(self, value) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if (value.dispatch_key.device.type == "meta") != (self.dispatch_key.device.type == "meta"):
        raise GradientError(
            f"Attempted to call `variable.set_data(tensor)`, but `variable` is on {self.dispatch_key.device} and "
            f"`tensor` on {value.dispatch_key.device}: incompatible tensor type."
        )
    if self.node is not None and value.dispatch_key.dtype.category < FLOATING:
        raise GradientError("data set to a tensor that requires gradients must be floating point or complex dtype")
    self.array, self.dispatch_key = value.array, value.dispatch_key
    self.view_info = None
    expose(self.version)
    node = self.node
    if node.__class__ is AccumulateGrad:
        node.shape, node.dispatch_key = value.array.shape, value.dispatch_key


@attribute
def _version(self) -> int:
    """How often the memory was changed in place."""
    count = self.version[0]
    if count.__class__ is InferenceCount:
        raise GradientError("Inference tensors do not track version counter.")
    return count


@attribute
def _base(self) -> Tensor | None:
    """The tensor of which this one is a view, None if it is its own."""
    view: ViewInfo | None = self.view_info
    return None if view is None else view.base


@attribute
def output_nr(self) -> int:
    """Which output of `grad_fn` the tensor is."""
    node = node_of(self)
    return node.index if node.__class__ is Output else 0


# -- parts of complex numbers -----------------------------------------------------------------------------------------
@attribute
def real(self) -> Tensor:
    """The real part: a view of complex numbers, a real tensor itself. Settable."""
    return ops.real(self)


@settable(real)
def _(self, value) -> None:
    ops.real(self)[...] = value


@attribute
def imag(self) -> Tensor:
    """The imaginary part, a view; a real tensor is refused. Settable."""
    return ops.imag(self)


@settable(imag)
def _(self, value) -> None:
    ops.imag(self)[...] = value
