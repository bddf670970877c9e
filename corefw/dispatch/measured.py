"""The measured choice: of the backends with a kernel, the one that was fastest for operands of this size."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from corefw.devices import DispatchKey
from corefw.dispatch.flags import unheard
from corefw.dispatch.measurements import measurements
from corefw.dispatch.op import Op
from corefw.dispatch.runtime import Runtime

ROUNDS, LONGEST, ENOUGH = 5, 2e-4, 0.05  # turns of each kernel; seconds of a turn; of all turns together, then two do


@dataclass
class Rival:
    """A kernel that may be chosen: whose it is, what is timed, and what is called, which modes may have wrapped."""

    backend: str
    kernel: Callable
    wrapped: Callable


def sized_by(op: Op) -> str:
    """What tells the size of a call: its first "two" arrays, "one", a "list" of them, or nothing, ""; "alone" where
    there are no other arguments."""
    kinds = [p.kind for p in op.kernel_parameters]
    if kinds[:2] == ["tensor", "tensor"]:
        return "two alone" if len(kinds) == 2 else "two"
    if kinds[:1] == ["tensor"]:
        return "one alone" if len(kinds) == 1 else "one"
    return "list" if kinds[:1] == ["tensors"] else ""


def choosing(op: Op, dispatch_key: DispatchKey, rivals: list[Rival], numbers: bool) -> Callable:
    """A kernel that runs the fastest of `rivals`, which are measured when the first operands of a size come."""
    what = _name(op, dispatch_key) + " with numbers" * numbers

    def choose(arguments, *sizes):
        store, label = measurements(), f"{what} {','.join(str(size.bit_length()) for size in sizes)}"
        seconds = store.figures.get(label, {})
        if {rival.backend for rival in rivals} - seconds.keys():
            if dispatch_key.runtime.is_capturing():
                return rivals[0].wrapped, False
            try:
                seconds = measure(rivals, arguments, dispatch_key.runtime, dispatch_key.device.index)
            except Exception:  # of these arguments: the call itself raises it, and is explained
                return rivals[0].wrapped, False
            store.add(label, seconds)
        return min(rivals, key=lambda rival: seconds[rival.backend]).wrapped, True

    return unheard(_FORMS[sized_by(op)](choose))


# The first two, of ops without other arguments, are written apart: to pass none on would take half of their time.
def _by_one_alone(choose: Callable) -> Callable:
    chosen: dict[int, Callable] = {}

    def kernel(a, out=None):
        try:
            fastest = chosen[a.nbytes]
        except KeyError:
            fastest, settled = choose((a,), a.nbytes)
            if settled:
                chosen[a.nbytes] = fastest
        return fastest(a) if out is None else fastest(a, out=out)

    return kernel


def _by_two_alone(choose: Callable) -> Callable:
    chosen: dict[int, dict[int, Callable]] = {}

    def kernel(a, b, out=None):
        try:
            fastest = chosen[a.nbytes][b.nbytes]
        except KeyError:
            fastest, settled = choose((a, b), a.nbytes, b.nbytes)
            if settled:
                chosen.setdefault(a.nbytes, {})[b.nbytes] = fastest
        return fastest(a, b) if out is None else fastest(a, b, out=out)

    return kernel


def _by_one(choose: Callable) -> Callable:
    chosen: dict[int, Callable] = {}

    def kernel(a, *others, out=None):
        try:
            fastest = chosen[a.nbytes]
        except KeyError:
            fastest, settled = choose((a, *others), a.nbytes)
            if settled:
                chosen[a.nbytes] = fastest
        return fastest(a, *others) if out is None else fastest(a, *others, out=out)

    return kernel


def _by_two(choose: Callable) -> Callable:
    chosen: dict[int, dict[int, Callable]] = {}

    def kernel(a, b, *others, out=None):
        try:
            fastest = chosen[a.nbytes][b.nbytes]
        except KeyError:
            fastest, settled = choose((a, b, *others), a.nbytes, b.nbytes)
            if settled:
                chosen.setdefault(a.nbytes, {})[b.nbytes] = fastest
        return fastest(a, b, *others) if out is None else fastest(a, b, *others, out=out)

    return kernel


def _by_list(choose: Callable) -> Callable:
    chosen: dict[int, Callable] = {}

    def kernel(arrays, *others, out=None):
        size = sum([a.nbytes for a in arrays])
        try:
            fastest = chosen[size]
        except KeyError:
            fastest, settled = choose((arrays, *others), size)
            if settled:
                chosen[size] = fastest
        return fastest(arrays, *others) if out is None else fastest(arrays, *others, out=out)

    return kernel


_FORMS = {
    "one alone": _by_one_alone,
    "two alone": _by_two_alone,
    "one": _by_one,
    "two": _by_two,
    "list": _by_list,
}


def measure(rivals: list[Rival], arguments: tuple, runtime: Runtime, index: int | None) -> dict[str, float]:
    """{backend: the least seconds of a call}; kernels take turns, on copies, since some change what they are given."""
    copies = [_copied(value, runtime) for value in arguments]
    calls = {rival.backend: lambda rival=rival: rival.kernel(*copies) for rival in rivals}
    wait = lambda: runtime.synchronize(index)
    counts = {}
    for backend, call in calls.items():
        call()  # compiles, and fills caches
        counts[backend] = max(1, min(100, int(LONGEST / max(time_of(wait, call, 1), 1e-7))))
    least, begun = dict.fromkeys(calls, float("inf")), time.perf_counter()
    for turn in range(ROUNDS):
        if turn > 1 and time.perf_counter() - begun > ENOUGH:
            break
        for backend, call in calls.items():
            least[backend] = min(least[backend], time_of(wait, call, counts[backend]))
    return least


def _copied(value: Any, runtime: Runtime) -> Any:
    if isinstance(value, runtime.array_type):
        return runtime.clone(value)
    return [_copied(one, runtime) for one in value] if isinstance(value, list) else value


def time_of(wait: Callable, call: Callable, calls: int) -> float:
    """Seconds per call, of many and one wait: a call may only queue work."""
    wait()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    wait()
    return (time.perf_counter() - start) / calls


# -- in words ---------------------------------------------------------------------------------------------------------
def _name(op: Op, dispatch_key: DispatchKey) -> str:
    return f"{op.name} {dispatch_key}"


def figures(op: Op, dispatch_key: DispatchKey) -> list[str]:
    """A line for each size that was measured, here or in an earlier process, the smallest first."""
    begin = _name(op, dispatch_key) + " "
    found = {
        _sizes(label.removeprefix(begin)): seconds
        for label, seconds in measurements().figures.items()
        if label.startswith(begin)
    }
    lines = []
    for (numbers, bits), seconds in sorted(found.items()):
        ranked = sorted(seconds.items(), key=lambda item: item[1])
        said = ", ".join(f"{backend} {1e6 * value:.3g} µs" for backend, value in ranked)
        sizes = " and ".join(_bytes(1 << number) for number in bits)
        lines.append(f"measured for operands of less than {sizes}{' with numbers' * numbers}: {said}")
    return lines


def _sizes(label: str) -> tuple[bool, tuple[int, ...]]:
    """Whether there are numbers among the operands, and the bits of each operand's size: `13,11` is less than 8 KiB and
    less than 2 KiB."""
    bits = label.removeprefix("with numbers ")
    return bits != label, tuple(map(int, bits.split(",")))


def _bytes(size: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size // scale} {unit}"
    return f"{size} B"
