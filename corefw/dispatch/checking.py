"""Checking: every kernel's result is held against what its op says, instead of being believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from corefw import dtypes
from corefw.devices import DispatchKey
from corefw.dispatch.calls import arrays_of, changed_of, computes, described, host_copy, shares_memory, silent
from corefw.dispatch.modes import Mode
from corefw.dispatch.op import Op
from corefw.dispatch.resolution import shape_of
from corefw.dispatch.runtime import NUMBERS
from corefw.errors import CorefwError, KernelResultError
from corefw.tracebacks import user_line


class checking(Mode):
    """A with-block in which each kernel's result is checked: its type, shape, dtype and device, that it has memory of
    its own, and that the arguments are as they were. With ``COREFW_CHECK=1`` it holds for the whole program.

    What is wrong raises an error that names the op, the backend, what came and what was wanted. Ops are slower, since
    the arguments are copied first; outside of the block nothing is.

    >>> import corefw as torch
    >>> with torch.checking():
    ...     torch.ones(2) + 1
    tensor([2., 2.])
    """

    def wrap(self, op, dispatch_key, who, function):
        if not computes(op, dispatch_key, who):
            return function
        call = silent(function)

        def checked(*arguments, **options):
            if dispatch_key.runtime.is_capturing():  # what is recorded in a graph has no content yet
                return call(*arguments, **options)
            return _Call(op, dispatch_key, who, arguments, options).run(call)

        return checked


class _Call:
    """One call of a kernel, and what is to be said of it."""

    def __init__(self, op: Op, dispatch_key: DispatchKey, who: str, arguments: tuple, options: dict):
        self.op, self.dispatch_key, self.who = op, dispatch_key, who
        self.arguments, self.options = arguments, options
        self.runtime = dispatch_key.runtime

    def run(self, kernel: Callable) -> Any:
        """What the kernel gives, or KernelResultError."""
        before = [(name, array, host_copy(self.runtime, array)) for name, array in arrays_of(self.op, self.arguments)]
        result = kernel(*self.arguments, **self.options)
        self.check_arguments(before)
        if "out" in self.options:
            self.check_written(result)
        elif not any(True for _ in changed_of(self.op, self.arguments)):
            self.check_results(result)
        return result

    def check_arguments(self, before) -> None:
        """Refuse changes of what the call was not to change."""
        changed = {name for name, _ in changed_of(self.op, self.arguments)}
        for name, array, content in before:
            if name in changed or ("out" in self.options and self.shares(array, self.options["out"])):
                continue
            after = host_copy(self.runtime, array)
            if after.shape != content.shape or after.dtype != content.dtype or after.tobytes() != content.tobytes():
                self.refuse(f"changed its argument '{name}'", "arguments as they were")

    def check_written(self, result) -> None:
        """Refuse a kernel that does not write to the array it was given."""
        out = self.options["out"]
        if result is not None and result is not out and out.nbytes and not self.shares(result, out):
            self.refuse("returned another array than out=", "the result in out=")

    def check_results(self, result) -> None:
        """Refuse results that are not what the op's rules say."""
        outputs = self.op.outputs
        if outputs and (not isinstance(result, tuple | list) or len(result) != len(outputs)):
            came = f"{len(result)} results" if isinstance(result, tuple | list) else type(result).__name__
            self.refuse(f"returned {came}", f"a tuple of {len(outputs)}: {', '.join(outputs)}")
        wanted = self.wanted_shapes()
        for i, value in enumerate(result if outputs else (result,)):
            name = f" as '{outputs[i]}'" if outputs else ""
            dtype = self.op.rule.results[i](self.dispatch_key.dtype)
            self.check_one(name, value, wanted and wanted[i], dtype)

    def wanted_shapes(self) -> Any:
        """The shapes of the results; None if they depend on the data."""
        if self.op.shape is None:
            return None
        try:
            found = shape_of(self.op, self.arguments)
        except CorefwError as error:
            self.refuse("took arguments that the op's shape rule refuses", str(error))
        except Exception:  # the rule cannot say: for a mask it depends on the data
            return None
        return found if self.op.outputs else (found,)

    def check_one(self, name: str, value, shape, dtype: dtypes.dtype) -> None:
        """Refuse one result."""
        array_type = self.runtime.array_type
        if isinstance(value, NUMBERS):
            value = self.runtime.wrap(value)
        if value.__class__ is not array_type:
            self.refuse(f"returned {type(value).__name__}{name}", f"an array, {array_type.__name__}")
        if value.dtype != dtype.numpy:
            self.refuse(f"returned {dtypes.of_numpy(value.dtype).name}{name}", dtype.name)
        if shape is not None and tuple(value.shape) != tuple(shape):
            self.refuse(f"returned the shape {list(value.shape)}{name}", str(list(shape)))
        index, wanted = self.runtime.index_of(value), self.dispatch_key.device.index
        if index is not None and index != wanted:
            self.refuse(f"returned an array of device {index}{name}", f"one of {self.dispatch_key.device}")
        for argument, array in arrays_of(self.op, self.arguments):
            if self.shares(value, array):
                self.refuse(f"returned memory of its argument '{argument}'{name}", "a result in memory of its own")

    def shares(self, first, second) -> bool:
        return shares_memory(self.runtime, first, second)

    def refuse(self, came: str, wanted: str) -> NoReturn:
        """Raise KernelResultError."""
        backend = f"the kernel of backend '{self.who}'" if self.who != "composite" else "the body of the composite"
        raise KernelResultError(
            f"{self.op.name}: {backend} {came}; wanted: {wanted}. Called as {described(self.op, self.arguments)} on "
            f"{self.dispatch_key.device}, at {user_line()}"
        )
