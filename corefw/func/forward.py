"""Transforms that differentiate forward: products of Jacobians with vectors.

`jvp` gives tensors tangents, which all ops carry along. `linearize` calls the function once and differentiates backward
twice instead: the product of a vector u with the Jacobian J from the left is linear in u, and its derivative with
respect to u, times a vector v, is J v.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corefw.autograd.duals.arrays import Scope
from corefw.autograd.duals.tensors import begin, end, make, primal_of, tangent_of, tangents_of
from corefw.dispatch.declare import ops
from corefw.func.arguments import Chosen, call, checked, output_leaves
from corefw.func.level import Level, vector_jacobian
from corefw.func.trees import flatten, unflatten
from corefw.graph.grad_mode import mode
from corefw.tensor import Tensor

_JVP = "jvp(f, primals, tangents)"


class Pushforward:
    """A function evaluated once, and the product of its Jacobian there with vectors.

    Attributes: ``structure`` the form of the output.
    """

    def __init__(self, who: str, func: Callable, args: tuple):
        self._level = level = Level()
        with level:
            chosen = Chosen(level, args, tuple(range(len(args))))
            self._output, _ = call(who, func, chosen.args, {}, False)
            self._outputs, self.structure = output_leaves(who, self._output)
            self._vectors = [level.leaf(ops.zeros_like(one)) if one.requires_grad else None for one in self._outputs]
            used = [(one, vector) for one, vector in zip(self._outputs, self._vectors) if vector is not None]
            self._products = vector_jacobian([o for o, _ in used], chosen.leaves, [v for _, v in used], True)

    @property
    def output(self) -> Any:
        return self._level.leave(self._output)

    def push(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        """The product of the Jacobian with one vector per input: one tensor per output."""
        level = self._level
        level.recorded = mode.recording is not False
        again = level.recorded and (level.leads_out(self._products) or any(t.requires_grad for t in tangents))
        wanted = [vector for vector in self._vectors if vector is not None]
        found = iter(vector_jacobian(self._products, wanted, tangents, again) if wanted else ())
        pushed = [
            ops.zeros_like(one.detach()) if v is None else next(found) for one, v in zip(self._outputs, self._vectors)
        ]
        return level.leave(pushed)


class forward_level:
    """A with-block that is one forward differentiation; its value is the scope of that."""

    def __enter__(self) -> Scope:
        self._scope = begin()
        return self._scope

    def __exit__(self, *exception: object) -> None:
        end(self._scope)


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False):
    """The output of `func`, and the product of its Jacobian with a vector.

    Args:
        func: takes `primals`, returns tensors, in tuples, lists and dictionaries if several; with `has_aux` a tuple of
            them and of tensors that are handed on.
        primals: a tuple of the arguments.
        tangents: a tuple of the same form, the vector.
        strict: raise where an output does not depend on the inputs, instead of giving zeros.
        has_aux: whether `func` returns something beside its output.

    Returns:
        (output, product of the same form), or (output, product, aux).

    Raises:
        RuntimeError: the tangents do not have the form or shapes of the primals, or `func` returned other things than
            tensors.

    >>> import corefw as torch
    >>> torch.func.jvp(lambda x: x * x, (torch.tensor([1.0, 2.0]),), (torch.tensor([1.0, 10.0]),))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple):
            raise RuntimeError(f"{_JVP}: Expected {name} to be a tuple. E.g. it should be valid to call f(*primals).")
    leaves, structure = flatten(primals)
    vectors, given = flatten(tangents)
    if given != structure:
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {structure} and tangents with "
            f"structure {given}"
        )
    if not leaves:
        raise RuntimeError(f"{_JVP}: Expected primals to contain at least one Tensor.")
    _check_tangents(leaves, vectors)
    with forward_level() as scope:
        duals = [make(primal, tangent, scope) for primal, tangent in zip(leaves, vectors)]
        output, aux = call(_JVP, func, unflatten(duals, structure), {}, has_aux)
        outputs, form = output_leaves(_JVP, output)
        if strict and any(tangent_of(one, scope) is None for one in outputs):
            raise RuntimeError(
                f"{_JVP[:-1]}, strict=True): The output of f is independent of the inputs. This is not allowed with "
                "strict=True."
            )
        result = without_tangents(output, scope), unflatten(tangents_of(outputs, scope), form)
        aside = without_tangents(aux, scope)
    return (*result, aside) if has_aux else result


def without_tangents(tree: Any, scope: Scope) -> Any:
    """A tree of values, as it is seen outside of a forward differentiation."""
    leaves, structure = flatten(tree)
    return unflatten([primal_of(leaf, scope) if isinstance(leaf, Tensor) else leaf for leaf in leaves], structure)


def _check_tangents(primals: Sequence[Any], tangents: Sequence[Any]) -> None:
    """Refuse tangents that are no tensors of the primals' shapes."""
    for i, (primal, tangent) in enumerate(zip(primals, tangents)):
        checked(primal), checked(tangent)
        if tangent.shape != primal.shape:
            raise RuntimeError(
                f"tangent:{i} with shape {tangent.shape} in flattened pytree doesn't match the shape {primal.shape} of "
                "the corresponding primal."
            )


def linearize(func: Callable, *primals):
    """The output of `func`, and the function that multiplies its Jacobian there with a vector.

    Args:
        func: takes `primals`, returns tensors, in tuples, lists and dictionaries if several.
        primals: tensors, in tuples, lists and dictionaries too.

    Returns:
        (output, jvp_fn). ``jvp_fn(*tangents)`` takes what has the form of `primals` and returns what has the form of
        the output; `func` is not called again.

    Raises:
        RuntimeError: tangents do not have the form or shapes of the primals.

    >>> import corefw as torch
    >>> output, jvp_fn = torch.func.linearize(lambda x: x * x, torch.tensor([1.0, 2.0]))
    >>> jvp_fn(torch.tensor([1.0, 10.0]))
    tensor([ 2., 40.])
    """
    linear = Pushforward("linearize(f, *primals)", func, primals)
    leaves, structure = flatten(primals)

    def jvp_fn(*tangents):
        vectors, given = flatten(tangents)
        if given != structure:
            raise RuntimeError(
                f"Expected the tangents {given} to have the same structure as the primals {structure} of linearize"
            )
        _check_tangents(leaves, vectors)
        return unflatten(linear.push(vectors), linear.structure)

    return linear.output, jvp_fn
