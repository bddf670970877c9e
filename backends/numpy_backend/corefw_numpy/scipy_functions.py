"""SciPy's special functions as kernels, computed in float64. SciPy is imported when the first one runs."""

from __future__ import annotations

from functools import cache
from types import ModuleType


@cache
def special(op: str) -> ModuleType:
    """`scipy.special`, on behalf of an op."""
    try:
        import scipy.special
    except ImportError as error:
        raise ImportError(
            f"{op}: the NumPy kernel is SciPy's, which is not installed: pip install scipy, or use a backend with a "
            "kernel of its own"
        ) from error
    return scipy.special


def by_scipy(xp, op: str, name: str):
    """The kernel that is SciPy's function of a name."""

    def kernel(*operands):
        wide = [operand.astype(xp.float64) for operand in operands]
        return xp.asarray(getattr(special(op), name)(*wide)).astype(operands[0].dtype)

    return kernel
