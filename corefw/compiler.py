"""`compile`: functions, modules and whole training steps, written down while they run, and replayed without Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from corefw.compiling.compiled import Compiled, Options, forget_all
from corefw.compiling.passes import PASSES
from corefw.compiling.tape import Tape
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
_WORTHWHILE = 6  # calls of kernels in a module that is compiled without being asked for
_OPTIONS = ("check", "passes")


class OptimizedModule(Module):
    """A module behind `compile`: calls are those of the module of its attribute `_orig_mod`, after which its state is
    named."""

    def __init__(self, module: Module, compiled: Compiled):
        super().__init__()
        self._orig_mod = module
        self.training = module.training
        self._compiled = compiled

    def __getitem__(self, index: Any) -> Any:
        return self._orig_mod[index]  # type: ignore[index]

    def __len__(self) -> int:
        return len(self._orig_mod)

    def forward(self, *arguments: Any, **options: Any) -> Any:
        """The module's own result."""
        return self._compiled(*arguments, **options)

    def explain_compiled(self) -> str:
        """What is replayed, and what is not (see `corefw.explain`)."""
        return self._compiled.explain_compiled()

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_orig_mod":
                raise
            return getattr(self._orig_mod, name)


def compile(
    model: Callable | None = None, *, fullgraph: bool = False, dynamic: bool | None = None,
    backend: str | None = None, mode: str | None = None, options: dict[str, Any] | None = None, disable: bool = False,
) -> Any:  # fmt: skip
    """A module or function that computes what `model` does, in less time: its second call is written down as the calls
    of kernels that it makes, and later calls make these again, without Python, as long as they would be the same.

    Nothing that is replayed differs from `model`: where anything that it depends on has changed, shapes of arguments,
    attributes of modules, settings, globals, it runs and is written down again, up to eight times. A call that looks at
    elements of tensors (`item`, `if tensor`), or that changes what Python holds, is not replayed; then the modules
    inside are, by themselves. `corefw.explain(compiled)` tells, with the line. What Python does besides, such as
    printing or drawing its own random numbers, happens only in the calls that run: see the page docs/compile.md.

    Args:
        model: a module, whose parameters get names that begin with ``_orig_mod.``; a function, perhaps a whole training
            step with ``backward()`` and ``optimizer.step()``; without one, a decorator comes back.
        fullgraph: raise CompileError where a call is not replayed.
        dynamic: accepted; each shape has a recording of its own.
        backend: "inductor"; "aot_eager", which leaves out the passes that improve recordings; "eager", which replays
            nothing.
        mode: one of PyTorch's modes; all mean the same here.
        options: ``check``: run every n-th replay both ways and compare; ``passes``: the names of the passes to use.
        disable: give `model` back itself.

    Raises:
        NotImplementedError: `backend` is another, such as a function that wants a captured graph.
        RuntimeError: `mode` or an option is not known.

    >>> import corefw as torch
    >>> model = torch.compile(torch.nn.Linear(2, 1))
    >>> [name for name, _ in model.named_parameters()]
    ['_orig_mod.weight', '_orig_mod.bias']
    >>> step = torch.compile(lambda x: (x * 2).sum())
    >>> [step(torch.full((2,), value)).item() for value in (1.0, 2.0, 3.0)]
    [4.0, 8.0, 12.0]
    """
    backend = "inductor" if backend is None else backend
    if backend not in list_backends(None):
        raise NotImplementedError(
            f"compile: there is no backend {backend!r} that could take a captured graph; `corefw.fx` traces modules, "
            f'and backend="eager" runs the model op by op'
        )
    if mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(map(str, _MODES[1:]))}")
    for name in options or ():
        if name not in _OPTIONS:
            raise RuntimeError(f"Unexpected optimization option {name}, known options are {list(_OPTIONS)}")
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, compiled(model, model, fullgraph=fullgraph, backend=backend, options=options))
    return compiled(model, fullgraph=fullgraph, backend=backend, options=options)


def compiled(
    function: Callable, root: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None,
    backend: str | None = None, mode: str | None = None, options: dict[str, Any] | None = None, least: int = 1,
) -> Any:  # fmt: skip
    """A function that is replayed; `root` is the module that it belongs to, if it does. Arguments as for `compile`."""
    options = options or {}
    passes = () if backend == "aot_eager" else options.get("passes")
    for name in passes or ():
        if name not in PASSES:
            raise RuntimeError(f"compile: there is no pass {name!r}; there are {', '.join(PASSES)}")
    how = Options(fullgraph, options.get("check", 0), passes, _compile_inside, least)
    made = Compiled(function, root, how)
    return _eager(function) if backend == "eager" else made


def _eager(function: Callable) -> Callable:
    @functools.wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return run


def _compile_inside(whole: Compiled) -> None:
    """Have the modules replayed that are called by what cannot be replayed itself."""
    for module in whole.modules():
        if "_compiled_call" not in module.__dict__:
            module.compile(least=_WORTHWHILE)


def is_compiling() -> bool:
    """Whether the calls of this moment are written down for later ones."""
    return Tape.active is not None


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is not compiled: nothing that calls it is replayed as a whole. Without one, a decorator."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(fn, Module):
        fn.forward = disable(fn.forward, recursive, reason=reason)  # type: ignore[method-assign]
        return fn

    @functools.wraps(fn)
    def disabled(*arguments: Any, **named: Any) -> Any:
        if Tape.active is not None:
            Tape.active.refuse(f"{fn.__qualname__} is not to be compiled{f': {reason}' if reason else ''}")
        return fn(*arguments, **named)

    return disabled


def allow_in_graph(fn: Any) -> Any:
    """The function or functions themselves."""
    return fn


assume_constant_result = allow_in_graph


def reset() -> None:
    """Forget all recordings."""
    forget_all()


def cudagraph_mark_step_begin() -> None:
    """Nothing: what a replay returns is the caller's, and stays as it is in later ones."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The backends that `compile` takes; those for debugging only if `exclude_tags` is empty."""
    return ["inductor"] if exclude_tags else ["aot_eager", "eager", "inductor"]
