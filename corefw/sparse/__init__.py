"""Sparse tensors: their functions under PyTorch's names.

>>> import corefw as torch
>>> a = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
>>> a @ torch.ones(3, 1)
tensor([[3.],
        [9.]])
"""

from corefw.sparse import arithmetic, methods
from corefw.sparse.checks import as_sparse_gradcheck, check_sparse_tensor_invariants
from corefw.sparse.construction import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from corefw.sparse.products import addmm, mm, sampled_addmm
from corefw.sparse.reductions import log_softmax, softmax, sum

spmm = mm

__all__ = [
    "addmm",
    "arithmetic",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "methods",
    "mm",
    "sampled_addmm",
    "softmax",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "spmm",
    "sum",
]
