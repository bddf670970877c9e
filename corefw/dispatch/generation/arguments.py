"""What the generated code says of an op's parameters: its signature, how they are brought to the kernel's form."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from corefw.dispatch.generation import templates
from corefw.dispatch.generation.fill import fill, fill_each
from corefw.dispatch.op import REQUIRED, Op, Parameter
from corefw.dispatch.spelling import SPELLINGS


def unpacked(names: Iterable[str]) -> str:
    """Names as the target of an assignment that takes a tuple apart."""
    names = list(names)
    return ", ".join(names) + ("," if len(names) == 1 else "")


def packed(items: Iterable[str]) -> str:
    """The tuple of some expressions."""
    return f"({unpacked(items)})"


def given(p: Parameter) -> str:
    """The condition, with the `and` behind it, that an optional tensor is there; "" of one that always is."""
    return f"{p.name} is not None and " if p.kind == "optional" else ""


class Arguments:
    """The parameters of one op, as its function, the kernel and the body are given them.

    Attributes: ``tensors`` the parameters that hold one tensor and take part in dispatch; ``several`` the one that
    holds a sequence of tensors, or None; ``options`` whether keywords that cannot be given by position
    are left to another function, which translates NumPy's; ``dispatch_key`` the one that says where the result is to
    lie, or None;
    ``dispatch_keys`` the name of the dispatch key that the table gives for the result, or of those for several.
    """

    def __init__(self, op: Op, options: bool = False):
        self.op = op
        self.options = options
        self.tensors = [p for p in op.parameters if p.kind in ("tensor", "optional")]
        self.several = next((p for p in op.parameters if p.kind == "tensors"), None)
        self.dispatch_key = next((p for p in op.parameters if p.kind == "dispatch_key"), None)
        self.dispatch_keys = "dispatch_keys" if op.outputs else "dispatch_key"

    @cached_property
    def renamed(self) -> list[Parameter]:
        """The required parameters that a call need not give by position or under their own names: the first that NumPy
        calls otherwise, and those behind it."""
        positional = [p for p in self.op.parameters if not p.keyword_only]
        first = next((i for i, p in enumerate(positional) if p.name in SPELLINGS.values()), len(positional))
        return [p for p in positional[first:] if p.default is REQUIRED and self.options]

    # -- lists ------------------------------------------------------------------------------------------------
    def signature(self, out: bool) -> str:
        text, starred = [], False
        for i, p in enumerate(self.op.parameters):
            if p.keyword_only and self.options:
                break
            if p.keyword_only and not starred:
                text.append("*")
                starred = True
            default = (
                "None" if p.kind in ("dims", "given_dims") and p.default == () else f"DEFAULTS[{i}]"
            )  # both mean all dimensions
            required = p.default is REQUIRED and p not in self.renamed
            text.append(p.name if required else f"{p.name}={default}")
        if self.options:
            return ", ".join([*text, "**options"])
        if out:
            text += ["out=None"] if starred else ["*", "out=None"]
        return ", ".join(text)

    @cached_property
    def names(self) -> str:
        """All parameters by position, as the slow path takes them."""
        return ", ".join(p.name for p in self.op.parameters)

    @cached_property
    def passed(self) -> str:
        """All parameters as a caller passes them on."""
        return ", ".join(f"{p.name}={p.name}" if p.keyword_only else p.name for p in self.op.parameters)

    @cached_property
    def operands(self) -> str:
        """The parameters of the kernel, tensors as tensors."""
        return ", ".join(p.name for p in self.op.kernel_parameters)

    @cached_property
    def kernel_arguments(self) -> str:
        """The parameters of the kernel, tensors as raw arrays."""
        return ", ".join(map(self._raw, self.op.kernel_parameters))

    def _raw(self, p: Parameter) -> str:
        if p is self.several:
            return "arrays"
        forms = {
            "tensor": "{name}.array",
            "index": "{name}.array",
            "optional": "None if {name} is None else {name}.array",
            "tensors": "[t.array for t in {name}]",
            "rate": "{name} if {name}.__class__ is float else as_rate({name}, dispatch_key)",
            "indices": "[None if t is None else t.array for t in {name}]",
        }
        return forms.get(p.kind, "{name}").format(name=p.name)

    # -- where the call runs ----------------------------------------------------------------------------------
    @cached_property
    def first(self) -> str:
        """The first tensor."""
        return f"{self.several.name}[0]" if self.several else self.tensors[0].name

    @cached_property
    def dispatch_key_of(self) -> str:
        """The dispatch key of the call."""
        return self.dispatch_key.name if self.dispatch_key else f"{self.first}.dispatch_key"

    @cached_property
    def agree(self) -> str:
        """The condition that all tensors have one dispatch key, "" if there is only one."""
        return " and ".join(
            f"({p.name} is None or {p.name}.dispatch_key is dispatch_key)"
            if p.kind == "optional"
            else f"{p.name}.dispatch_key is dispatch_key"
            for p in self.tensors[1:]
        )

    # -- the kernel's form ------------------------------------------------------------------------------------
    def numbers(self) -> str:
        """Python numbers beside the first tensor become operands, where arithmetic with numbers is usual."""
        if not (self.op.rule.promotes or self.op.rule.follows) or self.several or self.dispatch_key:
            return ""
        return fill_each(templates.NUMBER, [{"name": p.name, "given": given(p)} for p in self.tensors[1:]])

    def canonical(self) -> str:
        """Dimensions and sizes brought to the form that kernels expect."""
        forms = {"dim": templates.DIM, "sizes": templates.SIZES}
        forms |= dict.fromkeys(("dims", "given_dims"), templates.DIMS)
        return "\n".join(
            fill(
                forms[p.kind],
                name=p.name,
                given=f"{p.name} is not None and " if p.default is None else "",
                reference=self.first if p.kind != "sizes" else "",
                none=" or ()" if p.kind == "given_dims" else "",  # what an empty sequence means
            )
            for p in self.op.parameters
            if p.kind in forms
        )

    def call(self) -> str:
        """The lookup and the call of the kernel, where the tensors agree; else what makes them."""
        facts = {"dispatch_keys": self.dispatch_keys, "operands": self.operands}
        kernel_call = fill(templates.KERNEL_CALL, kernel_arguments=self.kernel_arguments, **facts)
        if self.several:
            return fill(templates.CALL_SEQUENCE, several=self.several.name, kernel_call=kernel_call, **facts)
        if self.agree and not self.dispatch_key:
            return fill(templates.CALL_AGREEING, agree=self.agree, kernel_call=kernel_call, **facts)
        return kernel_call

    # -- ways around the kernel -------------------------------------------------------------------------------
    def rewrite(self, body: str) -> str:
        """Keyword options that kernels do not know: the body states what they mean."""
        changed = " or ".join(
            f"{p.name} is not DEFAULTS[{i}]" for i, p in enumerate(self.op.parameters) if p.name in self.op.rewrites
        )
        return fill(templates.REWRITE, changed=changed, body=body, passed=self.passed) if changed else ""

    def shortcuts(self) -> str:
        """What a call does before anything else."""
        op, found = self.op, []
        if self.options:
            found.append(self._options_first())
        elif op.takes_out:
            found.append(fill(templates.OUT, passed=self.passed))
        if any(p.kind == "inplace" for p in op.parameters):
            found.append(fill(templates.INPLACE_WANTED, passed=self.passed))
        if op.rewrites:
            found.append(self.rewrite("BODY"))
        if not (op.primitive or op.view or op.gradients):
            found.append(self._body_first())
        return "\n".join(found)

    def _options_first(self) -> str:
        positional = ", ".join(p.name for p in self.op.parameters if not p.keyword_only)
        lacking = " or ".join(["options", *(f"{p.name} is REQUIRED" for p in self.renamed)])
        defaults = [
            f"{p.name} = {p.default}" if p.default in (None, True, False) else f"{p.name} = DEFAULTS[{i}]"
            for i, p in enumerate(self.op.parameters)
            if p.keyword_only
        ]
        return "\n".join([fill(templates.OPTIONS, lacking=lacking, positional=positional), *defaults])

    def _body_first(self) -> str:
        return fill(
            templates.BODY_FIRST,
            dispatch_key_of=f"{self.first}.dispatch_key",
            passed=self.passed,
            arguments=self.names,
            gradient_wanted=f"any(t.requires_grad for t in {self.several.name})"
            if self.several
            else " or ".join(f"({p.name} is not None and {p.name}.requires_grad)" for p in self.tensors),
        )
