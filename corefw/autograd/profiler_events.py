"""What a profiler has seen: events, their sums per op, and the tables and files that show them."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from corefw.files import replacing

_TIMES = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")


@dataclass(eq=False)
class FunctionEvent:
    """One kernel call or labelled block: times in nanoseconds, `self_time` without the calls inside it."""

    name: str
    backend: str
    start: int
    shapes: tuple = ()
    thread: int = 0
    duration: int = 0
    self_time: int = 0
    device: str = "cpu"  # the device type whose kernel it is
    id: int = 0
    memory: int = 0  # bytes that the results take, with those of the calls inside
    self_memory: int = 0
    flops: int = 0
    stack: tuple[str, ...] = ()
    cpu_parent: FunctionEvent | None = field(default=None, repr=False)
    cpu_children: list[FunctionEvent] = field(default_factory=list, repr=False)

    count = 1

    @property
    def key(self) -> str:
        """The name."""
        return self.name

    @property
    def input_shapes(self) -> list[list[int]]:
        """The shapes of the arguments as lists."""
        return [[*shape] for shape in self.shapes]

    @property
    def is_user_annotation(self) -> bool:
        """Whether it is a labelled block."""
        return self.backend == "label"

    @property
    def cpu_time_total(self) -> float:
        """Microseconds."""
        return self.duration / 1000

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds without the calls inside it."""
        return self.self_time / 1000

    @property
    def device_time_total(self) -> float:
        """Microseconds that another device than the CPU was waited for."""
        return 0.0 if self.device == "cpu" else self.cpu_time_total

    device_time = device_time_total

    @property
    def self_device_time_total(self) -> float:
        """The same without the calls inside it."""
        return 0.0 if self.device == "cpu" else self.self_cpu_time_total


@dataclass
class FunctionEventAvg:
    """All calls of one op of one backend (and, when grouped so, of one set of shapes or one place in the program)."""

    key: str
    backend: str
    shapes: tuple = ()
    stack: tuple[str, ...] = ()
    count: int = 0
    cpu_time_total: float = 0.0  # microseconds
    self_cpu_time_total: float = 0.0
    device_time_total: float = 0.0
    self_device_time_total: float = 0.0
    cpu_memory_usage: int = 0  # bytes
    self_cpu_memory_usage: int = 0
    flops: int = 0
    events: list[FunctionEvent] = field(default_factory=list, repr=False)

    def add(self, event: FunctionEvent) -> FunctionEventAvg:
        """Count one more call; returns itself."""
        self.count += 1
        for name in _TIMES:
            setattr(self, name, getattr(self, name) + getattr(event, name))
        self.cpu_memory_usage += event.memory
        self.self_cpu_memory_usage += event.self_memory
        self.flops += event.flops
        self.events.append(event)
        return self

    @property
    def input_shapes(self) -> str:
        """The shapes of the arguments, as the table shows them; "" unless grouped by them."""
        return str([[*shape] for shape in self.shapes]) if self.shapes else ""

    @property
    def is_user_annotation(self) -> bool:
        """Whether it is a labelled block."""
        return self.backend == "label"

    @property
    def cpu_time(self) -> float:
        """Mean microseconds of a call."""
        return self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        """Mean microseconds of a call on another device than the CPU."""
        return self.device_time_total / self.count

    # PyTorch's older names
    cuda_time, cuda_time_total = device_time, property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)


