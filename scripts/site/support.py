"""The table of support: PyTorch's public names, those that are there and those that are refused."""

from __future__ import annotations

import names

from corefw.refusals import REFUSALS


def page() -> str:
    """The page."""
    lines = [
        *("# What is there", ""),
        "Every public name that is tested, by namespace. Of PyTorch's own names these are left out on purpose;",
        "asking for one raises the reason. Everything else that a program may miss is a fault worth reporting.",
        *("", "| left out | why, and what to use |", "|---|---|"),
        *(f"| `torch.{name}` | {reason} |" for name, reason in REFUSALS.items()),
        *("", "## There", ""),
    ]
    for namespace, found in names.sections().items():
        title = namespace.replace("corefw", "torch", 1)
        lines += [f"### {title}", "", f"{len(found)} names ([reference](../reference/{namespace}.md)):", ""]
        lines += [", ".join(f"`{name}`" for name in found), ""]
    return "\n".join(lines)
