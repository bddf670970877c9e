"""Tracebacks that end at the user's line: frames of corefw itself are left out, unless COREFW_FULL_TRACEBACK=1."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache, wraps
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

_PACKAGE = str(Path(__file__).parent) + os.sep
_OP = "<corefw op "


def op_file(title: str) -> str:
    """The name under which generated source is shown, for `title` "exp", "exp_" or "exp: backward".

    >>> op_file("exp: backward")
    '<corefw op exp: backward>'
    """
    return f"{_OP}{title}>"


def is_internal(filename: str) -> bool:
    """Whether a frame of this file is one of corefw's own, in which no user looks for the cause of an error.

    The generated backward of an op is not: it tells which op's gradient failed.

    >>> is_internal("<corefw op exp>"), is_internal("<corefw op exp: backward>"), is_internal("train.py")
    (True, False, False)
    """
    return filename.startswith(_PACKAGE) or (filename.startswith(_OP) and not filename.endswith(": backward>"))


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame, its caller, and so on."""
    while frame is not None:
        yield frame
        frame = frame.f_back


@cache
def _is_users_file(filename: str) -> bool:
    return not is_internal(filename) and not filename.startswith(_OP)


def _is_users(frame: FrameType) -> bool:
    return _is_users_file(frame.f_code.co_filename)


def user_line() -> str:
    """The line of the program that is running: that of the innermost frame which is not corefw's.

    >>> user_line()
    '<doctest corefw.tracebacks.user_line[0]>:1, in <module>'
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None and not _is_users_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return "no line of a program"
    return f"{frame.f_code.co_filename}:{frame.f_lineno}, in {frame.f_code.co_name}"


class Repetition:
    """Whether a line that has warned warns again, whatever Python's filters make of repetitions."""

    always = False


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn, as of the user's line. Python would drop what a function without a module's name warns of, and such are
    the generated functions of ops."""
    level = next((n for n, frame in enumerate(_outwards(sys._getframe(1)), 2) if _is_users(frame)), 2)
    if Repetition.always:
        sys._getframe(level - 1).f_globals.pop("__warningregistry__", None)  # what Python knows of former warnings
    warnings.warn(text, category, stacklevel=level)


def running_backward() -> Any:
    """The node whose generated backward is running in this thread; None if none is."""
    for frame in _outwards(sys._getframe()):
        if frame.f_code.co_filename.startswith(_OP) and frame.f_code.co_filename.endswith(": backward>"):
            return frame.f_locals["node"]
    return None


def full_tracebacks() -> bool:
    """Whether tracebacks are wanted with all frames and with the error of the kernel that failed."""
    return os.environ.get("COREFW_FULL_TRACEBACK", "") not in ("", "0")


def hide_internal_frames(error: BaseException) -> None:
    """Leave corefw's own frames out of the traceback of `error`, and errors that corefw met and handled before it.

    A bare ``raise`` must follow: unlike any other way to raise, it does not add the frame in which it stands.
    """
    if full_tracebacks():
        return
    while (met := error.__context__) is not None and met.__traceback__ is not None:
        if not is_internal(met.__traceback__.tb_frame.f_code.co_filename):
            break
        error.__context__ = met.__context__
    kept = None
    entries = []
    entry = error.__traceback__
    while entry is not None:
        if not is_internal(entry.tb_frame.f_code.co_filename):
            entries.append(entry)
        entry = entry.tb_next
    for entry in reversed(entries):
        entry.tb_next = kept
        kept = entry
    error.__traceback__ = kept


def ends_at_caller(function: _F) -> _F:
    """`function` with tracebacks that end at its caller's line, where a call may cost a little more."""

    @wraps(function)
    def guarded(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            hide_internal_frames(error)
            raise

    return guarded  # type: ignore[return-value]


__all__ = [
    "ends_at_caller",
    "full_tracebacks",
    "hide_internal_frames",
    "is_internal",
    "op_file",
    "running_backward",
    "user_line",
    "warn",
]
