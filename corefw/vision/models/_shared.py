"""What several families of models share: how weights are first drawn, and what loading leaves out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from corefw import Tensor, nn

Layer = Callable[..., nn.Module]

#: a norm whose statistics follow slowly, with a larger number under the root
SlowNorm = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)


def small(weight: Tensor) -> Tensor:
    """Draw a linear layer's weight from N(0, 0.01^2)."""
    return nn.init.normal_(weight, 0, 0.01)


def of_mean_square(weight: Tensor) -> Tensor:
    """Draw a convolution's weight so that ReLU keeps the mean square of gradients (He et al., 2015)."""
    return nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="relu")


def draw(
    model: nn.Module,
    convolution: Callable[[Tensor], Any] | None = of_mean_square,
    linear: Callable[[Tensor], Any] | None = small,
) -> None:
    """Draw the weights of a model's layers by these rules, with biases of 0; None leaves layers as they are.

    Norms begin as ones and zeros of their own.
    """
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            rule = convolution
        elif isinstance(module, nn.Linear):
            rule = linear
        else:
            continue
        if rule is not None:
            rule(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def without_auxiliary(model: Any, state: dict[str, Any]) -> dict[str, Any]:
    """A file's state without that of classifiers in the middle, if `model` has none."""
    return state if model.aux_logits else {k: v for k, v in state.items() if not k.lower().startswith("aux")}


def as_imagenets(x: Tensor) -> Tensor:
    """Pictures that were normalised by ImageNet's statistics, as if by means and deviations of one half."""
    scale, shift = x.new_tensor([[0.229, 0.224, 0.225], [0.485, 0.456, 0.406]]).reshape(2, 1, 3, 1, 1) / 0.5
    return x * scale + (shift - 1)
