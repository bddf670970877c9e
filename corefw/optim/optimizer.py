"""The base of all optimizers: parameter groups, state, checkpoints, and the call of one kernel per group."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import wraps
from itertools import chain
from typing import Any

from corefw.autograd.handles import RemovableHandle
from corefw.dispatch.declare import ops
from corefw.dispatch.out import refuse_read_only
from corefw.dispatch.records import record
from corefw.dispatch.sparse.tensors import SparseTensor, is_sparse
from corefw.dtypes import float32, float64, get_default_dtype
from corefw.errors import CaptureError, LayoutError
from corefw.graph.grad_mode import mode, no_recording
from corefw.sequences import alike
from corefw.tensor import Tensor
from corefw.tensor_api.construction import asarray
from corefw.tracebacks import warn


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()
#: what optimizers take: tensors, groups as dicts, or pairs of names and tensors; also under an older name
ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
_params_t = ParamsT


def _use_grad_for_differentiable(step: Callable) -> Callable:
    """The `step` of an optimizer, recorded for differentiation only if the option `differentiable` is on."""

    @wraps(step)
    def recorded(self, *args, **kwargs):
        if self.defaults.get("differentiable", False):
            return step(self, *args, **kwargs)
        with no_recording():
            return step(self, *args, **kwargs)

    return recorded


def _default_to_fused_or_foreach(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Neither: an optimizer that is written in Python loops over its parameters."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The devices whose graphs can hold a step."""
    return ["cuda"]


#: the states that are numbers, kept on the host but where a graph is to count them on
_COUNTS = ("step", "mu_product")


#: the hooks of all optimizers
_every_pre_hook: OrderedDict[int, Callable] = OrderedDict()
_every_post_hook: OrderedDict[int, Callable] = OrderedDict()


def _register(hooks: OrderedDict[int, Callable], hook: Callable) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer, before the optimizer's own hooks.

    Returns:
        A handle, whose ``remove()`` takes the hook away.
    """
    return _register(_every_pre_hook, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer, after the optimizer's own hooks.

    Returns:
        A handle, whose ``remove()`` takes the hook away.
    """
    return _register(_every_post_hook, hook)


def _with_hooks(step: Callable) -> Callable:
    """`step` with the hooks of all optimizers, and the optimizer's own, run around it, and its first call noted for the
    schedulers."""

    @wraps(step)
    def hooked(self, *args, **kwargs):
        for hook in (
            (*_every_pre_hook.values(), *self._pre_hooks.values()) if _every_pre_hook or self._pre_hooks else ()
        ):
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(f"step pre-hook must return None or (new_args, new_kwargs), but got {changed}")
                args, kwargs = changed
        result = step(self, *args, **kwargs)
        self._stepped = True
        for hook in (
            (*self._post_hooks.values(), *_every_post_hook.values()) if _every_post_hook or self._post_hooks else ()
        ):
            hook(self, args, kwargs)
        return result

    return hooked


