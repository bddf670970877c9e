"""Entering a recording: the function that compares everything it depends on, runs its plan, and does to Python's
objects what the calls did, written as one straight line."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from operator import is_
from typing import TYPE_CHECKING, Any

from corefw.compiling.arguments import OTHER, Look
from corefw.compiling.environment import NAMES, changes
from corefw.compiling.nodes import spend
from corefw.dispatch.registry import registry
from corefw.tensor import Tensor, new, wrap
from corefw.utils._pytree import TreeSpec, tree_unflatten

if TYPE_CHECKING:
    from corefw.compiling.entries import Entry, Returned


def entering(entry: Entry, look: Look) -> Callable[[tuple, dict], Any]:
    """The function: given arguments it returns what a call with them would; OTHER where the recording does not hold."""
    return _Writer(entry, look).function()


class _Writer:
    """The function that is being written."""

    def __init__(self, entry: Entry, look: Look):
        self._entry, self._look, self._lines, self.name, self._check = entry, look, look.lines, look.name, look.check
        self._check(" or ".join(changes(entry.environment)))
        self._check("registry.epoch != entry.epoch and not entry.chooses_as_before()")
        self._look_around()
        self._run()
        self._return()

    def _tensor(self, what: Any) -> str:
        """A tensor, or the one at a place among the arguments."""
        return f"t{what}" if what.__class__ is int else self.name(what)

    def _look_around(self) -> None:
        """Compare what is no argument."""
        entry, held = self._entry, self._entry.held
        for i, array in entry.pinned:
            self._check(f"r{i} is not {self.name(array)}")
        for i, (group, key, place, others) in enumerate(entry.rates):
            self._lines.append(f"q{i} = {self.name(group)}.get({key!r})")
            if place is not None:
                self._check(f"q{i}.__class__ is not tuple or len(q{i}) != {len(others) + 1}")
                self._check(f"q{i}[:{place}] + q{i}[{place + 1}:] != {self.name(others)}")
                self._lines.append(f"q{i} = q{i}[{place}]")
            self._check(f"q{i}.__class__ is not float")
        for i, truth in entry.truths:
            self._check(f"not q{i}" if truth else f"q{i}")
        for i, there in entry.leaves:
            self._check(f"t{i}._grad is {'' if there else 'not '}None")
        if held.empty:
            self._check(" or ".join(map(self.name, held.empty)))
        if len(held.items) > 1:
            self._check("not all(map(is_, from_iterable(present), held.items)) and not held.equals()")
        if held.leaves:
            self._lines.append(f"for t, array, node, hooks, without in {self.name(held.leaves)}:")
            self._check_in_loop("t.array is not array or t.node is not node or node.hooks is not hooks")
            self._check_in_loop("(t._grad is None) is not without")
        if held.others:
            self._lines.append(f"for t, array, node in {self.name(held.others)}:")
            self._check_in_loop("t.array is not array or t.node is not node")
        for i, (leaf, (key, shape, strides)) in enumerate(zip(entry.gradients_given, entry.gradients_like)):
            self._lines.append(f"g{i} = {self._tensor(leaf)}._grad; o{i} = g{i}.array")
            like = self.name(shape), self.name(strides)
            self._check(f"g{i}.dispatch_key is not {self.name(key)}")
            self._check(f"o{i}.shape != {like[0]} or o{i}.strides != {like[1]}")

    def _check_in_loop(self, condition: str) -> None:
        self._lines.append(f"    if {condition}: return OTHER")

    def _run(self) -> None:
        """Run the plan, and do what the calls did besides."""
        entry = self._entry
        given = [f"r{i}" for i in range(self._look.tensors)] + [f"o{i}" for i in range(len(entry.gradients_given))]
        draws = [f"{self.name(draw.generator)}.take({draw.blocks})" for draw in entry.draws]
        rates = [f"q{i}" for i in range(len(entry.rates))]
        self._count()
        self._lines += [
            "entry.runs += 1",
            f"arrays = run([{', '.join(given)}], [{', '.join(draws)}], [{', '.join(rates)}])",
        ]
        made = [
            (leaf, place, key) for leaf, place, key in entry.new_gradients if place >= 0 and leaf.__class__ is not int
        ]
        if made:
            self._lines.append(f"for leaf, place, key in {self.name(made)}:")
            self._lines += [f"    {line}" for line in self._wrapped("t", "place", "key")]
            self._lines.append("    leaf._grad = t")
        for leaf, place, key in entry.new_gradients:
            if place < 0:
                self._lines.append(f"{self._tensor(leaf)}._grad = None")
            elif leaf.__class__ is int:
                self._lines += [*self._wrapped("t", place, self.name(key)), f"t{leaf}._grad = t"]

    def _count(self) -> None:
        """Count the changes in place: before they are made, while the tensors are in the caches, and so also those
        before an error."""
        counted = self._entry.counted
        once = [what for what, times in counted if times == 1 and what.__class__ is not int]
        if once:
            self._lines.append(f"for t in {self.name(once)}: t.version[0] += 1")
        for what, times in counted:
            if times != 1 or what.__class__ is int:
                self._lines.append(f"{self._tensor(what)}.version[0] += {times}")
        for leaf, times in self._entry.gradient_counts:
            self._lines.append(f"{self._tensor(leaf)}._grad.version[0] += {times}")

    def _wrapped(self, name: str, place: Any, key: str) -> list[str]:
        """Lines that make a tensor over what the run returns at a place."""
        if self._entry.inference:
            return [f"{name} = wrap(arrays[{place}], {key})"]
        return [  # as `wrap` does
            f"{name} = new(Tensor); {name}.array = arrays[{place}]; {name}.dispatch_key = {key}",
            f"{name}.node = {name}.view_info = None; {name}.version = [0]",
        ]

    def _return(self) -> None:
        entry = self._entry
        leaves = [self._leaf(f"y{i}", returned) for i, returned in enumerate(entry.returned)]
        for i, returned in enumerate(entry.returned):
            if returned.version_of >= 0:
                self._lines.append(f"y{i}.version = y{returned.version_of}.version")
        if entry.backward is not None:
            given = ", ".join(f"t{i}" for i in range(self._look.tensors))
            self._lines.append(f"entry.attach(arrays, [{given}], [{', '.join(leaves)}])")
        self._lines += [f"{self.name(scheduler)}.step()" for scheduler in entry.schedulers]
        self._lines.append(f"return {self._tree(iter(leaves), entry.structure)}")

    def _leaf(self, name: str, returned: Returned) -> str:
        if returned.kind == "given":
            return f"t{returned.place}"
        if returned.kind == "constant":
            return self.name(returned.value)
        self._lines += self._wrapped(name, returned.place, self.name(returned.dispatch_key))
        if returned.spent:
            self._lines.append(f"spend({name})")
        return name

    def _tree(self, leaves: Any, structure: TreeSpec) -> str:
        """A tree of the next leaves."""
        if structure.is_leaf():
            return next(leaves)
        if structure.type is tuple or structure.type is list:
            items = "".join(f"{self._tree(leaves, child)}, " for child in structure.children_specs)
            return f"({items})" if structure.type is tuple else f"[{items}]"
        items = ", ".join(next(leaves) for _ in range(structure.num_leaves))
        return f"tree_unflatten([{items}], {self.name(structure)})"

    def function(self) -> Callable[[tuple, dict], Any]:
        """The function."""
        names = {
            **NAMES,
            **self._look.names,
            **{"all": all, "map": map, "is_": is_, "from_iterable": chain.from_iterable, "OTHER": OTHER},
            **{"entry": self._entry, "held": self._entry.held, "present": self._entry.held.present},
            **{"then": self._entry.environment, "run": self._entry.run, "registry": registry},
            **{"Tensor": Tensor, "new": new, "wrap": wrap, "spend": spend, "tree_unflatten": tree_unflatten},
        }
        source = "def enter(args, kwargs):\n" + "\n".join(f"    {line}" for line in self._lines)
        exec(compile(source, "<corefw entry>", "exec"), names)
        return names["enter"]
