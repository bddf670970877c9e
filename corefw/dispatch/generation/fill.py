"""Source from a template: literal Python with named holes."""

from __future__ import annotations

import re

_HOLE = re.compile(r"\{(\w+)\}")
_ALONE = re.compile(r"( *)\{(\w+)\}")


def fill(template: str, **holes: str) -> str:
    """The template with its holes filled.

    A hole ``{name}`` within a line takes text. One alone on its line takes lines, each indented as the hole is; where
    there are none, the line goes.
    """
    lines = []
    for line in template.strip("\n").split("\n"):
        alone = _ALONE.fullmatch(line)
        if alone:
            indent, name = alone.groups()
            lines += [indent + filled for filled in holes[name].splitlines()]
        else:
            lines.append(_HOLE.sub(lambda hole: holes[hole[1]], line))
    return "\n".join(lines)


def fill_each(template: str, every: list[dict[str, str]]) -> str:
    """The template once for each of several sets of holes, below each other."""
    return "\n".join(fill(template, **holes) for holes in every)
