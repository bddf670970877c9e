"""Which modules of a model become units of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from corefw.nn.modules.attention import MultiheadAttention
from corefw.nn.modules.container import ModuleDict, ModuleList
from corefw.nn.modules.module import Module


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module."""
    return True


class ModuleWrapPolicy:
    """Modules of some classes.

    Args:
        module_classes: the classes.
    """

    def __init__(self, module_classes: Iterable[type[Module]]):
        self._classes = tuple(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self._classes)


class CustomPolicy:
    """Modules for which a function returns True, or a dict of options of their own.

    Args:
        lambda_fn: the function.
    """

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]):
        self._function = lambda_fn

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool | dict[str, Any]:
        return recurse or self._function(module)


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Iterable[type[Module]]
) -> bool:
    """Modules of some classes, as `ModuleWrapPolicy`; `transformer_layer_cls` is bound by `functools.partial`."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """Modules for which a function returns True; `lambda_fn` is bound by `functools.partial`."""
    return recurse or lambda_fn(module)


def size_based_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = int(1e8),
    force_leaf_modules: set[type[Module]] | None = None, exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:  # fmt: skip
    """Modules with many parameters.

    Args:
        nonwrapped_numel: how many numbers are in parameters that are in no unit yet.
        min_num_params: how many make a unit.
        force_leaf_modules: classes whose children are never units; attention if missing.
        exclude_wrap_modules: classes that are never units; lists and dicts of modules if missing.
    """
    leaves = {MultiheadAttention} if force_leaf_modules is None else force_leaf_modules
    excluded = {ModuleList, ModuleDict} if exclude_wrap_modules is None else exclude_wrap_modules
    return nonwrapped_numel >= min_num_params and not isinstance(module, tuple(leaves if recurse else excluded))


def wrap_below(
    module: Module,
    policy: Callable[..., Any],
    wrapper: Callable[..., Module],
    ignored: set[Module],
    is_root: bool = True,
) -> tuple[Module, int]:
    """Let `wrapper` wrap the modules that a policy names, the innermost first.

    Returns:
        The module, wrapped or not, and how many numbers are in the units.
    """
    count = sum(p.numel() for p in module.parameters())
    if not policy(module=module, recurse=True, nonwrapped_numel=count):
        return module, 0
    below = 0
    for child in list(module.children()):
        if child not in ignored:
            wrapped, numbers = wrap_below(child, policy, wrapper, ignored, False)
            below += numbers
            if wrapped is not child:
                for name, same in list(module._modules.items()):
                    if same is child:
                        module._modules[name] = wrapped
    options = False if is_root else policy(module=module, recurse=False, nonwrapped_numel=count - below)
    if not options:
        return module, below
    return wrapper(module, **(options if isinstance(options, dict) else {})), count
