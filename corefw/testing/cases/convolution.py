"""Convolutions, as loops over every product, and windows as columns."""

from itertools import product

import numpy as np

from corefw.testing.case import Case

DTYPES = ("int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def places(sizes):
    return product(*map(range, sizes))


def at(place, offset, stride, dilation, padding):
    """The position in the input that an element of the kernel sees from a place."""
    return tuple(x * s + k * d - p for x, k, s, d, p in zip(place, offset, stride, dilation, padding))


def inside(position, sizes):
    return all(0 <= x < size for x, size in zip(position, sizes))


def windows(sizes, kernel, stride, padding, dilation):
    steps = zip(sizes, kernel, stride, padding, dilation)
    return tuple((size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in steps)


def pairs(kernel, results, sizes, stride, padding, dilation):
    """(offset in the kernel, place in the result, position in the input) of all that meet."""
    for offset in places(kernel):
        for place in places(results):
            position = at(place, offset, stride, dilation, padding)
            if inside(position, sizes):
                yield offset, place, position


def convolution(input, weight, bias=None, stride=(1,), padding=(0,), dilation=(1,), transposed=False, **options):
    output_padding, groups = options.get("output_padding", (0,) * len(stride)), options.get("groups", 1)
    if transposed:
        channels, sizes = weight.shape[1] * groups, input.shape[2:]
        steps = zip(sizes, weight.shape[2:], stride, padding, dilation, output_padding)
        results = tuple((size - 1) * s - 2 * p + d * (k - 1) + 1 + o for size, k, s, p, d, o in steps)
    else:
        channels, sizes = weight.shape[0], windows(input.shape[2:], weight.shape[2:], stride, padding, dilation)
        results = sizes
    result = np.zeros((input.shape[0], channels, *results), np.result_type(input, weight))
    many, few = input.shape[1] // groups, channels // groups
    for n, g, i, o in places((input.shape[0], groups, many, few)):
        c, d = g * many + i, g * few + o
        bounds = (results, sizes) if transposed else (input.shape[2:], results)
        for offset, place, position in pairs(weight.shape[2:], bounds[1], bounds[0], stride, padding, dilation):
            if transposed:
                result[(n, d, *position)] += input[(n, c, *place)] * weight[(c, o, *offset)]
            else:
                result[(n, d, *place)] += input[(n, c, *position)] * weight[(d, i, *offset)]
    return result if bias is None else result + bias.reshape(-1, *(1,) * len(stride))


def convolution_weight(input, output_grad, kernel_size, stride, padding, dilation, groups):
    many, few = input.shape[1] // groups, output_grad.shape[1] // groups
    result = np.zeros((output_grad.shape[1], many, *kernel_size), np.result_type(input, output_grad))
    for n, g, i, o in places((input.shape[0], groups, many, few)):
        images = input[n, g * many + i], output_grad[n, g * few + o]
        for offset, place, position in pairs(kernel_size, images[1].shape, images[0].shape, stride, padding, dilation):
            result[(g * few + o, i, *offset)] += images[0][position] * images[1][place]
    return result


def in_dimensions(n, transposed=False):
    """The function of n dimensions: options as one number, inputs without a batch."""

    def spread(value):
        return (value,) * n if isinstance(value, int) else value

    def reference(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, output_padding=0):
        batch = input if input.ndim == n + 2 else input[None]
        if padding == "same":
            totals = [spread(dilation)[i] * (weight.shape[2 + i] - 1) for i in range(n)]
            batch = np.pad(batch, [(0, 0), (0, 0), *((t // 2, t - t // 2) for t in totals)])
        padding = 0 if isinstance(padding, str) else padding
        options = dict(zip(("stride", "padding", "dilation"), map(spread, (stride, padding, dilation))))
        options |= {"transposed": transposed, "output_padding": spread(output_padding), "groups": groups}
        result = convolution(batch, weight, bias, **options)
        return result if input.ndim == n + 2 else result[0]

    return reference


def im2col(input, kernel_size, dilation, padding, stride):
    results = windows(input.shape[2:], kernel_size, stride, padding, dilation)
    columns = np.zeros((*input.shape[:2], *kernel_size, *results), input.dtype)
    for offset, place, position in pairs(kernel_size, results, input.shape[2:], stride, padding, dilation):
        columns[(..., *offset, *place)] = input[(..., *position)]
    return columns.reshape(input.shape[0], input.shape[1] * int(np.prod(kernel_size)), int(np.prod(results)))


def col2im(input, output_size, kernel_size, dilation, padding, stride):
    results = windows(output_size, kernel_size, stride, padding, dilation)
    columns = input.reshape(input.shape[0], input.shape[1] // int(np.prod(kernel_size)), *kernel_size, *results)
    image = np.zeros((*columns.shape[:2], *output_size), input.dtype)
    for offset, place, position in pairs(kernel_size, results, output_size, stride, padding, dilation):
        image[(..., *position)] += columns[(..., *offset, *place)]
    return image


def pair(value):
    return (value, value) if isinstance(value, int) else value


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    batch = input if input.ndim == 4 else input[None]
    columns = im2col(batch, pair(kernel_size), pair(dilation), pair(padding), pair(stride))
    return columns if input.ndim == 4 else columns[0]


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    batch = input if input.ndim == 3 else input[None]
    image = col2im(batch, pair(output_size), pair(kernel_size), pair(dilation), pair(padding), pair(stride))
    return image if input.ndim == 3 else image[0]


WINDOW = {"kernel_size": (2, 3), "dilation": (2, 1), "padding": (1, 0), "stride": (1, 2)}
LINE = {"stride": (2,), "padding": (1,), "dilation": (1,), "transposed": False, "output_padding": (0,)}

CASES = (
    Case(
        "convolution",
        convolution,
        shapes=(((2, 4, 5), (4, 2, 3), (4,)), ((1, 2, 4), (2, 1, 2)), ((2, 4, 5), (4, 2, 1))),
        attributes=(
            {**LINE, "groups": 2},
            {**LINE, "stride": (1,), "dilation": (2,), "groups": 2},
            {**LINE, "transposed": True, "groups": 2, "output_padding": (1,)},
            {**LINE, "transposed": True, "stride": (5,), "groups": 2, "output_padding": (4,)},  # some are in no window
            {**LINE, "transposed": True, "stride": (1,), "dilation": (2,), "groups": 2, "output_padding": (1,)},
            {**LINE, "stride": (2**31,), "groups": 2},
            {**LINE, "stride": (2**62,), "groups": 2},
        ),
        dtypes=DTYPES,
        special=False,  # takes no default for the bias; the functions below are compared
        valid=lambda input, weight, bias=None, **options: (
            not (options["transposed"] and (input[1] != weight[0] or weight[1] == 1))
        ),
    ),
    Case(
        "convolution_weight",
        convolution_weight,
        shapes=(((2, 2, 5, 4), (2, 4, 3, 2)), ((1, 2, 6, 5), (1, 2, 3, 3))),
        attributes=(
            {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 1},
            {"kernel_size": (2, 3), "stride": (2, 1), "padding": (1, 0), "dilation": (2, 1), "groups": 2},
        ),
        dtypes=DTYPES,
        special=False,
    ),
    *(
        Case(
            f"conv{n}d",
            in_dimensions(n),
            shapes=(((2, 2, *sizes), (3, 2, *kernel), (3,)), ((2, *sizes), (3, 2, *kernel))),
            attributes=(
                {},
                {"stride": 2, "padding": 1},
                {"dilation": 2, "padding": "same"},
                {"padding": "valid"},
                {"stride": 2**31, "padding": 1},
            ),
            special=False,
        )
        for n, sizes, kernel in ((1, (6,), (2,)), (2, (4, 3), (3, 2)), (3, (3, 2, 3), (2, 2, 1)))
    ),
    *(
        Case(
            f"conv_transpose{n}d",
            in_dimensions(n, transposed=True),
            shapes=(
                ((2, 2, *sizes), (2, 3, *kernel), (3,)),
                ((2, *sizes), (2, 3, *kernel)),
                ((2, *sizes), (2, 5, *(1,) * n)),
            ),
            attributes=(
                {},
                {"stride": 2, "padding": 1, "output_padding": 1},
                {"dilation": 2, "output_padding": 1},
                {"stride": 5, "output_padding": 4},  # some places are in no window
            ),
            special=False,
        )
        for n, sizes, kernel in ((1, (4,), (3,)), (2, (3, 2), (2, 3)), (3, (2, 2, 2), (2, 2, 2)))
    ),
    Case(
        "im2col",
        im2col,
        shapes=(((2, 3, 4, 5),), ((0, 3, 4, 5),)),
        attributes=(
            WINDOW,
            {**WINDOW, "stride": (2**62, 2)},
            {**WINDOW, "kernel_size": (1, 3), "dilation": (2**62, 1)},
        ),
    ),
    Case(
        "col2im",
        col2im,
        shapes=(((2, 12, 8),), ((0, 6, 8),)),
        attributes=({**WINDOW, "output_size": (4, 5)}, {**WINDOW, "output_size": (3, 17), "stride": (2**62, 2)}),
        dtypes=DTYPES,
        special=False,
    ),
    Case(
        "functional_unfold",
        unfold,
        shapes=(((2, 3, 4, 5),), ((3, 4, 4),)),
        attributes=({"kernel_size": 2}, {"kernel_size": (1, 3), "dilation": 2, "padding": 1, "stride": (2, 1)}),
    ),
    Case(
        "fold",
        fold,
        shapes=(((2, 8, 12),), ((4, 12),)),
        attributes=({"output_size": (4, 5), "kernel_size": 2}, {"output_size": (6, 8), "kernel_size": 2, "stride": 2}),
        special=False,
    ),
)
