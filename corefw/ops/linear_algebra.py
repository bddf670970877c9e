"""Products of vectors, matrices and tensors, with what is built from them: contractions, linear maps and distances."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from corefw.dispatch.declare import Dim, composite, ops, primitive
from corefw.dispatch.rules import promote, same
from corefw.errors import ShapeError
from corefw.shapes import broadcast, canonical_dim

numeric = same.without("bool")


def _times(shape) -> str:
    return "x".join(map(str, shape))


def _check_matrices(mat1, mat2) -> None:
    if mat1[1] != mat2[0]:
        raise ShapeError(f"mat1 and mat2 shapes cannot be multiplied ({_times(mat1)} and {_times(mat2)})")


# -- matrix products --------------------------------------------------------------------------------------------------
def matmul_shape(input, other):
    """The shape of ``input @ other``; raises ShapeError where the inner sizes differ."""
    if not input or not other:
        raise ShapeError(
            f"both arguments to matmul need to be at least 1D, but they are {len(input)}D and {len(other)}D"
        )
    if len(input) == 1 and len(other) == 1:
        if input != other:
            raise ShapeError(
                f"inconsistent tensor size, expected tensor [{input[0]}] and src [{other[0]}] to have the same number of "
                f"elements, but got {input[0]} and {other[0]} elements respectively"
            )
        return ()
    rows, columns = input[-2:-1], other[-1:] if len(other) > 1 else ()
    inner = other[-2] if len(other) > 1 else other[0]
    batch = broadcast(input[:-2], other[:-2])
    if input[-1] != inner:
        if len(other) == 1:
            raise ShapeError(
                f"size mismatch, got input ({prod(input[:-1])}), mat ({prod(input[:-1])}x{input[-1]}), vec ({inner})"
            )
        if len(other) == 2:
            _check_matrices((prod(input[:-1]), input[-1]), other)
        raise ShapeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{prod(batch)}, {input[-1]}] but got: "
            f"[{prod(batch)}, {inner}]; shapes {list(input)} and {list(other)}"
        )
    return (*batch, *rows, *columns)


@primitive(dtype=numeric, shape=matmul_shape, out=True)
def matmul(input, other):
    """The matrix product ``input @ other``.

    Two vectors give their dot product, a matrix and a vector their matrix-vector product; dimensions before the last two
    are a batch and broadcast.

    Args:
        input: shape (..., n, k) or (k,).
        other: shape (..., k, m) or (k,).

    Returns:
        shape (..., n, m), without n or m where that argument is a vector.

    Raises:
        RuntimeError: the inner sizes differ.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]]) @ torch.tensor([1.0, 1.0])
    tensor([3., 7.])
    """


@matmul.gradient("input")
def _(grad, input_shape, other):
    if other.ndim == 1:
        return grad.unsqueeze(-1) * other.conj()
    if len(input_shape) == 1:
        return ops.matmul_adjoint(grad.unsqueeze(-2), other).squeeze(-2)
    return ops.matmul_adjoint(grad, other)


def _rows(tensor):
    """The last dimension's vectors as the rows of one matrix."""
    if tensor.ndim == 2:
        return tensor
    return tensor.unsqueeze(0) if tensor.ndim == 1 else tensor.flatten(0, -2)


@matmul.gradient("other")
def _(grad, input, other_shape):
    if input.ndim == 1:
        return input.conj().unsqueeze(-1) * grad.unsqueeze(-2) if len(other_shape) > 1 else input.conj() * grad
    if len(other_shape) == 1:
        return ops.adjoint_matmul(_rows(input), grad.flatten().unsqueeze(-1)).squeeze(-1)
    if len(other_shape) == 2 and input.ndim > 2:  # one large product instead of a batch that is summed
        return ops.adjoint_matmul(_rows(input), _rows(grad))
    return ops.adjoint_matmul(input, grad)


def _swapped(shape):
    return (*shape[:-2], shape[-1], shape[-2])


@composite(dtype=numeric, shape=lambda input, other: matmul_shape(input, _swapped(other)), method=False)
def matmul_adjoint(input, other):
    """The product ``input @ other.mH`` of (batches of) matrices: how the left factor's gradient is computed."""
    return input.matmul(other.transpose(-2, -1).conj())


