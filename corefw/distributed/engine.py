"""What an engine of collectives is: the interface of plug-ins that join processes.

An engine is a package with an entry point in the group `corefw.engines`, named as the engine; the module there has the
pluggy hook ``corefw_engine``, which returns an `Engine`. Its `join` connects this process to the others and returns a
`Communicator`. Nothing of an engine is loaded before a program asks for one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

API_VERSION = (1, 1)  # of this interface: an engine's major must be equal, its minor at most this

#: the reductions that a communicator computes; averages and scaled sums are made of "sum"
OPERATIONS = ("sum", "product", "min", "max", "band", "bor", "bxor")


@dataclass(frozen=True)
class Meeting:
    """What a program said of the processes that it wants joined; None is what it left to the engine.

    Attributes: ``rank`` and ``size`` of this process; ``address`` and ``port`` where rank 0 can be reached; ``timeout``
    in seconds for the others to come; ``device`` the number of the device that this process shall use; ``meet`` for
    engines that no launcher joins: it returns a store that all processes see, this one's rank, and how many there are.
    """

    rank: int | None = None
    size: int | None = None
    address: str | None = None
    port: int | None = None
    timeout: float = 1800.0
    device: int | None = None
    meet: Callable[[], tuple[Any, int, int]] | None = field(default=None, repr=False, compare=False)


class Request(ABC):
    """A collective on its way."""

    @abstractmethod
    def done(self) -> bool:
        """Whether it has ended, well or not; makes it go on where that needs a call."""

    @abstractmethod
    def wait(self, timeout: float) -> None:
        """Return when it has ended; raises TimeoutError after `timeout` seconds, and what went wrong."""

    source: int | None = None  # of a message received from any rank, where it came from


class Communicator(ABC):
    """This process's end of a group of processes; ranks are those in the group.

    Arrays are contiguous, as the device's runtime makes them, and each call returns at once with a Request, or None if
    it is done already; the arrays are left alone by the caller until then. All ranks call the same methods in the same
    order.
    """

    rank: int
    size: int
    host_waits = True  # whether a request's `wait` returns when it has ended; else the device waits for it

    @abstractmethod
    def all_reduce(self, array: Any, operation: str) -> Request | None:
        """`array` becomes the reduction of those of all ranks; `operation` is one of OPERATIONS."""

    @abstractmethod
    def reduce(self, array: Any, operation: str, root: int) -> Request | None:
        """As `all_reduce` on rank `root`."""

    @abstractmethod
    def broadcast(self, array: Any, root: int) -> Request | None:
        """`array` becomes that of rank `root`."""

    @abstractmethod
    def all_gather(self, target: Any, source: Any) -> Request | None:
        """`target` becomes the `source` of all ranks, one after another."""

    @abstractmethod
    def gather(self, target: Any, source: Any, root: int) -> Request | None:
        """As `all_gather` on rank `root`; elsewhere `target` has no elements."""

    @abstractmethod
    def scatter(self, target: Any, source: Any, root: int) -> Request | None:
        """`target` becomes this rank's part of the `source` on rank `root`, which has no elements elsewhere."""

    @abstractmethod
    def reduce_scatter(self, target: Any, source: Any, operation: str) -> Request | None:
        """`target` becomes this rank's part of the reduction of the `source` of all ranks."""

    @abstractmethod
    def all_to_all(self, target: Any, source: Any, received: Sequence[int], sent: Sequence[int]) -> Request | None:
        """Part i of `source` goes to rank i, part i of `target` comes from there; the sizes count elements."""

    @abstractmethod
    def send(self, array: Any, to: int, tag: int) -> Request | None:
        """`array` goes to rank `to`."""

    @abstractmethod
    def receive(self, array: Any, source: int | None, tag: int) -> Request | None:
        """`array` comes from rank `source`, from any if it is None; the request's `source` then tells."""

    @abstractmethod
    def barrier(self) -> Request | None:
        """All ranks are here."""

    @abstractmethod
    def split(self, ranks: Sequence[int], timeout: float) -> Communicator:
        """The communicator of some ranks, which alone call this, in the order of `ranks`; `timeout` in
        seconds for what they do."""

    def together(self) -> AbstractContextManager[Any]:
        """A block whose messages begin at once: none of them waits for one that comes after it."""
        return nullcontext()

    def close(self) -> None:  # noqa: B027, most have nothing to do
        """Nothing more will be asked."""

    def abort(self) -> None:  # noqa: B027
        """End the processes of the others, where the engine can: this one has failed."""


@dataclass
class Engine:
    """What a plug-in gives.

    Attributes: ``name`` that `init_process_group` is given; ``version``; ``devices`` the device types whose arrays it
    moves; ``join`` connects this process; ``launched`` says whether a launcher of the engine started this process;
    ``unusable`` the reason why it cannot run here, or None; ``api`` the interface version it was written for.
    """

    name: str
    version: str
    devices: tuple[str, ...]
    join: Callable[[Meeting], Communicator]
    launched: Callable[[], bool] = field(default=lambda: False)
    unusable: str | None = None
    api: tuple[int, int] = API_VERSION
