"""Leaky rectified linear units whose slope is drawn."""

from __future__ import annotations

from corefw.declarations._shared.drawing import check_floating, draw
from corefw.declarations._shared.factories import ArgumentError
from corefw.dispatch.declare import composite, ops
from corefw.dispatch.random_generator import Generator


@composite(public="corefw corefw.rrelu_ nn.functional nn.functional.rrelu_")
def rrelu(
    input, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False, *,
    generator: Generator | None = None,
):  # fmt: skip
    """The input where it is positive, else the input times a slope: in training drawn for each element from
    ``U(lower, upper)``, otherwise their mean (Xu et al., "Empirical evaluation of rectified activations", 2015).

    Args:
        input: any shape, floating.
        lower, upper: the least and the greatest slope.
        training: whether slopes are drawn.
        inplace: overwrite `input`.
        generator: the stream; the device's default one if missing.

    Raises RuntimeError if `lower` exceeds `upper`.

    >>> import corefw as torch
    >>> torch.rrelu(torch.tensor([-1.0, 2.0]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    if lower > upper:
        raise ArgumentError(
            f"Lower bound should be less than or equal to the upper bound, but rrelu() got {lower} and {upper}"
        )
    if not training:
        return ops.leaky_relu(input, (lower + upper) / 2, inplace)
    check_floating("rrelu_with_noise_out_cpu", input.dispatch_key.dtype, complex_too=False)
    drawn = draw("uniform_at", input.dispatch_key, tuple(input.array.shape), generator, (float(lower), float(upper)))
    slope = drawn.masked_fill((input <= 0).logical_not(), 1)
    return input.mul_(slope) if inplace else input * slope


def _rrelu_(
    input,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    *,
    generator: Generator | None = None,
):
    """In-place form of `rrelu`."""
    return rrelu.op.function(input, lower, upper, training, True, generator=generator)


_rrelu_.__name__ = _rrelu_.__qualname__ = "rrelu_"
rrelu.op.inplace_function = _rrelu_
