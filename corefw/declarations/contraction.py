"""Contractions of tensors: sums of products over dimensions that are named or counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from corefw.dispatch.declare import composite, ops
from corefw.dispatch.settings import settings
from corefw.errors import ShapeError
from corefw.shapes import canonical_dim
from corefw.tensor import Tensor


# -- plans ------------------------------------------------------------------------------------------------------------
class _Term(NamedTuple):
    """An operand, or what became of some: its number among all, and the labels and sizes of its dimensions."""

    place: int
    labels: list[int]
    shape: Sequence[int]


class _Plan:
    """The calls that contract operands of known shapes.

    Attributes: ``calls`` functions, each with the numbers of the values that it is given, and its other arguments;
    what it returns becomes the next value after the operands.
    """

    def __init__(self, operands: int):
        self.calls: list[tuple[Callable, tuple[int, ...], tuple]] = []
        self._operands = operands

    def add(self, function: Callable, terms: Sequence[_Term], arguments: tuple, labels, shape) -> _Term:
        """A call."""
        self.calls.append((function, tuple(term.place for term in terms), arguments))
        return _Term(self._operands + len(self.calls) - 1, labels, shape)

    def run(self, operands) -> Tensor:
        """The last value."""
        values = list(operands)
        for function, places, arguments in self.calls:
            values.append(function(*[values[place] for place in places], *arguments))
        return values[-1]

    # -- steps ----------------------------------------------------------------------------------------------------
    def permuted(self, term: _Term, labels: list[int]) -> _Term:
        """A term with its dimensions in the order of `labels`."""
        if labels == term.labels:
            return term
        order = tuple(term.labels.index(label) for label in labels)
        return self.add(ops.permute, [term], (order,), labels, [term.shape[d] for d in order])

    def of_diagonals(self, term: _Term) -> _Term:
        """A term with repeated labels reduced to their diagonal."""
        for label in dict.fromkeys(term.labels):
            while term.labels.count(label) > 1:
                i = term.labels.index(label)
                j = term.labels.index(label, i + 1)
                if term.shape[i] != term.shape[j]:
                    raise ShapeError(
                        f"einsum(): subscript {chr(label)} is repeated for one operand but the sizes don't match, "
                        f"{term.shape[j]} != {term.shape[i]}"
                    )
                kept = [k for k in range(len(term.labels)) if k not in (i, j)] + [i]
                labels, shape = [term.labels[k] for k in kept], [term.shape[k] for k in kept]
                term = self.add(ops.diagonal, [term], (0, i, j), labels, shape)
        return term

    def without(self, term: _Term, dropped, function: Callable) -> _Term:
        """A term without the dimensions of the labels `dropped`, which the function takes from a tensor."""
        dims = tuple(i for i, label in enumerate(term.labels) if label in dropped)
        if not dims:
            return term
        kept = [i for i in range(len(term.labels)) if i not in dims]
        return self.add(function, [term], (dims,), [term.labels[i] for i in kept], [term.shape[i] for i in kept])

    def contracted(self, a: _Term, b: _Term, kept: list[int]) -> _Term:
        """The product of two terms, summed over the labels not in `kept`; its dimensions are in the order of
        `kept`."""
        sizes_a, sizes_b = dict(zip(a.labels, a.shape)), dict(zip(b.labels, b.shape))
        shared = [label for label in a.labels if label in sizes_b]
        a = self.without(a, [l for l in shared if sizes_a[l] == 1 != sizes_b[l]], ops.squeeze)  # it broadcasts
        b = self.without(b, [l for l in shared if sizes_b[l] == 1 != sizes_a[l]], ops.squeeze)
        a = self.without(a, [l for l in a.labels if l not in b.labels and l not in kept], _summed)
        b = self.without(b, [l for l in b.labels if l not in a.labels and l not in kept], _summed)
        batch = [l for l in a.labels if l in b.labels and l in kept]
        summed = [l for l in a.labels if l in b.labels and l not in kept]
        left = [l for l in a.labels if l not in b.labels]
        right = [l for l in b.labels if l not in a.labels]
        if left and right and kept == batch + right + left:  # so that the result is in row-major order
            return self.contracted(b, a, kept)
        sizes = {**dict(zip(b.labels, b.shape)), **dict(zip(a.labels, a.shape))}

        def is_one(group) -> bool:
            """Whether a group is one dimension, or none, where the term may be a vector."""
            return len(group) == 1 or (not group and not batch and len(summed) == 1)

        def grouped(term, *groups):
            """A term as matrices: a dimension for each label of the batch, and for each group."""
            term = self.permuted(term, [l for group in (batch, *groups) for l in group])
            if all(map(is_one, groups)):
                return term
            shape = [sizes[l] for l in batch] + [prod(sizes[l] for l in group) for group in groups]
            return self.add(ops.reshape, [term], (shape,), None, shape)

        order = batch + left + right
        a, b = grouped(a, left, summed), grouped(b, summed, right)
        product = self.add(ops.matmul if summed else ops.mul, [a, b], (), order, [sizes[l] for l in order])
        if not (is_one(left) and is_one(right)):
            product = self.add(ops.reshape, [product], (product.shape,), order, product.shape)
        return self.permuted(product, kept)


def _summed(tensor, dims):
    """The sum over dimensions, in the tensor's own dtype."""
    return tensor.sum(dims).to(tensor.dtype)


