"""What a report of a fault needs to tell of the machine, under PyTorch's names; it is that of `corefw info`."""

from __future__ import annotations

import contextlib
import io
from importlib import import_module

__all__ = ["get_pretty_env_info", "main"]


def get_pretty_env_info() -> str:
    """Versions, processor, threads, environment and backends, as `corefw info` prints them."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        import_module("corefw.cli").main(["info"])
    return printed.getvalue()


def main() -> None:
    """Print them: ``python -m corefw.utils.collect_env``."""
    print(get_pretty_env_info(), end="")


if __name__ == "__main__":
    main()
