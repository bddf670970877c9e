"""Process groups: the processes that compute together, and the one of all, which `init_process_group` makes."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from corefw.devices import device
from corefw.dispatch.declare import ops
from corefw.dispatch.registry import registry
from corefw.distributed import debugging, engines, places
from corefw.distributed.engine import Communicator, Engine, Request
from corefw.distributed.errors import DistBackendError
from corefw.distributed.reduce_op import ReduceOp
from corefw.distributed.rendezvous import agree, meeting, told
from corefw.distributed.work import Work
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor

_log = logging.getLogger("corefw.distributed")
_ALIASES = ("gloo", "ucc", "xccl")  # PyTorch's other engines; the CPU's that is installed stands in for them


class ProcessGroup:
    """Some of the processes, seen from one of them.

    Attributes: ``ranks`` their ranks in the world, in the group's order; ``timeout`` in seconds for what they do
    together; ``engines`` {device type: (engine, communicator)}.
    """

    def __init__(self, name: str, ranks: Sequence[int], timeout: float, desc: str = ""):
        self.group_name, self.ranks, self.timeout = name, list(ranks), timeout
        self.group_desc = desc or "undefined"
        self.joined: dict[str, tuple[Engine, Communicator]] = {}
        self.sequence = 0
        self._started: list[Request] = []
        self.going: list[Work] = []  # what goes on while the program does

    # -- what users ask ------------------------------------------------------------------------------------------
    def size(self) -> int:
        """How many processes it has."""
        return len(self.ranks)

    def rank(self) -> int:
        """This process's rank in the group."""
        return self.any_communicator().rank

    def name(self) -> str:
        """Its engine's name."""
        return next(iter(self.joined.values()))[0].name

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name} of {self.size()} by {self.name() if self.joined else 'no engine'}>"

    # -- what collectives need -----------------------------------------------------------------------------------
    def any_communicator(self) -> Communicator:
        """A communicator of the group."""
        if not self.joined:
            raise ValueError("this process group was destroyed, or the process is none of it")
        return next(iter(self.joined.values()))[1]

    def home(self) -> str:
        """The device type of what the frontend itself sends: the CPU, if the group has an engine for it."""
        return "cpu" if "cpu" in self.joined else next(iter(self.joined))

    def communicator(self, device_type: str) -> Communicator:
        """The communicator for arrays of a device type.

        Raises:
            DistBackendError: the group has none.
        """
        if device_type not in self.joined:
            there = ", ".join(sorted(self.joined)) or "none: it was destroyed"
            raise DistBackendError(
                f"the process group has no engine for tensors on '{device_type}', but for {there}; name one for each "
                f'device: init_process_group("cpu:mpi,cuda:nccl")'
            )
        return self.joined[device_type][1]

    def begin(self, name: str, first: list, *rest: Any) -> None:
        """Let the communicator of the arrays begin a collective: what the kernels of all engines do."""
        method = getattr(self._current, name)
        if rest and isinstance(rest[0], list):
            requests = [method(*each, *rest[1:]) for each in zip(first, rest[0])]
        else:
            requests = [method(array, *rest) for array in first]
        self._started += [request for request in requests if request is not None]

    _current: Communicator  # of the device that the collective being begun works on

    def start(self, name: str, first: list[Tensor], *rest: Any) -> list[Request]:
        """Begin a collective op on contiguous tensors; returns what is not done yet."""
        self.sequence += 1
        self._current = self.communicator(first[0].dispatch_key.device.type)
        if debugging.level() == "DETAIL" and name not in ("send", "receive"):
            debugging.check(self, name, first, rest)
        try:
            with no_recording():
                getattr(ops, f"collective_{name}")(first, *rest, self)
        except DistBackendError:
            raise
        except (TypeError, ValueError) as error:  # the engine, or the op, does not take what was given
            told = f"rank {world.rank} of {world.size}: {self.told(name, first, self.sequence, rest)}: {error}"
            raise (TypeError if isinstance(error, TypeError) else ValueError)(told) from error
        except Exception as error:
            raise self.failed(self.told(name, first, self.sequence), error, self.timeout) from error
        started, self._started = self._started, []
        return started

    def advance(self) -> None:
        """Let what goes on beside the program do so: an engine may need calls for that. Whoever computes for long while
        something is on its way calls this now and then."""
        for work in self.going.copy():
            work.advance()

    def run(self, name: str, first: list[Tensor], *rest: Any) -> None:
        """A collective op to its end."""
        if rest and isinstance(rest[0], list):
            rest = ([tensor.contiguous() for tensor in rest[0]], *rest[1:])
        Work(self, name, first, self.start(name, first, *rest)).wait()

    def told(self, name: str, tensors: Iterable[Tensor], sequence: int, rest: Sequence[Any] = ()) -> str:
        """A call in words, for errors."""
        given = [f"{list(t.shape)} {t.dtype}" for t in tensors]
        given += [str(value) for value in rest if isinstance(value, (str, int))]
        return f"{name} #{sequence} of group {self.group_name} ({', '.join(given)})"

    def failed(self, what: str, error: Exception, limit: float) -> DistBackendError:
        """The error of a collective that did not end well; the process will end its job."""
        world.broken = True
        why = f"did not end within {limit:g} s" if isinstance(error, TimeoutError) else f"failed: {error}"
        return DistBackendError(
            f"rank {world.rank} of {world.size}: {what} {why}. Another rank died, hangs, or called something else; "
            "COREFW_DISTRIBUTED_DEBUG=detail compares the calls before each collective and names the one that differs"
        )

    def linear(self, operation: str) -> str:
        """The reduction whose transpose a reduction's gradient is; only sums and averages have one."""
        if operation not in ("sum", "avg"):
            raise NotImplementedError(f"the gradient of a reduction by {operation!r} between ranks; use sum or avg")
        return operation

    def scaled(self, grad: Tensor, operation: str) -> Tensor:
        """A gradient of a sum as that of a sum or average."""
        return grad / self.size() if self.linear(operation) == "avg" else grad


