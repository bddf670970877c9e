"""What distributions share: parameters of one shape, probabilities and logits."""

from __future__ import annotations

from functools import cached_property

from corefw.autograd.grad_mode import enable_grad
from corefw.dispatch.declare import ops
from corefw.dtypes import finfo, get_default_dtype
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
