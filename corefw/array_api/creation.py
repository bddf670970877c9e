"""The array API's functions that make arrays."""

from __future__ import annotations

from typing import Any

import corefw
from corefw.dtypes import dtype
from corefw.tensor import Tensor
from corefw.tensor_api import asarray as _asarray
from corefw.tensor_api import from_dlpack as _from_dlpack


def asarray(obj: Any, /, *, dtype: dtype | None = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """A number, nested sequence of numbers, array of any library or buffer as a tensor.

    Args:
        obj: what to convert.
        dtype, device: of the result; those of `obj` if missing.
        copy: True copies always, False never, None where needed.

    Raises ValueError where a copy is needed and `copy` is False.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().asarray([1.0, 2])
    tensor([1., 2.])
    """
    requires_grad = isinstance(obj, Tensor) and obj.requires_grad
    if requires_grad and not copy and dtype in (None, obj.dtype) and device in (None, obj.device):
        return obj
    return _asarray(obj, dtype=dtype, device=device, copy=copy, requires_grad=requires_grad)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of an array of another library, or a copy of it."""
    return _from_dlpack(x, device=device, copy=copy)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """The numbers from `start` (0 if only one is given) up to, not with, `stop`; none if `step` leads away from it.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().arange(3, 0, -1)
    tensor([3, 2, 1])
    """
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step <= 0 and step != 0:
        whole = all(isinstance(v, int) for v in (start, stop, step))
        return corefw.empty(0, dtype=dtype or (corefw.int64 if whole else None), device=device)
    return corefw.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: dtype | None = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, which is left out unless `endpoint`.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().linspace(0, 1, 4, endpoint=False)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if isinstance(start, complex) or isinstance(stop, complex):
        steps = linspace(0.0, 1.0, num, device=device, endpoint=endpoint)
        return (start + steps * (stop - start)).to(dtype or result_complex())
    if endpoint:
        return corefw.linspace(start, stop, num, dtype=dtype, device=device)
    return corefw.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def result_complex() -> dtype:
    """The complex type of the default floating type."""
    return corefw.promote_types(corefw.get_default_dtype(), corefw.complex64)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dtype | None = None, device: Any = None
) -> Tensor:
    """A matrix with ones on the diagonal `k` places right of the main one, zeros elsewhere.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().eye(2, 3, k=1)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    columns = n_rows if n_cols is None else n_cols
    rows = corefw.arange(n_rows, device=device).unsqueeze(1)
    return (corefw.arange(columns, device=device) - rows == k).to(dtype or corefw.get_default_dtype())


def _shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def empty(shape: Any, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array whose elements are not set."""
    return corefw.empty(_shape(shape), dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array of zeros."""
    return corefw.zeros(_shape(shape), dtype=dtype, device=device)


def ones(shape: Any, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array of ones."""
    return corefw.ones(_shape(shape), dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array of one number, which gives the type if none is given."""
    return corefw.full(_shape(shape), fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array like `x` whose elements are not set."""
    return corefw.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array of zeros like `x`."""
    return corefw.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array of ones like `x`."""
    return corefw.ones_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """An array of one number like `x`."""
    return corefw.full_like(x, fill_value, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangles of matrices, up to the diagonal `k` places right of the main one."""
    return corefw.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangles of matrices, from the diagonal `k` places right of the main one."""
    return corefw.triu(x, k)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Coordinate arrays of the grid that vectors span; the first two axes change places with `indexing` "xy"."""
    return list(corefw.meshgrid(*arrays, indexing=indexing)) if arrays else []