class _World:
    """What is joined: the group of all processes, and the others."""

    def __init__(self) -> None:
        self.was_joined = False  # ever
        self.clear()

    def clear(self) -> None:
        """As before `init_process_group`."""
        self.default: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.rank = self.size = -1
        self.backend = ""
        self.broken = False  # whether a collective failed: the others may wait for this process for ever
        self.count = 0


class _Worlds(threading.local):
    """The world of each thread that has one of its own, as with an engine whose ranks are threads; else the
    process's."""

    own: _World | None = None


_process, _threads = _World(), _Worlds()


class _Current:
    """The world that this thread belongs to."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_threads.own or _process, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_threads.own or _process, name, value)


world: Any = _Current()


def in_a_world_of_its_own(function: Callable[[], Any]) -> Any:
    """Call a function whose thread is a rank of its own: engines whose ranks are threads start each of them so."""
    _threads.own = _World()
    try:
        return function()
    finally:
        _threads.own = None


class GroupMember:
    """What `new_group` returns to processes that are not in the group."""

    NON_GROUP_MEMBER = -100
    WORLD: ProcessGroup | None = None


class _GroupMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes."""
        return world.default


class group(metaclass=_GroupMeta):
    """The names of groups that stand for all."""


def seconds(timeout: Any) -> float:
    """A timeout in seconds."""
    if timeout is None:
        return 1800.0
    if isinstance(timeout, timedelta):
        return timeout.total_seconds()
    raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


def _wanted(backend: str | None) -> dict[str | None, str]:
    """{device type: engine} of a name, or of pairs such as "cpu:mpi,cuda:nccl"; None stands for every device."""
    if backend is None or backend == "undefined":
        return {}
    backend = str(backend).lower()
    if ":" not in backend:
        return {None: backend}
    pairs = [pair.partition(":") for pair in backend.split(",")]
    if not all(kind and name for kind, _, name in pairs):
        raise ValueError(f"The custom backend string argument is invalid: {backend}, expected device:engine,...")
    return {kind: name for kind, _, name in pairs}


