"""DTensor: a tensor whose elements lie on the processes of a mesh, with the methods of one that does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corefw.dispatch.declare import ops
from corefw.dispatch.sparse.keys import kinds
from corefw.distributed.device_mesh import DeviceMesh, chosen_mesh
from corefw.distributed.tensor import rules as rules
from corefw.distributed.tensor.parts import Parts, assembled, in_parts, local_of, placed, whole_of
from corefw.distributed.tensor.placements import Placement, Replicate, Shard, Spec, canonical
from corefw.graph.grad_mode import no_recording
from corefw.graph.nodes import leaf_node
from corefw.graph.views import node_of
from corefw.nn.parameter import Parameter
from corefw.shapes import contiguous_strides
from corefw.tensor import AccumulateGrad, Tensor


class DTensor(Tensor):
    """A tensor that lies on the processes of a mesh: in parts, whole on each, or in summands, along each of the mesh's
    dimensions. Ops on it are those of one tensor; each process computes its part of them, and all call the same.

    `distribute_tensor` and `DTensor.from_local` make one.

    >>> import corefw as torch
    >>> from corefw.distributed.tensor import DTensor, Shard
    >>> mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
    >>> DTensor.from_local(torch.ones(2), mesh, [Shard(0)]) * 3
    DTensor(local_tensor=tensor([3., 3.]), device_mesh=DeviceMesh((1,), 'cpu', stride=(1,)), placements=(Shard(dim=0),))
    >>> torch.distributed.destroy_process_group()
    """

    __slots__ = ()
    array: Parts
    printed_as = "DTensor"
    parameter_class: type[Parameter]

    def __new__(cls, local_tensor: Tensor, spec: Spec, *, requires_grad: bool = False) -> Any:
        made = assembled(local_tensor.detach(), _inferred(local_tensor.shape, spec), spec)
        return made.requires_grad_(requires_grad)

    def __init__(self, local_tensor: Tensor, spec: Spec, *, requires_grad: bool = False):
        pass

    # -- parts and the whole -------------------------------------------------------------------------------------
    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
        run_check: bool = False, shape: Sequence[int] | None = None, stride: Sequence[int] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:  # fmt: skip
        """The tensor whose part on this process is `local_tensor`; gradients flow back into it.

        Args:
            local_tensor: the part, for `Replicate` the whole, for `Partial` the summand.
            device_mesh: the processes; the mesh of the with-block if missing.
            placements: along each dimension of the mesh; whole on each if missing.
            run_check: whether what shall be whole on each process is taken from the first.
            shape: of the whole, which parts of unequal lengths need; else all parts are as long as this one.
            stride: accepted; parts have strides of their own.
            grad_placements: how the gradient lies that `local_tensor` gets; as the tensor, whole for summands.
        """
        mesh = chosen_mesh(device_mesh)
        spec = Spec(mesh, canonical(placements, mesh, local_tensor.ndim))
        whole = tuple(_inferred(local_tensor.shape, spec) if shape is None else shape)
        if spec.extent(whole)[0] != tuple(local_tensor.shape):
            raise ValueError(
                f"from_local: this process's part of a tensor of shape {list(whole)} at {spec.placements} has shape "
                f"{list(spec.extent(whole)[0])}, but got {list(local_tensor.shape)}"
            )
        if run_check:
            for dim, placement in enumerate(spec.placements):
                if placement.is_replicate():
                    local_tensor = ops.broadcasted(local_tensor, 0, mesh.get_group(dim))
        gradient = None if grad_placements is None else canonical(grad_placements, mesh, local_tensor.ndim)
        return assembled(local_tensor, whole, spec, gradient=gradient)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This process's part; gradients flow from it into the tensor.

        Args:
            grad_placements: how the gradient of the part lies; as the tensor, whole for summands.
        """
        given = None if grad_placements is None else canonical(grad_placements, self.device_mesh, self.ndim)
        found = local_of(self, given)
        return found if found is not self.array.local else found.view_as(found) if found.ndim else found

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole as a plain tensor, on every process. All processes of the mesh call this."""
        return self.redistribute().to_local(grad_placements=grad_placements)

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
        async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None,
    ) -> DTensor:  # fmt: skip
        """The same tensor elsewhere on its mesh. All processes of the mesh call this.

        Args:
            device_mesh: the tensor's mesh.
            placements: along each dimension of the mesh; whole on each process if missing.
            async_op: accepted; the result is there when this returns.
            forward_dtype: the dtype to convert to before.
            backward_dtype: must be missing.

        Raises:
            RuntimeError: summands are asked for, of what has none.
        """
        mesh = self.device_mesh if device_mesh is None else device_mesh
        if mesh != self.device_mesh:
            raise NotImplementedError("redistribute: Cross device mesh comm not supported yet!")
        if backward_dtype is not None:
            raise NotImplementedError("redistribute: backward_dtype is not there; cast the gradient by a hook")
        wanted = canonical(placements, mesh, self.ndim)
        for before, after in zip(self.placements, wanted):
            if after.is_partial() and before != after:
                raise RuntimeError(
                    f"Can not redistribute from {self.placements} to {wanted}, redistributing to Partial is for "
                    "internal use only!"
                )
        return placed(self if forward_dtype is None else self.to(forward_dtype), Spec(mesh, wanted))

    @property
    def device_mesh(self) -> DeviceMesh:
        """The processes."""
        return self.array.spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How the tensor lies along each dimension of the mesh."""
        return self.array.spec.placements

    of_part = staticmethod(assembled)

    @property
    def _spec(self) -> Spec:
        return self.array.spec

    @property
    def _local_tensor(self) -> Tensor:
        return self.array.local

    # -- as of other tensors -------------------------------------------------------------------------------------
    @property
    def data(self) -> Any:
        """The same tensor without history. Settable to another one."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        Tensor.data.fset(self, value)  # type: ignore[attr-defined]

    def stride(self, dim: int | None = None) -> Any:
        """The strides of a whole that lies in order."""
        strides = contiguous_strides(self.array.shape)
        return strides if dim is None else strides[dim]

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        node = node_of(self)
        history = "" if node is None else ", requires_grad=True"
        if node is not None and node.__class__ is not AccumulateGrad:
            history = f", grad_fn=<{node.name()}>"
        return (
            f"DTensor(local_tensor={self.array.local!r}, device_mesh={self.device_mesh}, "
            f"placements={self.placements}{history})"
        )

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, specification: str) -> str:
        return format(self.item() if self.ndim == 0 else repr(self), specification)

    def __reduce_ex__(self, protocol: Any) -> Any:
        arguments = (type(self), self.array.local, tuple(self.shape), self.device_mesh, self.placements)
        return _rebuilt, (*arguments, self.requires_grad)


DTensor._plain = DTensor
kinds[Spec].tensor_class = DTensor


class DTensorParameter(DTensor, Parameter):
    """A parameter that lies on a mesh: what `nn.Parameter` makes of a DTensor."""

    __slots__ = ()

    __new__ = Parameter.__new__  # type: ignore[assignment]
    __init__ = Parameter.__init__
    __deepcopy__ = Parameter.__deepcopy__

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + super().__repr__()


DTensor.parameter_class = DTensorParameter


def _rebuilt(kind: type, local: Tensor, shape: Any, mesh: DeviceMesh, placements: Any, requires_grad: bool) -> Any:
    """A tensor from what pickle kept of it."""
    made = assembled(local.detach(), shape, Spec(mesh, placements))
    if kind is not DTensor:
        return kind(made, requires_grad)
    return made.requires_grad_(requires_grad)


def _inferred(shape: Sequence[int], spec: Spec) -> tuple[int, ...]:
    """The shape of the whole, if all parts are like one of this shape."""
    found = list(shape)
    for n, placement in zip(spec.mesh.shape, spec.placements):
        if isinstance(placement, Shard):
            found[placement.dim] *= n
    return tuple(found)


def _converted(name: str) -> None:
    """Give DTensor the method `name`, which converts its part."""

    def convert(self: DTensor, *arguments: Any, **options: Any) -> Any:
        local = local_of(self)
        made = getattr(local, name)(*arguments, **options)
        return self if made is local else assembled(made, self.array.shape, self.array.spec, "ToCopyBackward0")

    convert.__name__, convert.__doc__ = name, getattr(Tensor, name).__doc__
    setattr(DTensor, name, convert)


for _name in (
    *("to", "cpu", "cuda", "type_as", "bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "double", "float"),
    *("half", "int", "long", "short"),
):
    _converted(_name)


# -- tensors and modules ----------------------------------------------------------------------------------------------
def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
    src_data_rank: int | None = 0,
) -> DTensor:  # fmt: skip
    """A tensor as one on a mesh, a leaf. All processes of the mesh call this, with tensors of one shape.

    Args:
        tensor: a leaf.
        device_mesh: the processes; the mesh of the with-block if missing.
        placements: along each dimension of the mesh; whole on each if missing.
        src_data_rank: whose elements count, by its place along each dimension of the mesh; None for each its own.

    >>> import corefw as torch
    >>> from corefw.distributed.tensor import distribute_tensor, Shard
    >>> mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
    >>> distribute_tensor(torch.arange(4), mesh, [Shard(0)]).to_local()
    tensor([0, 1, 2, 3])
    >>> torch.distributed.destroy_process_group()
    """
    mesh = chosen_mesh(device_mesh)
    wanted = canonical(placements, mesh, tensor.ndim)
    if in_parts(tensor):
        found = tensor.array.spec
        if found.mesh != mesh or found.placements != wanted:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {found.placements} to {wanted} on {mesh}: redistribute it"
            )
        return tensor  # type: ignore[return-value]
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    if tensor.device.type not in (mesh.device_type, "meta"):
        tensor = tensor.to(mesh.device_type)
    with no_recording():
        local = tensor.detach()
        if src_data_rank is not None and tensor.device.type != "meta":
            for dim in range(mesh.ndim):
                local = ops.broadcasted(local, src_data_rank, mesh.get_group(dim))
        made = placed(whole_of(local, mesh), Spec(mesh, wanted))
    if tensor.requires_grad:
        made.node = leaf_node(made)
    return made


def distribute_module(
    module: Any, device_mesh: DeviceMesh | None = None, partition_fn: Any = None, input_fn: Any = None,
    output_fn: Any = None,
) -> Any:  # fmt: skip
    """A module whose parameters and buffers lie on a mesh.

    Args:
        module: changed in place, and returned.
        device_mesh: the processes; the mesh of the with-block if missing.
        partition_fn: called as ``partition_fn(name, submodule, device_mesh)`` for each, to distribute its parameters;
            those that it leaves are whole on each process.
        input_fn: called as ``input_fn(module, inputs, device_mesh)``, makes the inputs of the forward.
        output_fn: called as ``output_fn(module, outputs, device_mesh)``, makes its outputs.
    """
    mesh = chosen_mesh(device_mesh)
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        for key, parameter in part._parameters.items():
            if parameter is not None and not in_parts(parameter):
                made = distribute_tensor(parameter.data, mesh, [Replicate()] * mesh.ndim)
                part.register_parameter(key, Parameter(made, parameter.requires_grad))
        for key, buffer in part._buffers.items():
            if buffer is not None and not in_parts(buffer):
                part._buffers[key] = distribute_tensor(buffer, mesh, [Replicate()] * mesh.ndim)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda module, inputs: input_fn(module, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda module, inputs, outputs: output_fn(module, outputs, mesh))
    return module


__all__ = ["DTensor", "DTensorParameter", "distribute_module", "distribute_tensor"]
