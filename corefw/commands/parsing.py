"""How a command declares what it takes: its parser, and the types of its arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NoReturn

from corefw import dtypes
from corefw.errors import did_you_mean


class UsageError(Exception):
    """The command was given what it does not take."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are for `corefw.cli.main`."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


class Commands:
    """The commands that a parser knows, by name."""

    def __init__(self, parser: Parser):
        self.parser = parser
        self._parsers = parser.add_subparsers(required=True, metavar="command", dest="command")

    @property
    def names(self) -> list[str]:
        return [*self._parsers.choices]

    def add(
        self, name: str, run: Callable[[argparse.Namespace], int], text: str, *examples: str
    ) -> argparse.ArgumentParser:
        """The parser of a new command, which `run` carries out; it returns the exit status."""
        command = self._parsers.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog="\n  ".join(["example:" if len(examples) == 1 else "examples:", *examples]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(run=run)
        return command


def count(least: int) -> Callable[[str], int]:
    """The type of an argument that is a number of things."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected a number, got '{text}'") from None
        if number < least:
            raise argparse.ArgumentTypeError(f"expected {least} or more, got {number}")
        return number

    return parse


def shape(text: str) -> tuple[int, ...]:
    """The type of an argument that is a shape."""
    try:
        return tuple(count(0)(size) for size in text.split(",") if size)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"expected sizes such as 2,3, got '{text}'") from None


def dtype(name: str) -> dtypes.dtype:
    """The dtype that an argument names; refused by `UsageError` if there is none."""
    names = [known.name for known in dtypes.ALL]
    if name not in names:
        raise UsageError(f"no dtype is called '{name}'{did_you_mean(name, names)}")
    return dtypes.of_name(name)
