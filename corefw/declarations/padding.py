"""Padding: tensors extended at their borders, or cut there."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.declarations._shared.batching import from_the_end
from corefw.dispatch.declare import Sizes, composite, ops, primitive
from corefw.dispatch.numbers import fitting_number
from corefw.dispatch.rules import numbers, same
from corefw.errors import KernelNotFoundError, ShapeError

INDEXED = ("reflect", "replicate", "circular")


# -- constant ---------------------------------------------------------------------------------------------------------
def constant_pad_nd_shape(input, pad, value=0):
    """The last dimension grows by pad[0] + pad[1], the one before by pad[2] + pad[3], ..."""
    if len(pad) % 2:
        raise ShapeError("Padding length must be divisible by 2")
    if len(pad) > 2 * len(input):
        raise ShapeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {len(input)}"
        )
    result = list(input)
    for i in range(len(pad) // 2):
        dim, before, after = len(input) - 1 - i, pad[2 * i], pad[2 * i + 1]
        result[dim] += before + after
        if result[dim] < 0 or before + input[dim] < 0 or after + input[dim] < 0:
            raise ShapeError(
                f"The input size {input[dim]}, plus negative padding {before} and {after} resulted in a negative "
                f"output size, which is invalid. Check dimension {dim} of your input."
            )
    return tuple(result)


@primitive(dtype=same, shape=constant_pad_nd_shape, public="corefw")
def constant_pad_nd(input, pad: Sizes, value: float = 0):
    """`input` extended by `value` at its borders.

    Args:
        input: any shape.
        pad: how much before and after the last dimension, then the one before it, ...; negative amounts cut.
        value: what the new elements are.

    >>> import corefw as torch
    >>> torch.constant_pad_nd(torch.tensor([1, 2]), (1, 0), 7)
    tensor([7, 1, 2])
    """


constant_pad_nd.batching(from_the_end)


@constant_pad_nd.gradient("input")
def constant_pad_nd_vjp(grad, pad):
    return ops.constant_pad_nd(grad, tuple(-amount for amount in pad))


constant_pad_nd.tangent(lambda tangent_input, pad: ops.constant_pad_nd(tangent_input, pad, 0.0))


# -- from the input's own elements ------------------------------------------------------------------------------------
def _check_indexed(size: int, dim: int, before: int, after: int, mode: str, input) -> None:
    """Refuse paddings for which `mode` finds no elements."""
    if mode == "reflect" and (before >= size or after >= size):
        raise ShapeError(
            "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at dimension {dim} of input {list(input)}"
        )
    if mode == "circular":
        if before > size or after > size:
            raise ShapeError("Padding value causes wrapping around more than once.")
        remaining = size + min(before, 0) + min(after, 0)
        if remaining < 0 or (remaining == 0 and max(before, after) > 0):
            raise ShapeError("Negative padding value is resulting in an empty dimension")
    if size + before + after < 0 or (size == 0 and mode != "circular"):
        raise ShapeError(
            f"input of size {list(input)} is too small for padding ({before}, {after}) at dimension {dim}: calculated "
            f"size {size + before + after}"
        )


def indexed_pad_shape(input, pad, mode):
    """The last dimension grows by pad[0] + pad[1], the one before by pad[2] + pad[3], ..."""
    if mode not in INDEXED:
        raise ShapeError(f"Unrecognised padding mode {mode}")
    result = list(constant_pad_nd_shape(input, (0,) * len(pad)))
    for i in range(len(pad) // 2):
        dim, before, after = len(input) - 1 - i, pad[2 * i], pad[2 * i + 1]
        _check_indexed(input[dim], dim, before, after, mode, input)
        result[dim] += before + after
    if mode != "circular" and pad and not any(result[-(len(pad) // 2) :]):
        raise ShapeError(f"input of size {list(input)} is too small for padding {tuple(pad)}: nothing remains of it")
    return tuple(result)


def _positions(size: int, before: int, after: int, mode: str, device):
    """Which of `size` elements stands at each place of the padded dimension."""
    places = ops.arange(-before, size + after, device=device)
    if mode == "replicate":
        return places.clamp(0, size - 1)
    if mode == "circular":
        first, period = max(-before, 0), size + min(before, 0) + min(after, 0)  # it is what remains that goes round
        return (places - first).remainder(max(period, 1)) + first
    return (size - 1) - ((size - 1) - places.abs()).abs()


def _indexed_pad_name(pad, mode):
    name = {"reflect": "ReflectionPad", "replicate": "ReplicationPad"}.get(mode)
    return f"{name}{len(pad) // 2}D" if name else "IndexedPad"


@composite(dtype=same.moving(), shape=indexed_pad_shape, public="", grad_name=_indexed_pad_name)
def indexed_pad(input, pad: tuple, mode: str):
    """`input` extended by elements of its own: mirrored ("reflect"), the outermost ("replicate"), or those of the other
    end ("circular")."""
    shape = input.shape
    indexed_pad_shape(shape, pad, mode)
    for i in range(len(pad) // 2):
        dim, before, after = len(shape) - 1 - i, pad[2 * i], pad[2 * i + 1]
        if before or after:
            input = input.index_select(dim, _positions(shape[dim], before, after, mode, input.device))
    return input if any(pad) else input.clone()


@indexed_pad.gradient("input")
def indexed_pad_vjp(grad, input_shape, pad, mode):
    return ops.indexed_pad_backward(grad, input_shape, pad, mode)


def indexed_pad_backward_shape(grad, shape, pad, mode):
    """The padded gradient gives the input's."""
    expected = indexed_pad_shape(shape, pad, mode)
    if tuple(grad) != expected:
        raise ShapeError(f"indexed_pad: expected a gradient of shape {list(expected)}, got {list(grad)}")
    return tuple(shape)


