"""Training in several processes."""

from typing import Any

from corefw.nn.modules.module import Module


class DistributedDataParallel(Module):
    """A model that several processes train together. It needs an engine that connects them, and there is none yet: it
    is refused, as in PyTorch without a process group.

    Args:
        module: the model.
        args, kwargs: PyTorch's further options.

    Raises:
        ValueError: always.
    """

    def __init__(self, module: Module, *args: Any, **kwargs: Any):
        raise ValueError(
            "DistributedDataParallel: there is no process group, and corefw has no engine for one yet. Call the model "
            "itself, or nn.DataParallel for several devices of one process."
        )
