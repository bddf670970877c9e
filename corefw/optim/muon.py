"""Muon."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

from corefw.dispatch.declare import ops
from corefw.dtypes import bfloat16
from corefw.optim.optimizer import Optimizer, options_of

#: by the name of an adjustment what the learning rate of a matrix is multiplied by, given its rows and columns
_ADJUSTMENTS = {
    "original": lambda rows, columns: sqrt(max(1.0, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * sqrt(max(rows, columns)),
}


class Muon(Optimizer):
    """Momentum, whose matrices are brought near to the next orthogonal ones by Newton and Schulz' iteration (Jordan et
    al. 2024, "Muon: an optimizer for hidden layers in neural networks"), in bfloat16.

    Args:
        params: matrices or groups of them; other parameters want another optimizer.
        lr: learning rate.
        weight_decay: each parameter shrinks by ``lr * weight_decay``.
        momentum: the buffer becomes ``momentum * b + (1 - momentum) * g``.
        nesterov: whether the step looks ahead, to ``momentum * b + (1 - momentum) * g`` of the new buffer.
        ns_coefficients: (a, b, c): an iteration is ``a X + (b X X^T + c (X X^T)^2) X``.
        eps: what a norm is at least, by which a matrix is divided first.
        ns_steps: how many iterations, less than 100.
        adjust_lr_fn: how the rate follows a matrix' shape: "original" (or None), by ``sqrt(max(1, rows / columns))``,
            or "match_rms_adamw", by ``0.2 * sqrt(max(rows, columns))`` (Moonshot 2025).

    >>> import corefw as torch
    >>> w = torch.ones(1, 1, requires_grad=True)
    >>> optimizer = torch.optim.Muon([w], lr=0.1, weight_decay=0)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> 0.8 < w.item() < 0.95
    True
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
        nesterov: bool = True, ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None,
    ):  # fmt: skip
        if adjust_lr_fn is not None and adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(
                f"Adjust learning rate function {adjust_lr_fn} is not supported: it is one of None, "
                + ", ".join(map(repr, _ADJUSTMENTS))
            )
        if ns_steps >= 100:
            raise ValueError(f"Number of steps must be less than 100 for computational efficiency, got {ns_steps}")
        if len(ns_coefficients) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        super().__init__(params, options_of(locals()))
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {tuple(p.shape)}"
                    )

    def update(self, group: dict[str, Any], params: list[Any]) -> None:
        lr, momentum = float(group["lr"]), group["momentum"]
        adjustment = _ADJUSTMENTS[group["adjust_lr_fn"] or "original"]
        for p, buffer in zip(params, self.states("momentum_buffer", params), strict=True):
            if p.is_complex():
                raise RuntimeError("Muon does not support complex parameters")
            buffer.lerp_(p._grad, 1 - momentum)
            change = p._grad.lerp(buffer, momentum) if group["nesterov"] else buffer
            change = _orthogonalized(change, group["ns_coefficients"], group["ns_steps"], group["eps"])
            p.mul_(1 - lr * group["weight_decay"])
            p.add_(change.to(p.dtype), alpha=-lr * adjustment(*p.shape))


def _orthogonalized(matrix, coefficients, steps: int, eps: float):
    """U @ V.T of the matrix U @ S @ V.T, but for factors between about 0.7 and 1.2."""
    a, b, c = coefficients
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.to(bfloat16)
    x = x.t() if tall else x
    x = x / x.norm().clamp_min(eps)
    for _ in range(steps):
        gram = x.matmul(x.t())
        x = ops.addmm(x, ops.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if tall else x
