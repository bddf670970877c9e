"""Compiles the kernels: for the chosen levels, on all cores, only what changed. pip and scripts/build_c come here."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import levels
from progress import Progress
from toolchain import BUILD, INCLUDE, compiler

SHARED = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]


class CompileError(Exception):
    """The compiler refused a file; the text is what it said."""


@dataclass(frozen=True)
class Target:
    """A level, and the kinds of sanitizers to build in, as gcc's -fsanitize takes them."""

    level: str
    sanitize: str = ""

    @property
    def folder(self) -> Path:
        """Where the compiled files lie."""
        return BUILD / "objects" / "-".join(filter(None, (self.level, self.sanitize.replace(",", "-"))))

    def command(self) -> list[str]:
        """The compiler with the flags of all files."""
        flags = [*shlex.split(os.environ.get("CFLAGS", "")), *levels.FLAGS, "-I", str(levels.SOURCE), "-I", INCLUDE]
        if self.sanitize:
            flags += [f"-fsanitize={self.sanitize}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
            flags += ["-g", "-O1"]
        return [*compiler(), *flags]

    def prepare(self) -> None:
        """An empty folder, unless what it has was compiled with the same command."""
        record, command = self.folder / "command.json", json.dumps([self.command(), levels.LEVELS[self.level]])
        if not record.exists() or record.read_text() != command:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            record.write_text(command)

    def made(self, source: Path) -> Path:
        """What a source is compiled to."""
        return self.folder / f"{source.stem}.o"

    def is_outdated(self, source: Path) -> bool:
        """Whether a file that a source was compiled from, as the compiler listed them, is newer than the result."""
        made = self.made(source)
        listing = made.with_suffix(".d")
        if not made.exists() or not listing.exists():
            return True
        files = map(Path, shlex.split(listing.read_text().replace("\\\n", " ").split(":", 1)[1]))
        return any(not file.exists() or file.stat().st_mtime > made.stat().st_mtime for file in files)

    def compile(self, source: Path, *flags: str) -> str:
        """Compile a file; returns the compiler's warnings."""
        made = self.made(source)
        partial, listing = made.with_suffix(".partial"), made.with_suffix(".d")
        listed = ["-MMD", "-MT", made.name, "-MF", str(listing)]
        begun = time.time_ns()
        warnings = _run([*self.command(), *flags, *listed, "-c", str(source), "-o", str(partial)])
        os.utime(partial, ns=(begun, begun))  # what is saved from now on is newer
        partial.replace(made)
        return warnings

    def compile_kernels(self, source: Path) -> str:
        """Compile a file of kernels; returns the compiler's warnings."""
        return self.compile(source, *(() if source == levels.MACHINE else levels.LEVELS[self.level]))

    def link(self, output: Path) -> None:
        """Make the extension module from the compiled kernels and what cffi generates."""
        generated, fresh = self.folder / f"_{self.level}.c", self.folder / "fresh.c"
        levels.write_module(self.level, fresh)
        if not generated.exists() or generated.read_bytes() != fresh.read_bytes():
            fresh.replace(generated)
        if self.is_outdated(generated):
            # Its assertions tell the name of its file: the same in every folder, or no two builds would be the same.
            self.compile(generated, f"-ffile-prefix-map={levels.HOME}=.")
        objects = [str(self.made(source)) for source in (*levels.sources(), generated)]
        flags = [f"-fsanitize={self.sanitize}"] if self.sanitize else ["-s"]
        flags += shlex.split(os.environ.get("LDFLAGS", ""))
        linked = self.folder / "linked.so"  # moved at once: a process may have the old one open
        _run([*compiler(), *SHARED, "-pthread", *flags, *objects, "-o", str(linked), "-lm"])
        shutil.move(linked, output)


def _run(command: list[str]) -> str:
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise CompileError(f"{shlex.join(command)}\n{done.stderr.rstrip()}")
    return done.stderr.rstrip()


def cores() -> int:
    """How many files are compiled at once: MAX_JOBS, or as many as there are processors for this process."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(os.environ.get("MAX_JOBS", 0)) or available


def compile_kernels(targets: Iterable[Target]) -> None:
    """Compile the kernels of some targets, as far as they are outdated; CompileError with the first refused file."""
    targets = list(targets)
    for target in targets:
        target.prepare()
    steps = [(target, source) for source in levels.sources() for target in targets if target.is_outdated(source)]
    if not steps:
        return
    names = sorted({target.level for target, _ in steps})
    with Progress(len(steps), names, cores()) as progress, ThreadPoolExecutor(cores()) as workers:
        running = [workers.submit(target.compile_kernels, source) for target, source in steps]
        try:
            for done in as_completed(running):
                if done.result():
                    progress.say(done.result())
                progress.advance()
        except BaseException:
            workers.shutdown(cancel_futures=True)
            raise
