"""Batch normalisation whose statistics are those of all processes."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from corefw.dispatch.declare import ops
from corefw.dtypes import float32, promote_types
from corefw.graph.grad_mode import no_recording
from corefw.nn.modules.module import Module
from corefw.nn.modules.normalization import _BatchNorm
from corefw.tensor import Tensor


class SyncBatchNorm(_BatchNorm):
    """`BatchNorm1d` for inputs (N, C, *) that are spread over processes: in training the statistics, and so the
    gradients, are those of the batches of all of them. Where no processes are joined they are those of its batch.

    Args:
        num_features: the number of channels C.
        eps, momentum, affine, track_running_stats, bias: as for `BatchNorm1d`.
        process_group: the processes; all if missing.

    >>> import corefw as torch
    >>> torch.nn.SyncBatchNorm(1, affine=False)(torch.tensor([[0.0], [2.0]]))
    tensor([[-1.0000],
            [ 1.0000]])
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: Any | None = None, device=None, dtype=None, *,
        bias: bool = True,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        group = self._others() if self.training else None
        if group is None:
            return super().forward(input)
        self._check_input_dim(input)
        sizes = [self.num_features if dim == 1 else 1 for dim in range(input.ndim)]
        wide = input.to(promote_types(input.dtype, float32))
        mean, variance, count = self._statistics(wide, sizes, group)
        self._track(mean, variance, count)
        scale = (variance + self.eps).rsqrt()
        result = (wide - mean.view(sizes)) * scale.view(sizes)
        if self.weight is not None:
            result = result * self.weight.view(sizes)
        if self.bias is not None:
            result = result + self.bias.view(sizes)
        return result.to(input.dtype)

    def _others(self) -> Any:
        """The group whose batches count, if it is more than this process."""
        if "corefw.distributed" not in sys.modules:
            return None
        distributed = import_module("corefw.distributed")
        if not distributed.is_initialized() or distributed.get_world_size(self.process_group) < 2:
            return None
        return self.process_group or distributed.group.WORLD

    @staticmethod
    def _statistics(input: Tensor, sizes: list[int], group: Any) -> tuple[Tensor, Tensor, int]:
        """The mean and variance (C,) of each channel over all processes, and how many numbers they are of."""
        functional = import_module("corefw.distributed.nn.functional")
        own = input.numel() // input.shape[1]
        dims = [0, *range(2, input.ndim)]
        mean = input.sum(dims) / max(own, 1)
        squares = (input - mean.view(sizes)).square().sum(dims)
        # One message: means, sums of squares about them, counts. Chan, Golub and LeVeque 1979 combine them.
        counts = mean.new_full((1,), own)
        everyone = ops.stack(functional.all_gather(ops.cat([mean, squares, counts]), group))
        channels = len(mean)
        means, squares, shares = everyone[:, :channels], everyone[:, channels:-1], everyone[:, -1:].detach()
        total = int(shares.sum().item())
        if total <= 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
        whole = (means * shares).sum(0) / total
        variance = (squares + shares * (means - whole).square()).sum(0) / total
        return whole, variance, total

    def _track(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Let the running statistics follow."""
        if self.running_mean is None or self.running_var is None:
            return
        self.num_batches_tracked.add_(1)
        momentum = 1 / self.num_batches_tracked.item() if self.momentum is None else self.momentum
        with no_recording():
            self.running_mean.lerp_(mean.detach().to(self.running_mean.dtype), momentum)
            self.running_var.lerp_((variance.detach() * (count / (count - 1))).to(self.running_var.dtype), momentum)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any | None = None) -> Module:
        """The module with such layers in the place of all batch normalisations below it, which keep their parameters
        and statistics; one that is itself a batch normalisation is returned converted.

        Args:
            module: a model.
            process_group: the processes of the new layers.

        >>> import corefw as torch
        >>> torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.Sequential(torch.nn.BatchNorm2d(3)))
        Sequential(
          (0): SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        )
        """
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            converted.weight, converted.bias = module.weight, module.bias
            converted.running_mean, converted.running_var = module.running_mean, module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
