"""The loss that easy examples count little for: Lin et al., "Focal loss for dense object detection", 2017."""

from __future__ import annotations

from corefw import Tensor
from corefw.nn import functional
from corefw.vision.ops._losses import reduced

__all__ = ["sigmoid_focal_loss"]


def sigmoid_focal_loss(
    inputs: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2, reduction: str = "none"
) -> Tensor:
    """``-alpha_t * (1 - p_t) ** gamma * log(p_t)``, p_t being the probability of the right answer.

    Args:
        inputs: logits, any shape.
        targets: of the same shape, 1 for yes and 0 for no.
        alpha: weight of yes, 1 - `alpha` that of no; -1 for no weights.
        gamma: how much less easy examples count.
        reduction: "none", "mean" or "sum".

    >>> import corefw as torch
    >>> sigmoid_focal_loss(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor([0.0433])
    """
    if not (0 <= alpha <= 1) and alpha != -1:
        raise ValueError(f"Invalid alpha value: {alpha}. alpha must be in the range [0,1] or -1 for ignore.")
    p = inputs.sigmoid()
    missed = p + targets - 2 * p * targets  # 1 - p_t
    loss = functional.binary_cross_entropy_with_logits(inputs, targets, reduction="none") * missed**gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return reduced(loss, reduction)
