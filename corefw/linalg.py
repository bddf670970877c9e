"""Linear algebra, under PyTorch's names."""

from __future__ import annotations

from corefw.dispatch.names import published as _published
from corefw.dispatch.registry import registry as _registry
from corefw.errors import LinAlgError

_NAMES = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "vecdot",
    "vector_norm",
]
globals().update(
    _published("corefw.linalg", {_name: _registry.declared[f"linalg_{_name}"].function for _name in _NAMES})
)
matmul = _registry.declared["matmul"].function

__all__ = ["LinAlgError", "matmul", *_NAMES]
