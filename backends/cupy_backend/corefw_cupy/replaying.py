"""Plans of `corefw.compile` as CUDA graphs: all launches of a plan in one, if nothing of the host changes between
replays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Any

import numpy as np

from corefw.dispatch.plan import Cell, Plan, Rate
from corefw.dispatch.straight import Run, straight
from corefw.errors import CaptureError
from corefw_cupy.runtime import CupyRuntime

_PER_ARRAY = 2  # launches that a graph must save for each array that is copied for it


def run_of(plan: Plan, runtime: CupyRuntime) -> Run:
    """The function that runs a plan: as a graph where one may do its work, call by call otherwise."""
    one_by_one = straight(plan)
    return GraphedPlan(plan, one_by_one, runtime) if _suits(plan) else one_by_one


def _suits(plan: Plan) -> bool:
    """Whether a graph may do the plan's work, and is worth it: everything lies on one device, no number or array of the
    host (a rate, counts of steps) changes, what is given is only read, and what is returned has memory of its own."""
    launches = [call for call in plan.calls if not call.op.view]
    copied = [*plan.given, *plan.returned]
    written = {cell.memory for call in plan.calls for cell in call.changed()}
    returned = {cell.memory for cell in plan.returned}
    return (
        len({(call.dispatch_key.device.type, call.dispatch_key.device.index) for call in plan.calls}) == 1
        and not any(
            isinstance(argument, Rate | np.ndarray) for call in plan.calls for argument in _flat(call.arguments)
        )
        and not any(cell in written for cell in plan.given)
        and len(returned) == len(plan.returned)
        and all(cell.kind == "result" for cell in returned)
        and len(launches) > _PER_ARRAY * len(copied)
        and 2 * sum(_bytes(cell) for cell in copied) < plan.bytes()
    )


def _flat(arguments: Iterable[Any]) -> Iterator[Any]:
    for argument in arguments:
        yield from argument if isinstance(argument, list | tuple) else (argument,)


def _bytes(cell: Cell) -> int:
    return cell.size * cell.dtype.itemsize


class GraphedPlan:
    """A run of a plan: call by call at first, which compiles what is new, then as a graph.

    Arrays that are given are copied to where the graph reads, and results from where it writes, so that these are the
    caller's. What cannot be captured goes on call by call.

    Attributes: ``graph`` the captured work; ``refused`` why there is none.
    """

    def __init__(self, plan: Plan, one_by_one: Run, runtime: CupyRuntime):
        self.plan, self.runtime, self.one_by_one = plan, runtime, one_by_one
        self.graph: Any = None
        self.refused: CaptureError | None = None
        self._ran = False
        self._device = plan.calls[0].dispatch_key.device.index or 0
        self._given: list[Any] = []
        self._returned: list[Any] = []
        self._states: list[Any] = []
        self._last: Any = None  # the stream of the last replay, whose memory the next one writes to
        self._done: Any = None  # a mark after it
        self._lock = Lock()

    def __call__(self, given: Sequence[Any], draws: Sequence[tuple[int, int]], rates: Sequence[float]) -> list[Any]:
        if self.refused is not None or self.runtime.is_capturing():
            return self.one_by_one(given, draws, rates)
        with self._lock, self.runtime.on(self._device):
            if self.graph is None and self._ran:
                self._capture(given)
            if self.graph is None:
                self._ran = True
                return self.one_by_one(given, draws, rates)
            return self._replay(given, draws)

    def _capture(self, given: Sequence[Any]) -> None:
        runtime = self.runtime
        self._given = [runtime.clone(array) for array in given]
        self._states = [runtime.new_generator_state() for _ in range(self.plan.generators)]
        graph = runtime.new_graph()
        runtime.synchronize()
        try:
            with runtime.capture_stream():
                graph.begin(None)
                try:
                    self._returned = self.one_by_one(self._given, [(state, 0) for state in self._states], [])
                except BaseException:
                    graph.abandon()
                    raise
                graph.end()
            for ours, others in ((self._given, given), (map(runtime.clone, self._returned), self._returned)):
                if any(one.strides != other.strides for one, other in zip(ours, others, strict=True)):
                    raise CaptureError("there are gaps between the elements of an array, which a copy leaves out")
        except CaptureError as error:
            self.refused, self._given, self._states, self._returned = error, [], [], []
        else:
            self.graph, self._done = graph, runtime.new_event(False, False)

    def _replay(self, given: Sequence[Any], draws: Sequence[tuple[int, int]]) -> list[Any]:
        runtime = self.runtime
        stream = runtime.current_stream(self._device)
        if self._last is not None and stream != self._last:
            stream.wait_event(self._done)
        for ours, array in zip(self._given, given, strict=True):
            runtime.copy(ours, array)
        for state, (seed, offset) in zip(self._states, draws, strict=True):
            state.write(seed, offset)
        for release in self.plan.releases.values():
            release()
        self.graph.replay()
        results = [runtime.clone(array) for array in self._returned]
        stream.record_event(self._done)
        self._last = stream
        return results
