"""Adam for tables of which each step touches few rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from corefw.dispatch.sparse.tensors import is_sparse
from corefw.optim.optimizer import Optimizer, options_of, row_entries


class SparseAdam(Optimizer):
    """Adam for sparse gradients: only rows that have a gradient change, and only their running means.

    Args:
        params: dense parameters or groups of them, whose gradients are sparse, as those of ``Embedding(sparse=True)``.
        lr: learning rate.
        betas: decay rates of the running means of the gradient and its square.
        eps: added to the denominator.
        maximize: ascend instead.

    Raises RuntimeError for dense gradients, ValueError for sparse parameters.

    >>> import corefw as torch
    >>> table = torch.nn.Embedding.from_pretrained(torch.ones(3, 2), freeze=False, sparse=True)
    >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> table(torch.tensor([1])).sum().backward()
    >>> optimizer.step()
    >>> table.weight.detach()
    tensor([[1.0000, 1.0000],
            [0.9000, 0.9000],
            [1.0000, 1.0000]])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        if not lr > 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        super().__init__(params, options_of(locals()))
        flat = [p for group in self.param_groups for p in group["params"]]
        sparse = [i for i, p in enumerate(flat) if is_sparse(p)]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")

    def update(self, group: dict[str, Any], params: list[Any]) -> None:
        for p in params:
            if not is_sparse(p._grad):
                raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        beta1, beta2 = group["betas"]
        entries = [row_entries(p._grad.coalesce()) for p in params]  # all are seen before one is stepped
        for p, (rows, gradient) in zip(params, entries):
            state = self.state[p]
            if not state:
                state["step"] = 0
                state["exp_avg"] = self.initial("exp_avg", p)
                state["exp_avg_sq"] = self.initial("exp_avg_sq", p)
            state["step"] += 1
            if group["maximize"]:
                gradient = -gradient
            mean = state["exp_avg"].index_select(0, rows).lerp_(gradient, 1 - beta1)
            square = state["exp_avg_sq"].index_select(0, rows).lerp_(gradient * gradient, 1 - beta2)
            state["exp_avg"].index_copy_(0, rows, mean)
            state["exp_avg_sq"].index_copy_(0, rows, square)
            step = state["step"]
            size = float(group["lr"]) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
            p.index_add_(0, rows, mean / square.sqrt_().add_(group["eps"]), alpha=-size)
