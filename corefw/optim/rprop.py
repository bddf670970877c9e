"""Resilient backpropagation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corefw.dispatch.declare import ops
from corefw.optim.optimizer import Optimizer, as_reals, options_of, refuse_capturable
from corefw.tensor import Tensor


def rprop(
    params: Sequence[Tensor], grads: Sequence[Tensor], prevs: Sequence[Tensor], step_sizes: Sequence[Tensor],
    state_steps: Sequence[Tensor], foreach: bool | None = None, capturable: bool = False, maximize: bool = False,
    differentiable: bool = False, has_complex: bool = False, *, step_size_min: float, step_size_max: float,
    etaminus: float, etaplus: float,
) -> None:  # fmt: skip
    """A step of `Rprop` on lists of parameters, gradients and states, which change in place."""
    refuse_capturable("rprop", capturable)
    for step, *tensors in zip(state_steps, params, grads, prevs, step_sizes, strict=True):
        step += 1
        p, gradient, previous, size = as_reals(*tensors)
        gradient = -gradient if maximize else gradient
        agreement = gradient * previous
        kept, changed = agreement > 0, agreement < 0
        factor = ops.ones_like(size).masked_fill(kept, etaplus).masked_fill(changed, etaminus)
        size.mul_(factor).clamp_(step_size_min, step_size_max)
        gradient = gradient.masked_fill(changed, 0)
        p.addcmul_(gradient.sign(), size, value=-1)
        previous.copy_(gradient)


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
        rprop(
            *(params, [p._grad for p in params], before, sizes, steps), maximize=group["maximize"],
            step_size_min=least, step_size_max=greatest, etaminus=shrink, etaplus=grow,
        )  # fmt: skip
