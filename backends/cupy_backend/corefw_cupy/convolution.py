"""Convolutions, the gradient of their kernels, and windows of images as columns.

Large groups are products of matrices that are gathered on the way (convolution_tensor.cu by tensor cores,
convolution.cu), small ones are summed directly (convolution_direct.cu); kernels of one element are products of matrices
already. Where there is cuDNN, it computes the large ones.
"""

from __future__ import annotations

from math import prod

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw.dispatch.settings import settings
from corefw_cupy import convolution_geometry as geometry
from corefw_cupy import cudnn
from corefw_cupy.convolution_geometry import Geometry, Layout
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import BITS, COMPLEX, FLOATS, HALVES, INTEGERS, THREADS, blocks, offered
from corefw_cupy.pointwise_function import Pointwise
from corefw_cupy.products import AS_IT_IS, TRANSPOSED, Products

NUMBERS = {**FLOATS, **COMPLEX, **INTEGERS}
SMALL = {dtype: name for dtype, name in FLOATS.items() if dtype.itemsize <= 4}
SINGLE = {dtype: name for dtype, name in SMALL.items() if dtype not in HALVES}
OTHERS = {dtype: name for dtype, name in NUMBERS.items() if dtype not in SMALL}
#: by (rows, columns) of a tile its type in convolution.cu: rows, columns, and the bytes of a row's part in a slab
TILES = {(32, 128): "Tile<32, 128, 64>", (64, 64): "Tile<64, 64, 64>", (128, 128): "Tile<128, 128, 32>"}
#: and in convolution_tensor.cu: rows, columns, and how many warps lie one below the other
TENSOR_TILES = {(32, 128): "Tile<32, 128, 1>", (64, 64): "Tile<64, 64, 2>", (128, 128): "Tile<128, 128, 2>"}
COMMON_TILE = (64, 64)  # the only one for numbers of 64 bits and more
DEPTH = 16  # about how many products of a sum are in a slab
MOST_DIRECT_ROWS, MOST_DIRECT_TAPS = 7, 128
MOST_BLOCKS_DOWN = 65535  # of a grid
MOST_PHASES = 16  # launches that a transposed convolution is worth


