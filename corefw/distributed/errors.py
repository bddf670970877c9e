"""The errors of joined processes, by PyTorch's names."""

from __future__ import annotations

from corefw.errors import CorefwError


class DistError(CorefwError, RuntimeError):
    """Something went wrong between processes."""


class DistBackendError(DistError):
    """A collective failed or did not end in time: a rank died, hangs, or called another one."""


class DistNetworkError(DistError):
    """The other processes cannot be reached."""


class DistStoreError(DistError):
    """A store did not answer."""


class QueueEmptyError(DistStoreError):
    """A queue of a store has nothing."""
