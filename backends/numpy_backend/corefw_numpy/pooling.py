"""Pooling: one pass over the places within a window, for all windows at once."""

from itertools import product

from corefw.shapes import contiguous_strides
from corefw_numpy.rules import result_shape


def kernels(xp):
    """Ops that compute."""

    def extended(input, before, after, value):
        """`input` with `value` before and after each spatial dimension."""
        if not any(before) and not any(after):
            return input
        sizes = input.shape[2:]
        shape = (*input.shape[:2], *(b + size + a for size, b, a in zip(sizes, before, after)))
        result = xp.full(shape, value, input.dtype)
        result[(..., *(slice(b, b + size) for size, b in zip(sizes, before)))] = input
        return result

    def overhang(sizes, places, extent, stride, padding):
        """How far the last window of each dimension goes beyond the input."""
        steps = zip(sizes, places, extent, stride, padding)
        return tuple(max(0, (m - 1) * s + e - p - size) for size, m, e, s, p in steps)

    def flat_position(positions, sizes):
        """Positions in the flattened dimensions from those in each."""
        steps = contiguous_strides(sizes)
        grids = xp.ix_(*positions) if len(positions) > 1 else positions
        return sum(grid * step for grid, step in zip(grids, steps))

    def improve(values, indices, part, position):
        """Take what is larger than the maximum so far; a NaN is, and the last one counts."""
        better = part > values
        if part.dtype.kind == "f":
            better |= xp.isnan(part)
        xp.copyto(values, part, where=better)
        xp.copyto(indices, position, where=better)

    def max_pool(input, kernel_size, stride, padding, dilation, ceil_mode):
        shape = result_shape("max_pool", input, kernel_size, stride, padding, dilation, ceil_mode)[0]
        sizes, places = input.shape[2:], shape[2:]
        lowest = -xp.inf if input.dtype.kind == "f" else xp.iinfo(input.dtype).min
        extent = [d * (k - 1) + 1 for k, d in zip(kernel_size, dilation)]
        source = extended(input, padding, overhang(sizes, places, extent, stride, padding), lowest)
        starts = [xp.arange(m) * s - p for m, s, p in zip(places, stride, padding)]
        first = [start + xp.maximum(0, -(start // d)) * d for start, d in zip(starts, dilation)]  # inside the input
        values = xp.full(shape, lowest, input.dtype)
        indices = xp.empty(shape, xp.int64)
        indices[...] = flat_position(first, sizes)
        for offset in product(*map(range, kernel_size)):
            at = tuple(slice(k * d, k * d + m * s, s) for k, d, m, s in zip(offset, dilation, places, stride))
            position = flat_position([start + k * d for start, k, d in zip(starts, offset, dilation)], sizes)
            improve(values, indices, source[(..., *at)], position)
        return values, indices

    def adaptive_windows(size, count):
        """Where windows that divide a dimension evenly begin and end."""
        i = xp.arange(count)
        return i * size // max(count, 1), -(-(i + 1) * size // max(count, 1))

    def adaptive_max_pool(input, output_size):
        shape, _ = result_shape("adaptive_max_pool", input, output_size)
        sizes = input.shape[2:]
        ends = [adaptive_windows(size, count) for size, count in zip(sizes, output_size)]
        values = xp.full(shape, -xp.inf, input.dtype)
        indices = xp.empty(shape, xp.int64)
        indices[...] = flat_position([start for start, _ in ends], sizes)
        if 0 in shape:
            return values, indices
        for offset in product(*(range(int((end - start).max())) for start, end in ends)):
            places = [xp.minimum(start + k, end - 1) for (start, end), k in zip(ends, offset)]
            mesh = xp.ix_(*places) if len(places) > 1 else places
            improve(values, indices, input[(slice(None), slice(None), *mesh)], flat_position(places, sizes))
        return values, indices

    def counts(sizes, places, kernel_size, stride, padding, count_include_pad):
        """How many elements each window has."""
        result = xp.ones((1,) * len(sizes), xp.int64)
        for i, (size, m, k, s, p) in enumerate(zip(sizes, places, kernel_size, stride, padding)):
            start = xp.arange(m) * s - p
            end = xp.minimum(start + k, size + p)
            if not count_include_pad:
                start, end = xp.maximum(start, 0), xp.minimum(end, size)
            result = result * (end - start).reshape(-1, *(1,) * (len(sizes) - 1 - i))
        return result

    def along(axis, part):
        return (slice(None),) * axis + (part,)

    def divided(total, divisor, dtype):
        if dtype.kind in "iu":
            return xp.trunc(total / divisor).astype(dtype)
        return (total / divisor).astype(dtype, copy=False)

    def avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        options = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        sizes, places = input.shape[2:], result_shape("avg_pool", input, *options)[2:]
        total = extended(input, padding, overhang(sizes, places, kernel_size, stride, padding), 0)
        for axis, (k, s, m) in enumerate(zip(kernel_size, stride, places), 2):
            parts = [total[along(axis, slice(j, j + m * s, s))] for j in range(k)]
            total = sum(parts[1:], parts[0])
        divisor = divisor_override or counts(sizes, places, kernel_size, stride, padding, count_include_pad)
        return divided(total, divisor, input.dtype)

    def avg_pool_backward(grad, shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        options = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        result_shape("avg_pool_backward", grad, shape, *options)
        sizes, places = shape[2:], grad.shape[2:]
        divisor = divisor_override or counts(sizes, places, kernel_size, stride, padding, count_include_pad)
        share = divided(grad, divisor, grad.dtype)
        after = overhang(sizes, places, kernel_size, stride, padding)
        for axis, (k, s, m, size, p, a) in enumerate(zip(kernel_size, stride, places, sizes, padding, after), 2):
            result = xp.zeros((*share.shape[:axis], p + size + a, *share.shape[axis + 1 :]), grad.dtype)
            for j in range(k):
                result[along(axis, slice(j, j + m * s, s))] += share
            share = result[along(axis, slice(p, p + size))]
        return xp.ascontiguousarray(share)

    def window_sums(input, axis, start, end):
        """Sums over windows of any bounds along an axis."""
        longest = int((end - start).max(initial=0))
        positions = start[:, None] + xp.arange(longest)
        inside = positions < end[:, None]
        parts = xp.take(input, xp.where(inside, positions, 0), axis)
        inside = inside.reshape(*inside.shape, *(1,) * (input.ndim - axis - 1))
        return xp.where(inside, parts, 0).sum(axis + 1)

    def adaptive_avg_pool(input, output_size):
        result_shape("adaptive_avg_pool", input, output_size)
        dtype = input.dtype
        for axis, count in enumerate(output_size, 2):
            size = input.shape[axis]
            if count and size % count == 0:
                input = input.reshape(*input.shape[:axis], count, size // count, *input.shape[axis + 1 :]).mean(
                    axis + 1
                )
            else:
                start, end = adaptive_windows(size, count)
                length = (end - start).reshape(-1, *(1,) * (input.ndim - axis - 1))
                input = (window_sums(input, axis, start, end) / length).astype(dtype, copy=False)
        return input

    def adaptive_avg_pool_backward(grad, shape):
        result_shape("adaptive_avg_pool_backward", grad, shape)
        dtype = grad.dtype
        for axis, size in enumerate(shape[2:], 2):
            count = grad.shape[axis]
            start, end = adaptive_windows(size, count)
            share = (grad / (end - start).reshape(-1, *(1,) * (grad.ndim - axis - 1))).astype(dtype, copy=False)
            if count and size % count == 0:
                grad = xp.repeat(share, size // count, axis)
            else:  # element j lies in the windows that begin at or before it and end after it: these are neighbours too
                j = xp.arange(size)
                first, last = xp.searchsorted(end, j, side="right"), xp.searchsorted(start, j, side="right")
                grad = (
                    window_sums(share, axis, first, last)
                    if count
                    else xp.zeros((*grad.shape[:axis], size, *grad.shape[axis + 1 :]), dtype)
                )
        return grad

    return {
        "adaptive_avg_pool": adaptive_avg_pool,
        "adaptive_avg_pool_backward": adaptive_avg_pool_backward,
        "adaptive_max_pool": adaptive_max_pool,
        "avg_pool": avg_pool,
        "avg_pool_backward": avg_pool_backward,
        "max_pool": max_pool,
    }


def data_movement(xp):
    """Ops that only move elements."""
    return {}
