"""Kernels of convolutions, by XLA's own, and of maximum pooling, by windows laid over each other."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
from jax import lax

from corefw.shapes import contiguous_strides
from corefw_numpy.rules import result_shape


def convolved(input, weight, stride, padding, dilation, groups, spread=None):
    """A correlation: `padding` is a pair for each dimension, `spread` puts zeros between the input's elements."""
    letters = "DHW"[-len(stride) :]
    return lax.conv_general_dilated(
        input,
        weight,
        stride,
        padding,
        lhs_dilation=spread,
        rhs_dilation=dilation,
        dimension_numbers=("NC" + letters, "OI" + letters, "NC" + letters),
        feature_group_count=groups,
        precision=lax.Precision.HIGHEST,
    )


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """A convolution, or the gradient of one by its input where `transposed`."""
    arguments = (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    shape = result_shape("convolution", *arguments)  # raises where they do not fit
    if 0 in shape or 0 in input.shape or 0 in weight.shape:
        result = jnp.zeros(shape, input.dtype)
    elif transposed:
        kernel = weight.shape[2:]
        within = jnp.reshape(weight, (groups, weight.shape[0] // groups, *weight.shape[1:]))
        flipped = jnp.flip(jnp.swapaxes(within, 1, 2), range(3, within.ndim))
        flipped = jnp.reshape(flipped, (groups * weight.shape[1], -1, *kernel))
        edges = [d * (k - 1) - p for k, d, p in zip(kernel, dilation, padding)]
        pairs = [(edge, edge + more) for edge, more in zip(edges, output_padding)]
        result = convolved(input, flipped, (1,) * len(kernel), pairs, dilation, groups, stride)
    else:
        result = convolved(input, weight, stride, [(p, p) for p in padding], dilation, groups)
    return result if bias is None else result + jnp.reshape(bias, (-1,) + (1,) * len(stride))


@partial(jax.jit, static_argnums=(2, 3, 4, 5, 6))
def convolution_weight(input, output_grad, kernel_size, stride, padding, dilation, groups):
    """The gradient of a convolution by its weight."""
    shape = (output_grad.shape[1], input.shape[1] // groups, *kernel_size)
    if 0 in input.shape or 0 in output_grad.shape or 0 in shape:
        return jnp.zeros(shape, input.dtype)
    pairs = [(p, p) for p in padding]
    forward = lambda weight: convolved(input, weight, stride, pairs, dilation, groups)
    result, backward = jax.vjp(forward, jnp.zeros(shape, input.dtype))
    more = [(0, size - given) for size, given in zip(result.shape, output_grad.shape)]
    return backward(jnp.pad(output_grad, more))[0]


def flat_position(positions, sizes):
    """Positions in the flattened dimensions from those in each."""
    grids = jnp.ix_(*positions)
    return sum(grid * step for grid, step in zip(grids, contiguous_strides(sizes)))


def max_pool(input, kernel_size, stride, padding, dilation, ceil_mode):
    """The largest element of each window, and its position in the image; of equal ones the first, of NaN the last."""
    shape = result_shape("max_pool", input, kernel_size, stride, padding, dilation, ceil_mode)[0]
    sizes, places = input.shape[2:], shape[2:]
    inexact = jnp.issubdtype(input.dtype, jnp.floating)
    lowest = -jnp.inf if inexact else jnp.iinfo(input.dtype).min
    windows = list(zip(kernel_size, dilation, places, stride))
    ends = [max(0, (m - 1) * s + d * (k - 1) + 1 - p - n) for (k, d, m, s), p, n in zip(windows, padding, sizes)]
    pairs = [(0, 0), (0, 0), *zip(padding, ends)]
    source = jnp.pad(input, pairs, constant_values=lowest)
    starts = [jnp.arange(m) * s - p for m, s, p in zip(places, stride, padding)]
    first = [start + jnp.maximum(0, -(start // d)) * d for start, d in zip(starts, dilation)]  # inside the input
    values = jnp.full(shape, lowest, input.dtype)
    indices = jnp.broadcast_to(flat_position(first, sizes), shape)
    for offset in product(*map(range, kernel_size)):
        at = tuple(slice(o * d, o * d + (m - 1) * s + 1, s) for o, (_, d, m, s) in zip(offset, windows))
        part = source[(..., *at)]
        better = (part > values) | jnp.isnan(part) if inexact else part > values
        position = flat_position([start + o * d for start, o, d in zip(starts, offset, dilation)], sizes)
        values, indices = jnp.where(better, part, values), jnp.where(better, position, indices)
    return values, indices
