"""Where results differ from PyTorch's on purpose, or where nobody promises anything: the fuzzer does not report it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from corefw.tensor import Tensor
from tests.fuzzing.programs import Leaf, Program, Ref, Step, references, words
from tests.fuzzing.runs import Picture, Run

#: results that are left open: (function, number of the result), of ties, and of what is not sorted
OPEN_RESULTS = frozenset((name, 1) for name in words("sort topk mode median nanmedian kthvalue cummax cummin"))
#: decompositions whose factors are not unique, and solutions that follow from them
FACTORS = frozenset(words("eigh svd qr lstsq linalg_eigh linalg_svd linalg_qr eig linalg_eig"))
#: functions that draw random numbers; those of PyTorch are others
RANDOM = frozenset(
    words("""
        dropout alpha_dropout feature_dropout feature_alpha_dropout native_dropout dropout1d dropout2d dropout3d
        bernoulli multinomial normal uniform random exponential cauchy log_normal geometric rand_like randn_like
        randint_like gumbel_softmax rrelu poisson binomial fractional_max_pool2d fractional_max_pool3d rand randn
        randint randperm
    """)
)
COMPARISONS = frozenset(words("eq ne lt le gt ge logical_and logical_or logical_xor logical_not"))
#: functions whose gradient goes to one of several equal elements: nobody says to which
TIES = frozenset(words("quantile nanquantile median nanmedian kthvalue mode topk cummax cummin cdist pdist sort msort"))
#: gradients that PyTorch computes with a constant of float32, for NaN as for a number, with another guard against
#: division by zero, of parts that are not read, or of what was overwritten by a comparison
THEIR_GRADIENTS = COMPARISONS | frozenset(
    words("hardsigmoid hardswish hardtanh binary_cross_entropy mish polar cholesky cholesky_solve cholesky_inverse")
)
#: results that cannot be differentiated, which PyTorch says when it is asked to, or whose gradient is 0; and what only
#: corefw differentiates
CONSTANT = frozenset(
    words("""
        unique unique_consecutive lstsq heaviside nextafter histogram histogramdd grid_sample modified_bessel_i0
        modified_bessel_i1 spherical_bessel_j0
    """)
)
#: functions whose results are constant for a number of 0, or given back as they came where nothing is recorded
IDENTITIES = frozenset(words("matrix_power linalg_matrix_power addr diff conj_physical"))
#: functions whose results are constant where there is no element
CONSTANT_OF_NOTHING = frozenset(words("linalg_cond trapezoid trapz cumulative_trapezoid vander"))
#: functions whose series SciPy ends earlier
SCIPYS = frozenset(words("igamma igammac gammainc gammaincc bessel_j1 special_bessel_j1"))
#: products whose factors NumPy hands to BLAS as numbers if they have one element
PRODUCTS = frozenset(words("mm matmul addmm linear matmul_adjoint adjoint_matmul inner gru_cell lstm_cell"))
#: functions whose results are conjugates, or may be (decision 18)
CONJUGATES = frozenset(words("conj adjoint conj_physical resolve_conj"))
#: functions that change an argument without counting it
UNCOUNTED = frozenset(
    words("unsafe_chunk unsafe_split batch_norm instance_norm kron dropout dropout1d dropout2d dropout3d")
)


def short(function: str) -> str:
    """A function's name without its namespace and the mark of its form."""
    return function.rpartition(".")[2].removeprefix("op:").removesuffix("_")


def open_result(entry: Leaf | Step, number) -> bool:
    """Whether several values of this result are right, or PyTorch gives another one: it takes no second argument of
    unique_consecutive by position."""
    if isinstance(entry, Step) and short(entry.function) == "unique_consecutive" and len(entry.arguments) > 1:
        return number == 1
    return isinstance(entry, Step) and isinstance(number, int) and (short(entry.function), number) in OPEN_RESULTS


