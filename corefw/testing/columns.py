"""What the pytest fixture ``backend`` stands for, and how pytest-benchmark times it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from corefw.benchmarks.columns import PEER, BackendColumn, Column, PeerColumn, names, peer_available, waiting
from corefw.benchmarks.work import Work
from corefw.dispatch.preferences import usable_backend
from corefw.dtypes import get_default_dtype
from corefw.errors import SettingError


def of_name(name: str) -> Column:
    """The column of a backend on the first of its devices, or PyTorch's on the CPU."""
    if name == PEER:
        return PeerColumn("cpu", get_default_dtype())
    return BackendColumn(name, usable_backend(name).devices[0], get_default_dtype())


def parameters(asked: str | None, marked: Sequence[str]) -> list:
    """The backends of a test: those that are asked for, of those that it is marked with; by default, what there is.

    A marked one that cannot be used is skipped with the reason; one that is asked for must be usable.
    """
    wanted = list(filter(None, asked.replace(" ", "").split(","))) if asked else []
    for name in wanted:
        if reason := _unusable(name):
            raise pytest.UsageError(f"--backends: {reason}")
    chosen = [name for name in marked or wanted or names() if not wanted or name in wanted]
    return [
        pytest.param(name, id=name, marks=[pytest.mark.skip(reason=reason)] if (reason := _unusable(name)) else [])
        for name in chosen
    ]


def _unusable(name: str) -> str | None:
    """Why there is no column of this name."""
    if name == PEER:
        return None if peer_available() else "PyTorch is not installed"
    try:
        usable_backend(name)
    except SettingError as error:
        return str(error)
    return None


@contextmanager
def _noted(column: Column, info: dict[str, Any]) -> Iterator[None]:
    """A with-block in which the column computes what is to be timed once; what that was goes into `info`."""
    info |= {"backend": column.name, "device": column.device, "threads": column.module.get_num_threads()}
    if column.name == PEER:  # it keeps no ledger
        yield
        info["dtype"] = str(column.module.get_default_dtype()).removeprefix("torch.")
        return
    with Work() as work:
        yield
    info |= {"dtype": ", ".join(work.dtypes()), "flops": work.flops, "bytes": work.bytes, "ran": work.ran()}


def watch(benchmark: Any, column: Column) -> None:
    """Let a benchmark fixture wait for the column's device in what it times, and note what it timed."""
    kind: Any = type(benchmark)

    class Watched(kind):
        def __call__(self, function, *arguments, **keywords):
            timed = waiting(function, column)
            if self.disabled:  # it calls once, and times nothing
                with _noted(column, self.extra_info):
                    return super().__call__(timed, *arguments, **keywords)
            with _noted(column, self.extra_info):
                timed(*arguments, **keywords)
            return super().__call__(timed, *arguments, **keywords)

        def pedantic(self, target, args=(), kwargs=None, setup=None, teardown=None, **options):
            noted: list[bool] = []

            def timed(*arguments, **keywords):
                if noted:
                    return waiting(target, column)(*arguments, **keywords)
                noted.append(True)
                with _noted(column, self.extra_info):
                    return waiting(target, column)(*arguments, **keywords)

            if not self.disabled:  # one round more, which is not timed
                options["warmup_rounds"] = options.get("warmup_rounds", 0) + 1
            return super().pedantic(timed, args, kwargs, setup, teardown, **options)

    benchmark.__class__ = Watched
