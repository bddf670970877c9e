"""The gradients that pass a module on their way back, for its backward hooks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from corefw.autograd.function import Function
from corefw.errors import GradientError
from corefw.graph.grad_mode import mode
from corefw.sequences import alike
from corefw.tensor import Tensor


class BackwardHookFunction(Function):
    """Tensors as they are: its node is the place where gradients enter a module, or leave it."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.mark_non_differentiable(*(tensor for tensor in tensors if not tensor.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return gradients


class BackwardWatch:
    """One call of a module: the gradients of its outputs are kept until those of its inputs are there.

    Nodes before and after the module see what passes it, and not what reaches its inputs by other ways.

    Args:
        module: the module.
        hooks: what is called with the gradients of inputs and of outputs.
        pre_hooks: what is called with those of outputs, before the module's backward.
    """

    def __init__(self, module: Any, hooks: Sequence, pre_hooks: Sequence):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.inputs = 0
        self.watched: list[int] | None = None  # which inputs are tensors; None if no input has a gradient
        self.grad_outputs: tuple | None = None

    def begin_at(self, args: tuple) -> tuple:
        """The arguments of the module, behind a node if they have gradients."""
        self.inputs = len(args)
        passed, places, node = _behind_a_node(args)
        if node is not None:
            self.watched = places
            node.register_hook(self._of_inputs)
        return passed

    def end_at(self, result: Any) -> Any:
        """What the module returned, a tensor or a sequence with tensors, behind a node if it has gradients."""
        one = not isinstance(result, tuple | list)
        values = (result,) if one else tuple(result)
        passed, watched, node = _behind_a_node(values)
        if node is None:
            return result
        node.register_prehook(lambda gradients: self._of_outputs(_spread(gradients, watched, len(values)), watched))
        return passed[0] if one else alike(result, passed)

    def _of_outputs(self, gradients: tuple, watched: list[int]) -> tuple:
        for hook, _ in self.pre_hooks:
            gradients = self._checked(hook(self.module, gradients), gradients, "pre hook", "grad_output")
        self.grad_outputs = gradients
        if self.watched is None:
            self._without_inputs(gradients)
        return tuple(gradients[i] for i in watched)

    def _without_inputs(self, gradients: tuple) -> None:
        """The hooks of a module none of whose inputs has a gradient: they see those of its outputs."""
        if self.hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients.",
                stacklevel=2,
            )
        nothing = (None,) * self.inputs
        for hook, _ in self.hooks:
            changed = hook(self.module, nothing, gradients)
            if changed is not None and not (isinstance(changed, tuple) and all(one is None for one in changed)):
                raise GradientError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )

    def _of_inputs(self, gradients: tuple, _: tuple) -> tuple | None:
        if self.grad_outputs is None or self.watched is None:  # the outputs were not used, or by a view of an input
            return None
        found = _spread(gradients, self.watched, self.inputs)
        for hook, _options in self.hooks:
            found = self._checked(hook(self.module, found, self.grad_outputs), found, "hook", "grad_input")
        self.grad_outputs = None
        return tuple(found[i] for i in self.watched)

    @staticmethod
    def _checked(changed: Any, before: tuple, kind: str, of: str) -> tuple:
        """What a hook returned in place of gradients, or those before."""
        if changed is None:
            return before
        given = changed if isinstance(changed, tuple) else (changed,)
        if len(given) != len(before):
            raise GradientError(
                f"Backward {kind} returned an invalid number of {of}, got {len(given)}, but expected {len(before)}"
            )
        return given


def _behind_a_node(values: tuple) -> tuple[tuple, list[int], Any]:
    """The values with their tensors taken through a node, the tensors' places, and the node; None for it, and the
    values as they are, where nothing has a gradient."""
    places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if mode.recording is False or not any(values[i].requires_grad for i in places):
        return values, places, None
    passed = BackwardHookFunction.apply(*(values[i] for i in places))
    node = next(tensor.grad_fn for tensor in passed if tensor.grad_fn is not None)
    taken = dict(zip(places, passed, strict=True))
    return tuple(taken.get(i, value) for i, value in enumerate(values)), places, node


def _spread(gradients: tuple, places: list[int], count: int) -> tuple:
    """Gradients of the tensors among some values, with None for the others."""
    found = dict(zip(places, gradients, strict=True))
    return tuple(found.get(i) for i in range(count))
