"""PyTorch's private assertion of a tensor's value, which libraries make of inputs."""

from __future__ import annotations

from corefw.declarations._shared.factories import ArgumentError
from corefw.tensor import Tensor

__all__: list[str] = []


def _assert_async(input: Tensor, assert_msg: str = "") -> None:
    """Raise unless the one element of a tensor is true; the device is waited for, unlike in PyTorch.

    Raises:
        RuntimeError: it is zero, or there is not one element.
    """
    if input.numel() != 1:
        raise ArgumentError(f"Boolean value of Tensor with {input.numel()} values is ambiguous")
    if not input.item():
        raise ArgumentError(assert_msg or "Expected Tensor with single nonzero value, but got zero")
