"""Units of a model whose parameters are gathered for the time that they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from corefw.autograd.function import Function
from corefw.autograd.grad_mode import enable_grad
from corefw.autograd.recorder import Recorder, exchange_step
from corefw.autograd.saved import pack_saved
from corefw.distributed.fsdp.flats import Flat, Memory, Place
from corefw.distributed.fsdp.policies import MixedPrecisionPolicy
from corefw.distributed.groups import ProcessGroup
from corefw.graph.grad_mode import mode
from corefw.nn.modules.module import Module
from corefw.nn.parallel.distributed import tensors_in
from corefw.nn.parameter import Parameter, is_lazy
from corefw.tensor import Node, Tensor
from corefw.utils._pytree import tree_map


class _Gathered(Function):
    """Whole parameters from the pieces of all processes. Its node is older than all that the unit computes, so its
    backward runs when the unit's has ended."""

    @staticmethod
    def forward(ctx: Any, unit: Unit, flat: Flat, *pieces: Tensor) -> Any:
        ctx.unit, ctx.flat = unit, flat
        ctx.set_materialize_grads(False)
        views = flat.views(flat.ready())
        ctx.mark_non_differentiable(*(v for v, p in zip(views, pieces) if not p.requires_grad))
        return tuple(views)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        unit = ctx.unit
        unit.after_backward()
        reduced = ctx.flat.reduce(gradients, unit.sync)
        unit.joined_tree().reducing(ctx.flat)
        return None, None, *reduced


class _Recipe:
    """Stands in the graph for a view of gathered parameters, so that their memory can be given back."""

    __slots__ = ("flat", "offset", "size", "stride")

    def __init__(self, flat: Flat, tensor: Tensor):
        self.flat = flat
        self.size, self.stride, self.offset = tensor.size(), tensor.stride(), tensor.storage_offset()

    def tensor(self) -> Tensor:
        """The view, of parameters that are gathered again if need be."""
        return self.flat.ready().as_strided(self.size, self.stride, self.offset)


class _Saving:
    """What the graph saves inside units: recipes of parameters, all else as what is around them wants it. As it sees
    each step of the forward, and of the backward those with parameters, it lets go on what is on its way meanwhile."""

    def __init__(self, outer: Any, group: ProcessGroup):
        self.packing, self.group = getattr(outer, "keywords", None), group

    def __call__(self, node: Node) -> None:
        if self.group.going:
            self.group.advance()
        if self.packing is not None or _holds_gathered(node.saved):
            pack_saved(node, self.pack, self.unpack)

    def pack(self, tensor: Tensor) -> Any:
        """What is kept."""
        memory = tensor.version
        if isinstance(memory, Memory) and tensor.dispatch_key is memory.key:
            return _Recipe(memory.flat, tensor)
        return tensor if self.packing is None else (self.packing["pack"](tensor),)

    def unpack(self, packed: Any) -> Tensor:
        """The tensor that was kept."""
        if self.group.going:
            self.group.advance()
        if isinstance(packed, _Recipe):
            return packed.tensor()
        return packed if self.packing is None else self.packing["unpack"](packed[0])


def _holds_gathered(saved: Any) -> bool:
    """Whether gathered memory is among what a node saved."""
    if isinstance(saved, (tuple, list)):
        return any(map(_holds_gathered, saved))
    return isinstance(saved, Tensor) and isinstance(saved.version, Memory)


