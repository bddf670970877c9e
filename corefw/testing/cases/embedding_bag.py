"""Bags of embeddings."""

import numpy as np

from corefw.testing.case import Case

REALS = ("float32", "float64")


def bags_of(indices, offsets, include_last_offset=False):
    """The positions of each bag."""
    if indices.ndim == 2:
        return [range(row * indices.shape[1], (row + 1) * indices.shape[1]) for row in range(len(indices))]
    ends = offsets[1:] if include_last_offset else [*offsets[1:], indices.size]
    return [range(begin, end) for begin, end in zip(offsets[: len(ends)], ends, strict=True)]


def embedding_bag(
    input, weight, offsets=None, mode="mean", per_sample_weights=None, include_last_offset=False, padding_idx=None
):
    result = []
    padding = None if padding_idx is None else padding_idx % len(weight)
    for bag in bags_of(input, offsets, include_last_offset):
        places = [i for i in bag if input.flat[i] != padding]
        rows = [
            weight[input.flat[i]] * (1 if per_sample_weights is None else per_sample_weights.flat[i]) for i in places
        ]
        zero = np.zeros(weight.shape[1], weight.dtype)
        result.append({"sum": np.sum, "mean": np.mean, "max": np.max}[mode](rows, axis=0) if rows else zero)
    return np.array(result, weight.dtype).reshape(-1, weight.shape[1])


def coded_embedding_bag(weight, indices, offsets, mode=0, per_sample_weights=None, include_last_offset=False):
    name = ("sum", "mean", "max")[mode]
    result = embedding_bag(indices, weight, offsets, name, per_sample_weights, include_last_offset)
    bags = bags_of(indices, offsets, include_last_offset)
    found = [np.argmax(weight[indices[bag]], 0) if len(bag) else None for bag in bags] if mode == 2 else []
    rows = [np.zeros(weight.shape[1], int) if at is None else indices[bag][at] for at, bag in zip(found, bags)]
    sizes = np.array([len(bag) for bag in bags])
    numbers = np.repeat(np.arange(len(bags)), sizes)
    return result, numbers, sizes, np.array(rows) if mode == 2 else np.zeros(len(bags), int)


def calls(rng, dtype):
    weight = rng.permutation(np.linspace(-3, 3, 20)).reshape(5, 4).astype(dtype)
    flat, rows = np.array([1, 0, 1, 3, 4, 2, 3]), np.array([[1, 4, 2], [3, 3, 0]], np.int32)
    offsets, ended = np.array([0, 2, 2, 5]), np.array([0, 3, 7])
    found = []
    for mode in ("sum", "mean", "max"):
        found += [
            ([flat, weight, offsets], {"mode": mode}),
            ([flat, weight, offsets], {"mode": mode, "padding_idx": 3}),
            ([flat, weight, ended], {"mode": mode, "include_last_offset": True}),
            ([rows, weight], {"mode": mode}),
            ([rows, weight], {"mode": mode, "padding_idx": -2}),
            ([flat[:0], weight, offsets[:1]], {"mode": mode}),
        ]
    factors = [rng.normal(size=shape).astype(dtype) for shape in (flat.shape, rows.shape)]
    found.append(([flat, weight, offsets], {"mode": "sum", "per_sample_weights": factors[0], "padding_idx": 1}))
    found.append(([rows, weight], {"mode": "sum", "per_sample_weights": factors[1]}))
    return found


def coded_calls(rng, dtype):
    weight = rng.permutation(np.linspace(-3, 3, 20)).reshape(5, 4).astype(dtype)
    flat, offsets = np.array([1, 0, 1, 3, 4, 2, 3]), np.array([0, 2, 2, 5])
    factors = rng.normal(size=flat.shape).astype(dtype)
    return [
        *(([weight, flat, offsets], {"mode": mode}) for mode in (0, 1, 2)),
        ([weight, flat, offsets], {"mode": 0, "per_sample_weights": factors}),
        ([weight, flat, np.array([0, 3, 7])], {"mode": 2, "include_last_offset": True}),
    ]


CASES = (
    Case("embedding_bag", embedding_bag, make=calls, dtypes=REALS, special=False, meta=False),
    # PyTorch's function tells of sizes and bags only what its own gradient needs.
    Case(
        "coded_embedding_bag",
        coded_embedding_bag,
        make=coded_calls,
        dtypes=REALS,
        special=False,
        meta=False,
        torch=None,
    ),
)
