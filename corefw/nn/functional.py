"""The layers' computations as functions, under PyTorch's names."""

from __future__ import annotations

import warnings as _warnings
from collections.abc import Callable as _Callable
from functools import wraps as _wraps
from typing import Any as _Any

from corefw.dispatch.declare import ops as _ops
from corefw.dispatch.names import published as _published
from corefw.dispatch.overriding import functions as _functions
from corefw.dtypes import dtype as _dtype
from corefw.tensor import Tensor

_FUNCTIONS = _published(__name__)
#: the poolings that can tell where their maxima are
_KINDS = {"max": (1, 2, 3), "adaptive_max": (1, 2, 3), "fractional_max": (2, 3)}
globals().update(_FUNCTIONS)


def _chosen(name: str, dim: int | None, input: Tensor, stacklevel: int) -> int:
    """The dimension that PyTorch takes where none is given: 0 for 0-, 1- and 3-d inputs, else 1."""
    if dim is not None:
        return dim
    _warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=stacklevel,
    )
    return 0 if input.ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _dtype | None = None) -> Tensor:
    """Exponentials of the elements, scaled so that they sum to one along `dim`; see `corefw.softmax`.

    Args:
        input: any shape.
        dim: the dimension to scale along; without it one is chosen, with a warning.
        dtype: convert the elements to this dtype first.

    >>> import corefw as torch
    >>> torch.nn.functional.softmax(torch.zeros(2, 2), dim=1)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    return _ops.softmax(input, _chosen("softmax", dim, input, _stacklevel), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _dtype | None = None) -> Tensor:
    """The logarithm of `softmax`; see `corefw.log_softmax`. Arguments as for `softmax`."""
    return _ops.log_softmax(input, _chosen("log_softmax", dim, input, _stacklevel), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _dtype | None = None) -> Tensor:
    """The softmax of the negated input. Arguments as for `softmax`."""
    return _ops.softmin(input, _chosen("softmin", dim, input, _stacklevel), dtype)


def _with_indices(name: str) -> _Callable:
    """The pooling of this name that gives the positions of the maxima too, under PyTorch's name."""
    pool = _FUNCTIONS[name]

    @_wraps(pool)
    def pooled(*arguments: _Any, return_indices: bool = True, **options: _Any) -> _Any:
        return pool(*arguments, return_indices=True, **options)

    pooled.__name__ = pooled.__qualname__ = f"{name}_with_indices"
    pooled.__doc__ = f"As `{name}` with ``return_indices=True``: the maxima and their positions. Arguments as there."
    return pooled


_POOLS = [f"{kind}_pool{n}d" for kind, dims in _KINDS.items() for n in dims]
globals().update({f"{name}_with_indices": _with_indices(name) for name in _POOLS})

_functions += [softmax, log_softmax, softmin]  # type: ignore[list-item]
__all__ = [*_FUNCTIONS, "log_softmax", "softmax", "softmin"]
