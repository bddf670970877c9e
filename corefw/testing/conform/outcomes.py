"""What may come of a check."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from unittest import SkipTest

LONGEST_REASON = 600  # characters


class Outcome(StrEnum):
    """What came of a check, the worst first."""

    WRONG = "WRONG"  # the kernel computed something else
    RAISES = "RAISES"  # an exception, a crash of the process, or no end
    UNPROVEN = "NOT PROVEN"  # a kernel that no check that passed has run
    MISSING = "MISSING"  # no kernel where the device needs one
    UNSUPPORTED = "UNSUPPORTED DTYPE"  # the device does not store it
    NOT_RUN = "NOT RUN"
    EXCLUDED = "EXCLUDED"
    PASS = "PASS"


#: what a backend must not have to be conformant; a kernel that is missing is no wrong one
FAILURES = (Outcome.WRONG, Outcome.RAISES, Outcome.UNPROVEN)


class NotRunError(SkipTest):
    """A check cannot run here; the text says why. pytest skips it."""


@dataclass(frozen=True)
class Result:
    """What came of one check.

    Attributes: ``check`` its name; ``section``, ``op`` ("" for none), ``family`` of the op, ``dtype`` ("" for none) and
    ``property`` what it is about; ``target`` the backend and its device; ``reason`` of an outcome but PASS; ``ulp`` the
    greatest error that was seen; ``seconds`` how long it took; ``ran`` the ops that the backend's own kernels computed.
    """

    check: str
    section: str
    op: str
    family: str
    dtype: str
    property: str
    target: str
    outcome: Outcome
    reason: str = ""
    ulp: float = 0.0
    seconds: float = 0.0
    ran: tuple[str, ...] = ()

    def as_dict(self) -> dict:
        """For JSON."""
        return {**asdict(self), "outcome": str(self.outcome)}

    @classmethod
    def of_dict(cls, fields: dict) -> Result:
        """From JSON."""
        return cls(**{**fields, "outcome": Outcome(fields["outcome"]), "ran": tuple(fields["ran"])})
