"""Neural networks: layers, losses, initialisers and their functional forms."""

from corefw.nn import functional, init
from corefw.nn.modules.activation import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softmax2d,
    Softmin,
    Softplus,
    Softshrink,
    Softsign,
    Tanh,
    Tanhshrink,
    Threshold,
)
from corefw.nn.modules.container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from corefw.nn.modules.linear import Bilinear, Flatten, Identity, Linear, Unflatten
from corefw.nn.modules.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Buffer, Parameter

__all__ = sorted(name for name in globals() if not name.startswith("_"))
