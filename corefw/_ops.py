"""The ops by namespace, as PyTorch's `torch.ops`: those that `library` defines, and corefw's own under ``aten``."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from corefw.dispatch.registry import registry

__all__: list[str] = []
#: {"namespace::name": the op} of `library`
defined: dict[str, Any] = {}
_ATTENTION = ("flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention")
#: PyTorch's names of kernels that are parts of ops here, as selective checkpointing names them: {theirs: the op's}
PARTS = {
    **{f"_scaled_dot_product_{name}": "scaled_dot_product_attention" for name in _ATTENTION},
    **{"_scaled_dot_product_fused_attention_overrideable": "scaled_dot_product_attention"},
    **{"_softmax": "softmax", "_log_softmax": "log_softmax", "native_layer_norm": "layer_norm"},
    **{"native_group_norm": "group_norm", "native_batch_norm": "batch_norm", "_to_copy": "cast"},
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

    def name(self) -> str:
        """The op's qualified name."""
        return self._qualname


class OpOverloadPacket:
    """An op as ``torch.ops.namespace.name``, with one overload, `default`."""

    def __init__(self, qualname: str, function: Callable):
        self._qualified_op_name = qualname
        self.default = OpOverload(qualname, function)
        self.__name__, self.__module__ = self.default.__qualname__, self.default.__module__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.default(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._qualified_op_name.replace('::', '.')}')>"

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return ["default"]

    def __getattr__(self, name: str) -> OpOverload:
        """An overload of PyTorch's: an op of corefw's is one function for all of them."""
        if name.startswith("_") or not self._qualified_op_name.startswith("aten::"):
            raise AttributeError(f"The underlying op of '{self._qualified_op_name}' has no overload name '{name}'")
        return self.default


class _OpNamespace(ModuleType):
    """The ops of a namespace."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        space = self.__name__.rpartition(".")[2]
        qualname = f"{space}::{name}"
        function: Any = defined.get(qualname)
        if function is None and space == "aten":
            whole = PARTS.get(name, name)
            if whole != name:
                return getattr(self, whole)
            function = registry.declared[name].function if name in registry.declared else None
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
