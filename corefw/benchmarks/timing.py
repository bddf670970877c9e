"""Timing of calls on any device, column beside column."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

from corefw.dispatch.measured import time_of

TURNS = 3  # at least, of each column
SHORTEST, LONGEST = 0.002, 0.02  # seconds of a turn, unless one call takes longer
SETTLING = 0.015  # seconds of calls before a turn: meanwhile threads of the column before still spin on its cores


def take_turns(
    columns: Mapping, calls: Mapping[str, Callable], seconds: float, failed: dict[str, str]
) -> dict[str, list[float]]:
    """{column: [the least, the median] of its seconds per call}; the columns take turns for about `seconds`.

    A busy neighbour, or a clock that changes, then meets all of them. A column whose call raises is left out from then
    on, and `failed` says with what.
    """
    counts: dict[str, int] = {}
    times: dict[str, list[float]] = {name: [] for name in calls}
    turn = max(SHORTEST, min(LONGEST, seconds / (TURNS * max(1, len(calls)))))

    def turn_of(name: str, call: Callable) -> None:
        """One turn of a column; the first finds out how many calls a turn has."""
        wait = columns[name].synchronize
        if name in counts:
            settled = time.perf_counter() + SETTLING
            time_of(wait, call, 1)  # resolves: a change of backends drops what was resolved
            while time.perf_counter() < settled:
                time_of(wait, call, 1)
            times[name].append(time_of(wait, call, counts[name]))
        else:
            time_of(wait, call, 2)  # compiles, and fills caches
            once = min(time_of(wait, call, 1) for _ in range(3))
            counts[name] = max(1, min(10_000, int(turn / max(once, 1e-7))))

    begun = time.perf_counter()
    while times and (min(map(len, times.values())) < TURNS or time.perf_counter() - begun < seconds):
        for name in [*times]:
            try:
                with columns[name]:
                    turn_of(name, calls[name])
            except Exception as error:  # what one column cannot do must not hide what others can
                failed[name] = described(error)
                del times[name]
    return {name: [min(found), statistics.median(found)] for name, found in times.items()}


def described(error: Exception) -> str:
    """An exception in words."""
    return f"{type(error).__name__}: {error}"
