"""What can compile here: the C compiler, and the levels to compile with it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import levels

BUILD = levels.HOME / "build"
INCLUDE = sysconfig.get_path("include")  # Python's headers
PROBE = '#include <stdio.h>\n#include "kernels.h"\nint main(void) { printf("%d", machine_level()); }\n'


class NoCompiler(Exception):
    """Nothing here can compile the kernels."""

    def __init__(self, reason: str, remedy: str = "install a C compiler (gcc 11, clang 12 or newer) or name one in CC"):
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy

    def __str__(self) -> str:
        return (
            f"corefw_c was not built: {self.reason}\n"
            "NumPy computes instead: everything works, and is slower\n"
            f"For the faster kernels, {self.remedy}, and repeat this"
        )


def compiler() -> list[str]:
    """The compiler's command: CC, or the first of the usual ones that is on the path."""
    named = shlex.split(os.environ.get("CC", ""))
    for command in [named] if named else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0]):
            return command
    raise NoCompiler(f"{named[0]!r} (from CC) is not on the PATH" if named else "no cc, gcc or clang is on the PATH")


def choose(wanted: str = "") -> list[str]:
    """The levels to compile: "best" for this machine's best, "all", or names with commas.

    An empty wish stands for the environment's COREFW_C_LEVELS, and that for "best" where it is not set. NoCompiler if
    the compiler cannot make them.
    """
    wanted = wanted or os.environ.get("COREFW_C_LEVELS", "") or "best"
    names = list(levels.LEVELS) if wanted in ("best", "all") else wanted.replace(" ", "").split(",")
    unknown = [name for name in names if name not in levels.LEVELS]
    if unknown:
        known = ", ".join([*levels.LEVELS, "best", "all"])
        raise ValueError(f"levels to compile: {unknown[0]!r} is none of {known} (COREFW_C_LEVELS={wanted})")
    if not Path(INCLUDE, "Python.h").exists():
        raise NoCompiler(f"no Python.h in {INCLUDE}", "install Python's headers (python3-dev, python3-devel)")
    machine = _probe(run=wanted == "best")
    if wanted == "best":
        fitting = [name for name in names if name == "portable" or int(name[1]) <= machine]
        names = [name for name in fitting if _takes(name)][-1:] or fitting[:1]
    for name in names:
        if not _takes(name):
            raise NoCompiler(f"{shlex.join(compiler())} does not take {levels.LEVELS[name][0]}")
    return names


def _probe(run: bool) -> int:
    """Compile a program that asks for the machine's level; its answer if it may run, else 0 (for another machine)."""
    command = compiler()
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        source, program = Path(folder, "probe.c"), Path(folder, "probe")
        source.write_text(PROBE)
        files = map(str, (source, levels.MACHINE))
        failure = f"{shlex.join(command)} cannot compile a small program"
        _attempt([*command, "-I", str(levels.SOURCE), *files, "-o", str(program)], failure)
        return int(_attempt([str(program)], f"what {shlex.join(command)} compiles does not run here")) if run else 0


def _attempt(command: list[str], failure: str) -> str:
    """What a command prints; NoCompiler if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise NoCompiler(f"{failure} ({error})") from None
    if done.returncode:
        said = done.stderr.strip() or f"exit status {done.returncode}"
        raise NoCompiler(f"{failure} ({said.splitlines()[0]})")
    return done.stdout


def _takes(level: str) -> bool:
    """Whether the compiler knows the level's flags."""
    command = [*compiler(), *levels.LEVELS[level], "-I", str(levels.SOURCE), "-fsyntax-only", str(levels.MACHINE)]
    return subprocess.run(command, capture_output=True).returncode == 0
