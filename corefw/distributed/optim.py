"""Optimizers whose states lie in parts on several processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import chain
from typing import Any

from corefw.distributed.algorithms.join import Join, Joinable, JoinHook
from corefw.distributed.algorithms.model_averaging.averagers import ModelAverager
from corefw.distributed.collectives import broadcast
from corefw.distributed.groups import chosen_group, get_group_rank
from corefw.distributed.objects import gather_object
from corefw.graph.grad_mode import no_recording
from corefw.nn.parallel.buckets import flattened
from corefw.optim.optimizer import Optimizer
from corefw.refusals import refusing
from corefw.tensor import Tensor

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


class _Hook(JoinHook):
    """Steps the part of a process that has no more inputs, with the averages that `DistributedDataParallel` gave it."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer):
        self.optimizer = optimizer

    def main_hook(self) -> None:
        """Make one step of the others."""
        self.optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer of which each process keeps the states of a part of the parameters, steps that part, and sends it to
    the others (Rajbhandari et al. 2020, stage 1).

    Args:
        params: as for any optimizer; the same in all processes, with the same gradients, such as those of
            `DistributedDataParallel`.
        optimizer_class: the class of the optimizer of each part.
        process_group: the processes; all if missing.
        parameters_as_bucket_view: accepted for PyTorch's sake: each part is sent as one message in any case.
        overlap_with_ddp: must be False.
        defaults: options for `optimizer_class`.
    """

    def __init__(
        self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
        parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any,
    ):  # fmt: skip
        group = chosen_group(process_group)
        if group is None:
            raise ValueError("ZeroRedundancyOptimizer: this process is not in the process group")
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp is not there; step after the backward")
        self.process_group, self.initialized = group, False
        self._owners: dict[Tensor, int] = {}
        self._loads = [0] * group.size()
        self._whole: dict[str, Any] | None = None  # the consolidated state
        Joinable.__init__(self)
        Optimizer.__init__(self, params, dict(defaults))
        for param_group in self.param_groups:
            self._divide(param_group["params"])
        self.optim = optimizer_class([self._own(param_group) for param_group in self.param_groups], **defaults)
        self.defaults = dict(self.optim.defaults)
        for param_group, own in zip(self.param_groups, self.optim.param_groups, strict=True):
            _copy_options(own, param_group)
        self.state = self.optim.state
        self.initialized = True

    def _divide(self, params: list[Tensor]) -> None:
        """Give each parameter, the largest first, to the process that has least."""
        for p in sorted(params, key=Tensor.numel, reverse=True):
            owner = self._loads.index(min(self._loads))
            self._owners[p] = owner
            self._loads[owner] += p.numel()

    def _is_own(self, p: Tensor) -> bool:
        return self._owners[p] == self.process_group.rank()

    def _own(self, param_group: dict[str, Any]) -> dict[str, Any]:
        """A group with this process's parameters alone."""
        own = {**param_group, "params": [p for p in param_group["params"] if self._is_own(p)]}
        if "param_names" in own:
            named = zip(param_group["param_names"], param_group["params"], strict=True)
            own["param_names"] = [name for name, p in named if self._is_own(p)]
        return own

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As any optimizer's; the new parameters go to the processes that have least."""
        super().add_param_group(param_group)
        if self.initialized:
            added = self.param_groups[-1]
            self._divide(added["params"])
            self.optim.add_param_group(self._own(added))
            _copy_options(self.optim.param_groups[-1], added)

    def step(self, closure: Callable[[], Any] | None = None, **options: Any) -> Any:
        """Step this process's part, and take the others' parts from them.

        Args:
            closure: recomputes the loss and its gradients, and returns the loss.
        """
        Join.notify_join_context(self)
        for param_group, own in zip(self.param_groups, self.optim.param_groups, strict=True):
            _copy_options(param_group, own)
        loss = self.optim.step(closure, **options) if closure is not None else self.optim.step(**options)
        for own, param_group in zip(self.optim.param_groups, self.param_groups, strict=True):
            _copy_options(own, param_group)
        self._send()
        return loss

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What `Join` calls in processes without inputs."""
        return _Hook(self)

    @property
    def join_device(self) -> Any:
        """The device of the first parameter."""
        return next(iter(self._owners)).device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group

    def _send(self) -> None:
        """All parameters become those of their owners."""
        for rank in range(self.process_group.size()):
            theirs = [p for p in self._owners if self._owners[p] == rank]
            for params, flat in flattened(theirs):
                broadcast(flat, group=self.process_group, group_src=rank)
                if rank != self.process_group.rank():
                    with no_recording():
                        for p, part in zip(params, flat.split([p.numel() for p in params])):
                            p.detach().copy_(part.view(p.shape))

    # -- checkpoints ----------------------------------------------------------------------------------------------
    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the states of all parts on rank `to`, for `state_dict` there. All processes call this."""
        numbers = self._numbers()
        own = {numbers[p]: dict(state) for p, state in self.optim.state.items() if p in numbers}
        is_target = self.process_group.rank() == get_group_rank(self.process_group, to)
        parts: list[Any] | None = [None] * self.process_group.size() if is_target else None
        gather_object(own, parts, dst=to, group=self.process_group)
        if parts is not None:
            states = dict(sorted(chain.from_iterable(part.items() for part in parts)))
            self._whole = {**super().state_dict(), "state": states}

    def _numbers(self) -> dict[Tensor, int]:
        return {p: i for i, p in enumerate(chain.from_iterable(g["params"] for g in self.param_groups))}

    def state_dict(self) -> dict[str, Any]:
        """The state of all parts, in the form of the optimizer itself.

        Raises:
            RuntimeError: `consolidate_state_dict` was not called before, or gathered it on another rank.
        """
        if self._whole is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self.process_group.ranks[self.process_group.rank()]})` on all ranks beforehand if you meant to save "
                "the global state."
            )
        return self._whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a whole state, such as `state_dict` gave or the optimizer itself; each process keeps its part."""
        numbers = self._numbers()
        own = {number for p, number in numbers.items() if self._is_own(p)}
        kept = {number: state for number, state in state_dict["state"].items() if number in own}
        super().load_state_dict({**state_dict, "state": kept})
        self.optim.state, self._whole = self.state, None
        for param_group, part in zip(self.param_groups, self.optim.param_groups, strict=True):
            _copy_options(param_group, part)


def _copy_options(source: dict[str, Any], target: dict[str, Any]) -> None:
    """A group takes the options of another, all but its parameters."""
    target.update((key, value) for key, value in source.items() if key not in ("params", "param_names"))


class PostLocalSGDOptimizer(Optimizer):
    """An optimizer that steps by itself in each process, and averages the parameters from time to time (Lin et al.
    2020). `post_localSGD_hook` averages gradients before that begins.

    Args:
        optim: the optimizer of this process.
        averager: tells when parameters are averaged, such as
            `corefw.distributed.algorithms.model_averaging.averagers.PeriodicModelAverager`.
    """

    def __init__(self, optim: Optimizer, averager: ModelAverager):
        self.optim, self.averager = optim, averager

    @property
    def param_groups(self) -> Any:  # type: ignore[override]
        """Those of the optimizer."""
        return self.optim.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """That of the optimizer."""
        return self.optim.state

    @property
    def defaults(self) -> Any:  # type: ignore[override]
        """Those of the optimizer."""
        return self.optim.defaults

    def __repr__(self) -> str:
        return f"PostLocalSGDOptimizer({self.optim!r})"

    def step(self, closure: Callable[[], Any] | None = None, **options: Any) -> Any:
        """Step this process's parameters, and average them if it is time to.

        Args:
            closure: recomputes the loss and its gradients, and returns the loss.
        """
        loss = self.optim.step(closure, **options) if closure is not None else self.optim.step(**options)
        self.averager.average_parameters(self.param_groups)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As the optimizer's."""
        self.optim.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As the optimizer's."""
        self.optim.add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's, with the averager's ``step``."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; without a ``step`` the averager begins anew."""
        self.optim.load_state_dict({key: value for key, value in state_dict.items() if key != "step"})
        if "step" not in state_dict:
            warnings.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.",
                stacklevel=2,
            )
        self.averager.step = state_dict.get("step", 0)


__getattr__ = refusing(__name__)
