"""Batch normalisation whose statistics are those of all processes."""

from __future__ import annotations

from typing import Any

from corefw.nn.modules.module import Module
from corefw.nn.modules.normalization import _BatchNorm


class SyncBatchNorm(_BatchNorm):
    """`BatchNorm1d` for inputs (N, C, *) that are spread over processes. There is one process so far: the statistics
    are those of its batch.

    Args:
        num_features: the number of channels C.
        eps, momentum, affine, track_running_stats, bias: as for `BatchNorm1d`.
        process_group: the processes; kept, and not used by a single one.

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
