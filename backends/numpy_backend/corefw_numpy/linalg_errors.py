"""Errors of the namespace's linear algebra in the words of what failed."""

import numpy

from corefw.errors import LinAlgError


def explained(message: str, function, *arguments):
    """What `function` gives; NumPy's error, which is no RuntimeError, becomes one that says what failed."""
    try:
        return function(*arguments)
    except numpy.linalg.LinAlgError as error:
        if "square" in str(error) or "dimension" in str(error):
            raise  # the shape rule explains
        raise LinAlgError(message) from error
