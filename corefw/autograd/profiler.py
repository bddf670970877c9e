"""Timing every kernel: what `corefw.profiler` is built on, and PyTorch's older `autograd.profiler.profile`."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any, Self

from corefw.autograd.profiler_events import EventList, FunctionEvent, FunctionEventAvg
from corefw.dispatch.flags import unheard
from corefw.dispatch.flops import FLOPS
from corefw.dispatch.modes import Mode
from corefw.dispatch.registry import registry
from corefw.tracebacks import is_internal

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Recording", "emit_itt", "emit_nvtx", "profile"]
__all__ += ["record_function"]
_active: list[Recording] = []


class Recording(Mode):
    """A with-block in which every kernel is timed.

    Args:
        record_shapes: keep the shapes of the arguments.
        profile_memory: count the bytes of results that are no views.
        with_stack: keep the lines of the program that called.
        with_flops: count the additions and multiplications of products and convolutions.
        synchronize: wait for the device after each kernel, so that its time is the kernel's own. Without, the time of
            a device that queues its work is that of the call, and work overlaps as it does without a profiler.
    """

    def __init__(
        self,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        synchronize: bool = True,
    ):
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.synchronize = with_flops, synchronize
        self._events: list[FunctionEvent] = []
        self._ids, self._stack = count(1), threading.local()

    def wrap(self, op: Any, dispatch_key: Any, who: Any, function: Any) -> Any:
        clock, runtime, index = time.perf_counter_ns, dispatch_key.runtime, dispatch_key.device.index
        counts_memory, flops = self.profile_memory and not op.view, self.with_flops and FLOPS.get(op.name)

        def timed(*arguments, **options):
            shapes = tuple(tuple(a.shape) for a in arguments if hasattr(a, "shape")) if self.record_shapes else ()
            event = self.begin(op.name, who, shapes, dispatch_key.device.type)
            try:
                result = function(*arguments, **options)
                if self.synchronize and not runtime.is_capturing():  # what is recorded in a graph is not done yet
                    runtime.synchronize(index)
                if not event.cpu_children:  # what is composed is the work of the calls inside
                    if counts_memory:
                        given = [id(value) for value in (*arguments, *options.values())]
                        event.memory = sum(a.nbytes for a in _arrays(result) if id(a) not in given)
                    if flops:
                        event.flops = flops(result, *arguments)
                return result
            finally:
                self.end(event, clock())

        return unheard(timed)

    def begin(self, name: str, backend: str, shapes: tuple = (), device: str = "cpu") -> FunctionEvent:
        """Open an event; every event must be ended."""
        opened = self._open()
        event = FunctionEvent(name, backend, time.perf_counter_ns(), shapes, threading.get_ident(), device=device)
        event.id, event.cpu_parent = next(self._ids), opened[-1] if opened else None
        if self.with_stack:
            event.stack = _stack()
        opened.append(event)
        return event

    def end(self, event: FunctionEvent, now: int) -> None:
        """Close an event: its time counts to the event around it."""
        event.duration = now - event.start
        event.self_time += event.duration
        event.self_memory += event.memory
        self._open().remove(event)
        if (parent := event.cpu_parent) is not None:
            parent.cpu_children.append(event)
            parent.self_time -= event.duration
            parent.self_memory -= event.memory
            parent.memory += event.memory
        self._events.append(event)

    def _open(self) -> list[FunctionEvent]:
        if not hasattr(self._stack, "open"):
            self._stack.open = []
        return self._stack.open

    def __enter__(self) -> Self:
        _active.append(self)
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        _active.remove(self)

    def events(self) -> EventList:
        """All events in the order in which they ended."""
        return EventList(self._events)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sums per op and backend (and per shapes, or per lines of the stack)."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)


def _arrays(result: Any) -> tuple:
    return result if isinstance(result, tuple) else (result,) if hasattr(result, "nbytes") else ()


def _stack() -> tuple[str, ...]:
    """The lines of the program that called, innermost first."""
    lines, frame = [], sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not is_internal(code.co_filename):
            lines.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(lines)


class profile:
    """Times every kernel inside a with-block: PyTorch's older form, of which `corefw.profiler.profile` has more.

    Args:
        enabled: whether to time at all.
        record_shapes, with_flops, profile_memory, with_stack: what to keep beside times; see `Recording`.
        use_cuda, use_device, use_kineto, use_cpu, with_modules: without effect; the kernels of all devices are timed.

    >>> import corefw as torch
    >>> with torch.autograd.profiler.profile() as prof:
    ...     _ = torch.ones(3).exp()
    >>> [row.count for row in prof.key_averages() if row.key == "exp"]
    [1]
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
        record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False,
        with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True,
    ):  # fmt: skip
        self.enabled = enabled
        self._recording = Recording(record_shapes, profile_memory, with_stack, with_flops)
        self._entered = False

    def __enter__(self) -> Self:
        if self._entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._entered = True
        if self.enabled:
            self._recording.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.enabled:
            self._recording.__exit__(*exception)

    @property
    def function_events(self) -> EventList:
        """All events."""
        if not self._entered:
            raise RuntimeError("Profiler didn't finish running")
        return self._recording.events()

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sums per op and backend."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def table(self, **options: Any) -> str:
        """A text table of all events; `options` are those of `EventList.table`."""
        return self.function_events.table(**options)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        return self.function_events.total_average()

    def export_chrome_trace(self, path: str | os.PathLike) -> None:
        """Write the events for chrome://tracing or Perfetto."""
        self.function_events.export_chrome_trace(path)

    def export_stacks(self, path: str | os.PathLike, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks for a flame graph; they are kept with ``with_stack=True``."""
        self.function_events.export_stacks(path, metric)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events."""
        return self.function_events.self_cpu_time_total

    def __str__(self) -> str:
        return self.table() if self._entered else "<unfinished profiler.profile>"


class record_function:
    """Labels a block, or a decorated function, so that it shows as one event in the profilers that are on.

    Args:
        name: the label.
        args: more of it, which PyTorch keeps apart; shown behind the name.

    >>> import corefw as torch
    >>> with torch.profiler.profile() as prof, torch.profiler.record_function("block"):
    ...     _ = torch.ones(3).exp()
    >>> [event.name for event in prof.events()][-1]
    'block'
    """

    def __init__(self, name: str, args: str | None = None):
        self.name = name if args is None else f"{name} {args}"

    def __enter__(self) -> Self:
        self._opened = [(recording, recording.begin(self.name, "label")) for recording in _active]
        return self

    def __exit__(self, *exception: object) -> None:
        for recording, event in self._opened:
            recording.end(event, time.perf_counter_ns())

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def labelled(*arguments: Any, **options: Any) -> Any:
            with type(self)(self.name):
                return function(*arguments, **options)

        return labelled


class emit_nvtx(Mode):
    """A block in which each kernel is a range for NVIDIA's profilers.

    Args:
        enabled: whether it is.
        record_shapes: whether ranges tell the shapes of the arguments.

    Raises:
        RuntimeError: there is no GPU, or nothing to mark its time with.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled, self.record_shapes = enabled, record_shapes
        self._ranges: Any = registry.runtime("cuda").ranges() if enabled else None

    def wrap(self, op: Any, dispatch_key: Any, who: str, function: Callable) -> Callable:
        ranges, with_shapes, name = self._ranges, self.record_shapes, op.name

        def marked(*arguments: Any, **options: Any) -> Any:
            shapes = [tuple(value.shape) for value in arguments if hasattr(value, "shape")] if with_shapes else None
            ranges.range_push(f"{name}, sizes = {shapes}" if with_shapes else name)
            try:
                return function(*arguments, **options)
            finally:
                ranges.range_pop()

        return unheard(marked)

    def __enter__(self) -> Self:
        return super().__enter__() if self.enabled else self

    def __exit__(self, *exception: object) -> None:
        if self.enabled:
            super().__exit__(*exception)


class emit_itt:
    """Marks for Intel's profiler, which are not made: NotImplementedError unless ``enabled=False``."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        if enabled:
            raise NotImplementedError(
                "autograd.profiler.emit_itt: kernels are not marked for Intel's profiler; "
                "torch.profiler.profile times them, and export_chrome_trace writes what Perfetto shows"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None: ...