class Tree:
    """The units of a model, and the order in which its forward comes to them.

    Args:
        root: the unit that is called from outside.
    """

    def __init__(self, root: Unit):
        self.root, self.order = root, [root]
        self._reducing: Flat | None = None
        self.units = units_of(root.module)
        for unit in self.units:
            unit.tree = self

    def enter(self, unit: Unit) -> None:
        """A unit's forward begins: those that come after it begin to be gathered."""
        if unit not in self.order:
            self.order.append(unit)
        self._prefetch(unit.following, self.order.index(unit) + 1, unit.prefetches[0])

    def enter_backward(self, unit: Unit) -> None:
        """A unit's backward begins: those whose backward comes after it begin to be gathered; after the root's, which
        begins first, that of the unit whose forward came last."""
        self._prefetch(unit.preceding, (self.order.index(unit) or len(self.order)) - 1, unit.prefetches[1])

    def _prefetch(self, named: Sequence[Unit] | None, place: int, is_wanted: bool) -> None:
        if named is None:
            named = [self.order[place]] if is_wanted and 0 <= place < len(self.order) else []
        for unit in named:
            unit.begin()

    def reducing(self, flat: Flat) -> None:
        """Gradients are on their way; those before them are waited for, so that the memory of one unit's is taken."""
        if self._reducing is not None and self._reducing is not flat:
            self._reducing.finish()
        self._reducing = flat

    def clear(self) -> None:
        """Before a forward: give back what was gathered and not used."""
        for unit in self.units:
            unit.settle()
            unit.drop()


def units_of(module: Module) -> list[Unit]:
    """The units of a module and those below it."""
    return [m.__dict__["_fsdp_unit"] for m in module.modules() if "_fsdp_unit" in m.__dict__]


