"""Ways in which processes exchange gradients."""

from corefw.distributed.algorithms import ddp_comm_hooks

__all__ = ["ddp_comm_hooks"]
