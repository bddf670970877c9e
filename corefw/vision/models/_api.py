"""Models by name, and the weights that they were trained to."""

from __future__ import annotations

import fnmatch
import inspect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from typing import Any

from corefw.errors import did_you_mean
from corefw.hub import load_state_dict_from_url
from corefw.nn import Module

__all__ = [
    "Weights",
    "WeightsEnum",
    "get_model",
    "get_model_builder",
    "get_model_weights",
    "get_weight",
    "list_models",
]

_builders: dict[str, Callable[..., Module]] = {}
_weights: dict[str, type[WeightsEnum] | None] = {}


@dataclass(frozen=True, eq=False)
class Weights:
    """Where trained weights are: ``url`` of their file, ``transforms`` makes what pictures go through first, ``meta``
    what else is known of them."""

    url: str
    transforms: Callable
    meta: dict[str, Any]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weights) and self.url == other.url

    def __hash__(self) -> int:
        return hash(self.url)


class WeightsEnum(Enum):
    """All trained weights of a model; ``DEFAULT`` are the best ones."""

    @classmethod
    def verify(cls, obj: Any) -> Any:
        """The member that a member or its name means; None for None.

        Raises:
            TypeError: it belongs to another model.
        """
        if obj is None or isinstance(obj, cls):
            return obj
        if isinstance(obj, str):
            name = obj.rpartition(".")[2]
            if name not in cls.__members__:
                raise ValueError(f"{cls.__name__} has no weights {obj!r}: it has {', '.join(cls.__members__)}")
            return cls[name]
        raise TypeError(f"Invalid Weight class provided; expected {cls.__name__} but received {type(obj).__name__}.")

    def get_state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The weights, from the folder of downloads or their address: see `corefw.hub.load_state_dict_from_url`."""
        return load_state_dict_from_url(self.url, *args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    @property
    def url(self) -> str:
        """The address of the file."""
        return self.value.url

    @property
    def transforms(self) -> Callable:
        """What makes the transform that pictures go through first."""
        return self.value.transforms

    @property
    def meta(self) -> dict[str, Any]:
        """What else is known."""
        return self.value.meta


def model(
    weights: type[WeightsEnum] | None = None,
    wanted: Callable[[WeightsEnum, dict[str, Any]], dict[str, Any]] | None = None,
    convert: Callable[[Any, dict[str, Any]], dict[str, Any]] | None = None,
) -> Callable[[Callable], Callable]:
    """Make a function a builder of a model that can be asked for by name.

    The function takes what the model's class takes. Callers give `weights`, a member of the enumeration or its name,
    and `progress`; the model then has as many classes as the weights. The older `pretrained` is taken with a warning.

    Args:
        weights: the enumeration.
        wanted: gives, from weights and a caller's arguments, arguments that the model must have to take the weights.
        convert: makes the state that a model takes, from the model and a file's state.
    """

    def decorate(build: Callable) -> Callable:
        @wraps(build)
        def builder(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> Module:
            if "pretrained" in kwargs:
                weights = _first_weights(build.__name__, kinds, kwargs.pop("pretrained"))
            found = kinds.verify(weights) if kinds is not None else weights
            if found is None:
                return build(**kwargs)
            if kinds is None:
                raise ValueError(f"{build.__name__}: there are no trained weights, got weights={weights!r}")
            needed = {"num_classes": found.meta["classes"], **(wanted(found, kwargs) if wanted else {})}
            for name, value in needed.items():
                if (given := kwargs.setdefault(name, value)) not in (None, value):
                    raise ValueError(f"The parameter '{name}' expected value {value} but got {given} instead.")
            made = build(**{**kwargs, **needed})
            state = found.get_state_dict(progress=progress, check_hash=True)
            made.load_state_dict(convert(made, state) if convert else state)
            return made

        builder.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
        _builders[build.__name__], _weights[build.__name__] = builder, kinds
        return builder

    kinds = weights
    return decorate


def _first_weights(name: str, kinds: type[WeightsEnum] | None, pretrained: bool) -> WeightsEnum | None:
    """What ``pretrained=`` meant before there were names of weights."""
    text = "The parameter 'pretrained' is deprecated since 0.13 and may be removed in the future, please use 'weights'"
    warnings.warn(f"{text} instead.", stacklevel=3)
    if not pretrained:
        return None
    found = getattr(kinds, "IMAGENET1K_V1", None)
    if found is None:
        raise ValueError(f"No weights available for model {name}")
    return found


def _told(*, weights: WeightsEnum | None = None, progress: bool = True, **kwargs: Any) -> Module: ...  # type: ignore[empty-body]


_SIGNATURE = inspect.signature(_told)


def list_models(
    module: Any = None, include: Iterable[str] | str | None = None, exclude: Iterable[str] | str | None = None
) -> list[str]:
    """The names of the models, in order.

    Args:
        module: only those of this module, or of the modules of this package.
        include, exclude: patterns as of files, one or several.

    >>> list_models(include="resnet*", exclude="*1*")
    ['resnet34', 'resnet50']
    """
    names = [name for name, build in _builders.items() if module is None or _stands_in(build, module.__name__)]
    if include is not None:
        names = [name for name in names if _fits(name, include)]
    return sorted(name for name in names if exclude is None or not _fits(name, exclude))


def _stands_in(build: Callable, module: str) -> bool:
    return module in (build.__module__, build.__module__.rpartition(".")[0])


def _fits(name: str, patterns: Iterable[str] | str) -> bool:
    return any(fnmatch.fnmatch(name, one) for one in ([patterns] if isinstance(patterns, str) else patterns))


def get_model_builder(name: str) -> Callable[..., Module]:
    """The function that builds a model.

    Raises:
        ValueError: there is none of this name.
    """
    try:
        return _builders[name.lower()]
    except KeyError:
        raise ValueError(f"Unknown model {name}.{did_you_mean(name, _builders)}") from None


def get_model(name: str, **config: Any) -> Module:
    """A model by its name; `config` goes to its builder.

    >>> get_model("resnet18", num_classes=10).fc
    Linear(in_features=512, out_features=10, bias=True)
    """
    return get_model_builder(name)(**config)


def get_model_weights(name: str | Callable) -> type[WeightsEnum]:
    """The enumeration of a model's trained weights; the model by its name or builder.

    Raises:
        ValueError: there are none.
    """
    text = name if isinstance(name, str) else getattr(name, "__name__", repr(name))
    get_model_builder(text)
    found = _weights[text.lower()]
    if found is None:
        raise ValueError(f"{text}: no trained weights are known")
    return found


def get_weight(name: str) -> WeightsEnum:
    """Trained weights by their full name, such as "ResNet50_Weights.IMAGENET1K_V2".

    Raises:
        ValueError: the name is of another form, or there are no such weights.
    """
    kind, dot, member = name.partition(".")
    if not dot:
        raise ValueError(f"Invalid weight name provided: '{name}'.")
    for found in _weights.values():
        if found is not None and found.__name__ == kind:
            return found.verify(member)
    raise ValueError(f"The weight enum '{kind}' for the specific method couldn't be retrieved.")
