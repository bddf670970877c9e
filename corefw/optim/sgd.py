"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from corefw.dispatch.declare import ops
from corefw.optim.optimizer import Optimizer, options_of
from corefw.tensor import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum and Nesterov momentum (Sutskever et al. 2013).

    Args:
        params: parameters or groups of them.
        lr: learning rate; a graph that is replayed reads one that is a tensor on the parameters' device again.
        momentum, dampening, nesterov: the momentum buffer is ``momentum * b + (1 - dampening) * grad``.
        weight_decay: adds ``weight_decay * p`` to the gradient.
        maximize: ascend instead.
        foreach, fused: accepted; a step is always one kernel call per group.

    >>> import corefw as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=0.1)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w.data
    tensor([0.9000, 0.9000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, options_of(locals()))

    def update(self, group, params):
        momentum, lr = group["momentum"], group["lr"]
        buffers, first, new = [], [], []
        if momentum:
            for p in params:
                state = self.state[p]
                buffer = state.get("momentum_buffer")
                first.append(buffer is None)
                if buffer is None:
                    self.refuse_capture(p, "a momentum buffer would begin anew in each replay: step once before")
                    buffer = ops.empty_like(p).detach()
                    new.append((state, buffer))
                buffers.append(buffer)
        self.call(
            "sgd_step",
            params,
            buffers,
            first,
            lr if isinstance(lr, Tensor) else float(lr),
            momentum,
            group["dampening"],
            group["weight_decay"],
            group["nesterov"],
            group["maximize"],
        )
        for state, buffer in new:  # which the step has filled
            state["momentum_buffer"] = buffer
