"""`compile`: functions, modules and whole training steps, written down while they run, and replayed without Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from corefw.compiling.compiled import STANCES, Compiled, Options, forget_all
from corefw.compiling.passes import PASSES
from corefw.compiling.tape import Tape
from corefw.nn.modules.module import Module
from corefw.tensor import Tensor
from corefw.tensor_api.interchange import from_numpy
from corefw.utils._pytree import tree_map_only

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe",
    "list_backends",
    "list_passes",
    "load_cache_artifacts",
    "load_compiled_function",
    "nested_compile_region",
    "reset",
    "save_cache_artifacts",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph",
    "wrap_numpy",
]
_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_WORTHWHILE = 6  # calls of kernels in a module that is compiled without being asked for
_OPTIONS = ("check", "passes")
_default = {"backend": "inductor"}


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
    backend = get_default_backend() if backend is None else backend
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


def list_passes() -> list[str]:
    """The names of the passes that improve recordings, in the order in which they run, for `options={"passes": ...}`.

    >>> import corefw as torch
    >>> "fusion" in torch.compiler.list_passes()
    True
    """
    return list(PASSES)


def get_default_backend() -> str:
    """The backend that `compile` takes where none is given."""
    return _default["backend"]


def set_default_backend(backend: str) -> None:
    """Set the backend that `compile` takes where none is given; ValueError for one that there is not."""
    if backend not in list_backends(None):
        raise ValueError(f"there is no backend {backend!r}; there are {', '.join(list_backends(None))}")
    _default["backend"] = backend


class set_stance:
    """How compiled functions behave from now on, or inside of a with-block, or in calls of a decorated function.

    Args:
        stance: "default"; "force_eager": everything runs as ever; "eager_on_recompile": only what is recorded already
            is replayed, nothing is recorded any more; "fail_on_recompile": as that, with RuntimeError instead.
        skip_guard_eval_unsafe: must be False: what recordings depend on is always compared.
        force_backend: must be None.

    >>> import corefw as torch
    >>> double = torch.compile(lambda x: x * 2)
    >>> with torch.compiler.set_stance("force_eager"):
    ...     double(torch.ones(1))
    tensor([2.])
    >>> print(torch.explain(double).splitlines()[1])
      it has not been called yet
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None):
        if stance not in STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}, expected one of {', '.join(STANCES)}")
        if skip_guard_eval_unsafe or force_backend is not None:
            raise NotImplementedError(
                "set_stance: skip_guard_eval_unsafe and force_backend are not there; what recordings depend on is "
                "always compared, and a function keeps the backend that it was compiled with"
            )
        self._before, Compiled.stance = Compiled.stance, stance
        self._stance = stance

    def __enter__(self) -> None:
        Compiled.stance = self._stance

    def __exit__(self, *exception: object) -> None:
        Compiled.stance = self._before

    def __call__(self, function: Callable) -> Callable:
        """A function in whose calls the stance holds."""
        Compiled.stance = self._before

        @functools.wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            with set_stance(self._stance):
                return function(*arguments, **named)

        return called


def substitute_in_graph(
    original_fn: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
):
    """A decorator that gives back what it decorates: `original_fn` is run as it is, so nothing has to stand for it."""
    return lambda function: function


def nested_compile_region(fn: Any = None) -> Any:
    """The function itself, or a decorator: what is called often is recorded as often as it is called."""
    return (lambda function: function) if fn is None else fn


def wrap_numpy(fn: Callable) -> Callable:
    """A function of tensors from one of NumPy arrays: tensors are given as arrays, and arrays come back as tensors."""

    @functools.wraps(fn)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        given = tree_map_only(Tensor, lambda tensor: tensor.numpy(), (arguments, named))
        return tree_map_only(np.ndarray, from_numpy, fn(*given[0], **given[1]))

    return wrapped


def _all_kept(guard_entries: Any) -> list[bool]:
    """True for each: what recordings depend on is always compared, so no guard can be left out."""
    return [True] * len(guard_entries)


keep_portable_guards_unsafe = keep_tensor_guards_unsafe = skip_all_guards_unsafe = _all_kept
skip_guard_on_all_nn_modules_unsafe = skip_guard_on_globals_unsafe = skip_guard_on_inbuilt_nn_modules_unsafe = _all_kept


def set_enable_guard_collectives(enabled: bool) -> bool:
    """False: processes never agree on recordings with each other; NotImplementedError if they are to."""
    if enabled:
        raise NotImplementedError("set_enable_guard_collectives: each process decides alone what it replays")
    return False


def save_cache_artifacts() -> None:
    """None: recordings are made anew in each process, in a few calls, so there is nothing to save."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """None: see `save_cache_artifacts`."""


def load_compiled_function(*arguments: Any, **options: Any) -> Any:
    """NotImplementedError: recordings are not saved."""
    raise NotImplementedError("load_compiled_function: recordings are not saved; they are made in a few calls")
