"""Device meshes: the processes in an array, with a group along each of its dimensions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from corefw.distributed.groups import (
    GroupMember,
    ProcessGroup,
    default_group,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
)
from corefw.tensor import Tensor
from corefw.tensor_api.construction import tensor

__all__ = ["DeviceMesh", "init_device_mesh"]


class _Entered(threading.local):
    """The meshes whose with-blocks a thread is in, innermost last."""

    def __init__(self) -> None:
        self.meshes: list[DeviceMesh] = []


_entered = _Entered()
#: {what tells meshes apart: the first such mesh that is still used}
_known: WeakValueDictionary[tuple, DeviceMesh] = WeakValueDictionary()


class DeviceMesh:
    """Processes in an array; all processes of the world make it together, as they make groups.

    Args:
        device_type: where the processes hold their tensors, "cpu" or "cuda".
        mesh: the ranks, an array in which they ascend along each dimension.
        mesh_dim_names: a name for each dimension.

    Attributes: ``device_type``, ``mesh_dim_names``.

    >>> import corefw as torch
    >>> mesh = torch.distributed.device_mesh.DeviceMesh("cpu", [[0]], mesh_dim_names=("dp", "tp"))
    >>> mesh, mesh["tp"].size(), mesh.get_coordinate()
    (DeviceMesh((dp=1, tp=1), 'cpu', stride=(1, 1)), 1, (0, 0))
    >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None,
        backend_override: Any = None, _init_backend: bool = True,
    ):  # fmt: skip
        if not is_initialized():
            init_process_group()
        array = np.arange(get_world_size()) if mesh is None else np.asarray(_plain(mesh))
        self._take(device_type, array.astype(np.int64), mesh_dim_names)
        if _init_backend:
            self._join([_group_along(self._array, (dim,)) for dim in range(array.ndim)])

    def _take(self, device_type: str, array: np.ndarray, names: Sequence[str] | None) -> None:
        """Be a mesh of these ranks, whose groups are still to be told."""
        if names is not None and len(names) != array.ndim:
            raise ValueError(f"mesh_dim_names {tuple(names)}: expected a name for each of {array.ndim} dimensions")
        if names is not None and len(set(names)) != len(names):
            raise RuntimeError(f"Each mesh_dim_name must be unique, got {tuple(names)}")
        if any((np.diff(array, axis=dim) <= 0).any() for dim in range(array.ndim)):
            raise ValueError(f"DeviceMesh: the ranks {array.tolist()} must ascend along each dimension")
        self.device_type = device_type.partition(":")[0]
        self.mesh_dim_names = None if names is None else tuple(names)
        self._array, self._world = array, default_group()
        self._root, self._dims = self, tuple(range(array.ndim))
        self._groups: list[ProcessGroup] = []
        self._flat: dict[str, DeviceMesh] = {}  # what `_flatten` made of dimensions, by its name
        #: what tells meshes apart
        self._facts = id(self._world), self.device_type, self.mesh_dim_names, array.shape, array.tobytes()
        self._hash = hash(self._facts)
        found = np.argwhere(array == self._world.rank())
        self._coordinate = tuple(map(int, found[0])) if len(found) else None

    def _join(self, groups: list[ProcessGroup]) -> None:
        """Have the groups along the dimensions."""
        self._groups = groups
        _known.setdefault(self._facts, self)

    # -- what it is ----------------------------------------------------------------------------------------------
    @property
    def mesh(self) -> Tensor:
        """The ranks."""
        return tensor(self._array.tolist(), device="cpu")

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its dimensions."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return self._array.ndim

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes it has, in all or along a dimension."""
        return int(self._array.size if mesh_dim is None else self._array.shape[mesh_dim])

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this process is; None if it is none of the mesh."""
        return self._coordinate

    def get_rank(self) -> int:
        """This process's rank in the world."""
        return self._world.rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This process's place along a dimension, which a mesh of one dimension need not be told."""
        dim = self._dimension(mesh_dim, "get_local_rank")
        if self._coordinate is None:
            raise RuntimeError(f"get_local_rank: rank {self.get_rank()} is not in {self}")
        return self._coordinate[dim]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The processes that differ from this one in their place along a dimension alone."""
        dim = self._dimension(mesh_dim, "get_group")
        if not self._groups:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return self._groups[dim]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The group along each dimension."""
        return list(self._groups)

    def _dimension(self, given: int | str | None, name: str) -> int:
        if given is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"{name}: Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be "
                    "specified when device_mesh.ndim > 1."
                )
            return 0
        if isinstance(given, str):
            if self.mesh_dim_names is None or given not in self.mesh_dim_names:
                raise KeyError(f"{name}: no dimension {given!r} among {self.mesh_dim_names}")
            return self.mesh_dim_names.index(given)
        if not -self.ndim <= given < self.ndim:
            raise IndexError(f"{name}: dimension {given} of a mesh with {self.ndim} dimensions")
        return given % self.ndim

    def __repr__(self) -> str:
        sizes = [str(n) for n in self.shape]
        if self.mesh_dim_names is not None:
            sizes = [f"{name}={n}" for name, n in zip(self.mesh_dim_names, sizes)]
        steps = [int(np.diff(self._array, axis=d).flat[0]) if n > 1 else 1 for d, n in enumerate(self.shape)]
        shown = [f"({', '.join(one)}{',' if len(one) == 1 else ''})" for one in (sizes, list(map(str, steps)))]
        return f"DeviceMesh({shown[0]}, {self.device_type!r}, stride={shown[1]})"

    def __reduce__(self) -> Any:
        return _again, (self.device_type, self._array.tolist(), self.mesh_dim_names)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._facts == other._facts)

    def __hash__(self) -> int:
        return self._hash

    # -- parts ---------------------------------------------------------------------------------------------------
    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The mesh along some of its dimensions, named in its order, or of what `_flatten` made, in which this process
        is.

        Raises:
            KeyError: there is no such name.
        """
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self.mesh_dim_names:
            return self
        if len(names) == 1 and names[0] in self._root._flat:
            return self._root._flat[names[0]]
        unknown = [name for name in names if name not in (self.mesh_dim_names or ())]
        if unknown or not names:
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are "
                f"{[*(self.mesh_dim_names or ()), *self._root._flat]}."
            )
        dims = [self._dimension(name, "DeviceMesh") for name in names]
        if sorted(set(dims)) != dims:
            raise KeyError(f"Invalid mesh_dim_names {names} specified. They must be in the order of the mesh.")
        place = self._coordinate or (0,) * self.ndim
        index = tuple(slice(None) if d in dims else i for d, i in enumerate(place))
        return self._part(
            self._array[index], names, tuple(self._dims[d] for d in dims), [self._groups[d] for d in dims]
        )

    def _part(self, array: np.ndarray, names: Any, dims: tuple[int, ...], groups: list[ProcessGroup]) -> DeviceMesh:
        made: DeviceMesh = object.__new__(DeviceMesh)
        made._take(self.device_type, array, names)
        made._root, made._dims = self._root, dims
        made._join(groups)
        return made

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """A mesh of one dimension with the processes of this one. All processes of the world call this.

        Args:
            mesh_dim_name: its name, by which the mesh that this one is a part of finds it too.
        """
        name = mesh_dim_name or "_".join(self.mesh_dim_names or map(str, self._dims))
        if self.ndim == 1:
            return self._part(self._array, (name,), self._dims, self._groups)
        group = _group_along(self._root._array, self._dims)
        made = self._root._flat[name] = self._part(self._array.reshape(-1), (name,), (), [group])
        return made

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup], device_type: str, mesh: Any = None, *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:  # fmt: skip
        """The mesh of groups that are there: of one group in one dimension, or of one for each dimension.

        Args:
            group: a group, or the groups of this process along the dimensions of `mesh`.
            device_type: where the processes hold their tensors.
            mesh: the ranks, wanted with several groups.
            mesh_dim_names: a name for each dimension.
        """
        groups = [group] if isinstance(group, ProcessGroup) else list(group)
        if mesh is None and len(groups) != 1:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        array = np.asarray(groups[0].ranks if mesh is None else _plain(mesh), dtype=np.int64)
        if array.ndim != len(groups):
            raise ValueError(f"from_group: {len(groups)} groups for a mesh of {array.ndim} dimensions")
        made: DeviceMesh = object.__new__(DeviceMesh)
        made._take(device_type, array, mesh_dim_names)
        made._join(groups)
        return made

    def __enter__(self) -> DeviceMesh:
        _entered.meshes.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _entered.meshes.pop()


def _again(device_type: str, ranks: list, names: tuple[str, ...] | None) -> DeviceMesh:
    """The mesh of this process that a pickled one is; one without groups, if the program has not made it."""
    made = DeviceMesh(device_type, ranks, mesh_dim_names=names, _init_backend=False)
    return _known.get(made._facts, made)


def _plain(mesh: Any) -> Any:
    return mesh.tolist() if isinstance(mesh, Tensor) else mesh


def _group_along(array: np.ndarray, dims: tuple[int, ...]) -> Any:
    """This process's group along some dimensions of an array of ranks; makes those of the others too."""
    count = int(np.prod([array.shape[dim] for dim in dims]))
    rows = np.moveaxis(array, dims, range(array.ndim - len(dims), array.ndim)).reshape(-1, count)
    whole, own = default_group(), None
    if count == whole.size():
        return whole
    for row in rows.tolist():
        made = new_group(row)
        own = own if made == GroupMember.NON_GROUP_MEMBER else made
    return own


