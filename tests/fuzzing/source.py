"""A program printed as Python that runs with ``import corefw as torch`` and with ``import torch`` alike."""

from __future__ import annotations

from math import isfinite

from tests.fuzzing.programs import Leaf, Name, Program, Ref, Step, array_of, geometry, memory_of

_SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "matmul": "@",
    "and_": "&",
    "or_": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
_IN_PLACE = {"i" + name.rstrip("_"): symbol + "=" for name, symbol in _SYMBOLS.items()}
_MOST = 100  # elements that are listed


def _number(value) -> str:
    if isinstance(value, float) and not isfinite(value):
        return f"float('{value}')"
    if isinstance(value, complex):
        return f"complex({_number(value.real)}, {_number(value.imag)})"
    return repr(value)


def text(value) -> str:
    """An argument as Python."""
    if isinstance(value, Ref):
        return f"v{value.number}"
    if isinstance(value, Name):
        return f"torch.{value.text}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(text, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, slice):
        return f"slice({text(value.start)}, {text(value.stop)}, {text(value.step)})"
    return "..." if value is ... else _number(value)


def _nested(values) -> str:
    return "[" + ", ".join(map(_nested, values)) + "]" if isinstance(values, list) else _number(values)


def _leaf(leaf: Leaf) -> str:
    strides, offset, size = geometry(leaf.shape, leaf.layout)
    if size > _MOST:
        made = f"torch.tensor(np.resize({_nested(list(leaf.values))}, {size}).tolist(), dtype=torch.{leaf.dtype})"
        seen = f".as_strided({leaf.shape}, {strides}, {offset})"
    elif leaf.layout == "contiguous" and size:
        made, seen = f"torch.tensor({_nested(array_of(leaf).tolist())}, dtype=torch.{leaf.dtype})", ""
    else:
        made = f"torch.tensor({_nested(memory_of(leaf, size).tolist())}, dtype=torch.{leaf.dtype})"
        seen = f".as_strided({leaf.shape}, {strides}, {offset})"
    return made + seen + (".requires_grad_()" if leaf.requires_grad else "")


def _call(step: Step) -> str:
    name, arguments = step.function, [text(a) for a in step.arguments]
    if name == "operator.getitem":
        return f"{arguments[0]}[{arguments[1]}]"
    if name.startswith("operator."):
        return f"{arguments[0]} {_SYMBOLS[name.removeprefix('operator.')]} {arguments[1]}"
    if name == "gradients":
        outputs, inputs, weights = arguments[:3]
        options = "".join(f", {k}={text(v)}" for k, v in step.keywords.items())
        return f"torch.autograd.grad({outputs}, {inputs}, weights({outputs}, {weights}), allow_unused=True{options})"
    arguments += [f"{k}={text(v)}" for k, v in step.keywords.items()]
    if name.startswith("."):
        return f"{arguments[0]}{name}({', '.join(arguments[1:])})"
    owner = "torch.testing.ops." if name.startswith("op:") else "torch."
    return f"{owner}{name.removeprefix('op:')}({', '.join(arguments)})"


def _line(number: int, step: Step) -> str:
    name, arguments = step.function.removeprefix("operator."), [text(a) for a in step.arguments]
    if step.function == "operator.setitem":
        line = f"v{number} = {arguments[0]}; v{number}[{arguments[1]}] = {arguments[2]}"
    elif step.function.startswith("operator.") and name in _IN_PLACE:
        line = f"v{number} = {arguments[0]}; v{number} {_IN_PLACE[name]} {arguments[1]}"
    else:
        line = f"v{number} = {_call(step)}"
    return line if step.records else f"with torch.no_grad(): {line}"


_WEIGHTS = """
def weights(outputs, values):
    return [torch.tensor(np.resize(values, o.numel())).reshape(o.shape).to(o.dtype) for o in outputs]

"""


def source(program: Program, what: str = "") -> str:
    """The program as Python."""
    lines = [
        f"v{i} = {_leaf(entry)}" if isinstance(entry, Leaf) else _line(i, entry)
        for i, entry in enumerate(program.entries)
    ]
    body = "\n".join(lines)
    head = f'"""{what}"""\n' if what else ""
    if "np." in body or "weights(" in body:
        head += "import numpy as np\n"
    if "op:" in " ".join(e.function for e in program.entries if isinstance(e, Step)):
        body = body.replace("torch.testing.ops.", "ops.")
        head += "from corefw.dispatch.declare import ops\n"
    head += "import corefw as torch\n"
    return head + (_WEIGHTS if "weights(" in body else "\n") + body + (f"\nprint(v{len(lines) - 1})\n" if lines else "")