def _sum_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of sums, as `Sum` in types.cuh."""
    if dtype in HALVES:
        return np.dtype(np.float32)
    return np.dtype(np.int64) if dtype.kind in "iu" and dtype.itemsize < 8 else dtype


def _directly(part: Geometry) -> bool:
    """Whether a group is not worth a product of matrices."""
    return part.rows <= MOST_DIRECT_ROWS and part.taps <= MOST_DIRECT_TAPS


class Convolutions:
    """Convolutions on one kind of device."""

    def __init__(self, cuda: Cuda):
        self.cuda = cuda
        self.product = Products(cuda)
        self.cudnn = cudnn.Cudnn(cuda)
        self.add = Pointwise(cuda, "add_bias", ("T", "T"), 0, "int64", "T", "x + y", {"T": SMALL})

        def functions(name):
            """By whether float32 may be rounded to TensorFloat-32 and by dtype, the function for all tiles."""
            tensor = cuda.function("convolution/convolution_tensor.cu", name, T=SMALL, TILE=TENSOR_TILES)
            single = cuda.function("convolution/convolution.cu", name, T=SINGLE, TILE=TILES)
            other = cuda.function("convolution/convolution.cu", name, T=OTHERS, TILE={COMMON_TILE: TILES[COMMON_TILE]})
            precise = {d: tensor if d in HALVES else single if d in SINGLE else other for d in NUMBERS}
            return {True: {**precise, **dict.fromkeys(SINGLE, tensor)}, False: precise}

        self.convolve, self.weight_gradient = functions("convolve"), functions("weight_gradient")
        self.convolve_directly = cuda.function("convolution/convolution_direct.cu", "convolve_directly", T=NUMBERS)
        self.weight_gradient_directly = cuda.function(
            "convolution/convolution_weight_gradient_direct.cu", "weight_gradient_directly", T=FLOATS
        )
        self.windows_to_columns = cuda.function("pooling/windows.cu", "windows_to_columns", T=BITS)
        self.columns_to_images = cuda.function("data_movement/overlay.cu", "columns_to_images", T=NUMBERS)
        self.join_splits = cuda.function("reduction/splits.cu", "join_splits", T=NUMBERS)

    def forward(self, input, weight, bias, *options):
        """The result of the op `convolution`."""
        shape = None if bias is None else bias.shape
        how = geometry.convolution(geometry.layout(input), geometry.layout(weight), shape, *options)
        if how.pointwise:
            return self._pointwise(input, weight, bias, options, how.shape)
        out = self.cuda.empty(how.shape, input.dtype)
        if not out.size:
            return out
        part, *others = how.parts
        if not _directly(part) and self._by_cudnn(input, weight, bias, options, out):
            return out
        if len(how.parts) > MOST_PHASES:
            return self._spread(input, weight, bias, options, how.shape)
        bias = 0 if bias is None else self.cuda.dense(bias)
        for part in how.parts:
            self._multiply(part, input, weight, bias, out, may_split=not others)
        return out

    def _by_cudnn(self, input, weight, bias, options, out) -> bool:
        """Fill `out` with NVIDIA's library, and say so; False if it cannot."""
        stride, padding, dilation, transposed, output_padding, _ = options
        operation = cudnn.TRANSPOSED if transposed else cudnn.FORWARD
        if any(left >= step for left, step in zip(output_padding, stride)) or not input.size or not weight.size:
            return False
        if not self.cudnn(operation, (input, weight), out, stride, padding, dilation):
            return False
        if bias is not None:
            self.add((out.dtype,), out.dtype, (out, bias[(slice(None), *(None,) * len(stride))]), (), out)
        return True

    def _pointwise(self, input, weight, bias, options, shape):
        """By kernels of one element."""
        *_, transposed, _, _ = options
        matrix = self.cuda.dense(weight).reshape(weight.shape[:2])
        images = self.cuda.dense(input).reshape(*input.shape[:2], prod(shape[2:]))
        if images.shape[2] == 1:  # one product for all samples
            forms = AS_IT_IS, AS_IT_IS if transposed else TRANSPOSED
            return self.product(images[:, :, 0], matrix, forms, bias).reshape(shape)
        forms = TRANSPOSED if transposed else AS_IT_IS, AS_IT_IS
        added = None if bias is None else bias[:, None]
        return self.product(matrix, images, forms, added).reshape(shape)

    def _spread(self, input, weight, bias, options, shape):
        """A transposed convolution of great stride: the products of all kernels, added where they lie."""
        stride, padding, dilation, _, _, groups = options
        samples, channels, places = input.shape[0], input.shape[1] // groups, prod(input.shape[2:])
        kernels = self.cuda.dense(weight).reshape(groups, channels, prod(weight.shape[1:]))
        images = self.cuda.dense(input).reshape(samples, groups, channels, places)
        columns = self.product(kernels, images, (TRANSPOSED, AS_IT_IS))
        return self._overlay(columns, shape, weight.shape[2:], dilation, padding, stride, input.shape[2:], bias)

    def _multiply(self, part: Geometry, input, weight, bias, out, may_split: bool):
        """Fill the results of one part of a convolution."""
        if _directly(part):
            grid = (*blocks(part.places), min(part.groups * part.rows, MOST_BLOCKS_DOWN))
            self.convolve_directly[out.dtype](grid, (THREADS,), (input, weight, bias, out, part.struct))
            return
        function, count = self._tiled(self.convolve, out.dtype, part.rows, part.places, part.groups)
        splits = geometry.splits(count, part.taps, DEPTH, out.nbytes) if may_split else 1
        partial = self._partial(out, splits)
        function((count, splits), (THREADS,), (input, weight, bias, out, partial, out.size, part.struct))
        self._join(partial, bias, out, splits, out.shape[1], prod(out.shape[2:]))

    def gradient(self, input, output_grad, *options):
        """The result of the op `convolution_weight`."""
        shape, how = geometry.weight_gradient(geometry.layout(input), geometry.layout(output_grad), *options)
        out = self.cuda.empty(shape, input.dtype)
        if not out.size:
            return out
        directly = how.rows * how.taps <= MOST_DIRECT_TAPS and out.dtype in FLOATS
        if not directly and how.places and self.cudnn(cudnn.WEIGHT, (input, output_grad), out, *options[1:4]):
            return out
        if directly:
            function, count, depth = self.weight_gradient_directly[out.dtype], out.size, THREADS
        else:
            function, count = self._tiled(self.weight_gradient, out.dtype, how.rows, how.taps, how.groups)
            depth = DEPTH
        splits = geometry.splits(count, how.places, depth, out.nbytes)
        partial = self._partial(out, splits)
        function((count, splits), (THREADS,), (input, output_grad, out, partial, out.size, how.struct))
        self._join(partial, 0, out, splits, 1, 1)
        return out

    def _tiled(self, functions, dtype, rows: int, columns: int, groups: int):
        """The function for a product of these sizes, and how many blocks it takes."""
        tile = geometry.tile(rows, columns, groups) if dtype in SMALL else COMMON_TILE
        function = functions[settings.library["allow_tf32"]][dtype][dtype, tile]
        return function, -(-rows // tile[0]) * -(-columns // tile[1]) * groups

    def _partial(self, out, splits: int):
        """Memory for the parts of split sums; 0 if they are not split."""
        return 0 if splits == 1 else self.cuda.empty((splits, out.size), _sum_dtype(out.dtype))

    def _join(self, partial, bias, out, splits: int, channels: int, size: int):
        """Add up the parts of split sums."""
        if splits > 1:
            arrays = partial, bias, out
            self.join_splits[out.dtype](blocks(out.size), (THREADS,), (*arrays, out.size, splits, channels, size))

    def windows(self, input, *options):
        """The result of the op `im2col`."""
        shape = shape_rule("im2col")(input.shape, *options)
        out = self.cuda.empty(shape, input.dtype)
        if out.size:
            struct = geometry.columns(geometry.layout(input), *options).struct
            self.windows_to_columns[input.dtype.itemsize](blocks(out.size), (THREADS,), (input, out, struct))
        return out

    def overlay(self, input, *options):
        """The result of the op `col2im`."""
        return self._overlay(input, shape_rule("col2im")(input.shape, *options), *options[1:])

    def _overlay(self, columns, shape, kernel_size, dilation, padding, stride, places=None, bias=None):
        """Columns added where they lie in images of this shape, and a number for each channel."""
        out = self.cuda.empty(shape, columns.dtype)
        if out.size:
            struct = geometry.columns(Layout.dense(shape), kernel_size, dilation, padding, stride, places).struct
            bias = 0 if bias is None else self.cuda.dense(bias)
            arrays = self.cuda.dense(columns), bias, out
            self.columns_to_images[out.dtype](blocks(out.size), (THREADS,), (*arrays, struct))
        return out


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    convolutions = Convolutions(cuda)

    def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
        return convolutions.forward(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)

    def convolution_weight(input, output_grad, kernel_size, stride, padding, dilation, groups):
        return convolutions.gradient(input, output_grad, kernel_size, stride, padding, dilation, groups)

    numbers = offered(NUMBERS)
    return [
        Kernel("convolution", convolution, numbers, deterministic="if asked"),
        Kernel("convolution_weight", convolution_weight, numbers, deterministic="if asked"),
        Kernel("im2col", convolutions.windows),
        Kernel("col2im", convolutions.overlay, numbers),
    ]