def chosen_mesh(given: DeviceMesh | None) -> DeviceMesh:
    """The mesh that an argument names: for None that of the innermost with-block."""
    if given is not None:
        return given
    if not _entered.meshes:
        raise RuntimeError("No device mesh is currently active! Give device_mesh=, or enter one: with mesh: ...")
    return _entered.meshes[-1]


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:  # fmt: skip
    """All processes of the world in an array; joins them first if they are not joined.

    Args:
        device_type: where they hold their tensors, "cpu" or "cuda".
        mesh_shape: the array's shape.
        mesh_dim_names: a name for each dimension.

    Raises:
        RuntimeError: there are not as many processes.

    >>> import corefw as torch
    >>> torch.distributed.device_mesh.init_device_mesh("cpu", (1,)).mesh
    tensor([0])
    >>> torch.distributed.destroy_process_group()
    """
    if not is_initialized():
        init_process_group()
    count, size = int(np.prod(mesh_shape)), get_world_size()
    if count > size:
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {size}, but found {count} ranks in shape "
            f"{tuple(mesh_shape)}!"
        )
    if not device_type.isalpha():
        raise RuntimeError(f"Device type with index is not supported but got {device_type}: use the type alone")
    return DeviceMesh(device_type, np.arange(count).reshape(mesh_shape), mesh_dim_names=mesh_dim_names)
