"""Tensors to and from other libraries, without copying: the functions of the package under PyTorch's other names."""

from corefw.tensor_api import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
