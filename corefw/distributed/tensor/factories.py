"""Functions that make tensors on a mesh; random ones have the numbers that one process would draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corefw.declarations._shared.factories import size_argument
from corefw.dispatch.declare import ops
from corefw.distributed.device_mesh import DeviceMesh, chosen_mesh
from corefw.distributed.tensor.dtensor import DTensor
from corefw.distributed.tensor.parts import assembled, placed, whole_of
from corefw.distributed.tensor.placements import Placement, Spec, canonical
from corefw.graph.grad_mode import no_recording
from corefw.layouts import layout as layout_type
from corefw.layouts import strided
from corefw.tensor import Tensor

__all__ = ["empty", "full", "ones", "rand", "randn", "zeros"]


def _where(size: tuple[int, ...], device_mesh: DeviceMesh | None, placements: Sequence[Placement] | None) -> Spec:
    mesh = chosen_mesh(device_mesh)
    return Spec(mesh, canonical(placements, mesh, len(size)))


def _filled(
    name: str, size: tuple[int, ...], device_mesh: DeviceMesh | None, placements: Sequence[Placement] | None,
    requires_grad: bool, *value: Any, **options: Any,
) -> DTensor:  # fmt: skip
    spec = _where(size, device_mesh, placements)
    made: Tensor = getattr(ops, name)(spec.extent(size)[0], *value, device=spec.mesh.device_type, **options)
    return assembled(made, size, spec).requires_grad_(requires_grad)


def _drawn(
    name: str, size: tuple[int, ...], device_mesh: DeviceMesh | None, placements: Sequence[Placement] | None,
    requires_grad: bool, **options: Any,
) -> DTensor:  # fmt: skip
    spec = _where(size, device_mesh, placements)
    with no_recording():
        made: Tensor = getattr(ops, name)(size, device=spec.mesh.device_type, **options)
        found = placed(whole_of(made, spec.mesh), spec)
    return found.requires_grad_(requires_grad)


def zeros(
    *size: Any, requires_grad: bool = False, dtype: Any = None, layout: layout_type = strided,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """Zeros on a mesh.

    Args:
        size: the shape of the whole, as one sequence or separately.
        dtype, layout, requires_grad: as of `torch.zeros`.
        device_mesh: the processes; the mesh of the with-block if missing.
        placements: along each dimension of the mesh; whole on each if missing.
    """
    shape = size_argument("zeros", size)
    return _filled("zeros", shape, device_mesh, placements, requires_grad, dtype=dtype, layout=layout)


def ones(
    *size: Any, dtype: Any = None, layout: layout_type = strided, requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """Ones on a mesh. Arguments as for `zeros`."""
    shape = size_argument("ones", size)
    return _filled("ones", shape, device_mesh, placements, requires_grad, dtype=dtype, layout=layout)


def empty(
    *size: Any, dtype: Any = None, layout: layout_type = strided, requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """Arbitrary elements on a mesh. Arguments as for `zeros`."""
    shape = size_argument("empty", size)
    return _filled("empty", shape, device_mesh, placements, requires_grad, dtype=dtype, layout=layout)


def full(
    size: Any, fill_value: Any, *, dtype: Any = None, layout: layout_type = strided, requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """`fill_value` everywhere on a mesh. Arguments as for `zeros`."""
    shape = size_argument("full", (size,))
    return _filled("full", shape, device_mesh, placements, requires_grad, fill_value, dtype=dtype, layout=layout)


def rand(
    *size: Any, requires_grad: bool = False, dtype: Any = None, layout: layout_type = strided,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """Numbers from [0, 1) on a mesh, those that `torch.rand` draws: each process draws all and keeps its part, so
    generators must be seeded alike. Arguments as for `zeros`."""
    shape = size_argument("rand", size)
    return _drawn("rand", shape, device_mesh, placements, requires_grad, dtype=dtype, layout=layout)


def randn(
    *size: Any, requires_grad: bool = False, dtype: Any = None, layout: layout_type = strided,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """Normal numbers on a mesh, those that `torch.randn` draws, as for `rand`. Arguments as for `zeros`."""
    shape = size_argument("randn", size)
    return _drawn("randn", shape, device_mesh, placements, requires_grad, dtype=dtype, layout=layout)