def _chosen(backend: str | None) -> list[tuple[tuple[str, ...], Engine]]:
    """The engines that a program wants, and the devices that each shall serve."""
    wanted = _wanted(backend)
    if not wanted:
        return [(("cpu",), engines.for_device("cpu"))]
    found = []
    for kind, name in wanted.items():
        if name in _ALIASES and name not in engines.load():
            engine = engines.for_device("cpu")
            _log.warning("'%s': the engine of this program is '%s', the installed one for the CPU", name, engine.name)
        else:
            engine = engines.find(name)
        found.append(((kind,) if kind else engine.devices, engine))
    return found


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None, world_size: int = -1,
    rank: int = -1, store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Join this process to the others of its job.

    Args:
        backend: the engine: "mpi" or another that is installed, "nccl" for GPUs, pairs "cpu:mpi,cuda:nccl"; "gloo"
            stands for the CPU's engine. Without it, the CPU's.
        init_method: "env://", which reads MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE where no launcher of the
            engine tells; "tcp://host:port", "file:///path", or one of `register_rendezvous_handler`.
        timeout: for what the processes do together; 30 minutes if missing.
        world_size, rank: how many there are and which one this is, where no launcher tells.
        store: by which the processes find each other, in the place of `init_method`; it takes `rank` and `world_size`.
            Engines that a launcher joins, such as "mpi", need none.
        device_id: the device that this process shall use, where the engine needs to know.
        group_name, pg_options: accepted for PyTorch's sake; engines need none of them.

    Raises:
        AssertionError: `store` came together with `init_method`, or without `rank` and `world_size`.
        ValueError: it was called before, or a rank or size is not that of the launcher.
        BackendError: there is no such engine here.
        DistNetworkError: the others did not come in time.
    """
    if world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    limit = seconds(timeout)
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None and (world_size <= 0 or rank < 0):
        raise AssertionError("world_size must be positive, and rank must not be negative, if using store")
    said = meeting(init_method, world_size, rank, limit)
    agree(said, *told())
    joined: dict[str, tuple[Engine, Communicator]] = {}
    by_engine: dict[str, Communicator] = {}
    complete = replace(
        said, device=None if device_id is None else device(device_id).index,
        meet=lambda: places.place(said, init_method, store, list(by_engine.values())),
    )  # fmt: skip
    for kinds, engine in _chosen(backend):
        communicator = by_engine.get(engine.name) or engine.join(complete)
        by_engine[engine.name] = communicator
        joined.update(dict.fromkeys(kinds, (engine, communicator)))
    first = next(iter(by_engine.values()))
    agree(said, first.rank, first.size)
    made = ProcessGroup("0", range(first.size), limit, "default_pg")
    made.joined = joined
    world.default, world.rank, world.size = made, first.rank, first.size
    world.groups, world.backend = [made], str(backend or made.name()).lower()
    world.was_joined = True
    atexit.register(_leave)


def _leave() -> None:
    """End the job where this process failed: others may wait for it."""
    if world.default is not None and world.broken:
        world.default.any_communicator().abort()


def destroy_process_group(group: Any = None) -> None:
    """Leave a group, or all of them."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    if world.default is None:
        raise ValueError("Invalid process group specified")
    leaving = world.groups if group is None or group is world.default else [group]
    for each in list(leaving):
        if each not in world.groups:
            raise ValueError("Invalid process group specified")
        for communicator in {id(c): c for _, c in each.joined.values()}.values():
            communicator.close()
        each.joined = {}
    if leaving is world.groups:
        world.clear()
    else:
        world.groups.remove(group)


def default_group() -> ProcessGroup:
    """The group of all processes.

    Raises:
        ValueError: the processes are not joined.
    """
    found = (_threads.own or _process).default
    if found is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return found


def chosen_group(given: Any) -> ProcessGroup | None:
    """The group that an argument names: the default one for None; None if this process is none of it."""
    if given is None:
        return default_group()
    if given == GroupMember.NON_GROUP_MEMBER:
        return None
    if not isinstance(given, ProcessGroup):
        raise TypeError(f"Expected a ProcessGroup, but got {type(given).__name__}")
    return given


