"""Optimizers: each updates a whole list of parameters by one kernel call per group."""

from corefw.optim import lr_scheduler, swa_utils
from corefw.optim.adadelta import Adadelta
from corefw.optim.adagrad import Adagrad
from corefw.optim.adam import Adam, AdamW
from corefw.optim.adamax import Adamax
from corefw.optim.lbfgs import LBFGS
from corefw.optim.nadam import NAdam
from corefw.optim.optimizer import Optimizer
from corefw.optim.radam import RAdam
from corefw.optim.rmsprop import RMSprop
from corefw.optim.sgd import SGD

__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "lr_scheduler",
    "swa_utils",
]