@matmul_adjoint.gradient("input")
def _(grad, other):
    return ops.matmul(grad, other)


@matmul_adjoint.gradient("other")
def _(grad, input):
    return ops.adjoint_matmul(grad, input)


@composite(dtype=numeric, shape=lambda input, other: matmul_shape(_swapped(input), other), method=False)
def adjoint_matmul(input, other):
    """The product ``input.mH @ other`` of (batches of) matrices: how the right factor's gradient is computed."""
    return input.transpose(-2, -1).conj().matmul(other)


@adjoint_matmul.gradient("input")
def _(grad, other):
    return ops.matmul_adjoint(other, grad)


@adjoint_matmul.gradient("other")
def _(grad, input):
    return ops.matmul(input, grad)


def _mm_shape(input, mat2):
    for name, shape in (("self", input), ("mat2", mat2)):
        if len(shape) != 2:
            raise ShapeError(f"{name} must be a matrix, got shape {list(shape)}")
    _check_matrices(input, mat2)
    return input[0], mat2[1]


@composite(dtype=numeric, shape=_mm_shape, out=True)
def mm(input, mat2):
    """The product of two matrices.

    Args:
        input: shape (n, k).
        mat2: shape (k, m).

    >>> import corefw as torch
    >>> torch.mm(torch.tensor([[1, 2]]), torch.tensor([[3], [4]]))
    tensor([[11]])
    """
    _mm_shape(input.shape, mat2.shape)
    return input.matmul(mat2)


@mm.gradient("input")
def _(grad, mat2):
    return ops.matmul_adjoint(grad, mat2)


@mm.gradient("mat2")
def _(grad, input):
    return ops.adjoint_matmul(input, grad)


def _bmm_shape(input, mat2):
    for name, shape in (("batch1", input), ("batch2", mat2)):
        if len(shape) != 3:
            raise ShapeError(f"{name} must be a 3D tensor, got shape {list(shape)}")
    if input[0] != mat2[0] or input[2] != mat2[1]:
        raise ShapeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{input[0]}, {input[2]}] but got: "
            f"[{mat2[0]}, {mat2[1]}]."
        )
    return input[0], input[1], mat2[2]


@composite(dtype=numeric, shape=_bmm_shape, out=True)
def bmm(input, mat2):
    """The products of two batches of matrices.

    Args:
        input: shape (b, n, k).
        mat2: shape (b, k, m).

    >>> import corefw as torch
    >>> torch.bmm(torch.ones(2, 1, 3), torch.ones(2, 3, 1))
    tensor([[[3.]],
    <BLANKLINE>
            [[3.]]])
    """
    _bmm_shape(input.shape, mat2.shape)
    return input.matmul(mat2)


@bmm.gradient("input")
def _(grad, mat2):
    return ops.matmul_adjoint(grad, mat2)


@bmm.gradient("mat2")
def _(grad, input):
    return ops.adjoint_matmul(input, grad)


# -- products with vectors --------------------------------------------------------------------------------------------
def _check_matrix_vector(mat, vec) -> None:
    if mat.ndim != 2 or vec.ndim != 1:
        raise ShapeError(f"vector + matrix @ vector expected, got 1, {mat.ndim}, {vec.ndim}")


@composite(out=True)
def mv(input, vec):
    """The product of a matrix and a vector.

    Args:
        input: shape (n, m).
        vec: shape (m,).

    >>> import corefw as torch
    >>> torch.mv(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 0.0]))
    tensor([1., 3.])
    """
    _check_matrix_vector(input, vec)
    return input.matmul(vec)


def _check_vectors(input, other) -> None:
    if input.ndim != 1 or other.ndim != 1:
        raise ShapeError(f"1D tensors expected, but got {input.ndim}D and {other.ndim}D tensors")


@composite(out=True)
def dot(input, tensor):
    """The dot product of two vectors of one length; complex ones are not conjugated.

    >>> import corefw as torch
    >>> torch.dot(torch.tensor([2, 3]), torch.tensor([2, 1]))
    tensor(7)
    """
    _check_vectors(input, tensor)
    return input.matmul(tensor)


