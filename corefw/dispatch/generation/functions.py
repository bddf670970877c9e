"""An op's functions as source: the call, the in-place form, the backward of its node."""

from __future__ import annotations

from inspect import CO_VARARGS

from corefw.dispatch.generation import templates
from corefw.dispatch.generation.arguments import Arguments, given, packed, unpacked
from corefw.dispatch.generation.fill import fill, fill_each
from corefw.dispatch.generation.recording import Recording, argument_names
from corefw.dispatch.op import Op


# -- the call ---------------------------------------------------------------------------------------------------------
def forward(op: Op) -> str:
    """The source of the op's function: the hot path."""
    recording = Recording(op)
    arguments = recording.arguments
    results = _views if op.view and op.outputs else _view if op.view else _several if op.outputs else _result
    return fill(
        templates.FORWARD,
        name=op.name,
        signature=arguments.signature(),
        shortcuts=arguments.shortcuts(),
        dispatch_key_of=arguments.dispatch_key_of,
        numbers=arguments.numbers(),
        canonical=arguments.canonical(),
        call=arguments.call(),
        arguments=arguments.names,
        results=results(recording),
    )


def _facts(recording: Recording) -> dict[str, str]:
    """The holes of the templates that record."""
    return {name: getattr(recording, name) for name in ("histories", "any_history", "can_record", "record")}


def _result(recording: Recording) -> str:
    node = fill(templates.NODE, **_facts(recording)) if recording.differentiable else templates.NO_NODE
    return fill(templates.RESULT, node=node.strip("\n"))


def _several(recording: Recording) -> str:
    outputs = recording.op.outputs
    each = [{"i": str(i), "name": name} for i, name in enumerate(outputs)]
    nodes = ""
    if recording.differentiable:
        nodes = fill(templates.NODES, each=fill_each(templates.NODE_OF_SEVERAL, each), **_facts(recording))
    return fill(
        templates.RESULTS,
        arrays=unpacked(f"{name}_array" for name in outputs),
        dispatch_keys=unpacked(f"key_{i}" for i in range(len(outputs))),
        each=fill_each(templates.RESULT_OF_SEVERAL, each),
        nodes=nodes,
        results=packed(f"result_{i}" for i in range(len(outputs))),
    )


def _link(recording: Recording, function: str, *first: str) -> str:
    attributes = [*first, *(p.name for p in recording.op.kernel_parameters[1:])]  # besides the input
    return fill(templates.LINK, function=function, view_arguments=packed(attributes) if attributes else "()")


def _view(recording: Recording) -> str:
    return fill(templates.VIEW, link=_link(recording, "THIS"), **_facts(recording))


def _views(recording: Recording) -> str:
    return fill(templates.VIEWS, link=_link(recording, "PART", "i"), **_facts(recording))


# -- the in-place form ------------------------------------------------------------------------------------------------
def inplace(op: Op) -> str:
    """The source of the in-place form: the kernel leaves its result in the first argument's memory."""
    recording = Recording(op, inplace=True)
    arguments = recording.arguments
    first = op.parameters[0].name
    checks = [
        fill(
            templates.CHECK_MEMORY if p.name == first else templates.CHECK_OVERLAP,
            name=p.name,
            given=given(p),
            first=first,
        )
        for p in arguments.tensors
        if p.name not in op.overlapping
    ]
    call = fill(templates.CALL_INTO, first=first, kernel_arguments=arguments.kernel_arguments)
    if arguments.agree:
        call = fill(templates.CALL_INTO_AGREEING, agree=arguments.agree, call_into=call, operands=arguments.operands)
    original = ""
    if first in recording.saved:
        original = fill(templates.KEEP_ORIGINAL, first=first, needed=recording.needed(first) or "True")
    return fill(
        templates.INPLACE,
        name=op.name,
        signature=arguments.signature(),
        first=first,
        arguments=arguments.names,
        rewrite=arguments.respelled() + "\n" + arguments.rewrite("INPLACE_BODY"),
        numbers=arguments.numbers(),
        checks="\n".join(checks),
        keep_original=original,
        canonical=arguments.canonical(),
        call=call,
        **_facts(recording),
    )


