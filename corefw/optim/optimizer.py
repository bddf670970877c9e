"""The base of all optimizers: parameter groups, state, checkpoints, and the call of one kernel per group."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from corefw.autograd.handles import RemovableHandle
from corefw.dispatch.record import mode, no_recording
from corefw.dispatch.registry import registry
from corefw.tensor import Tensor


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


class Optimizer:
    """Updates parameters from their gradients.

    A subclass gives its defaults to the constructor and defines ``update(group, params)``: the arithmetic for one
    group, given the parameters that have a gradient.

    Args:
        params: parameters, (name, parameter) pairs, or dicts with the key "params" and options of that group.
        defaults: the options' default values.

    Attributes: ``param_groups`` the groups as dicts; ``state`` per parameter, a dict.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]):
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + type(params).__name__
            )
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._pre_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._post_hooks: OrderedDict[int, Callable] = OrderedDict()
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """Change `params` in place by the group's options; their gradients are in ``.grad``."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters once.

        Args:
            closure: recomputes the loss and its gradients, and returns the loss.
        """
        for hook in tuple(self._pre_hooks.values()):
            hook(self, (closure,), {})
        loss = None
        if closure is not None:
            before, mode.recording = mode.recording, True
            try:
                loss = closure()
            finally:
                mode.recording = before
        with no_recording():
            for group in self.param_groups:
                params = [p for p in group["params"] if p._grad is not None]
                if params:
                    self.update(group, params)
                    for p in params:
                        p.version[0] += 1
        for hook in tuple(self._post_hooks.values()):
            hook(self, (closure,), {})
        return loss

    def call(self, op: str, params: list[Tensor], *arguments) -> None:
        """Run the kernel of a step op on the parameters, once per place; lists of tensors among the arguments have one
        item per parameter."""
        places = {p.place for p in params}
        for place in places:
            chosen = [i for i, p in enumerate(params) if p.place is place] if len(places) > 1 else range(len(params))
            kernel = registry.ops[op].table[place][0]
            kernel(
                [params[i].array for i in chosen],
                [params[i]._grad.array for i in chosen],
                *(_raw(argument, chosen) for argument in arguments),
            )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop all gradients, or set them to zero."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p._grad = None
                elif p._grad is not None:
                    p._grad.detach_()
                    p._grad.zero_()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own.

        Raises TypeError for things that are not tensors, ValueError for computed tensors and for parameters that are in
        a group already.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        given = group["params"]
        if isinstance(given, Tensor):
            given = [given]
        elif isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of sets is random"
            )
        given = list(given)
        if given and all(isinstance(item, tuple) for item in given):
            group["param_names"] = [name for name, _ in given]
            given = [p for _, p in given]
        for p in given:
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + type(p).__name__)
            if not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        if len(set(given)) != len(given):
            raise ValueError("optimizer contains a parameter group with duplicate parameters")
        if set(given) & set(chain.from_iterable(g["params"] for g in self.param_groups)):
            raise ValueError("some parameters appear in more than one parameter group")
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        group["params"] = given
        self.param_groups.append(group)

    # -- checkpoints ----------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """State and options with parameters replaced by their numbers, in PyTorch's form."""
        numbers = {p: i for i, p in enumerate(chain.from_iterable(g["params"] for g in self.param_groups))}
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[p] for p in group["params"]]}
            for group in self.param_groups
        ]
        return {"state": {numbers[p]: dict(s) for p, s in self.state.items() if p in numbers}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; tensors are copied and brought to their parameter's device and dtype.

        Raises ValueError if the groups do not have the same numbers of parameters.
        """
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(saved, self.param_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        by_number = dict(
            zip(
                chain.from_iterable(g["params"] for g in saved),
                chain.from_iterable(g["params"] for g in self.param_groups),
                strict=True,
            )
        )
        state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        for number, values in state_dict["state"].items():
            parameter = by_number[number]
            state[parameter] = {key: _as_state(key, value, parameter) for key, value in values.items()}
        self.state = state
        self.param_groups = [
            {**deepcopy({k: v for k, v in new.items() if k != "params"}), "params": old["params"]}
            for new, old in zip(saved, self.param_groups, strict=True)
        ]

    def _register(self, hooks: OrderedDict[int, Callable], hook: Callable) -> RemovableHandle:
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; returns a handle with ``remove()``."""
        return self._register(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step; returns a handle with ``remove()``."""
        return self._register(self._post_hooks, hook)

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _raw(argument, chosen):
    if isinstance(argument, list):
        return (
            [argument[i].array if isinstance(argument[i], Tensor) else argument[i] for i in chosen] if argument else []
        )
    return argument


def _as_state(key: str, value: Any, parameter: Tensor) -> Any:
    if not isinstance(value, Tensor):
        return deepcopy(value)
    if key == "step":
        return value.detach().clone()
    dtype = parameter.dtype if value.is_floating_point() else value.dtype
    return value.detach().to(device=parameter.device, dtype=dtype, copy=True)
