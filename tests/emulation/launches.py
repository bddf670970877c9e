"""Counts of what is launched on the emulated device, by the name of the function."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

_counters: list[Counter[str]] = []


def launched(name: str) -> None:
    """Count a launch."""
    for counter in _counters:
        counter[name] += 1


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """A with-block whose launches are counted."""
    counter: Counter[str] = Counter()
    _counters.append(counter)
    try:
        yield counter
    finally:
        _counters.remove(counter)