def plain(op: Op) -> str:
    """The source of a composite's function that runs the body alone."""
    arguments = Arguments(op)
    signature, options, passed = arguments.signature(), arguments.taken(), arguments.passed
    if op.body.__code__.co_flags & CO_VARARGS:
        signature, passed = "*arguments, out=None", "*arguments"
        options = fill(templates.OUT, passed=passed)
    return fill(templates.PLAIN, name=op.name, signature=signature, options=options, passed=passed)


def update(op: Op) -> str:
    """The source of an op that changes lists of tensors in place."""
    arguments = Arguments(op)
    assert arguments.several is not None
    return fill(
        templates.UPDATE,
        name=op.name,
        signature=arguments.signature(),
        first=arguments.first,
        several=arguments.several.name,
        arguments=arguments.names,
        changed=packed(f"*{p.name}" for p in op.changed),
        kernel_arguments=arguments.kernel_arguments,
    )


# -- the backward -----------------------------------------------------------------------------------------------------
def backward(op: Op) -> str:
    """The source of the node's method: unpack what was saved, check versions, apply the formulas that are needed."""
    recording = Recording(op)
    if not recording.differentiable:
        return templates.NO_BACKWARD.strip("\n")
    formulas, gradients = _formulas(recording)
    return fill(
        templates.BACKWARD,
        unpack=_unpack(recording),
        unchanged="\n".join(filter(None, (_unchanged(recording, i) for i in range(len(recording.saved))))),
        gradients_of_outputs=_gradients_of_outputs(op),
        formulas=formulas,
        gradients=gradients,
    )


def _unpack(recording: Recording) -> str:
    names: list[str] = []
    for i, (value, kind) in enumerate(recording.saved_kinds()):
        names += {"tensor": [value, f"v{i}"], "tensors": [value, f"v{i}"], "output": [f"o{i}"]}.get(kind, [value])
    return fill(templates.UNPACK, names=unpacked(names)) if names else ""


def _unchanged(recording: Recording, i: int) -> str:
    """See that a saved tensor is as it was; a saved output becomes a tensor again."""
    name, kind = recording.saved_kinds()[i]
    if kind == "tensor":
        return fill(templates.TENSOR_UNCHANGED, name=name, i=str(i))
    if kind == "tensors":
        return fill(templates.TENSORS_UNCHANGED, name=name, i=str(i))
    if kind != "output":
        return ""
    key, node = "node.dispatch_key", "node"
    if outputs := recording.op.outputs:
        index = outputs.index(name)
        key, node = f"node.dispatch_key[{index}]", f"output_node(node, {index}, array, node.dispatch_key[{index}])"
    return fill(templates.OUTPUT_AGAIN, name=name, i=str(i), dispatch_key=key, node=node)


def _gradients_of_outputs(op: Op) -> str:
    if not op.outputs:
        return ""
    if op.view:
        return "grads = grad"
    names = [f"grad_{name}" for name in op.outputs]
    return fill(templates.GRADIENTS_OF_OUTPUTS, names=unpacked(names), first=names[0])


def _formulas(recording: Recording) -> tuple[str, str]:
    """The lines that apply formulas of several inputs, and the expression of all gradients."""
    op = recording.op
    applied = [f"G{i}({', '.join(argument_names(formula))})" for i, formula in enumerate(op.gradients.values())]
    if recording.arguments.several:
        return "", applied[0]
    position = {p.name: i for i, p in enumerate(recording.differentiable)}
    lines = [unpacked(f"n{i}" for i in position.values()) + " = node.inputs"]
    results = dict.fromkeys(position, "None")
    for group, formula in zip(op.gradients, applied):
        wanted = [f"n{position[name]} is not None" for name in group]
        if len(group) == 1:
            results[group[0]] = f"{formula} if {wanted[0]} else None"
            continue
        targets = {name: f"r{position[name]}" for name in group}
        lines.append(
            fill(
                templates.FORMULA_OF_SEVERAL,
                needs=packed(wanted),
                results=unpacked(targets.values()),
                formula=formula,
                wanted=" or ".join(wanted),
                nothing=packed(["None"] * len(group)),
            )
        )
        results.update(targets)
    return "\n".join(lines), packed(results.values())
