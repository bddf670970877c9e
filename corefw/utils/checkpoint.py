"""Checkpointing: what a part of a model computes is not kept for the backward, but computed again."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from corefw.autograd.autocasting.state import present
from corefw.autograd.differentiate import backward
from corefw.autograd.function import Function
from corefw.autograd.grad_mode import enable_grad
from corefw.autograd.graph import saved_tensors_hooks
from corefw.devices import device
from corefw.dispatch.random_generator import defaults
from corefw.graph.grad_mode import mode
from corefw.tensor import Tensor
from corefw.utils.selective_checkpoint import (
    CheckpointPolicy,
    Logging,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

Contexts = tuple[AbstractContextManager, AbstractContextManager]


class CheckpointError(RuntimeError):
    """Computing again did not give what the forward computed."""


# -- random numbers ---------------------------------------------------------------------------------------------------
class _RandomState:
    """The generators' states at some time: of the CPU, and of the devices on which some tensors lie."""

    def __init__(self, tensors: Sequence[Any], enabled: bool):
        self.devices = {device("cpu"), *(t.device for t in tensors if isinstance(t, Tensor))}
        self.enabled = enabled
        self.states = self._read() if enabled else []

    def _read(self) -> list:
        return [defaults[d].get_state() for d in self.devices]

    def _write(self, states: list) -> None:
        for place, state in zip(self.devices, states, strict=True):
            defaults[place].set_state(state)

    @contextmanager
    def again(self) -> Iterator[None]:
        """Go back to the state, for the time of a with-block."""
        if not self.enabled:
            yield
            return
        present = self._read()
        self._write(self.states)
        try:
            yield
        finally:
            self._write(present)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The devices other than the CPU on which tensors among `args` lie, and the states of their generators."""
    found = [a.device for a in args if isinstance(a, Tensor) and a.device.type not in ("cpu", "meta")]
    return [place.index or 0 for place in found], [defaults[place].get_state() for place in found]


def set_device_states(devices: Iterable[int], states: Iterable[Tensor], *, device_type: str | None = None) -> None:
    """Set the states of devices' generators to what `get_device_states` gave.

    Args:
        devices: their indices.
        states: their states.
        device_type: their type; by default `DefaultDeviceType`'s.
    """
    kind = DefaultDeviceType.get_device_type() if device_type is None else device_type
    for index, state in zip(devices, states):
        defaults[device(kind, index)].set_state(state)


class DefaultDeviceType:
    """The type of the devices that `set_device_states` means where it is told none; "cuda" unless it was set."""

    _type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Let it be another."""
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        """What it is."""
        return DefaultDeviceType._type


