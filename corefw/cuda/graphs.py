"""Graphs: work of a GPU that is captured once and then replayed as a whole, in one launch."""

from __future__ import annotations

from typing import Any

from corefw.cuda._runtime import generator_of, is_initialized, runtime
from corefw.dispatch import constants
from corefw.dispatch.random_generator import Generator
from corefw.errors import CaptureError

_MODES = ("global", "thread_local", "relaxed")


def is_current_stream_capturing() -> bool:
    """Whether what this thread gives to the GPU is captured; false where no backend is loaded."""
    return is_initialized() and runtime().is_capturing()


def graph_pool_handle() -> Any:
    """Memory that several graphs may be captured in, if they are replayed in the order of their captures."""
    return runtime().new_graph_pool()


class CUDAGraph:
    """Work that was captured on a stream, for replays.

    A replay does the captured launches again, on the same memory: it reads what tensors hold by then, and leaves
    results in the tensors that the capture returned. Random numbers go on from the generator's offset as in any other
    call. Tensors that were made before the capture must be kept alive; what the capture allocated stays as long as the
    graph.

    Args:
        keep_graph: accepted; what was captured is always made ready for replays at the end of the capture.
    """

    def __init__(self, keep_graph: bool = False):
        self._graph: Any = None
        self._generators: dict[Generator, Any] = {}  # with their states on the device
        self._blocks: dict[Generator, int] = {}  # of their streams that a replay takes, once captured

    def register_generator_state(self, generator: Generator) -> None:
        """Let the capture to come draw from a generator other than the device's default one."""
        self._generators[generator] = None

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Begin to capture what the current stream, which must not be the default one, is given.

        Args:
            pool: memory to share, from `graph_pool_handle` or another graph's `pool`.
            capture_error_mode: accepted; what a capture does not permit is refused in the thread that captures.

        Raises CaptureError if there is a graph already, or one is being captured.
        """
        if capture_error_mode not in _MODES:
            raise ValueError(f"capture_error_mode: expected one of {', '.join(_MODES)}, got {capture_error_mode!r}")
        if self._graph is not None:
            raise CaptureError("CUDAGraph.capture_begin: this graph was captured already: call reset() first")
        device = runtime()
        self._generators.setdefault(generator_of(), None)
        states = {generator: device.new_generator_state() for generator in self._generators}
        constants.forget()  # those that the graph uses are asked of the runtime, which keeps them
        graph = device.new_graph()
        graph.begin(pool)
        self._graph, self._generators = graph, states
        for generator, state in states.items():
            generator.begin_capture(state)

    def capture_end(self) -> None:
        """End the capture; the graph can be replayed. Raises CaptureError if what was done has made it invalid."""
        self._end(self._capturing("capture_end").end)

    def _abandon(self) -> None:
        """End a capture that has failed."""
        self._end(self._capturing("capture_end").abandon)
        self.reset()

    def _end(self, end: Any) -> None:
        self._blocks = {generator: generator.end_capture() for generator in self._generators}
        try:
            end()
        except Exception:
            self.reset()
            raise

    def _capturing(self, method: str) -> Any:
        if self._graph is None or self._blocks:
            raise CaptureError(f"CUDAGraph.{method}: no capture has begun: call capture_begin() first")
        return self._graph

    def _captured(self, method: str) -> Any:
        if self._graph is None or not self._blocks:
            raise CaptureError(f"CUDAGraph.{method}: called without a preceding successful capture")
        return self._graph

    def replay(self) -> None:
        """Do the captured work again, on the current stream."""
        graph = self._captured("replay")
        for generator, blocks in self._blocks.items():
            if blocks:
                self._generators[generator].write(*generator.take(blocks))
        graph.replay()

    def reset(self) -> None:
        """Let go of the captured work and its memory; another capture may begin."""
        if self._graph is not None:
            self._graph.reset()
        self._graph, self._blocks = None, {}
        self._generators = dict.fromkeys(self._generators)

    def pool(self) -> Any:
        """The memory of this graph, for other graphs to share."""
        return self._captured("pool").pool


class graph:
    """A with-block whose work is captured, on a stream of its own, instead of done.

    If the block raises, nothing is captured, and the stream can be used again.

    Args:
        cuda_graph: what is captured into.
        pool: memory to share, from `graph_pool_handle` or another graph's `pool`.
        stream: where to capture; the one of all captures that name none if missing.
        capture_error_mode: as of `CUDAGraph.capture_begin`.
    """

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Any = None, capture_error_mode: str = "global"):
        self.cuda_graph, self.pool, self.capture_error_mode = cuda_graph, pool, capture_error_mode
        self.capture_stream = runtime().capture_stream() if stream is None else stream

    def __enter__(self) -> None:
        runtime().synchronize()
        runtime().empty_cache()
        self.capture_stream.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self.capture_stream.__exit__()
            raise

    def __exit__(self, kind: Any, *exception: Any) -> None:
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph._abandon()
        finally:
            self.capture_stream.__exit__()
