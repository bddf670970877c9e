"""The steps of optimizers as functions of lists of tensors, each of which stands beside its optimizer."""

from corefw.optim.adadelta import adadelta
from corefw.optim.adagrad import adagrad
from corefw.optim.adam import adam, adamw
from corefw.optim.adamax import adamax
from corefw.optim.asgd import asgd
from corefw.optim.nadam import nadam
from corefw.optim.radam import radam
from corefw.optim.rmsprop import rmsprop
from corefw.optim.rprop import rprop
from corefw.optim.sgd import sgd
from corefw.optim.sparse_adam import sparse_adam

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "sparse_adam",
]
