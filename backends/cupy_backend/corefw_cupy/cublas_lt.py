"""Products of matrices by cublasLt, which adds a bias, or sums a factor's columns, in the launch that multiplies, and
which is given its stream in the call: so it multiplies while a graph is captured.

CuPy does not bind the library, but cuBLAS stands on it: it is there wherever cuBLAS is, and takes cuBLAS's handles.
"""

from __future__ import annotations

import logging
from ctypes import (
    CDLL,
    POINTER,
    Structure,
    byref,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
    sizeof,
)
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np

from corefw_cupy.compiler import Compiler
from corefw_cupy.planned import Planned

_log = logging.getLogger(__name__)

PLAIN, BIAS, COLUMN_SUMS = 1, 4, 512  # cublasLtEpilogue_t: EPILOGUE_DEFAULT, EPILOGUE_BIAS, EPILOGUE_BGRADB
TRANSA, TRANSB, EPILOGUE, BIAS_POINTER = 3, 4, 7, 8  # cublasLtMatmulDescAttributes_t
BATCH_COUNT, BATCH_OFFSET = 5, 6  # cublasLtMatrixLayoutAttribute_t
WORKSPACE, REDUCTION_SCHEME, *ALIGNMENTS = 1, 3, 5, 6, 7, 8  # cublasLtMatmulPreferenceAttributes_t
SUMS_IN_COMPUTE_TYPE = 2  # cublasLtReductionScheme_t: parts of a sum are joined before they are rounded to a half type
MOST_WORKSPACE = 32 << 20  # bytes, what NVIDIA recommends for sm_90
MOST_ALIGNMENT = 256  # bytes that an algorithm may ask addresses to be multiples of
SINGLE = (1, 0, 0, 0)  # a batch of one product


class Heuristic(Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = [
        ("algorithm", c_uint64 * 8),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    ]


_MADE, _ANY = POINTER(c_void_p), c_void_p
#: the functions that are called, which return a cublasStatus_t, and the types of their arguments
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cublasLtMatmul": (*(_ANY,) * 14, c_size_t, _ANY),
    "cublasLtMatmulAlgoGetHeuristic": (*(_ANY,) * 7, c_int, POINTER(Heuristic), POINTER(c_int)),
    "cublasLtMatmulDescCreate": (_MADE, c_int, c_int),
    "cublasLtMatmulDescDestroy": (_ANY,),
    "cublasLtMatmulDescSetAttribute": (_ANY, c_int, _ANY, c_size_t),
    "cublasLtMatmulPreferenceCreate": (_MADE,),
    "cublasLtMatmulPreferenceDestroy": (_ANY,),
    "cublasLtMatmulPreferenceSetAttribute": (_ANY, c_int, _ANY, c_size_t),
    "cublasLtMatrixLayoutCreate": (_MADE, c_int, c_uint64, c_uint64, c_int64),
    "cublasLtMatrixLayoutDestroy": (_ANY,),
    "cublasLtMatrixLayoutSetAttribute": (_ANY, c_int, _ANY, c_size_t),
}


