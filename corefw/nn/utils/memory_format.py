"""Weights of convolutions in another order in memory."""

from __future__ import annotations

from typing import TypeVar

from corefw.layouts import memory_format as order
from corefw.nn.modules.convolution import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from corefw.nn.modules.module import Module

M = TypeVar("M", bound=Module)


def convert_conv2d_weight_memory_format(module: M, memory_format: order) -> M:
    """Bring the weights of all `Conv2d` and `ConvTranspose2d` of a module into an order in memory; returns it.

    Args:
        module: the module.
        memory_format: such as ``torch.channels_last``.

    >>> import corefw as torch
    >>> layer = torch.nn.utils.convert_conv2d_weight_memory_format(torch.nn.Conv2d(3, 2, 3), torch.channels_last)
    >>> layer.weight.is_contiguous(memory_format=torch.channels_last)
    True
    """
    return _converted(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: M, memory_format: order) -> M:
    """As `convert_conv2d_weight_memory_format`, of `Conv3d` and `ConvTranspose3d`: ``torch.channels_last_3d``."""
    return _converted(module, memory_format, (Conv3d, ConvTranspose3d))


def _converted(module: M, memory_format: order, kinds: tuple[type[Module], ...]) -> M:
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)
    return module