class Optimizer:
    """Updates parameters from their gradients.

    A subclass gives its defaults to the constructor and names its `step_op`, or defines ``update(group, params)``: the
    arithmetic for one group, given the parameters that have a gradient. It may define ``step`` itself instead; hooks
    run around either.

    Args:
        params: parameters, (name, parameter) pairs, or dicts with the key "params" and options of that group.
        defaults: the options' default values.

    Attributes: ``param_groups`` the groups as dicts; ``state`` per parameter, a dict; ``step_op`` the op that makes a
    step: the parameters of its signature are states, in the plural, and options of a group.
    """

    step_op = ""
    _stepped = False
    _states: tuple[tuple[str, str], ...] = ()  # the name of each, and the option without which there is none
    _options: tuple[tuple[str, int | None], ...]  # the key of each, and which of its items is meant

    # for subclasses around another optimizer, which make none of their own
    _pre_hooks: OrderedDict[int, Callable] = OrderedDict()
    _post_hooks: OrderedDict[int, Callable] = OrderedDict()

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if "step_op" in cls.__dict__:
            step = record(cls.step_op)
            lists = [name for name in step.lists if name not in ("params", "grads")]
            cls._states = tuple((name.removesuffix("s"), step.where.get(name, "")) for name in lists)
            betas: dict[str, tuple[str, int | None]] = {"beta1": ("betas", 0), "beta2": ("betas", 1)}
            cls._options = tuple(betas.get(name, (name, None)) for name in (*step.rates, *step.numbers))
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]):
        if defaults.get("fused"):
            if defaults.get("differentiable"):
                raise RuntimeError("`fused` does not support `differentiable`")
            if defaults.get("foreach"):
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + type(params).__name__
            )
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._pre_hooks, self._post_hooks = OrderedDict(), OrderedDict()
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _patch_step_function(self) -> None:
        """Nothing: classes get hooks around their steps when they are made. Wrappers of optimizers call it."""

    def update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """Change `params` in place by the group's options; their gradients are in ``.grad``."""
        if not self.step_op:
            raise NotImplementedError
        capturable = group.get("capturable", False)
        states = [
            self.states(name, params, capturable) if not option or group[option] else []
            for name, option in self._states
        ]
        if params[0].dispatch_key.runtime.has_graphs and states[-1][0].device.type == "cpu":
            self.refuse_capture(params[0], "param_groups' capturable is False, and steps are counted on the host")
        lr, *options = [group[key] if i is None else group[key][i] for key, i in self._options]
        if not capturable and not isinstance(lr, float):
            lr = float(lr)
        self.run_step(params, *states, lr, *options)

    def run_step(self, params: list[Tensor], *arguments: Any) -> None:
        """Call the step op with `params`, their gradients and what follows in its signature."""
        gradients = [p._grad for p in params]
        if SparseTensor.made and any(map(is_sparse, gradients)):
            raise LayoutError(
                f"{type(self).__name__} does not support sparse gradients, please consider SparseAdam instead"
            )
        getattr(ops, self.step_op)(params, gradients, *arguments)

    @_with_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters once.

        Args:
            closure: recomputes the loss and its gradients, and returns the loss.
        """
        loss = None if closure is None else self.evaluate(closure)
        groups = [(group, [p for p in group["params"] if p._grad is not None]) for group in self.param_groups]
        if len(groups) > 1 or not self.step_op:  # before one of them is stepped
            self._refuse_read_only(chain.from_iterable(params for _, params in groups))
        with no_recording():
            for group, params in groups:
                if params:
                    self.update(group, params)
        return loss

    def _refuse_read_only(self, params: Iterable[Tensor]) -> None:
        """Raise ReadOnlyError if the memory of a parameter is read-only; kernels refuse their own lists."""
        refuse_read_only(f"{type(self).__name__}.step", *params)

    @staticmethod
    def evaluate(closure: Callable[[], Any]) -> Any:
        """What `closure` returns, run with gradients on."""
        before, mode.recording = mode.recording, mode.recorder
        try:
            return closure()
        finally:
            mode.recording = before

    def initial(self, name: str, parameter: Tensor) -> Tensor:
        """The state `name` of `parameter` before its first step: zeros; the count of steps lives on the host."""
        if name == "step":
            return scalar(0)
        return ops.zeros_like(parameter).detach()

    def states(self, name: str, params: list[Tensor], capturable: bool = False) -> list[Tensor]:
        """The states called `name` of `params`; missing ones are created, with `capturable` counts on the parameters'
        device, where that has graphs."""
        try:
            return [self.state[p][name] for p in params]
        except KeyError:
            pass
        if name not in _COUNTS:  # which stand first in PyTorch's checkpoints
            for count in _COUNTS:
                if (count, "") in self._states:
                    self.states(count, params, capturable)
        for p in params:
            state, has_graphs = self.state[p], p.dispatch_key.runtime.has_graphs
            if name not in state:
                if has_graphs:
                    self.refuse_capture(p, "the state of a parameter would begin anew in each replay: step once before")
                begin = self.initial(name, p)
                state[name] = begin.to(p.device) if name in _COUNTS and capturable and has_graphs else begin
        return [self.state[p][name] for p in params]

    def refuse_capture(self, parameter: Tensor, why: str) -> None:
        """Raise CaptureError if this thread captures a graph on the parameter's device."""
        if parameter.dispatch_key.runtime.is_capturing():
            name = type(self).__name__
            raise CaptureError(f"Attempting graph capture of step() for an instance of {name} but {why}")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop all gradients, or set them to zero."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p._grad = None
                elif p._grad is not None:
                    if p._grad.grad_fn is not None:
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
            warn("optimizer contains a parameter group with duplicate parameters; in future, this will cause an error")
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

        Arrays of NumPy or PyTorch are taken as tensors, so that a checkpoint of PyTorch's optimizer of the same name
        continues here; options that it lacks have their defaults.

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
        capturable = {number for g in saved if g.get("capturable") for number in g["params"]}
        state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        for number, values in state_dict["state"].items():
            parameter = by_number[number]
            on_device = number in capturable
            state[parameter] = {key: _as_state(key, value, parameter, on_device) for key, value in values.items()}
        self.state = state
        self.param_groups = [
            {**self.defaults, **deepcopy({k: v for k, v in new.items() if k != "params"}), "params": old["params"]}
            for new, old in zip(saved, self.param_groups, strict=True)
        ]

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; returns a handle with ``remove()``.

        A hook may return (args, kwargs): what the step is given instead.
        """
        return _register(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step; returns a handle with ``remove()``."""
        return _register(self._post_hooks, hook)

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _as_state(key: str, value: Any, parameter: Tensor, capturable: bool) -> Any:
    if isinstance(value, (list, tuple)):
        return alike(value, [_as_state(key, item, parameter, capturable) for item in value])
    counted_at = parameter.device if capturable and parameter.dispatch_key.runtime.has_graphs else "cpu"
    if key == "step" and isinstance(value, (int, float)):
        return scalar(value, counted_at)
    if not isinstance(value, Tensor):
        if not hasattr(value, "__dlpack__"):
            return deepcopy(value)
        value = asarray(value)
    if key in _COUNTS:  # wherever it was saved
        return value.detach().to(device=counted_at, copy=True)
    dtype = parameter.dtype if value.is_floating_point() else value.dtype
    return value.detach().to(device=parameter.device, dtype=dtype, copy=True)


