"""`compile`, which compiles nothing: models run op by op, as without it, under the names that PyTorch's gives them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from corefw.nn.modules.module import Module

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
]
_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class OptimizedModule(Module):
    """A module behind `compile`: calls run the module of its attribute `_orig_mod`, after which its state is named."""

    def __init__(self, module: Module):
        super().__init__()
        self._orig_mod = module
        self.training = module.training

    def __getitem__(self, index: Any) -> Any:
        return self._orig_mod[index]  # type: ignore[index]

    def __len__(self) -> int:
        return len(self._orig_mod)

    def forward(self, *arguments: Any, **options: Any) -> Any:
        """The module's own result."""
        return self._orig_mod(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_orig_mod":
                raise
            return getattr(self._orig_mod, name)


def compile(
    model: Callable | None = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: str = "inductor",
    mode: str | None = None, options: dict[str, Any] | None = None, disable: bool = False,
) -> Any:  # fmt: skip
    """A module or function that computes what `model` does, without compiling it: there is no compiler yet.

    Programs that call it run, no faster and no slower. Modules come back as in PyTorch, their parameters named
    ``_orig_mod...``; functions come back wrapped.

    Args:
        model: a module or a function; without one, a decorator comes back.
        fullgraph, dynamic, options: what a compiler would do with `model`; without effect.
        backend: "inductor", "eager" or "aot_eager", all of which run op by op.
        mode: one of PyTorch's modes; without effect.
        disable: give `model` back itself.

    Raises:
        NotImplementedError: `backend` is another, such as a function that wants the captured graph.
        RuntimeError: `mode` is not one of PyTorch's.

    >>> import corefw as torch
    >>> model = torch.compile(torch.nn.Linear(2, 1))
    >>> [name for name, _ in model.named_parameters()]
    ['_orig_mod.weight', '_orig_mod.bias']
    """
    if backend not in list_backends(None):
        raise NotImplementedError(
            f"compile: there is no backend {backend!r}, because nothing is captured yet that it could take; "
            f'backend="eager" runs the model op by op'
        )
    if mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(map(str, _MODES[1:]))}")
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model)

    @functools.wraps(model)
    def run(*arguments: Any, **named: Any) -> Any:
        return model(*arguments, **named)

    return run


def is_compiling() -> bool:
    """False: nothing is compiled."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself, or a decorator: it would not be compiled anyway."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """The function or functions themselves."""
    return fn


assume_constant_result = allow_in_graph


def reset() -> None:
    """Forget what was compiled, which is nothing."""


cudagraph_mark_step_begin = reset


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The backends that `compile` takes; all run op by op. Those for debugging only if `exclude_tags` is empty."""
    return ["inductor"] if exclude_tags else ["aot_eager", "eager", "inductor"]
