"""Normalisations of groups of elements (groups.py): in registers where a group fits there, else in several steps."""

from __future__ import annotations

from collections.abc import Callable

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.groups import View, channel_groups, channels, layers, standing, view
from corefw_cupy.launch import FLOATS, STATISTIC, THREADS, blocks, offered
from corefw_cupy.planned import Planned
from corefw_cupy.pointwise_function import Pointwise
from corefw_cupy.rows import (
    ITEMS,
    ITEMS_OF_TWO,
    MOST_THREADS,
    MULTIPROCESSORS,
    WARP,
    distribute,
    expanded,
    power_of_two,
    split,
)


def vectors(cuda, dtype, shape, *arrays):
    """Weights and biases of that shape, dense, beside elements of a dtype: all of this dtype or all of that of its
    statistics; 0 for none."""
    found = {array.dtype for array in arrays if array is not None}
    kind = dtype if found <= {dtype} else STATISTIC[dtype]

    def vector(array):
        if array is None:
            return 0
        if array.shape != shape:
            raise ValueError(f"a weight or bias of shape {shape} expected")
        return cuda.dense(array if array.dtype == kind else cuda.copying.cast(array, kind))

    return [vector(array) for array in arrays]


def kind_of(dtype, *arrays):
    """The dtype of vectors beside elements of a dtype."""
    return next((array.dtype for array in arrays if array.__class__ is not int), dtype)


