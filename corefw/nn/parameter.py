"""Parameter and Buffer: tensors that a Module knows as its own, also before their shapes are known."""

from __future__ import annotations

from typing import Any, ClassVar

from corefw.dispatch.declare import ops
from corefw.graph.nodes import leaf_node
from corefw.graph.views import node_of
from corefw.tensor import Tensor, new, wrap
from corefw.versions import InferenceCount, fresh_version


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
        self = new(getattr(data, "parameter_class", cls) if cls is Parameter else cls)
        self.array = data.array
        self.dispatch_key = data.dispatch_key
        self.view_info = None
        self.version = _version_of(data)
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

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), node_of(self) is not None)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild_parameter, (type(self), self.detach().clone(), node_of(self) is not None)


def _version_of(data: Tensor) -> list[int]:
    """The version of a parameter or buffer over the memory of a tensor."""
    return fresh_version() if data.version[0].__class__ is InferenceCount else data.version


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
        self.version = _version_of(data)
        self.persistent = persistent
        return self

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True):
        pass


# -- without a shape --------------------------------------------------------------------------------------------------
#: where the memory of an uninitialized tensor is, which has no elements
_memory: Any = Tensor.__dict__["array"]


class _Uninitialized(Tensor):
    """The part of uninitialized tensors that makes them tensors of `cls_to_become` once their shape is known; until
    then they have a dtype and a device."""

    __slots__ = ()
    cls_to_become: ClassVar[type[Tensor]]

    @property
    def array(self) -> Any:
        """Raises ValueError: there are no elements yet."""
        raise ValueError(
            "Attempted to use an uninitialized parameter. This error happens when you are using a `LazyModule` or "
            f"explicitly manipulating `torch.nn.parameter.{type(self).__name__}` objects. When using LazyModules Call "
            "`forward` with a dummy batch to initialize the parameters before calling torch functions"
        )

    @array.setter
    def array(self, value: Tensor) -> Any:
        _memory.__set__(self, value)

    @property
    def shape(self) -> Any:
        """Raises RuntimeError: it is not known yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    @property
    def data(self) -> Any:
        """An empty tensor of the dtype and device; settable to one of others."""
        return wrap(_memory.__get__(self), self.dispatch_key)

    @data.setter
    def data(self, value: Tensor) -> Any:
        self.array, self.dispatch_key = value.array, value.dispatch_key
        if self.node is not None:
            self.node.shape, self.node.dispatch_key = value.array.shape, value.dispatch_key

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Become an ordinary parameter or buffer of this shape, of arbitrary elements.

        Args:
            shape: the sizes.
            device, dtype: others than were given before.
        """
        device = self.dispatch_key.device if device is None else device
        self.data = ops.empty(shape, device=device, dtype=self.dispatch_key.dtype if dtype is None else dtype)
        self.__class__ = self.cls_to_become  # type: ignore[assignment]

    def detach(self) -> Any:
        """The tensor itself: a `state_dict` holds it as it is."""
        return self

    def __repr__(self) -> str:  # type: ignore[override]
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: Any) -> Any:
        return memo.setdefault(id(self), _rebuild_uninitialized(*self._options()))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild_uninitialized, self._options()

    def _options(self) -> tuple:
        return type(self), self.node is not None, self.dispatch_key.device, self.dispatch_key.dtype


def _rebuild_uninitialized(kind, requires_grad, device, dtype):
    return kind(requires_grad=requires_grad, device=device, dtype=dtype)


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter whose shape is not known yet: that of a lazy layer before its first call.

    Args:
        requires_grad: whether gradients flow into it.
        device, dtype: what it will have.

    >>> import corefw as torch
    >>> weight = torch.nn.UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> type(weight).__name__, weight.shape
    ('Parameter', torch.Size([2, 3]))
    """

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device=None, dtype=None):
        self = Parameter(ops.empty((0,), device=device, dtype=dtype), requires_grad)
        self.__class__ = cls
        return self

    def __init__(self, requires_grad: bool = True, device=None, dtype=None):
        pass


class UninitializedBuffer(_Uninitialized, Buffer):
    """A buffer whose shape is not known yet.

    Args:
        requires_grad: accepted for compatibility; buffers are not trained.
        device, dtype: what it will have.
        persistent: whether it belongs to the `state_dict`.
    """

    __slots__ = ()
    cls_to_become = Buffer

    def __new__(cls, requires_grad: bool = False, device=None, dtype=None, persistent: bool = True):
        self = Buffer(ops.empty((0,), device=device, dtype=dtype), persistent=persistent)
        self.__class__ = cls
        return self

    def __init__(self, requires_grad: bool = False, device=None, dtype=None, persistent: bool = True):
        pass


def is_lazy(param) -> bool:
    """Whether a parameter or buffer waits for its shape.

    >>> is_lazy(UninitializedParameter()), is_lazy(None)
    (True, False)
    """
    return isinstance(param, _Uninitialized)
