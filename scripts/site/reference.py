"""The reference: a page per namespace, each name with its signature, its docstring, and of ops the gradient's formula
and who has kernels."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import griffe
import names

from corefw.dispatch.op import Op

_TITLES = {"args": "Arguments", "attributes": "Attributes", "returns": "Returns", "raises": "Raises"}


def pages() -> dict[str, str]:
    """{path: page} of all namespaces."""
    sections = names.sections()
    made = {"reference/index.md": _index(sections)}
    for namespace, found in sections.items():
        made[_path(namespace)] = _page(namespace, found)
    return made


def _path(namespace: str) -> str:
    return f"reference/{namespace}.md"


def _index(sections: dict[str, list[str]]) -> str:
    rows = [f"| [{n.replace('corefw', 'torch', 1)}]({n}.md) | {len(found)} |" for n, found in sections.items()]
    return "\n".join([
        *("# Reference", "", "Names are PyTorch's; `import corefw as torch`. Every page is made of the docstrings, of"),
        "the declarations of ops, and of what the installed backends have kernels for.",
        *("", "| namespace | names |", "|---|---|", *rows),
    ])  # fmt: skip


def _page(namespace: str, found: list[str]) -> str:
    title = namespace.replace("corefw", "torch", 1)
    lines = [f"# {title}", "", _first_sentence(names.owner_of(namespace)), ""]
    for name in found:
        lines += [f"## {name} {{ #{_anchor(name)} }}", "", *_entry(namespace, name), ""]
    return "\n".join(lines)


def _anchor(name: str) -> str:
    return name.replace(".", "-")


def _first_sentence(thing: Any) -> str:
    text = inspect.getdoc(thing) or ""
    return _escaped(text.partition("\n\n")[0].replace("\n", " "))


def _entry(namespace: str, name: str) -> Iterator[str]:
    thing = names.object_of(namespace, name)
    if callable(thing):
        yield from ("```python", f"{name}{_signature(thing)}", "```", "")
    if namespace == "corefw.Tensor" and (op := _op_of_method(name)) is not None and op.name in _functions():
        yield f"The method of [`torch.{op.name}`](corefw.md#{_anchor(op.name)})."
        return
    if isinstance(thing, (int, float, str, bool, type(None))):
        yield f"`{thing!r}`"
        return
    yield from _documented(inspect.getdoc(thing) or "")
    op = names.op_of(thing)
    if op is not None:
        yield from _of_op(op)


@cache
def _functions() -> frozenset[str]:
    return frozenset(names.sections()["corefw"])


def _op_of_method(name: str) -> Op | None:
    return names.registry.declared.get(name.removesuffix("_"))


def _signature(thing: Callable) -> str:
    try:
        signature = str(inspect.signature(names.registry.own(thing)))
        text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)  # annotations are strings
        return textwrap.shorten(text.removesuffix(" -> None"), 400, placeholder=" ...)")
    except (TypeError, ValueError):
        return "(...)"


# -- docstrings -------------------------------------------------------------------------------------------------------
def _documented(text: str) -> Iterator[str]:
    for section in griffe.Docstring(text).parse("google", warn_unknown_params=False, warnings=False):
        kind, value = section.kind.value, section.value
        if kind == "text":
            yield from (_with_examples(value), "")
        elif kind == "examples":
            for _, part in value:
                yield from (_with_examples(part), "")
        elif isinstance(value, list):
            title = _TITLES.get(kind if kind != "parameters" else "args", kind.capitalize())
            yield from (f"**{title}**", "")
            for item in value:
                name = getattr(item, "name", "") or getattr(item, "annotation", "") or ""
                yield f"- {f'`{name}`: ' if name else ''}{_inline(item.description)}"
            yield ""


def _with_examples(text: str) -> str:
    """Text with its examples as code."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith(">>>") and not inside:
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line if inside else _escaped(line))
    return "\n".join([*lines, *(["```"] if inside else [])])


def _inline(text: str) -> str:
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    """Text in which what Markdown would read otherwise stands as it is."""
    parts = text.replace("``", "`").split("`")
    parts[::2] = [
        part.replace("*", r"\*").replace("_", r"\_").replace("[", r"\[").replace("<", "&lt;") for part in parts[::2]
    ]
    return "`".join(parts)


# -- ops --------------------------------------------------------------------------------------------------------------
def _of_op(op: Op) -> Iterator[str]:
    for targets, formula in op.gradients.items():
        if source := _source(formula):
            yield from (f"**Gradient of {', '.join(f'`{t}`' for t in targets)}**", "", "```python", source, "```", "")
    kernels = names.kernels_of(op)
    body = "" if op.primitive else "composed of other ops" + (", and " if kernels else "")
    shown = ", ".join(f"`{name}`{f' ({d})' if d else ''}" for name, d in kernels.items())
    yield f"**Kernels**: {body}{shown}."


@cache
def _trees(path: str) -> list[ast.Lambda]:
    text = open(path, encoding="utf-8").read()  # noqa: SIM115
    return [
        (node, ast.get_source_segment(text, node)) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Lambda)
    ]


def _source(formula: Callable) -> str:
    """The text of a formula: the lambda of a declaration, or a function's body."""
    code = getattr(formula, "__code__", None)
    if code is None or not code.co_filename.endswith(".py"):
        return ""
    if code.co_name != "<lambda>":
        return textwrap.dedent(inspect.getsource(formula)).rstrip()
    wanted = code.co_varnames[: code.co_argcount]
    for node, text in _trees(code.co_filename):
        if node.lineno == code.co_firstlineno and tuple(a.arg for a in node.args.args) == wanted:
            return text or ""
    return ""
