"""The memory of parameters that lie in parts on several processes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import inf
from typing import Any

from corefw.dispatch.declare import ops
from corefw.distributed.collectives import all_gather_into_tensor, all_reduce, reduce_scatter_tensor
from corefw.distributed.fsdp.policies import MixedPrecisionPolicy
from corefw.distributed.groups import ProcessGroup
from corefw.distributed.reduce_op import ReduceOp
from corefw.distributed.work import Work
from corefw.graph.grad_mode import no_recording
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor

Place = tuple[Module, str]  # where a parameter is: a module, and its name there


class ShardParameter(Parameter):
    """This process's elements of a parameter, in one dimension; none, where all of them lie on other processes.

    Attributes: ``across`` the parameters that it lies together with, and on which processes; ``spec`` where the
    parameter lies by itself, if it is a DTensor.
    """

    __slots__ = ()
    across: Flat
    spec: Any

    def detach(self) -> Tensor:
        """As of any tensor; the result knows of which parameter it is a part, for checkpoints."""
        shown = super().detach()
        shown.piece = self  # type: ignore[attr-defined]
        return shown


class Memory(list):
    """The version of gathered memory, which all tensors over it share. It tells whose it is, and of which dtype."""

    flat: Flat
    key: Any


def part_of(tensor: Any, spec: Any = None) -> Tensor:
    """This process's part of a tensor: of a DTensor, or of a whole one that lies as `spec` says on a mesh."""
    if hasattr(tensor, "_spec"):
        return tensor.to_local()
    if spec is not None:
        for dim, (size, start) in enumerate(zip(*spec.extent(tensor.shape))):
            tensor = tensor.narrow(dim, start, size)
    return tensor


def whole_of(tensor: Any) -> Any:
    """A DTensor as a plain tensor; anything else itself."""
    return tensor.full_tensor() if hasattr(tensor, "_spec") else tensor


