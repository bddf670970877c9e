"""Reading and writing with every kind of index."""

from __future__ import annotations

from random import Random

from tests.fuzzing import drawing
from tests.fuzzing.builder import Builder
from tests.fuzzing.programs import Ref


def _slice(rng: Random, n: int) -> slice:
    end = lambda: rng.choice((None, None, rng.randint(-n - 1, n + 1)))
    return slice(end(), end(), rng.choice((None, None, 1, 2, 3)))


def basic_key(rng: Random, shape: tuple[int, ...]):
    """Integers, slices, new dimensions and an ellipsis; at times out of range."""
    items: list = []
    ellipsis = rng.random() < 0.3
    for n in shape[: rng.randint(0, len(shape))]:
        at = rng.random()
        if at < 0.35 and n:
            items.append(rng.randint(-n, n - 1) if rng.random() < 0.98 else n)
        else:
            items.append(_slice(rng, n))
    if rng.random() < 0.15:
        items.insert(rng.randint(0, len(items)), None)
    if ellipsis:
        items.insert(rng.randint(0, len(items)), ...)
    if rng.random() < 0.03:
        items.insert(rng.randint(0, len(items)), rng.choice((True, False)))
    if len(items) == 1 and rng.random() < 0.7:
        return items[0]
    return tuple(items) if items or rng.random() < 0.5 else ...


def _positions(b: Builder, n: int, shape: tuple[int, ...]) -> Ref:
    """An index tensor for a dimension of size n."""
    rng = b.rng
    dtype = rng.choice(("int64", "int64", "int64", "int32", "uint8", "int16", "int8"))
    least = 0 if dtype == "uint8" or rng.random() < 0.6 else -n
    values = tuple(rng.randint(least, max(n - 1, least)) for _ in range(11))
    if rng.random() < 0.02:
        values = (*values[:1], n, *values[2:])
    if dtype == "uint8" and shape:
        dtype = "int64" if rng.random() < 0.8 else dtype  # which means a mask
    return b.leaf(dtype, shape, values=values)


def key(b: Builder, shape: tuple[int, ...]):
    """A mixture of index tensors, masks and basic items."""
    rng = b.rng
    common = rng.choice(((2,), (3,), (1,), (2, 1), (1, 3), (), (0,), (5,)))
    items: list = []
    dims = list(shape)
    while dims and len(items) < 4 and rng.random() < 0.85:
        n = dims.pop(0)
        at = rng.random()
        if at < 0.45:
            items.append(_positions(b, n, drawing.broadcastable(rng, common) if rng.random() < 0.3 else common))
        elif at < 0.55:
            masked = (n, *(dims.pop(0) for _ in range(rng.randint(0, min(1, len(dims))))))
            items.append(b.leaf("bool", masked if rng.random() < 0.97 else (n + 1,), "exact"))
        elif at < 0.62 and n:
            items.append([rng.randint(-n, n - 1) for _ in range(rng.choice((1, 2, 3)))])
        elif at < 0.75 and n:
            items.append(rng.randint(-n, n - 1))
        else:
            items.append(_slice(rng, n))
    if rng.random() < 0.1:
        items.insert(rng.randint(0, len(items)), None)
    if rng.random() < 0.15:
        items.append(...)
    if rng.random() < 0.02:
        items.append(rng.random() < 0.5)
    return items[0] if len(items) == 1 and rng.random() < 0.7 else tuple(items)


def indexing(b: Builder) -> None:
    rng = b.rng
    dtype = drawing.dtype(rng, floating=0.6)
    shape = drawing.large_shape(rng) if rng.random() < 0.05 else drawing.shape(rng, least=1)
    x = b.leaf(dtype, shape, rng.choice(("exact", "random", "special")), grad=rng.random() < 0.6)
    if rng.random() < 0.7:
        x = b.call("operator.mul", x, 1) or x
    for _ in range(rng.randint(1, 4)):
        target = rng.choice([x, *b.tensors()[-2:]])
        chosen = (key if rng.random() < 0.7 else lambda b, s: basic_key(rng, s))(b, b.shape(target))
        if rng.random() < 0.5:
            b.call("operator.getitem", target, chosen)
        else:
            _write(b, target, chosen)
    b.gradients()


def _write(b: Builder, target: Ref, chosen) -> None:
    """An assignment, or an accumulating one."""
    rng = b.rng
    value: object = rng.choice((1.5, 2, True, -1, 300, float("nan")))
    if rng.random() < 0.7:
        region = b.call("operator.getitem", target, chosen)
        shape = drawing.shape(rng, most=2) if region is None or rng.random() < 0.05 else b.shape(region)
        dtype = b.dtype(target) if rng.random() < 0.8 else drawing.dtype(rng, floating=0.5)
        value = b.leaf(dtype, drawing.broadcastable(rng, shape), "exact", grad=rng.random() < 0.4)
    elif rng.random() < 0.2:
        value = rng.choice(b.tensors() or [value])
    if rng.random() < 0.8 or not isinstance(value, Ref):
        b.call("operator.setitem", target, chosen, value, records=rng.random() < 0.9)
        return
    items = chosen if isinstance(chosen, tuple) else (chosen,)
    if all(isinstance(item, Ref) for item in items):
        accumulate = rng.random() < 0.7  # without, repeated positions leave open which value stays
        b.call(rng.choice((".index_put_", ".index_put")), target, items, value, accumulate=accumulate)
