"""The most memory that a process held for five steps of a program: python -m benchmarks.peak COLUMN PROGRAM"""

import importlib
import re
import sys
from contextlib import nullcontext
from pathlib import Path

from benchmarks.programs import PROGRAMS

if __name__ == "__main__":
    column, program = sys.argv[1:]
    framework = importlib.import_module("torch" if column == "torch" else "corefw")
    with nullcontext() if column == "torch" else framework.backend(column):
        step = PROGRAMS[program](framework)
        for _ in range(5):
            step()
    # Not getrusage's maximum, which begins with that of the process that started this one.
    print(int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024)
