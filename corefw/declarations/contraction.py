"""Contractions of tensors: sums of products over dimensions that are named or counted."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from corefw.dispatch.declare import composite, ops
from corefw.dispatch.settings import settings
from corefw.errors import ShapeError
from corefw.shapes import canonical_dim
from corefw.tensor import Tensor


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
    return _contract(a, labels_a, b, complete_b, kept)


def _labels(equation: str, operands) -> tuple[list[list[int]], list[int] | None]:
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
    if len(terms) != len(operands):
        raise ShapeError(
            f"einsum(): {'more' if len(terms) < len(operands) else 'fewer'} operands were provided than specified in "
            f"the equation: {len(operands)} for {equation!r}"
        )
    return terms, numbers(right) if arrow else None


def _with_ellipsis(terms, output, operands) -> tuple[list[list[int]], list[int]]:
    """The labels with each "..." replaced by numbers below zero, and the implicit output made explicit."""
    covered = 0
    for i, (term, operand) in enumerate(zip(terms, operands)):
        count = operand.ndim - sum(label != -1 for label in term)
        if term.count(-1) > 1:
            raise ShapeError(f"einsum(): found a second ellipsis in the subscripts of operand {i}")
        if count < 0 or (count and -1 not in term):
            raise ShapeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not match the number of "
                f"dimensions ({operand.ndim}) for operand {i}"
                + (" and no ellipsis was given" if -1 not in term else "")
            )
        covered = max(covered, count if -1 in term else 0)
    ellipsis = list(range(-covered - 1, -1))
    complete = []
    for term, operand in zip(terms, operands):
        count = operand.ndim - len(term) + 1
        at = term.index(-1) if -1 in term else None
        complete.append(term if at is None else term[:at] + ellipsis[covered - count :] + term[at + 1 :])
    if output is None:
        flat = [label for term in terms for label in term if label != -1]
        output = ellipsis + sorted(label for label in set(flat) if flat.count(label) == 1)
    elif -1 in output:
        at = output.index(-1)
        output = output[:at] + ellipsis + output[at + 1 :]
    return complete, output


def _single(operand, labels) -> tuple:
    """An operand with repeated labels reduced to their diagonal."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            if operand.shape[i] != operand.shape[j]:
                raise ShapeError(
                    f"einsum(): subscript {chr(label)} is repeated for one operand but the sizes don't match, "
                    f"{operand.shape[j]} != {operand.shape[i]}"
                )
            operand = operand.diagonal(0, i, j)
            labels = [l for k, l in enumerate(labels) if k not in (i, j)] + [label]
    return operand, labels


def _drop(operand, labels, dropped, sum_over: bool):
    """The operand without the dimensions of the labels `dropped`, summed over or of size 1."""
    dims = tuple(i for i, label in enumerate(labels) if label in dropped)
    if not dims:
        return operand, labels
    kept = [label for label in labels if label not in dropped]
    return (operand.sum(dims).to(operand.dtype) if sum_over else operand.squeeze(dims)), kept


def _contract(a, labels_a, b, labels_b, kept):
    """The product of two operands with labelled dimensions, summed over the labels not in `kept`; its dimensions are in
    the order of `kept`."""
    sizes_a, sizes_b = dict(zip(labels_a, a.shape)), dict(zip(labels_b, b.shape))
    shared = [label for label in labels_a if label in sizes_b]
    a, labels_a = _drop(a, labels_a, [l for l in shared if sizes_a[l] == 1 != sizes_b[l]], False)  # it broadcasts
    b, labels_b = _drop(b, labels_b, [l for l in shared if sizes_b[l] == 1 != sizes_a[l]], False)
    a, labels_a = _drop(a, labels_a, [l for l in labels_a if l not in labels_b and l not in kept], True)
    b, labels_b = _drop(b, labels_b, [l for l in labels_b if l not in labels_a and l not in kept], True)
    batch = [l for l in labels_a if l in labels_b and l in kept]
    summed = [l for l in labels_a if l in labels_b and l not in kept]
    left = [l for l in labels_a if l not in labels_b]
    right = [l for l in labels_b if l not in labels_a]
    if left and right and kept == batch + right + left:  # so that the result is in row-major order
        return _contract(b, labels_b, a, labels_a, kept)
    sizes = {**dict(zip(labels_b, b.shape)), **dict(zip(labels_a, a.shape))}

    def grouped(operand, labels, *groups):
        operand = operand.permute([labels.index(l) for group in groups for l in group])
        return operand.reshape([sizes[l] for l in batch] + [prod(sizes[l] for l in group) for group in groups[1:]])

    a, b = grouped(a, labels_a, batch, left, summed), grouped(b, labels_b, batch, summed, right)
    product = a.matmul(b) if summed else a * b
    order = batch + left + right
    product = product.reshape([sizes[l] for l in order])
    return product if order == kept else product.permute([order.index(l) for l in kept])


def _contraction_path(terms, output, operands):
    """Which operands to contract next, step by step, at the least cost; by the package opt_einsum."""
    import opt_einsum

    symbols = {
        label: opt_einsum.get_symbol(i) for i, label in enumerate(dict.fromkeys(l for term in terms for l in term))
    }
    text = ",".join("".join(symbols[l] for l in term) for term in terms) + "->" + "".join(symbols[l] for l in output)
    shapes = (tuple(o.shape) for o in operands)
    return opt_einsum.contract_path(text, *shapes, shapes=True, optimize=settings.contraction)[0]


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
    output: list[int] | None
    if isinstance(equation, str):
        if len(operands) == 1 and isinstance(operands[0], list | tuple):
            operands = tuple(operands[0])
        if not operands:
            raise ValueError("einsum(): must provide at least one operand")
        terms, output = _labels(equation, operands)
    else:
        arguments = [equation, *operands]
        operands, lists = tuple(arguments[0 : len(arguments) // 2 * 2 : 2]), arguments[1::2]
        for label in (label for sublist in (*lists, *arguments[len(lists) * 2 :]) for label in sublist):
            if label is not Ellipsis and not 0 <= label < 52:
                raise ValueError(f"einsum(): expected subscripts in range [0, 52), but got {label}")
        terms = [[-1 if label is Ellipsis else label for label in sublist] for sublist in lists]
        output = [-1 if l is Ellipsis else l for l in arguments[-1]] if len(arguments) % 2 else None
    terms, output = _with_ellipsis(terms, output, operands)
    _check_labels(terms, output, operands)
    current = [_single(operand, term) for operand, term in zip(operands, terms)]
    chosen = len(operands) > 2 and not settings.contract_in_order
    path = _contraction_path(terms, output, operands) if chosen else [tuple(range(len(operands)))]
    for step in path:
        taken = [current.pop(i) for i in sorted(step, reverse=True)][::-1]
        while len(taken) > 1:
            (a, labels_a), (b, labels_b), *others = taken
            wanted = set(output).union(*(labels for _, labels in [*current, *others]))
            kept = (
                output
                if not current and not others
                else [l for l in dict.fromkeys([*labels_a, *labels_b]) if l in wanted]
            )
            taken = [(_contract(a, labels_a, b, labels_b, kept), kept), *others]
        current.append(taken[0])
    result, labels = current[0]
    result, labels = _drop(result, labels, [l for l in labels if l not in output], True)
    if labels == output:
        return ops.alias(result) if any(result is operand for operand in operands) else result
    return result.permute([labels.index(l) for l in output])


def _check_labels(terms, output, operands) -> None:
    sizes: dict[int, int] = {}
    for i, (term, operand) in enumerate(zip(terms, operands)):
        for label, size in zip(term, operand.shape):
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