@composite(out=True)
def vdot(input, other):
    """The inner product of two vectors, the first conjugated.

    >>> import corefw as torch
    >>> torch.vdot(torch.tensor([1j]), torch.tensor([1j]))
    tensor(1.+0.j)
    """
    _check_vectors(input, other)
    return input.conj().matmul(other)


@composite(out=True)
def inner(input, other):
    """The products of the rows of `input` with the rows of `other`, summed over their common last dimension.

    Args:
        input: shape (*a, k), or a 0-d tensor, which multiplies.
        other: shape (*b, k), or a 0-d tensor.

    Returns:
        shape (*a, *b).

    >>> import corefw as torch
    >>> torch.inner(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 10]))
    tensor([21, 43])
    """
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise ShapeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and {list(other.shape)}"
        )
    return tensordot(input, other, ([-1], [-1]))


@composite(out=True, aliases=("ger",))
def outer(input, vec2):
    """The matrix of the products ``input[i] * vec2[j]`` of two vectors.

    >>> import corefw as torch
    >>> torch.outer(torch.tensor([1, 2]), torch.tensor([3, 4, 5]))
    tensor([[ 3,  4,  5],
            [ 6,  8, 10]])
    """
    for name, tensor in (("self", input), ("vec2", vec2)):
        if tensor.ndim != 1:
            raise ShapeError(f"outer: Expected 1-D argument {name}, but got {tensor.ndim}-D")
    return input.unsqueeze(1) * vec2


# -- products added to a tensor ---------------------------------------------------------------------------------------
def _added_shape(name: str, product_shape):
    def shape(input, mat1, mat2, *scales):
        product = product_shape(mat1, mat2)
        if broadcast(input, product) != product:
            raise ShapeError(f"{name}: input of shape {list(input)} cannot be expanded to the product's shape {list(product)}")
        return product

    return shape


def _scaled(tensor, factor):
    return tensor if factor == 1 else tensor * factor


def _scaled_sum(input, product, beta, alpha):
    """``beta * input + alpha * product``; a beta of zero ignores `input` and NaN in it."""
    input = _scaled(input.expand(product.shape), beta)
    product = _scaled(product, alpha)
    return product if beta == 0 else input + product


@composite(dtype=numeric, shape=_added_shape("addmm", _mm_shape), inplace=True, out=True)
def addmm(input, mat1, mat2, *, beta: float = 1, alpha: float = 1):
    """A matrix product added to a tensor: ``beta * input + alpha * (mat1 @ mat2)``.

    Args:
        input: a shape that expands to (n, m).
        mat1: shape (n, k).
        mat2: shape (k, m).
        beta: factor of `input`; 0 ignores it, NaN included.
        alpha: factor of the product.

    >>> import corefw as torch
    >>> torch.addmm(torch.tensor([1, 2]), torch.tensor([[1, 2]]), torch.tensor([[3, 4], [5, 6]]), alpha=10)
    tensor([[131, 162]])
    """
    return _scaled_sum(input, mat1.mm(mat2), beta, alpha)


@addmm.gradient("input")
def _(grad, beta):
    return _scaled(grad, beta.conjugate())


@addmm.gradient("mat1")
def _(grad, mat2, alpha):
    return _scaled(ops.matmul_adjoint(grad, mat2), alpha.conjugate())


@addmm.gradient("mat2")
def _(grad, mat1, alpha):
    return _scaled(ops.adjoint_matmul(mat1, grad), alpha.conjugate())


@composite(dtype=numeric, shape=_added_shape("baddbmm", _bmm_shape), inplace=True, out=True)
def baddbmm(input, batch1, batch2, *, beta: float = 1, alpha: float = 1):
    """A batch of matrix products added to a tensor: ``beta * input + alpha * (batch1 @ batch2)``.

    Args:
        input: a shape that expands to (b, n, m).
        batch1: shape (b, n, k).
        batch2: shape (b, k, m).
        beta: factor of `input`; 0 ignores it, NaN included.
        alpha: factor of the products.

    >>> import corefw as torch
    >>> torch.baddbmm(torch.tensor([1.0]), torch.ones(1, 1, 3), torch.ones(1, 3, 1), beta=2)
    tensor([[[5.]]])
    """
    return _scaled_sum(input, batch1.bmm(batch2), beta, alpha)


