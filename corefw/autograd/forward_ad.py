"""PyTorch's dual numbers, which are left out: asking for one of its names tells the reason."""

from corefw.refusals import refusing

__getattr__ = refusing(__name__)
