"""The functions that PyTorch has in a module of this name too, beside its package."""

from corefw.dispatch.declare import ops
from corefw.low_rank import pca_lowrank, svd_lowrank
from corefw.tensor_api import broadcast_shapes

_NAMES = """
    atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cdist chain_matmul einsum meshgrid norm
    istft split stft tensordot unique unique_consecutive unravel_index
"""
globals().update({name: getattr(ops, name) for name in _NAMES.split()})

__all__ = ["broadcast_shapes", "pca_lowrank", "svd_lowrank", *_NAMES.split()]
