"""The process in which checks run: it is told their numbers, one a line, and answers each with a line of JSON.

``python -m corefw.testing.conform.worker NAME [FOLDER ...]``; what kernels print goes to stderr.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import warnings
from pathlib import Path

from corefw.testing.conform.execution import Alone
from corefw.testing.conform.items import items, targets_of


def main(name: str, *folders: str) -> None:
    """Answer until there is nothing more to do."""
    faulthandler.enable()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("error")
    known = [item for target in targets_of(name) for item in items(target, tuple(map(Path, folders)))]
    print(json.dumps(len(known)), file=answers)
    with Alone() as alone:
        for line in sys.stdin:
            print(json.dumps(alone.run(known[int(line)]).as_dict()), file=answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
