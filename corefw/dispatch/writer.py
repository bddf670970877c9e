"""The source of an op's functions, written from its declaration: the hot path, the in-place form, the backward."""

from __future__ import annotations

from corefw.dispatch.registry import REQUIRED, Op, Parameter


def _indent(lines, by="    "):
    return [by + line for line in lines]


class Writer:
    """Writes the source of one op's functions."""

    def __init__(self, op: Op):
        self.op = op
        self.parameters = op.parameters
        self.tensors = [p for p in op.parameters if p.kind in ("tensor", "optional")]
        self.several = next((p for p in op.parameters if p.kind == "tensors"), None)
        self.place = next((p for p in op.parameters if p.kind == "place"), None)
        self.differentiable = [
            p for p in self.tensors + ([self.several] if self.several else []) if self._has_gradient(p)
        ]
        self.saved = self._saved_values()

    def _has_gradient(self, p: Parameter) -> bool:
        return any(p.name in names for names in self.op.gradients) or p.name in self.op.zero_gradients

    # -- signature and arguments ----------------------------------------------------------------------------
    def signature(self, out: bool) -> str:
        text, starred = [], False
        for i, p in enumerate(self.parameters):
            if p.keyword_only and not starred:
                text.append("*")
                starred = True
            default = "None" if p.kind == "dims" and p.default == () else f"DEFAULTS[{i}]"  # both mean all dimensions
            text.append(p.name if p.default is REQUIRED else f"{p.name}={default}")
        if out:
            text += ["out=None"] if starred else ["*", "out=None"]
        return ", ".join(text)

    def names(self) -> list[str]:
        return [p.name for p in self.op.kernel_parameters]

    def all_names(self) -> list[str]:
        return [p.name for p in self.parameters]

    def kernel_arguments(self) -> str:
        text = []
        for p in self.op.kernel_parameters:
            if p.kind in ("tensor", "index"):
                text.append(f"{p.name}.array")
            elif p.kind == "optional":
                text.append(f"None if {p.name} is None else {p.name}.array")
            elif p.kind == "tensors":
                text.append("arrays" if p is self.several else f"[t.array for t in {p.name}]")
            elif p.kind == "indices":
                text.append(f"[None if t is None else t.array for t in {p.name}]")
            else:
                text.append(p.name)
        return ", ".join(text)

    def rewrite(self) -> list[str]:
        """Keyword options that kernels do not know: the body states what they mean."""
        if not self.op.rewrites:
            return []
        changed = " or ".join(
            f"{p.name} is not DEFAULTS[{i}]" for i, p in enumerate(self.parameters) if p.name in self.op.rewrites
        )
        return [f"if {changed}:", f"    return BODY({self.call_arguments()})"]

    def inplace_wanted(self) -> list[str]:
        """The argument ``inplace`` of activations runs the in-place form."""
        if not any(p.kind == "inplace" for p in self.parameters):
            return []
        return ["if inplace:", f"    return INPLACE({self.call_arguments()})"]

    def canonical(self) -> list[str]:
        """Dimensions and sizes brought to the form that kernels expect."""
        lines = []
        reference = f"{self.several.name}[0]" if self.several else next((p.name for p in self.tensors), None)
        for p in self.parameters:
            if p.kind == "dim":
                guard = f"{p.name} is not None and " if p.default is None else ""
                lines += [
                    f"if {guard}({p.name}.__class__ is not int or not 0 <= {p.name} < {reference}.array.ndim):",
                    f"    {p.name} = canonical_dim({p.name}, {reference}.array.ndim)",
                ]
            elif p.kind == "dims":
                none = " or ()" if p.annotation.startswith("GivenDims") else ""  # what an empty sequence means
                lines += [
                    f"if {p.name}.__class__ is int and 0 <= {p.name} < {reference}.array.ndim:",
                    f"    {p.name} = ({p.name},)",
                    f"elif {p.name} is not None:",
                    f"    {p.name} = canonical_dims({p.name}, {reference}.array.ndim){none}",
                ]
            elif p.kind == "sizes":
                lines += [f"{p.name} = as_shape({p.name})"]
        return lines

    def numbers(self) -> list[str]:
        """Python numbers beside the first tensor become operands, where arithmetic with numbers is usual."""
        if not (self.op.rule.promotes or self.op.rule.follows):
            return []
        lines = []
        for p in self.tensors[1:]:
            given = f"{p.name} is not None and " if p.kind == "optional" else ""
            lines += [f"if {given}{p.name}.__class__ is not Tensor:", f"    {p.name} = operand({p.name}, place)"]
        return lines

    def agree(self) -> str:
        """The condition that all tensors lie at one place, "" if there is only one."""
        others = self.tensors[1:]
        conditions = [
            f"({p.name} is None or {p.name}.place is place)" if p.kind == "optional" else f"{p.name}.place is place"
            for p in others
        ]
        return " and ".join(conditions)

    # -- what gradients need ---------------------------------------------------------------------------------
    def _saved_values(self) -> dict[str, list[str]]:
        """{value name: inputs whose formulas use it}; values are inputs, outputs, statics and <input>_shape."""
        saved: dict[str, list[str]] = {}
        known = set(self.all_names()) | {"out"} | set(self.op.outputs)
        for names, formula in self.op.gradients.items():
            code = formula.__code__
            for value in code.co_varnames[: code.co_argcount]:
                if value in ("grad", "grads", "needs") or (value.startswith("grad_") and value not in known):
                    continue
                if value not in known and not (value.endswith("_shape") and value[:-6] in known):
                    raise TypeError(
                        f"{self.op.name}: the gradient formula of {names} asks for {value!r}, which the op does not "
                        "have"
                    )
                saved.setdefault(value, []).extend(names)
        return saved

    def _kind(self, value: str) -> str:
        if value == "out" or value in self.op.outputs:
            return "output"
        parameter = next((p for p in self.parameters if p.name == value), None)
        if parameter is None:
            base = next(p for p in self.parameters if p.name == value[:-6])
            return "shapes" if base.kind == "tensors" else "shape"
        if parameter.kind in ("tensor", "optional", "index"):
            return "tensor"
        return "tensors" if parameter.kind in ("tensors", "indices") else "static"

    def saves_tensors(self) -> bool:
        """Whether a node of the op holds tensors, which are freed after the backward."""
        return any(self._kind(value) in ("output", "tensor", "tensors") for value in self.saved)

    def saved_kinds(self) -> tuple[tuple[str, str], ...]:
        """(name, kind) of the saved values; those of kind "tensor" and "tensors" are followed by their versions."""
        return tuple((value, self._kind(value)) for value in self.saved)

    def histories(self) -> list[str]:
        """Read the node of every tensor whose gradient has a formula."""
        lines = []
        for i, p in enumerate(self.differentiable):
            t = p.name
            if p.kind == "tensors":
                lines.append(f"n{i} = [t.node if t.origin is None else history(t) for t in {t}]")
            elif p.kind == "optional":
                lines.append(f"n{i} = None if {t} is None else {t}.node if {t}.origin is None else history({t})")
            else:
                lines.append(f"n{i} = {t}.node if {t}.origin is None else history({t})")
        return lines

    def any_history(self) -> str:
        if self.several:
            return "n0.count(None) < len(n0)"
        conditions = [f"n{i} is not None" for i in range(len(self.differentiable))]
        return conditions[0] if len(conditions) == 1 else "(" + " or ".join(conditions) + ")"

    def can_record(self) -> str:
        """The condition that a result which follows its first operand's dtype can have a gradient; "" elsewhere."""
        return "place.dtype.category >= 2 and " if self.op.rule.follows else ""

    def _needed(self, value: str) -> str:
        """The condition under which some formula will use `value`; "" if it always will."""
        users = set(self.saved[value])
        if self.several or users == {p.name for p in self.differentiable}:
            return ""
        return " or ".join(f"n{i} is not None" for i, p in enumerate(self.differentiable) if p.name in users)

    def save(self, inplace: bool) -> list[str]:
        """The tuple of saved values; tensors are followed by the version they had."""
        items = []
        for value in self.saved:
            kind, needed = self._kind(value), self._needed(value)
            if kind == "tensor":
                parameter = next(p for p in self.parameters if p.name == value)
                guard = needed
                if parameter.kind == "optional":
                    guard = f"{value} is not None" + (f" and ({needed})" if needed else "")
                tensor, version = value, f"+{value}.version[0]"
                if inplace:  # saved after the change; memory shared with what was changed must be seen as stale
                    version = f"({value}.version[0] - ({value}.version is version))"
                if inplace and value == self.parameters[0].name:
                    tensor, version = "original", "0"
                items += [f"({tensor} if {guard} else None)" if guard else tensor]
                items += [f"({version} if {guard} else 0)" if guard else version]
            elif kind == "tensors":
                before = " - (t.version is version)" if inplace else ""
                items += [f"tuple({value})", f"[0 if t is None else +t.version[0]{before} for t in {value}]"]
            elif kind == "output":
                array = f"{value}_array" if self.op.outputs else "array"
                version = f"{value}_version" if self.op.outputs else "version"
                pair = f"({array}, {version}, {version}[0])"
                items += [f"({pair} if {needed} else None)" if needed else pair]
            elif kind == "shape":
                base = value[:-6]
                parameter = next(p for p in self.parameters if p.name == base)
                items += [
                    f"(None if {base} is None else {base}.array.shape)"
                    if parameter.kind == "optional"
                    else f"{base}.array.shape"
                ]
            elif kind == "shapes":
                items += [f"[t.array.shape for t in {value[:-6]}]"]
            else:
                items += [value]
        return ["(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"]

    def make_node(self, inplace: bool = False) -> list[str]:
        inputs = (
            "tuple(n0)" if self.several else "(" + "".join(f"n{i}, " for i in range(len(self.differentiable))) + ")"
        )
        shape, place = ("None", "places") if self.op.outputs else ("array.shape", "place")
        return [
            "node = new(NODE)",
            f"node.inputs = {inputs}",
            f"node.saved = {self.save(inplace)[0]}",
            f"node.shape = {shape}",
            f"node.place = {place}",
            "node.hooks = None",
            "node.sequence = next_sequence()",
            "if recorder is not True:",
            "    recorder(node)",
        ]

    def call_arguments(self) -> str:
        """The parameters as a caller passes them on."""
        return ", ".join(f"{p.name}={p.name}" if p.keyword_only else p.name for p in self.parameters)

    def body_first(self) -> list[str]:
        """A composite without a gradient runs its body where no kernel is registered or a gradient is wanted."""
        if self.op.primitive or self.op.view or self.op.gradients:
            return []
        first = f"{self.several.name}[0]" if self.several else self.tensors[0].name
        tensors = [p.name for p in self.tensors]
        gradient_wanted = (
            f"any(t.requires_grad for t in {self.several.name})"
            if self.several
            else " or ".join(f"({t} is not None and {t}.requires_grad)" for t in tensors)
        )
        return [
            "try:",
            f"    kernel, body, _, _ = table[{first}.place]",
            "except (AttributeError, IndexError):",
            f"    return BODY({self.call_arguments()})",
            "try:",
            "    if kernel is None:",
            f"        return body({self.call_arguments()})",
            f"    if grad_mode.recording and ({gradient_wanted}):",
            f"        return BODY({self.call_arguments()})",
            "except AttributeError as error:",
            f"    return recover_body(OP, error, {', '.join(self.all_names())})",
        ]

    # -- whole functions ---------------------------------------------------------------------------------------
    def forward(self) -> str:
        op = self.op
        out = op.takes_out
        arguments = ", ".join(self.all_names())
        lines = [*self.inplace_wanted(), *self.rewrite(), *self.body_first()]
        if out:
            lines = [
                "if out is not None:",
                f"    return write_out(OP, out, {self.call_arguments()})",
                *lines,
            ]
        lookup = (
            "kernel, places, array_type, _ = table[place]"
            if op.outputs
            else "kernel, place, array_type, _ = table[place]"
        )
        call = f"array = kernel({self.kernel_arguments()})"
        body = []
        place = "places" if op.outputs else "place"
        convert = f"array, {place}, array_type = mixed(OP, {', '.join(self.names())})"
        if self.place is not None:
            body += [f"place = {self.place.name}", *self.canonical(), lookup, call]
        elif self.several is not None:
            body += [
                f"place = {self.several.name}[0].place",
                *self.canonical(),
                "arrays = []",
                f"for t in {self.several.name}:",
                "    if t.place is not place:",
                f"        {convert}",
                "        break",
                "    arrays.append(t.array)",
                "else:",
                *_indent([lookup, call]),
            ]
        else:
            body += [f"place = {self.tensors[0].name}.place", *self.numbers(), *self.canonical()]
            agree = self.agree()
            if agree:
                body += [
                    f"if {agree}:",
                    *_indent([lookup, call]),
                    "else:",
                    f"    {convert}",
                ]
            else:
                body += [lookup, call]
        lines += ["try:", *_indent(body), "except Exception as error:", f"    return recover(OP, error, {arguments})"]
        lines += self._view_results() if op.view else self._results()
        return self._function(op.name, self.signature(out), lines)

    def _function(self, name: str, signature: str, lines: list[str]) -> str:
        guarded = [
            "try:",
            *_indent(lines),
            "except Exception as error:",
            "    hide_internal_frames(error)",
            "    raise",
        ]
        return "\n".join([f"def {name}({signature}):", *_indent(guarded)]) + "\n"

    def _results(self) -> list[str]:
        op = self.op
        if op.outputs:
            return self._several_results()
        lines = [
            "if array.__class__ is not array_type:",
            "    array = place.runtime.wrap(array)",
            "result = new(Tensor)",
            "result.array = array",
            "result.place = place",
            "result.origin = None",
            "result.version = version = fresh_version() if inferring else [0]",
        ]
        if not self.differentiable:
            return [*lines, "result.node = None", "return result"]
        return [
            *lines,
            *self.histories(),
            f"if {self.any_history()} and {self.can_record()}(recorder := grad_mode.recording):",
            *_indent(self.make_node()),
            "    result.node = node",
            "else:",
            "    result.node = None",
            "return result",
        ]

    def _several_results(self) -> list[str]:
        indices = range(len(self.op.outputs))
        arrays = ", ".join(f"{name}_array" for name in self.op.outputs)
        lines = [f"{arrays}, = array", ", ".join(f"place_{i}" for i in indices) + ", = places"]
        for i, name in enumerate(self.op.outputs):
            lines += [
                f"if {name}_array.__class__ is not array_type:",
                f"    {name}_array = place_{i}.runtime.wrap({name}_array)",
                f"result_{i} = new(Tensor)",
                f"result_{i}.array = {name}_array",
                f"result_{i}.place = place_{i}",
                f"result_{i}.origin = result_{i}.node = None",
                f"result_{i}.version = {name}_version = fresh_version() if inferring else [0]",
            ]
        results = ", ".join(f"result_{i}" for i in indices)
        if self.differentiable:
            marked = [
                f"if place_{i}.dtype.category >= 2: result_{i}.node = output_node(node, {i}, {name}_array, place_{i})"
                for i, name in enumerate(self.op.outputs)
            ]
            lines += [
                *self.histories(),
                f"if {self.any_history()} and (recorder := grad_mode.recording):",
                *_indent([*self.make_node(), *marked]),
            ]
        return [*lines, f"return tuple_of(RESULT, ({results},))"]

    def _view_results(self) -> list[str]:
        statics = ", ".join(self.names()[1:])
        arguments = f"({statics},)" if statics else "()"
        lines = [
            "view = input.origin",
            *(self.histories() or ["n0 = None"]),
            "recorder = grad_mode.recording",
        ]
        link = [
            "record = new(View)",
            "record.base = input if view is None else view.base",
            "record.base_node = record.base.node",
            "record.parent = view",
            "record.function = THIS",
            f"record.arguments = {arguments}",
            "record.recorded = recorder is not False",
        ]
        if not self.op.outputs:
            return [
                *lines,
                *link,
                "result = new(Tensor)",
                "result.array = array",
                "result.place = place",
                "result.version = input.version",
                "result.origin = record",
                f"if {self.any_history()} and recorder:" if self.differentiable else "if False:",
                *_indent(self.make_node()),
                "    result.node = node",
                "else:",
                "    result.node = None",
                "return result",
            ]
        return [
            *lines,
            "recording = n0 is not None and recorder",
            "if recording:",
            *_indent(line.replace("places", "place") for line in self.make_node()),
            "    node.outputs = len(array)",
            "results = []",
            "for i, part in enumerate(array):",
            "    result = new(Tensor)",
            "    result.array = part",
            "    result.place = place",
            "    result.version = input.version",
            *_indent(link),
            "    record.function = PART",
            f"    record.arguments = (i, {statics}{',' if statics else ''})",
            "    result.origin = record",
            "    result.node = output_node(node, i, part, place) if recording else None",
            "    results.append(result)",
            "return tuple(results)",
        ]

    def _check_inputs(self, first: str) -> list[str]:
        """See that a view to be written to does not lie partly over another operand; one memory has one version."""
        lines = []
        for p in self.tensors:
            if p.name != first:
                given = f"{p.name} is not None and " if p.kind == "optional" else ""
                lines += [
                    f"if {given}{p.name}.version is {first}.version and {p.name} is not {first}:",
                    f"    check_overlap({first}, {p.name})",
                ]
        return lines

    def inplace(self) -> str:
        """The in-place form: the kernel leaves its result in the first argument's memory."""
        first = self.parameters[0].name
        name = self.op.name + "_"
        arguments = ", ".join(self.all_names())
        into = f"inplace_table[place]({first}.array, {self.kernel_arguments()})"
        agree = self.agree()
        if not self.differentiable and self.parameters[0] in self.tensors:
            self.differentiable = [self.parameters[0]]  # its history ends here: no gradient flows to what it was before
        start = [] if self.differentiable else [f"place = {first}.place", *self.numbers()]
        body = [*start, *self.canonical()]
        lines = [line.replace("BODY(", "INPLACE_BODY(") for line in self.rewrite()]
        if agree:
            mixed_call = f"    mixed_into(OP, {', '.join(self.names())})"
            body += [f"if {agree}:", f"    {into}", "else:", mixed_call]
        else:
            body += [into]
        before, after = [], []
        if self.differentiable:
            before = [
                "try:",
                f"    place = {first}.place",
                *_indent([*self.numbers(), *self.histories()]),
                f"    recorder = {self.any_history()} and {self.can_record()}grad_mode.recording",
                f"    if {first}.origin is not None:",
                f"        check_memory({first})",
                *_indent(self._check_inputs(first), "        "),
                f"        recorder = recorder or base_recorded({first}.origin) and grad_mode.recording",
                "except Exception as error:",
                f"    return recover_into(OP, error, {arguments})",
                "if recorder:",
                f"    check_writable({first})",
            ]
            if first in self.saved:
                needed = self._needed(first) or "True"
                before += ["    original = None", f"    if {needed}:"]
                before += [f"        original = {first}.detach().clone()", "        original.node = n0"]
            after = ["if recorder:", f"    array = {first}.array", f"    version = {first}.version"]
            after += [*_indent(self.make_node(inplace=True)), f"    rebase({first}, node)"]
        lines += [
            *before,
            "try:",
            *_indent(body),
            "except Exception as error:",
            f"    return recover_into(OP, error, {arguments})",
            f"{first}.version[0] += 1",
            *after,
            f"return {first}",
        ]
        return self._function(name, self.signature(False), lines)

    def backward(self) -> str:
        """The node's method: unpack what was saved, check versions, apply the formula of each input that needs it."""
        if not self.differentiable:
            return self._function("backward", "node, grad", ["return (None,)"])
        lines = ["saved = node.saved", "if saved is None:", "    raise freed(node)"]
        names: list[str] = []
        checks: list[str] = []
        for i, value in enumerate(self.saved):
            kind = self._kind(value)
            if kind == "tensor":
                names += [value, f"v{i}"]
                checks += [
                    f"if {value} is not None and {value}.version[0] != v{i}:",
                    f"    raise stale(node.name(), {value}.array.shape, {value}.place, v{i}, {value}.version[0])",
                ]
            elif kind == "tensors":
                names += [value, f"v{i}"]
                checks += [
                    f"for t, v in zip({value}, v{i}):",
                    "    if t is not None and t.version[0] != v:",
                    "        raise stale(node.name(), t.array.shape, t.place, v, t.version[0])",
                ]
            elif kind == "output":
                names += [f"o{i}"]
                index = self.op.outputs.index(value) if self.op.outputs else 0
                place = "node.place" if not self.op.outputs else f"node.place[{index}]"
                checks += [
                    f"{value} = None",
                    f"if o{i} is not None:",
                    f"    array, version, count = o{i}",
                    "    if version[0] != count:",
                    f"        raise stale(node.name(), array.shape, {place}, count, version[0])",
                    f"    {value} = new(Tensor)",
                    f"    {value}.array = array",
                    f"    {value}.place = {place}",
                    f"    {value}.version = version",
                    f"    {value}.origin = None",
                    f"    {value}.node = "
                    + ("node" if not self.op.outputs else f"output_node(node, {index}, array, {place})"),
                ]
            else:
                names += [value]
        if names:
            lines += [", ".join(names) + ("," if len(names) == 1 else "") + " = saved"]
        lines += checks
        if self.op.view and self.op.outputs:
            lines += ["grads = grad"]
        elif self.op.outputs:
            lines += [", ".join(f"grad_{name}" for name in self.op.outputs) + ", = grad"]
            lines += [f"grad = grad_{self.op.outputs[0]}"]
        if self.several:
            formula = next(iter(self.op.gradients.values()))
            lines += [f"return G0({self._formula_arguments(formula)})"]
            return self._function("backward", "node, grad", lines)
        lines += [", ".join(f"n{i}" for i in range(len(self.differentiable))) + ", = node.inputs"]
        results = {}
        for g, (group, formula) in enumerate(self.op.gradients.items()):
            call = f"G{g}({self._formula_arguments(formula)})"
            positions = [next(i for i, p in enumerate(self.differentiable) if p.name == n) for n in group]
            if len(group) == 1:
                results[group[0]] = f"{call} if n{positions[0]} is not None else None"
            else:
                needs = ", ".join(f"n{i} is not None" for i in positions)
                lines += [f"needs = ({needs},)"]
                wanted = " or ".join(f"n{i} is not None" for i in positions)
                nothing = "(" + "None, " * len(positions) + ")"
                lines += [", ".join(f"r{i}" for i in positions) + f" = {call} if {wanted} else {nothing}"]
                results.update({n: f"r{i}" for n, i in zip(group, positions, strict=True)})
        lines += ["return (" + ", ".join(results.get(p.name, "None") for p in self.differentiable) + ",)"]
        return self._function("backward", "node, grad", lines)

    def _formula_arguments(self, formula) -> str:
        code = formula.__code__
        return ", ".join(code.co_varnames[: code.co_argcount])
