"""The ops' shape rules, for kernels whose arithmetic would take what the op does not."""

from corefw.dispatch.registry import registry
from corefw.dispatch.resolution import shape_of


def result_shape(name, *arguments):
    """The shape of an op's result for a kernel's arguments; raises the rule's error where they do not fit."""
    return shape_of(registry.ops[name], arguments)