def _labels(equation: str, operands: int) -> tuple[list[list[int]], list[int] | None]:
    """Labels of the operands' dimensions and of the output's (None if not given) as numbers; -1 stands for "..."."""
    left, arrow, right = equation.replace(" ", "").partition("->")

    def numbers(term: str) -> list[int]:
        found = []
        for i, part in enumerate(term.split("...")):
            found += [-1] * (i > 0)
            for letter in part:
                if not (letter.isascii() and letter.isalpha()):
                    raise ShapeError(
                        f"einsum(): invalid subscript given at {letter!r} in the equation {equation!r}, subscripts "
                        "must be in [a-zA-Z]"
                    )
                found.append(ord(letter))
        return found

    terms = [numbers(term) for term in left.split(",")]
    if len(terms) != operands:
        raise ShapeError(
            f"einsum(): {'more' if len(terms) < operands else 'fewer'} operands were provided than specified in "
            f"the equation: {operands} for {equation!r}"
        )
    return terms, numbers(right) if arrow else None


def _with_ellipsis(terms, output, shapes) -> tuple[list[list[int]], list[int]]:
    """The labels with each "..." replaced by numbers below zero, and the implicit output made explicit."""
    covered = 0
    for i, (term, shape) in enumerate(zip(terms, shapes)):
        count = len(shape) - sum(label != -1 for label in term)
        if term.count(-1) > 1:
            raise ShapeError(f"einsum(): found a second ellipsis in the subscripts of operand {i}")
        if count < 0 or (count and -1 not in term):
            raise ShapeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not match the number of "
                f"dimensions ({len(shape)}) for operand {i}" + (" and no ellipsis was given" if -1 not in term else "")
            )
        covered = max(covered, count if -1 in term else 0)
    ellipsis = list(range(-covered - 1, -1))
    complete = []
    for term, shape in zip(terms, shapes):
        count = len(shape) - len(term) + 1
        at = term.index(-1) if -1 in term else None
        complete.append(term if at is None else term[:at] + ellipsis[covered - count :] + term[at + 1 :])
    if output is None:
        flat = [label for term in terms for label in term if label != -1]
        output = ellipsis + sorted(label for label in set(flat) if flat.count(label) == 1)
    elif -1 in output:
        at = output.index(-1)
        output = output[:at] + ellipsis + output[at + 1 :]
    return complete, output


def _check_labels(terms, output, shapes) -> None:
    sizes: dict[int, int] = {}
    for i, (term, shape) in enumerate(zip(terms, shapes)):
        for label, size in zip(term, shape):
            if size != 1 and sizes.setdefault(label, size) != size:
                raise ShapeError(
                    f"einsum(): subscript {chr(label) if label >= 65 else label} has size {size} for operand {i} which "
                    f"does not broadcast with previously seen size {sizes[label]}"
                )
    for label in output:
        if output.count(label) > 1:
            raise ShapeError(f"einsum(): output subscript {chr(label)} appears more than once in the output")
        if not any(label in term for term in terms):
            raise ShapeError(
                f"einsum(): output subscript {chr(label)} does not appear in the equation for any input operand"
            )


def _contraction_path(terms, output, shapes, strategy: str):
    """Which operands to contract next, step by step, at the least cost; by the package opt_einsum."""
    import opt_einsum

    symbols = {
        label: opt_einsum.get_symbol(i) for i, label in enumerate(dict.fromkeys(l for term in terms for l in term))
    }
    text = ",".join("".join(symbols[l] for l in term) for term in terms) + "->" + "".join(symbols[l] for l in output)
    return opt_einsum.contract_path(text, *shapes, shapes=True, optimize=strategy)[0]


@lru_cache(maxsize=1024)
def _planned(equation: str | tuple, shapes: tuple[tuple[int, ...], ...], in_order: bool, strategy: str) -> _Plan:
    """The plan of an equation, or of the labels of all operands and of the output, None if not given."""
    if isinstance(equation, str):
        terms, output = _labels(equation, len(shapes))
    else:
        terms, output = [list(term) for term in equation[0]], equation[1] and list(equation[1])
    terms, output = _with_ellipsis(terms, output, shapes)
    _check_labels(terms, output, shapes)
    plan = _Plan(len(shapes))
    current = [plan.of_diagonals(_Term(i, *term)) for i, term in enumerate(zip(terms, shapes))]
    chosen = len(shapes) > 2 and not in_order
    path = _contraction_path(terms, output, shapes, strategy) if chosen else [tuple(range(len(shapes)))]
    for step in path:
        taken = [current.pop(i) for i in sorted(step, reverse=True)][::-1]
        while len(taken) > 1:
            a, b, *others = taken
            wanted = set(output).union(*(term.labels for term in [*current, *others]))
            kept = [l for l in dict.fromkeys([*a.labels, *b.labels]) if l in wanted]
            taken = [plan.contracted(a, b, kept if current or others else output), *others]
        current.append(taken[0])
    result = plan.without(current[0], [l for l in current[0].labels if l not in output], _summed)
    result = plan.permuted(result, output)
    if result.place < len(shapes):
        plan.add(ops.alias, [result], (), output, result.shape)
    return plan


