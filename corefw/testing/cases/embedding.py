"""Embeddings."""

import numpy as np

from corefw.testing.case import Case, uniform


def pick_rows(weight, indices, padding_idx=-1, scale_grad_by_freq=False):
    out = np.zeros((*indices.shape, weight.shape[1]), weight.dtype)
    for position, row in np.ndenumerate(indices):
        out[position] = weight[row]
    return out


def functional_embedding(input, weight, padding_idx=None, scale_grad_by_freq=False):
    return pick_rows(weight, input)


def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    table = np.zeros((num_weights, grad_output.shape[-1]), grad_output.dtype)
    for position, row in np.ndenumerate(indices):
        if row != padding_idx:
            table[row] += grad_output[position] / ((indices == row).sum() if scale_grad_by_freq else 1)
    return table


OPTIONS = ({}, {"padding_idx": 2}, {"scale_grad_by_freq": True, "padding_idx": 0})


def tables(rng, numpy_dtype, several=OPTIONS):
    """Tables of 4 rows with positions of several shapes, and options."""
    for shape, index in (((7,), np.int64), ((2, 3), np.int32), ((), np.int64), ((0,), np.int64)):
        for options in several:
            weight = uniform(rng, -3, 3, (4, 3), numpy_dtype)
            yield weight, np.asarray(rng.integers(0, 4, shape)).astype(index), options


def picks(*several, order=1):
    """Calls of a table with positions (or the other way round) with the options."""

    def make(rng, numpy_dtype):
        return [([w, i][::order], options) for w, i, options in tables(rng, numpy_dtype, several)]

    return make


def backward_calls(rng, numpy_dtype):
    return [
        (
            [rng.normal(size=(*indices.shape, 3)).astype(numpy_dtype), indices],
            {"num_weights": 4, "padding_idx": -1, "scale_grad_by_freq": False} | options,
        )
        for _, indices, options in tables(rng, numpy_dtype)
    ]


# The options change the gradient on purpose, so that it is no derivative: tests/test_embedding.py compares it.
CASES = (
    Case("embedding", pick_rows, make=picks({}), wide=False),
    Case("embedding", pick_rows, make=picks(*OPTIONS), wide=False, gradient=False),
    Case("embedding_dense_backward", embedding_dense_backward, make=backward_calls),
    Case("functional_embedding", functional_embedding, make=picks({}, order=-1)),
    Case("functional_embedding", functional_embedding, make=picks(*OPTIONS, order=-1), gradient=False),
    Case("pick_rows", pick_rows, make=picks({}), wide=False),
    Case("pick_rows", pick_rows, make=picks(*OPTIONS), wide=False, gradient=False),
)