@baddbmm.gradient("input")
def _(grad, beta):
    return _scaled(grad, beta.conjugate())


@baddbmm.gradient("batch1")
def _(grad, batch2, alpha):
    return _scaled(ops.matmul_adjoint(grad, batch2), alpha.conjugate())


@baddbmm.gradient("batch2")
def _(grad, batch1, alpha):
    return _scaled(ops.adjoint_matmul(batch1, grad), alpha.conjugate())


@composite(inplace=True, out=True)
def addmv(input, mat, vec, *, beta: float = 1, alpha: float = 1):
    """A matrix-vector product added to a tensor: ``beta * input + alpha * (mat @ vec)``.

    Args:
        input: a shape that expands to (n,).
        mat: shape (n, m).
        vec: shape (m,).
        beta: factor of `input`; 0 ignores it, NaN included.
        alpha: factor of the product.

    >>> import corefw as torch
    >>> torch.addmv(torch.tensor([1.0]), torch.tensor([[1.0, 2.0]]), torch.tensor([1.0, 1.0]))
    tensor([4.])
    """
    _check_matrix_vector(mat, vec)
    input = input.expand(mat.shape[:1])
    return ops.addmm(input.unsqueeze(1), mat, vec.unsqueeze(1), beta=beta, alpha=alpha).squeeze(1)


@composite(inplace=True, out=True)
def addbmm(input, batch1, batch2, *, beta: float = 1, alpha: float = 1):
    """The sum of a batch of matrix products added to a tensor: ``beta * input + alpha * sum_i(batch1[i] @ batch2[i])``.

    Args:
        input: a shape that expands to (n, m).
        batch1: shape (b, n, k).
        batch2: shape (b, k, m).
        beta: factor of `input`; 0 ignores it, NaN included.
        alpha: factor of the products.

    >>> import corefw as torch
    >>> torch.addbmm(torch.tensor([1.0]), torch.ones(2, 1, 3), torch.ones(2, 3, 1))
    tensor([[7.]])
    """
    b, n, m = _bmm_shape(batch1.shape, batch2.shape)
    side_by_side = batch1.transpose(0, 1).reshape(n, b * batch1.shape[2])
    return ops.addmm(input, side_by_side, batch2.reshape(b * batch2.shape[1], m), beta=beta, alpha=alpha)


@composite(inplace=True, out=True)
def addr(input, vec1, vec2, *, beta: float = 1, alpha: float = 1):
    """The outer product of two vectors added to a tensor: ``beta * input + alpha * outer(vec1, vec2)``.

    Args:
        input: a shape that expands to (n, m).
        vec1: shape (n,).
        vec2: shape (m,).
        beta: factor of `input`; 0 ignores it, NaN included.
        alpha: factor of the product.

    >>> import corefw as torch
    >>> torch.addr(torch.tensor([1]), torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[4, 5],
            [7, 9]])
    """
    if vec1.ndim != 1 or vec2.ndim != 1:
        raise ShapeError(f"addr: Expected 1-D argument vec1 and vec2, but got {vec1.ndim}-D and {vec2.ndim}-D")
    return ops.addmm(input, vec1.unsqueeze(1), vec2.unsqueeze(0), beta=beta, alpha=alpha)


# -- linear maps ------------------------------------------------------------------------------------------------------
def _linear_shape(input, weight, bias=None):
    if len(weight) not in (1, 2):
        raise ShapeError(f"linear: weight must have 1 or 2 dimensions, got shape {list(weight)}")
    shape = matmul_shape(input, tuple(reversed(weight)))
    if bias is not None and broadcast(bias, shape) != shape:
        raise ShapeError(f"linear: bias of shape {list(bias)} cannot be expanded to the output's shape {list(shape)}")
    return shape


@composite(dtype=numeric, shape=_linear_shape, method=False)
def linear(input, weight, bias=None):
    """The linear map ``input @ weight.T + bias`` of the last dimension.

    Args:
        input: shape (..., in_features).
        weight: shape (out_features, in_features) or (in_features,).
        bias: shape (out_features,), or None.

    Returns:
        shape (..., out_features), or (...) for a weight of one dimension.

    >>> import corefw as torch
    >>> torch.nn.functional.linear(torch.tensor([1.0, 2.0]), torch.tensor([[3.0, 4.0]]), torch.tensor([0.5]))
    tensor([11.5000])
    """
    product = input.matmul(weight.t())
    return product if bias is None else product + bias


