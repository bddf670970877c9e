"""The recorder: a mode that writes down every op while a function runs once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from corefw import dtypes
from corefw.autograd.grad_mode import no_grad
from corefw.capture.program import Line, Program, Value
from corefw.devices import device
from corefw.dispatch.calls import silent
from corefw.dispatch.flags import unheard
from corefw.dispatch.listening import Listening
from corefw.dispatch.op import Op
from corefw.dispatch.registry import dispatch_key_of, registry
from corefw.dispatch.resolution import body_kernel
from corefw.tensor import Tensor
from corefw.tracebacks import user_line


@dataclass(eq=False)
class _Place:
    """What is known of one array: its value, and, of a view, which line took it of which other place.

    Memory has one version, counted where it is not a view; a view that has seen another one takes itself again.
    """

    array: Any  # held, so that no other array is given its id
    value: Value
    base: _Place | None = None
    line: Line | None = None
    output: int = 0
    version: int = 0
    held: list[Value] = field(default_factory=list)  # the values whose arrays lie in this memory

    @property
    def root(self) -> _Place:
        return self if self.base is None else self.base.root


class Recorder(Listening):
    """A with-block whose ops become the lines of `program`.

    Arrays are known by identity. Those that no line computed are constants, unless `given` has told what they are.
    Changes in place become new values: of a view, its elements are put into the value that it was taken of.

    Args:
        whole: which composites are one line; others are recorded as the ops of their bodies, also where a backend has a
            kernel for the whole.
    """

    def __init__(self, whole: Callable[[Op], bool] = lambda op: True):
        super().__init__()
        self.program = Program()
        self.whole = whole
        self._places: dict[int, _Place] = {}

    # -- what the program is given and returns ----------------------------------------------------------------------
    def given(self, kind: str, name: str, tensor: Tensor) -> Value:
        """Tell that an array is an input or a state; returns its value."""
        place = self._places.get(id(tensor.array))
        if place is None:
            array = tensor.array
            place = self._bind(array, Value(kind, name, tuple(array.shape), tensor.dispatch_key.dtype, array))
        return place.value

    def returned(self, tensor: Tensor) -> Value:
        """The value that a tensor has now."""
        return self._value(tensor.array)

    # -- the mode ---------------------------------------------------------------------------------------------------
    def __enter__(self) -> Self:
        for _, runtime in registry.runtimes.values():
            self._shadow(runtime, "cast", self._cast)
            self._shadow(runtime, "copy", self._copy)
            for name in ("download", "item", "transfer"):
                self._shadow(runtime, name, self._read)
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._unshadow()

    def wrap(self, op: Any, dispatch_key: Any, who: Any, function: Any) -> Any:
        of_tensors = who == "composite" and not op.gradients
        if not (op.primitive or op.view or op.update or self.whole(op)):
            return function if of_tensors else self._opened(op, dispatch_key, silent(function))
        call, runtime = silent(function), dispatch_key.runtime

        def recorded(*arguments, **options):
            if self._paused:
                return call(*arguments, **options)
            raw = [*map(_raw, arguments)] if of_tensors else arguments
            given = tuple(self._argument(argument, runtime.array_type) for argument in raw)
            line = Line(op, dispatch_key, given, where=user_line())
            changed = _changed(op, raw, options)
            for array in changed:
                self._keep(runtime, array)
            with self._kernel_running():
                result = call(*arguments, **options)
            if changed:
                self._note(line, changed, runtime, written=True)
            elif of_tensors:
                self._note(line, [*map(_raw, result)] if op.outputs else [_raw(result)], runtime)
            elif op.outputs:
                return self._note(line, result, runtime, raw[0])
            else:
                return self._note(line, [result], runtime, raw[0] if raw else None)[0]
            return result

        return unheard(recorded)

    def _opened(self, op: Op, dispatch_key, kernel: Callable) -> Callable:
        """A composite's body in place of its kernel."""
        body, runtime = body_kernel(op, dispatch_key), dispatch_key.runtime

        def opened(*arguments, **options):
            if self._paused:
                return kernel(*arguments, **options)
            result = body(*arguments)
            if "out" in options:
                runtime.copy(options["out"], result)
            return result

        return unheard(opened)

    # -- lines ------------------------------------------------------------------------------------------------------
    def _argument(self, argument, array_type: type):
        if argument.__class__ is array_type:
            return self._value(argument)
        if argument.__class__ in (list, tuple) and any(item.__class__ is array_type for item in argument):
            return [self._value(item) if item.__class__ is array_type else item for item in argument]
        return argument

    def _note(self, line: Line, arrays: Iterable, runtime, viewed: Any = None, written: bool = False) -> list:
        """Add a line that computed `arrays` (those of a view op are in the memory of `viewed`), or has written to them;
        returns them as arrays of the device."""
        op = line.op
        arrays = [a if a.__class__ is runtime.array_type else runtime.wrap(a) for a in arrays]
        if not written and not op.view and all(id(array) in self._places for array in arrays):
            return arrays  # an argument as it is
        line.results = tuple(
            Value("result", "", tuple(a.shape), dtypes.of_numpy(a.dtype), None if written else a, line) for a in arrays
        )
        self.program.lines.append(line)
        base = None
        if op.view:
            base = self._places[id(viewed)]
        for i, (array, value) in enumerate(zip(arrays, line.results)):
            if written:
                self._write(self._places[id(array)], value)
            else:
                self._bind(array, value, base, line, i)
        return arrays

    def _bind(self, array, value: Value, base: _Place | None = None, line: Line | None = None, output=0) -> _Place:
        place = self._places[id(array)] = _Place(array, value, base, line, output)
        place.version = place.root.version
        place.root.held.append(value)
        return place

    def _value(self, array) -> Value:
        place = self._places.get(id(array))
        if place is None:
            place = self._bind(array, Value("constant", "", tuple(array.shape), dtypes.of_numpy(array.dtype), array))
        return self._current(place)

    def _current(self, place: _Place) -> Value:
        """The value of a place; a view whose memory was written to is taken again."""
        if place.base is not None and place.version != place.root.version:
            assert place.line is not None
            base, (_, *attributes) = self._current(place.base), place.line.arguments
            results = [Value("result", "", v.shape, v.dtype) for v in place.line.results]
            self._add(place.line.op, place.line.dispatch_key, (base, *attributes), results)
            place.value, place.version = results[place.output], place.root.version
        return place.value

    def _add(self, op: Op, dispatch_key, arguments: tuple, results: list[Value]) -> Value:
        """Add a line that did not run as such."""
        line = Line(op, dispatch_key, arguments, tuple(results), user_line())
        for value in results:
            value.line = line
        self.program.lines.append(line)
        return results[0]

    # -- changes in place -------------------------------------------------------------------------------------------
    def _keep(self, runtime, array) -> None:
        """Before an array's memory is written to: what is given keeps a copy of its elements, results keep none."""
        self._value(array)
        for value in self._places[id(array)].root.held:
            if value.array is not None:
                value.array = None if value.line is not None else runtime.clone(value.array)

    def _write(self, place: _Place, value: Value) -> None:
        """`value` is what the array of a place now holds."""
        if place.base is None:
            if place.held[0].kind in ("input", "state"):
                self.program.changed[place.held[0]] = value
            place.version += 1
        else:
            self._write(place.base, self._put(place, value))
            place.version = place.root.version
        place.value = value

    def _put(self, place: _Place, value: Value) -> Value:
        """The value of a view's base when the view has become `value`: its elements, put where the view shows them."""
        assert place.base is not None and place.line is not None
        base, line = self._current(place.base), place.line
        key = dispatch_key_of(line.dispatch_key.device, dtypes.int64)
        runtime = key.runtime
        positions = runtime.upload(np.arange(place.base.array.size).reshape(base.shape), key.device.index)
        with self._kernel_running():
            seen = line.op.table[key][0](positions, *line.arguments[1:])
            index = runtime.clone(seen[place.output] if line.op.outputs else seen)
        result = Value("result", "", base.shape, base.dtype)
        arguments = (base, self._value(index), value, False)
        return self._add(registry.declared["put"], line.dispatch_key, arguments, [result])

    # -- what the frontend does to arrays between ops -----------------------------------------------------------------
    def _cast(self, runtime, function: Callable, array, dtype) -> Any:
        result = function(array, dtype)
        if not self._paused and result is not array:
            given, key = self._value(array), _key_of(runtime, dtype)
            self._bind(result, self._converted(given, key, result.shape))
            self._places[id(result)].value.array = result
        return result

    def _copy(self, runtime, function: Callable, target, source) -> None:
        if self._paused:
            return function(target, source)
        given = self._value(source)
        self._keep(runtime, target)
        function(target, source)
        key = _key_of(runtime, dtypes.of_numpy(target.dtype))
        self._write(self._places[id(target)], self._converted(given, key, tuple(target.shape)))
        return None

    def _read(self, runtime, function: Callable, array, *index) -> Any:
        if self._paused:
            return function(array, *index)
        if id(array) in self._places:
            self.program.read.setdefault(self._value(array), user_line())
        with self._kernel_running():
            return function(array, *index)

    def _converted(self, value: Value, dispatch_key, shape: tuple) -> Value:
        """A value with another dtype, spread over another shape."""
        if value.dtype is not dispatch_key.dtype:
            result = Value("result", "", value.shape, dispatch_key.dtype)
            attributes = (dispatch_key.dtype.numpy, True)
            value = self._add(registry.declared["cast"], dispatch_key, (value, *attributes), [result])
        if value.shape != tuple(shape):
            result = Value("result", "", tuple(shape), dispatch_key.dtype)
            value = self._add(registry.declared["expand"], dispatch_key, (value, tuple(shape)), [result])
        return value


