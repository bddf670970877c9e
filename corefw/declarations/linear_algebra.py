"""Products of vectors and matrices, with what is built from them: linear maps and distances."""

from __future__ import annotations

from math import prod

from corefw import dtypes
from corefw.declarations._shared.batching import example_dims
from corefw.dispatch.batching.calls import aligned, one_by_one
from corefw.dispatch.declare import Dim, composite, ops, primitive
from corefw.dispatch.numbers import checked_factor, fitting_number
from corefw.dispatch.promotion import result_type
from corefw.dispatch.rules import exponents, numbers, promote, real_floats, same
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import broadcast


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
                f"inconsistent tensor size, expected tensor [{input[0]}] and src [{other[0]}] to have the same number "
                f"of elements, but got {input[0]} and {other[0]} elements respectively"
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


@primitive(
    dtype=numbers,
    shape=matmul_shape,
    out=True,
    public="corefw Tensor linalg",
    grad_name=lambda shape: ("Dot", "Mv", "Mm", "Bmm")[min(len(shape), 3)],
)
def matmul(input, other):
    """The matrix product ``input @ other``.

    Two vectors give their dot product, a matrix and a vector their matrix-vector product; dimensions before the last
    two are a batch and broadcast.

    Args:
        input: shape (..., n, k) or (k,).
        other: shape (..., k, m) or (k,).

    Returns:
        shape (..., n, m), without n or m where that argument is a vector.

    Raises:
        RuntimeError: the inner sizes differ.

    >>> import corefw as torch
    >>> torch.matmul(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """


@matmul.batching
def matmul_batching(call, examples, input, other):
    left, right = example_dims(input) == 1, example_dims(other) == 1
    if not example_dims(input) or not example_dims(other):
        return one_by_one(call, examples, input, other)  # which raises
    if right:
        other = other.unsqueeze(-1)
    if left:
        input = input.unsqueeze(1)
    if other.shape[0] == 1 and example_dims(other) == 2:
        result = call(input, other[0])  # one product with all rows
    else:
        result = call(*aligned(input, other))
    if right:
        result = result.squeeze(-1)
    return result.squeeze(-1 if right else -2) if left else result


@matmul.gradient("input")
def matmul_vjp_input(grad, input_shape, other):
    if other.ndim == 1:
        return grad.unsqueeze(-1) * other.conj()
    if len(input_shape) == 1:
        return ops.matmul_adjoint(grad.unsqueeze(-2), other).squeeze(-2)
    return ops.matmul_adjoint(grad, other)


def _rows(tensor):
    """The last dimension's vectors as the rows of one matrix."""
    ndim = tensor.array.ndim
    if ndim == 2:
        return tensor
    return tensor.unsqueeze(0) if ndim == 1 else tensor.flatten(0, -2)


@matmul.gradient("other")
def matmul_vjp_other(grad, input, other_shape):
    if input.ndim == 1:
        return input.conj().unsqueeze(-1) * grad.unsqueeze(-2) if len(other_shape) > 1 else input.conj() * grad
    if len(other_shape) == 1:
        return ops.adjoint_matmul(_rows(input), grad.flatten().unsqueeze(-1)).squeeze(-1)
    if len(other_shape) == 2 and input.ndim > 2:  # one large product instead of a batch that is summed
        return ops.adjoint_matmul(_rows(input), _rows(grad))
    return ops.adjoint_matmul(input, grad)


matmul.linear("input", "other")


def _swapped(shape):
    return (*shape[:-2], shape[-1], shape[-2])


@composite(dtype=numbers, shape=lambda input, other: matmul_shape(input, _swapped(other)), public="")
def matmul_adjoint(input, other):
    """The product ``input @ other.mH`` of (batches of) matrices: how the left factor's gradient is computed."""
    return input.matmul(other.transpose(-2, -1).conj())


matmul_adjoint.gradients(
    input=lambda grad, other: ops.matmul(grad, other),
    other=lambda grad, input: ops.adjoint_matmul(grad, input),
)


@composite(dtype=numbers, shape=lambda input, other: matmul_shape(_swapped(input), other), public="")
def adjoint_matmul(input, other):
    """The product ``input.mH @ other`` of (batches of) matrices: how the right factor's gradient is computed."""
    return input.transpose(-2, -1).conj().matmul(other)


adjoint_matmul.gradients(
    input=lambda grad, other: ops.matmul_adjoint(other, grad),
    other=lambda grad, input: ops.matmul(input, grad),
)


def _mm_shape(input, mat2):
    for name, shape in (("self", input), ("mat2", mat2)):
        if len(shape) != 2:
            raise ShapeError(f"{name} must be a matrix, got shape {list(shape)}")
    _check_matrices(input, mat2)
    return input[0], mat2[1]


@composite(dtype=numbers, shape=_mm_shape, out=True)
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


