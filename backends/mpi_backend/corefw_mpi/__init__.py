"""The engine "mpi": processes that an MPI launcher started, joined through mpi4py."""

from __future__ import annotations

import os

import pluggy

from corefw.distributed.engine import Communicator, Engine, Meeting

__version__ = "0.1.0"

hook = pluggy.HookimplMarker("corefw")
#: variables by which launchers tell a process that it is one of several
LAUNCHED = ("PMI_RANK", "PMI_FD", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def _join(meeting: Meeting) -> Communicator:
    """MPI itself is loaded, and started, here."""
    from corefw_mpi.communicator import world

    return world()


def _unusable() -> str | None:
    """Why MPI cannot be used: mpi4py finds no library. Nothing is started."""
    import importlib.util

    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    import mpi4py

    mpi4py.rc(initialize=False, finalize=False)
    try:
        import mpi4py.MPI
    except (ImportError, RuntimeError) as error:
        return f"mpi4py finds no MPI library ({error}); `pip install corefw-mpi[mpich]` brings one"
    return None


@hook
def corefw_engine() -> Engine:
    """What this plug-in offers."""
    return Engine(
        "mpi", __version__, ("cpu",), _join, launched=lambda: any(name in os.environ for name in LAUNCHED),
        unusable=_unusable(),
    )  # fmt: skip
