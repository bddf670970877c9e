"""Ways in which processes exchange gradients, average models, and end at different times."""

from corefw.distributed.algorithms import ddp_comm_hooks, join, model_averaging
from corefw.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable", "ddp_comm_hooks", "join", "model_averaging"]
