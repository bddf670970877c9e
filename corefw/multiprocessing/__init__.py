"""Python's `multiprocessing` under PyTorch's name, by which tensors travel without their elements.

A tensor that is put into a queue or a pipe, or handed to a process, is moved into shared memory by `share_memory_`, and
the receiver shows the same memory: what one process writes, the others see. The memory is the system's: it goes with
the last process that has it open. Other tensors that showed the sender's memory before it was moved do not follow, so
share first. A part of a larger tensor that is not shared travels as a copy, and so do tensors of other devices.

In a job of `corefw launch`, `spawn` and `Process` run ranks in the processes that exist already (`jobs`).
"""

from multiprocessing import *
from multiprocessing import __all__ as _names

from corefw.multiprocessing import sharing
from corefw.multiprocessing.jobs import Process
from corefw.multiprocessing.sharing import get_all_sharing_strategies, get_sharing_strategy, set_sharing_strategy
from corefw.multiprocessing.spawning import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    spawn,
    start_processes,
)

__all__ = [
    *_names,
    "Process",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
sharing.register()
