"""Layers with weights of int8, whose inputs are rounded to eight bits while they run."""

from __future__ import annotations

from typing import Any

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.graph.grad_mode import no_recording
from corefw.nn.modules.linear import Linear as FloatLinear
from corefw.nn.modules.module import Module
from corefw.tensor import Tensor

__all__ = ["Linear"]

_HALF_STEPS = 127.5  # from zero to the ends of int8


class _Weights(Module):
    """What a layer multiplies with: `weight`, of int8, times `scale`, and `bias`; `sums` are those of its rows."""

    def __init__(self, weight: Tensor, scale: Tensor, bias: Tensor | None):
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)
        self.register_buffer("sums", weight.sum(1, dtype=dtypes.int32), persistent=False)
        self.register_buffer("bias", bias)

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        self.sums = self.weight.sum(1, dtype=dtypes.int32)


class Linear(Module):
    """A linear layer with a weight of int8, times one scale or one for each row, and a bias in float32.

    Its input is rounded to 256 steps between the least and the greatest number of all of it, so that a result is wrong
    by at most half a step times the moduli of the weight's row, beside what the rounding of the weight changes.
    `corefw.ao.quantization.quantize_dynamic` makes them of layers in float32. It has no gradient.

    Args:
        in_features: size of the input's last dimension.
        out_features: size of the output's.
        bias_: whether to add a bias.
        dtype: qint8.

    >>> import corefw as torch
    >>> torch.ao.nn.quantized.dynamic.Linear(4, 2)
    DynamicQuantizedLinear(in_features=4, out_features=2, dtype=torch.qint8, qscheme=torch.per_tensor_affine)
    """

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype=dtypes.qint8):
        super().__init__()
        if dtype is not dtypes.qint8:
            raise AssertionError(f"The only supported dtype for dynamic quantized linear is qint8, got: {dtype}")
        self.in_features = in_features
        self.out_features = out_features
        self._packed_params = _Weights(
            ops.zeros((out_features, in_features), dtype=dtypes.int8),
            ops.ones((), dtype=dtypes.float32),
            ops.zeros((out_features,), dtype=dtypes.float32) if bias_ else None,
        )

    @classmethod
    def from_float(cls, mod: FloatLinear, per_channel: bool = False) -> Linear:
        """The layer whose weight is that of `mod`, rounded.

        Args:
            mod: a linear layer of float32.
            per_channel: whether each row has a scale of its own.
        """
        if mod.weight.dtype is not dtypes.float32:
            raise TypeError(f"quantize_dynamic: expected a layer of float32, got one of {mod.weight.dtype}")
        layer = cls(mod.in_features, mod.out_features, mod.bias is not None)
        with no_recording():
            weight = mod.weight.detach()
            largest = weight.abs().amax(1) if per_channel else weight.abs().amax()
            scale = (largest / _HALF_STEPS).clamp(min=dtypes.finfo(dtypes.float32).eps)
            per_step = 1 / (scale.unsqueeze(1) if per_channel else scale)  # a factor, as PyTorch's, for the same ties
            steps = (weight * per_step).round().clamp(-128, 127)
            bias = None if mod.bias is None else mod.bias.detach().clone()
            layer._packed_params = _Weights(steps.to(dtypes.int8), scale, bias)
        layer.train(mod.training)
        return layer

    def weight(self) -> Tensor:
        """The weight in float32: its steps times their scale."""
        scale = self._packed_params.scale
        return self._packed_params.weight.to(dtypes.float32) * (scale.unsqueeze(1) if scale.ndim else scale)

    def bias(self) -> Tensor | None:
        """The bias, or None."""
        return self._packed_params.bias

    def forward(self, x: Tensor) -> Tensor:
        packed = self._packed_params
        return ops.quantized_linear(x, packed.weight, packed.scale, packed.sums, packed.bias)

    def extra_repr(self) -> str:
        scheme = "per_channel_affine" if self._packed_params.scale.ndim else "per_tensor_affine"
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, dtype={dtypes.qint8}, "
            f"qscheme={dtypes.MODULE}.{scheme}"
        )

    def __repr__(self) -> str:
        return f"DynamicQuantizedLinear({self.extra_repr()})"
