"""What the generated code says of gradients: which inputs have one, what is saved for them, the node that is made."""

from __future__ import annotations

from functools import cached_property

from corefw.dispatch.generation import templates
from corefw.dispatch.generation.arguments import Arguments, packed
from corefw.dispatch.generation.fill import fill
from corefw.dispatch.op import Op, Parameter


class Recording:
    """How one op is recorded.

    Attributes: ``differentiable`` the parameters whose histories are looked at; ``saved`` {value name: inputs whose
    formulas use it}; values are inputs, outputs, attributes and ``<input>_shape``.
    """

    def __init__(self, op: Op, inplace: bool = False):
        self.op, self.inplace = op, inplace
        self.arguments = Arguments(op, inplace)
        self.differentiable = [p for p in op.parameters if self._has_gradient(p)]
        if inplace and not self.differentiable:
            self.differentiable = [op.parameters[0]]  # its history ends here: no gradient flows to what it was before
        self.saved = self._saved_values()

    def _has_gradient(self, p: Parameter) -> bool:
        return any(p.name in names for names in self.op.gradients) or p.name in self.op.zero_gradients

    # -- what is saved ----------------------------------------------------------------------------------------
    def _saved_values(self) -> dict[str, list[str]]:
        op = self.op
        saved: dict[str, list[str]] = {}
        known = {p.name for p in op.parameters} | {"out"} | set(op.outputs)
        for names, formula in op.gradients.items():
            for value in argument_names(formula):
                if value in ("grad", "grads", "needs") or (value.startswith("grad_") and value not in known):
                    continue
                if value not in known and not (value.endswith("_shape") and value[:-6] in known):
                    raise TypeError(
                        f"{op.name}: the gradient formula of {names} asks for {value!r}, which the op does not have"
                    )
                saved.setdefault(value, []).extend(op.saved_for[names])
        return saved

    def kind(self, value: str) -> str:
        """What a saved value is: "tensor", "tensors", "output", "shape", "shapes" or "attribute"."""
        if value == "out" or value in self.op.outputs:
            return "output"
        parameter = self._parameter(value)
        if parameter is None:
            return "shapes" if self._shaped(value).kind == "tensors" else "shape"
        if parameter.kind in ("tensor", "optional", "index"):
            return "tensor"
        return "tensors" if parameter.kind in ("tensors", "indices") else "attribute"

    def _parameter(self, name: str) -> Parameter | None:
        return next((p for p in self.op.parameters if p.name == name), None)

    def _shaped(self, value: str) -> Parameter:
        """The parameter whose shape a value ``<input>_shape`` is."""
        return next(p for p in self.op.parameters if p.name == value[:-6])

    def saved_kinds(self) -> tuple[tuple[str, str], ...]:
        """(name, kind) of the saved values; those of kind "tensor" and "tensors" are followed by their versions."""
        return tuple((value, self.kind(value)) for value in self.saved)

    def saves_tensors(self) -> bool:
        """Whether a node of the op holds tensors, which are freed after the backward."""
        return any(kind in ("output", "tensor", "tensors") for _, kind in self.saved_kinds())

    def needed(self, value: str) -> str:
        """The condition under which some formula will use `value`; "" if it always will."""
        users = set(self.saved[value])
        if self.arguments.several or users == {p.name for p in self.differentiable}:
            return ""
        return " or ".join(f"n{i} is not None" for i, p in enumerate(self.differentiable) if p.name in users)

    def _save(self, value: str) -> list[str]:
        """A value as it is saved; tensors are followed by the version they had."""
        kind, needed = self.kind(value), self.needed(value)
        if kind == "tensor":
            if self.inplace and value == self.op.parameters[0].name:
                return [_where(needed, "original", "None"), "0"]
            parameter = self._parameter(value)
            if parameter is not None and parameter.may_be_none:
                needed = f"{value} is not None" + (f" and ({needed})" if needed else "")
            version = f"+{value}.version[0]"
            if self.inplace:  # saved after the change; memory shared with what was changed must be seen as stale
                version = f"({value}.version[0] - ({value}.version is version))"
            return [_where(needed, value, "None"), _where(needed, version, "0")]
        if kind == "tensors":
            before = " - (t.version is version)" if self.inplace else ""
            return [f"tuple({value})", f"[0 if t is None else +t.version[0]{before} for t in {value}]"]
        if kind == "output":
            array, version = (f"{value}_array", f"{value}_version") if self.op.outputs else ("array", "version")
            return [_where(needed, f"({array}, {version}, {version}[0])", "None")]
        if kind == "shape":
            optional = self._shaped(value).may_be_none
            shape = f"{value[:-6]}.array.shape"
            return [_where(f"{value[:-6]} is not None" if optional else "", shape, "None")]
        return [f"[t.array.shape for t in {value[:-6]}]"] if kind == "shapes" else [value]

    # -- the node ---------------------------------------------------------------------------------------------
    @cached_property
    def histories(self) -> str:
        """Read the node of every tensor whose gradient has a formula."""
        several = "n{i} = [t.node if t.view_info is None else history(t) for t in {t}]"
        usual = "n{i} = {t}.node if {t}.view_info is None else history({t})"
        optional = "n{i} = None if {t} is None else {t}.node if {t}.view_info is None else history({t})"
        return "\n".join(
            (several if p.kind == "tensors" else optional if p.may_be_none else usual).format(i=i, t=p.name)
            for i, p in enumerate(self.differentiable)
        )

    @cached_property
    def any_history(self) -> str:
        """The condition that the result has a history."""
        if self.arguments.several:
            return "n0.count(None) < len(n0)"
        conditions = [f"n{i} is not None" for i in range(len(self.differentiable))]
        return conditions[0] if len(conditions) == 1 else "(" + " or ".join(conditions) + ")"

    @cached_property
    def can_record(self) -> str:
        """The condition that a result which follows its first operand's dtype can have a gradient; "" elsewhere."""
        return "dispatch_key.dtype.category >= 2 and " if self.op.rule.follows else ""

    @cached_property
    def record(self) -> str:
        """Make the node."""
        nodes = "tuple(n0)" if self.arguments.several else packed(f"n{i}" for i in range(len(self.differentiable)))
        return fill(
            templates.RECORD,
            inputs=nodes,
            saved=packed(item for value in self.saved for item in self._save(value)) if self.saved else "()",
            shape="None" if self.op.outputs else "array.shape",
            dispatch_keys="dispatch_key" if self.op.view else self.arguments.dispatch_keys,
        )


def _where(condition: str, value: str, otherwise: str) -> str:
    return f"({value} if {condition} else {otherwise})" if condition else value


def argument_names(formula) -> tuple[str, ...]:
    """What a gradient formula asks for."""
    code = formula.__code__
    return code.co_varnames[: code.co_argcount]