@linear.gradient("input")
def _(grad, weight):
    return ops.matmul(grad, weight.conj()) if weight.ndim == 2 else grad.unsqueeze(-1) * weight.conj()


@linear.gradient("weight")
def _(grad, input, weight_shape):
    if len(weight_shape) == 1:
        return input.conj() * grad.unsqueeze(-1)
    return ops.adjoint_matmul(_rows(grad), _rows(input)).conj()


@linear.gradient("bias")
def _(grad):
    return grad


@composite(method=False)
def bilinear(input1, input2, weight, bias=None):
    """The bilinear map ``out[..., o] = input1 @ weight[o] @ input2 + bias[o]``.

    Args:
        input1: shape (..., in1_features).
        input2: shape (..., in2_features).
        weight: shape (out_features, in1_features, in2_features).
        bias: shape (out_features,), or None.

    Returns:
        shape (..., out_features).

    >>> import corefw as torch
    >>> torch.bilinear(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0]]), torch.ones(1, 2, 1))
    tensor([[9.]])
    """
    if input1.shape[:-1] != input2.shape[:-1]:
        raise ShapeError(
            f"bilinear(): input batch dimensions do not match: got {list(input1.shape[:-1])} and {list(input2.shape[:-1])}"
        )
    for position, tensor in ((1, input1), (2, input2)):
        if weight.ndim != 3 or tensor.shape[-1] != weight.shape[position]:
            raise ShapeError(
                f"bilinear(): input{position} size does not match weight size: got {tensor.shape[-1]} but expected "
                f"{list(weight.shape)[position : position + 1]} of a weight of shape {list(weight.shape)}"
            )
    out_features, in1, in2 = weight.shape
    batch = input1.shape[:-1]
    left = _rows(input1).mm(weight.transpose(0, 1).reshape(in1, out_features * in2))
    left = left.reshape(left.shape[0], out_features, in2)
    product = left.matmul(_rows(input2).unsqueeze(-1)).reshape(*batch, out_features)
    return product if bias is None else product + bias


# -- contractions -----------------------------------------------------------------------------------------------------
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
                f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and second has size {b.shape[j]} in dim {j}"
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
                        f"einsum(): invalid subscript given at {letter!r} in the equation {equation!r}, subscripts must be in [a-zA-Z]"
                    )
                found.append(ord(letter))
        return found

    terms = [numbers(term) for term in left.split(",")]
    if len(terms) != len(operands):
        raise ShapeError(
            f"einsum(): {'more' if len(terms) < len(operands) else 'fewer'} operands were provided than specified in the equation: {len(operands)} for {equation!r}"
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
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not match the number of dimensions "
                f"({operand.ndim}) for operand {i}" + (" and no ellipsis was given" if -1 not in term else "")
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
    return opt_einsum.contract_path(text, *(tuple(o.shape) for o in operands), shapes=True)[0]


@composite()
def einsum(equation, *operands):
    """The sum of products of the operands' elements that an equation in Einstein's notation names.

    Letters name dimensions; those missing after "->" are summed over, equal ones within a term take the diagonal, "..."
    stands for dimensions that broadcast. Without "->" the output has the letters that occur once, in alphabetical order.
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
    path = _contraction_path(terms, output, operands) if len(operands) > 2 else [tuple(range(len(operands)))]
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
    return result if labels == output else result.permute([labels.index(l) for l in output])


def _check_labels(terms, output, operands) -> None:
    sizes: dict[int, int] = {}
    for i, (term, operand) in enumerate(zip(terms, operands)):
        for label, size in zip(term, operand.shape):
            if size != 1 and sizes.setdefault(label, size) != size:
                raise ShapeError(
                    f"einsum(): subscript {chr(label) if label >= 65 else label} has size {size} for operand {i} which does not "
                    f"broadcast with previously seen size {sizes[label]}"
                )
    for label in output:
        if output.count(label) > 1:
            raise ShapeError(f"einsum(): output subscript {chr(label)} appears more than once in the output")
        if not any(label in term for term in terms):
            raise ShapeError(
                f"einsum(): output subscript {chr(label)} does not appear in the equation for any input operand"
            )


@composite(out=True)
def chain_matmul(*matrices):
    """The product of several matrices, multiplied in the order that costs least.

    >>> import corefw as torch
    >>> torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1))
    tensor([[12.],
            [12.]])
    """
    for first, second in zip(matrices, matrices[1:]):
        _mm_shape(first.shape, second.shape)
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


def _cross_dim(input, other, dim: int | None) -> int:
    """The vectors' dimension: `dim`, or the first of size 3."""
    if len(input) != len(other):
        raise ShapeError(f"linalg.cross: inputs must have the same number of dimensions, got {len(input)} and {len(other)}")
    if dim is None:
        dim = next((i for i, size in enumerate(input) if size == 3), None)
        if dim is None:
            raise ShapeError(f"no dimension of size 3 in input of shape {list(input)}")
    if len(input) == 0 or input[dim] != 3 or other[dim] != 3:
        raise ShapeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {list(input)} and {list(other)}")
    return dim


