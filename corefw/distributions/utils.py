"""What distributions share: parameters of one shape, probabilities and logits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from corefw.autograd.grad_mode import enable_grad
from corefw.dispatch.declare import ops
from corefw.dtypes import dtype, finfo, get_default_dtype
from corefw.shapes import Size
from corefw.tensor import Tensor
from corefw.tensor_api import tensor


class lazy_property(cached_property):
    """A property computed when it is first asked for, always recorded."""

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with enable_grad():
            return super().__get__(instance, owner)


def broadcast_all(*values) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take dtype and device of the first tensor."""
    first = next((v for v in values if isinstance(v, Tensor)), None)
    for value in values:
        if not isinstance(value, Tensor | int | float):
            raise ValueError(f"Input arguments must all be tensors or numbers, not {type(value).__name__}")
    options = {"dtype": get_default_dtype()} if first is None else {"dtype": first.dtype, "device": first.device}
    return tuple(ops.broadcast_tensors(*(v if isinstance(v, Tensor) else tensor(v, **options) for v in values)))


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """The sum over the last `dims` dimensions."""
    return value if dims == 0 else value.sum(tuple(range(-dims, 0)))


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept off 0 and 1 by the dtype's precision."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The logarithms of probabilities, or their log-odds."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The probabilities of log-odds, or of logarithms up to a common constant."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def standard_normal(shape: Sequence[int], dtype: dtype, device: Any) -> Tensor:
    """Standard normal numbers, without gradient."""
    return ops.randn(*shape, dtype=dtype, device=device)


# PyTorch's names of them, which libraries import
_sum_rightmost, _standard_normal = sum_rightmost, standard_normal


class ProbsOrLogits:
    """The part of distributions with a parameter that is given as probabilities or as log-odds.

    Subclasses of `Distribution` have it as their first base; the other of the two is computed when it is asked for.
    """

    _is_binary = True  # otherwise the last dimension holds the probabilities of all categories, or their logarithms

    def _set_parameter(self, probs, logits, *others) -> tuple[Tensor, ...]:
        """Keep the given one, and return `others` broadcast with it."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given, *rest = broadcast_all(logits if probs is None else probs, *others)
        setattr(self, "logits" if probs is None else "probs", given)
        return tuple(rest)

    @lazy_property
    def logits(self):
        """The log-odds, or the logarithms of the probabilities."""
        return probs_to_logits(self.probs, self._is_binary)

    @lazy_property
    def probs(self):
        """The probabilities."""
        return logits_to_probs(self.logits, self._is_binary)

    @property
    def _parameter(self) -> Tensor:
        given = self.__dict__.get("probs")
        return self.logits if given is None else given

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._parameter.shape


class CategoryProbabilities(ProbsOrLogits):
    """The part of distributions with the probabilities of categories, given up to a factor, or their logarithms, given
    up to a constant."""

    _is_binary = False

    def _set_parameter(self, probs, logits, *others):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        if given.ndim < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if logits is None:
            self.probs = given / given.sum(-1, keepdim=True)
        else:
            self.logits = given - given.logsumexp(-1, keepdim=True)


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangular matrices whose elements up to the diagonal `diag`, row by row, the last dimension holds.

    >>> import corefw as torch
    >>> torch.distributions.utils.vec_to_tril_matrix(torch.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    size = round(((1 + 8 * vec.shape[-1]) ** 0.5 - (1 + 2 * diag)) / 2)
    result = vec.new_zeros((*vec.shape[:-1], size, size))
    rows, columns = ops.tril_indices(size, size, diag, device=vec.device)
    result[..., rows, columns] = vec
    return result


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of matrices up to the diagonal `diag`, row by row, in the last dimension.

    >>> import corefw as torch
    >>> torch.distributions.utils.tril_matrix_to_vec(torch.tensor([[1.0, 0.0], [2.0, 3.0]]))
    tensor([1., 2., 3.])
    """
    size = mat.shape[-1]
    rows, columns = ops.tril_indices(size, size, diag, device=mat.device)
    return mat[..., rows, columns]
