"""Decompositions, inverses and solutions that tell which matrices have none; such matrices are in
tests/test_namespaces.py."""

import numpy as np

from corefw.testing.cases.decomposition import definite, regular, row, upper_or_lower


def with_info(function):
    """A function's result, and that nothing was wrong."""
    return lambda A, *others, **attributes: (function(A, *others, **attributes), np.zeros(A.shape[:-2], np.int32))


CASES = (
    row("linalg_cholesky_ex", with_info(upper_or_lower), definite({}, {"upper": True}), gradient=False),
    row("linalg_inv_ex", with_info(np.linalg.inv), regular()),
    row("linalg_solve_ex", with_info(np.linalg.solve), regular(beside=((3, 2), (2, 2, 1), (1, 3)))),
)
