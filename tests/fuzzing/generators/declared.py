"""Short chains of ops whose arguments are drawn by the kinds that their declarations say."""

from __future__ import annotations

from functools import cache
from random import Random

from corefw.dispatch.names import public_path
from corefw.dispatch.op import REQUIRED, Op, Parameter
from corefw.dispatch.registry import registry
from tests.fuzzing import drawing
from tests.fuzzing.builder import Builder
from tests.fuzzing.programs import Ref

#: what is drawn for a static argument, by its annotation; other annotations keep their default
_STATICS = {
    "bool": lambda rng: rng.random() < 0.5,
    "bool | None": lambda rng: rng.choice((None, True, False)),
    "int": lambda rng: rng.choice((0, 1, 2, -1, 3)),
    "int | None": lambda rng: rng.choice((None, 0, 1, 2, -1)),
    "float": lambda rng: rng.choice((0.5, 1.0, 2.0, -1.5, 0.0, 1, 3)),
    "float | None": lambda rng: rng.choice((None, 0.5, 1.0, 2.0)),
    "Number": lambda rng: rng.choice((0, 1, 2, -1, 0.5, 2.5)),
    "Real": lambda rng: rng.choice((0, 1, 2, -1, 0.5, 2.5)),
    "int | Sequence[int]": lambda rng: rng.choice((1, 2, (1,), (0, 1), (1, 2))),
    "Sequence[int]": lambda rng: rng.choice(((0, 1), (1, 0), (2, 1), (-1, 0))),
    "int | Sequence[int] | None": lambda rng: rng.choice((None, 0, -1, (0, 1))),
}
#: parameters that creation functions have in common
_COMMON = frozenset(
    ("out", "dtype", "layout", "device", "memory_format", "pin_memory", "requires_grad", "size_average")
)
_TENSORS = ("tensor", "optional", "index", "tensors")
#: results that are left open: memory that nobody wrote, and a search in what is not sorted
_OPEN = ("empty", "new_empty", "searchsorted", "bucketize")


def _drawable(op: Op) -> bool:
    known = all(
        p.kind in (*_TENSORS, "dim", "dims", "given_dims", "sizes", "inplace")
        or p.default is not REQUIRED
        or p.annotation in _STATICS
        for p in op.parameters
    )
    return known and any(p.kind in _TENSORS and p.name not in _COMMON for p in op.parameters)


@cache
def ops() -> list[tuple[Op, str]]:
    """All ops that can be called by what their declarations say, with their paths."""
    unique = {id(op): op for op in registry.declared.values()}.values()
    return [(op, public_path(op)) for op in unique if op.public and _drawable(op) and not op.name.startswith(_OPEN)]


def _tensor(b: Builder, shape: tuple[int, ...], dtype: str, first: bool) -> Ref:
    """An earlier result or a new leaf that broadcasts with the shape."""
    rng = b.rng
    earlier = b.tensors()
    if earlier and rng.random() < (0.6 if first else 0.2):
        return rng.choice(earlier[-3:])
    if rng.random() < 0.1:
        dtype = drawing.dtype(rng)
    shape = shape if first or rng.random() < 0.6 else drawing.broadcastable(rng, shape)
    return b.leaf(dtype, shape, grad=rng.random() < 0.5)


def _argument(b: Builder, p: Parameter, ndim: int, shape, dtype: str, first: bool):
    rng: Random = b.rng
    if p.kind == "tensor" or p.kind == "optional":
        return _tensor(b, shape, dtype, first)
    if p.kind == "tensors":
        return tuple(_tensor(b, shape, dtype, first) for _ in range(rng.randint(1, 3)))
    if p.kind == "index":
        if rng.random() < 0.3:
            return b.leaf("bool", shape, "exact")
        most = max(min(shape, default=1), 1) - 1
        return b.leaf(
            "int64", shape if rng.random() < 0.5 else (2,), values=tuple(rng.randint(0, most) for _ in range(7))
        )
    if p.kind == "dim":
        return drawing.dimension(rng, ndim)
    if p.kind in ("dims", "given_dims"):
        return (
            tuple(rng.sample(range(ndim), rng.randint(0, ndim))) if rng.random() < 0.4 else drawing.dimension(rng, ndim)
        )
    if p.kind == "sizes":
        return rng.choice((shape, (2,) * ndim, tuple(reversed(range(ndim))), (-1,), (1, *shape)))
    return _STATICS[p.annotation](rng)


def _call(b: Builder, op: Op, path: str) -> Ref | None:
    rng = b.rng
    shape, dtype = drawing.shape(rng), drawing.dtype(rng)
    arguments, keywords, named = [], {}, False
    for i, p in enumerate(op.parameters):
        known = p.kind in (*_TENSORS, "dim", "dims", "given_dims", "sizes") or p.annotation in _STATICS
        if p.default is not REQUIRED and (not known or p.name in _COMMON or rng.random() < 0.5):
            named = True
            continue
        value = _argument(b, p, len(shape), shape, dtype, i == 0)
        if i == 0 and isinstance(value, Ref):
            shape, dtype = b.shape(value), b.dtype(value)
        if named or p.keyword_only:
            keywords[p.name] = value
        else:
            arguments.append(value)
    if f"{op.name}_" in op.public.get("Tensor", ()) and rng.random() < 0.15 and isinstance(arguments[0], Ref):
        return b.call(f".{op.name}_", *arguments, **keywords, records=rng.random() < 0.8)
    found = b.call(path, *arguments, **keywords)
    if found is not None and isinstance(b.value(found), tuple | list) and len(b.value(found)):
        return b.call("operator.getitem", found, rng.randrange(len(b.value(found))))
    return found


def declared(b: Builder) -> None:
    for _ in range(b.rng.choice((1, 1, 2, 3))):
        _call(b, *b.rng.choice(ops()))
    b.gradients(records_again=b.rng.random() < 0.1)
