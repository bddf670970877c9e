"""Views: arithmetic on strides in C; what that does not take, the declaration's does."""

from functools import cache

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import registry
from corefw.dispatch.resolution import geometry_kernel
from corefw_c.direct import direct


def by_geometry(op):
    """The kernel that a view op has without a backend."""

    @cache
    def found():
        return geometry_kernel(registry.declared[op], registry.runtimes["cpu"][1])

    return lambda array, *attributes: found()(array, *attributes)


def kernels(lib):
    """The family's kernels."""

    def view(op, name, *numbers):
        return Kernel(op, direct(lib, name, by_geometry(op), *numbers))

    return [
        view("diagonal", "diagonal"),
        view("equal_split", "parts", 0),
        view("expand", "expanded"),
        view("squeeze", "without_dimensions"),
        view("unbind", "parts", 1),
        view("unsqueeze", "with_dimension"),
        view("view_size", "reshaped"),
    ]
