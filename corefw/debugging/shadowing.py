"""Shadow execution: a program runs on its backend and, op by op, on another one that says what is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from corefw import dtypes
from corefw.autograd.recorder import exchange_step
from corefw.debugging.differences import Difference, Worst, allowed, in_double, largest, worst
from corefw.debugging.reference import Reference
from corefw.devices import DispatchKey
from corefw.dispatch.calls import arrays_of, changed_of, computes, described, host_copy, silent
from corefw.dispatch.modes import Mode
from corefw.dispatch.op import Op
from corefw.dispatch.resolution import decide
from corefw.dispatch.runtime import Runtime
from corefw.errors import DifferenceError, KernelNotFoundError
from corefw.tensor import Node
from corefw.tracebacks import running_backward, user_line

#: results that are right in several ways: vectors up to their sign or phase
_UNDETERMINED = {"linalg_eigh": ("eigenvectors",), "svd_factors": ("U", "Vh"), "qr_factors": ("Q", "R")}
#: how much farther than the reference's a result may be from that in double precision
_SLACK = 8


class shadow(Mode):
    """A with-block in which each op also runs on another backend, on the same arguments, and the results are compared.

    Args:
        reference: the backend that says what is right; arrays of other devices are copied to its own.
        grads: whether the ops of gradients are compared too.
        stop: whether the first difference raises DifferenceError; otherwise they are listed.

    Attributes: ``differences`` found so far; ``compared`` how often each op was compared; ``uncompared`` the ops that
    were not, with the reason.

    >>> import corefw as torch
    >>> with torch.shadow("numpy", grads=True, stop=False) as found:
    ...     _ = torch.ones(3).exp()
    >>> found.differences
    []
    """

    def __init__(self, reference: str, *, grads: bool = False, stop: bool = True):
        self.reference = Reference(reference)
        self.grads, self.stop = grads, stop
        self.differences: list[Difference] = []
        self.compared: Counter[str] = Counter()
        self.uncompared: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._step = exchange_step("shadow", _remember_line) if self.grads else None
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        if self.grads:
            exchange_step("shadow", self._step)

    def __str__(self) -> str:
        counted = f"{sum(self.compared.values())} calls of {len(self.compared)} ops compared with {self.reference.name}"
        return "\n".join([*map(str, self.differences), f"{counted}: {len(self.differences)} differ"])

    def wrap(self, op: Any, dispatch_key: Any, who: Any, function: Any) -> Any:
        if not computes(op, dispatch_key, who):
            return function
        call, reference, declared = silent(function), self.reference, _declared(op, dispatch_key, who)
        if who == reference.name:
            self.uncompared[op.name] = f"{who} computes it"

        def shadowed(*arguments, **options):
            if reference.active:
                return reference.into(op, dispatch_key, arguments, **options)
            # of a composite the ops inside are compared
            believed = who in (reference.name, "composite") or dispatch_key.runtime.is_capturing()
            if believed or (not self.grads and running_backward() is not None):
                return call(*arguments, **options)
            return self._compared(op, dispatch_key, who, declared, call, arguments, options)

        return shadowed

    def _compared(self, op: Op, dispatch_key: DispatchKey, who: str, declared, call: Callable, arguments, options):
        """What the kernel gives, compared with what the reference gives, which is asked first."""
        changed = any(True for _ in changed_of(op, arguments))
        place = self.reference.place(dispatch_key)
        given = self.reference.arguments(arguments, dispatch_key, copied=changed or "out" in options)
        scale = max((largest(host_copy(place.runtime, array)) for _, array in arrays_of(op, given)), default=0.0)
        try:
            expected = self.reference.call(op, place, given)
        except KernelNotFoundError as error:
            self.uncompared[op.name] = str(error)
            return call(*arguments, **options)
        except Exception as error:
            result = call(*arguments, **options)
            found: dict[str, Worst | str] = {
                "result": f"there, where {self.reference.name} raises {type(error).__name__}: {error}"
            }
        else:
            result = call(*arguments, **options)
            if changed:
                pairs = zip(changed_of(op, arguments), changed_of(op, given), strict=True)
                results = [(name, here, there) for (name, here), (_, there) in pairs]
            else:
                results = list(_paired(op, options.get("out", result), expected))
            found = {}
            for i, (name, here, there) in enumerate(results):
                actual, right = _host(dispatch_key.runtime, here), _host(place.runtime, there)
                one = worst(actual, right, _limit(op, right, scale, declared))
                if one is not None and not (not changed and self._rounds(op, place, given, i, actual, right)):
                    found[name] = one
        self.compared[op.name] += 1
        for name, fault in found.items():
            names = (op.name, who, self.reference.name, described(op, arguments), str(dispatch_key.device))
            self._note(Difference(*names, name, fault, user_line(), _forward_line()))
        return result

    def _rounds(self, op: Op, place: DispatchKey, given, output: int, actual, expected) -> bool:
        """Whether rounding explains a difference: in double precision, both results are nearly as far from the true
        one."""
        if actual.shape != expected.shape or dtypes.of_numpy(expected.dtype).category < dtypes.FLOATING:
            return False
        result = self.reference.widely(op, place, given)
        if result is None:
            return False
        _, _, truth = list(_paired(op, result, result))[output]
        right = _host(place.runtime, truth)
        noise = largest(np.asarray(in_double(expected) - right))
        return worst(in_double(actual), right, _SLACK * noise) is None

    def _note(self, difference: Difference) -> None:
        self.differences.append(difference)
        if self.stop:
            raise DifferenceError(str(difference))


def _paired(op: Op, here, there) -> Iterator[tuple[str, Any, Any]]:
    """The results of both sides by name, without those that may differ."""
    if op.outputs:
        names = zip(op.outputs, here, there, strict=True)
        yield from (pair for pair in names if pair[0] not in _UNDETERMINED.get(op.name, ()))
    else:
        yield "result", here, there


def _declared(op: Op, dispatch_key: DispatchKey, who: str) -> float | None:
    """What the kernel that a backend offers declares to be wrong by."""
    kernel = decide(op, dispatch_key, (who,)).kernel
    return None if kernel is None else kernel.max_ulp


def _limit(op: Op, expected: np.ndarray, scale: float, declared: float | None):
    """What elements may differ by; in double precision, where rounding is not looked at, in relation to the arguments
    too."""
    d = dtypes.of_numpy(expected.dtype)
    if d.category < dtypes.FLOATING:
        return 0.0
    return allowed(op.name, expected, d, scale if d in (dtypes.float64, dtypes.complex128) else 0.0, declared)


def _host(runtime: Runtime, value) -> np.ndarray:
    return host_copy(runtime, value if hasattr(value, "strides") else runtime.wrap(value))


def _remember_line(node: Node) -> None:
    node.metadata["line"] = user_line()


def _forward_line() -> str | None:
    """The line of the forward op whose gradient is running."""
    node = running_backward()
    return None if node is None else f"{node.name()} of {node.metadata.get('line', 'an op outside of the block')}"
