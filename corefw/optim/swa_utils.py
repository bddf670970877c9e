"""Averages of a model's weights over its training (Izmailov et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from math import cos, pi
from typing import Any, Literal

from corefw.dispatch.declare import ops
from corefw.dtypes import int64
from corefw.graph.grad_mode import no_recording
from corefw.nn.modules.module import Module
from corefw.nn.modules.normalization import _BatchNorm
from corefw.optim.lr_scheduler.scheduler import LRScheduler, check_optimizer, per_group
from corefw.optim.optimizer import Optimizer
from corefw.tensor import Tensor

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Any], Tensor]
ListAverage = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The exponential moving average, ``decay * average + (1 - decay) * value``, for `AveragedModel`.

    >>> import corefw as torch
    >>> from corefw.optim.swa_utils import get_ema_avg_fn
    >>> get_ema_avg_fn(0.5)(torch.tensor(1.0), torch.tensor(2.0), 1)
    tensor(1.5000)
    """
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    def ema_update(average: Tensor, value: Tensor, num_averaged: Any) -> Tensor:
        with no_recording():
            return decay * average + (1 - decay) * value

    return ema_update


def get_swa_avg_fn() -> Average:
    """The mean of all values so far, for `AveragedModel`.

    >>> import corefw as torch
    >>> from corefw.optim.swa_utils import get_swa_avg_fn
    >>> get_swa_avg_fn()(torch.tensor(1.0), torch.tensor(4.0), 2)
    tensor(2.)
    """

    def swa_update(average: Tensor, value: Tensor, num_averaged: Any) -> Tensor:
        with no_recording():
            return average + (value - average) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> ListAverage:
    """As `get_ema_avg_fn`, for lists of averages, which are changed in place."""
    return _over_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> ListAverage:
    """As `get_swa_avg_fn`, for lists of averages, which are changed in place."""
    return _over_lists(get_swa_avg_fn())


def _over_lists(average_of: Average) -> ListAverage:
    def update(averages: Sequence[Tensor], values: Sequence[Tensor], num_averaged: Any) -> None:
        with no_recording():
            for average, value in zip(averages, values, strict=True):
                average.copy_(average_of(average, value, num_averaged))

    return update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's over time.

    Args:
        model: copied as it is.
        device: of the copy.
        avg_fn: ``(average, value, number averaged) -> new average``; the mean of all values if None.
        multi_avg_fn: the same for lists, in place; instead of `avg_fn`.
        use_buffers: average the buffers too; else they are copied at each update.

    Attributes: ``module`` the copy; ``n_averaged`` how many updates were made.

    >>> import corefw as torch
    >>> model = torch.nn.Linear(1, 1)
    >>> averaged = torch.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     model.weight.data.fill_(value)
    ...     averaged.update_parameters(model)
    tensor([[1.]])
    tensor([[3.]])
    >>> averaged.module.weight.item()
    2.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: ListAverage | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", ops.zeros((), dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the present parameters of `model` into the averages; the first time, copy them."""

        def averaged(m: Module) -> list[Tensor]:
            return [p.detach() for p in (chain(m.parameters(), m.buffers()) if self.use_buffers else m.parameters())]

        averages = averaged(self.module)
        values = [v.to(a.device) for v, a in zip(averaged(model), averages, strict=True)]
        with no_recording():
            if self.n_averaged.item() == 0:
                for average, value in zip(averages, values, strict=True):
                    average.copy_(value)
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn(averages, values, self.n_averaged)
            else:
                _over_lists(self.avg_fn or get_swa_avg_fn())(averages, values, self.n_averaged)
            if not self.use_buffers:
                for held, value in zip(self.module.buffers(), model.buffers(), strict=True):
                    held.copy_(value)
            self.n_averaged.add_(1)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of a model's batch normalisations anew, by one pass over the data.

    Args:
        loader: gives inputs, or lists and tuples whose first element is the input.
        model: is run in training mode, and put back into the mode it was in.
        device: to which inputs are moved.

    >>> import corefw as torch
    >>> model = torch.nn.BatchNorm1d(1)
    >>> torch.optim.swa_utils.update_bn([torch.tensor([[1.0], [3.0]])], model)
    >>> model.running_mean
    tensor([2.])
    """
    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for layer in momenta:
        layer.reset_running_stats()
        layer.momentum = None  # which averages all batches alike
    with no_recording():
        for batch in loader:
            given = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(given if device is None else given.to(device))
    for layer, momentum in momenta.items():
        layer.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneal each group's rate to a constant one, at which weights are averaged.

    Args:
        optimizer: whose rates are set.
        swa_lr: the rate at the end, or a list of one per group.
        anneal_epochs: epochs until then.
        anneal_strategy: "cos" or "linear".
        last_epoch: see `LRScheduler`.

    >>> import corefw as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.swa_utils.SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> rates = []
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates += scheduler.get_last_lr()
    >>> rates
    [0.75, 0.5, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ):
        check_optimizer(optimizer)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for rate, group in zip(per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """The share of the final rate after `step` steps."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - cos(pi * t)) / 2

    def get_lr(self) -> list[float]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, after = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            final = group["swa_lr"]
            start = final if before == 1 else (group["lr"] - before * final) / (1 - before)
            rates.append(final * after + start * (1 - after))
        return rates
