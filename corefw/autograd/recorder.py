"""What is done with each new node while anomaly mode, saved-tensor hooks or both are on."""

from __future__ import annotations

from collections.abc import Callable

from corefw.graph.grad_mode import mode
from corefw.tensor import Node

Step = Callable[[Node], None]


class Recorder:
    """The thread's ``mode.recorder`` while something watches the recording: runs one step per kind of watcher."""

    __slots__ = ("steps",)

    def __init__(self, steps: dict[str, Step]):
        self.steps = steps

    def __call__(self, node: Node) -> None:
        for step in self.steps.values():
            step(node)


def exchange_step(kind: str, step: Step | None) -> Step | None:
    """Let `step` run for each new node instead of the present one of its kind (None: none); returns that one."""
    recorder = mode.recorder
    steps: dict[str, Step] = dict(recorder.steps) if isinstance(recorder, Recorder) else {}
    before = steps.pop(kind, None)
    if step is not None:
        steps[kind] = step
    mode.recorder = Recorder(steps) if steps else True
    if mode.recording is not False:
        mode.recording = mode.recorder
    return before
