"""Rows of the ops on a tensor's memory."""

import numpy as np

from corefw import dtypes
from corefw.testing.case import Case

SHAPES = (((2, 3),), ((),), ((0, 3),), ((4, 1, 3),))
FLOATING = ("float32", "float64", "complex128")


def repeated(x, *attributes, **keywords):
    """The only geometry that all memory layouts share: one element, shown several times."""
    return np.broadcast_to(x, (2, 3))


def added(grad, shape, *attributes, **keywords):
    return grad.sum().reshape(shape)


REPEATED = {"size": (2, 3), "stride": (0, 0)}

CASES = (
    Case("clone", np.array, shapes=SHAPES),
    Case(
        "clone_in_order",
        lambda x, order: x,
        shapes=(((2, 3),),),
        attributes=({"order": (0, 1)}, {"order": (1, 0)}),
    ),
    Case(
        "clone_in_order",
        lambda x, order: x,
        shapes=(((2, 3, 4, 2),),),
        attributes=({"order": (0, 2, 3, 1)},),
    ),
    Case("contiguous", np.array, shapes=SHAPES),
    Case("detach", np.array, shapes=SHAPES, gradient=False),
    Case(
        "view_dtype",
        lambda x, dtype: x.view(dtype.numpy),
        shapes=SHAPES,
        attributes=({"dtype": dtypes.int32},),
        dtypes=("float32",),
        gradient=False,
        wide=False,
    ),
    Case("as_strided", repeated, shapes=(((1,),), ((),)), attributes=(REPEATED,), dtypes=FLOATING),
    Case(
        "strided_view",
        repeated,
        shapes=(((1,),),),
        attributes=(REPEATED | {"relative_offset": 0, "input_stride": (1,)},),
        dtypes=FLOATING,
    ),
    Case(
        "strided_view_backward",
        added,
        shapes=(((2, 3),),),
        attributes=({"shape": (1,)} | REPEATED | {"relative_offset": 0, "input_stride": (1,)},),
        dtypes=FLOATING,
        special=False,
    ),
)
