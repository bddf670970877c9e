"""What layers share that there are for one, two and three spatial dimensions."""

from __future__ import annotations

from corefw.nn.modules.module import Module
from corefw.windows import in_dimensions


class Spatial(Module):
    """The base of a family, whose members are written ``class Conv2d(_Direct, dimensions=2)``.

    A member without docs of its own has those of the family, `_docs`, in which ``{layer}`` stands for it.
    """

    dimensions = 0
    _docs = ""

    def __init_subclass__(cls, dimensions: int = 0, **options):
        super().__init_subclass__(**options)
        if dimensions:
            cls.dimensions = dimensions
            cls.__doc__ = cls.__doc__ or in_dimensions(cls._docs, dimensions, layer=cls)
