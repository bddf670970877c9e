"""What the generated code says of an op's parameters: its signature, how they are brought to the kernel's form."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from corefw.dispatch.generation import templates
from corefw.dispatch.generation.fill import fill, fill_each
from corefw.dispatch.op import REQUIRED, Op, Parameter
from corefw.dispatch.spelling import OTHER_NAMES, aliases, own_name, takes_options


def unpacked(names: Iterable[str]) -> str:
    """Names as the target of an assignment that takes a tuple apart."""
    names = list(names)
    return ", ".join(names) + ("," if len(names) == 1 else "")


def packed(items: Iterable[str]) -> str:
    """The tuple of some expressions."""
    return f"({unpacked(items)})"


def given(p: Parameter) -> str:
    """The condition, with the `and` behind it, that an optional tensor is there; "" of one that always is."""
    return f"{p.name} is not None and " if p.may_be_none else ""


class Arguments:
    """The parameters of one op, as its function, the kernel and the body are given them.

    Attributes: ``tensors`` the parameters that hold one tensor and take part in dispatch; ``several`` the one that
    holds a sequence of tensors, or None; ``dispatch_key`` the one that says where the result is to lie, or None;
    ``dispatch_keys`` the name of the dispatch key that the table gives for the result, or of those for several;
    ``out`` whether there is such an argument; ``options`` whether the function takes any keywords; ``aliases`` the
    other names that it has instead.
    """

    def __init__(self, op: Op, inplace: bool = False):
        self.op = op
        self.tensors = [p for p in op.parameters if p.kind in ("tensor", "optional")]
        self.several = next((p for p in op.parameters if p.kind == "tensors"), None)
        self.dispatch_key = next((p for p in op.parameters if p.kind == "dispatch_key"), None)
        self.dispatch_keys = "dispatch_keys" if op.outputs else "dispatch_key"
        self.out = op.takes_out and not inplace
        self.options = takes_options(op) and not inplace
        self.aliases = () if self.options else aliases(op)

    @cached_property
    def renamed(self) -> list[Parameter]:
        """The required parameters that a call may give under other names: the first that has one and those behind it,
        which then need not come by position."""
        names = {own_name(self.op, name) for name in (OTHER_NAMES if self.options else self.aliases)}
        positional = [p for p in self.op.parameters if not p.keyword_only]
        first = next((i for i, p in enumerate(positional) if p.name in names), len(positional))
        return [p for p in positional[first:] if p.default is REQUIRED]

    # -- lists ------------------------------------------------------------------------------------------------
    def signature(self) -> str:
        text, starred = [], False
        for i, p in enumerate(self.op.parameters):
            if self.options and p.keyword_only:
                break
            if p.keyword_only and not starred:
                text += self._unset
                text.append("*")
                starred = True
            default = (
                "None" if p.kind in ("dims", "given_dims") and p.default == () else f"DEFAULTS[{i}]"
            )  # both mean all dimensions
            required = p.default is REQUIRED and p not in self.renamed
            text.append(p.name if required else f"{p.name}={default}")
        if self.options:
            text.append("**options")
        elif self.out:
            text += ["out=None"] if starred else ["*", "out=None"]
        if not starred:
            text += self._unset
        return ", ".join(text)

    @property
    def _unset(self) -> list[str]:
        return [f"{name}=None" for name in self.aliases]

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
            **dict.fromkeys(("tensor", "optional", "index"), "{name}.array"),
            "tensors": "[t.array for t in {name}]",
            "rate": "{name} if {name}.__class__ is float else as_rate({name}, dispatch_key)",
            "indices": "[None if t is None else t.array for t in {name}]",
        }
        form = forms.get(p.kind, "{name}")
        return (f"None if {{name}} is None else {form}" if p.may_be_none else form).format(name=p.name)

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
            if p.may_be_none
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
        op, found = self.op, [self.taken()]
        if any(p.kind == "inplace" for p in op.parameters):
            found.append(fill(templates.INPLACE_WANTED, passed=self.passed))
        if op.rewrites:
            found.append(self.rewrite("BODY"))
        if not (op.primitive or op.view or op.gradients):
            found.append(self._body_first())
        return "\n".join(found)

    def taken(self) -> str:
        """What is done with ``out=`` and with other names."""
        out = fill(templates.OUT, passed=self.passed) if self.out and not self.options else ""
        return "\n".join(filter(None, [self.respelled(), out]))

    def respelled(self) -> str:
        """Where other names are taken: what is not given by position, or is given under such a name."""
        if not (self.options or self.aliases):
            return ""
        everything = ", ".join(
            f"{name}={name}" for name in (*(p.name for p in self.op.parameters), *["out"] * self.out)
        )
        lacking = [f"{p.name} is REQUIRED" for p in self.renamed if self._unseen(p)]
        if self.aliases:
            return fill(
                templates.ALIASES,
                given=" or ".join([*(f"{name} is not None" for name in self.aliases), *lacking]),
                aliases=", ".join(f"{name}={name}" for name in self.aliases),
                everything=everything,
            )
        fixed = {p.name: (i, p.default) for i, p in enumerate(self.op.parameters) if p.keyword_only}
        defaults = {
            name: repr(value) if value in (None, True, False) else f"DEFAULTS[{i}]"
            for name, (i, value) in fixed.items()
        }
        taken = [f'{name} = options.pop("{name}", {default})' for name, default in defaults.items()]
        taken += ['out = options.pop("out", None) if options else None'] if self.out else []
        return fill(
            templates.OPTIONS,
            defaults="\n".join(f"{name} = {default}" for name, default in defaults.items()),
            given=" or ".join(["options", *lacking]),
            taken="\n".join(taken),
            out=fill(templates.OUT, passed=self.passed) if self.out else "",
            everything=everything,
            lacking=" or ".join(["options", *(f"{p.name} is REQUIRED" for p in self.renamed)]),
        )

    def _unseen(self, p: Parameter) -> bool:
        """Whether the call may go on without a required argument: there is no tensor or dimension of it to fail on."""
        body_first = not (self.op.primitive or self.op.view or self.op.gradients)
        return body_first or p.kind in ("attribute", "inplace")

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
