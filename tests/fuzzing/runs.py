"""Running a program on one framework, with a picture of what every entry gave."""

from __future__ import annotations

import operator
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

import corefw
from corefw import dtypes
from corefw.dispatch.registry import registry
from corefw.testing.oracle import import_torch
from tests.fuzzing.programs import Leaf, Program, Ref, Step, array_of, mapped


@dataclass(frozen=True, slots=True)
class Picture:
    """A tensor as it was at one moment: its elements, and what the program can ask of it."""

    array: np.ndarray
    dtype: str
    requires_grad: bool  # of PyTorch's: and a leaf can be reached
    version: int
    memory: int  # where its memory begins


@dataclass(frozen=True, slots=True)
class Raised:
    """What an entry raised instead of giving something."""

    error: Exception


class Missing:
    """In place of what was not computed, because what it needs was not."""


MISSING = Missing()


class Corefw:
    """corefw with some of its backends asked first, named for the very first."""

    module = corefw

    def __init__(self, *backends: str):
        self.name = backends[0]
        self.scope = corefw.backend(*backends)

    def begin(self) -> None:
        """Start every run from the same random numbers."""
        corefw.manual_seed(0)

    def tensor(self, array: np.ndarray):
        return corefw.from_numpy(array)

    def picture(self, tensor) -> Picture:
        array = tensor.detach().array
        memory = tensor.untyped_storage().data_ptr() if array.size else 0
        return Picture(
            np.array(array, copy=True, order="C"), tensor.dtype.name, tensor.requires_grad, tensor._version, memory
        )

    def private(self, name: str):
        return registry.declared[name].function


