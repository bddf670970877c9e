"""Schedules of the learning rate, stepped once per epoch (or batch), after the optimizer."""

from corefw.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from corefw.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from corefw.optim.lr_scheduler.cyclic import CyclicLR, OneCycleLR
from corefw.optim.lr_scheduler.decay import (
    ConstantLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from corefw.optim.lr_scheduler.functional import LambdaLR, MultiplicativeLR
from corefw.optim.lr_scheduler.plateau import ReduceLROnPlateau
from corefw.optim.lr_scheduler.scheduler import LRScheduler

#: the name before PyTorch 2.0, which much code still imports
_LRScheduler = LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
