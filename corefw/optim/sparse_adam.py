"""Adam for tables of which each step touches few rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corefw.dispatch.sparse.tensors import is_sparse
from corefw.optim.optimizer import Optimizer, options_of, row_entries
from corefw.tensor import Tensor


def sparse_adam(
    params: Sequence[Tensor], grads: Sequence[Tensor], exp_avgs: Sequence[Tensor], exp_avg_sqs: Sequence[Tensor],
    state_steps: Sequence[int], *, eps: float, beta1: float, beta2: float, lr: float, maximize: bool,
) -> None:  # fmt: skip
    """A step of `SparseAdam` on lists of tables, sparse gradients, states, which change in place, and the numbers of
    steps, this one counted."""
    for p, given, means, squares, step in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True):
        rows, gradient = row_entries(given.coalesce())
        gradient = -gradient if maximize else gradient
        mean = means.index_select(0, rows).lerp_(gradient, 1 - beta1)
        square = squares.index_select(0, rows).lerp_(gradient * gradient, 1 - beta2)
        means.index_copy_(0, rows, mean)
        squares.index_copy_(0, rows, square)
        size = float(lr) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        p.index_add_(0, rows, mean / square.sqrt_().add_(eps), alpha=-size)


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
        gradients = [p._grad.coalesce() for p in params]
        for gradient in gradients:
            row_entries(gradient)  # all are seen before one is stepped
        states = [self.state[p] for p in params]
        for p, state in zip(params, states):
            if not state:
                state["step"] = 0
                state["exp_avg"] = self.initial("exp_avg", p)
                state["exp_avg_sq"] = self.initial("exp_avg_sq", p)
            state["step"] += 1
        means, squares, steps = ([state[name] for state in states] for name in ("exp_avg", "exp_avg_sq", "step"))
        beta1, beta2 = group["betas"]
        sparse_adam(
            *(params, gradients, means, squares, steps), eps=group["eps"], beta1=beta1, beta2=beta2, lr=group["lr"],
            maximize=group["maximize"],
        )  # fmt: skip
