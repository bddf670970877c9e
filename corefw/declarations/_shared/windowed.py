"""What functions whose windows slide over spatial dimensions share."""

from __future__ import annotations

from corefw.errors import ShapeError


def batched(name: str, input, n: int, refusal: str):
    """`input` with a batch dimension, and whether it came without.

    Args:
        n: the number of spatial dimensions.
        refusal: the start of the error for other inputs, with the holes {name}, {unbatched} and {batched}.
    """
    try:
        ndim = input.array.ndim
    except AttributeError:
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}") from None
    if ndim not in (n + 1, n + 2):
        raise ShapeError(f"{refusal.format(name=name, unbatched=n + 1, batched=n + 2)}: {list(input.shape)}")
    unbatched = ndim == n + 1
    return (input.unsqueeze(0) if unbatched else input), unbatched


def per_dimension(refusal: str, function: str, argument: str, value, n: int) -> tuple[int, ...]:
    """An int or a sequence as one int per spatial dimension.

    Args:
        refusal: the error for other sequences, with the holes {function}, {argument}, {value}, {n} and {ints}.
    """
    if isinstance(value, int):
        return (value,) * n
    value = tuple(value)
    if len(value) not in (1, n):
        ints = ("one int", "two ints", "three ints")[n - 1]
        raise ShapeError(refusal.format(function=function, argument=argument, value=list(value), n=n, ints=ints))
    return value * n if len(value) == 1 else value
