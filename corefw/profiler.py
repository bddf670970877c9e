"""The profiler: times every kernel while it is on, by a schedule of steps, and shows tables or Chrome traces."""

from __future__ import annotations

import gzip
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Self

from corefw.autograd.profiler import Recording, record_function
from corefw.files import replacing
from corefw.refusals import refusing

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(Enum):
    """What to record; corefw times the kernels of whatever device they run on, so all members mean the same."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded: all of it."""
    return {*ProfilerActivity}


def kineto_available() -> bool:
    """True: `profile` works. (Kineto is what PyTorch's is made with.)"""
    return True


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """When to record, for `profile`: after `skip_first` steps, cycles of `wait` idle, `warmup` and `active` steps.

    Args:
        wait, warmup, active: the steps of a cycle; nothing is recorded in the first two kinds.
        repeat: how many cycles; 0 goes on for ever.
        skip_first: steps before the first cycle.
        skip_first_wait: if not 0, the first cycle does not wait.

    Returns:
        a function from the number of a step to what is done in it.

    >>> import corefw as torch
    >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments: wait={wait}, warmup={warmup}, active={active}, repeat={repeat}, "
            f"skip_first={skip_first}; active must be positive, and the others not negative"
        )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        if repeat and step >= repeat * length:
            return ProfilerAction.NONE
        step %= length
        if step < wait:
            return ProfilerAction.NONE
        if step < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if step < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class profile(Recording):
    """Times every kernel inside a with-block.

    Args:
        activities: accepted for PyTorch's sake; the kernels of all devices are timed.
        schedule: what is done in each step, whose ends `step` marks; None records all the time.
        on_trace_ready: called with the profiler when a cycle of the schedule, or the block, has been recorded.
        record_shapes: keep the shapes of the arguments.
        profile_memory: count the bytes of results that are no views.
        with_stack: keep the lines of the program that called.
        with_flops: count the additions and multiplications of products and convolutions.
        with_modules: without effect, as for PyTorch's models that are not TorchScript.
        acc_events: keep the events of all cycles, instead of the last one's.
        synchronize: wait for the device after each kernel, so that its time is the kernel's own. Without, the time of
            a device that queues its work is that of the call, and work overlaps as it does without a profiler.

    >>> import corefw as torch
    >>> with torch.profiler.profile(record_shapes=True) as prof:
    ...     _ = torch.ones(3).exp()
    >>> [a.count for a in prof.key_averages() if a.key == "exp"]
    [1]
    """

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None, on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
        with_modules: bool = False, experimental_config: Any = None, execution_trace_observer: Any = None,
        acc_events: bool = False, use_cuda: bool | None = None, synchronize: bool = True,
    ):  # fmt: skip
        super().__init__(record_shapes, profile_memory, with_stack, with_flops, synchronize)
        if execution_trace_observer is not None:
            raise NotImplementedError("profile: execution_trace_observer: nothing observes the execution but events")
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready, self.acc_events, self.step_num = on_trace_ready, acc_events, 0
        self.current_action = self.schedule(0)
        self._labels_steps, self._is_on = schedule is not None, False
        self._label: record_function | None = None
        self._metadata: dict[str, Any] = {}

    def start(self) -> None:
        """Begin with the first step, as entering the with-block."""
        self._go(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End, as leaving the with-block."""
        self._end_step()
        if self.current_action in _RECORDS:
            self._off()
            self._ready()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def step(self) -> None:
        """Mark the end of a training step, and do what the schedule says of the next one."""
        self._end_step()
        before, self.step_num = self.current_action, self.step_num + 1
        self.current_action = self.schedule(self.step_num)
        self._go(before, self.current_action)
        self._begin_step()

    def _begin_step(self) -> None:
        if self._labels_steps and self._is_on:
            self._label = record_function(f"ProfilerStep#{self.step_num}")
            self._label.__enter__()

    def _end_step(self) -> None:
        if self._label is not None:
            self._label.__exit__(None, None, None)
            self._label = None

    def _go(self, before: ProfilerAction, now: ProfilerAction) -> None:
        """From what was done to what is to be done."""
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._off()
            self._ready()
        elif before is ProfilerAction.RECORD and now not in _RECORDS:
            self._off()
        if now in _RECORDS and not self._is_on:
            self._on()

    def _on(self) -> None:
        if not self.acc_events:
            self._events.clear()
        super().__enter__()
        self._is_on = True

    def _off(self) -> None:
        super().__exit__(None, None, None)
        self._is_on = False

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stop timing for a while, or go on, inside of a step that is recorded; all activities are one."""
        if enable is not self._is_on and self.current_action in _RECORDS:
            if enable:
                super().__enter__()
                self._is_on = True
            else:
                self._off()

    def add_metadata(self, key: str, value: str) -> None:
        """Write a text into the traces to come."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Write a value, given as JSON, into the traces to come."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def export_chrome_trace(self, path: str | os.PathLike) -> None:
        """Write the events for chrome://tracing or Perfetto; packed if the name ends with ".gz". The file appears
        whole or not at all."""
        self.events().export_chrome_trace(path, self._metadata)
        if os.fspath(path).endswith(".gz"):
            with open(path, "rb") as file:
                content = file.read()
            with replacing(path) as file:
                file.write(gzip.compress(content))

    def export_stacks(self, path: str | os.PathLike, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks for a flame graph; they are kept with ``with_stack=True``."""
        self.events().export_stacks(path, metric)

    def __str__(self) -> str:
        return str(self.events())


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """What writes traces where TensorBoard's plugin for profiles looks for them, for `profile`'s ``on_trace_ready``.

    Args:
        dir_name: the folder, which is made.
        worker_name: the first part of the files' names; that of the machine and the process if missing.
        use_gzip: whether the files are packed.
    """

    def handler(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}{ending}"))

    return handler


__getattr__ = refusing(__name__)