def open_values(entry: Step, run: Run, sides: tuple[str, str]) -> bool:
    """Whether nobody says what the values are."""
    name = short(entry.function)
    if name in RANDOM or name in FACTORS or entry.keywords.get("dropout_p"):
        return sides[1] == "torch"
    if "conv" in name or "attention" in name:  # whether a zero that pads or masks meets an infinity is left open
        return not all(np.isfinite(t.detach().array).all() for t in _tensors(entry.arguments, run))
    if entry.keywords.get("assume_unique"):
        return True
    if name in ("unique", "unique_values"):  # which of several NaN comes first
        return any(
            t.dtype.is_floating_point and np.isnan(t.detach().array).any() for t in _tensors(entry.arguments, run)
        )
    if sides[1] == "torch" and _unordered(name, entry, run):
        return True
    if numpys(entry, run, sides):
        return True
    if "out" in entry.keywords and _begins_in(entry, run):
        return True
    written = _written(entry)
    return written is not None and _overlaps(entry, written, run, aligned="out" not in entry.keywords)


def _unordered(name: str, entry: Step, run: Run) -> bool:
    """Whether the order of the result's elements, or of what is written, is left open."""
    if name == "argsort":
        return not entry.keywords.get("stable")
    if name == "topk":
        return False in (*entry.arguments[4:], entry.keywords.get("sorted"))
    if name == "put":
        return any(len(np.unique(t.detach().array)) < t.numel() for t in _tensors(entry.arguments[1:2], run))
    if name != "as_strided_scatter":
        return False
    sizes, strides = (
        (*entry.arguments[2:4], *(entry.keywords.get(k) for k in ("size", "stride")))[i::2] for i in (0, 1)
    )
    return _on_top(next(filter(None, strides), ()), next(filter(None, sizes), ()))


def numpys(entry: Step, run: Run, sides: tuple[str, str]) -> bool:
    """Whether NumPy rounds otherwise, or leaves out a product with 0: of a matrix of one element."""
    name = short(entry.function)
    if sides[1] == "torch":
        return False
    if name in SCIPYS:
        return True
    arrays = [t.detach().array for t in _tensors((entry.arguments, tuple(entry.keywords.values())), run)]
    if name in ("kl_div", "polar"):  # functions of integers, in float32, are part of a float64
        return any(array.dtype.kind in "biu" for array in arrays)
    if name in PRODUCTS:
        return any(array.size == 1 for array in arrays) and not all(np.isfinite(array).all() for array in arrays)
    return False


def half_written(entry: Step, run: Run) -> set[int]:
    """The memory that a step which raised was to change: what it leaves there, nobody says."""
    return _memories(_written(entry), run)


def _written(entry: Step):
    """What a step changes: an argument, None if nothing."""
    if short(entry.function) == "embedding" and "max_norm" in entry.keywords:
        return entry.arguments[1]
    return entry.keywords.get("out") or (entry.arguments[0] if _writes(entry) else None)


def written_several_times(entry: Step, run: Run) -> set[int]:
    """The memory of running statistics that lie on top of each other."""
    if short(entry.function) not in ("batch_norm", "instance_norm"):
        return set()
    operands = (entry.arguments, tuple(entry.keywords.values()))
    return (
        _memories(operands, run) if any(_on_top(t.array.strides, t.shape) for t in _tensors(operands, run)) else set()
    )


def changed(entry: Step) -> Iterator[int]:
    """The numbers of what a step changes."""
    return references(Step("", (_written(entry),)))


def _memories(value, run: Run) -> set[int]:
    """Where the memory of tensors began when they were made; they may have been given other since."""
    pictures = (run.pictures[number] for number in references(Step("", (value,))))
    return {picture.memory for picture in pictures if type(picture) is Picture and picture.memory}


def meets(entry: Step, memories: set[int], run: Run) -> bool:
    """Whether a step is given a tensor in such memory."""
    return not memories.isdisjoint(_memories((entry.arguments, tuple(entry.keywords.values())), run))


def _writes(entry: Step) -> bool:
    """Whether a step changes its first argument."""
    name = entry.function
    in_place = name.endswith("_") and not name.endswith("__")
    return (
        in_place or name == "operator.setitem" or entry.keywords.get("inplace", False) or name.startswith("operator.i")
    )


def _tensors(value, run: Run) -> Iterator[Tensor]:
    if isinstance(value, Ref):
        found = run.values[value.number]
        yield from [found] if isinstance(found, Tensor) else []
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item, run)


