"""The part of `Module` that has calls of the module itself replayed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class CompiledCalls:
    """What calls of a module go through that compiles itself."""

    _hooked: bool
    _call_plainly: Callable

    def compile(self, **options: Any) -> None:
        """Have calls of the module itself replayed (see `corefw.compile`, whose options these are): nothing is wrapped
        around it, so the names of its state stay as they are.

        >>> import corefw as torch
        >>> model = torch.nn.Linear(2, 1)
        >>> model.compile()
        >>> print(torch.explain(model))
        Linear: 0 programs, 0 calls replayed
          it has not been called yet
        """
        compiler = import_module("corefw.compiler")
        self.__dict__["_compiled_call"] = compiler.compiled(self._call_plainly, self, **options)
        self._hooked = True

    def explain_compiled(self) -> str:
        """Which calls of the module are replayed (see `corefw.explain`)."""
        compiled = self.__dict__.get("_compiled_call")
        return f"{type(self).__name__} is not compiled" if compiled is None else compiled.explain_compiled()

    def _call_compiled(self, args: tuple, kwargs: dict) -> Any:
        """A call of a module that has hooks, or compiles itself."""
        compiled = self.__dict__.get("_compiled_call")
        return self._call_plainly(*args, **kwargs) if compiled is None else compiled(*args, **kwargs)
