"""The tables that say which kernel of an op runs for a dispatch key."""

from __future__ import annotations

from corefw import dtypes
from corefw.devices import DispatchKey
from corefw.dispatch.flags import unheard
from corefw.dispatch.op import Op
from corefw.dispatch.registry import registry


class Table(dict):
    """{dispatch key: (kernel, dispatch key(s) of the result, array type, takes out=)} of one op, found on first use.

    The kernel of a composite without one is None; then the second item is the body to run. With `numbers` the kernels
    take 0-d arrays of float32 beside arrays of half types.
    """

    __slots__ = ("inplace", "numbers", "op")

    def __init__(self, op: Op, numbers: bool = False):
        self.op = op
        self.numbers = numbers
        self.inplace = InplaceTable(self)

    def __missing__(self, dispatch_key: DispatchKey):
        entry = self[dispatch_key] = registry.resolve(self.op, dispatch_key, self.numbers)
        registry.filled.append(self)
        return entry

    def clear(self) -> None:
        """Drop every entry."""
        super().clear()
        self.inplace.clear()


class InplaceTable(dict):
    """{dispatch key: function(*arguments, out)} of one op: runs the kernel and leaves the result in `out`."""

    __slots__ = ("table",)

    def __init__(self, table: Table):
        self.table = table

    def __missing__(self, dispatch_key: DispatchKey):
        kernel, result, array_type, writes = self.table[dispatch_key]
        copy = dispatch_key.runtime.copy
        dtypes.check_castable(result.dtype, dispatch_key.dtype)
        wrap_array = dispatch_key.runtime.wrap

        @unheard
        def into(*arguments, out):
            value = kernel(*arguments)
            if value.__class__ is not array_type:
                value = wrap_array(value)
            if value.shape != out.shape:
                raise ValueError(f"result of shape {list(value.shape)} for a target of shape {list(out.shape)}")
            copy(out, value)

        self[dispatch_key] = found = kernel if writes and result is dispatch_key else into
        return found


@unheard
def run_into(function, arguments, out) -> None:
    """Call an entry of an `InplaceTable`, which may be a ufunc of NumPy, without warnings of its flags."""
    function(*arguments, out=out)