class Flat:
    """Parameters of one device and dtype, one after another in a tensor that is cut into as many parts as there are
    processes, the last one padded.

    Args:
        places: for each parameter where it is; shared ones are in several places.
        group: the processes.
        policy: the dtypes of gathered elements and of averaging.
        is_cut: whether each process holds its part alone, rather than all.
        copies: the processes that hold the same part; this one alone if missing.
    """

    def __init__(
        self, places: Sequence[Sequence[Place]], group: ProcessGroup, policy: MixedPrecisionPolicy, is_cut: bool = True,
        copies: ProcessGroup | None = None,
    ):  # fmt: skip
        parameters = [module._parameters[name] for ((module, name), *_) in places]
        self.places, self.group, self.policy, self.copies = places, group, policy, copies
        self.parts, self.part = (group.size(), group.rank()) if is_cut else (1, 0)
        self.whole_shapes = [p.shape for p in parameters]
        #: of parameters that lie on a mesh of their own, where; what is gathered of them is this process's part there
        self.specs = [getattr(p, "_spec", None) for p in parameters]
        self._kinds = [type(p) for p in parameters]
        parts = [part_of(p) for p in parameters]
        self.shapes = [p.shape for p in parts]
        self.sizes = [p.numel() for p in parts]
        self.share = -(-sum(self.sizes) // self.parts)
        ends = list(accumulate(self.sizes, initial=-self.part * self.share))
        #: which elements of each parameter are here
        self.spans = [
            range(max(-start, 0), max(min(size, self.share - start), max(-start, 0)))
            if start < self.share
            else range(0)
            for start, size in zip(ends, self.sizes)
        ]
        self.full: Tensor | None = None  # all elements, while they are here
        self._filled = -1  # the version of the shard that `full` was made from
        self._coming: tuple[Tensor, Work] | None = None
        self._reducing: list[Work] = []
        self._watched: list[Any] = []
        self.held: Tensor | None = None  # gradients of this process that are still to be averaged
        with no_recording():
            flat = self.joined(parts, self.share * self.parts)
            self.shard = flat[self.part * self.share : (self.part + 1) * self.share].clone()
            self.pieces = [ShardParameter(part, p.requires_grad) for part, p in zip(self.cut(self.shard), parameters)]
        for piece, parameter, spec in zip(self.pieces, parameters, self.specs):
            piece.across, piece.spec = self, spec
            parameter._moved_to = piece  # so that a second unit that has it too is noticed
        self._attach()

    # -- geometry ------------------------------------------------------------------------------------------------
    @staticmethod
    def joined(tensors: Sequence[Tensor], size: int) -> Tensor:
        """The elements of tensors in one of `size` elements, the last of which are zeros."""
        parts = [tensor.detach().reshape(-1) for tensor in tensors]
        padding = size - sum(part.numel() for part in parts)
        return ops.cat([*parts, parts[0].new_zeros(padding)])

    def cut(self, shard: Tensor) -> list[Tensor]:
        """The elements of each parameter in a part of all, as views."""
        return list(shard.split([*map(len, self.spans), self.share - sum(map(len, self.spans))])[:-1])

    def own(self, index: int, value: Tensor) -> Tensor:
        """This process's elements of a tensor of the shape of parameter `index`."""
        span = self.spans[index]
        return part_of(value, self.specs[index]).detach().reshape(-1)[span.start : span.stop]

    def views(self, flat: Tensor) -> list[Tensor]:
        """The parameters in a tensor of all elements."""
        padding = flat.numel() - sum(self.sizes)
        parts = flat.split([*self.sizes, padding])
        return [part.view(shape) for part, shape in zip(parts, self.shapes)]

    def dressed(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Tensors as the parameters are: of those that lie on a mesh, what has these as its parts."""
        facts = zip(tensors, self._kinds, self.whole_shapes, self.specs)
        return [t if spec is None else kind.of_part(t, shape, spec) for t, kind, shape, spec in facts]

    # -- this process's part -------------------------------------------------------------------------------------
    def _attach(self) -> None:
        """Let the pieces show the shard."""
        for piece, part in zip(self.pieces, self.cut(self.shard)):
            piece.data = part
            piece.version = self.shard.version
        self._arrays = [piece.array for piece in self.pieces]

    def local(self) -> Tensor:
        """The shard; pieces that got other memory, as by `Module.to`, are put together anew."""
        if any(piece.array is not array for piece, array in zip(self.pieces, self._arrays)):
            with no_recording():
                self.shard = self.joined(self.pieces, self.share)
                self._filled = -1
            self._attach()
        return self.shard

    @property
    def is_first_copy(self) -> bool:
        """Whether this process is the first of those that hold the same part."""
        return self.copies is None or self.copies.rank() == 0

    @property
    def trainable(self) -> bool:
        """Whether one of the parameters wants a gradient."""
        return any(piece.requires_grad for piece in self.pieces)

    # -- all parts -----------------------------------------------------------------------------------------------
    def begin(self) -> None:
        """Begin to gather all elements, in the policy's dtype."""
        shard = self.local()
        if self._filled == shard.version[0] and (self.full is not None or self._coming is not None):
            return
        self.drop()
        self._filled = shard.version[0]
        with no_recording():
            source = shard.to(self.policy.param_dtype or shard.dtype)
            target = source.detach() if self.parts == 1 else source.new_empty(self.share * self.parts)
        memory = target.version = Memory([0])
        memory.flat, memory.key = self, target.dispatch_key
        if self.parts == 1:
            self.full = target
            return
        work = all_gather_into_tensor(target, source, self.group, async_op=True)
        assert work is not None
        self._coming = target, work

    def ready(self) -> Tensor:
        """All elements, gathered if they are not here."""
        self.begin()
        if self._coming is not None:
            (self.full, work), self._coming = self._coming, None
            work.wait()
        assert self.full is not None
        return self.full

    def drop(self) -> None:
        """Give the memory of all elements back."""
        if self._coming is not None:
            self._coming[1].wait()
        self.full = self._coming = None

    def whole(self, shards: Sequence[Tensor] | None = None) -> list[Tensor]:
        """All elements of each parameter, or of tensors that lie as the pieces do, in memory of their own."""
        with no_recording():
            source = self.local() if shards is None else self.joined(shards, self.share)
            if self.parts == 1:
                return self.views(source.clone())
            target = source.new_empty(self.share * self.parts)
            all_gather_into_tensor(target, source, self.group)
            return self.views(target)

    # -- gradients -----------------------------------------------------------------------------------------------
    def reduce(self, gradients: Sequence[Tensor | None], sync: bool) -> list[Tensor | None]:
        """The average over the processes of the parameters' gradients: this process's elements of it.

        It is on its way when this returns; hooks of the pieces wait for it.

        Args:
            gradients: those of this process; None counts as zeros.
            sync: whether to average now, or to keep them until another call does.
        """
        with no_recording():
            given = next(g for g in gradients if g is not None)
            flat = given.new_empty(self.share * self.parts, dtype=self.policy.reduce_dtype or given.dtype)
            flat[sum(self.sizes) :].zero_()
            for view, gradient in zip(self.views(flat), gradients):
                view.zero_() if gradient is None else view.copy_(gradient)
            if self.held is not None:
                flat += self.held
            self.held = None if sync else flat
            if not sync:
                return [None] * len(self.pieces)
            if self.parts == 1:
                result = flat
                work = all_reduce(result, ReduceOp.AVG, self.group, async_op=True)
            else:
                result = flat.new_empty(self.share)
                work = reduce_scatter_tensor(result, flat, ReduceOp.AVG, self.group, async_op=True)
            assert work is not None
            if self.copies is not None:
                work.wait()
                work = all_reduce(result, ReduceOp.AVG, self.copies, async_op=True)
                assert work is not None
            self._reducing.append(work)
            if len(self._reducing) > 1 or result.dtype is not self.shard.dtype:  # it is used at once
                self.finish()
                result = result.to(self.shard.dtype)
            self._watch()
            return [part if p.requires_grad else None for part, p in zip(self.cut(result), self.pieces)]

    def _watch(self) -> None:
        """Let each piece wait for its gradient before that is added up."""
        nodes = [piece.node for piece in self.pieces]
        for piece, node, watched in zip(self.pieces, nodes, self._watched or [None] * len(nodes)):
            if node is not None and node is not watched:
                piece.register_hook(self._wait)
        self._watched = nodes

    def _wait(self, gradient: Tensor) -> None:
        self.finish()

    def finish(self) -> None:
        """Wait for the averages that are on their way."""
        while self._reducing:
            self._reducing.pop().wait()

    # -- norms ---------------------------------------------------------------------------------------------------
    def total_norm(self, parameters: Sequence[Tensor], order: float) -> Tensor:
        """The norm of the gradients of parameters, some of which lie in parts on this group's processes, which all call
        this."""
        zero = self.shard.new_zeros(())
        cut: dict[Any, list[Tensor]] = {None: []}  # by where they lie on a mesh of their own
        whole: list[Tensor] = []
        for p in parameters:
            is_cut = isinstance(p, ShardParameter) and p.across.parts > 1
            found = cut.setdefault(p.spec, []) if isinstance(p, ShardParameter) and is_cut else whole
            if p.grad is not None and p.numel():
                found.append(p.grad)
        combine = ReduceOp.MAX if order == inf else ReduceOp.SUM
        with no_recording():
            total = _power(whole, order, zero)
            for spec, gradients in cut.items():
                power = _power(gradients, order, zero)
                all_reduce(power, combine, self.group)
                for dim, placement in enumerate(() if spec is None else spec.placements):
                    if placement.is_shard():
                        all_reduce(power, combine, spec.mesh.get_group(dim))
                total = total.maximum(power) if order == inf else total + power
            return total if order == inf else total ** (1 / order)


def _power(tensors: Sequence[Tensor], order: float, zero: Tensor) -> Tensor:
    """The norm of tensors to the power of its order, which adds up; the greatest modulus as it is."""
    if not tensors:
        return zero.clone()
    norm = ops.total_norm([t.to(zero.dtype) for t in tensors], order)
    return norm if order == inf else norm**order
