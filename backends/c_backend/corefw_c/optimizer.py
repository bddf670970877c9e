"""Optimizer steps over a whole parameter list, in place, and the norm of such a list."""

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.dispatch.records import Layout, record
from corefw.errors import read_only
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.library import fail


def refuse_read_only(name, lists):
    """Raise ReadOnlyError if an array in one of the lists is read-only, before any is changed."""
    if not all(array.flags.writeable for arrays in lists for array in arrays):
        raise read_only(name)


def kernels(lib):
    """The family's kernels."""
    probe = [np.empty(1), np.empty(2)]
    if not lib.list_is(id(probe), id(probe[0]), id(probe[1])):
        raise ImportError("this Python lays out its lists as corefw_c does not expect: use the NumPy backend")

    layout = Layout("lists", "rates", "numbers")

    def stepping(name):
        """The kernel of a step."""
        step, pack, lists = getattr(lib, name), layout.packer(name), len(record(name).lists)

        def kernel(*arguments):
            if step(pack(*map(id, arguments[:lists]), *arguments[lists:])):
                on_copies(arguments)

        def on_copies(arguments):
            """Step copies without gaps, counts as real numbers, and write back what became of them."""
            given = arguments[:lists]
            written = given[:1] + given[2:]  # all but the gradients
            refuse_read_only(name, written)
            copies = [
                [np.array(a, None if a.dtype.kind == "f" else "f", order="C") for a in arrays] for arrays in given
            ]
            if status := step(pack(*map(id, copies), *arguments[lists:])):
                fail(name, status)
            for arrays, changed in zip(written, copies[:1] + copies[2:]):
                for a, c in zip(arrays, changed):
                    a[...] = c

        return kernel

    def scale_step(tensors, factor):
        if lib.scale_step(id(tensors), id(factor)):
            refuse_read_only("scale_step", [tensors])
            for tensor in tensors:
                tensor *= factor

    def total_norm(tensors, norm_type):
        output = empty((), tensors[0].dtype)
        if lib.total_norm(id(tensors), norm_type, id(output)) and (
            status := lib.total_norm(id(tensors := [*map(dense, tensors)]), norm_type, id(output))
        ):
            fail("total_norm", status)
        return output

    steps = ("sgd", "adam", "adadelta", "adagrad", "adamax", "nadam", "radam", "rmsprop")
    return [
        Kernel("scale_step", scale_step, FLOATS),
        Kernel("total_norm", total_norm, FLOATS),
        *(Kernel(f"{name}_step", stepping(f"{name}_step"), FLOATS) for name in steps),
    ]
