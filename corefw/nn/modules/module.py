"""Module: the base of all layers and models - a tree of parameters, buffers and submodules with a forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

from corefw.dtypes import dtype
from corefw.graph.grad_mode import no_recording
from corefw.nn.modules.compiled_calls import CompiledCalls
from corefw.nn.modules.hooked_calls import HookedCalls
from corefw.nn.modules.hooked_calls import register_module_backward_hook as register_module_backward_hook
from corefw.nn.modules.hooked_calls import register_module_forward_hook as register_module_forward_hook
from corefw.nn.modules.hooked_calls import register_module_forward_pre_hook as register_module_forward_pre_hook
from corefw.nn.modules.hooked_calls import register_module_full_backward_hook as register_module_full_backward_hook
from corefw.nn.modules.hooked_calls import (
    register_module_full_backward_pre_hook as register_module_full_backward_pre_hook,
)
from corefw.nn.modules.module_state import _EXTRA_STATE_KEY_SUFFIX as _EXTRA_STATE_KEY_SUFFIX
from corefw.nn.modules.module_state import ModuleState
from corefw.nn.modules.module_state import _IncompatibleKeys as _IncompatibleKeys
from corefw.nn.modules.private_names import PrivateNames
from corefw.nn.parameter import Buffer, Parameter, is_lazy
from corefw.nn.summary import Summary, shapes, summarize
from corefw.tensor import Tensor
from corefw.tracebacks import hide_internal_frames


class Members(dict):
    """The parameters, buffers or submodules of one module, mirrored into its attributes: reading ``module.weight`` is a
    plain attribute access."""

    def __init__(self, owner: Module):
        self.owner = owner

    def __setitem__(self, name, value):
        dict.__setitem__(self, name, value)
        owner = getattr(self, "owner", None)  # absent while unpickling, which restores the attributes itself
        if owner is not None:
            owner.__dict__[name] = value

    def __delitem__(self, name):
        dict.__delitem__(self, name)
        self.owner.__dict__.pop(name, None)

    def pop(self, name, *default):
        self.owner.__dict__.pop(name, None)
        return dict.pop(self, name, *default)


class Module(PrivateNames, HookedCalls, ModuleState, CompiledCalls):
    """A model or a part of one.

    Assign Parameters, Buffers and Modules as attributes, and define ``forward``; calling the module runs it.

    >>> import corefw as torch
    >>> class Scaled(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.scale = torch.nn.Parameter(torch.tensor(2.0))
    ...
    ...     def forward(self, input):
    ...         return input * self.scale
    >>> model = Scaled()
    >>> [name for name, _ in model.named_parameters()], model(torch.ones(1)).item()
    (['scale'], 2.0)
    """

    training: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = Members(self)
        state["_buffers"] = Members(self)
        state["_modules"] = Members(self)
        state["_non_persistent_buffers_set"] = set()
        state["_hooks"] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled module. One of PyTorch's has the same members; its hooks, functions of PyTorch's, are left
        behind."""
        Module.__init__(self)
        own = self.__dict__
        members = ("_parameters", "_buffers", "_modules")
        foreign = "_hooks" not in state
        own.update(
            (name, value)
            for name, value in state.items()
            if name not in members and not (foreign and "_hook" in name and name.startswith("_"))
        )
        for kind in members:
            for name, value in state[kind].items():
                own[kind][name] = value

    # -- calling ------------------------------------------------------------------------------------------------
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; every subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if self._hooked:
                return self._call_compiled(args, kwargs)
            return self.forward(*args, **kwargs)
        except Exception as error:
            self._locate(error, args)
            hide_internal_frames(error)
            raise

    def _locate(self, error: Exception, args: tuple) -> None:
        """Note on an error inside the model which layer raised it, by its path from the outermost module it passes."""
        if not hasattr(error, "layer"):
            error.layer, error.given = self, shapes(args)  # type: ignore[attr-defined]
            error.add_note("")
        layer = error.layer  # type: ignore[attr-defined]
        path = next((name for name, module in self.named_modules() if module is layer), None)
        if path is not None:
            where = f"{self._get_name()}.{path}" if path else self._get_name()
            error.__notes__[-1] = f"in {where} ({' '.join(repr(layer).split())}): got {error.given}"  # type: ignore[attr-defined]

    def summary(self, *inputs, **keywords) -> Summary:
        """A table of the layers: what came in and went out, parameters, memory.

        Args:
            inputs, keywords: what the model is called with, once, without gradients and in evaluation mode.

        >>> import corefw as torch
        >>> print(torch.nn.Sequential(torch.nn.Linear(4, 3)).summary(torch.zeros(2, 4)))
        layer    kind        input   output  parameters  bytes  output bytes
        0        Linear      (2, 4)  (2, 3)          15     60            24
        (model)  Sequential  (2, 4)  (2, 3)           0      0             0
        15 parameters (15 trainable), 60 bytes; outputs of all layers 24 bytes
        """
        return summarize(self, inputs, keywords)

    # -- attributes -----------------------------------------------------------------------------------------------
    def __setattr__(self, name: str, value) -> None:
        state = self.__dict__
        members = state.get("_parameters")
        if isinstance(value, Parameter):
            if members is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name)
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if members is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name)
            state["_modules"][name] = value
        elif isinstance(value, Buffer):
            self._forget(name)
            self.register_buffer(name, value, value.persistent)
        elif members is None:
            object.__setattr__(self, name, value)
        elif name in members:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as parameter '{name}' (corefw.nn.Parameter or None "
                    "expected)"
                )
            members[name] = None
        elif name in state["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as child module '{name}' (corefw.nn.Module or None "
                    "expected)"
                )
            state["_modules"][name] = None
        elif name in state["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign '{type(value).__name__}' as buffer '{name}' (Tensor or None expected)")
            state["_buffers"][name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str) -> None:
        """Drop an attribute that is about to become another kind of member (or the same one, kept in its place)."""
        for kind in ("_parameters", "_buffers", "_modules"):
            members = self.__dict__.get(kind)
            if members is not None and name in members:
                members[name] = None
        self.__dict__.pop(name, None)

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self) -> Any:
        return sorted({*object.__dir__(self), *self._parameters, *self._modules, *self._buffers})

    def _check_name(self, kind: str, name: str, members: dict) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in members:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter (or reserve its name with None).

        Raises TypeError for anything else, ValueError for a tensor that was computed, KeyError for a bad name.
        """
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type(param).__name__}' object to parameter '{name}' (corefw.nn.Parameter or None "
                "required)"
            )
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer: a tensor of the module's state that is not trained.

        Args:
            persistent: whether it belongs to the `state_dict`.
        """
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (Tensor or None required)"
            )
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule (or reserve its name with None)."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = module

    register_module = add_module

    # -- walking --------------------------------------------------------------------------------------------------
    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their paths."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        return (module for _, module in self.named_children())

    def _named_members(self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in module.__dict__[kind].items():
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their paths, each once."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once: what an optimizer is given."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their paths, each once."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The submodule at a path such as "features.0"; AttributeError if there is none."""
        module = self
        for name in target.split(".") if target else ():
            found = getattr(module, name, None)
            if not isinstance(found, Module):
                raise AttributeError(f"{type(module).__name__} has no submodule `{name}`")
            module = found
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path; AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path)._parameters.get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__} has no parameter `{target}`")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path; AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path)._buffers.get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__} has no buffer `{target}`")
        return found

    # -- changing -------------------------------------------------------------------------------------------------
    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every module of the tree, the innermost first; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of every parameter, gradient and buffer by what `fn` makes of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_recording():
            for name, parameter in self._parameters.items():
                if parameter is not None:
                    data = fn(parameter.data if is_lazy(parameter) else parameter.detach())
                    if data.is_meta != parameter.is_meta and not is_lazy(parameter):  # one has memory, or never
                        self._parameters[name] = Parameter(data, parameter.requires_grad)
                        continue
                    parameter.data, parameter.version[1:] = data, data.version[1:]  # no one but `fn` has the memory
                    if parameter.grad is not None:
                        gradient, parameter._grad = parameter._grad, None
                        parameter.grad = fn(gradient)
            for name, buffer in self._buffers.items():
                if is_lazy(buffer):
                    buffer.data = fn(buffer.data)
                elif buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and convert parameters and buffers; the arguments are those of `Tensor.to`. Integer tensors keep their
        dtype and complex ones are not made real.

        Raises:
            TypeError: the dtype is neither floating nor complex.
        """
        wanted = kwargs.get("dtype", next((a for a in args if isinstance(a, dtype)), None))
        if wanted is not None and wanted.category < 2:
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={wanted}"
            )

        def convert(tensor: Tensor) -> Tensor:
            moved = tensor.to(*args, **kwargs)
            if tensor.dtype.category >= 2 and moved.dtype.category >= 2:
                return moved
            return tensor.to(device=moved.device)

        return self._apply(convert)

    def _to_floating(self, dtype) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Convert floating parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Convert floating parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Convert floating parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Convert floating parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def type(self, dst_type) -> Self:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None) -> Self:
        """Move parameters and buffers to a CUDA device."""
        return self._apply(lambda t: t.cuda(device))

    def to_empty(self, *, device, recurse: bool = True) -> Self:
        """Move to a device without copying the values."""
        from_like = self._apply
        return from_like(lambda t: t.new_empty(t.shape, device=device), recurse)

    def share_memory(self) -> Self:
        """Move parameters and buffers to shared memory."""
        return self._apply(lambda t: t.share_memory_())

    def train(self, mode: bool = True) -> Self:
        """Set training mode (dropout, batch norm) for the whole tree, whose modules may have a `train` of their own."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode for the whole tree."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Have gradients recorded for all parameters, or not (freezing)."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or set them to zero."""
        for parameter in self.parameters():
            if set_to_none:
                parameter._grad = None
            elif parameter.grad is not None:
                if parameter.grad.grad_fn is not None:
                    parameter.grad.detach_()
                parameter.grad.zero_()

    # -- showing --------------------------------------------------------------------------------------------------
    def extra_repr(self) -> str:
        """The arguments shown in the module's repr."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        lines = extra + children
        if not lines:
            return f"{self._get_name()}()"
        if len(extra) == 1 and not children:
            return f"{self._get_name()}({extra[0]})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"
