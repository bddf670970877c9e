"""Where libraries look for PyTorch's tensors without elements; here they are those of the device `meta`."""

from corefw._subclasses.fake_tensor import FakeTensor

__all__ = ["FakeTensor"]
