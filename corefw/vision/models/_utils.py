"""Helpers that programs import: parts of a model as a model, numbers of channels."""

from __future__ import annotations

from collections import OrderedDict

from corefw import nn

__all__ = ["IntermediateLayerGetter"]


def _make_divisible(v: float, divisor: int, min_value: int | None = None) -> int:
    """The multiple of `divisor` next to `v`, at least `min_value` (`divisor`) and at least nine tenths of `v`.

    >>> _make_divisible(36, 8), _make_divisible(11, 8), _make_divisible(3, 8)
    (40, 16, 8)
    """
    near = max(divisor if min_value is None else min_value, int(v + divisor / 2) // divisor * divisor)
    return near if near >= 0.9 * v else near + divisor


class IntermediateLayerGetter(nn.ModuleDict):
    """The children of a model up to the last one wanted, and what those give that are wanted.

    Args:
        model: of children that are called one after the other.
        return_layers: {name of a child: name in the result}.

    >>> import corefw as torch
    >>> from corefw.vision.models import resnet18
    >>> layers = IntermediateLayerGetter(resnet18(), {"layer1": "a", "layer3": "b"})
    >>> [(name, out.shape) for name, out in layers(torch.zeros(1, 3, 32, 32)).items()]
    [('a', torch.Size([1, 64, 8, 8])), ('b', torch.Size([1, 256, 2, 2]))]
    """

    def __init__(self, model: nn.Module, return_layers: dict[str, str]) -> None:
        children = dict(model.named_children())
        if not set(return_layers) <= set(children):
            raise ValueError("return_layers are not present in model")
        names = list(children)
        last = max((names.index(name) for name in return_layers), default=-1)
        super().__init__({name: children[name] for name in names[: last + 1]})
        self.return_layers = {str(name): str(out) for name, out in return_layers.items()}

    def forward(self, x):
        found = OrderedDict()
        for name, module in self.items():
            x = module(x)
            if name in self.return_layers:
                found[self.return_layers[name]] = x
        return found
