"""What was measured of kernels, kept on disk for each set of backends, processor and number of threads."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import sys
import time
import warnings
from functools import cache
from pathlib import Path

from corefw.dispatch.registry import registry
from corefw.files import replacing
from corefw.processor import processor

VERSION = 1  # of the files
_PAUSE = 2.0  # seconds between two writes; the last one is at the end of the process


def folder() -> Path:
    """Where files are kept: COREFW_CACHE, else corefw's folder where the system keeps the user's caches."""
    if chosen := os.environ.get("COREFW_CACHE"):
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "corefw"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "corefw" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "corefw"


def environment() -> dict:
    """What figures hold for: a change of any of it measures anew."""
    return {
        "version": VERSION,
        "processor": processor(),
        "threads": registry.threads,
        "backends": {b.name: f"{b.version} {b.detail}".strip() for b in registry.backends.values() if not b.unusable},
    }


class Measurements:
    """{kernel and sizes: {backend: seconds}}, with the file that keeps them."""

    def __init__(self, path: Path, about: dict):
        self.path, self.about = path, about
        self.figures: dict[str, dict[str, float]] = self._read()
        self._written = time.monotonic()
        self._new: dict[str, dict[str, float]] = {}
        atexit.register(self.write)

    def _read(self) -> dict[str, dict[str, float]]:
        """The file's figures; none where there is no file, or one that cannot be read."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            return dict(found["figures"]) if found["about"] == self.about else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def add(self, what: str, seconds: dict[str, float]) -> None:
        """Keep what was measured."""
        self.figures[what] = self._new[what] = seconds
        if time.monotonic() - self._written > _PAUSE:
            self.write()

    def write(self) -> None:
        """Add what is new to the file, beside what other processes have added meanwhile."""
        if not self._new:
            return
        figures = dict(sorted((self._read() | self._new).items()))
        self._new, self._written = {}, time.monotonic()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as file:
                file.write(json.dumps({"about": self.about, "figures": figures}, indent=1).encode())
        except OSError as error:
            warnings.warn(f"COREFW_OPS=auto: what was measured is not kept: {error}", stacklevel=2)


def measurements() -> Measurements:
    """Those of the environment as it is now."""
    about = environment()
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    return _of(folder() / f"measured-{digest}.json", json.dumps(about))


@cache
def _of(path: Path, about: str) -> Measurements:
    return Measurements(path, json.loads(about))
