"""The most memory that a process held for five steps of a program: python -m benchmarks.peak COLUMN PROGRAM"""

import importlib
import resource
import sys
from contextlib import nullcontext

from benchmarks.programs import PROGRAMS

if __name__ == "__main__":
    column, program = sys.argv[1:]
    framework = importlib.import_module("torch" if column == "torch" else "corefw")
    with nullcontext() if column == "torch" else framework.backend(column):
        step = PROGRAMS[program](framework)
        for _ in range(5):
            step()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
