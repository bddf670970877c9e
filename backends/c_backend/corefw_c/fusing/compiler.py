"""The compiler of the machine, as far as there is one, in a thread of its own: files that are kept, and loaded."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from queue import SimpleQueue

from corefw import __version__
from corefw.dispatch.measurements import folder
from corefw_c.fusing.source import HEADERS, SOURCE
from corefw_c.library import module_of

#: those of building/levels.py with which the kernels were compiled
FLAGS = ("-O3", "-g0", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-fPIC")
LEVELS = {
    "portable": (),
    "v2": ("-march=x86-64-v2",),
    "v3": ("-march=x86-64-v3",),
    "v4": ("-march=x86-64-v4", "-mprefer-vector-width=512"),
}
_TIMEOUT = 120  # seconds
_DIGEST = hashlib.sha256().digest_size

_kept: list[ctypes.CDLL] = []  # as long as the process
_tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
_worker: threading.Thread | None = None
_starting = threading.Lock()


@cache
def command() -> tuple[str, ...] | None:
    """The compiler: COREFW_C_COMPILER, unless that is 0, or the first of the usual ones that is on the path."""
    named = os.environ.get("COREFW_C_COMPILER", "")
    if named == "0":
        return None
    for words in [shlex.split(named)] if named else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(words[0]):
            return tuple(words)
    return None


@cache
def _version(words: tuple[str, ...]) -> str:
    return subprocess.run([*words, "--version"], capture_output=True, text=True, timeout=_TIMEOUT).stdout


@cache
def _headers() -> str:
    return "".join((SOURCE / "core" / name).read_text(encoding="utf-8") for name in HEADERS)


def compiled(text: str, level: str) -> int | None:
    """The address of the function `fused` that a text defines, for a level; None if it cannot be compiled."""
    words = command()
    if words is None:
        return None
    with suppress(OSError, subprocess.SubprocessError):
        flags = (*FLAGS, *LEVELS[module_of(level)])
        key = "\0".join([__version__, *words, *flags, _version(words), _headers(), text])
        file = folder() / "fused" / f"{hashlib.sha256(key.encode()).hexdigest()}.so"
        if not _is_whole(file):
            _compile([*words, *flags, "-shared", "-I", str(SOURCE)], text, file)
        library = ctypes.CDLL(str(file))
        _kept.append(library)
        return ctypes.cast(library.fused, ctypes.c_void_p).value
    return None


def _compile(words: list[str], text: str, file: Path) -> None:
    """Compile a text to a file, which appears at once and whole, with a digest of what is before it at its end."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent, ignore_cleanup_errors=True) as scratch:
        source, made = Path(scratch, "fused.c"), Path(scratch, "fused.so")
        source.write_text(text, encoding="utf-8")
        subprocess.run([*words, str(source), "-o", str(made), "-lm"], check=True, capture_output=True, timeout=_TIMEOUT)
        content = made.read_bytes()
        with open(made, "ab") as end:
            end.write(hashlib.sha256(content).digest())
        made.replace(file)


def _is_whole(file: Path) -> bool:
    """Whether a file is there as it was written."""
    try:
        content = file.read_bytes()
    except OSError:
        return False
    return hashlib.sha256(content[:-_DIGEST]).digest() == content[-_DIGEST:]


# -- the thread -------------------------------------------------------------------------------------------------------
def soon(task: Callable[[], None]) -> None:
    """Run a task in the thread that compiles, after those that it has been given before."""
    global _worker
    _tasks.put(task)
    with _starting:
        if _worker is None or not _worker.is_alive():
            _worker = threading.Thread(target=_work, name="corefw compiler", daemon=True)
            _worker.start()


def _work() -> None:
    while True:
        _tasks.get()()


def _after_fork() -> None:
    """A child has no such thread."""
    global _worker, _starting, _tasks
    _worker, _starting, _tasks = None, threading.Lock(), SimpleQueue()


os.register_at_fork(after_in_child=_after_fork)
