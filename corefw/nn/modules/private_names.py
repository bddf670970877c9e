"""What libraries read and call on modules by names that PyTorch keeps to itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from corefw.utils.hooks import RemovableHandle


class PrivateNames:
    """The part of a Module with those names."""

    _hooks: dict[str, Any]
    register_load_state_dict_pre_hook: Callable[[Callable], RemovableHandle]

    def _hooks_of(self, *kinds: str) -> Mapping[int, Callable]:
        """The hooks by number, to look at: they are changed through the handles that registering gives."""
        return MappingProxyType({n: hook for kind in kinds for n, (hook, _) in self._hooks.get(kind, {}).items()})

    @property
    def _forward_hooks(self) -> Mapping[int, Callable]:
        return self._hooks_of("forward")

    @property
    def _forward_pre_hooks(self) -> Mapping[int, Callable]:
        return self._hooks_of("forward_pre")

    @property
    def _backward_hooks(self) -> Mapping[int, Callable]:
        return self._hooks_of("full_backward")

    @property
    def _backward_pre_hooks(self) -> Mapping[int, Callable]:
        return self._hooks_of("full_backward_pre")

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> RemovableHandle:
        """PyTorch's older form of it, whose hook is not given the module unless `with_module`."""
        return self.register_load_state_dict_pre_hook(hook if with_module else _WithoutModule(hook))


class _WithoutModule:
    """A hook that is called without its first argument, the module."""

    def __init__(self, hook: Callable):
        self.hook = hook

    def __call__(self, module: Any, *arguments: Any) -> Any:
        return self.hook(*arguments)
