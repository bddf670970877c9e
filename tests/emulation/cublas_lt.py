"""cublasLt in NumPy: the functions that `corefw_cupy.cublas_lt` calls, over C's calling convention as the library's.

What a caller gets wrong is an AssertionError.
"""

import ctypes
from dataclasses import dataclass, field
from itertools import count
from threading import local
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from corefw_cupy.cublas_lt import BIAS, COLUMN_SUMS, PLAIN, PROTOTYPES
from tests.emulation import cublas, driver

SUCCESS, INVALID_VALUE, NOT_SUPPORTED = 0, 7, 15  # cublasStatus_t
WORKSPACE = 64  # bytes that the algorithm for sums asks for
REAL = {0: (68, 77), 2: (68,), 14: (68,)}  # cublasComputeType_t by cudaDataType_t, where there are epilogues
COMPUTED = {**REAL, 1: (70,), 4: (68, 77), 5: (70,)}  # and where there are none
SCALES = {0: 0, 2: 0, 14: 0, 1: 1, 4: 4, 5: 5}  # cudaDataType_t of alpha, by that of matrices
#: bytes of the attributes, by kind of object
ATTRIBUTES = {
    "MatmulDesc": {3: 4, 4: 4, 7: 4, 8: 8},
    "MatmulPreference": {1: 8, 3: 4, 5: 4, 6: 4, 7: 4, 8: 4},
    "MatrixLayout": {5: 4, 6: 8},
}


@dataclass
class Described:
    """An object: its kind, and what it was made with; attributes as integers."""

    kind: str
    about: tuple
    attributes: dict[int, int] = field(default_factory=dict)


class Multiplication(NamedTuple):
    """What is multiplied: all that descriptions say, seen to fit together."""

    types: tuple[int, int, int]  # cudaDataType_t of the matrices, cublasComputeType_t, cudaDataType_t of alpha
    forms: tuple[int, int]
    sizes: tuple[int, int, int]
    steps: tuple[int, int, int]
    jumps: tuple[int, ...]
    batch: int
    epilogue: int
    vector: int

    def key(self) -> int:
        """A number for all but the vector's address."""
        return hash(str(self[:-1])) & 0xFFFF


objects: dict[int, Described] = {}  # that were made and not destroyed
_addresses = count(0x100, 0x100)  # of objects, each once; several threads may ask for them


def _found(address: int, kind: str) -> Described:
    described = objects.get(address)
    assert described is not None and described.kind == kind, f"{address} is no {kind}"
    return described


def _creator(kind: str):
    def create(made, *about):
        made[0] = address = next(_addresses)
        objects[address] = Described(kind, about)

    return create


def _destroyer(kind: str):
    def destroy(address):
        _found(address, kind)
        del objects[address]

    return destroy


def _setter(kind: str):
    def put(address, attribute, value, size):
        assert ATTRIBUTES[kind][attribute] == size, f"attribute {attribute} of {kind} has not {size} bytes"
        _found(address, kind).attributes[attribute] = int.from_bytes(ctypes.string_at(value, size), "little")

    return put


def _multiplication(operation, *layouts) -> Multiplication:
    described = _found(operation, "MatmulDesc")
    described_layouts = [_found(at, "MatrixLayout") for at in layouts]
    (kind, *left, _), (_, *right, _), third, fourth = found = [layout.about for layout in described_layouts]
    batches = {layout.attributes.get(5, 1) for layout in described_layouts}
    assert len(batches) == 1, "batches of different sizes"
    jumps = tuple(layout.attributes.get(6, 0) for layout in described_layouts[:3])
    transa, transb = forms = tuple(described.attributes.get(attribute, 0) for attribute in (3, 4))
    (rows, inner), (other, columns) = left[::-1] if transa else left, right[::-1] if transb else right
    assert third == fourth, "layouts of C and D differ"
    assert third[:3] == (kind, rows, columns) and other == inner and found[1][0] == kind, "matrices do not fit together"
    for _, stored, _, step in found:
        assert step >= max(1, stored), f"a leading dimension of {step} for {stored} rows"
    epilogue, vector = described.attributes.get(7, 1), described.attributes.get(8, 0)
    assert epilogue in (PLAIN, BIAS, COLUMN_SUMS) and bool(vector) == (epilogue != PLAIN), "an epilogue and its vector"
    steps = found[0][3], found[1][3], third[3]
    types, sizes = (kind, *described.about), (rows, columns, inner)
    return Multiplication(types, forms, sizes, steps, jumps, batches.pop(), epilogue, vector)