# -- by a Function whose backward runs a backward ---------------------------------------------------------------------
class CheckpointFunction(Function):
    """The reentrant form: the forward is not recorded at all; the backward records it and goes back through it."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: Any, *args: Any) -> Any:
        ctx.run_function = run_function
        ctx.random_state = _RandomState(args, preserve_rng_state)
        ctx.settings = present()
        ctx.arguments = [None if isinstance(a, Tensor) else a for a in args]
        ctx.positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.positions))
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if mode.targeted:
            raise RuntimeError(
                "When use_reentrant=True, corefw.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        arguments = list(ctx.arguments)
        for i, tensor in zip(ctx.positions, detach_variable(tuple(ctx.saved_tensors)), strict=True):
            arguments[i] = tensor
        with ctx.random_state.again(), ctx.settings, enable_grad():
            outputs = ctx.run_function(*arguments)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, gradients, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(a.grad if isinstance(a, Tensor) else None for a in arguments))


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors as leaves that require gradients where they did; what is no tensor as it is.

    Raises:
        RuntimeError: `inputs` is no tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(a.detach().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where no tensor among `inputs` requires a gradient."""
    if not any(isinstance(a, Tensor) and a.requires_grad for a in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


# -- by hooks on what is saved ----------------------------------------------------------------------------------------
class _Holder:
    """Stands in the graph for a saved tensor; has its value between computing again and use."""

    __slots__ = ("__weakref__", "value")

    def __init__(self):
        self.value: Tensor | None = None


class _Stop(Exception):
    """All that was saved has been computed again."""


class _Region:
    """One checkpointed call: what it saved in the forward, and how to compute that again."""

    def __init__(self, run: Callable[[], Any], early_stop: bool, check: bool, logs: Sequence[Logging]):
        self.run = run
        self.early_stop = early_stop
        self.check = check
        self.logs = logs
        self.holders: list[weakref.ref[_Holder]] = []
        self.facts: list[tuple] = []

    def pack(self, tensor: Tensor) -> _Holder:
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        self.facts.append(_facts(tensor))
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        if holder.value is None:
            try:
                self.compute_again()
            except CheckpointError as error:
                if self.logs:
                    error.args = (_logged(self.logs, error),)
                raise
        value, holder.value = holder.value, None
        if value is None:
            raise CheckpointError("corefw.utils.checkpoint: a saved tensor was not computed again")
        return value

    def compute_again(self) -> None:
        """Run the function, and give what it saves to the holders."""
        count = 0
        wanted = max((i for i, holder in enumerate(self.holders) if holder() is not None), default=-1)

        def pack(tensor: Tensor) -> Tensor:
            nonlocal count
            if count < len(self.holders):
                self._receive(count, tensor)
            count += 1
            if self.early_stop and count > wanted:
                raise _Stop
            return tensor.detach()

        try:
            with saved_tensors_hooks(pack, lambda tensor: tensor), enable_grad():
                self.run()
        except _Stop:
            return
        if count != len(self.holders):
            raise CheckpointError(
                "corefw.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\n"
                f"Number of tensors saved during recomputation: {count}."
            )

    def _receive(self, index: int, tensor: Tensor) -> None:
        if self.check and _facts(tensor) != self.facts[index]:
            raise CheckpointError(
                "corefw.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                "during the "
                f"forward pass.\ntensor at position {index}:\nsaved metadata: {self.facts[index]}\n"
                f"recomputed metadata: {_facts(tensor)}"
            )
        holder = self.holders[index]()
        if holder is not None:
            holder.value = tensor.detach()


def _facts(tensor: Tensor) -> tuple:
    return tuple(tensor.array.shape), tensor.dispatch_key.dtype, tensor.dispatch_key.device


def _logged(logs: Sequence[Logging], error: CheckpointError) -> str:
    """What an error says, and what ran before it."""
    first, second = logs
    return (
        "An error happened while unpacking tensors; dumping logs of latest computation because you passed `debug=True` "
        "to `corefw.utils.checkpoint.checkpoint()`.\n\nOperations executed during the original forward:\n\n"
        f"{first}\n\nOperations executed during recomputation:\n\n{second}\n\n{error}"
    )


def noop_context_fn() -> Contexts:
    """Contexts that do nothing."""
    return nullcontext(), nullcontext()


class _Settings:
    """What blocks set: whether the second call may stop early, and, unless it is None, whether calls are logged."""

    early_stop = True
    debug: bool | None = None


@contextmanager
def _setting(name: str, value: bool | None) -> Iterator[None]:
    before = getattr(_Settings, name)
    setattr(_Settings, name, value)
    try:
        yield
    finally:
        setattr(_Settings, name, before)


def set_checkpoint_early_stop(enable: bool) -> AbstractContextManager:
    """A block whose checkpoints, where `enable` is False, run the second call to its end."""
    return _setting("early_stop", enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> AbstractContextManager:
    """A block that says instead of `debug` whether checkpoints log what runs; None leaves it to them."""
    return _setting("debug", enabled)


def _checkpoint_with_hooks(function, args, kwargs, preserve: bool, context_fn, check: bool, early_stop: bool, logs):
    forward_context, again_context = context_fn()
    state, settings = _RandomState((*args, *kwargs.values()), preserve), present()
    first, second = logs or (nullcontext(), nullcontext())

    def run():
        with state.again(), settings, second, again_context:
            return function(*args, **kwargs)

    region = _Region(run, early_stop, check, logs)
    with saved_tensors_hooks(region.pack, region.unpack), first, forward_context:
        return function(*args, **kwargs)


_DEFAULT_WARNING = (
    "the use_reentrant parameter should be passed explicitly. use_reentrant=False is recommended, but if you need to "
    "preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
    "differences between the two variants."
)


def _meant_reentrant(name: str, use_reentrant: bool | None) -> bool:
    """The argument `use_reentrant` of the function `name`; a warning where it is missing."""
    if use_reentrant is None:
        warnings.warn(f"{name}: {_DEFAULT_WARNING}", stacklevel=3)
        return True
    return use_reentrant


def checkpoint(
    function: Callable, *args: Any, use_reentrant: bool | None = None, context_fn: Callable[[],
    Contexts] = noop_context_fn, determinism_check: str = "default", debug: bool = False, early_stop: bool = True,
    **kwargs: Any,
):  # fmt: skip
    """Call ``function(*args, **kwargs)`` without keeping what it computes; the backward calls it again.

    Args:
        function: computes the same when called again.
        use_reentrant: True runs a backward within the backward: gradients reach what `function` uses only if one of
            `args` requires a gradient, and only by `backward` without `inputs`. False, to be preferred, has neither
            limit.
        context_fn: gives two context managers, around the first and the second call (not with `use_reentrant`);
            those of `create_selective_checkpoint_contexts` keep some results.
        determinism_check: "default" compares shapes and dtypes of what is computed again, "none" does not.
        debug: log what runs in both calls, and tell it where they differ (not with `use_reentrant`).
        early_stop: stop the second call as soon as all that is needed was computed.
        preserve_rng_state: (among `kwargs`, default True) let the second call draw the same random numbers.

    >>> import corefw as torch
    >>> from corefw.utils.checkpoint import checkpoint
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> checkpoint(lambda x: (x * x * x).sum(), x, use_reentrant=False).backward()
    >>> x.grad
    tensor([ 3., 12.])
    """
    use_reentrant = _meant_reentrant("corefw.utils.checkpoint", use_reentrant)
    preserve = kwargs.pop("preserve_rng_state", True)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of default, none but got {determinism_check}")
    if not use_reentrant:
        if _Settings.debug if _Settings.debug is not None else debug:
            if context_fn is not noop_context_fn:
                raise ValueError("debug=True is incompatible with non-default context_fn")
            logs: Sequence[Logging] = (Logging(), Logging())
        else:
            logs = ()
        early_stop = early_stop and _Settings.early_stop
        return _checkpoint_with_hooks(
            function, args, kwargs, preserve, context_fn, determinism_check == "default", early_stop, logs
        )
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    if mode.recording:
        check_backward_validity(args)
    return CheckpointFunction.apply(function, preserve, *args)


def checkpoint_sequential(functions, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any):
    """Call `functions` one after the other, in `segments` parts; all but the last are checkpointed.

    Args:
        functions: a Sequential, or a list of functions of one argument.
        segments: how many parts.
        input: what the first function takes.
        use_reentrant: as for `checkpoint`.
        preserve_rng_state: (among `kwargs`) as for `checkpoint`.

    >>> import corefw as torch
    >>> from corefw.utils.checkpoint import checkpoint_sequential
    >>> x = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> checkpoint_sequential([torch.relu, torch.sum], 2, x, use_reentrant=False).backward()
    >>> x.grad
    tensor([1., 0.])
    """
    use_reentrant = _meant_reentrant("corefw.utils.checkpoint.checkpoint_sequential", use_reentrant)
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(functions) // segments

    def part(start: int, end: int) -> Callable:
        def run(input):
            for function in functions[start:end]:
                input = function(input)
            return input

        return run

    start = 0
    for _ in range(segments - 1):
        input = checkpoint(part(start, start + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
        start += size
    return part(start, len(functions))(input)


__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]
