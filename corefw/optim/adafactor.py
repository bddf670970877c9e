"""Adafactor."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

from corefw.dispatch.declare import ops
from corefw.dtypes import finfo
from corefw.optim.optimizer import Optimizer, options_of
from corefw.tensor import Tensor


class Adafactor(Optimizer):
    """Adafactor (Shazeer & Stern 2018), without its momentum: of the mean square of a matrix' gradient only the means
    of rows and columns are kept, whose product stands for it.

    In step t the mean squares move by ``t ** beta2_decay``; the update ``g / sqrt(mean square)`` is divided by its root
    mean square over `d` where that is greater than 1, and multiplied by
    ``min(lr, 1 / sqrt(t)) * max(eps[1], root mean square of p)``.

    Args:
        params: parameters or groups of them, real ones.
        lr: the greatest relative step size.
        beta2_decay: the exponent of the mean squares' decay, at most 0.
        eps: what mean squares are at least, squared (None: the epsilon of the dtype), and the scale of a parameter.
        d: the threshold of clipping, at least 1.
        weight_decay: each parameter shrinks by ``lr * weight_decay``.
        maximize: ascend instead.
        foreach: accepted.

    >>> import corefw as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> torch.optim.Adafactor([w], lr=0.1).step(w.sum().backward)
    >>> w.data
    tensor([0.9000, 0.9000])
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
        foreach: bool | None = None, maximize: bool = False,
    ):  # fmt: skip
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        for number, value in enumerate(eps, 1):
            if value is not None and not value >= 0:
                raise ValueError(f"epsilon{number} should be >= 0 but is: {value}")
        if not d >= 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        super().__init__(params, options_of(locals()))

    def initial(self, name: str, parameter: Tensor) -> Any:
        shape = list(parameter.shape)
        if name == "row_var":
            shape[-1] = 1
        elif name == "col_var":
            shape[-2] = 1
        else:
            return super().initial(name, parameter)
        return ops.zeros(tuple(shape), dtype=parameter.dtype, device=parameter.device)

    def update(self, group: dict[str, Any], params: list[Any]) -> None:
        lr, (least, least_scale) = float(group["lr"]), group["eps"]
        for p in params:
            if p.is_complex():
                raise RuntimeError("Adafactor does not support complex parameters")
            gradient = -p._grad if group["maximize"] else p._grad
            (step,) = self.states("step", [p])
            step += 1
            t, epsilon = step.item(), finfo(p.dtype).eps if least is None else least
            scale = max(least_scale, _root_mean_square(p)) * min(lr, 1 / sqrt(t))
            if group["weight_decay"]:
                p.mul_(1 - lr * group["weight_decay"])
            squares = self._mean_squares(p, gradient, t ** group["beta2_decay"], epsilon)
            change = squares.clamp_min(epsilon * epsilon).rsqrt() * gradient
            p.add_(change, alpha=-scale / max(1.0, _root_mean_square(change) / group["d"]))

    def _mean_squares(self, p, gradient, weight: float, epsilon: float):
        """The mean square of the gradient with a new one of a `weight`."""
        if p.ndim < 2:
            (variance,) = self.states("variance", [p])
            return variance.lerp_(gradient * gradient, weight)
        (rows,), (columns,) = (self.states(name, [p]) for name in ("row_var", "col_var"))
        squares = gradient * gradient
        rows.lerp_(squares.mean(-1, keepdim=True), weight)
        columns.lerp_(squares.mean(-2, keepdim=True), weight)
        return rows.matmul(columns) / rows.mean(-2, keepdim=True).clamp_min(epsilon)


def _root_mean_square(tensor) -> float:
    return tensor.norm().item() / sqrt(tensor.numel()) if tensor.numel() else 0.0
