"""How one module computes in parts: what its parameters, its inputs and its outputs become."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from corefw.distributed.device_mesh import DeviceMesh
from corefw.distributed.tensor.dtensor import DTensor, distribute_module, distribute_tensor
from corefw.distributed.tensor.parts import in_parts
from corefw.distributed.tensor.placements import Placement, Replicate, Shard
from corefw.nn.modules.embedding import Embedding
from corefw.nn.modules.linear import Linear
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor

Layouts = Placement | Sequence[Placement | None] | None


class ParallelStyle(ABC):
    """What `parallelize_module` makes of a module."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module: ...

    def _distributed(self, tensor: Tensor, mesh: DeviceMesh, placement: Placement) -> Parameter:
        made = distribute_tensor(tensor.data, mesh, [placement], src_data_rank=self.src_data_rank)
        return Parameter(made, tensor.requires_grad)


def _placed(value: Any, given: Placement | None, wanted: Placement | None, mesh: DeviceMesh) -> Any:
    """A tensor, of which a plain one lies as `given` says, where it is wanted; None leaves it."""
    if given is None and not in_parts(value):
        return value
    if not isinstance(value, Tensor):
        raise ValueError(f"expecting a tensor with layout {given}, but got {type(value).__name__}")
    tensor: Any = value if in_parts(value) else DTensor.from_local(value, mesh, [given])  # type: ignore[list-item]
    return tensor if wanted is None else tensor.redistribute(placements=[wanted])


def _plain(value: Any) -> Any:
    return value.to_local() if in_parts(value) else value


# -- layers -----------------------------------------------------------------------------------------------------------
class _Layer(ParallelStyle):
    """A linear layer or an embedding in parts.

    Args:
        input_layouts: how a plain input lies.
        output_layouts: where the output is wanted.
        use_local_output: whether the output is this process's part, a plain tensor.
    """

    #: {a class of layers: where the input is wanted, and where the parameters lie}
    _KINDS: ClassVar[dict[type[Module], tuple[Placement, dict[str, Placement]]]]
    _INPUT: ClassVar[Placement]
    _OUTPUT: ClassVar[Placement]

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ):  # fmt: skip
        self.input_layouts = (input_layouts or self._INPUT,)
        self.output_layouts = (output_layouts or self._OUTPUT,)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        kind = next((kind for kind in self._KINDS if isinstance(module, kind)), None)
        if kind is None:
            raise NotImplementedError(
                f"{type(self).__name__} currently only support nn.Linear and nn.Embedding, but got "
                f"{type(module).__name__}: name its layers in the plan"
            )
        wanted, placements = self._KINDS[kind]

        def partition(name: str, module: Module, mesh: DeviceMesh) -> None:
            for key, parameter in module.named_parameters(recurse=False):
                module.register_parameter(key, self._distributed(parameter, mesh, placements[key]))

        def enter(module: Module, inputs: tuple, mesh: DeviceMesh) -> Any:
            return (_placed(inputs[0], self.input_layouts[0], wanted, mesh), *inputs[1:])

        def leave(module: Module, output: Any, mesh: DeviceMesh) -> Any:
            output = output.redistribute(placements=self.output_layouts)
            return output.to_local() if self.use_local_output else output

        return distribute_module(module, device_mesh, partition, enter, leave)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_Layer):
    """Each process computes some of a layer's outputs: `nn.Linear` is cut in its rows, `nn.Embedding` in its columns.

    Args:
        input_layouts: how a plain input lies; `Replicate()` if missing.
        output_layouts: where the output is wanted; ``Shard(-1)`` if missing.
        use_local_output: whether the output is this process's part, a plain tensor.
    """

    _INPUT, _OUTPUT = Replicate(), Shard(-1)
    _KINDS: ClassVar = {
        Linear: (Replicate(), {"weight": Shard(0), "bias": Shard(0)}),
        Embedding: (Replicate(), {"weight": Shard(1)}),
    }


class RowwiseParallel(_Layer):
    """Each process computes with some of a layer's inputs: `nn.Linear` is cut in its columns, `nn.Embedding` in its
    rows; the outputs are summands.

    Args:
        input_layouts: how a plain input lies; ``Shard(-1)`` if missing, as `ColwiseParallel` leaves it; that of an
            embedding is `Replicate()`.
        output_layouts: where the output is wanted; `Replicate()` if missing.
        use_local_output: whether the output is this process's part, a plain tensor.
    """

    _INPUT, _OUTPUT = Shard(-1), Replicate()
    _KINDS: ClassVar = {
        Linear: (Shard(-1), {"weight": Shard(1), "bias": Replicate()}),
        Embedding: (Replicate(), {"weight": Shard(0)}),
    }


