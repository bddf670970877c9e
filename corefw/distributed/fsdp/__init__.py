"""Models whose parameters, gradients and optimizer states lie in parts on several processes."""

from corefw.distributed.fsdp.modules import FSDPModule, UnshardHandle, fully_shard
from corefw.distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
]