class EventList(list):
    """Events, or their sums, with the tables and files that show them."""

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all together."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Sums per op and backend.

        Args:
            group_by_input_shapes: whether calls of other shapes are another row.
            group_by_stack_n: how many lines of the stack, innermost first, tell rows apart.
            group_by_overload_name: without effect; ops have no overloads.
        """
        groups: dict[tuple, FunctionEventAvg] = {}
        for event in self:
            shapes = event.shapes if group_by_input_shapes else ()
            key = (event.name, event.backend, shapes, event.stack[:group_by_stack_n])
            if key not in groups:
                groups[key] = FunctionEventAvg(*key)
            groups[key].add(event)
        return EventList(groups.values())

    def total_average(self) -> FunctionEventAvg:
        """The sum of all."""
        total = FunctionEventAvg("Total", "")
        for event in self:
            total.add(event)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """A text table.

        Args:
            sort_by: a column, largest first: "self_cpu_time_total", "cpu_time_total", "cpu_time", "count",
                "self_device_time_total", "device_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "flops".
            row_limit: how many rows; -1 for all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: where long texts are cut.
            header: a line above.
            top_level_events_only: leave events inside of others out.
            time_unit: "s", "ms" or "us"; None chooses one for each time.

        Raises:
            AttributeError: there is no such column.
        """
        rows = [event for event in self if not (top_level_events_only and getattr(event, "cpu_parent", None))]
        if sort_by is not None:
            rows.sort(key=lambda row: getattr(row, sort_by.replace("cuda", "device")), reverse=True)
        rows = rows if row_limit < 0 else rows[:row_limit]
        whole, on_device = self.self_cpu_time_total, sum(event.self_device_time_total for event in self)

        def time(microseconds: float) -> str:
            return format_time(microseconds, time_unit)

        def share(part: float, all_: float) -> str:
            return f"{100 * part / all_ if all_ else 0:.2f}%"

        columns: list[tuple[str, list[str]]] = [
            ("Name", [_cut(row.key, max_name_column_width) for row in rows]),
            ("Backend", [row.backend for row in rows]),
            ("Self CPU %", [share(row.self_cpu_time_total, whole) for row in rows]),
            ("Self CPU", [time(row.self_cpu_time_total) for row in rows]),
            ("CPU total %", [share(row.cpu_time_total, whole) for row in rows]),
            ("CPU total", [time(row.cpu_time_total) for row in rows]),
            ("CPU time avg", [time(row.cpu_time) for row in rows]),
        ]
        if on_device:
            columns += [
                ("Self device", [time(row.self_device_time_total) for row in rows]),
                ("Self device %", [share(row.self_device_time_total, on_device) for row in rows]),
                ("Device total", [time(row.device_time_total) for row in rows]),
                ("Device time avg", [time(row.device_time) for row in rows]),
            ]
        if any(_memory(row)[0] for row in self):
            columns += [
                ("CPU Mem", [format_memory(_memory(row)[0]) for row in rows]),
                ("Self CPU Mem", [format_memory(_memory(row)[1]) for row in rows]),
            ]
        columns.append(("# of Calls", [str(row.count) for row in rows]))
        if any(row.shapes for row in self):
            columns.append(("Input Shapes", [_cut(str(row.input_shapes), max_shapes_column_width) for row in rows]))
        if any(row.stack for row in self):
            sources = [row.stack[0] if row.stack else "" for row in rows]
            columns.append(("Source Location", [source[-max_src_column_width:] for source in sources]))
        if any(row.flops for row in self):
            columns.append(("Total MFLOPs", [f"{row.flops / 1e6:.3f}" if row.flops else "--" for row in rows]))
        totals = [f"Self CPU time total: {time(whole)}"]
        totals += [f"Self device time total: {time(on_device)}"] if on_device else []
        return "\n".join([*([header] if header else []), *_lines(columns), *totals])

    def export_chrome_trace(self, path: str | os.PathLike, metadata: dict[str, Any] | None = None) -> None:
        """Write the events for chrome://tracing or Perfetto; the file appears whole or not at all."""
        threads: dict[int, int] = defaultdict(lambda: len(threads))
        first = min((event.start for event in self), default=0)
        events = [
            {
                "name": event.name,
                "cat": event.backend,
                "ph": "X",
                "ts": (event.start - first) / 1000,
                "dur": event.duration / 1000,
                "pid": os.getpid(),
                "tid": threads[event.thread],
                "args": {"shapes": event.input_shapes, "backend": event.backend},
            }
            for event in self
        ]
        with replacing(path) as file:
            content = {"traceEvents": events, "displayTimeUnit": "ms", **(metadata or {})}
            file.write(json.dumps(content).encode())

    def export_stacks(self, path: str | os.PathLike, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks, outermost first, with a time in microseconds each, as programs for flame graphs read them.

        Args:
            path: the file.
            metric: "self_cpu_time_total" or "self_device_time_total".
        """
        if (metric := metric.replace("cuda", "device")) not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        sums: dict[str, int] = defaultdict(int)
        for event in self:
            if event.stack and (microseconds := int(getattr(event, metric))) > 0:
                sums[";".join([*reversed(event.stack), event.name])] += microseconds
        with replacing(path) as file:
            file.write("".join(f"{stack} {microseconds}\n" for stack, microseconds in sums.items()).encode())

    @staticmethod
    def supported_export_stacks_metrics() -> list[str]:
        """What `export_stacks` can write."""
        return ["self_cpu_time_total", "self_device_time_total"]

    def __str__(self) -> str:
        return self.table()


def _memory(row: Any) -> tuple[int, int]:
    if isinstance(row, FunctionEvent):
        return row.memory, row.self_memory
    return row.cpu_memory_usage, row.self_cpu_memory_usage


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _lines(columns: Sequence[tuple[str, Iterable[str]]]) -> list[str]:
    """Columns of texts, set to the right, under their titles and between rules."""
    cells = [[title, *texts] for title, texts in columns]
    widths = [max(map(len, column)) for column in cells]
    rule = "  ".join("-" * width for width in widths)
    header, *rows = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths)) for row in zip(*cells)]
    return [rule, header, rule, *rows, rule]


def format_time(microseconds: float, unit: str | None = None) -> str:
    """A time with its unit, which is chosen unless it is given.

    >>> format_time(12.5), format_time(12500.0), format_time(12.5, "ms")
    ('12.500us', '12.500ms', '0.013ms')
    """
    scales = {"s": 1e6, "ms": 1e3, "us": 1.0}
    unit = unit or next(name for name, scale in scales.items() if microseconds >= scale or name == "us")
    return f"{microseconds / scales[unit]:.3f}{unit}"


def format_memory(count: int) -> str:
    """A number of bytes.

    >>> format_memory(24), format_memory(3 << 20)
    ('24 B', '3.00 MB')
    """
    for scale, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(count) >= scale:
            return f"{count / scale:.2f} {name}"
    return f"{count} B"
