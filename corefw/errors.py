"""The exception types of corefw: each has PyTorch's type where PyTorch users catch it."""

__all__ = [
    "BackendError",
    "CorefwError",
    "DeviceError",
    "DimensionError",
    "DtypeError",
    "GradientError",
    "KernelNotFoundError",
    "LinAlgError",
    "OutOfMemoryError",
    "PositionError",
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


class DtypeError(CorefwError, RuntimeError, TypeError):
    """An element type is not what the op takes."""


class DeviceError(CorefwError, RuntimeError):
    """Tensors lie on different devices, or a device cannot be used."""


class GradientError(CorefwError, RuntimeError):
    """A gradient cannot be computed or an in-place change would make it wrong."""


class BackendError(CorefwError, RuntimeError):
    """A backend plugin is broken, unusable or contradicts another one."""


class KernelNotFoundError(CorefwError, NotImplementedError):
    """No backend offers a kernel for (op, device, dtype); the text lists the candidates and why each lost."""


class LinAlgError(CorefwError, RuntimeError):
    """A matrix has no such inverse, solution or decomposition."""


class OutOfMemoryError(CorefwError, RuntimeError):
    """A device has no memory left for an allocation."""
