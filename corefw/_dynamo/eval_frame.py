"""The class of modules behind `compile`."""

from corefw.compiler import OptimizedModule

__all__ = ["OptimizedModule"]
