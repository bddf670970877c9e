"""Indexing with tensors inside of `vmap`, which needs no help here."""

from contextlib import nullcontext

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(nullcontext):
    """A context in which tensors index tensors inside of `vmap`, as they do without it."""
