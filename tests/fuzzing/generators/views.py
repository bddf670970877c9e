"""Chains of views and in-place changes, with gradients of what comes of them."""

from __future__ import annotations

from tests.fuzzing import drawing
from tests.fuzzing.builder import Builder
from tests.fuzzing.generators.indexing import basic_key
from tests.fuzzing.programs import Name, Ref


def _factorised(rng, elements: int) -> tuple[int, ...]:
    """A shape of so many elements, one size perhaps left open."""
    found = []
    while elements > 1 and len(found) < 3:
        n = rng.choice([d for d in range(1, elements + 1) if elements % d == 0][:12])
        found.append(n)
        elements //= n
    found.append(elements)
    rng.shuffle(found)
    if rng.random() < 0.4:
        found[rng.randrange(len(found))] = -1
    return tuple(found)


def _dims(b: Builder, ref: Ref, count: int = 1):
    ndim = len(b.shape(ref))
    found = tuple(drawing.dimension(b.rng, ndim) for _ in range(count))
    return found if count > 1 else found[0]


def _widened(b: Builder, ref: Ref) -> tuple[int, ...]:
    rng, shape = b.rng, b.shape(ref)
    sizes = tuple(rng.choice((2, 3, 1)) if n == 1 else rng.choice((n, n, -1)) for n in shape)
    return (rng.choice((1, 2)), *sizes) if rng.random() < 0.3 else sizes


def _permutation(b: Builder, ref: Ref) -> tuple[int, ...]:
    order = list(range(len(b.shape(ref))))
    b.rng.shuffle(order)
    return tuple(d - len(order) if b.rng.random() < 0.2 else d for d in order)


def _narrowed(b: Builder, ref: Ref) -> tuple[int, int, int]:
    shape = b.shape(ref)
    dim = b.rng.randrange(len(shape)) if shape else 0
    n = shape[dim] if shape else 1
    start = b.rng.randint(0, n)
    return dim, start, b.rng.randint(0, n - start)


def _selected(b: Builder, ref: Ref) -> tuple[int, int]:
    shape = b.shape(ref)
    dim = b.rng.randrange(len(shape)) if shape else 0
    n = shape[dim] if shape else 1
    return dim, b.rng.randint(-n, max(n - 1, 0))


def _windowed(b: Builder, ref: Ref) -> tuple[int, int, int]:
    shape = b.shape(ref) or (1,)
    dim = b.rng.randrange(len(shape))
    return dim, b.rng.randint(0, shape[dim]), b.rng.randint(1, 3)


def _flattened(b: Builder, ref: Ref) -> tuple[int, int]:
    return tuple(sorted(_dims(b, ref, 2)))


#: method names of views with how their arguments are drawn
VIEWS = {
    ".view": lambda b, r: (_factorised(b.rng, max(b.value(r).numel(), 1)),),
    ".reshape": lambda b, r: (_factorised(b.rng, max(b.value(r).numel(), 1)),),
    ".transpose": lambda b, r: _dims(b, r, 2),
    ".permute": lambda b, r: (_permutation(b, r),),
    ".unsqueeze": lambda b, r: (b.rng.randint(-len(b.shape(r)) - 1, len(b.shape(r))),),
    ".squeeze": lambda b, r: (_dims(b, r),) if b.rng.random() < 0.7 else (),
    ".expand": lambda b, r: (_widened(b, r),),
    ".select": _selected,
    ".narrow": _narrowed,
    ".unfold": _windowed,
    ".diagonal": lambda b, r: (b.rng.randint(-2, 2), *_dims(b, r, 2)),
    ".flatten": _flattened,
    ".movedim": lambda b, r: _dims(b, r, 2),
    ".chunk": lambda b, r: (b.rng.randint(1, 3), _dims(b, r)),
    ".split": lambda b, r: (b.rng.randint(1, 3), _dims(b, r)),
    ".unbind": lambda b, r: (_dims(b, r),),
    ".tensor_split": lambda b, r: (b.rng.randint(1, 3), _dims(b, r)),
    ".swapaxes": lambda b, r: _dims(b, r, 2),
    ".t": lambda b, r: (),
    ".detach": lambda b, r: (),
    ".real": None,
    ".conj": lambda b, r: (),
    ".contiguous": lambda b, r: (),
    ".clone": lambda b, r: (),
    ".expand_as": lambda b, r: (b.rng.choice(b.tensors()),),
    ".view_as": lambda b, r: (b.rng.choice(b.tensors()),),
    ".ravel": lambda b, r: (),
    ".broadcast_to": lambda b, r: (_widened(b, r),),
    ".unflatten": lambda b, r: (_dims(b, r), (b.rng.choice((1, 2, -1)), -1)),
}
_VIEWS = [name for name, arguments in VIEWS.items() if arguments is not None]

