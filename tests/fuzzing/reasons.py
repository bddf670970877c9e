"""Reasons for small differences: what roundings of the inputs, and of sums, do to a result in double precision."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from corefw.dispatch.expressions import EXPRESSIONS
from tests.fuzzing.closeness import EPS, ULPS, errors_of, identical, near
from tests.fuzzing.documented import short
from tests.fuzzing.programs import (
    Leaf,
    Name,
    Program,
    Step,
    geometry,
    mapped,
    memory_of,
    numpy_dtype,
    references,
    renumbered,
    words,
)
from tests.fuzzing.runs import Picture, run_in_scope

#: the dtypes that a step is computed in again, to know what its result should be
_WIDE = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}
#: those that functions of numbers convert to float32
_INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
#: how many times the effect of a rounding of the inputs a result may be off
_SPREAD = 32
#: functions with steps, where a rounding of the input is no excuse
_STEPPED = frozenset(
    words("""
        floor ceil trunc round sign sgn floor_divide heaviside nextafter argmax argmin sort topk amax amin max min
        median frac remainder fmod copysign getitem setitem index_put copy fill hardshrink softshrink threshold relu
    """)
)
#: what functions multiply their operands by before they sum: logarithms that end at -100
_LARGEST_FACTOR = {"binary_cross_entropy": 100.0}
#: functions whose elements each depend on few others: no result may be off by a rounding of the largest
POINTWISE = frozenset(e.name for e in EXPRESSIONS) | frozenset(words("truediv neg abs pow maximum minimum where"))


def single(program: Program, number: int, framework) -> Program | None:
    """The step as a program of its own, whose leaves are what the step's inputs were on one framework."""
    entry = program.entries[number]
    before = run_in_scope(program.upto(number - 1), framework)
    leaves: list[Leaf | Step] = []
    moved: dict[int, int] = {}
    for n in dict.fromkeys(references(entry)):
        picture = before.finals[n]
        if type(picture) is not Picture:
            return None  # a sequence of tensors: the step stays where it is
        moved[n] = len(leaves)
        original = program.entries[n]
        if isinstance(original, Leaf) and identical(picture, before.pictures[n]):
            leaves.append(replace(original, requires_grad=False))
        else:
            leaves.append(leaf_of(picture))
    return Program((*leaves, renumbered(entry, moved)))


def leaf_of(picture: Picture) -> Leaf:
    """A leaf with the elements of a picture."""
    array = picture.array
    if array.dtype.kind not in "biu":
        array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return Leaf(picture.dtype, array.shape, tuple(array.ravel().tolist()))


def _widened(program: Program, integers: bool = False) -> Program:
    """The program in double precision, its leaves as they were rounded; with `integers` those of integers, too."""
    wider = _WIDE | dict.fromkeys(_INTEGERS, "float64") if integers else _WIDE

    def change(part):
        return Name(_WIDE.get(part.text, part.text)) if isinstance(part, Name) else part

    entries: list[Leaf | Step] = []
    for entry in program.entries:
        if isinstance(entry, Step):
            keywords = {k: mapped(v, change) for k, v in entry.keywords.items()}
            if (
                entry.function == ".to"
                and _converts(program, entry)
                and mapped(entry.arguments, change) != entry.arguments
            ):
                keywords["copy"] = True  # a conversion that would give the tensor itself
            entries.append(replace(entry, arguments=mapped(entry.arguments, change), keywords=keywords))
        else:
            entries.append(replace(entry, dtype=wider.get(entry.dtype, entry.dtype), values=_rounded(entry)))
    return Program(tuple(entries))


def _converts(program: Program, entry: Step) -> bool:
    """Whether a .to may convert: it does not where its operand is of its dtype as it was made."""
    if len(_dtypes_of(program)) == 1:
        return False
    made = program.entries[entry.arguments[0].number]
    given = made.dtype if isinstance(made, Leaf) else made.arguments[1] if made.function == ".to" else None
    return str(getattr(given, "text", given)) != getattr(entry.arguments[1], "text", None)


def _rounded(leaf: Leaf) -> tuple:
    if leaf.dtype not in _WIDE or not leaf.values:
        return leaf.values
    with np.errstate(all="ignore"):
        array = np.array(leaf.values).astype(numpy_dtype(leaf.dtype))
    return tuple(array.astype(numpy_dtype(_WIDE[leaf.dtype])).tolist())


def _shaken(program: Program, wide: Program, seed: int, dtype: str) -> Program:
    """The program in double precision with every element of its leaves, and of the weights of its gradients, moved by a
    rounding of its own dtype, or of the result's."""
    rng = np.random.default_rng(seed)
    eps = max((EPS[d] for d in _dtypes_of(program) if d in EPS), default=0.0)

    def moved(values, size: int, by: float) -> tuple:
        with np.errstate(all="ignore"):
            elements = np.resize(np.array(values), size)
            return tuple((elements * (1 + rng.choice((-1, 1), size) * by)).tolist())

    entries: list[Leaf | Step] = []
    for narrow, entry in zip(program.entries, wide.entries):
        if isinstance(entry, Leaf):
            if isinstance(narrow, Leaf) and entry.dtype in EPS and entry.values:
                size = geometry(entry.shape, entry.layout)[2]
                entry = replace(
                    entry, values=moved(entry.values, size, EPS[narrow.dtype if narrow.dtype in EPS else dtype])
                )
        elif entry.function == "gradients" and isinstance(entry.arguments[2], tuple):
            outputs, inputs, weights = entry.arguments
            entry = replace(entry, arguments=(outputs, inputs, moved(weights, 31, eps)))
        entries.append(entry)
    return Program(tuple(entries))


