"""Special functions, under PyTorch's names."""

from __future__ import annotations

from corefw.dispatch.names import published as _published
from corefw.dispatch.registry import registry as _registry

_OPS = {
    "entr": "special_entr",
    "erf": "erf",
    "erfc": "erfc",
    "erfcx": "special_erfcx",
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "log1p": "log1p",
    "log_ndtr": "special_log_ndtr",
    "log_softmax": "log_softmax",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "ndtr": "special_ndtr",
    "ndtri": "special_ndtri",
    "round": "round",
    "sinc": "sinc",
    "softmax": "softmax",
    "xlog1py": "special_xlog1py",
    "xlogy": "xlogy",
}
globals().update(_published("corefw.special", {_name: _registry.declared[_op].function for _name, _op in _OPS.items()}))

__all__ = list(_OPS)
