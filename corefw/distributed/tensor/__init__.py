"""Tensors on the processes of a mesh: in parts, whole on each, or in summands.

>>> import corefw as torch
>>> from corefw.distributed.tensor import Replicate, Shard, distribute_tensor
>>> mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
>>> weight = distribute_tensor(torch.ones(4, 2), mesh, [Shard(0)])
>>> (distribute_tensor(torch.ones(3, 2), mesh, [Replicate()]) @ weight.t()).placements
(Shard(dim=1),)
>>> torch.distributed.destroy_process_group()
"""

from corefw.distributed.device_mesh import DeviceMesh, init_device_mesh
from corefw.distributed.tensor.dtensor import DTensor, distribute_module, distribute_tensor
from corefw.distributed.tensor.factories import empty, full, ones, rand, randn, zeros
from corefw.distributed.tensor.placements import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "ones",
    "rand",
    "randn",
    "zeros",
]
