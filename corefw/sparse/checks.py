"""Checks of sparse tensors: of their positions, and of gradients with respect to them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from corefw.dispatch.sparse.tensors import is_sparse, sparse
from corefw.sparse.forms import coalesce, to_dense
from corefw.tensor import Tensor


class check_sparse_tensor_invariants:
    """PyTorch's switch of the checks of positions, as a context, a decorator's argument or by `enable` and `disable`.

    The checks are always made here; the switch is kept, so that programs find what they set.

    >>> import corefw as torch
    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    _enabled = False

    def __init__(self, enable: bool = True):
        self.wanted, self._before = enable, False

    @staticmethod
    def is_enabled() -> bool:
        """What was set last."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Set it."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Unset it."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        self._before = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self.wanted

    def __exit__(self, *error: Any) -> None:
        check_sparse_tensor_invariants._enabled = self._before

    def __call__(self, function: Callable) -> Callable:
        @wraps(function)
        def checked(*arguments: Any, **options: Any) -> Any:
            with type(self)(self.wanted):
                return function(*arguments, **options)

        return checked


def as_sparse_gradcheck(gradcheck: Callable) -> Callable:
    """`gradcheck` for functions of sparse tensors: their values are varied, and sparse results compared as dense ones.

    >>> import corefw as torch
    >>> a = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
    >>> torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)(lambda a: (a * 3).to_dense(), a)
    True
    """

    @wraps(gradcheck)
    def checked(function: Callable, inputs: Any, **options: Any) -> Any:
        options.pop("masked", None)
        given = [coalesce(t) if is_sparse(t) else t for t in ([inputs] if isinstance(inputs, Tensor) else inputs)]
        varied = [t.array.values.detach().clone().requires_grad_(t.requires_grad) if is_sparse(t) else t for t in given]

        def of_values(*values: Any) -> Any:
            made = [sparse(t.array.pattern, v) if is_sparse(t) else v for t, v in zip(given, values, strict=True)]
            result = function(*made)
            results = result if isinstance(result, tuple) else (result,)
            return tuple(to_dense(r) if is_sparse(r) else r for r in results)

        return gradcheck(of_values, tuple(varied), **options)

    return checked
