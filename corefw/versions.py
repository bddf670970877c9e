"""Counts of in-place changes: lists of one number that tensors over one memory share; some numbers refuse to grow, and
a second one tells that not all changes are counted."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

from corefw.errors import GradientError, SharingError

#: the threads that are inside inference_mode, and those of `receivers`, as negative numbers; empty most of the time,
#: which is all that a call asks
inferring: set[int] = set()
#: {thread: what is given the version of each tensor that it makes}
receivers: dict[int, Callable[[list[int]], None]] = {}


class InferenceCount(int):
    """The count of a tensor made in inference mode, whose changes nobody follows: outside of it it neither grows nor is
    saved, with which ``+`` before it marks the places where counts are saved for the backward."""

    def __add__(self, other):
        if get_ident() in inferring:
            return self
        raise GradientError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
            "normal tensor before doing inplace update."
        )

    def __pos__(self):
        raise GradientError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
            "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use "
            "it in autograd, or use `corefw.no_grad()` instead of `corefw.inference_mode()`."
        )

    def __sub__(self, other):
        return +self


#: the second number of memory that may be changed without being counted
EXPOSED = -1
_UNCOUNTED = InferenceCount()


def fresh_version() -> list[int]:
    """The version of a new tensor."""
    thread = get_ident()
    version: list[int] = [_UNCOUNTED] if thread in inferring else [0]
    if thread in receivers:
        receivers[thread](version)
    return version


def receive(receiver: Callable[[list[int]], None] | None) -> Callable[[list[int]], None] | None:
    """Let `receiver` be given the version of each tensor that this thread makes from now on (None: nobody); who was
    before."""
    thread = get_ident()
    before = receivers.pop(thread, None)
    if receiver is None:
        inferring.discard(-thread)
    else:
        receivers[thread] = receiver
        inferring.add(-thread)
    return before


def expose(version: list[int]) -> None:
    """Note that the memory may be changed without being counted from now on: `data` or another library shows it."""
    if len(version) == 1:
        version.append(EXPOSED)


class ConjugateCount(int):
    """The count of a conjugate, which is computed at once: a change of it would not reach the tensor conjugated.

    Attributes: ``base`` that tensor; ``array`` the conjugate's own; ``pending`` whether PyTorch would still have the
    conjugation to do.
    """

    base: Any
    array: Any
    pending: bool

    def __add__(self, other):
        raise SharingError(
            "in-place changes of a conjugate are refused: it was computed at once, so they would not reach the tensor "
            "that was conjugated. Change that tensor, or take resolve_conj() of the conjugate for memory of its own."
        )
