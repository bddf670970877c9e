"""The part of `Module` that calls hooks: those of the module, and before them those of all modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from corefw.autograd.handles import RemovableHandle
from corefw.nn.modules.backward_watch import BackwardWatch

_OF_CALLS = ("forward_pre", "forward", "full_backward", "full_backward_pre")
#: {kind: {number: (hook, its options)}}
Hooks = dict[str, OrderedDict[int, tuple[Callable, dict[str, Any]]]]
_of_all_modules: Hooks = {}


def _added(hooks: Hooks, kind: str, hook: Callable, prepend: bool = False, **options: Any) -> RemovableHandle:
    registered = hooks.setdefault(kind, OrderedDict())
    handle = RemovableHandle(registered)
    registered[handle.id] = (hook, options)
    if prepend:
        registered.move_to_end(handle.id, last=False)
    return handle


class HookedCalls:
    """What a module with hooks does when it is called, and how hooks are registered."""

    _hooked = False  # whether any hook of calls is registered: a call without hooks goes straight to forward
    _hooks: Hooks
    forward: Callable

    def _hook_list(self, kind: str) -> tuple[tuple[Callable, dict[str, Any]], ...]:
        return (*_of_all_modules.get(kind, {}).values(), *self._hooks.get(kind, {}).values())

    def _call_plainly(self, *args, **kwargs):
        for hook, options in self._hook_list("forward_pre"):
            if options["with_kwargs"]:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        after, before = self._hook_list("full_backward"), self._hook_list("full_backward_pre")
        watch = BackwardWatch(self, after, before) if after or before else None
        if watch is not None:
            args = watch.begin_at(args)
        try:
            result = self.forward(*args, **kwargs)
        except Exception:
            for hook, options in self._hook_list("forward"):
                if options["always_call"]:
                    hook(self, args, *((kwargs,) if options["with_kwargs"] else ()), None)
            raise
        for hook, options in self._hook_list("forward"):
            changed = hook(self, args, kwargs, result) if options["with_kwargs"] else hook(self, args, result)
            if changed is not None:
                result = changed
        if watch is not None:
            result = watch.end_at(result)
        return result

    # -- registering ----------------------------------------------------------------------------------------------
    def _add_hook(self, kind: str, hook: Callable, prepend: bool = False, **options: Any) -> RemovableHandle:
        self._hooked = self._hooked or kind in _OF_CALLS
        return _added(self._hooks, kind, hook, prepend, **options)

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before forward; it may return other arguments."""
        return self._add_hook("forward_pre", hook, prepend, with_kwargs=with_kwargs)

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after forward; it may return another output."""
        return self._add_hook("forward", hook, prepend, with_kwargs=with_kwargs, always_call=always_call)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the inputs' gradients are there; it may return others."""
        return self._add_hook("full_backward", hook, prepend)

    register_backward_hook = register_full_backward_hook

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward; it may return another gradient."""
        return self._add_hook("full_backward_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after the state was collected."""
        return self._add_hook("state_dict", hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before the state is collected."""
        return self._add_hook("state_dict_pre", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)`` before
        loading."""
        return self._add_hook("load_state_dict_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading."""
        return self._add_hook("load_state_dict", hook)


# -- hooks of all modules ---------------------------------------------------------------------------------------------
def _add_everywhere(kind: str, hook: Callable, **options: Any) -> RemovableHandle:
    HookedCalls._hooked = True
    return _added(_of_all_modules, kind, hook, **options)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, args)`` before the forward of any module; it may return other arguments."""
    return _add_everywhere("forward_pre", hook, with_kwargs=False)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after the forward of any module; it may return another output.

    Args:
        hook: the function.
        with_kwargs: whether it is given the named arguments too, before the output.
        always_call: whether it is called where the forward raises, too.

    >>> import corefw as torch
    >>> handle = torch.nn.modules.module.register_module_forward_hook(lambda module, args, output: output * 2)
    >>> torch.nn.Identity()(torch.ones(1)).item()
    2.0
    >>> handle.remove()
    """
    return _add_everywhere("forward", hook, with_kwargs=with_kwargs, always_call=always_call)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` when the gradients of any module's inputs are there; it may return
    others."""
    return _add_everywhere("full_backward", hook)


register_module_backward_hook = register_module_full_backward_hook


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the backward of any module; it may return another gradient."""
    return _add_everywhere("full_backward_pre", hook)
