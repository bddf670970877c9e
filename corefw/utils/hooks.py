"""The handle that registering a hook returns."""

from corefw.autograd.handles import RemovableHandle

__all__ = ["RemovableHandle"]