# -- functions --------------------------------------------------------------------------------------------------------
@composite(out=True)
def tensordot(a, b, dims: int | Sequence[Sequence[int]] = 2):
    """The sum of the products of `a` and `b` over some dimensions of each.

    Args:
        a: any shape.
        b: any shape.
        dims: how many of the last dimensions of `a` and first of `b` are summed over, or two lists that name them.

    Returns:
        the remaining dimensions of `a`, then those of `b`.

    >>> import corefw as torch
    >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4, 2), dims=([1, 0], [0, 2])).shape
    torch.Size([4])
    """
    dims = dims.tolist() if hasattr(dims, "tolist") else dims
    if isinstance(dims, int):
        if dims < 0:
            raise ShapeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise ShapeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        given_a, given_b = ([d] if isinstance(d, int) else list(d) for d in dims)
        dims_a, dims_b = [canonical_dim(d, a.ndim) for d in given_a], [canonical_dim(d, b.ndim) for d in given_b]
    if len(dims_a) != len(dims_b):
        raise ShapeError(f"both dimension lists should have same length, got {dims_a} and {dims_b}")
    labels_a = list(range(a.ndim))
    labels_b: list[int | None] = [None] * b.ndim
    for i, j in zip(dims_a, dims_b):
        if a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]):
            raise ShapeError(
                f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and second has size "
                f"{b.shape[j]} in dim {j}"
            )
        labels_b[j] = i
    complete_b = [a.ndim + j if label is None else label for j, label in enumerate(labels_b)]
    kept = [label for label in labels_a if label not in dims_a] + [label for label in complete_b if label >= a.ndim]
    plan = _Plan(2)
    plan.contracted(_Term(0, labels_a, a.shape), _Term(1, complete_b, b.shape), kept)
    return plan.run((a, b))


@composite()
def einsum(equation: Any, *operands: Any) -> Tensor:
    """The sum of products of the operands' elements that an equation in Einstein's notation names.

    Letters name dimensions; those missing after "->" are summed over, equal ones within a term take the diagonal, "..."
    stands for dimensions that broadcast. Without "->" the output has the letters that occur once, in alphabetical
    order.
    Three or more operands are contracted in the order that costs least.

    Args:
        equation: ``"ij,jk->ik"``; or the call is ``einsum(op1, [0, 1], op2, [1, 2], ..., [0, 2])`` with numbers, and
            Ellipsis, in place of letters.
        operands: tensors, or one list of them.

    >>> import corefw as torch
    >>> a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.einsum("ii->", a), torch.einsum("ij,kj->ik", a, a)
    (tensor(5.), tensor([[ 5., 11.],
            [11., 25.]]))
    """
    if isinstance(equation, str):
        if len(operands) == 1 and isinstance(operands[0], list | tuple):
            operands = tuple(operands[0])
        if not operands:
            raise ValueError("einsum(): must provide at least one operand")
    else:
        arguments = [equation, *operands]
        operands, lists = tuple(arguments[0 : len(arguments) // 2 * 2 : 2]), arguments[1::2]
        output = arguments[-1:] if len(arguments) % 2 else []
        for label in (label for sublist in (*lists, *output) for label in sublist):
            if label is not Ellipsis and not 0 <= label < 52:
                raise ValueError(f"einsum(): expected subscripts in range [0, 52), but got {label}")
        labels = [tuple(-1 if label is Ellipsis else label for label in sublist) for sublist in (*lists, *output)]
        equation = tuple(labels[: len(lists)]), labels[-1] if output else None
    shapes = tuple([tuple(operand.shape) for operand in operands])
    return _planned(equation, shapes, settings.contract_in_order, settings.contraction).run(operands)


@composite(out=True)
def chain_matmul(*matrices) -> Tensor:
    """The product of several matrices, multiplied in the order that costs least.

    >>> import corefw as torch
    >>> torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1))
    tensor([[12.],
            [12.]])
    """
    if len(matrices) == 1:
        return matrices[0].clone()
    labelled = [part for i, matrix in enumerate(matrices) for part in (matrix, [i, i + 1])]
    return einsum(*labelled, [0, len(matrices)])


@composite(out=True)
def kron(input, other):
    """The Kronecker product: each element of `input` replaced by its product with `other`.

    The tensor of fewer dimensions is given leading ones; every dimension's size is the product of both sizes.

    >>> import corefw as torch
    >>> torch.kron(torch.tensor([1, 10]), torch.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    ndim = max(input.ndim, other.ndim)
    a = (1,) * (ndim - input.ndim) + tuple(input.shape)
    b = (1,) * (ndim - other.ndim) + tuple(other.shape)
    left = input.reshape([n for size in a for n in (size, 1)])
    right = other.reshape([n for size in b for n in (1, size)])
    return (left * right).reshape([m * n for m, n in zip(a, b)])
