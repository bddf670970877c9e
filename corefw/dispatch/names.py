"""Where the functions of ops are public, as their declarations say, and how they are told so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, get_overloads, overload

from corefw.dispatch.op import Op
from corefw.dispatch.registry import registry

#: where an op can be public: modules, without the package's name but for itself, and the methods of Tensor
NAMESPACES = ("nn.functional", "corefw", "fft", "linalg", "signal.windows", "special", "Tensor")

#: the in-place forms that PyTorch has as functions too, beside the methods
_INPLACE_FUNCTIONS = """
    abs acos acosh addmv arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil clamp clamp_max
    clamp_min clip conj_physical cos cosh deg2rad erf erfc exp exp2 expm1 fill fix floor frac gcd i0 index_put lcm ldexp
    log log10 log1p log2 logit nan_to_num neg negative rad2deg reciprocal round rsqrt sigmoid sin sinc sinh sqrt square
    tan tanh trunc xlogy
"""

_named: set[FunctionType] = set()


def public_names(op: Op, public: str | None) -> dict[str, tuple[str, ...]]:
    """The names under which each namespace has forms of `op`; one that ends with "_" is that of the in-place form.

    Args:
        op: the op, whose own name may say where it belongs: `linalg_inv` is `inv` in `linalg`.
        public: the places of the declaration, such as ``"corefw nn.functional special.expit"``. None for where most
            ops are: among the functions of `corefw` and, if the first argument is the `input`, among the methods.
    """
    if public is None:
        namespace, _, name = op.name.partition("_")
        if namespace in NAMESPACES:
            return {namespace: (name,)}
        public = "corefw Tensor" if op.parameters and op.parameters[0].name in ("input", "tensor") else "corefw"
    everywhere, inplace = (op.name, *op.aliases), _INPLACE_FUNCTIONS.split()
    found: dict[str, tuple[str, ...]] = {}
    for place in public.split():
        namespace, _, name = (place, "", "") if place in NAMESPACES else place.rpartition(".")
        if namespace not in NAMESPACES:
            known = ", ".join(NAMESPACES)
            raise ValueError(f"op {op.name!r}: {place!r} is neither a namespace nor a name in one; there are {known}")
        found[namespace] = (*found.get(namespace, ()), *((name,) if name else everywhere))
        if place in ("Tensor", "corefw") and op.inplace:
            found[place] += tuple(f"{name}_" for name in everywhere if place == "Tensor" or name in inplace)
    return found


def public_path(op: Op) -> str:
    """Where users find an op, seen from the package: "sin", "nn.functional.gelu", "Tensor.view"; "" if nowhere.

    Of several places it is the first of `NAMESPACES`.
    """
    for namespace in NAMESPACES:
        for name in op.public.get(namespace, ()):
            return name if namespace == "corefw" else f"{namespace}.{name}"
    return ""


def forms(namespace: str) -> dict[str, tuple[Op, Callable]]:
    """The ops that are public in a namespace, by the names that it has them under, and the form that each one means."""
    return {
        name: (op, op.inplace_function if name.endswith("_") and not op.name.endswith("_") else op.function)
        for op in dict.fromkeys(registry.declared.values())
        for name in op.public.get(namespace, ())
    }


def published(module: str) -> dict[str, Callable]:
    """The functions of ops that are public in a module, told so."""
    functions = {name: function for name, (_, function) in forms(module.removeprefix("corefw.")).items()}
    tell_names(module, functions)
    return functions


def tell_names(module: str, functions: Mapping[str, Any]) -> None:
    """Tell functions that have no public name yet theirs, under which pickle finds them and their repr shows them.

    Args:
        module: the module in which they are found.
        functions: by the name that they have there, "Tensor.add_" for a method.
    """
    for name, function in functions.items():
        if isinstance(function, FunctionType) and function not in _named:
            _named.add(function)
            signatures: Any = get_overloads(function)
            for renamed in (function, *signatures):
                renamed.__module__, renamed.__qualname__ = module, name
            for signature in signatures:
                overload(signature)  # typing finds them by the name of the function
