"""Shows how far the compiler is: a line that says what is done, and a counter where a person can see it."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TextIO

# Behind the text on which the cursor stands, without wrapping; afterwards the cursor is where it was.
AT_CURSOR, BACK = "\0337\033[?7l", "\033[K\033[?7h\0338"


def _screen() -> TextIO | None:
    """The terminal that this process was started from, for writing, if it is in the foreground there."""
    with suppress(OSError):
        screen = open("/dev/tty", "w", encoding="utf-8")  # noqa: SIM115
        if os.tcgetpgrp(screen.fileno()) == os.getpgrp() and os.environ.get("TERM", "dumb") != "dumb":
            return screen
        screen.close()
    return None


class Progress:
    """Counts `total` files that are compiled for some `levels` on some `cores`. A context manager.

    On a terminal the counter stands on the line of the text. pip hides what a build prints: then the counter goes to
    the terminal behind pip's own words, and is wiped away at the end. Elsewhere, as in a log, there is the line alone.
    """

    def __init__(self, total: int, levels: list[str], cores: int):
        self.total, self.count = total, 0
        self.text = f"corefw_c: compiling {total} files for {', '.join(levels)} on {cores} cores"
        self.short = f"/{total} files, {', '.join(levels)}, {cores} cores"
        self.on_line = sys.stderr.isatty()
        self.screen = None if self.on_line else _screen()

    def __enter__(self) -> Progress:
        self.begun = time.monotonic()
        print(self.text, end="" if self.on_line else "\n", file=sys.stderr, flush=True)
        self._show()
        return self

    def advance(self) -> None:
        """One more file is done."""
        self.count += 1
        self._show()

    def say(self, text: str) -> None:
        """Print what the compiler said."""
        print(f"\r\033[K{text}" if self.on_line else text, file=sys.stderr, flush=True)

    def _show(self) -> None:
        if self.on_line:
            print(f"\r{self.text}: {self.count}", end="", file=sys.stderr, flush=True)
        elif self.screen:
            print(f"{AT_CURSOR} {self.count}{self.short}{BACK}", end="", file=self.screen, flush=True)

    def __exit__(self, *error) -> None:
        if self.on_line:
            seconds = f" in {time.monotonic() - self.begun:.0f} s" if self.count == self.total else ""
            print(f"\r{self.text}: {self.count}{seconds}", file=sys.stderr, flush=True)
        elif self.screen:
            print(f"{AT_CURSOR}{BACK}", end="", file=self.screen, flush=True)
            self.screen.close()
