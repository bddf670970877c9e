"""Resilient backpropagation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from corefw.dispatch.declare import ops
from corefw.optim.optimizer import Optimizer, as_reals, options_of, refuse_capturable
from corefw.tensor import Tensor


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller & Braun 1993): each element has a step size of its own, which grows while
    its gradient keeps its sign and shrinks when that changes; then the element stays for one step.

    Args:
        params: parameters or groups of them.
        lr: the first step size.
        etas: the factors by which step sizes shrink and grow, ``0 < etas[0] < 1 < etas[1]``.
        step_sizes: the least and the greatest step size.
        capturable: refused if true.
        maximize: ascend instead.
        foreach, differentiable: accepted.

    >>> import corefw as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> torch.optim.Rprop([w], lr=0.1).step(w.sum().backward)
    >>> w.data
    tensor([0.9000, 0.9000])
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        refuse_capturable("Rprop", capturable)
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, options_of(locals()))

    def initial(self, name: str, parameter: Tensor) -> Any:
        if name != "step_size":
            return super().initial(name, parameter)
        lr = float(self.defaults["lr"])
        return ops.full_like(parameter, complex(lr, lr) if parameter.is_complex() else lr).detach()

    def update(self, group: dict[str, Any], params: list[Any]) -> None:
        (shrink, grow), (least, greatest) = group["etas"], group["step_sizes"]
        steps, before, sizes = (self.states(name, params) for name in ("step", "prev", "step_size"))
        for p, step, *state in zip(params, steps, before, sizes, strict=True):
            step += 1
            p, gradient, previous, size = as_reals(p, p._grad, *state)
            gradient = -gradient if group["maximize"] else gradient
            agreement = gradient * previous
            kept, changed = agreement > 0, agreement < 0
            size.mul_(ops.ones_like(size).masked_fill(kept, grow).masked_fill(changed, shrink)).clamp_(least, greatest)
            gradient = gradient.masked_fill(changed, 0)
            p.addcmul_(gradient.sign(), size, value=-1)
            previous.copy_(gradient)
