"""The rules by which primitives compute on all examples of a batch at once.

A rule is given the op on the device below, the number of examples, and the kernel's arguments; tensors have the
examples along their first dimension, or 1 that stands for all.
"""

from __future__ import annotations

from math import prod

from corefw import dtypes
from corefw.dispatch.batching.arrays import array_dims, levels
from corefw.dispatch.batching.calls import aligned, data_dependent, dims_shifted, full, one_by_one, rule
from corefw.dispatch.registry import ops


def _dims(tensor) -> int:
    """The number of dimensions of an example."""
    return array_dims(tensor.array) - 1


# -- along dimensions -------------------------------------------------------------------------------------------------
@rule("sum", "mean", "nansum", "amax", "amin", "logsumexp", "all", "any", "count_nonzero")
def _reduced(call, examples, input, dim, *rest):
    n = _dims(input)
    if not n:
        return call(input.unsqueeze(1), (1,), *(False for _ in rest))
    dim = (dim,) if isinstance(dim, int) else dim
    return call(input, tuple(range(1, n + 1)) if not dim else dims_shifted(dim), *rest)


@rule("vector_norm")
def _norm(call, examples, input, ord, dim, keepdim):
    return _reduced(lambda x, d, k: call(x, ord, d, k), examples, input, dim, keepdim)


@rule("prod", "argmax", "argmin")
def _reduced_along_one(call, examples, input, dim, keepdim):
    n = _dims(input)
    if dim is not None and n:
        return call(input, dim + 1, keepdim)
    result = call(input.reshape(input.shape[0], prod(input.shape[1:])), 1, False)
    return result.reshape(-1, *(1,) * n) if keepdim else result


def _along(position):
    """The rule of ops whose argument at `position` is a dimension, which the result may lack."""

    def along(call, examples, input, *rest):
        given, n = list(rest), _dims(input)
        given[position] = dims_shifted((given[position],))[0] if n else 1
        if n:
            return call(input, *given)
        found = call(input.unsqueeze(1), *given)
        flat = [one.squeeze(1) if array_dims(one.array) > 1 else one for one in _as_tuple(found)]
        return tuple(flat) if isinstance(found, tuple) else flat[0]

    return along


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


rule("cumsum", "cumprod", "cummax", "cummin", "sort", "max_dim", "min_dim", "median_dim", "nanmedian_dim", "mode",
     "softmax", "log_softmax", "logcumsumexp")(_along(0))  # fmt: skip
rule("topk", "kthvalue")(_along(1))


@rule("softmax_backward", "log_softmax_backward")
def _softmax_backward(call, examples, grad, output, dim):
    if not _dims(output):
        return call(grad.unsqueeze(1), output.unsqueeze(1), 1).squeeze(1)
    return call(full(grad, examples), full(output, examples), dim + 1)


@rule("flip")
def _flip(call, examples, input, dims):
    return call(input, tuple(d % max(_dims(input), 1) + 1 for d in dims)) if dims else input.clone()


@rule("fft_c2c", "fft_r2c", "fft_c2r")
def _fourier(call, examples, input, dim, *rest):
    n = _dims(input)
    return call(input, tuple(d % n + 1 for d in dim), *rest)


# -- products and solutions -------------------------------------------------------------------------------------------
@rule("matmul")
def _matmul(call, examples, input, other):
    left, right = _dims(input) == 1, _dims(other) == 1
    if not _dims(input) or not _dims(other):
        return one_by_one(call, examples, input, other)
    if right:
        other = other.unsqueeze(-1)
    if left:
        input = input.unsqueeze(1)
    if other.shape[0] == 1 and _dims(other) == 2:
        result = call(input, other[0])  # one product with all rows
    else:
        result = call(*aligned(input, other))
    if right:
        result = result.squeeze(-1)
    return result.squeeze(-1 if right else -2) if left else result


@rule("solve_matrices")
def _solve(call, examples, A, B):
    return call(*(full(t, examples) for t in aligned(A, B)))


@rule("linalg_inv", "linalg_det", "linalg_slogdet", "cholesky_factor", "linalg_eigh", "linalg_eig", "svd_factors",
      "qr_factors", "linalg_eigvalsh", "linalg_eigvals", "singular_values", "tril", "triu")  # fmt: skip
def _on_matrices(call, examples, A, *rest):
    return call(A, *rest)


# -- joining, copies, places ------------------------------------------------------------------------------------------
@rule("cat")
def _cat(call, examples, tensors, dim):
    return call([full(t, examples) for t in tensors], dims_shifted((dim,))[0])


@rule("stack")
def _stack(call, examples, tensors, dim):
    return call([full(t, examples) for t in tensors], dims_shifted((dim,))[0])


@rule("repeat")
def _repeat(call, examples, input, repeats):
    missing = len(repeats) - _dims(input)
    shape = input.shape
    return call(input.reshape(shape[0], *(1,) * missing, *shape[1:]), (1, *repeats))


@rule("clone")
def _clone(call, examples, input):
    return call(full(input, examples).contiguous() if input.shape[0] != examples else input)


@rule("clone_in_order")
def _clone_in_order(call, examples, input, order):
    return call(full(input, examples), (0, *(d + 1 for d in order)))


@rule("unsafe_view")
def _unsafe_view(call, examples, input, size):
    return call(input, (input.shape[0], *size))


@rule("cast")
def _cast(call, examples, input, dtype, copy):
    return call(input, dtype, copy)


@rule("constant_pad_nd")
def _pad(call, examples, input, pad, value):
    return call(input, pad, value)