class SequenceParallel(ParallelStyle):
    """A normalisation, or another module that treats the places of a sequence alone: each process computes for some of
    them. The parameters are whole on each process.

    Args:
        sequence_dim: the dimension of the sequence.
        use_local_output: whether the output is this process's part, a plain tensor.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False):
        self.sequence_sharding, self.use_local_output = (Shard(sequence_dim),), use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def partition(name: str, module: Module, mesh: DeviceMesh) -> None:
            for key, parameter in module.named_parameters(recurse=False):
                module.register_parameter(key, self._distributed(parameter, mesh, Replicate()))

        def enter(module: Module, inputs: tuple, mesh: DeviceMesh) -> Any:
            (sharding,) = self.sequence_sharding
            return (_placed(inputs[0], sharding, sharding, mesh), *inputs[1:])

        def leave(module: Module, output: Any, mesh: DeviceMesh) -> Any:
            return _plain(output) if self.use_local_output else output

        return distribute_module(module, device_mesh, partition, enter, leave)

    def __repr__(self) -> str:
        (sharding,) = self.sequence_sharding
        return f"{type(self).__name__}(sequence_dim={sharding.dim}, use_local_output={self.use_local_output})"


# -- what goes into modules, and comes out of them --------------------------------------------------------------------
def _listed(layouts: Layouts) -> tuple[Placement | None, ...] | None:
    return (layouts,) if isinstance(layouts, Placement) else None if layouts is None else tuple(layouts)


def _pairs(what: str, values: Sequence[Any], given: Any, wanted: Any) -> list[tuple[Any, Any, Any]]:
    if len(values) != len(given):
        raise ValueError(
            f"module {what}s and {what}_layouts should have same length, got {len(values)} and {len(given)}"
        )
    return list(zip(values, given, wanted, strict=True))


class PrepareModuleInput(ParallelStyle):
    """The inputs of a module brought where it wants them.

    Args:
        input_layouts: for each positional input how a plain one lies; None leaves it as it is.
        desired_input_layouts: for each where it is wanted.
        input_kwarg_layouts, desired_input_kwarg_layouts: the same by name for those given by keyword.
        use_local_output: whether the module gets this process's parts, as plain tensors.
    """

    def __init__(
        self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_output: bool = False,
    ):  # fmt: skip
        self.input_layouts, self.desired_input_layouts = _listed(input_layouts), _listed(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        if set(self.input_kwarg_layouts) != set(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have the same keys!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def enter(module: Module, inputs: tuple, named: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
            def prepared(value: Any, given: Any, wanted: Any) -> Any:
                made = _placed(value, given, wanted, device_mesh)
                return _plain(made) if self.use_local_output and made is not value else made

            if self.input_layouts is not None:
                pairs = _pairs("input", inputs, self.input_layouts, self.desired_input_layouts)
                inputs = tuple(prepared(*each) for each in pairs)
            given, wanted = self.input_kwarg_layouts, self.desired_input_kwarg_layouts
            return inputs, {
                key: prepared(value, given[key], wanted[key]) if given.get(key) is not None else value
                for key, value in named.items()
            }

        module.register_forward_pre_hook(enter, with_kwargs=True)
        return module

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, "
            f"desired_input_layouts={self.desired_input_layouts}, input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """The outputs of a module brought where they are wanted.

    Args:
        output_layouts: for each output how a plain one lies; None leaves it as it is.
        desired_output_layouts: for each where it is wanted.
        use_local_output: whether the outputs are this process's parts, plain tensors.
    """

    def __init__(self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True):
        self.output_layouts = _listed(output_layouts) or ()
        self.desired_output_layouts = _listed(desired_output_layouts) or ()
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def leave(module: Module, inputs: Any, outputs: Any) -> Any:
            several = outputs if isinstance(outputs, tuple) else (outputs,)
            made = []
            for value, given, wanted in _pairs("output", several, self.output_layouts, self.desired_output_layouts):
                found = value if given is None else _placed(value, given, wanted, device_mesh)
                made.append(_plain(found) if self.use_local_output and given is not None else found)
            return tuple(made) if isinstance(outputs, tuple) else made[0]

        module.register_forward_hook(leave)
        return module

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(output_layouts={self.output_layouts}, "
            f"desired_output_layouts={self.desired_output_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` in one.

    Args:
        input_layouts, desired_input_layouts, input_kwarg_layouts, desired_input_kwarg_layouts, output_layouts,
            desired_output_layouts: theirs.
        use_local_input, use_local_output: whether the module gets, and gives, plain tensors.
    """

    def __init__(
        self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_input: bool = False,
        output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True,
    ):  # fmt: skip
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.prepare_module_input}, {self.prepare_module_output})"
