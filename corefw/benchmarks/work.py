"""What a piece of program asks of the machine: which backend ran which op, the bytes and the operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from corefw.dispatch.flags import unheard
from corefw.dispatch.modes import ledger
from corefw.dispatch.registry import registry

#: who a kernel is called by that moves nothing itself: its parts are counted
_NOBODY = ("composite", "geometry", "meta")


def _attention(query, key, value):
    return 2 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _convolution(result, input, weight, bias, stride, padding, dilation, transposed=False, *others):
    return 2 * prod(input if transposed else result[0]) * prod(weight[1:])


#: {op: operations of its products, from the shapes of the results and, for arrays, of the arguments}
FLOPS: dict[str, Callable[..., float]] = {
    **dict.fromkeys(("matmul", "mm", "bmm", "matmul_adjoint"), lambda result, a, b: 2 * prod(result[0]) * a[-1]),
    **dict.fromkeys(("addmm", "baddbmm"), lambda result, input, a, b, *others: 2 * prod(result[0]) * a[-1]),
    "adjoint_matmul": lambda result, a, b: 2 * prod(result[0]) * a[-2],
    "linear": lambda result, x, weight, bias=None: 2 * prod(result[0]) * weight[-1],
    "linear_gradients": lambda result, gradient, x: 2 * prod(gradient) * x[-1],
    "convolution": _convolution,
    "convolution_weight": lambda result, x, gradient, *others: 2 * prod(gradient) * prod(result[0][1:]),
    "attention": lambda result, q, k, v, *others: _attention(q, k, v),
    "attention_backward": lambda result, gradient, q, k, v, *others: 2.5 * _attention(q, k, v),
    "lstm_sequence": lambda result, x, hx, cx, weight, *others: 2 * x[0] * prod(weight),
    "gru_sequence": lambda result, x, hx, weight, *others: 2 * x[0] * prod(weight),
    "lstm_sequence_backward": lambda result, hx, cx, weight, *others: 4 * result[0][0] * prod(weight),
    "gru_sequence_backward": lambda result, hx, weight, *others: 4 * result[0][0] * prod(weight),
}


def _arrays(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _arrays(value)
        elif hasattr(value, "nbytes") and hasattr(value, "strides"):
            yield value


def _moves(op: str, who: str) -> bool:
    """Whether what `who` ran for an op moves elements itself."""
    return who not in _NOBODY and not registry.declared[op].view


def _bytes(values: Any) -> int:
    """The bytes of all arrays among `values`; those that are repeated by strides of zero count once."""
    return sum(
        array.dtype.itemsize * prod(size for size, stride in zip(array.shape, array.strides) if stride)
        for array in _arrays(values)
    )


class Work(ledger):
    """A ledger that also counts what kernels read and write, and the operations of products.

    Attributes: ``bytes`` of all operands, read once, and results, written once, of every kernel; ``flops`` the
    floating-point operations of matrix products, convolutions and attention, as PyTorch's counter counts them.

    >>> import corefw as torch
    >>> with Work() as work:
    ...     _ = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> work.flops
    48
    """

    def __init__(self):
        super().__init__()
        self.bytes = 0
        self.flops: float = 0

    def wrap(self, op, dispatch_key, who, function):
        function = super().wrap(op, dispatch_key, who, function)
        if op.view or who in _NOBODY or who.startswith("fallback"):
            return function
        add, flops = self._add, FLOPS.get(op.name)

        def weighed(*arguments, **options):
            result = function(*arguments, **options)
            add(flops, arguments, result)
            return result

        return unheard(weighed)

    def _add(self, flops: Callable[..., float] | None, arguments: tuple, result: Any) -> None:
        """Count what a kernel was given and what it returned."""
        results = [*_arrays((result,))]
        self.bytes += _bytes(arguments) + _bytes(results)
        if flops is not None:
            shapes = (value.shape if hasattr(value, "strides") else value for value in arguments)
            self.flops += flops([array.shape for array in results], *shapes)

    def ran(self) -> dict[str, int]:
        """{backend: how many kernels it ran}, those of views left out."""
        found: Counter[str] = Counter()
        for (op, _, who), calls in self.counts.items():
            if _moves(op, who):
                found[who] += calls
        return dict(found)

    def dtypes(self) -> list[str]:
        """The dtypes that kernels were run for, the most frequent first."""
        found: Counter[str] = Counter()
        for (op, dispatch_key, who), calls in self.counts.items():
            if _moves(op, who):
                found[dispatch_key.partition("/")[2]] += calls
        return [name for name, _ in found.most_common()]
