"""The gradients of convolutions as functions, under PyTorch's names; they have gradients themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corefw.declarations.convolution import convolution_vjp_input, convolution_vjp_weight
from corefw.tensor import Tensor

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]

Steps = int | Sequence[int]


def _each(steps: Steps, dimensions: int) -> tuple[int, ...]:
    """One step for each dimension."""
    return (steps,) * dimensions if isinstance(steps, int) else tuple(steps)


def _gradients(dimensions: int) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """The gradients with respect to the input and to the weight, for a number of spatial dimensions."""

    def conv_input(
        input_size: Sequence[int], weight: Tensor, grad_output: Tensor,
        stride: Steps = 1, padding: Steps = 0, dilation: Steps = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        """The gradient of a convolution with respect to its input.

        Args:
            input_size: the input's (N, C, *spatial).
            weight: (O, C / groups, *kernel).
            grad_output: the gradient of the result, (N, O, *spatial').
            stride, padding, dilation: one number for all spatial dimensions, or one for each.
        """
        steps: Any = (_each(given, dimensions) for given in (stride, padding, dilation))
        return convolution_vjp_input(grad_output, tuple(input_size), weight, *steps, False, groups)

    def conv_weight(
        input: Tensor, weight_size: Sequence[int], grad_output: Tensor,
        stride: Steps = 1, padding: Steps = 0, dilation: Steps = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        """The gradient of a convolution with respect to its weight; arguments are as those for the input's, but that
        the input is given and the size of the weight."""
        steps: Any = (_each(given, dimensions) for given in (stride, padding, dilation))
        return convolution_vjp_weight(grad_output, input, tuple(weight_size), *steps, False, groups)

    for function, of in ((conv_input, "input"), (conv_weight, "weight")):
        function.__name__ = function.__qualname__ = f"conv{dimensions}d_{of}"
    return conv_input, conv_weight


conv1d_input, conv1d_weight = _gradients(1)
conv2d_input, conv2d_weight = _gradients(2)
conv3d_input, conv3d_weight = _gradients(3)
