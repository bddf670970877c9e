"""The exception types of corefw: each has PyTorch's type where PyTorch users catch it."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "BackendError",
    "CaptureError",
    "CorefwError",
    "DeviceError",
    "DifferenceError",
    "DimensionError",
    "DtypeError",
    "GradientError",
    "KernelNotFoundError",
    "KernelResultError",
    "LayoutError",
    "LinAlgError",
    "OutOfMemoryError",
    "PositionError",
    "ReadOnlyError",
    "SettingError",
    "ShapeError",
]


class CorefwError(Exception):
    """Base of every error that corefw raises itself; its text names the op, what came and what was wanted."""


class ShapeError(CorefwError, ValueError, RuntimeError):
    """Shapes or sizes do not fit (PyTorch raises RuntimeError, NumPy ValueError)."""


class DimensionError(CorefwError, IndexError, ValueError):
    """A dimension number is out of range (PyTorch raises IndexError)."""


class PositionError(CorefwError, IndexError, RuntimeError):
    """An index lies outside the indexed tensor (PyTorch raises IndexError or, for gather, RuntimeError)."""


class ReadOnlyError(CorefwError, RuntimeError, ValueError):
    """A tensor whose memory is read-only is to be changed (NumPy raises ValueError)."""


def read_only(name: str) -> ReadOnlyError:
    """The error of `name`, which would write into read-only memory."""
    return ReadOnlyError(
        f"{name}: the memory of a tensor to be written to is read-only: it was made from immutable bytes, or from a "
        "read-only NumPy array or memory map. Write to a copy of it, from clone()."
    )


def leaves_the_memory(shape, strides, offset: int) -> ShapeError:
    """The error of a view that shows more than there is."""
    return ShapeError(
        f"a view of shape {list(shape)} and strides {list(strides)} from element {offset} on leaves the tensor's memory"
    )


class DtypeError(CorefwError, RuntimeError, TypeError):
    """An element type is not what the op takes."""


class DeviceError(CorefwError, RuntimeError):
    """Tensors lie on different devices, or a device cannot be used."""


class CaptureError(CorefwError, RuntimeError):
    """Something was asked for that is not possible while a graph is captured, or a graph is used wrongly."""


class CompileError(CorefwError, RuntimeError):
    """A function that is to be compiled as a whole does what cannot be replayed."""


class GradientError(CorefwError, RuntimeError):
    """A gradient cannot be computed or an in-place change would make it wrong."""


class SharingError(CorefwError, RuntimeError):
    """An in-place change would not reach a tensor that must see it."""


class BackendError(CorefwError, RuntimeError):
    """A backend plugin is broken, unusable or contradicts another one."""


class SettingError(BackendError):
    """A setting, such as an environment variable, asks for what is not there. A plugin may raise it too: it reaches the
    user, where another error of a plugin only makes its backend unusable."""


class KernelNotFoundError(CorefwError, NotImplementedError):
    """No backend offers a kernel for (op, device, dtype); the text lists the candidates and why each lost."""


class KernelResultError(CorefwError, TypeError):
    """A kernel returned what is no array of its device, or did otherwise not what its op says."""


class DifferenceError(CorefwError, RuntimeError):
    """An op computed something else than the reference that shadows it."""


class LayoutError(CorefwError, NotImplementedError):
    """A sparse tensor was given to what takes dense ones only."""


class UnsupportedDtypeError(KernelNotFoundError):
    """A device does not store elements of a type."""


class LinAlgError(CorefwError, RuntimeError):
    """A matrix has no such inverse, solution or decomposition."""


class OutOfMemoryError(CorefwError, RuntimeError):
    """A device has no memory left for an allocation."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to add to the error of an unknown name: after the known one that is most like it; "" if none is.

    >>> did_you_mean("nunpy", ["c", "numpy"])
    " (did you mean 'numpy'?)"
    """
    from difflib import get_close_matches

    close = get_close_matches(name, [*known], 1)
    return f" (did you mean '{close[0]}'?)" if close else ""
