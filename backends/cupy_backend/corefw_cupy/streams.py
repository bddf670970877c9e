"""Queues of work on a GPU and marks in them, with PyTorch's names."""

from __future__ import annotations

from typing import Any

from corefw_cupy.compiler import Compiler

_NOT_DONE = "its work is not done before the replay"


class Stream:
    """A queue of work; as a with-block, the one that work goes to."""

    def __init__(self, compiler: Compiler, queue: Any, index: int):
        self.compiler, self.queue, self.device_index = compiler, queue, index
        self._outer: list[tuple[int, Any]] = []

    @property
    def cuda_stream(self) -> int:
        """The driver's handle."""
        return self.queue.ptr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.queue.ptr, self.device_index) == (
            other.queue.ptr,
            other.device_index,
        )

    def __hash__(self) -> int:
        return hash((self.queue.ptr, self.device_index))

    def __repr__(self) -> str:
        return f"<corefw.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.queue.ptr:#x}>"

    def __enter__(self) -> Stream:
        before = self.compiler.xp.cuda.runtime.getDevice()
        self.compiler.xp.cuda.runtime.setDevice(self.device_index)
        self._outer.append((before, self.compiler.xp.cuda.get_current_stream()))
        self.queue.use()
        return self

    def __exit__(self, *exception: object) -> None:
        device, queue = self._outer.pop()
        queue.use()
        self.compiler.xp.cuda.runtime.setDevice(device)

    def synchronize(self) -> None:
        """Wait for the work given so far."""
        self.compiler.capturing.refuse("Stream.synchronize", _NOT_DONE)
        self.queue.synchronize()
        self.compiler.device_asserts.check()

    def query(self) -> bool:
        """Whether all work is done."""
        self.compiler.capturing.refuse("Stream.query", _NOT_DONE)
        return self.queue.done

    def record_event(self, event: Event | None = None) -> Event:
        """Put a mark after the work given so far; a new one if none is given."""
        event = event or Event(self.compiler, self.compiler.xp.cuda.Event(disable_timing=True))
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work wait for a mark."""
        self.queue.wait_event(event.mark)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work wait for the work that another queue has been given."""
        self.wait_event(stream.record_event())


class Event:
    """A mark in a queue."""

    def __init__(self, compiler: Compiler, mark: Any):
        self.compiler, self.mark = compiler, mark

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark after the work that a queue, the current one if missing, has been given."""
        self.mark.record(None if stream is None else stream.queue)

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a queue wait for the mark."""
        queue = self.compiler.xp.cuda.get_current_stream() if stream is None else stream.queue
        queue.wait_event(self.mark)

    def query(self) -> bool:
        """Whether the work before the mark is done."""
        self.compiler.capturing.refuse("Event.query", _NOT_DONE)
        return self.mark.done

    def synchronize(self) -> None:
        """Wait for the work before the mark."""
        self.compiler.capturing.refuse("Event.synchronize", _NOT_DONE)
        self.mark.synchronize()
        self.compiler.device_asserts.check()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to another one."""
        return self.compiler.xp.cuda.get_elapsed_time(self.mark, end_event.mark)