def explained(
    program: Program, number: int, sides: tuple, a: Picture, b: Picture, where: str, odd: np.ndarray | bool = False
) -> bool:
    """Whether both results (of PyTorch's pair: ours) are what double precision says, as far as roundings allow.

    `where` names the part of the step's result, `odd` the elements that do not count, as those that agree.
    """
    entry = program.entries[number]
    if a.dtype not in EPS or not isinstance(entry, Step):
        return False
    odd = odd | (errors_of(a.array, b.array, a.dtype) <= ULPS)
    readings = [(_widened(program), a.dtype)]
    if any(isinstance(leaf, Leaf) and leaf.dtype in _INTEGERS for leaf in program.entries):
        readings.append((_widened(program, integers=True), max(a.dtype, "float32", key=EPS.__getitem__)))
    return any(_judged(program, wide, rounded, number, sides, (a, b), where, odd) for wide, rounded in readings)


def _judged(
    program: Program, wide: Program, rounded: str, number: int, sides: tuple, pictures: tuple, where: str, odd
) -> bool:
    """Whether the pictures are what the program in double precision says, but for roundings to a dtype."""
    a, b = pictures
    entry = program.entries[number]
    function, name = entry.function, short(entry.function)

    def result(of: Program, judge):
        picture = part_of(run_in_scope(of, judge).pictures[number], where, function)
        same = type(picture) is Picture and picture.array.shape == a.array.shape and picture.dtype in EPS
        return picture.array if same else None

    for judge in reversed(sides) if sides[1].name == "torch" else sides:  # PyTorch says what PyTorch means
        truth = result(wide, judge)
        if truth is not None:
            break
    else:  # the program means something else in double precision, where a conversion gives the tensor itself
        return near(a.array, b.array, max((a.dtype, *_dtypes_of(program) & EPS.keys()), key=EPS.__getitem__))
    with np.errstate(all="ignore"):
        allowed = np.zeros(a.array.shape)
        for seed in range(4) if name not in _STEPPED else ():
            moved = result(_shaken(program, wide, seed, rounded), judge)
            if moved is not None:
                change = np.where(odd, 0, np.abs(moved - truth))
                allowed = np.maximum(allowed, np.where(np.isfinite(change), change, np.inf))
        allowed = allowed + _rounding(program, wide, entry, rounded, _size(truth))
        ours = (a,) if sides[1].name == "torch" else (a, b)
        found = (np.where(odd, side.array.dtype.type(0), side.array) for side in ours)
        truth = np.where(odd, 0, truth)
        return all(_allowed(array, truth, allowed, a.dtype) for array in found)


def _rounding(program: Program, wide: Program, entry: Step, dtype: str, size: float) -> float:
    """What sums may be off by, because they round as their largest terms do; 0 for functions of single elements."""
    name = short(entry.function)
    if name in _STEPPED | POINTWISE:
        return 0.0
    inputs = (memory_of(leaf, 100) for leaf in wide.entries if isinstance(leaf, Leaf))
    largest = max((_size(x) for x in inputs if x.dtype.kind in "biufc"), default=0.0)
    if entry.function != "gradients":
        terms = max((prod(leaf.shape) for leaf in wide.entries if isinstance(leaf, Leaf)), default=1)
        if name.endswith("_norm"):
            largest *= max(_steepness(entry) / _SPREAD, 1.0)  # a mean is rounded before it is subtracted
        return EPS[dtype] / 4 * max(terms / 16, 1) ** 0.5 * max(size, largest * _LARGEST_FACTOR.get(name, 1.0))
    eps = max(EPS[d] for d in (dtype, *_dtypes_of(program)) if d in EPS)  # the narrowest on the way
    steepest = max((_steepness(step) for step in program.entries if isinstance(step, Step)), default=1.0)
    if any("attention" in step.function for step in program.entries if isinstance(step, Step)):
        steepest *= max(largest, 1.0)  # a product of two operands
    return 8 * eps * max(size, steepest * _size(np.array(entry.arguments[2])) * max(largest, 1.0))


def _steepness(step: Step) -> float:
    """The largest number that a normalisation multiplies by, of a variance of 0, or of a small norm."""
    if short(step.function) == "normalize":
        return 1e3
    if not short(step.function).endswith("_norm"):
        return 1.0
    numbers = (v for v in (*step.arguments, *step.keywords.values()) if isinstance(v, float) and 0 < v < 1)
    return max((v**-0.5 for v in numbers), default=1e-5**-0.5)


def _dtypes_of(program: Program) -> set[str]:
    """The dtypes that a program names."""
    found = {entry.dtype for entry in program.entries if isinstance(entry, Leaf)}
    note = lambda part: found.add(part.text) if isinstance(part, Name) else None
    for entry in program.entries:
        if isinstance(entry, Step):
            mapped((entry.arguments, tuple(entry.keywords.values())), note)
    return found


def _size(array: np.ndarray) -> float:
    """The size of the largest finite element."""
    return float(np.abs(array[np.isfinite(array)]).max(initial=0))


def _allowed(found: np.ndarray, truth: np.ndarray, allowed: np.ndarray, dtype: str) -> bool:
    """Whether every element is near its true value."""
    errors = errors_of(found, truth.astype(found.dtype), dtype)
    wide = np.complex128 if np.iscomplexobj(truth) else np.float64
    slack = np.abs(found.astype(wide) - truth) <= _SPREAD * allowed
    return bool(((errors <= ULPS) | slack).all())


def part_of(picture, where: str, function: str):
    """The part of a result that `where` names, as "sort[1]"."""
    for index in where.removeprefix(function).replace("]", "").split("[")[1:]:
        picture = picture[int(index)] if isinstance(picture, tuple) else picture
    return picture
