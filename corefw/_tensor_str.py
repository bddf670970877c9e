"""How tensors are shown, under the names of PyTorch's module: the options as an object, and the numbers alone."""

from __future__ import annotations

from typing import Any

from corefw.printing import get_printoptions, numbers, printoptions, set_printoptions
from corefw.tensor import Tensor

__all__ = ["printoptions", "set_printoptions"]


class _PrinterOptions:
    """The options that hold now, as attributes; setting one is `set_printoptions`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return get_printoptions()[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        set_printoptions(**{"sci_mode": self.sci_mode, name: value})


PRINT_OPTS = _PrinterOptions()


def _tensor_str(self: Tensor, indent: int) -> str:
    """The numbers of a tensor, as its text has them between its parentheses.

    >>> import corefw as torch
    >>> _tensor_str(torch.tensor([[1.0], [2.5]]), 0)
    '[[1.0000],\\n [2.5000]]'
    """
    return numbers(self.detach().cpu().numpy(), indent)
