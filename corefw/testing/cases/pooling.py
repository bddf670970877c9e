"""Pooling, window by window."""

from itertools import product

import numpy as np

from corefw.testing.case import Case


def places(sizes):
    return product(*map(range, sizes))


def count(size, k, s, p, d, ceil_mode):
    windows = (size + 2 * p - d * (k - 1) - 1 + (s - 1) * ceil_mode) // s + 1
    return windows - (ceil_mode and (windows - 1) * s >= size + p)


def sliding(sizes, kernel_size, stride, padding, dilation, ceil_mode):
    """(place, positions of the window's elements inside the input) of every window, and the windows' number."""
    steps = list(zip(sizes, kernel_size, stride, padding, dilation))
    windows = [count(*step, ceil_mode) for step in steps]
    found = []
    for place in places(windows):
        seen = [
            [x * s - p + j * d for j in range(k) if 0 <= x * s - p + j * d < size]
            for x, (size, k, s, p, d) in zip(place, steps)
        ]
        found.append((place, list(product(*seen))))
    return found, windows


def dividing(sizes, output_size):
    """As `sliding`, for windows that divide the input evenly."""
    found = []
    for place in places(output_size):
        seen = [range(i * s // n, -(-(i + 1) * s // n)) for i, s, n in zip(place, sizes, output_size)]
        found.append((place, list(product(*seen))))
    return found, output_size


def maxima(input, windows):
    found, counts = windows
    values = np.zeros((*input.shape[:2], *counts), input.dtype)
    indices = np.zeros(values.shape, np.int64)
    for n, c in places(input.shape[:2]):
        for place, positions in found:
            best = positions[0]
            for position in positions:
                element = input[(n, c, *position)]
                if element > input[(n, c, *best)] or element != element:
                    best = position
            values[(n, c, *place)] = input[(n, c, *best)]
            indices[(n, c, *place)] = np.ravel_multi_index(best, input.shape[2:])
    return values, indices


def max_pool(input, kernel_size, stride, padding, dilation, ceil_mode):
    return maxima(input, sliding(input.shape[2:], kernel_size, stride, padding, dilation, ceil_mode))


def adaptive_max_pool(input, output_size):
    return maxima(input, dividing(input.shape[2:], output_size))


def max_pool_backward(grad, indices, shape):
    result = np.zeros(shape, grad.dtype)
    for position, value in np.ndenumerate(grad):
        result[position[:2]].reshape(-1)[indices[position]] += value
    return result


def mean_matrix(sizes, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """The share of every element of the input in every mean, (windows..., *sizes)."""
    ones = (1,) * len(sizes)
    found, windows = sliding(sizes, kernel_size, stride, padding, ones, ceil_mode)
    result = np.zeros((*windows, *sizes))
    for place, positions in found:
        steps = zip(place, sizes, kernel_size, stride, padding)
        padded = np.prod([min(x * s - p + k, size + p) - (x * s - p) for x, size, k, s, p in steps])
        divisor = divisor_override or (padded if count_include_pad else len(positions))
        for position in positions:
            result[(*place, *position)] = 1 / divisor
    return result


def adaptive_matrix(sizes, output_size):
    result = np.zeros((*output_size, *sizes))
    for place, positions in dividing(sizes, output_size)[0]:
        for position in positions:
            result[(*place, *position)] = 1 / len(positions)
    return result


def applied(matrix, input):
    n = input.ndim - 2
    return np.tensordot(input, matrix, (range(2, input.ndim), range(matrix.ndim - n, matrix.ndim)))


def avg_pool(input, **options):
    return applied(mean_matrix(input.shape[2:], **options), input)


def backward(matrix, grad):
    n = grad.ndim - 2
    return np.tensordot(grad, matrix, (range(2, grad.ndim), range(n)))


def avg_pool_backward(grad, shape, **options):
    return backward(mean_matrix(shape[2:], **options), grad)


def adaptive_avg_pool(input, output_size):
    return applied(adaptive_matrix(input.shape[2:], output_size), input)


def adaptive_avg_pool_backward(output_grad, shape):
    return backward(adaptive_matrix(shape[2:], output_grad.shape[2:]), output_grad)


# -- functions --------------------------------------------------------------------------------------------------------
def spread(value, n):
    return (value,) * n if isinstance(value, int) else value


def batched(n, function):
    def reference(input, *arguments, **options):
        if input.ndim == n + 2:
            return function(input, *arguments, **options)
        result = function(input[None], *(a[None] for a in arguments), **options)
        return tuple(part[0] for part in result) if isinstance(result, tuple) else result[0]

    return reference


def max_function(n):
    def pooled(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        options = [spread(v, n) for v in (kernel_size, stride or kernel_size, padding, dilation)]
        both = max_pool(input, *options, ceil_mode)
        return both if return_indices else both[0]

    return batched(n, pooled)


def mean_function(n):
    def pooled(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, **options):
        sizes = dict(
            zip(
                ("kernel_size", "stride", "padding"),
                (spread(v, n) for v in (kernel_size, stride or kernel_size, padding)),
            )
        )
        divisor = options.get("divisor_override")
        return avg_pool(
            input, **sizes, ceil_mode=ceil_mode, count_include_pad=count_include_pad, divisor_override=divisor
        )

    return batched(n, pooled)


def adaptive_function(n, pool):
    def pooled(input, output_size, return_indices=None):
        sizes = [size if wanted is None else wanted for wanted, size in zip(spread(output_size, n), input.shape[2:])]
        result = pool(input, sizes)
        return result if return_indices or not isinstance(result, tuple) else result[0]

    return batched(n, pooled)


def norm_function(n):
    def pooled(input, norm_type, kernel_size, stride=None, ceil_mode=False):
        kernel = spread(kernel_size, n)
        mean = mean_function(n)(input**norm_type, kernel, stride, ceil_mode=ceil_mode)
        return (mean * np.prod(kernel)) ** (1 / norm_type)

    return batched(n, pooled)


def unpool_function(n):
    def unpooled(input, indices, kernel_size, output_size=None):
        default = tuple(size * k for size, k in zip(input.shape[2:], spread(kernel_size, n)))
        return max_pool_backward(input, indices, (*input.shape[:2], *(output_size or default)))

    return batched(n, unpooled)


def unpool_calls(n):
    """Maxima and where they were, each place once."""

    def make(rng, numpy_dtype):
        def call(sizes, **options):
            large = int(np.prod(sizes)) * 2**n
            picked = np.stack([rng.permutation(large)[: int(np.prod(sizes))] for _ in range(6)])
            values = rng.normal(size=(2, 3, *sizes)).astype(numpy_dtype)
            return [values, picked.reshape(2, 3, *sizes)], {"kernel_size": 2, **options}

        return [call((2,) * n), call((3,) * n, output_size=(6,) * n)]

    return make


def index_calls(rng, numpy_dtype):
    grad = rng.normal(size=(2, 3, 2, 2)).astype(numpy_dtype)
    return [([grad, rng.integers(0, 12, grad.shape)], {"shape": (2, 3, 3, 4)})]


SIZES = {1: (7,), 2: (5, 4), 3: (3, 4, 3)}
MAX = {"kernel_size": (2, 3), "stride": (2, 1), "padding": (1, 1), "dilation": (1, 2), "ceil_mode": False}
MEAN = {"kernel_size": (3, 2), "stride": (2, 2), "padding": (1, 0), "ceil_mode": False}
MEANS = tuple(
    {**MEAN, "ceil_mode": ceil_mode, "count_include_pad": included, "divisor_override": divisor}
    for ceil_mode, included, divisor in ((False, True, None), (True, False, None), (True, True, None), (False, True, 5))
)
ONE_MEAN = {**MEANS[0], "stride": (2**31, 2**63 - 1)}
FUNCTION = ({"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True})

CASES = (
    Case(
        "max_pool",
        max_pool,
        shapes=(((2, 3, 5, 6),), ((0, 2, 4, 4),)),
        attributes=(
            MAX,
            {**MAX, "ceil_mode": True, "dilation": (1, 1)},
            {**MAX, "stride": (3, 2), "padding": (0, 0), "ceil_mode": True},
            {**MAX, "stride": (2**31, 2**63 - 1)},
            {**MAX, "kernel_size": (1, 3), "padding": (0, 1), "dilation": (2**62, 1), "stride": (2, 2**62)},
        ),
    ),
    Case(
        "adaptive_max_pool",
        adaptive_max_pool,
        shapes=(((2, 3, 5, 6),), ((0, 2, 4, 4),)),
        attributes=({"output_size": (2, 3)}, {"output_size": (3, 7)}),
    ),
    Case("max_pool_backward", max_pool_backward, make=index_calls, dtypes=("float32", "float64")),
    Case(
        "avg_pool",
        avg_pool,
        shapes=(((2, 3, 5, 6),),),
        attributes=(*MEANS, ONE_MEAN),
        dtypes=("float16", "bfloat16", "float32", "float64"),
        special=False,
    ),
    Case(
        "avg_pool_backward",
        avg_pool_backward,
        shapes=(((2, 3, 3, 3),),),
        attributes=tuple({**attributes, "shape": (2, 3, 5, 6)} for attributes in MEANS),
        special=False,
    ),
    Case(
        "adaptive_avg_pool",
        adaptive_avg_pool,
        shapes=(((2, 3, 5, 6),), ((0, 2, 4, 4),), ((2, 0, 4, 4),)),
        attributes=({"output_size": (2, 3)}, {"output_size": (7, 4)}, {"output_size": (1, 1)}),
        special=False,
    ),
    Case(
        "adaptive_avg_pool_backward",
        adaptive_avg_pool_backward,
        shapes=(((2, 3, 2, 3),), ((2, 3, 7, 4),)),
        attributes=({"shape": (2, 3, 5, 6)},),
        special=False,
    ),
    *(
        case
        for n, sizes in SIZES.items()
        for shapes in [(((2, 3, *sizes),), ((3, *sizes),))]
        for case in (
            Case(
                f"max_pool{n}d",
                max_function(n),
                shapes=shapes,
                attributes=(*FUNCTION, {"kernel_size": 2, "stride": 1, "dilation": 2, "return_indices": True}),
            ),
            Case(
                f"avg_pool{n}d",
                mean_function(n),
                shapes=shapes,
                attributes=(*FUNCTION, {"kernel_size": 3, "padding": 1, "count_include_pad": False}),
                special=False,
            ),
            Case(
                f"adaptive_max_pool{n}d",
                adaptive_function(n, adaptive_max_pool),
                shapes=shapes,
                attributes=({"output_size": 2}, {"output_size": 3, "return_indices": True}),
            ),
            Case(
                f"adaptive_avg_pool{n}d",
                adaptive_function(n, adaptive_avg_pool),
                shapes=shapes,
                attributes=({"output_size": 2}, {"output_size": (None, 3, 5)[:n] if n > 1 else 3}),
                special=False,
            ),
            Case(
                f"lp_pool{n}d",
                norm_function(n),
                shapes=shapes,
                attributes=({"norm_type": 2, "kernel_size": 2}, {"norm_type": 3, "kernel_size": 3, "stride": 2}),
                domain=(0.5, 2),
                special=False,
            ),
            Case(f"max_unpool{n}d", unpool_function(n), make=unpool_calls(n)),
        )
    ),
)
