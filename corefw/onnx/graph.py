"""The builder of an ONNX graph: names of values, nodes, constants, and sizes known only at run time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from corefw.capture.program import Line, Value
from corefw.dispatch.registry import registry
from corefw.dtypes import dtype
from corefw.onnx.errors import OnnxExporterError
from corefw.onnx.sizes import Size, Unknown

#: beyond every size: the end of a slice that goes to the end
END = 2**63 - 1


def host(array: Any) -> np.ndarray:
    """A raw array's elements in row-major order, in host memory."""
    for _, runtime in registry.runtimes.values():
        if array.__class__ is runtime.array_type:
            return np.array(runtime.download(array), order="C")
    return np.array(array, order="C")


class Graph:
    """Nodes and initializers of a graph that is written line by line.

    Attributes:
        opset: the version of ONNX's operators.
        line: the line that is written now.
        used: the values that lines and outputs use.
        fixed: the values whose elements are known now.
    """

    line: Line

    def __init__(self, opset: int, sources: dict[str, tuple[str, int]], numbers: dict[Value, Size]):
        from onnx import helper, numpy_helper

        self.helper, self.numpy_helper = helper, numpy_helper
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self._sources = sources  # a symbol -> the input that has it, and its axis
        self._numbers = numbers  # constants that are sizes
        self._constants: dict[tuple, str] = {}
        self._sizes: dict[Size, str] = {}
        self.used: set[Value] = set()
        self.fixed: set[Value] = set()

    # -- names ------------------------------------------------------------------------------------------------------
    def unique(self, name: str) -> str:
        """`name`, or where it is taken the first free one that begins so."""
        found, count = name, 0
        while found in self.taken:
            count += 1
            found = f"{name}_{count}"
        self.taken.add(found)
        return found

    def initializer(self, name: str, array: np.ndarray) -> str:
        """The name of an initializer with these elements."""
        name = self.unique(name)
        self.initializers[name] = self.numpy_helper.from_array(array, name)
        return name

    def name(self, value: Value | str) -> str:
        """The name of a value; constants become initializers when they are first used."""
        if value.__class__ is str:
            return value
        assert isinstance(value, Value)
        found = self.names.get(value)
        if value in self._numbers:
            return self.node(
                "Cast", self.squeeze(self.ints([self._numbers[value]]), [0]), to=self.element_type(value.dtype)
            )
        if found is None:
            array = host(value.array)
            found = self.initializer(value.name, array) if value.name else self.constant(array)
            self.names[value] = found
        return found

    # -- nodes ------------------------------------------------------------------------------------------------------
    def known(self, value: Value | str) -> np.ndarray | None:
        """A value's elements, where they are known now."""
        return host(value.array) if isinstance(value, Value) and value in self.fixed else None

    def node(self, kind: str, *inputs: Value | str | None, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; returns the name of its output, or the names of several."""
        given = ["" if value is None else self.name(value) for value in inputs]
        while given and not given[-1]:
            given.pop()
        title = self.unique(f"{self.line.op.name}_{kind}")
        results = [title] + [self.unique(f"{title}.{i}") for i in range(1, outputs)]
        kept = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(self.helper.make_node(kind, given, results, title, **kept))
        return results[0] if outputs == 1 else results

    def constant(self, array: Any, d: Any = None) -> str:
        """An initializer with these elements; equal small ones are shared."""
        array = np.asarray(array, d)
        if array.size > 1024:
            return self.initializer("constant", array)
        key = (array.dtype, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.initializer("constant", array)
        return self._constants[key]

    def number(self, number: Any, d: dtype | None = None) -> str:
        """A number as a constant of a dtype, by default that of the line's first result."""
        return self.constant(number, (d or self.dtype).numpy)

    @cached_property
    def _elements(self):
        return self.helper.np_dtype_to_tensor_dtype

    def element_type(self, d: dtype) -> int:
        """ONNX's number of a dtype."""
        return self._elements(np.dtype(d.numpy))

    def cast(self, value: Value | str, d: dtype) -> Value | str:
        """A value as elements of a dtype; a name is that of another one."""
        if isinstance(value, Value) and value.dtype is d:
            return value
        return self.node("Cast", value, to=self.element_type(d))

    @property
    def dtype(self) -> dtype:
        """The dtype of the line's first result."""
        return self.line.results[0].dtype

    @property
    def shape(self) -> tuple:
        """The shape of the line's first result."""
        return self.line.results[0].shape

    def as_result(self, *values: Value | str) -> list:
        """Operands in the dtype of the result."""
        return [self.cast(value, self.dtype) for value in values]

    # -- sizes ------------------------------------------------------------------------------------------------------
    def static(self, attribute: Any, what: str) -> Any:
        """An attribute that must not depend on sizes.

        Raises:
            OnnxExporterError: it does.
        """
        for item in attribute if isinstance(attribute, tuple | list) else (attribute,):
            if isinstance(item, Size | Unknown):
                self.refuse(f"{what} depends on the dynamic axes: {item}")
        return attribute

    def refuse(self, reason: str) -> None:
        """Raise that the line cannot be written."""
        raise OnnxExporterError(f"onnx.export: {self.line.op.name} at {self.line.where}: {reason}")

    def ints(self, numbers: Iterable[Any]) -> str:
        """A vector of int64 that holds numbers and sizes."""
        numbers = list(numbers)
        if all(isinstance(n, int) for n in numbers):
            return self.constant(numbers, np.int64)
        parts, run = [], []
        for n in numbers:
            if isinstance(n, int):
                run.append(n)
                continue
            parts += [self.constant(run, np.int64)] if run else []
            parts.append(self._size(n))
            run = []
        parts += [self.constant(run, np.int64)] if run else []
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=0)

    def _size(self, size: Any) -> str:
        """A size as a vector of one element."""
        if not isinstance(size, Size):
            self.refuse(f"a size that depends on the dynamic axes is no product of their sizes: {size}")
        if size not in self._sizes:
            name, *others = [self._symbol(symbol) for symbol in size.symbols]
            for other in others:
                name = self.node("Mul", name, other)
            for kind, n, nothing in (
                ("Mul", size.factor.numerator, 1),
                ("Div", size.factor.denominator, 1),
                ("Add", size.offset, 0),
            ):
                name = name if n == nothing else self.node(kind, name, self.constant([n], np.int64))
            self._sizes[size] = name
        return self._sizes[size]

    def _symbol(self, symbol: str) -> str:
        source, axis = self._sources[symbol]
        return self.size_of(source, axis)

    def size_of(self, value: Value | str, dim: int) -> str:
        """The size of one dimension, when the graph runs, as a vector of one element."""
        return self.node("Shape", value, start=dim, end=dim + 1 or None)

    # -- what many entries use --------------------------------------------------------------------------------------
    def reshape(self, value: Value | str, shape: Sequence[Any]) -> str:
        """A value under another shape, of which one size may be -1 or depend on inputs."""
        array = self.known(value)
        if array is not None:
            return self.constant(array.reshape(shape))
        open_ends = [i for i, n in enumerate(shape) if not isinstance(n, int)]
        if len(open_ends) == 1 and -1 not in shape:
            shape = [-1 if i in open_ends else n for i, n in enumerate(shape)]
        empty = 0 in [n for n in shape if isinstance(n, int)]
        if empty and -1 in shape:
            self.refuse("a tensor without elements with a dynamic axis")
        return self.node("Reshape", value, self.ints(shape), allowzero=1 if empty else None)

    def transpose(self, value: Value | str, order: Sequence[int]) -> Value | str:
        """A value with its dimensions in another order."""
        if list(order) == sorted(order):
            return value
        array = self.known(value)
        if array is not None:
            return self.constant(np.ascontiguousarray(array.transpose(order)))
        return self.node("Transpose", value, perm=list(order))

    def squeeze(self, value: Value | str, dims: Sequence[int]) -> Value | str:
        """A value without dimensions of size 1."""
        return self.node("Squeeze", value, self.ints(dims)) if dims else value

    def unsqueeze(self, value: Value | str, dims: Sequence[int]) -> Value | str:
        """A value with new dimensions of size 1, counted in the result."""
        return self.node("Unsqueeze", value, self.ints(dims)) if dims else value

    def reduce(self, kind: str, value: Value | str, dims: Sequence[int] | int | None, keepdim: bool) -> str:
        """A value reduced over some dimensions, or one, or with None over all."""
        axes = None if dims is None else self.ints([dims] if isinstance(dims, int) else dims)
        return self.node(f"Reduce{kind}", value, axes, keepdims=int(keepdim))
