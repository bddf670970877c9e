"""corefw: a deep-learning framework with PyTorch's Python API whose every kernel is a plug-in.

>>> import corefw as torch
>>> x = torch.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

from __future__ import annotations

__version__ = "0.1.0"

from corefw import dtypes
from corefw.autograd.modes import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from corefw.devices import device
from corefw.dispatch import plugins
from corefw.dispatch.registry import registry
from corefw.dtypes import dtype, finfo, iinfo
from corefw.shapes import Size
from corefw.tensor import Tensor

from corefw import ops  # isort: skip
from corefw.methods import attach_operators, attach_ops

attach_ops()
attach_operators()
