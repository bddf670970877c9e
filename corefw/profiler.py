"""The profiler: times every kernel while it is on, and shows a table per op or a Chrome trace."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

from corefw.dispatch.flags import unheard
from corefw.dispatch.modes import Mode
from corefw.files import replacing


class ProfilerActivity(Enum):
    """What to record; corefw times whatever device the kernels run on, so both members mean the same."""

    CPU = 0
    CUDA = 1


@dataclass
class Event:
    """One kernel call or labelled block: times in nanoseconds, `self_time` without the calls inside it."""

    name: str
    backend: str
    start: int
    shapes: tuple = ()
    thread: int = 0
    duration: int = 0
    self_time: int = 0


@dataclass
class Averages:
    """All calls of one op (and, when grouped so, of one set of shapes)."""

    key: str
    backend: str
    shapes: tuple
    count: int = 0
    cpu_time_total: float = 0.0  # microseconds
    self_cpu_time_total: float = 0.0
    events: list[Event] = field(default_factory=list, repr=False)

    @property
    def cpu_time(self) -> float:
        """Mean microseconds of a call."""
        return self.cpu_time_total / self.count


class EventList(list):
    """Averages per op, with `table()`."""

    def table(self, sort_by: str = "self_cpu_time_total", row_limit: int = 100, **unused) -> str:
        """A text table, the most expensive ops first.

        Args:
            sort_by: an attribute of Averages: "self_cpu_time_total", "cpu_time_total", "count", "cpu_time".
            row_limit: how many rows; -1 for all.
        """
        rows = sorted(self, key=lambda a: getattr(a, sort_by), reverse=True)
        rows = rows if row_limit < 0 else rows[:row_limit]
        whole = sum(a.self_cpu_time_total for a in self) or 1.0
        lines = [
            f"{'op':<28} {'backend':<10} {'self us':>12} {'self %':>7} {'total us':>12} {'calls':>8} "
            f"{'us/call':>10}  shapes"
        ]
        lines += [
            f"{a.key:<28} {a.backend:<10} {a.self_cpu_time_total:>12.1f} {100 * a.self_cpu_time_total / whole:>6.1f}% "
            f"{a.cpu_time_total:>12.1f} {a.count:>8} {a.cpu_time:>10.2f}  {' '.join(map(str, a.shapes))}"
            for a in rows
        ]
        return "\n".join([*lines, f"time in kernels: {whole / 1000:.3f} ms"])


class profile(Mode):
    """Times every kernel inside a with-block.

    Args:
        activities: accepted for PyTorch's sake.
        record_shapes: keep the shapes of the arguments.
        synchronize: wait for the device after each kernel, so that its time is the kernel's own. Without, the time of
            a device that queues its work is that of the call, and work overlaps as it does without a profiler.

    >>> import corefw as torch
    >>> with torch.profiler.profile(record_shapes=True) as prof:
    ...     _ = torch.ones(3).exp()
    >>> [a.count for a in prof.key_averages() if a.key == "exp"]
    [1]
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        record_shapes: bool = False,
        synchronize: bool = True,
        **unused,
    ):
        self.record_shapes, self.synchronize = record_shapes, synchronize
        self._events: list[Event] = []
        self._stack = threading.local()

    def wrap(self, op: Any, dispatch_key: Any, who: Any, function: Any) -> Any:
        clock, runtime, index = time.perf_counter_ns, dispatch_key.runtime, dispatch_key.device.index

        def timed(*arguments, **options):
            shapes = tuple(tuple(a.shape) for a in arguments if hasattr(a, "shape")) if self.record_shapes else ()
            event = self.begin(op.name, who, shapes)
            try:
                result = function(*arguments, **options)
                if self.synchronize and not runtime.is_capturing():  # what is recorded in a graph is not done yet
                    runtime.synchronize(index)
                return result
            finally:
                self.end(event, clock())

        return unheard(timed)

    def begin(self, name: str, backend: str, shapes: tuple = ()) -> Event:
        """Open an event; every event must be ended."""
        event = Event(name, backend, time.perf_counter_ns(), shapes, threading.get_ident())
        self._open().append(event)
        return event

    def end(self, event: Event, now: int) -> None:
        """Close an event: its time counts to the event around it."""
        event.duration = now - event.start
        event.self_time += event.duration
        stack = self._open()
        stack.pop()
        if stack:
            stack[-1].self_time -= event.duration
        self._events.append(event)

    def _open(self) -> list[Event]:
        if not hasattr(self._stack, "open"):
            self._stack.open = []
        return self._stack.open

    def __enter__(self) -> Self:
        _active.append(self)
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        _active.remove(self)

    def start(self) -> None:
        """Begin to record, as entering the with-block."""
        self.__enter__()

    def stop(self) -> None:
        """Stop recording, as leaving the with-block."""
        self.__exit__(None, None, None)

    def step(self) -> None:
        """Mark the end of a training step; accepted for PyTorch's sake."""

    def events(self) -> list[Event]:
        """All events in the order in which they ended."""
        return list(self._events)

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """Sums per op and backend (and per shapes)."""
        groups: dict[tuple, Averages] = {}
        for e in self._events:
            shapes = e.shapes if group_by_input_shape else ()
            key = (e.name, e.backend, shapes)
            group = groups.setdefault(key, Averages(e.name, e.backend, shapes))
            group.count += 1
            group.cpu_time_total += e.duration / 1000
            group.self_cpu_time_total += e.self_time / 1000
            group.events.append(e)
        return EventList(groups.values())

    def export_chrome_trace(self, path: str | os.PathLike) -> None:
        """Write the events for chrome://tracing or Perfetto; the file appears whole or not at all."""
        threads: dict[int, int] = defaultdict(lambda: len(threads))
        first = min((e.start for e in self._events), default=0)
        events = [
            {
                "name": e.name,
                "cat": e.backend,
                "ph": "X",
                "ts": (e.start - first) / 1000,
                "dur": e.duration / 1000,
                "pid": os.getpid(),
                "tid": threads[e.thread],
                "args": {"shapes": [list(s) for s in e.shapes], "backend": e.backend},
            }
            for e in self._events
        ]
        with replacing(path) as file:
            file.write(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}).encode())


_active: list[profile] = []


class record_function:
    """Labels a block, so that it shows as one event in the profilers that are on.

    Args:
        name: the label.
    """

    def __init__(self, name: str, args: str | None = None):
        self.name = name

    def __enter__(self) -> Self:
        self._opened = [(p, p.begin(self.name, "label")) for p in _active]
        return self

    def __exit__(self, *exception: object) -> None:
        for profiler, event in self._opened:
            profiler.end(event, time.perf_counter_ns())
