"""Parameters that are computed from others each time they are read.

`register_parametrization` replaces a parameter by a property of a class of the module's own: its value is what a module
makes of the tensor that is trained instead, ``module.parametrizations.<name>.original``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from corefw.graph.grad_mode import no_recording
from corefw.nn.modules.container import ModuleDict, ModuleList
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor

_cache: dict[tuple[int, str], Tensor] = {}
_depth = 0


@contextmanager
def cached() -> Iterator[None]:
    """Within it a parametrized tensor is computed once, where it is read first.

    >>> import corefw as torch
    >>> layer = torch.nn.utils.parametrize.register_parametrization(torch.nn.Linear(2, 2), "weight", torch.nn.Tanh())
    >>> with torch.nn.utils.parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _cache.clear()


def _check_kept(expected: Tensor, found: Any) -> None:
    """Refuse a parametrization that changes what the module relies on."""
    if not isinstance(found, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(found).__name__}.")
    if found.dtype != expected.dtype or found.shape != expected.shape:
        raise ValueError(
            "Registering a parametrization may not change the dtype or the shape of the tensor, unless the `unsafe` "
            f"flag is enabled: expected {expected.dtype} of shape {tuple(expected.shape)}, got {found.dtype} of shape "
            f"{tuple(found.shape)}"
        )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in the order in which they are applied, and what they are applied to: the
    parameter or buffer "original", or "original0", "original1" ... where the first one's ``right_inverse`` gives
    several."""

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False):
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        trained = original if isinstance(original, Parameter) else None
        with no_recording():
            inverse = original.detach()
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):  # then it is the tensor as it is
                        inverse = module.right_inverse(inverse)
        self.is_tensor = isinstance(inverse, Tensor)
        self.ntensors = 1 if isinstance(inverse, Tensor) else len(inverse)
        originals = (
            {"original": inverse}
            if isinstance(inverse, Tensor)
            else {f"original{i}": part for i, part in enumerate(inverse)}
        )
        for name, value in originals.items():
            if trained is None:
                self.register_buffer(name, value)
            elif self.is_tensor and value.shape == original.shape:
                trained.data = value.detach()
                self.register_parameter(name, trained)
            else:
                self.register_parameter(name, Parameter(value.detach(), trained.requires_grad))
        if not unsafe:
            _check_kept(original, self())

    def originals(self) -> list[Tensor]:
        """What the parametrizations are applied to."""
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self) -> Tensor:
        """The tensor."""
        first, *others = self
        value = first(*self.originals())
        for module in others:
            value = module(value)
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Set what is trained so that the tensor becomes `value`, by the parametrizations' ``right_inverse``."""
        with no_recording():
            given: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                given = module.right_inverse(given)
            parts = [given] if isinstance(given, Tensor) else list(given)
            for own, part in zip(self.originals(), parts, strict=True):
                own.data = part.detach()


def _property(name: str) -> property:
    def get(self) -> Tensor:
        if not _depth:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def set_(self, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, set_)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer by a module from now on.

    Args:
        module: what has the tensor.
        tensor_name: its name.
        parametrization: what computes it from the tensor that is trained; one after the other where there are several.
            Its method ``right_inverse``, if there is one, gives that tensor, or several, from the tensor as it is.
        unsafe: whether the tensor may change its dtype and shape.

    Returns:
        The module, whose class is now one of its own, named "Parametrized...".

    Raises:
        ValueError: there is no such parameter or buffer, or its dtype or shape would change.

    >>> import corefw as torch
    >>> class Symmetric(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = torch.nn.utils.parametrize.register_parametrization(torch.nn.Linear(3, 3), "weight", Symmetric())
    >>> torch.equal(layer.weight, layer.weight.mT), [name for name, _ in layer.named_parameters()]
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        known = module.parametrizations[tensor_name]
        if not unsafe:
            value = getattr(module, tensor_name)
            _check_kept(value, parametrization(value))
        known.append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    entry = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        kind = type(module)
        module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), {})
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = entry
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module, or one tensor of it, has parametrizations.

    >>> import corefw as torch
    >>> torch.nn.utils.parametrize.is_parametrized(torch.nn.Linear(2, 2))
    False
    """
    known = module.__dict__.get("parametrizations")
    if not isinstance(known, ModuleDict):
        return False
    return len(known) > 0 if tensor_name is None else tensor_name in known


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized tensor an ordinary one again.

    Args:
        module: what has the tensor.
        tensor_name: its name.
        leave_parametrized: whether it keeps its value; else it is the original again, which only a single one can be.

    >>> import corefw as torch
    >>> layer = torch.nn.utils.parametrize.register_parametrization(torch.nn.Linear(2, 2), "weight", torch.nn.Tanh())
    >>> torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    Linear(in_features=2, out_features=2, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    entry = module.parametrizations[tensor_name]
    if not entry.is_tensor and not leave_parametrized:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    value = entry().detach() if leave_parametrized else entry.original
    kept = entry.originals()[0]
    if entry.is_tensor and kept.shape == value.shape and value is not kept:
        kept.data = value
        value = kept
    elif isinstance(kept, Parameter) and not isinstance(value, Parameter):
        value = Parameter(value, kept.requires_grad)
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if isinstance(kept, Parameter):
        module.register_parameter(tensor_name, value)
    else:
        module.register_buffer(tensor_name, value)
    if not len(module.parametrizations):
        del module.parametrizations
        module.__class__ = type(module).__mro__[1]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module, without what parametrizations made of it.

    >>> import corefw as torch
    >>> layer = torch.nn.utils.parametrize.register_parametrization(torch.nn.Linear(2, 2), "weight", torch.nn.Tanh())
    >>> torch.nn.utils.parametrize.type_before_parametrizations(layer) is torch.nn.Linear
    True
    """
    return type(module).__mro__[1] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrize the tensors of another module as those of one, with the same modules and values.

    Args:
        from_module: what has parametrizations.
        to_module: what gets them.
        tensor_name: of which tensor; None for all.

    >>> import corefw as torch
    >>> layer = torch.nn.utils.parametrize.register_parametrization(torch.nn.Linear(2, 2), "weight", torch.nn.Tanh())
    >>> other = torch.nn.utils.parametrize.transfer_parametrizations_and_params(layer, torch.nn.Linear(2, 2))
    >>> torch.equal(other.weight, layer.weight)
    True
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        entry = from_module.parametrizations[name]
        if name not in to_module._parameters and not is_parametrized(to_module, name):
            setattr(to_module, name, Parameter(entry().detach()))
        for parametrization in entry:
            register_parametrization(to_module, name, parametrization, unsafe=entry.unsafe)
        with no_recording():
            for own, value in zip(to_module.parametrizations[name].originals(), entry.originals(), strict=True):
                own.copy_(value)
    return to_module
