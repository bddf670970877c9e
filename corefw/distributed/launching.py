"""`corefw launch`: several processes of one program, started by the MPI launcher that is there."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from corefw.errors import BackendError


def launcher() -> str:
    """The path of `mpiexec`: that of this Python's environment, or the system's.

    Raises:
        BackendError: there is none.
    """
    beside = str(Path(sys.executable).parent)
    found = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
    if found is None:
        raise BackendError("launch: there is no mpiexec; `pip install corefw-mpi[mpich]` brings one")
    return found


def _is_open_mpi(path: str) -> bool:
    done = subprocess.run([path, "--version"], capture_output=True, text=True)
    return "Open MPI" in done.stdout or "OpenRTE" in done.stdout


def command(
    path: str, count: int, hosts: Sequence[str], program: Sequence[str], open_mpi: bool, prefixed: bool = True
) -> list[str]:
    """The launcher's command line.

    Args:
        path: of the launcher.
        count: how many processes.
        hosts: where they run; here if empty.
        program: what each runs.
        open_mpi: whether the launcher is Open MPI's; else it is MPICH's or one like it.
        prefixed: whether each line of output begins with the rank.

    >>> command("mpiexec", 2, ["a", "b"], ["python", "train.py"], open_mpi=False)
    ['mpiexec', '-n', '2', '-hosts', 'a,b', '-prepend-rank', 'python', 'train.py']
    """
    where = [("--host" if open_mpi else "-hosts"), ",".join(hosts)] if hosts else []
    prefix = ["--tag-output" if open_mpi else "-prepend-rank"] if prefixed else []
    return [path, "-n", str(count), *where, *prefix, *program]


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def launch(
    count: int, program: Sequence[str], hosts: Sequence[str] = (), max_restarts: int = 0, prefixed: bool = True
) -> int:
    """Run a program in several joined processes; returns the exit status.

    Args:
        count: how many processes.
        program: the program's own arguments to ``python -m corefw.distributed.launched``.
        hosts: where they run; here if empty.
        max_restarts: how often all are started again after one failed; the program goes on from its last checkpoint.
        prefixed: whether each line of output begins with the rank.
    """
    path = launcher()
    whole = command(
        path,
        count,
        hosts,
        [sys.executable, "-m", "corefw.distributed.launched", *program],
        _is_open_mpi(path),
        prefixed,
    )
    variables = {
        **os.environ,
        "MASTER_ADDR": hosts[0] if hosts else "127.0.0.1",
        "MASTER_PORT": os.environ.get("MASTER_PORT", str(free_port())),
        "TORCHELASTIC_RUN_ID": "corefw",
        "TORCHELASTIC_MAX_RESTARTS": str(max_restarts),
    }
    if count > 1:
        variables.setdefault("OMP_NUM_THREADS", "1")  # the processes share the processors
    for attempt in range(max_restarts + 1):
        start = time.monotonic()
        variables["TORCHELASTIC_RESTART_COUNT"] = str(attempt)
        status = subprocess.run(whole, env=variables).returncode
        if not status or attempt == max_restarts:
            break
        print(
            f"corefw launch: ended with status {status} after {time.monotonic() - start:.0f} s; starting again "
            f"({attempt + 1} of {max_restarts})",
            file=sys.stderr,
        )
    return status
