"""Activation layers: each is its function with its options kept."""

from __future__ import annotations

import warnings

from corefw.dispatch.declare import ops
from corefw.nn import functional
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor


class _Inplace(Module):
    """An activation without options but `inplace`."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Inplace):
    """``max(x, 0)``."""

    def forward(self, input: Tensor) -> Tensor:
        return input.relu_() if self.inplace else input.relu()


class ReLU6(_Inplace):
    """``min(max(x, 0), 6)``."""

    def forward(self, input: Tensor) -> Tensor:
        return ops.relu6(input, self.inplace)


class SELU(_Inplace):
    """Scaled exponential linear unit (Klambauer et al. 2017)."""

    def forward(self, input: Tensor) -> Tensor:
        return ops.selu(input, self.inplace)


class SiLU(_Inplace):
    """``x * sigmoid(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        return ops.silu(input, self.inplace)


class Mish(_Inplace):
    """``x * tanh(softplus(x))`` (Misra 2019)."""

    def forward(self, input: Tensor) -> Tensor:
        return ops.mish(input, self.inplace)


class Hardsigmoid(_Inplace):
    """``relu6(x + 3) / 6``."""

    extra_repr = Module.extra_repr  # as PyTorch's, which does not show `inplace`

    def forward(self, input: Tensor) -> Tensor:
        return ops.hardsigmoid(input, self.inplace)


class Hardswish(_Inplace):
    """``x * relu6(x + 3) / 6`` (Howard et al. 2019)."""

    extra_repr = Module.extra_repr  # as PyTorch's, which does not show `inplace`

    def forward(self, input: Tensor) -> Tensor:
        return ops.hardswish(input, self.inplace)


class _Plain(Module):
    """An activation without options."""


class Sigmoid(_Plain):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        return input.sigmoid()


class Tanh(_Plain):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        return input.tanh()


class LogSigmoid(_Plain):
    """``log(sigmoid(x))``."""

    def forward(self, input: Tensor) -> Tensor:
        return ops.logsigmoid(input)


class Softsign(_Plain):
    """``x / (1 + |x|)``."""

    def forward(self, input: Tensor) -> Tensor:
        return ops.softsign(input)


class Tanhshrink(_Plain):
    """``x - tanh(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        return ops.tanhshrink(input)


class ELU(_Inplace):
    """``x`` where positive, else ``alpha (exp(x) - 1)`` (Clevert et al. 2015)."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return ops.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(_Inplace):
    """``max(0, x) + min(0, alpha (exp(x / alpha) - 1))`` (Barron 2017)."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return ops.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class LeakyReLU(_Inplace):
    """``x`` where positive, else ``negative_slope x``."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return ops.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class RReLU(_Inplace):
    """``x`` where positive, else ``x`` times a slope drawn from ``U(lower, upper)`` for each element in training, their
    mean in evaluation mode (Xu et al. 2015)."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False):
        super().__init__(inplace)
        self.lower, self.upper = lower, upper

    def forward(self, input: Tensor) -> Tensor:
        return ops.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Threshold(_Inplace):
    """``x`` where above `threshold`, else `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__(inplace)
        self.threshold, self.value = threshold, value

    def forward(self, input: Tensor) -> Tensor:
        return ops.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class Hardtanh(_Inplace):
    """`x` cut to [min_val, max_val]; `min_value` and `max_value` are their former names."""

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ):
        super().__init__(inplace)
        for former, present in ((min_value, "min_val"), (max_value, "max_val")):
            if former is not None:
                text = f"keyword argument `{present}ue` is deprecated and rename to `{present}`"
                warnings.warn(text, FutureWarning, stacklevel=2)
        min_val = min_val if min_value is None else min_value
        max_val = max_val if max_value is None else max_value
        if not min_val < max_val:
            raise ValueError(f"min_val ({min_val}) must be less than max_val ({max_val})")
        self.min_val, self.max_val = min_val, max_val

    def forward(self, input: Tensor) -> Tensor:
        return ops.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """``x Phi(x)``, Phi the normal distribution function (Hendrycks & Gimpel 2016).

    Args:
        approximate: "none" or "tanh".
    """

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return ops.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class GLU(Module):
    """``a * sigmoid(b)``, a and b the halves of the input along `dim` (Dauphin et al. 2016)."""

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return ops.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Hardshrink(Module):
    """`x` where ``|x| > lambd``, else 0."""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return ops.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """`x` moved towards 0 by `lambd`."""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return ops.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softplus(Module):
    """``log(1 + exp(beta x)) / beta``, the identity where ``beta x > threshold``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return ops.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Module):
    """``x`` where positive, else ``weight x`` with a learnt weight (He et al. 2015).

    Args:
        num_parameters: 1, or the number of channels.
        init: the first value.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(ops.full((num_parameters,), init, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        return ops.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class _AlongDim(Module):
    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """Exponentials scaled to sum to one along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """The logarithm of softmax along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.log_softmax(input, self.dim, _stacklevel=5)


class Softmin(_AlongDim):
    """The softmax of ``-x`` along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return ops.softmax(input, -3)