@composite(dtype=same.without("bool", "floating", "complex").giving(exponents), shape=_mm_shape, public="corefw")
def _int_mm(input, mat2):
    """The product of two matrices of int8, summed in int32.

    Args:
        input: int8, shape (n, k).
        mat2: int8, shape (k, m).

    Returns:
        int32, shape (n, m). Sums beyond int32 wrap around.

    >>> import corefw as torch
    >>> torch._int_mm(torch.tensor([[100, 100]], dtype=torch.int8), torch.tensor([[100], [100]], dtype=torch.int8))
    tensor([[20000]], dtype=torch.int32)
    """
    _mm_shape(input.shape, mat2.shape)
    if input.dtype is not dtypes.int8 or mat2.dtype is not dtypes.int8:
        raise DtypeError(f"_int_mm: expected two matrices of int8, got {input.dtype} and {mat2.dtype}")
    return input.to(dtypes.int32).matmul(mat2.to(dtypes.int32))


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


@composite(dtype=numbers, shape=_bmm_shape, out=True)
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


for _product in (mm, bmm):
    _product.gradients(
        input=lambda grad, mat2: ops.matmul_adjoint(grad, mat2),
        mat2=lambda grad, input: ops.adjoint_matmul(input, grad),
    )
    _product.linear("input", "mat2")


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
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    return ops.tensordot(input, other, ([-1], [-1]))


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
def _check_expands(name: str, what: str, shape, target) -> None:
    """Refuse `what`, which is added to a result of shape `target`, unless it expands to that."""
    if len(shape) > len(target) or any(n not in (1, m) for n, m in zip(reversed(shape), reversed(target))):
        raise ShapeError(
            f"{name}: {what} of shape {list(shape)} cannot be expanded to the result's shape {list(target)}"
        )


def _added_shape(name: str, product_shape):
    def shape(input, mat1, mat2, *scales):
        product = product_shape(mat1, mat2)
        _check_expands(name, "input", input, product)
        return product

    return shape


def _scaled(tensor, factor):
    return tensor if factor == 1 else tensor * factor


def _scaled_sum(input, product, beta, alpha):
    """``beta * input + alpha * product``; a beta of zero ignores `input` and NaN in it."""
    input = _scaled(input.expand(product.shape), beta)
    product = _scaled(product, alpha)
    return product if beta == 0 else input + product


@composite(dtype=numbers, shape=_added_shape("addmm", _mm_shape), inplace=True, out=True)
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


addmm.gradients(
    input=lambda grad, beta: _scaled(grad, beta.conjugate()),
    mat1=lambda grad, mat2, alpha: _scaled(ops.matmul_adjoint(grad, mat2), alpha.conjugate()),
    mat2=lambda grad, mat1, alpha: _scaled(ops.adjoint_matmul(mat1, grad), alpha.conjugate()),
)


@composite(dtype=numbers, shape=_added_shape("baddbmm", _bmm_shape), inplace=True, out=True)
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


baddbmm.gradients(
    input=lambda grad, beta: _scaled(grad, beta.conjugate()),
    batch1=lambda grad, batch2, alpha: _scaled(ops.matmul_adjoint(grad, batch2), alpha.conjugate()),
    batch2=lambda grad, batch1, alpha: _scaled(ops.adjoint_matmul(batch1, grad), alpha.conjugate()),
)


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
    common = result_type(input, vec1, vec2)
    beta, alpha = (
        fitting_number(checked_factor("addr", label, factor, common), common)
        for label, factor in (("beta", beta), ("alpha", alpha))
    )
    product = vec1.unsqueeze(1) * vec2
    input = input.expand(product.shape)
    if beta == 0:
        return _scaled(product, alpha).to(common)
    return ops.add(_scaled(input, beta), product) if alpha == 1 else ops.add(_scaled(input, beta), product, alpha=alpha)


# -- linear maps ------------------------------------------------------------------------------------------------------
def _linear_shape(input, weight, bias=None):
    if len(weight) not in (1, 2):
        raise ShapeError(f"linear: weight must have 1 or 2 dimensions, got shape {list(weight)}")
    shape = matmul_shape(input, tuple(reversed(weight)))
    if bias is not None:
        _check_expands("linear", "bias", bias, shape)
    return shape


def _linear_name(weight_shape, bias_shape):
    """That of the product, whose `bias` is added on the way."""
    if weight_shape is not None and len(weight_shape) == 1:
        return "Mv"
    return "Mm" if bias_shape is None else "Addmm"


@composite(dtype=numbers, shape=_linear_shape, public="nn.functional", grad_name=_linear_name)
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
def linear_vjp_input(grad, weight):
    weight = weight.conj() if weight.dispatch_key.dtype.is_complex else weight
    return ops.matmul(grad, weight) if weight.array.ndim == 2 else grad.unsqueeze(-1) * weight


@linear.gradient("weight", "bias", saved_for=("weight",))
def linear_vjp_weight(grad, input, weight_shape, bias_shape, needs):
    of_weight, of_bias = needs
    if not of_weight:
        return None, grad
    if len(weight_shape) == 1:
        return input.conj() * grad.unsqueeze(-1), grad
    is_complex = grad.dispatch_key.dtype.is_complex
    if of_bias and bias_shape == weight_shape[:1] and not is_complex:
        return ops.linear_gradients(grad, input)
    product = ops.adjoint_matmul(_rows(grad), _rows(input))
    return ops.conj_physical(product) if is_complex else product, grad


