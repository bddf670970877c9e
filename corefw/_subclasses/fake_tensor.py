"""Tensors of which a tracer knows all but the elements: there are none, and nothing is one."""

from __future__ import annotations

from typing import Any, NoReturn

from corefw.tensor import Tensor

__all__ = ["FakeTensor", "is_fake"]


class FakeTensor(Tensor):
    """The class of such tensors, of which none can be made: NotImplementedError."""

    __slots__ = ()

    def __new__(cls, *arguments: Any, **options: Any) -> NoReturn:
        """Refuse."""
        raise NotImplementedError(
            'FakeTensor: nothing is traced here; a tensor with device="meta" has no elements either'
        )


def is_fake(x: object) -> bool:
    """False: nothing is such a tensor."""
    return False
