"""Containers of modules and of parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import islice
from typing import Any, Self

from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor


def _position(index: int, length: int) -> int:
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length if length else 0


class _Listed(Module):
    """What Sequential and ModuleList share: submodules named by their positions."""

    def _renumber(self, modules: Iterable[Module]) -> None:
        modules = list(modules)
        for name in list(self._modules):
            del self._modules[name]
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            chosen = list(self._modules.items())[index]
            return type(self)(OrderedDict(chosen)) if isinstance(self, Sequential) else type(self)(m for _, m in chosen)
        return next(islice(self._modules.values(), _position(index, len(self)), None))

    def __setitem__(self, index: int, module: Module) -> None:
        name = next(islice(self._modules, _position(index, len(self)), None))
        setattr(self, name, module)

    def __delitem__(self, index) -> None:
        modules = list(self)
        del modules[index]
        self._renumber(modules)

    def insert(self, index: int, module: Module) -> None:
        """Insert a module before position `index`."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def append(self, module: Module) -> Self:
        """Add a module at the end; returns self."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end; returns self."""
        for module in modules:
            self.append(module)
        return self

    def pop(self, key: int) -> Module:
        """Remove and return the module at a position."""
        module = self[key]
        del self[key]
        return module


class Sequential(_Listed):
    """Modules run one after the other, each given the output of the one before.

    Args:
        args: the modules, or one OrderedDict of named modules.

    >>> import corefw as torch
    >>> torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input: Tensor) -> Tensor:
        for module in self._modules.values():
            input = module(input)
        return input

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other)


class ModuleList(_Listed):
    """A list of modules whose parameters belong to the model.

    Args:
        modules: the modules.
    """

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __repr__(self) -> str:
        """Equal modules in a row are shown once, with their number."""
        blocks: list[tuple[int, int, str]] = []
        for i, text in enumerate(map(repr, self)):
            if blocks and blocks[-1][2] == text:
                blocks[-1] = (blocks[-1][0], i, text)
            else:
                blocks.append((i, i, text))
        lines = [
            f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in blocks
        ]
        body = "".join("\n  " + line.replace("\n", "\n  ") for line in lines)
        return f"{self._get_name()}({body}\n)" if lines else f"{self._get_name()}()"


class ModuleDict(Module):
    """A dict of modules whose parameters belong to the model.

    Args:
        modules: a mapping, or pairs of names and modules.
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None):
        super().__init__()
        if modules is not None:  # a derived class may override update, and not be ready for it
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        for name in list(self._modules):
            del self._modules[name]

    def pop(self, key: str) -> Module:
        """Remove and return a module."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | ModuleDict | Iterable[tuple[str, Module]]) -> None:
        """Add modules from a mapping or from pairs."""
        for name, module in modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules:
            self[name] = module


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


class ParameterList(Module):
    """A list of parameters that belong to the model; tensors become parameters, other values are kept as they are.

    Args:
        values: the values.
    """

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._length = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ParameterList(self[i] for i in range(*index.indices(len(self))))
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_position(index, len(self))), _as_parameter(value))

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end; returns self."""
        setattr(self, str(self._length), _as_parameter(value))
        self._length += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end; returns self."""
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raises RuntimeError: a list of parameters computes nothing."""
        raise RuntimeError("ParameterList should not be called.")

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_describe(value)}" for i, value in enumerate(self))


class ParameterDict(Module):
    """A dict of parameters that belong to the model; tensors become parameters, other values are kept as they are.

    Args:
        parameters: a mapping, or pairs of names and values.
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None):
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raises RuntimeError: a dict of parameters computes nothing."""
        raise RuntimeError("ParameterDict should not be called.")

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._keys.keys()

    def values(self) -> list[Any]:
        """The values."""
        return [self[key] for key in self._keys]

    def items(self) -> list[tuple[str, Any]]:
        """Names and values."""
        return [(key, self[key]) for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or `default`."""
        return self[key] if key in self else default  # noqa: SIM401  (this is what it says)

    def pop(self, key: str) -> Any:
        """Remove and return a value."""
        value = self[key]
        del self[key]
        return value

    def update(self, parameters: Mapping[str, Any] | ParameterDict | Iterable[tuple[str, Any]]) -> None:
        """Add values from a mapping or from pairs."""
        for name, value in parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else parameters:
            self[name] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_describe(value)}" for key, value in self.items())


def _describe(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{value.dtype!r} of size {'x'.join(map(str, value.shape))}]"
