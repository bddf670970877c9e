"""Optimizers: each updates a whole list of parameters by one kernel call per group."""

from corefw.optim.adam import Adam, AdamW
from corefw.optim.optimizer import Optimizer
from corefw.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
