"""The command line, `corefw`: the commands of `corefw.commands`, and how each ends.

Whatever goes wrong ends in `main`: one line on stderr and an exit status, 2 for a wrong request, 1 for a failure, 130
for Ctrl-C, and 141 without a word where the reader of the output has gone, as after `| head`.
"""

from __future__ import annotations

import argparse
import os
import sys

import corefw
from corefw.commands import (
    advise,
    backends,
    bench,
    completion,
    conform,
    demo,
    explain,
    info,
    launch,
    new_backend,
    run,
    support,
)
from corefw.commands.parsing import Commands, Parser, UsageError
from corefw.errors import CorefwError, SettingError, did_you_mean
from corefw.tracebacks import full_tracebacks

COMMANDS = (demo, backends, explain, conform, bench, run, launch, new_backend, support, advise, info, completion)
USAGE, FAILURE, INTERRUPTED, NO_READER = 2, 1, 130, 141  # the last two as shells number signals


def _parser() -> tuple[Parser, Commands]:
    parser = Parser(
        prog="corefw",
        description="A deep-learning framework whose every kernel is a plug-in.",
        epilog="example:\n  corefw backends",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"corefw {corefw.__version__}")
    commands = Commands(parser)
    for command in COMMANDS:
        command.add(commands)
    return parser, commands


def _parse(arguments: list[str]) -> argparse.Namespace | int:
    """The command to run, or the exit status where parsing did all, as for --help."""
    parser, commands = _parser()
    if arguments and not arguments[0].startswith("-") and arguments[0] not in commands.names:
        guess = did_you_mean(arguments[0], commands.names)
        raise UsageError(f"no command is called '{arguments[0]}'{guess}; there are {', '.join(commands.names)}")
    try:
        return parser.parse_args(arguments)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status. A program's own `SystemExit` passes."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        parsed = _parse(arguments)
        status = parsed if isinstance(parsed, int) else parsed.run(parsed)
        _flush()
        return status
    except BrokenPipeError:
        _drop_output()
        return NO_READER
    except KeyboardInterrupt:
        return _fail(arguments, "interrupted", INTERRUPTED)
    except (UsageError, SettingError) as error:
        return _fail(arguments, str(error), USAGE)
    except Exception as error:
        if full_tracebacks():
            raise
        expected = isinstance(error, CorefwError | OSError | ImportError) and str(error)
        text = str(error) if expected else f"{type(error).__name__}: {error} (COREFW_FULL_TRACEBACK=1 shows where)"
        return _fail(arguments, text, FAILURE)


def _fail(arguments: list[str], text: str, status: int) -> int:
    """Say in one line what went wrong, after what has been printed; returns the exit status."""
    try:
        _flush()
    except OSError:
        _drop_output()
    command = f" {arguments[0]}" if arguments and not arguments[0].startswith("-") else ""
    print(f"corefw{command}: {' '.join(text.split())}", file=sys.stderr)
    return status


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _drop_output() -> None:
    """Let what could not be written go nowhere, or Python would try, and complain, once more when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
