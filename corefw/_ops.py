"""The ops by namespace, as PyTorch's `torch.ops`: those that `library` defines, and corefw's own under ``aten``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn

from corefw.dispatch.registry import registry
from corefw.tensor import Tensor

__all__: list[str] = []
#: {"namespace::name": the op} of `library`
defined: dict[str, Any] = {}
_ATTENTION = ("flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention")
#: PyTorch's names of kernels that are parts of ops here, as selective checkpointing names them: {theirs: the op's}
PARTS = {
    **{f"_scaled_dot_product_{name}": "scaled_dot_product_attention" for name in _ATTENTION},
    **{"_scaled_dot_product_fused_attention_overrideable": "scaled_dot_product_attention"},
    **{"_softmax": "softmax", "_log_softmax": "log_softmax", "native_layer_norm": "layer_norm"},
    **{"native_group_norm": "group_norm", "native_batch_norm": "batch_norm"},
    **{"_fused_rms_norm": "rms_norm", "_unsafe_view": "view", "_native_batch_norm_legit": "batch_norm"},
}


class OpOverload:
    """An op as ``torch.ops.namespace.name.default``: a function that tells its name."""

    def __init__(self, qualname: str, function: Callable, overload: str = "default"):
        self._qualname, self._op, self._overloadname = qualname, function, overload
        self.namespace, _, name = qualname.partition("::")
        self.__name__, self.__module__, self.__qualname__ = f"{name}.{overload}", f"torch.ops.{self.namespace}", name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self.__qualname__}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __eq__(self, other: object) -> bool:
        """Overloads of an op are equal: here they are one function."""
        return self._qualname == other._qualname if isinstance(other, OpOverload) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._qualname)

    def name(self) -> str:
        """The op's qualified name."""
        return self._qualname


#: overloads of PyTorch's schemas by which programs name an op: here they are one function, which takes all arguments
_OVERLOADS = {
    *("Tensor", "Scalar", "Tensor_Scalar", "Scalar_Tensor", "Tensor_Tensor", "Tensor_mode", "Scalar_mode", "values"),
    *("int", "dim", "dims", "self", "self_int", "dim_IntList", "stable", "correction", "two", "low"),
}
#: ops of PyTorch's that programs name, in tables of what they do with ops, and that are not here to be called
_ABSENT = frozenset(["_pin_memory", "_sparse_addmm", "_sparse_mm_reduce_impl"])


class OpOverloadPacket:
    """An op as ``torch.ops.namespace.name``; the overloads of PyTorch's ops, by name, are the same function."""

    def __init__(self, qualname: str, function: Callable):
        self._qualified_op_name = qualname
        self.default = OpOverload(qualname, function)
        self.__name__, self.__module__ = self.default.__qualname__, self.default.__module__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.default(*args, **kwargs)

    def __getattr__(self, name: str) -> OpOverload:
        if name not in _OVERLOADS or not self._qualified_op_name.startswith("aten::"):
            raise AttributeError(f"The underlying op of '{self._qualified_op_name}' has no overload name '{name}'")
        overload = OpOverload(self._qualified_op_name, self.default._op, name)
        setattr(self, name, overload)
        return overload

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._qualified_op_name.replace('::', '.')}')>"

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return ["default"]


def _to_copy(x: Tensor, **options: Any) -> Tensor:
    """A copy with another dtype, device or memory format."""
    named = {name: value for name, value in options.items() if name not in ("layout", "pin_memory")}
    return x.to(**named, copy=True)


def _slice(x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """A view of the elements from `start` to before `end` of a dimension."""
    return x[(*[slice(None)] * (dim % x.ndim), slice(start, end, step))]


def _index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """``x[indices]``, None standing for a whole dimension."""
    return x[tuple(slice(None) if each is None else each for each in indices)]


def _absent(name: str) -> Callable:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"ops.aten.{name}: corefw has no such op")

    return call


#: ops of PyTorch's that are methods, or syntax, here
_SYNTAX: dict[str, Callable] = {"_to_copy": _to_copy, "slice": _slice, "index": _index, "alias": lambda x: x.view_as(x)}


def _aten(name: str) -> Callable | None:
    """The function that is the op `name` of PyTorch's: corefw's op, a method of tensors, or one that refuses."""
    if name in registry.declared:
        declared: Any = registry.declared[name].function
        return declared
    if name in _SYNTAX:
        return _SYNTAX[name]
    method: Any = None if name.startswith("__") else vars(Tensor).get(name)
    return method if callable(method) else _absent(name) if name in _ABSENT else None


class _OpNamespace(ModuleType):
    """The ops of a namespace."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        space = self.__name__.rpartition(".")[2]
        qualname = f"{space}::{name}"
        function: Any = defined.get(qualname)
        if function is None and space == "aten":
            if name in PARTS:
                return getattr(self, PARTS[name])
            function = _aten(name)
        if function is None:
            raise AttributeError(f"'_OpNamespace' '{space}' object has no attribute '{name}'")
        packet = OpOverloadPacket(qualname, function)
        setattr(self, name, packet)
        return packet


class _Ops(ModuleType):
    """All namespaces of ops; a namespace is there as soon as it is named.

    >>> import corefw as torch
    >>> torch.ops.aten.relu(torch.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """

    def __getattr__(self, name: str) -> _OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        space = _OpNamespace(f"torch.ops.{name}")
        setattr(self, name, space)
        return space

    def load_library(self, path: Any) -> None:
        """Refused: compiled libraries of PyTorch's ops are for its own tensors.

        Raises:
            OSError: always.
        """
        raise OSError(f"ops.load_library: {path} holds kernels for PyTorch's own tensors, which corefw cannot run")


ops = _Ops("torch.ops")


def forget(qualname: str) -> None:
    """Let `ops` look an op up again."""
    space, _, name = qualname.partition("::")
    vars(getattr(ops, space)).pop(name, None)
