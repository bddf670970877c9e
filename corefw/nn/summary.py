"""A table of a model's layers: what each computes, its parameters and its memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor


@dataclass(frozen=True)
class Row:
    """One layer: path, class, the shapes that came and went, its own parameters, bytes of these and of the output."""

    path: str
    kind: str
    inputs: str
    outputs: str
    parameters: int
    trainable: int
    parameter_bytes: int
    output_bytes: int


@dataclass(frozen=True)
class Summary:
    """The rows of all layers that ran, in the order in which they did; prints as a table, of layers within layers down
    to a `depth` if there is one."""

    rows: tuple[Row, ...]
    depth: int | None = None

    @property
    def parameters(self) -> int:
        """The number of parameters of all layers."""
        return sum(row.parameters for row in self.rows)

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        return f"<pre>{self}</pre>"

    def __str__(self) -> str:
        head = ("layer", "kind", "input", "output", "parameters", "bytes", "output bytes")
        body = [
            (
                r.path or "(model)",
                r.kind,
                r.inputs,
                r.outputs,
                f"{r.parameters:,}",
                f"{r.parameter_bytes:,}",
                f"{r.output_bytes:,}",
            )
            for r in self.rows
            if self.depth is None or len(r.path.split(".")) <= self.depth
        ]
        widths = [max(len(row[i]) for row in (head, *body)) for i in range(len(head))]
        lines = [
            "  ".join(
                cell.rjust(w) if i > 3 else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (head, *body)
        ]
        trainable = sum(r.trainable for r in self.rows)
        weights, activations = sum(r.parameter_bytes for r in self.rows), sum(r.output_bytes for r in self.rows)
        total = (
            f"{self.parameters:,} parameters ({trainable:,} trainable), {weights:,} bytes; "
            f"outputs of all layers {activations:,} bytes"
        )
        return "\n".join([*lines, total])


def shapes(value: Any) -> str:
    """The shapes of the tensors in a value, nested as the value is."""
    if isinstance(value, Tensor):
        return str(tuple(value.array.shape))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {shapes(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return ", ".join(map(shapes, value)) if len(value) == 1 else "(" + ", ".join(map(shapes, value)) + ")"
    return type(value).__name__


def _bytes(value: Any) -> int:
    if isinstance(value, Tensor):
        return value.array.nbytes
    if isinstance(value, dict):
        value = list(value.values())
    return sum(map(_bytes, value)) if isinstance(value, list | tuple) else 0


def summarize(model: Any, inputs: tuple, keywords: dict[str, Any]) -> Summary:
    """Run the model once without gradients, in evaluation mode, and note what each layer was given and gave."""
    rows: list[Row] = []
    counted: set[Tensor] = set()
    names = {module: path for path, module in model.named_modules()}

    def note(module, args, output):
        own = [p for p in module.parameters(recurse=False) if p not in counted]
        counted.update(own)
        rows.append(
            Row(
                path=names[module],
                kind=type(module).__name__,
                inputs=shapes(args),
                outputs=shapes(output),
                parameters=sum(p.numel() for p in own),
                trainable=sum(p.numel() for p in own if p.requires_grad),
                parameter_bytes=sum(p.array.nbytes for p in own),
                output_bytes=0 if any(True for _ in module.children()) else _bytes(output),
            )
        )

    handles = [module.register_forward_hook(note) for module in names]
    modes = {module: module.training for module in names}
    try:
        with no_recording():
            model.eval()(*inputs, **keywords)
    finally:
        for module, training in modes.items():
            module.training = training
        for handle in handles:
            handle.remove()
    return Summary(tuple(rows))