def is_initialized() -> bool:
    """Whether this process is joined to others.

    >>> import corefw as torch
    >>> torch.distributed.is_initialized()
    False
    """
    return world.default is not None


def get_rank(group: Any = None) -> int:
    """This process's rank in a group; -1 if it is none of it."""
    found = chosen_group(group)
    return -1 if found is None else found.rank()


def get_world_size(group: Any = None) -> int:
    """How many processes a group has; -1 if this one is none of it."""
    found = chosen_group(group)
    return -1 if found is None else found.size()


def get_backend(group: Any = None) -> str:
    """The name of a group's engine, as it was asked for."""
    found = chosen_group(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    return world.backend if ":" not in world.backend else found.name()


def get_backend_config(group: Any = None) -> str:
    """The engines of a group, "device:engine" each."""
    found = chosen_group(group)
    assert found is not None, "Invalid process group specified"
    return ",".join(f"{kind}:{engine.name}" for kind, (engine, _) in found.joined.items())


def get_process_group_ranks(group: Any) -> list[int]:
    """The ranks in the world of a group's processes."""
    found = chosen_group(group)
    return [] if found is None else list(found.ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the world of a group's process."""
    if not 0 <= group_rank < group.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in a group of a process of the world."""
    if global_rank not in group.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group.ranks.index(global_rank)


def get_pg_count() -> int:
    """How many groups this process is in."""
    return len(world.groups)


def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None,
    device_id: device | None = None, sort_ranks: bool = True,
) -> Any:  # fmt: skip
    """A group of some processes. All processes of the world call this, in the same order.

    Args:
        ranks: those in it, by their ranks in the world; all if missing.
        timeout: for what they do together; the world's if missing.
        backend: the engine, one of the world's.
        group_desc: a description.
        sort_ranks: whether the ranks in the group are in the order of those in the world; else in that of `ranks`.

    Returns:
        The group; to a process that is none of it, `GroupMember.NON_GROUP_MEMBER`.
    """
    whole = default_group()
    chosen = list(range(whole.size()) if ranks is None else sorted(ranks) if sort_ranks else ranks)
    if len(set(chosen)) != len(chosen):
        raise ValueError("the group's ranks should be unique")
    if len(chosen) > whole.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    if any(not 0 <= rank < whole.size() for rank in chosen):
        raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    world.count += 1
    if whole.rank() not in chosen:
        return GroupMember.NON_GROUP_MEMBER
    return part_of(whole, chosen, whole.timeout if timeout is None else seconds(timeout), group_desc)


def part_of(parent: ProcessGroup, chosen: Sequence[int], timeout: float, desc: str | None) -> ProcessGroup:
    """The group of some processes of another one, which alone call this; `chosen` are their ranks there."""
    made = ProcessGroup(str(world.count), [parent.ranks[rank] for rank in chosen], timeout, desc or "")
    parts: dict[int, Communicator] = {}
    for kind, (engine, communicator) in parent.joined.items():
        if id(communicator) not in parts:
            parts[id(communicator)] = communicator.split(chosen, timeout)
        made.joined[kind] = (engine, parts[id(communicator)])
    world.groups.append(made)
    return made


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Groups of the ranks that are listed; returns this process's own and all of them."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    everyone = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(everyone)) != len(everyone):
        raise ValueError("Rank has appeared in more than one subgroup")
    made = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc) for ranks in ranks_per_subgroup_list]
    own = next((g for g in made if g != GroupMember.NON_GROUP_MEMBER), None)
    return own, made


def new_subgroups(
    group_size: int | None = None, group: Any = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Groups of `group_size` neighbouring ranks; returns this process's own and all of them."""
    size = get_world_size(group)
    if group_size is None:
        group_size = max(registry.runtime("cpu").device_count(), 1) if size == 1 else size
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError("The arg 'group_size' must not exceed the world size")
    if size % group_size:
        raise ValueError("The world size must be divisible by 'group_size'")
    parts = [list(range(start, start + group_size)) for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def word_of(op: Any) -> str:
    """The name among engines of a reduction that a program gives."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op: expected a ReduceOp, but got {op!r}")
    return op.word
