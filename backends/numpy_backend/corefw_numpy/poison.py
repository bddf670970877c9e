"""NumPy with poisoned memory (COREFW_POISON=1): what is read before it was written is NaN, or -1 for integers."""

from __future__ import annotations

import numpy as np


def _filled(array: np.ndarray) -> np.ndarray:
    array.ravel("K").view(np.uint8).fill(0xFF)
    return array


class PoisonedNumPy:
    """NumPy's namespace, whose new arrays of arbitrary content hold bytes 0xFF.

    >>> PoisonedNumPy().empty(2, np.int32).tolist()
    [-1, -1]
    """

    def __getattr__(self, name):
        return getattr(np, name)

    def empty(self, *arguments, **options):
        return _filled(np.empty(*arguments, **options))

    def empty_like(self, *arguments, **options):
        return _filled(np.empty_like(*arguments, **options))
