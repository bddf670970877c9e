"""Losses as functions of `corefw` itself, which take the reduction as a number: 0 for none, 1 the mean, 2 the sum.

Unless it is given they are not reduced, as PyTorch's are not, whose schemas name the mean.
"""

from __future__ import annotations

from typing import Any

from corefw.dispatch.declare import Index, composite, ops

_REDUCTIONS = ("none", "mean", "sum")


def _named(reduction: int) -> str:
    if reduction not in (0, 1, 2):
        raise ValueError(f"{reduction} is not a valid value for reduction: 0 is none, 1 the mean and 2 the sum")
    return _REDUCTIONS[reduction]


@composite(name="coded_cosine_embedding_loss", public="corefw.cosine_embedding_loss")
def cosine_embedding_loss(input1, input2, target, margin: float = 0.0, reduction: int = 0):
    """`corefw.nn.functional.cosine_embedding_loss` with a number for the reduction: 0 for none, 1 the mean, 2 the sum.

    >>> import corefw as torch
    >>> torch.cosine_embedding_loss(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([-1]), reduction=1)
    tensor(1.)
    """
    return ops.cosine_embedding_loss(input1, input2, target, margin, reduction=_named(reduction))


@composite(name="coded_ctc_loss", public="corefw.ctc_loss")
def ctc_loss(
    log_probs, targets: Index, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 0,
    zero_infinity: bool = False,
):  # fmt: skip
    """`corefw.nn.functional.ctc_loss` with a number for the reduction: 0 for none, 1 the mean, 2 the sum.

    >>> import corefw as torch
    >>> torch.ctc_loss(torch.full((1, 1, 2), 0.5).log(), torch.tensor([[1]]), [1], [1])
    tensor([0.6931])
    """
    return ops.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _named(reduction), zero_infinity)


@composite(name="coded_hinge_embedding_loss", public="corefw.hinge_embedding_loss")
def hinge_embedding_loss(input, target, margin: float = 1.0, reduction: int = 0):
    """`corefw.nn.functional.hinge_embedding_loss` with a number for the reduction: 0 for none, 1 the mean, 2 the sum.

    >>> import corefw as torch
    >>> torch.hinge_embedding_loss(torch.tensor([0.5, 0.2]), torch.tensor([1, -1]))
    tensor([0.5000, 0.8000])
    """
    return ops.hinge_embedding_loss(input, target, margin, reduction=_named(reduction))


@composite(name="coded_kl_div", public="corefw.kl_div")
def kl_div(input, target, reduction: int = 0, *, log_target: bool = False):
    """`corefw.nn.functional.kl_div` with a number for the reduction: 0 for none, 1 the mean, 2 the sum.

    >>> import corefw as torch
    >>> torch.kl_div(torch.tensor([0.5, 0.5]).log(), torch.tensor([1.0, 0.0]))
    tensor([0.6931, 0.0000])
    """
    how = _named(reduction)
    loss = ops.kl_div(input, target, reduction="none", log_target=log_target)
    return loss if how == "none" else loss.mean() if how == "mean" else loss.sum()


@composite(name="coded_margin_ranking_loss", public="corefw.margin_ranking_loss")
def margin_ranking_loss(input1, input2, target, margin: float = 0.0, reduction: int = 0):
    """`corefw.nn.functional.margin_ranking_loss` with a number for the reduction: 0 for none, 1 the mean, 2 the sum.

    >>> import corefw as torch
    >>> torch.margin_ranking_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1]))
    tensor([2.])
    """
    return ops.margin_ranking_loss(input1, input2, target, margin, reduction=_named(reduction))


@composite(name="coded_poisson_nll_loss", public="corefw.poisson_nll_loss")
def poisson_nll_loss(input, target, log_input: bool, full: bool, eps: float, reduction: int):
    """`corefw.nn.functional.poisson_nll_loss` with a number for the reduction: 0 for none, 1 the mean, 2 the sum.

    >>> import corefw as torch
    >>> torch.poisson_nll_loss(torch.tensor([0.0]), torch.tensor([3.0]), True, False, 1e-8, 1)
    tensor(1.)
    """
    return ops.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_named(reduction))


@composite(name="coded_triplet_margin_loss", public="corefw.triplet_margin_loss")
def triplet_margin_loss(
    anchor, positive, negative, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
    reduction: int = 0,
):  # fmt: skip
    """`corefw.nn.functional.triplet_margin_loss` with a number for the reduction: 0 for none, 1 the mean, 2 the sum.

    >>> import corefw as torch
    >>> a = torch.zeros(1, 2)
    >>> torch.triplet_margin_loss(a, a + 3, a + 3, reduction=2)
    tensor(1.)
    """
    return ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=_named(reduction))
