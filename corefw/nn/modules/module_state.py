"""The state dict of a module: collecting it and loading it."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from corefw.graph.grad_mode import no_recording
from corefw.nn.parameter import Parameter, is_lazy
from corefw.tensor import Tensor

#: the last part of the key under which `get_extra_state` is saved
_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("_Keys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` could not match."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"


class ModuleState:
    """The part of `Module` that is about its state; the members and the walks over them are Module's."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    _version = 1

    def get_extra_state(self) -> Any:
        """State beyond parameters and buffers; define it together with `set_extra_state`."""
        raise RuntimeError("get_extra_state is not defined for this module")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError("set_extra_state is not defined for this module")

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not ModuleState.get_extra_state

    def _own_state(self):
        yield from ((n, p) for n, p in self._parameters.items() if p is not None)
        yield from (
            (n, b) for n, b in self._buffers.items() if b is not None and n not in self._non_persistent_buffers_set
        )

    def state_dict(
        self, *args, destination: dict | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """All persistent state by path, sharing memory with the module.

        Args:
            destination: a dict to fill.
            prefix: put before every key.
            keep_vars: give the parameters themselves instead of detached tensors.
        """
        if args:  # PyTorch's old positional form
            destination, prefix, keep_vars = args + (destination, prefix, keep_vars)[len(args) :]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # type: ignore[attr-defined]
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook, _ in self._hook_list("state_dict_pre"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook, _ in self._hook_list("state_dict"):
            changed = hook(self, destination, prefix, metadata)
            destination = destination if changed is None else changed
        return destination

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy a `state_dict` into the module.

        Args:
            strict: raise RuntimeError listing every missing, unexpected and mis-shaped key (mis-shaped ones always
                raise).
            assign: put the given tensors in the place of the module's instead of copying.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", {})
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        result = _IncompatibleKeys(missing, unexpected)

        def load(module: Any, state: dict[str, Any], prefix: str) -> None:
            local = {**metadata.get(prefix[:-1], {}), **({"assign_to_params_buffers": True} if assign else {})}
            module._load_from_state_dict(state, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    start = f"{prefix}{name}."
                    load(child, {key: value for key, value in state.items() if key.startswith(start)}, start)
            for hook, _ in module._hook_list("load_state_dict"):
                hook(module, result)

        with no_recording():
            load(self, OrderedDict(state_dict), "")
        if strict and unexpected:
            errors.insert(0, "Unexpected key(s) in state_dict: " + ", ".join(f'"{k}"' for k in unexpected) + ". ")
        if strict and missing:
            errors.insert(0, "Missing key(s) in state_dict: " + ", ".join(f'"{k}"' for k in missing) + ". ")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return result

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put the module's own state, without its children's, into `destination`: modules may have one of their own."""
        for name, value in self._own_state():
            destination[prefix + name] = value if keep_vars else value.detach()
        if self._has_extra_state():
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Take the module's own state, without its children's, from `state_dict`: modules may have one of their own.

        Args:
            state_dict: what is loaded; keys that start with the prefix concern this module and its children.
            prefix: the module's path and a dot; "" for the root.
            local_metadata: the version of the module that was saved, and whether tensors are assigned.
            strict: whether to look for unexpected keys.
            missing_keys, unexpected_keys, error_msgs: where to say what is wrong.
        """
        for hook, _ in self._hook_list("load_state_dict_pre"):
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        known = self._load_own(state_dict, prefix, assign, missing_keys, error_msgs)
        if strict:
            unexpected_keys += [
                key
                for key in state_dict
                if key.startswith(prefix)
                and key not in known
                and ("." not in (rest := key[len(prefix) :]) or rest.partition(".")[0] not in self._modules)
            ]

    def _load_own(self, state, prefix: str, assign: bool, missing: list[str], errors: list[str]) -> set[str]:
        known = set()
        for name, own in list(self._own_state()):
            key = prefix + name
            known.add(key)
            if key not in state:
                missing.append(key)
                continue
            given = state[key]
            if is_lazy(own):
                continue  # as what is given: there is nothing to copy
            if not isinstance(given, Tensor):
                errors.append(
                    f'While copying the parameter named "{key}", expected a Tensor but received {type(given).__name__}'
                )
            elif given.shape != own.shape:
                errors.append(
                    f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in "
                    f"current model is {own.shape}."
                )
            elif not assign:
                own.copy_(given)
            elif name in self._parameters:
                self._parameters[name] = given if isinstance(given, Parameter) else Parameter(given, own.requires_grad)
            else:
                self._buffers[name] = given
        key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if self._has_extra_state():
            known.add(key)
            if key in state:
                self.set_extra_state(state[key])
            else:
                missing.append(key)
        return known