class PyTorch:
    """PyTorch, on one thread."""

    name = "torch"

    def __init__(self):
        self.module = import_torch()
        self.module.set_num_threads(1)
        self.scope = nullcontext()

    def begin(self) -> None:
        """Its random numbers are not compared."""

    def tensor(self, array: np.ndarray):
        """The array as a tensor over all of its memory, which is the tensor's own: it may grow, as out= wants it."""
        memory = array
        while memory.base is not None:
            memory = memory.base
        if memory.dtype == dtypes.bfloat16.numpy:
            whole = self.module.from_numpy(memory.view(np.int16)).view(self.module.bfloat16).clone()
        else:
            whole = self.module.from_numpy(memory).clone()
        offset, strides = array.ctypes.data - memory.ctypes.data, [s // array.itemsize for s in array.strides]
        return whole.set_(whole.untyped_storage(), offset // array.itemsize, array.shape, strides)

    def picture(self, tensor) -> Picture:
        tensor = tensor if tensor.layout is self.module.strided else tensor.to_dense()  # a sparse gradient
        plain = tensor.detach().resolve_conj().resolve_neg().clone()  # NumPy would pin the memory of the tensor itself
        if plain.dtype is self.module.bfloat16:
            array = plain.contiguous().view(self.module.int16).numpy().view(dtypes.bfloat16.numpy)
        else:
            array = plain.numpy(force=True)  # also of a gradient that is kept as a mere zero
        memory = tensor.untyped_storage().data_ptr() if array.size else 0
        name = str(tensor.dtype).removeprefix("torch.")
        array = np.ascontiguousarray(array).reshape(array.shape)
        return Picture(array, name, self._reaches_a_leaf(tensor), tensor._version, memory)

    @staticmethod
    def _reaches_a_leaf(tensor) -> bool:
        """Whether some leaf has a gradient with respect to which to ask; the flag says as much of views made without
        recording, of what was overwritten by a constant, and of integers."""
        if not tensor.requires_grad or not (tensor.is_floating_point() or tensor.is_complex()):
            return False
        try:
            nodes = [tensor.grad_fn or tensor.view_as(tensor).grad_fn]
        except RuntimeError:  # one of several views whose base was changed: its history is the base's
            return tensor._base.requires_grad
        seen = set(nodes)
        while nodes:
            node = nodes.pop()
            if node.name() == "torch::autograd::AccumulateGrad":
                return True
            following = {n for n, _ in node.next_functions if n is not None} - seen
            nodes += following
            seen |= following
        return False

    def private(self, name: str):
        raise NotImplementedError(f"{name} is not implemented for PyTorch")


def setitem(target, key, value):
    """An assignment, with the changed tensor as its result."""
    target[key] = value
    return target


class Run:
    """A program's run, entry by entry.

    Attributes: ``values`` what every entry gave, ``pictures`` how it looked then (`Raised` where it raised).
    """

    def __init__(self, framework):
        self.framework = framework
        framework.begin()
        self.values: list[Any] = []
        self.pictures: list[Any] = []
        self.finals: list[Any] = []

    def append(self, entry: Leaf | Step) -> None:
        """Run one more entry."""
        try:
            value = self._leaf(entry) if isinstance(entry, Leaf) else self._step(entry)
            picture = self.picture(value)
        except Exception as error:
            value, picture = MISSING, Raised(error.with_traceback(None))
        self.values.append(value)
        self.pictures.append(picture)

    def _leaf(self, leaf: Leaf):
        tensor = self.framework.tensor(array_of(leaf))
        return tensor.requires_grad_() if leaf.requires_grad else tensor

    def _step(self, step: Step):
        missing = False

        def given(part):
            nonlocal missing
            if type(part) is Ref:
                value = self.values[part.number]
                missing = missing or value is MISSING
                return value
            return getattr(self.framework.module, part.text)

        arguments = mapped(step.arguments, given)
        keywords = {name: mapped(value, given) for name, value in step.keywords.items()}
        if missing:
            return MISSING
        function = self.function(step.function, arguments)
        arguments = arguments[1:] if step.function[0] == "." else arguments
        if step.records:
            return function(*arguments, **keywords)
        with self.framework.module.no_grad():
            return function(*arguments, **keywords)

    def function(self, name: str, arguments: tuple):
        """What a step's name means here."""
        if name[0] == ".":
            return getattr(arguments[0], name[1:])
        if name == "operator.setitem":
            return setitem
        if name.startswith("operator."):
            return getattr(operator, name[len("operator.") :])
        if name == "gradients":
            return self.gradients
        if name.startswith("op:"):
            return self.framework.private(name[len("op:") :])
        found = self.framework.module
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def gradients(self, outputs, inputs, weights, create_graph=False):
        """The gradients of the inputs, the outputs' own being `weights` over and over."""
        module = self.framework.module
        given = []
        for output in outputs:
            elements = np.resize(np.array(weights, np.float64), tuple(output.shape))
            given.append(self.framework.tensor(elements).to(output.dtype))
        return module.autograd.grad(outputs, inputs, given, allow_unused=True, create_graph=create_graph)

    def picture(self, value):
        """A value as it looks now: tensors as `Picture`, other things as Python's own."""
        if isinstance(value, self.framework.module.Tensor):
            return self.framework.picture(value)
        if isinstance(value, list | tuple):
            return tuple([self.picture(item) for item in value])
        if isinstance(value, self.framework.module.dtype):
            return str(value).removeprefix("torch.").removeprefix("corefw.")
        return value

    def finish(self) -> Run:
        """Take the pictures of how everything looks in the end."""
        self.finals = [
            value if value is MISSING else self.picture(value) if type(picture) is not Raised else MISSING
            for value, picture in zip(self.values, self.pictures)
        ]
        return self


def run(program: Program, framework) -> Run:
    """The program's run; the framework's backend must be the one in force (`with framework.scope`)."""
    result = Run(framework)
    for entry in program.entries:
        result.append(entry)
    return result.finish()


def run_in_scope(program: Program, framework) -> Run:
    """As `run`, with the framework's backend asked for."""
    with framework.scope, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return run(program, framework)
