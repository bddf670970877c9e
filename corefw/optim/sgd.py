"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from corefw.dispatch.declare import ops
from corefw.dispatch.sparse.tensors import SparseTensor, is_sparse
from corefw.optim.optimizer import Optimizer, options_of, row_entries, run_step
from corefw.tensor import Tensor

_options = itemgetter("lr", "momentum", "dampening", "weight_decay", "nesterov")


def sgd(
    params: Sequence[Tensor], d_p_list: Sequence[Tensor], momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool | None = None, foreach: bool | None = None, fused: bool | None = None,
    grad_scale: Tensor | None = None, found_inf: Tensor | None = None, *, weight_decay: float, momentum: float,
    lr: float, dampening: float, nesterov: bool, maximize: bool,
) -> None:  # fmt: skip
    """A step of `SGD` on lists of parameters, gradients and momentum buffers, which change in place.

    Where a buffer is None, the step makes it: it stands in the list afterwards.
    """
    lacking = [bool(momentum) and momentum_buffer_list[i] is None for i in range(len(params))]
    for first in (True, False):
        chosen = [i for i in range(len(params)) if lacking[i] is first]
        buffers: list[Any] = []
        if momentum:
            buffers = [ops.empty_like(params[i]).detach() if first else momentum_buffer_list[i] for i in chosen]
        if chosen:
            run_step(
                *("sgd_step", [params[i] for i in chosen], [d_p_list[i] for i in chosen], buffers),
                options=(momentum, dampening, weight_decay, nesterov, first, maximize), lr=lr, grad_scale=grad_scale,
                found_inf=found_inf,
            )  # fmt: skip
        for i, buffer in zip(chosen, buffers):
            momentum_buffer_list[i] = buffer


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
    >>> torch.optim.SGD([w], lr=0.1).step(w.sum().backward)
    >>> w.data
    tensor([0.9000, 0.9000])
    """

    step_op = "sgd_step"

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None,
        differentiable: bool = False, fused: bool | None = None,
    ):  # fmt: skip
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, options_of(locals()))

    def update(self, group: dict[str, Any], params: list[Any]) -> None:
        options, maximize = _options(group), group["maximize"]
        if SparseTensor.made:
            params = self._step_sparse(group, params)
            if not params:
                return
        if not group["momentum"]:
            self.run_step(params, [], *options, False, maximize)
            return
        buffers = [self.state[p].get("momentum_buffer") for p in params]
        begin = [i for i, buffer in enumerate(buffers) if buffer is None]
        if not begin:
            self.run_step(params, buffers, *options, False, maximize)
            return
        for i in begin:
            self.refuse_capture(params[i], "a momentum buffer would begin anew in each replay: step once before")
            buffers[i] = ops.empty_like(params[i]).detach()
        if len(begin) < len(params):
            self._refuse_read_only(params)  # before the others are stepped
        for first in (True, False):
            chosen = [i for i in range(len(params)) if (i in begin) == first]
            if chosen:
                self.run_step([params[i] for i in chosen], [buffers[i] for i in chosen], *options, first, maximize)
        for i in begin:  # which the step has filled
            self.state[params[i]]["momentum_buffer"] = buffers[i]

    @staticmethod
    def _step_sparse(group, params):
        """Step the parameters whose gradients are sparse; returns the others."""
        dense = []
        for p in params:
            gradient = p._grad
            if not is_sparse(gradient):
                dense.append(p)
                continue
            if group["momentum"] or group["weight_decay"]:
                raise NotImplementedError(
                    "SGD: momentum and weight_decay are not supported with sparse gradients: leave them 0, or use "
                    "SparseAdam"
                )
            size = float(group["lr"]) * (1 if group["maximize"] else -1)
            if gradient.sparse_dim() == 1:
                p.index_add_(0, *row_entries(gradient), alpha=size)
            else:
                p.add_(gradient, alpha=size)
        return dense
