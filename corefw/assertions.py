"""Assertions as functions, which tracing keeps: PyTorch's `torch._assert` and `torch._check`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from corefw.declarations._shared.factories import ArgumentError
from corefw.dispatch.overriding import functions
from corefw.tensor import Tensor

__all__: list[str] = []


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError with a message unless a condition holds."""
    assert condition, message


def _assert_async(input: Tensor, assert_msg: str = "") -> None:
    """Raise unless the one element of a tensor is true; the device is waited for, unlike in PyTorch.

    Raises:
        RuntimeError: it is zero, or there is not one element.
    """
    if input.numel() != 1:
        raise ArgumentError(f"Boolean value of Tensor with {input.numel()} values is ambiguous")
    if not input.item():
        raise ArgumentError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _fail(error: type[Exception], message: Callable[[], Any] | None) -> NoReturn:
    raise error("Expected cond to be True, but got False" if message is None else str(message()))


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise an error with what `message` gives unless a condition holds."""
    if not cond:
        _fail(error_type, message)


def _check(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError unless a condition holds."""
    _check_with(RuntimeError, cond, message)


def _check_is_size(i: Any, message: Callable[[], Any] | None = None, *, max: int | None = None) -> None:
    """Raise RuntimeError unless a number can be a size."""
    _check_with(RuntimeError, i >= 0 and (max is None or i <= max), message)


def _check_index(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise IndexError unless a condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise ValueError unless a condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise TypeError unless a condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise NotImplementedError unless a condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raise an error unless a condition holds for all elements."""
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError unless a condition holds for all elements."""
    _check_tensor_all_with(RuntimeError, cond, message)


functions.append(_assert)  # type: ignore[arg-type]