class Unit:
    """A module whose parameters, but for those of units below it, lie in parts on several processes. They are gathered
    before its forward and its backward, and given back after each.

    Args:
        module: what is called.
        group: the processes.
        reshard_after_forward: whether they are given back after the forward.
        policy: the dtypes of computing and of averaging.
        is_cut: whether each process holds a part alone; else all, and gradients are averaged.
        ignored: parameters that are left as they are.
        prefetches: whether the next unit's are gathered while this one computes, in the forward and in the backward.
        copies: the processes that hold the same parts, over which gradients are averaged too.

    Attributes: ``sync`` whether backwards average gradients; ``is_plain`` whether state dicts hold pieces for now.

    Raises:
        ValueError: a parameter belongs to another unit too, or has no elements yet.
    """

    def __init__(
        self, module: Module, group: ProcessGroup, reshard_after_forward: bool | None = True,
        policy: MixedPrecisionPolicy | None = None, is_cut: bool = True, ignored: Iterable[Tensor] = (),
        prefetches: tuple[bool, bool] = (True, True), copies: ProcessGroup | None = None,
    ):  # fmt: skip
        self.module, self.group, self.reshard_after_forward = module, group, reshard_after_forward
        self.policy = policy or MixedPrecisionPolicy()
        self.prefetches = prefetches
        self.reshard_after_backward = self.sync = True
        self.in_backward = self.is_plain = False
        self.tree: Tree | None = None
        self.following: list[Unit] | None = None
        self.preceding: list[Unit] | None = None
        self._before: list[Any] | None = None  # what the backward shows the whole parameters instead of
        kinds: dict[Any, list[list[Place]]] = {}
        for parameter, places in _places(module, ignored):
            key = parameter.dispatch_key
            kinds.setdefault((getattr(key, "dense", key), parameter.requires_grad), []).append(places)
        self.flats = [Flat(places, group, self.policy, is_cut, copies) for places in kinds.values()]
        self.show([flat.pieces for flat in self.flats])

    # -- where parameters are shown ------------------------------------------------------------------------------
    def show(self, tensors: Iterable[Sequence[Tensor]]) -> None:
        """Let the modules have these tensors as their parameters."""
        for flat, shown in zip(self.flats, tensors):
            for places, tensor in zip(flat.places, shown):
                for module, name in places:
                    module._parameters[name] = tensor

    def _shown(self) -> list[list[Any]]:
        return [[module._parameters[name] for ((module, name), *_) in flat.places] for flat in self.flats]

    def show_whole(self) -> None:
        """Let the modules have the whole parameters."""
        self.show([flat.dressed(_Gathered.apply(self, flat, *flat.pieces)) for flat in self.flats])

    def show_pieces(self) -> None:
        """Let the modules have this process's pieces."""
        self.show([flat.pieces for flat in self.flats])

    # -- gathering -----------------------------------------------------------------------------------------------
    def begin(self) -> None:
        """Begin to gather."""
        for flat in self.flats:
            flat.begin()

    def drop(self) -> None:
        """Give the whole parameters back."""
        for flat in self.flats:
            flat.drop()

    def joined_tree(self) -> Tree:
        """The tree it belongs to; it is the root of a new one if there is none."""
        return self.tree or Tree(self)

    # -- computing -----------------------------------------------------------------------------------------------
    def call(self, function: Callable, args: tuple, keywords: dict[str, Any]) -> Any:
        """What a function of the module returns, computed with the whole parameters."""
        tree = self.joined_tree()
        if tree.root is self and not mode.running:
            tree.clear()
        before = self._shown()
        self.begin()
        self.show_whole()
        if not self.in_backward:
            tree.enter(self)
        outer = mode.recorder.steps.get("saved") if isinstance(mode.recorder, Recorder) else None
        is_saving = mode.recording is not False and not isinstance(outer, _Saving)
        if is_saving:
            exchange_step("saved", _Saving(outer, self.group))
        is_kept = False
        try:
            if self.policy.param_dtype is not None and self.policy.cast_forward_inputs:
                args, keywords = _cast((args, keywords), self.policy.param_dtype)
            result = function(*args, **keywords)
            if self.policy.output_dtype is not None:
                result = _cast(result, self.policy.output_dtype)
            is_kept = mode.recording is not False and not self._reshards()
        finally:
            if is_saving:
                exchange_step("saved", outer)
            self.show(before)
            if not is_kept and not self.in_backward:
                self.drop()
        if mode.recording is not False:
            self._watch((args, keywords), result)
        return result

    def _reshards(self) -> bool:
        if self.reshard_after_forward is None:
            return self.tree is None or self.tree.root is not self
        return self.reshard_after_forward

    def _watch(self, given: Any, result: Any) -> None:
        """Notice when the backward comes to the unit, and when it leaves one that has no gradients of its own."""
        for tensor in tensors_in(result):
            if tensor.requires_grad:
                tensor.register_hook(self.before_backward)
        if not any(flat.trainable for flat in self.flats):
            entered = next((t for t in tensors_in(given) if t.requires_grad and not t.is_leaf), None)
            if entered is not None:
                entered.register_hook(lambda gradient: self.after_backward())

    def before_backward(self, gradient: Tensor | None = None) -> None:
        """Gather again; parts that are computed again find the whole parameters in the modules."""
        if self.in_backward:
            return
        self.in_backward = True
        self._before = self._shown()
        with enable_grad():
            self.show_whole()
        self.joined_tree().enter_backward(self)

    def settle(self) -> None:
        """End a backward that did not come to its end, as after an error."""
        if self.in_backward and not mode.running:
            self.after_backward()

    def after_backward(self) -> None:
        """Give the whole parameters back."""
        if self._before is not None:
            self.show(self._before)
            self._before = None
        self.in_backward = False
        if self.reshard_after_backward:
            self.drop()


def _places(module: Module, ignored: Iterable[Tensor]) -> list[tuple[Parameter, list[Place]]]:
    """The parameters of a module that are in no unit, each with the places where it is."""
    skipped = set(map(id, ignored))
    found: dict[int, tuple[Parameter, list[Place]]] = {}
    for below in module.modules():
        for name, parameter in below._parameters.items():
            if parameter is None or id(parameter) in skipped or hasattr(parameter, "across"):
                continue
            if is_lazy(parameter):
                raise ValueError(
                    f"fully_shard: the parameter {name!r} has no elements yet; call the module once before"
                )
            if hasattr(parameter, "_moved_to"):
                raise ValueError(
                    f"fully_shard: the parameter {name!r} of {type(below).__name__} is shared with a unit that is "
                    "sharded already; parameters are shared within one unit: shard the module that holds both instead"
                )
            found.setdefault(id(parameter), (parameter, []))[1].append((below, name))
    return list(found.values())


def _cast(value: Any, kind: Any) -> Any:
    """A structure with its floating-point tensors in another dtype."""
    return tree_map(lambda t: t.to(kind) if isinstance(t, Tensor) and t.dtype.is_floating_point else t, value)
