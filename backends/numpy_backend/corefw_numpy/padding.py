"""Padding with a constant; the other paddings are gathers."""

from corefw_numpy.rules import result_shape


def kernels(xp):
    """Ops that compute."""
    return {}


def data_movement(xp):
    """Ops that only move elements."""

    def constant_pad_nd(input, pad, value):
        result = xp.full(result_shape("constant_pad_nd", input, pad, value), value, input.dtype)
        source, target = [slice(None)] * input.ndim, [slice(None)] * input.ndim
        for i in range(len(pad) // 2):
            dim, before, after = input.ndim - 1 - i, pad[2 * i], pad[2 * i + 1]
            source[dim] = slice(max(-before, 0), input.shape[dim] - max(-after, 0))
            target[dim] = slice(max(before, 0), result.shape[dim] - max(after, 0))
        result[tuple(target)] = input[tuple(source)]
        return result

    return {"constant_pad_nd": constant_pad_nd}
