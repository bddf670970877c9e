"""Functions of tensors of which a mask says what counts: True where an element takes part."""

from corefw.masked.extremes import amax, amin, argmax, argmin
from corefw.masked.normalization import log_softmax, logaddexp, normalize, softmax, softmin
from corefw.masked.reductions import logsumexp, mean, median, norm, prod, std, sum, var
from corefw.masked.running import cumprod, cumsum
from corefw.refusals import refusing

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

__getattr__ = refusing(__name__)