_UNARY = ("sin", "exp", "neg", "abs", "relu", "zero", "square", "sigmoid", "tanh", "floor", "reciprocal", "sqrt")
_BINARY = ("add", "sub", "mul", "div", "copy", "pow", "fmod", "clamp_min")


def view(b: Builder, ref: Ref) -> Ref | None:
    """One random view of a tensor; one of several where the op gives several."""
    if b.rng.random() < 0.3:
        return b.call("operator.getitem", ref, basic_key(b.rng, b.shape(ref)))
    name = b.rng.choice(_VIEWS)
    found = b.call(name, ref, *VIEWS[name](b, ref))
    if found is not None and isinstance(b.value(found), tuple | list) and b.value(found):
        return b.call("operator.getitem", found, b.rng.randrange(len(b.value(found))))
    return found


def change(b: Builder, ref: Ref) -> Ref | None:
    """One random in-place change of a tensor."""
    rng, records = b.rng, b.rng.random() < 0.9
    at = rng.random()
    if at < 0.3:
        return b.call(f".{rng.choice(_UNARY)}_", ref, records=records)
    if at < 0.65:
        other = rng.choice(b.tensors())
        if rng.random() < 0.4:
            other = b.leaf(drawing.dtype(rng), drawing.broadcastable(rng, b.shape(ref)), "exact")
        return b.call(f".{rng.choice(_BINARY)}_", ref, other, records=records)
    if at < 0.75:
        return b.call(
            f"operator.{rng.choice(('iadd', 'isub', 'imul', 'itruediv'))}",
            ref,
            rng.choice((2, 0.5, -1.0)),
            records=records,
        )
    if at < 0.8:
        return b.call(".fill_", ref, rng.choice((0, 1.5, -2)), records=records)
    if at < 0.85:
        name = rng.choice((".transpose_", ".unsqueeze_", ".squeeze_", ".t_", ".detach_", ".requires_grad_"))
        dims = {".transpose_": 2, ".unsqueeze_": 1, ".squeeze_": rng.randint(0, 1)}.get(name, 0)
        return b.call(name, ref, *(drawing.dimension(rng, len(b.shape(ref))) for _ in range(dims)))
    value: object = rng.choice((1.5, 2, True))
    if rng.random() < 0.5:
        value = rng.choice(b.tensors())
    return b.call("operator.setitem", ref, basic_key(rng, b.shape(ref)), value, records=records)


def views(b: Builder) -> None:
    rng = b.rng
    for _ in range(rng.randint(1, 2)):
        dtype = drawing.dtype(rng, floating=0.85)
        leaf = b.leaf(
            dtype,
            drawing.shape(rng, least=0),
            rng.choice(("exact", "exact", "random", "special")),
            grad=rng.random() < 0.7,
        )
        if rng.random() < 0.8:
            b.call("operator.mul", leaf, 1)
    for _ in range(rng.randint(2, 8)):
        ref = rng.choice(b.tensors()[-4:])
        at = rng.random()
        if at < 0.5:
            view(b, ref)
        elif at < 0.85:
            change(b, ref)
        elif at < 0.9:
            b.call(".to", ref, Name(drawing.dtype(rng)))
        else:
            b.call(rng.choice(("operator.mul", "operator.add", "operator.sub")), ref, rng.choice(b.tensors()))
    b.gradients(records_again=rng.random() < 0.1)
