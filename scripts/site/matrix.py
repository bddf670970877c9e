"""The matrix of kernels: which backend of the project computes which op itself."""

from __future__ import annotations

import names

from corefw.dispatch.registry import registry


def page() -> str:
    """The page."""
    names.sections()  # loads the backends
    backends = [*registry.backends]
    families: dict[str, list] = {}
    for op in registry.declared.values():
        families.setdefault(op.family, []).append(op)
    lines = [
        *("# Kernels of the project's backends", ""),
        "`all`: for every dtype that the op takes; else the dtypes. An op without a kernel of a backend is computed by",
        "the next one on the device, or is composed of others: `corefw.explain(op, ...)` tells which.",
        "`corefw conform NAME` holds every kernel that it claims to the conformance kit ([results](conformance.md)).",
        "",
    ]
    for family, ops in sorted(families.items()):
        rows = [(op.name, names.kernels_of(op)) for op in ops]
        rows = [(name, kernels) for name, kernels in rows if kernels]
        if not rows:
            continue
        lines += [f"## {family}", "", f"| op | {' | '.join(backends)} |", f"|---|{'---|' * len(backends)}"]
        for name, kernels in rows:
            lines.append(
                f"| `{name}` | {' | '.join((kernels[b] or 'all') if b in kernels else '' for b in backends)} |"
            )
        lines.append("")
    return "\n".join(lines)
