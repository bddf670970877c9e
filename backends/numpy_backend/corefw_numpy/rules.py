"""The ops' shape rules, for kernels whose arithmetic would take what the op does not."""

from corefw.dispatch.registry import registry
from corefw.dispatch.resolution import shape_of
from corefw.shapes import check_storage


def result_shape(name, *arguments):
    """The shape of an op's result for a kernel's arguments; raises the rule's error where they do not fit."""
    shape = shape_of(registry.declared[name], arguments)
    for one in shape if shape and isinstance(shape[0], tuple) else (shape,):
        check_storage(one, arguments[0].dtype.itemsize)
    return shape
