"""Whether the thread records its computations for gradients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from corefw.tensor import Node


class Run:
    """A backward that goes on: ``roots``, the nodes that it began at, and ``needed``, those that it is for, None for
    all."""

    __slots__ = ("__weakref__", "needed", "roots")
    roots: Sequence[tuple[Node, Any]]
    needed: set[Node] | None


class GradMode(threading.local):
    """The thread's grad mode.

    Attributes: ``recording`` False while gradients are off, else ``recorder``; ``recorder`` True, or a callable that is
    given each new node (anomaly mode, saved-tensor hooks); ``inference`` whether inside inference_mode; ``call_node``
    what the engine calls instead of ``node.backward``, None for nothing (anomaly mode); ``targeted`` whether inside a
    backward for the gradients of some tensors only; ``running`` whether inside any backward, ``run`` the innermost one.
    """

    recording: bool | Callable[[Node], None] = True
    recorder: bool | Callable[[Node], None] = True
    inference = False
    call_node: Callable[[Node, Any], Any] | None = None
    targeted = False
    running = False
    run: Run | None = None


mode: GradMode = GradMode()


class no_recording:
    """Gradients off inside a with-block; the cheap form used by the framework itself."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before = mode.recording
        mode.recording = False

    def __exit__(self, *exception: object) -> None:
        mode.recording = self.before