def _begins_in(entry: Step, run: Run) -> bool:
    """Whether the memory of out= was an operand's when the tensor was made."""
    others = {k: v for k, v in entry.keywords.items() if k != "out"}
    return meets(replace(entry, keywords=others), _memories(entry.keywords["out"], run), run)


def _overlaps(entry: Step, written, run: Run, aligned: bool) -> bool:
    """Whether what is written has elements on top of each other, or lies over an operand: `aligned` allows the very
    elements of one."""
    for target in _tensors(written, run):
        a = target.array
        if _on_top(a.strides, a.shape):
            return True
        for other in _tensors((entry.arguments, tuple(v for k, v in entry.keywords.items() if k != "out")), run):
            b = other.array
            if other is target and aligned:
                continue
            same = aligned and a.ctypes.data == b.ctypes.data and a.shape == b.shape and a.strides == b.strides
            if not same and np.may_share_memory(a, b):
                return True
    return False


def _on_top(strides: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether elements with these strides lie on top of each other."""
    reach = 0
    for stride, n in sorted((abs(s), n) for s, n in zip(strides, shape) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (n - 1)
    return False


def history(steps: Iterable[Leaf | Step], run: Run, sides: tuple[str, str]) -> bool:
    """Whether `requires_grad` may differ after these steps: a gradient that is constant has a history in PyTorch where
    its formula names the input, and so have a tensor that a comparison was written to, and a view that out= resized.
    What a view has whose base was detached, or became a leaf, changes there with any change of its elements."""
    return sides[1] == "torch" and any(_constant(step, run) for step in steps if isinstance(step, Step))


def _constant(step: Step, run: Run) -> bool:
    name = short(step.function)
    if name in CONSTANT_OF_NOTHING or "linalg_" + name in CONSTANT_OF_NOTHING:
        return any(not t.numel() for t in _tensors((step.arguments, tuple(step.keywords.values())), run))
    resized = "out" in step.keywords and not step.records  # or nothing differs
    rebased = step.function in (".detach_", ".requires_grad_")
    untouched = name in IDENTITIES and 0 in (*step.arguments, *step.keywords.values(), int(step.records))
    constant = name in CONSTANT or untouched
    return step.function == "gradients" or constant or overwritten(step) or resized or rebased


def overwritten(step: Step) -> bool:
    """Whether a comparison is written to its operand."""
    return _writes(step) and short(step.function) in COMPARISONS


def conjugate(program: Program, sides: tuple[str, str]) -> bool:
    """Whether a step gives a conjugate: PyTorch's shares memory with what was conjugated."""
    names = {short(step.function) for step in program.entries if isinstance(step, Step)}
    return sides[1] == "torch" and not names.isdisjoint(CONJUGATES)


def tied(functions: Iterable[str]) -> bool:
    """Whether the gradient through these functions may go to another element."""
    return not TIES.isdisjoint(map(short, functions))


def uncounted(program: Program, sides: tuple[str, str]) -> bool:
    """Whether a step of the program changes tensors without counting it."""
    steps = (entry for entry in program.entries if isinstance(entry, Step))
    return sides[1] == "torch" and any(short(step.function) in UNCOUNTED for step in steps)


def rough(functions: Iterable[str], steps: Iterable[Leaf | Step], sides: tuple[str, str]) -> bool:
    """Whether PyTorch's gradient through these functions, after these steps, is no reference."""
    changed = any(overwritten(step) for step in steps if isinstance(step, Step))
    return sides[1] == "torch" and (changed or not THEIR_GRADIENTS.isdisjoint(map(short, functions)))


def amplified(steps: Iterable[Leaf | Step]) -> bool:
    """Whether the steps take differences of random numbers, which double precision cannot judge: it draws others."""
    return any(
        short(step.function) in ("gumbel_softmax", "normal") or "dropout_p" in step.keywords
        for step in steps
        if isinstance(step, Step)
    )


def relaid(program: Program, sides: tuple[str, str]) -> bool:
    """Whether a step copies or not as the layout is that of a result, which is computed in another order."""
    names = {short(step.function) for step in program.entries if isinstance(step, Step)}
    return sides[1] == "torch" and not names.isdisjoint(("contiguous", "flatten", "ravel", "reshape"))