def record(
    function: Callable, *inputs: Tensor, names: Sequence[str] = (), states: Mapping[str, Tensor] | None = None,
    whole: Callable[[Op], bool] = lambda op: True,
) -> Program:  # fmt: skip
    """The program of a function, which is called once.

    Args:
        function: takes the inputs, and returns a tensor or several.
        inputs: tensors.
        names: their names in the program.
        states: further tensors that the function uses, by name: parameters and buffers.
        whole: which composites are one line, by default all.

    >>> import corefw as torch
    >>> layer = torch.nn.Linear(3, 4)
    >>> states = dict(layer.named_parameters())
    >>> print(record(lambda x: layer(x).softmax(-1).t(), torch.ones(2, 3), names=["x"], states=states))
    %0 = input x: float32[2, 3]
    %1 = state weight: float32[4, 3]
    %2 = state bias: float32[4]
    %3 = linear(%0, %1, %2): float32[2, 4]
    %4 = softmax(%3, dim=1): float32[2, 4]
    %5 = t(%4): float32[4, 2]
    return %5
    """
    recorder = Recorder(whole)
    for name, tensor in (states or {}).items():
        recorder.given("state", name, tensor)
    named = zip(inputs, [*names, *("" for _ in inputs[len(names) :])])
    recorder.program.inputs = [recorder.given("input", name, tensor) for tensor, name in named]
    with no_grad(), recorder:
        result = function(*inputs)
    results = result if isinstance(result, list | tuple) else [result]
    recorder.program.outputs = [recorder.returned(tensor) for tensor in results]
    return recorder.program


def _key_of(runtime, dtype):
    """The dispatch key of a dtype on a runtime's device."""
    kind = next(kind for kind, (_, found) in registry.runtimes.items() if found is runtime)
    return dispatch_key_of(device(kind), dtype)


def _raw(value):
    """An argument of a body as one of a kernel."""
    if isinstance(value, Tensor):
        return value.array
    return [*map(_raw, value)] if value.__class__ in (list, tuple) else value


def _changed(op: Op, arguments, options) -> list:
    """The arrays that a call writes to."""
    if "out" in options:
        return [options["out"]]
    names = {p.name for p in op.changed}
    return [a for p, arrays in zip(op.kernel_parameters, arguments) if p.name in names for a in arrays]
