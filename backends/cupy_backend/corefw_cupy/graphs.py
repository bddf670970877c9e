"""CUDA graphs: what a stream is given is recorded, and replayed as a whole in one launch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any
from weakref import WeakSet

import numpy as np

from corefw.errors import CaptureError
from corefw_cupy.cuda import Cuda
from corefw_cupy.random import word

_one_at_a_time = Lock()  # as in PyTorch: a capture concerns the whole process


class GraphPool:
    """Memory of graphs, which other arrays are not given. What it gave out goes back to it, for later captures."""

    def __init__(self, cupy: Any):
        self.memory = cupy.cuda.MemoryPool()


class GeneratorState:
    """Seed and offset of a generator where the kernels of a graph read them."""

    def __init__(self, cuda: Cuda):
        self.capturing = cuda.capturing
        self.array = cuda.empty((2,), np.dtype(np.uint64))
        self._write = cuda.write_generator_state[()]

    def write(self, seed: int, offset: int) -> None:
        """Set both, after the work that the stream has been given."""
        self._write((1,), (1,), (self.array, word(seed), word(offset)))

    def for_launch(self) -> Any:
        """The argument of a launch, which must be one of the graph."""
        if self.capturing.capture is None:
            raise CaptureError("a generator is used by a thread while another one captures a graph that draws from it")
        return self.array


class Graphs:
    """What graphs on one kind of device share.

    Attributes: ``pools`` all their memory.
    """

    def __init__(self, cuda: Cuda):
        self.cuda, self.cupy = cuda, cuda.xp
        self.pools: WeakSet[GraphPool] = WeakSet()
        self._sides: dict[int, Any] = {}  # by device

    def pool(self) -> GraphPool:
        """New memory."""
        made = GraphPool(self.cupy)
        self.pools.add(made)
        return made

    @contextmanager
    def outside(self) -> Iterator[None]:
        """A with-block whose work is done, not captured: on a stream of its own, which is waited for."""
        capturing, cuda = self.cuda.capturing, self.cupy.cuda
        graph, capturing.capture = capturing.capture, None
        assert graph is not None, "there is nothing to be outside of"
        queue, device = cuda.get_current_stream(), cuda.runtime.getDevice()
        if device not in self._sides:
            self._sides[device] = cuda.Stream(non_blocking=True)
        side = self._sides[device]
        side.use()
        try:
            with cuda.using_allocator(graph.outer_allocator):
                yield
            side.synchronize()
        finally:
            queue.use()
            capturing.capture = graph


class Graph:
    """Work that was captured.

    Attributes: ``pool`` its memory; ``kept`` what else it uses; ``outer_allocator`` CuPy's before the capture.
    """

    def __init__(self, graphs: Graphs):
        self.graphs, self.cupy = graphs, graphs.cupy
        self.capturing = graphs.cuda.capturing
        self.pool: GraphPool | None = None
        self.kept: list[Any] = []
        self.outer_allocator: Any = None
        self._allocation: Any = None
        self._queue: Any = None
        self._captured: Any = None

    def begin(self, pool: GraphPool | None) -> None:
        """Record from now on what the current stream is given, with memory of `pool`, or of a new one."""
        cuda = self.cupy.cuda
        queue = cuda.get_current_stream()
        if queue.ptr == 0:
            raise CaptureError("a graph must be captured on a stream that is not the default one")
        if not _one_at_a_time.acquire(blocking=False):
            raise CaptureError("a graph is being captured already: captures come one after another")
        try:
            cuda.get_cublas_handle()  # to make one allocates
            self.pool, self._queue = pool or self.graphs.pool(), queue
            self.outer_allocator = cuda.get_allocator()
            queue.begin_capture()  # relaxed: CuPy's pool may ask for more memory
        except BaseException:
            _one_at_a_time.release()
            raise
        self._allocation = cuda.using_allocator(self.pool.memory.malloc)
        self._allocation.__enter__()
        self.capturing.capture = self

    def end(self) -> None:
        """Make what was recorded ready to be replayed."""
        self._leave()
        try:
            self._captured = self._queue.end_capture()
        except RuntimeError as error:  # CUDA's
            raise CaptureError(f"the graph is invalid: what was done cannot be captured: {error}") from error

    def abandon(self) -> None:
        """Forget what was recorded; the stream takes work as before."""
        self._leave()
        with suppress(RuntimeError):  # of an invalid graph, whose capture has ended all the same
            self._queue.end_capture()

    def _leave(self) -> None:
        self.capturing.capture = None
        self._allocation.__exit__(None, None, None)
        self._allocation = None
        _one_at_a_time.release()

    def replay(self) -> None:
        """Do the work, on the current stream."""
        self._captured.launch()

    def reset(self) -> None:
        """Let go of the work and what it uses."""
        self._captured, self.pool, self.kept = None, None, []
