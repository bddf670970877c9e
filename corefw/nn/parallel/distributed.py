"""Training one model in several processes, each on its part of the data."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from corefw.autograd.leaves import finish_early, last_uses
from corefw.distributed.algorithms.join import Join, Joinable
from corefw.distributed.collectives import broadcast
from corefw.distributed.groups import chosen_group
from corefw.distributed.objects import all_gather_object
from corefw.futures import Future
from corefw.graph.grad_mode import mode, no_recording
from corefw.nn.modules.module import Module
from corefw.nn.parallel.buckets import GradBucket, Reducer, flattened
from corefw.nn.parallel.joining import DataParallelHook, Step, agreed
from corefw.tensor import Tensor

_FIRST_BUCKET_MB = 1  # small, so that something is sent soon


class DistributedDataParallel(Module, Joinable):
    """A model that the processes of a group train together: all start from the parameters of the first, and in each
    backward the gradients become their average over the processes, while the backward still goes on.

    Args:
        module: the model, with equal parameters' shapes in all processes.
        device_ids, output_device, dim: of PyTorch's older form; the model is used where it lies.
        broadcast_buffers, forward_sync_buffers: whether the buffers of rank 0 replace the others' before each forward
            in training, as they do if both are missing.
        init_sync: whether parameters and buffers of rank 0 replace the others' now.
        process_group: the processes; all if missing.
        bucket_cap_mb: how many megabytes of gradients are averaged at once.
        find_unused_parameters: whether parameters that do not take part in the outputs get the gradient zero, instead
            of an error in the next step.
        check_reduction, batched_grad_copy: without effect.
        gradient_as_bucket_view: whether gradients are parts of what is sent, which saves a copy of them.
        static_graph: as `find_unused_parameters`; whether the same ones are unused in each step makes no difference.
        bucket_cap_mb_list: megabytes of each bucket; the last is that of all others.
        mixed_precision, device_mesh, delay_all_reduce_named_params, skip_all_reduce_unused_params: refused.

    Raises:
        ValueError: there is no process group.
        RuntimeError: no parameter needs a gradient, or the processes have different models.

    Source: Li et al., "PyTorch Distributed: experiences on accelerating data parallel training", 2020.
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: Any = None,
        bucket_cap_mb: float | None = None, find_unused_parameters: bool = False, check_reduction: bool = False,
        gradient_as_bucket_view: bool = False, static_graph: bool = False, delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None, mixed_precision: Any = None, device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False, bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False, forward_sync_buffers: bool | None = None,
    ):  # fmt: skip
        Module.__init__(self)
        Joinable.__init__(self)
        if any((mixed_precision, device_mesh, delay_all_reduce_named_params, skip_all_reduce_unused_params)):
            raise NotImplementedError(
                "DistributedDataParallel: mixed_precision, device_mesh, delay_all_reduce_named_params and "
                "skip_all_reduce_unused_params are not there; convert the model, or give a process_group"
            )
        group = chosen_group(process_group)
        if group is None:
            raise ValueError("DistributedDataParallel: this process is not in the process group")
        self.module = module
        self.process_group = group
        self.device_ids, self.output_device, self.dim = device_ids, output_device, dim
        self.device = next((p.device for p in module.parameters()), None)
        sent = broadcast_buffers if forward_sync_buffers is None else forward_sync_buffers
        self.broadcast_buffers = sent is None or sent
        self.find_unused_parameters = find_unused_parameters
        self.static_graph, self.require_backward_grad_sync = static_graph, True
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named: list[tuple[str, Tensor]] = [(name, p) for name, p in module.named_parameters() if name not in ignored]
        trained = {name: p for name, p in named if p.requires_grad}
        self._trained = list(trained.values())
        if not self._trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        self._buffers_to_send = [b for name, b in module.named_buffers() if name not in ignored]
        self._check_models(named)
        if init_sync:
            self._send([p for _, p in named] + self._buffers_to_send)
        self._parameters_to_send = [p for _, p in named]
        self.divides_by_all = True  # whether averages are over all processes, also those that have no more inputs
        usual: Sequence[float] = [_FIRST_BUCKET_MB, 25] if bucket_cap_mb is None else [bucket_cap_mb]
        sizes = [int(cap * (1 << 20)) for cap in bucket_cap_mb_list or usual]
        self.reducer = Reducer(trained, group, sizes, gradient_as_bucket_view)

    def _check_models(self, named: list[tuple[str, Tensor]]) -> None:
        """Raise RuntimeError, in all processes, if their parameters are not alike."""
        own = [(name, list(p.shape), str(p.dtype), p.requires_grad) for name, p in named]
        everyone: list[Any] = [None] * self.process_group.size()
        all_gather_object(everyone, own, self.process_group)
        for rank, other in zip(self.process_group.ranks, everyone):
            if other != everyone[0]:
                differing = next((a for a, b in zip(other, everyone[0]) if a != b), f"{len(other)} parameters")
                raise RuntimeError(
                    f"DistributedDataParallel: the model of rank {rank} is not that of rank "
                    f"{self.process_group.ranks[0]}: {differing}"
                )

    def _send(self, tensors: list[Tensor], root: int = 0) -> None:
        """Tensors become those of one of the group's processes."""
        for group, flat in flattened(tensors):
            broadcast(flat, group=self.process_group, group_src=root)
            with no_recording():
                for tensor, part in zip(group, flat.split([t.numel() for t in group])):
                    tensor.detach().copy_(part.view(tensor.shape))

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        """The model's result; prepares the averaging of the gradients that follow."""
        averages = mode.recording and self.require_backward_grad_sync
        sends = bool(
            self.broadcast_buffers and self.require_backward_grad_sync and self.training and self._buffers_to_send
        )
        root = 0
        if self._join_config.enable:
            Join.notify_join_context(self)
            root = self._prepared(agreed(self, True, sends, averages))
        if sends:
            self._send(self._buffers_to_send, root)
        result = self.module(*inputs, **keywords)
        if averages:
            uses = last_uses(tensors_in(result))
            finish_early(self._trained, uses, at_most=self.reducer.active)
            self.reducer.prepare(self._unused_by(uses))
        else:
            self.reducer.active = False
        return result

    def _unused_by(self, uses: Container) -> list[Tensor]:
        """The parameters that do not take part in a result, if their gradients are not to be waited for."""
        if not (self.find_unused_parameters or self.static_graph):
            return []
        return [p for p in self._trained if p.node not in uses]

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which gradients are added up in each process, without being averaged."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # -- with uneven inputs --------------------------------------------------------------------------------------
    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """A block in which processes have different numbers of inputs; see `corefw.distributed.algorithms.Join`.

        Args:
            divide_by_initial_world_size: whether gradients are summed and divided by the number of all processes; else
                by that of those that still have inputs.
            enable: whether inputs are uneven; if not, the block does nothing.
            throw_on_early_termination: whether all processes raise an error once one has no more inputs.
        """
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> DataParallelHook:
        """What `Join` calls in processes without inputs; ``divide_by_initial_world_size`` is that of `join`."""
        return DataParallelHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """The device of the model."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group

    def _prepared(self, step: Step) -> int:
        """Divide by the right number in a step; returns the rank whose buffers all take."""
        self.reducer.divisor = self.process_group.size() if self.divides_by_all else len(step.present)
        return step.present[0]

    def answer(self, step: Step) -> None:
        """Take part in a step of the others."""
        root = self._prepared(step)
        if step.sends:
            self._send(self._buffers_to_send, root)
        if step.averages:
            self.reducer.answer()

    def take_over(self, root: int) -> None:
        """The model of all processes becomes that of one, and averages are over all again."""
        self._send(self._parameters_to_send + self._buffers_to_send, root)
        self.reducer.divisor = self.process_group.size()

    def register_comm_hook(self, state: object, hook: Callable[[Any, GradBucket], Future]) -> None:
        """Let `hook` average the gradients: called with `state` and a bucket, it returns a future of the averages.

        Args:
            state: kept for the hook.
            hook: such as those of `corefw.distributed.algorithms.ddp_comm_hooks`.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook = lambda bucket: hook(state, bucket)

    def _set_static_graph(self) -> None:
        self.static_graph = True

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors among a model's results."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif hasattr(value, "__dataclass_fields__"):
        value = vars(value).values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for part in value for tensor in tensors_in(part)]


__all__ = ["DistributedDataParallel"]
