"""What kernels find wrong in their data, such as an index out of bounds, raised as errors on the host.

A kernel runs while the program goes on, so it cannot raise. It leaves the place alone, and reports (device_asserts.cuh)
into memory that the host sees; the error is raised when the program next waits for the device. With
``CUDA_LAUNCH_BLOCKING=1`` that is in the call itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corefw_cupy.capturing import Capturing


class DeviceAsserts:
    """The reports of all kernels.

    Args:
        memory: four int64 numbers that devices may write to: the kind, and three numbers of the report.
        wait: waits for the current device.
        blocking: whether to look after every launch.
    """

    def __init__(self, memory: np.ndarray, wait: Callable[[], None], blocking: bool):
        memory[...] = 0
        self.memory = memory
        self.address = memory.ctypes.data
        self.wait = wait
        self.blocking = blocking
        self.kinds: list[tuple[type[Exception], str]] = []

    @classmethod
    def shared(cls, cupy, blocking: bool) -> DeviceAsserts:
        """Reports in host memory that all devices of this process can write to."""
        memory = cupy.cuda.alloc_pinned_memory(4 * 8)
        numbers = np.frombuffer(memory, np.int64, 4)
        return cls(numbers, lambda: cupy.cuda.get_current_stream().synchronize(), blocking)

    def kind(self, message: str, error: type[Exception] = IndexError) -> int:
        """The number by which a kernel reports: the message may hold {0}, {1} and {2}, the numbers of the report."""
        self.kinds.append((error, message))
        return len(self.kinds)

    def out_of_bounds(self, op: str) -> int:
        """The kind for an index into a dimension, as `position` in device_asserts.cuh reports it."""
        return self.kind(f"{op}: index {{0}} is out of bounds for dimension {{1}} with size {{2}}")

    def check(self) -> None:
        """Raise what was reported; for the time when the device has been waited for."""
        kind, *numbers = self.memory.tolist()
        if kind:
            self.memory[...] = 0
            error, message = self.kinds[kind - 1]
            raise error(message.format(*numbers))

    def checked(self, launch: Callable, capturing: Capturing) -> Callable:
        """A launch that waits and looks, unless it is captured."""

        def checked_launch(grid, block, arguments, **options):
            launch(grid, block, arguments, **options)
            if capturing.capture is None:
                self.wait()
                self.check()

        return checked_launch