def _heuristic(handle, operation, a, b, c, d, preference, requested, results, count):
    what = _multiplication(operation, a, b, c, d)
    wanted = _found(preference, "MatmulPreference").attributes
    (alignment,) = {wanted.get(attribute, 256) for attribute in (5, 6, 7, 8)}
    assert requested == 1, "one algorithm expected"
    count[0] = 0
    kind, compute, scale = what.types
    possible = COMPUTED if what.epilogue == PLAIN else REAL
    if compute not in possible.get(kind, ()) or scale != SCALES[kind] or (what.batch > 1 and what.epilogue != PLAIN):
        return NOT_SUPPORTED
    assert what.vector % alignment == 0, f"{what.vector:#x} is no multiple of {alignment}"
    count[0], results[0].state = 1, SUCCESS
    results[0].workspace = WORKSPACE if what.epilogue == COLUMN_SUMS and wanted.get(1, 0) >= WORKSPACE else 0
    results[0].algorithm[:] = [operation, alignment, results[0].workspace, what.key(), 0, 0, 0, 0]
    return SUCCESS


def _matmul(handle, operation, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, *rest):
    algorithm, workspace, size, _ = rest
    what = _multiplication(operation, a_layout, b_layout, c_layout, d_layout)
    (kind, *_), (rows, columns, inner), vector = what.types, what.sizes, what.vector
    of, alignment, needed, key, *_ = (ctypes.c_uint64 * 8).from_address(algorithm)
    assert (of, key) == (operation, what.key()), "an algorithm for another product"
    assert not [x for x in (a, b, c, d, vector) if x % alignment], f"addresses that are no multiples of {alignment}"
    assert size >= needed and (workspace or not needed), f"a workspace of {size} bytes where {needed} are needed"
    assert rest[3] == driver.get_current_stream().ptr, "another stream than the current one"
    computed = cublas.computed_in(what.types[1], kind)
    alpha, beta = cublas.scalar(alpha, computed), cublas.scalar(beta, computed)
    places = [(at, kind, step, jump) for at, step, jump in zip((a, b, d), what.steps, what.jumps)]
    assert c == d and not (beta and what.epilogue != PLAIN), "C is expected to be D, and not to be read"

    @np.errstate(all="ignore")
    def work():
        if needed:
            ctypes.memset(workspace, 0xFF, needed)
        if what.epilogue == PLAIN:
            cublas.multiply(what.forms, (rows, columns, inner), alpha, *places[:2], beta, places[2], what.batch)
            return
        first = cublas.factor(places[0], what.forms[0], rows, inner, 1, computed)
        second = cublas.factor(places[1], what.forms[1], inner, columns, 1, computed)
        result = np.matmul(first, second) * alpha
        if what.epilogue == BIAS:
            result += cublas.matrices(vector, kind, rows, 1, rows, 0, 1).astype(computed)
        else:
            cublas.matrices(vector, kind, columns, 1, columns, 0, 1)[0, :, 0] = second[0].sum(0)
        cublas.matrices(d, kind, rows, columns, what.steps[2], 0, 1)[...] = result

    cublas.submit(work)


_FUNCTIONS: dict[str, Any] = {
    "cublasLtMatmul": _matmul,
    "cublasLtMatmulAlgoGetHeuristic": _heuristic,
    **{f"cublasLt{kind}Create": _creator(kind) for kind in ("MatmulDesc", "MatrixLayout", "MatmulPreference")},
    **{f"cublasLt{kind}Destroy": _destroyer(kind) for kind in ("MatmulDesc", "MatrixLayout", "MatmulPreference")},
    **{f"cublasLt{kind}SetAttribute": _setter(kind) for kind in ATTRIBUTES},
}


def _exported(name: str):
    """The function behind a C function pointer, which passes arguments on as the library would get them."""
    function, of_thread = _FUNCTIONS[name], local()

    def called(*arguments):
        try:
            return function(*(0 if value is None else value for value in arguments)) or SUCCESS
        except Exception as error:  # which cannot pass through C
            of_thread.error = error
            return INVALID_VALUE

    pointer = ctypes.CFUNCTYPE(ctypes.c_int, *PROTOTYPES[name])(called)

    def call(*arguments):
        status = pointer(*arguments)
        if error := of_thread.__dict__.pop("error", None):
            raise AssertionError(f"{name}: {error}") from error
        return status

    return call


library = SimpleNamespace(**{name: _exported(name) for name in PROTOTYPES})