def _cross_shape(input, other, dim):
    _cross_dim(input, other, dim)
    return broadcast(input, other)


@composite(dtype=promote.without("bool"), shape=_cross_shape, out=True)
def cross(input, other, dim: Dim | None = None):
    """The cross product of vectors of length 3.

    Args:
        input: shape with 3 elements along `dim`; broadcasts with `other`.
        other: likewise.
        dim: the vectors' dimension; None for the first of size 3.

    >>> import corefw as torch
    >>> torch.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]), dim=0)
    tensor([0, 0, 1])
    """
    dim = _cross_dim(input.shape, other.shape, dim)
    (a1, a2, a3), (b1, b2, b3) = input.unbind(dim), other.unbind(dim)
    return ops.stack([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1], dim)


@cross.gradient("input")
def _(grad, input_shape, other, dim):
    return ops.cross(other.conj(), grad, _cross_dim(input_shape, other.shape, dim))


@cross.gradient("other")
def _(grad, input, other_shape, dim):
    return ops.cross(grad, input.conj(), _cross_dim(input.shape, other_shape, dim))


# -- distances --------------------------------------------------------------------------------------------------------
@composite(method=False)
def cosine_similarity(x1, x2, dim: int = 1, eps: float = 1e-8):
    """The cosine of the angle between vectors, ``x1 · x2 / (max(‖x1‖, eps) * max(‖x2‖, eps))``.

    Args:
        x1: any shape that broadcasts with `x2`.
        x2: likewise.
        dim: the vectors' dimension.
        eps: the least norm to divide by.

    >>> import corefw as torch
    >>> torch.cosine_similarity(torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """
    x1, x2 = ops.broadcast_tensors(x1, x2)
    norms = (ops.vector_norm(x, 2.0, dim, True).clamp_min(eps) for x in (x1, x2))
    return ((x1 / next(norms)) * (x2 / next(norms))).sum(dim)


@composite(method=False)
def pairwise_distance(x1, x2, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
    """The p-norm of ``x1 - x2 + eps`` over the last dimension.

    Args:
        x1: shape (..., d), broadcasts with `x2`.
        x2: likewise.
        p: which norm.
        eps: added to the difference, so that equal vectors have a gradient.
        keepdim: keep the last dimension with size 1.

    >>> import corefw as torch
    >>> torch.pairwise_distance(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))
    tensor([5.0000])
    """
    return ops.vector_norm(x1 - x2 + eps, p, -1, keepdim)


@composite()
def cdist(x1, x2, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"):
    """The p-norm distances between each row of `x1` and each row of `x2`.

    Args:
        x1: shape (..., n, d).
        x2: shape (..., m, d).
        p: which norm.
        compute_mode: accepted for PyTorch's sake; differences are always taken exactly.

    Returns:
        shape (..., n, m).

    >>> import corefw as torch
    >>> torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"cdist: X1 and X2 must have rows of one length, got shapes {list(x1.shape)} and {list(x2.shape)}"
        )
    return ops.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1, False)


#: the functions that are (also) in `corefw.nn.functional`
FUNCTIONAL = ("bilinear", "cosine_similarity", "linear", "pairwise_distance")
