"""One check: what comes of it, and whether it says something of its backend."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from corefw.dispatch.modes import ledger
from corefw.dispatch.registry import registry
from corefw.errors import KernelNotFoundError, UnsupportedDtypeError
from corefw.testing.comparison import Measured
from corefw.testing.conform.evidence import missing_proof, natively_ran
from corefw.testing.conform.items import Item
from corefw.testing.conform.outcomes import LONGEST_REASON, NotRunError, Outcome, Result
from corefw.testing.targets import Target


class Alone:
    """A with-block in which checks run, each with its backend and the owner of its device alone: others would compute
    what the one under test has no kernel for."""

    def __enter__(self) -> Alone:
        self._disabled, self._target = frozenset(registry.disabled), Target("", "")
        self._book = ledger().__enter__()
        return self

    def __exit__(self, *exception) -> None:
        registry.disabled = set(self._disabled)
        self._book.__exit__(*exception)

    def run(self, item: Item) -> Result:
        """Run one check, and say what came of it."""
        if item.target != self._target:
            self._target = item.target
            registry.disabled = {*self._disabled, *_others(item.target)}
            registry.forget()
        self._book.counts.clear()
        np.random.seed(0)
        start = time.perf_counter()
        with Measured() as measured:
            outcome, reason = _outcome(item)
        if outcome is Outcome.PASS and (reason := missing_proof(item, self._book)):
            outcome = Outcome.NOT_RUN
        seconds, ran = time.perf_counter() - start, natively_ran(item.target, self._book)
        return replace(item.result(outcome, reason, measured.ulp, seconds), ran=ran)


def _others(target: Target) -> set[str]:
    serving = {backend.name for backend in registry.backends.values() if target.device in backend.devices}
    return serving - {target.backend, target.owner().backend}


def _outcome(item: Item) -> tuple[Outcome, str]:
    assert item.run is not None
    try:
        item.run()
    except NotRunError as error:
        return Outcome.NOT_RUN, str(error)
    except UnsupportedDtypeError as error:
        return Outcome.UNSUPPORTED, _said(error)
    except KernelNotFoundError as error:
        return Outcome.MISSING, _said(error)
    except AssertionError as error:
        return Outcome.WRONG, _said(error)
    except Exception as error:
        return Outcome.RAISES, f"{type(error).__name__}: {_said(error)}"
    return Outcome.PASS, ""


def _said(error: Exception) -> str:
    """An error's text and the notes that say for which sample it came."""
    notes = " ".join(reversed(getattr(error, "__notes__", ())))
    return " ".join(f"{error} {notes}".split())[:LONGEST_REASON]
