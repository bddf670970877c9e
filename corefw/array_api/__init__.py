"""The Python array API standard, 2024.12: what ``Tensor.__array_namespace__`` returns.

Functions have the standard's names, signatures and promotion; they take and return tensors, record gradients as all
ops do, and run on the device of their arguments. The extensions ``linalg`` and ``fft`` are modules of this one.

>>> import corefw as torch
>>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
>>> xp = x.__array_namespace__()
>>> xp.mean(x, axis=0, keepdims=True)
tensor([[2., 3.]])
"""

from __future__ import annotations

from math import e, inf, nan, pi
from types import ModuleType as _ModuleType

from corefw.array_api import fft, linalg
from corefw.array_api.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from corefw.array_api.data_types import astype, can_cast, finfo, iinfo, isdtype, result_type
from corefw.array_api.elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    conj,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    positive,
    pow,
    real,
    reciprocal,
    remainder,
    round,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
)
from corefw.array_api.info import __array_namespace_info__
from corefw.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot
from corefw.array_api.manipulation import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)
from corefw.array_api.searching import (
    argmax,
    argmin,
    argsort,
    count_nonzero,
    nonzero,
    searchsorted,
    sort,
    take,
    take_along_axis,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    where,
)
from corefw.array_api.statistics import (
    all,
    any,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from corefw.dtypes import (
    bool_ as bool,
)
from corefw.dtypes import (
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

newaxis = None
__array_api_version__ = "2024.12"

_hidden = {"annotations", *(name for name, value in globals().items() if isinstance(value, _ModuleType))} - {
    "fft",
    "linalg",
}
__all__ = ["__array_api_version__", "__array_namespace_info__"]
__all__ += sorted(name for name in globals() if not name.startswith("_") and name not in _hidden)