def load() -> Any:
    """The library that this process's cuBLAS is built on, None where it cannot be found."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        library = CDLL(load_nvidia_dynamic_lib("cublasLt").abs_path)
        for name, types in PROTOTYPES.items():
            getattr(library, name).argtypes = types
    except Exception as error:  # whatever an installation that is not whole raises: sums are launches of their own then
        _log.info("cublasLt is not used: %s: %s", type(error).__name__, error)
        return None
    return library


def _check(status: int, what: str) -> None:
    if status:
        raise RuntimeError(f"{what} returned status {status}")


class Described:
    """Something that cublasLt holds a description of; it is given back with this object.

    Attributes: ``pointer`` to it.
    """

    def __init__(self, library: Any, kind: str, *about: int):
        self.library, self.kind = library, kind
        made = c_void_p()
        _check(getattr(library, f"cublasLt{kind}Create")(byref(made), *about), f"cublasLt{kind}Create")
        self.pointer = made.value
        finalize(self, getattr(library, f"cublasLt{kind}Destroy"), self.pointer)

    def set(self, attribute: int, value: Any) -> None:
        """Set an attribute to a number of ctypes."""
        name = f"cublasLt{self.kind}SetAttribute"
        _check(getattr(self.library, name)(self.pointer, attribute, byref(value), sizeof(value)), f"{name} {attribute}")


class Product:
    """A product of matrices of certain layouts with an epilogue, and the algorithm that computes it.

    Args:
        library: cublasLt.
        handle: of cuBLAS, for the device.
        alignment: bytes that all addresses are multiples of.
        epilogue: PLAIN, BIAS or COLUMN_SUMS.
        types: cudaDataType_t of the matrices, cublasComputeType_t, cudaDataType_t of the factor alpha.
        forms: cublasOperation_t of both factors.
        sizes: rows and columns of the product, and the inner size, by columns as cuBLAS sees matrices.
        steps: from one column to the next, of both factors and the product.
        batch: how many products there are; and from one matrix to the next, for both factors and the product.
    """

    def __init__(self, library, handle, alignment, epilogue, types, forms, sizes, steps, batch):
        kind, compute, scale = types
        rows, columns, inner = sizes
        shapes = [(rows, inner), (inner, columns), (rows, columns)]
        transposed = [shape[::-1] if form else shape for shape, form in zip(shapes, (*forms, 0))]
        self.operation = Described(library, "MatmulDesc", compute, scale)
        for attribute, number in ((TRANSA, forms[0]), (TRANSB, forms[1]), (EPILOGUE, epilogue)):
            self.operation.set(attribute, c_uint32(number))
        self.description = self.operation.pointer
        self.join(0 if epilogue == PLAIN else alignment)  # an address for now, as any that comes
        self.layouts = [Described(library, "MatrixLayout", kind, *s, step) for s, step in zip(transposed, steps)]
        count, *jumps = batch
        if count > 1:
            for layout, jump in zip(self.layouts, jumps):
                layout.set(BATCH_COUNT, c_int32(count))
                layout.set(BATCH_OFFSET, c_int64(jump))
        self.pointers = [layout.pointer for layout in self.layouts]
        preference = Described(library, "MatmulPreference")
        preference.set(WORKSPACE, c_uint64(MOST_WORKSPACE))
        preference.set(REDUCTION_SCHEME, c_uint32(SUMS_IN_COMPUTE_TYPE))
        for attribute in ALIGNMENTS:
            preference.set(attribute, c_uint32(alignment))
        self.found, count = Heuristic(), c_int()
        given = (handle, self.operation.pointer, *self.pointers, self.pointers[2], preference.pointer)
        choose = library.cublasLtMatmulAlgoGetHeuristic
        _check(choose(*given, 1, byref(self.found), byref(count)), "cublasLtMatmulAlgoGetHeuristic")
        if self.found.state or not count.value:
            raise RuntimeError("there is no algorithm")
        self.workspace, self.algorithm = self.found.workspace, byref(self.found)

    def join(self, vector: int) -> None:
        """Let the vector at this address be the bias or take the sums."""
        self.operation.set(BIAS_POINTER, c_uint64(vector))
        self.at = vector


class Multiplication:
    """What multiplies matrices of certain layouts, with an epilogue, at any addresses.

    Args:
        cuda: what allocates.
        library: cublasLt.
        about: the arguments of `Product` from `epilogue` on.
    """

    def __init__(self, compiler: Compiler, library: Any, *about: Any):
        self.library, self.about, self.multiply = library, about, library.cublasLtMatmul
        self.empty, self.device = compiler.empty, compiler.xp.cuda
        self.lock = Lock()  # a product's description holds the address of a vector from before until after a launch
        self.products = Planned(self._product)

    def __call__(self, alpha: int, beta: int, first: int, second: int, out: int, vector: int = 0) -> bool:
        """Fill `out`, and for COLUMN_SUMS `vector`, and say so; False if no algorithm does that.

        Args:
            alpha, beta: addresses of the factors of the product and of what `out` holds.
            first, second, out, vector: addresses of the matrices, and of the bias or the sums.
        """
        device, bits = self.device, first | second | out | vector | MOST_ALIGNMENT
        handle, alignment = device.get_cublas_handle(), bits & -bits
        with self.lock:
            product = self.products[handle, alignment]
            if product is None:
                return False
            if product.at != vector:
                product.join(vector)
            size, (a, b, c) = product.workspace, product.pointers
            workspace = self.empty((size,), np.uint8).data if size else None
            operands = alpha, first, a, second, b, beta, out, c, out, c, product.algorithm
            where = workspace.ptr if workspace else 0, size, device.get_current_stream().ptr
            if status := self.multiply(handle, product.description, *operands, *where):
                _log.warning("cublasLt refuses its own algorithm for %s: status %s", (alignment, *self.about), status)
                self.products[handle, alignment] = None
        return not status

    def _product(self, handle: int, alignment: int) -> Product | None:
        try:
            return Product(self.library, handle, alignment, *self.about)
        except RuntimeError as error:
            _log.info("cublasLt has no algorithm for %s: %s", self.about, error)
            return None
