"""Memory formats and layouts: names for the order in which a tensor's elements lie in memory."""

from __future__ import annotations

from corefw.dtypes import MODULE
from corefw.shapes import Shape


class _Named:
    """An interned object that is known, and pickled, by the name of its module's attribute."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"{MODULE}.{self.name}"

    def __reduce__(self):
        return self.name


class memory_format(_Named):
    """An order of dimensions in memory; one interned object per format.

    >>> isinstance(channels_last, memory_format), channels_last
    (True, torch.channels_last)
    """

    __slots__ = ()

    def order(self, ndim: int) -> Shape:
        """The dimensions of an `ndim`-dimensional tensor from the slowest to the fastest varying one; ValueError if the
        format is for another number of dimensions."""
        wanted = {"channels_last": 4, "channels_last_3d": 5}.get(self.name, ndim)
        if ndim != wanted:
            raise RuntimeError(f"required rank {wanted} tensor to use {self.name} format")
        return (0, *range(2, ndim), 1) if self.name.startswith("channels_last") else tuple(range(ndim))


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


class layout(_Named):
    """How a tensor's elements are found: by strides, or by the positions of those that are not zero.

    >>> isinstance(strided, layout), strided
    (True, torch.strided)
    """

    __slots__ = ()


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
# no tensor has these: programs compare with them
sparse_csc, sparse_bsr, sparse_bsc = layout("sparse_csc"), layout("sparse_bsr"), layout("sparse_bsc")
