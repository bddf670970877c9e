"""What a plug-in gives: a backend, and its kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from corefw import dtypes
from corefw.dispatch.fusion import Fusion
from corefw.dispatch.pattern import Pattern
from corefw.dispatch.runtime import Runtime
from corefw.dtypes import dtype

API_VERSION = (1, 4)  # of the plugin interface: a plugin's major must be equal, its minor at most this

#: {(class of the frontend, or a module's name; name of what is there): what makes of it one that does the same in fewer
#: steps}
Methods = Mapping[tuple[Any, str], Callable[[Any], Any]]


@dataclass(frozen=True)
class Kernel:
    """A function on raw arrays that computes one op.

    Attributes: ``function`` called with the op's arguments in declared order, tensors as raw arrays; ``dtypes`` the
    computed dtypes it takes; ``out`` whether it takes ``out=`` (an array to write to, possibly the first argument's);
    ``numbers`` the function to call where 0-d arrays of float32 stand beside arrays of half types, None if there is
    none; ``check_shapes`` whether the op's shape rule is to refuse wrong shapes before the function is called, for one
    that would read outside of its arrays; ``deterministic`` whether equal arguments always give equal bits: False for
    one that is not asked while `use_deterministic_algorithms` is on, "if asked" for one that works in order then, since
    it looks at `settings.deterministic`; ``max_ulp`` what its elements may be wrong by, in units of the last place,
    where that is not what the dtype's tolerance says; ``looks_at`` the parameters of which the function looks at
    elements in Python, to choose what it does.
    """

    op: str
    function: Callable
    dtypes: frozenset[dtype] = frozenset(dtypes.ALL)
    out: bool = False
    numbers: Callable | None = None
    check_shapes: bool = False
    deterministic: bool | Literal["if asked"] = True
    max_ulp: float | None = None
    looks_at: tuple[str, ...] = ()


@dataclass
class Backend:
    """What a plugin gives: runtimes and kernels for some device types.

    Attributes: ``name``; ``version``; ``devices`` the device types served; ``kernels`` per device type;
    ``runtimes`` per device type, for devices that this backend owns; ``priority`` the higher one is asked first, of
    equal ones the first by name;
    ``compute_dtype`` for dtypes without kernels the wider one to compute in; ``detail`` what else tells which kernels
    run here, shown wherever the backend is, such as the set of instructions they use; ``unusable`` the reason why the
    backend cannot run here, or None; ``set_num_threads`` is called with the number of threads to use, first when the
    backend is registered; ``settings`` the environment variables that it reads, without ``COREFW_``, so that names that
    are only like one of them are told; ``executor`` makes the function that runs a plan of calls (`corefw.compile`),
    None if Python is to make one call after the other; ``fuse`` gives the kernel of several ops in one, or None where
    there is none; ``patterns`` the kernels of ops that follow each other; ``methods`` of the frontend's classes, and
    functions, that do what its own do in fewer steps, and call these for what they do not take; ``api`` the interface
    version it was written for.
    """

    name: str
    version: str
    devices: tuple[str, ...]
    kernels: dict[str, Iterable[Kernel]] = field(default_factory=dict)
    runtimes: dict[str, Runtime] = field(default_factory=dict)
    priority: int = 0
    compute_dtype: dict[dtype, dtype] = field(default_factory=dict)
    detail: str = ""
    unusable: str | None = None
    set_num_threads: Callable[[int], None] | None = None
    settings: tuple[str, ...] = ()
    executor: Callable[[Any], Callable] | None = None
    fuse: Callable[[Fusion], Callable | None] | None = None
    patterns: Sequence[Pattern] = ()
    methods: Methods = field(default_factory=dict)
    api: tuple[int, int] = API_VERSION
