"""Element by element: all that broadcast together are cut alike, and terms of sums pass through what is linear."""

from __future__ import annotations

from corefw.distributed.tensor.calls import rule, rules

_LINEAR = {
    "add": "... + ... -> ...",
    "add_scaled": "... + ... -> ...",
    "subtract": "... + ... -> ...",
    "sub": "... + ... -> ...",
    "sub_scaled": "... + ... -> ...",
    "mul": "... ... -> ...",
    "multiply": "... ... -> ...",
    "neg": "... -> ...",
    "negative": "... -> ...",
    "lerp": "... + ... ~... -> ...",
    "addcmul": "... + ... ... -> ...",
    "addcdiv": "... + ... ~... -> ...",
    "choose": "~... ... + ... -> ...",
    "clone": "... -> ...",
    "clone_in_order": "... -> ...",
    "copy": "~... ... -> ...",
}
_NOT_LINEAR = {
    1: "relu hardtanh threshold leaky_relu hardsigmoid hardswish hardshrink softshrink elu softplus logsigmoid silu "
       "mish gelu special_entr special_ndtr special_log_ndtr special_ndtri",
    2: "fill ldexp special_xlog1py",
    3: "masked_fill clamp clip",
}  # fmt: skip

for _name, _rule in _LINEAR.items():
    rules[_name] = lambda *values, said=_rule: said
for _count, _names in _NOT_LINEAR.items():
    _rule = f"{' '.join(['~...'] * _count)} -> ..."
    rules.update(dict.fromkeys(_names.split(), lambda *values, said=_rule: said))


@rule("div", "divide")
def _quotient(input, other, rounding_mode=None):
    return f"{'...' if rounding_mode is None else '~...'} ~... -> ..."


@rule("cast")
def _cast(dispatch_key, input, *attributes):
    return f"{'...' if dispatch_key.dtype.category >= 2 else '~...'} -> ..."
