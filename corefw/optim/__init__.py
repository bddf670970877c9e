"""Optimizers: each updates a whole list of parameters by one kernel call per group."""

from corefw.optim import lr_scheduler, swa_utils
from corefw.optim.adadelta import Adadelta
from corefw.optim.adafactor import Adafactor
from corefw.optim.adagrad import Adagrad
from corefw.optim.adam import Adam, AdamW
from corefw.optim.adamax import Adamax
from corefw.optim.asgd import ASGD
from corefw.optim.lbfgs import LBFGS
from corefw.optim.muon import Muon
from corefw.optim.nadam import NAdam
from corefw.optim.optimizer import Optimizer
from corefw.optim.radam import RAdam
from corefw.optim.rmsprop import RMSprop
from corefw.optim.rprop import Rprop
from corefw.optim.sgd import SGD
from corefw.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]
