"""Ops: what a declaration says, in one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Parameter:
    """One parameter of an op: its name, kind and default (``REQUIRED`` if there is none).

    Of tensors, `role` tells what an update does with them: it changes them in place ("changed"), and perhaps they are
    numbers, one for each tensor of the first list ("counts").
    """

    name: str
    # "tensor", "optional", "index", "tensors", "indices", "dispatch_key", "dim", "dims", "given_dims",
    # "sizes", "inplace", "rate", "attribute"
    kind: str
    default: Any
    annotation: str
    keyword_only: bool = False
    role: str = ""

    @property
    def may_be_none(self) -> bool:
        """Whether it holds a tensor, or None."""
        return self.kind == "optional" or (self.kind == "index" and self.default is None)


REQUIRED = object()


def node_name(grad_name: str) -> str:
    """The name of a node: "Sum" is SumBackward0 and "Sum1", of PyTorch's second form of the op, SumBackward1; a whole
    name is itself."""
    if "Backward" in grad_name:
        return grad_name
    form = grad_name[-1] if grad_name[-1].isdigit() else "0"
    return f"{grad_name.removesuffix(form)}Backward{form}"


class Op:
    """A declared op; `function` is what users call. Made by the decorators of `corefw.dispatch.declare`."""

    def __init__(
        self, name: str, parameters: tuple[Parameter, ...], body: Callable, rule: Any, shape: Callable | None, *,
        primitive: bool = False, view: bool = False, update: bool = False, where: dict[str, str] | None = None,
        outputs: tuple[str, ...] = (), rewrites: tuple[str, ...] = (), inplace: bool = False,
        overlapping: tuple[str, ...] = (), out: bool = False, aliases: tuple[str, ...] = (),
        grad_name: str | Callable[..., str] = "", other_names: bool = False,
    ):  # fmt: skip
        self.name = name
        self.parameters = parameters
        self.body = body
        self.family: str = body.__module__.rpartition(".")[2]  # "pointwise", ...: the file that declares it
        self.rule = rule  # a DtypeRule, None for a plain function
        self.shape = shape
        self.primitive = primitive
        self.view = view
        self.update = update  # whether it changes lists of tensors in place and returns nothing
        self.where = where or {}  # {a list of an update: the attribute without which the list is empty}
        self.outputs = outputs
        self.rewrites = rewrites
        self.inplace = inplace
        self.overlapping = overlapping
        self.takes_out = out
        self.aliases = aliases
        self.grad_name = grad_name
        self.other_names = other_names  # whether a plain function is wrapped to take them
        self.public: dict[str, tuple[str, ...]] = {}  # {namespace: the names that it has there}
        self.gradients: dict[tuple[str, ...], Callable] = {}
        self.saved_for: dict[tuple[str, ...], tuple[str, ...]] = {}  # the inputs whose gradients need what is saved
        self.zero_gradients: tuple[str, ...] = ()
        self.shows_part = False  # whether it is a view of a part, whose gradient is zero elsewhere
        self.tangent_formula: Callable | None = None
        self.linear_in: tuple[tuple[str, ...], ...] = ()  # the inputs, alone or together, in which it is linear
        self.holomorphic = True  # whether, where it takes complex elements, conjugates have no part in it
        self.opaque = False  # whether the body of a composite with gradients cannot be differentiated
        self.batching: Callable | None = None  # its rule for all examples of a batch at once
        self.function: Callable = body
        self.inplace_function: Any = None  # None if the op has no in-place form
        self.inplace_body: Callable | None = None  # what that does with options that kernels do not know
        self.result_type: Any = tuple  # of several outputs: a named tuple
        self.node_class: Any = None  # its Node subclass, made when first needed
        self.table: Any = None  # the Table of its kernels; both tables are set when it is declared
        self.inplace_table: Any = None
        self.number_table: Any = None

    @cached_property
    def kernel_parameters(self) -> list[Parameter]:
        """The parameters that a kernel is called with, in order."""
        return [p for p in self.parameters if p.name not in self.rewrites and p.kind not in ("dispatch_key", "inplace")]

    @property
    def tensor_parameters(self) -> list[Parameter]:
        """The parameters that hold one tensor each."""
        return [p for p in self.parameters if p.kind in ("tensor", "optional", "index")]

    @cached_property
    def changed(self) -> list[Parameter]:
        """The lists of tensors that an update changes in place."""
        return [p for p in self.parameters if p.role]

    @property
    def node_name(self) -> str:
        """PyTorch's name of a node of the op, as far as it does not depend on the call."""
        if self.grad_name and isinstance(self.grad_name, str):
            return node_name(self.grad_name)
        return self.name.title().replace("_", "") + "Backward0"  # of "log1p" Log1PBackward0

    def __repr__(self) -> str:
        return f"<op {self.name}>"
