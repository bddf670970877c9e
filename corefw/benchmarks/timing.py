"""Timing of calls on any device, column beside column."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

from corefw.dispatch.measured import time_of

TURNS = 3  # at least, of each column
SHORTEST, LONGEST = 0.002, 0.02  # seconds of a turn, unless one call takes longer


def take_turns(columns: Mapping, calls: Mapping[str, Callable], seconds: float) -> dict[str, list[float]]:
    """{column: [the least, the median] of its seconds per call}; the columns take turns for about `seconds`.

    A busy neighbour, or a clock that changes, then meets all of them.
    """
    counts, times = {}, {column: [] for column in calls}  # type: ignore[var-annotated]
    turn = max(SHORTEST, min(LONGEST, seconds / (TURNS * max(1, len(calls)))))
    for name, call in calls.items():
        with columns[name]:
            time_of(columns[name].synchronize, call, 2)  # compiles, and fills caches
            once = min(time_of(columns[name].synchronize, call, 1) for _ in range(3))
        counts[name] = max(1, min(10_000, int(turn / max(once, 1e-7))))
    begun = time.perf_counter()
    while min(map(len, times.values()), default=TURNS) < TURNS or time.perf_counter() - begun < seconds:
        for name, call in calls.items():
            with columns[name]:
                call()  # resolves: a change of backends drops what was resolved
                times[name].append(time_of(columns[name].synchronize, call, counts[name]))
    return {name: [min(found), statistics.median(found)] for name, found in times.items()}