@composite(dtype=numbers, shape=indexed_pad_backward_shape, public="")
def indexed_pad_backward(grad, shape: tuple, pad: tuple, mode: str):
    """The gradient of indexed_pad: what was read several times gets the sum."""
    indexed_pad_backward_shape(grad.shape, shape, pad, mode)
    for i in range(len(pad) // 2):
        dim, before, after = len(shape) - 1 - i, pad[2 * i], pad[2 * i + 1]
        if before or after:
            positions = _positions(shape[dim], before, after, mode, grad.device)
            sizes = (*grad.shape[:dim], shape[dim], *grad.shape[dim + 1 :])
            grad = ops.zeros(sizes, dtype=grad.dtype, device=grad.device).index_add(dim, positions, grad)
    return grad if any(pad) else grad.clone()


@indexed_pad_backward.gradient("grad")
def indexed_pad_backward_vjp(grad, pad, mode):
    return ops.indexed_pad(grad, pad, mode)


# -- the function -----------------------------------------------------------------------------------------------------
@composite(public="nn.functional")
def pad(input, pad: Sequence[int], mode: str = "constant", value: float | None = None):
    """`input` extended, or cut, at the borders of its last dimensions.

    Args:
        input: any shape; for modes other than "constant" (N, C, ...) or (C, ...) with 1 to 3 padded dimensions.
        pad: how much before and after the last dimension, then the one before it, ...; negative amounts cut.
        mode: "constant", "reflect" (mirrored without the border element), "replicate" (the border element) or
            "circular" (from the other end).
        value: the constant, 0 by default.

    >>> import corefw as torch
    >>> torch.nn.functional.pad(torch.tensor([[1, 2, 3]]), (2, 1), mode="reflect")
    tensor([[3, 2, 1, 2, 3, 2]])
    """
    pad = tuple(pad)
    if len(pad) % 2:
        raise ShapeError("Padding length must be divisible by 2")
    if mode == "constant":
        return ops.constant_pad_nd(input, pad, fitting_number(float(value), input.dispatch_key.dtype) if value else 0)
    if len(pad) > 2 * input.ndim:
        constant_pad_nd_shape(input.shape, pad)
    if value is not None and value != 0:
        raise ShapeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in INDEXED:
        raise KernelNotFoundError(f"Unrecognised padding mode {mode}")
    if len(pad) not in (2, 4, 6) or input.ndim not in (len(pad) // 2 + 1, len(pad) // 2 + 2):
        raise KernelNotFoundError(f"Padding size {len(pad)} is not supported for {input.ndim}D input tensor.")
    return ops.indexed_pad(input, pad, mode)