def column_tiles(columns: int, rows: int) -> tuple[int, int, int, int, int]:
    """(columns of a block, its threads, tiles of columns, parts of the rows, rows of a part)."""
    width = min(WARP, power_of_two(columns))
    threads, tiles = max(WARP, min(THREADS, width * power_of_two(rows))), -(-columns // width)
    lanes = threads // width
    parts = max(1, min(-(-4 * MULTIPROCESSORS // tiles), rows // (8 * lanes)))
    length = -(-rows // parts)
    return width, threads, tiles, -(-rows // length), length


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    affine = _affine(cuda)
    return [*_forward(cuda, affine), *_backward(cuda, affine)]


def _affine(cuda: Cuda) -> Callable:
    """What computes (input - mean) * scale * weight + bias."""
    affine = cuda.function("normalization/affine.cu", "affine", T=FLOATS, WEIGHT=FLOATS)
    affine_columns = cuda.function("normalization/affine.cu", "affine_columns", T=FLOATS, WEIGHT=FLOATS)

    def transform(input, means, scales, weight, bias, seen: View):
        output, dtype, kind = cuda.empty(input.shape, input.dtype), input.dtype, kind_of(input.dtype, weight, bias)
        if output.size:
            launch = (affine_columns if seen.in_columns else affine)[dtype, kind]
            grid = blocks(output.size * dtype.itemsize // 16)
            launch(grid, (THREADS,), (input, means, scales, weight, bias, output, seen.struct))
        return output

    return transform


def _forward(cuda: Cuda, affine: Callable) -> list[Kernel]:
    resident = cuda.function("normalization/normalize.cu", "normalize", T=FLOATS, WEIGHT=FLOATS, ITEMS=ITEMS)
    moments = cuda.function("normalization/moments.cu", "moments", T=FLOATS)
    column_moments = cuda.function("normalization/moments.cu", "column_moments", T=FLOATS)
    join_moments = cuda.function("normalization/moments.cu", "join_moments", T=FLOATS)

    def measure(input, means, variances, scales, seen, eps, centred):
        """Fill in the statistics of groups that do not fit into registers."""
        dtype, groups, statistics = input.dtype, seen.groups, (means, variances, scales)
        if seen.in_columns:
            width, threads, tiles, parts, length = column_tiles(groups, seen.outer)
            launch, grid, block = column_moments[dtype], (tiles * parts,), (threads,)
            sizes: tuple = (seen.outer, groups, width, parts, length)
        else:
            parts, length = split(seen.size, groups)
            launch, grid, block = moments[dtype], (groups * parts,), (MOST_THREADS,)
            sizes = (seen.struct, parts, length)
        of_parts = cuda.empty((groups, parts, 3), STATISTIC[dtype]) if parts > 1 else 0
        launch(grid, block, (input, of_parts, *statistics, *sizes, eps, centred))
        if parts > 1:
            join_moments[dtype](blocks(groups), (THREADS,), (of_parts, *statistics, groups, parts, eps))

    def in_registers(seen: View, dtype, kind):
        """What launches the normalisation of groups that fit into registers, with its blocks, threads and geometry."""
        held = None if seen.in_columns or not seen.groups else distribute(seen.size, seen.groups)
        return held and (resident[dtype, kind, held.items], held.grid, held.block, (seen.struct, held.lanes))

    planned = Planned(in_registers)

    def normalize(input, seen: View, weight, bias, eps, means, variances, scales, centred=True):
        """The output; the statistics that are arrays are filled in."""
        input, dtype = input if input._c_contiguous else cuda.copying.dense(input), input.dtype
        if found := planned[seen, dtype, kind_of(dtype, weight, bias)]:
            launch, grid, block, geometry = found
            output = cuda.empty(input.shape, dtype)
            launch(grid, block, (input, weight, bias, output, means, variances, scales, *geometry, eps, centred))
            return output
        if not seen.groups:
            return cuda.empty(input.shape, dtype)
        if scales.__class__ is int:
            scales = cuda.empty((seen.groups,), STATISTIC[dtype])
        measure(input, means, variances, scales, seen, eps, centred)
        return affine(input, means, scales, weight, bias, seen)

    def layer_normalization(input, normalized_shape, weight, bias, eps):
        seen, shape = layers(input.shape, normalized_shape)
        weight, bias = vectors(cuda, input.dtype, normalized_shape, weight, bias)
        kind = STATISTIC[input.dtype]
        mean, scale = cuda.empty(shape, kind), cuda.empty(shape, kind)
        return normalize(input, seen, weight, bias, eps, mean, 0, scale), mean, scale

    def rms_normalization(input, normalized_shape, weight, eps):
        seen, shape = layers(input.shape, normalized_shape)
        scale = cuda.empty(shape, STATISTIC[input.dtype])
        (weight,) = vectors(cuda, input.dtype, normalized_shape, weight)
        return normalize(input, seen, weight, 0, eps, 0, 0, scale, False), scale

    def group_normalization(input, num_groups, weight, bias, eps):
        seen, shape, kind = channel_groups(input.shape, num_groups), input.shape[1:2], STATISTIC[input.dtype]
        weight, bias = vectors(cuda, input.dtype, shape, weight, bias)
        statistics = input.shape[0], num_groups
        mean, scale = cuda.empty(statistics, kind), cuda.empty(statistics, kind)
        return normalize(input, seen, weight, bias, eps, mean, 0, scale), mean, scale

    def batch_normalization(input, weight, bias, eps):
        shape, kind = input.shape[1:2], STATISTIC[input.dtype]
        weight, bias = vectors(cuda, input.dtype, shape, weight, bias)
        mean, variance = cuda.empty(shape, kind), cuda.empty(shape, kind)
        return normalize(input, channels(input.shape), weight, bias, eps, mean, variance, 0), mean, variance

    def channel_affine(input, scale, shift):
        shape = input.shape[1:2]
        scale, shift = vectors(cuda, input.dtype, shape, scale, shift)
        return affine(cuda.dense(input), 0, 0, scale, shift, channels(input.shape))

    return [
        Kernel("batch_normalization", batch_normalization, offered(FLOATS)),
        Kernel("channel_affine", channel_affine, offered(FLOATS)),
        Kernel("group_normalization", group_normalization, offered(FLOATS)),
        Kernel("layer_normalization", layer_normalization, offered(FLOATS)),
        Kernel("rms_normalization", rms_normalization, offered(FLOATS)),
    ]


def _backward(cuda: Cuda, affine: Callable) -> list[Kernel]:
    macros = {"T": FLOATS, "WEIGHT": FLOATS, "ITEMS": ITEMS_OF_TWO}
    resident = cuda.function("normalization/normalize_backward.cu", "normalize_backward", **macros)
    resident_weights = cuda.function("normalization/normalize_weights.cu", "normalize_weights", **macros)
    group_sums = cuda.function("normalization/normalize_sums.cu", "group_sums", T=FLOATS, WEIGHT=FLOATS)
    column_sums = cuda.function("normalization/normalize_sums.cu", "column_sums", T=FLOATS)
    join_sums = cuda.function("normalization/normalize_sums.cu", "join_sums", T=FLOATS, WEIGHT=FLOATS)
    apply = cuda.function("normalization/normalize_apply.cu", "normalize_apply", T=FLOATS, WEIGHT=FLOATS)
    apply_columns = cuda.function(
        "normalization/normalize_apply.cu", "normalize_apply_columns", T=FLOATS, WEIGHT=FLOATS
    )
    product = Pointwise(cuda, "weighted_gradient", ("T", "T"), 0, "double", "T", "x * y", {"T": FLOATS})

    def cast(array, kind):
        return array if array.dtype == kind else cuda.copying.cast(array, kind)

    def statistic(array, shape, dtype):
        """A mean or scale of that shape, in the precision of statistics, or 0 for none."""
        if array is None:
            return 0
        return expanded(cuda, cast(array, STATISTIC[dtype]), shape)

    def joined(of_parts, dtype, groups, parts, n, weight=0, of_weight=0, of_bias=0, averages=0):
        """Add up sums: see join_sums in normalize_sums.cu."""
        width = min(WARP, power_of_two(groups))
        threads = max(WARP, min(MOST_THREADS, width * power_of_two(parts)))
        arrays = (of_parts, weight, of_weight, of_bias, averages)
        join_sums[dtype, kind_of(dtype, weight)]((-(-groups // width),), (threads,), (*arrays, groups, parts, n, width))

    def sums_of_groups(gradient, input, weight, means, scales, seen, of_sample=0, per=1):
        """(sums of parts, how many parts there are)."""
        dtype, (parts, length) = input.dtype, split(seen.size, seen.groups)
        of_parts = cuda.empty((parts, 2, seen.groups), STATISTIC[dtype])
        arguments = (gradient, input, weight, means, scales, of_parts, seen.struct, parts, length, of_sample, per)
        group_sums[dtype, kind_of(dtype, weight)]((seen.groups * parts,), (MOST_THREADS,), arguments)
        return of_parts, parts

    def sums_of_columns(gradient, input, means, scales, rows, columns, of_rows):
        """(sums of parts, how many parts there are)."""
        dtype, (width, threads, tiles, parts, length) = input.dtype, column_tiles(columns, rows)
        of_parts = cuda.empty((parts, 2, columns), STATISTIC[dtype])
        arguments = (gradient, input, means, scales, of_parts, rows, columns, width, parts, length, of_rows)
        column_sums[dtype]((tiles * parts,), (threads,), arguments)
        return of_parts, parts

    def of_elements(gradient, input, weight, means, scales, seen, result, of_weight, of_bias):
        """All gradients of rows with a weight per element, in one pass if rows fit into registers; else False."""
        dtype, rows, n = input.dtype, seen.groups, seen.inner
        held = distribute(n, rows, 8 if dtype.itemsize == 8 else 16)
        if not held:
            return False
        threads = held.block[0]
        grid = min(held.grid[0], max(1, MULTIPROCESSORS * MOST_THREADS // threads))
        sets = grid * (threads // held.lanes)
        of_parts = cuda.empty((sets, 2, n), STATISTIC[dtype])
        arguments = (gradient, input, weight, means, scales, result, of_parts, seen.struct, held.lanes)
        resident_weights[dtype, weight.dtype, held.items]((grid,), (threads,), arguments)
        joined(of_parts, dtype, n, sets, 1, 0, of_weight, of_bias)
        return True

    def of_input(gradient, input, weight, means, scales, seen, result, of_weight=0, of_bias=0):
        """The gradient of the input; those of weight and bias too if these are arrays, with a number per group."""
        dtype, n = input.dtype, seen.size
        held = None if seen.in_columns else distribute(n, seen.groups, 16)
        arrays = (gradient, input, weight, means, scales)
        if held:
            launch = resident[dtype, kind_of(dtype, weight), held.items]
            launch(held.grid, held.block, (*arrays, result, of_weight, of_bias, seen.struct, held.lanes))
            return
        averages, factor = cuda.empty((2, seen.groups), STATISTIC[dtype]), weight if seen.weight_per_group else 0
        if seen.in_columns:
            of_parts, parts = sums_of_columns(gradient, input, means, scales, seen.outer, seen.groups, False)
        else:
            inside = 0 if seen.weight_per_group else weight
            of_parts, parts = sums_of_groups(gradient, input, inside, means, scales, seen)
        joined(of_parts, dtype, seen.groups, parts, n, factor, of_weight, of_bias, averages)
        launch = (apply_columns if seen.in_columns else apply)[dtype, kind_of(dtype, weight)]
        launch(blocks(result.size * dtype.itemsize // 16), (THREADS,), (*arrays, averages, result, seen.struct))

    def of_weights(gradient, input, means, scales, seen, of_weight, of_bias):
        """The gradients of weight and bias of any kind that a view tells apart."""
        dtype = input.dtype
        if seen.weight_per_element:
            sums = sums_of_columns(gradient, input, means, scales, seen.groups, seen.inner, True)
        else:
            period, per = seen.period, seen.channels
            along = view(seen.groups // period, period * per, seen.run)
            sums = sums_of_groups(gradient, input, 0, means, scales, along, period, per)
        joined(sums[0], dtype, of_weight.size, sums[1], 1, 0, of_weight, of_bias)

    def sum_to(gradient, values, shape, of_weight, of_bias):
        """The sums of `gradient` times `values`, and of `gradient`, over the dimensions in which `shape` has size 1."""
        beside = (1,) * (values.ndim - len(shape)) + shape
        kept = [d for d in range(values.ndim) if beside[d] != 1]
        order = (*kept, *(d for d in range(values.ndim) if beside[d] == 1))
        gradient, values = cuda.dense(gradient.transpose(order)), cuda.dense(values.transpose(order))
        seen = view(1, of_weight.size, values.size // of_weight.size)
        of_parts, parts = sums_of_groups(gradient, values, 0, 0, 0, seen)
        joined(of_parts, values.dtype, of_weight.size, parts, 1, 0, of_weight, of_bias)

    def standardized(input, scale, dims, mean):
        seen = standing(input.shape, dims)
        scale, mean = statistic(scale, seen.statistics, input.dtype), statistic(mean, seen.statistics, input.dtype)
        if seen.order is None:
            return affine(cuda.dense(input), mean, scale, 0, 0, seen.view)
        rows = affine(cuda.dense(input.transpose(seen.order)), mean, scale, 0, 0, seen.view)
        return rows.transpose(seen.inverse)

    def backward(gradient, input, weight, scale, dims, mean, wanted):
        """The gradients of input and, if wanted, weight and bias."""
        if gradient.shape != input.shape:
            raise ValueError("a gradient of the input's shape expected")
        shape, dtype = input.shape, input.dtype
        seen = standing(shape, dims, None if weight is None else weight.shape)
        of_weight = of_bias = None
        if wanted:
            of_weight, of_bias = (cuda.empty(weight.shape, STATISTIC[dtype]) for _ in range(2))
            if not input.size:
                cuda.copying.fill(of_weight, 0)
                cuda.copying.fill(of_bias, 0)
        if not input.size:
            return cuda.empty(shape, dtype), of_weight, of_bias
        if weight is not None and not seen.weighted:
            kind = dtype if weight.dtype == dtype else STATISTIC[dtype]
            gradient, input, weight = (cast(array, kind) for array in (gradient, input, weight))
            if wanted:
                sum_to(gradient, standardized(input, scale, dims, mean), weight.shape, of_weight, of_bias)
            weighted = product((kind,), kind, (gradient, weight))
            return cast(backward(weighted, input, None, scale, dims, mean, False)[0], dtype), of_weight, of_bias
        means, scales = statistic(mean, seen.statistics, dtype), statistic(scale, seen.statistics, dtype)
        if seen.order:
            gradient, input = gradient.transpose(seen.order), input.transpose(seen.order)
        gradient, input = cuda.dense(gradient), cuda.dense(input)
        weight = 0 if weight is None else vectors(cuda, dtype, weight.shape, weight)[0]
        result, arrays = cuda.empty(input.shape, dtype), (gradient, input, weight, means, scales, seen.view)
        if not wanted:
            of_input(*arrays, result)
        elif seen.view.weight_per_group:
            of_input(*arrays, result, of_weight, of_bias)
        elif not (seen.view.weight_per_element and of_elements(*arrays, result, of_weight, of_bias)):
            of_input(*arrays, result)
            of_weights(gradient, input, means, scales, seen.view, of_weight, of_bias)
        return result.transpose(seen.inverse) if seen.order else result, of_weight, of_bias

    def standardized_backward(gradient, input, scale, dims, mean, weight):
        return backward(gradient, input, weight, scale, dims, mean, False)[0]

    def standardized_gradients(gradient, input, weight, scale, dims, mean):
        return backward(gradient, input, weight, scale, dims, mean, True)

    return [
        Kernel("standardized", standardized, offered(FLOATS)),
        Kernel("standardized_backward", standardized_backward, offered(FLOATS)),
        Kernel("standardized_gradients", standardized_gradients, offered(FLOATS)),
    ]
