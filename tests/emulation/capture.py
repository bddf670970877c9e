"""Stream capture: what the streams of a capture are given is recorded instead of done, and what CUDA forbids meanwhile
is an error that makes the graph invalid."""

from __future__ import annotations

from collections.abc import Callable

ERRORS = {
    "unsupported": "cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing",
    "invalidated": "cudaErrorStreamCaptureInvalidated: operation failed due to a previous error during capture",
    "captured": "cudaErrorCapturedEvent: operation not permitted on an event last recorded in a capturing stream",
    "implicit": "cudaErrorStreamCaptureImplicit: operation would make the legacy stream depend on a capturing stream",
    "unjoined": "cudaErrorStreamCaptureUnjoined: capturing stream has unjoined work",
}


class CudaRuntimeError(RuntimeError):
    """What CuPy raises for an error of the runtime."""

    def __init__(self, name: str):
        super().__init__(ERRORS[name])


class Capture:
    """What is recorded.

    Attributes: ``forked`` the streams that an event of the capture has drawn in, until one of theirs is waited for.
    """

    def __init__(self, origin: int):
        self.origin, self.valid = origin, True
        self.work: list[Callable[[], None]] = []
        self.forked: set[int] = set()

    def fail(self, name: str) -> None:
        """Make the graph invalid."""
        self.valid = False
        raise CudaRuntimeError(name)


_captures: dict[int, Capture] = {}  # by stream


def of(stream: int) -> Capture | None:
    """The capture that records a stream."""
    return _captures.get(stream)


def begin(stream: int) -> None:
    """Record a stream from now on."""
    if stream == 0 or stream in _captures:
        raise CudaRuntimeError("unsupported")
    _captures[stream] = Capture(stream)


def join(stream: int, source: int, capture: Capture) -> None:
    """Let a stream wait for a mark that `source` made in a capture: it is recorded too."""
    if capture not in _captures.values():
        raise CudaRuntimeError("captured")
    if stream == capture.origin:
        capture.forked.discard(source)
    elif stream not in _captures:
        _captures[stream] = capture
        capture.forked.add(stream)


def end(stream: int) -> list[Callable[[], None]]:
    """What was recorded."""
    capture = _captures[stream]
    for one in [one for one, other in _captures.items() if other is capture]:
        del _captures[one]
    if not capture.valid:
        raise CudaRuntimeError("invalidated")
    if capture.forked:
        raise CudaRuntimeError("unjoined")
    return capture.work


def forbid(stream: int | None = None) -> None:
    """Refuse to wait for a stream that is captured, or (None) for the device while any is."""
    for one, capture in _captures.items():
        if stream is None or stream == one:
            capture.fail("unsupported")


def record(work: Callable[[], None], stream: int) -> bool:
    """Record work, and say so; False if the stream takes work as usual."""
    if stream == 0:
        for capture in _captures.values():
            capture.fail("implicit")
    capture = _captures.get(stream)
    if capture is None:
        return False
    capture.work.append(work)
    return True
