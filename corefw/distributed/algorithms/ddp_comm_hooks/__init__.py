"""Hooks by which `DistributedDataParallel` averages a bucket of gradients."""

from corefw.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook

__all__ = ["default_hooks", "post_localSGD_hook", "powerSGD_hook"]
