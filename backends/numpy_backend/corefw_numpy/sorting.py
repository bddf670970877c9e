"""Order, distinct values and membership."""

from __future__ import annotations

from corefw_numpy.along import lines
from corefw_numpy.booleans import as_bool


def kernels(xp):
    """Ops that compute."""

    def order(input, dim, descending):
        """Positions in sorted order; equal elements stay in the order in which they came."""
        input = as_bool(xp, input)
        if not descending:
            return xp.argsort(input, dim, kind="stable")
        backwards = xp.argsort(xp.flip(input, dim), dim, kind="stable")
        return xp.flip(input.shape[dim] - 1 - backwards, dim)

    @lines
    def sort(input, dim, descending):
        indices = order(input, dim, descending)
        return xp.take_along_axis(input, indices, dim), indices

    @lines
    def topk(input, k, dim, largest, sorted):
        input = as_bool(xp, input)
        size = input.shape[dim]
        if not 0 <= k <= size:
            raise ValueError(k)
        chosen = (slice(None),) * dim + (slice(size - k, None) if largest else slice(k),)
        if 0 < k < size:
            indices = xp.argpartition(input, size - k if largest else k - 1, dim)[chosen]
            indices = xp.sort(indices, dim)
        else:
            indices = xp.argsort(input, dim)[chosen]
        values = xp.take_along_axis(input, indices, dim)
        ranked = order(values, dim, largest)
        return xp.take_along_axis(values, ranked, dim), xp.take_along_axis(indices, ranked, dim)

    def unique_values(input, dim, consecutive):
        input = as_bool(xp, input)
        if not consecutive:
            values, inverse, counts = xp.unique(
                input, return_inverse=True, return_counts=True, axis=dim, equal_nan=False
            )
            return values, inverse.reshape(input.shape if dim is None else -1), counts
        slices = input.reshape(-1) if dim is None else xp.moveaxis(input, dim, 0)
        begins = xp.ones(slices.shape[0], bool)
        begins[1:] = (slices[1:] != slices[:-1]).any(tuple(range(1, slices.ndim)))
        starts = xp.flatnonzero(begins)
        inverse = xp.cumsum(begins) - 1
        values = slices[starts]
        counts = xp.diff(starts, append=slices.shape[0])
        if dim is None:
            return values, inverse.reshape(input.shape), counts
        return xp.moveaxis(values, 0, dim), inverse, counts

    def search(sequence, input, right):
        if sequence.ndim == 1:
            return xp.searchsorted(sequence, input, "right" if right else "left")
        if sequence.shape[:-1] != input.shape[:-1]:
            raise ValueError("leading shapes differ")
        # bisection of all rows at once
        low = xp.zeros(input.shape, xp.int64)
        high = xp.full(input.shape, sequence.shape[-1])
        while (open := low < high).any():
            middle = (low + high) // 2
            found = xp.take_along_axis(sequence, xp.minimum(middle, sequence.shape[-1] - 1), -1)
            after = (input >= found) if right else ~(input <= found)
            low, high = xp.where(open & after, middle + 1, low), xp.where(open & ~after, middle, high)
        return low

    def isin(elements, test_elements, assume_unique, invert):
        return xp.isin(elements, test_elements, assume_unique, invert)

    return {
        "sort": sort,
        "topk": topk,
        "unique_values": unique_values,
        "search": search,
        "isin": isin,
    }


def data_movement(xp):
    """Ops that only move or compare elements."""
    return {}
