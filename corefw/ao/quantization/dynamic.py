"""Layers of a model replaced by those with weights of int8."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from corefw import dtypes
from corefw.ao.nn.quantized.dynamic import Linear
from corefw.nn.modules import linear, recurrent
from corefw.nn.modules.attention import MultiheadAttention
from corefw.nn.modules.module import Module

__all__ = ["QConfigDynamic", "default_dynamic_qconfig", "per_channel_dynamic_qconfig", "quantize_dynamic"]


@dataclass(frozen=True)
class QConfigDynamic:
    """How layers are quantized: `per_channel` says whether each row of a weight has a scale of its own."""

    per_channel: bool = False


default_dynamic_qconfig = QConfigDynamic()
per_channel_dynamic_qconfig = QConfigDynamic(per_channel=True)

_RECURRENT = (recurrent.RNNBase, recurrent.RNNCellBase)


def _configurations(spec: Any) -> dict[Any, QConfigDynamic]:
    """What is asked for, by class of layers or name of a module."""
    if spec is None:
        spec = {linear.Linear, *_RECURRENT}
    asked = dict(spec) if isinstance(spec, Mapping) else dict.fromkeys(spec, default_dynamic_qconfig)
    for key, configuration in asked.items():
        if not isinstance(configuration, QConfigDynamic | None):
            raise NotImplementedError(
                f"quantize_dynamic: {key!r} asks for {configuration!r}; default_dynamic_qconfig and "
                "per_channel_dynamic_qconfig are there, and observers of other kinds are not"
            )
        if isinstance(key, type) and key is not linear.Linear and not issubclass(key, _RECURRENT):
            raise NotImplementedError(f"quantize_dynamic: there is no {key.__name__} with weights of int8, only Linear")
    return asked


def _replace(
    module: Module, asked: dict[Any, QConfigDynamic], prefix: str, inherited: QConfigDynamic | None, spec: Any
) -> None:
    """Replace the layers below `module`, which `inherited` concerns unless their class or name is asked for."""
    for name, child in module._modules.items():
        if child is None or isinstance(module, MultiheadAttention):  # it multiplies by their weights itself
            continue
        path = f"{prefix}{name}"
        configuration = asked.get(path, asked.get(type(child), inherited))
        if type(child) is linear.Linear and configuration is not None:
            module._modules[name] = Linear.from_float(child, configuration.per_channel)
            continue
        if isinstance(child, _RECURRENT) and (spec is None or configuration is not None):
            raise NotImplementedError(
                f"quantize_dynamic: {path!r} is {type(child).__name__}, of which there is none with weights of int8; "
                "give qconfig_spec={nn.Linear} to leave it as it is"
            )
        _replace(child, asked, f"{path}.", configuration, spec)


def quantize_dynamic(
    model: Module,
    qconfig_spec: Iterable[type | str] | Mapping[type | str, QConfigDynamic] | None = None,
    dtype: Any = dtypes.qint8,
    mapping: None = None,
    inplace: bool = False,
) -> Module:
    """A model whose linear layers have weights of int8, and round their inputs to eight bits while they run.

    Weights take a fourth of the memory. The layers have no gradients, and the model comes in evaluation mode.

    Args:
        model: what has the layers; a layer itself has no place to put another, and stays as it is.
        qconfig_spec: which layers: `nn.Linear`, names of modules, all layers below which are meant, or a dict from
            these to `default_dynamic_qconfig` (one scale for each weight), `per_channel_dynamic_qconfig` (one for each
            row) or None (none); None for all.
        dtype: qint8.
        mapping: None; other layers than PyTorch's own are not taken.
        inplace: change the model itself instead of a copy.

    Raises NotImplementedError for recurrent layers, which are not there, float16, and other ways to quantize.

    >>> import corefw as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU())
    >>> torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    Sequential(
      (0): DynamicQuantizedLinear(in_features=4, out_features=2, dtype=torch.qint8, qscheme=torch.per_tensor_affine)
      (1): ReLU()
    )
    """
    if dtype is dtypes.float16:
        raise NotImplementedError("quantize_dynamic: float16 weights need no quantization: model.half() has them")
    if dtype is not dtypes.qint8:
        raise RuntimeError(f"Unknown dtype specified for quantize_dynamic: {dtype}")
    if mapping is not None:
        raise NotImplementedError("quantize_dynamic: mapping must be None: Linear is the only layer that is replaced")
    asked = _configurations(qconfig_spec)
    if not inplace:
        model = deepcopy(model)
    model.eval()
    _replace(model, asked, "", asked.get("", asked.get(type(model))), qconfig_spec)
    return model
