"""Resampling: each dimension as a sum of a few elements per place, picked by position."""

from corefw_numpy.rules import result_shape


def kernels(xp):
    """Ops that compute."""

    def step_between(size, count, align_corners, scale, dtype):
        """The distance, in elements, of the places that neighbours read at."""
        if align_corners:
            return dtype.type((size - 1) / (count - 1) if count > 1 else 0)
        return dtype.type(1 / scale if scale else size / count)

    def cubic(distance, a):
        """Keys' kernel, "Cubic convolution interpolation for digital image processing", 1981, equation 4."""
        d = xp.abs(distance)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return xp.where(d <= 1, near, xp.where(d < 2, far, 0))

    def linear(distance):
        return xp.maximum(0, 1 - xp.abs(distance))

    def averaging(size, step, centers, filter):
        """(positions, weights), each (elements per place, places), of a filter as wide as the step."""
        width = max(float(step), 1.0)
        support = (2 if filter == "cubic" else 1) * width
        first = xp.maximum((centers - support + 0.5).astype(int), 0)
        last = xp.minimum((centers + support + 0.5).astype(int), size)
        positions = first + xp.arange(int((last - first).max()))[:, None]
        distance = (positions - centers + 0.5) / width
        weights = cubic(distance, -0.5) if filter == "cubic" else linear(distance)
        weights = xp.where(positions < last, weights, 0)
        return xp.minimum(positions, size - 1), weights / weights.sum(0)

    def taps(size, count, filter, align_corners, scale, antialias, dtype):
        """(positions, weights): which elements each place of the result sums, each (elements per place, places)."""
        step = step_between(size, count, align_corners, scale, dtype)
        places = xp.arange(count, dtype=dtype)
        half = dtype.type(0.5)
        if filter in ("nearest", "nearest-exact"):
            read = places * step if filter == "nearest" else (places + half) * step
            return xp.minimum(xp.floor(read).astype(int), size - 1)[None], xp.ones((1, count), dtype)
        centers = places * step if align_corners else (places + half) * step - half
        if antialias:
            positions, weights = averaging(size, step, (places + half) * step, filter)
        elif filter == "linear":
            centers = xp.maximum(centers, 0)
            before = xp.minimum(xp.floor(centers).astype(int), size - 1)
            beyond = xp.minimum(centers - before, 1)
            positions, weights = xp.stack([before, xp.minimum(before + 1, size - 1)]), xp.stack([1 - beyond, beyond])
        else:
            around = xp.floor(centers).astype(int) + xp.arange(-1, 3)[:, None]
            positions, weights = xp.clip(around, 0, size - 1), cubic(centers - around, -0.75)
        return positions, weights.astype(dtype)

    def reversed_taps(positions, weights, size):
        """The taps of the adjoint: which places of the result read each element, and how they weigh it."""
        places = xp.broadcast_to(xp.arange(positions.shape[1]), positions.shape)[weights != 0]
        elements, weights = positions[weights != 0], weights[weights != 0]
        order = xp.argsort(elements, kind="stable")
        elements, places, weights = elements[order], places[order], weights[order]
        rank = xp.arange(elements.size) - xp.searchsorted(elements, elements)  # among the readers of one element
        shape = (int(rank.max()) + 1, size)
        where, how = xp.zeros(shape, int), xp.zeros(shape, weights.dtype)
        where[rank, elements], how[rank, elements] = places, weights
        return where, how

    def weighed(input, axis, positions, weights):
        """The sums of elements along an axis that the taps say."""
        shape = (-1, *(1,) * (input.ndim - axis - 1))
        return sum(
            xp.take(input, position, axis) * weight.reshape(shape) for position, weight in zip(positions, weights)
        )

    def resample(input, sizes, filter, align_corners, scales, antialias):
        result_shape("resample", input, sizes, filter, align_corners, scales, antialias)
        if input.dtype.kind in "iu":
            if not filter.startswith("nearest"):
                raise TypeError("integers are not weighed")
            dtype = xp.dtype("float32")
        else:
            dtype = input.dtype
        for axis, (count, scale) in enumerate(zip(sizes, scales), 2):
            positions, weights = taps(input.shape[axis], count, filter, align_corners, scale, antialias, dtype)
            input = (
                xp.take(input, positions[0], axis) if len(positions) == 1 else weighed(input, axis, positions, weights)
            )
        return input

    def resample_backward(output_grad, sizes, filter, align_corners, scales, antialias):
        result_shape("resample_backward", output_grad, sizes, filter, align_corners, scales, antialias)
        grad = output_grad
        for axis, (size, scale) in enumerate(zip(sizes, scales), 2):
            positions, weights = taps(size, grad.shape[axis], filter, align_corners, scale, antialias, grad.dtype)
            grad = weighed(grad, axis, *reversed_taps(positions, weights, size))
        return grad

    return {"resample": resample, "resample_backward": resample_backward}


def data_movement(xp):
    """Ops that only move elements."""
    return {}
