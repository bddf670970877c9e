"""Clipping of gradients, by their common norm or by value."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable
from functools import wraps
from typing import Any

from corefw.dispatch.declare import ops
from corefw.dispatch.out import refuse_read_only
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor

Tensors = Tensor | Iterable[Tensor]


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: Tensors) -> list[Tensor]:
    return [p.grad for p in _listed(parameters) if p.grad is not None]


def _by_place(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    """The tensors in groups of one device and dtype, each of which one kernel call serves."""
    groups: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.dispatch_key, []).append(tensor)
    return list(groups.values())


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all elements of all tensors, seen as one vector.

    Args:
        tensors: one tensor or several.
        norm_type: the order p of the norm; inf for the largest modulus.
        error_if_nonfinite: whether a norm that is NaN or infinite raises RuntimeError.
        foreach: accepted; there is one way to compute it.

    >>> import corefw as torch
    >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
    tensor(5.)
    """
    tensors, norm_type = _listed(tensors), float(norm_type)
    if not tensors:
        return ops.zeros(())
    with no_recording():
        norms = [ops.total_norm(group, norm_type) for group in _by_place(tensors)]
        if any(norm.__class__ is Tensor for norm in norms):  # beside gradients in parts
            norms = [norm.full_tensor() if hasattr(norm, "full_tensor") else norm for norm in norms]
        first = norms[0]
        total = first if len(norms) == 1 else ops.total_norm([n.to(first) for n in norms], norm_type)
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients of `parameters` by ``max_norm / (total_norm + 1e-6)`` where that is less than 1.

    Args:
        parameters: one parameter or several; those without a gradient are left out.
        max_norm: the largest norm allowed.
        total_norm: the gradients' common norm.
        foreach: accepted; there is one way to compute it.
    """
    with no_recording():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp_max(1.0)
        if gradients := _gradients(parameters):
            ops.scale_step(gradients, factor.to(gradients[0]))


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of `parameters` down so that their common norm is at most `max_norm`; returns what it was.

    Args:
        parameters: one parameter or several; those without a gradient are left out. The norm of parameters that lie in
            parts on several processes is that of all parts, and all processes call this.
        max_norm: the largest norm allowed.
        norm_type: the order p of the norm; inf for the largest modulus.
        error_if_nonfinite: whether a norm that is NaN or infinite raises RuntimeError.
        foreach: accepted; there is one way to compute it.

    >>> import corefw as torch
    >>> weight = torch.zeros(2, requires_grad=True)
    >>> weight.grad = torch.tensor([3.0, 4.0])
    >>> torch.nn.utils.clip_grad_norm_(weight, 1.0), weight.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    generated = isinstance(parameters, types.GeneratorType)
    parameters = _listed(parameters)
    if generated and not parameters:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    across = next((p.across for p in parameters if hasattr(p, "across")), None)
    total = get_total_norm(
        _gradients(parameters) if across is None else across.total_norm(parameters, float(norm_type)),
        norm_type,
        error_if_nonfinite,
        foreach,
    )
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


@wraps(clip_grad_norm_, assigned=("__annotations__",))
def clip_grad_norm(*arguments, **keywords) -> Tensor:
    """The deprecated name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*arguments, **keywords)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clip every element of the gradients of `parameters` to [-clip_value, clip_value].

    Args:
        parameters: one parameter or several; those without a gradient are left out.
        clip_value: the largest modulus allowed.
        foreach: accepted; there is one way to compute it.

    >>> import corefw as torch
    >>> weight = torch.zeros(2, requires_grad=True)
    >>> weight.grad = torch.tensor([-3.0, 0.5])
    >>> torch.nn.utils.clip_grad_value_(weight, 1.0)
    >>> weight.grad
    tensor([-1.0000,  0.5000])
    """
    clip_value = float(clip_value)
    with no_recording():
        gradients = _gradients(parameters)
        refuse_read_only("clip_grad_value_", *gradients)
        for gradient in gradients:
            gradient.clamp_(-clip_value, clip_value)


__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]
