"""Reductions."""

import numpy as np

from corefw.testing.case import Case, uniform

SHAPES = (((2, 3),), ((),), ((4, 1, 3),), ((0, 3),), ((5,),))

FULL = (((2, 3),), ((),), ((4, 1, 3),), ((5,),))  # nothing empty

DIMS = (
    {},
    {"keepdim": True},
    {"dim": 0},
    {"dim": -1, "keepdim": True},
    {"dim": (0, -1)},
    {"dim": (-1, 0), "keepdim": True},
    {"dim": 1},
    {"dim": ()},
)

DIM = ({"dim": 0}, {"dim": -1, "keepdim": True}, {"dim": 1})


def fits(shape, dim=None, **attributes):
    """Whether the dimensions exist, once each."""
    ndim = len(shape) or 1
    dims = (dim,) if isinstance(dim, int) else dim or ()
    return len({d % ndim for d in dims}) == len(dims) and all(-ndim <= d < ndim for d in dims)


def over(function):
    """A NumPy reduction with PyTorch's arguments."""

    def reference(a, dim=None, keepdim=False, **attributes):
        axis = None if dim is None or dim == () or not a.ndim else dim
        return function(a, axis=axis, keepdims=keepdim, **attributes)

    return reference


def line_by_line(function):
    """A reference for one line, applied along `dim`; its results are tuples of numbers."""

    def reference(a, *arguments, dim=-1, keepdim=False):
        if not a.ndim:
            return tuple(np.asarray(part) for part in function(a.reshape(1), *arguments))
        dim %= a.ndim
        moved = np.moveaxis(a, dim, -1)
        results = [function(line, *arguments) for line in moved.reshape(-1, moved.shape[-1])]
        return tuple(
            np.expand_dims(np.array(part).reshape(moved.shape[:-1]), dim)
            if keepdim
            else np.array(part).reshape(moved.shape[:-1])
            for part in zip(*results)
        )

    return reference


def along(function):
    """As `line_by_line`, without positional arguments but the input."""
    reference = line_by_line(function)
    return lambda a, dim=-1, keepdim=False: reference(a, dim=dim, keepdim=keepdim)


def _expand_reduced(a, dim, keepdim, shape):
    for d in () if keepdim or dim is None else dim:
        a = np.expand_dims(a, d)
    return np.broadcast_to(a, shape)


def _expand_reduced_samples(rng, dtype):
    def draw(*shape):
        return uniform(rng, -3, 3, shape, dtype)

    return [
        ([draw(2)], {"dim": (1,), "keepdim": False, "shape": (2, 3)}),
        ([draw(2, 1)], {"dim": (1,), "keepdim": True, "shape": (2, 3)}),
        ([draw(3)], {"dim": (0, 2), "keepdim": False, "shape": (2, 3, 4)}),
        ([draw()], {"dim": None, "keepdim": False, "shape": (2, 3)}),
    ]


def _with_zeros(rng, dtype):
    """Lines with no, one and two zeros, and long ones."""
    samples = []
    for zeros in ((), (1,), (0, 3), (0, 1, 2, 3, 4)):
        line = np.asarray(rng.uniform(0.5, 2, (2, 5))).astype(dtype)
        line[:, list(zeros)] = 0
        samples += [([line], {"dim": 1}), ([line], {}), ([line], {"dim": 0, "keepdim": True})]
    for shape in ((), (1, 3), (0, 3), (3, 0), (7,)):
        samples += [([uniform(rng, -2, 2, shape, dtype)], {"dim": 0})]
    return samples


CASES = (
    Case("sum", over(np.sum), SHAPES, DIMS, valid=fits),
    Case("mean", over(np.mean), SHAPES, DIMS, valid=fits),
    Case("nansum", over(np.nansum), SHAPES, DIMS, valid=fits),
    Case("nanmean", over(np.nanmean), FULL, DIMS, valid=fits),
    Case("prod", over(np.prod), make=_with_zeros),
    Case("expand_reduced", _expand_reduced, make=_expand_reduced_samples),
    Case("all", over(np.all), SHAPES, DIMS[:-1], domain=(0, 2), valid=fits),
    Case("any", over(np.any), SHAPES, DIMS[:-1], domain=(0, 1), valid=fits),
    Case(
        "count_nonzero",
        lambda a, dim=None: np.sum(a != 0, dim if a.ndim else None),
        SHAPES,
        ({}, {"dim": 0}, {"dim": (0, -1)}),
        domain=(0, 2),
        valid=fits,
    ),
    Case(
        "logsumexp",
        over(lambda a, axis, keepdims: np.log(np.sum(np.exp(a), axis, keepdims=keepdims))),
        SHAPES,
        DIMS[2:-1],
        valid=fits,
    ),
    Case("trace", np.trace, (((2, 3),), ((3, 3),), ((0, 3),)), special=False),
    Case(
        "sum_to_size",
        lambda a, size: a.sum(0, keepdims=True).reshape(size),
        (((2, 3),),),
        ({"size": (1, 3)}, {"size": (3,)}),
        special=False,
        torch=None,
    ),
)