@rule("gather")
def _gather(call, examples, input, dim, index, *rest):
    if not _dims(input) or _dims(input) != _dims(index):
        return one_by_one(call, examples, input, dim, index, *rest)
    return call(full(input, examples), dim + 1, full(index, examples), *rest)


@rule("scatter_src", "scatter_add", "scatter_value")
def _scatter(call, examples, input, dim, index, source, *rest):
    if not _dims(input) or _dims(input) != _dims(index):
        return one_by_one(call, examples, input, dim, index, source, *rest)
    source = full(source, examples) if hasattr(source, "array") else source
    return call(full(input, examples), dim + 1, full(index, examples), source, *rest)


@rule("index_select")
def _index_select(call, examples, input, dim, index):
    if index.shape[0] != 1 or not _dims(input):
        return one_by_one(call, examples, input, dim, index)
    return call(input, dim + 1, index[0])


@rule("index")
def _index(call, examples, input, indices):
    given = [one for one in indices if one is not None]
    if any(one.dtype is dtypes.bool_ for one in given):
        raise data_dependent("index with a mask")
    if all(one.shape[0] == 1 for one in given):
        return call(input, [None, *(None if one is None else one[0] for one in indices)])
    return one_by_one(call, examples, input, indices)


@rule("basic_index_backward")
def _basic_index_backward(call, examples, grad, shape, key):
    return call(full(grad, examples), (examples, *shape), (slice(None), *key))


@rule("diagonal_backward")
def _diagonal_backward(call, examples, grad, shape, offset, dim1, dim2):
    return call(full(grad, examples), (examples, *shape), offset, *dims_shifted((dim1, dim2)))


# -- by size ----------------------------------------------------------------------------------------------------------
@rule("zeros_at", "full_at")
def _filled(call, examples, size, *rest):
    return call((examples, *size), *rest)


@rule("arange_at", "linspace_at", "eye_at")
def _the_same(call, examples, *values):
    return full(call(*values).unsqueeze(0), examples).contiguous()


# -- batches of images ------------------------------------------------------------------------------------------------
def _folded(tensor):
    """The examples' batches as one."""
    shape = tensor.shape
    return tensor.reshape(shape[0] * shape[1], *shape[2:])


def _unfolded(result, count):
    found = [one.reshape(count, one.shape[0] // count, *one.shape[1:]) for one in _as_tuple(result)]
    return tuple(found) if isinstance(result, tuple) else found[0]


@rule("max_pool", "adaptive_max_pool", "avg_pool", "adaptive_avg_pool", "im2col", "col2im", "resample")
def _on_images(call, examples, input, *rest):
    if 0 in input.shape[:2]:
        return one_by_one(call, examples, input, *rest)
    return _unfolded(call(_folded(input), *rest), input.shape[0])


@rule("avg_pool_backward", "adaptive_avg_pool_backward")
def _pool_backward(call, examples, grad, shape, *rest):
    count = grad.shape[0]
    return _unfolded(call(_folded(grad), (count * shape[0], *shape[1:]), *rest), count)


@rule("convolution")
def _convolution(call, examples, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    window = (stride, padding, dilation, transposed, output_padding)
    if weight.shape[0] == 1 and (bias is None or bias.shape[0] == 1):
        return _unfolded(
            call(_folded(input), weight[0], None if bias is None else bias[0], *window, groups), input.shape[0]
        )
    input, weight = full(input, examples), full(weight, examples)
    batch = input.shape[1]
    beside = input.transpose(0, 1).reshape(batch, -1, *input.shape[3:])  # (N, examples x channels, ...)
    several = None if bias is None else full(bias, examples).reshape(-1)
    result = call(beside, _folded(weight), several, *window, examples * groups)
    return result.reshape(batch, examples, -1, *result.shape[2:]).transpose(0, 1)


@rule("convolution_weight")
def _convolution_weight(call, examples, input, output_grad, kernel_size, stride, padding, dilation, groups):
    input, output_grad = full(input, examples), full(output_grad, examples)
    beside, grads = (t.transpose(0, 1).reshape(t.shape[1], -1, *t.shape[3:]) for t in (input, output_grad))
    result = call(beside, grads, kernel_size, stride, padding, dilation, examples * groups)
    return result.reshape(examples, -1, *result.shape[1:])


rule("isin")(one_by_one)


# -- random numbers ---------------------------------------------------------------------------------------------------
def _differ() -> bool:
    return bool(levels.running) and levels.running[max(levels.running)].randomness == "different"


@rule("uniform_at", "integers_at", "normal_at", "exponential_at", "cauchy_at", "log_normal_at", "geometric_at")
def _drawn(call, examples, size, *rest):
    return call((examples, *size), *rest) if _differ() else _the_same(call, examples, size, *rest)


@rule("bernoulli_at")
def _bernoulli(call, examples, p, size, seed, offset, dtype):
    if not _differ():
        return one_by_one(call, examples, p, size, seed, offset, dtype)
    p = p.reshape(p.shape[0], *(1,) * (len(size) - _dims(p)), *p.shape[1:])
    return call(p, (examples, *size), seed, offset, dtype)


@rule("permutation_at")
def _permutations(call, examples, n, seed, offset, dtype):
    apart = -(-n * 2 // 4) if _differ() else 0
    return ops.stack([call(n, seed, offset + i * apart, dtype) for i in range(examples)])


@rule("multinomial_at")
def _multinomial(call, examples, input, num_samples, replacement, seed, offset):
    weights = full(input, examples)
    apart = -(-prod(weights.shape[1:-1]) * max(num_samples, weights.shape[-1]) * 2 // 4) if _differ() else 0
    rows = [call(weights[i], num_samples, replacement, seed, offset + i * apart) for i in range(examples)]
    return ops.stack(rows)
