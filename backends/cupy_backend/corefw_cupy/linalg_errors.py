"""Errors of linear algebra by cuSOLVER and cuBLAS in the words of what failed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corefw.errors import LinAlgError


def explained(message: str, function: Callable, *arguments):
    """What `function` of CuPy gives, with LinAlgError where a matrix does not allow it: that waits for the device."""
    from cupyx import errstate

    try:
        with errstate(linalg="raise"):
            return function(*arguments)
    except np.linalg.LinAlgError as error:
        if "square" in str(error) or "dimension" in str(error):
            raise  # the shape rule explains
        raise LinAlgError(message) from error
