"""The most memory that a process held for five steps of a program: python -m benchmarks.peak COLUMN PROGRAM"""

import re
import sys
from pathlib import Path

from corefw.benchmarks.columns import column
from corefw.benchmarks.training import TRAINING

if __name__ == "__main__":
    name, program = sys.argv[1:]
    with column(name) as framework:
        step = TRAINING[program](framework.module)
        for _ in range(5):
            step()
    # Not getrusage's maximum, which begins with that of the process that started this one.
    print(int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024)