def scalar(value: float, device: Any = "cpu") -> Tensor:
    """A number of a parameter's state, kept on the host unless a device is given, in float32, or float64 where that is
    the default dtype."""
    return ops.full((), value, dtype=float64 if get_default_dtype() is float64 else float32, device=device)


def row_entries(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of a table that a sparse gradient of it has, and their gradients."""
    if gradient.sparse_dim() != 1:
        raise NotImplementedError(
            f"expected a sparse gradient of rows of a table, got one of {gradient.sparse_dim()} sparse dimensions: "
            "convert it by .to_dense() first"
        )
    return gradient._indices()[0], gradient._values()


def refuse_capturable(name: str, capturable: bool) -> None:
    """Raise NotImplementedError for an optimizer whose steps a graph cannot replay."""
    if capturable:
        raise NotImplementedError(f"{name}: capturable=True is not supported: rates and counts live on the host")


def run_step(
    step_op: str, params: Sequence[Tensor], grads: Sequence[Tensor], *arguments: Any, lr: Any, options: Sequence[Any],
    capturable: bool = False, differentiable: bool = False, grad_scale: Any = None, found_inf: Any = None,
) -> None:  # fmt: skip
    """A step as a function: the op on lists of tensors, of which `arguments` are states, the counts of steps last.

    Raises:
        RuntimeError: the counts are numbers.
        NotImplementedError: the step is to be differentiated, or to unscale the gradients.
    """
    if differentiable or grad_scale is not None or found_inf is not None:
        raise NotImplementedError(f"{step_op.removesuffix('_step')}: a step neither has a gradient nor unscales others")
    if any(isinstance(t, (int, float)) for t in arguments[-1]):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
    getattr(ops, step_op)(list(params), list(grads), *map(list, arguments), lr if capturable else float(lr), *options)


def as_reals(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors, complex ones as views of their parts."""
    return tuple(ops.view_as_real(t) if t.is_complex() else t for t in tensors)


_NOT_NEGATIVE = {
    "lr": "learning rate",
    "lr_decay": "lr_decay value",
    "eps": "epsilon value",
    "alpha": "alpha value",
    "momentum": "momentum value",
    "momentum_decay": "momentum_decay value",
    "weight_decay": "weight_decay value",
    "initial_accumulator_value": "initial_accumulator_value value",
}


def options_of(arguments: dict[str, Any]) -> dict[str, Any]:
    """The options among the arguments of an optimizer's constructor, which gives its ``locals()``.

    Raises:
        ValueError: an option is negative or NaN that must not be, or a decay rate outside [0, 1).
    """
    options = {name: value for name, value in arguments.items() if name not in ("self", "params", "__class__")}
    for name, spoken in _NOT_NEGATIVE.items():
        value = options.get(name, 0)
        if isinstance(value, tuple):  # which the optimizer looks at
            continue
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element")
        if not value >= 0:
            raise ValueError(f"Invalid {spoken}: {value}")
    for i, beta in enumerate(options.get("betas", ())):
        if not 0 <= beta < 1:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
    return options
