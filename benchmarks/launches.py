"""Counts the launches of a training step on the emulated device, by function; the first step prepares.

python -m benchmarks.launches [PROGRAM ...]
"""

from __future__ import annotations

import argparse
from collections import Counter

from corefw.benchmarks.training import TRAINING


def of_step(program: str) -> Counter[str]:
    """The launches of a program's second step."""
    import corefw
    from tests.emulation import device, launches

    device.install()
    corefw.set_default_device("emulated")
    try:
        corefw.manual_seed(0)
        step = TRAINING[program](corefw)
        step()
        with launches.counted() as found:
            step()
    finally:
        corefw.set_default_device(None)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", default=list(TRAINING), metavar="PROGRAM", help="all by default")
    for program in parser.parse_args().programs:
        found = of_step(program)
        print(f"{program}: {found.total()}")
        for name, count in found.most_common():
            print(f"{count:6} {name}")


if __name__ == "__main__":
    main()