@linear.tangent
def linear_jvp(tangent_input, tangent_weight, tangent_bias, input, weight):
    terms = [] if tangent_bias is None else [tangent_bias]
    if tangent_input is not None:
        terms.append(ops.linear(tangent_input, weight))
    if tangent_weight is not None:
        terms.append(ops.linear(input, tangent_weight))
    return sum(terms)


def _gradients_shapes(gradient, input):
    for name, shape in (("gradient", gradient), ("input", input)):
        if not shape or shape[:-1] != gradient[:-1]:
            raise ShapeError(
                f"linear_gradients: expected {name} of shape {[*gradient[:-1], 'features']}, got {list(shape)}"
            )
    return (gradient[-1], input[-1]), gradient[-1:]


@composite(
    dtype=real_floats.giving(real_floats, real_floats),
    shape=_gradients_shapes,
    outputs=("grad_weight", "grad_bias"),
    public="",
)
def linear_gradients(gradient, input):
    """The gradients of the weight, a matrix, and of the bias of `linear`."""
    _gradients_shapes(gradient.shape, input.shape)
    rows = _rows(gradient)
    return ops.adjoint_matmul(rows, _rows(input)), rows.sum(0)


@linear_gradients.gradient("gradient", "input")
def linear_gradients_vjp(grad_grad_weight, grad_grad_bias, gradient, input):
    """The gradients are GᵀX and Gᵀ1; for cotangents A and b of them, the scalar is <G, X Aᵀ + 1 bᵀ>."""
    if grad_grad_weight is None:
        return grad_grad_bias.expand(gradient.shape), None
    return ops.linear(input, grad_grad_weight, grad_grad_bias), ops.matmul(gradient, grad_grad_weight)


@composite(public="corefw nn.functional")
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
    if not (input1.ndim and input2.ndim):
        raise ShapeError(f"bilinear(): vectors expected, got inputs of {input1.ndim} and {input2.ndim} dimensions")
    if input1.shape[:-1] != input2.shape[:-1]:
        raise ShapeError(
            "bilinear(): input batch dimensions do not match: got "
            f"{list(input1.shape[:-1])} and {list(input2.shape[:-1])}"
        )
    for position, tensor in ((1, input1), (2, input2)):
        if weight.ndim != 3 or tensor.shape[-1] != weight.shape[position]:
            raise ShapeError(
                f"bilinear(): input{position} size does not match weight size: got {tensor.shape[-1]} but expected "
                f"{list(weight.shape)[position : position + 1]} of a weight of shape {list(weight.shape)}"
            )
    out_features, in1, in2 = weight.shape
    if bias is not None and tuple(bias.shape) != (out_features,):
        raise ShapeError(
            f"bilinear(): bias size does not match weight size: got {list(bias.shape)} but expected [{out_features}]"
        )
    batch = input1.shape[:-1]
    left = _rows(input1).mm(weight.transpose(0, 1).reshape(in1, out_features * in2))
    left = left.reshape(left.shape[0], out_features, in2)
    product = left.matmul(_rows(input2).unsqueeze(-1)).reshape(*batch, out_features)
    return product if bias is None else product + bias


# -- vectors in space ------------------------------------------------------------------------------------------------
def _cross_dim(input, other, dim: int | None) -> int:
    """The vectors' dimension: `dim`, or the first of size 3."""
    if len(input) != len(other):
        raise ShapeError(
            f"linalg.cross: inputs must have the same number of dimensions, got {len(input)} and {len(other)}"
        )
    if dim is None:
        dim = next((i for i, size in enumerate(input) if size == 3), None)
        if dim is None:
            raise ShapeError(f"no dimension of size 3 in input of shape {list(input)}")
    if len(input) == 0 or input[dim] != 3 or other[dim] != 3:
        raise ShapeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {list(input)} and {list(other)}"
        )
    return dim


def _cross_shape(input, other, dim):
    _cross_dim(input, other, dim)
    return broadcast(input, other)


@composite(dtype=promote.without("bool"), shape=_cross_shape, out=True, grad_name="LinalgCross")
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
def cross_vjp_input(grad, input_shape, other, dim):
    return ops.cross(other.conj(), grad, _cross_dim(input_shape, other.shape, dim))


@cross.gradient("other")
def cross_vjp_other(grad, input, other_shape, dim):
    return ops.cross(grad, input.conj(), _cross_dim(input.shape, other_shape, dim))


# -- distances --------------------------------------------------------------------------------------------------------
@composite(public="corefw nn.functional", other_names=True)
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
    if eps < 0:
        raise ShapeError(f"cosine_similarity: eps must be non-negative, got: {eps}")
    x1, x2 = ops.broadcast_tensors(x1, x2)
    common = result_type(x1, x2)
    if not common.is_floating_point:
        raise DtypeError(
            f"cosine_similarity: expected common dtype to be floating point, yet common dtype is {common.title}"
        )
    x1, x2 = x1.to(common), x2.to(common)
    norms = (ops.vector_norm(x, 2.0, dim, True).clamp_min(eps) for x in (x1, x2))
    return ((x1 / next(norms)) * (x2 / next(norms))).sum(dim)
